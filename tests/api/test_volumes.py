# SPDX-License-Identifier: Apache-2.0
"""Claims, the Volumes made for them, and how long both stay."""
import re

from expect import MERGE, refused
from seth import Server, unique, wait_until

OPTIONS = ("--threads", "4")
GROUP = "/apis/eve.lfedge.org/v1beta1"


def path(ns, plural, name=None, sub=None):
    root = f"/api/v1/namespaces/{ns}" if plural in ("persistentvolumeclaims", "events") else f"{GROUP}/namespaces/{ns}"
    return f"{root}/{plural}" + (f"/{name}" if name else "") + (f"/{sub}" if sub else "")


def thing(kind, name, spec, **metadata):
    return {"apiVersion": "eve.lfedge.org/v1beta1", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def storage_class(s, name=None, provisioner="eve", **parameters):
    name = name or unique("class")
    s.ok("POST", "/apis/storage.k8s.io/v1/storageclasses",
         {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner,
          "parameters": parameters or {"type": "blank"}, "volumeBindingMode": "WaitForFirstConsumer"})
    return name


def world(s, *devices):
    """A namespace with Devices, an Image `img`, and a StorageClass of blank volumes; returns both names."""
    ns = s.namespace()
    registry = storage_class(s, type="container", URL="docker://docker.io")
    s.ok("POST", path(ns, "images"), thing("Image", "img", {"ref": "library/nginx:1", "storageClass": registry}))
    for name in devices:
        s.ok("POST", path(ns, "devices"), thing("Device", name, {}))
    return ns, storage_class(s)


def claim_spec(storage, size="1Gi"):
    return {"storageClassName": storage, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}


def claim(s, ns, name, storage, size="1Gi"):
    return s.ok("POST", path(ns, "persistentvolumeclaims"),
                {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": claim_spec(storage, size)})


def application(s, ns, name, device, volume):
    spec = {"containers": [{"name": "main", "image": "img", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            "nodeSelector": {"name": device}, "volumes": [{"name": "data", **volume}]}
    return s.ok("POST", path(ns, "applications"), thing("Application", name, spec))


def named(claim):
    return {"persistentVolumeClaim": {"claimName": claim}}


def own(storage, size="2Gi"):
    return {"ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"of": "its-own"}}, "spec": claim_spec(storage, size)}}}


def volumes(s, ns):
    """(claim, device, application) of every Volume there is."""
    return sorted((v["spec"]["claim"], v["spec"]["device"], v["spec"].get("application"))
                  for v in s.ok("GET", path(ns, "volumes"))["items"])


def get(s, ns, plural, name):
    return s.ok("GET", path(ns, plural, name))


def phase(s, ns, name):
    return get(s, ns, "persistentvolumeclaims", name)["status"]["phase"]


def is_gone(s, ns, plural, name):
    return s.request("GET", path(ns, plural, name))[0] == 404


def reasons(s, ns, name):
    return {e["reason"] for e in s.ok("GET", path(ns, "events"))["items"] if e["involvedObject"]["name"] == name}


def bound(s, ns, name):
    wait_until(lambda: get(s, ns, "persistentvolumeclaims", name)["spec"].get("volumeName") and phase(s, ns, name) == "Bound")
    return get(s, ns, "persistentvolumeclaims", name)


def test_a_claim_is_bound_when_its_application_has_a_device(s):
    ns, storage = world(s, "d")
    claim(s, ns, "c", storage)
    assert phase(s, ns, "c") == "Pending"
    application(s, ns, "a", "d", named("c"))
    it = bound(s, ns, "c")
    assert it["status"]["capacity"] == {"storage": "1Gi"} and it["status"]["accessModes"] == ["ReadWriteOnce"], it["status"]
    volume = get(s, ns, "volumes", it["spec"]["volumeName"])
    assert re.fullmatch(r"c-[0-9a-f]{12}", volume["metadata"]["name"])
    assert volume["spec"] == {"claim": "c", "device": "d", "application": "a"}
    assert volume["status"]["uuid"]
    owner, = volume["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("PersistentVolumeClaim", "c", it["metadata"]["uid"], True)
    row = s.kubectl("get", "pvc", "c", "-n", ns).splitlines()[1].split()
    assert row[:6] == ["c", "Bound", volume["metadata"]["name"], "1Gi", "RWO", storage], row
    row = s.kubectl("get", "evol", "-n", ns).splitlines()[1].split()
    assert row[:4] == [volume["metadata"]["name"], "c", "d", "a"], row
    wait_until(lambda: "ProvisioningSucceeded" in reasons(s, ns, "c"))
    assert "Successfully provisioned volume" in s.kubectl("events", "--for=pvc/c", "-n", ns)


def test_what_is_bound_is_not_chosen_by_users(s):
    ns, storage = world(s, "d")
    claim(s, ns, "c", storage)
    application(s, ns, "a", "d", named("c"))
    bound(s, ns, "c")
    refused(s.request("PATCH", path(ns, "persistentvolumeclaims", "c"), {"spec": {"volumeName": "other"}}, MERGE), 422, "Invalid")


def test_data_outlives_its_application_and_not_its_claim(s):
    ns, storage = world(s, "d")
    claim(s, ns, "c", storage)
    application(s, ns, "a", "d", named("c"))
    name = bound(s, ns, "c")["spec"]["volumeName"]
    refused(s.request("DELETE", path(ns, "persistentvolumeclaims", "c")), 409, "Conflict")
    refused(s.request("DELETE", path(ns, "volumes", name)), 403, "Forbidden",
            f'volumes.eve.lfedge.org "{name}" is forbidden: it holds the data of PersistentVolumeClaim \'c\' and goes with it: delete the claim')
    uuid = get(s, ns, "volumes", name)["status"]["uuid"]
    s.ok("DELETE", path(ns, "applications", "a"))
    wait_until(lambda: volumes(s, ns) == [("c", "d", None)])
    application(s, ns, "b", "d", named("c"))
    wait_until(lambda: volumes(s, ns) == [("c", "d", "b")])
    assert get(s, ns, "volumes", name)["status"]["uuid"] == uuid
    s.ok("DELETE", path(ns, "applications", "b"))
    s.ok("DELETE", path(ns, "persistentvolumeclaims", "c"))
    wait_until(lambda: is_gone(s, ns, "persistentvolumeclaims", "c") and volumes(s, ns) == [])


def test_a_device_takes_its_volumes_along(s):
    ns, storage = world(s, "d", "e")
    claim(s, ns, "c", storage)
    application(s, ns, "a", "d", named("c"))
    first = bound(s, ns, "c")["spec"]["volumeName"]
    s.ok("DELETE", path(ns, "devices", "d"))
    wait_until(lambda: phase(s, ns, "c") == "Lost" and volumes(s, ns) == [])
    s.ok("PATCH", path(ns, "applications", "a"), {"spec": {"nodeSelector": {"name": "e"}}}, MERGE)
    wait_until(lambda: volumes(s, ns) == [("c", "e", "a")])
    assert bound(s, ns, "c")["spec"]["volumeName"] != first
    assert "ClaimLost" in reasons(s, ns, "c")


def test_an_application_has_claims_of_its_own(s):
    ns, storage = world(s, "d")
    made = application(s, ns, "a", "d", own(storage))
    wait_until(lambda: not is_gone(s, ns, "persistentvolumeclaims", "a-data"))
    it = bound(s, ns, "a-data")
    owner, = it["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Application", made["metadata"]["uid"], True)
    assert it["metadata"]["labels"] == {"of": "its-own"} and it["status"]["capacity"] == {"storage": "2Gi"}
    assert volumes(s, ns) == [("a-data", "d", "a")]
    # It waits for its Application, as in Kubernetes.
    s.ok("DELETE", path(ns, "persistentvolumeclaims", "a-data"))
    assert get(s, ns, "persistentvolumeclaims", "a-data")["metadata"]["deletionTimestamp"]
    s.ok("DELETE", path(ns, "applications", "a"))
    wait_until(lambda: is_gone(s, ns, "persistentvolumeclaims", "a-data") and volumes(s, ns) == [])


def test_foreground_deletion_ends(s):
    ns, storage = world(s, "d")
    application(s, ns, "a", "d", own(storage))
    wait_until(lambda: volumes(s, ns) == [("a-data", "d", "a")])
    s.kubectl("delete", "eapp", "a", "-n", ns, "--cascade=foreground", "--timeout=20s")
    assert is_gone(s, ns, "persistentvolumeclaims", "a-data") and volumes(s, ns) == []


def test_a_namespace_goes_with_all_of_it(s):
    ns, storage = world(s, "d")
    claim(s, ns, "c", storage)
    application(s, ns, "a", "d", named("c"))
    application(s, ns, "b", "d", own(storage))
    wait_until(lambda: len(volumes(s, ns)) == 2)
    s.ok("DELETE", f"/api/v1/namespaces/{ns}")
    wait_until(lambda: s.request("GET", f"/api/v1/namespaces/{ns}")[0] == 404)


def test_a_claim_of_somebody_else_is_not_taken(s):
    ns, storage = world(s, "d")
    claim(s, ns, "a-data", storage)
    application(s, ns, "a", "d", own(storage))
    failed = lambda: next((c for c in get(s, ns, "applications", "a")["status"]["conditions"] if c["type"] == "VolumesBound"), {})
    wait_until(lambda: failed().get("status") == "False")
    assert failed()["reason"] == "FailedBinding" and "was not created for application" in failed()["message"]
    wait_until(lambda: "FailedBinding" in reasons(s, ns, "a"))
    assert volumes(s, ns) == []
    s.ok("DELETE", path(ns, "persistentvolumeclaims", "a-data"))
    wait_until(lambda: volumes(s, ns) == [("a-data", "d", "a")])
    wait_until(lambda: failed().get("status") == "True")


def test_another_provisioner_is_left_to_itself(s):
    ns, _ = world(s, "d")
    other, ours = storage_class(s, provisioner="example.org/disks", x="y"), storage_class(s)
    claim(s, ns, "theirs", other)
    claim(s, ns, "ours", ours)
    application(s, ns, "a", "d", named("ours"))
    bound(s, ns, "ours")
    assert phase(s, ns, "theirs") == "Pending" and reasons(s, ns, "theirs") == set()


def test_all_is_well_after_a_crash():
    with Server(*OPTIONS) as s:
        ns, storage = world(s, "d")
        claim(s, ns, "c", storage)
        application(s, ns, "a", "d", named("c"))
        name = bound(s, ns, "c")["spec"]["volumeName"]
        uuid = get(s, ns, "volumes", name)["status"]["uuid"]
        application(s, ns, "b", "d", own(storage))
        s.kill()
        s.start()
        wait_until(lambda: volumes(s, ns) == [("b-data", "d", "b"), ("c", "d", "a")])
        bound(s, ns, "b-data")
        assert get(s, ns, "volumes", name)["status"]["uuid"] == uuid and bound(s, ns, "c")["spec"]["volumeName"] == name


def test_devices_count_their_applications(s):
    ns, _ = world(s, "d")
    shown = lambda: s.ok("GET", path(ns, "devices", "d"))["status"]["apps"]
    assert shown() == {"wanted": 0, "running": 0, "summary": "0/0"}
    for name in ("a", "b", "idle"):
        s.ok("POST", path(ns, "applications"), thing("Application", name, {"containers": [{"name": "main", "image": "img"}], "nodeSelector": {"name": "d"},
                                                                         "activate": name != "idle"}))
    wait_until(lambda: shown() == {"wanted": 2, "running": 0, "summary": "0/2"})
    s.ok("PATCH", path(ns, "applications", "a", "status"), {"status": {"state": "RUNNING"}}, MERGE)
    wait_until(lambda: shown() == {"wanted": 2, "running": 1, "summary": "1/2"})
    assert "1/2" in s.kubectl("get", "edev", "d", "-n", ns)
    s.ok("DELETE", path(ns, "applications", "a"))
    wait_until(lambda: shown() == {"wanted": 1, "running": 0, "summary": "0/1"})


def test_networks_count_their_devices(s):
    ns, _ = world(s, "d", "e")
    s.ok("POST", path(ns, "networkconfigs"), thing("NetworkConfig", "dhcp", {"ip": "dhcp"}))
    for name, selector in (("all", {}), ("site", {"nodeSelector": {"site": "hamburg"}})):
        s.ok("POST", path(ns, "devicenetworks"), thing("DeviceNetwork", name, {"networkConfig": "dhcp", **selector}))
    devices = lambda name: get(s, ns, "devicenetworks", name)["status"].get("devices")
    wait_until(lambda: (devices("all"), devices("site")) == (2, 0))
    s.kubectl("label", "edev", "d", "-n", ns, "site=hamburg")
    wait_until(lambda: (devices("all"), devices("site")) == (2, 1))
    s.ok("DELETE", path(ns, "devices", "d"))
    wait_until(lambda: (devices("all"), devices("site")) == (1, 0))
