# SPDX-License-Identifier: Apache-2.0
"""What devices report, as users see it: the status of Devices, Applications, Volumes and Images, Secrets and Events; who may say what."""
import base64
import time
import uuid

import wire
from fleet import Site, shared_site as site
from seth import Server, unique, wait_until

API = "eve.lfedge.org/v1beta1"


def now(offset=0.0):
    return wire.timestamp(time.time() + offset)


def told(send):
    """Sent until a busy controller takes it, as a device does."""
    def accepted():
        answer = send()
        assert answer.status in (201, 503), answer
        return answer.status == 201

    wait_until(accepted, what="the controller to have time")


def info(d, kind, member, content, at=0.0):
    told(lambda: d.info({"ztype": kind, member: content, "atTimeStamp": now(at)}))


def app_info(d, app, state, at=0.0, **more):
    info(d, "ZiApp", "ainfo", {"AppID": app, "AppName": "app", "state": state, **more}, at)


def make(s, plural, kind, name, spec):
    """Returns the UUID that devices know it by."""
    return s.ok("POST", site(s).path(plural), {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec})["status"]["uuid"]


def application(s, d, name=None):
    """(name, UUID) of an Application that is on the device."""
    name = name or unique("app")
    image = "img-" + name
    s.ok("POST", site(s).path("images"), {"apiVersion": API, "kind": "Image", "metadata": {"name": image},
                                          "spec": {"ref": "nginx:1", "storageClass": "eve-docker"}})
    spec = {"nodeSelector": {"name": site(s).name(d)}, "containers": [{"name": "main", "image": image}]}
    app = make(s, "applications", "Application", name, spec)
    wait_until(lambda: status(s, "applications", name).get("device") == site(s).name(d), what=f"{name} to be scheduled")
    return name, app


def status(s, plural, name):
    return s.ok("GET", site(s).path(plural, name)).get("status", {})


def condition(s, plural, name, kind):
    for c in status(s, plural, name).get("conditions", []):
        if c["type"] == kind:
            return c
    return {"status": None, "reason": None, "message": None}


def wait_condition(s, plural, name, kind, value, reason=None):
    def holds():
        c = condition(s, plural, name, kind)
        return c["status"] == value and (reason is None or c["reason"] == reason)

    wait_until(holds, what=f"{kind}={value} of {plural}/{name}")
    return condition(s, plural, name, kind)


def event(s, name, reason):
    """The Event of that reason about the object: it follows the status it tells of."""
    found = {}

    def is_told():
        items = s.ok("GET", f"/api/v1/namespaces/{site(s).ns}/events?fieldSelector=involvedObject.name={name}")["items"]
        found.update({e["reason"]: e for e in items})
        return reason in found

    wait_until(is_told, what=f"the Event {reason} about {name}")
    return found[reason]


# ---- Devices

def test_a_device_becomes_ready_and_tells_what_it_is(s):
    d = site(s).onboarded()
    name = site(s).name(d)
    info(d, "ZiDevice", "dinfo", {
        "machineArch": "x86_64", "ncpu": 8, "memory": 16384, "storage": 204800, "HostName": "box",
        "state": "ZDEVICE_STATE_ONLINE", "network": [{"IPAddrs": ["10.1.2.3"], "uplink": True}],
        "minfo": {"manufacturer": "ACME", "serialNumber": "S1"}, "bootTime": now(-3600),
        "swList": [{"shortVersion": "13.4.0-kvm-amd64", "userStatus": "UPDATED", "activated": True}]})
    info(d, "ZiHardware", "hwinfo", {"kernel_version": "6.1.112"})
    wait_condition(s, "devices", name, "Ready", "True")
    wait_until(lambda: "kernelVersion" in status(s, "devices", name).get("nodeInfo", {}), what="the kernel")
    st = status(s, "devices", name)
    assert st["eve-os-version"] == "13.4.0-kvm-amd64"
    assert st["capacity"] == {"cpu": "8", "memory": "16Gi", "ephemeral-storage": "200Gi"}
    assert {"type": "InternalIP", "address": "10.1.2.3"} in st["addresses"]
    assert st["nodeInfo"]["architecture"] == "amd64" and st["nodeInfo"]["manufacturer"] == "ACME"
    assert condition(s, "devices", name, "BaseOSUpdated")["status"] == "True"
    assert condition(s, "devices", name, "Healthy")["status"] == "True"
    assert st["uuid"] == d.uuid
    out = s.kubectl("-n", site(s).ns, "get", "edev", name)
    assert "True" in out and "13.4.0-kvm-amd64" in out, out


def test_maintenance_mode_in_words(s):
    d = site(s).onboarded()
    info(d, "ZiDevice", "dinfo", {"maintenance_mode": True, "state": "ZDEVICE_STATE_MAINTENANCE_MODE",
                                  "maintenance_mode_reasons": ["MAINTENANCE_MODE_REASON_LOW_DISK_SPACE"]})
    c = wait_condition(s, "devices", site(s).name(d), "Ready", "False", "MaintenanceMode")
    assert c["message"] == "maintenance mode: low disk space"


def test_a_configuration_is_delivered_accepted_and_applied(s):
    d = site(s).onboarded()
    name = site(s).name(d)
    answer, response = d.config()
    assert answer.status == 200
    known = response["configHash"]
    assert d.config(known=known)[0].status == 304
    wait_condition(s, "devices", name, "ConfigAccepted", "True")
    config = status(s, "devices", name)["config"]
    assert config["hash"] == known and config["fetchedAt"], config
    assert condition(s, "devices", name, "ConfigApplied")["status"] == "Unknown"
    told(lambda: d.metrics({"dm": {"last_received_config": now(), "last_processed_config": now(),
                           "deviceMemory": {"memoryMB": 4096, "allocated_eveMB": 1024}}}))
    wait_condition(s, "devices", name, "ConfigApplied", "True")
    assert status(s, "devices", name)["allocatable"]["memory"] == "3Gi"
    info(d, "ZiDevice", "dinfo", {"configItemStatus": {"configItems": {"timer.config.interval": {"error": "too small"}}}})
    c = wait_condition(s, "devices", name, "ConfigAccepted", "False", "ItemsRejected")
    assert c["message"] == "timer.config.interval: too small"
    assert event(s, name, "ConfigItemsRejected")["message"] == c["message"]


# ---- Applications

def test_an_application_follows_its_device(s):
    d = site(s).onboarded()
    name, app = application(s, d)
    for i, state in enumerate(("DOWNLOAD_STARTED", "BOOTING", "RUNNING")):
        app_info(d, app, state, at=i, network=[{"IPAddrs": ["10.11.12.2"]}])
    wait_condition(s, "applications", name, "Ready", "True")
    st = status(s, "applications", name)
    assert [x["state"] for x in st["statuses"]] == ["DOWNLOAD_STARTED", "BOOTING", "RUNNING"]
    assert st["addresses"][0]["address"] == "10.11.12.2"
    wait_until(lambda: status(s, "devices", site(s).name(d)).get("apps", {}).get("summary") == "1/1", what="1/1")
    words = "qemu exited: out of memory"
    app_info(d, app, "HALTED", at=5, appErr=[{"description": words, "severity": "SEVERITY_ERROR", "retry_condition": "later"}])
    c = wait_condition(s, "applications", name, "Ready", "False", "DeviceError")
    assert c["message"] == words + "; retried: later"
    assert event(s, name, "DeviceError")["message"] == c["message"]
    assert event(s, name, "DeviceError")["type"] == "Warning"
    wait_until(lambda: status(s, "devices", site(s).name(d))["apps"]["summary"] == "0/1", what="0/1")


def test_older_messages_change_nothing(s):
    d = site(s).onboarded()
    name, app = application(s, d)
    app_info(d, app, "RUNNING", at=100)
    wait_condition(s, "applications", name, "Ready", "True")
    app_info(d, app, "HALTED", at=50)
    app_info(d, app, "HALTING", at=100)
    wait_until(lambda: status(s, "applications", name)["state"] == "HALTING", what="the later of two")
    assert [x["state"] for x in status(s, "applications", name)["statuses"]] == ["RUNNING", "HALTING"]


def test_a_device_speaks_for_nobody_else(s):
    d, other = site(s).onboarded(), site(s).onboarded()
    name, app = application(s, other)
    own, own_app = application(s, d)
    app_info(d, app, "RUNNING")
    answer = d.info({"ztype": "ZiDevice", "devId": other.uuid, "dinfo": {"ncpu": 64}})
    assert answer.status in (201, 400, 403, 422), answer
    for odd in ("", "nonsense", d.uuid, str(uuid.uuid4())):
        app_info(d, odd, "RUNNING")
    app_info(d, own_app, "RUNNING", appErr=[{"description": "\u0001\u2028 odd", "severity": "SEVERITY_WARNING"}])
    wait_condition(s, "applications", own, "Ready", "True")
    assert "state" not in status(s, "applications", name)
    assert "capacity" not in status(s, "devices", site(s).name(other))
    assert "capacity" not in status(s, "devices", site(s).name(d))


def test_ten_thousand_applications_in_one_message(s):
    d = site(s).onboarded()
    name, app = application(s, d)
    info(d, "ZiDevice", "dinfo", {"appInstances": [{"uuid": str(uuid.UUID(int=i)), "name": "x" * 20} for i in range(10000)]})
    app_info(d, app, "RUNNING")
    wait_condition(s, "applications", name, "Ready", "True")
    wait_condition(s, "devices", site(s).name(d), "Ready", "True")


def test_a_kubeconfig_is_a_secret(s):
    d = site(s).onboarded()
    name, app = application(s, d)
    secret = f"/api/v1/namespaces/{site(s).ns}/secrets/{name}-kubeconfig"

    def post(data, at):
        info(d, "ZiAppInstMetaData", "amdinfo",
             {"uuid": app, "type": "APP_INST_META_DATA_TYPE_KUBE_CONFIG", "data": data}, at)

    def content():
        code, body = s.request("GET", secret)
        return base64.b64decode(body["data"]["kubeconfig"]) if code == 200 else None

    post(b"apiVersion: v1\n\xff", 0)
    wait_until(lambda: content() == b"apiVersion: v1\n\xff", what="the Secret")
    owner = s.ok("GET", secret)["metadata"]["ownerReferences"][0]
    assert owner["kind"] == "Application" and owner["name"] == name
    post(b"two", 1)
    wait_until(lambda: content() == b"two", what="the change")
    post(b"", 2)
    wait_until(lambda: content() is None, what="the Secret to go")


# ---- Volumes and Images

def test_volumes_and_images(s):
    d = site(s).onboarded()
    name, vol, img = site(s).name(d), unique("vol"), unique("img")
    volume = make(s, "volumes", "Volume", vol, {"device": name, "claim": "c", "application": "a"})
    content = make(s, "images", "Image", img, {"ref": "nginx:1", "storageClass": "eve-docker"})
    site(s).tell(d, {"id": {"version": "2"}, "contentInfo": [{"uuid": content, "displayName": "i"}]})
    info(d, "ZiVolume", "vinfo", {"uuid": volume, "displayName": "v", "state": "CREATED_VOLUME",
                                  "resources": {"maxSizeBytes": 10 << 30}})
    wait_condition(s, "volumes", vol, "Ready", "True")
    st = status(s, "volumes", vol)
    assert st["state"] == "CREATED_VOLUME" and st["capacity"] == {"storage": "10Gi"}
    info(d, "ZiContentTree", "cinfo", {"uuid": content, "displayName": "i", "state": "DOWNLOAD_STARTED",
                                       "err": {"description": "404 from the registry", "severity": "SEVERITY_ERROR"}})
    c = wait_condition(s, "images", img, "Ready", "False", "DeviceError")
    assert c["message"] == f"device {name}: 404 from the registry"
    info(d, "ZiContentTree", "cinfo", {"uuid": content, "displayName": "i", "state": "DELIVERED"}, at=5)
    wait_condition(s, "images", img, "Ready", "True")
    answer, response = d.config()
    assert answer.status == 200
    assert d.config(known=response["configHash"])[0].status == 304
    wait_condition(s, "deviceconfigs", name, "Delivered", "True")


# ---- restarts

def test_silence_and_restarts():
    with Server() as s:
        mine = site(s)
        d = mine.onboarded()
        name = mine.name(d)
        mine.annotate(d, **{"config.timer.config.interval": "5"})
        quiet = mine.onboarded()
        app_name, app = application(s, quiet)
        app_info(quiet, app, "RUNNING")
        info(quiet, "ZiDevice", "dinfo", {"ncpu": 2})
        assert d.config()[0].status in (200, 403, 503)
        wait_condition(s, "devices", name, "Ready", "True")
        wait_condition(s, "devices", mine.name(quiet), "Ready", "True")
        # Acknowledged, and killed at once: it is taken up afterwards.
        app_info(quiet, app, "HALTED", at=20)
        s.kill()
        s.start()
        wait_until(lambda: status(s, "applications", app_name)["state"] == "HALTED", what="what was acknowledged")
        assert condition(s, "devices", mine.name(quiet), "Ready")["status"] == "True"
        c = wait_condition(s, "devices", name, "Ready", "Unknown", "Silent")
        assert c["message"].startswith("lastSeen: 2"), c
        assert event(s, name, "DeviceNotReady")["type"] == "Warning"


def test_status_is_not_written_without_news():
    with Server() as s:
        mine = Site(s)
        d = mine.onboarded()
        for _ in range(2):
            info(d, "ZiDevice", "dinfo", {"ncpu": 2})
        wait_until(lambda: "capacity" in mine.object(d)["status"], what="the capacity")
        settled = [None, 0]

        def is_settled():
            version = mine.object(d)["metadata"]["resourceVersion"]
            settled[:] = [version, settled[1] + 1] if version == settled[0] else [version, 0]
            return settled[1] > 30

        wait_until(is_settled, what="the status to settle")
        for i in range(20):
            info(d, "ZiDevice", "dinfo", {"ncpu": 2}, at=i)
            told(lambda: d.metrics({"dm": {}}))
        info(d, "ZiDevice", "dinfo", {"ncpu": 3}, at=30)
        n_writes = 0
        for e in s.watch(f"{mine.path('devices')}?watch=true&resourceVersion={settled[0]}&timeoutSeconds=60"):
            n_writes += 1
            if e["object"]["status"]["capacity"]["cpu"] == "3":
                break
        assert n_writes == 1, n_writes
