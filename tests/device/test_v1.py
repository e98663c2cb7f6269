# SPDX-License-Identifier: Apache-2.0
"""Version 1 of the device API: the client certificate of TLS says who it is, bodies are bare, no uuid in any path."""
import base64
import json
import uuid

import eve
import wire
from eve import BASE_V1, PROTO, entry
from fleet import Site, neighbour, shared_site as site


def register(d, identity=None, **message):
    fields = {"pemCert": base64.b64encode(d.identity.pem), "serial": d.serial, "softSerial": d.soft_serial, **message}
    return d.v1("POST", "register", wire.encode("register.ZRegisterMsg", fields), identity=identity or d.onboarding)


def onboarded(s):
    d = site(s).device()
    answer = register(d)
    assert answer.status == 201, answer
    answer = d.v1("POST", "uuid", b"")
    assert answer.status == 200 and answer.headers.get_content_type() == PROTO, answer
    d.uuid = wire.decode("uuid.UuidResponse", answer.body)["uuid"]
    return d


def test_ping(s):
    d = onboarded(s)
    assert d.v1("GET", "ping").status == 200
    assert d.v1("GET", "ping", identity=d.onboarding).status == 200


def test_register_and_uuid(s):
    d = onboarded(s)
    assert site(s).object(d)["status"]["uuid"] == d.uuid
    assert register(d).status == 200
    other = site(s).device(serial=d.serial)
    assert register(other).status == 409
    assert register(site(s).device(), identity=eve.onboarding_identity()).status == 403
    assert register(Site(s, serials=["one"]).device(serial="two")).status == 403


def test_config(s):
    d = onboarded(s)
    answer = d.v1("GET", "config")
    assert answer.status == 200 and answer.headers.get_content_type() == PROTO, answer
    assert wire.decode("config.EdgeDevConfig", answer.body)["id"]["uuid"] == d.uuid
    answer = d.v1("POST", "config", wire.encode("config.ConfigRequest", {}))
    response = wire.decode("config.ConfigResponse", answer.body)
    assert answer.status == 200 and response["config"]["id"]["uuid"] == d.uuid, answer
    answer = d.v1("POST", "config", wire.encode("config.ConfigRequest", {"configHash": response["configHash"]}))
    assert answer.status == 304 and not answer.body, answer


def test_telemetry(s):
    d, app = onboarded(s), uuid.uuid4()
    bundle, lines = wire.encode("logs.LogBundle", {"log": [entry("v1 plain")]}), eve.gzip_member(eve.log_lines([entry("v1 gzip")]))
    apps = wire.encode("logs.AppInstanceLogBundle", {"log": [entry("v1 app plain")]})
    for action, payload in (("info", wire.encode("info.ZInfoMsg", {"ztype": 1, "dinfo": {"machineArch": "x"}})), ("metrics", wire.encode("metrics.ZMetricMsg", {"dm": {}})),
                            ("logs", bundle), ("newlogs", lines), ("flowlog", wire.encode("flowlog.FlowMessage", {"devId": d.uuid})),
                            (f"apps/instances/id/{app}/logs", apps), (f"apps/instanceid/id/{app}/newlogs", eve.gzip_member(eve.log_lines([entry("v1 app gzip")])))):
        answer = d.v1("POST", action, payload)
        assert answer.status == 201, (action, answer)
    text = json.dumps(site(s).read(d, "log"))
    assert "v1 plain" in text and "v1 gzip" in text
    text = json.dumps(site(s).read(d, "log", app=app))
    assert "v1 app plain" in text and "v1 app gzip" in text
    assert len(site(s).read(d, "info")) == 1 and len(site(s).read(d, "metrics")) == 1


def test_certs_and_attest(s):
    d = onboarded(s)
    answer = d.v1("GET", "certs")
    assert answer.status == 200, answer
    d.take_certs(wire.decode("certs.ZControllerCert", answer.body)["certs"])
    answer = d.v1("POST", f"id/{d.uuid}/attest", wire.encode("attest.ZAttestReq", {"reqType": eve.REQ_NONCE}))
    assert answer.status == 201 and 12 <= len(wire.decode("attest.ZAttestResponse", answer.body)["nonce"]["nonce"]) <= 32, answer
    other = onboarded(s)
    assert d.v1("POST", f"id/{other.uuid}/attest", wire.encode("attest.ZAttestReq", {"reqType": eve.REQ_NONCE})).status == 403


def test_without_a_certificate(s):
    d = onboarded(s)
    nobody = eve.context(d.root_pem)
    for method, action, body in (("GET", "config", None), ("POST", "info", b""), ("POST", "uuid", b""), ("POST", "register", b""), ("POST", "newlogs", b"")):
        answer = d.send(method, f"{BASE_V1}/{action}", body, tls=nobody)
        assert answer.status == 401, (action, answer)


def test_unknown_certificate(s):
    d, other = onboarded(s), site(s).onboarded()
    with neighbour(other):
        for identity in (eve.device_identity(), d.onboarding):
            for method, action, body in (("GET", "config", None), ("POST", "info", b""), ("POST", "uuid", b""), ("POST", "metrics", b"")):
                assert d.v1(method, action, body, identity=identity).status == 401, action


def test_bad_payloads(s):
    d = onboarded(s)
    for action in ("info", "metrics", "logs", "newlogs", "flowlog", "config"):
        assert d.v1("POST", action, b"\xff\xff\xff no message").status == 422, action
    assert register(d, pemCert=b"x" * 200).status == 422
    assert d.v1("POST", "newlogs", eve.gzip_member(b"{}\n")[:-3]).status == 422
    assert d.v1("GET", "info").status == 405 and d.v1("GET", "nothing").status == 404
    # An envelope is no message of version 1, nor a message an envelope of version 2.
    assert d.send("POST", d.path("info"), b"").status == 401


def test_deactivated_and_deleted(s):
    d = onboarded(s)
    site(s).annotate(d, activate="false")
    assert d.v1("GET", "config").status == 403 and d.v1("POST", "info", b"").status == 403
    site(s).delete(d)
    assert d.v1("GET", "config").status == 401 and d.v1("POST", "info", b"").status == 401
