# SPDX-License-Identifier: Apache-2.0
"""Deletion: options, preconditions, finalizers, owners and what depends on them, namespaces that end."""
import json

from expect import JSON_PATCH, TABLE, APPLY, configmap, configmaps, merge, names, refused
from pumps import Pumps
from seth import unique, wait_until


def gone(s, path):
    return s.request("GET", path)[0] == 404


def owned(name, owner, ref=None, **metadata):
    meta = owner["metadata"]
    return configmap(name, ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"], **(ref or {})}], **metadata)


def test_plain(s):
    ns = s.namespace()
    uid = s.ok("POST", configmaps(ns), configmap("a"))["metadata"]["uid"]
    assert s.ok("DELETE", configmaps(ns, "a")) == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                                                   "details": {"name": "a", "kind": "configmaps", "uid": uid}}
    refused(s.request("DELETE", configmaps(ns, "a")), 404, "NotFound", 'configmaps "a" not found')
    s.ok("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "s"}})
    assert s.ok("DELETE", f"/api/v1/namespaces/{ns}/serviceaccounts/s")["kind"] == "ServiceAccount", "some kinds answer with the object"
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
    s.ok("POST", lease, {"metadata": {"name": "l"}, "spec": {}})
    assert s.ok("DELETE", lease + "/l")["details"]["group"] == "coordination.k8s.io"


def test_preconditions(s):
    ns = s.namespace()
    meta = s.ok("POST", configmaps(ns), configmap("a"))["metadata"]
    other = "00000000-0000-4000-8000-000000000000"
    start = 'Operation cannot be fulfilled on ConfigMap "a": '
    refused(s.request("DELETE", configmaps(ns, "a"), {"preconditions": {"uid": other}}), 409, "Conflict",
            f"{start}the UID in the precondition ({other}) does not match the UID in record ({meta['uid']}). The object might have been deleted and then recreated")
    refused(s.request("DELETE", configmaps(ns, "a"), {"preconditions": {"resourceVersion": "1"}}), 409, "Conflict",
            f"{start}the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ({meta['resourceVersion']}). The object might have been modified")
    s.ok("DELETE", configmaps(ns, "a"), {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}})
    assert gone(s, configmaps(ns, "a"))


def test_options(s):
    ns = s.namespace()
    s.ok("POST", configmaps(ns), configmap("a"))
    start = 'DeleteOptions.meta.k8s.io "" is invalid: '
    policy = 'propagationPolicy: Unsupported value: "Nope": supported values: "Foreground", "Background", "Orphan", "nil"'
    for path, body, message in [
        (configmaps(ns, "a") + "?propagationPolicy=Nope", None, policy), (configmaps(ns, "a"), {"propagationPolicy": "Nope"}, policy),
        (configmaps(ns), {"propagationPolicy": "Nope"}, policy),
        (configmaps(ns, "a"), {"propagationPolicy": "Foreground", "orphanDependents": True},
         'propagationPolicy: Invalid value: "Foreground": orphanDependents and deletionPropagation cannot be both set'),
        (configmaps(ns, "a"), {"dryRun": ["x"]}, 'dryRun: Unsupported value: ["x"]: supported values: "All"'),
    ]:
        refused(s.request("DELETE", path, body), 422, "Invalid", start + message)
    for body in ("{", '{"kind": "Nope", "apiVersion": "v1"}', "[]"):
        refused(s.request("DELETE", configmaps(ns, "a"), body, {"Content-Type": "application/json"}), 400, "BadRequest")
    refused(s.request("DELETE", configmaps(ns, "a") + "?gracePeriodSeconds=abc"), 400, "BadRequest")
    assert not gone(s, configmaps(ns, "a"))
    for i, body in enumerate(({"orphanDependents": False}, {"gracePeriodSeconds": 0}, {"gracePeriodSeconds": -1}, {"nope": 1})):
        s.ok("POST", configmaps(ns), configmap(f"o{i}"))
        assert s.ok("DELETE", configmaps(ns, f"o{i}"), body)["status"] == "Success"


def test_finalizers(s):
    ns = s.namespace()
    path = configmaps(ns, "a")
    s.ok("POST", configmaps(ns), configmap("a", finalizers=["example.org/f", "example.org/g"]))
    first = s.ok("DELETE", path)
    assert first["kind"] == "ConfigMap" and first["metadata"]["deletionTimestamp"] and first["metadata"]["deletionGracePeriodSeconds"] == 0
    assert s.ok("DELETE", path) == first, "a second deletion changes nothing"
    refused(s.request("PUT", path, configmap("a", finalizers=["example.org/f", "example.org/new"])), 422, "Invalid",
            'ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, '
            'found new finalizers []string{"example.org/new"}')
    assert merge(s, path, {"data": {"still": "ok"}})["data"] == {"still": "ok"}
    refused(s.request("POST", configmaps(ns), configmap("a")), 409, "AlreadyExists", 'object is being deleted: configmaps "a" already exists')
    assert merge(s, path, {"metadata": {"finalizers": ["example.org/f"]}})["metadata"]["finalizers"] == ["example.org/f"]
    s.ok("PATCH", path, [{"op": "remove", "path": "/metadata/finalizers"}], JSON_PATCH)
    assert gone(s, path), "the last finalizer takes the object with it"


def test_a_watcher_sees_the_way_out(s):
    ns = s.namespace()
    start = s.ok("POST", configmaps(ns), configmap("a", finalizers=["example.org/f"]))["metadata"]["resourceVersion"]
    stream = s.watch(configmaps(ns) + f"?watch=1&resourceVersion={start}&fieldSelector=metadata.name%3Da")
    s.ok("DELETE", configmaps(ns, "a"))
    merge(s, configmaps(ns, "a"), {"metadata": {"finalizers": None}})
    events = [next(stream), next(stream)]
    assert [e["type"] for e in events] == ["MODIFIED", "DELETED"] and "deletionTimestamp" in events[0]["object"]["metadata"]


def test_collections(s):
    ns = s.namespace()
    for name, label in (("a", "1"), ("b", "1"), ("c", "2")):
        s.ok("POST", configmaps(ns), configmap(name, labels={"g": label}))
    s.ok("POST", configmaps(ns), configmap("f", labels={"g": "1"}, finalizers=["example.org/f"]))
    answer = s.ok("DELETE", configmaps(ns) + "?labelSelector=g%3D1")
    assert answer["kind"] == "ConfigMapList" and names(answer) == ["a", "b", "f"]
    left = s.ok("GET", configmaps(ns) + "?labelSelector=g")
    assert names(left) == ["c", "f"] and "deletionTimestamp" in left["items"][1]["metadata"]
    merge(s, configmaps(ns, "f"), {"metadata": {"finalizers": None}})
    refused(s.request("DELETE", configmaps(ns) + "?labelSelector=a+b"), 400, "BadRequest")
    refused(s.request("DELETE", configmaps(ns) + "?fieldSelector=nope%3D1"), 400, "BadRequest")
    assert names(s.ok("DELETE", configmaps(ns) + "?fieldSelector=metadata.name%3Dc")) == ["c"]
    refused(s.request("DELETE", "/api/v1/configmaps"), 405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def test_background(s):
    """The owner goes at once, what it owned goes after it, and so does what that owned."""
    ns = s.namespace()
    owner = s.ok("POST", configmaps(ns), configmap("a"))
    child = s.ok("POST", configmaps(ns), owned("child", owner))
    s.ok("POST", configmaps(ns), owned("grand", child))
    s.ok("POST", configmaps(ns), configmap("stranger"))
    assert s.ok("DELETE", configmaps(ns, "a") + "?propagationPolicy=Background")["status"] == "Success"
    for name in ("child", "grand"):
        wait_until(lambda: gone(s, configmaps(ns, name)), what=f"{name} to be collected")
    assert not gone(s, configmaps(ns, "stranger"))


def test_orphan(s):
    ns = s.namespace()
    owner = s.ok("POST", configmaps(ns), configmap("a"))
    s.ok("POST", configmaps(ns), owned("child", owner))
    assert s.ok("DELETE", configmaps(ns, "a"), {"propagationPolicy": "Orphan"})["metadata"]["finalizers"] == ["orphan"]
    wait_until(lambda: gone(s, configmaps(ns, "a")), what="the owner to go")
    child = s.ok("GET", configmaps(ns, "child"))
    assert "ownerReferences" not in child["metadata"] and "deletionTimestamp" not in child["metadata"]


def test_foreground(s):
    """The owner waits for what blocks it; the others are deleted without being waited for."""
    ns = s.namespace()
    owner = s.ok("POST", configmaps(ns), configmap("a"))
    s.ok("POST", configmaps(ns), owned("blocks", owner, ref={"blockOwnerDeletion": True}, finalizers=["example.org/hold"]))
    s.ok("POST", configmaps(ns), owned("free", owner, finalizers=["example.org/hold"]))
    s.ok("POST", configmaps(ns), owned("quick", owner, ref={"blockOwnerDeletion": True}))
    deleted = s.ok("DELETE", configmaps(ns, "a"), {"propagationPolicy": "Foreground"})
    assert deleted["metadata"]["finalizers"] == ["foregroundDeletion"] and deleted["metadata"]["deletionTimestamp"]
    wait_until(lambda: "deletionTimestamp" in s.ok("GET", configmaps(ns, "blocks"))["metadata"], what="the dependent to be deleted")
    wait_until(lambda: gone(s, configmaps(ns, "quick")), what="the dependent without finalizers to go")
    assert not gone(s, configmaps(ns, "a"))
    merge(s, configmaps(ns, "blocks"), {"metadata": {"finalizers": None}})
    wait_until(lambda: gone(s, configmaps(ns, "a")), what="the owner to go")
    assert not gone(s, configmaps(ns, "free")), "without blockOwnerDeletion nobody waits"
    merge(s, configmaps(ns, "free"), {"metadata": {"finalizers": None}})
    wait_until(lambda: gone(s, configmaps(ns, "free")), what="the last dependent to go")


def test_foreground_of_a_custom_kind_and_its_children(s):
    pumps = Pumps(s)
    owner = pumps.create("p")
    ref = {"apiVersion": owner["apiVersion"], "kind": "Pump", "name": "p", "uid": owner["metadata"]["uid"], "blockOwnerDeletion": True, "controller": True}
    s.ok("POST", configmaps(pumps.ns), configmap("child", ownerReferences=[ref]))
    s.ok("DELETE", pumps.path("p") + "?propagationPolicy=Foreground")
    wait_until(lambda: gone(s, pumps.path("p")), what="the owner to go")
    assert gone(s, configmaps(pumps.ns, "child"))


def test_two_owners_one_left(s):
    ns = s.namespace()
    one, two = (s.ok("POST", configmaps(ns), configmap(n)) for n in ("one", "two"))
    refs = [{"apiVersion": "v1", "kind": "ConfigMap", "name": o["metadata"]["name"], "uid": o["metadata"]["uid"]} for o in (one, two)]
    s.ok("POST", configmaps(ns), configmap("child", ownerReferences=refs))
    s.ok("POST", configmaps(ns), owned("only", one))
    s.ok("DELETE", configmaps(ns, "one") + "?propagationPolicy=Background")
    wait_until(lambda: gone(s, configmaps(ns, "only")), what="the collector to come by")
    wait_until(lambda: [r["name"] for r in s.ok("GET", configmaps(ns, "child"))["metadata"]["ownerReferences"]] == ["two"], what="the dead owner to be struck out")
    s.ok("DELETE", configmaps(ns, "two") + "?propagationPolicy=Background")
    wait_until(lambda: gone(s, configmaps(ns, "child")), what="the child to go with its last owner")


def test_an_owner_that_never_was(s):
    ns = s.namespace()
    s.ok("POST", configmaps(ns), configmap("a", ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "ghost", "uid": "00000000-0000-4000-8000-000000000000"}]))
    wait_until(lambda: gone(s, configmaps(ns, "a")), what="the child of nobody to go")


def test_owner_references_are_checked(s):
    ns = s.namespace()
    ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u-1"}
    for refs, causes in [
        ([{**ref, "uid": ""}], [("FieldValueRequired", "metadata.ownerReferences.uid")]),
        ([{**ref, "kind": "", "name": ""}], [("FieldValueInvalid", "metadata.ownerReferences.kind"), ("FieldValueInvalid", "metadata.ownerReferences.name")]),
        ([{**ref, "controller": True}, {**ref, "uid": "u-2", "controller": True}], [("FieldValueInvalid", "metadata.ownerReferences")]),
    ]:
        body = refused(s.request("POST", configmaps(ns), configmap("a", ownerReferences=refs)), 422, "Invalid")
        assert {c["field"] for c in body["details"]["causes"]} == {f for _, f in causes}, body


def test_every_namespace_has_an_account_and_the_root_certificate(s):
    ns = s.namespace()
    account = f"/api/v1/namespaces/{ns}/serviceaccounts/default"
    first = wait_until(lambda: s.request("GET", account)[0] == 200 and s.ok("GET", account), what="the default account")
    root = wait_until(lambda: s.request("GET", configmaps(ns, "kube-root-ca.crt"))[0] == 200 and s.ok("GET", configmaps(ns, "kube-root-ca.crt")), what="kube-root-ca.crt")
    assert root["data"]["ca.crt"].strip() == (s.dir / "ca.pem").read_text().strip()
    s.ok("DELETE", account)
    again = wait_until(lambda: s.request("GET", account)[0] == 200 and s.ok("GET", account), what="the account to come back")
    assert again["metadata"]["uid"] != first["metadata"]["uid"]


def test_a_namespace_ends_with_what_is_in_it(s):
    pumps = Pumps(s)
    ns = pumps.ns
    s.ok("POST", configmaps(ns), configmap("a"))
    s.ok("POST", configmaps(ns), configmap("held", finalizers=["example.org/hold"]))
    pumps.create("p")
    deleted = s.ok("DELETE", f"/api/v1/namespaces/{ns}")
    assert deleted["status"]["phase"] == "Terminating" and deleted["spec"]["finalizers"] == ["kubernetes"]
    ending = f"unable to create new content in namespace {ns} because it is being terminated"
    body = refused(s.request("POST", configmaps(ns), configmap("late")), 403, "Forbidden", f'configmaps "late" is forbidden: {ending}',
                   [("NamespaceTerminating", "metadata.namespace")])
    assert body["details"]["causes"][0]["message"] == f"namespace {ns} is being terminated"
    refused(s.request("PATCH", configmaps(ns, "late") + "?fieldManager=m", json.dumps(configmap("late")), APPLY), 403, "Forbidden")
    refused(s.request("POST", pumps.path(), pumps.body("late")), 403, "Forbidden")

    def told():
        conditions = s.ok("GET", f"/api/v1/namespaces/{ns}")["status"].get("conditions") or []
        return next((c for c in conditions if c["type"] == "NamespaceFinalizersRemaining" and c["status"] == "True"), None)

    condition = wait_until(told, what="the condition that names what holds it")
    assert condition["reason"] == "SomeFinalizersRemain" and condition["message"] == \
        "Some content in the namespace has finalizers remaining: example.org/hold in 1 resource instances"
    assert s.ok("GET", f"/api/v1/namespaces/{ns}", headers=TABLE)["rows"][0]["cells"][1] == "Terminating"
    wait_until(lambda: gone(s, configmaps(ns, "a")) and gone(s, pumps.path("p")), what="the contents to go")
    merge(s, configmaps(ns, "held"), {"metadata": {"finalizers": None}})
    wait_until(lambda: gone(s, f"/api/v1/namespaces/{ns}"), what="the namespace to go")
    refused(s.request("POST", configmaps(ns), configmap("x")), 404, "NotFound", f'namespaces "{ns}" not found')


def test_namespaces_that_stay(s):
    for name in ("default", "kube-system", "kube-public"):
        refused(s.request("DELETE", f"/api/v1/namespaces/{name}"), 403, "Forbidden", f'namespaces "{name}" is forbidden: this namespace may not be deleted')


def test_an_empty_namespace_can_be_made_again(s):
    name = unique("again")
    uids = set()
    for _ in range(2):
        uids.add(s.ok("POST", "/api/v1/namespaces", {"metadata": {"name": name}})["metadata"]["uid"])
        s.ok("DELETE", f"/api/v1/namespaces/{name}")
        wait_until(lambda: gone(s, f"/api/v1/namespaces/{name}"), what="the namespace to go")
    assert len(uids) == 2
