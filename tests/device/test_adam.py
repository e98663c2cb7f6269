# SPDX-License-Identifier: Apache-2.0
"""The REST API of Adam, all 23 endpoints, as its tools use it: bodies, content types, statuses, and where Adam loses things and we do not."""
import base64
import contextlib
import json
import uuid

import eve
import wire
from eve import PROTO, entry
from seth import Server, unique, wait_until

JSON, TEXT = "application/json", "text/plain"
DEVICES = "/apis/eve.lfedge.org/v1beta1/namespaces/default/devices"
CONFIGS = "/apis/eve.lfedge.org/v1beta1/namespaces/default/deviceconfigs"


def b64(data):
    return base64.b64encode(data).decode()


class Adam:
    def __init__(self, server):
        self.server = server

    def call(self, method, path, body=None, kind=None, accept=None):
        """(status, content type, bytes)"""
        headers = {**({"Content-Type": kind} if kind else {}), **({"Accept": accept} if accept else {})}
        body = json.dumps(body) if isinstance(body, dict) else body
        status, answer, data = self.server.exchange(method, f"/admin{path}", body, headers)
        return status, answer.get_content_type(), data

    def get(self, path, kind=JSON, **more):
        status, have, data = self.call("GET", path, **more)
        assert (status, have) == (200, kind), (path, status, have, data)
        return data

    def json(self, path):
        return json.loads(self.get(path))

    def words(self, path):
        data = self.get(path, TEXT).decode()
        assert not data.endswith("\n"), data
        return data.split("\n") if data else []

    def done(self, method, path, body=None, kind=None, status=200):
        have, _, data = self.call(method, path, body, kind)
        assert (have, data) == (status, b""), (method, path, have, data)

    def refused(self, status, method, path, body=None, kind=None):
        have, content, data = self.call(method, path, body, kind)
        assert have == status and content == TEXT, (method, path, have, content, data)
        return data.decode()

    def onboard(self, identity, serial="*"):
        self.done("POST", "/onboard", {"Cert": b64(identity.pem), "Serial": serial}, JSON, 201)

    def device(self, **more):
        """One that has registered with a certificate that Adam's tools made known."""
        onboarding = eve.onboarding_identity()
        self.onboard(onboarding)
        d = eve.Device("127.0.0.1", self.server.device_port, (self.server.dir / "ca.pem").read_bytes(), onboarding, **more)
        d.certs()
        wait_until(lambda: d.register().status in (200, 201), what="the onboarding certificate to count")
        return d.onboard()

    def lines(self, d, what, **more):
        return [json.loads(line) for line in self.get(f"/device/{d.uuid}/{what}", **more).splitlines()]

    @contextlib.contextmanager
    def stream(self, path):
        """What comes on an endless answer, line by line."""
        connection = self.server.connect()
        try:
            connection.request("GET", f"/admin{path}", headers={"X-Stream": "true"})
            answer = connection.getresponse()
            assert answer.status == 200 and answer.headers.get_content_type() == JSON, answer.status
            yield answer
        finally:
            connection.close()


def kept(post):
    """Posts until it is taken: a machine under load puts devices off with 503, and they come again."""
    answer = wait_until(lambda: (a := post()).status != 503 and a, what="the server to have time")
    assert answer.status == 201, answer


def cn(identity):
    return identity.certificate.subject.rfc4514_string().split("=")[-1]


# ---- onboarding certificates

def test_onboarding_certificates(s):
    a = Adam(s)
    one, two = eve.onboarding_identity(), eve.issue("Factory 7: Süd/West", None)
    a.onboard(one, "s1,s2")
    a.onboard(two)
    assert {cn(one), "Factory 7: Süd/West"} <= set(a.words("/onboard"))
    assert a.json(f"/onboard/{cn(one)}") == {"Cert": b64(one.pem), "Serial": "s1,s2"}
    a.onboard(one, "s3")  # again: the serials are others then
    assert a.json(f"/onboard/{cn(one)}")["Serial"] == "s3"
    assert a.words("/onboard").count(cn(one)) == 1
    renewed = eve.issue(cn(one), None)
    a.onboard(renewed, "s3")  # the same name, another certificate
    assert a.json(f"/onboard/{cn(one)}")["Cert"] == b64(renewed.pem)
    a.done("DELETE", f"/onboard/{cn(one)}")
    a.refused(404, "GET", f"/onboard/{cn(one)}")
    a.refused(404, "DELETE", f"/onboard/{cn(one)}")
    names = [o["metadata"]["name"] for o in s.ok("GET", DEVICES.replace("devices", "onboardcertificates"))["items"]]
    assert any(n.startswith("factory-7-s-d-west-") for n in names), names


def test_bad_onboarding_certificates(s):
    a = Adam(s)
    body = {"Cert": b64(eve.onboarding_identity().pem), "Serial": "*"}
    a.refused(400, "POST", "/onboard", body)  # without a content type
    a.refused(400, "POST", "/onboard", body, TEXT)
    a.refused(400, "POST", "/onboard", "{", JSON)
    a.refused(400, "POST", "/onboard", {"Cert": "bm8=", "Serial": "*"}, JSON)
    a.refused(400, "POST", "/onboard", {"Serial": "*"}, JSON)
    assert "*" in a.refused(400, "POST", "/onboard", {**body, "Serial": ""}, JSON)
    a.done("POST", "/onboard", {k.lower(): v for k, v in body.items()}, "application/json; charset=utf-8", 201)


# ---- devices

def test_a_device_that_registers(s):
    a = Adam(s)
    d = a.device(serial="serial-7")
    assert d.uuid in a.words("/device")
    assert a.json(f"/device/{d.uuid}") == {"Cert": b64(d.identity.pem), "Onboard": b64(d.onboarding.pem), "Serial": "serial-7"}
    a.done("DELETE", f"/device/{d.uuid}")
    a.refused(404, "GET", f"/device/{d.uuid}")
    a.refused(404, "DELETE", f"/device/{d.uuid}")
    assert d.uuid not in a.words("/device")


def test_a_device_made_known_before(s):
    a = Adam(s)
    for kind, extra in ((JSON, {}), (TEXT, {"Serial": "x1", "Onboard": b64(eve.onboarding_identity().pem)})):
        identity = eve.device_identity()
        before = set(a.words("/device"))
        a.done("POST", "/device", {"Cert": b64(identity.pem), **extra}, kind, 201)
        added, = set(a.words("/device")) - before
        assert a.json(f"/device/{added}") == {"Cert": b64(identity.pem), "Onboard": None, "Serial": "", **extra}
        a.refused(409, "POST", "/device", {"Cert": b64(identity.pem)}, kind)
        d = eve.Device("127.0.0.1", s.device_port, (s.dir / "ca.pem").read_bytes(), identity=identity).onboard()
        assert d.uuid == added and d.config()[0].status == 200


def test_bad_devices(s):
    a = Adam(s)
    a.refused(400, "POST", "/device", {"Cert": b64(eve.device_identity().pem)})
    assert "bad device cert" in a.refused(400, "POST", "/device", {"Cert": "bm8="}, JSON)
    assert "bad onboard cert" in a.refused(400, "POST", "/device", {"Cert": b64(eve.device_identity().pem), "Onboard": "bm8="}, JSON)
    a.refused(400, "POST", "/device", "nonsense", JSON)
    for what in ("", "/config", "/logs", "/info", "/metrics", "/requests", "/flowlogs", "/certs", "/options", f"/app/{uuid.uuid4()}/logs"):
        a.refused(404, "GET", f"/device/{uuid.uuid4()}{what}")
        a.refused(400, "GET", f"/device/7{what}")
    for method in ("config", "options"):
        a.refused(404, "PUT", f"/device/{uuid.uuid4()}/{method}", "{}", JSON)


def test_devices_of_other_namespaces_are_none_of_adams(s):
    a, ns, other = Adam(s), s.namespace(), uuid.uuid4().hex[:8]
    o = s.ok("POST", f"/apis/eve.lfedge.org/v1beta1/namespaces/{ns}/devices",
             {"apiVersion": "eve.lfedge.org/v1beta1", "kind": "Device", "metadata": {"name": other}})
    assert o["status"]["uuid"] not in a.words("/device")
    a.refused(404, "GET", f"/device/{o['status']['uuid']}")
    a.refused(404, "DELETE", f"/device/{o['status']['uuid']}")


def test_paths_that_are_none(s):
    a = Adam(s)
    for path in ("", "/", "/nothing", "/device/", f"/device/{uuid.uuid4()}/nothing", "/onboard/a/b", "/options/x"):
        assert a.refused(404, "GET", path) == "Not Found\n"
    assert a.call("PATCH", "/device")[0] == 405
    assert a.call("DELETE", "/options")[0] == 405


# ---- configurations

def test_the_configuration_of_a_device_that_has_none_is_what_it_is_given(s):
    a = Adam(s)
    d = a.device()
    shown, given = a.json(f"/device/{d.uuid}/config"), d.config()[1]["config"]
    assert shown["id"] == {"uuid": d.uuid, "version": "1"} == given["id"]
    assert shown["systemAdapterList"][0]["name"] == given["systemAdapterList"][0]["name"] == "eth0"


def test_get_edit_put_keeps_every_field(s):
    """Adam drops maintenance_mode and the like, and fails on the names of enums."""
    a = Adam(s)
    d = a.device()
    assert d.config()[0].status == 200
    app = str(uuid.uuid4())
    config = {"maintenance_mode": True, "reboot": {"counter": 3}, "configItems": [{"key": "timer.config.interval", "value": "60"}],
              "datastores": [{"id": str(uuid.uuid4()), "dType": "DsHttps", "fqdn": "https://example.org"}],
              "apps": [{"uuidandversion": {"uuid": app, "version": "1"}, "displayname": "a", "fixedresources": {"memory": 1024, "vcpus": 1}, "activate": True}]}
    a.done("PUT", f"/device/{d.uuid}/config", config)
    first = a.json(f"/device/{d.uuid}/config")
    assert first["maintenanceMode"] is True and first["id"] == {"uuid": d.uuid, "version": "2"}, first
    answer, response = d.config()
    assert answer.status == 200 and response["config"]["maintenance_mode"] and response["config"]["apps"][0]["displayname"] == "a"
    first["apps"][0]["displayname"] = "b"
    del first["id"]
    a.done("PUT", f"/device/{d.uuid}/config", first, JSON)
    second = a.json(f"/device/{d.uuid}/config")
    assert second.pop("id") == {"uuid": d.uuid, "version": "3"} and second == first, second
    answer, response = d.config()
    assert answer.status == 200 and response["config"]["maintenance_mode"] and response["config"]["apps"][0]["displayname"] == "b"
    assert response["config"]["datastores"][0]["dType"] == wire.number("config.DsType", "DsHttps")
    assert d.config()[0].status == 304
    objects = s.ok("GET", f"{CONFIGS}/{a_name(d)}")
    assert objects["spec"]["config"]["apps"][0]["displayname"] == "b"


def test_what_is_put_is_whole_and_can_be_given_back(s):
    a = Adam(s)
    d = a.device()
    assert d.config()[0].status == 200
    path = f"{CONFIGS}/{a_name(d)}"
    a.done("PUT", f"/device/{d.uuid}/config", {"configItems": [{"key": "timer.config.interval", "value": "60"}]})
    assert s.ok("GET", path)["metadata"]["annotations"]["eve.lfedge.org/composed"] == "false"
    given = d.config()[1]["config"]
    assert "systemAdapterList" not in given and given["configItems"], given
    # What would be composed is not: neither now nor after another PUT.
    device = f"{DEVICES}/{a_name(d)}"
    s.ok("PATCH", device, {"metadata": {"annotations": {"eve.lfedge.org/config.timer.metric.interval": "61"}}}, {"Content-Type": "application/merge-patch+json"})
    a.done("PUT", f"/device/{d.uuid}/config", {"configItems": [{"key": "timer.config.interval", "value": "62"}]})
    assert [i["value"] for i in d.config()[1]["config"]["configItems"]] == ["62"]
    s.ok("DELETE", path)
    composed = wait_until(lambda: (r := d.config()[1]) and r["config"].get("systemAdapterList") and r["config"], what="what is composed")
    assert [(i["key"], i["value"]) for i in composed["configItems"]] == [("timer.metric.interval", "61")]
    assert int(composed["id"]["version"]) > 2 and composed["config_timestamp"]["seconds"] >= given["config_timestamp"]["seconds"]


def a_name(d):
    return f"eve-{d.identity.der_hash.hex()[:8]}"


def test_configurations_in_bytes_keep_even_what_nobody_here_knows(s):
    a = Adam(s)
    d = a.device()
    unknown = wire.varint(4000 << 3 | 2) + wire.varint(6) + b"future"
    inner = wire.varint(99 << 3) + wire.varint(7)
    config = wire.encode("config.EdgeDevConfig", {"id": {"uuid": d.uuid, "version": "41"}, "device_name": "edge"}) + unknown
    network = wire.encode("config.NetworkConfig", {"id": "n"}) + inner
    number = next(n for n, f in wire.MESSAGES["config.EdgeDevConfig"].items() if f.name == "networks")
    config += wire.varint(number << 3 | 2) + wire.varint(len(network)) + network
    a.done("PUT", f"/device/{d.uuid}/config", config, PROTO)
    shown = a.get(f"/device/{d.uuid}/config", PROTO, accept=PROTO)
    assert unknown in shown and inner in shown
    assert wire.decode("config.EdgeDevConfig", shown)["id"] == {"uuid": d.uuid, "version": "41"}
    answer, _ = d.config()
    assert answer.status == 200 and unknown in eve.payload_of(answer.body) and inner in eve.payload_of(answer.body)
    text = a.json(f"/device/{d.uuid}/config")
    text["deviceName"] = "other"
    a.done("PUT", f"/device/{d.uuid}/config", text, JSON)
    shown = a.get(f"/device/{d.uuid}/config", PROTO, accept=PROTO)
    assert unknown in shown and inner in shown and wire.decode("config.EdgeDevConfig", shown)["device_name"] == "other"
    for accept in (JSON, "*/*", f"{PROTO}, {JSON}", "text/html"):
        a.get(f"/device/{d.uuid}/config", JSON, accept=accept)


def test_bad_configurations_change_nothing(s):
    a = Adam(s)
    d = a.device()
    path = f"/device/{d.uuid}/config"
    a.done("PUT", path, {"id": {"version": "seven"}, "deviceName": "kept"})
    assert "mismatched UUID" in a.refused(400, "PUT", path, {"id": {"uuid": str(uuid.uuid4())}}, JSON)
    assert "apps[0].nothing: unknown field" in a.refused(400, "PUT", path, {"apps": [{"nothing": 1}]}, JSON)
    assert "seven" in a.refused(400, "PUT", path, {"deviceName": "x"}, JSON)
    a.refused(400, "PUT", path, "{", JSON)
    a.refused(400, "PUT", path, b"\xff\xff\xff", PROTO)
    a.refused(400, "PUT", "/device/7/config", {}, JSON)
    assert a.json(path) == {"id": {"uuid": d.uuid, "version": "seven"}, "deviceName": "kept"}
    a.done("PUT", path, {"id": {"uuid": d.uuid.upper(), "version": "8"}})
    a.done("PUT", path, {})
    assert a.json(path) == {"id": {"uuid": d.uuid, "version": "9"}}


# ---- what devices send

def test_logs(s):
    a = Adam(s)
    d = a.device()
    assert a.lines(d, "logs") == []
    kept(lambda: d.newlogs([entry("one", msgid=5, when=1700000000.5, tags={"k": "v"}, filename="f.go", function="main"), entry("two", when=1700000001)]))
    kept(lambda: d.logs([entry("three", when=1700000002)]))
    one, two, three = a.lines(d, "logs")
    assert one == {"severity": "info", "source": "test", "iid": "1", "content": "one", "msgid": "5", "tags": {"k": "v"},
                   "timestamp": "2023-11-14T22:13:20.500Z", "filename": "f.go", "function": "main"}, one
    assert two["timestamp"] == "2023-11-14T22:13:21Z" and two["content"] == "two" and three["content"] == "three"


def test_logs_of_applications(s):
    a = Adam(s)
    d, app, other = a.device(), str(uuid.uuid4()), str(uuid.uuid4())
    kept(lambda: d.app_newlogs(app, [entry("mine")]))
    kept(lambda: d.app_logs(app, [entry("mine too")]))
    kept(lambda: d.app_logs(other, [entry("other")]))
    assert [e["content"] for e in a.lines(d, f"app/{app}/logs")] == ["mine", "mine too"]
    assert a.lines(d, f"app/{uuid.uuid4()}/logs") == [] and a.lines(d, "logs") == []
    a.refused(400, "GET", f"/device/{d.uuid}/app/7/logs")


def test_info_metrics_and_flows(s):
    a = Adam(s)
    d = a.device()
    kept(lambda: d.info({"ztype": "ZiDevice", "dinfo": {"machineArch": "x86_64"}}))
    kept(lambda: d.metrics({"dm": {"cpuMetric": {"total": 2**40}}}))
    kept(lambda: d.flowlog(dns=[{"hostName": "example.org"}], uuid=str(uuid.uuid4())))
    info, = a.lines(d, "info")
    assert info["ztype"] == "ZiDevice" and info["dinfo"] == {"machineArch": "x86_64"} and info["devId"] == d.uuid
    metrics, = a.lines(d, "metrics")
    assert metrics["devID"] == d.uuid and metrics["dm"]["cpuMetric"]["total"] == str(2**40)
    flow, = a.lines(d, "flowlogs")
    assert flow["dnsReqs"] == [{"hostName": "example.org"}]
    raw = a.get(f"/device/{d.uuid}/info", PROTO, accept=PROTO)
    assert raw.endswith(b"\n") and wire.decode("info.ZInfoMsg", raw[:-1])["devId"] == d.uuid


def test_requests(s):
    a = Adam(s)
    d = a.device()
    assert d.config()[0].status == 200
    wait_until(lambda: any(r["url"].endswith("/config") for r in a.lines(d, "requests")), what="the request to be noted")
    request = next(r for r in a.lines(d, "requests") if r["url"].endswith("/config"))
    assert set(request) == {"timestamp", "uuid", "client-ip", "method", "url"} and request["uuid"] == d.uuid, request
    assert request["method"] == "POST" and request["client-ip"] == "127.0.0.1"


def test_streams_have_everything_new_and_nothing_old(s):
    a = Adam(s)
    d, app = a.device(), str(uuid.uuid4())
    cases = {"logs": lambda n: d.newlogs([entry(f"line-{n}")]), "info": lambda n: d.info({"ztype": "ZiDevice", "dinfo": {"machineArch": f"line-{n}"}}),
             "metrics": lambda n: d.metrics({"dm": {"cpuMetric": {"total": 1000 + n}}}), "flowlogs": lambda n: d.flowlog(dns=[{"hostName": f"line-{n}"}]),
             f"app/{app}/logs": lambda n: d.app_logs(app, [entry(f"line-{n}")])}
    for what, post in cases.items():
        kept(lambda: post(0))
        with a.stream(f"/device/{d.uuid}/{what}") as lines:
            for n in (1, 2):
                kept(lambda: post(n))
                line = json.loads(lines.readline())
                assert f"line-{n}" in json.dumps(line) or str(1000 + n) in json.dumps(line), (what, line)


def test_a_stream_that_nobody_reads_loses_nothing(s):
    a = Adam(s)
    d = a.device()
    with a.stream(f"/device/{d.uuid}/logs") as lines:
        for n in range(30):
            kept(lambda: d.newlogs([entry(f"{n}-{i}-" + "x" * 500) for i in range(200)]))
        seen = [json.loads(lines.readline())["content"].rsplit("-", 1)[0] for _ in range(6000)]
    assert seen == [f"{n}-{i}" for n in range(30) for i in range(200)]


def test_a_stream_ends_with_its_device(s):
    a = Adam(s)
    d = a.device()
    with a.stream(f"/device/{d.uuid}/logs") as lines:
        kept(lambda: d.newlogs([entry("last words")]))
        assert b"last words" in lines.readline()
        a.done("DELETE", f"/device/{d.uuid}")
        assert lines.read() == b""


def test_a_server_that_stops_ends_its_streams():
    with Server() as own:
        a = Adam(own)
        d = a.device()
        with a.stream(f"/device/{d.uuid}/info") as lines:
            kept(lambda: d.info({"ztype": "ZiDevice", "dinfo": {}}))
            assert lines.readline()
            assert own.stop() == 0
            assert lines.read() == b""


# ---- attestation

def test_certificates_of_a_device(s):
    a = Adam(s)
    d = a.device()
    a.refused(404, "GET", f"/device/{d.uuid}/certs")
    assert d.attest_certs()[0].status == 201
    certs = a.json(f"/device/{d.uuid}/certs")["certs"]
    assert {c["type"] for c in certs} == {eve.ECDH_CERT, eve.QUOTE_CERT}  # numbers, as Go's plain JSON has enums
    ecdh = next(c for c in certs if c["type"] == eve.ECDH_CERT)
    assert ecdh == {"hashAlgo": 1, "certHash": b64(d.ecdh_identity.pem_hash[:16]), "type": eve.ECDH_CERT, "cert": b64(d.ecdh_identity.pem)}


def test_options_of_a_device(s):
    a = Adam(s)
    d = a.device()
    path = f"/device/{d.uuid}/options"
    assert a.json(path) == {"nonce": "", "integrityToken": "", "receivedPCRTemplate": None, "attested": False, "eventLog": None}
    nonce = d.nonce()
    assert a.json(path)["nonce"] == nonce.hex()
    answer, result = d.quote()  # a device without a TPM
    assert answer.status == 201 and result["response"] == eve.SUCCESS, result
    options = a.json(path)
    assert options["attested"] is True and options["integrityToken"].encode() == d.token
    a.done("PUT", path, {**options, "integrityToken": "another"}, JSON)
    assert a.json(path)["integrityToken"] == "another"
    a.done("PUT", path, {}, JSON)
    assert a.json(path)["attested"] is False
    a.refused(400, "PUT", path, {"integrityToken": 7}, JSON)
    a.refused(400, "PUT", path, "[]", JSON)


def test_without_its_token_a_device_must_attest_again(s):
    a = Adam(s)
    d = a.device()
    s.ok("PATCH", f"{DEVICES}/{a_name(d)}", {"metadata": {"annotations": {"eve.lfedge.org/attestation": "enforce"}}}, {"Content-Type": "application/merge-patch+json"})
    wait_until(lambda: d.config(known="")[0].status == 403, what="enforcement")
    d.nonce()
    assert d.quote()[1]["response"] == eve.SUCCESS
    assert d.config(known="")[0].status == 200
    a.done("PUT", f"/device/{d.uuid}/options", {}, JSON)
    assert d.config(known="")[0].status == 403


def test_global_options():
    with Server() as own:
        a = Adam(own)
        assert a.json("/options") == {"enforceTemplateAttestation": False, "PCRTemplates": []}
        options = {"enforceTemplateAttestation": True, "PCRTemplates": [
            {"eveVersion": "13.4.0", "firmwareVersion": "", "PCRValues": [{"index": 0, "value": "*"}, {"index": 8, "value": "00" * 32}]}]}
        a.done("PUT", "/options", options, JSON)
        assert a.json("/options") == options
        maps = "/api/v1/namespaces/eve-system/configmaps"
        assert own.ok("GET", f"{maps}/global-options")["data"]["attestation"] == "enforce"
        assert json.loads(own.ok("GET", f"{maps}/pcr-templates")["data"]["templates.json"]) == options["PCRTemplates"]
        a.done("PUT", "/options", {**options, "enforceTemplateAttestation": False}, JSON)
        assert a.json("/options") == {**options, "enforceTemplateAttestation": False}
        assert own.ok("GET", f"{maps}/global-options")["data"]["attestation"] == "report"
        for bad in ("[]", "{", {"PCRTemplates": 7}, {"PCRTemplates": [7]}, {"PCRTemplates": [{"eveVersion": 1}]}, {"enforceTemplateAttestation": "yes"},
                    {"PCRTemplates": [{"PCRValues": [{"index": "0"}]}]}):
            a.refused(400, "PUT", "/options", bad, JSON)
        assert a.json("/options") == {**options, "enforceTemplateAttestation": False}


# ---- who may

def ask(server, path, certificate=False, **headers):
    connection = server.connect(with_certificate=certificate)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_nobody_may_without_rights(s):
    for path in ("/admin/device", "/admin/onboard", "/admin/options", "/admin/nothing"):
        assert ask(s, path)[0] in (401, 403), path
    assert ask(s, "/admin/device", certificate=True)[0] == 200
    account, ns = unique("sa"), s.namespace()
    s.ok("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": account}})
    token = s.ok("POST", f"/api/v1/namespaces/{ns}/serviceaccounts/{account}/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
    bearer = {"Authorization": f"Bearer {token}"}
    assert ask(s, "/admin/device", **bearer)[0] == 403
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    s.ok("POST", f"{rbac}/clusterroles", {"metadata": {"name": account}, "rules": [{"nonResourceURLs": ["/admin/device", "/admin/device/*"], "verbs": ["get"]}]})
    s.ok("POST", f"{rbac}/clusterrolebindings", {"metadata": {"name": account}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account},
                                                "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": ns}]})
    assert ask(s, "/admin/device", **bearer)[0] == 200
    assert ask(s, "/admin/options", **bearer)[0] == 403


def test_open_on_loopback_and_clearing():
    with Server("--adam-admin-open", "on", "--adam-namespace", "default") as own:
        a = Adam(own)
        a.device()
        assert ask(own, "/admin/device")[0] == 200 and len(ask(own, "/admin/device")[1]) == 36
        assert ask(own, "/api/v1/namespaces")[0] in (401, 403)
        assert ask(own, "/administrator")[0] in (401, 403)
        other = own.namespace()
        o = own.ok("POST", f"/apis/eve.lfedge.org/v1beta1/namespaces/{other}/devices", {"apiVersion": "eve.lfedge.org/v1beta1", "kind": "Device", "metadata": {"name": "kept"}})
        a.done("DELETE", "/device")
        a.done("DELETE", "/onboard")
        assert a.words("/device") == [] and a.words("/onboard") == []
        assert own.ok("GET", f"/apis/eve.lfedge.org/v1beta1/namespaces/{other}/devices/kept")["status"]["uuid"] == o["status"]["uuid"]
