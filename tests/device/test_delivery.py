# SPDX-License-Identifier: Apache-2.0
"""How a change reaches a device: versions, times and hashes of what it is told, what users see of it, and that nothing goes back."""
import datetime
import shutil
import subprocess
import tempfile

import wire
from eve import Distrust
from fleet import Site, shared_site as site
from seth import Server, binary, unique, wait_until

API = "eve.lfedge.org/v1beta1"
MERGE = {"Content-Type": "application/merge-patch+json"}


def config_of(s, where, d):
    return s.ok("GET", where.path("deviceconfigs", where.name(d)))


def condition(o, kind):
    return next((c for c in o.get("status", {}).get("conditions", []) if c["type"] == kind), {"status": None, "reason": None})


def seconds(text):
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())


def settled(s, where, d, after=0):
    """The DeviceConfig, once its version is that of its generation and greater than `after`."""
    def look():
        status, o = s.request("GET", where.path("deviceconfigs", where.name(d)))
        st = o.get("status", {}) if status == 200 else {}
        return o if st.get("observedGeneration") == o["metadata"].get("generation") and int(st.get("version", 0)) > after else None

    return wait_until(look, what="a version of the DeviceConfig")


def fetch(d):
    """What the device is told; it must be told something new."""
    answer, response = d.config()
    assert answer.status == 200, answer
    return response["config"]


def told(d):
    """Until it has all there is: (version, time) of the last."""
    config = None
    while True:
        answer, response = d.config()
        if answer.status == 304:
            return config
        assert answer.status == 200, answer
        config = response["config"]


def rename(s, where, d, name):
    s.ok("PATCH", where.path("devices", where.name(d)), {"metadata": {"annotations": {"eve.lfedge.org/config.timer.config.interval": name}}}, MERGE)


def delivered(s, where, d, value, reason):
    def holds():
        c = condition(config_of(s, where, d), "Delivered")
        return (c["status"], c["reason"]) == (value, reason)

    wait_until(holds, what=f"Delivered={value}/{reason}")


# ---- versions

def test_each_change_is_one_version(s):
    d = site(s).onboarded()
    told(d)
    before = settled(s, site(s), d)
    for i in range(1, 4):
        rename(s, site(s), d, str(60 + i))
        o = settled(s, site(s), d, int(before["status"]["version"]))
        config = fetch(d)
        st = o["status"]
        assert int(st["version"]) == int(before["status"]["version"]) + 1, (before["status"], st)
        assert config["id"]["version"] == st["version"] and d.hash == st["hash"] != before["status"]["hash"]
        assert config["config_timestamp"]["seconds"] == seconds(st["renderedAt"]) >= seconds(before["status"]["renderedAt"])
        assert d.config()[0].status == 304
        before = o
    # What changes nothing of it makes no version.
    site(s).annotate(d, **{"example": "none of an option"})
    s.ok("PATCH", site(s).path("devices", site(s).name(d)), {"metadata": {"labels": {"a": unique()}}}, MERGE)
    assert d.config()[0].status == 304
    assert settled(s, site(s), d)["status"]["version"] == before["status"]["version"]


def test_delivered_flips(s):
    d = site(s).onboarded()
    told(d)
    delivered(s, site(s), d, "True", "Fetched")
    rename(s, site(s), d, "77")
    delivered(s, site(s), d, "False", "Waiting")
    o = settled(s, site(s), d)
    fetch(d)
    delivered(s, site(s), d, "True", "Fetched")
    given = wait_until(lambda: (c := site(s).object(d)["status"]["config"])["hash"] == o["status"]["hash"] and c, what="status.config")
    assert given["version"] == o["status"]["version"] and given["renderedAt"] == o["status"]["renderedAt"] and given["fetchedAt"]


def test_a_deleted_configuration_comes_back_newer(s):
    d = site(s).onboarded()
    last = told(d)
    for _ in range(2):
        s.ok("DELETE", site(s).path("deviceconfigs", site(s).name(d)))
        settled(s, site(s), d, int(last["id"]["version"]))
        config = told(d)
        assert int(config["id"]["version"]) > int(last["id"]["version"])
        assert config["config_timestamp"]["seconds"] >= last["config_timestamp"]["seconds"]
        last = config


def test_a_device_that_asks_first_is_told_what_is_composed(s):
    d = site(s).onboarded()
    config = fetch(d)
    assert [a["lowerLayerName"] for a in config["systemAdapterList"]] == ["eth0"] and config["systemAdapterList"][0]["uplink"]
    assert config["id"]["uuid"] == d.uuid
    assert d.config()[0].status in (200, 304)


def test_a_whole_configuration_says_version_and_time_itself(s):
    d = site(s).onboarded()
    told(d)
    path = site(s).path("deviceconfigs", site(s).name(d))
    body = {"metadata": {"annotations": {"eve.lfedge.org/composed": "false"}},
            "spec": {"config": {"id": {"version": "of mine"}, "configTimestamp": "2031-01-01T00:00:00Z"}}}
    s.ok("PATCH", path, body, MERGE)
    o = settled(s, site(s), d, 1)
    config = fetch(d)
    assert config["id"]["version"] == "of mine" and config["config_timestamp"]["seconds"] == seconds("2031-01-01T00:00:00Z")
    assert o["status"]["hash"] == d.hash and int(o["status"]["version"]) > 1
    # Composed again, it is not older than what the device has.
    s.ok("DELETE", path)
    settled(s, site(s), d, int(o["status"]["version"]))
    config = told(d)
    assert config["id"]["version"] != "of mine" and config["config_timestamp"]["seconds"] >= seconds("2031-01-01T00:00:00Z")


# ---- what goes on around it

def test_restarts_change_nothing():
    with Server() as s:
        where = Site(s)
        d = where.onboarded()
        told(d)
        before = settled(s, where, d)["status"]
        s.stop()
        s.start()
        assert d.config()[0].status == 304
        s.kill()
        s.start()
        assert d.config()[0].status == 304
        after = settled(s, where, d)["status"]
        assert (after["version"], after["hash"], after["renderedAt"]) == (before["version"], before["hash"], before["renderedAt"])


def test_a_restored_backup_does_not_turn_time_back():
    with Server() as s, tempfile.TemporaryDirectory() as kept:
        where = Site(s)
        d = where.onboarded()
        told(d)
        s.stop()
        shutil.copytree(s.dir, kept, dirs_exist_ok=True)
        s.start()
        for i in range(3):
            rename(s, where, d, str(80 + i))
            settled(s, where, d, 1 + i)
            last = fetch(d)
        s.stop()
        shutil.rmtree(s.dir)
        shutil.copytree(kept, s.dir)
        s.start()
        config = fetch(d)
        assert config["config_timestamp"]["seconds"] >= last["config_timestamp"]["seconds"], (config["config_timestamp"], last["config_timestamp"])
        # Once, and not again at every poll.
        version = config["id"]["version"]
        assert d.config()[0].status == 304
        assert d.config(known="another hash")[1]["config"]["id"]["version"] == version


def test_other_certificates_of_the_controller():
    with Server() as s:
        where = Site(s)
        d, silent = where.onboarded(), where.onboarded()
        told(d)
        told(silent)
        before = settled(s, where, d)["status"]
        quiet = settled(s, where, silent)["status"]
        subprocess.run([binary(), "rotate-certs", "--data-dir", str(s.dir)], check=True, capture_output=True)

        def is_other():
            try:
                return d.certs().status == 200 and d.config()[0].status == 200
            except Distrust:  # they changed between the two: it asks for them again
                return False

        wait_until(is_other, what="the new certificates")
        after = settled(s, where, d)["status"]
        assert after["hash"] == d.hash != before["hash"]
        assert (after["version"], after["renderedAt"]) == (before["version"], before["renderedAt"])
        delivered(s, where, d, "True", "Fetched")
        # Also of one that does not ask.
        wait_until(lambda: settled(s, where, silent)["status"]["hash"] != quiet["hash"], what="the hash of the other device")
        delivered(s, where, silent, "False", "Waiting")


# ---- applications

def application(s, where, d, memory="256Mi"):
    name = unique("app")
    s.ok("POST", where.path("images"), {"apiVersion": API, "kind": "Image", "metadata": {"name": name}, "spec": {"ref": "nginx:1", "storageClass": "eve-docker"}})
    s.ok("POST", where.path("applications"), {
        "apiVersion": API, "kind": "Application", "metadata": {"name": name},
        "spec": {"nodeSelector": {"name": where.name(d)},
                 "containers": [{"name": "main", "image": name, "resources": {"limits": {"memory": memory}}}]}})
    return name


def app_condition(s, where, name, value, reason):
    def holds():
        o = s.ok("GET", where.path("applications", name))
        c = condition(o, "Delivered")
        return (c["status"], c["reason"]) == (value, reason) and c["observedGeneration"] == o["metadata"]["generation"]

    wait_until(holds, what=f"Delivered={value}/{reason} of {name}")


def has_app(config, name):
    return any(a["displayname"] == name for a in config.get("apps", []))


def test_an_application_is_delivered_when_its_device_has_it_as_it_is(s):
    d = site(s).onboarded()
    d.info({"ztype": "ZiDevice", "dinfo": {"ncpu": 4, "memory": 4096, "storage": 100000}, "atTimeStamp": wire.timestamp()})
    told(d)
    name = application(s, site(s), d)

    def is_there():
        answer, response = d.config()
        return answer.status == 200 and has_app(response["config"], name)

    wait_until(is_there, what="the application in the configuration")
    app_condition(s, site(s), name, "True", "Fetched")
    patch = {"spec": {"containers": [{"name": "main", "image": name, "resources": {"limits": {"memory": "512Mi"}}}]}}
    s.ok("PATCH", site(s).path("applications", name), patch, MERGE)
    app_condition(s, site(s), name, "False", "Outdated")
    wait_until(lambda: d.config()[0].status == 200, what="the new configuration")
    app_condition(s, site(s), name, "True", "Fetched")


# ---- why nothing happens

def wait_device(s, d, kind, value, reason):
    def holds():
        c = condition(site(s).object(d), kind)
        return (c["status"], c["reason"]) == (value, reason)

    wait_until(holds, what=f"{kind}={value}/{reason}")


def dinfo(d, **content):
    wait_until(lambda: d.info({"ztype": "ZiDevice", "dinfo": content, "atTimeStamp": wire.timestamp()}).status == 201, what="the report to be taken")


def test_why_a_configuration_is_left_aside(s):
    d = site(s).onboarded()
    told(d)
    wait_device(s, d, "ConfigApplied", "Unknown", "Fetched")
    dinfo(d, state="ZDEVICE_STATE_MAINTENANCE_MODE", maintenance_mode=True)
    wait_device(s, d, "ConfigApplied", "False", "MaintenanceMode")
    dinfo(d, state="ZDEVICE_STATE_BASEOS_UPDATING")
    wait_device(s, d, "ConfigApplied", "False", "BaseOSUpdating")
    dinfo(d, state="ZDEVICE_STATE_ONLINE")
    wait_device(s, d, "ConfigApplied", "Unknown", "Fetched")
    given = site(s).object(d)["status"]["config"]
    at = wire.timestamp(seconds(given["renderedAt"]))
    d.metrics({"atTimeStamp": wire.timestamp(), "dm": {"last_received_config": at, "last_processed_config": at}})
    wait_device(s, d, "ConfigApplied", "True", "Processed")


def test_ports_are_what_the_device_reports(s):
    d = site(s).onboarded()
    adapters = [{"type": 1, "name": "eth0", "members": ["eth0"]}, {"type": 1, "name": "group", "members": ["eth1", "eth2\x00\xff"]}]
    dinfo(d, assignableAdapters=adapters)
    ports = wait_until(lambda: site(s).object(d)["status"].get("ports"), what="status.ports")
    assert [(p["label"], p["type"], p["group"]) for p in ports][:2] == [("eth0", 1, "eth0"), ("eth1", 1, "group")] and len(ports) == 3
