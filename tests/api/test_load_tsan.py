# SPDX-License-Identifier: Apache-2.0
"""Everything at once under ThreadSanitizer: writers, readers, lists, watches, kinds that come and go, connections that come and
go, certificates reloaded and a backup taken meanwhile, and the end under load. Bounded by counts, not by time."""
import http.client
import json
import os
import pathlib
import random
import signal
import subprocess
import threading

import seth
from h2 import END_STREAM, Http2
from seth import Server, TOP, wait_until

BUILD = TOP / "build/tsan"
SEED = 20260101
THREADS = "4"
N_WRITERS, N_WRITES = 6, 120
N_READERS, N_READS = 4, 120
N_WATCHERS, N_WATCHES = 4, 12
N_KINDS, N_KIND_CHANGES = 2, 8
N_NAMESPACES = 10
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE, APPLY, JSON_PATCH = "application/merge-patch+json", "application/apply-patch+yaml", "application/json-patch+json"


def tsan_binary():
    """The build with ThreadSanitizer, made when it is not there."""
    binary = pathlib.Path(os.environ.get("SETH_TSAN", BUILD / "server/seth"))
    if not binary.exists():
        if not (BUILD / "build.ninja").exists():
            subprocess.run(["meson", "setup", str(BUILD), "-Db_sanitize=thread", "-Dbuildtype=debugoptimized"],
                           cwd=TOP, check=True, capture_output=True)
        subprocess.run(["ninja", "-C", str(BUILD), "server/seth"], check=True, capture_output=True)
    return str(binary)


def crd(plural, n_fields=1):
    fields = {f"field{i}": {"type": "string"} for i in range(n_fields)}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.load.example.org"},
            "spec": {"group": "load.example.org", "scope": "Namespaced",
                     "names": {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].title(), "listKind": plural[:-1].title() + "List"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                                   "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                                       "spec": {"type": "object", "properties": {"number": {"type": "integer"}, **fields}},
                                       "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}]}}


WIDGETS = "/apis/load.example.org/v1/namespaces/default/widgets"


class Worker(threading.Thread):
    """One thread with a connection of its own; keeps the first failure."""

    def __init__(self, s, number):
        super().__init__(daemon=True)
        self.s, self.number, self.rng = s, number, random.Random(f"{SEED} {type(self).__name__} {number}")
        self.error, self.n_done, self.connection = None, 0, None

    def ask(self, method, path, body=None, content_type="application/json", accept="application/json"):
        if self.connection is None or self.rng.random() < 0.05:  # a new handshake now and then
            if self.connection:
                self.connection.close()
            self.connection = self.s.connect()
        self.connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": content_type, "Accept": accept})
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def expect(self, wanted, *request):
        status, data = self.ask(*request)
        assert status in wanted, (request[:2], status, data[:500])
        return data

    def run(self):
        try:
            self.work()
        except BaseException as e:
            self.error = e


class Writer(Worker):
    def work(self):
        for i in range(N_WRITES):
            name, number = f"w{self.number}-{i % 10}", {"number": i}
            body = {"apiVersion": "load.example.org/v1", "kind": "Widget", "metadata": {"name": name, "labels": {"app": "load"}}, "spec": number}
            path = f"{WIDGETS}/{name}"
            step = i // 10 % 6
            if step == 0:
                self.expect((201, 409), "POST", WIDGETS, body)
                self.expect((201, 409), "POST", CONFIGMAPS, {"metadata": {"name": name}, "data": {"text": "x" * 2000}})
            elif step == 1:
                self.expect((200,), "PATCH", path, {"spec": number}, MERGE)
            elif step == 2:
                self.expect((200,), "PATCH", f"{path}/status", {"status": {"at": i}}, MERGE)
            elif step == 3:
                self.expect((200,), "PATCH", f"{path}?fieldManager=load&force=true", body, APPLY)
            elif step == 4:
                current = json.loads(self.expect((200,), "GET", path))
                current["spec"]["number"] = -i
                self.expect((200,), "PUT", path, current)
            else:
                self.expect((200,), "DELETE", path)
                self.expect((200,), "DELETE", f"{CONFIGMAPS}/{name}")
            # All writers fight over one object.
            self.expect((200,), "PATCH", f"{CONFIGMAPS}/shared", [{"op": "add", "path": f"/data/w{self.number}", "value": str(i)}], JSON_PATCH)
            self.n_done += 1


class Reader(Worker):
    PATHS = (f"{CONFIGMAPS}/shared", WIDGETS, f"{WIDGETS}?limit=3", f"{WIDGETS}?labelSelector=app%3Dload", "/api/v1/namespaces", "/apis",
             CRDS, "/openapi/v2", "/openapi/v3", "/openapi/v3/apis/load.example.org/v1", "/readyz?verbose", "/version", "/apis/load.example.org/v1",
             f"{CONFIGMAPS}?fieldSelector=metadata.name%3Dshared", "/nonsense", f"{WIDGETS}/absent", f"{CONFIGMAPS}?resourceVersion=1&resourceVersionMatch=Exact")
    ACCEPTS = ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
               "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", "*/*")

    def work(self):
        for i in range(N_READS):
            status, data = self.ask("GET", self.rng.choice(self.PATHS), None, "application/json", self.rng.choice(self.ACCEPTS))
            assert status < 500, (status, data[:500])
            self.n_done += 1


class Watcher(Worker):
    """Some on HTTP/1.1 to their end, some cut off, some on one HTTP/2 connection."""

    def work(self):
        shared = Http2(self.s)
        for i in range(N_WATCHES):
            path = self.rng.choice((WIDGETS, CONFIGMAPS, "/apis/load.example.org/v1/widgets", CRDS))
            options = self.rng.choice(("", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "&labelSelector=app%3Dload"))
            url = f"{path}?watch=1&timeoutSeconds=1{options}"
            streams = {shared.request("GET", url) for _ in range(3)}
            try:
                for n, event in enumerate(self.s.watch(url)):
                    assert event["type"] in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"), event
                    if n > 30 and self.rng.random() < 0.1:
                        break
            except http.client.HTTPException as e:
                raise AssertionError(f"a watch was cut off: {e!r}") from e
            while streams:
                frame = shared.read()
                assert frame, "the connection ended"
                if frame.flags & END_STREAM:
                    streams.discard(frame.stream)
            self.n_done += 1
        shared.close()


class KindChanger(Worker):
    def is_established(self, path):
        conditions = json.loads(self.expect((200,), "GET", path)).get("status", {}).get("conditions") or []
        return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

    def work(self):
        plural = f"gadget{self.number}s"
        for i in range(N_KIND_CHANGES):
            self.expect((201,), "POST", CRDS, crd(plural))
            path = f"/apis/load.example.org/v1/namespaces/default/{plural}"
            wait_until(lambda: self.is_established(f"{CRDS}/{plural}.load.example.org"), what="the kind")
            for n in range(3):
                self.expect((201,), "POST", path, {"apiVersion": "load.example.org/v1", "kind": plural[:-1].title(), "metadata": {"name": f"g{n}"}, "spec": {"field0": "a"}})
            self.expect((200,), "PATCH", f"{CRDS}/{plural}.load.example.org", {"spec": {"versions": crd(plural, 3)["spec"]["versions"]}}, MERGE)
            self.expect((200,), "DELETE", f"{CRDS}/{plural}.load.example.org")
            wait_until(lambda: self.ask("GET", f"{CRDS}/{plural}.load.example.org")[0] == 404, 60, "the kind to go")
            self.n_done += 1


class NamespaceChanger(Worker):
    def work(self):
        for i in range(N_NAMESPACES):
            self.expect((201,), "POST", "/api/v1/namespaces", {"metadata": {"name": f"load-{i}"}})
            self.expect((201,), "POST", f"/api/v1/namespaces/load-{i}/configmaps", {"metadata": {"name": "a"}})
            self.expect((200, 202), "DELETE", f"/api/v1/namespaces/load-{i}")
            self.n_done += 1


class Operator(Worker):
    """What an operator does meanwhile."""

    def work(self):
        for i in range(4):
            self.s.process.send_signal(signal.SIGHUP)
            done = subprocess.run([seth.binary(), "backup", str(self.s.dir / f"backup-{i}"), "--data-dir", str(self.s.dir)], capture_output=True, text=True)
            assert done.returncode == 0 and "Sanitizer" not in done.stderr, done.stderr
            self.n_done += 1


def run_all(workers):
    for w in workers:
        w.start()
    for w in workers:
        w.join(300)
        assert not w.is_alive(), f"{type(w).__name__} hangs after {w.n_done}"
        if w.error:
            raise w.error


class Hammer(Worker):
    """Writes until the server goes."""

    def work(self):
        try:
            while True:
                self.expect((200,), "PATCH", f"{CONFIGMAPS}/shared", {"data": {f"h{self.number}": str(self.n_done)}}, MERGE)
                self.n_done += 1
        except (http.client.HTTPException, OSError):
            pass


def test_no_races_under_load():
    os.environ["SETH"] = tsan_binary()
    environment = {"TSAN_OPTIONS": "halt_on_error=0 exitcode=66 second_deadlock_stack=1 history_size=4"}
    with Server("--threads", THREADS, "--history-bytes", "1048576", environment=environment) as s:
        s.ok("POST", CRDS, crd("widgets"))
        wait_until(lambda: s.request("GET", WIDGETS)[0] == 200, what="the kind to be served")
        s.ok("POST", CONFIGMAPS, {"metadata": {"name": "shared"}, "data": {"a": "b"}})
        workers = [Writer(s, i) for i in range(N_WRITERS)] + [Reader(s, i) for i in range(N_READERS)]
        workers += [Watcher(s, i) for i in range(N_WATCHERS)] + [KindChanger(s, i) for i in range(N_KINDS)]
        run_all(workers + [NamespaceChanger(s, 0), Operator(s, 0)])
        hammers = [Hammer(s, i) for i in range(N_WRITERS)]
        for h in hammers:
            h.start()
        wait_until(lambda: all(h.n_done > 10 or h.error for h in hammers), what="writes")
        code = s.stop()
        for h in hammers:
            h.join(30)
            assert not h.error, h.error
        log = s.read_log()
        assert "ThreadSanitizer" not in log, log[log.index("ThreadSanitizer") - 200:][:8000]
        assert code == 0, f"exit code {code}\n{log[-3000:]}"
