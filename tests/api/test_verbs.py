# SPDX-License-Identifier: Apache-2.0
"""Create, update and patch of native kinds: what is stored, and the words of every refusal."""
import base64
import concurrent.futures
import json
import re

from expect import JSON_PATCH, MERGE, PARTIAL, STRATEGIC, TABLE, configmap, configmaps, managers, merge, refused, warnings
from pumps import Pumps
from seth import unique, wait_until

SUBDOMAIN = ("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
             "alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")
QUALIFIED = ("name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
             "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")


def test_what_the_server_adds(s):
    ns = s.namespace()
    made = s.ok("POST", configmaps(ns), configmap("a", {"k": "v"}, labels={"app": "x"}))
    meta = made["metadata"]
    assert (made["kind"], made["apiVersion"], meta["namespace"]) == ("ConfigMap", "v1", ns)
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", meta["uid"])
    assert re.fullmatch(r"[1-9][0-9]*", meta["resourceVersion"]) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert "generation" not in meta and managers(made) == {("unknown", "Update", ""): {"f:data": {".": {}, "f:k": {}}, "f:metadata": {"f:labels": {".": {}, "f:app": {}}}}}
    refused(s.request("POST", configmaps(ns), configmap("a")), 409, "AlreadyExists", 'configmaps "a" already exists')
    refused(s.request("GET", configmaps(ns, "missing")), 404, "NotFound", 'configmaps "missing" not found')
    for body in ({"metadata": {"name": "bare"}}, {"kind": "ConfigMap", "metadata": {"name": "b2"}}, {"apiVersion": "v1", "metadata": {"name": "b3"}}):
        made = s.ok("POST", configmaps(ns), body)
        assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1"), "native kinds may leave out what the path says"
    named = s.ok("POST", configmaps(ns), configmap("n"), {"User-Agent": "tool/v1.2 (linux)"})
    assert "managedFields" not in named["metadata"], "nobody owns nothing"
    named = s.ok("POST", configmaps(ns), configmap("n2", {"a": "b"}), {"User-Agent": "tool/v1.2 (linux)"})
    assert set(managers(named)) == {("tool", "Update", "")}


def test_generated_names(s):
    ns = s.namespace()
    made = [s.ok("POST", configmaps(ns), {"metadata": {"generateName": "gen-"}})["metadata"]["name"] for _ in range(3)]
    assert len(set(made)) == 3 and all(re.fullmatch(r"gen-[bcdfghjklmnpqrstvwxz2456789]{5}", n) for n in made)
    long = s.ok("POST", configmaps(ns), {"metadata": {"generateName": "a" * 100}})["metadata"]["name"]
    assert re.fullmatch("a{58}[a-z0-9]{5}", long)
    assert s.ok("POST", configmaps(ns), {"metadata": {"name": "given", "generateName": "gen-"}})["metadata"]["name"] == "given"
    refused(s.request("POST", configmaps(ns), {"metadata": {"generateName": "Bad_"}}), 422, "Invalid",
            causes=[("FieldValueInvalid", "metadata.generateName"), ("FieldValueInvalid", "metadata.name")])
    refused(s.request("POST", configmaps(ns), {"metadata": {}}), 422, "Invalid",
            'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required', [("FieldValueRequired", "metadata.name")])


def test_bad_names(s):
    ns = s.namespace()
    for name in ("UPPER", "under_score", "-lead", "a..b", "a/b", "..", "a%b", " sp", "é"):
        refused(s.request("POST", configmaps(ns), configmap(name)), 422, "Invalid",
                f'ConfigMap "{name}" is invalid: metadata.name: Invalid value: "{name}": {SUBDOMAIN}', [("FieldValueInvalid", "metadata.name")])
    long = "x" * 254
    refused(s.request("POST", configmaps(ns), configmap(long)), 422, "Invalid",
            f'ConfigMap "{long}" is invalid: metadata.name: Invalid value: "{long}": must be no more than 253 characters')
    refused(s.request("POST", "/api/v1/namespaces", {"metadata": {"name": "a.b"}}), 422, "Invalid")
    assert s.ok("POST", configmaps(ns), configmap("a.b-c.1"))


def test_bad_labels_and_annotations(s):
    ns = s.namespace()
    invalid = 'ConfigMap "a" is invalid: '
    value = ("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
             "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")
    for metadata, message in [
        ({"labels": {"a b": "x"}}, f'metadata.labels: Invalid value: "a b": {QUALIFIED}'),
        ({"labels": {"ok": "not ok"}}, f'metadata.labels: Invalid value: "not ok": {value}'),
        ({"labels": {"ok": "v" * 64}}, f'metadata.labels: Invalid value: "{"v" * 64}": must be no more than 63 bytes'),
        ({"labels": {"/x": ""}}, 'metadata.labels: Invalid value: "/x": prefix part must be non-empty'),
        ({"labels": {"k" * 64: "1"}}, f'metadata.labels: Invalid value: "{"k" * 64}": name part must be no more than 63 bytes'),
        ({"annotations": {"a b": "x"}}, f'metadata.annotations: Invalid value: "a b": {QUALIFIED}'),
        ({"annotations": {"big": "v" * 262145}}, "metadata.annotations: Too long: may not be more than 262144 bytes"),
        ({"annotations": {"_x": "1"}}, f'metadata.annotations: Invalid value: "_x": {QUALIFIED}'),
    ]:
        refused(s.request("POST", configmaps(ns), configmap("a", **metadata)), 422, "Invalid", invalid + message)
    s.ok("POST", configmaps(ns), configmap("fine", annotations={"Upper/Key": "ok"}, labels={"example.org/x": "", "y": "A_b.c"}))


def test_bodies_that_are_not_objects(s):
    ns = s.namespace()
    start = "the object provided is unrecognized (must be of type ConfigMap): "
    for text in ("", "{", "not json", "[]", '"x"', '{"metadata":{"name":"a"}} trailing', '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}', "\x00", "\xff"):
        body = refused(s.request("POST", configmaps(ns), text.encode("latin-1"), {"Content-Type": "application/json"}), 400, "BadRequest")
        assert body["message"].startswith(start), body
    for text in ("{}", "null"):
        refused(s.request("POST", configmaps(ns), text, {"Content-Type": "application/json"}), 422, "Invalid",
                'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required')
    for text in ("a: b: c\n", "- a\n", "a: *unknown\n", "\tx: 1"):
        assert refused(s.request("POST", configmaps(ns), text, {"Content-Type": "application/yaml"}), 400, "BadRequest")["message"].startswith(start)
    made = s.ok("POST", configmaps(ns), "metadata: {name: yaml}\ndata:\n  k: 'v'\n", {"Content-Type": "application/yaml"})
    assert made["data"] == {"k": "v"}
    deep = '{"metadata":{"name":"deep"},"data":' + '{"a":' * 5000 + "1" + "}" * 5001
    refused(s.request("POST", configmaps(ns), deep, {"Content-Type": "application/json"}), 400, "BadRequest")


def test_fields_of_the_wrong_type(s):
    ns = s.namespace()
    start = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
    for body in ({"metadata": {"name": "a", "labels": {"x": 1}}}, {"metadata": {"name": "a", "annotations": ["x"]}}, {"metadata": {"name": 1}},
                 {"metadata": {"name": "a"}, "data": {"x": 5}}, {"metadata": {"name": "a"}, "binaryData": {"x": "%%%"}}, {"metadata": "a"},
                 {"metadata": {"name": "a", "finalizers": "x"}}, {"metadata": {"name": "a", "ownerReferences": [5]}}, {"metadata": {"name": "a"}, "immutable": "yes"}):
        answer = refused(s.request("POST", configmaps(ns), body), 400, "BadRequest")
        assert answer["message"].startswith(start), answer["message"]
    refused(s.request("POST", configmaps(ns), {"metadata": {"name": "a"}, "binaryData": {"x": "%%%"}}), 400, "BadRequest",
            start + "illegal base64 data at input byte 0")


def test_the_path_decides(s):
    ns = s.namespace()
    s.ok("POST", configmaps(ns), configmap("a"))
    for method, path, body, code, reason, message in [
        ("POST", configmaps(ns), configmap("x", namespace="other"), 400, "BadRequest",
         "the namespace of the provided object does not match the namespace sent on the request"),
        ("POST", configmaps("none-" + ns), configmap("x"), 404, "NotFound", f'namespaces "none-{ns}" not found'),
        ("POST", configmaps(ns), {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}, 400, "BadRequest", None),
        ("POST", configmaps(ns), {"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "x"}}, 400, "BadRequest", None),
        ("POST", configmaps(ns), {"apiVersion": "v1", "kind": "Nope", "metadata": {"name": "x"}}, 400, "BadRequest", None),
        ("PUT", configmaps(ns, "a"), configmap("b"), 400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)"),
        ("PUT", configmaps(ns, "a"), configmap("a", namespace="other"), 400, "BadRequest",
         "the namespace of the provided object does not match the namespace sent on the request"),
        ("PUT", configmaps(ns, "a"), {"metadata": {}}, 400, "BadRequest",
         "the name of the object (a based on URL) was undeterminable: name must be provided"),
        ("PUT", configmaps(ns, "missing"), configmap("missing"), 404, "NotFound", 'configmaps "missing" not found'),
    ]:
        refused(s.request(method, path, body), code, reason, message)


def test_content_types(s):
    ns = s.namespace()
    unknown = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    for kind in ("text/plain", "application/xml", "garbage", "text/yaml"):
        refused(s.request("POST", configmaps(ns), json.dumps(configmap("x")), {"Content-Type": kind}), 415, "UnsupportedMediaType", unknown)
    for i, kind in enumerate(("application/json; charset=utf-8", "application/json;stream=watch", "")):
        s.ok("POST", configmaps(ns), json.dumps(configmap(f"ok{i}")), {"Content-Type": kind} if kind else {})
    body = refused(s.request("POST", configmaps(ns), json.dumps(configmap("x")), {"Content-Type": "application/vnd.kubernetes.protobuf"}), 400, "BadRequest")
    assert "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]" in body["message"]


def varint(n):
    out = b""
    while n > 0x7f:
        out, n = out + bytes([n & 0x7f | 0x80]), n >> 7
    return out + bytes([n])


def field(number, data):
    """A length-delimited protobuf field."""
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def test_a_body_in_protobuf(s):
    """As client-go's typed clients send native kinds: k8s\\0, then Unknown{TypeMeta, raw}; ConfigMap is metadata=1, data=2."""
    ns = s.namespace()
    meta = field(1, "proto") + field(11, field(1, "app") + field(2, "x"))
    raw = field(1, meta) + field(2, field(1, "k") + field(2, "v"))
    body = b"k8s\x00" + field(1, field(1, "v1") + field(2, "ConfigMap")) + field(2, raw)
    made = s.ok("POST", configmaps(ns), body, {"Content-Type": "application/vnd.kubernetes.protobuf", "Accept": "application/json"})
    assert made["data"] == {"k": "v"} and made["metadata"]["labels"] == {"app": "x"} and made["metadata"]["name"] == "proto"
    for broken in (body[:-3], b"k8s\x00" + field(1, b"\xff\xff\xff"), b"k8s\x00" + b"\x0a\xff\xff\xff\xff\x0f"):
        refused(s.request("POST", configmaps(ns), broken, {"Content-Type": "application/vnd.kubernetes.protobuf"}), 400, "BadRequest")


def test_protobuf_is_asked_for_beside_json(s):
    """What typed clients of native kinds accept; a custom kind has no protobuf and says so in it."""
    ns, pumps = s.namespace(), Pumps(s)
    s.ok("POST", configmaps(ns), configmap("a", {"k": "v"}))
    pumps.create("p")
    protobuf = "application/vnd.kubernetes.protobuf"
    for path, name in ((configmaps(ns, "a"), b"a"), (configmaps(ns), b"ConfigMapList"), (pumps.path("p"), b"Pump"), (configmaps(ns) + "?watch=1&timeoutSeconds=1", b"ADDED")):
        status, headers, data = s.exchange("GET", path, headers={"Accept": f"{protobuf},application/json"})
        assert status == 200 and name in data and (headers["Content-Type"].startswith(protobuf) or headers["Content-Type"] == "application/json"), path
    status, headers, data = s.exchange("GET", pumps.path("p"), headers={"Accept": protobuf})
    assert status == 406 and headers["Content-Type"] == protobuf and data.startswith(b"k8s\x00") and b"NotAcceptable" in data


def test_accept(s):
    ns = s.namespace()
    s.ok("POST", configmaps(ns), configmap("a", {"k": "v"}))
    path = configmaps(ns, "a")
    representations = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    only = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    for accept, message in [("application/xml", representations), ("garbage", representations),
                            ("application/json;as=Nope;v=v1;g=meta.k8s.io", only), ("application/json;as=Table;v=v9;g=meta.k8s.io", only),
                            ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
                             "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)")]:
        refused(s.request("GET", path, headers={"Accept": accept}), 406, "NotAcceptable", message)
    for accept in ("text/html,*/*;q=0.1", "application/*", "application/json;charset=utf-8"):
        assert s.ok("GET", path, headers={"Accept": accept})["kind"] == "ConfigMap", accept
    assert s.ok("GET", path, headers=TABLE)["rows"][0]["cells"][:2] == ["a", 1]
    assert s.ok("GET", path, headers=PARTIAL)["kind"] == "PartialObjectMetadata"
    refused(s.request("GET", configmaps(ns, "missing"), headers=TABLE), 404, "NotFound", 'configmaps "missing" not found')
    status, headers, data = s.exchange("GET", path, headers={"Accept": "application/yaml"})
    assert status == 200 and headers["Content-Type"] == "application/yaml" and data.startswith(b"apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\n")


def test_sizes(s):
    ns = s.namespace()
    big = configmap("big", {"k": "x" * 3_145_800})
    refused(s.request("POST", configmaps(ns), big), 413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")
    refused(s.request("POST", configmaps(ns), configmap("mid", {"k": "x" * 1_048_577})), 422, "Invalid",
            'ConfigMap "mid" is invalid: []: Too long: may not be more than 1048576 bytes', [("FieldValueTooLong", "[]")])
    refused(s.request("POST", f"/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "mid"}, "data": {"k": base64.b64encode(b"x" * 1_048_577).decode()}}),
            422, "Invalid", 'Secret "mid" is invalid: data: Too long: may not be more than 1048576 bytes')
    fits = s.ok("POST", configmaps(ns), configmap("fits", {"k": "x" * 1_048_000}))
    assert len(fits["data"]["k"]) == 1_048_000
    body = refused(s.request("POST", configmaps(ns), configmap("keys", {"a/b": "x", "..": "y", "": "z"})), 422, "Invalid")
    assert 'data[..]: Invalid value: "..": must not be \'..\'' in body["message"] and 'data[a/b]: Invalid value: "a/b": a valid config key must consist of' in body["message"]


def test_field_validation(s):
    ns = s.namespace()
    head = '{"apiVersion":"v1","kind":"ConfigMap","metadata":'
    json_type = {"Content-Type": "application/json"}
    refused(s.request("POST", configmaps(ns) + "?fieldValidation=Strict", head + '{"name":"a","nope":1},"data":{},"extra":true}', json_type), 400, "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "metadata.nope", unknown field "extra"')
    refused(s.request("POST", configmaps(ns) + "?fieldValidation=Strict", head + '{"name":"d","name":"e"},"data":{"a":"1","a":"2"}}', json_type), 400, "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "metadata.name", duplicate field "data.a"')
    text = head + '{"name":"w","nope":1},"data":{"a":"1","a":"2"},"extra":true}'
    status, headers, data = s.exchange("POST", configmaps(ns) + "?fieldValidation=Warn", text, json_type)
    assert status == 201 and json.loads(data)["data"] == {"a": "2"}
    assert warnings(headers) == ['299 - "unknown field \\"metadata.nope\\""', '299 - "duplicate field \\"data.a\\""', '299 - "unknown field \\"extra\\""']
    status, headers, _ = s.exchange("POST", configmaps(ns), head + '{"name":"default"},"extra":true}', json_type)
    assert status == 201 and warnings(headers) == ['299 - "unknown field \\"extra\\""'], "Warn is the default"
    status, headers, data = s.exchange("POST", configmaps(ns) + "?fieldValidation=Ignore", head + '{"name":"i"},"extra":true}', json_type)
    assert status == 201 and warnings(headers) == [] and "extra" not in json.loads(data)
    refused(s.request("POST", configmaps(ns) + "?fieldValidation=Nope", configmap("n")), 422, "Invalid",
            'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Nope": supported values: "", "Ignore", "Strict", "Warn"')
    s.ok("POST", configmaps(ns), configmap("p"))
    refused(s.request("PATCH", configmaps(ns, "p") + "?fieldValidation=Strict", {"extra": 1}, MERGE), 422, "Invalid")
    status, headers, _ = s.exchange("PATCH", configmaps(ns, "p"), json.dumps({"extra": 1}), MERGE)
    assert status == 200 and warnings(headers) == ['299 - "unknown field \\"extra\\""']


def test_updates_and_versions(s):
    ns = s.namespace()
    first = s.ok("POST", configmaps(ns), configmap("a", {"a": "1"}))
    version, path = first["metadata"]["resourceVersion"], configmaps(ns, "a")
    second = s.ok("PUT", path, configmap("a", {"a": "2"}, resourceVersion=version))
    assert int(second["metadata"]["resourceVersion"]) > int(version) and second["metadata"]["uid"] == first["metadata"]["uid"]
    modified = 'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again'
    refused(s.request("PUT", path, configmap("a", {"a": "3"}, resourceVersion=version)), 409, "Conflict", modified)
    refused(s.request("PATCH", path, {"metadata": {"resourceVersion": version}, "data": {"a": "3"}}, MERGE), 409, "Conflict", modified)
    third = s.ok("PUT", path, configmap("a", {"a": "4"}))
    assert third["data"] == {"a": "4"}, "native kinds may be replaced without a version"
    same = s.ok("PUT", path, configmap("a", {"a": "4"}))
    assert same["metadata"]["resourceVersion"] == third["metadata"]["resourceVersion"], "no change, no write"
    kept = s.ok("PUT", path, configmap("a", creationTimestamp="2001-01-01T00:00:00Z", generation=7))
    assert kept["metadata"]["creationTimestamp"] == first["metadata"]["creationTimestamp"] and "generation" not in kept["metadata"] and "data" not in kept
    other = "00000000-0000-4000-8000-000000000000"
    body = refused(s.request("PUT", path, configmap("a", uid=other)), 409, "Conflict")
    assert f"Precondition failed: UID in precondition: {other}, UID in object meta: {first['metadata']['uid']}" in body["message"]
    refused(s.request("PUT", path, configmap("a", deletionTimestamp="2001-01-01T00:00:00Z")), 422, "Invalid",
            'ConfigMap "a" is invalid: metadata.deletionTimestamp: Invalid value: "2001-01-01T00:00:00Z": field is immutable')


def test_writers_that_race_lose_no_update(s):
    """Optimistic locking by hand for replace; the server's own retries for patches; one winner for create and delete."""
    ns = s.namespace()
    path = configmaps(ns, "count")
    s.ok("POST", configmaps(ns), configmap("count", {"n": "0"}))

    def add(_):
        while True:
            now = s.ok("GET", path)
            now["data"]["n"] = str(int(now["data"]["n"]) + 1)
            status, _ = s.request("PUT", path, now)
            if status == 200:
                return
            assert status == 409

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(40)))
        assert s.ok("GET", path)["data"] == {"n": "40"}
        for kind, body in ((MERGE, lambda i: {"data": {f"m{i}": "v"}}), (STRATEGIC, lambda i: {"data": {f"s{i}": "v"}}),
                           (JSON_PATCH, lambda i: [{"op": "add", "path": f"/data/j{i}", "value": "v"}])):
            assert {status for status, _ in pool.map(lambda i: s.request("PATCH", path, body(i), kind), range(40))} == {200}
        assert len(s.ok("GET", path)["data"]) == 121
        tries = sorted(status for status, _ in pool.map(lambda i: s.request("POST", configmaps(ns), configmap("once")), range(20)))
        assert tries == [201] + [409] * 19
        tries = sorted(status for status, _ in pool.map(lambda i: s.request("DELETE", configmaps(ns, "once")), range(20)))
        assert tries == [200] + [404] * 19


def test_immutable_maps_and_secrets(s):
    ns = s.namespace()
    s.ok("POST", configmaps(ns), dict(configmap("a", {"a": "1"}), immutable=True))
    path = configmaps(ns, "a")
    frozen = "Forbidden: field is immutable when `immutable` is set"
    for body, name in ((dict(configmap("a", {"a": "2"}), immutable=True), "data"), (dict(configmap("a", {"a": "1"}), immutable=False), "immutable"),
                       (configmap("a", {"a": "1"}), "immutable")):
        refused(s.request("PUT", path, body), 422, "Invalid", f'ConfigMap "a" is invalid: {name}: {frozen}', [("FieldValueForbidden", name)])
    refused(s.request("PATCH", path, {"binaryData": {"b": "MQ=="}}, MERGE), 422, "Invalid", f'ConfigMap "a" is invalid: binaryData: {frozen}')
    assert merge(s, path, {"metadata": {"labels": {"still": "ok"}}})["metadata"]["labels"] == {"still": "ok"}
    secret = s.ok("POST", f"/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "s"}, "immutable": True, "stringData": {"a": "b"}})
    assert secret["data"] == {"a": "Yg=="} and "stringData" not in secret and secret["type"] == "Opaque"
    refused(s.request("PATCH", f"/api/v1/namespaces/{ns}/secrets/s", {"data": {"a": "Yw=="}}, MERGE), 422, "Invalid", f'Secret "s" is invalid: data: {frozen}')


def test_types_of_secrets(s):
    ns = s.namespace()
    path = f"/api/v1/namespaces/{ns}/secrets"
    for kind, data, missing in [
        ("kubernetes.io/dockerconfigjson", {}, ["data[.dockerconfigjson]"]), ("kubernetes.io/basic-auth", {"x": "y"}, ["data[password]", "data[username]"]),
        ("kubernetes.io/tls", {"tls.crt": "x"}, ["data[tls.key]"]), ("kubernetes.io/ssh-auth", {}, ["data[ssh-privatekey]"]),
        ("kubernetes.io/service-account-token", {}, ["metadata.annotations[kubernetes.io/service-account.name]"]),
    ]:
        refused(s.request("POST", path, {"metadata": {"name": "a"}, "type": kind, "stringData": data}), 422, "Invalid",
                causes=[("FieldValueRequired", f) for f in missing])
    made = s.ok("POST", path, {"metadata": {"name": "a"}, "type": "my.example.org/own", "stringData": {"x": "y"}, "data": {"x": "eno=", "z": "eg=="}})
    assert made["data"] == {"x": "eQ==", "z": "eg=="}, "stringData wins"
    refused(s.request("PATCH", path + "/a", {"type": "Opaque"}, MERGE), 422, "Invalid")


def test_namespaces_label_themselves(s):
    name = unique("ns")
    made = s.ok("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": name} and made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["status"] == {"phase": "Active"}
    after = merge(s, f"/api/v1/namespaces/{name}", {"metadata": {"labels": {"kubernetes.io/metadata.name": "other", "x": "y"}}})
    assert after["metadata"]["labels"] == {"kubernetes.io/metadata.name": name, "x": "y"}
    refused(s.request("PUT", f"/api/v1/namespaces/{name}/finalize", {"metadata": {"name": name}, "spec": {"finalizers": ["kubernetes", "bad"]}}), 422, "Invalid",
            f'Namespace "{name}" is invalid: spec.finalizers[1]: Invalid value: "bad": name is neither a standard finalizer name nor is it fully qualified')


def test_leases(s):
    path = f"/apis/coordination.k8s.io/v1/namespaces/{s.namespace()}/leases"
    spec = {"holderIdentity": "h", "leaseDurationSeconds": 15, "acquireTime": "2001-02-03T04:05:06.123456Z", "renewTime": "2001-02-03T04:05:06.000000Z"}
    assert s.ok("POST", path, {"metadata": {"name": "l"}, "spec": spec})["spec"] == spec
    refused(s.request("POST", path, {"metadata": {"name": "m"}, "spec": {"leaseDurationSeconds": -1, "leaseTransitions": -1}}), 422, "Invalid",
            'Lease.coordination.k8s.io "m" is invalid: [spec.leaseDurationSeconds: Invalid value: -1: must be greater than 0, '
            'spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0]')
    for time, message in (("yesterday", 'parsing time "yesterday" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "yesterday" as "2006"'),
                          ("2001-02-03T04:05:06Z", 'parsing time "2001-02-03T04:05:06Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"')):
        refused(s.request("POST", path, {"metadata": {"name": "m"}, "spec": {"renewTime": time}}), 400, "BadRequest",
                f'Lease in version "v1" cannot be handled as a Lease: {message}')


def test_kinds_that_a_replace_creates(s):
    """Leader election and event recorders put without asking whether it is there; a lease then needs its version."""
    ns = s.namespace()
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l"
    body = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}}
    assert s.request("PUT", lease, body)[0] == 201
    refused(s.request("PUT", lease, body), 422, "Invalid",
            'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update')
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": ns}}
    assert [s.request("PUT", f"/api/v1/namespaces/{ns}/events/e", event)[0] for _ in range(2)] == [201, 200]
    refused(s.request("PUT", configmaps(ns, "no"), configmap("no")), 404, "NotFound")


def test_text_goes_through_unharmed(s):
    ns = s.namespace()
    text = "\u20ac\U0001f600 <&> \u2028 \x00 \x7f \\ \" \t\r\n end "
    s.ok("POST", configmaps(ns), configmap("t", {"t": text}))
    assert s.ok("GET", configmaps(ns, "t"))["data"] == {"t": text}
    assert s.ok("GET", configmaps(ns) + "?fieldSelector=metadata.name%3Dt")["items"][0]["data"] == {"t": text}
    refused(s.request("POST", configmaps(ns), b'{"metadata":{"name":"u"},"data":{"a":"\xff\xfe"}}', {"Content-Type": "application/json"}), 400, "BadRequest")


def test_events_have_two_faces(s):
    ns = s.namespace()
    old, new = f"/api/v1/namespaces/{ns}/events", f"/apis/events.k8s.io/v1/namespaces/{ns}/events"
    s.ok("POST", old, {"metadata": {"name": "e"}, "involvedObject": {"kind": "ConfigMap", "namespace": ns, "name": "a"}, "reason": "Because", "message": "hello",
                       "type": "Normal", "source": {"component": "me"}, "firstTimestamp": "2001-01-01T00:00:00Z", "lastTimestamp": "2001-01-01T00:00:00Z", "count": 3})
    seen = s.ok("GET", new + "/e")
    assert seen["apiVersion"] == "events.k8s.io/v1" and seen["regarding"]["name"] == "a" and seen["note"] == "hello" and seen["deprecatedCount"] == 3
    s.ok("POST", new, {"metadata": {"name": "n"}, "regarding": {"kind": "ConfigMap", "namespace": ns, "name": "a"}, "eventTime": "2001-01-01T00:00:00.000000Z",
                       "reportingController": "example.org/me", "reportingInstance": "me-1", "action": "Do", "reason": "R", "type": "Normal", "note": "hi"})
    seen = s.ok("GET", old + "/n")
    assert seen["apiVersion"] == "v1" and seen["involvedObject"]["name"] == "a" and seen["message"] == "hi" and seen["reportingComponent"] == "example.org/me"
    refused(s.request("POST", old, {"metadata": {"name": "bad"}, "involvedObject": {"namespace": "other"}}), 422, "Invalid",
            'Event "bad" is invalid: involvedObject.namespace: Invalid value: "other": does not match event.namespace')


def test_json_patch(s):
    ns = s.namespace()
    path = configmaps(ns, "a")
    s.ok("POST", configmaps(ns), configmap("a", {"k": "v", "x": "y"}))
    steps = [{"op": "add", "path": "/data/n", "value": "1"}, {"op": "replace", "path": "/data/k", "value": "w"}, {"op": "remove", "path": "/data/x"},
             {"op": "copy", "from": "/data/k", "path": "/data/c"}, {"op": "move", "from": "/data/n", "path": "/data/m"}, {"op": "test", "path": "/data/c", "value": "w"}]
    before = s.ok("PATCH", path, steps, JSON_PATCH)
    assert before["data"] == {"k": "w", "c": "w", "m": "1"}
    rejected = "the server rejected our request due to an error in our request"
    for patch in ([{"op": "test", "path": "/data/k", "value": "nope"}], [{"op": "remove", "path": "/data/absent"}], [{"op": "nope", "path": "/data/k"}],
                  [{"op": "add", "path": "/metadata/labels/a~1b", "value": "x"}], [{"op": "replace", "path": "/data/m", "value": "2"}, {"op": "test", "path": "/x", "value": 1}]):
        refused(s.request("PATCH", path, patch, JSON_PATCH), 422, "Invalid", rejected)
    for patch in ('{"op": "add"}', "not json"):
        assert refused(s.request("PATCH", path, patch, JSON_PATCH), 400, "BadRequest")["message"].startswith("error decoding patch: ")
    refused(s.request("PATCH", path, [{"op": "replace", "path": "/data/k", "value": 7}], JSON_PATCH), 422, "Invalid")
    assert s.ok("PATCH", path, [], JSON_PATCH) == before == s.ok("GET", path), "a patch is whole or nothing"
    labels = [{"op": "add", "path": "/metadata/labels", "value": {"a/b": "x"}}, {"op": "replace", "path": "/metadata/labels/a~1b", "value": "z"}]
    assert s.ok("PATCH", path, labels, JSON_PATCH)["metadata"]["labels"] == {"a/b": "z"}


def test_merge_patch(s):
    ns = s.namespace()
    path = configmaps(ns, "a")
    s.ok("POST", configmaps(ns), configmap("a", {"k": "v", "x": "y"}, labels={"a": "1", "b": "2"}))
    after = merge(s, path, {"data": {"k": None, "z": "1"}, "metadata": {"labels": {"a": None}}})
    assert after["data"] == {"x": "y", "z": "1"} and after["metadata"]["labels"] == {"b": "2"}
    assert merge(s, path, {}) == after and "data" not in merge(s, path, {"data": None})
    for patch, code, reason, message in [
        ({"metadata": {"name": "b"}}, 400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)"),
        ({"metadata": {"namespace": "other"}}, 400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request"),
        ({"data": {"k": 5}}, 422, "Invalid", None), ({"kind": "Secret"}, 422, "Invalid", None), ([], 400, "BadRequest", None)]:
        refused(s.request("PATCH", path, patch, MERGE), code, reason, message)
    refused(s.request("PATCH", path, "{", MERGE), 400, "BadRequest", "error decoding patch: unexpected end of JSON input")
    refused(s.request("PATCH", configmaps(ns, "missing"), {}, MERGE), 404, "NotFound", 'configmaps "missing" not found')


def test_strategic_merge_patch(s):
    ns = s.namespace()
    path = configmaps(ns, "a")
    owner = {"apiVersion": "x.example.org/v1", "kind": "Owner", "name": "x", "uid": "u-1"}
    s.ok("POST", configmaps(ns), configmap("a", {"a": "1"}, finalizers=["example.org/a"], ownerReferences=[owner]))

    def patch(body):
        return s.ok("PATCH", path, body, STRATEGIC)

    assert patch({"data": {"b": "2", "a": None}})["data"] == {"b": "2"}
    assert sorted(patch({"metadata": {"finalizers": ["example.org/b"]}})["metadata"]["finalizers"]) == ["example.org/a", "example.org/b"]
    assert patch({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.org/a"]}})["metadata"]["finalizers"] == ["example.org/b"]
    second = dict(owner, uid="u-2", name="y")
    assert {o["uid"] for o in patch({"metadata": {"ownerReferences": [second]}})["metadata"]["ownerReferences"]} == {"u-1", "u-2"}
    assert patch({"metadata": {"ownerReferences": [{"uid": "u-1", "$patch": "delete"}]}})["metadata"]["ownerReferences"] == [second]
    assert patch({"data": {"$patch": "replace", "only": "x"}})["data"] == {"only": "x"}
    refused(s.request("PATCH", path, {"data": "x"}, STRATEGIC), 422, "Invalid")
    patch({"metadata": {"finalizers": None, "ownerReferences": None}})
    account = f"/api/v1/namespaces/{ns}/serviceaccounts"
    s.ok("POST", account, {"metadata": {"name": "robot"}, "imagePullSecrets": [{"name": "p"}], "secrets": [{"name": "s"}]})
    after = s.ok("PATCH", account + "/robot", {"secrets": [{"name": "t"}], "imagePullSecrets": [{"name": "q"}]}, STRATEGIC)
    assert {x["name"] for x in after["secrets"]} == {"s", "t"} and after["imagePullSecrets"] == [{"name": "q"}], "one list has a merge key, the other is replaced"


def test_patch_types(s):
    ns = s.namespace()
    s.ok("POST", configmaps(ns), configmap("a"))
    for kind in ("application/json", "text/plain", "application/apply-patch+json", "application/strategic-merge-patch+yaml", "application/yaml"):
        refused(s.request("PATCH", configmaps(ns, "a") + "?fieldManager=m", "{}", {"Content-Type": kind}), 415, "UnsupportedMediaType", "415: Unsupported Media Type")
    assert s.ok("PATCH", configmaps(ns, "a"), {"data": {"c": "1"}}, {"Content-Type": "application/merge-patch+json; charset=utf-8"})["data"] == {"c": "1"}


def test_dry_run(s):
    ns = s.namespace()
    made = s.ok("POST", configmaps(ns) + "?dryRun=All", configmap("dry", {"a": "b"}))
    assert made["metadata"]["uid"] and "resourceVersion" not in made["metadata"] and s.request("GET", configmaps(ns, "dry"))[0] == 404
    real = s.ok("POST", configmaps(ns), configmap("a", {"a": "1"}))
    for method, body, headers in (("PUT", configmap("a", {"a": "2"}), None), ("PATCH", {"data": {"a": "3"}}, MERGE)):
        shown = s.ok(method, configmaps(ns, "a") + "?dryRun=All", body, headers)
        assert shown["data"] != real["data"] and shown["metadata"]["resourceVersion"] == real["metadata"]["resourceVersion"]
    s.ok("DELETE", configmaps(ns, "a") + "?dryRun=All")
    s.ok("DELETE", configmaps(ns, "a"), {"dryRun": ["All"]})
    s.ok("DELETE", configmaps(ns) + "?dryRun=All")
    assert s.ok("GET", configmaps(ns, "a")) == real
    for path, kind in ((configmaps(ns) + "?dryRun=Nope", '["Nope"]'), (configmaps(ns) + "?dryRun=", '[""]')):
        refused(s.request("POST", path, configmap("e")), 422, "Invalid",
                f'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: {kind}: supported values: "All"')


def test_quota(s):
    ns = s.namespace()
    quota, secrets = f"/api/v1/namespaces/{ns}/resourcequotas", f"/api/v1/namespaces/{ns}/secrets"
    s.ok("POST", quota, {"metadata": {"name": "q"}, "spec": {"hard": {"secrets": "2", "count/leases.coordination.k8s.io": "0"}}})
    wait_until(lambda: s.ok("GET", quota + "/q")["status"].get("used", {}).get("secrets") == "0", what="the quota's first count")
    for name in ("one", "two"):
        s.ok("POST", secrets, {"metadata": {"name": name}})
    full = 'secrets "three" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=2, limited: secrets=2'
    for parameters in ("", "?dryRun=All"):
        refused(s.request("POST", secrets + parameters, {"metadata": {"name": "three"}}), 403, "Forbidden", full)
    refused(s.request("POST", f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", {"metadata": {"name": "l"}, "spec": {}}), 403, "Forbidden",
            'leases.coordination.k8s.io "l" is forbidden: exceeded quota: q, requested: count/leases.coordination.k8s.io=1, '
            "used: count/leases.coordination.k8s.io=0, limited: count/leases.coordination.k8s.io=0")
    s.ok("DELETE", secrets + "/one")
    wait_until(lambda: s.request("POST", secrets, {"metadata": {"name": "three"}})[0] == 201, what="room after a deletion")
    refused(s.request("POST", quota, {"metadata": {"name": "bad"}, "spec": {"hard": {"pods": "x"}}}), 400, "BadRequest",
            'ResourceQuota in version "v1" cannot be handled as a ResourceQuota: quantities must match the regular expression '
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")


def test_claims_within_limits(s):
    ns = s.namespace()
    s.ok("POST", f"/api/v1/namespaces/{ns}/limitranges", {"metadata": {"name": "lr"}, "spec": {"limits": [
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}]}})
    claims = f"/api/v1/namespaces/{ns}/persistentvolumeclaims"

    def claim(size):
        return {"metadata": {"name": "p"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}}

    refused(s.request("POST", claims, claim("3Gi")), 403, "Forbidden",
            'persistentvolumeclaims "p" is forbidden: maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi')
    refused(s.request("POST", claims, claim("1Mi")), 403, "Forbidden",
            'persistentvolumeclaims "p" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi')
    assert s.ok("POST", claims, claim("1.5Gi"))["spec"]["resources"]["requests"] == {"storage": "1536Mi"}, "quantities are made canonical"
