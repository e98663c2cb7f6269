# SPDX-License-Identifier: Apache-2.0
"""All examples on one server: a start is no news to anybody, and what goes leaves nothing behind."""
from boxes import GROUP, Box, settle
from seth import TOP, Server, wait_until
from test_examples import DEVICES

PROBE = "os-update"


def begin(s):
    boxes = []
    for namespace, devices in DEVICES.items():
        s.kubectl("apply", "-f", str(TOP / "examples" / namespace))
        boxes += [Box(s, namespace, name, serial).begin() for name, serial in devices.items()]
    for box in boxes:
        box.report()
        box.metrics()
    for box in boxes:
        settle(box)
    return boxes


def versions(s):
    """Of everything but the probe's: who wrote what would show."""
    found = {}
    for plural in ("devices", "deviceconfigs", "applications", "volumes", "images", "devicenetworks", "applicationdeployments", "applicationdaemonsets"):
        for o in s.ok("GET", f"{GROUP}/{plural}")["items"]:
            if o["metadata"]["namespace"] != PROBE:
                found[plural, o["metadata"]["namespace"], o["metadata"]["name"]] = o["metadata"]["resourceVersion"]
    return found


def test_a_start_is_no_news():
    with Server() as s:
        boxes = begin(s)
        probe = next(b for b in boxes if b.namespace == PROBE)
        others = [b for b in boxes if b is not probe]
        told = {(b.namespace, b.name): (b.device.hash, b.n_fetched) for b in others}
        before = versions(s)
        for step, end in enumerate((s.stop, s.kill)):
            end()
            s.start()
            # What comes after the start is done when the last of these is.
            s.kubectl("annotate", "-n", PROBE, "edev", probe.name, "--overwrite", f"eve.lfedge.org/config.timer.metric.interval={30 + step}")
            probe.until(lambda c: {"key": "timer.metric.interval", "value": str(30 + step)} in c.get("configItems", []), "the option")
            for b in others:
                b.fetch()
            assert {(b.namespace, b.name): (b.device.hash, b.n_fetched) for b in others} == told, end
            after = versions(s)
            assert after == before, {k: (before.get(k), v) for k, v in after.items() if before.get(k) != v}
        everything_goes(s, others)


def everything_goes(s, boxes):
    """With their namespaces, in use or not; devices are told nothing any more."""
    s.kubectl("delete", "namespace", *DEVICES)
    for box in boxes:
        wait_until(lambda: box.device.config()[0].status in (401, 403, 404), what=f"{box.name} to be refused")
    for path in (*(f"{GROUP}/{p}" for p in ("devices", "deviceconfigs", "applications", "volumes", "images")), "/api/v1/persistentvolumeclaims"):
        assert s.ok("GET", path)["items"] == [], path
