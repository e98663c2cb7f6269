# SPDX-License-Identifier: Apache-2.0
"""Methods, paths, headers, health; who may ask; connections that stay and break."""
import http.client
import json
import re
import socket
import subprocess

from expect import configmap, configmaps, refused
from seth import unique

NOT_ALLOWED = "the server does not allow this method on the requested resource"


def test_methods(s):
    for method, path in (("OPTIONS", "/api/v1/namespaces/default"), ("TRACE", "/api"), ("PUT", "/api/v1/namespaces"), ("POST", "/api/v1/namespaces/default"),
                         ("PATCH", "/api/v1/namespaces"), ("PUT", "/api/v1/namespaces/default/configmaps"), ("POST", "/api/v1/namespaces/default/configmaps/x"),
                         ("NOPE", "/api/v1/namespaces/default/configmaps"), ("PUT", "/api")):
        body = None if method in ("TRACE", "OPTIONS") else "{}"
        refused(s.request(method, path, body, {"Content-Type": "application/json"} if body else None), 405, "MethodNotAllowed", NOT_ALLOWED)
    for path in ("/api/v1/namespaces/default", "/version", "/api/v1/namespaces/default/configmaps/missing"):
        status, _, data = s.exchange("HEAD", path)
        assert (status, data) == (405, b"")
    assert s.request("POST", "/healthz", "") == (200, "ok")


def test_paths(s):
    for path in ("/api/v1/namespaces/default/", "/api/v1/namespaces/%64efault", "/api/v1/namespaces/default?%zz", "/api/v1/namespaces/default?a=1;b=2"):
        assert s.ok("GET", path)["metadata"]["name"] == "default", path
    assert s.ok("GET", "/api/v1/namespaces/default%2Fconfigmaps")["kind"] == "ConfigMapList"
    for path in ("//api/v1/namespaces/default", "/API/v1", "/healthz/"):
        assert s.request("GET", path) == (404, "404 page not found\n"), path
    for path in ("/api//v1/namespaces", "/api/v1/namespaces/default/../default", "/api/v1/./namespaces"):
        refused(s.request("GET", path), 404, "NotFound", "the server could not find the requested resource")
    refused(s.request("GET", "/api/v1/namespaces/.."), 400, "BadRequest", "Name parameter invalid: \"..\": may not be '..'")
    for name, shown in (("a%20b", "a b"), ("%C3%A9", "é"), ("x" * 300, "x" * 300)):
        refused(s.request("GET", f"/api/v1/namespaces/default/configmaps/{name}"), 404, "NotFound", f'configmaps "{shown}" not found')


def test_headers_of_every_answer(s):
    status, headers, _ = s.exchange("GET", "/api/v1/namespaces/default", headers={"X-Long": "h" * 9000})
    assert status == 200 and headers["Cache-Control"] == "no-cache, private" and headers["Content-Type"] == "application/json"
    assert re.fullmatch(r"[0-9a-f-]{36}", headers["Audit-Id"]) and headers["Date"].endswith(" GMT")
    assert s.exchange("GET", "/nope")[1]["X-Content-Type-Options"] == "nosniff"
    assert s.exchange("GET", "/version", headers={"Origin": "https://evil.example.org"})[1]["Access-Control-Allow-Origin"] is None


def test_health(s):
    for path in ("/healthz", "/livez", "/readyz", "/healthz/ping", "/livez/ping", "/readyz/ping", "/readyz?exclude=ping", "/readyz/ping?verbose"):
        status, headers, data = s.exchange("GET", path)
        assert (status, headers["Content-Type"], data) == (200, "text/plain; charset=utf-8", b"ok"), path
    for path in ("/healthz/nope", "/livez/nope"):
        assert s.request("GET", path)[0] == 404
    for name in ("healthz", "livez", "readyz"):
        lines = s.request("GET", f"/{name}?verbose", raw=True)[1].decode().splitlines()
        assert lines[0] == "[+]ping ok" and lines[-1] == f"{name} check passed" and all(line.startswith("[+]") and line.endswith(" ok") for line in lines[:-1])
    text = s.request("GET", "/livez?verbose&exclude=ping", raw=True)[1].decode()
    assert "[+]ping excluded: ok\n" in text
    text = s.request("GET", "/readyz?verbose&exclude=nope", raw=True)[1].decode()
    assert 'warn: some health checks cannot be excluded: no matches for "nope"\n' in text and text.endswith("readyz check passed\n")


def test_who_may_ask(s):
    connection = s.connect(with_certificate=False)
    for path, message in (("/api/v1/namespaces", 'namespaces is forbidden: User "system:anonymous" cannot list resource "namespaces" in API group "" at the cluster scope'),
                          *((path, f'forbidden: User "system:anonymous" cannot get path "{path}"') for path in ("/api", "/apis", "/openapi/v2", "/metrics", "/"))):
        connection.request("GET", path)
        answer = connection.getresponse()
        refused((answer.status, json.loads(answer.read())), 403, "Forbidden", message)
    for path in ("/healthz", "/livez", "/readyz", "/version"):
        connection.request("GET", path)
        answer = connection.getresponse()
        assert (answer.read(), answer.status)[1] == 200, path
    connection.request("GET", "/api/v1/namespaces", headers={"Authorization": "Bearer wrong"})
    answer = connection.getresponse()
    refused((answer.status, json.loads(answer.read())), 401, "Unauthorized", "Unauthorized")


def test_a_certificate_of_somebody_else_is_no_help(s):
    name = s.dir / unique("other")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.crt",
                    "-subj", "/O=system:masters/CN=impostor", "-days", "1"], check=True, capture_output=True)
    context = s.context(with_certificate=False)
    context.load_cert_chain(f"{name}.crt", f"{name}.key")
    connection = http.client.HTTPSConnection("127.0.0.1", s.port, context=context, timeout=30)
    try:
        connection.request("GET", "/api/v1/namespaces")
        assert connection.getresponse().status == 401
    except OSError:
        pass  # refused in the handshake: as good


def test_impersonated_users_have_no_rights_yet(s):
    body = refused(s.request("GET", "/api/v1/namespaces", headers={"Impersonate-User": "nobody"}), 403, "Forbidden")
    assert body["message"].startswith('namespaces is forbidden: User "nobody" cannot list resource "namespaces" in API group "" at the cluster scope')
    refused(s.request("GET", "/", headers={"Impersonate-User": "nobody"}), 403, "Forbidden", 'forbidden: User "nobody" cannot get path "/"')


def test_tls_versions(s):
    for option, expected in (("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3"), ("-tls1_1", None)):
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{s.port}", option, "-CAfile", str(s.dir / "ca.pem"), "-brief"],
                              input="", capture_output=True, text=True, timeout=30)
        if expected:
            assert f"Protocol version: {expected}" in done.stderr and "Verification: OK" in done.stderr, done.stderr
        else:
            assert done.returncode != 0


def curl(s, *arguments):
    done = subprocess.run(["curl", "--silent", "--cacert", str(s.dir / "ca.pem"), "--cert", str(s.dir / "admin.pem"), "--key", str(s.dir / "admin-key.pem"), *arguments],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_both_versions_of_http_say_the_same(s):
    ns = s.namespace()
    s.ok("POST", configmaps(ns), configmap("a", {"k": "v" * 100_000}))
    for path in (configmaps(ns, "a"), configmaps(ns), "/api/v1", configmaps(ns, "missing"), "/nope", "/readyz?verbose"):
        url = f"https://127.0.0.1:{s.port}{path}"
        one, two = curl(s, "--http1.1", "--write-out", "\n%{http_code}", url), curl(s, "--http2", "--write-out", "\n%{http_code}", url)
        assert one == two, path


def test_http2_writes(s):
    ns = s.namespace()
    url = f"https://127.0.0.1:{s.port}{configmaps(ns)}"
    big = s.dir / unique("body")
    big.write_text(json.dumps(configmap("big", {"k": "x" * 900_000})))
    made = curl(s, "--http2", "--header", "Content-Type: application/json", "--data-binary", f"@{big}", url)
    assert len(json.loads(made)["data"]["k"]) == 900_000
    assert json.loads(curl(s, "--http2", "--request", "DELETE", f"{url}/big"))["status"] == "Success"


def test_chunked_bodies(s):
    ns = s.namespace()
    connection = s.connect()
    data = json.dumps(configmap("chunked", {"k": "v"})).encode()
    connection.request("POST", configmaps(ns), iter([data[:5], data[5:40], data[40:]]), {"Content-Type": "application/json"}, encode_chunked=True)
    assert connection.getresponse().status == 201


def test_a_client_may_ask_before_it_sends(s):
    ns = s.namespace()
    body = json.dumps(configmap("asked")).encode()
    with s.context().wrap_socket(socket.create_connection(("127.0.0.1", s.port), timeout=30), server_hostname="127.0.0.1") as peer:
        peer.sendall(f"POST {configmaps(ns)} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        assert peer.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        peer.sendall(body)
        assert peer.recv(65536).startswith(b"HTTP/1.1 201 ")


def test_old_and_odd_requests(s):
    answer = raw(s, b"GET /healthz HTTP/1.0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"\r\n\r\nok")
    answer = raw(s, b"GET https://127.0.0.1/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.endswith(b"\r\n\r\nok")
    assert raw(s, b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 400 "), "no Host"


def test_one_connection_carries_many_requests(s):
    connection = s.connect()
    connection.connect()
    port = connection.sock.getsockname()[1]
    for i in range(100):
        connection.request("GET", "/healthz" if i % 2 else "/api/v1/namespaces/default")
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read() and connection.sock.getsockname()[1] == port


def test_who_asks_to_close_is_closed(s):
    connection = s.connect()
    connection.request("GET", "/healthz", headers={"Connection": "close"})
    answer = connection.getresponse()
    assert answer.read() == b"ok" and answer.will_close


def raw(s, data):
    """What the server says to bytes no client would send, until it closes."""
    with s.context().wrap_socket(socket.create_connection(("127.0.0.1", s.port), timeout=30), server_hostname="127.0.0.1") as peer:
        peer.sendall(data)
        answer = b""
        try:
            while piece := peer.recv(65536):
                answer += piece
        except OSError:
            pass
        return answer


def test_requests_that_are_none(s):
    for data in (b"GARBAGE\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
                 b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                 b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                 b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
                 b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"\x00\x01\x02\x03\r\n\r\n"):
        answer = raw(s, data)
        assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), (data, answer[:200])
        assert s.request("GET", "/livez") == (200, "ok")


def test_a_request_cut_off_is_not_done(s):
    ns = s.namespace()
    body = json.dumps(configmap("half")).encode()
    with s.context().wrap_socket(socket.create_connection(("127.0.0.1", s.port), timeout=30), server_hostname="127.0.0.1") as peer:
        peer.sendall(f"POST {configmaps(ns)} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body) + 1}\r\n\r\n".encode() + body)
    s.ok("POST", configmaps(ns), configmap("other"))
    assert s.request("GET", configmaps(ns, "half"))[0] == 404
