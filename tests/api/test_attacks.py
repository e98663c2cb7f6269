# SPDX-License-Identifier: Apache-2.0
"""Attacks on the transport, each with its answer, while another client is served as ever (bystander.py): foreign and expired
certificates, smuggled requests, tricks with paths, too much of everything, too slow in everything, floods. Those on tokens are in
test_tokens.py; single limits in test_limits.py, a user's share in test_fairness.py."""
import contextlib
import http.client
import json
import pathlib
import resource
import select
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

from bystander import bystander, context_of, mint
from certificates import issue, read_authority
from expect import configmap, configmaps, refused
from h2 import CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE, Http2
from seth import Server, unique, wait_until

SECRET = "not for your eyes"
PROTOCOL_ERROR, ENHANCE_YOUR_CALM, LOST = 1, 11, -1
ATTACK_SECONDS = 2


def connect(s, files=None, context=None, timeout=30, receive_bytes=None):
    raw = socket.socket()
    if receive_bytes:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    raw.settimeout(timeout)
    raw.connect(("127.0.0.1", s.port))
    return (context or context_of(s, files)).wrap_socket(raw, server_hostname="127.0.0.1")


def read_all(sock):
    """What comes until the server closes."""
    data = b""
    with contextlib.suppress(OSError):
        while piece := sock.recv(65536):
            data += piece
    return data


def admin(s):
    return [str(s.dir / "admin.pem"), str(s.dir / "admin-key.pem")]


def for_a_while(attack, seconds=ATTACK_SECONDS):
    """The attack over and over; returns how often."""
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        attack()
        n += 1
    return n


def test_the_bystander_would_notice(s):
    """The measure itself: a server that stands still for a moment now and then is found out."""
    def freeze():
        s.process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        s.process.send_signal(signal.SIGCONT)
        time.sleep(0.05)
    try:
        with bystander(s):
            for_a_while(freeze, 1)
    except AssertionError as e:
        assert "p99 of another client" in str(e), e
        return
    raise AssertionError("nobody noticed")


# ---- who is it ----------------------------------------------------------------------------------

def ask_as(s, files):
    """The status a certificate gets, or None when the handshake ends."""
    try:
        with connect(s, files) as sock:
            sock.sendall(b"GET /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            answer = http.client.HTTPResponse(sock)
            answer.begin()
            body = json.loads(answer.read())
            assert answer.status == 200 or (body["kind"], body["reason"]) == ("Status", "Unauthorized"), body
            return answer.status
    except (ssl.SSLError, ConnectionError):
        return None


def test_certificates_that_are_not_ours():
    with Server() as s:
        authority, key = read_authority(s)
        good = issue(s.dir, "good", authority, key)
        assert ask_as(s, good[2]) == 200, "the way we issue is right"
        other, other_key, _ = issue(s.dir, "other-ca", is_ca=True, subject=authority.subject)  # by name it is ours
        middle, middle_key, _ = issue(s.dir, "middle", authority, key)  # may not issue
        bad = {
            "of another authority of the same name": issue(s.dir, "foreign", other, other_key),
            "issued by a client": issue(s.dir, "grandchild", middle, middle_key),
            "signed by itself": issue(s.dir, "own"),
            "expired": issue(s.dir, "expired", authority, key, begin=-10, end=-1),
            "not yet valid": issue(s.dir, "early", authority, key, begin=1, end=10),
            "of a server": issue(s.dir, "server-only", authority, key, purpose="server"),
        }
        with bystander(s):
            for what, (_, _, files) in bad.items():
                assert ask_as(s, files) in (401, None), what
            files = bad["expired"][2]
            for_a_while(lambda: ask_as(s, files), 1)
        assert ask_as(s, good[2]) == 200


def test_negotiating_anew(s):
    """TLS 1.2: the server says no, and the connection is of no more use to who tried."""
    with bystander(s):
        for _ in range(3):
            client = subprocess.Popen(["openssl", "s_client", "-connect", f"127.0.0.1:{s.port}", "-tls1_2", "-CAfile", str(s.dir / "ca.pem")],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            client.stdin.write(b"R\n")
            client.stdin.flush()
            text = client.communicate(timeout=30)[0].decode(errors="replace")
            assert "RENEGOTIATING" in text and "no renegotiation" in text, text[-800:]


# ---- what is asked ------------------------------------------------------------------------------

INNER = b"GET /api/v1/namespaces/smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
SMUGGLED_HTTP1 = (
    (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400),
    (b"Content-Length: 0\r\nContent-Length: 60\r\n\r\n", 400),
    (b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n", 400),
    (b"Content-Length: 0, 60\r\n\r\n", 400),
    (b"Content-Length: +0\r\n\r\n", 400),
    (b"Content-Length: 0x0\r\n\r\n", 400),
    (b"Content-Length : 0\r\n\r\n", 400),
    (b"Content-Length:\r\n 0\r\n\r\n", 400),
    (b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400),
    (b"Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n", 501),
    (b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    (b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    (b"Transfer-Encoding:\r\n\tchunked\r\n\r\n0\r\n\r\n", 400),
    (b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400),
    (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 400),
    (b"Transfer-Encoding: chunked\r\n\r\n0\n\n", 400),
    (b"Transfer-Encoding: chunked\r\n\r\n1;\nx\r\n0\r\n\r\n", 400),
    (b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff0\r\nx", 400),
    (b"X: a\r\n folded\r\n\r\n", 400),
    (b"X: a\nImpersonate-User: b\r\n\r\n", 400),
    (b"X: a\rImpersonate-User: b\r\n\r\n", 400),
    (b"X: a\0b\r\n\r\n", 400),
    (b"X y: a\r\n\r\n", 400),
    (b"Host: b\r\n\r\n", 400),
)


def test_smuggling_over_http1(s):
    """Whatever is ambiguous gets one refusal and the end of the connection; what hides behind it is never answered."""
    context = context_of(s, admin(s))
    with bystander(s):
        for head, status in SMUGGLED_HTTP1:
            with connect(s, context=context) as sock:
                sock.sendall(b"POST /api/v1/namespaces HTTP/1.1\r\nHost: a\r\n" + head + INNER)
                answer = read_all(sock)
            assert answer.startswith(b"HTTP/1.1 %d " % status), (head, answer[:200])
            assert answer.count(b"HTTP/1.1 ") == 1 and b"smuggled" not in answer, (head, answer)
        for line in (b"GET /healthz HTTP/1.1\nHost: a\n\n", b"GET  /healthz HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /healthz HTTP/1.1\r\n Host: a\r\n\r\n",
                     b"GET /healthz\r\n\r\n", b"GET /healthz http/1.1\r\nHost: a\r\n\r\n", b"GET healthz HTTP/1.1\r\nHost: a\r\n\r\n"):
            with connect(s, context=context) as sock:
                sock.sendall(line)
                assert read_all(sock)[:10] in (b"HTTP/1.1 4", b"HTTP/1.1 5"), line
    with connect(s, context=context) as sock:  # extensions of chunks mean nothing and do no harm
        body = json.dumps(configmap(unique())).encode()
        sock.sendall(f"POST {configmaps('default')} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
                     + b"%x;x=y;z\r\n" % len(body) + body + b"\r\n0;last\r\n\r\n")
        assert read_all(sock).startswith(b"HTTP/1.1 201 ")


SMUGGLED_HTTP2 = (
    (("connection", "keep-alive"),), (("transfer-encoding", "chunked"),), (("upgrade", "h2c"),), (("keep-alive", "1"),), (("proxy-connection", "close"),),
    (("te", "chunked"),), (("Impersonate-User", "bystander"),), (("x", "a\r\nimpersonate-user: bystander"),), (("x", "a\nb"),), (("x", "a\0b"),),
    (("x\r\ny", "a"),), (("x y", "a"),), (("", "a"),), ((":path", "/api/v1/secrets"),), ((":method", "DELETE"),), ((":authority", "b"),), ((":scheme", "http"),),
    ((":status", "200"),), ((":made-up", "x"),), (("x", "a"), (":path", "/late")), (("content-length", "5"),), (("content-length", "1"), ("content-length", "2")),
)


def error_of(connection, stream):
    """The code by which the stream or the connection ended without an answer; None when it was answered."""
    while frame := connection.read():
        if frame.type == GOAWAY:
            return struct.unpack(">I", frame.payload[4:8])[0]
        if frame.stream == stream and frame.type == RST_STREAM:
            return struct.unpack(">I", frame.payload)[0]
        if frame.stream == stream and frame.flags & END_STREAM:
            return None
    return -1


def test_smuggling_over_http2(s):
    """A malformed request is a PROTOCOL_ERROR of its stream (RFC 9113 8.1.1), never served without what was wrong with it."""
    with bystander(s):
        for fields in SMUGGLED_HTTP2:
            connection = Http2(s)
            stream = connection.request("GET", "/api/v1/namespaces/default", fields=fields)
            assert error_of(connection, stream) == PROTOCOL_ERROR, fields
            connection.close()
        connection = Http2(s)
        for path in ("", "api/v1/namespaces", "*", "https://127.0.0.1/api/v1/namespaces"):
            assert error_of(connection, connection.request("GET", path)) == PROTOCOL_ERROR, path
        body, _ = connection.answer(connection.request("GET", "/api/v1/namespaces/default"))
        assert json.loads(body)["kind"] == "Namespace", "the connection lives on"
        connection.close()


def raw_get(sock, path):
    """A path as it is written, which no client would send; (status, body)."""
    sock.sendall(b"GET " + path.encode() + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    answer = http.client.HTTPResponse(sock)
    answer.begin()
    return answer.status, answer.read()


def test_paths_lead_nobody_astray():
    """What is checked is what is served: no spelling of a path reaches what its asker may not see. The expected answers to an
    administrator are kube-apiserver's."""
    with Server() as s:
        for ns in ("open", "closed"):
            s.ok("POST", "/api/v1/namespaces", {"metadata": {"name": ns}})
            s.ok("POST", f"/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "s"}, "stringData": {"text": SECRET}})
        s.ok("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/open/rolebindings",
             {"metadata": {"name": "r"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
              "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}]})
        limited = mint(s, "limited", "nobody")
        with bystander(s):
            with connect(s, limited) as sock:
                assert raw_get(sock, "/api/v1/namespaces/open/configmaps")[0] == 200
                for path in ("/api/v1/namespaces/closed/secrets/s", "/api/v1/namespaces/open/secrets/s", "/api/v1/namespaces/open/../closed/secrets/s",
                             "/api/v1/namespaces/open%2f..%2fclosed/secrets/s", "/api/v1/namespaces/open%2Fsecrets%2Fs", "/api/v1/namespaces/open/configmaps/../secrets/s",
                             "/api/v1/namespaces/open/configmaps/%2e%2e/secrets/s", "/api/v1/namespaces/open/configmaps/..%2fsecrets%2fs", "/api/v1/namespaces/open//secrets/s",
                             "/api/v1//namespaces/closed/secrets/s", "//api/v1/namespaces/closed/secrets/s", "/./api/v1/namespaces/closed/secrets/s",
                             "/api/v1/namespaces/open;/../closed/secrets/s", "/api/v1/namespaces/closed/secrets/s;.json", "/api/v1/namespaces/closed/secrets/s%00",
                             "/api/v1/namespaces/closed%00/secrets/s", "/api/v1/namespaces/open%00closed/secrets", "/%61pi/v1/namespaces/closed/%73ecrets/s",
                             "/api/v1/watch/namespaces/closed/secrets/s", "/api/v1/watch/namespaces/closed/secrets", "/api/v1/secrets?fieldSelector=metadata.namespace=open",
                             "/api/v1/namespaces/closed/secrets/s/status", "/api/v1/namespaces/closed/secrets/", "/healthz/../api/v1/namespaces/closed/secrets/s",
                             "/livez/%2e%2e/api/v1/namespaces/closed/secrets/s", "/version/..%2fapi/v1/secrets", "https://a/api/v1/namespaces/closed/secrets/s",
                             "https://a@b/api/v1/secrets", "/api/v1/namespaces/open/secrets/s?namespace=open&resource=configmaps", "/API/V1/secrets", "/api/v1/Secrets"):
                    status, body = raw_get(sock, path)
                    assert status in (400, 403, 404) and b"stringData" not in body and b"bm90IGZvciB5b3Vy" not in body, (path, status, body[:300])
            with connect(s) as sock:
                for path in ("/healthz/../api/v1/secrets", "/livez/%2e%2e/api/v1/secrets", "/readyz/..%2f..%2fapi", "/healthz;/../api", "/healthz%2f..%2fapi/v1/secrets",
                             "//healthz/../api/v1", "/version/../metrics", "/%61pi/v1/secrets", "/api/v1/namespaces/closed/secrets/s?/healthz", "/healthz/../../metrics"):
                    status, body = raw_get(sock, path)
                    assert status in (400, 401, 403, 404) and b"Secret" not in body.replace(b"secrets", b""), (path, status, body[:300])
            for path, code, reason in (("/api/v1/namespaces/..", 400, "BadRequest"), ("/api/v1/namespaces/default/../default", 404, "NotFound"), ("/api//v1/namespaces", 404, "NotFound"),
                                       ("/api/v1/namespaces/closed/secrets/s%00", 404, "NotFound"), ("/api/v1/namespaces/default%zz", 400, "BadRequest")):
                refused(s.request("GET", path), code, reason)
            assert s.request("GET", "//api/v1/namespaces/default") == (404, "404 page not found\n")
            assert s.ok("GET", "/api/v1/namespaces/default%2Fconfigmaps")["kind"] == "ConfigMapList"


# ---- too much -----------------------------------------------------------------------------------

def post_json(s, text, path=None, content_type="application/json", method="POST"):
    return s.request(method, path or configmaps("default"), text, {"Content-Type": content_type})


def test_too_much_of_everything(s):
    name = unique()
    deep = '{"metadata":{"name":"%s"},"data":' % name + '{"a":' * 50_000 + "1" + "}" * 50_001
    aliases = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(12))
    labels = {f"label-{i}": "v" * 60 for i in range(25_000)}
    requests = "&".join(f"p{i}=v" for i in range(8000))
    selector = ",".join(f"k{i}=v" for i in range(6000))
    s.ok("POST", configmaps("default"), configmap(name))
    s.ok("POST", configmaps("default"), configmap(f"{name}-full", {"k": "x" * 500_000}))
    copies = json.dumps([{"op": "copy", "from": "/data", "path": f"/data/c{i}"} for i in range(60)])
    many = json.dumps([{"op": "test", "path": "/kind", "value": "ConfigMap"}] * 20_000)
    with bystander(s):
        connection = s.connect()
        for headers, status in (({"X": "x" * 70_000}, 431), ({f"X-{i}": "" for i in range(1001)}, 431)):
            connection = s.connect()
            with contextlib.suppress(OSError):
                connection.request("GET", "/version", headers=headers)
            assert connection.getresponse().status == status
        connection = s.connect()
        with contextlib.suppress(OSError):
            connection.request("GET", "/api?" + "x" * 70_000)
        assert connection.getresponse().status == 414
        assert post_json(s, "x" * (3 * 1024 * 1024 + 1))[0] == 413
        assert s.request("GET", f"{configmaps('default')}/{name}?{requests}")[0] == 200, "parameters nobody asked for"
        assert s.request("GET", f"{configmaps('default')}?labelSelector={selector}")[0] == 200
        assert post_json(s, deep)[0] == 400
        assert post_json(s, "[" * 1_000_000)[0] == 400
        assert 400 <= post_json(s, aliases, content_type="application/yaml")[0] < 500
        assert post_json(s, json.dumps(configmap(unique(), labels=labels)))[0] in (413, 422)
        status, answer = post_json(s, copies, f"{configmaps('default')}/{name}-full", "application/json-patch+json", "PATCH")
        assert 400 <= status < 500, (status, answer)
        status, answer = post_json(s, many, f"{configmaps('default')}/{name}", "application/json-patch+json", "PATCH")
        assert status == 413, (status, answer)
    assert s.request("GET", configmaps("default", name))[0] == 200


# ---- too many -----------------------------------------------------------------------------------

N_IDLE = 10_000


class Idle:
    """A connection that asked once and then sits there: handshake and question without blocking, so that one process opens thousands."""

    def __init__(self, s, context):
        self.raw = socket.socket()
        self.raw.setblocking(False)
        self.raw.connect_ex(("127.0.0.1", s.port))
        self.sock, self.context, self.state, self.received = None, context, "connecting", b""

    def step(self):
        """Goes on; returns what to wait for, or None when it is idle."""
        try:
            if self.state == "connecting":
                self.sock = self.context.wrap_socket(self.raw, server_hostname="127.0.0.1", do_handshake_on_connect=False)
                self.state = "handshake"
            if self.state == "handshake":
                self.sock.do_handshake()
                self.sock.send(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
                self.state = "asking"
            while not self.received.endswith(b"\r\n\r\nok"):
                piece = self.sock.recv(4096)
                assert piece, f"closed: {self.received!r}"
                self.received += piece
            return None
        except ssl.SSLWantReadError:
            return select.EPOLLIN
        except ssl.SSLWantWriteError:
            return select.EPOLLOUT

    def is_open(self):
        try:
            return self.sock.recv(1) == b"?"
        except (ssl.SSLWantReadError, BlockingIOError):
            return True


def open_idle(s, n, at_once=200):
    context, epoll, waiting, idle, n_begun = context_of(s), select.epoll(), {}, [], 0
    while len(idle) < n:
        while n_begun < n and len(waiting) < at_once:
            one = Idle(s, context)
            waiting[one.raw.fileno()] = one
            epoll.register(one.raw.fileno(), select.EPOLLOUT)
            n_begun += 1
        events = epoll.poll(30)
        assert events, f"no progress with {len(idle)} idle and {len(waiting)} on their way"
        for fd, _ in events:
            one = waiting.pop(fd)
            epoll.unregister(fd)
            wanted = one.step()
            if wanted is None:
                idle.append(one)
                continue
            waiting[one.sock.fileno()] = one
            epoll.register(one.sock.fileno(), wanted)
    epoll.close()
    return idle


def test_ten_thousand_idle_connections(s):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    n = min(N_IDLE, hard - 500)
    if n < N_IDLE:
        print(f"{n} connections only: the limit of descriptors is {hard}", flush=True)
    idle = []
    try:
        with bystander(s):
            idle = open_idle(s, n)
            s.ok("GET", "/version")
            closed = sum(not one.is_open() for one in idle)
            assert closed == 0, f"{closed} of {n} were closed"
    finally:
        with bystander(s):  # all gone at once
            for one in idle:
                one.sock.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_storm_of_handshakes(s):
    """A reconnecting fleet: full handshakes from many threads at once."""
    end, n = time.monotonic() + 4, [0] * 6

    def storm(i):
        context = context_of(s)
        while time.monotonic() < end:
            connect(s, context=context).close()
            n[i] += 1

    with bystander(s):
        threads = [threading.Thread(target=storm, args=(i,)) for i in range(len(n))]
        end = time.monotonic() + 4
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert min(n) > 0, n


def test_silent_connections_keep_nobody_out():
    """More sockets that never begin their handshake than there are places for handshakes: newcomers still come in."""
    with Server() as s:
        with bystander(s):
            silent = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(3000)]
            begin = time.monotonic()
            for _ in range(20):
                connect(s).close()
            assert time.monotonic() - begin < 15
            for sock in silent:
                sock.close()


def test_limit_of_one_address():
    with Server("--max-connections-per-address", "20") as s:
        held = []
        with contextlib.suppress(OSError):
            for _ in range(40):
                held.append(connect(s))
        assert 10 <= len(held) <= 20, len(held)
        for sock in held:
            sock.close()
        wait_until(lambda: s.request("GET", "/livez")[0] == 200, what="a place")


# ---- floods of HTTP/2 ---------------------------------------------------------------------------

def goaway_of(connection):
    """The code of GOAWAY, or LOST when the connection ended without: it goes with a reset while the flood still comes in."""
    try:
        while frame := connection.read():
            if frame.type == GOAWAY:
                return struct.unpack(">I", frame.payload[4:8])[0]
    except TimeoutError:
        raise AssertionError("the connection is still open") from None
    except (OSError, AssertionError):
        pass
    return LOST


def flood(connection, data, times):
    with contextlib.suppress(OSError):
        for _ in range(times):
            connection.socket.sendall(data)


def rapid_resets(connection, path, n):
    data = b""
    for _ in range(n):
        stream, connection.next_stream = connection.next_stream, connection.next_stream + 2
        data += connection.frame(HEADERS, END_STREAM | END_HEADERS, stream, connection.headers("GET", path))
        data += connection.frame(RST_STREAM, 0, stream, struct.pack(">I", 8))
    return data


def test_rapid_reset_of_strangers(s):
    with bystander(s):
        def attack():
            connection = Http2(s, context=context_of(s))
            flood(connection, rapid_resets(connection, "/version", 3000), 1)
            assert goaway_of(connection) in (ENHANCE_YOUR_CALM, LOST)
            connection.close()
        assert for_a_while(attack) > 0
        connection = Http2(s, context=context_of(s))
        flood(connection, rapid_resets(connection, "/version", 1500), 1)
        assert goaway_of(connection) == ENHANCE_YOUR_CALM


def test_rapid_reset_of_users(s):
    """Who is known may reset many, as a controller that restarts does: it is served on, and so are others."""
    with bystander(s):
        connection = Http2(s)
        flood(connection, rapid_resets(connection, "/api/v1/namespaces/default/configmaps", 5000), 1)
        body, _ = connection.answer(connection.request("GET", "/version"))
        assert json.loads(body)["major"]
        connection.close()


def test_floods_of_frames(s):
    """Frames that ask for work and carry nothing end the connection; those nobody knows cost nothing and are skipped."""
    f = Http2.frame
    with bystander(s):
        for what, data in (("ping", f(PING, 0, 0, bytes(8))), ("settings", f(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535))), ("empty settings", f(SETTINGS, 0, 0)),
                           ("window", f(WINDOW_UPDATE, 0, 1, struct.pack(">I", 1))), ("priority", f(2, 0, 1, bytes(4) + b"\1")), ("empty data", f(DATA, 0, 1)),
                           ("continuation", f(CONTINUATION, 0, 1, b"")), ("unknown", f(77, 0, 0, b"x"))):
            connection = Http2(s, context=context_of(s), timeout=10)
            connection.next_stream = 3
            connection.send(HEADERS, 0 if what == "continuation" else END_HEADERS, 1, connection.headers("POST", "/version"))
            flood(connection, data * 500, 100)
            if what == "unknown":
                assert json.loads(connection.answer(connection.request("GET", "/version"))[0])["major"]
            else:
                assert goaway_of(connection) in (PROTOCOL_ERROR, ENHANCE_YOUR_CALM, LOST), what
            connection.close()


# ---- too slow -----------------------------------------------------------------------------------

def test_slow_heads_and_bodies_hold_up_nobody(s):
    """Hundreds that send a byte now and then, of a head or a body, over either protocol; that each ends is in the test below."""
    context = context_of(s)
    senders = []
    with bystander(s):
        for i in range(300):
            sock = connect(s, context=context)
            head = b"GET /version HTTP/1.1\r\nHost: a\r\nX: " if i % 2 else b"POST /version HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"
            sock.sendall(head)
            senders.append(sock)
        streams = [Http2(s, context=context_of(s)) for _ in range(20)]
        for connection in streams:
            for _ in range(100):
                connection.request("POST", "/version", b"x", ends=False)

        def dribble():
            for sock in senders:
                sock.sendall(b"x")
        assert for_a_while(dribble, 3) > 0
        for sock in senders:
            sock.close()
        for connection in streams:
            connection.close()


class Patient(threading.Thread):
    """Runs `turn` each second until it says how it ended; notes when."""

    def __init__(self, turn):
        super().__init__(daemon=True)
        self.turn, self.seconds, self.outcome = turn, None, None

    def run(self):
        begin = time.monotonic()
        while time.monotonic() - begin < 160:
            try:
                self.outcome = self.turn()
            except OSError as e:
                self.outcome = repr(e)
            if self.outcome is not None:
                self.seconds = time.monotonic() - begin
                return
            time.sleep(1)


def slow_body(s):
    sock = connect(s, timeout=0.2)
    sock.sendall(b"POST /version HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")

    def turn():
        sock.sendall(b"x")
        with contextlib.suppress(TimeoutError):
            return sock.recv(4096).split(b"\r\n")[0]
    return Patient(turn)


def slow_body_of_http2(s):
    connection = Http2(s, timeout=0.2)
    stream = connection.request("POST", "/version", b"x", ends=False)

    def turn():
        connection.data(stream, b"x", ends=False)
        with contextlib.suppress(TimeoutError):
            body, _ = connection.answer(stream)
            return json.loads(body)["code"]
    return Patient(turn)


def slow_reader(s, path):
    """Takes a little each second of an answer that does not fit the buffers between us."""
    sock = connect(s, admin(s), timeout=5, receive_bytes=4096)
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())

    def turn():
        try:
            return None if sock.recv(200) else "end"
        except TimeoutError:
            return None
    return Patient(turn)


def unread(s):
    """How many bytes the kernel holds for each peer of the server, gone ones included."""
    text = pathlib.Path("/proc/net/tcp").read_text()
    port = f":{s.port:04X}"
    return [int(line.split()[4].split(":")[0], 16) for line in text.splitlines()[1:] if line.split()[1].endswith(port) and line.split()[3] != "0A"]


def test_the_slow_are_ended():
    with Server() as s:
        ns = s.namespace()
        for i in range(16):
            s.ok("POST", configmaps(ns), configmap(f"big-{i}", {"k": "x" * 1_000_000}))
        with bystander(s):
            bodies = [slow_body(s), slow_body_of_http2(s)]
            reader = slow_reader(s, configmaps(ns))
            for p in (*bodies, reader):
                p.start()
            wait_until(lambda: any(unread(s)), what="the list to wait for its reader")
            for p in bodies:
                p.join(90)
                assert p.seconds and 55 <= p.seconds <= 75, (p.seconds, p.outcome)
            assert bodies[0].outcome == b"HTTP/1.1 408 Request Timeout" and bodies[1].outcome == 408, [p.outcome for p in bodies]
            wait_until(lambda: not any(unread(s)), 100, "the slow reader to be given up")
