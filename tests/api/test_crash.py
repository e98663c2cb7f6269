# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments, fifty times, under eight writers and two watchers: what was acknowledged is there with its
resourceVersion, nothing is half there, and a watch that resumes sees every change once and in order.

The writers stop at each crash until the server is back and its whole state has been compared with what they were told. A
write that was under way when the server died may have happened or not, but wholly. CRASH_SEED repeats a run's choices (not its
timing), CRASH_ROUNDS changes the number of kills."""
import hashlib
import http.client
import json
import os
import random
import signal
import subprocess
import threading
import time

import seth
from seth import Server, TOP, wait_until

RELEASE = TOP / "build/release/server/seth"
if RELEASE.exists():
    os.environ.setdefault("SETH", str(RELEASE))  # fifty restarts: the sanitizers' slowness buys nothing here

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "50"))
SEED = int(os.environ.get("CRASH_SEED", str(random.SystemRandom().randrange(1 << 32))))
N_WRITERS = 8
N_KEYS = 6  # of each kind, per writer
WINDOW_SECONDS = (0.02, 0.5)  # of writing before a kill
GONE = (http.client.HTTPException, OSError)

WIDGETS = "/apis/crash.example.org/v1/namespaces/default/widgets"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
MINE = {"app": "crash"}

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.crash.example.org"},
    "spec": {
        "group": "crash.example.org", "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{
            "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {
                    "number": {"type": "integer"}, "text": {"type": "string"}, "digest": {"type": "string"}}},
                "status": {"type": "object", "properties": {"number": {"type": "integer"}}}}}}}]}}


# ---- what an object holds ---------------------------------------------------------------------

def digest(number, text):
    return hashlib.sha256(f"{number}:{text}".encode()).hexdigest()


def make_fields(rng, number, as_text):
    text = rng.randbytes(rng.choice((1, 100, 1000))).hex()
    return {"number": str(number) if as_text else number, "text": text, "digest": digest(number, text)}


class Widget:
    path, verbs = WIDGETS, ("put", "merge", "json", "apply", "status", "delete")

    @staticmethod
    def body(name, fields):
        return {"apiVersion": "crash.example.org/v1", "kind": "Widget", "metadata": {"name": name, "labels": MINE}, "spec": fields}

    @staticmethod
    def content(o):
        return {"fields": o["spec"], "status": o.get("status")}


class ConfigMap:
    path, verbs = CONFIGMAPS, ("put", "merge", "json", "apply", "delete")

    @staticmethod
    def body(name, fields):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": MINE}, "data": fields}

    @staticmethod
    def content(o):
        return {"fields": o["data"], "status": None}


def check_whole(o, kind):
    """No field of one write beside a field of another."""
    fields = kind.content(o)["fields"]
    assert fields["digest"] == digest(fields["number"], fields["text"]), f"torn: {o}"
    assert o["metadata"]["uid"] and o["metadata"]["creationTimestamp"], o


class State:
    """What a key holds as far as its writer was told: absent when content is None."""

    def __init__(self, content=None, revision=0, uid=None):
        self.content, self.revision, self.uid = content, revision, uid


class Change:
    """One acknowledged change, or one that a crash left unanswered and that turned out to have happened."""

    def __init__(self, kind, name, type, content, revision):
        self.kind, self.name, self.type, self.content, self.revision = kind, name, type, content, revision


# ---- writers ----------------------------------------------------------------------------------

class Client:
    """One TLS connection that is opened anew after a crash."""

    def __init__(self, server):
        self.server, self.connection = server, None

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def request(self, method, path, body=None, content_type="application/json"):
        if not self.connection:
            self.connection = self.server.connect(timeout=30)
        self.connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": content_type})
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())


class Writer(threading.Thread):
    def __init__(self, test, number):
        super().__init__(daemon=True)
        self.test, self.number = test, number
        self.rng = random.Random(SEED * 1000 + number)
        self.client = Client(test.server)
        self.keys = {(kind, f"w{number}-{i}"): State() for kind in (Widget, ConfigMap) for i in range(N_KEYS)}
        self.pending = None  # (kind, name, type, content) of the write that is not answered
        self.n_writes, self.last_revision = 0, 0

    def run(self):
        try:
            while self.test.gate.enter():
                try:
                    while True:
                        self.write_one()
                        if self.rng.random() < 0.1:
                            self.count_one()
                except GONE:
                    self.client.close()
        except BaseException as e:  # the main thread reports it
            self.test.fail(e)

    def write_one(self):
        kind, name = self.rng.choice(list(self.keys))
        state = self.keys[kind, name]
        self.n_writes += 1
        fields = make_fields(self.rng, self.n_writes, kind is ConfigMap)
        if state.content is None:
            verb, request, content, type = "create", ("POST", kind.path, kind.body(name, fields)), {"fields": fields, "status": None}, "ADDED"
        else:
            verb = self.rng.choice(kind.verbs)
            request, content = self.change(kind, name, state, verb, fields)
            type = "DELETED" if verb == "delete" else "MODIFIED"
        self.pending = (kind, name, type, content)
        status, answer = self.client.request(*request)
        assert status in (200, 201), f"{verb} {name}: {status} {answer}"
        self.acknowledge(kind, name, type, content, answer, state)

    def change(self, kind, name, state, verb, fields):
        path, part = f"{kind.path}/{name}", "spec" if kind is Widget else "data"
        content = {"fields": fields, "status": state.content["status"]}
        if verb == "put":
            body = kind.body(name, fields)
            body["metadata"]["resourceVersion"] = str(state.revision)
            return ("PUT", path, body), content
        if verb == "merge":
            return ("PATCH", path, {part: fields}, "application/merge-patch+json"), content
        if verb == "json":
            patch = [{"op": "test", "path": "/metadata/uid", "value": state.uid}, {"op": "replace", "path": f"/{part}", "value": fields}]
            return ("PATCH", path, patch, "application/json-patch+json"), content
        if verb == "apply":
            return ("PATCH", f"{path}?fieldManager=crash&force=true", kind.body(name, fields), "application/apply-patch+yaml"), content
        if verb == "status":
            status = {"number": self.n_writes}
            return ("PATCH", f"{path}/status", {"status": status}, "application/merge-patch+json"), {**state.content, "status": status}
        return ("DELETE", path), None

    def acknowledge(self, kind, name, type, content, answer, state):
        if type == "DELETED":
            new = State()
            revision = None  # a delete is answered by a Status: its revision is known to watchers alone
            assert answer["kind"] == "Status" and answer["details"]["uid"] == state.uid, answer
        else:
            assert kind.content(answer) == content, (answer, content)
            revision = int(answer["metadata"]["resourceVersion"])
            assert revision > self.last_revision, f"{revision} acknowledged after {self.last_revision}"
            assert state.uid is None or answer["metadata"]["uid"] == state.uid
            self.last_revision = revision
            new = State(content, revision, answer["metadata"]["uid"])
        self.keys[kind, name] = new
        self.pending = None
        self.test.changes.append(Change(kind, name, type, content, revision))

    def count_one(self):
        """One object for all writers: read, add one, write what was read. No two may be told of the same number."""
        path = f"{CONFIGMAPS}/counter"
        status, counter = self.client.request("GET", path)
        assert status == 200, counter
        number = int(counter["data"]["number"]) + 1
        counter["data"] = {"number": str(number), "text": "", "digest": digest(number, "")}
        status, answer = self.client.request("PUT", path, counter)
        assert status in (200, 409), answer
        if status == 200:
            self.test.counted.append(number)

    def resolve(self, found):
        """After a restart: each of my keys holds what was acknowledged, or the one write that was not answered."""
        for (kind, name), state in self.keys.items():
            o = found.pop((kind, name), None)
            content = kind.content(o) if o else None
            revision = int(o["metadata"]["resourceVersion"]) if o else 0
            if o:
                check_whole(o, kind)
            if content == state.content and revision == state.revision and (not o or o["metadata"]["uid"] == state.uid):
                continue
            assert self.pending, f"{name}: acknowledged {vars(state)}, found {o}"
            p_kind, p_name, p_type, p_content = self.pending
            assert (p_kind, p_name, p_content) == (kind, name, content), f"{name}: acknowledged {vars(state)}, under way {self.pending}, found {o}"
            assert not o or revision > self.last_revision, f"{name}: {revision} is not above {self.last_revision}"
            self.keys[kind, name] = State(content, revision, o["metadata"]["uid"] if o else None)
            self.last_revision = max(self.last_revision, revision)
            self.test.changes.append(Change(kind, name, p_type, content, revision or None))
            self.test.n_unanswered += 1
        self.pending = None


# ---- watchers ---------------------------------------------------------------------------------

class Watcher(threading.Thread):
    """Resumes from the last event it has seen, until it sees the object named `end`."""

    def __init__(self, test, kind, revision):
        super().__init__(daemon=True)
        self.test, self.kind, self.revision, self.events, self.n_resumed = test, kind, revision, [], 0

    def run(self):
        try:
            while not self.follow():
                self.n_resumed += 1
                if not self.test.gate.wait_for_server():
                    return
        except BaseException as e:
            self.test.fail(e)

    def follow(self):
        try:
            connection = self.test.server.connect(timeout=120)
            connection.request("GET", f"{self.kind.path}?watch=1&resourceVersion={self.revision}&labelSelector=app%3Dcrash")
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            for line in answer:
                if not line.endswith(b"\n"):
                    return False  # cut off by the crash
                if self.take(json.loads(line)):
                    return True
        except GONE:
            pass
        return False

    def take(self, event):
        o = event["object"]
        assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
        revision = int(o["metadata"]["resourceVersion"])
        assert revision > self.revision, f"an event of {revision} after {self.revision}"
        self.revision = revision
        if o["metadata"]["name"] == "end":
            return True
        if o["metadata"]["name"] != "counter":
            check_whole(o, self.kind)
            self.events.append(Change(self.kind, o["metadata"]["name"], event["type"], self.kind.content(o), revision))
        return False


# ---- the test ---------------------------------------------------------------------------------

class Gate:
    """Opened when the server is up and compared; writers come back to it when it is gone."""

    def __init__(self):
        self.condition, self.is_open, self.is_over, self.n_inside, self.round = threading.Condition(), False, False, 0, 0
        self.is_for_writers = True
        self.entered = threading.local()

    def enter(self):
        with self.condition:
            if getattr(self.entered, "round", None) is not None:
                self.n_inside -= 1
                self.condition.notify_all()
            self.condition.wait_for(lambda: self.is_over or (self.is_open and getattr(self.entered, "round", None) != self.round))
            self.entered.round = self.round
            self.n_inside += 1
            return self.is_for_writers and not self.is_over

    def wait_for_server(self):
        with self.condition:
            self.condition.wait_for(lambda: self.is_open or self.is_over)
            return not self.is_over

    def open(self):
        with self.condition:
            self.is_open = True
            self.round += 1
            self.condition.notify_all()

    def shut(self):
        with self.condition:
            self.is_open = False

    def wait_until_empty(self):
        with self.condition:
            assert self.condition.wait_for(lambda: self.n_inside == 0, 60), "a writer does not notice that the server is gone"

    def end(self):
        with self.condition:
            self.is_over = True
            self.condition.notify_all()


class CrashTest:
    def __init__(self, server):
        self.server, self.rng, self.gate = server, random.Random(SEED), Gate()
        self.changes, self.counted, self.errors, self.n_unanswered, self.highest = [], [], [], 0, 0
        self.writers = [Writer(self, i) for i in range(N_WRITERS)]

    def fail(self, error):
        self.errors.append(error)
        self.gate.end()

    def check_errors(self):
        if self.errors:
            raise self.errors[0]

    def prepare(self):
        s = self.server
        s.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
        wait_until(lambda: s.request("GET", WIDGETS)[0] == 200, what="the kind to be served")
        made = s.ok("POST", CONFIGMAPS, ConfigMap.body("counter", {"number": "0", "text": "", "digest": digest(0, "")}))
        self.highest = int(made["metadata"]["resourceVersion"])
        self.watchers = [Watcher(self, kind, self.highest) for kind in (Widget, ConfigMap)]

    def restart(self):
        """Starts again; now and then the start itself is killed, as long as it needs to get there."""
        s = self.server
        while self.rng.random() < 0.2:
            process = subprocess.Popen([seth.binary(), "server", "--data-dir", str(s.dir), "--secure-port", str(s.port)], stderr=s.log)
            time.sleep(self.rng.uniform(0, 0.1))
            process.kill()
            process.wait()
        s.log.close()
        s.start()

    def compare(self):
        """The whole state against what was acknowledged, before anyone writes again."""
        found, revision = {}, 0
        for kind in (Widget, ConfigMap):
            answer = self.server.ok("GET", f"{kind.path}?labelSelector=app%3Dcrash")
            revision = max(revision, int(answer["metadata"]["resourceVersion"]))
            for o in answer["items"]:
                assert self.server.ok("GET", f"{kind.path}/{o['metadata']['name']}")["metadata"] == o["metadata"]
                found[kind, o["metadata"]["name"]] = o
        counter = found.pop((ConfigMap, "counter"))
        check_whole(counter, ConfigMap)
        for writer in self.writers:
            writer.resolve(found)
        assert not found, f"nobody wrote {found}"
        counted = self.counted
        assert len(set(counted)) == len(counted), "two writers were told of the same number: an update was lost"
        assert int(counter["data"]["number"]) >= max(counted, default=0), counter
        seen = max([w.revision for w in self.watchers] + [c.revision or 0 for c in self.changes], default=0)
        assert revision >= max(seen, self.highest), f"the revision fell from {max(seen, self.highest)} to {revision}"
        for writer in self.writers:
            writer.last_revision = revision  # whatever is acknowledged from now on is above
        self.highest = revision

    def round(self):
        self.gate.open()
        time.sleep(self.rng.uniform(*WINDOW_SECONDS))
        self.gate.shut()
        self.server.process.send_signal(signal.SIGKILL)
        self.server.process.wait()
        self.gate.wait_until_empty()
        self.check_errors()
        self.restart()
        self.compare()

    def finish(self):
        """Both watchers reach the end, then what they saw is compared with what happened."""
        self.gate.open()
        for kind in (Widget, ConfigMap):
            self.server.ok("POST", kind.path, kind.body("end", make_fields(self.rng, 0, kind is ConfigMap)))
        for watcher in self.watchers:
            watcher.join(60)
            self.check_errors()
            assert not watcher.is_alive(), f"a watcher stays at {watcher.revision}"
            check_events(watcher, [c for c in self.changes if c.kind is watcher.kind])

    def run(self):
        self.prepare()
        for thread in self.writers + self.watchers:
            thread.start()
        try:
            for _ in range(ROUNDS):
                self.round()
            self.gate.is_for_writers = False
            self.finish()
        finally:
            self.gate.end()


def by_key(changes):
    keys = {}
    for c in changes:
        keys.setdefault(c.name, []).append(c)
    return keys


def check_events(watcher, changes):
    """Per key the same changes in the same order, each once; where the writer knows the revision it is the same."""
    seen, made = by_key(watcher.events), by_key(changes)
    assert set(seen) == set(made), set(seen) ^ set(made)
    for name, expected in made.items():
        got = seen[name]
        for g, e in zip(got, expected):
            same = g.type == e.type and (e.revision is None or g.revision == e.revision)
            assert same and (e.type == "DELETED" or g.content == e.content), f"{name}: saw {vars(g)}, expected {vars(e)}"
        assert len(got) == len(expected), f"{name}: saw {len(got)} changes, {len(expected)} happened"
    revisions = [c.revision for c in changes if c.revision]
    assert len(set(revisions)) == len(revisions), "a resourceVersion was given twice"
    assert len(watcher.events) == len(changes)


def test_nothing_acknowledged_is_lost():
    print(f"CRASH_SEED={SEED} CRASH_ROUNDS={ROUNDS} {seth.binary()}", flush=True)
    begin = time.monotonic()
    with Server() as server:
        test = CrashTest(server)
        test.run()
        assert all(w.n_resumed >= ROUNDS / 2 for w in test.watchers), [w.n_resumed for w in test.watchers]
        assert len(test.changes) > 10 * ROUNDS, "too few writes to mean anything"
        assert len(test.counted) > ROUNDS / 2
        print(f"{ROUNDS} kills in {time.monotonic() - begin:.0f} s: {len(test.changes)} changes, {test.n_unanswered} of them unanswered, "
              f"{len(test.counted)} counted, watches resumed {[w.n_resumed for w in test.watchers]} times", flush=True)
