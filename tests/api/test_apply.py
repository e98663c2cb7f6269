# SPDX-License-Identifier: Apache-2.0
"""Server-side apply with managers that disagree, managedFields, and the three-way apply of kubectl."""
import json

from expect import APPLY, JSON_PATCH, MERGE, applied, apply, configmap, configmaps, managers, merge, refused
from pumps import Pumps
from seth import unique

LAST = "kubectl.kubernetes.io/last-applied-configuration"


def test_create_change_and_give_up_fields(s):
    path = configmaps(s.namespace(), "a")
    body = configmap("a", {"k": "1", "l": "2"}, labels={"x": "y"})
    status, made = apply(s, path, "one", body)
    assert status == 201 and managers(made) == {("one", "Apply", ""): {"f:data": {"f:k": {}, "f:l": {}}, "f:metadata": {"f:labels": {"f:x": {}}}}}
    status, again = apply(s, path, "one", body)
    assert status == 200 and again == made, "applying the same writes nothing"
    status, less = apply(s, path, "one", configmap("a", {"k": "9"}))
    assert status == 200 and less["data"] == {"k": "9"} and "labels" not in less["metadata"], "what the only owner no longer says is removed"
    assert managers(less) == {("one", "Apply", ""): {"f:data": {"f:k": {}}}}
    assert s.ok("GET", path) == less


def test_two_managers_fight_over_a_field(s):
    path = configmaps(s.namespace(), "a")
    applied(s, path, "one", configmap("a", {"k": "1", "l": "2"}))
    body = refused(apply(s, path, "two", configmap("a", {"k": "other", "l": "other"})), 409, "Conflict",
                   'Apply failed with 2 conflicts: conflicts with "one":\n- .data.k\n- .data.l',
                   [("FieldManagerConflict", ".data.k"), ("FieldManagerConflict", ".data.l")])
    assert {c["message"] for c in body["details"]["causes"]} == {'conflict with "one"'}
    shared = applied(s, path, "two", configmap("a", {"k": "1"}))
    assert managers(shared) == {("one", "Apply", ""): {"f:data": {"f:k": {}, "f:l": {}}}, ("two", "Apply", ""): {"f:data": {"f:k": {}}}}
    refused(apply(s, path, "one", configmap("a", {"k": "mine", "l": "2"})), 409, "Conflict", 'Apply failed with 1 conflict: conflict with "two": .data.k')
    forced = applied(s, path, "two", configmap("a", {"k": "forced"}), force=True)
    assert forced["data"] == {"k": "forced", "l": "2"}
    assert managers(forced) == {("one", "Apply", ""): {"f:data": {"f:l": {}}}, ("two", "Apply", ""): {"f:data": {"f:k": {}}}}
    assert applied(s, path, "one", configmap("a", {"l": "2"})) == forced, "the loser says no more about it: nothing to write"
    empty = applied(s, path, "two", {**configmap("a"), "data": {}})
    assert empty["data"] == {"l": "2"} and managers(empty)[("two", "Apply", "")] == {"f:data": {}}


def test_giving_up_a_shared_field_keeps_it_for_the_other(s):
    path = configmaps(s.namespace(), "a")
    applied(s, path, "one", configmap("a", {"k": "1"}))
    applied(s, path, "two", configmap("a", {"k": "1", "m": "2"}))
    left = applied(s, path, "one", configmap("a"))
    assert left["data"] == {"k": "1", "m": "2"} and managers(left) == {("two", "Apply", ""): {"f:data": {"f:k": {}, "f:m": {}}}}
    gone = applied(s, path, "two", configmap("a"))
    assert "data" not in gone and "managedFields" not in gone["metadata"]


def test_an_update_takes_a_field_and_a_later_apply_meets_it(s):
    path = configmaps(s.namespace(), "a")
    applied(s, path, "one", configmap("a", {"l": "2"}))
    taken = s.ok("PATCH", path + "?fieldManager=three", {"data": {"l": "changed"}}, MERGE)
    assert managers(taken) == {("three", "Update", ""): {"f:data": {"f:l": {}}}}, "a manager left without fields is dropped"
    refused(apply(s, path, "one", configmap("a", {"l": "2"})), 409, "Conflict",
            'Apply failed with 1 conflict: conflict with "three" using v1: .data.l', [("FieldManagerConflict", ".data.l")])
    agreed = applied(s, path, "one", configmap("a", {"l": "changed"}))
    assert set(managers(agreed)) == {("one", "Apply", ""), ("three", "Update", "")}


def test_several_managers_are_named_together(s):
    path = configmaps(s.namespace(), "a")
    applied(s, path, "one", configmap("a", {"a": "1"}))
    applied(s, path, "two", configmap("a", {"b": "1"}))
    body = refused(apply(s, path, "three", configmap("a", {"a": "x", "b": "x"})), 409, "Conflict",
                   causes=[("FieldManagerConflict", ".data.a"), ("FieldManagerConflict", ".data.b")])
    assert body["message"] == 'Apply failed with 2 conflicts: conflicts with "one":\n- .data.a\nconflicts with "two":\n- .data.b'


def test_mistakes(s):
    ns = s.namespace()
    path = configmaps(ns, "a")
    applied(s, path, "one", configmap("a", {"k": "1"}))
    options = 'PatchOptions.meta.k8s.io "" is invalid: '
    cases = [
        ("", configmap("a"), 422, "Invalid", options + "fieldManager: Required value: is required for apply patch"),
        ("?fieldManager=one", {"metadata": {"name": "a"}}, 400, "BadRequest", "invalid object type: /, Kind="),
        ("?fieldManager=one", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}, 400, "BadRequest", "invalid object type: /v1, Kind=Secret"),
        ("?fieldManager=one", configmap("a", managedFields=[]), 400, "BadRequest", "metadata.managedFields must be nil"),
        ("?fieldManager=one", configmap("b"), 400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)"),
        ("?fieldManager=one", {"apiVersion": "v1", "kind": "ConfigMap"}, 400, "BadRequest",
         "the name of the object (a based on URL) was undeterminable: name must be provided"),
    ]
    for parameters, body, code, reason, message in cases:
        refused(s.request("PATCH", path + parameters, json.dumps(body), APPLY), code, reason, message)
    refused(s.request("PATCH", path + "?force=true", {}, MERGE), 422, "Invalid", options + "force: Forbidden: may not be specified for non-apply patch")
    refused(s.request("PATCH", path + "?fieldManager=one", "a: [b", APPLY), 400, "BadRequest")
    refused(s.request("PATCH", path + f"?fieldManager={'m' * 129}", json.dumps(configmap("a")), APPLY), 422, "Invalid")
    refused(apply(s, configmaps("none-" + ns, "a"), "one", configmap("a")), 404, "NotFound", f'namespaces "none-{ns}" not found')
    for body in (dict(configmap("a"), nope=1), configmap("a", {"k": 1})):
        status, answer = apply(s, path, "one", body)
        assert 400 <= status <= 500 and answer["kind"] == "Status" and "failed to create typed patch object (/a; /v1, Kind=ConfigMap)" in answer["message"]
    refused(apply(s, path, "one", configmap("a", resourceVersion="1")), 409, "Conflict")
    assert s.ok("GET", path)["data"] == {"k": "1"}


def test_yaml(s):
    path = configmaps(s.namespace(), "a") + "?fieldManager=one"
    text = "# comment\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {l: 'yes'}\ndata:\n  t: |\n    two\n    lines\n  m: \"5\"\n"
    made = s.ok("PATCH", path, text, APPLY)
    assert made["data"] == {"m": "5", "t": "two\nlines\n"} and made["metadata"]["labels"] == {"l": "yes"}
    status, headers, _ = s.exchange("PATCH", path, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: a\n", APPLY)
    assert status == 200 and headers["Warning"] == '299 - "line 5: key \\"name\\" already set in map"', headers["Warning"]


def test_list_maps_sets_and_atoms_of_a_custom_kind(s):
    pumps = Pumps(s)
    path = pumps.path("p")
    made = applied(s, path, "one", pumps.body("p", {"valves": [{"name": "in", "open": True}], "tags": ["a"], "steps": ["x"]}))
    assert managers(made)[("one", "Apply", "")]["f:spec"] == {
        "f:serial": {}, "f:steps": {}, "f:tags": {'v:"a"': {}}, "f:valves": {'k:{"name":"in"}': {".": {}, "f:name": {}, "f:open": {}}}}
    two = {"apiVersion": f"{pumps.group}/v1", "kind": "Pump", "metadata": {"name": "p"}}
    both = applied(s, path, "two", dict(two, spec={"valves": [{"name": "out", "flow": 3}, {"name": "in", "flow": 1}], "tags": ["b"]}))
    assert both["spec"]["valves"] == [{"flow": 1, "name": "in", "open": True}, {"flow": 3, "name": "out"}] or \
        both["spec"]["valves"] == [{"flow": 3, "name": "out"}, {"flow": 1, "name": "in", "open": True}]
    assert sorted(both["spec"]["tags"]) == ["a", "b"]
    refused(apply(s, path, "two", dict(two, spec={"valves": [{"name": "in", "open": False}], "steps": ["y"]})), 409, "Conflict",
            causes=[("FieldManagerConflict", '.spec.valves[name="in"].open'), ("FieldManagerConflict", ".spec.steps")])
    less = applied(s, path, "one", pumps.body("p"))
    assert less["spec"]["valves"] == [{"flow": 3, "name": "out"}, {"flow": 1, "name": "in"}] and less["spec"]["tags"] == ["b"] and "steps" not in less["spec"]


def test_status_and_spec_have_their_own_managers(s):
    pumps = Pumps(s)
    applied(s, pumps.path("p"), "user", pumps.body("p"))
    head = {"apiVersion": f"{pumps.group}/v1", "kind": "Pump", "metadata": {"name": "p"}}
    ready = {"type": "Ready", "status": "True"}
    done = applied(s, pumps.path("p", "status"), "controller", dict(head, status={"phase": "Running", "conditions": [ready]}))
    assert managers(done)[("controller", "Apply", "status")] == {
        "f:status": {"f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:status": {}, "f:type": {}}}, "f:phase": {}}}
    other = {"type": "Reachable", "status": "Unknown"}
    both = applied(s, pumps.path("p", "status"), "other", dict(head, status={"conditions": [other]}))
    assert both["status"]["conditions"] == [ready, other] and both["metadata"]["generation"] == 1
    body = refused(apply(s, pumps.path("p", "status"), "other", dict(head, status={"phase": "Stopped"})), 409, "Conflict")
    assert 'conflict with "controller" with subresource "status": .status.phase' in body["message"]
    assert "status" in applied(s, pumps.path("p"), "user", pumps.body("p")), "the owner of spec has no say over status"


def test_defaults_belong_to_who_created_and_scale_to_who_scaled(s):
    pumps = Pumps(s)
    made = pumps.create("p")
    assert set(managers(made)[("unknown", "Update", "")]["f:spec"]) == {".", "f:mode", "f:replicas", "f:serial"}
    s.ok("PATCH", pumps.path("p", "scale") + "?fieldManager=scaler", {"spec": {"replicas": 4}}, MERGE)
    scaled = s.ok("GET", pumps.path("p"))
    assert scaled["spec"]["replicas"] == 4 and scaled["metadata"]["generation"] == 2
    assert managers(scaled)[("scaler", "Update", "scale")] == {"f:spec": {"f:replicas": {}}}
    body = refused(apply(s, pumps.path("p"), "gitops", pumps.body("p", {"replicas": 1})), 409, "Conflict")
    assert 'conflict with "scaler" with subresource "scale" using ' in body["message"] and body["message"].endswith(": .spec.replicas")


def test_managed_fields_of_updates(s):
    ns = s.namespace()
    made = s.ok("POST", configmaps(ns) + "?fieldManager=mgr", configmap("a", {"a": "1"}, finalizers=["example.org/f"], ownerReferences=[
        {"apiVersion": "x.example.org/v1", "kind": "Owner", "name": "x", "uid": "u-1"}]))
    assert managers(made) == {("mgr", "Update", ""): {
        "f:data": {".": {}, "f:a": {}},
        "f:metadata": {"f:finalizers": {".": {}, 'v:"example.org/f"': {}}, "f:ownerReferences": {".": {}, 'k:{"uid":"u-1"}': {}}}}}
    path = configmaps(ns, "a")
    both = s.ok("PUT", path + "?fieldManager=other", configmap("a", {"a": "1", "b": "2"}, finalizers=["example.org/f"]))
    assert managers(both)[("other", "Update", "")] == {"f:data": {"f:b": {}}}
    less = s.ok("PATCH", path + "?fieldManager=third", [{"op": "remove", "path": "/data/a"}], JSON_PATCH)
    assert ("third", "Update", "") not in managers(less) and "f:a" not in managers(less)[("mgr", "Update", "")].get("f:data", {})
    reset = merge(s, path, {"metadata": {"managedFields": [{}]}})
    assert "managedFields" not in reset["metadata"]
    untracked = s.ok("PATCH", path + "?fieldManager=z", {"data": {"q": "1"}}, MERGE)
    assert "managedFields" not in untracked["metadata"], "once cleared, only an apply begins to track again"
    merge(s, path, {"metadata": {"finalizers": None}})


def test_apply_on_an_untracked_object_meets_what_was_there_before(s):
    ns = s.namespace()
    path = configmaps(ns, "a")
    s.ok("POST", configmaps(ns), configmap("a", {"k": "1"}))
    merge(s, path, {"metadata": {"managedFields": [{}]}})
    body = refused(apply(s, path, "one", configmap("a", {"k": "2"})), 409, "Conflict")
    assert '"before-first-apply"' in body["message"] and body["message"].endswith(": .data.k")


def test_dry_run_shows_and_keeps_nothing(s):
    ns = s.namespace()
    path = configmaps(ns, "a")
    status, made = apply(s, path, "one", configmap("a", {"k": "1"}), options="&dryRun=All")
    assert status == 201 and made["data"] == {"k": "1"} and "resourceVersion" not in made["metadata"]
    assert s.request("GET", path)[0] == 404
    real = applied(s, path, "one", configmap("a", {"k": "1"}))
    dry = applied(s, path, "two", configmap("a", {"k": "2"}), force=True, options="&dryRun=All")
    assert dry["data"] == {"k": "2"} and dry["metadata"]["resourceVersion"] == real["metadata"]["resourceVersion"]
    assert s.ok("GET", path) == real
    refused(apply(s, path, "two", configmap("a", {"k": "2"}), options="&dryRun=All"), 409, "Conflict")
    pumps = Pumps(s)
    pumps.create("p")
    dry = applied(s, pumps.path("p"), "two", pumps.body("p", {"cores": 4}), options="&dryRun=All")
    assert dry["metadata"]["generation"] == 2 and s.ok("GET", pumps.path("p"))["metadata"]["generation"] == 1


def test_three_way_apply_of_both_kubectls(s):
    for version in ("old", "new"):
        ns, pumps = s.namespace(), Pumps(s)

        def kubectl_apply(thing):
            return s.kubectl("-n", ns, "apply", "-f", "-", version=version, input=json.dumps(thing))

        for kind, path, body, word in (("configmap", configmaps(ns, "a"), lambda **data: configmap("a", data), "data"),
                                       (f"pump.{pumps.group}", pumps.path("a", ns=ns), lambda **spec: pumps.body("a", spec), "spec")):
            fields = {"data": ({"k": "1", "l": "2"}, {"k": "9"}, "kept", "by-hand"), "spec": ({"cores": 2, "note": "x"}, {"cores": 3}, "mode", "off")}[word]
            assert kubectl_apply(body(**fields[0])) == f"{kind}/a created\n"
            assert json.loads(s.ok("GET", path)["metadata"]["annotations"][LAST])[word].items() >= fields[0].items()
            assert kubectl_apply(body(**fields[0])) == f"{kind}/a unchanged\n"
            merge(s, path, {word: {fields[2]: fields[3]}})
            assert kubectl_apply(body(**fields[1])) == f"{kind}/a configured\n"
            now = s.ok("GET", path)[word]
            assert now.items() >= fields[1].items() and now[fields[2]] == fields[3], "a field of somebody else stays"
            assert not set(fields[0]) - set(fields[1]) & set(now), "a field no longer said is removed"


def test_from_client_side_to_server_side_apply(s):
    """Debian's kubectl makes the object with its annotation; the new one takes it over and can then remove fields."""
    ns = s.namespace()
    text = json.dumps(configmap("a", {"k": "1", "l": "2"}))
    s.kubectl("-n", ns, "apply", "-f", "-", version="old", input=text)
    assert ("kubectl-client-side-apply", "Update", "") in managers(s.ok("GET", configmaps(ns, "a")))
    out = s.kubectl("-n", ns, "apply", "--server-side", "-f", "-", input=json.dumps(configmap("a", {"k": "1"})))
    assert out == "configmap/a serverside-applied\n"
    after = s.ok("GET", configmaps(ns, "a"))
    assert after["data"] == {"k": "1"}, "the field said before and not now is gone"
    assert ("kubectl", "Apply", "") in managers(after) and ("kubectl-client-side-apply", "Update", "") not in managers(after)


def test_kubectl_server_side_conflicts(s):
    for version in ("old", "new"):
        ns, name = s.namespace(), unique("cm")
        text = json.dumps(configmap(name, {"k": "1"}))
        s.kubectl("-n", ns, "apply", "--server-side", "--field-manager", "alice", "-f", "-", version=version, input=text)
        changed = json.dumps(configmap(name, {"k": "2"}))
        done = s.kubectl("-n", ns, "apply", "--server-side", "--field-manager", "bob", "-f", "-", version=version, input=changed, check=False)
        assert done.returncode == 1 and "Apply failed with 1 conflict: conflict with \"alice\": .data.k" in done.stderr
        assert "--force-conflicts" in done.stderr and s.ok("GET", configmaps(ns, name))["data"] == {"k": "1"}
        s.kubectl("-n", ns, "apply", "--server-side", "--field-manager", "bob", "--force-conflicts", "-f", "-", version=version, input=changed)
        after = s.ok("GET", configmaps(ns, name))
        assert after["data"] == {"k": "2"} and set(managers(after)) == {("bob", "Apply", "")}
