# SPDX-License-Identifier: Apache-2.0
"""SIGTERM ends the server in order: not ready, then no new requests, watches end, writes finish and are answered. SIGHUP changes
the certificate under living connections."""
import http.client
import json
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import seth
from h2 import DATA, END_STREAM, GOAWAY, Http2
from seth import Server, wait_until

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
END_SECONDS = 10
N_WRITERS = 8


def configmap(name, n_bytes=10):
    return {"metadata": {"name": name, "labels": {"app": "shutdown"}}, "data": {"text": "x" * n_bytes}}


def terminate(s):
    s.process.send_signal(signal.SIGTERM)
    wait_until(lambda: 'msg="stopping"' in s.read_log(), what="the signal to arrive")
    return time.monotonic()


def expect_end(s, since):
    s.process.wait(END_SECONDS + 5)
    assert s.process.returncode == 0, s.read_log()
    assert time.monotonic() - since < END_SECONDS
    assert "Sanitizer" not in s.read_log(), s.read_log()


def is_refused(s):
    try:
        socket.create_connection(("127.0.0.1", s.port), timeout=5).close()
        return False
    except ConnectionResetError:
        return False  # the listener closed while it was being connected to: the next one is refused
    except ConnectionRefusedError:
        return True


# ---- SIGTERM ------------------------------------------------------------------------------------

def test_readyz_fails_first_and_the_rest_goes_on():
    with Server("--shutdown-delay-seconds", "2") as s:
        s.ok("POST", CONFIGMAPS, configmap("before"))
        since = terminate(s)
        status, text = s.request("GET", "/readyz")
        assert status == 500 and "[-]shutdown failed" in text, (status, text)
        assert s.request("GET", "/livez")[0] == 200
        fresh = s.connect()
        fresh.request("GET", f"{CONFIGMAPS}/before")
        assert fresh.getresponse().status == 200
        s.ok("POST", CONFIGMAPS, configmap("during"))
        expect_end(s, since)
        s.start()
        s.ok("GET", f"{CONFIGMAPS}/during")


def test_watches_end_cleanly():
    """The chunked body is complete on HTTP/1.1; on HTTP/2 the stream ends and GOAWAY says that nothing was lost."""
    with Server() as s:
        revision = s.ok("GET", CONFIGMAPS)["metadata"]["resourceVersion"]
        url = f"{CONFIGMAPS}?watch=1&fieldSelector=metadata.name%3Dseen&resourceVersion={revision}"  # kube-root-ca.crt may come
        connection = s.connect()
        connection.request("GET", url)
        old = connection.getresponse()
        new = Http2(s)
        stream = new.request("GET", url)
        s.ok("POST", CONFIGMAPS, configmap("seen"))
        assert json.loads(old.readline())["object"]["metadata"]["name"] == "seen"
        while True:
            frame = new.read()
            if frame.type == DATA:
                assert json.loads(frame.payload)["object"]["metadata"]["name"] == "seen"
                break
        since = terminate(s)
        assert old.read() == b""  # IncompleteRead would say that the body was cut
        frames = list(iter(new.read, None))
        assert any(f.stream == stream and f.flags & END_STREAM for f in frames), frames
        goaways = [f for f in frames if f.type == GOAWAY]
        assert goaways and all(int.from_bytes(f.payload[4:8], "big") == 0 for f in goaways), frames
        assert int.from_bytes(goaways[-1].payload[:4], "big") >= stream
        expect_end(s, since)


def test_uploads_under_way_finish():
    """Half a body is with the server when the signal comes: the rest is awaited, the write done and answered."""
    with Server() as s:
        body = json.dumps(configmap("upload-1", 50_000)).encode()
        connection = s.connect()
        connection.putrequest("POST", CONFIGMAPS)
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body[:20_000])
        body2 = json.dumps(configmap("upload-2", 50_000)).encode()
        new = Http2(s)
        stream = new.request("POST", CONFIGMAPS, body2[:20_000], ends=False)
        s.ok("GET", CONFIGMAPS)
        s.local.connection.close()
        since = terminate(s)
        wait_until(lambda: is_refused(s), what="the listener to close")
        connection.send(body[20_000:])
        answer = connection.getresponse()
        made = json.loads(answer.read())
        assert answer.status == 201 and made["metadata"]["name"] == "upload-1", made
        assert answer.headers["Connection"] == "close", answer.headers.items()
        new.data(stream, body2[20_000:])
        made, _ = new.answer(stream)
        assert json.loads(made)["metadata"]["name"] == "upload-2", made
        expect_end(s, since)
        s.start()
        for name in ("upload-1", "upload-2"):
            assert len(s.ok("GET", f"{CONFIGMAPS}/{name}")["data"]["text"]) == 50_000


class Writer(threading.Thread):
    """Creates objects until the server is gone; remembers the one that was not answered."""

    def __init__(self, s, number):
        super().__init__(daemon=True)
        self.s, self.number, self.answered, self.unanswered, self.failure = s, number, [], None, None

    def run(self):
        connection = self.s.connect()
        while True:
            name = f"w{self.number}-{len(self.answered)}"
            try:
                connection.request("POST", CONFIGMAPS, json.dumps(configmap(name)), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException):
                self.unanswered = name
                return
            if answer.status != 201:
                self.failure = (answer.status, text)
                return
            self.answered.append(name)
            if answer.headers["Connection"] == "close":
                return


def test_what_was_done_was_answered():
    """Every write that took effect was answered, every answer is true: after an orderly end nothing is in doubt."""
    with Server() as s:
        for round in range(4):
            writers = [Writer(s, f"{round}x{i}") for i in range(N_WRITERS)]
            for w in writers:
                w.start()
            wait_until(lambda: all(len(w.answered) > 5 for w in writers), what="writes")
            since = terminate(s)
            for w in writers:
                w.join(END_SECONDS)
                assert not w.failure, w.failure
            expect_end(s, since)
            s.start()
            names = {o["metadata"]["name"] for o in s.ok("GET", f"{CONFIGMAPS}?labelSelector=app%3Dshutdown")["items"]}
            for w in writers:
                assert set(w.answered) <= names
                assert w.unanswered not in names, f"{w.unanswered} was done but not answered"


def test_stuck_peers_do_not_hold_it_up():
    """An upload that never ends, half a header, a watcher that does not read, an idle connection."""
    with Server() as s:
        revision = s.ok("GET", CONFIGMAPS)["metadata"]["resourceVersion"]
        upload = s.connect()
        upload.putrequest("POST", CONFIGMAPS)
        upload.putheader("Content-Type", "application/json")
        upload.putheader("Content-Length", "1000")
        upload.endheaders(b"{")
        half = s.context().wrap_socket(socket.create_connection(("127.0.0.1", s.port)), server_hostname="127.0.0.1")
        half.sendall(b"GET /api HTTP/1.1\r\nHost: a\r\n")
        deaf = s.connect()
        deaf.request("GET", f"{CONFIGMAPS}?watch=1&resourceVersion={revision}")
        for i in range(20):
            s.ok("POST", CONFIGMAPS, configmap(f"deaf-{i}", 900_000))
        idle = Http2(s)
        idle.answer(idle.request("GET", "/api"))
        since = terminate(s)
        expect_end(s, since)


def test_second_signal_ends_at_once():
    with Server() as s:
        upload = s.connect()
        upload.putrequest("POST", CONFIGMAPS)
        upload.putheader("Content-Length", "1000")
        upload.endheaders(b"{")
        s.ok("GET", "/api")
        since = terminate(s)
        s.process.send_signal(signal.SIGTERM)
        s.process.wait(END_SECONDS)
        assert s.process.returncode == 0 and time.monotonic() - since < 5, s.read_log()


def test_second_signal_as_the_last_connection_ends():
    """The loops report that they are drained while the first of them is being taken down."""
    for _ in range(6):
        with Server() as s:
            stream = s.watch(CONFIGMAPS + "?watch=1&labelSelector=none&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
            next(stream)
            since = terminate(s)
            list(stream)
            s.process.send_signal(signal.SIGTERM)
            expect_end(s, since)


def test_second_signal_under_load():
    """Writes are on their way to the disk when the loops end: their answers come to nobody, not to freed memory."""
    for _ in range(3):
        with Server() as s:
            writers = [Writer(s, i) for i in range(N_WRITERS)]
            for w in writers:
                w.start()
            wait_until(lambda: all(len(w.answered) > 5 for w in writers), what="writes")
            since = time.monotonic()
            s.process.send_signal(signal.SIGTERM)
            s.process.send_signal(signal.SIGINT)  # two of a kind might be taken for one
            expect_end(s, since)
            for w in writers:
                w.join(END_SECONDS)
            s.start()
            names = {o["metadata"]["name"] for o in s.ok("GET", f"{CONFIGMAPS}?labelSelector=app%3Dshutdown")["items"]}
            assert all(set(w.answered) <= names for w in writers)


def test_start_that_fails_ends_cleanly():
    """The port is taken: everything that was begun is undone."""
    with Server() as s:
        with tempfile.TemporaryDirectory() as other:
            done = subprocess.run([seth.binary(), "server", "--data-dir", other, "--secure-port", str(s.port)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "Sanitizer" not in done.stderr, done.stderr
        assert str(s.port) in done.stderr and "in use" in done.stderr, done.stderr


def test_watch_that_begins_late_ends():
    """A watch asked for on a connection that drains must not keep the server."""
    with Server() as s:
        late = s.context().wrap_socket(socket.create_connection(("127.0.0.1", s.port), timeout=30), server_hostname="127.0.0.1")
        late.sendall(f"GET {CONFIGMAPS}?watch=1 HTTP/1.1\r\nHost: a\r\n".encode())
        s.ok("GET", "/api")
        since = terminate(s)
        wait_until(lambda: is_refused(s), what="the listener to close")
        late.sendall(b"\r\n")
        while late.recv(65536):
            pass
        expect_end(s, since)
        assert time.monotonic() - since < 5


# ---- SIGHUP -------------------------------------------------------------------------------------

def shown_certificate(s):
    return ssl.get_server_certificate(("127.0.0.1", s.port))


def test_certificates_are_reloaded():
    """Two other servers lend theirs; a broken file keeps the old one."""
    with tempfile.TemporaryDirectory() as directory, Server() as one, Server() as two:
        files = pathlib.Path(directory)

        def install(server):
            for name in ("server.pem", "server-key.pem"):
                shutil.copy(server.dir / "pki" / name, files / name)

        install(one)
        with Server("--tls-cert-file", f"{files}/server.pem", "--tls-private-key-file", f"{files}/server-key.pem", is_trusted=False) as s:
            first = shown_certificate(s)
            assert first == shown_certificate(one)
            living = s.connect()
            living.request("GET", "/api")
            living.getresponse().read()
            install(two)
            assert shown_certificate(s) == first, "not before the signal"
            s.process.send_signal(signal.SIGHUP)
            wait_until(lambda: shown_certificate(s) == shown_certificate(two), what="the new certificate")
            living.request("GET", "/api")
            assert living.getresponse().read(), "connections live on"
            (files / "server-key.pem").write_text("nonsense")
            s.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "keeping the certificates as they were" in s.read_log(), what="the complaint")
            assert shown_certificate(s) == shown_certificate(two)
            s.ok("GET", "/api")
