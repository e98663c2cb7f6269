# SPDX-License-Identifier: Apache-2.0
"""Secrets at rest: encrypted by default, with keys that are made, lost, wrong, wrapped by a command, rotated and interrupted."""
import base64
import contextlib
import os
import pathlib
import re
import resource
import shutil
import sqlite3
import stat
import subprocess
import tempfile
import time

import seth
from seth import Server

SECRETS = "/api/v1/namespaces/default/secrets"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
START_SECONDS = 60
CROWN = "the crown jewels, all of them"
CROWN_TEXT = base64.b64encode(CROWN.encode()).decode()


def secret(name, text=CROWN):
    return {"metadata": {"name": name}, "type": "Opaque", "data": {"jewels": base64.b64encode(text.encode()).decode()}}


def make(s, name, text=CROWN):
    return s.ok("POST", SECRETS, secret(name, text))


def read(s, name):
    return base64.b64decode(s.ok("GET", f"{SECRETS}/{name}")["data"]["jewels"]).decode()


def key_file(data_dir):
    return pathlib.Path(data_dir) / "pki/encryption-keys.yaml"


def key_ids(data_dir):
    return re.findall(r'^- id: "([0-9a-f]{16})"$', key_file(data_dir).read_text(), re.M)


def files_with(data_dir, *texts):
    """Files of the store that hold one of the texts."""
    return [p.name for p in pathlib.Path(data_dir).glob("objects.db*") for t in texts if t.encode() in p.read_bytes()]


def is_plain_anywhere(data_dir, *texts):
    return files_with(data_dir, CROWN, CROWN_TEXT, *texts)


def seth_command(*arguments, **kwargs):
    done = subprocess.run([seth.binary(), *arguments], capture_output=True, text=True, timeout=120, **kwargs)
    assert "Sanitizer" not in done.stderr, done.stderr
    return done


def rotate(data_dir, *options):
    done = seth_command("rotate-key", "--data-dir", str(data_dir), *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def start_and_fail(data_dir, *options):
    """A start that is refused; returns what it said."""
    done = seth_command("server", "--data-dir", str(data_dir), "--secure-port", "0", *options)
    assert done.returncode == 1, (done.returncode, done.stderr)
    return done.stderr


# ---- encrypted ----------------------------------------------------------------------------------

def test_secrets_are_encrypted_by_default_and_survive():
    with Server() as s:
        made = make(s, "one")
        s.ok("POST", CONFIGMAPS, {"metadata": {"name": "open"}, "data": {"text": "for everybody to read"}})
        assert made["data"]["jewels"] == CROWN_TEXT
        assert not is_plain_anywhere(s.dir) and files_with(s.dir, "for everybody to read")
        s.ok("PATCH", f"{SECRETS}/one", '{"metadata":{"labels":{"a":"b"}}}', {"Content-Type": "application/merge-patch+json"})
        make(s, "two")
        s.ok("DELETE", f"{SECRETS}/two")
        s.kill()
        assert not is_plain_anywhere(s.dir), "what is left behind by a crash"
        assert stat.S_IMODE(key_file(s.dir).stat().st_mode) == 0o600
        assert len(key_ids(s.dir)) == 1
        before = key_file(s.dir).read_bytes()
        s.start()
        assert read(s, "one") == CROWN
        assert s.ok("GET", f"{SECRETS}/one")["metadata"]["uid"] == made["metadata"]["uid"]
        assert s.request("GET", f"{SECRETS}/two")[0] == 404
        assert s.stop() == 0
        assert not is_plain_anywhere(s.dir)
        assert key_file(s.dir).read_bytes() == before
        log, key = s.read_log(), re.search(r'secret: "([^"]+)"', before.decode()).group(1)
        assert not any(t in log for t in (CROWN, CROWN_TEXT, key))


def test_watch_resumes_over_encrypted_history():
    with Server() as s:
        first = make(s, "one")
        make(s, "two")
        s.ok("DELETE", f"{SECRETS}/two")
        s.kill()
        s.start()
        events = s.watch(f"{SECRETS}?watch=1&resourceVersion={first['metadata']['resourceVersion']}")
        seen = [next(events), next(events)]
        events.close()
        assert [(e["type"], e["object"]["metadata"]["name"]) for e in seen] == [("ADDED", "two"), ("DELETED", "two")], seen
        assert seen[0]["object"]["data"]["jewels"] == CROWN_TEXT


def test_other_kinds_by_option():
    text = "a configuration that is nobody's business"
    with Server("--encrypt", "secrets,configmaps") as s:
        make(s, "one")
        s.ok("POST", CONFIGMAPS, {"metadata": {"name": "mine"}, "data": {"text": text}})
        s.kill()
        assert not is_plain_anywhere(s.dir, text)
        s.options = ("--encrypt", "*")
        s.start()
        s.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "whole-world"}})
        s.kill()
        assert not files_with(s.dir, '"name":"whole-world"')
        s.options = ()  # what is encrypted stays so, and stays readable, until it is written again
        s.start()
        assert s.ok("GET", f"{CONFIGMAPS}/mine")["data"]["text"] == text
        assert s.ok("GET", "/api/v1/namespaces/whole-world")
        assert not is_plain_anywhere(s.dir, text)
        s.ok("PATCH", f"{CONFIGMAPS}/mine", '{"metadata":{"labels":{"a":"b"}}}', {"Content-Type": "application/merge-patch+json"})
        assert files_with(s.dir, text)


def test_switched_off_and_on_again():
    with Server("--encrypt", "none") as s:
        assert not key_file(s.dir).exists()
        assert "Secrets are not encrypted" in s.read_log()
        make(s, "one")
        for i in range(30):  # superseded versions, which end up in free pages
            s.ok("PUT", f"{SECRETS}/one", secret("one", f"{CROWN} {i}"))
        make(s, "two")
        s.ok("DELETE", f"{SECRETS}/two")
        assert is_plain_anywhere(s.dir)
        assert s.stop() == 0
        assert is_plain_anywhere(s.dir)
        s.options = ()
        s.start()
        assert not is_plain_anywhere(s.dir), "a start encrypts what is plain, and forgets it"
        assert read(s, "one") == f"{CROWN} 29"
        s.options = ("--encrypt", "none")
        assert s.stop() == 0
        s.start()
        assert read(s, "one") == f"{CROWN} 29"
        assert not is_plain_anywhere(s.dir), "switched off, it stays as it is"


def test_bad_options_are_named():
    with tempfile.TemporaryDirectory() as d:
        for value in ("Secrets", "secrets,none", "secrets,,configmaps", "secrets/default"):
            said = start_and_fail(d, "--encrypt", value)
            assert "--encrypt" in said, said
        assert not key_file(d).exists()


# ---- keys lost and wrong --------------------------------------------------------------------------

def test_start_without_the_key_is_refused_and_says_so():
    with Server() as s:
        make(s, "one")
        assert s.stop() == 0
        key, = key_ids(s.dir)
        path = key_file(s.dir)
        good, db = path.read_bytes(), (s.dir / "objects.db").read_bytes()
        path.unlink()
        said = start_and_fail(s.dir)
        assert str(path) in said and key in said and "put back the key file" in said and "secrets/default/one" in said, said
        assert not path.exists(), "a new key would hide that the old one is gone"
        assert str(path) in start_and_fail(s.dir, "--encrypt", "none")
        done = seth_command("rotate-key", "--data-dir", str(s.dir))
        assert done.returncode == 1 and str(path) in done.stderr, done.stderr
        assert (s.dir / "objects.db").read_bytes() == db
        path.write_bytes(good)
        s.start()
        assert read(s, "one") == CROWN


def test_wrong_and_broken_key_files_are_refused_and_say_so():
    with Server() as s, Server() as other:
        make(s, "one")
        assert s.stop() == 0
        key, = key_ids(s.dir)
        wrong, = key_ids(other.dir)
        path = key_file(s.dir)
        good = path.read_text()
        foreign = key_file(other.dir).read_text()
        path.write_text(foreign)
        said = start_and_fail(s.dir)
        assert str(path) in said and key in said and "put back the key file that belongs" in said, said
        mixed = foreign.replace(wrong, key)  # the id of the right one over another secret
        for text, words in ((mixed, key), ("", "key"), ("keys: []\n", "key"), ("keys: 7\n", "key"), ("{", "key"), (good.replace("secret:", "secrets:"), "secret"),
                            (re.sub(r'secret: ".*"', 'secret: "c2hvcnQ="', good), "base64 of 32 bytes")):
            path.write_text(text)
            said = start_and_fail(s.dir)
            assert str(path) in said and words in said, (text, said)
            assert path.read_text() == text
            assert not re.search(r'secret: "([^"]+)"', good).group(1) in said
        path.write_text(good + foreign.split("keys:\n")[1])  # more keys do no harm, and the first one writes
        s.start()
        assert read(s, "one") == CROWN
        path.chmod(0o644)
        assert s.stop() == 0
        s.start()
        assert "others may read the encryption keys" in s.read_log()


def test_rows_cannot_be_put_in_place_of_others():
    """An attacker who can write the file, and knows its checksum, still cannot give one Secret the content of another."""
    with Server() as s:
        make(s, "guest", "nothing much")
        make(s, "admin", "something more")
        assert s.stop() == 0
        with contextlib.closing(sqlite3.connect(s.dir / "objects.db")) as db:
            rows = {key: (revision, text) for revision, key, text in db.execute("SELECT revision, key, text FROM log WHERE key LIKE 'secrets/%'")}
            assert all(text[0] == 1 for _, text in rows.values())
            target = rows["secrets/default/admin"][0]
            kind, at = db.execute("SELECT type, revision_at FROM log WHERE revision = ?", (target,)).fetchone()
            text = rows["secrets/default/guest"][1]
            db.execute("UPDATE log SET text = ?, checksum = ? WHERE revision = ?",
                       (text, checksum(target, kind, at, b"secrets/default/admin", text), target))
            db.commit()
        said = start_and_fail(s.dir)
        assert "secrets/default/admin" in said and "changed, or moved" in said, said


def checksum(revision, kind, at, key, text):
    """As the store makes it over a row."""
    mask = (1 << 64) - 1

    def mix(state, word):
        state = ((state ^ word) * 0x9E3779B97F4A7C15) & mask
        return state ^ (state >> 32)

    def mix_bytes(state, data):
        n = len(data) // 8 * 8
        for i in range(0, n, 8):
            state = mix(state, int.from_bytes(data[i:i + 8], "little"))
        return mix(mix(state, int.from_bytes(data[n:], "little")), len(data))

    state = mix_bytes(mix_bytes(mix(mix(revision, kind), at), key), text)
    return state - (1 << 64) if state >> 63 else state


# ---- rotation -------------------------------------------------------------------------------------

def sealed_with(data_dir):
    """The ids of the keys that rows are encrypted with."""
    with contextlib.closing(sqlite3.connect(pathlib.Path(data_dir) / "objects.db")) as db:
        return {bytes(t[1:9]).hex() for t, in db.execute("SELECT text FROM log") if t[:1] == b"\x01"}


def test_rotation_replaces_the_key_everywhere():
    with Server() as s:
        for i in range(40):
            make(s, f"s-{i}", f"{CROWN} {i}")
        done = seth_command("rotate-key", "--data-dir", str(s.dir))
        assert done.returncode == 1 and str(s.process.pid) in done.stderr and "stop" in done.stderr, done.stderr
        old, = key_ids(s.dir)
        assert s.stop() == 0
        assert sealed_with(s.dir) == {old}
        said = rotate(s.dir)
        new, = key_ids(s.dir)
        assert new != old and new in said, said
        assert sealed_with(s.dir) == {new}
        assert not [p for p in s.dir.glob("objects.db*") if bytes.fromhex(old) in p.read_bytes()], "a row under the old key is left"
        assert not is_plain_anywhere(s.dir)
        assert stat.S_IMODE(key_file(s.dir).stat().st_mode) == 0o600
        s.start()
        assert {read(s, f"s-{i}") for i in range(40)} == {f"{CROWN} {i}" for i in range(40)}
        make(s, "after")
        assert s.stop() == 0
        assert sealed_with(s.dir) == {new}


def test_rotation_encrypts_what_was_plain():
    with Server("--encrypt", "none") as s:
        make(s, "one")
        assert s.stop() == 0
        assert is_plain_anywhere(s.dir)
        rotate(s.dir)
        assert not is_plain_anywhere(s.dir)
        s.options = ()
        s.start()
        assert read(s, "one") == CROWN


def test_rotation_without_a_store_makes_nothing():
    with tempfile.TemporaryDirectory() as d:
        done = seth_command("rotate-key", "--data-dir", d)
        assert done.returncode == 1 and "objects.db" in done.stderr, done.stderr
        assert not os.listdir(d)
    with Server("--encrypt", "none") as s:
        assert s.stop() == 0
        done = seth_command("rotate-key", "--data-dir", str(s.dir), "--encrypt", "none")
        assert done.returncode == 1 and "nothing is encrypted" in done.stderr, done.stderr
        assert not key_file(s.dir).exists()


def test_rotation_killed_at_any_moment_leaves_a_readable_store():
    with Server() as s:
        for i in range(300):
            make(s, f"s-{i}", f"{CROWN} {i}" + "x" * 4000)
        expected = {f"s-{i}": f"{CROWN} {i}" + "x" * 4000 for i in range(300)}
        assert s.stop() == 0
        begin = time.monotonic()
        rotate(s.dir)
        whole, n_killed = time.monotonic() - begin, 0
        for step in range(12):
            process = subprocess.Popen([seth.binary(), "rotate-key", "--data-dir", str(s.dir)], stdout=subprocess.DEVNULL)
            time.sleep(whole * (step + 0.5) / 12)
            process.kill()
            n_killed += process.wait() != 0
            assert 1 <= len(key_ids(s.dir)) <= 2, key_ids(s.dir)
            assert not is_plain_anywhere(s.dir)
        assert n_killed >= 6, "too few were killed to mean anything"
        rotate(s.dir)
        assert sorted(p.name for p in key_file(s.dir).parent.glob("encryption-keys*")) == ["encryption-keys.yaml"], "keys in what a kill left"
        s.start()
        found = s.ok("GET", SECRETS)["items"]
        assert {o["metadata"]["name"]: base64.b64decode(o["data"]["jewels"]).decode() for o in found} == expected
        assert s.stop() == 0
        rotate(s.dir)
        key, = key_ids(s.dir)
        assert sealed_with(s.dir) == {key}
        s.start()
        assert read(s, "s-7") == expected["s-7"]


def test_rotation_on_a_full_disk_is_finished_later():
    with Server() as s:
        for i in range(100):
            make(s, f"s-{i}", f"{CROWN} {i}" + "x" * 8000)
        assert s.stop() == 0
        old, = key_ids(s.dir)
        size, outcomes = (s.dir / "objects.db").stat().st_size, []
        for limit in (size // 4, size * 5 // 4, size * 7 // 4):  # full while rows are written, and while the file is built anew
            done = seth_command("rotate-key", "--data-dir", str(s.dir),
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY)))
            assert done.returncode == 1 and "objects.db: cannot seal its texts" in done.stderr, (limit, done.returncode, done.stderr)
            assert len(key_ids(s.dir)) == 2 and key_ids(s.dir)[1] == old, "the old key must stay, and one new one is enough"
            outcomes.append(sealed_with(s.dir))
        new = key_ids(s.dir)[0]
        assert outcomes[0] == {old} and outcomes[-1] == {new}, outcomes
        s.start()
        assert read(s, "s-99") == f"{CROWN} 99" + "x" * 8000
        assert s.stop() == 0
        assert new in rotate(s.dir)
        assert key_ids(s.dir) == [new] and sealed_with(s.dir) == {new}
        assert not [p for p in s.dir.glob("objects.db*") if bytes.fromhex(old) in p.read_bytes()]


# ---- wrapped by a command ---------------------------------------------------------------------------

class Kms:
    """A program that wraps keys with one of its own, by counting up each byte; it can be told to misbehave."""

    SCRIPT = """#!/usr/bin/env python3
import base64, pathlib, sys, time
here = pathlib.Path(__file__).parent
mode = (here / "mode").read_text()
with open(here / "calls", "a") as f:
    f.write(sys.argv[-1] + "\\n")
data = base64.b64decode(sys.stdin.read())
step = {"wrap": 1, "unwrap": -1}[sys.argv[-1]]
if mode == "fail":
    sys.exit("the vault is closed")
if mode == "lie" and sys.argv[-1] == "unwrap":
    data = bytes(len(data))
if mode == "flood":
    sys.stdout.write("A" * 100000)
if mode == "chat":
    print("hello!")
out = base64.encodebytes(bytes((b + step) % 256 for b in data)).decode()
print(out)
"""

    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        self.dir.mkdir(exist_ok=True)
        self.path = self.dir / "kms"
        self.path.write_text(self.SCRIPT)
        self.path.chmod(0o755)
        self.set("good")
        self.option = ("--encryption-key-command", f"'{self.path}' --key seth")

    def set(self, mode):
        (self.dir / "mode").write_text(mode)

    def calls(self):
        return (self.dir / "calls").read_text().split()


@contextlib.contextmanager
def kms():
    directory = tempfile.mkdtemp(prefix="seth kms ")
    try:
        yield Kms(directory)
    finally:
        shutil.rmtree(directory)


def test_key_command_keeps_the_key_off_the_disk():
    with kms() as k, Server(*k.option) as s:
        make(s, "one")
        text = key_file(s.dir).read_text()
        assert "wrapped:" in text and "secret:" not in text
        assert k.calls() == ["wrap", "unwrap"], "what was wrapped is tried"
        wrapped = base64.b64decode(re.search(r'wrapped: "([^"]+)"', text).group(1))
        key = bytes((b - 1) % 256 for b in wrapped)
        assert s.stop() == 0
        for p in s.dir.rglob("*"):
            assert not p.is_file() or (key not in p.read_bytes() and base64.b64encode(key) not in p.read_bytes()), p
        s.start()
        assert read(s, "one") == CROWN
        assert s.stop() == 0
        said = start_and_fail(s.dir)
        assert "--encryption-key-command" in said and str(key_file(s.dir)) in said, said
        rotate(s.dir, *k.option)
        assert "secret:" not in key_file(s.dir).read_text()
        s.start()
        assert read(s, "one") == CROWN


def test_key_command_that_misbehaves_is_named():
    with kms() as k, Server(*k.option) as s:
        make(s, "one")
        assert s.stop() == 0
        before = key_file(s.dir).read_bytes()
        for mode, words in (("fail", "failed with exit code 1"), ("lie", "another one"), ("flood", "prints more than"), ("chat", "does not print")):
            k.set(mode)
            said = start_and_fail(s.dir, *k.option)
            assert words in said, (mode, said)
            assert mode != "fail" or "the vault is closed" in said, said
        said = start_and_fail(s.dir, "--encryption-key-command", "/nonexistent/kms")
        assert "/nonexistent/kms" in said and "exit code 127" in said, said
        assert key_file(s.dir).read_bytes() == before
        k.set("good")
        s.start()
        assert read(s, "one") == CROWN
    with kms() as k, tempfile.TemporaryDirectory() as d:
        k.set("lie")
        said = start_and_fail(d, *k.option)
        assert "does not give back" in said, said
        assert not key_file(d).exists(), "a key that cannot be unwrapped must not be used"


def test_key_command_wraps_keys_that_lay_open():
    with kms() as k, Server() as s:
        make(s, "one")
        assert s.stop() == 0
        key, = key_ids(s.dir)
        s.options = k.option
        s.start()
        assert read(s, "one") == CROWN and "seth rotate-key" in s.read_log()
        assert "secret:" not in key_file(s.dir).read_text() and key_ids(s.dir) == [key]


# ---- backups ----------------------------------------------------------------------------------------

def test_backup_is_encrypted_and_needs_the_key():
    with Server() as s, tempfile.TemporaryDirectory() as elsewhere:
        make(s, "one")
        backup = s.dir / "backup.db"
        done = seth_command("backup", str(backup), "--data-dir", str(s.dir))
        assert done.returncode == 0, done.stderr
        assert CROWN_TEXT.encode() not in backup.read_bytes()
        done = seth_command("restore", str(backup), "--data-dir", elsewhere)
        assert done.returncode == 0, done.stderr
        said = start_and_fail(elsewhere)
        assert str(key_file(elsewhere)) in said and key_ids(s.dir)[0] in said, said
        shutil.copy(key_file(s.dir), key_file(elsewhere))
        with Server(data_dir=elsewhere) as copy:
            assert read(copy, "one") == CROWN
        assert s.stop() == 0
        rotate(s.dir)
        done = seth_command("restore", str(backup), "--data-dir", str(s.dir))
        assert done.returncode == 0, done.stderr
        old, = key_ids(elsewhere)
        assert old in start_and_fail(s.dir), "the key of the backup is gone"
        text = key_file(elsewhere).read_text().split("keys:\n")[1]
        with open(key_file(s.dir), "a") as f:
            f.write(text)
        s.start()  # and what it reads with an old key it writes with the new one
        assert read(s, "one") == CROWN
        assert s.stop() == 0
        assert sealed_with(s.dir) == {key_ids(s.dir)[0]}


def test_help_says_what_a_backup_lacks():
    assert "encryption keys" in seth_command("backup", "--help").stdout
    assert "rotate-key" in seth_command("--help").stdout
