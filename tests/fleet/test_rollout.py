# SPDX-License-Identifier: Apache-2.0
"""examples/fleet-rollout: a new template goes over the fleet, one device after the other; who is out of touch holds up nobody."""
import json
import threading

from boxes import GROUP, Box, condition, get, living, wait_condition
from seth import TOP, Server, wait_until

NS = "fleet-rollout"
SERIALS = {"press-1": "PRESS-0001", "press-2": "PRESS-0002", "press-3": "PRESS-0003"}


def applications(s, app):
    items = s.ok("GET", f"{GROUP}/namespaces/{NS}/applications?labelSelector=app%3D{app}")["items"]
    return [a for a in items if "deletionTimestamp" not in a["metadata"]]


def runs(a, image):
    return a["spec"]["containers"][0]["image"] == image and condition(a, "Ready")["status"] == "True"


def on_devices(s, image):
    """The devices whose collector is of that image and runs."""
    return {a["status"].get("device") for a in applications(s, "collector") if runs(a, image)}


class Watcher:
    """Follows the collectors of some devices and remembers the fewest that ran at once."""

    def __init__(self, s, devices):
        listed = s.ok("GET", f"{GROUP}/namespaces/{NS}/applications?labelSelector=app%3Dcollector")
        self.ready = {a["metadata"]["name"]: a["status"].get("device") for a in listed["items"] if condition(a, "Ready")["status"] == "True"}
        self.devices, self.fewest, self.stop = set(devices), len(devices), False
        path = f"{GROUP}/namespaces/{NS}/applications?labelSelector=app%3Dcollector&watch=true&timeoutSeconds=300&resourceVersion={listed['metadata']['resourceVersion']}"
        self.thread = threading.Thread(target=self._follow, args=(s, path), daemon=True)
        self.thread.start()

    def _follow(self, s, path):
        for e in s.watch(path, timeout=300):
            a = e["object"]
            is_ready = e["type"] != "DELETED" and "deletionTimestamp" not in a["metadata"] and condition(a, "Ready")["status"] == "True"
            if is_ready:
                self.ready[a["metadata"]["name"]] = a["status"].get("device")
            else:
                self.ready.pop(a["metadata"]["name"], None)
            self.fewest = min(self.fewest, len(self.devices & set(self.ready.values())))


def begin(s):
    s.kubectl("apply", "-f", str(TOP / "examples" / NS))
    # It is given up on sooner than the others.
    s.kubectl("annotate", "-n", NS, "edev", "press-3", "eve.lfedge.org/config.timer.config.interval=5")
    boxes = {name: Box(s, NS, name, serial).begin() for name, serial in SERIALS.items()}
    for box in boxes.values():
        box.report()
        box.metrics()
    return boxes


def test_a_rollout_with_one_device_away():
    with Server() as s:
        boxes = begin(s)
        with living(*boxes.values()):
            wait_until(lambda: on_devices(s, "collector-1.0") == set(SERIALS), 60, "a collector on every device")
            wait_until(lambda: sorted(a["status"].get("device", "") for a in applications(s, "dashboard") if runs(a, "dashboard")) == ["press-1", "press-2"], 60, "both dashboards")
        with living(boxes["press-1"], boxes["press-2"]):
            wait_condition(s, NS, "devices", "press-3", "Ready", "Unknown", "Silent")
            watcher = Watcher(s, ["press-1", "press-2"])
            template = {"spec": {"template": {"spec": {"containers": [{"name": "collector", "image": "collector-1.1", "resources": {"limits": {"cpu": "1", "memory": "256Mi"}}}]}}}}
            s.kubectl("patch", "-n", NS, "appds", "collector", "--type=merge", "-p", json.dumps(template))
            wait_until(lambda: on_devices(s, "collector-1.1") >= {"press-1", "press-2"}, 90, "the new collector on both")
            assert watcher.fewest >= 1, "both were without a collector at once"
            assert condition(get(s, NS, "devices", "press-3"), "Ready")["status"] == "Unknown"
            # Back again, it follows.
            with living(boxes["press-3"]):
                wait_until(lambda: on_devices(s, "collector-1.1") == set(SERIALS), 60, "the new collector on all")
            status = get(s, NS, "applicationdaemonsets", "collector")["status"]
            wait_until(lambda: get(s, NS, "applicationdaemonsets", "collector")["status"].get("updatedNumberScheduled") == 3, what="the count")
            assert status["desiredNumberScheduled"] == 3, status
            assert len(applications(s, "collector")) == 3
        # The image of the old one is in no configuration any more.
        for box in boxes.values():
            box.until(lambda c: [t["URL"] for t in c["contentInfo"] if "collector" in t["URL"]] == ["corp1/collector:1.1"], "only the new image")
        revisions = s.ok("GET", f"/apis/apps/v1/namespaces/{NS}/controllerrevisions")["items"]
        assert len([r for r in revisions if r["metadata"]["name"].startswith("collector-")]) == 2, [r["metadata"]["name"] for r in revisions]


def test_scaling_and_what_joins_later():
    with Server() as s:
        boxes = begin(s)
        with living(*boxes.values()):
            wait_until(lambda: len([a for a in applications(s, "dashboard") if runs(a, "dashboard")]) == 2, 60, "both dashboards")
            s.kubectl("scale", "-n", NS, "applicationdeployment/dashboard", "--replicas=1")
            wait_until(lambda: len(applications(s, "dashboard")) == 1, 60, "one dashboard")
            wait_until(lambda: sum(1 for n in ("press-1", "press-2") for a in boxes[n].config["apps"] if a["displayname"].startswith("dashboard")) == 1, 60, "one in the configurations")
            # Another device joins the line; and one leaves it.
            s.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "eve.lfedge.org/v1beta1", "kind": "Device", "metadata": {
                "name": "press-4", "namespace": NS, "labels": {"site": "bremen", "line": "press"}}, "spec": {"serial": "PRESS-0004"}}))
            late = Box(s, NS, "press-4", "PRESS-0004").begin()
            late.report()
            with living(late):
                wait_until(lambda: on_devices(s, "collector-1.0") == {*SERIALS, "press-4"}, 60, "a collector on the new device")
            s.kubectl("label", "-n", NS, "edev", "press-3", "line-")
            wait_until(lambda: on_devices(s, "collector-1.0") == {"press-1", "press-2", "press-4"}, 60, "no collector off the line")
            boxes["press-3"].until(lambda c: not c.get("apps"), "nothing to run")
