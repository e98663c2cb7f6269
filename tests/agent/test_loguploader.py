# SPDX-License-Identifier: Apache-2.0
"""Log lines on their way: collected, packed and uploaded by a process that time runs fast in, to a real server, or to one that answers as it is
told to. The process is killed again and again, and every line that it took is there once."""
import contextlib
import datetime
import gzip
import http.server
import ipaddress
import json
import os
import pathlib
import random
import re
import shutil
import ssl
import subprocess
import tempfile
import threading
import time
import uuid

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import eve
from fleet import shared_site as site
from seth import binary, wait_until

SECONDS = 60
TOOL = str(pathlib.Path(binary()).resolve().parents[1] / "tests/agent/loguploader_tool")
FAST = {"newlog.allow.fastupload": "true"}
KILLS = 50


def network(address="127.0.0.1"):
    return {"Version": 1, "State": 3, "Ports": [{"IfName": "lo", "IsMgmt": True, "IsL3Port": True, "AddrInfoList": [{"Addr": address}]}]}


class Device:
    """The directories of a device that has been onboarded."""

    def __init__(self, server, root_pem, identity, device):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="logs-"))
        self.newlog, self.uuid = self.root / "persist/newlog", device
        self.write("config/server", server + "\n")
        self.write("config/root-certificate.pem", root_pem)
        self.write("config/device.cert.pem", identity.pem)
        self.write("config/device.key.pem", identity.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()))
        self.write("persist/status/zedclient/OnboardingStatus/global.json", json.dumps({"DeviceUUID": device, "HardwareModel": "T.T"}))

    def write(self, name, content):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def files(self, directory):
        return sorted(p.name for p in (self.newlog / directory).glob("*") if p.name != "msgids.json")

    def put(self, directory, name, lines, content=None):
        data = "".join(json.dumps({"content": line, "msgid": i + 1}) + "\n" for i, line in enumerate(lines))
        self.write(f"persist/newlog/{directory}/{name}", gzip.compress(data.encode()) if content is None else content)

    def metrics(self, agent="loguploader"):
        """NewlogMetrics as they are published."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            return json.loads((self.root / "run" / agent / "NewlogMetrics/global.json").read_bytes())
        return {"DevMetrics": {}, "AppMetrics": {}}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root)


class Tool:
    """A life of the process."""

    def __init__(self, device, speed=1, rotate_s=3600, items=None):
        command = [TOOL, *(str(device.root / d) for d in ("config", "persist", "run")), str(speed), str(rotate_s)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask(network=network())
        if items is not None:
            self.ask(items=items)

    def ask(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def line(self, content, **more):
        assert self.ask(line={"content": content, **more}) == {"error": 0}

    def counts(self):
        return self.ask(counts=True)

    def stop(self):
        self.process.stdin.close()
        assert self.process.wait(SECONDS) == 0

    def kill(self):
        self.process.kill()
        self.process.wait(SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.kill()
        self.process.stdout.close()


def device_of(s):
    """A device that the real server knows."""
    d = site(s).onboarded()
    return Device(f"127.0.0.1:{s.device_port}", site(s).root_pem, d.identity, d.uuid)


def contents(s, device, **query):
    return [line["content"] for line in site(s).read(device, "log", **query)]


# ---- the real server

def test_lines_are_read_back(s):
    app = str(uuid.uuid4())
    with device_of(s) as d, Tool(d, speed=10, rotate_s=5, items=FAST) as t:
        t.line("one")
        t.line("two\nof them")
        t.line("mine", app=app, name="Küche €")
        wait_until(lambda: len(contents(s, d)) == 3, what="the lines")
        assert contents(s, d, app="none") == ["one", "two\nof them"] and contents(s, d, app=app) == ["mine"]
        first = site(s).read(d, "log", app="none")[0]
        assert first["source"] == "tool" and first["severity"] == "info" and first["msgid"] == 1 and first["iid"] == str(t.process.pid)
        wait_until(lambda: d.metrics()["AppMetrics"].get("NumGZipFilesSent") == 1, what="metrics")
        wait_until(lambda: not d.files("appUpload"), what="the file to be moved")
        assert d.files("devUpload") == d.files("appUpload") == d.files("collect") == []
        assert len(d.files("keepSentQueue")) == 1 and d.files("keepSentQueue")[0].startswith(f"app.{app}.log.")
        m = d.metrics()
        assert m["TotalBytesUpload"] > 0 and m["CurrUploadIntvSec"] == 3 and m["DevMetrics"]["NumGzipFileInDir"] == 0
        assert m["Latency"]["MaxUploadMsec"] >= m["Latency"]["MinUploadMsec"] >= 0 and m["DevMetrics"]["LastGZipFileSendTime"] > "2020"
        urls = json.loads((d.root / "run/loguploader/MetricsMap/global.json").read_text())["lo"]["URLCounters"]
        assert any(u.endswith(f"/id/{d.uuid}/newlogs") for u in urls) and any(f"apps/instanceid/{app}/newlogs" in u for u in urls)
        t.stop()


def test_the_oldest_comes_first_and_one_of_each_at_a_time(s):
    app = str(uuid.uuid4())
    with device_of(s) as d:
        for i in (3, 1, 2):
            d.put("devUpload", f"dev.log.{1700000000000 + i}.gz", [f"d{i}"])
            d.put("appUpload", f"app.{app}.log.{1700000000000 + i}.gz", [f"a{i}"])
        d.put("appUpload", f"app.skipTx.{app}.log.1.gz", ["secret"])
        d.put("devUpload", "nothing of ours", ["x"])
        with Tool(d, speed=10, items=FAST) as t:
            wait_until(lambda: t.counts()["sent"] == 6, what="all files")
        assert contents(s, d) == ["d1", "a1", "d2", "a2", "d3", "a3"]
        assert d.files("devUpload") == ["nothing of ours"] and d.files("appUpload") == [f"app.skipTx.{app}.log.1.gz"]


def test_what_is_no_log_is_put_aside(s):
    with device_of(s) as d:
        d.put("devUpload", "dev.log.1.gz", [], content=b"this is not gzip")
        d.put("devUpload", "dev.log.2.gz", [], content=b"")
        d.put("devUpload", "dev.log.3.gz", [], content=gzip.compress(os.urandom(70000)))
        d.put("devUpload", "dev.log.4.gz", ["good"])
        os.mkfifo(d.newlog / "devUpload/dev.log.5.gz")
        with Tool(d, speed=30, items=FAST) as t:
            wait_until(lambda: t.counts()["sent"] == 1, what="the good one")
            wait_until(lambda: d.metrics()["DevMetrics"].get("NumGZipFileKeptLocal") == 3, what="metrics")
        assert contents(s, d) == ["good"] and d.files("failedUpload") == ["dev.log.1.gz", "dev.log.2.gz", "dev.log.3.gz"]


def test_what_an_earlier_life_or_newlogd_left_is_uploaded(s):
    app = str(uuid.uuid4())
    with device_of(s) as d:
        (d.newlog / "collect").mkdir(parents=True)
        d.write("persist/newlog/collect/dev.log.upload1234", '{"devID":"x"}\n{"content":"from newlogd","msgid":7}\n{"content":"to')
        d.write(f"persist/newlog/collect/app.{app}.log99", 'shop\n{"content":"of the app","msgid":3}\n')
        d.write("persist/newlog/collect/TempFile.dev.log.5.0", b"half")
        with Tool(d, speed=10, rotate_s=5, items=FAST) as t:
            t.line("and ours")
            wait_until(lambda: len(contents(s, d)) == 3, what="the lines")
        lines = {line["content"]: line["msgid"] for line in site(s).read(d, "log")}
        assert lines == {"from newlogd": 7, "of the app": 3, "and ours": 8}


def test_a_file_that_was_sent_and_is_still_there_is_kept_once(s):
    """As after a death between the server's answer and the removal, or a power cut that brings the file back; across a restart of nobody but us."""
    app = str(uuid.uuid4())
    with device_of(s) as d:
        for life in range(3):
            d.put("devUpload", "dev.log.1.gz", ["once"], content=gzip.compress(b'{"content":"once","msgid":1}\n', mtime=1))
            d.put("appUpload", f"app.{app}.log.1.gz", ["mine"], content=gzip.compress(b'{"content":"mine","msgid":1}\n', mtime=1))
            with Tool(d, speed=30, items=FAST) as t:
                wait_until(lambda: not d.files("devUpload") + d.files("appUpload"), what="the files to go")
                assert t.counts()["sent"] == 2
        assert contents(s, d) == ["once", "mine"]


def test_every_line_once_whenever_it_is_killed(s):
    """kill -9 while lines flow, are packed, uploaded; what was acknowledged is there once, the rest at most once."""
    seed = int(os.environ.get("KILL_SEED") or random.randrange(1 << 30))
    print(f"     KILL_SEED={seed}")
    dice, app = random.Random(seed), str(uuid.uuid4())
    taken, number = set(), 0
    with device_of(s) as d:
        for _ in range(KILLS):
            with Tool(d, speed=40, rotate_s=6, items=FAST) as t:
                end = time.monotonic() + dice.uniform(0.0, 0.9)
                killer = threading.Timer(max(end - time.monotonic(), 0), t.process.kill)
                killer.start()
                with contextlib.suppress(BrokenPipeError, json.JSONDecodeError):
                    while True:
                        number += 1
                        content = f"line {number} " + "x" * dice.randrange(2000)
                        if t.ask(line={"content": content, **({"app": app} if number % 3 == 0 else {})})["error"] == 0:
                            taken.add(content)
                killer.join()
        with Tool(d, speed=40, rotate_s=6, items=FAST) as t:
            t.ask(rotate=True)
            wait_until(lambda: not (d.files("devUpload") + d.files("appUpload") + d.files("collect")), seconds=120, what="everything to be sent")
        lines = site(s).read(d, "log")
        there = [line["content"] for line in lines]
        assert len(taken) > 500, len(taken)
        assert taken <= set(there), f"{len(taken - set(there))} lost"
        assert len(there) == len(set(there)), f"{len(there) - len(set(there))} twice"
        for stream in ({"app": "none"}, {"app": app}):
            ids = [line["msgid"] for line in site(s).read(d, "log", **stream)]
            assert ids == list(range(1, len(ids) + 1)), "message ids have gaps or repeats"
        repeats = re.search(r"^seth_telemetry_repeats_total (\d+)", s.request("GET", "/metrics", raw=True)[1].decode(), re.M).group(1)
        print(f"     {len(taken)} lines taken in {KILLS} lives, {len(there)} there; {repeats} files were sent twice")
        assert d.files("failedUpload") == []


# ---- a controller that answers as it is told to

class Controller:
    """Takes what is posted and answers with the next of `answers`, the last one for ever: a status, or (status, body). None: it does not answer."""

    def __init__(self, answers):
        self.answers, self.requests = list(answers), []
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "controller")])
        now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
        cert = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(x509.random_serial_number())
                .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=400))
                .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
                .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
                .sign(key, hashes.SHA256()))
        self.root_pem = cert.public_bytes(serialization.Encoding.PEM)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as f:
            f.write(self.root_pem + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
            f.flush()
            context.load_cert_chain(f.name)
        controller = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                controller.requests.append((self.path, eve.payload_of(body)))
                answer = controller.answers.pop(0) if len(controller.answers) > 1 else controller.answers[0]
                if answer is None:
                    return
                status, text = answer if isinstance(answer, tuple) else (answer, "")
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def device(self):
        return Device(f"127.0.0.1:{self.port}", self.root_pem, eve.device_identity(), str(uuid.uuid4()))

    def sent(self):
        return [gzip.decompress(payload).decode() for _, payload in self.requests]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def test_a_file_that_is_refused_again_and_again_is_put_aside():
    with Controller([422] * 11 + [200]) as c, c.device() as d:
        d.put("devUpload", "dev.log.1.gz", ["bad"])
        d.put("devUpload", "dev.log.2.gz", ["good"])
        with Tool(d, speed=60, items=FAST) as t:
            wait_until(lambda: t.counts()["sent"] == 1, what="the good one")
            wait_until(lambda: d.metrics()["DevMetrics"].get("NumGZipFilesSent") == 1, what="metrics")
        assert len(c.requests) == 12 and d.files("failedUpload") == ["dev.log.1.gz"] and d.files("devUpload") == []
        m = d.metrics()
        assert m["Num4xxResponses"] == 11 and m["DevMetrics"]["NumGZipFileRetry"] == 11 and m["DevMetrics"]["NumGZipFileKeptLocal"] == 1
        assert c.requests[0][0] == f"/api/v2/edgedevice/id/{d.uuid}/newlogs"


def test_no_more_than_a_thousand_are_put_aside():
    with Controller([404] * 11 + [200]) as c, c.device() as d:
        for i in range(1000):
            d.put("failedUpload", f"dev.log.{i + 1}.gz", [])
        d.put("devUpload", "dev.log.5000.gz", ["bad"])
        with Tool(d, speed=60, items=FAST) as t:
            wait_until(lambda: not d.files("devUpload"), what="the file to be put aside")
            assert t.counts()["sent"] == 0
        assert len(d.files("failedUpload")) == 1000 and "dev.log.1.gz" not in d.files("failedUpload")


def test_too_many_requests():
    """The interval doubles and nothing fast happens for an hour."""
    with Controller([429, 200]) as c, c.device() as d:
        for i in range(3):
            d.put("devUpload", f"dev.log.{i + 1}.gz", [str(i)])
        with Tool(d, speed=1000, items={}) as t:
            wait_until(lambda: t.counts()["sent"] >= 1, what="the first")
            wait_until(lambda: d.metrics().get("NumTooManyRequest") == 1, what="metrics")
            assert d.metrics()["CurrUploadIntvSec"] == 180 and d.metrics()["LastTooManyReqTime"] > "2020"
            t.ask(items=FAST)
            wait_until(lambda: t.counts()["sent"] == 3, what="all of them")
            assert d.metrics()["CurrUploadIntvSec"] == 180
        assert [text.split('"')[3] for text in c.sent()] == ["0", "0", "1", "2"]


def test_a_server_that_is_not_there_or_busy():
    with Controller([200, 200, 200, 503, None, 503, 200]) as c, c.device() as d:
        for i in range(9):
            d.put("devUpload", f"dev.log.{i + 1}.gz", [str(i)])
        with Tool(d, speed=30, items=FAST) as t:
            wait_until(lambda: len(c.requests) >= 4 and d.metrics()["FailedToSend"] is False, what="three to be sent")
            wait_until(lambda: d.metrics()["FailedToSend"] is True, what="three to fail")
            since = d.metrics()["FailSentStartTime"]
            wait_until(lambda: t.counts()["sent"] == 9, what="the rest")
            wait_until(lambda: d.metrics()["FailedToSend"] is False, what="all to be well")
            assert since > "2020" and t.counts()["failures"] == 3 and d.metrics()["Num4xxResponses"] == 0
        assert d.files("devUpload") == d.files("failedUpload") == []


def test_nobody_listens():
    with Controller([200]) as c, c.device() as d:
        d.write("config/server", "127.0.0.1:9\n")
        d.put("devUpload", "dev.log.1.gz", ["x"])
        with Tool(d, speed=2000, items={}) as t:
            wait_until(lambda: t.counts()["failures"] > 15, what="many attempts")
            wait_until(lambda: d.metrics().get("CurrUploadIntvSec", 0) >= 180, what="the interval to grow")
            assert d.metrics()["FailedToSend"] is True and d.metrics()["CurrUploadIntvSec"] < 900
        assert d.files("devUpload") == ["dev.log.1.gz"]


def test_what_the_controller_says_of_itself():
    with Controller([(200, '{"cpuPercentage":12.5,"logProcessDelayMsec":40}\n'), (201, "nonsense")]) as c, c.device() as d:
        for i in range(2):
            d.put("devUpload", f"dev.log.{i + 1}.gz", [str(i)])
        with Tool(d, speed=30, items=FAST) as t:
            wait_until(lambda: t.counts()["sent"] == 2, what="both")
            wait_until(lambda: d.metrics()["DevMetrics"].get("NumGZipFilesSent") == 2, what="metrics")
        assert d.metrics()["ServerStats"] == {"CurrCPULoadPCT": 12.5, "AvgCPULoadPCT": 12.5, "CurrProcessMsec": 40, "AvgProcessMsec": 40}


def test_waits_for_who_it_is_and_an_address():
    with Controller([200]) as c, c.device() as d:
        (d.root / "persist/status/zedclient/OnboardingStatus/global.json").unlink()
        d.put("devUpload", "dev.log.1.gz", ["x"])
        with Tool(d, speed=1000, rotate_s=200, items=FAST) as t:
            t.line("a clock")
            wait_until(lambda: len(d.files("devUpload")) == 2, what="minutes to pass")
            assert t.counts() == {"sent": 0, "bytes": 0, "failures": 0, "waiting": 0} and c.requests == []
            d.write("persist/status/zedclient/OnboardingStatus/global.json", json.dumps({"DeviceUUID": d.uuid}))
            wait_until(lambda: t.counts()["sent"] == 2, what="the files")
