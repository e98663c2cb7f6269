# SPDX-License-Identifier: Apache-2.0
"""Definitions of custom kinds at run time: served at once, changed, in several versions, refused, deleted."""
import copy

from expect import JSON_PATCH, MERGE, TABLE, configmap, configmaps, merge, names, refused, warnings
from pumps import CRDS, Pumps, definition, version
from seth import Server, unique, wait_until


def conditions(s, path):
    return {c["type"]: c for c in s.ok("GET", path).get("status", {}).get("conditions") or []}


def group():
    return unique("g") + ".example.org"


def test_a_definition_is_served_at_once(s):
    g, ns = group(), s.namespace()
    made = s.ok("POST", CRDS, definition(g, short="pu", categories=["plant"]))
    assert made["metadata"]["generation"] == 1 and made["spec"]["conversion"] == {"strategy": "None"} and made["spec"]["names"]["listKind"] == "PumpList"
    path = f"{CRDS}/pumps.{g}"
    wait_until(lambda: conditions(s, path).get("Established", {}).get("status") == "True", what="Established")
    told = conditions(s, path)
    assert (told["NamesAccepted"]["reason"], told["NamesAccepted"]["message"]) == ("NoConflicts", "no conflicts found")
    assert (told["Established"]["reason"], told["Established"]["message"]) == ("InitialNamesAccepted", "the initial names have been accepted")
    status = s.ok("GET", path)["status"]
    assert status["storedVersions"] == ["v1"] and status["acceptedNames"]["shortNames"] == ["pu"] and status["acceptedNames"]["kind"] == "Pump"
    listed = s.ok("GET", f"/apis/{g}/v1/namespaces/{ns}/pumps")
    assert (listed["kind"], listed["apiVersion"], listed["items"]) == ("PumpList", f"{g}/v1", [])
    refused(s.request("POST", CRDS, definition(g)), 409, "AlreadyExists", f'customresourcedefinitions.apiextensions.k8s.io "pumps.{g}" already exists')


def test_cluster_scope(s):
    g = group()
    s.ok("POST", CRDS, definition(g, plural="plants", kind="Plant", scope="Cluster"))
    path = f"/apis/{g}/v1/plants"
    wait_until(lambda: s.request("GET", path)[0] == 200, what="the kind to be served")
    body = {"apiVersion": f"{g}/v1", "kind": "Plant", "metadata": {"name": "a"}, "spec": {"serial": "AB"}}
    assert "namespace" not in s.ok("POST", path, body)["metadata"]
    assert s.request("GET", f"/apis/{g}/v1/namespaces/default/plants/a")[0] == 404
    assert s.ok("GET", path + "/a")["spec"]["mode"] == "auto"


def test_names_that_are_taken(s):
    first = Pumps(s, short="pmp")
    other = definition(first.group, plural="others", kind="Pump", short="pmp")
    s.ok("POST", CRDS, other)
    path = f"{CRDS}/others.{first.group}"
    wait_until(lambda: "NamesAccepted" in conditions(s, path), what="a verdict on the names")
    told = conditions(s, path)
    assert told["NamesAccepted"]["status"] == "False" and told["NamesAccepted"]["reason"].endswith("Conflict")
    assert told["NamesAccepted"]["message"].endswith("is already in use")
    assert (told["Established"]["status"], told["Established"]["reason"], told["Established"]["message"]) == ("False", "NotAccepted", "not all names are accepted")
    assert s.request("GET", f"/apis/{first.group}/v1/namespaces/default/others")[0] == 404
    s.ok("DELETE", first.crd)
    wait_until(lambda: conditions(s, path)["Established"]["status"] == "True", what="the names to come free")
    wait_until(lambda: s.request("GET", f"/apis/{first.group}/v1/namespaces/default/others")[0] == 200, what="the second definition to be served")


def with_schema(g, **properties):
    crd = definition(g)
    crd["spec"]["versions"] = [version("v1", {"type": "object", "properties": properties}, selectableFields=[], additionalPrinterColumns=[], subresources={})]
    return crd


def test_definitions_that_are_refused(s):
    g = group()
    start = f'CustomResourceDefinition.apiextensions.k8s.io "pumps.{g}" is invalid: '
    at = "spec.validation.openAPIV3Schema.properties[spec]"
    for schema, message in [
        ({"properties": {"a": {"type": "string"}}}, f"{at}.type: Required value: must not be empty for specified object fields"),
        ({"type": "nope"}, f'{at}.type: Unsupported value: "nope": supported values: "array", "boolean", "integer", "number", "object", "string"'),
        ({"type": "array"}, f"{at}.items: Required value: must be specified"),
        ({"type": "object", "properties": {"a": {}}}, f"{at}.properties[a].type: Required value: must not be empty for specified object fields"),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}},
         f"{at}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"),
        ({"$ref": "#/x", "type": "object"}, f"{at}.$ref: Forbidden: $ref is not supported"),
        ({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
         f"{at}.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"),
        ({"type": "array", "x-kubernetes-list-type": "nope", "items": {"type": "string"}},
         f'{at}.x-kubernetes-list-type: Unsupported value: "nope": supported values: "atomic", "set", "map"'),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": False},
         f"{at}.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True},
         f"{at}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"),
        ({"type": "string", "default": 5}, f'{at}.default: Invalid value: "integer":  in body must be of type string: "integer"'),
    ]:
        refused(s.request("POST", CRDS + "?dryRun=All", with_schema(g, spec=schema)), 422, "Invalid", start + message)
    pattern = refused(s.request("POST", CRDS + "?dryRun=All", with_schema(g, spec={"type": "string", "pattern": "("})), 422, "Invalid")
    assert f'{at}.pattern: Invalid value: "(": must be a valid regular expression' in pattern["message"]


def test_specs_that_are_refused(s):
    g = group()
    start = f'CustomResourceDefinition.apiextensions.k8s.io "pumps.{g}" is invalid: '

    def refuse(message, **spec):
        crd = definition(g)
        crd["spec"].update(spec)
        return refused(s.request("POST", CRDS + "?dryRun=All", crd), 422, "Invalid", message and start + message)

    refuse('spec.scope: Unsupported value: "Nope": supported values: "Cluster", "Namespaced"', scope="Nope")
    several = refuse(None, names={"plural": "pumps"})["details"]["causes"]
    assert sorted(c["field"] for c in several) == ["spec.names.kind", "spec.names.listKind", "spec.names.singular"]
    refuse("spec.versions[0].schema.openAPIV3Schema: Required value", versions=[{"name": "v1", "served": True, "storage": True}])
    assert "must have exactly one version marked as storage version" in refuse(None, versions=[version("v1", storage=False)])["message"]
    assert "must have exactly one version marked as storage version" in refuse(None, versions=[version("v1"), version("v2")])["message"]
    assert "must contain unique version names" in refuse(None, versions=[version("v1"), version("v1", storage=False)])["message"]
    wrong = definition(g)
    wrong["metadata"]["name"] = "wrong"
    refused(s.request("POST", CRDS, wrong), 422, "Invalid", 'CustomResourceDefinition.apiextensions.k8s.io "wrong" is invalid: '
            'metadata.name: Invalid value: "wrong": must be spec.names.plural+"."+spec.group')
    assert s.request("GET", f"{CRDS}/pumps.{g}")[0] == 404


def test_what_cannot_change_and_what_can(s):
    pumps = Pumps(s, short="one")
    start = f'CustomResourceDefinition.apiextensions.k8s.io "pumps.{pumps.group}" is invalid: '
    refused(s.request("PATCH", pumps.crd, {"spec": {"scope": "Cluster"}}, MERGE), 422, "Invalid", start + 'spec.scope: Invalid value: "Cluster": field is immutable')
    for patch in ({"group": "other.example.org"}, {"names": {"plural": "gadgets"}}):
        refused(s.request("PATCH", pumps.crd, {"spec": patch}, MERGE), 422, "Invalid")
    after = merge(s, pumps.crd, {"spec": {"names": {"shortNames": ["two"]}}})
    assert after["metadata"]["generation"] == 2
    wait_until(lambda: s.ok("GET", pumps.crd)["status"]["acceptedNames"]["shortNames"] == ["two"], what="the new name to be accepted")

    def short_names():
        return next(r for r in s.ok("GET", f"/apis/{pumps.group}/v1")["resources"] if r["name"] == "pumps")["shortNames"]

    wait_until(lambda: short_names() == ["two"], what="discovery to tell the new name")
    refused(s.request("PATCH", pumps.crd, [{"op": "replace", "path": "/spec/versions/0/name", "value": "v2"}], JSON_PATCH), 422, "Invalid",
            start + 'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in '
            "spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions")


def test_a_changed_schema_rules_at_once(s):
    pumps = Pumps(s)
    pumps.create("a", {"mode": "off", "note": "kept"})
    spec = copy.deepcopy(pumps.definition["spec"]["versions"][0])
    properties = spec["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    properties["mode"]["enum"] = ["auto"]
    properties["color"] = {"type": "string", "default": "blue"}
    del properties["note"]
    merge(s, pumps.crd, {"spec": {"versions": [spec]}})
    wait_until(lambda: s.ok("GET", pumps.path("a"))["spec"].get("color") == "blue", what="the new default on reading")
    stored = s.ok("GET", pumps.path("a"))
    assert "note" not in stored["spec"] and stored["spec"]["mode"] == "off", "pruned and defaulted on reading; what is stored is not judged again"
    refused(s.request("POST", pumps.path(), pumps.body("b", {"mode": "off"})), 422, "Invalid",
            f'Pump.{pumps.group} "b" is invalid: spec.mode: Unsupported value: "off": supported values: "auto"')
    assert s.ok("POST", pumps.path(), pumps.body("b", {"color": "red"}))["spec"]["color"] == "red"
    touched = merge(s, pumps.path("a"), {"metadata": {"labels": {"x": "y"}}})
    assert touched["spec"]["mode"] == "off", "an invalid value that does not change stands (ratcheting)"
    refused(s.request("PATCH", pumps.path("a"), {"spec": {"mode": "manual"}}, MERGE), 422, "Invalid")


def small(name, fields, **more):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {f: {"type": "string"} for f in fields}}}}
    return version(name, schema, selectableFields=[], additionalPrinterColumns=[], subresources={}, **more)


def test_versions_share_one_store(s):
    pumps = Pumps(s, versions=[small("v1", ["serial", "only", "more"]),
                               small("v1beta1", ["serial", "only"], storage=False, deprecated=True),
                               small("v1alpha1", ["only"], storage=False, deprecated=True, deprecationWarning="use v1 instead"),
                               small("v0", ["only"], storage=False, served=False)])
    s.ok("POST", pumps.path(), pumps.body("d", {"only": "x", "more": "y"}))
    status, headers, _ = s.exchange("GET", pumps.path("d", version="v1beta1"))
    assert status == 200 and warnings(headers) == [f'299 - "{pumps.group}/v1beta1 Pump is deprecated; use {pumps.group}/v1 Pump"']
    seen = s.ok("GET", pumps.path("d", version="v1alpha1"))
    assert seen["apiVersion"] == f"{pumps.group}/v1alpha1" and seen["spec"] == {"only": "x"}, "pruned to the schema of the version asked for"
    assert s.ok("GET", pumps.path("d"))["spec"] == {"only": "x", "more": "y", "serial": "AB-1"}
    assert s.request("GET", pumps.path("d", version="v0"))[0] == 404
    refused(s.request("POST", pumps.path(version="v1beta1"), pumps.body("e")), 400, "BadRequest",
            f"the API version in the data ({pumps.group}/v1) does not match the expected API version ({pumps.group}/v1beta1)")
    body = {"apiVersion": f"{pumps.group}/v1alpha1", "kind": "Pump", "metadata": {"name": "f"}, "spec": {"only": "alpha"}}
    status, headers, _ = s.exchange("POST", pumps.path(version="v1alpha1"), body)
    assert status == 201 and warnings(headers) == ['299 - "use v1 instead"']
    assert s.ok("GET", pumps.path("f"))["spec"] == {"only": "alpha"}
    listed = s.ok("GET", pumps.path(version="v1alpha1"))
    assert listed["apiVersion"] == f"{pumps.group}/v1alpha1" and {i["apiVersion"] for i in listed["items"]} == {f"{pumps.group}/v1alpha1"}
    stream = s.watch(pumps.path(version="v1alpha1") + "?watch=1&resourceVersion=0")
    assert {next(stream)["object"]["apiVersion"], next(stream)["object"]["apiVersion"]} == {f"{pumps.group}/v1alpha1"}
    versions = s.ok("GET", f"/apis/{pumps.group}")["versions"]
    assert [v["version"] for v in versions] == ["v1", "v1beta1", "v1alpha1"]


def test_the_stored_version_moves_on(s):
    pumps = Pumps(s, versions=[small("v1", ["serial", "only"]), small("v2", ["serial", "only"], storage=False)])
    pumps.create("old")
    merge(s, pumps.crd, {"spec": {"versions": [small("v1", ["serial", "only"], storage=False), small("v2", ["serial", "only"])]}})
    wait_until(lambda: s.ok("GET", pumps.crd)["status"]["storedVersions"] == ["v1", "v2"], what="storedVersions to tell both")
    assert s.ok("GET", pumps.path("old", version="v2"))["apiVersion"] == f"{pumps.group}/v2"
    assert s.ok("GET", pumps.path("old"))["apiVersion"] == f"{pumps.group}/v1"


def test_deletion_takes_the_objects_along(s):
    pumps = Pumps(s)
    pumps.create("a")
    pumps.create("held", metadata={"finalizers": ["example.org/hold"]})
    deleted = s.ok("DELETE", pumps.crd)
    assert deleted["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"] and deleted["metadata"]["deletionTimestamp"]
    wait_until(lambda: s.request("GET", pumps.path("a"))[0] == 404, what="the objects to go")
    wait_until(lambda: "deletionTimestamp" in s.ok("GET", pumps.path("held"))["metadata"], what="the held one to be deleted")
    refused(s.request("POST", pumps.path(), pumps.body("late")), 403, "Forbidden",
            f'pumps.{pumps.group} "late" is forbidden: create not allowed while custom resource definition is terminating')
    assert conditions(s, pumps.crd)["Terminating"]["status"] == "True"
    merge(s, pumps.path("held"), {"metadata": {"finalizers": None}})
    wait_until(lambda: s.request("GET", pumps.crd)[0] == 404, what="the definition to go")
    wait_until(lambda: s.request("GET", pumps.path()) == (404, "404 page not found\n"), what="the path to go")
    wait_until(lambda: pumps.group not in [g["name"] for g in s.ok("GET", "/apis")["groups"]], what="the group to go")
    s.ok("POST", CRDS, pumps.definition)
    wait_until(lambda: s.request("GET", pumps.path())[0] == 200, what="the kind to come back")
    assert names(s.ok("GET", pumps.path())) == [], "a new definition does not find the old objects"


def test_watches_end_with_their_kind(s):
    """Nobody waits for objects of a kind that is no more."""
    pumps = Pumps(s)
    stream = s.watch(pumps.path() + "?watch=1", timeout=20)
    pumps.create("a")
    assert next(stream)["type"] == "ADDED"
    s.ok("DELETE", pumps.crd)
    assert [e["type"] for e in stream] == ["DELETED"]


def test_a_version_that_is_served_no_more(s):
    pumps = Pumps(s, versions=[small("v1", ["serial"]), small("v2", ["serial"], storage=False)])
    pumps.create("a")
    assert s.ok("GET", pumps.path("a", version="v2"))
    merge(s, pumps.crd, {"spec": {"versions": [small("v1", ["serial"]), small("v2", ["serial"], storage=False, served=False)]}})
    wait_until(lambda: s.request("GET", pumps.path("a", version="v2"))[0] == 404, what="v2 to go")
    assert s.ok("GET", pumps.path("a"))["spec"] == {"serial": "AB-1"}


def test_conversion_by_webhook_is_refused(s):
    crd = definition(group())
    crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://x.example.org/"}, "conversionReviewVersions": ["v1"]}}
    refused(s.request("POST", CRDS, crd), 422, "Invalid", causes=[("FieldValueNotSupported", "spec.conversion.strategy")])


def test_a_definition_is_replaced_with_its_version_only(s):
    pumps = Pumps(s)
    name = pumps.definition["metadata"]["name"]
    refused(s.request("PUT", pumps.crd, pumps.definition), 422, "Invalid",
            f'customresourcedefinitions.apiextensions.k8s.io "{name}" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update')


def test_definitions_survive_a_restart():
    with Server() as s:
        pumps = Pumps(s)
        made = pumps.create("a", {"cores": 3})
        s.kill()
        s.start()
        assert s.ok("GET", pumps.path("a")) == made and pumps.is_established()
        refused(s.request("POST", pumps.path(), pumps.body("b", {"cores": 99})), 422, "Invalid")


def test_validation(s):
    pumps = Pumps(s)
    for spec, message in [
        ({"serial": "lower"}, "spec.serial: Invalid value: \"lower\": spec.serial in body should match '^[A-Z0-9-]+$'"),
        ({"serial": "A"}, 'spec.serial: Invalid value: "A": spec.serial in body should be at least 2 chars long'),
        ({"serial": "A" * 13}, "spec.serial: Too long: may not be more than 12 bytes"),
        ({"serial": 5}, 'spec.serial: Invalid value: "integer": spec.serial in body must be of type string: "integer"'),
        ({"serial": None}, "spec.serial: Required value"),
        ({"mode": "nope"}, 'spec.mode: Unsupported value: "nope": supported values: "auto", "manual", "off"'),
        ({"cores": 0}, "spec.cores: Invalid value: 0: spec.cores in body should be greater than or equal to 1"),
        ({"cores": 65}, "spec.cores: Invalid value: 65: spec.cores in body should be less than or equal to 64"),
        ({"cores": "4"}, 'spec.cores: Invalid value: "string": spec.cores in body must be of type integer: "string"'),
        ({"pressure": 0.3}, "spec.pressure: Invalid value: 0.3: spec.pressure in body should be a multiple of 0.25"),
        ({"limit": True}, 'spec.limit: Invalid value: "boolean": spec.limit in body must be of type integer,string: "boolean"'),
        ({"since": "yesterday"}, 'spec.since: Invalid value: "yesterday": spec.since in body must be of type date-time: "yesterday"'),
        ({"firmware": "%%"}, 'spec.firmware: Invalid value: "%%": spec.firmware in body must be of type byte: "%%"'),
        ({"vendor": []}, 'spec.vendor: Invalid value: "array": spec.vendor in body must be of type object: "array"'),
        ({"marks": {"a": 1}}, 'spec.marks.a: Invalid value: "integer": spec.marks.a in body must be of type string: "integer"'),
        ({"marks": {}}, "spec.marks: Invalid value: 0: spec.marks in body should have at least 1 properties"),
        ({"marks": {"a": "", "b": "", "c": "", "d": ""}}, "spec.marks: Too many: 4: must have at most 3 items"),
        ({"tags": ["a", "a"]}, 'spec.tags[1]: Duplicate value: "a"'),
        ({"tags": ["a", "b", "c", "d", "e"]}, "spec.tags: Too many: 5: must have at most 4 items"),
        ({"valves": [{"open": True}]}, "spec.valves[0].name: Required value"),
        ({"valves": [{"name": "a"}, {"name": "a"}]}, 'spec.valves[1]: Duplicate value: {"name":"a"}'),
        ({"steps": []}, "spec.steps: Invalid value: 0: spec.steps in body should have at least 1 items"),
        ({"template": {"kind": "X"}}, "spec.template.apiVersion: Required value"),
    ]:
        body = refused(s.request("POST", pumps.path(), pumps.body("v", spec)), 422, "Invalid", f'Pump.{pumps.group} "v" is invalid: {message}')
        assert body["details"] == {"name": "v", "group": pumps.group, "kind": "Pump", "causes": body["details"]["causes"]}
    without = pumps.body("v")
    del without["spec"]
    refused(s.request("POST", pumps.path(), without), 422, "Invalid", f'Pump.{pumps.group} "v" is invalid: spec: Required value')
    several = refused(s.request("POST", pumps.path(), pumps.body("v", {"serial": "x", "cores": 0, "mode": "z", "tags": [1]})), 422, "Invalid")
    assert len(several["details"]["causes"]) >= 4 and s.request("GET", pumps.path("v"))[0] == 404


def test_the_head_of_a_custom_object(s):
    pumps = Pumps(s)
    for body, code, reason, message in [
        ({**pumps.body("x"), "kind": "Gadget"}, 422, "Invalid", f'Gadget.{pumps.group} "x" is invalid: kind: Invalid value: "Gadget": must be Pump'),
        ({**pumps.body("x"), "apiVersion": "v1"}, 400, "BadRequest",
         f"the API version in the data (v1) does not match the expected API version ({pumps.group}/v1)"),
        (pumps.body("Bad_Name"), 422, "Invalid", None), ({"metadata": {"name": "x"}, "spec": {"serial": "AB"}}, 400, "BadRequest", None),
    ]:
        refused(s.request("POST", pumps.path(), body), code, reason, message)
    refused(s.request("GET", pumps.path("missing")), 404, "NotFound", f'pumps.{pumps.group} "missing" not found')


def test_defaults_pruning_and_null(s):
    pumps = Pumps(s)
    status, headers, _ = s.exchange("POST", pumps.path(), {**pumps.body("p", {
        "unknown": 1, "tuning": {"curve": {"zz": 1}, "q": 2}, "valves": [{"name": "in", "junk": True}], "vendor": {"any": {"thing": [1]}},
        "template": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n"}, "free": 1}, "mode": None, "note": None}), "extra": 1})
    assert status == 201 and {w[7:-1].replace('\\"', '"') for w in warnings(headers)} == {
        f'unknown field "{f}"' for f in ("extra", "spec.unknown", "spec.tuning.curve.zz", "spec.tuning.q", "spec.valves[0].junk")}
    got = s.ok("GET", pumps.path("p"))
    assert "extra" not in got and got["spec"] == {
        "serial": "AB-1", "mode": "auto", "replicas": 1, "note": None, "tuning": {"curve": {"gain": 7}}, "valves": [{"name": "in"}], "vendor": {"any": {"thing": [1]}},
        "template": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n"}, "free": 1}}
    strict = refused(s.request("POST", pumps.path() + "?fieldValidation=Strict", {**pumps.body("s", {"unknown": 1}), "extra": 1}), 400, "BadRequest")
    assert strict["message"] == 'Pump in version "v1" cannot be handled as a Pump: strict decoding error: unknown field "extra", unknown field "spec.unknown"'


def test_spec_status_and_generation(s):
    pumps = Pumps(s)
    made = pumps.create("p", status={"phase": "Running"})
    assert "status" not in made and made["metadata"]["generation"] == 1, "create takes no status"
    done = s.ok("PUT", pumps.path("p", "status"), {**pumps.body("p", {"cores": 9}, metadata={
        "resourceVersion": made["metadata"]["resourceVersion"], "labels": {"no": "yes"}}), "status": {"phase": "Running"}})
    assert done["status"] == {"phase": "Running"} and "cores" not in done["spec"] and "labels" not in done["metadata"] and done["metadata"]["generation"] == 1
    changed = s.ok("PUT", pumps.path("p"), {**pumps.body("p", {"cores": 4}, metadata={"resourceVersion": done["metadata"]["resourceVersion"]}), "status": {"phase": "Stopped"}})
    assert changed["status"] == {"phase": "Running"} and changed["spec"]["cores"] == 4 and changed["metadata"]["generation"] == 2
    for patch, generation in (({"metadata": {"labels": {"a": "b"}}}, 2), ({"spec": {"cores": 4}}, 2), ({"spec": {"cores": 5}}, 3)):
        assert merge(s, pumps.path("p"), patch)["metadata"]["generation"] == generation
    refused(s.request("PATCH", pumps.path("p", "status"), {"status": {"phase": "Nope"}}, MERGE), 422, "Invalid",
            f'Pump.{pumps.group} "p" is invalid: status.phase: Unsupported value: "Nope": supported values: "Running", "Stopped"')
    assert s.ok("PATCH", pumps.path("p", "status"), [{"op": "replace", "path": "/spec/cores", "value": 9}], JSON_PATCH)["spec"]["cores"] == 5
    refused(s.request("PUT", pumps.path("p"), pumps.body("p")), 422, "Invalid",
            f'pumps.{pumps.group} "p" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update')
    refused(s.request("POST", pumps.path("p", "status"), pumps.body("p")), 405, "MethodNotAllowed")
    refused(s.request("GET", pumps.path("p", "nope")), 404, "NotFound")


def test_scale(s):
    pumps = Pumps(s)
    pumps.create("p", {"replicas": 3})
    scale = s.ok("GET", pumps.path("p", "scale"))
    assert (scale["kind"], scale["apiVersion"], scale["spec"], scale["status"]) == ("Scale", "autoscaling/v1", {"replicas": 3}, {"replicas": 0})
    scale["spec"]["replicas"] = 5
    assert s.ok("PUT", pumps.path("p", "scale"), scale)["spec"] == {"replicas": 5}
    refused(s.request("PUT", pumps.path("p", "scale"), scale), 409, "Conflict")
    assert merge(s, pumps.path("p", "scale"), {"spec": {"replicas": 0}})["spec"].get("replicas", 0) == 0
    merge(s, pumps.path("p", "status"), {"status": {"replicas": 6, "selector": "app=x"}})
    assert s.ok("GET", pumps.path("p", "scale"))["status"] == {"replicas": 6, "selector": "app=x"}
    assert s.ok("GET", pumps.path("p"))["spec"]["replicas"] == 0
    refused(s.request("PUT", pumps.path("p", "scale"), {"metadata": {"name": "p"}, "spec": {"replicas": -1}}), 422, "Invalid")
    refused(s.request("GET", pumps.path("missing", "scale")), 404, "NotFound", f'pumps.{pumps.group} "missing" not found')


def test_strategic_patches_are_for_native_kinds(s):
    pumps = Pumps(s)
    pumps.create("p")
    refused(s.request("PATCH", pumps.path("p"), {"spec": {"cores": 1}}, {"Content-Type": "application/strategic-merge-patch+json"}), 415, "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "
            "application/merge-patch+json, application/apply-patch+yaml")


def test_printer_columns(s):
    pumps = Pumps(s)
    pumps.create("p", {"mode": "off"})
    table = s.ok("GET", pumps.path(), headers=TABLE)
    assert [(c["name"], c["type"], c["priority"]) for c in table["columnDefinitions"]] == [
        ("Name", "string", 0), ("Serial", "string", 0), ("Mode", "string", 0), ("Phase", "string", 1), ("Age", "date", 0)]
    assert table["rows"][0]["cells"][:4] == ["p", "AB-1", "off", None]
    merge(s, pumps.path("p", "status"), {"status": {"phase": "Running"}})
    assert s.ok("GET", pumps.path("p"), headers=TABLE)["rows"][0]["cells"][3] == "Running"


def test_rules_in_cel_are_kept_and_told_about(s):
    g = group()
    crd = with_schema(g, spec={"type": "object", "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}},
                               "x-kubernetes-validations": [{"rule": "self.min <= self.max", "message": "min above max"}]})
    status, headers, _ = s.exchange("POST", CRDS, crd)
    assert status == 201
    kept = s.ok("GET", f"{CRDS}/pumps.{g}")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert kept["x-kubernetes-validations"] == [{"rule": "self.min <= self.max", "message": "min above max"}]
    path = f"/apis/{g}/v1/namespaces/default/pumps"
    wait_until(lambda: s.request("GET", path)[0] == 200, what="the kind to be served")
    body = {"apiVersion": f"{g}/v1", "kind": "Pump", "metadata": {"name": "x"}, "spec": {"min": 5, "max": 1}}
    enforced = s.request("POST", path, body)[0] == 422
    assert enforced or any("x-kubernetes-validations" in w for w in warnings(headers)), "a rule is enforced, or its author is told that it is not"


def test_our_own_kinds_are_listed_as_definitions_too(s):
    """Tools look for schemas and columns of kinds among the definitions; the native ones are not there, as on Kubernetes."""
    listed = s.ok("GET", CRDS)
    assert listed["kind"] == "CustomResourceDefinitionList" and all("." in n for n in names(listed))
    assert not [n for n in names(listed) if n.startswith(("configmaps.", "namespaces."))]


def test_objects_of_many_kinds_do_not_mix(s):
    one, two = Pumps(s), Pumps(s)
    for pumps in (one, two):
        pumps.create("same", {"note": pumps.group}, metadata={"labels": {"k": "v"}})
        s.ok("POST", configmaps(pumps.ns), configmap("same"))
    for pumps in (one, two):
        listed = s.ok("GET", f"/apis/{pumps.group}/v1/pumps?labelSelector=k%3Dv")
        assert [i["spec"]["note"] for i in listed["items"]] == [pumps.group]
