# SPDX-License-Identifier: Apache-2.0
"""The real server process for a test: started in a temporary directory on a free port, spoken to over TLS.

    with Server() as s:
        status, body = s.request("GET", "/api/v1/namespaces")
        s.kubectl("get", "ns")

A test file defines functions named test_*; tests/run finds them, runs files side by side and counts. A function may take one
argument: then it gets a Server shared by the functions of its file, so make names of its own (`unique()`)."""
import base64
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import uuid

TOP = pathlib.Path(__file__).resolve().parents[2]
START_SECONDS = 30
KUBECTLS = {"old": TOP / "build/tools/kubectl-old/usr/bin/kubectl", "new": TOP / "build/tools/kubectl-new/usr/bin/kubectl"}


def binary():
    """The server under test: $SETH, or the build with sanitizers."""
    return os.environ.get("SETH", str(TOP / "build/dev/server/seth"))


def unique(prefix="t"):
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def wait_until(condition, seconds=30, what="condition"):
    """Polls until condition() is true and returns its value; the limit is only for a test that has failed."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"gave up waiting for {what}")
        time.sleep(0.01)


class Server:
    def __init__(self, *options, data_dir=None, environment=None, is_trusted=True):
        """is_trusted=False: the certificate is not of its own authority, so clients do not verify it."""
        self.own_dir = data_dir is None
        self.dir = pathlib.Path(data_dir or tempfile.mkdtemp(prefix="seth-test-"))
        self.options, self.environment, self.port, self.device_port, self.process = options, environment or {}, 0, 0, None
        self.is_trusted = is_trusted
        self.start()

    def start(self, is_ready=True):
        """Starts (again, on the same data and ports if it had some) and waits until /readyz says ok, or only until it serves."""
        self.log = open(self.dir / "server.log", "ab")
        offset = self.log.tell()
        command = [binary(), "server", "--data-dir", str(self.dir), "--secure-port", str(self.port), "--device-port", str(self.device_port), *self.options]
        self.process = subprocess.Popen(command, stderr=self.log, env={**os.environ, **self.environment})
        line = wait_until(lambda: self._serving(offset), START_SECONDS, "the server to serve")
        self.port = int(line.group(1))
        device = re.search(r" device[-_]port=(\d+)", line.group(0))
        self.device_port = int(device.group(1)) if device else 0
        self._read_kubeconfig()
        wait_until(lambda: not is_ready or self.request("GET", "/readyz")[0] == 200, START_SECONDS, "readyz")

    def _serving(self, offset):
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.read_log()[-4000:]}")
        return re.search(r'msg="serving the Kubernetes API".* port=(\d+).*\n', self.read_log(offset))

    def read_log(self, offset=0):
        return (self.dir / "server.log").read_bytes()[offset:].decode(errors="replace")

    def _read_kubeconfig(self):
        self.kubeconfig = str(self.dir / "admin.kubeconfig")
        text = pathlib.Path(self.kubeconfig).read_text()
        for name, key in (("ca.pem", "certificate-authority-data"), ("admin.pem", "client-certificate-data"),
                          ("admin-key.pem", "client-key-data")):
            data = re.search(rf"{key}: (\S+)", text).group(1)
            (self.dir / name).write_bytes(base64.b64decode(data))
        self.local = threading.local()

    def context(self, with_certificate=True):
        ctx = ssl.create_default_context(cafile=str(self.dir / "ca.pem"))
        if not self.is_trusted:
            ctx.check_hostname, ctx.verify_mode = False, ssl.CERT_NONE
        if with_certificate:
            ctx.load_cert_chain(self.dir / "admin.pem", self.dir / "admin-key.pem")
        return ctx

    def connect(self, with_certificate=True, timeout=60):
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context(with_certificate), timeout=timeout)

    def request(self, method, path, body=None, headers=None, raw=False):
        """One request as administrator; returns (status, decoded JSON or text)."""
        status, _, data = self.exchange(method, path, body, headers)
        if raw:
            return status, data
        try:
            return status, json.loads(data) if data else None
        except ValueError:
            return status, data.decode(errors="replace")

    def exchange(self, method, path, body=None, headers=None):
        """As request(), with the headers: (status, headers, bytes). Keeps one connection per thread."""
        headers = dict(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        for attempt in (0, 1):
            connection = getattr(self.local, "connection", None)
            if connection is None:
                connection = self.local.connection = self.connect()
            try:
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                return answer.status, answer.headers, answer.read()
            except (http.client.HTTPException, OSError):
                connection.close()
                self.local.connection = None
                if attempt or method not in ("GET", "HEAD"):
                    raise
        return None

    def ok(self, method, path, body=None, headers=None):
        """As request(), and it must succeed."""
        status, answer = self.request(method, path, body, headers)
        assert 200 <= status < 300, f"{method} {path}: {status} {answer}"
        return answer

    def watch(self, path, timeout=60):
        """Yields the events of a watch URL until it ends."""
        connection = self.connect(timeout=timeout)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.status == 200, (answer.status, answer.read())
            for line in answer:
                yield json.loads(line)
        finally:
            connection.close()

    def kubectl_command(self, version="new"):
        """How to start one of the two kubectls as administrator: the words and the environment."""
        words = [str(KUBECTLS[version]), "--kubeconfig", self.kubeconfig, "--cache-dir", str(self.dir / f"kubectl-{version}")]
        return words, {**os.environ, "HOME": str(self.dir)}

    def kubectl(self, *arguments, version="new", input=None, check=True, environment=None):
        """Runs one of the two kubectls; returns its standard output (and error when check is off)."""
        words, variables = self.kubectl_command(version)
        done = subprocess.run([*words, *arguments], input=input, capture_output=True, text=True, timeout=120, env={**variables, **(environment or {})})
        if not check:
            return done
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def namespace(self):
        name = unique("ns")
        self.ok("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        return name

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds=20):
        """SIGTERM; the exit code must be 0."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(seconds)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        code = None
        try:
            code = self.stop()
        finally:
            if self.process.poll() is None:
                self.kill()
            log = self.read_log()
            self.log.close()
            if self.own_dir:
                shutil.rmtree(self.dir, ignore_errors=True)
        assert "Sanitizer" not in log, log[-6000:]
        assert kind is not None or code in (0, -signal.SIGKILL), f"exit code {code}\n{log[-4000:]}"
