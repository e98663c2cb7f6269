# SPDX-License-Identifier: Apache-2.0
"""Native kinds: storage, their own checks and what may change, and the columns of their tables."""
from expect import MERGE, TABLE, merge, refused
from seth import unique, wait_until

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"


def claims(ns, name=None):
    return f"/api/v1/namespaces/{ns}/persistentvolumeclaims" + (f"/{name}" if name else "")


def claim(name="p", size="1Gi", modes=("ReadWriteOnce",), **spec):
    return {"metadata": {"name": name}, "spec": {"accessModes": list(modes), "storageClassName": "edge", "resources": {"requests": {"storage": size}}, **spec}}


def test_storage_classes(s):
    name = unique("s")
    made = s.ok("POST", CLASSES, {"metadata": {"name": name}, "provisioner": "example.org/p", "parameters": {"type": "a"}})
    assert made["reclaimPolicy"] == "Delete" and made["volumeBindingMode"] == "Immediate"
    start = f'StorageClass.storage.k8s.io "{name}" is invalid: '
    for patch, message in [
        ({"parameters": {"type": "b"}}, 'parameters: Invalid value: {"type":"b"}: field is immutable'),
        ({"provisioner": "other"}, 'provisioner: Invalid value: "other": field is immutable'),
        ({"reclaimPolicy": "Retain"}, 'reclaimPolicy: Invalid value: "Retain": field is immutable'),
        ({"volumeBindingMode": "WaitForFirstConsumer"}, 'volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable'),
    ]:
        refused(s.request("PATCH", f"{CLASSES}/{name}", patch, MERGE), 422, "Invalid", start + message)
    assert merge(s, f"{CLASSES}/{name}", {"allowVolumeExpansion": True})["allowVolumeExpansion"] is True
    start = 'StorageClass.storage.k8s.io "b" is invalid: '
    for body, message in [
        ({"provisioner": ""}, "provisioner: Required value"),
        ({"provisioner": "example.org/p", "parameters": {"": "x"}}, 'parameters: Invalid value: "": field can not be empty.'),
        ({"provisioner": "example.org/p", "parameters": {"k": "v" * 262145}}, "parameters: Too long: may not be more than 262144 bytes"),
    ]:
        refused(s.request("POST", CLASSES, {"metadata": {"name": "b"}, **body}), 422, "Invalid", start + message)
    refused(s.request("POST", CLASSES, {"metadata": {"name": "b"}, "provisioner": "example.org/p", "reclaimPolicy": "Nope", "volumeBindingMode": "Nope"}), 422, "Invalid",
            causes=[("FieldValueNotSupported", "reclaimPolicy"), ("FieldValueNotSupported", "volumeBindingMode")])


def test_claims(s):
    ns = s.namespace()
    made = s.ok("POST", claims(ns), claim())
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"] and made["status"] == {"phase": "Pending"} and made["spec"]["volumeMode"] == "Filesystem"
    for patch in ({"storageClassName": "other"}, {"accessModes": ["ReadWriteMany"]}, {"resources": {"requests": {"storage": "2Gi"}}}):
        body = refused(s.request("PATCH", claims(ns, "p"), {"spec": patch}, MERGE), 422, "Invalid", causes=[("FieldValueForbidden", "spec")])
        assert body["message"].startswith('PersistentVolumeClaim "p" is invalid: spec: Forbidden: spec is immutable after creation except '
                                          "resources.requests and volumeAttributesClassName for bound claims\n@@ ")
    assert merge(s, claims(ns, "p"), {"metadata": {"labels": {"a": "b"}}})["metadata"]["labels"] == {"a": "b"}
    assert merge(s, claims(ns, "p"), {"spec": {"volumeName": "pv"}})["spec"]["volumeName"] == "pv", "who binds it names the volume, once"
    refused(s.request("PATCH", claims(ns, "p"), {"spec": {"volumeName": "pv2"}}, MERGE), 422, "Invalid")
    assert merge(s, claims(ns, "p") + "/status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}})["status"]["phase"] == "Bound"
    cells = s.ok("GET", claims(ns, "p"), headers=TABLE)["rows"][0]["cells"]
    assert cells[:7] == ["p", "Bound", "pv", "1Gi", "RWO", "edge", "<unset>"] and cells[8] == "Filesystem"
    assert "deletionTimestamp" in s.ok("DELETE", claims(ns, "p"))["metadata"]
    wait_until(lambda: s.request("GET", claims(ns, "p"))[0] == 404, what="the protection to be lifted: nobody uses the claim")


def test_claims_that_are_refused(s):
    ns = s.namespace()
    start = 'PersistentVolumeClaim "p" is invalid: '
    for body, message in [
        ({"metadata": {"name": "p"}}, "[spec.accessModes: Required value: at least 1 access mode is required, spec.resources[storage]: Required value]"),
        (claim(modes=()), "spec.accessModes: Required value: at least 1 access mode is required"),
        (claim(modes=["Nope"]), 'spec.accessModes: Unsupported value: "Nope": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"'),
        (claim(modes=["ReadWriteOncePod", "ReadWriteOnce"]), "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"),
        (claim(size="0"), 'spec.resources[storage]: Invalid value: "0": must be greater than zero'),
        (claim(size="-1Gi"), 'spec.resources[storage]: Invalid value: "-1Gi": must be greater than zero'),
        (claim(volumeMode="Nope"), 'spec.volumeMode: Unsupported value: "Nope": supported values: "Block", "Filesystem"'),
        (claim(dataSource={"kind": "PersistentVolumeClaim", "name": "a"}, dataSourceRef={"kind": "PersistentVolumeClaim", "name": "b"}),
         "spec: Invalid value: {}: must match dataSourceRef"),
        (claim(selector={"matchExpressions": [{"key": "a", "operator": "Nope"}]}),
         'spec.selector.matchExpressions[0].operator: Invalid value: "Nope": not a valid selector operator'),
    ]:
        refused(s.request("POST", claims(ns), body), 422, "Invalid", start + message)
    refused(s.request("POST", claims(ns), claim(size="1GiB")), 400, "BadRequest",
            'PersistentVolumeClaim in version "v1" cannot be handled as a PersistentVolumeClaim: quantities must match the regular expression '
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    made = s.ok("POST", claims(ns), claim("image", dataSourceRef={"apiGroup": "example.org", "kind": "Image", "name": "i"}))
    assert made["spec"]["dataSource"] == made["spec"]["dataSourceRef"] == {"apiGroup": "example.org", "kind": "Image", "name": "i"}


def test_volumes(s):
    name = unique("v")
    path = f"{VOLUMES}/{name}"
    made = s.ok("POST", VOLUMES, {"metadata": {"name": name}, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}})
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"] and made["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert s.ok("GET", path, headers=TABLE)["rows"][0]["cells"][:5] == [name, "1Gi", "RWO", "Retain", "Pending"]
    body = refused(s.request("PATCH", path, {"spec": {"hostPath": {"path": "/y"}}}, MERGE), 422, "Invalid")
    assert "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation" in body["message"]
    refused(s.request("POST", VOLUMES, {"metadata": {"name": "w"}, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}}), 422, "Invalid",
            'PersistentVolume "w" is invalid: spec: Required value: must specify a volume type')
    refused(s.request("POST", VOLUMES, {"metadata": {"name": "w"}, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "../x"},
            "persistentVolumeReclaimPolicy": "Nope"}}), 422, "Invalid",
            causes=[("FieldValueInvalid", "spec.hostPath.path"), ("FieldValueNotSupported", "spec.persistentVolumeReclaimPolicy")])
    s.ok("DELETE", path)
    wait_until(lambda: s.request("GET", path)[0] == 404, what="the protection to be lifted: no claim is bound to it")


def test_columns(s):
    ns = s.namespace()
    for path, wanted in [
        (f"/api/v1/namespaces/{ns}/configmaps", "Name Data Age"), (f"/api/v1/namespaces/{ns}/secrets", "Name Type Data Age"),
        (f"/api/v1/namespaces/{ns}/serviceaccounts", "Name Age"), ("/api/v1/namespaces", "Name Status Age"),
        (f"/api/v1/namespaces/{ns}/events", "Last_Seen Type Reason Object *Subobject *Source Message *First_Seen *Count *Name"),
        (claims(ns), "Name Status Volume Capacity Access_Modes StorageClass VolumeAttributesClass Age *VolumeMode"),
        (VOLUMES, "Name Capacity Access_Modes Reclaim_Policy Status Claim StorageClass VolumeAttributesClass Reason Age *VolumeMode"),
        (f"/api/v1/namespaces/{ns}/resourcequotas", "Name Request Limit Age"), (f"/api/v1/namespaces/{ns}/limitranges", "Name Created_At"),
        (f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", "Name Holder Age"), (CLASSES, "Name Provisioner ReclaimPolicy VolumeBindingMode AllowVolumeExpansion Age"),
        (f"/apis/apps/v1/namespaces/{ns}/controllerrevisions", "Name Controller Revision Age"),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "Name Created_At"),
    ]:
        table = s.ok("GET", path + "?fieldSelector=metadata.name%3Dnone", headers=TABLE)
        assert not table["rows"]
        got = " ".join(("*" if c["priority"] else "") + c["name"].replace(" ", "_") for c in table["columnDefinitions"])
        assert got == wanted, path
        assert all(c["description"] or c["name"] == "Name" for c in table["columnDefinitions"]), path


def test_rows(s):
    ns = s.namespace()
    for path, body, cells in [
        (f"/api/v1/namespaces/{ns}/secrets", {"stringData": {"a": "1", "b": "2"}}, ["x", "Opaque", 2]),
        (f"/api/v1/namespaces/{ns}/configmaps", {"data": {"a": "1"}, "binaryData": {"b": "MQ=="}}, ["x", 2]),
        (f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", {"spec": {"holderIdentity": "me"}}, ["x", "me"]),
        (f"/api/v1/namespaces/{ns}/events", {"involvedObject": {"kind": "ConfigMap", "namespace": ns, "name": "c", "fieldPath": "f"}, "reason": "R", "message": "m\n",
         "type": "Warning", "source": {"component": "comp", "host": "h"}, "count": 4},
         ["<unknown>", "Warning", "R", "configmap/c", "f", "comp, h", "m", "<unknown>", 4, "x"]),
    ]:
        s.ok("POST", path, {"metadata": {"name": "x"}, **body})
        got = s.ok("GET", path + "/x", headers=TABLE)["rows"][0]["cells"]
        assert got[:len(cells)] == cells, got
    assert s.ok("GET", f"/api/v1/namespaces/{ns}", headers=TABLE)["rows"][0]["cells"][:2] == [ns, "Active"]


def test_revisions_never_change(s):
    path = f"/apis/apps/v1/namespaces/{s.namespace()}/controllerrevisions"
    s.ok("POST", path, {"metadata": {"name": "r"}, "revision": 1, "data": {"any": {"thing": 1}}})
    refused(s.request("PATCH", path + "/r", {"data": {"any": {"thing": 2}}}, MERGE), 422, "Invalid", causes=[("FieldValueInvalid", "data")])
    assert merge(s, path + "/r", {"revision": 2})["revision"] == 2


def test_what_is_there_from_the_start(s):
    names = {n["metadata"]["name"] for n in s.ok("GET", "/api/v1/namespaces")["items"]}
    assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= names
