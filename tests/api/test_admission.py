# SPDX-License-Identifier: Apache-2.0
"""What a write is asked besides the rules of its kind: namespaces, LimitRanges, ResourceQuotas."""
import concurrent.futures

from expect import MERGE, apply, configmap, configmaps, refused
from seth import Server, unique, wait_until

OPTIONS = ("--threads", "4")
CLASS = ".storageclass.storage.k8s.io/"


def path(ns, plural, name=None):
    return f"/api/v1/namespaces/{ns}/{plural}" + (f"/{name}" if name else "")


def leases(ns):
    return f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"


def quota(s, ns, hard, name="q", **spec):
    s.ok("POST", path(ns, "resourcequotas"), {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})


def secret(s, ns, name, options=""):
    return s.request("POST", path(ns, "secrets") + options, {"metadata": {"name": name}})


def claim_body(name, size, storage_class=None, **spec):
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    return {"metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}}


def claim(s, ns, name, size, storage_class=None, **spec):
    return s.request("POST", path(ns, "persistentvolumeclaims"), claim_body(name, size, storage_class, **spec))


def made(answer):
    assert answer[0] == 201, answer
    return answer[1]


def used(s, ns, name="q"):
    return s.ok("GET", path(ns, "resourcequotas", name)).get("status", {}).get("used")


def side_by_side(n, function):
    with concurrent.futures.ThreadPoolExecutor(25) as pool:
        return list(pool.map(function, range(n)))


def exceeded(resource, requested, held, limited, name="q"):
    return f"exceeded quota: {name}, requested: {resource}={requested}, used: {resource}={held}, limited: {resource}={limited}"


# ---- namespaces

def terminating(s):
    """A namespace that is going away and cannot yet."""
    ns = s.namespace()
    s.ok("POST", configmaps(ns), configmap("kept", finalizers=["example.com/kept"]))
    s.ok("DELETE", f"/api/v1/namespaces/{ns}")
    return ns


def free(s, ns):
    s.ok("PATCH", configmaps(ns, "kept"), {"metadata": {"finalizers": None}}, MERGE)


def test_nothing_goes_into_a_namespace_that_is_not_there(s):
    ns = unique()
    message = f'namespaces "{ns}" not found'
    refused(s.request("POST", configmaps(ns), configmap("a")), 404, "NotFound", message)
    refused(s.request("POST", configmaps(ns) + "?dryRun=All", configmap("a")), 404, "NotFound", message)
    refused(apply(s, configmaps(ns, "a"), "m", configmap("a")), 404, "NotFound", message)
    refused(s.request("PUT", leases(ns) + "/a", {"metadata": {"name": "a"}}), 404, "NotFound", message)
    refused(s.request("POST", configmaps(ns), configmap("Not A Name")), 404, "NotFound", message)


def test_nothing_goes_into_a_namespace_that_is_going_away(s):
    ns = terminating(s)
    message = f"is forbidden: unable to create new content in namespace {ns} because it is being terminated"
    cause = [("NamespaceTerminating", "metadata.namespace")]
    refused(s.request("POST", configmaps(ns), configmap("a")), 403, "Forbidden", f'configmaps "a" {message}', cause)
    refused(apply(s, configmaps(ns, "a"), "m", configmap("a")), 403, "Forbidden", f'configmaps "a" {message}', cause)
    refused(s.request("PUT", leases(ns) + "/a", {"metadata": {"name": "a"}}), 403, "Forbidden",
            f'leases.coordination.k8s.io "a" {message}', cause)
    refused(s.request("POST", configmaps(ns), {"metadata": {"generateName": "some-"}}), 403, "Forbidden",
            f'configmaps "some-" {message}', cause)
    free(s, ns)


def test_what_is_in_a_namespace_that_is_going_away_can_change(s):
    ns = terminating(s)
    changed = s.ok("PATCH", configmaps(ns, "kept"), {"data": {"k": "v"}}, MERGE)
    assert changed["data"] == {"k": "v"}
    free(s, ns)


# ---- limits

def limit(s, ns, limits, name="l"):
    s.ok("POST", path(ns, "limitranges"), {"metadata": {"name": name}, "spec": {"limits": limits}})


def test_claims_keep_within_limits(s):
    ns = s.namespace()
    limit(s, ns, [{"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}])
    words = 'persistentvolumeclaims "p" is forbidden: {} storage usage per PersistentVolumeClaim is {}, but request is {}'
    refused(claim(s, ns, "p", "3Gi"), 403, "Forbidden", words.format("maximum", "2Gi", "3Gi"))
    refused(claim(s, ns, "p", "1Mi"), 403, "Forbidden", words.format("minimum", "1Gi", "1Mi"))
    refused(s.request("POST", path(ns, "persistentvolumeclaims") + "?dryRun=All", claim_body("p", "1Mi")), 403, "Forbidden",
            words.format("minimum", "1Gi", "1Mi"))
    made(claim(s, ns, "low", "1Gi"))
    made(claim(s, ns, "high", "2048Mi"))


def test_all_that_limits_have_against_a_claim_is_said(s):
    ns = s.namespace()
    limit(s, ns, [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}, "min": {"cpu": "0.5"}}])
    refused(claim(s, ns, "p", "3Gi"), 403, "Forbidden",
            'persistentvolumeclaims "p" is forbidden: [minimum cpu usage per PersistentVolumeClaim is 500m.  '
            'No request is specified, maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 3Gi]')


def test_every_limit_range_counts_and_only_for_claims(s):
    ns = s.namespace()
    limit(s, ns, [{"type": "Container", "max": {"ephemeral-storage": "1Mi"}}], "a")
    limit(s, ns, [{"type": "PersistentVolumeClaim", "max": {"storage": "5Gi"}}], "b")
    limit(s, ns, [{"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}}], "c")
    made(claim(s, ns, "p", "2Gi"))
    refused(claim(s, ns, "r", "3Gi"), 403, "Forbidden",
            'persistentvolumeclaims "r" is forbidden: maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi')
    made(s.request("POST", configmaps(ns), configmap("a")))


def test_rules_of_the_kind_come_before_limits_and_quotas(s):
    ns = s.namespace()
    limit(s, ns, [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}])
    quota(s, ns, {"requests.storage": "1Gi", "count/configmaps": "0"})
    refused(claim(s, ns, "Not A Name", "3Gi"), 422, "Invalid")
    assert "maximum storage" in refused(claim(s, ns, "p", "3Gi"), 403, "Forbidden")["message"]
    refused(s.request("POST", configmaps(ns), configmap("Not A Name")), 422, "Invalid")


def test_a_claim_that_is_going_away_is_beyond_limits(s):
    ns = s.namespace()
    made(s.request("POST", path(ns, "persistentvolumeclaims"), claim_body("p", "3Gi") | {
        "metadata": {"name": "p", "finalizers": ["example.com/kept"]}}))
    limit(s, ns, [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}])
    refused(s.request("PATCH", path(ns, "persistentvolumeclaims", "p"), {"metadata": {"labels": {"a": "b"}}}, MERGE), 403, "Forbidden")
    s.ok("DELETE", path(ns, "persistentvolumeclaims", "p"))
    s.ok("PATCH", path(ns, "persistentvolumeclaims", "p"), {"metadata": {"finalizers": None}}, MERGE)


# ---- quotas

def test_objects_are_counted(s):
    ns = s.namespace()
    quota(s, ns, {"secrets": "2", "count/leases.coordination.k8s.io": "0"})
    made(secret(s, ns, "one"))
    made(secret(s, ns, "two"))
    words = 'secrets "three" is forbidden: ' + exceeded("secrets", 1, 2, 2)
    refused(secret(s, ns, "three"), 403, "Forbidden", words)
    refused(secret(s, ns, "three", "?dryRun=All"), 403, "Forbidden", words)
    refused(s.request("POST", leases(ns), {"metadata": {"name": "l"}}), 403, "Forbidden",
            'leases.coordination.k8s.io "l" is forbidden: ' + exceeded("count/leases.coordination.k8s.io", 1, 0, 0))
    refused(s.request("PUT", leases(ns) + "/l", {"metadata": {"name": "l"}}), 403, "Forbidden")
    made(s.request("POST", configmaps(ns), configmap("free")))


def test_a_dry_run_takes_nothing(s):
    ns = s.namespace()
    quota(s, ns, {"secrets": "1"})
    for _ in range(3):
        made(secret(s, ns, "a", "?dryRun=All"))
    made(secret(s, ns, "a"))
    refused(secret(s, ns, "b", "?dryRun=All"), 403, "Forbidden")


def test_what_is_deleted_makes_room_and_what_is_refused_takes_none(s):
    ns = s.namespace()
    quota(s, ns, {"secrets": "2"})
    made(secret(s, ns, "a"))
    for _ in range(3):
        refused(secret(s, ns, "a"), 409, "AlreadyExists")
        refused(secret(s, ns, "Not A Name"), 422, "Invalid")
    made(secret(s, ns, "b"))
    refused(secret(s, ns, "c"), 403, "Forbidden")
    s.ok("DELETE", path(ns, "secrets", "b"))
    made(secret(s, ns, "c"))


def test_apply_and_generated_names_are_counted(s):
    ns = s.namespace()
    quota(s, ns, {"secrets": "1"})
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    assert apply(s, path(ns, "secrets", "a"), "m", body)[0] == 201
    assert apply(s, path(ns, "secrets", "a"), "m", {**body, "stringData": {"k": "v"}})[0] == 200
    refused(apply(s, path(ns, "secrets", "b"), "m", {**body, "metadata": {"name": "b"}}), 403, "Forbidden",
            'secrets "b" is forbidden: ' + exceeded("secrets", 1, 1, 1))
    answer = refused(s.request("POST", path(ns, "secrets"), {"metadata": {"generateName": "some-"}}), 403, "Forbidden")
    assert answer["message"].startswith('secrets "some-') and len(answer["details"]["name"]) == len("some-") + 5


def test_all_limits_of_a_quota_that_are_exceeded_are_named_in_order(s):
    ns = s.namespace()
    quota(s, ns, {"secrets": "0", "count/secrets": "0", "configmaps": "0"})
    refused(secret(s, ns, "a"), 403, "Forbidden",
            'secrets "a" is forbidden: exceeded quota: q, requested: count/secrets=1,secrets=1, '
            'used: count/secrets=0,secrets=0, limited: count/secrets=0,secrets=0')


def test_every_quota_of_a_namespace_counts_and_no_other(s):
    ns, other = s.namespace(), s.namespace()
    quota(s, other, {"secrets": "0"})
    quota(s, ns, {"secrets": "5"}, "a-wide")
    quota(s, ns, {"count/secrets": "1"}, "b-narrow")
    made(secret(s, ns, "a"))
    refused(secret(s, ns, "b"), 403, "Forbidden", 'secrets "b" is forbidden: ' + exceeded("count/secrets", 1, 1, 1, "b-narrow"))
    s.ok("DELETE", path(ns, "resourcequotas", "b-narrow"))
    made(secret(s, ns, "b"))


def test_quotas_count_quotas(s):
    ns = s.namespace()
    quota(s, ns, {"resourcequotas": "1"})
    refused(s.request("POST", path(ns, "resourcequotas"), {"metadata": {"name": "r"}}), 403, "Forbidden",
            'resourcequotas "r" is forbidden: ' + exceeded("resourcequotas", 1, 1, 1))


def test_custom_resources_are_counted(s):
    group = f"{unique('g')}.example.com"
    s.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "metadata": {"name": f"things.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
    ns = s.namespace()
    things = f"/apis/{group}/v1/namespaces/{ns}/things"
    wait_until(lambda: s.request("GET", things)[0] == 200)
    resource = f"count/things.{group}"
    quota(s, ns, {resource: "1"})
    body = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}}
    made(s.request("POST", things, body))
    refused(s.request("POST", things, {**body, "metadata": {"name": "b"}}), 403, "Forbidden",
            f'things.{group} "b" is forbidden: ' + exceeded(resource, 1, 1, 1))
    wait_until(lambda: used(s, ns) == {resource: "1"}, what="status.used")


def test_storage_is_added_up(s):
    ns = s.namespace()
    gold = "gold" + CLASS
    quota(s, ns, {"requests.storage": "10Gi", gold + "requests.storage": "3Gi", gold + "persistentvolumeclaims": "2"})
    made(claim(s, ns, "a", "2Gi", "gold"))
    words = 'persistentvolumeclaims "b" is forbidden: '
    refused(claim(s, ns, "b", "2Gi", "gold"), 403, "Forbidden", words + exceeded(gold + "requests.storage", "2Gi", "2Gi", "3Gi"))
    made(claim(s, ns, "b", "1Gi", "gold"))
    refused(claim(s, ns, "c", "1", "gold"), 403, "Forbidden",
            f'persistentvolumeclaims "c" is forbidden: exceeded quota: q, requested: {gold}persistentvolumeclaims=1,{gold}requests.storage=1, '
            f'used: {gold}persistentvolumeclaims=2,{gold}requests.storage=3Gi, limited: {gold}persistentvolumeclaims=2,{gold}requests.storage=3Gi')
    made(claim(s, ns, "c", "7Gi", "other"))
    refused(claim(s, ns, "d", "512Mi"), 403, "Forbidden",
            'persistentvolumeclaims "d" is forbidden: ' + exceeded("requests.storage", "512Mi", "10Gi", "10Gi"))
    wait_until(lambda: used(s, ns) == {"requests.storage": "10Gi", gold + "requests.storage": "3Gi", gold + "persistentvolumeclaims": "2"},
               what="status.used")


def test_a_claim_may_grow_within_its_quota(s):
    ns, name = s.namespace(), unique("class")
    s.ok("POST", "/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": name}, "provisioner": "example.com/p", "allowVolumeExpansion": True})
    quota(s, ns, {"requests.storage": "5Gi", "persistentvolumeclaims": "1"})
    made(claim(s, ns, "p", "2Gi", name, volumeName="v"))
    at = path(ns, "persistentvolumeclaims", "p")
    s.ok("PATCH", at + "/status", {"status": {"phase": "Bound", "capacity": {"storage": "2Gi"}}}, MERGE)
    grow = lambda size: s.request("PATCH", at, {"spec": {"resources": {"requests": {"storage": size}}}}, MERGE)
    assert grow("5Gi")[0] == 200
    refused(grow("6Gi"), 403, "Forbidden", 'persistentvolumeclaims "p" is forbidden: ' + exceeded("requests.storage", "1Gi", "5Gi", "5Gi"))
    s.ok("PATCH", path(ns, "resourcequotas", "q"), {"spec": {"hard": {"requests.storage": "1Gi"}}}, MERGE)
    s.ok("PATCH", at, {"metadata": {"labels": {"a": "b"}}}, MERGE)


def test_scopes_of_pods_leave_all_else_alone(s):
    ns = s.namespace()
    quota(s, ns, {"pods": "0", "count/secrets": "0"}, scopes=["NotTerminating"])
    made(secret(s, ns, "a"))
    wait_until(lambda: used(s, ns) == {"pods": "0", "count/secrets": "0"}, what="status.used")


def test_claims_are_scoped_by_their_attributes(s):
    ns = s.namespace()
    quota(s, ns, {"persistentvolumeclaims": "1"}, scopeSelector={"matchExpressions": [
        {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["fast"]}]})
    made(claim(s, ns, "a", "1Gi", volumeAttributesClassName="fast"))
    made(claim(s, ns, "b", "1Gi", volumeAttributesClassName="slow"))
    made(claim(s, ns, "c", "1Gi"))
    refused(claim(s, ns, "d", "1Gi", volumeAttributesClassName="fast"), 403, "Forbidden",
            'persistentvolumeclaims "d" is forbidden: ' + exceeded("persistentvolumeclaims", 1, 1, 1))
    wait_until(lambda: used(s, ns) == {"persistentvolumeclaims": "1"}, what="status.used")


# ---- all at once

def test_writes_at_the_same_moment_fill_a_quota_exactly(s):
    for _ in range(5):
        ns = s.namespace()
        quota(s, ns, {"secrets": "10"})
        answers = side_by_side(50, lambda i: secret(s, ns, f"s-{i}"))
        assert sorted(status for status, _ in answers) == [201] * 10 + [403] * 40, [status for status, _ in answers]
        assert len(s.ok("GET", path(ns, "secrets"))["items"]) == 10
        wait_until(lambda: used(s, ns) == {"secrets": "10"}, what="status.used")


def test_storage_asked_at_the_same_moment_fills_a_quota_exactly(s):
    for _ in range(3):
        ns = s.namespace()
        quota(s, ns, {"requests.storage": "10Gi"})
        answers = side_by_side(50, lambda i: claim(s, ns, f"p-{i}", "1Gi"))
        assert sorted(status for status, _ in answers) == [201] * 10 + [403] * 40, [status for status, _ in answers]
        assert len(s.ok("GET", path(ns, "persistentvolumeclaims"))["items"]) == 10


def test_quota_holds_while_objects_come_and_go(s):
    ns = s.namespace()
    quota(s, ns, {"secrets": "4"})

    def churn(i):
        status, _ = secret(s, ns, f"s-{i}")
        assert status in (201, 403), status
        n = len(s.ok("GET", path(ns, "secrets"))["items"])
        if status == 201:
            s.ok("DELETE", path(ns, "secrets", f"s-{i}"))
        return n

    assert max(side_by_side(100, churn)) <= 4
    assert [secret(s, ns, f"t-{i}")[0] for i in range(5)] == [201] * 4 + [403]


def test_quota_outlives_a_restart():
    with Server() as s:
        ns = s.namespace()
        quota(s, ns, {"secrets": "1"})
        made(secret(s, ns, "a"))
        assert s.stop() == 0
        s.start()
        refused(secret(s, ns, "b"), 403, "Forbidden")
        s.ok("DELETE", path(ns, "secrets", "a"))
        made(secret(s, ns, "b"))
