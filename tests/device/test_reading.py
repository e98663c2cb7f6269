# SPDX-License-Identifier: Apache-2.0
"""What users read of what devices send: stored, followed, chosen, resumed; by UUID and as subresources of the Device; who may."""
import json
import threading
import urllib.parse
import uuid

import h2
import wire
from eve import PROTO, entry
from fleet import Site, shared_site as site
from seth import Server, unique, wait_until

SECONDS = 60


def sent(send):
    """A busy controller asks to wait, logs first, and a device does."""
    def accepted():
        answer = send()
        assert answer.status in (201, 503), answer
        return answer.status == 201

    wait_until(accepted, what="the controller to have time")


def contents(lines):
    return [line["content"] for line in lines]


def query(**parameters):
    return "?" + urllib.parse.urlencode(parameters) if parameters else ""


class Follower:
    """A stream that does not end, read line by line."""

    def __init__(self, server, path, headers=None):
        self.connection = server.connect(timeout=SECONDS)
        self.connection.request("GET", path, headers=headers or {})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, (self.answer.status, self.answer.read())

    def line(self):
        text = self.answer.readline()
        assert text.endswith(b"\n"), text
        return json.loads(text)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()


def three_uploads(s):
    """A device and six lines in three uploads that overlap in the device's own time."""
    d = site(s).onboarded()
    sent(lambda: d.newlogs([entry("a", "error", when=100), entry("b", when=300)]))
    sent(lambda: d.logs([entry("c", "error", "nim", when=200), entry("d", when=500)]))
    sent(lambda: d.newlogs([entry("e", "warning", when=400), entry("f", "error", when=600)]))
    return d


# ---- what is stored

def test_lines_and_ids(s):
    d = three_uploads(s)
    lines = site(s).read(d, "log")
    assert contents(lines) == list("abcdef")
    assert len({line["id"] for line in lines}) == 6
    for i, line in enumerate(lines):
        assert contents(site(s).read(d, "log", after=line["id"])) == list("abcdef")[i + 1:], line
    record = lines[2]["id"].split("-")[0]
    assert contents(site(s).read(d, "log", after=record)) == ["e", "f"]
    first = lines[0]
    assert first["timestamp"].startswith("1970-01-01T00:01:40") and first["severity"] == "error" and first["source"] == "test"
    assert first["iid"] == "1" and first["msgid"] == 1 and "app" not in first and first["arrived"].endswith("Z")


def test_choosing(s):
    d, app = three_uploads(s), str(uuid.uuid4())
    for parameters, expected in (({"severity": "error"}, "acf"), ({"severity": "error,warning"}, "acef"), ({"source": "nim"}, "c"),
                                 ({"contains": "e"}, "e"), ({"limit": 2}, "ef"), ({"limit": 2, "severity": "error"}, "cf"),
                                 ({"by": "device"}, "acbedf"), ({"by": "device", "limit": 2}, "df"),
                                 ({"by": "device", "start": 200, "end": "1970-01-01T00:08:20Z"}, "cbe"),
                                 ({"start": 200}, "abcdef"), ({"end": 200}, ""), ({"app": app}, "")):
        assert "".join(contents(site(s).read(d, "log", **parameters))) == expected, parameters
    sent(lambda: d.app_newlogs(app, [entry("g")]))
    assert contents(site(s).read(d, "log", app=app)) == ["g"]
    assert site(s).read(d, "log", app=app)[0]["app"] == app
    assert "".join(contents(site(s).read(d, "log", app="none"))) == "abcdef"
    assert "".join(contents(site(s).read(d, "log"))) == "abcdefg"
    middle = site(s).read(d, "log", by="device")[2]
    assert "".join(contents(site(s).read(d, "log", by="device", after=middle["id"], app="none"))) == "edf"


def test_times_of_arrival(s):
    d = three_uploads(s)
    arrived = [line["arrived"] for line in site(s).read(d, "log")]
    assert arrived == sorted(arrived)
    assert contents(site(s).read(d, "log", start=arrived[2]))[-4:] == list("cdef")
    assert contents(site(s).read(d, "log", end=arrived[2])) in ([], ["a", "b"])


def test_messages(s):
    d, app = site(s).onboarded(), str(uuid.uuid4())
    sent(lambda: d.info({"ztype": "ZiDevice", "dinfo": {"machineArch": "x86_64"}}))
    sent(lambda: d.info({"ztype": "ZiApp", "ainfo": {"AppID": app}}))
    sent(lambda: d.metrics())
    sent(lambda: d.flowlog([{"txBytes": 2**40}], uuid=app))
    sent(lambda: d.hardwarehealth())
    lines = site(s).read(d, "info")
    assert [line["message"]["ztype"] for line in lines] == ["ZiDevice", "ZiApp"]
    assert lines[0]["message"]["devId"] == d.uuid
    for kind in ("ZiApp", "app", "3"):
        assert site(s).read(d, "info", type=kind) == lines[1:]
    assert site(s).read(d, "info", app=app) == lines[1:] and site(s).read(d, "info", app="none") == lines[:1]
    assert site(s).read(d, "flowlog", app=app)[0]["message"]["flows"][0]["txBytes"] == str(2**40)
    assert len(site(s).read(d, "metrics")) == len(site(s).read(d, "hardware")) == 1
    wait_until(lambda: any(line["url"].endswith("/info") and line["status"] == 201 for line in site(s).read(d, "requests")),
               what="the request in the stream")


def test_the_same_as_subresources_of_the_device(s):
    d = three_uploads(s)
    base = site(s).path("devices", site(s).name(d))
    for stream in ("log", "info", "metrics", "flowlog", "hardware"):
        status, headers, data = s.exchange("GET", f"{base}/{stream}")
        assert status == 200 and headers["Content-Type"] == "application/x-ndjson", (stream, status, data)
        assert [json.loads(line) for line in data.splitlines()] == site(s).read(d, stream)
    text = s.kubectl("get", "--raw", f"{base}/log?limit=1")
    assert json.loads(text)["content"] == "f"
    seen = s.ok("GET", f"{base}/lastseen")
    assert seen == s.ok("GET", f"/edgenode/{d.uuid}/lastseen")
    assert seen["device"] == site(s).name(d) and seen["uuid"] == d.uuid and seen["lastSeen"] >= site(s).read(d, "log", limit=1)[0]["arrived"][:10]


def test_raw_messages(s):
    d = site(s).onboarded()
    for i in range(3):
        sent(lambda: d.info({"ztype": "ZiDevice", "dinfo": {"machineArch": "x" * 100 * i}}))
    sent(lambda: d.newlogs([entry("one", when=7, tags={"k": "v"}), entry("two")]))
    status, headers, data = s.exchange("GET", f"/edgenode/{d.uuid}/info", headers={"Accept": PROTO})
    assert status == 200 and headers["Content-Type"] == PROTO
    messages = split_messages(data)
    assert [len(wire.decode("info.ZInfoMsg", m)["dinfo"].get("machineArch", "")) for m in messages] == [0, 100, 200]
    _, _, data = s.exchange("GET", f"/edgenode/{d.uuid}/log", headers={"Accept": PROTO})
    entries = [wire.decode("logs.LogEntry", m) for m in split_messages(data)]
    assert [e["content"] for e in entries] == ["one", "two"] and entries[0]["timestamp"]["seconds"] == 7
    assert s.exchange("GET", f"/edgenode/{d.uuid}/requests", headers={"Accept": PROTO})[0] == 406


def split_messages(data):
    messages, at = [], 0
    while at < len(data):
        n, at = wire.read_varint(data, at)
        messages.append(data[at:at + n])
        at += n
    assert at == len(data)
    return messages


def test_much_is_read_whole(s):
    """More than is sent at once, several uploads of thousands of lines."""
    d = site(s).onboarded()
    for upload in range(6):
        sent(lambda: d.newlogs([entry(f"{upload} {i} " + "x" * 100, when=1000 * i + upload + 1) for i in range(3000)]))
    lines = site(s).read(d, "log")
    assert [line["content"].split()[:2] for line in lines] == [[str(u), str(i)] for u in range(6) for i in range(3000)]
    ordered = site(s).read(d, "log", by="device")
    assert [line["content"].split()[:2] for line in ordered] == [[str(u), str(i)] for i in range(3000) for u in range(6)]
    assert site(s).read(d, "log", limit=4000) == lines[-4000:]


# ---- refusals

def test_refusals(s):
    d = three_uploads(s)
    log = f"/edgenode/{d.uuid}/log"
    for path, code, words in ((f"{log}?limit=x", 400, "limit"), (f"{log}?start=soon", 400, "RFC 3339"), (f"{log}?by=size", 400, "arrival or device"),
                              (f"{log}?after=a-b", 400, "after"), (f"{log}?colour=red", 400, "severity, source"), (f"{log}?type=1", 400, "type"),
                              (f"{log}?app=web", 400, "UUID"), (f"/edgenode/{d.uuid}/info?type=ZiNone", 400, "ZiDevice"),
                              (f"{log}?by=device&after=999999999", 410, "after"), (f"/edgenode/{uuid.uuid4()}/log", 404, "UUID"),
                              ("/edgenode/me/log", 404, "UUID"), (f"/edgenode/{d.uuid}/logs", 404, ""), (f"/edgenode/{d.uuid}", 404, ""),
                              (site(s).path("devices", "nobody") + "/log", 404, "nobody")):
        status, answer = s.request("GET", path)
        assert status == code and words in json.dumps(answer), (path, status, answer)
        assert code == 404 and not words or answer["kind"] == "Status", (path, answer)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for path in (log, site(s).path("devices", site(s).name(d)) + "/log"):
            assert s.request(method, path, {})[0] == 405, (method, path)
    status, answer = s.request("GET", f"{log}?end=100", headers={"X-Stream": "true"})
    assert status == 400 and "end" in answer["message"], answer


def test_rights(s):
    d, user = three_uploads(s), unique("reader")
    device, ns = site(s).path("devices", site(s).name(d)), site(s).ns
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    s.ok("POST", f"{rbac}/namespaces/{ns}/roles", {"metadata": {"name": user}, "rules": [
        {"apiGroups": ["eve.lfedge.org"], "resources": ["devices/log"], "verbs": ["get"]}]})
    s.ok("POST", f"{rbac}/namespaces/{ns}/rolebindings", {
        "metadata": {"name": user}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
        "subjects": [{"kind": "User", "name": user}]})
    other = Site(s).onboarded()
    headers = {"Impersonate-User": user}
    for path, code in ((f"/edgenode/{d.uuid}/log", 200), (f"{device}/log", 200), (f"/edgenode/{d.uuid}/info", 403), (f"{device}/info", 403),
                       (device, 403), (f"/edgenode/{other.uuid}/log", 403), (f"/edgenode/{uuid.uuid4()}/log", 403)):
        status, answer = s.request("GET", path, headers=headers, raw=True)
        assert status == code, (path, status, answer)


# ---- following

def test_following_in_every_way(s):
    d = three_uploads(s)
    device = site(s).path("devices", site(s).name(d))
    for path, headers in ((f"/edgenode/{d.uuid}/log?follow=true&limit=1", {}), (f"/edgenode/{d.uuid}/log?limit=1", {"X-Stream": "true"}),
                          (f"{device}/log?follow=true&limit=1", {}), (f"{device}/log?limit=1&by=device", {"X-Stream": "true"})):
        newest = site(s).read(d, "log", limit=1)[0]["content"]
        with Follower(s, path, headers) as f:
            line = f.line()
            assert line["content"] == ("f" if "by=device" in path else newest), path
            for i in range(3):
                sent(lambda: d.newlogs([entry(f"new {i}", when=50), entry(f"and {i}", when=50)]))
                assert [f.line()["content"], f.line()["content"]] == [f"new {i}", f"and {i}"]


def test_following_what_matches(s):
    d = site(s).onboarded()
    with Follower(s, f"/edgenode/{d.uuid}/log?follow=true&severity=error") as errors, Follower(s, f"/edgenode/{d.uuid}/info?follow=true&type=app") as apps:
        sent(lambda: d.newlogs([entry("quiet"), entry("loud", "error")]))
        sent(lambda: d.info({"ztype": "ZiDevice", "dinfo": {}}))
        sent(lambda: d.info({"ztype": "ZiApp", "ainfo": {}}))
        assert errors.line()["content"] == "loud"
        assert apps.line()["message"]["ztype"] == "ZiApp"


def test_following_over_http2(s):
    d = three_uploads(s)
    c = h2.Http2(s)
    stream = c.request("GET", f"/edgenode/{d.uuid}/log?follow=true&limit=1")
    text = b""

    def lines(n):
        nonlocal text
        while text.count(b"\n") < n:
            frame = c.read()
            if frame.type == h2.DATA and frame.stream == stream:
                assert not frame.flags & h2.END_STREAM
                text += frame.payload
        return [json.loads(line)["content"] for line in text.splitlines()]

    assert lines(1) == ["f"]
    sent(lambda: d.newlogs([entry("new")]))
    assert lines(2) == ["f", "new"]
    c.close()


def test_many_followers(s):
    d = site(s).onboarded()
    followers = [Follower(s, f"/edgenode/{d.uuid}/log?follow=true") for _ in range(50)]
    try:
        sent(lambda: d.newlogs([entry("to all")]))
        assert all(f.line()["content"] == "to all" for f in followers)
    finally:
        for f in followers:
            f.connection.close()
    assert site(s).read(d, "log", limit=1)[0]["content"] == "to all"


def test_a_reader_that_does_not_read_holds_up_nobody(s):
    d = site(s).onboarded()
    for upload in range(10):
        sent(lambda: d.newlogs([entry("x" * 400) for _ in range(1000)]))
    with Follower(s, f"/edgenode/{d.uuid}/log?follow=true") as idle:
        for i in range(20):
            sent(lambda: d.newlogs([entry(f"late {i}")]))
        assert site(s).read(d, "log", limit=1)[0]["content"] == "late 19"
        words = [idle.line()["content"] for _ in range(10020)]
        assert words[-20:] == [f"late {i}" for i in range(20)]


def test_resuming_across_a_restart():
    with Server() as s:
        site = Site(s)
        d = site.onboarded()
        sent(lambda: d.newlogs([entry("a"), entry("b"), entry("c")]))
        with Follower(s, f"/edgenode/{d.uuid}/log?follow=true") as f:
            last = [f.line() for _ in range(2)][-1]["id"]
            s.kill()
        s.start()
        sent(lambda: d.newlogs([entry("d")]))
        with Follower(s, f"/edgenode/{d.uuid}/log?follow=true&after={last}") as f:
            assert [f.line()["content"] for _ in range(2)] == ["c", "d"]
            # A server that is told to stop ends its streams.
            rest = []
            reader = threading.Thread(target=lambda: rest.append(f.answer.read()))
            reader.start()
            assert s.stop() == 0
            reader.join(SECONDS)
            assert rest == [b""], rest


def test_a_deleted_device_is_forgotten(s):
    mine = Site(s)
    d = mine.onboarded()
    sent(lambda: d.newlogs([entry("secret")]))
    with Follower(s, f"/edgenode/{d.uuid}/log?follow=true") as f:
        assert f.line()["content"] == "secret"
        mine.delete(d)
        assert f.answer.read() == b""  # its end
    wait_until(lambda: s.request("GET", f"/edgenode/{d.uuid}/log")[0] == 404, what="the device to be gone")
