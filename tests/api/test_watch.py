# SPDX-License-Identifier: Apache-2.0
"""Watch: initial events, resuming, selectors, forms, expiry, WebSocket and HTTP/2."""
import base64
import http.client
import json
import os
import socket
import struct
import subprocess
import threading
import urllib.parse

from expect import PARTIAL, TABLE, configmap, configmaps, refused
from pumps import Pumps
from seth import Server, unique, wait_until


def watching(path, **parameters):
    return f"{path}?{urllib.parse.urlencode({'watch': 1, **parameters})}"


def collect(s, path, headers=None):
    """Every event of a watch that ends by itself (timeoutSeconds)."""
    status, _, data = s.exchange("GET", path, headers=headers)
    assert status == 200, data
    return [json.loads(line) for line in data.splitlines()]


def take(events, count):
    return [next(events) for _ in range(count)]


def brief(events):
    return [(e["type"], e["object"]["metadata"].get("name")) for e in events]


def version_of(thing):
    return thing["metadata"]["resourceVersion"]


def test_events_since_a_version(s):
    ns = s.namespace()
    start = version_of(s.ok("POST", configmaps(ns), configmap("base")))
    s.ok("POST", configmaps(ns), configmap("a", {"v": "1"}))
    changed = s.ok("PUT", configmaps(ns, "a"), configmap("a", {"v": "2"}))
    s.ok("DELETE", configmaps(ns, "a"))
    events = collect(s, watching(configmaps(ns), timeoutSeconds=1, resourceVersion=start, fieldSelector="metadata.name=a"))
    assert brief(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert events[1]["object"] == changed and events[0]["object"]["kind"] == "ConfigMap"
    assert events[2]["object"]["data"] == {"v": "2"}, "the last state goes with the deletion"
    versions = [int(version_of(e["object"])) for e in events]
    assert versions == sorted(set(versions)) and versions[0] > int(start), "a deletion has a version of its own"


def test_resuming_from_any_event_repeats_and_loses_nothing(s):
    ns = s.namespace()
    start = version_of(s.ok("POST", configmaps(ns), configmap("base")))
    for i in range(10):
        s.ok("POST", configmaps(ns), configmap(f"m{i}"))
    whole = take(s.watch(watching(configmaps(ns), resourceVersion=start, fieldSelector="metadata.name!=kube-root-ca.crt")), 10)
    assert brief(whole) == [("ADDED", f"m{i}") for i in range(10)]
    for i in (0, 4, 8):
        rest = take(s.watch(watching(configmaps(ns), resourceVersion=version_of(whole[i]["object"]), fieldSelector="metadata.name!=kube-root-ca.crt")), 9 - i)
        assert rest == whole[i + 1:]


def test_from_now_and_from_zero_begin_with_what_is_there(s):
    ns = s.namespace()
    s.ok("POST", configmaps(ns), configmap("a", labels={"w": "1"}))
    for parameters in ({}, {"resourceVersion": 0}):
        assert brief(collect(s, watching(configmaps(ns), timeoutSeconds=1, labelSelector="w", **parameters))) == [("ADDED", "a")]


def test_objects_enter_and_leave_a_selector(s):
    ns = s.namespace()
    start = version_of(s.ok("POST", configmaps(ns), configmap("base")))
    s.ok("POST", configmaps(ns), configmap("a"))
    for labels, data in (({"w": "1"}, None), ({"w": "1"}, {"x": "y"}), ({"w": "2"}, None), ({"w": "1"}, None)):
        s.ok("PUT", configmaps(ns, "a"), configmap("a", data, labels=labels))
    s.ok("DELETE", configmaps(ns, "a"))
    events = take(s.watch(watching(configmaps(ns), resourceVersion=start, labelSelector="w=1")), 5)
    assert [e["type"] for e in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    assert events[2]["object"]["metadata"]["labels"] == {"w": "1"}, "leaving shows the state that still matched"
    assert int(version_of(events[1]["object"])) < int(version_of(events[2]["object"])) < int(version_of(events[3]["object"]))
    assert collect(s, watching(configmaps(ns), timeoutSeconds=1, resourceVersion=start, labelSelector="w=3")) == []


def test_selectable_field_of_a_custom_kind(s):
    pumps = Pumps(s)
    start = version_of(pumps.create("a"))
    for mode in ("off", "auto"):
        s.ok("PATCH", pumps.path("a"), {"spec": {"mode": mode}}, {"Content-Type": "application/merge-patch+json"})
    events = take(s.watch(watching(pumps.path(), resourceVersion=start, fieldSelector="spec.mode=off")), 2)
    assert [e["type"] for e in events] == ["ADDED", "DELETED"]


def test_watch_list(s):
    """Initial objects in the order of a list, then the bookmark that ends them, then changes."""
    ns = s.namespace()
    for name in ("b", "a"):
        s.ok("POST", configmaps(ns), configmap(name, labels={"w": "1"}))
    stream = s.watch(watching(configmaps(ns), labelSelector="w", sendInitialEvents="true", resourceVersionMatch="NotOlderThan",
                              allowWatchBookmarks="true"))
    events = take(stream, 3)
    assert brief(events) == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", None)]
    mark = events[2]["object"]
    assert mark["kind"] == "ConfigMap" and mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(version_of(mark)) >= int(version_of(events[0]["object"]))
    after = s.ok("POST", configmaps(ns), configmap("c", labels={"w": "1"}))
    assert next(stream) == {"type": "ADDED", "object": after}


def test_watch_list_of_nothing_still_ends(s):
    ns = s.namespace()
    s.ok("GET", configmaps(ns))
    stream = s.watch(watching(configmaps(ns), labelSelector="none", sendInitialEvents="true", resourceVersionMatch="NotOlderThan",
                              allowWatchBookmarks="true", resourceVersion=""))
    assert brief(take(stream, 1)) == [("BOOKMARK", None)]
    quiet = collect(s, watching(configmaps(ns), labelSelector="none", sendInitialEvents="true", resourceVersionMatch="NotOlderThan", timeoutSeconds=1))
    assert quiet == [], "no bookmark for who did not allow them"


def test_parameters_that_do_not_go_together(s):
    ns = s.namespace()
    invalid = 'ListOptions.meta.k8s.io "" is invalid: '
    requires = "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    for parameters, message in [
        ({"sendInitialEvents": "true"}, requires), ({"sendInitialEvents": "nope"}, requires),
        ({"resourceVersionMatch": "NotOlderThan"},
         "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"),
        ({"sendInitialEvents": "true", "resourceVersionMatch": "Exact", "allowWatchBookmarks": "true"},
         f'[{requires}, resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"]'),
    ]:
        refused(s.request("GET", watching(configmaps(ns), timeoutSeconds=1, **parameters)), 422, "Invalid", invalid + message)
    refused(s.request("GET", watching(configmaps(ns), labelSelector="a b")), 400, "BadRequest")
    refused(s.request("GET", watching(configmaps(ns), fieldSelector="nope=x")), 400, "BadRequest")
    refused(s.request("GET", watching(configmaps(ns), timeoutSeconds="abc")), 400, "BadRequest")
    body = refused(s.request("GET", watching(configmaps(ns)), headers={"Accept": "text/html"}), 406, "NotAcceptable")
    assert "application/json;stream=watch" in body["message"]
    assert s.request("GET", watching(configmaps(ns), resourceVersion="abc"))[0] in (400, 500)
    assert collect(s, watching(configmaps(ns), timeoutSeconds=1, resourceVersion=999999999)) == []


def test_one_object_and_the_old_watch_paths(s):
    ns = s.namespace()
    s.ok("POST", configmaps(ns), configmap("a"))
    for path in (f"/api/v1/watch/namespaces/{ns}/configmaps/a?timeoutSeconds=1",
                 f"/api/v1/watch/namespaces/{ns}/configmaps?timeoutSeconds=1&fieldSelector=metadata.name%3Da"):
        assert brief(collect(s, path)) == [("ADDED", "a")], path
    assert s.ok("GET", configmaps(ns, "a") + "?watch=1")["kind"] == "ConfigMap"
    for word in ("0", "false"):
        assert s.ok("GET", configmaps(ns) + f"?watch={word}")["kind"] == "ConfigMapList"


def test_table_events(s):
    ns = s.namespace()
    start = version_of(s.ok("POST", configmaps(ns), configmap("base")))
    s.ok("POST", configmaps(ns), configmap("a", {"k": "v"}))
    s.ok("DELETE", configmaps(ns, "a"))
    events = collect(s, watching(configmaps(ns), timeoutSeconds=1, resourceVersion=start, fieldSelector="metadata.name=a"), TABLE)
    assert [e["type"] for e in events] == ["ADDED", "DELETED"]
    first, second = (e["object"] for e in events)
    assert first["kind"] == "Table" and first["apiVersion"] == "meta.k8s.io/v1"
    assert [c["name"] for c in first["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert second["columnDefinitions"] is None, "columns come once"
    assert first["rows"][0]["cells"][:2] == ["a", 1] and first["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


def test_metadata_events(s):
    pumps = Pumps(s)
    start = version_of(pumps.create("base"))
    pumps.create("a")
    s.ok("DELETE", pumps.path("a"))
    events = collect(s, watching(pumps.path(), timeoutSeconds=1, resourceVersion=start), PARTIAL)
    assert brief(events) == [("ADDED", "a"), ("DELETED", "a")]
    for e in events:
        assert (e["object"]["kind"], e["object"]["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1") and "spec" not in e["object"]


def test_bookmarks_come_for_who_allows_them(s):
    ns = s.namespace()
    start = version_of(s.ok("POST", configmaps(ns), configmap("a")))
    latest = version_of(s.ok("POST", configmaps(ns), configmap("b")))
    events = collect(s, watching(configmaps(ns), timeoutSeconds=3, resourceVersion=start, allowWatchBookmarks="true", fieldSelector="metadata.name=none"))
    assert events and {e["type"] for e in events} == {"BOOKMARK"}
    last = events[-1]["object"]
    assert last["kind"] == "ConfigMap" and int(version_of(last)) >= int(latest)
    assert set(last["metadata"]) - {"creationTimestamp"} == {"resourceVersion"}


def test_the_time_a_watch_may_last_is_kept(s):
    ns = s.namespace()
    assert collect(s, watching(configmaps(ns), timeoutSeconds=1, labelSelector="none")) == []


def test_a_thousand_changes_by_four_writers_arrive_in_order_without_gap(s):
    ns, writers, each = s.namespace(), 4, 250
    start = s.ok("GET", configmaps(ns))["metadata"]["resourceVersion"]
    written, lock = [], threading.Lock()

    def write(w):
        name = f"w{w}"
        mine = [version_of(s.ok("POST", configmaps(ns), configmap(name, {"i": "0"})))]
        for i in range(1, each):
            mine.append(version_of(s.ok("PUT", configmaps(ns, name), configmap(name, {"i": str(i)}))))
        with lock:
            written.extend(mine)

    streams = [s.watch(watching(configmaps(ns), resourceVersion=start, fieldSelector="metadata.name!=kube-root-ca.crt")) for _ in range(3)]
    threads = [threading.Thread(target=write, args=(w,)) for w in range(writers)]
    for t in threads:
        t.start()
    seen = [[version_of(e["object"]) for e in take(stream, writers * each)] for stream in streams]
    for t in threads:
        t.join()
    assert seen[0] == sorted(written, key=int) and seen[1] == seen[0] and seen[2] == seen[0]


def test_a_version_that_is_too_old():
    with Server("--history-seconds", "1") as s:
        ns = s.namespace()
        old = version_of(s.ok("POST", configmaps(ns), configmap("a")))
        path = watching(configmaps(ns), timeoutSeconds=1, resourceVersion=old)

        def expired():
            """Changes push old history out; then the watch says so in its stream."""
            s.ok("PUT", configmaps(ns, "a"), configmap("a", {"x": unique()}))
            connection = s.connect()
            connection.request("GET", path)
            first = json.loads(connection.getresponse().readline())
            connection.close()
            return first if first["type"] == "ERROR" else None

        event = wait_until(expired, what="410")
        status = event["object"]
        assert (status["kind"], status["code"], status["reason"], status["status"]) == ("Status", 410, "Expired", "Failure")
        assert status["message"].startswith(f"too old resource version: {old} (")
        for headers in (TABLE, PARTIAL):
            assert collect(s, path, headers)[0]["object"]["code"] == 410
        fresh = s.ok("GET", configmaps(ns))["metadata"]["resourceVersion"]
        stream = s.watch(watching(configmaps(ns), resourceVersion=fresh))
        s.ok("PUT", configmaps(ns, "a"), configmap("a", {"x": "after"}))
        assert next(stream)["object"]["data"] == {"x": "after"}, "a new list is the way out"


def test_events_survive_a_restart_of_the_server():
    with Server() as s:
        ns = s.namespace()
        start = version_of(s.ok("POST", configmaps(ns), configmap("base")))
        s.ok("POST", configmaps(ns), configmap("a"))
        s.kill()
        s.start()
        s.ok("POST", configmaps(ns), configmap("b"))
        stream = s.watch(watching(configmaps(ns), resourceVersion=start, fieldSelector="metadata.name!=kube-root-ca.crt"))
        assert brief(take(stream, 2)) == [("ADDED", "a"), ("ADDED", "b")]


def test_a_graceful_end_ends_watches():
    with Server() as s:
        stream = s.watch(watching("/api/v1/configmaps", labelSelector="none", sendInitialEvents="true", resourceVersionMatch="NotOlderThan",
                                  allowWatchBookmarks="true"))
        take(stream, 1)
        s.process.terminate()
        assert list(stream) == [], "the stream ends whole, not broken"
        assert s.process.wait(20) == 0


class WebSocket:
    """A client of RFC 6455 by hand."""

    def __init__(self, s, path, protocol=None):
        self.socket = s.context().wrap_socket(socket.create_connection(("127.0.0.1", s.port), timeout=30), server_hostname="127.0.0.1")
        self.key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {self.key}",
                 "Sec-WebSocket-Version: 13", *([f"Sec-WebSocket-Protocol: {protocol}"] if protocol else [])]
        self.socket.sendall("\r\n".join(lines + ["", ""]).encode())
        self.stream = self.socket.makefile("rb")
        self.status = int(self.stream.readline().split()[1])
        self.headers = http.client.parse_headers(self.stream)

    def read(self):
        """(opcode, payload) of the next frame; the server's are not masked."""
        first, second = self.stream.read(2)
        length = second & 0x7f
        if length == 126:
            length, = struct.unpack(">H", self.stream.read(2))
        elif length == 127:
            length, = struct.unpack(">Q", self.stream.read(8))
        assert first & 0x80 and not second & 0x80
        return first & 0x0f, self.stream.read(length)

    def send(self, opcode, payload=b""):
        mask = os.urandom(4)
        self.socket.sendall(bytes([0x80 | opcode, 0x80 | len(payload)]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload)))

    def close(self):
        self.stream.close()
        self.socket.close()


TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


def test_websocket_text(s):
    ns = s.namespace()
    start = version_of(s.ok("POST", configmaps(ns), configmap("base")))
    ws = WebSocket(s, watching(configmaps(ns), resourceVersion=start, fieldSelector="metadata.name=a"))
    assert ws.status == 101 and ws.headers["Upgrade"].lower() == "websocket" and "Sec-WebSocket-Protocol" not in ws.headers
    made = s.ok("POST", configmaps(ns), configmap("a", {"k": "x" * 70_000}))
    opcode, payload = ws.read()
    assert opcode == TEXT and json.loads(payload) == {"type": "ADDED", "object": made}
    ws.send(PING, b"there?")
    assert ws.read() == (PONG, b"there?")
    s.ok("DELETE", configmaps(ns, "a"))
    assert json.loads(ws.read()[1])["type"] == "DELETED"
    ws.send(CLOSE, struct.pack(">H", 1000))
    assert ws.read()[0] == CLOSE
    assert ws.stream.read(1) == b""
    ws.close()


def test_websocket_with_the_protocol_of_dashboards(s):
    """A browser drops the connection unless its protocol is chosen; the frames are JSON text all the same, as kube-apiserver's."""
    ns = s.namespace()
    s.ok("POST", configmaps(ns), configmap("a"))
    ws = WebSocket(s, watching(configmaps(ns), resourceVersion=0, fieldSelector="metadata.name=a"), "base64.binary.k8s.io")
    assert ws.status == 101 and ws.headers["Sec-WebSocket-Protocol"] == "base64.binary.k8s.io"
    opcode, payload = ws.read()
    assert opcode == TEXT and json.loads(payload)["object"]["metadata"]["name"] == "a"
    ws.close()


def test_websocket_ends_with_its_time_and_tells_errors_before(s):
    ns = s.namespace()
    ws = WebSocket(s, watching(configmaps(ns), timeoutSeconds=1, labelSelector="none"))
    assert ws.status == 101 and ws.read()[0] == CLOSE
    ws.close()
    ws = WebSocket(s, watching(configmaps(ns), labelSelector="a b"))
    assert ws.status == 400
    ws.close()


def curl(s, *arguments):
    return ["curl", "--silent", "--show-error", "--no-buffer", "--http2", "--cacert", str(s.dir / "ca.pem"), "--cert", str(s.dir / "admin.pem"),
            "--key", str(s.dir / "admin-key.pem"), *arguments]


def test_http2_streams_events_as_they_come(s):
    ns = s.namespace()
    start = version_of(s.ok("POST", configmaps(ns), configmap("base")))
    url = f"https://127.0.0.1:{s.port}" + watching(configmaps(ns), resourceVersion=start, fieldSelector="metadata.name=a")
    with subprocess.Popen(curl(s, "--verbose", url), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
        try:
            for i in range(3):
                sent = s.ok("POST" if i == 0 else "PUT", configmaps(ns, None if i == 0 else "a"), configmap("a", {"i": str(i)}))
                assert json.loads(client.stdout.readline())["object"] == sent
        finally:
            client.kill()
        assert b"< HTTP/2 200" in client.stderr.read()


def test_http2_many_watches_on_one_connection(s):
    """curl runs these in parallel over one connection; each ends by its own time with the same events."""
    ns = s.namespace()
    start = version_of(s.ok("POST", configmaps(ns), configmap("base")))
    for i in range(5):
        s.ok("POST", configmaps(ns), configmap(f"m{i}", {"k": "y" * 50_000}))
    url = f"https://127.0.0.1:{s.port}" + watching(configmaps(ns), resourceVersion=start, timeoutSeconds=2, labelSelector="!none",
                                                  fieldSelector="metadata.name!=kube-root-ca.crt")
    files = [s.dir / unique("out") for _ in range(20)]
    wanted = [part for f in files for part in ("--output", str(f), url)]
    done = subprocess.run(curl(s, "--parallel", "--parallel-max", "20", "--write-out", "%{http_version} %{http_code} %{num_connects}\n", *wanted),
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 20 and all(line[:2] == ["2", "200"] for line in lines), done.stdout
    assert sum(int(line[2]) for line in lines) == 1, "one connection carries them all"
    for f in files:
        assert brief(json.loads(line) for line in f.read_bytes().splitlines()) == [("ADDED", f"m{i}") for i in range(5)]
