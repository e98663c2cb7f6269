# SPDX-License-Identifier: Apache-2.0
"""A reconnect storm: a thousand devices come back at once, as after an outage of the network, and all want to talk.

What a device can do without for a while is put off first: logs, then metrics, then info, and never for long what it cannot do without. It is
put off with a status after which it keeps what it had to say, and is told when to come again. The server's own figures say the same as the
devices' count."""
import asyncio
import collections
import os
import re
import time

import eve
import wire
from eve import PROTO, entry, seal
from fleet import Site, neighbour
from seth import TOP, Server

RELEASE = TOP / "build/release/server/seth"
if RELEASE.exists():
    os.environ.setdefault("SETH", str(RELEASE))  # the server is to be pressed by devices, not by sanitizers

N_DEVICES, N_IDENTITIES = 1000, 100
ORDER = ("essential", "info", "metrics", "logs")
PUT_OFF = (429, 503)
TRIES = 30  # of an essential request that is put off
CHANCE = 0.07  # three times what two parts of a thousand differ by without a reason
# Room for few at once, so that any machine is pressed; a hundred devices stand for ten each, so none has a limit of its own.
OPTIONS = ("--max-device-requests-inflight", "40", "--device-requests-per-second", "0")


def request(path, body):
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {PROTO}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class Traffic:
    """What one device sends, made beforehand: the storm is not to wait for its own signatures."""

    def __init__(self, device):
        lines = eve.gzip_member(eve.log_lines([entry("x" * 100, msgid=i) for i in range(20)]))
        payloads = {"config": b"", "info": wire.encode("info.ZInfoMsg", {"ztype": 1, "dinfo": {"machineArch": "x"}, "atTimeStamp": wire.timestamp()}),
                    "metrics": wire.encode("metrics.ZMetricMsg", {"dm": {}, "atTimeStamp": wire.timestamp()}), "newlogs": lines}
        self.device = device
        self.requests = dict(zip(ORDER, (request(device.path(a), seal(device.identity, p)) for a, p in payloads.items())))


async def read(reader):
    """(status, headers) of the next answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
    if int(headers.get("content-length", 0)):
        await reader.readexactly(int(headers["content-length"]))
    return int(head[0].split()[1]), headers


class Storm:
    def __init__(self, traffic):
        self.traffic, self.counts, self.lost, self.without_hint = traffic, collections.Counter(), [], 0
        self.n_again = 0

    async def ask(self, data, kind, reader, writer):
        writer.write(data)
        status, headers = await read(reader)
        self.counts[kind, status] += 1
        if status in PUT_OFF and not headers.get("retry-after", "").isdigit():
            self.without_hint += 1
        return status

    async def ask_until_served(self, data, kind, reader, writer):
        """An essential request is made again when it is put off, the others' time has not come."""
        for _ in range(TRIES):
            status = await self.ask(data, kind, reader, writer)
            if status not in PUT_OFF or kind != "essential":
                break
            await asyncio.sleep(0.2)
        if kind == "essential" and status not in (200, 304):
            self.lost.append(f"config {status}")

    async def talk(self, index, done):
        """One connection; `done` are the classes that have had their answer."""
        t = self.traffic[index % len(self.traffic)]
        reader, writer = await asyncio.open_connection(t.device.host, t.device.port, ssl=t.device.tls, server_hostname=t.device.host)
        try:
            for i in range(len(ORDER)):
                kind = ORDER[(index + i) % len(ORDER)]
                if kind not in done:
                    await self.ask_until_served(t.requests[kind], kind, reader, writer)
                    done.add(kind)
        finally:
            writer.close()

    async def device(self, index):
        """Connects with all the others and sends one request of each class, the classes in turn. One whose handshake took too long, on a
        machine that is slow, comes again as devices do."""
        done = set()
        for _ in range(TRIES):
            try:
                return await self.talk(index, done)
            except (OSError, asyncio.IncompleteReadError) as e:
                self.n_again, error = self.n_again + 1, e
        self.lost.append(repr(error))

    async def run(self):
        begin = time.monotonic()
        await asyncio.gather(*(self.device(i) for i in range(N_DEVICES)))
        return time.monotonic() - begin


def figures(s):
    """({(class, code): count}, {class: count}) as the server says."""
    text = s.request("GET", "/metrics", raw=True)[1].decode()
    requests, shed = collections.Counter(), collections.Counter()
    for labels, value in re.findall(r"^seth_device_requests_total\{([^}]*)\} (\S+)$", text, re.M):
        words = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        requests[words["class"], int(words["code"])] += int(float(value))
    for name, value in re.findall(r'^seth_device_shed_total\{class="(\w+)"\} (\S+)$', text, re.M):
        shed[name] += int(float(value))
    return requests, shed


def part_put_off(counts, kind):
    total = sum(n for (k, _), n in counts.items() if k == kind)
    return sum(counts[kind, code] for code in PUT_OFF) / total


def test_a_thousand_devices_at_once():
    with Server(*OPTIONS) as s:
        site = Site(s)
        devices = site.many(N_IDENTITIES)
        traffic = [Traffic(d) for d in devices]
        for d in devices:
            assert d.config()[0].status == 200
        before, _ = figures(s)
        storm = Storm(traffic)
        seconds = asyncio.run(storm.run())
        after, shed = figures(s)
        print(f"     {N_DEVICES} devices in {seconds:.1f} s, {storm.n_again} came again: {dict(sorted(storm.counts.items()))}", flush=True)
        assert not storm.lost, f"{len(storm.lost)} devices did not get through: {storm.lost[:5]}"
        assert storm.without_hint == 0, "put off without being told when to come again"
        codes = {code for _, code in storm.counts}
        assert codes <= {200, 304, 201, *PUT_OFF}, f"a status at which a device drops what it says: {codes}"
        parts = [part_put_off(storm.counts, kind) for kind in ORDER]
        assert parts[3] > 0, "nothing was put off: this was no storm"
        assert all(x <= y + CHANCE for x, y in zip(parts, parts[1:])), f"put off in another order than {ORDER}: {parts}"
        counted = {k: n - before[k] for k, n in after.items() if n != before[k]}
        assert counted == dict(storm.counts), (counted, storm.counts)
        for kind in ORDER:
            assert shed[kind] == sum(storm.counts[kind, code] for code in PUT_OFF), (kind, shed)
        for d in devices[:5]:  # and it is over when it is over
            assert d.newlogs([entry("after the storm")]).status == 201
            assert d.metrics().status == 201 and d.info({"ztype": 1}).status == 201


def test_one_device_that_does_not_stop():
    """The limit of one device is its own: it is told 429 and when to come again, another is served."""
    with Server("--device-requests-per-second", "5") as s:
        site = Site(s)
        a, b = site.onboarded(), site.onboarded()
        with neighbour(b, period=0.5):
            answers = [a.metrics() for _ in range(100)]
        refused = [r for r in answers if r.status == 429]
        assert refused and all(r.headers["Retry-After"].isdigit() for r in refused), answers[-1]
        assert {r.status for r in answers} == {201, 429}
        assert len(answers) - len(refused) >= 5
        limited = re.search(r"^seth_device_limited_total (\d+)$", s.request("GET", "/metrics", raw=True)[1].decode(), re.M)
        assert int(limited.group(1)) >= len(refused)
