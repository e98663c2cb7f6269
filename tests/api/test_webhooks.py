# SPDX-License-Identifier: Apache-2.0
"""Admission webhooks over real HTTPS: they change, refuse, warn, hang, lie, are not there."""
import base64
import concurrent.futures
import json
import pathlib
import tempfile
import threading
import time

from expect import MERGE, apply, configmap, configmaps, refused, warnings
from seth import Server, unique, wait_until
from webhook import GROUP, Configuration, Webhooks, deny, patch, rule

OPTIONS = ("--threads", "2")
HOOKS = Webhooks()


def mutating(s, *entries, name=None):
    return Configuration(s, HOOKS, "mutating", entries, name)


def validating(s, *entries, name=None):
    return Configuration(s, HOOKS, "validating", entries, name)


def create(s, ns, name="a", data=None, options="", **metadata):
    return s.request("POST", configmaps(ns) + options, configmap(name, data, **metadata))


def add_data(key, value):
    return lambda r: patch({"op": "add", "path": "/data", "value": {**(r["object"].get("data") or {}), key: value}})


def failed(hook, why):
    return f'Internal error occurred: failed calling webhook "{hook}": {why}'


# ---- changing

def test_mutating_changes_what_is_stored(s):
    ns = s.namespace()
    path = HOOKS.on(add_data("b", "2"))
    with mutating(s, {"path": path, "ns": ns}):
        status, made = create(s, ns, "a", {"a": "1"})
    assert status == 201 and made["data"] == {"a": "1", "b": "2"}, made
    assert s.ok("GET", configmaps(ns, "a"))["data"] == {"a": "1", "b": "2"}
    # What a webhook adds is nobody's.
    [entry] = made["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}}, entry
    create(s, ns, "later", {"a": "1"})
    assert len(HOOKS.requests(path)) == 1, "a deleted configuration counts no more"


def test_the_review_says_everything(s):
    ns = s.namespace()
    path = HOOKS.on(lambda r: {})
    with mutating(s, {"path": path, "ns": ns, "timeoutSeconds": 7}):
        assert create(s, ns, "a", {"a": "1"}, "?fieldManager=me&fieldValidation=Strict")[0] == 201
    [(url, headers, review)] = HOOKS.seen[path]
    assert url == path + "?timeout=7s" and headers["Content-Type"] == "application/json"
    assert review["kind"] == "AdmissionReview" and review["apiVersion"] == "admission.k8s.io/v1"
    request = review["request"]
    assert len(request.pop("uid")) == 36
    user = request.pop("userInfo")
    assert user["username"] and "system:masters" in user["groups"] and "system:authenticated" in user["groups"], user
    thing = request.pop("object")
    assert thing["data"] == {"a": "1"} and thing["metadata"]["managedFields"][0]["manager"] == "me"
    assert "uid" not in thing["metadata"] and "resourceVersion" not in thing["metadata"], thing
    kind, resource = {"group": "", "version": "v1", "kind": "ConfigMap"}, {"group": "", "version": "v1", "resource": "configmaps"}
    options = {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me", "fieldValidation": "Strict"}
    assert request == {"kind": kind, "requestKind": kind, "resource": resource, "requestResource": resource, "name": "a",
                       "namespace": ns, "operation": "CREATE", "oldObject": None, "dryRun": False, "options": options}, request


def test_every_way_to_write_is_reviewed(s):
    ns = s.namespace()
    path = HOOKS.on(lambda r: {})
    with validating(s, {"path": path, "ns": ns, "rules": [rule(("CREATE", "UPDATE"))]}):
        made = s.ok("POST", configmaps(ns), configmap("a", {"k": "0"}))
        made["data"] = {"k": "1"}
        s.ok("PUT", configmaps(ns, "a"), made)
        s.ok("PATCH", configmaps(ns, "a"), {"data": {"k": "2"}}, MERGE)
        assert apply(s, configmaps(ns, "a"), "m", configmap("a", {"x": "3"}))[0] == 200
        assert apply(s, configmaps(ns, "b"), "m", configmap("b", {"x": "4"}))[0] == 201
        s.ok("DELETE", configmaps(ns, "a"))
    requests = HOOKS.requests(path)
    assert [r["operation"] for r in requests] == ["CREATE", "UPDATE", "UPDATE", "UPDATE", "CREATE"]
    assert [r["options"]["kind"] for r in requests] == ["CreateOptions"] + ["UpdateOptions"] * 3 + ["CreateOptions"]
    assert [(r["oldObject"] or {}).get("data", {}).get("k") for r in requests] == [None, "0", "1", "2", None]
    assert [r["object"]["data"].get("k") for r in requests] == ["0", "1", "2", "2", None]
    assert all(r["object"]["metadata"]["uid"] for r in requests), "validating webhooks see the finished object"


def test_a_generated_name_comes_after_the_changes(s):
    ns = s.namespace()
    before, after = HOOKS.on(lambda r: {}), HOOKS.on(lambda r: {})
    naming = HOOKS.on(lambda r: patch({"op": "add", "path": "/metadata/name", "value": "chosen"}))
    body = {"metadata": {"generateName": "g-"}}
    with mutating(s, {"path": before, "ns": ns}), validating(s, {"path": after, "ns": ns}):
        made = s.ok("POST", configmaps(ns), body)
        assert "name" not in HOOKS.requests(before)[0] and "name" not in HOOKS.requests(before)[0]["object"]["metadata"]
        assert HOOKS.requests(after)[0]["name"] == made["metadata"]["name"] != ""
        with mutating(s, {"path": naming, "ns": ns}):
            assert s.ok("POST", configmaps(ns), body)["metadata"]["name"] == "chosen"


def test_configurations_are_asked_in_the_order_of_their_names(s):
    ns, tag = s.namespace(), unique()
    one = HOOKS.on(lambda r: patch({"op": "add", "path": "/data", "value": {"who": "one"}}))
    two = HOOKS.on(lambda r: patch({"op": "replace", "path": "/data/who", "value": r["object"]["data"]["who"] + " two"}))
    three = HOOKS.on(lambda r: patch({"op": "replace", "path": "/data/who", "value": r["object"]["data"]["who"] + " three"}))
    with mutating(s, {"path": three, "ns": ns}, name=f"{tag}-b"):
        with mutating(s, {"path": one, "ns": ns}, {"path": two, "ns": ns}, name=f"{tag}-a"):
            assert create(s, ns)[1]["data"] == {"who": "one two three"}


def test_who_wants_to_is_asked_again_after_changes(s):
    ns = s.namespace()
    careful, once = HOOKS.on(lambda r: {}), HOOKS.on(lambda r: {})
    changing = HOOKS.on(lambda r: {} if r["object"].get("data") else patch({"op": "add", "path": "/data", "value": {"x": "1"}}))
    entries = [{"path": careful, "ns": ns, "reinvocationPolicy": "IfNeeded"}, {"path": once, "ns": ns}, {"path": changing, "ns": ns}]
    with mutating(s, *entries):
        assert create(s, ns, "a")[0] == 201
        assert [r["object"].get("data") for r in HOOKS.requests(careful)] == [None, {"x": "1"}]
        assert len(HOOKS.requests(once)) == len(HOOKS.requests(changing)) == 1
        assert create(s, ns, "b", {"y": "2"})[0] == 201
    assert len(HOOKS.requests(careful)) == 3, "nothing changed after it"


def test_changes_are_pruned_defaulted_and_judged(s):
    ns = s.namespace()
    strange = HOOKS.on(lambda r: patch({"op": "add", "path": "/strange", "value": 1},
                                       {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}))
    with mutating(s, {"path": strange, "ns": ns}):
        status, made = create(s, ns)
    assert status == 201 and "strange" not in made and made["metadata"]["labels"] == {"a": "b"}, made
    wrong = HOOKS.on(lambda r: patch({"op": "add", "path": "/metadata/labels", "value": {"a": "not a label"}}))
    with mutating(s, {"path": wrong, "ns": ns}):
        refused(create(s, ns, "b"), 422, "Invalid", causes=[("FieldValueInvalid", "metadata.labels")])
    assert s.request("GET", configmaps(ns, "b"))[0] == 404


# ---- refusing

def test_refusals_in_the_words_of_the_webhook(s):
    ns = s.namespace()
    denied = 'admission webhook "h0.example.org" denied the request'
    table = [
        (deny(), 400, "", denied + " without explanation"),
        (deny(message="no", code=403, reason="Forbidden"), 403, "Forbidden", denied + ": no"),
        (deny(reason="Teapot"), 400, "Teapot", denied + ": Teapot"),
        (deny(message="odd", code=200), 400, "", denied + ": odd"),
        (deny(message="later", code=429, reason="TooManyRequests"), 429, "TooManyRequests", denied + ": later"),
        (deny(message="too much", code=99999), 400, "", denied + ": too much"),
    ]
    for phase in (mutating, validating):
        for response, code, reason, message in table:
            with phase(s, {"path": HOOKS.on(lambda r, response=response: response), "ns": ns}):
                refused(create(s, ns), code, reason, message)
    assert s.request("GET", configmaps(ns, "a"))[0] == 404


def test_a_refusal_may_name_its_causes(s):
    ns = s.namespace()
    causes = [{"reason": "FieldValueInvalid", "message": "must be odd", "field": "data.n"}]
    path = HOOKS.on(lambda r: deny(message="no", code=422, reason="Invalid", details={"name": "a", "kind": "configmaps", "causes": causes}))
    with validating(s, {"path": path, "ns": ns}):
        body = refused(create(s, ns), 422, "Invalid", causes=[("FieldValueInvalid", "data.n")])
    assert body["details"] == {"name": "a", "kind": "configmaps", "causes": causes}


def test_warnings_reach_the_client(s):
    ns = s.namespace()
    path = HOOKS.on(lambda r: {"warnings": ["careful", 'say "hi"', "x" * 1000]})
    with validating(s, {"path": path, "ns": ns}):
        status, headers, _ = s.exchange("POST", configmaps(ns), configmap("a"))
    assert status == 201
    got = warnings(headers)
    assert got[:2] == ['299 - "careful"', '299 - "say \\"hi\\""'] and got[2] == f'299 - "{"x" * 256}"' and len(got) == 3, got
    flood = HOOKS.on(lambda r: {"warnings": [f"{i} " + "y" * 300 for i in range(5000)]})
    with validating(s, {"path": flood, "ns": ns}):
        status, headers, _ = s.exchange("POST", configmaps(ns), configmap("b"))
    assert status == 201 and 0 < len(warnings(headers)) <= 32


# ---- not answering

def test_a_webhook_that_hangs_holds_up_nobody_else(s):
    ns = s.namespace()
    hanging = threading.Event()
    path = HOOKS.on(lambda r: hanging.wait(60) and {})
    with validating(s, {"path": path, "ns": ns, "timeoutSeconds": 1}):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            began = time.monotonic()
            stuck = [pool.submit(create, s, ns, f"a-{i}") for i in range(8)]
            slowest = 0.0
            while not all(f.done() for f in stuck):
                start = time.monotonic()
                s.ok("GET", f"/api/v1/namespaces/{ns}")
                s.ok("POST", f"/api/v1/namespaces/{ns}/secrets", {"metadata": {"generateName": "s-"}})
                slowest = max(slowest, time.monotonic() - start)
            took = time.monotonic() - began
    url = f"https://127.0.0.1:{HOOKS.port}{path}?timeout=1s"
    for f in stuck:
        refused(f.result(), 500, "InternalError",
                failed("h0.example.org", f'failed to call webhook: Post "{url}": context deadline exceeded'))
    hanging.set()
    assert took >= 1, took
    assert slowest < 0.9, f"others waited {slowest:.2f} s"


def test_a_webhook_that_hangs_may_be_ignored(s):
    ns = s.namespace()
    hanging = threading.Event()
    path = HOOKS.on(lambda r: hanging.wait(60) and {})
    with mutating(s, {"path": path, "ns": ns, "timeoutSeconds": 1, "failurePolicy": "Ignore"}):
        assert create(s, ns)[0] == 201
    hanging.set()


def test_a_webhook_that_is_down(s):
    ns = s.namespace()
    nobody = {"clientConfig": {"url": "https://127.0.0.1:1/x"}, "ns": ns}
    why = 'failed to call webhook: Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'
    for phase in (mutating, validating):
        with phase(s, nobody):
            body = refused(create(s, ns), 500, "InternalError", failed("h0.example.org", why))
            assert body["details"]["causes"] == [{"message": f'failed calling webhook "h0.example.org": {why}'}]
            assert s.request("POST", f"/api/v1/namespaces/{ns}/secrets", {"metadata": {"generateName": "x"}})[0] == 201
        with phase(s, {**nobody, "failurePolicy": "Ignore"}):
            assert create(s, ns, unique())[0] == 201


def test_a_webhook_must_be_the_one_of_its_authority(s):
    ns = s.namespace()
    path = HOOKS.on(lambda r: {})
    url = f"https://127.0.0.1:{HOOKS.port}{path}"
    post = f'failed to call webhook: Post "{url}?timeout=10s": '
    unknown = post + "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    garbage = base64.b64encode(b"not a certificate").decode()
    table = [
        ({"url": url, "caBundle": HOOKS.bundle("other")}, unknown),
        ({"url": url}, unknown),
        ({"url": url, "caBundle": garbage},
         "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block"),
        ({"url": url.replace("127.0.0.1", "localhost"), "caBundle": HOOKS.bundle()},
         post.replace("127.0.0.1", "localhost") + "tls: failed to verify certificate: x509: certificate is not valid for localhost"),
        ({"service": {"name": "svc", "namespace": "n", "path": "/p"}, "caBundle": HOOKS.bundle()},
         'failed to call webhook: Post "https://svc.n.svc:443/p?timeout=10s": service "svc" not found'),
    ]
    for client, why in table:
        with validating(s, {"clientConfig": client, "ns": ns}):
            refused(create(s, ns), 500, "InternalError", failed("h0.example.org", why))
    assert HOOKS.requests(path) == []


# ---- lying

def review(request, **response):
    return json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
                       "response": {"uid": request["uid"], "allowed": True, **response}})


JSON_TYPE = "application/json"
INVALID = "received invalid webhook response: "
LIES = [
    (lambda r: (200, JSON_TYPE, review({"uid": "1"})), "@uid"),
    (lambda r: (200, JSON_TYPE, '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}'), INVALID + "webhook response was absent"),
    (lambda r: (200, JSON_TYPE, review(r).replace("/v1", "/v1beta1")),
     INVALID + "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1beta1, Kind=AdmissionReview"),
    (lambda r: (200, JSON_TYPE, review(r).replace("AdmissionReview", "Pod")),
     INVALID + "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1, Kind=Pod"),
    (lambda r: (200, JSON_TYPE, review(r, allowed="yes")), None),
    (lambda r: (200, JSON_TYPE, review(r, warnings="w")), None),
    (lambda r: (200, JSON_TYPE, review(r, auditAnnotations={"a": 1})), None),
    (lambda r: (200, "text/html", "<html>"), None),
    (lambda r: (200, JSON_TYPE, ""), None),
    (lambda r: (200, JSON_TYPE, b"\xff\xfe"), None),
    (lambda r: (200, JSON_TYPE, "[" * 100000), None),
    (lambda r: (200, JSON_TYPE, review(r, warnings=["x" * (7 << 20)])), None),
    (lambda r: (500, "text/plain", "boom\n"),
     'failed to call webhook: an error on the server ("boom") has prevented the request from succeeding'),
    (lambda r: (404, "text/plain", "?"), "failed to call webhook: the server could not find the requested resource"),
    (lambda r: (302, "text/plain", "?"),
     "failed to call webhook: the server responded with the status code 302 but did not return more information"),
]
PATCH_LIES = [
    (lambda r: {"patch": "e30=", "patchType": None}, INVALID + "webhook returned response.patch but not response.patchType"),
    (lambda r: {"patchType": "JSONPatch"}, INVALID + "webhook returned response.patchType but not response.patch"),
    (lambda r: {"patch": "!!!", "patchType": "JSONPatch"}, None),
    (lambda r: {"patch": base64.b64encode(b"[").decode(), "patchType": "JSONPatch"}, None),
    (lambda r: {"patch": base64.b64encode(b"{}").decode(), "patchType": "JSONPatch"}, None),
    (lambda r: {**patch({"op": "add", "path": "/x", "value": 1}), "patchType": "Other"}, 'unsupported patch type "Other"'),
]


def test_answers_that_are_none_count_as_failures(s):
    ns = s.namespace()
    for phase, lies in ((validating, LIES), (mutating, LIES + PATCH_LIES)):
        for lie, why in lies:
            path = HOOKS.on(lie)
            with phase(s, {"path": path, "ns": ns}):
                body = refused(create(s, ns), 500, "InternalError")
            assert body["message"].startswith(failed("h0.example.org", "")), body
            if why == "@uid":
                why = INVALID + f'expected response.uid="{HOOKS.requests(path)[0]["uid"]}", got "1"'
            assert why is None or body["message"] == failed("h0.example.org", why), body["message"]
            with phase(s, {"path": path, "ns": ns, "failurePolicy": "Ignore"}):
                assert create(s, ns, unique())[0] == 201
    assert s.request("GET", configmaps(ns, "a"))[0] == 404


def test_a_validating_webhook_may_not_patch(s):
    ns = s.namespace()
    path = HOOKS.on(lambda r: patch({"op": "add", "path": "/data", "value": {}}))
    with validating(s, {"path": path, "ns": ns}):
        refused(create(s, ns), 500, "InternalError",
                failed("h0.example.org", INVALID + "validating webhook may not return response.patch"))


def test_patches_that_do_not_fit(s):
    ns = s.namespace()
    table = [
        (patch({"op": "remove", "path": "/nothing"}), 500, "InternalError"),
        (patch({"op": "test", "path": "/kind", "value": "Pod"}), 500, "InternalError"),
        (patch({"op": "replace", "path": "", "value": 7}), 500, "InternalError"),
        (patch({"op": "replace", "path": "/kind", "value": "Secret"}), 500, "InternalError"),
        (patch({"op": "replace", "path": "/apiVersion", "value": "v2"}), 500, "InternalError"),
        (patch({"op": "add", "path": "/data", "value": 7}), 500, "InternalError"),
        (patch({"op": "replace", "path": "/metadata", "value": "x"}), 500, "InternalError"),
        (patch({"op": "add", "path": "/metadata/namespace", "value": "kube-system"}), 400, "BadRequest"),
        (patch({"op": "remove", "path": "/metadata/name"}), 422, "Invalid"),
    ]
    for response, code, reason in table:
        for policy in ("Fail", "Ignore"):
            with mutating(s, {"path": HOOKS.on(lambda r, response=response: response), "ns": ns, "failurePolicy": policy}):
                refused(create(s, ns), code, reason)
    assert s.request("GET", configmaps(ns, "a"))[0] == 404


def test_a_webhook_cannot_make_one_object_another(s):
    ns = s.namespace()
    made = s.ok("POST", configmaps(ns), configmap("a", {"x": "y"}))
    update = {"rules": [rule(("UPDATE",))], "ns": ns}
    for key, code in (("name", 422), ("uid", 422), ("namespace", 400)):
        path = HOOKS.on(lambda r, key=key: patch({"op": "replace", "path": "/metadata/" + key, "value": "b"}))
        with mutating(s, {"path": path, **update}):
            refused(s.request("PATCH", configmaps(ns, "a"), {"data": {"x": key}}, MERGE), code, "Invalid" if code == 422 else "BadRequest")
    path = HOOKS.on(lambda r: patch({"op": "replace", "path": "/metadata/creationTimestamp", "value": "2001-01-01T00:00:00Z"},
                                    {"op": "replace", "path": "/metadata/resourceVersion", "value": "1"},
                                    {"op": "remove", "path": "/metadata/managedFields"}))
    with mutating(s, {"path": path, **update}):
        now = s.ok("PATCH", configmaps(ns, "a"), {"data": {"x": "kept"}}, MERGE)["metadata"]
    assert now["creationTimestamp"] == made["metadata"]["creationTimestamp"] and now["uid"] == made["metadata"]["uid"]
    assert now["managedFields"] and int(now["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


# ---- dry run

def test_a_dry_run_tells_the_webhook(s):
    ns = s.namespace()
    path = HOOKS.on(add_data("b", "2"))
    with mutating(s, {"path": path, "ns": ns, "sideEffects": "NoneOnDryRun"}):
        status, answer = create(s, ns, options="?dryRun=All")
    assert status == 201 and answer["data"] == {"b": "2"}
    [request] = HOOKS.requests(path)
    assert request["dryRun"] is True and request["options"]["dryRun"] == ["All"]
    assert s.request("GET", configmaps(ns, "a"))[0] == 404


# ---- matching

def test_namespace_selectors(s):
    ns, other = s.namespace(), s.namespace()
    path = HOOKS.on(lambda r: deny(message="no"))
    team = unique()
    s.ok("PATCH", f"/api/v1/namespaces/{ns}", {"metadata": {"labels": {"team": team}}}, MERGE)
    with validating(s, {"path": path, "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": [team]}]}}):
        refused(create(s, ns), 400, "")
        assert create(s, other)[0] == 201
        s.ok("PATCH", f"/api/v1/namespaces/{other}", {"metadata": {"labels": {"team": team}}}, MERGE)
        refused(create(s, other, "b"), 400, "")


def test_namespaces_themselves_have_their_new_labels(s):
    team, name = unique(), unique()
    path = HOOKS.on(lambda r: deny(message="no"))
    entry = {"path": path, "rules": [rule(("CREATE", "UPDATE", "DELETE"), ("namespaces",))],
             "namespaceSelector": {"matchLabels": {"team": team}}}
    with validating(s, entry):
        labelled = {"metadata": {"name": name, "labels": {"team": team}}}
        refused(s.request("POST", "/api/v1/namespaces", labelled), 400, "")
        s.ok("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        refused(s.request("PATCH", f"/api/v1/namespaces/{name}", labelled, MERGE), 400, "")
        assert [(r["name"], r["namespace"]) for r in HOOKS.requests(path)] == [(name, name)] * 2
    s.ok("PATCH", f"/api/v1/namespaces/{name}", labelled, MERGE)
    with validating(s, entry):
        refused(s.request("DELETE", f"/api/v1/namespaces/{name}"), 400, "")
    s.ok("DELETE", f"/api/v1/namespaces/{name}")


def test_object_selectors_look_at_both_versions(s):
    ns = s.namespace()
    path = HOOKS.on(lambda r: {})
    rules = [rule(("CREATE", "UPDATE", "DELETE"))]
    with validating(s, {"path": path, "ns": ns, "rules": rules, "objectSelector": {"matchLabels": {"watched": "yes"}}}):
        create(s, ns, "plain")
        s.ok("PATCH", configmaps(ns, "plain"), {"metadata": {"labels": {"watched": "yes"}}}, MERGE)
        s.ok("PATCH", configmaps(ns, "plain"), {"metadata": {"labels": {"watched": "no"}}}, MERGE)
        s.ok("PATCH", configmaps(ns, "plain"), {"metadata": {"labels": {"watched": "never"}}}, MERGE)
        s.ok("DELETE", configmaps(ns, "plain"))
        create(s, ns, "b", labels={"watched": "yes"})
        s.ok("DELETE", configmaps(ns, "b"))
    assert [(r["name"], r["operation"]) for r in HOOKS.requests(path)] == [
        ("plain", "UPDATE"), ("plain", "UPDATE"), ("b", "CREATE"), ("b", "DELETE")]


def test_rules_and_scopes(s):
    ns = s.namespace()
    every = ("CREATE", "UPDATE", "DELETE")
    table = [
        (rule(every, ("*",), ("*",), ("*",)), True), (rule(every, ("*/*",), ("*",), ("*",)), True),
        (rule(every, ("configmaps/*",)), True), (rule(every, ("secrets",)), False), (rule(every, ("configmaps/status",)), False),
        (rule(every, versions=("v2",)), False), (rule(every, groups=("apps",)), False), (rule(("DELETE", "UPDATE")), False),
        (rule(("*",)), True), (rule(every, scope="Namespaced"), True), (rule(every, scope="Cluster"), False),
    ]
    for one, matches in table:
        path = HOOKS.on(lambda r: {})
        with validating(s, {"path": path, "ns": ns, "rules": [rule(("CREATE",), ("leases",), ("coordination.k8s.io",)), one]}):
            assert create(s, ns, unique())[0] == 201
        assert len(HOOKS.requests(path)) == matches, (one, matches)


def definition(group):
    version = {"served": True, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
               "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}}
    versions = [{"name": "v1", "storage": True, **version}, {"name": "v2", "storage": False, **version}]
    return {"metadata": {"name": f"things.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}, "versions": versions}}


def define(s, group):
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    s.ok("POST", crds, definition(group))
    wait_until(lambda: s.request("GET", f"/apis/{group}/v2")[0] == 200, what="the kind")


def test_equivalent_versions(s):
    ns, group = s.namespace(), unique("g") + ".example.org"
    define(s, group)
    exact, any_version = HOOKS.on(lambda r: {}), HOOKS.on(lambda r: patch({"op": "add", "path": "/metadata/labels", "value": {"by": "hook"}}))
    one = {"ns": ns, "rules": [rule(resources=("things",), groups=(group,), versions=("v1",))]}
    with mutating(s, {"path": exact, "matchPolicy": "Exact", **one}, {"path": any_version, **one}):
        thing = s.ok("POST", f"/apis/{group}/v2/namespaces/{ns}/things", {"apiVersion": f"{group}/v2", "kind": "Thing", "metadata": {"name": "a"}})
    assert thing["apiVersion"] == f"{group}/v2" and thing["metadata"]["labels"] == {"by": "hook"}
    assert HOOKS.requests(exact) == []
    [request] = HOOKS.requests(any_version)
    assert request["resource"]["version"] == request["kind"]["version"] == "v1" and request["object"]["apiVersion"] == f"{group}/v1"
    assert request["requestResource"]["version"] == request["requestKind"]["version"] == "v2"


def test_subresources(s):
    ns, group = s.namespace(), unique("g") + ".example.org"
    define(s, group)
    things = f"/apis/{group}/v1/namespaces/{ns}/things"
    status, scale = HOOKS.on(lambda r: {}), HOOKS.on(lambda r: patch({"op": "replace", "path": "/spec/replicas", "value": 5}))
    base = {"groups": (group,), "versions": ("v1",)}
    s.ok("POST", things, {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"n": 1}})
    with mutating(s, {"path": status, "ns": ns, "rules": [rule(("UPDATE",), ("things/status",), **base)]},
                  {"path": scale, "ns": ns, "rules": [rule(("UPDATE",), ("things/scale",), **base)]}):
        s.ok("PATCH", things + "/a", {"spec": {"m": 1}}, MERGE)
        assert not HOOKS.requests(status) and not HOOKS.requests(scale)
        s.ok("PATCH", things + "/a/status", {"status": {"n": 1}}, MERGE)
        assert s.ok("PATCH", things + "/a/scale", {"spec": {"replicas": 2}}, MERGE)["spec"]["replicas"] == 5
    [request] = HOOKS.requests(status)
    assert request["subResource"] == request["requestSubResource"] == "status" and request["object"]["status"] == {"n": 1}
    [request] = HOOKS.requests(scale)
    assert request["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"} and request["object"]["spec"] == {"replicas": 2}
    assert request["oldObject"]["spec"] == {"replicas": 1} and s.ok("GET", things + "/a")["spec"]["n"] == 5


def test_configurations_are_never_sent(s):
    path = HOOKS.on(lambda r: deny(message="stuck for ever"))
    everything = {"path": path, "rules": [rule(("*",), ("*",), ("admissionregistration.k8s.io",), ("*",))]}
    with validating(s, everything), mutating(s, everything):
        with mutating(s, {"path": path}) as c:
            s.ok("PATCH", f"{c.path}/{c.name}", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert HOOKS.requests(path) == []


# ---- deleting

def test_deletes_are_reviewed(s):
    ns = s.namespace()
    path = HOOKS.on(lambda r: deny(message="keep it", code=403, reason="Forbidden") if r["oldObject"]["data"].get("keep") else {})
    create(s, ns, "a", {"keep": "yes"})
    create(s, ns, "b", {"x": "y"})
    with validating(s, {"path": path, "ns": ns, "rules": [rule(("DELETE",))]}):
        refused(s.request("DELETE", configmaps(ns, "a")), 403, "Forbidden",
                'admission webhook "h0.example.org" denied the request: keep it')
        s.ok("DELETE", configmaps(ns, "b"), {"propagationPolicy": "Background"})
    first, second = HOOKS.requests(path)
    assert first["object"] is None and first["oldObject"]["data"] == {"keep": "yes"} and first["name"] == "a"
    assert second["options"] == {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "propagationPolicy": "Background"}
    assert s.request("GET", configmaps(ns, "a"))[0] == 200 and s.request("GET", configmaps(ns, "b"))[0] == 404


def test_sweeps_are_reviewed_object_by_object(s):
    ns = s.namespace()
    path = HOOKS.on(lambda r: deny(message="keep it") if r["oldObject"]["metadata"]["name"] == "b" else {})
    for name in ("a", "b", "c"):
        create(s, ns, name, labels={"swept": "yes"})
    swept = configmaps(ns) + "?labelSelector=swept%3Dyes"
    with validating(s, {"path": path, "ns": ns, "rules": [rule(("DELETE",))]}):
        refused(s.request("DELETE", swept), 400, "")
        left = [item["metadata"]["name"] for item in s.ok("GET", swept)["items"]]
        assert left == ["b", "c"], left
        assert all("name" not in r for r in HOOKS.requests(path))
    s.ok("DELETE", swept)
    assert s.ok("GET", swept)["items"] == []


def test_a_delete_cannot_be_changed(s):
    ns = s.namespace()
    create(s, ns)
    path = HOOKS.on(lambda r: patch({"op": "add", "path": "/data", "value": {}}))
    with mutating(s, {"path": path, "ns": ns, "rules": [rule(("DELETE",))]}):
        refused(s.request("DELETE", configmaps(ns, "a")), 500, "InternalError",
                'Internal error occurred: admission webhook "h0.example.org" attempted to modify the object, which is not supported for '
                "this operation")
    assert s.request("GET", configmaps(ns, "a"))[0] == 200


def test_configurations_come_and_go_under_load(s):
    ns = s.namespace()
    path = HOOKS.on(lambda r: deny(message="no"))
    is_over = threading.Event()

    def write(i):
        codes, n = set(), 0
        while not is_over.is_set():
            status, _ = create(s, ns, f"w-{i}-{n}")
            codes.add(status)
            n += 1
        return codes

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, i) for i in range(4)]
        try:
            for _ in range(40):
                with mutating(s, {"path": path, "ns": ns}):
                    refused(create(s, ns), 400, "")
                assert create(s, ns, unique())[0] == 201
        finally:
            is_over.set()
    assert set().union(*(w.result() for w in writers)) == {201, 400}


# ---- the configurations

def test_what_a_configuration_may_not_say(s):
    path = GROUP + "/validatingwebhookconfigurations"
    table = [
        ({"matchConditions": [{"name": "a", "expression": "true"}]}, [("FieldValueInvalid", "webhooks[0].matchConditions[0].expression")]),
        ({"clientConfig": {"url": "https://user@host/x?y#z"}}, [("FieldValueInvalid", "webhooks[0].clientConfig.url")] * 3),
        ({"clientConfig": {"url": "https://"}}, [("FieldValueInvalid", "webhooks[0].clientConfig.url")]),
        ({"clientConfig": {"url": "https://h/\nx"}}, [("FieldValueRequired", "webhooks[0].clientConfig.url")]),
        ({"clientConfig": {"service": {"name": "a", "namespace": "b", "path": "x//y"}}}, [("FieldValueInvalid", "webhooks[0].clientConfig.service.path")] * 3),
        ({"sideEffects": "Some"}, [("FieldValueNotSupported", "webhooks[0].sideEffects")]),
        ({"timeoutSeconds": 0}, [("FieldValueInvalid", "webhooks[0].timeoutSeconds")]),
        ({"rules": [rule(resources=("a/*", "a/b"))]}, [("FieldValueInvalid", "webhooks[0].rules[0].resources[1]")]),
        ({"rules": [rule(resources=("*", "b"))]}, [("FieldValueInvalid", "webhooks[0].rules[0].resources")]),
        ({"admissionReviewVersions": ["v1", "v1"]}, [("FieldValueInvalid", "webhooks[0].admissionReviewVersions[1]")]),
        ({"namespaceSelector": {"matchLabels": {"a": "b c"}}}, [("FieldValueInvalid", "webhooks[0].namespaceSelector.matchLabels")]),
    ]
    for entry, causes in table:
        body = Configuration(s, HOOKS, "validating", [{"path": "/x", **entry}]).body
        refused(s.request("POST", path, body), 422, "Invalid", causes=causes)


def test_webhooks_of_the_old_version_need_not_repeat_the_uid(s):
    ns = s.namespace()
    path = HOOKS.on(lambda r: (200, JSON_TYPE, json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1",
                                                           "response": {"allowed": False, "status": {"message": "old"}}})))
    with validating(s, {"path": path, "ns": ns, "admissionReviewVersions": ["v1beta1"]}):
        refused(create(s, ns), 400, "", 'admission webhook "h0.example.org" denied the request: old')
    assert HOOKS.seen[path][0][2]["apiVersion"] == "admission.k8s.io/v1beta1"


def test_the_audit_log_has_their_annotations():
    with tempfile.TemporaryDirectory() as directory:
        log = pathlib.Path(directory, "audit.log")
        with Server("--audit-log-path", str(log)) as s:
            ns = s.namespace()
            noting = HOOKS.on(lambda r: {**patch({"op": "add", "path": "/data", "value": {"a": "b"}}), "auditAnnotations": {"why": "because"}})
            with mutating(s, {"path": noting, "ns": ns}) as c:
                with validating(s, {"clientConfig": {"url": "https://127.0.0.1:1/"}, "ns": ns, "failurePolicy": "Ignore"}):
                    assert create(s, ns, "noted")[0] == 201
            wait_until(lambda: noted_in(log), what="the audit log")
        found = noted_in(log)
        assert found["h0.example.org/why"] == "because", found
        assert json.loads(found["mutation.webhook.admission.k8s.io/round_0_index_0"]) == {
            "configuration": c.name, "webhook": "h0.example.org", "mutated": True}
        assert found["failed-open.validating.webhook.admission.k8s.io/round_0_index_0"] == "h0.example.org"


def noted_in(log):
    """The annotations of the one write that the webhook has annotated, if it is in the log yet."""
    for line in log.read_text().splitlines() if log.exists() else ():
        annotations = json.loads(line).get("annotations", {}) if line.endswith("}") else {}
        if "h0.example.org/why" in annotations:
            return annotations
    return None


def test_configurations_outlive_a_restart():
    with Server() as s:
        ns = s.namespace()
        path = HOOKS.on(lambda r: deny(message="no"))
        down = {"clientConfig": {"url": "https://127.0.0.1:1/x"}, "name": "down.example.org",
                "rules": [rule(("*",), ("*",), ("*",), ("*",))], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
        with validating(s, {"path": path, "ns": ns}, down):
            refused(create(s, ns), 400, "")
            assert s.stop() == 0
            s.start()
            refused(create(s, ns), 400, "")
            refused(create(s, "kube-system"), 500, "InternalError")
        assert create(s, ns)[0] == 201
