# SPDX-License-Identifier: Apache-2.0
"""Every endpoint of the device API as a device uses it, every status that is a success, and the refusals that are part of normal life."""
import base64
import gzip
import json
import uuid

import eve
import wire
from eve import BASE, PROTO, entry
from fleet import Site, shared_site as site
from seth import wait_until

def accepted(answer, status=201):
    assert answer.status == status, answer
    assert answer.headers.get("Content-Type") or answer.status in (204, 304), f"pillar fails without a content type: {answer}"
    return answer


# ---- onboarding

def test_ping_needs_nobody(s):
    d = site(s).device()
    accepted(d.ping(), 200)
    assert d.send("GET", f"{BASE}/ping", headers={"X-Request-Id": "x" * 500}).status == 200


def test_certs_are_what_a_device_demands(s):
    d = site(s).device()
    accepted(d.certs(), 200)  # verified by the client: types, chains, usage, hashes, signature
    first = d.signing_pem, [h for h, _ in d.ecdh]
    accepted(d.certs(), 200)
    assert first == (d.signing_pem, [h for h, _ in d.ecdh])


def test_register_then_uuid(s):
    d = site(s).device()
    d.certs()
    assert d.ask_uuid()[0].status == 401  # before it is registered
    answer = accepted(d.register(), 201)
    assert not answer.body, answer
    answer, response = d.ask_uuid()
    accepted(answer, 200)
    o = site(s).object(d)
    assert o["status"]["uuid"] == d.uuid == response["uuid"] and uuid.UUID(d.uuid).version == 4
    assert o["spec"]["serial"] == d.serial
    for _ in range(2):
        accepted(d.register(), 200)  # at every boot while the files are there
        assert d.ask_uuid()[1]["uuid"] == d.uuid


def test_register_again_with_another_certificate(s):
    d = site(s).onboarded()
    other = site(s).device(serial=d.serial)
    accepted(other.register(), 409)
    other.certs()
    assert other.ask_uuid()[0].status == 401
    assert d.config()[0].status == 200  # the first keeps its place


def test_register_of_strangers(s):
    stranger = site(s).device(onboarding=eve.onboarding_identity())
    accepted(stranger.register(), 403)
    limited = Site(s, serials=["one", "two"])
    accepted(limited.device(serial="three").register(), 403)
    accepted(limited.device(serial="two").register(), 201)


def test_register_with_the_soft_serial(s):
    accepted(Site(s, serials=["soft"]).device(serial="hard", soft_serial="soft").register(), 201)


def test_uuid_of_the_unknown(s):
    d = site(s).device()
    d.certs()
    assert d.ask_uuid()[0].status == 401


# ---- configuration

def test_config_then_unchanged(s):
    d = site(s).onboarded()
    answer, response = d.config()
    accepted(answer, 200)
    assert response["config"]["id"]["uuid"] == d.uuid, response
    assert response["configHash"] and response["config"]["controllercert_confighash"]
    answer, again = d.config()
    assert answer.status == 304 and not answer.body and again is None, answer
    answer, full = d.config(known="")  # as after a boot
    assert answer.status == 200 and full == response
    answer, full = d.config(known="of another controller")
    assert answer.status == 200 and full == response


def test_config_without_the_uuid_in_its_path(s):
    d = site(s).onboarded()
    assert d.config(path=f"{BASE}/config")[0].status == 200  # Adam has this form too


def test_config_gives_a_device_its_management_port(s):
    config = site(s).onboarded().config()[1]["config"]
    assert config.get("deviceIoList") and config.get("systemAdapterList") and config.get("networks"), config
    assert any(a.get("uplink") for a in config["systemAdapterList"]), config["systemAdapterList"]


def test_paths_in_the_letters_of_the_specification(s):
    d = site(s).onboarded()
    assert d.send("GET", "/api/v2/edgeDevice/ping").status == 200
    assert d.config(path=f"/api/v2/edgeDevice/id/{d.uuid}/config")[0].status == 200


def test_one_session_after_another(s):
    """TLS sessions are resumed, and another device's ticket gives nobody his place."""
    a, b = site(s).onboarded(), site(s).onboarded()
    for _ in range(3):
        assert a.config(known="")[0].status == 200
    with eve.connect(a.host, a.port, a.tls, a.session) as sock:
        assert sock.session_reused
    answer = a.post(None, wire.encode("config.ConfigRequest", {}), path=b.path("config"))
    assert answer.status == 403, answer


# ---- attestation without a TPM

def test_attest_certs(s):
    d = site(s).onboarded()
    for _ in range(2):  # an identical repeat is accepted: at every boot
        answer, response = d.attest_certs()
        accepted(answer)
        assert response["respType"] == eve.REQ_CERT, response


def test_attest_without_a_tpm(s):
    d = site(s).onboarded()
    d.attest_certs()
    d.nonce()
    answer, result = d.quote(versions=("13.4.0",))
    accepted(answer)
    assert result["response"] == eve.SUCCESS and len(d.token) >= 16 and not result.get("keys"), result
    assert d.config()[0].status == 200


def test_nonces_differ(s):
    d = site(s).onboarded()
    assert len({d.nonce() for _ in range(5)}) == 5


def test_store_keys_wants_the_token(s):
    d = site(s).onboarded()
    d.nonce()
    d.quote()
    answer, result = d.store_keys([b"key"], token=b"not the token")
    accepted(answer)
    assert result["response"] == 2, result  # ITOKEN_MISMATCH


# ---- telemetry

def test_info(s):
    d = site(s).onboarded()
    accepted(d.info({"ztype": "ZiDevice", "dinfo": {"machineArch": "x86_64", "ncpu": 4, "memory": 4096}}))
    lines = site(s).read(d, "info")
    assert len(lines) == 1 and "x86_64" in json.dumps(lines[0]), lines


def test_info_of_every_type(s):
    d = site(s).onboarded()
    members = {f.name: f.kind for f in wire.MESSAGES["info.ZInfoMsg"].values() if f.kind.startswith("info.ZInfo") and f.kind != "info.ZInfoTypes"}
    assert len(members) == 15
    for member in members:
        accepted(d.info({"ztype": 1, member: {}}))
    assert len(site(s).read(d, "info")) == len(members)


def test_metrics(s):
    d = site(s).onboarded()
    accepted(d.metrics({"dm": {"memory": {"usedMem": 5}}, "am": [{"AppID": str(uuid.uuid4())}]}))
    assert len(site(s).read(d, "metrics")) == 1


def test_logs_in_both_forms(s):
    d = site(s).onboarded()
    accepted(d.logs([entry("bundle one"), entry("bundle two")]))
    answer = accepted(d.newlogs([entry("gzip one"), entry('{"level":"info"}', msgid=2)], mtime=1700000000))
    if answer.body:
        json.loads(answer.body)  # ServerMetrics, without an envelope
    text = json.dumps(site(s).read(d, "log"))
    for words in ("bundle one", "bundle two", "gzip one"):
        assert words in text, (words, text)


def test_application_logs_in_every_form(s):
    d, app = site(s).onboarded(), uuid.uuid4()
    for form in ("spec", "adam", "pillar"):
        accepted(d.app_logs(app, [entry(f"{form} plain")], form=form))
        accepted(d.app_newlogs(app, [entry(f"{form} gzip")], name="Küche €", form=form))
    accepted(d.app_newlogs(uuid.uuid4(), [entry("another application")]))
    text = json.dumps(site(s).read(d, "log", app=app))
    for form in ("spec", "adam", "pillar"):
        assert f"{form} plain" in text and f"{form} gzip" in text, text
    assert "another application" not in text


def test_flowlog(s):
    d, app = site(s).onboarded(), str(uuid.uuid4())
    flow = {"flow": {"src": "10.0.0.1", "srcPort": 5, "dest": "10.0.0.2", "destPort": 80, "protocol": 6}, "txBytes": 7}
    accepted(d.flowlog([flow], [{"hostName": "example.org"}], uuid=app, intf="eth0"))
    assert "10.0.0.2" in json.dumps(site(s).read(d, "flowlog"))


def test_hardwarehealth(s):
    d = site(s).onboarded()
    answer = d.hardwarehealth(disks=[{"disk_name": "/dev/sda", "serial_number": "x"}])
    accepted(answer)


def test_requests_are_told(s):
    d = site(s).onboarded()
    d.config()
    wait_until(lambda: any("config" in json.dumps(line) for line in site(s).read(d, "requests")), what="the request in the stream")


# ---- what a newer or an older device sends is no error

def test_unknown_fields_and_values(s):
    d = site(s).onboarded()
    more = wire.delimited(4000, b"newer") + wire.tag(4001, wire.VARINT) + b"\x05"
    for message in ({"ztype": 999, "dinfo": {}}, {"ztype": 0}):
        accepted(d.post("info", wire.encode("info.ZInfoMsg", message) + more))
    accepted(d.post("metrics", more))
    accepted(d.post("logs", more))
    accepted(d.post("flowlog", more))
    accepted(d.post("hardwarehealth", more))
    assert d._read(d.post("config", more), "config.ConfigResponse")[1]
    assert d.send("POST", d.path("info"), eve.seal(d.identity, b"") + more).status == 201  # and in the envelope


def test_large_messages(s):
    """Read on a thread of their own; what a device asks with is small."""
    d = site(s).onboarded()
    large = wire.encode("info.ZInfoMsg", {"ztype": 1, "dinfo": {"machineArch": "x" * 1_000_000}})
    accepted(d.post("info", large))
    assert d.post("info", large[:-10]).status == 422
    assert [len(line["message"]["dinfo"]["machineArch"]) for line in site(s).read(d, "info")] == [1_000_000]
    assert d.post("config", wire.encode("config.ConfigRequest", {"configHash": "x" * 100_000})).status == 422


def test_empty_messages(s):
    d = site(s).onboarded()
    for action in ("info", "metrics", "logs", "flowlog", "hardwarehealth"):
        accepted(d.post(action, b""))


def test_text_that_is_none(s):
    """A string that is not UTF-8 is kept, and what users read is JSON all the same."""
    d = site(s).onboarded()
    accepted(d.post("info", wire.tag(2, wire.BYTES) + b"\x04\xff\xfe\x00\x80" + b"\x1a\x00"))
    accepted(d.post("newlogs", eve.gzip_member(b'{"content":"\xff\xfe"}\nno json at all\n{"content":"fine"}\n', comment="\xff\xfe{")))
    assert len(site(s).read(d, "info")) == 1
    assert "fine" in json.dumps(site(s).read(d, "log"))


def test_what_a_device_says_of_itself_does_not_count(s):
    """Who sent a message says its signature, not the devId inside."""
    a, b = site(s).onboarded(), site(s).onboarded()
    accepted(a.info({"devId": b.uuid, "ztype": "ZiDevice", "dinfo": {"machineArch": "sparc"}}))
    accepted(a.metrics({"devID": b.uuid, "dm": {}}))
    accepted(a.post("newlogs", eve.gzip_member(eve.log_lines([entry("mine")]), comment=json.dumps({"devID": b.uuid}))))
    for stream in ("info", "metrics", "log"):
        assert len(site(s).read(a, stream)) == 1 and not site(s).read(b, stream), stream


# ---- the rest

def test_scep_of_an_unknown_profile(s):
    assert site(s).onboarded().scep("nobody", operation=1)[0].status == 403


def test_compound_config(s):
    d = site(s).onboarded()
    d.config()
    answer = accepted(d.compound_config(last_cmd_timestamp=0), 200)
    assert answer.headers.get_content_type() == PROTO
    inner = wire.decode("config.CompoundEdgeDevConfig", answer.body)  # not in an envelope, but it holds one
    response = eve.open_envelope(wire.encode("auth.AuthContainer", inner["protected_config"]), d.signing_pem)
    assert wire.decode("config.ConfigResponse", response)["configHash"], inner


def test_own_replay_is_a_repeat(s):
    """A device whose answer was lost sends the same bytes again: refusing it would lose what it says."""
    d = site(s).onboarded()
    sealed = eve.seal(d.identity, wire.encode("info.ZInfoMsg", {"ztype": "ZiDevice", "dinfo": {}, "atTimeStamp": wire.timestamp()}))
    for _ in range(2):
        accepted(d.send("POST", d.path("info"), sealed))


def test_senders_of_long_ago(s):
    """An envelope of several certificates in senderCert: the first counts."""
    d = site(s).device()
    both = base64.b64encode(d.onboarding.pem + eve.onboarding_identity().pem)
    accepted(d.register(sender_cert=both), 201)


def test_keep_alive(s):
    """pillar does not, others may: two requests on one connection."""
    d = site(s).onboarded()
    body = eve.seal(d.identity, wire.encode("config.ConfigRequest", {}))
    head = f"POST {d.path('config')} HTTP/1.1\r\nHost: x\r\nContent-Type: {PROTO}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with eve.connect(d.host, d.port, d.tls) as sock:
        for _ in range(3):
            sock.sendall(head + body)
            assert eve.read_answer(sock).status == 200


def test_gzip_as_another_writer_makes_it(s):
    d = site(s).onboarded()
    accepted(d.post("newlogs", gzip.compress(eve.log_lines([entry("from Python's gzip")]))))
    assert "Python's gzip" in json.dumps(site(s).read(d, "log"))
