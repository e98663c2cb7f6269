# SPDX-License-Identifier: Apache-2.0
"""Bodies in protobuf, as kubectl since 1.32 and other clients written in Go send them."""
import base64
import json
import re
import tempfile

from seth import unique

PROTOBUF = "application/vnd.kubernetes.protobuf"


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n >= 0x80:
        out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
    return out + bytes([n])


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def body(api_version, kind, message):
    return b"k8s\0" + text(1, text(1, api_version) + text(2, kind)) + text(2, message) + text(3, "") + text(4, "")


def meta(name, *more):
    return text(1, text(1, name) + text(2, "") + text(3, "") + number(7, 0) + text(8, b"") + b"".join(more))


def send(s, method, path, data, accept=PROTOBUF + ",application/json"):
    return s.request(method, path, data, {"Content-Type": PROTOBUF, "Accept": accept})


def read(s, *what):
    return json.loads(s.kubectl("get", *what, "-o", "json"))


def test_kubectl_creates_every_kind_it_knows(s):
    ns = s.namespace()
    binary = bytes(range(256))
    with tempfile.NamedTemporaryFile() as f:
        f.write(binary)
        f.flush()
        s.kubectl("-n", ns, "create", "configmap", "c", "--from-literal=a=b", f"--from-file=z={f.name}")
    made = read(s, "-n", ns, "configmap", "c")
    assert made["data"] == {"a": "b"} and base64.b64decode(made["binaryData"]["z"]) == binary
    s.kubectl("-n", ns, "create", "secret", "generic", "s", "--from-literal=p=q")
    made = read(s, "-n", ns, "secret", "s")
    assert made["data"] == {"p": "cQ=="} and made["type"] == "Opaque"
    s.kubectl("-n", ns, "create", "secret", "docker-registry", "d", "--docker-username=u", "--docker-password=p")
    assert read(s, "-n", ns, "secret", "d")["type"] == "kubernetes.io/dockerconfigjson"
    s.kubectl("-n", ns, "create", "serviceaccount", "a")
    assert "secrets" not in read(s, "-n", ns, "serviceaccount", "a")
    s.kubectl("-n", ns, "create", "quota", "q", "--hard=cpu=1,memory=1024Mi")
    assert read(s, "-n", ns, "quota", "q")["spec"] == {"hard": {"cpu": "1", "memory": "1Gi"}}
    name = unique("ns")
    s.kubectl("create", "namespace", name)
    assert read(s, "namespace", name)["spec"] == {"finalizers": ["kubernetes"]}


def test_kubectl_creates_roles_and_bindings(s):
    ns, cluster = s.namespace(), unique("r")
    s.kubectl("-n", ns, "create", "role", "r", "--verb=get,list", "--resource=configmaps", "--resource-name=x")
    assert read(s, "-n", ns, "role", "r")["rules"] == [
        {"apiGroups": [""], "resourceNames": ["x"], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    s.kubectl("-n", ns, "create", "rolebinding", "b", "--role=r", "--user=u", "--serviceaccount=d:s")
    group = "rbac.authorization.k8s.io"
    made = read(s, "-n", ns, "rolebinding", "b")
    assert made["roleRef"] == {"apiGroup": group, "kind": "Role", "name": "r"}
    assert made["subjects"] == [{"apiGroup": group, "kind": "User", "name": "u"},
                                {"kind": "ServiceAccount", "name": "s", "namespace": "d"}]
    s.kubectl("create", "clusterrole", cluster, "--aggregation-rule=a=b")
    assert read(s, "clusterrole", cluster)["aggregationRule"] == {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    s.kubectl("create", "clusterrolebinding", cluster, f"--clusterrole={cluster}", "--group=g")
    assert read(s, "clusterrolebinding", cluster)["subjects"] == [{"apiGroup": group, "kind": "Group", "name": "g"}]


def test_kubectl_hears_errors(s):
    ns = s.namespace()
    s.kubectl("-n", ns, "create", "configmap", "c")
    done = s.kubectl("-n", ns, "create", "configmap", "c", check=False)
    assert done.returncode and 'configmaps "c" already exists' in done.stderr


def test_a_lease_is_taken_and_renewed(s):
    ns = s.namespace()
    path = f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"

    def lease(seconds, *more):
        time = text(4, number(1, seconds) + number(2, 123456789))
        return body("coordination.k8s.io/v1", "Lease", meta("l", *more) + text(2, text(1, "me") + number(2, 15) + time))

    status, made = send(s, "POST", path, lease(1700000000))
    assert status == 201, made
    assert made["spec"] == {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2023-11-14T22:13:20.123456Z"}
    revision = made["metadata"]["resourceVersion"]
    status, changed = send(s, "PUT", path + "/l", lease(1700000010, text(6, revision)))
    assert status == 200 and changed["spec"]["renewTime"] == "2023-11-14T22:13:30.123456Z"
    status, answer = send(s, "PUT", path + "/l", lease(1700000020, text(6, revision)))
    assert status == 409 and answer["reason"] == "Conflict"


def test_an_event_goes_through_either_group(s):
    ns = s.namespace()
    reference = text(1, "Node") + text(2, ns) + text(3, "n")
    event = body("events.k8s.io/v1", "Event", meta("e") + text(2, number(1, 1700000000)) + text(4, "c/d") + text(5, "i") +
                 text(6, "Act") + text(7, "Reason") + text(8, reference) + text(10, b"caf\xc3\xa9 \xff") + text(11, "Normal"))
    status, made = send(s, "POST", f"/apis/events.k8s.io/v1/namespaces/{ns}/events", event)
    assert status == 201 and made["note"] == "caf\u00e9 \ufffd", made
    assert s.ok("GET", f"/api/v1/namespaces/{ns}/events/e")["involvedObject"]["name"] == "n"


def test_a_definition_keeps_its_schema(s):
    plural = unique("p").replace("-", "")
    name = f"{plural}.example.org"
    integer = text(5, "integer") + varint(9 << 3 | 1) + b"\0\0\0\0\0\0\x50\x40" + text(8, text(1, "3"))
    spec = text(5, "object") + text(29, text(1, "n") + text(2, integer))
    schema = text(5, "object") + text(29, text(1, "status") + text(2, text(5, "object") + text(30, number(1, 1)))) + \
        text(29, text(1, "spec") + text(2, spec))
    scale = text(2, text(1, ".spec.n") + text(2, ".status.n"))
    version = text(7, text(1, "v1") + number(2, 1) + number(3, 1) + text(4, text(1, schema)) + text(5, text(1, b"") + scale))
    crd = body("apiextensions.k8s.io/v1", "CustomResourceDefinition", meta(name) + text(2, text(1, "example.org") + text(
        3, text(1, plural) + text(4, plural.capitalize())) + text(4, "Namespaced") + version))
    status, made = send(s, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    assert status == 201, made
    properties = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert properties["spec"]["properties"] == {"n": {"type": "integer", "maximum": 64, "default": 3}}
    assert properties["status"] == {"type": "object", "additionalProperties": True}
    assert made["spec"]["versions"][0]["subresources"] == {
        "status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}
    custom = f"/apis/example.org/v1/namespaces/default/{plural}"
    s.kubectl("wait", "--for=condition=Established", "crd", name, "--timeout=30s")
    status, answer = send(s, "POST", custom, body("example.org/v1", plural.capitalize(), meta("x")))
    assert status == 415 and answer["reason"] == "UnsupportedMediaType", answer
    s.ok("POST", custom, {"apiVersion": "example.org/v1", "kind": plural.capitalize(), "metadata": {"name": "x"}, "spec": {}})
    status, answer = send(s, "PUT", custom + "/x/scale", body("autoscaling/v1", "Scale", meta("x") + text(2, number(1, 7))))
    assert status == 200 and answer["spec"]["replicas"] == 7, answer
    assert s.ok("GET", custom + "/x")["spec"] == {"n": 7}
    status, answer = send(s, "DELETE", custom + "/x", body("v1", "DeleteOptions", text(2, text(1, "no such uid"))))
    assert status == 409, answer
    assert send(s, "DELETE", custom + "/x", body("example.org/v1", "DeleteOptions", b""))[0] == 200


def test_delete_options_count(s):
    ns = s.namespace()
    path = f"/api/v1/namespaces/{ns}/configmaps"
    uid = s.ok("POST", path, {"metadata": {"name": "c"}})["metadata"]["uid"]
    status, answer = send(s, "DELETE", path + "/c", body("v1", "DeleteOptions", text(2, text(1, "another"))))
    assert status == 409 and answer["reason"] == "Conflict"
    assert send(s, "DELETE", path + "/c", body("v1", "DeleteOptions", text(5, "All")))[0] == 200
    s.ok("GET", path + "/c")
    status, answer = send(s, "DELETE", path + "/c", body("v1", "Secret", b""))
    assert status == 400, answer
    assert send(s, "DELETE", path + "/c", body("v1", "DeleteOptions", text(2, text(1, uid)) + text(4, "Background")))[0] == 200
    assert s.request("GET", path + "/c")[0] == 404


def test_bad_bodies_are_told(s):
    ns = s.namespace()
    path = f"/api/v1/namespaces/{ns}/configmaps"
    recognized = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
    for data, message in (
            (b'{"apiVersion":"v1","kind":"ConfigMap"}',
             'the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a protobuf '
             'message, expected prefix [107 56 115 0] ({"apiVersion":"v1","kind":"Con ...)'),
            (b"k8s\0", "the object provided is unrecognized (must be of type ConfigMap): empty body (6b387300)"),
            (body("v1", "ConfigMap", b"\x0a\x05"), recognized + "unexpected EOF"),
            (body("v1", "ConfigMap", number(2, 1)), recognized + "proto: wrong wireType = 0 for field data")):
        status, answer = send(s, "POST", path, data)
        assert status == 400 and answer["message"] == message, answer
    status, answer = send(s, "POST", path, body("v1", "Secret", meta("x")))
    assert status == 400 and re.search("cannot be handled as a ConfigMap", answer["message"]), answer


def test_a_client_of_protobuf_alone_reads_the_refusal(s):
    status, headers, data = s.exchange("GET", "/api/v1/namespaces/default", headers={"Accept": PROTOBUF})
    assert status == 406 and headers["Content-Type"] == PROTOBUF
    assert data.startswith(b"k8s\0") and number(6, 406) in data and b"NotAcceptable" in data
    status, headers, _ = s.exchange("GET", "/api/v1/namespaces/default", headers={"Accept": PROTOBUF + ", */*"})
    assert status == 200 and headers["Content-Type"] == "application/json"
