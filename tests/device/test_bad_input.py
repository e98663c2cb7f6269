# SPDX-License-Identifier: Apache-2.0
"""What no honest device sends: every bad input at every endpoint has its status, and another device is served all the while.

401 and 403 are what a device survives without dropping what it has to say; 400 and 422 only where the bytes could not have come from a device."""
import base64
import http.client
import socket
import ssl
import time
import uuid
import warnings
import zlib

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

import eve
import wire
from eve import BASE, PROTO, entry, seal
from fleet import neighbour, shared_site as site

# Everything a device signs, with a payload that is right.
SIGNED = {
    "config": b"", "attest": wire.encode("attest.ZAttestReq", {"reqType": 2}), "info": wire.encode("info.ZInfoMsg", {"ztype": 1, "dinfo": {}}),
    "metrics": wire.encode("metrics.ZMetricMsg", {"dm": {}}), "logs": wire.encode("logs.LogBundle", {"log": [entry("x")]}),
    "newlogs": eve.gzip_member(eve.log_lines([entry("x")])), "flowlog": b"", "hardwarehealth": b"", "compound-config": b"",
    "proxy/scep": wire.encode("proxy.SCEPProxyRequest", {"scep_profile_name": "x"}),
    "apps/instanceid/8c3bb3f8-0d5d-4f0c-9f8e-0e2f6a6f0001/newlogs": eve.gzip_member(eve.log_lines([entry("x")])),
    "apps/instances/id/8c3bb3f8-0d5d-4f0c-9f8e-0e2f6a6f0001/logs": wire.encode("logs.AppInstanceLogBundle", {"log": [entry("x")]}),
}
MAX_BODY_BYTES = 4 * 1024 * 1024
NO_PROTOBUF = b"\xff\xff\xff\xff no protobuf"


def refused(answer, status, what=""):
    assert answer is not None and answer.status == status, (what, status, answer)
    return answer


def at_every_endpoint(s, make, status):
    """make(device, another device, payload) -> arguments of post(), or the bytes of a body."""
    a, b, c = (site(s).onboarded() for _ in range(3))
    with neighbour(c):
        for action, payload in SIGNED.items():
            made = make(a, b, payload)
            answer = a.send("POST", a.path(action), made) if isinstance(made, bytes) else a.post(action, payload, **made)
            refused(answer, status, action)
        made = make(a, b, b"")
        refused(a.send("POST", f"{BASE}/uuid", made) if isinstance(made, bytes) else a.post(None, b"", path=f"{BASE}/uuid", **made), status, "uuid")
    for action in ("info", "metrics", "log"):
        assert not site(s).read(a, action), f"{action} was kept though it was refused"


# ---- the envelope

def test_signature_of_other_bytes(s):
    at_every_endpoint(s, lambda a, b, payload: {"signature": a.identity.sign(payload + b"!")}, 401)


def test_signature_of_another_key(s):
    at_every_endpoint(s, lambda a, b, payload: {"signature": b.identity.sign(payload)}, 401)


def test_no_signature(s):
    at_every_endpoint(s, lambda a, b, payload: {"signature": b""}, 401)


def test_short_signature(s):
    at_every_endpoint(s, lambda a, b, payload: {"signature": a.identity.sign(payload)[:63]}, 401)


def test_long_signature(s):
    at_every_endpoint(s, lambda a, b, payload: {"signature": a.identity.sign(payload) + b"\0"}, 401)


def test_signature_of_zeros(s):
    at_every_endpoint(s, lambda a, b, payload: {"signature": bytes(64)}, 401)


def test_signature_in_der(s):
    at_every_endpoint(s, lambda a, b, payload: {"signature": a.identity.key.sign(payload, ec.ECDSA(hashes.SHA256()))}, 401)


def test_hash_of_the_pem(s):
    """The rule of the controller's own certificates is not the devices'."""
    at_every_endpoint(s, lambda a, b, payload: {"sender_hash": a.identity.pem_hash}, 401)


def test_hash_of_the_wrong_length(s):
    at_every_endpoint(s, lambda a, b, payload: {"sender_hash": a.identity.der_hash[:16]}, 401)  # though the algorithm says 32 bytes
    a = site(s).onboarded()
    for digest in (b"", a.identity.der_hash[:1], a.identity.der_hash[:31], a.identity.der_hash + b"\0", a.identity.der_hash * 100):
        refused(a.post("info", b"", sender_hash=digest), 401, digest)


def test_hash_algorithm_unknown(s):
    at_every_endpoint(s, lambda a, b, payload: {"algo": 0}, 401)
    for algo in (3, 77, -1):
        refused(site(s).onboarded().post("info", b"", algo=algo), 401, algo)


def test_unknown_certificate(s):
    stranger = eve.device_identity()
    at_every_endpoint(s, lambda a, b, payload: {"identity": stranger}, 401)


def test_onboarding_certificate_is_no_device(s):
    at_every_endpoint(s, lambda a, b, payload: {"identity": a.onboarding}, 401)


def test_certificate_brought_along(s):
    """senderCert is for registration: elsewhere it makes nobody known."""
    stranger = eve.device_identity()
    at_every_endpoint(s, lambda a, b, payload: {"identity": stranger, "sender_cert": base64.b64encode(stranger.pem)}, 401)


def test_envelope_without_fields(s):
    at_every_endpoint(s, lambda a, b, payload: b"", 401)


def test_no_envelope(s):
    at_every_endpoint(s, lambda a, b, payload: NO_PROTOBUF, 400)
    at_every_endpoint(s, lambda a, b, payload: seal(a.identity, payload)[:-1], 400)


# ---- whose it is

def test_another_devices_path(s):
    a, b, c = (site(s).onboarded() for _ in range(3))
    with neighbour(c):
        for action, payload in SIGNED.items():
            refused(a.post(None, payload, path=b.path(action)), 403, action)
            refused(a.post(None, payload, path=f"{BASE}/id/{uuid.uuid4()}/{action}"), 403, action)
    for stream in ("info", "metrics", "log"):
        assert not site(s).read(a, stream) and not site(s).read(b, stream), stream


def test_envelope_replayed_by_another(s):
    """b sends what a has signed: it is a's word and not b's."""
    a, b = site(s).onboarded(), site(s).onboarded()
    for action, payload in SIGNED.items():
        sealed = seal(a.identity, payload)
        refused(b.send("POST", b.path(action), sealed), 403, action)
        stolen = wire.decode("auth.AuthContainer", sealed)
        refused(b.send("POST", b.path(action), seal(b.identity, payload, signature=stolen["signatureHash"])), 401, action)
    assert not site(s).read(b, "info")


def test_malformed_uuid_in_the_path(s):
    a = site(s).onboarded()
    for text in ("x", a.uuid[:-1], a.uuid + "0", a.uuid.replace("-", ""), "%00", "..", "g" * 36, a.uuid.replace("-", "_")):
        refused(a.post(None, b"", path=f"{BASE}/id/{text}/info"), 400, text)
    for text in ("x", "..%2f..%2fetc", "0" * 4000):
        refused(a.post(None, SIGNED["newlogs"], path=a.path(f"apps/instanceid/{text}/newlogs")), 400, text)
    assert a.post(None, b"", path=f"{BASE}/id/{a.uuid.upper()}/info").status == 201


# ---- registration

def test_register_with_a_bad_signature(s):
    d = site(s).device()
    refused(d.register(signature=bytes(64)), 401)
    refused(d.register(signature=b""), 401)
    refused(d.register(signature=eve.device_identity().sign(b"x")), 401)


def test_register_with_a_certificate_that_is_none(s):
    d = site(s).device()
    for text in (b"", b"no base64!", base64.b64encode(b"no PEM"), base64.b64encode(d.onboarding.pem[:100]), b"A" * 200000):
        assert d.register(sender_cert=text).status in (401, 422), text[:20]
    other = eve.onboarding_identity()
    refused(d.register(sender_cert=base64.b64encode(other.pem)), 401)  # signed by the other's key


def test_register_with_a_hash_of_another(s):
    d = site(s).device()
    refused(d.register(sender_hash=eve.onboarding_identity().der_hash), 401)


def register_payload(d, payload):
    return d.post(None, payload, path=f"{BASE}/register", identity=d.onboarding, sender_cert=base64.b64encode(d.onboarding.pem))


def test_register_of_what_is_no_message(s):
    d = site(s).device()
    refused(register_payload(d, NO_PROTOBUF), 422)
    refused(register_payload(d, b""), 422)
    for pem in (b"x" * 200, base64.b64encode(b"x" * 200), base64.b64encode(d.identity.pem[:-60]), base64.b64encode(d.identity.pem) * 40):
        refused(register_payload(d, wire.encode("register.ZRegisterMsg", {"pemCert": pem, "serial": d.serial})), 422, pem[:20])
    for serials in ({"serial": "s" * 257}, {"serial": "ok", "softSerial": "s" * 257}, {"serial": "ok", "softSerial": "../x"}):
        refused(register_payload(d, wire.encode("register.ZRegisterMsg", {"pemCert": base64.b64encode(d.identity.pem), **serials})), 422, serials)
    refused(d.send("POST", f"{BASE}/register", NO_PROTOBUF), 400)


# ---- payloads

def test_payload_that_is_no_message(s):
    a, b = site(s).onboarded(), site(s).onboarded()
    with neighbour(b):
        for action in SIGNED:
            refused(a.post(action, NO_PROTOBUF), 422, action)


def test_deep_nesting(s):
    """A message inside a message inside a message: no stack is used up."""
    a, b = site(s).onboarded(), site(s).onboarded()
    deep = b""
    for _ in range(2000):
        deep = wire.delimited(3, deep)
    with neighbour(b):
        assert a.post("info", wire.delimited(3, deep)).status in (201, 422)
        assert a.post("attest", wire.encode("attest.ZAttestReq", {"reqType": 2}) + deep).status in (201, 422)


def test_many_small_parts(s):
    """A message that is small on the wire and large in memory."""
    a, b = site(s).onboarded(), site(s).onboarded()
    with neighbour(b):
        assert a.post("metrics", wire.delimited(5, b"") * 1000000).status in (201, 413, 422)
        assert a.post("logs", wire.delimited(3, b"") * 1000000).status in (201, 413, 422)


def test_gzip_that_is_damaged(s):
    a, b = site(s).onboarded(), site(s).onboarded()
    good = eve.gzip_member(eve.log_lines([entry(str(i)) for i in range(100)]), comment="{}")
    crc = good[:-8] + bytes([good[-8] ^ 1]) + good[-7:]
    size = good[:-4] + bytes([good[-4] ^ 1]) + good[-3:]
    bad = {"empty": b"", "no gzip": b"hello", "half": good[:len(good) // 2], "one byte less": good[:-1], "only the header": good[:12], "crc": crc, "size": size,
           "header without an end": b"\x1f\x8b\x08\x10" + bytes(6) + b"c" * 100000, "reserved flags": b"\x1f\x8b\x08\xe0" + good[4:],
           "method": b"\x1f\x8b\x07" + good[3:], "more behind": good + b"more"}
    with neighbour(b):
        for what, data in bad.items():
            refused(a.post("newlogs", data), 422, what)
            refused(a.post(None, data, path=a.app_log_paths(uuid.uuid4(), "newlogs")["pillar"]), 422, what)
    assert not site(s).read(a, "log")


def bomb(n_bytes):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = b"\n" * (1 << 20)
    return b"".join(packer.compress(piece) for _ in range(n_bytes >> 20)) + packer.flush()


def test_gzip_bomb(s):
    a, b = site(s).onboarded(), site(s).onboarded()
    data = bomb(256 << 20)
    with neighbour(b):
        begin = time.monotonic()
        refused(a.post("newlogs", data), 422)
        assert time.monotonic() - begin < 10
        refused(a.post("newlogs", bomb(8 << 20) * 10), 422)  # member behind member


def test_attest_of_what_is_none(s):
    a = site(s).onboarded()
    for request in ({}, {"reqType": 99}, {"reqType": 0}):
        refused(a.attest(request)[0], 422, request)
    for certs in ([], [{"type": 13}], [{**a.zcert(a.identity, 13), "cert": b"no PEM"}]):
        answer = a.attest({"reqType": 1, "certs": certs})[0]
        assert answer.status in (403, 422), (certs, answer)  # not one after which it asks for its uuid


def test_attest_certificates_of_another(s):
    """Only the device's own key issues them; and what is once known is not replaced."""
    a, b = site(s).onboarded(), site(s).onboarded()
    assert a.attest_certs([a.zcert(eve.issue("x", issuer=b.identity), eve.ECDH_CERT)])[0].status in (403, 409, 422)
    assert a.attest_certs()[0].status == 201
    with neighbour(b):
        for kind in (eve.ECDH_CERT, eve.QUOTE_CERT):
            answer = a.attest_certs([a.zcert(eve.issue("another", issuer=a.identity), kind)])[0]
            assert answer.status in (403, 409, 422), answer
    assert a.attest_certs()[0].status == 201  # the first ones are still right


def test_quote_without_a_nonce(s):
    a = site(s).onboarded()
    a.attest_certs()
    assert a.quote(b"x", b"y")[1]["response"] == eve.NONCE_MISMATCH
    a.nonce()
    result = a.quote(b"\xff" * 100, b"y" * 70, {0: bytes(32)})[1]
    assert result.get("response", 0) not in (eve.SUCCESS,) and not result.get("integrity_token"), result


# ---- who may no longer

def test_deactivated_device(s):
    a, b = site(s).onboarded(), site(s).onboarded()
    assert a.config()[0].status == 200
    site(s).annotate(a, activate="false")
    with neighbour(b):
        for action, payload in SIGNED.items():
            refused(a.post(action, payload), 403, action)
        refused(a.ask_uuid()[0], 403)
        refused(a.register(), 403)
    site(s).annotate(a, activate="true")
    assert a.config(known="")[0].status == 200


def test_deleted_device(s):
    a, b = site(s).onboarded(), site(s).onboarded()
    old = a.uuid
    site(s).delete(a)
    with neighbour(b):
        for action, payload in SIGNED.items():
            refused(a.post(action, payload), 401, action)
        refused(a.ask_uuid()[0], 401)
    assert a.register().status == 201  # the onboarding certificate still allows it: it comes back as another
    a.ask_uuid()
    assert a.uuid != old
    refused(a.post(None, b"", path=f"{BASE}/id/{old}/info"), 403)


# ---- HTTP

def raw_post(path, body=b"", length=None, extra="", version="1.1"):
    n = len(body) if length is None else length
    return f"POST {path} HTTP/{version}\r\nHost: x\r\nContent-Type: {PROTO}\r\nContent-Length: {n}\r\n{extra}\r\n".encode() + body


def test_wrong_method(s):
    d = site(s).onboarded()
    for method, path in (("POST", f"{BASE}/ping"), ("DELETE", f"{BASE}/certs"), ("GET", f"{BASE}/register"), ("GET", f"{BASE}/uuid"), ("PUT", d.path("config")),
                         ("GET", d.path("info")), ("DELETE", d.path("attest")), ("PATCH", d.path("newlogs"))):
        refused(d.send(method, path, b"" if method in ("POST", "PUT", "PATCH") else None), 405, (method, path))


def test_unknown_path(s):
    d = site(s).onboarded()
    for path in ("/", "/api", "/api/v2", BASE, f"{BASE}/", f"{BASE}/pings", f"{BASE}/id", f"{BASE}/id/{d.uuid}", d.path("infos"), d.path("info/x"), d.path("apps"),
                 d.path(f"apps/instanceid/{d.uuid}"), "/api/v3/edgedevice/ping", "/healthz", "/apis", "/api/v1/namespaces", "/edgenode/x/log", f"{BASE}/../../../x"):
        refused(d.send("GET", path), 404, path)
        refused(d.post(None, b"", path=path), 404, path)


def test_the_doors_are_apart(s):
    """What one door serves the other does not, and a device's certificate opens nothing for users."""
    d = site(s).onboarded()
    assert s.request("GET", f"{BASE}/ping")[0] == 404
    answer = d.send("GET", "/api/v1/namespaces", tls=eve.context(d.root_pem, client=d.identity))
    refused(answer, 404)


def test_body_beyond_the_limit(s):
    a, b = site(s).onboarded(), site(s).onboarded()
    with neighbour(b):
        refused(a.post("logs", wire.encode("logs.LogBundle", {"image": "x" * (MAX_BODY_BYTES + 1)})), 413)
    assert a.post("logs", wire.encode("logs.LogBundle", {"image": "x" * (MAX_BODY_BYTES // 2)})).status == 201
    refused(eve.talk(a.host, a.port, raw_post(a.path("logs"), length=10**18)), 413)


def test_body_of_24_megabytes_is_not_read(s):
    """The answer comes when the length is known, or at the limit when it is not, and not when all of it has come."""
    a, b = site(s).onboarded(), site(s).onboarded()
    head = f"POST {a.path('newlogs')} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    frame = b"10000\r\n" + bytes(1 << 16) + b"\r\n"
    with neighbour(b):
        refused(eve.talk(a.host, a.port, raw_post(a.path("newlogs"), length=24 << 20)), 413, "before any of it")
        refused(eve.talk(a.host, a.port, head + frame * ((MAX_BODY_BYTES >> 16) + 1)), 413, "before the rest of it")


def test_chunked_body(s):
    a = site(s).onboarded()
    body = seal(a.identity, SIGNED["info"])
    head = f"POST {a.path('info')} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    half = len(body) // 2
    data = head + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (body[:half], body[half:])) + b"0\r\n\r\n"
    assert eve.talk(a.host, a.port, data).status == 201


def test_length_that_is_none(s):
    a = site(s).onboarded()
    for extra in ("Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"):  # a second one: smuggling
        answer = eve.talk(a.host, a.port, raw_post(a.path("info"), b"", extra=extra))
        assert answer is None or answer.status == 400, answer
    answer = eve.talk(a.host, a.port, raw_post(a.path("info"), b"", length="-1"))
    assert answer is None or answer.status == 400, answer


def test_headers_too_large(s):
    a, b = site(s).onboarded(), site(s).onboarded()
    with neighbour(b):
        refused(eve.talk(a.host, a.port, f"GET {BASE}/ping HTTP/1.1\r\nHost: x\r\nX-Request-Id: {'x' * 200000}\r\n\r\n".encode(), method="GET"), 431)
        refused(eve.talk(a.host, a.port, (f"GET {BASE}/ping HTTP/1.1\r\nHost: x\r\n" + "X-A: b\r\n" * 20000 + "\r\n").encode(), method="GET"), 431)


def test_http_1_0(s):
    d = site(s).onboarded()
    assert eve.talk(d.host, d.port, f"GET {BASE}/ping HTTP/1.0\r\n\r\n".encode(), method="GET").status == 200
    body = seal(d.identity, SIGNED["info"])
    assert eve.talk(d.host, d.port, raw_post(d.path("info"), body, version="1.0")).status == 201


def test_bytes_that_are_no_http(s):
    a, b = site(s).onboarded(), site(s).onboarded()
    with neighbour(b):
        for data in (b"\0" * 100 + b"\r\n\r\n", b"GET\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100, b"\r\n" * 100 + b"x y z\r\n\r\n"):
            answer = eve.talk(a.host, a.port, data, method="GET", seconds=20)
            assert answer is None or answer.status in (400, 505), (data, answer)
        with socket.create_connection((a.host, a.port), 20) as plain:
            plain.sendall(b"GET /api/v2/edgedevice/ping HTTP/1.1\r\nHost: x\r\n\r\n")
            try:
                assert b"200" not in plain.recv(1000)  # TLS only
            except ConnectionError:
                pass


def test_tls_below_1_2(s):
    d = site(s).onboarded()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            try:
                eve.connect(d.host, d.port, eve.context(least=version, most=version)).close()
                raise AssertionError(f"{version} was accepted")
            except (ssl.SSLError, ConnectionError) as e:
                assert "NO_PROTOCOLS_AVAILABLE" not in str(e), "this machine cannot even offer it"


def test_tls_1_2_with_the_suites_of_pillar(s):
    d = site(s).onboarded()
    d.tls = eve.context(d.root_pem, client=d.identity, most=ssl.TLSVersion.TLSv1_2)
    d.session = None
    assert d.ping().status == 200
    with eve.connect(d.host, d.port, d.tls) as sock:
        assert sock.version() == "TLSv1.2" and sock.cipher()[0] in eve.SUITES


def test_connections_that_break(s):
    """Half a request, half a handshake, a connection reset: nothing is kept and nobody notices."""
    a, b = site(s).onboarded(), site(s).onboarded()
    request = raw_post(a.path("info"), seal(a.identity, SIGNED["info"]))
    with neighbour(b):
        for n in range(1, len(request), 17):
            with eve.connect(a.host, a.port, a.tls) as sock:
                sock.sendall(request[:n])
        for _ in range(20):
            raw = socket.create_connection((a.host, a.port))
            raw.sendall(b"\x16\x03\x01\x02\x00\x01")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            raw.close()
    assert not site(s).read(a, "info")
    with eve.connect(a.host, a.port, a.tls) as sock:  # gone before the answer: it may be kept
        sock.sendall(request)
    assert a.info({"ztype": 1}).status == 201


def test_slow_sender(s):
    """A body that never ends is given up; a device on a slow line is not."""
    a, b = site(s).onboarded(), site(s).onboarded()
    body = seal(a.identity, SIGNED["info"])
    with neighbour(b, period=0.5):
        with eve.connect(a.host, a.port, a.tls, seconds=200) as sock:
            sock.sendall(raw_post(a.path("info"), length=len(body)) + body[:10])
            begin = time.monotonic()
            try:
                refused(eve.read_answer(sock), 408)
            except (ConnectionError, http.client.HTTPException):
                raise AssertionError("closed without a 408") from None
            assert time.monotonic() - begin > 5
