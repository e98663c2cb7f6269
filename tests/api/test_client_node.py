# SPDX-License-Identifier: Apache-2.0
"""The JavaScript client, as dashboards and controllers written in it use the server."""
import contextlib
import fcntl
import json
import shutil
import subprocess

from expect import configmap, configmaps, merge
from pumps import Pumps
from seth import TOP, Server, wait_until

HERE, INSTALLED = TOP / "tests/api/node", TOP / "build/node"
NPM_SECONDS = 600


def install():
    """The package under build/node, once for each package-lock.json; returns the program to run."""
    INSTALLED.mkdir(parents=True, exist_ok=True)
    lock, done = (HERE / "package-lock.json").read_text(), INSTALLED / ".done"
    with open(INSTALLED / ".lock", "w", encoding="ascii") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not done.exists() or done.read_text() != lock:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, INSTALLED)
            subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], cwd=INSTALLED, check=True, timeout=NPM_SECONDS)
            done.write_text(lock)
        shutil.copy(HERE / "client.mjs", INSTALLED)
    return str(INSTALLED / "client.mjs")


@contextlib.contextmanager
def node(s, *arguments):
    """The client while it runs: an iterator over what it says."""
    program = install()
    with open(s.dir / "node.log", "w+", encoding="utf-8") as log, \
            subprocess.Popen(["node", program, arguments[0], s.kubeconfig, *arguments[1:]], stdout=subprocess.PIPE, stderr=log, text=True) as client:
        def lines():
            for line in client.stdout:
                yield json.loads(line)
            log.seek(0)
            assert client.wait(30) == 0, log.read()
        try:
            yield lines()
        finally:
            client.kill()


def results(s, *arguments):
    """Everything a command says until it ends, in one dictionary."""
    with node(s, *arguments) as lines:
        return {key: value for line in lines for key, value in line.items()}


def next_of(lines, kind):
    return next(line for line in lines if line.get("type") == kind)


def test_native_objects(s):
    ns = s.namespace()
    got = results(s, "nativeObjects", ns)
    assert ns in got["namespaces"] and got["made"] == {"k": "1"} and got["isDate"] and len(got["uid"]) == 36
    assert got["exists"] == {"code": 409, "reason": "AlreadyExists", "message": 'configmaps "a" already exists'}
    assert got["missing"]["code"] == 404 and got["stale"]["reason"] == "Conflict"
    assert (got["merged"], got["stepped"], got["strategic"]) == ({"k": "2", "l": "1"}, {"l": "1"}, {"l": "1", "m": "1"})
    assert got["conflict"]["reason"] == "Conflict" and ".data.k" in got["conflict"]["message"]
    assert got["forced"] == {"k": "2"} and got["managers"] == ["two Apply"]
    assert got["paged"] == [["p0", "p1"], ["p2", "p3"], ["p4"]] and got["deleted"] == "Success"
    assert [n for n in got["left"] if n != "kube-root-ca.crt"] == ["applied"]


def test_custom_objects(s):
    pumps = Pumps(s)
    got = results(s, "customObjects", pumps.ns, pumps.group)
    assert got["made"] == {"serial": "AB-1", "mode": "auto", "replicas": 1} and got["invalid"]["code"] == 422
    assert got["merged"] == "off" and got["status"] == {"phase": "Running"} and got["generation"] == 2
    assert got["applied"] == {"serial": "AB-1", "mode": "off", "replicas": 1, "cores": 4} and got["scale"] == {"replicas": 1}
    assert got["listed"] == ["p"] and got["generic"] == "AB-1" and got["deleted"] == "Success" and got["gone"]["reason"] == "NotFound"


def test_watch(s):
    ns = s.namespace()
    version = s.ok("POST", configmaps(ns), configmap("base"))["metadata"]["resourceVersion"]
    with node(s, "watch", configmaps(ns), f"resourceVersion={version}&fieldSelector=metadata.name%3Da&timeoutSeconds=20") as lines:
        assert next(lines) == {"started": True}
        s.ok("POST", configmaps(ns), configmap("a"))
        assert next(lines) == {"type": "ADDED", "name": "a"}
        merge(s, configmaps(ns, "a"), {"data": {"k": "v"}})
        s.ok("DELETE", configmaps(ns, "a"))
        assert [next(lines)["type"], next(lines)["type"]] == ["MODIFIED", "DELETED"]
    ended = results(s, "watch", configmaps(ns), "timeoutSeconds=1&labelSelector=none")
    assert ended["done"], "the end of the server's time reaches the client"


def test_informer(s):
    ns = s.namespace()
    labels = {"informed": "y"}
    s.ok("POST", configmaps(ns), configmap("before", labels=labels))
    with node(s, "informer", configmaps(ns)) as lines:
        assert next_of(lines, "add")["name"] == "before"
        made = s.ok("POST", configmaps(ns), configmap("a", {"k": "1"}, labels=labels))
        got = next_of(lines, "add")
        assert (got["name"], got["version"]) == ("a", made["metadata"]["resourceVersion"])
        merge(s, configmaps(ns, "a"), {"data": {"k": "2"}})
        assert next_of(lines, "update")["data"] == {"k": "2"}
        merge(s, configmaps(ns, "a"), {"metadata": {"labels": None}})
        assert next_of(lines, "delete")["name"] == "a", "out of the selector is out of the cache"
        s.ok("DELETE", configmaps(ns, "before"))
        assert next_of(lines, "delete")["name"] == "before"


def test_informer_of_a_custom_kind(s):
    pumps = Pumps(s)
    with node(s, "informer", pumps.path(), pumps.group) as lines:
        next_of(lines, "connect")
        pumps.create("p")
        assert next_of(lines, "add")["data"]["mode"] == "auto"
        merge(s, pumps.path("p"), {"spec": {"mode": "off"}})
        assert next_of(lines, "update")["data"]["mode"] == "off"
        s.ok("DELETE", pumps.path("p"))
        assert next_of(lines, "delete")["name"] == "p"


def test_informer_comes_back_after_the_server():
    """Once the server ends in good order, once it is killed; what happened meanwhile reaches the informer."""
    with Server() as s:
        ns = s.namespace()
        labels = {"informed": "y"}
        s.ok("POST", configmaps(ns), configmap("first", labels=labels))
        with node(s, "informer", configmaps(ns)) as lines:
            assert next_of(lines, "add")["name"] == "first"
            for name, end in (("second", s.stop), ("third", s.kill)):
                end()
                s.start()
                s.ok("POST", configmaps(ns), configmap(name, labels=labels))
                assert next_of(lines, "add")["name"] == name
            s.ok("DELETE", configmaps(ns, "first"))
            assert next_of(lines, "delete")["name"] == "first"


def test_informer_lists_again_when_its_version_is_too_old():
    """The server is away while history is dropped: 410, then a new list and no event lost."""
    with Server("--history-seconds", "1") as s:
        ns = s.namespace()
        labels = {"informed": "y"}
        s.ok("POST", configmaps(ns), configmap("a", {"k": "0"}, labels=labels))
        with node(s, "informer", configmaps(ns)) as lines:
            old = next_of(lines, "add")["version"]

            def expired():
                s.ok("PUT", configmaps(ns, "a"), configmap("a", {"k": str(len(s.read_log()))}, labels=labels))
                first = next(s.watch(configmaps(ns) + f"?watch=1&resourceVersion={old}"))
                return first["type"] == "ERROR"

            wait_until(expired, what="history to go")
            last = s.ok("PUT", configmaps(ns, "a"), configmap("a", {"k": "last"}, labels=labels))
            s.stop()
            s.start()
            assert next(line for line in lines if line.get("data") == {"k": "last"})["version"] == last["metadata"]["resourceVersion"]
            s.ok("DELETE", configmaps(ns, "a"))
            assert next_of(lines, "delete")["name"] == "a"
