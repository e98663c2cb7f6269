# SPDX-License-Identifier: Apache-2.0
"""The disk: full and freed again, damaged, backed up under load and restored, wanted by two servers at once."""
import contextlib
import os
import pathlib
import re
import resource
import shutil
import signal
import stat
import subprocess
import tempfile
import threading

import seth
from seth import Server, wait_until

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
BLOB = "x" * 100_000
ROOM_BYTES = 1_000_000  # what a full disk has left when it begins to be full
MAX_WRITES = 400        # by then it must be full
START_SECONDS = 60


def configmap(name, text=BLOB):
    return {"metadata": {"name": name, "labels": {"app": "disk"}}, "data": {"text": text}}


def names(s):
    return {o["metadata"]["name"] for o in s.ok("GET", f"{CONFIGMAPS}?labelSelector=app%3Ddisk")["items"]}


def seth_command(*arguments):
    return subprocess.run([seth.binary(), *arguments], capture_output=True, text=True, timeout=120)


def start_and_fail(data_dir):
    """A start that is refused; returns what it said."""
    done = subprocess.run([seth.binary(), "server", "--data-dir", str(data_dir), "--secure-port", "0"],
                          capture_output=True, text=True, timeout=START_SECONDS)
    assert done.returncode == 1, (done.returncode, done.stderr)
    assert "Sanitizer" not in done.stderr, done.stderr
    return done.stderr


# ---- full ---------------------------------------------------------------------------------------

class ByLimit:
    """No file of the server may grow past where it is now: works without any right to mount."""

    def fill(self, s):
        log_bytes = (s.dir / "objects.db-wal").stat().st_size
        resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE, (log_bytes + ROOM_BYTES, resource.RLIM_INFINITY))

    def free(self, s):
        resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class ByFileSystem:
    """A small file system of its own and a file that takes up the rest of it."""

    def fill(self, s):
        space = os.statvfs(s.dir)
        with open(s.dir / "ballast", "wb") as f:
            os.posix_fallocate(f.fileno(), 0, space.f_bavail * space.f_bsize - ROOM_BYTES)

    def free(self, s):
        (s.dir / "ballast").unlink()


class Watch(threading.Thread):
    def __init__(self, s, revision):
        super().__init__(daemon=True)
        self.seen, self.events = [], s.watch(f"{CONFIGMAPS}?watch=1&labelSelector=app%3Ddisk&resourceVersion={revision}")

    def run(self):
        with contextlib.suppress(OSError, ValueError):
            for e in self.events:
                self.seen.append(e["object"]["metadata"]["name"])


def write_until_full(s, made):
    for i in range(MAX_WRITES):
        status, answer = s.request("POST", CONFIGMAPS, configmap(f"blob-{i}"))
        if status != 201:
            return status, answer
        made.append(f"blob-{i}")
    raise AssertionError("the disk does not fill")


def check_full(s, made):
    status, answer = write_until_full(s, made)
    assert status == 507 and answer["kind"] == "Status" and answer["status"] == "Failure", (status, answer)
    assert answer["code"] == 507 and answer["reason"] == "InsufficientStorage" and "full" in answer["message"], answer
    assert names(s) == set(made), "a write answered with 507 is there, or one answered with 201 is not"
    assert s.ok("GET", f"{CONFIGMAPS}/{made[0]}")["data"]["text"] == BLOB
    status, text = s.request("GET", "/readyz")
    assert status == 500 and "[-]etcd failed" in text, (status, text)
    assert s.request("GET", "/livez")[0] == 200, "a restart would not help"
    status, text = s.request("GET", "/readyz/etcd")
    assert status == 500 and "the disk is full" in text, (status, text)
    for method, body in (("PUT", configmap(made[0], BLOB + BLOB)), ("DELETE", None)):
        status, answer = s.request(method, f"{CONFIGMAPS}/{made[0]}", body)
        assert status in (200, 507), answer  # whichever way, what it says is true
        if status == 200 and method == "DELETE":
            made.pop(0)
    assert names(s) == set(made)


def check_full_and_freed(s, disk):
    made = ["first"]
    first = s.ok("POST", CONFIGMAPS, configmap("first"))
    watch = Watch(s, first["metadata"]["resourceVersion"])
    watch.start()
    disk.fill(s)
    before = list(made)
    check_full(s, made)
    assert s.process.poll() is None
    disk.free(s)
    wait_until(lambda: s.request("GET", "/readyz")[0] == 200, what="readyz to recover without a write of ours")
    s.ok("POST", CONFIGMAPS, configmap("after"))
    wait_until(lambda: "after" in watch.seen, what="the watch to go on")
    assert [n for n in watch.seen if n.startswith("blob")] == sorted({n for n in watch.seen if n.startswith("blob")}, key=lambda n: int(n[5:]))
    assert set(made) - set(before) <= set(watch.seen)
    log = s.read_log()
    assert log.count("cannot write to the store") == 1 and "the disk has room again" in log, log
    s.kill()
    s.start()
    assert names(s) == set(made) | {"after"}


def test_full_disk_by_limit():
    with Server() as s:
        check_full_and_freed(s, ByLimit())


@contextlib.contextmanager
def small_file_system():
    """A mount point with 24 MiB, or None without the right to mount: the limit on file sizes then stands alone."""
    mount_point = tempfile.mkdtemp(prefix="seth-disk-")
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", mount_point], capture_output=True, text=True)
        if done.returncode:
            print(f"no right to mount: {done.stderr.strip()}")
            yield None
            return
        try:
            yield pathlib.Path(mount_point)
        finally:
            subprocess.run(["umount", "-l", mount_point], check=True)
    finally:
        os.rmdir(mount_point)


def test_full_disk_by_file_system():
    with small_file_system() as data_dir:
        if data_dir:
            with Server(data_dir=data_dir) as s:
                check_full_and_freed(s, ByFileSystem())


def test_start_on_a_full_disk_serves_reads():
    with small_file_system() as data_dir, tempfile.TemporaryDirectory() as elsewhere:
        if not data_dir:
            return
        for name in ("server.log", "ca.pem", "admin.pem", "admin-key.pem"):
            (data_dir / name).symlink_to(f"{elsewhere}/{name}")  # what only the test writes
        with Server(data_dir=data_dir) as s:
            made, disk = [], ByFileSystem()
            disk.fill(s)
            write_until_full(s, made)
            with contextlib.suppress(OSError), open(data_dir / "rest", "wb", buffering=0) as rest:
                while True:
                    rest.write(bytes(4096))
            s.kill()
            s.start(is_ready=False)
            assert names(s) == set(made)
            assert s.request("POST", CONFIGMAPS, configmap("more"))[0] == 507
            disk.free(s)
            wait_until(lambda: s.request("GET", "/readyz")[0] == 200, what="readyz to recover")
            s.ok("POST", CONFIGMAPS, configmap("more"))


# ---- damaged ------------------------------------------------------------------------------------

def fill_store(s, n=60):
    for i in range(n):
        s.ok("POST", CONFIGMAPS, configmap(f"object-{i}", "y" * 2000))
    return {f"object-{i}" for i in range(n)}


def overwrite(path, offset, data):
    with open(path, "r+b") as f:
        f.seek(offset)
        f.write(data)


def damage_header(db):
    overwrite(db, 0, b"not a database, not at all")


def damage_middle(db):
    size = db.stat().st_size
    assert size > 65536
    overwrite(db, size // 2, b"\xff" * 16384)


def damage_one_byte(db):
    """SQLite itself would not see this one."""
    data = db.read_bytes()
    at = data.rindex(b"y" * 500)
    overwrite(db, at + 100, b"z")


def damage_truncate(db):
    os.truncate(db, db.stat().st_size // 2)


def damage_empty(db):
    os.truncate(db, 0)


DAMAGES = (damage_header, damage_middle, damage_one_byte, damage_truncate, damage_empty)


def test_damaged_file_is_refused_and_restored():
    with Server() as s:
        made = fill_store(s)
        backup = s.dir / "backup.db"
        done = seth_command("backup", str(backup), "--data-dir", str(s.dir))
        assert done.returncode == 0, done.stderr
        assert s.stop() == 0
        db = s.dir / "objects.db"
        for damage in DAMAGES:
            damage(db)
            before = db.read_bytes()
            said = start_and_fail(s.dir)
            assert str(db) in said, f"{damage.__name__}: {said}"
            command = re.search(r"seth restore <backup> --data-dir [^\s\"]+", said)
            assert command, f"{damage.__name__}: no command in {said}"
            assert db.read_bytes() == before, f"{damage.__name__}: the damaged file was touched"
            words = command.group().replace("<backup>", str(backup)).split()[1:]
            done = seth_command(*words)
            assert done.returncode == 0, (damage.__name__, done.stderr)
            s.start()
            assert names(s) == made, damage.__name__
            assert s.stop() == 0
        kept = sorted(p.name for p in s.dir.glob("objects.db.before-restore*") if not p.name.endswith(("-wal", "-shm")))
        assert len(kept) == len(DAMAGES), kept


def test_lost_file_is_not_replaced_by_an_empty_one():
    with Server() as s:
        fill_store(s, 3)
        s.kill()
        (s.dir / "objects.db").unlink()
        said = start_and_fail(s.dir)
        assert "objects.db" in said and "seth restore" in said, said
        assert not (s.dir / "objects.db").exists()


def test_damaged_backup_is_refused():
    with Server() as s:
        made = fill_store(s)
        backup = s.dir / "backup.db"
        assert seth_command("backup", str(backup), "--data-dir", str(s.dir)).returncode == 0
        assert s.stop() == 0
        damage_one_byte(backup)
        done = seth_command("restore", str(backup), "--data-dir", str(s.dir))
        assert done.returncode == 1 and str(backup) in done.stderr, (done.returncode, done.stderr)
        s.start()
        assert names(s) == made


# ---- backup -------------------------------------------------------------------------------------

class Sequence(threading.Thread):
    """Creates objects one after another: a backup holds the first so many of them."""

    def __init__(self, s, number):
        super().__init__(daemon=True)
        self.s, self.number, self.n_begun, self.n_done, self.is_over = s, number, 0, 0, False

    def run(self):
        while not self.is_over:
            self.n_begun += 1
            self.s.ok("POST", CONFIGMAPS, configmap(f"s{self.number}-{self.n_done}", "z" * 1000))
            self.n_done += 1


def check_backup(backup, bounds):
    """The state of one moment between the begin and the end of the copying."""
    copy_dir = pathlib.Path(tempfile.mkdtemp(prefix="seth-copy-"))
    try:
        done = seth_command("restore", str(backup), "--data-dir", str(copy_dir))
        assert done.returncode == 0, done.stderr
        with Server(data_dir=copy_dir) as copy:
            found = names(copy)
            for number, (n_done, n_begun) in bounds.items():
                mine = {n for n in found if n.startswith(f"s{number}-")}
                assert mine == {f"s{number}-{i}" for i in range(len(mine))}, "a hole in the backup"
                assert n_done <= len(mine) <= n_begun, (n_done, len(mine), n_begun)
            copy.ok("POST", CONFIGMAPS, configmap("new"))
    finally:
        shutil.rmtree(copy_dir)


def test_backup_while_writes_go_on():
    with Server() as s:
        writers = [Sequence(s, i) for i in range(4)]
        for w in writers:
            w.start()
        for i in range(3):
            wait_until(lambda: all(w.n_done >= 30 * (i + 1) for w in writers), what="writes")
            before = {w.number: w.n_done for w in writers}
            backup = s.dir / f"backup-{i}.db"
            done = seth_command("backup", str(backup), "--data-dir", str(s.dir))
            assert done.returncode == 0, done.stderr
            assert stat.S_IMODE(backup.stat().st_mode) == 0o600
            check_backup(backup, {w.number: (before[w.number], w.n_begun) for w in writers})
        for w in writers:
            w.is_over = True
        for w in writers:
            w.join(60)
            assert w.n_done == w.n_begun, "a write failed during the backup"
        done = seth_command("backup", str(s.dir / "backup-0.db"), "--data-dir", str(s.dir))
        assert done.returncode == 1 and "backup-0.db" in done.stderr, "a backup must not replace another"


# ---- two at once ----------------------------------------------------------------------------------

def test_second_server_is_refused():
    with Server() as s:
        s.ok("POST", CONFIGMAPS, configmap("mine"))
        kubeconfig = pathlib.Path(s.kubeconfig).read_bytes()
        said = start_and_fail(s.dir)
        assert "objects.db" in said and str(s.process.pid) in said, said
        assert pathlib.Path(s.kubeconfig).read_bytes() == kubeconfig, "the second start replaced the kubeconfig"
        backup = s.dir / "backup.db"
        assert seth_command("backup", str(backup), "--data-dir", str(s.dir)).returncode == 0
        done = seth_command("restore", str(backup), "--data-dir", str(s.dir))
        assert done.returncode == 1 and str(s.process.pid) in done.stderr, done.stderr
        assert names(s) == {"mine"}
        s.process.send_signal(signal.SIGKILL)
        s.process.wait()
        s.start()  # a lock does not outlive its holder
        assert names(s) == {"mine"}
