# SPDX-License-Identifier: Apache-2.0
"""The server is killed while applications are applied: what was acknowledged reaches its device, and nothing restarts."""
import concurrent.futures
import json
import re
import subprocess

from boxes import GROUP, Box, app_of, counter
from seth import Server, wait_until

NS, N_DEVICES, N_BEFORE, N_APPLICATIONS, KILL_AFTER = "crowd", 20, 60, 200, 60
API = "eve.lfedge.org/v1beta1"


def thing(kind, name, spec, **metadata):
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, "namespace": NS, **metadata}, "spec": spec}


def ground():
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}},
            thing("NetworkConfig", "dhcp", {"ip": "dhcp"}), thing("DeviceNetwork", "local", {"networkConfig": "dhcp"}),
            thing("Image", "nginx", {"ref": "library/nginx:1.27", "storageClass": "eve-docker"}),
            *(thing("Device", f"node-{i}", {"serial": f"NODE-{i}"}) for i in range(N_DEVICES))]


def application(i):
    return thing("Application", f"app-{i}", {"nodeSelector": {"name": f"node-{i % N_DEVICES}"}, "containers": [
        {"name": "main", "image": "nginx", "resources": {"limits": {"cpu": "1", "memory": "64Mi"}}}]})


def text(objects):
    return "\n---\n".join(json.dumps(o) for o in objects)


def apply_and_kill(s, applications):
    """The names that kubectl says are made before the server is killed among them."""
    words, environment = s.kubectl_command()
    p = subprocess.Popen([*words, "apply", "-f", "-"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    p.stdin.write(text(applications))
    p.stdin.close()
    made = []
    for line in p.stdout:
        made += re.findall(r"^application\.eve\.lfedge\.org/(\S+) created", line)
        if len(made) == KILL_AFTER:
            s.kill()
    assert p.wait(60) != 0, "kubectl has not noticed"
    assert KILL_AFTER <= len(made) < len(applications), len(made)
    return made


def told(boxes, names):
    """All of these are in the configuration of their device; {name: application}."""
    def fetch(box):
        mine = {n for n in names if int(n.split("-")[1]) % N_DEVICES == int(box.name.split("-")[1])}
        config = box.until(lambda c: mine <= {a["displayname"] for a in c.get("apps", [])}, f"{sorted(mine)}", 120)
        return {n: app_of(config, n) for n in mine}

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return {n: a for part in pool.map(fetch, boxes) for n, a in part.items()}


def counters(apps):
    return {n: (counter(a, "restart"), counter(a, "purge"), a["uuidandversion"]["uuid"]) for n, a in apps.items()}


def test_killed_while_applying():
    with Server() as s:
        s.kubectl("apply", "-f", "-", input=text(ground()))
        boxes = [Box(s, NS, f"node-{i}", f"NODE-{i}") for i in range(N_DEVICES)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda b: (b.begin(), b.report(ncpu=16)), boxes))
        s.kubectl("apply", "-f", "-", input=text(application(i) for i in range(N_BEFORE)))
        before = counters(told(boxes, [f"app-{i}" for i in range(N_BEFORE)]))
        made = apply_and_kill(s, [application(i) for i in range(N_BEFORE, N_APPLICATIONS)])
        s.start()
        for box in boxes:
            box.keeps = {n for n in before if int(n.split("-")[1]) % N_DEVICES == int(box.name.split("-")[1])}
        after = counters(told(boxes, [*before, *made]))
        assert {n: after[n] for n in before} == before
        # The rest is applied, and nothing else moves.
        s.kubectl("apply", "-f", "-", input=text(application(i) for i in range(N_APPLICATIONS)))
        every = counters(told(boxes, [f"app-{i}" for i in range(N_APPLICATIONS)]))
        assert {n: every[n] for n in after} == after
        assert {c[:2] for c in every.values()} == {c[:2] for c in before.values()}, "something restarts that was never changed"
        stored = {a["metadata"]["name"]: a["status"] for a in s.ok("GET", f"{GROUP}/namespaces/{NS}/applications")["items"]}
        assert all(stored[n]["uuid"] == uuid for n, (_, _, uuid) in every.items())
        wait_until(lambda: all(s.ok("GET", f"{GROUP}/namespaces/{NS}/devices/{b.name}")["status"].get("apps", {}).get("wanted") == N_APPLICATIONS // N_DEVICES for b in boxes),
                   60, "the counts of applications")
