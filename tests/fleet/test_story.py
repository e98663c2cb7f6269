# SPDX-License-Identifier: Apache-2.0
"""From kubectl apply to a running application, with real parts: the server over TLS, kubectl, and a device that speaks the EVE API."""
import json
import subprocess

from boxes import GROUP, Box, app_of, condition, counter, get, living, wait_condition
from seth import TOP, Server, wait_until

NS, DEVICE, APP = "first-device", "eve-device.lab1", "web"
BLANK = {"spec": {"storageClassName": "eve-blank", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def columns(text):
    """Rows of a table of kubectl by the name of the object: {name: {column: cell}}."""
    lines = [line for line in text.splitlines() if line.strip()]
    out, head = {}, []
    for line in lines:
        if line.startswith("NAME "):
            begins = [i for i, c in enumerate(line) if c != " " and (i == 0 or line[i - 2:i] == "  ")]
            head = [(line[b:e].strip(), b, e) for b, e in zip(begins, begins[1:] + [None])]
        else:
            row = {name: line[b:e].strip() for name, b, e in head}
            out[row["NAME"]] = row
    return out


def ready_in_background(s, *what):
    """kubectl wait --for=condition=Ready, begun; what ends it is what the device says."""
    words, environment = s.kubectl_command()
    return subprocess.Popen([*words, "wait", "--for=condition=Ready", "--timeout=90s", "-n", NS, *what], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def patch(s, plural, name, body):
    s.kubectl("patch", "-n", NS, plural, name, "--type=merge", "-p", json.dumps(body))


def container(**more):
    return {"name": "web", "image": "nginx", "resources": {"limits": {"cpu": "1", "memory": "512Mi"}}, "ports": [{"containerPort": 80, "hostPort": 8080}], **more}


def begin(s):
    s.kubectl("apply", "--validate=strict", "-f", str(TOP / "examples" / NS))
    assert condition(get(s, NS, "devices", DEVICE), "Ready")["status"] in (None, "Unknown")
    return Box(s, NS, DEVICE, "6654abbcc44").begin()


def run_up(s, box):
    """Fetched, reported, running: what users see at each step."""
    waiting = ready_in_background(s, f"edev/{DEVICE}", f"eapp/{APP}")
    app = box.until_app(APP)
    box.keeps.add(APP)
    assert app["fixedresources"]["memory"] == 512 * 1024 and app["fixedresources"]["vcpus"] == 1, app
    box.report()
    box.metrics()
    wait_condition(s, NS, "devices", DEVICE, "Ready", "True")
    for kind in ("Accepted", "Scheduled", "Composed"):
        wait_condition(s, NS, "applications", APP, kind, "True")
    # With the ports that it has reported it is told the rest.
    box.until(lambda c: [p["logicallabel"] for p in c["deviceIoList"] if p["ptype"] == "PhyIoNetEth"] == ["eth0", "eth1"], "its own ports")
    for plural, name in (("deviceconfigs", DEVICE), ("applications", APP)):
        wait_condition(s, NS, plural, name, "Delivered", "True")
    box.fetch()
    wait_condition(s, NS, "devices", DEVICE, "ConfigAccepted", "True")
    box.metrics()
    wait_condition(s, NS, "devices", DEVICE, "ConfigApplied", "True")
    assert condition(get(s, NS, "applications", APP), "Ready")["status"] in (None, "False", "Unknown")
    for state in ("DOWNLOAD_STARTED", "DELIVERED", "CREATED_VOLUME", "BOOTING", "RUNNING"):
        box.says(APP, state, network=[{"devName": "eth0", "IPAddrs": ["10.64.0.2"]}])
    out, _ = waiting.communicate(timeout=120)
    assert waiting.returncode == 0 and out.count("condition met") == 2, out
    st = get(s, NS, "applications", APP)["status"]
    assert [x["state"] for x in st["statuses"]] == ["DOWNLOAD_STARTED", "DELIVERED", "CREATED_VOLUME", "BOOTING", "RUNNING"], st
    return app_of(box.config, APP)


def look(s, box):
    """kubectl get edev,eapp -o wide"""
    wait_until(lambda: get(s, NS, "devices", DEVICE)["status"].get("apps", {}).get("summary") == "1/1", what="1/1")
    rows = columns(s.kubectl("get", "edev,eapp", "-n", NS, "-o", "wide"))
    device, app = rows[f"device.eve.lfedge.org/{DEVICE}"], rows[f"application.eve.lfedge.org/{APP}"]
    assert device["READY"] == "True" and device["EVE"] == box.version and device["APPS"] == "1/1" and device["UUID"] == box.device.uuid, device
    assert device["LAST SEEN"] not in ("", "<none>") and device["SERIAL"] == "6654abbcc44", device
    uuid = app_of(box.config, APP)["uuidandversion"]["uuid"]
    assert (app["STATE"], app["READY"], app["DEVICE"], app["ADDRESS"], app["UUID"]) == ("RUNNING", "True", DEVICE, "10.64.0.2", uuid), app
    st = get(s, NS, "devices", DEVICE)["status"]
    assert st["capacity"] == {"cpu": "8", "memory": "16Gi", "ephemeral-storage": "200Gi"} and st["allocatable"]["memory"] == "15Gi", st
    assert sorted(p["label"] for p in st["ports"]) == ["eth0", "eth1", "wlan0"], st["ports"]


def edit_memory(s, box, before):
    """One restart, of one edit."""
    patch(s, "eapp", APP, {"spec": {"containers": [container(resources={"limits": {"cpu": "1", "memory": "1Gi"}})]}})
    after = box.until_app(APP, lambda a: a["fixedresources"]["memory"] == 1024 * 1024)
    assert counter(after, "restart") == counter(before, "restart") + 1 and counter(after, "purge") == counter(before, "purge"), (before, after)
    assert after["uuidandversion"]["uuid"] == before["uuidandversion"]["uuid"]
    # An edit of what does not matter to it restarts nothing.
    s.kubectl("label", "-n", NS, "eapp", APP, "shift=night")
    s.kubectl("annotate", "-n", NS, "edev", DEVICE, "eve.lfedge.org/config.timer.metric.interval=30")
    box.until(lambda c: {"key": "timer.metric.interval", "value": "30"} in c.get("configItems", []), "the option")
    assert app_of(box.config, APP)["restart"] == after["restart"]
    return after


def edit_volumes(s, box, before):
    """One purge, of one edit; the Volume is there and follows what the device says of it."""
    patch(s, "eapp", APP, {"spec": {"containers": [container(resources={"limits": {"cpu": "1", "memory": "1Gi"}}, volumeMounts=[{"name": "pages", "mountPath": "/pages"}])],
                                    "volumes": [{"name": "pages", "ephemeral": {"volumeClaimTemplate": BLANK}}]}})
    after = box.until_app(APP, lambda a: len(a["volumeRefList"]) == 2)
    assert counter(after, "purge") == counter(before, "purge") + 1, (before, after)
    assert counter(after, "restart") == counter(before, "restart"), (before, after)
    uuid = next(v["uuid"] for v in after["volumeRefList"] if v.get("mountDir") == "/pages")
    box.volume(uuid, "CREATED_VOLUME", resources={"maxSizeBytes": 1 << 30})
    claimed = [v for v in s.ok("GET", f"{GROUP}/namespaces/{NS}/volumes")["items"] if v["status"]["uuid"] == uuid]
    assert len(claimed) == 1 and claimed[0]["spec"]["device"] == DEVICE, claimed
    wait_condition(s, NS, "volumes", claimed[0]["metadata"]["name"], "Ready", "True")
    return after


def override(s, box):
    """What a user writes into the DeviceConfig stays, is named, and goes when the DeviceConfig is deleted."""
    vnc = lambda c: app_of(c, APP)["fixedresources"].get("enableVnc", False)
    s.kubectl("patch", "-n", NS, "dcfg", DEVICE, "--type=merge", "--field-manager=ann", "-p", json.dumps({"spec": {"config": {"deviceName": "anns-own"}}}))
    box.until(lambda c: c["deviceName"] == "anns-own", "the user's name")
    c = wait_condition(s, NS, "deviceconfigs", DEVICE, "Overridden", "True")
    assert "deviceName" in c["message"] and "ann" in c["message"], c
    # Something else is composed anew; what is the user's stays.
    patch(s, "eapp", APP, {"spec": {"vnc": True}})
    box.until(vnc, "VNC")
    assert box.config["deviceName"] == "anns-own"
    c = condition(get(s, NS, "deviceconfigs", DEVICE), "Overridden")
    assert c["status"] == "True" and "deviceName" in c["message"] and "ann" in c["message"], c
    restarts = counter(app_of(box.config, APP), "restart")
    s.kubectl("delete", "-n", NS, "dcfg", DEVICE)
    box.until(lambda c: c["deviceName"] == DEVICE, "the composed name")
    wait_condition(s, NS, "deviceconfigs", DEVICE, "Overridden", "False")
    assert counter(app_of(box.config, APP), "restart") == restarts, "the counters are the Device's: they outlive the DeviceConfig"


def delete(s, box):
    """Gone from the configuration, with everything that only it needed."""
    volumes = len(box.config["volumes"])
    box.keeps.clear()
    s.kubectl("delete", "-n", NS, "eapp", APP)
    box.until(lambda c: not c.get("apps"), "no application")
    box.until(lambda c: not c.get("volumes") and not c.get("contentInfo") and not c.get("datastores"), "nothing of it")
    assert volumes == 2
    wait_until(lambda: get(s, NS, "devices", DEVICE)["status"]["apps"]["wanted"] == 0, what="no application wanted")
    s.kubectl("delete", "-n", NS, "image", "nginx")


def test_from_apply_to_running_and_back():
    with Server() as s:
        box = begin(s)
        first = run_up(s, box)
        look(s, box)
        second = edit_memory(s, box, first)
        edit_volumes(s, box, second)
        override(s, box)
        delete(s, box)


def test_a_device_says_what_went_wrong():
    """The device's own words, on the object that caused them, and as an Event."""
    with Server() as s:
        box = begin(s)
        box.report()
        box.until_app(APP)
        words = "no space left on device"
        box.says(APP, "HALTED", appErr=[{"description": words, "severity": "SEVERITY_ERROR"}])
        assert words in wait_condition(s, NS, "applications", APP, "Ready", "False", "DeviceError")["message"]
        wait_until(lambda: words in s.kubectl("describe", "-n", NS, "eapp", APP), what="the Event")
        box.says(APP, "RUNNING")
        wait_condition(s, NS, "applications", APP, "Ready", "True")


def test_a_device_that_is_not_there_gets_it_later():
    """What was applied while it was away is what it gets when it comes."""
    with Server() as s:
        s.kubectl("apply", "-f", str(TOP / "examples" / NS))
        wait_condition(s, NS, "applications", APP, "Composed", "True")
        assert condition(get(s, NS, "applications", APP), "Delivered")["status"] != "True"
        s.kubectl("patch", "-n", NS, "eapp", APP, "--type=merge", "-p", '{"spec":{"vnc":true}}')
        box = Box(s, NS, DEVICE, "6654abbcc44").begin()
        app = box.until_app(APP, lambda a: a["fixedresources"].get("enableVnc"))
        with living(box):
            wait_condition(s, NS, "applications", APP, "Delivered", "True")
            wait_condition(s, NS, "applications", APP, "Ready", "True")
        assert app["uuidandversion"]["uuid"] == get(s, NS, "applications", APP)["status"]["uuid"]
