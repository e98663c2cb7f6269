# SPDX-License-Identifier: Apache-2.0
"""What the server says about itself: versions, groups, resources, OpenAPI."""
import gzip
import json

from expect import merge, refused
from pumps import Pumps, version
from seth import wait_until

AGGREGATED = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"}
V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
V3_PROTOBUF = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
VERBS = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}


def resources(s):
    """Every (path of its group-version, resource) there is, in the plain form."""
    for gv in ["/api/v1"] + [f"/apis/{v['groupVersion']}" for g in s.ok("GET", "/apis")["groups"] for v in g["versions"]]:
        for r in s.ok("GET", gv)["resources"]:
            yield gv, r


def test_roots(s):
    for path in ("/api", "/api/"):
        answer = s.ok("GET", path)
        assert answer["kind"] == "APIVersions" and answer["versions"] == ["v1"] and answer["serverAddressByClientCIDRs"][0]["clientCIDR"] == "0.0.0.0/0"
    groups = s.ok("GET", "/apis")
    assert groups["kind"] == "APIGroupList" and {"apiextensions.k8s.io", "coordination.k8s.io", "events.k8s.io", "storage.k8s.io"} <= {g["name"] for g in groups["groups"]}
    for group in groups["groups"]:
        one = s.ok("GET", f"/apis/{group['name']}")
        assert one["kind"] == "APIGroup" and one["versions"] == group["versions"] and one["preferredVersion"] == group["versions"][0]
    paths = s.ok("GET", "/")["paths"]
    missing = {"/api", "/api/v1", "/apis", "/healthz", "/livez", "/readyz", "/openapi/v2", "/openapi/v3", "/version"} - set(paths)
    assert not missing, missing


def test_resources_of_the_core(s):
    answer = s.ok("GET", "/api/v1")
    assert answer["kind"] == "APIResourceList" and answer["groupVersion"] == "v1"
    by_name = {r["name"]: r for r in answer["resources"]}
    for name, kind, namespaced, short in (("configmaps", "ConfigMap", True, ["cm"]), ("namespaces", "Namespace", False, ["ns"]), ("secrets", "Secret", True, None),
                                          ("serviceaccounts", "ServiceAccount", True, ["sa"]), ("events", "Event", True, ["ev"]),
                                          ("persistentvolumeclaims", "PersistentVolumeClaim", True, ["pvc"]), ("resourcequotas", "ResourceQuota", True, ["quota"])):
        r = by_name[name]
        assert (r["kind"], r["namespaced"], r.get("shortNames"), r["singularName"]) == (kind, namespaced, short, kind.lower()), r
        assert r["verbs"] == sorted(r["verbs"]) and set(r["verbs"]) == VERBS - ({"deletecollection"} if name == "namespaces" else set()), name
    assert by_name["namespaces/finalize"]["verbs"] == ["update"] and by_name["namespaces/status"]["verbs"] == ["get", "patch", "update"]


def test_what_is_listed_can_be_listed_and_watched(s):
    """A client that caches a whole cluster begins with this; one failure fails it all."""
    checked = 0
    for gv, r in resources(s):
        if "list" not in r["verbs"]:
            continue
        listed = s.ok("GET", f"{gv}/{r['name']}?limit=1")
        assert listed["kind"] == r["kind"] + "List", (gv, r)
        assert "watch" in r["verbs"], (gv, r)
        stream = s.watch(f"{gv}/{r['name']}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
        assert any(e["type"] == "BOOKMARK" for e in stream), "initial events end"
        stream.close()
        checked += 1
    assert checked >= 12


def test_aggregated_discovery(s):
    wanted = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    for accept in (AGGREGATED["Accept"], "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", "application/json," + wanted,
                   "application/json;profile=nopeer;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," + AGGREGATED["Accept"]):
        status, headers, data = s.exchange("GET", "/apis", headers={"Accept": accept})
        assert status == 200 and headers["Content-Type"] == wanted, (accept, headers["Content-Type"])
        assert json.loads(data)["kind"] == "APIGroupDiscoveryList"
    for root in ("/api", "/apis"):
        for item in s.ok("GET", root, headers=AGGREGATED)["items"]:
            group = item["metadata"].get("name", "")
            for v in item["versions"]:
                gv = f"/apis/{group}/{v['version']}" if group else f"/api/{v['version']}"
                plain = {r["name"]: r for r in s.ok("GET", gv)["resources"]}
                for r in v["resources"]:
                    p = plain[r["resource"]]
                    assert (r["responseKind"]["kind"], r["singularResource"], r["scope"] == "Namespaced", sorted(r["verbs"])) == \
                        (p["kind"], p["singularName"], p["namespaced"], sorted(p["verbs"])), (gv, r)
                    assert {f"{r['resource']}/{sub['subresource']}" for sub in r.get("subresources", [])} == {n for n in plain if n.startswith(r["resource"] + "/")}
    assert s.ok("GET", "/apis", headers={"Accept": "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"})["kind"] == "APIGroupList"


def test_discovery_has_a_tag_that_changes_with_it(s):
    status, headers, _ = s.exchange("GET", "/apis", headers=AGGREGATED)
    tag = headers["ETag"]
    assert status == 200 and tag.startswith('"') and tag.endswith('"'), tag
    assert s.exchange("GET", "/apis", headers={**AGGREGATED, "If-None-Match": tag})[::2] == (304, b"")
    pumps = Pumps(s)
    wait_until(lambda: s.exchange("GET", "/apis", headers={**AGGREGATED, "If-None-Match": tag})[0] == 200, what="the tag to change")
    items = {i["metadata"].get("name"): i for i in s.ok("GET", "/apis", headers=AGGREGATED)["items"]}
    found = items[pumps.group]["versions"][0]["resources"][0]
    assert found["resource"] == "pumps" and {sub["subresource"] for sub in found["subresources"]} == {"status", "scale"}
    assert next(sub for sub in found["subresources"] if sub["subresource"] == "scale")["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


def test_a_custom_kind_in_discovery(s):
    more = {"storage": False}
    pumps = Pumps(s, short="pd", categories=["all", "plant"], versions=[version("v1alpha1", **more), version("v2beta1", **more), version("v1"), version("v10", **more)])
    group = s.ok("GET", f"/apis/{pumps.group}")
    assert [v["version"] for v in group["versions"]] == ["v10", "v1", "v2beta1", "v1alpha1"] and group["preferredVersion"]["version"] == "v10"
    by_name = {r["name"]: r for r in s.ok("GET", f"/apis/{pumps.group}/v1")["resources"]}
    assert by_name["pumps"]["shortNames"] == ["pd"] and by_name["pumps"]["categories"] == ["all", "plant"] and set(by_name["pumps"]["verbs"]) == VERBS
    assert by_name["pumps/status"]["verbs"] == ["get", "patch", "update"] and by_name["pumps/scale"]["kind"] == "Scale" and by_name["pumps/scale"]["group"] == "autoscaling"
    for path in (f"/apis/{pumps.group}/v9", f"/apis/{pumps.group}/v1/nothings"):
        assert s.request("GET", path) == (404, "404 page not found\n")


def test_unknown_paths(s):
    for path in ("/nope", "/apis/nope/v1", "/apis/nope.example.org", "/versions"):
        status, headers, data = s.exchange("GET", path)
        assert (status, headers["Content-Type"], data) == (404, "text/plain; charset=utf-8", b"404 page not found\n"), path
    for path in ("/api/v2", "/api/v1/nopes", "/api/v1/namespaces/default/nopes/x", "/apis/coordination.k8s.io/v1/nopes"):
        refused(s.request("GET", path), 404, "NotFound", "the server could not find the requested resource")


def test_version(s):
    version = s.ok("GET", "/version")
    assert version["major"] == "1" and version["minor"].isdigit() and version["gitVersion"].startswith(f"v1.{version['minor']}.")
    assert {"gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform", "emulationMajor", "minCompatibilityMajor"} <= set(version)
    refused(s.request("POST", "/version", {}), 405, "MethodNotAllowed")
    refused(s.request("GET", "/version", headers={"Accept": "text/plain"}), 406, "NotAcceptable")


def test_openapi_v3(s):
    pumps = Pumps(s)
    index = wait_until(lambda: f"apis/{pumps.group}/v1" in s.ok("GET", "/openapi/v3")["paths"] and s.ok("GET", "/openapi/v3"), what="the kind in OpenAPI")["paths"]
    assert {"api/v1", "apis/apiextensions.k8s.io/v1", "apis/coordination.k8s.io/v1", "version"} <= set(index)
    for name, entry in index.items():
        url = entry["serverRelativeURL"]
        assert url.startswith(f"/openapi/v3/{name}?hash="), url
        status, headers, data = s.exchange("GET", url)
        assert status == 200 and headers["Content-Type"] == "application/json" and json.loads(data)["openapi"].startswith("3."), name
        assert s.exchange("GET", url, headers={"If-None-Match": headers["ETag"]})[0] == 304, name
    document = s.ok("GET", f"/openapi/v3/apis/{pumps.group}/v1")
    schema = next(v for v in document["components"]["schemas"].values() if {"group": pumps.group, "version": "v1", "kind": "Pump"} in v.get("x-kubernetes-group-version-kind", []))
    assert schema["description"] == "A pump." and schema["properties"]["spec"]["properties"]["serial"]["pattern"] == "^[A-Z0-9-]+$"
    patch = document["paths"][f"/apis/{pumps.group}/v1/namespaces/{{namespace}}/pumps/{{name}}"]["patch"]
    assert "fieldValidation" in [p.get("name") for p in patch["parameters"]] and patch["x-kubernetes-group-version-kind"]["kind"] == "Pump"
    assert f"/apis/{pumps.group}/v1/namespaces/{{namespace}}/pumps/{{name}}/scale" in document["paths"]
    for path in ("/openapi/v3/apis/nope.example.org/v1", "/openapi/v3/"):
        assert s.request("GET", path)[0] == 404


def references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for v in value.values():
            yield from references(v)
    elif isinstance(value, list):
        for v in value:
            yield from references(v)


def test_references_in_documents_lead_somewhere(s):
    Pumps(s)
    documents = [s.ok("GET", "/openapi/v2")] + [s.ok("GET", e["serverRelativeURL"]) for e in s.ok("GET", "/openapi/v3")["paths"].values()]
    for document in documents:
        for ref in set(references(document)):
            where = document
            for part in ref.removeprefix("#/").split("/"):
                assert part in where, ref
                where = where[part]


def test_openapi_v3_follows_the_schema(s):
    pumps = Pumps(s)
    path = f"/openapi/v3/apis/{pumps.group}/v1"
    wait_until(lambda: s.request("GET", path)[0] == 200, what="the kind in OpenAPI")
    before = s.ok("GET", "/openapi/v3")["paths"][f"apis/{pumps.group}/v1"]["serverRelativeURL"]
    spec = json.loads(json.dumps(pumps.definition["spec"]["versions"][0]))
    spec["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["color"] = {"type": "string"}
    merge(s, pumps.crd, {"spec": {"versions": [spec]}})
    after = wait_until(lambda: (u := s.ok("GET", "/openapi/v3")["paths"][f"apis/{pumps.group}/v1"]["serverRelativeURL"]) != before and u, what="another hash")
    assert '"color"' in json.dumps(s.ok("GET", after))


def test_openapi_v2(s):
    pumps = Pumps(s)
    wait_until(lambda: f"/apis/{pumps.group}/v1/pumps" in s.ok("GET", "/openapi/v2")["paths"], what="the kind in OpenAPI")
    status, headers, data = s.exchange("GET", "/openapi/v2")
    document = json.loads(data)
    assert status == 200 and headers["Content-Type"] == "application/json" and document["swagger"] == "2.0"
    assert "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" in document["definitions"]
    pump = next(d for d in document["definitions"].values() if {"group": pumps.group, "version": "v1", "kind": "Pump"} in d.get("x-kubernetes-group-version-kind", []))
    assert pump["properties"]["spec"]["required"] == ["serial"]
    assert s.exchange("GET", "/openapi/v2", headers={"If-None-Match": headers["ETag"]})[0] == 304
    zipped = s.exchange("GET", "/openapi/v2", headers={"Accept-Encoding": "gzip"})
    assert zipped[1]["Content-Encoding"] == "gzip" and gzip.decompress(zipped[2]) == data


def top_fields(data):
    """Numbers of the length-delimited fields of a message, which must be well formed to its end."""
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = data[at], at + 1
            value, shift = value | (byte & 0x7f) << shift, shift + 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        assert key & 7 == 2, key
        length = varint()
        found.append((key >> 3, data[at:at + length]))
        at += length
    assert at == len(data)
    return found


def test_openapi_as_protobuf(s):
    status, headers, data = s.exchange("GET", "/openapi/v2", headers={"Accept": V2_PROTOBUF})
    assert status == 200 and headers["Content-Type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    fields = top_fields(data)
    assert fields[0] == (1, b"2.0") and {8, 9} <= {n for n, _ in fields}, "swagger, paths, definitions"
    url = s.ok("GET", "/openapi/v3")["paths"]["apis/coordination.k8s.io/v1"]["serverRelativeURL"]
    status, headers, data = s.exchange("GET", url, headers={"Accept": V3_PROTOBUF})
    assert status == 200 and headers["Content-Type"] == "application/com.github.proto-openapi.spec.v3.v1.0+protobuf" and top_fields(data)[0][1].startswith(b"3.")
    assert s.exchange("GET", url, headers={"Accept": "text/plain"})[0] == 406


def test_discovery_in_other_forms(s):
    status, headers, data = s.exchange("GET", "/api/v1", headers={"Accept": "application/yaml"})
    assert status == 200 and headers["Content-Type"] == "application/yaml" and b"groupVersion: v1\n" in data and b"kind: APIResourceList\n" in data
    refused(s.request("GET", "/api/v1", headers={"Accept": "text/html"}), 406, "NotAcceptable")
    refused(s.request("GET", "/apis", headers={"Accept": "application/xml"}), 406, "NotAcceptable",
            "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf")
