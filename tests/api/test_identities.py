# SPDX-License-Identifier: Apache-2.0
"""status.uuid, the name of an object in the EVE API: given by the server, chosen, changed and removed by nobody."""
import re

from expect import APPLY, JSON_PATCH, MERGE, apply, refused
from seth import unique

OPTIONS = ("--threads", "4")
GROUP = "/apis/eve.lfedge.org/v1beta1"
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
OTHER = "ec232b65-602a-42a9-887b-5d95721116e6"
# What of each can be written, and needs nothing else but what world() makes.
KINDS = {"Device": ("devices", {"serial": "1"}), "NetworkConfig": ("networkconfigs", {"ip": "dhcp"}),
         "DeviceNetwork": ("devicenetworks", {"networkConfig": "net"}), "Image": ("images", {"ref": "library/nginx:1", "storageClass": "<class>"}),
         "Application": ("applications", {"containers": [{"name": "main", "image": "img"}], "nodeSelector": {"name": "nowhere"}}),
         "Volume": ("volumes", {"claim": "c", "device": "d", "application": "a"})}


def path(ns, plural, name=None, sub=None):
    return f"{GROUP}/namespaces/{ns}/{plural}" + (f"/{name}" if name else "") + (f"/{sub}" if sub else "")


def thing(kind, name, spec, **more):
    return {"apiVersion": "eve.lfedge.org/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec, **more}


def world(s):
    """A namespace in which one of every kind can be made; returns it and the specs."""
    ns, storage = s.namespace(), unique("registry")
    s.ok("POST", "/apis/storage.k8s.io/v1/storageclasses",
         {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": storage}, "provisioner": "eve",
          "parameters": {"type": "container", "URL": "docker://docker.io"}})
    s.ok("POST", path(ns, "networkconfigs"), thing("NetworkConfig", "net", {"ip": "dhcp"}))
    s.ok("POST", path(ns, "images"), thing("Image", "img", {"ref": "library/nginx:1", "storageClass": storage}))
    return ns, {kind: (plural, {**spec, "storageClass": storage} if kind == "Image" else spec) for kind, (plural, spec) in KINDS.items()}


def put(s, at, to, change):
    """PUT of what is there with the change; again when a controller writes at the same moment."""
    for _ in range(100):
        it = s.ok("GET", at)
        change(it)
        answer = s.request("PUT", to, it)
        if answer[0] != 409:
            break
    return answer


def uuid_of(s, ns, plural, name):
    return s.ok("GET", path(ns, plural, name))["status"]["uuid"]


def test_every_object_has_one_from_the_moment_it_is_made(s):
    ns, kinds = world(s)
    seen = set()
    for kind, (plural, spec) in kinds.items():
        made = s.ok("POST", path(ns, plural), thing(kind, "a", spec, status={"uuid": OTHER}))
        applied = s.ok("PATCH", path(ns, plural, "b") + "?fieldManager=m&force=true", str(thing(kind, "b", spec, status={"uuid": OTHER})).replace("'", '"'), APPLY)
        for it in (made, applied):
            assert re.fullmatch(UUID, it["status"]["uuid"]) and it["status"]["uuid"] not in seen | {OTHER}, it
            assert "uuid" not in it["spec"]
            seen.add(it["status"]["uuid"])
        assert uuid_of(s, ns, plural, "a") == made["status"]["uuid"]
        if plural == "volumes":  # goes with its claim alone
            continue
        s.ok("DELETE", path(ns, plural, "b"))
        again = s.ok("POST", path(ns, plural), thing(kind, "b", spec))["status"]["uuid"]
        assert again not in seen
    assert len(seen) == 2 * len(kinds)


def test_no_write_changes_it(s):
    ns, kinds = world(s)
    for kind, (plural, spec) in kinds.items():
        at, status = path(ns, plural, "a"), path(ns, plural, "a", "status")
        uuid = s.ok("POST", path(ns, plural), thing(kind, "a", spec))["status"]["uuid"]
        for body in ({"status": {"uuid": None}}, {"status": None}, {"status": {"uuid": OTHER}, "metadata": {"labels": {"x": "y"}}}):
            assert s.ok("PATCH", at, body, MERGE)["status"]["uuid"] == uuid
        for body in ({"status": {"uuid": None}}, {"status": None}, {"status": {}}, {"status": {"uuid": uuid}}):
            assert s.ok("PATCH", status, body, MERGE)["status"]["uuid"] == uuid
        for to, change in ((at, lambda it: it.update(status={})), (status, lambda it: it.update(status={})),
                           (at, lambda it: it.update(status=None)), (status, lambda it: it.pop("status"))):
            code, answer = put(s, at, to, change)
            assert code == 200 and answer["status"]["uuid"] == uuid, answer
        assert s.ok("PATCH", status, [{"op": "remove", "path": "/status/uuid"}], JSON_PATCH)["status"]["uuid"] == uuid
        assert s.ok("PATCH", status, [{"op": "remove", "path": "/status"}], JSON_PATCH)["status"]["uuid"] == uuid
        # Who applies it and then no more takes it along for nobody.
        for body in ({"uuid": uuid}, {}):
            code, answer = apply(s, status, "m", {**thing(kind, "a", spec), "status": body}, force=True)
            assert code == 200 and answer["status"]["uuid"] == uuid, answer
        assert uuid_of(s, ns, plural, "a") == uuid
        s.kubectl("annotate", f"{plural}.eve.lfedge.org", "a", "-n", ns, "note=x")
        assert uuid_of(s, ns, plural, "a") == uuid


def test_nobody_chooses_another(s):
    ns, kinds = world(s)
    causes = [("FieldValueInvalid", "status.uuid")]
    for kind, (plural, spec) in kinds.items():
        status = path(ns, plural, "a", "status")
        uuid = s.ok("POST", path(ns, plural), thing(kind, "a", spec))["status"]["uuid"]
        refused(s.request("PATCH", status, {"status": {"uuid": OTHER}}, MERGE), 422, "Invalid", causes=causes)
        refused(put(s, path(ns, plural, "a"), status, lambda it: it.update(status={"uuid": OTHER})), 422, "Invalid", causes=causes)
        refused(s.request("PATCH", status, [{"op": "replace", "path": "/status/uuid", "value": OTHER}], JSON_PATCH), 422, "Invalid", causes=causes)
        refused(apply(s, status, "m", {**thing(kind, "a", spec), "status": {"uuid": OTHER}}, force=True), 422, "Invalid", causes=causes)
        assert uuid_of(s, ns, plural, "a") == uuid


def test_an_application_begins_unknown(s):
    ns, kinds = world(s)
    made = s.ok("POST", path(ns, "applications"), thing("Application", "a", kinds["Application"][1], status={"state": "RUNNING"}))
    ready, = [c for c in made["status"]["conditions"] if c["type"] == "Ready"]
    assert ready["status"] == "Unknown" and ready["lastTransitionTime"] == made["metadata"]["creationTimestamp"], ready
    assert "state" not in made["status"] and "device" not in made["status"]
    assert s.kubectl("wait", "--for=condition=Ready=Unknown", "eapp/a", "-n", ns, "--timeout=5s")
