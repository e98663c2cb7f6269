# SPDX-License-Identifier: Apache-2.0
"""kill -9 while two hundred devices post: whatever was acknowledged is there afterwards, counted through what users read and,
for escrowed keys, by what a device gets back. What was under way may be there or not, but whole, and under an id of its own.

CRASH_SEED repeats a run's choices (not its timing), CRASH_ROUNDS changes the number of kills."""
import concurrent.futures
import http.client
import json
import os
import random
import re
import threading
import time
import uuid

import eve
import wire
from eve import entry
from fleet import Site
from seth import TOP, Server
from tpm import PaperTpm

RELEASE = TOP / "build/release/server/seth"
if RELEASE.exists():
    os.environ.setdefault("SETH", str(RELEASE))  # the devices shall be the slower side

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "5"))
SEED = int(os.environ.get("CRASH_SEED", str(random.SystemRandom().randrange(1 << 32))))
N_DEVICES, N_NEWCOMERS = 200, 10
WINDOW_SECONDS = (0.5, 3.0)  # of posting before a kill
GONE = (http.client.HTTPException, OSError)
LATER = (429, 503)  # not now: nothing was promised
MARK = re.compile(r"mark-(\w+)-(\d+)")


class Poster:
    """One device and what it was promised."""

    def __init__(self, site):
        self.tpm, self.app, self.n = PaperTpm(), uuid.uuid4(), 0
        self.device = site.onboarded()
        self.promised = {"info": set(), "log": set(), "app": set()}
        self.keys = [b"first"]  # the last one promised, then those that may have been stored
        self.line = None
        assert self.device.attest_certs(self.device.own_certs(self.tpm.public_key))[0].status == 201
        assert self.quote()["response"] == eve.SUCCESS
        assert self.device.store_keys([b"first"])[1]["response"] == 1

    def quote(self):
        answer, result = self.device.quote(*self.tpm.quote(self.device.nonce()))
        assert answer.status == 201, answer
        return result

    def send(self, path, body):
        """On a connection that is kept: handshakes would leave little time to post anything."""
        self.line = self.line or eve.connect(self.device.host, self.device.port, self.device.tls)
        self.line.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {eve.PROTO}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        return eve.read_answer(self.line)

    def post(self, rng):
        self.n += 1
        mark, d = f"mark-{d_name(self.device)}-{self.n}", self.device
        kind = rng.choice(("info", "log", "gzip", "app") * 4 + ("key",))
        if kind == "key":
            self.keys.append(mark.encode())
            answer, result = d.store_keys([mark.encode()])
            if answer.status == 201:
                assert result["response"] == 1, result
                self.keys = [mark.encode()]
            return answer.status
        entries = [entry(mark, msgid=self.n)]
        path, payload = {"info": lambda: (d.path("info"), wire.encode("info.ZInfoMsg", {"ztype": "ZiDevice", "dinfo": {"machineArch": mark}})),
                         "log": lambda: (d.path("logs"), wire.encode("logs.LogBundle", {"log": entries})),
                         "gzip": lambda: (d.path("newlogs"), eve.gzip_member(eve.log_lines(entries))),
                         "app": lambda: (d.app_log_paths(self.app, "newlogs")["pillar"], eve.gzip_member(eve.log_lines(entries)))}[kind]()
        answer = self.send(path, eve.seal(d.identity, payload))
        if answer.status == 201:
            self.promised["log" if kind == "gzip" else kind].add(mark)
        return answer.status

    def run(self, rng, stop):
        """Posts until the server is gone or the round is over; returns what went wrong."""
        try:
            while not stop.is_set():
                status = self.post(rng)
                if status in LATER:
                    stop.wait(0.1)
                elif status != 201:
                    return f"status {status}"
        except GONE:
            pass
        finally:
            if self.line:
                self.line.close()
            self.line = None
        return None


def d_name(device):
    return device.uuid.replace("-", "")


def marks_of(lines):
    """The marks there are, each with the ids of the lines it is on; an id belongs to one line."""
    ids, found = set(), {}
    for line in lines:
        assert line["id"] not in ids, f"id {line['id']} twice: {line}"
        ids.add(line["id"])
        m = MARK.search(json.dumps(line))
        if m:
            found.setdefault(m.group(0), []).append(line["id"])
    return found


def check(site, poster):
    """Everything promised is there once, nothing of another device is."""
    found = {"info": marks_of(site.read(poster.device, "info")), "log": marks_of(site.read(poster.device, "log")),
             "app": marks_of(site.read(poster.device, "log", app=poster.app))}
    for stream, promised in poster.promised.items():
        lost = promised - set(found[stream])
        assert not lost, f"{len(lost)} of {len(promised)} acknowledged messages of {stream} are lost: {sorted(lost)[:3]}"
        for mark, ids in found[stream].items():
            assert len(ids) == 1, f"{mark} was sent once and is there {len(ids)} times: {ids}"
            assert MARK.match(mark).group(1) == d_name(poster.device), f"{mark} of another device"
    result = poster.quote()
    keys = [k["key"] for k in result.get("keys", [])]
    assert len(keys) == 1 and keys[0] in poster.keys, f"key {keys} instead of one of {poster.keys}"
    poster.keys = keys
    return sum(map(len, poster.promised.values()))


def register(device):
    """A new device meanwhile: itself when its registration was answered."""
    try:
        return device if device.register().status in (200, 201) else None
    except GONE:
        return None


def round_of(s, site, posters, rng, pool):
    stop = threading.Event()
    rngs = [random.Random(rng.random()) for _ in posters]
    newcomers = [site.device() for _ in range(N_NEWCOMERS)]
    joining = [pool.submit(register, d) for d in newcomers]
    running = [pool.submit(p.run, r, stop) for p, r in zip(posters, rngs)]
    time.sleep(rng.uniform(*WINDOW_SECONDS))  # the moment of the crash, not a hope
    s.kill()
    stop.set()
    wrong = [f.result() for f in running if f.result()]
    registered = [f.result() for f in joining if f.result()]
    assert not wrong, wrong[:5]
    s.start()
    for d in registered:
        d.certs()
        assert d.ask_uuid()[0].status == 200, "a registration was answered and forgotten"
    return sum(pool.map(lambda p: check(site, p), posters)), len(registered)


def test_kill_while_devices_post():
    print(f"     CRASH_SEED={SEED}", flush=True)
    rng = random.Random(SEED)
    with Server() as s, concurrent.futures.ThreadPoolExecutor(N_DEVICES + N_NEWCOMERS) as pool:
        site = Site(s)
        posters = list(concurrent.futures.ThreadPoolExecutor(16).map(lambda _: Poster(site), range(N_DEVICES)))
        before = 0
        for number in range(ROUNDS):
            total, n_registered = round_of(s, site, posters, rng, pool)
            print(f"     round {number}: {total} acknowledged and all there, {n_registered} registered", flush=True)
            assert total > before, "nothing was acknowledged in this round: it proves nothing"
            before = total
