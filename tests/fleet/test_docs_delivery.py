# SPDX-License-Identifier: Apache-2.0
"""docs/DELIVERY.md: its commands run as written, and what it says can be seen."""
import os
import re
import subprocess

from boxes import Box, counter, living, wait_condition
from seth import KUBECTLS, TOP, Server

PAGE = TOP / "docs/DELIVERY.md"
NS, DEVICE, APP = "first-device", "eve-device.lab1", "web"


def blocks():
    part = re.search(r"<!-- commands -->(.*?)<!-- /commands -->", PAGE.read_text(), re.S).group(1)
    found = re.findall(r"```sh\n(.*?)```", part, re.S)
    assert len(found) >= 5, "the page has lost its commands"
    return found


def run(s, script):
    environment = {**os.environ, "PATH": f"{KUBECTLS['new'].parent}:{os.environ['PATH']}", "HOME": str(s.dir), "KUBECONFIG": s.kubeconfig}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_commands_run_as_written():
    watching, hanging, told, editing, overriding = blocks()
    with Server() as s:
        s.kubectl("apply", "-f", str(TOP / "examples" / NS))
        box = Box(s, NS, DEVICE, "6654abbcc44").begin()
        box.report()
        box.metrics()
        box.until_app(APP)
        box.keeps.add(APP)
        with living(box):
            out = run(s, watching)
            assert out.count("condition met") == 2 and "RUNNING" in out, out
            out = run(s, hanging)
            for kind in ("Accepted", "Scheduled", "Composed", "Delivered", "Ready"):
                assert f"{kind}=True" in out, (kind, out)
            out = run(s, told)
            assert '"displayname":"web"' in out and re.search(r"^apps\[0\]\S* Application/web ", out, re.M), out
            before = box.until_app(APP)
            run(s, editing)
            after = box.until_app(APP, lambda a: a["fixedresources"]["memory"] == 1024 * 1024)
            assert counter(after, "restart") == counter(before, "restart") + 1
            out = run(s, overriding)
            assert "projectName" in out, out
            box.until(lambda c: "projectName" not in c, "what is composed")
            assert counter(box.until_app(APP), "restart") == counter(after, "restart")


def test_ten_edits_of_a_device_that_is_away_are_one_restart():
    with Server() as s:
        s.kubectl("apply", "-f", str(TOP / "examples" / NS))
        box = Box(s, NS, DEVICE, "6654abbcc44").begin()
        box.report()
        before = box.until_app(APP)
        path = f"/apis/eve.lfedge.org/v1beta1/namespaces/{NS}/applications/{APP}"
        for i in range(10):
            edit = [{"op": "replace", "path": "/spec/containers/0/resources/limits/memory", "value": f"{600 + i}Mi"}]
            s.ok("PATCH", path, edit, {"Content-Type": "application/json-patch+json"})
        after = box.until_app(APP, lambda a: a["fixedresources"]["memory"] == 609 * 1024)
        assert counter(after, "restart") > counter(before, "restart")
        wait_condition(s, NS, "deviceconfigs", DEVICE, "Delivered", "True")


def test_where_it_hangs():
    """What the page says one sees, and its opposite."""
    path = f"/apis/eve.lfedge.org/v1beta1/namespaces/{NS}/applications"
    with Server() as s:
        s.kubectl("apply", "-f", str(TOP / "examples" / NS))
        box = Box(s, NS, DEVICE, "6654abbcc44").begin()
        box.report()
        box.until_app(APP)
        box.keeps.add(APP)

        def second(name, **spec):
            other = {"apiVersion": "eve.lfedge.org/v1beta1", "kind": "Application", "metadata": {"name": name}, "spec": {
                "containers": [{"name": "web", "image": "nginx", "resources": {"limits": {"memory": "256Mi"}}, "ports": [{"containerPort": 80, "hostPort": 8080}]}], **spec}}
            s.ok("POST", path, other)

        second("nowhere", nodeSelector={"site": "moon"})
        assert "0/1 devices" in wait_condition(s, NS, "applications", "nowhere", "Scheduled", "False")["message"]
        second("late", nodeSelector={"site": "lab1"})
        c = wait_condition(s, NS, "applications", "late", "Composed", "False", "LeftOut")
        assert "8080" in c["message"], c
        c = wait_condition(s, NS, "deviceconfigs", DEVICE, "Composed", "False", "Incomplete")
        assert "late" in c["message"] and "8080" in c["message"], c
        # What runs cannot be composed any more after an edit: it stays as it was.
        s.kubectl("delete", "-n", NS, "eapp", "late")
        second("other", nodeSelector={"site": "lab1"})
        edit = [{"op": "replace", "path": "/spec/containers/0/ports/0/hostPort", "value": 8081}]
        s.ok("PATCH", f"{path}/other", edit, {"Content-Type": "application/json-patch+json"})
        box.until_app("other")
        wait_condition(s, NS, "deviceconfigs", DEVICE, "Composed", "True")
        s.ok("PATCH", f"{path}/{APP}", edit, {"Content-Type": "application/json-patch+json"})
        c = wait_condition(s, NS, "applications", APP, "Composed", "False", "KeptAsItWas")
        assert "8081" in c["message"], c
        ports = [m["value"] for a in box.until_app(APP)["interfaces"][0]["acls"] for m in a["matches"] if m["type"] == "lport"]
        assert ports == ["8080"], ports


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)", PAGE.read_text()):
        assert (PAGE.parent / link).exists(), link


def test_every_condition_that_the_page_names_is_one():
    known = set(re.findall(r"`([A-Z][A-Za-z]+)`", PAGE.read_text()))
    text = "".join((TOP / "docs/kinds" / f"{p}.md").read_text() for p in ("devices", "applications", "deviceconfigs", "volumes", "images", "devicenetworks"))
    assert known and all(re.search(rf"\b{k}\b", text) for k in known), known
