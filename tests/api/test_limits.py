# SPDX-License-Identifier: Apache-2.0
"""What a peer may not have: more connections, headers, bodies, time or memory than its share. Whatever it tries, others are served."""
import contextlib
import http.client
import json
import random
import socket
import struct
import threading
import time

from h2 import END_STREAM, GOAWAY, HEADERS, RST_STREAM, WINDOW_UPDATE, Http2
from seth import Server, unique, wait_until

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
MAX_BODY_BYTES = 3 * 1024 * 1024
MAX_HEADER_BYTES = 64 * 1024
HANDSHAKE_SECONDS, HEADER_SECONDS, SLACK_SECONDS = 10, 32, 8
QUIET_SECONDS = 0.3  # long enough to see that nothing comes


def configmap(name, text="x", label="limits"):
    return {"metadata": {"name": name, "labels": {"app": label}}, "data": {"text": text}}


def connect_tls(s, timeout=30, receive_bytes=None):
    raw = socket.socket()
    if receive_bytes:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    raw.settimeout(timeout)
    raw.connect(("127.0.0.1", s.port))
    return s.context().wrap_socket(raw, server_hostname="127.0.0.1")


def read_answer(sock, method="GET"):
    answer = http.client.HTTPResponse(sock, method=method)
    answer.begin()
    return answer


# ---- connections --------------------------------------------------------------------------------

def test_connections_beyond_the_limit_wait():
    with Server("--max-connections", "6") as s:
        s.local.connection.close()
        s.local.connection = None
        held = [connect_tls(s) for _ in range(6)]
        raw = socket.create_connection(("127.0.0.1", s.port), timeout=QUIET_SECONDS)
        try:
            s.context().wrap_socket(raw, server_hostname="127.0.0.1")
            raise AssertionError("a seventh connection was taken")
        except TimeoutError:
            raw.close()
        for sock in held:  # those inside are served all the while
            sock.sendall(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n")
            assert read_answer(sock).status == 200
        waiting = threading.Thread(target=lambda: s.ok("GET", "/version"), daemon=True)
        waiting.start()
        held.pop().close()
        waiting.join(30)
        assert not waiting.is_alive(), "a place that was freed is not given away"
        for sock in held:
            sock.close()


def test_strangers_do_no_harm(s):
    """Plain HTTP, noise, half handshakes and resets on the TLS port."""
    rng = random.Random(7)
    noises = [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"", b"\x16\x03\x01\x02\x00\x01\x00", bytes(70_000), b"\x80\x2e\x01\x03\x01"]
    noises += [rng.randbytes(rng.randrange(1, 3000)) for _ in range(60)]
    for i, noise in enumerate(noises):
        with socket.create_connection(("127.0.0.1", s.port), timeout=30) as sock:
            with contextlib.suppress(OSError):
                sock.sendall(noise)
                if i % 3 == 0:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                elif i % 3 == 1:
                    sock.shutdown(socket.SHUT_WR)
                    sock.recv(1000)
    s.ok("GET", "/version")


# ---- sizes --------------------------------------------------------------------------------------

def test_too_large_headers_on_http1(s):
    for head in (f"GET /version HTTP/1.1\r\nHost: a\r\nX: {'x' * MAX_HEADER_BYTES}\r\n\r\n",
                 "GET /version HTTP/1.1\r\nHost: a\r\n" + "".join(f"X-{i}: y\r\n" for i in range(20_000)) + "\r\n"):
        sock = connect_tls(s)
        with contextlib.suppress(OSError):
            sock.sendall(head.encode())
        answer = read_answer(sock)
        assert answer.status == 431, answer.status
        assert json.loads(answer.read())["code"] == 431
        assert sock.recv(1000) == b"", "the connection ends"
    sock = connect_tls(s)
    with contextlib.suppress(OSError):
        sock.sendall(f"GET /{'x' * 2 * MAX_HEADER_BYTES} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert read_answer(sock).status in (414, 431)


def test_headers_within_the_limit_pass(s):
    connection = s.connect()
    connection.request("GET", "/version", headers={"X-Large": "x" * (MAX_HEADER_BYTES - 4096)})
    assert connection.getresponse().status == 200


def test_too_large_headers_on_http2(s):
    """Refused by an answer or a reset, and the connection serves on unless it was ended by GOAWAY."""
    connection = Http2(s)
    stream = connection.request("GET", "/version", fields=(("x-large", "x" * 2 * MAX_HEADER_BYTES),))
    while True:
        frame = connection.read()
        assert frame, "an end without a word"
        if frame.type == GOAWAY:
            break
        if frame.stream == stream and (frame.type == RST_STREAM or frame.flags & END_STREAM):
            assert json.loads(connection.answer(connection.request("GET", "/version"))[0])["gitVersion"]
            break
    connection.close()
    s.ok("GET", "/version")


def test_continuation_flood_is_ended(s):
    connection = Http2(s)
    connection.send(HEADERS, 0, 1, connection.headers("GET", "/version"))
    with contextlib.suppress(OSError):
        for _ in range(20_000):
            connection.send(9, 0, 1, connection.length(0) * 16)
        while connection.read():
            pass
    connection.close()
    s.ok("GET", "/version")


def test_too_large_bodies(s):
    text = "x" * MAX_BODY_BYTES
    body = json.dumps(configmap("large", text)).encode()
    connection = s.connect()
    connection.putrequest("POST", CONFIGMAPS)
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders()
    with contextlib.suppress(OSError):
        connection.send(body)
    check_too_large(connection.getresponse())

    connection = s.connect()
    with contextlib.suppress(OSError):
        connection.request("POST", CONFIGMAPS, iter([body[i:i + 65536] for i in range(0, len(body), 65536)]),
                           {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}, encode_chunked=True)
    check_too_large(connection.getresponse())

    new = Http2(s)
    stream = new.request("POST", CONFIGMAPS, b"", fields=(("content-length", str(len(body))),), ends=False)
    answer, _ = new.answer(stream)
    assert json.loads(answer)["code"] == 413, answer
    assert s.request("GET", f"{CONFIGMAPS}/large")[0] == 404


def check_too_large(answer):
    assert answer.status == 413, answer.status
    assert json.loads(answer.read())["reason"] == "RequestEntityTooLarge"


def test_body_at_the_limit_of_objects(s):
    """Kubernetes allows a ConfigMap 1 MiB of data: far below the body's limit, yet refused by its own."""
    s.ok("POST", CONFIGMAPS, configmap(unique(), "x" * 1_000_000))
    status, answer = s.request("POST", CONFIGMAPS, configmap(unique(), "x" * 1_100_000))
    assert status == 422, answer


# ---- time ---------------------------------------------------------------------------------------

class Slow(threading.Thread):
    """Sends the pieces one each second until the server has had enough; notes how long that took."""

    def __init__(self, s, pieces, is_tls=True):
        super().__init__(daemon=True)
        self.s, self.pieces, self.is_tls, self.seconds, self.received = s, pieces, is_tls, None, b""

    def run(self):
        sock = connect_tls(self.s, timeout=1) if self.is_tls else socket.create_connection(("127.0.0.1", self.s.port), timeout=1)
        begin, i = time.monotonic(), 0
        while time.monotonic() - begin < HEADER_SECONDS + 2 * SLACK_SECONDS:
            try:
                if i < len(self.pieces):
                    sock.sendall(self.pieces[i])
                i += 1
                piece = sock.recv(4096)
                self.received += piece
                if not piece:
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        self.seconds = time.monotonic() - begin


def test_slow_senders_are_closed(s):
    """A byte of a header each second is no progress; nor is a handshake that does not come."""
    dribble = [b"GET /version HTTP/1.1\r\nHost: a\r\nX: "] + [b"x"] * 1000
    header, silent = Slow(s, dribble), Slow(s, [])
    handshake, half = Slow(s, [], is_tls=False), Slow(s, [b"\x16\x03\x01\x02\x00\x01"], is_tls=False)
    senders = (header, silent, handshake, half)
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(HEADER_SECONDS + 3 * SLACK_SECONDS)
        assert sender.seconds, "still not closed"
    for sender, limit in ((header, HEADER_SECONDS), (silent, HEADER_SECONDS), (handshake, HANDSHAKE_SECONDS), (half, HANDSHAKE_SECONDS)):
        assert limit - 2 <= sender.seconds <= limit + SLACK_SECONDS, (limit, sender.seconds)
    assert not header.received or b" 408 " in header.received.split(b"\r\n")[0], header.received[:200]
    s.ok("GET", "/version")


# ---- pipelines and streams ----------------------------------------------------------------------

def test_pipelined_requests_are_answered_in_order(s):
    name = unique()
    body = json.dumps(configmap(name)).encode()
    text, expected = b"", []
    for i in range(300):
        text += f"GET {CONFIGMAPS}/absent-{i} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        text += f"POST {CONFIGMAPS} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        text += f"GET {CONFIGMAPS}/{name} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        text += f"DELETE {CONFIGMAPS}/{name} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        expected += [(404, f"absent-{i}"), (201, name), (200, name), (200, name)]
    sock = connect_tls(s, timeout=60)
    sender = threading.Thread(target=sock.sendall, args=(text,), daemon=True)
    sender.start()
    stream = sock.makefile("rb")
    for status, name in expected:
        line = stream.readline()
        length = None
        while (header := stream.readline()) != b"\r\n":
            if header.lower().startswith(b"content-length:"):
                length = int(header.split(b":")[1])
        answer = json.loads(stream.read(length))
        assert line.split()[1] == str(status).encode(), (line, status, answer)
        assert name in (answer["metadata"].get("name"), answer.get("details", {}).get("name")), (name, answer)
    sender.join(10)


def test_streams_beyond_the_limit_are_refused(s):
    """More watches on one connection than streams allowed: the surplus is refused, the rest lives."""
    connection = Http2(s)
    for _ in range(400):
        connection.request("GET", f"{CONFIGMAPS}?watch=1&timeoutSeconds=600")
    refused, served = set(), set()
    while len(refused) + len(served) < 400:
        frame = connection.read()
        assert frame and frame.type != GOAWAY, frame
        if frame.type == RST_STREAM:
            assert int.from_bytes(frame.payload, "big") == 7, frame  # REFUSED_STREAM
            refused.add(frame.stream)
        elif frame.type == HEADERS:
            served.add(frame.stream)
    assert 100 <= len(served) <= 250, len(served)
    connection.close()
    s.ok("GET", "/version")


def test_resets_in_a_row_do_not_pile_up(s):
    """Rapid reset (CVE-2023-44487): ended or outlived, but not at the others' cost."""
    connection = Http2(s)
    with contextlib.suppress(OSError):
        for _ in range(20_000):
            stream = connection.request("GET", CONFIGMAPS)
            connection.send(RST_STREAM, 0, stream, struct.pack(">I", 8))
    connection.close()
    s.ok("GET", "/version")


# ---- watchers that do not read ------------------------------------------------------------------

N_EVENTS, EVENT_BYTES = 520, 100_000  # 50 MB
N_DEAF, N_DEAF_STREAMS = 20, 5
GROWTH_BYTES = 160 * 1024 * 1024  # far below the 1 GB that buffering for each would take


def resident_bytes(s):
    with open(f"/proc/{s.process.pid}/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS"))


class DeafWatcher:
    """Asks for a watch and does not read until told."""

    def __init__(self, s, revision):
        self.sock = connect_tls(s, timeout=60, receive_bytes=4096)
        self.sock.sendall(f"GET {CONFIGMAPS}?watch=1&resourceVersion={revision}&labelSelector=app%3Ddeaf HTTP/1.1\r\nHost: a\r\n\r\n".encode())

    def events(self):
        for line in read_answer(self.sock):
            yield json.loads(line)


class DeafStream:
    """The same as a stream of HTTP/2 whose window is shut after its first bytes."""

    def __init__(self, s, revision):
        self.connection = Http2(s, timeout=60, window=65535)
        self.stream = self.connection.request("GET", f"{CONFIGMAPS}?watch=1&resourceVersion={revision}&labelSelector=app%3Ddeaf")

    def events(self):
        for stream in (0, self.stream):
            self.connection.send(WINDOW_UPDATE, 0, stream, struct.pack(">I", 1 << 30))
        text = b""
        while True:
            frame = self.connection.read()
            if frame is None:
                return
            text += frame.payload if frame.type == 0 else b""
            while b"\n" in text:
                line, text = text.split(b"\n", 1)
                yield json.loads(line)
            if frame.flags & END_STREAM:
                return


def pass_events(s, base_bytes):
    """50 MB of changes past the deaf; returns their revisions."""
    rng, revisions, peak = random.Random(3), [], 0
    s.ok("POST", CONFIGMAPS, configmap("changing", label="other"))
    for i in range(N_EVENTS):
        text = rng.randbytes(EVENT_BYTES // 2).hex()
        made = s.ok("PUT", f"{CONFIGMAPS}/changing", configmap("changing", text, label="deaf"))
        revisions.append(int(made["metadata"]["resourceVersion"]))
        if i % 40 == 0:
            peak = max(peak, resident_bytes(s))
    peak = max(peak, resident_bytes(s))
    assert peak - base_bytes < GROWTH_BYTES, f"grew by {(peak - base_bytes) >> 20} MiB for watchers that do not read"
    return revisions


def deaf_server(*options):
    # What AddressSanitizer keeps of freed memory is not the server's.
    return Server(*options, environment={"ASAN_OPTIONS": "quarantine_size_mb=4"})


def check_deaf(s, n_deaf, n_streams, check):
    s.ok("GET", "/version")
    revision = s.ok("GET", CONFIGMAPS)["metadata"]["resourceVersion"]
    deaf = [DeafWatcher(s, revision) for _ in range(n_deaf)] + [DeafStream(s, revision) for _ in range(n_streams)]
    revisions = pass_events(s, resident_bytes(s))
    for d in deaf:
        check(d, revisions)


def test_watchers_that_do_not_read_are_told_to_relist():
    """History is too small for them: what they get is in order and without a gap up to 410, never a hole."""
    expired = []

    def check(d, revisions):
        seen = []
        for e in d.events():
            if e["type"] == "ERROR":
                assert e["object"]["code"] == 410 and e["object"]["reason"] == "Expired", e
                expired.append(d)
                break
            seen.append(int(e["object"]["metadata"]["resourceVersion"]))
            if seen[-1] == revisions[-1]:
                break
        assert seen == revisions[:len(seen)], "a gap, or out of order"

    with deaf_server("--history-bytes", str(8 * 1024 * 1024)) as s:
        check_deaf(s, N_DEAF, N_DEAF_STREAMS, check)
        assert len(expired) == N_DEAF + N_DEAF_STREAMS, f"{len(expired)} were told"
        s.ok("GET", "/version")


def test_watchers_that_read_late_catch_up():
    """History reaches back far enough: they see every change once. Few, since one that takes nothing for a minute is closed."""
    def check(d, revisions):
        seen = []
        for e in d.events():
            assert e["type"] in ("ADDED", "MODIFIED"), e
            seen.append(int(e["object"]["metadata"]["resourceVersion"]))
            if seen[-1] == revisions[-1]:
                break
        assert seen == revisions

    with deaf_server("--history-bytes", str(64 * 1024 * 1024)) as s:
        check_deaf(s, 2, 2, check)
