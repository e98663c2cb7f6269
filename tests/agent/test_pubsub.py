# SPDX-License-Identifier: Apache-2.0
"""pubsub between processes: ours, a publisher that is killed, a subscriber in Python and one in Node."""
import base64
import contextlib
import errno
import json
import os
import pathlib
import queue
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

from seth import TOP, binary

SECONDS = 60
TOOL = pathlib.Path(binary()).resolve().parents[1] / "tests/agent/pubsub_tool"


@contextlib.contextmanager
def device(is_in_memory=False):
    """A device's directories; /run is memory on a device, which matters where there are many files."""
    where = "/dev/shm" if is_in_memory and os.access("/dev/shm", os.W_OK) else None
    root = pathlib.Path(tempfile.mkdtemp(prefix="pubsub-", dir=where))
    try:
        yield root
    finally:
        shutil.rmtree(root)


class Process:
    """The tool, or Node: lines in, lines out."""

    def __init__(self, command, stdin=subprocess.PIPE):
        self.lines = queue.Queue()
        # Memory is measured: what the sanitizer keeps of what was freed must not count.
        environment = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=4"}
        self.process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, text=True, env=environment)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def next(self):
        return self.lines.get(timeout=SECONDS)

    def kill(self):
        """As a power cut would; what it has said is there still."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(SECONDS)
        self.reader.join(SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """A process that was not killed ends well when its input ends."""
        if self.process.returncode is None and kind is not None:
            self.kill()
        if self.process.returncode is None:
            if self.process.stdin:
                self.process.stdin.close()
            assert self.process.wait(SECONDS) == 0
        self.reader.join(SECONDS)


class Publisher(Process):
    def __init__(self, root, agent="nim", topic="T", scope="", persistent=False):
        super().__init__([TOOL, root, "publish", agent, scope, topic, "persistent" if persistent else "volatile"])
        self.first = self.next()

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def do(self, line, result=0):
        self.send(line)
        assert int(self.next()) == result, line

    def put(self, key, value, result=0):
        self.do(f"put {key} {json.dumps(value)}", result)


class Subscriber(Process):
    def __init__(self, root, agent="nim", topic="T", scope="", persistent=False):
        super().__init__([TOOL, root, "subscribe", agent, scope, topic, "persistent" if persistent else "volatile"])

    def event(self):
        e = json.loads(self.next())
        return (e["event"], e["key"], e["value"])

    def expect(self, *events):
        for event in events:
            got = self.event()
            assert got == event, f"{got}"[:1000]

    def expect_all(self, *events):
        """In whatever order: a subscriber that finds its publisher at work may be told the values before or after it is complete."""
        got = [self.event() for _ in events]
        assert sorted(map(repr, got)) == sorted(map(repr, events)), got


def connected(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(str(path))
    return s


def packets(s, until):
    """The words of a publisher's packets up to the one that begins so."""
    while True:
        words = s.recv(65536).decode().split(" ")
        yield words
        if words[0] == until:
            return


def test_two_processes():
    with device() as root, Subscriber(root) as s:
        # The subscriber is first, and looks again until there is a publisher.
        with Publisher(root) as p:
            p.put("global", {"b": [], "a": "ä<&"})
            p.do("restarted")
            s.expect_all(("create", "global", {"a": "ä<&", "b": None}), ("synchronized", "", None), ("restarted", "", 1))
            p.put("global", {"a": 2})
            s.expect(("modify", "global", {"a": 2}))
            p.do("delete global")
            s.expect(("delete", "global", {"a": 2}))
            p.put("a/b", {}, -errno.EINVAL)
            p.put("k", [], -errno.EINVAL)
            p.do("delete k", -errno.ENOENT)
        assert not (root / "run/nim/T.sock").exists()


def test_the_publisher_restarts():
    with device() as root, Subscriber(root) as s:
        with Publisher(root) as p:
            p.put("a", {"n": 1})
            p.put("b", {"n": 1})
            p.do("restarted")
            s.expect_all(("create", "a", {"n": 1}), ("create", "b", {"n": 1}), ("synchronized", "", None), ("restarted", "", 1))
            p.kill()
        # The socket of the dead one is there still; values and counter survive an agent within one boot.
        assert (root / "run/nim/T.sock").exists()
        with Publisher(root) as p:
            with connected(root / "run/nim/T.sock") as c:
                c.send(b"request T")
                said = [w[0] for w in packets(c, "restarted")]
                assert said == ["hello", "update", "update", "complete", "restarted"], said
            p.put("a", {"n": 2})
            p.do("restarted")
            s.expect(("modify", "a", {"n": 2}), ("restarted", "", 2))
            p.do("clear")
            s.expect(("restarted", "", 0))


def test_one_publisher_at_a_time():
    with device() as root, Publisher(root) as p:
        second = subprocess.run([TOOL, root, "publish", "nim", "", "T", "volatile"], capture_output=True, text=True, input="", timeout=SECONDS)
        assert second.returncode == 1 and "in use" in second.stderr, second
        p.put("k", {})


def test_scopes_are_apart():
    with device() as root, Publisher(root, scope="one") as one, Publisher(root, scope="two") as two:
        one.put("k", {"n": 1})
        two.put("k", {"n": 2})
        with Subscriber(root, scope="two") as s:
            s.expect(("create", "k", {"n": 2}), ("synchronized", "", None))
        assert (root / "run/nim/one/T.sock").is_socket() and (root / "run/nim/two/T/k.json").read_text() == '{"n":2}'


def test_persistent_values_are_read_without_a_publisher():
    with device() as root:
        with Publisher(root, persistent=True) as p:
            p.put("k", {"n": 1})
            p.put("k", {"n": 2})
            p.do("restarted")
        files = root / "persist/status/nim/T"
        assert sorted(f.name for f in files.iterdir()) == ["k.json", "k.json.bak", "restarted"]
        with Subscriber(root, persistent=True) as s:
            s.expect(("create", "k", {"n": 2}), ("restarted", "", 1))
            (files / "k.json").write_bytes(b"")
            with Publisher(root, persistent=True):
                s.expect(("modify", "k", {"n": 1}), ("synchronized", "", None))
                assert (files / "k.json").read_text() == '{"n":1}'


def test_large_fields():
    large = "x" * 900_000
    with device() as root, Publisher(root) as p:
        value = {"Blocks": [{"pubsub-large-CipherData": large}], "pubsub-large-ProxyCertPEM": ["&"]}
        p.put("k", value)
        with Subscriber(root) as s:
            s.expect(("create", "k", value), ("synchronized", "", None))
        assert json.loads((root / "run/nim/T/k.json").read_text()) == value
        assert list((root / "persist/pubsub-large/nim/T").iterdir()) == []
        p.put("k", {"pubsub-large-X": "x" * 1024 * 1024}, -errno.EFBIG)
        p.put("k", {"X": "x" * 49_200}, -errno.EMSGSIZE)


def test_a_subscriber_in_node():
    with device() as root, Publisher(root, persistent=True) as p:
        p.put("global", {"b": [], "a": "ä<&>", "n": 9007199254740993})
        p.put("large", {"list": [{"pubsub-large-X": {"z": ["y"] * 20_000}}]})
        p.put("gone", {})
        # Node has no such sockets; it is handed one that is connected, and does the rest itself.
        with connected(root / "run/nim/T.sock") as c, Process(["node", TOP / "tests/agent/node/subscriber.mjs", "T", "restarted 2"], stdin=c) as n:
            events = []
            while not events or events[-1]["event"] != "complete":
                events.append(json.loads(n.next()))
            assert events[0] == {"event": "hello", "persistent": True, "words": 3}
            got = {e["key"]: e for e in events if e["event"] == "update"}
            assert got["global"]["text"] == '{"a":"ä\\u003c\\u0026\\u003e","b":null,"n":9007199254740993}'
            assert got["large"]["value"] == {"list": [{"pubsub-large-X": {"z": ["y"] * 20_000}}]} and got["gone"]["value"] == {}
            p.do("delete gone")
            assert json.loads(n.next()) == {"event": "delete", "key": "gone"}
            p.do("restarted")
            assert json.loads(n.next()) == {"event": "restarted 1"}
            p.put("global", {"a": 1})
            p.do("restarted")
            assert json.loads(n.next())["value"] == {"a": 1}
            assert json.loads(n.next()) == {"event": "restarted 2"} and n.next() is None
        assert list((root / "persist/pubsub-large/nim/T").iterdir()) == []


def check_files(files, asked):
    """Every file that counts is whole and one of the values that were asked for; returns the number of each key."""
    found = {}
    for f in files.iterdir():
        if f.name.startswith("tmp") or f.name == "restarted":
            continue
        value = json.loads(f.read_text())
        key = f.name.split(".json")[0]
        assert value["key"] == key and value["text"] == "x" * (value["n"] * 37 % 20_000), f
        assert value["n"] <= asked[key], f
        if f.suffix == ".json":
            found[key] = value["n"]
    return found


def test_kill_while_publishing_50_times():
    seed = int(os.environ.get("SEED", random.SystemRandom().getrandbits(32)))
    print(f"seed {seed}")
    rng = random.Random(seed)
    with device() as root:
        files, asked, answered, n, n_mid_way = root / "persist/status/nim/T", {}, {}, 0, 0
        for _ in range(50):
            with Publisher(root, persistent=True) as p:
                assert p.first == "ready"
                if files.exists():
                    assert not [f.name for f in files.iterdir() if f.name.startswith("tmp")]
                sent = []
                for _ in range(rng.randrange(20, 60)):
                    n += 1
                    key = f"key-{rng.randrange(8)}"
                    value = {"key": key, "n": n, "text": "x" * (n * 37 % 20_000)}
                    asked[key] = n
                    sent.append((key, n))
                    p.send(f"put {key} {json.dumps(value)}")
                # Somewhere in the middle of it: after so many answers, at once.
                n_answers = rng.randrange(len(sent))
                for key, number in sent[:n_answers]:
                    assert p.next() == "0"
                    answered[key] = number
                p.kill()
                while (line := p.next()) is not None:
                    assert line == "0"
                    key, number = sent[n_answers]
                    answered[key], n_answers = number, n_answers + 1
                n_mid_way += n_answers < len(sent)
            found = check_files(files, asked)
            # What was answered is there, or something newer of it.
            for key, number in answered.items():
                assert found[key] >= number, (key, number, found)
        assert n_mid_way >= 25, f"only {n_mid_way} of 50 were in the middle"
        with Publisher(root, persistent=True), Subscriber(root, persistent=True) as s:
            got = {}
            while (event := s.event())[0] != "synchronized":
                got[event[1]] = event[2]["n"]
            assert got == found


def resident_kilobytes(p):
    status = pathlib.Path(f"/proc/{p.process.pid}/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def test_ten_thousand_keys_and_a_slow_reader():
    with device(is_in_memory=True) as root, Publisher(root) as p:
        slow = connected(root / "run/nim/T.sock")
        slow.send(b"request T")
        for i in range(10_000):
            p.send(f'put key-{i} {{"n":{i},"text":"{"y" * 200}"}}')
        for i in range(10_000):
            assert p.next() == "0"
        before = resident_kilobytes(p)
        for i in range(5_000):
            p.send(f'put key-{i % 100} {{"n":{i},"text":"{"z" * 8000}"}}')
        for i in range(5_000):
            assert p.next() == "0"
        # 40 MB have been published meanwhile, and none of it was kept for the one that does not read.
        after = resident_kilobytes(p)
        assert after - before < 16 * 1024, (before, after)
        with Subscriber(root) as s:
            got = {}
            while (event := s.event())[0] != "synchronized":
                got[event[1]] = event[2]["n"]
            assert len(got) == 10_000 and got["key-9999"] == 9999 and got["key-99"] == 4999
        p.do("restarted")
        last = {}
        for words in packets(slow, "restarted"):
            if words[0] == "update":
                last[base64.b64decode(words[2]).decode()] = json.loads(base64.b64decode(words[3]))["n"]
        assert last == got
        slow.close()


def test_anything_on_the_socket():
    rng = random.Random(7)
    with device() as root, Publisher(root) as p:
        p.put("k", {"n": 1})
        path = root / "run/nim/T.sock"
        for i in range(200):
            with connected(path) as c:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    for _ in range(rng.randrange(4)):
                        c.send(rng.choice([b"request T", b"request U", rng.randbytes(rng.randrange(1, 3000)), b"request T\n", b"update T aw== e30="]))
        with connected(path) as c:
            c.send(b"request T")
            assert [w[0] for w in packets(c, "complete")] == ["hello", "update", "complete"]
            p.put("k", {"n": 2})
            assert c.recv(65536) == b"update T aw== eyJuIjoyfQ=="
