# SPDX-License-Identifier: Apache-2.0
"""The process runtime with real containers: images made here of busybox, run by crun."""
import base64
import contextlib
import gzip
import hashlib
import http.server
import io
import json
import os
import pathlib
import queue
import random
import shutil
import signal
import socket
import ssl
import subprocess
import tarfile
import tempfile
import threading
import time
import uuid

from seth import binary

SECONDS = 60
TOOL = pathlib.Path(binary()).resolve().parents[1] / "tests/agent/runtime_tool"
BUSYBOX = shutil.which("busybox")
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


# ---- images ---------------------------------------------------------------------------------------------------------------------

def tar_of(entries):
    """entries: (name, content) of files, or TarInfo made by hand."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in entries:
            info, content = entry if isinstance(entry, tuple) else (entry, None)
            if isinstance(info, str):
                info = tarfile.TarInfo(info)
                info.mode = 0o755
            if content is not None:
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if content is not None else None)
    return out.getvalue()


def link(name, target, kind=tarfile.SYMTYPE):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def directory(name, mode=0o755):
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, mode
    return info


def base_layer():
    applets = "sh cat echo sleep id env pwd ls head dd mkdir touch yes ip hostname".split()
    return tar_of([directory("bin"), directory("etc"), directory("tmp", 0o1777), directory("proc"), directory("dev"), directory("sys"),
                   ("bin/busybox", pathlib.Path(BUSYBOX).read_bytes()), *(link(f"bin/{a}", "busybox") for a in applets),
                   ("etc/passwd", b"root:x:0:0::/:/bin/sh\nsam:x:1234:77::/:/bin/sh\n")])


def sha(data):
    return hashlib.sha256(data).hexdigest()


class Image:
    """Blobs by digest and the manifest that names them."""

    def __init__(self, config, layers, packed=gzip.compress):
        self.layers = [packed(x) for x in layers]
        self.config = json.dumps({"architecture": "amd64", "os": "linux", "config": config,
                                  "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha(x)}" for x in layers]}}).encode()
        self.blobs = {sha(x): x for x in [self.config, *self.layers]}
        self.manifest = json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": f"sha256:{sha(self.config)}", "size": len(self.config)},
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": f"sha256:{sha(x)}", "size": len(x)}
                       for x in self.layers]}).encode()
        self.blobs[sha(self.manifest)] = self.manifest

    def files(self):
        index = {"schemaVersion": 2, "manifests": [{"mediaType": MANIFEST, "digest": f"sha256:{sha(self.manifest)}", "size": len(self.manifest)}]}
        return {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(index).encode(),
                **{f"blobs/sha256/{h}": b for h, b in self.blobs.items()}}

    def write_layout(self, path):
        for name, content in self.files().items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
        return path


def busybox_image(command, **config):
    return Image({"Cmd": command, "Env": ["COLOUR=red", "SIZE=1"], **config}, [base_layer()])


# ---- the tool -------------------------------------------------------------------------------------------------------------------

class Agent:
    def __init__(self, root, cgroup, prefix=(), tool=TOOL, stderr=None):
        self.command = [*prefix, str(tool), str(root / "persist"), str(root / "run"), cgroup]
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True)
        self.queue, self.seen = queue.Queue(), []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.queue.put(json.loads(line))
        self.queue.put(None)

    def until(self, test, seconds=SECONDS):
        """The first event, from what nobody waited for yet on, that passes; what comes before it is kept in seen."""
        end = time.monotonic() + seconds
        while True:
            event = self.queue.get(timeout=max(end - time.monotonic(), 0.01))
            assert event is not None, (self.process.wait(), self.seen[-5:])
            self.seen.append(event)
            if test(event):
                return event

    def do(self, what, **more):
        self.process.stdin.write(json.dumps({"do": what, **more}) + "\n")
        self.process.stdin.flush()
        return self.until(lambda e: e["event"] == "answer")["result"]

    def ok(self, what, **more):
        result = self.do(what, **more)
        assert result == "ok", (what, more, result)

    def state(self, ident, state, error=False):
        """Waits until the object has it; an error that is not expected ends the wait."""
        e = next((e for e in reversed(self.seen) if e["event"] == "change" and e["id"] == ident), None)
        if not e or e["state"] != state:
            e = self.until(lambda e: e["event"] == "change" and e["id"] == ident and (e["state"] == state or (e["error"] and not error)))
        assert e["state"] == state and bool(e["error"]) == error, e
        return e

    def fails(self, ident):
        return self.until(lambda e: e["event"] == "change" and e["id"] == ident and e["error"])["error"]

    def line(self, text, seconds=SECONDS):
        for e in self.seen:
            if e["event"] == "log" and text in e["line"]:
                return e
        return self.until(lambda e: e["event"] == "log" and text in e["line"], seconds)

    def lines(self, stream="out"):
        return [e["line"] for e in self.seen if e["event"] == "log" and e["stream"] == stream]

    def metrics(self, ident):
        self.ok("metrics", id=ident)
        return next(e for e in reversed(self.seen) if e["event"] == "metrics")

    def each(self):
        self.ok("each")
        return {(e["kind"], e["id"]): e for e in self.seen if e["event"] == "each"}

    def states(self, ident):
        return [e["state"] for e in self.seen if e["event"] == "change" and e["id"] == ident]

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=SECONDS)
        self.reader.join()
        assert code == 0, code

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.reader.join()


class Box:
    """A machine's directories with the agents that run on them, one after the other."""

    def __init__(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="runtime-"))
        self.cgroup = f"seth-test-{uuid.uuid4().hex[:8]}"
        self.agents = []

    def agent(self, **more):
        self.agents.append(Agent(self.root, self.cgroup, **more))
        return self.agents[-1]

    def prepare(self, agent, image, name="a"):
        url = f"file://{image.write_layout(self.root / ('image-' + name))}"
        agent.ok("prepare", id=f"{name}-image", url=url)
        agent.ok("create", id=f"{name}-root", content=f"{name}-image")

    def run(self, agent, image, name="a", **more):
        self.prepare(agent, image, name)
        agent.ok("start", id=name, root=f"{name}-root", **more)

    def processes(self):
        return [p.name for p in pathlib.Path("/proc").glob("[0-9]*") if self.cgroup in text_of(p / "cgroup")]

    def clean_up(self):
        """Whether nothing is left of what the agents started; a process that ends holds its cgroup a little longer."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        groups = [g for g in pathlib.Path("/sys/fs/cgroup").glob(f"*/{self.cgroup}/**") if g.is_dir()]
        groups += [g for g in pathlib.Path("/sys/fs/cgroup").glob(f"{self.cgroup}/**") if g.is_dir()]
        for group in sorted(groups, reverse=True):
            with contextlib.suppress(OSError):
                group.rmdir()
        return not self.processes() and not any(g.exists() for g in groups)

    def done(self):
        for agent in self.agents:
            if agent.process.poll() is None:
                agent.kill()
        end = time.monotonic() + SECONDS
        while not self.clean_up():
            assert time.monotonic() < end, self.processes()
            time.sleep(0.01)
        shutil.rmtree(self.root)


def text_of(path):
    try:
        return path.read_text()
    except OSError:
        return ""


@contextlib.contextmanager
def machine():
    box = Box()
    try:
        yield box
    finally:
        box.done()


# ---- running --------------------------------------------------------------------------------------------------------------------

def test_an_image_runs_and_its_output_comes_back():
    with machine() as box:
        a = box.agent()
        image = busybox_image(["-c", "echo $COLOUR $SIZE $MORE; pwd; id -u; id -g; hostname; echo wrong >&2; exit 3"],
                              Entrypoint=["/bin/sh"], WorkingDir="/tmp", User="sam")
        box.run(a, image, env=["SIZE=2", "MORE=x y"])
        end = a.state("a", "HALTED", error=True)
        assert end["exit"] == 3 and "exit code 3" in end["error"], end
        assert a.lines() == ["red 2 x y", "/tmp", "1234", "77", "a"], a.lines()
        assert a.lines("err") == ["wrong"]
        content = [s for s, after in zip(a.states("a-image"), [*a.states("a-image")[1:], None]) if s != after]
        assert content == ["INITIAL", "DOWNLOAD_STARTED", "DOWNLOADED", "VERIFYING", "VERIFIED", "LOADING", "DELIVERED"], content
        assert a.states("a-root") == ["INITIAL", "CREATING_VOLUME", "CREATED_VOLUME"]
        assert a.states("a") == ["INITIAL", "INSTALLED", "BOOTING", "RUNNING", "HALTING", "HALTED"]
        # The caller decides about another start; then it runs again, with a command of its own.
        a.ok("start", id="a", root="a-root", args=["/bin/echo", "again"])
        a.line("again")
        assert a.until(lambda e: e["event"] == "change" and e["state"] == "HALTED")["exit"] == 0
        a.end()


def test_it_lives_in_namespaces_of_its_own():
    with machine() as box:
        a = box.agent()
        script = "echo pid $$; ls /proc | head -n 1; ip -o link | cat; ls /; cat /proc/self/status; echo x >/proc/sys/kernel/hostname; dd if=/dev/zero of=/dev/kmsg"
        box.run(a, busybox_image(["/bin/sh", "-c", script]))
        a.until(lambda e: e["event"] == "change" and e["id"] == "a" and e["state"] == "HALTED")
        lines = a.lines()
        assert lines[0] == "pid 1" and lines[1] == "1", lines
        assert [x for x in lines if ": lo:" in x] and not [x for x in lines if "eth" in x], lines
        assert "NoNewPrivs:\t1" in lines and "Seccomp:\t2" in lines, lines
        assert {"bin", "etc", "proc", "tmp"} <= set(lines) and "home" not in lines, lines
        assert any("hostname" in x for x in a.lines("err")), a.lines("err")


def test_long_lines_come_in_pieces_and_binary_is_no_harm():
    with machine() as box:
        a = box.agent()
        box.run(a, busybox_image(["/bin/sh", "-c", "head -c 40000 /dev/zero; echo; echo last; echo -n no end"]))
        a.until(lambda e: e["event"] == "change" and e["id"] == "a" and e["state"] == "HALTED")
        assert [e["bytes"] for e in a.seen if e["event"] == "log"] == [16384, 16384, 40000 - 32768, 4, 6]
        assert a.lines()[-2:] == ["last", "no end"]


# ---- limits and metrics ---------------------------------------------------------------------------------------------------------

def limits_memory():
    return os.path.isdir("/sys/fs/cgroup/memory") or "memory" in text_of(pathlib.Path("/sys/fs/cgroup/cgroup.controllers"))


def test_limits_hold_and_metrics_are_real():
    assert limits_memory(), "this machine has no cgroups that limit memory"
    with machine() as box:
        a = box.agent()
        # tail must keep all of a line without end.
        box.run(a, busybox_image(["/bin/busybox", "tail", "/dev/zero"]), memory=24 << 20)
        end = a.state("a", "HALTED", error=True)
        assert end["exit"] == 137 and "memory limit" in end["error"], end
        box.run(a, busybox_image(["/bin/sh", "-c", "echo go; while :; do :; done"]), "b", cpu=200, memory=64 << 20, processes=5)
        a.line("go")
        begin, first = time.monotonic(), a.metrics("b")
        while time.monotonic() - begin < 2:
            last = a.metrics("b")
            time.sleep(0.1)
        used, wall = (last["cpu"] - first["cpu"]) / 1e9, time.monotonic() - begin
        assert 0 < used < wall * 0.45, (used, wall)
        assert 0 < last["memory"] <= last["peak"] < 64 << 20 and last["max"] == 64 << 20 and last["processes"] == 1, last
        assert last["whole"] and not last["simulated"], last
        box.run(a, busybox_image(["/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 100 & done; echo started"]), "c", processes=5)
        a.until(lambda e: e["event"] == "change" and e["id"] == "c" and e["state"] == "HALTED")
        assert any("fork" in x for x in a.lines("err")), a.lines("err")
        a.ok("stop", id="b", kill=True)
        a.state("b", "HALTED")
        assert a.do("metrics", id="b") != "ok"


# ---- ending ---------------------------------------------------------------------------------------------------------------------

def test_stop_asks_first_and_kills_after_its_time():
    with machine() as box:
        a = box.agent()
        polite = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"
        box.run(a, busybox_image(["/bin/sh", "-c", polite]))
        a.line("up")
        a.state("a", "RUNNING")
        a.ok("stop", id="a")
        assert a.state("a", "HALTED")["exit"] == 0 and "bye" in a.lines()
        box.run(a, busybox_image(["/bin/sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.05; done"]), "b", stop=300)
        a.line("deaf")
        a.state("b", "RUNNING")
        begin = time.monotonic()
        a.ok("stop", id="b")
        assert a.state("b", "HALTED")["exit"] == 137 and time.monotonic() - begin >= 0.3
        # The signal that the image wants, and no patience.
        signals = "trap 'echo user; exit 5' USR1; trap 'echo term' TERM; echo ready; while :; do sleep 0.05; done"
        box.run(a, busybox_image(["/bin/sh", "-c", signals], StopSignal="SIGUSR1"), "c")
        a.line("ready")
        a.state("c", "RUNNING")
        a.ok("stop", id="c")
        assert a.state("c", "HALTED")["exit"] == 5 and "term" not in a.lines() and "user" in a.lines()
        a.ok("start", id="b", root="b-root", stop=100000)
        a.until(lambda e: e["event"] == "change" and e["id"] == "b" and e["state"] == "RUNNING")
        a.ok("stop", id="b", kill=True)
        assert a.state("b", "HALTED")["exit"] == 137
        assert not box.processes()


def test_purge_leaves_nothing():
    with machine() as box:
        a = box.agent()
        box.run(a, busybox_image(["/bin/sh", "-c", "mkdir -p /deep/er; touch /deep/er/file; echo made; sleep 1000"]))
        a.line("made")
        a.state("a", "RUNNING")
        assert a.do("purge", kind="volume", id="a-root") != "ok"
        a.ok("purge", kind="instance", id="a")
        a.state("a", "INVALID")
        for kind, name in ("volume", "a-root"), ("content", "a-image"):
            a.ok("purge", kind=kind, id=name)
            a.state(name, "INVALID")
        left = [str(p) for p in (box.root / "persist").glob("*/*")] + [str(p) for p in (box.root / "run").glob("*/*")]
        assert not left and not box.processes(), left
        a.end()


def test_the_next_agent_adopts_what_runs():
    with machine() as box:
        a = box.agent()
        script = "i=0; trap 'echo bye $i; exit 7' TERM; while :; do i=$((i+1)); echo line $i; sleep 0.05; done"
        box.run(a, busybox_image(["/bin/sh", "-c", script]))
        a.line("line 3")
        started = a.state("a", "RUNNING")["started"]
        a.kill()
        before = box.processes()
        assert before
        a = box.agent()
        have = a.each()
        assert {k: v["state"] for k, v in have.items()} == {("content", "a-image"): "DELIVERED", ("volume", "a-root"): "CREATED_VOLUME",
                                                           ("instance", "a"): "RUNNING"}, have
        assert have["instance", "a"]["adopted"] and abs(have["instance", "a"]["started"] - started) < 10e6
        # The same wishes again change nothing: it is the same process, and what it wrote meanwhile is not lost.
        a.ok("create", id="a-root", content="a-image")
        a.ok("start", id="a", root="a-root")
        first = int(a.line("line ")["line"].split()[1])
        a.line(f"line {first + 5}")
        assert [int(x.split()[1]) for x in a.lines()] == list(range(first, first + len(a.lines())))
        assert set(before) & set(box.processes())
        assert a.metrics("a")["cpu"] > 0
        a.ok("stop", id="a")
        end = a.state("a", "HALTED")
        assert end["exit"] == -1 and any("bye" in x for x in a.lines()), end
        assert a.do("start", id="a", root="a-root", args=["/bin/echo", "fresh"]) == "ok"
        a.line("fresh")
        a.end()
        # One that ends while nobody looks is found halted, and starts again.
        a = box.agent()
        if a.each()["instance", "a"]["state"] != "HALTED":
            a.until(lambda e: e["event"] == "change" and e["id"] == "a" and e["state"] == "HALTED")
        a.ok("start", id="a", root="a-root", args=["/bin/echo", "anew"])
        a.line("anew")


def test_killed_while_it_unpacks_nothing_half_made_has_a_name():
    with machine() as box:
        files = [(f"data/{i // 100}/{i}", os.urandom(4000)) for i in range(3000)]
        image = Image({"Cmd": ["/bin/sh", "-c", "echo whole"]}, [base_layer(), tar_of(files)], packed=lambda x: gzip.compress(x, 1))
        volumes, contents = box.root / "persist/volumes", box.root / "persist/contents"
        seen_half = 0
        for round_number in range(6):
            a = box.agent()
            for kind in "volume", "content":
                if (kind, f"a-{'root' if kind == 'volume' else 'image'}") in a.each():
                    name = "a-root" if kind == "volume" else "a-image"
                    if kind == "volume" or round_number % 2:
                        a.ok("purge", kind=kind, id=name)
                        a.until(lambda e: e["event"] == "change" and e["id"] == name and e["state"] == "INVALID")
            box.prepare(a, image)
            if round_number % 2:
                a.until(lambda e: e["event"] == "change" and e["id"] == "a-image" and e["state"] == "DOWNLOAD_STARTED")
            else:
                end = time.monotonic() + SECONDS
                while not list(volumes.glob(f".new-*/root/data/{round_number}")) and not (volumes / "a-root").exists():
                    assert time.monotonic() < end
            a.kill()
            seen_half += bool(list(volumes.glob(".new-*")) or list(contents.glob(".new-*")))
            if (volumes / "a-root").exists():
                assert len(list((volumes / "a-root/root/data").glob("*/*"))) == len(files)
            if (contents / "a-image").exists():
                assert len(list((contents / "a-image").iterdir())) == 4
        assert seen_half >= 2, seen_half
        a = box.agent()
        a.each()
        assert not list(volumes.glob(".*")) and not list(contents.glob(".*"))
        box.run(a, image)
        a.line("whole")
        assert len(list((volumes / "a-root/root/data").glob("*/*"))) == len(files)


# ---- images ---------------------------------------------------------------------------------------------------------------------

def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout


def docker_archive(image, layers):
    config = f"{sha(image.config)}.json"
    names = [f"{i}/layer.tar" for i in range(len(layers))]
    manifest = json.dumps([{"Config": config, "RepoTags": ["a:1"], "Layers": names}]).encode()
    return tar_of([("manifest.json", manifest), (config, image.config), *zip(names, layers)])


def test_layouts_tars_and_layers_of_every_kind():
    upper = tar_of([(".wh.gone", b""), ("box/.wh..wh..opq", b""), ("box/new", b"n"), ("lib/through", b"t"), ("etc/é", b"u")])
    lower = tar_of([("gone", b"x"), ("kept", b"k"), ("box/old", b"o"), directory("usr"), directory("usr/lib"), link("lib", "/usr/lib")])
    layers = [base_layer(), lower, upper]
    command = {"Cmd": ["/bin/sh", "-c", "ls / /box /usr/lib /etc; echo end"]}
    plain = Image(command, layers, packed=lambda x: x)
    packed = Image(command, layers)
    with machine() as box:
        a = box.agent()
        sources = {"layout": packed.write_layout(box.root / "layout")}
        sources["oci.tar"] = box.root / "oci.tar"
        sources["oci.tar"].write_bytes(tar_of(packed.files().items()))
        sources["docker.tar"] = box.root / "docker.tar"
        sources["docker.tar"].write_bytes(docker_archive(plain, layers))
        if shutil.which("zstd"):
            sources["zstd"] = Image(command, layers, packed=zstd).write_layout(box.root / "zstd")
        for name, path in sources.items():
            a.ok("prepare", id=f"{name}-image", url=f"file://{path}")
            a.ok("create", id=f"{name}-root", content=f"{name}-image")
            a.ok("start", id=name, root=f"{name}-root")
            a.state(name, "HALTED")
            lines = [e["line"] for e in a.seen if e["event"] == "log" and e["id"] == name]
            assert "end" in lines and "kept" in lines and "gone" not in lines and "old" not in lines and "new" in lines, (name, lines)
            assert "through" in lines and (box.root / f"persist/volumes/{name}-root/root/etc/é").read_bytes() == b"u", (name, lines)


def test_what_is_not_what_it_says_is_refused():
    with machine() as box:
        a = box.agent()
        image = busybox_image(["/bin/true"])
        path = image.write_layout(box.root / "bad")
        layer = path / "blobs/sha256" / sha(image.layers[0])
        layer.write_bytes(layer.read_bytes()[:-1] + b"x")
        a.ok("prepare", id="bad", url=f"file://{path}")
        assert "its content is sha256:" in a.fails("bad")
        a.ok("create", id="never", content="bad")
        # Mended, it is tried again when it is asked for again.
        image.write_layout(path)
        a.ok("prepare", id="bad", url=f"file://{path}")
        a.state("never", "CREATED_VOLUME")
        a.ok("prepare", id="other", url=f"file://{path}", sha256="0" * 64)
        assert "not sha256:0000" in a.fails("other")
        a.ok("prepare", id="known", url=f"file://{path}", sha256=sha(image.manifest))
        a.state("known", "DELIVERED")
        tar = box.root / "image.tar"
        tar.write_bytes(tar_of(image.files().items()))
        a.ok("prepare", id="tar", url=f"file://{tar}", sha256=sha(tar.read_bytes()))
        a.state("tar", "DELIVERED")
        a.ok("prepare", id="large", url=f"file://{path}", max=1000)
        assert "larger than 1000" in a.fails("large")
        a.ok("prepare", id="disk", url=f"file://{path}", format="qcow2")
        assert "no qcow2" in a.fails("disk")
        a.ok("prepare", id="none", url="file:///does/not/exist")
        assert "/does/not/exist" in a.fails("none")
        a.ok("create", id="v", content="known")
        a.ok("start", id="lost", root="v", args=["/no/such/program"])
        assert "/no/such/program" in a.fails("lost")
        assert sorted(p.name for p in (box.root / "persist/contents").iterdir()) == ["bad", "known", "tar"]
        a.end()


def test_a_volume_outlives_its_instances_and_is_shared():
    with machine() as box:
        a = box.agent()
        a.ok("create", id="data")
        box.run(a, busybox_image(["/bin/sh", "-c", "echo kept >/data/x; echo x >/root-is-read-only"]), ro=True, mount={"volume": "data", "target": "/data"})
        a.until(lambda e: e["event"] == "change" and e["id"] == "a" and e["state"] == "HALTED")
        assert any("Read-only" in x for x in a.lines("err")), a.lines("err")
        box.run(a, busybox_image(["/bin/sh", "-c", "cat /data/x; echo y >/data/y"]), "b", mount={"volume": "data", "target": "/data", "ro": True})
        a.line("kept")
        a.until(lambda e: e["event"] == "change" and e["id"] == "b" and e["state"] == "HALTED")
        assert (box.root / "persist/volumes/data/root/x").read_text() == "kept\n" and not (box.root / "persist/volumes/data/root/y").exists()


def test_it_joins_a_network_that_is_given():
    name = f"rt{uuid.uuid4().hex[:8]}"
    net = f"10.{random.randrange(1, 255)}.{random.randrange(1, 255)}"
    commands = [f"netns add {name}", f"link add {name}a type veth peer name {name}b", f"link set {name}b netns {name}", f"addr add {net}.1/30 dev {name}a",
                f"link set {name}a up", f"-n {name} addr add {net}.2/30 dev {name}b", f"-n {name} link set {name}b up"]
    with machine() as box:
        try:
            for command in commands:
                subprocess.run(["ip", *command.split()], check=True)
            with socket.create_server((f"{net}.1", 0)) as server:
                a = box.agent()
                script = f"echo hello from inside | busybox nc {net}.1 {server.getsockname()[1]}; echo sent; sleep 1000"
                box.run(a, busybox_image(["/bin/sh", "-c", script]), netns=f"/run/netns/{name}")
                server.settimeout(SECONDS)
                peer, address = server.accept()
                assert address[0] == f"{net}.2" and peer.makefile().readline() == "hello from inside\n"
                peer.close()
                a.line("sent")
                m = a.metrics("a")
                assert m["tx"] > 100 and m["rx"] > 100, m
        finally:
            subprocess.run(["ip", "netns", "del", name])
            subprocess.run(["ip", "link", "del", f"{name}a"], stderr=subprocess.DEVNULL)


def test_without_root_and_with_hybrid_cgroups_it_says_why_not():
    if not os.path.isdir("/sys/fs/cgroup/unified"):
        return
    with machine() as box:
        os.chmod(box.root, 0o755)
        image = busybox_image(["/bin/true"]).write_layout(box.root / "image")
        home = box.root / "home"
        home.mkdir()
        shutil.chown(home, 65534, 65534)
        shutil.copy(TOOL, box.root / "tool")
        a = Agent(home, "none", prefix=("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"), tool=box.root / "tool")
        box.agents.append(a)
        a.ok("prepare", id="image", url=f"file://{image}")
        a.ok("create", id="root", content="image")
        a.ok("start", id="app", root="root")
        assert "hybrid cgroups" in a.fails("app")


# ---- registries -----------------------------------------------------------------------------------------------------------------

class Registry:
    """The distribution API over HTTPS with tokens, one repository; blobs come by a redirect."""

    def __init__(self, root, image, repository="team/app"):
        self.image, self.asked, self.token = image, [], uuid.uuid4().hex
        self.lies, self.waiting, self.goes_on = {}, threading.Event(), threading.Event()
        self.goes_on.set()
        certificate, key = make_certificate(root)
        self.ca = certificate.read_text()
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body=b"", **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                with contextlib.suppress(OSError):  # whoever asked may have gone
                    self.end_headers()
                    self.wfile.write(body)

            def do_GET(self):
                path, authorization = self.path, self.headers.get("Authorization")
                registry.asked.append((path, authorization))
                if path.startswith("/token?"):
                    good = authorization == "Basic " + base64.b64encode(b"sam:secret").decode() and "scope=repository%3Ateam%2Fapp%3Apull" in path
                    return self.answer(200, json.dumps({"token": registry.token}).encode()) if good else self.answer(401)
                if path.startswith("/storage/"):
                    registry.waiting.set()
                    registry.goes_on.wait()
                    digest = path.split("/")[-1]
                    return self.answer(200, registry.lies.get(digest, registry.image.blobs[digest]))
                if authorization != f"Bearer {registry.token}":
                    realm = f'Bearer realm="https://127.0.0.1:{registry.port}/token",service="here",scope="repository:{repository}:pull"'
                    return self.answer(401, WWW_Authenticate=realm)
                base, _, digest = path.rpartition("/")
                digest = digest.removeprefix("sha256:")
                if base == f"/v2/{repository}/manifests" and digest in ("1.0", sha(registry.image.manifest)):
                    return self.answer(200, registry.image.manifest, Content_Type=MANIFEST)
                if base == f"/v2/{repository}/blobs" and digest in registry.image.blobs:
                    return self.answer(307, Location=f"https://localhost:{registry.port}/storage/{digest}")
                return self.answer(404)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def make_certificate(root):
    certificate, key = root / "tls.pem", root / "tls.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=test",
                    "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", str(key), "-out", str(certificate)],
                   check=True, capture_output=True)
    return certificate, key


def test_a_registry_is_asked_with_tokens_and_believed_by_digest():
    with machine() as box:
        image = busybox_image(["/bin/echo", "pulled"])
        registry = Registry(box.root, image)
        host = f"127.0.0.1:{registry.port}"
        a = box.agent()
        a.ok("prepare", id="image", url=f"docker://{host}/team/app:1.0", user="sam", password="secret", ca=registry.ca)
        a.ok("create", id="root", content="image")
        a.ok("start", id="app", root="root")
        a.line("pulled")
        content = [s for s, after in zip(a.states("image"), [*a.states("image")[1:], None]) if s != after]
        assert content == ["INITIAL", "RESOLVING_TAG", "RESOLVED_TAG", "DOWNLOAD_STARTED", "DOWNLOADED", "VERIFYING", "VERIFIED", "LOADING", "DELIVERED"], content
        # The storage it redirects to is another host: our token is none of its business.
        assert [who for path, who in registry.asked if path.startswith("/storage/")] == [None, None], registry.asked
        a.ok("prepare", id="digest", url=f"docker://{host}/team/app@sha256:{sha(image.manifest)}", user="sam", password="secret", ca=registry.ca)
        a.state("digest", "DELIVERED")
        assert "RESOLVING_TAG" not in a.states("digest")
        layer = image.layers[0]
        for name, lie in ("changed", layer[:-1] + b"x"), ("longer", layer + b"x" * (1 << 20)), ("shorter", layer[:-100]):
            registry.lies = {sha(layer): lie}
            a.ok("prepare", id=name, url=f"docker://{host}/team/app:1.0", user="sam", password="secret", ca=registry.ca)
            error = a.fails(name)
            assert "sha256" in error or "larger than it says" in error, (name, error)
        for name, more, reason in (("untrusted", {"user": "sam", "password": "secret"}, "not trusted"),
                                   ("stranger", {"user": "sam", "password": "wrong", "ca": registry.ca}, "no token"),
                                   ("nobody", {"ca": registry.ca}, "no token")):
            a.ok("prepare", id=name, url=f"docker://{host}/team/app:1.0", **more)
            error = a.fails(name)
            assert reason in error and "secret" not in error, (name, error)
        a.ok("prepare", id="absent", url=f"docker://{host}/team/app:2.0", user="sam", password="secret", ca=registry.ca)
        assert "404" in a.fails("absent")
        assert sorted(p.name for p in (box.root / "persist/contents").iterdir()) == ["digest", "image"]
        a.end()
        registry.server.shutdown()


def test_what_is_no_longer_wanted_is_not_waited_for():
    with machine() as box:
        registry = Registry(box.root, busybox_image(["/bin/true"]))
        registry.goes_on.clear()
        a = box.agent()
        wish = {"url": f"docker://127.0.0.1:{registry.port}/team/app:1.0", "user": "sam", "password": "secret", "ca": registry.ca}
        a.ok("prepare", id="image", **wish)
        assert registry.waiting.wait(SECONDS)
        a.ok("purge", kind="content", id="image")
        a.until(lambda e: e["event"] == "change" and e["id"] == "image" and e["state"] == "INVALID")
        # Nor does the agent's end wait for the registry.
        registry.waiting.clear()
        a.ok("prepare", id="image", **wish)
        assert registry.waiting.wait(SECONDS)
        a.end()
        assert not list((box.root / "persist/contents").iterdir())
        registry.goes_on.set()
        registry.server.shutdown()


def test_killed_at_any_moment_the_next_agent_gets_there():
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    chance = random.Random(seed)
    image = busybox_image(["/bin/sh", "-c", "echo alive; sleep 1000"])
    with machine() as box:
        url = f"file://{image.write_layout(box.root / 'image')}"
        for round_number in range(12):
            a = box.agent()
            a.ok("prepare", id="image", url=url)
            a.ok("create", id="root", content="image")
            a.ok("start", id="app", root="root")
            if round_number % 3 == 2:
                a.ok("stop", id="app", kill=True)
                a.ok("start", id="app", root="root")
            with contextlib.suppress(queue.Empty):
                a.until(lambda e: False, seconds=chance.random() * 0.6)
            a.kill()
        a = box.agent()
        have = a.each()
        a.ok("prepare", id="image", url=url)
        a.ok("create", id="root", content="image")
        a.ok("start", id="app", root="root")
        if have.get(("instance", "app"), {}).get("state") != "RUNNING":
            a.until(lambda e: e["event"] == "change" and e["id"] == "app" and e["state"] == "RUNNING")
        m = a.metrics("app")
        assert m["processes"] in (1, 2) and len(box.processes()) <= 2, (m, box.processes())
        # Its volume is in use, whoever started it.
        assert a.do("purge", kind="volume", id="root") != "ok"
        a.ok("stop", id="app", kill=True)
        a.until(lambda e: e["event"] == "change" and e["id"] == "app" and e["state"] == "HALTED")
        assert not box.processes()
        # The end of an agent in the midst of a start is no harm either.
        a.ok("start", id="app", root="root")
        a.end()


def test_without_root_it_runs_without_limits_and_says_so():
    # As another user, in a place of its own; cgroups are shown as on a machine of one version.
    with machine() as box:
        os.chmod(box.root, 0o755)
        image = busybox_image(["/bin/sh", "-c", "id -u; echo here; sleep 1000"]).write_layout(box.root / "image")
        home = box.root / "home"
        home.mkdir()
        shutil.chown(home, 65534, 65534)
        tool = box.root / "tool"
        shutil.copy(TOOL, tool)
        script = 'if [ -d /sys/fs/cgroup/unified ]; then mount -t tmpfs none /sys/fs/cgroup/unified; fi; exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"'
        a = Agent(home, "none", prefix=("unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh"), tool=tool,
                  stderr=(box.root / "log").open("w"))
        try:
            a.ok("prepare", id="image", url=f"file://{image}")
            a.ok("create", id="root", content="image")
            a.ok("start", id="app", root="root", memory=16 << 20)
            a.ok("start", id="second", root="root", memory=16 << 20, args=["/bin/echo", "two"])
            a.line("two")
            a.line("here")
            assert "0" in a.lines(), a.lines()
            assert (box.root / "log").read_text().count("limits of instances cannot be kept here") == 1
            a.state("app", "RUNNING")
            m = a.metrics("app")
            assert m["max"] == 0 and not m["whole"] and m["memory"] > 0, m
            a.ok("stop", id="app", kill=True)
            assert a.state("app", "HALTED")["exit"] == 137
            a.end()
        finally:
            if a.process.poll() is None:
                a.kill()
