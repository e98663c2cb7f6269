# SPDX-License-Identifier: Apache-2.0
"""Tokens that a webhook is asked about, over real HTTPS with client certificates: answers, lies, failures."""
import base64
import concurrent.futures
import http.server
import json
import pathlib
import re
import signal
import tempfile
import threading

from issuer import Background, HttpsServer, bearer, make_certificate, whoami
from seth import TOP, Server, wait_until

VERSION = "authentication.k8s.io/v1"
TOO_LARGE = 2 * 1024 * 1024


class Handler(http.server.BaseHTTPRequestHandler):
    """Knows tokens of the form <how>:<user>; every question is kept."""
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.questions.append((self.path, dict(self.headers), question, self.connection.getpeercert()))
        how, _, user = question["spec"]["token"].partition(":")
        status, body = answer(how, user)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def answer(how, user):
    """Status and body for a token that asks for them."""
    good = {"authenticated": True, "user": {"username": user, "uid": "u-1", "groups": ["dev"], "extra": {"example.com/team": ["a", "b"]}}}
    statuses = {
        "good": good,
        "bad": {"authenticated": False, "error": "revoked yesterday"},
        "other": {**good, "audiences": ["vault"]},
        "nobody": {"authenticated": True, "user": {}},
        "text": {**good, "authenticated": "true"},
        "groups": {**good, "user": {"username": user, "groups": "system:masters"}},
        "large": {**good, "error": "x" * TOO_LARGE},
    }
    if how == "fails":
        return 500, b"out of order"
    if how == "garbage":
        return 200, b"<html>"
    if how == "moved":
        return 302, b""
    version = "v0" if how == "version" else VERSION
    return 200, json.dumps({"kind": "TokenReview", "apiVersion": version, "status": statuses.get(how, good if how == "version" else {})}).encode()


class Webhook:
    """The webhook, and a kubeconfig that leads to it."""

    def __init__(self, directory):
        directory = pathlib.Path(directory)
        self.cert, self.key = make_certificate(directory, "webhook")
        self.client_cert, self.client_key = make_certificate(directory, "client")
        self.config, self.port = directory / "webhook.kubeconfig", 0
        self.questions = []
        self.start()
        self.config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"{self.background.url}/review", "certificate-authority": "webhook.crt"}}],
            "users": [{"name": "c", "user": {
                "client-certificate": str(self.client_cert),
                "client-key-data": base64.b64encode(self.client_key.read_bytes()).decode()}}]}))
        self.options = ("--authentication-token-webhook-config-file", str(self.config))

    def start(self):
        server = HttpsServer(Handler, self.cert, self.key, self.port, client_ca=self.client_cert)
        server.questions, server.lock = self.questions, threading.Lock()
        self.port, self.background = server.server_address[1], Background(server)

    def stop(self):
        self.background.__exit__()

    def n_asked(self, token):
        return sum(q["spec"]["token"] == token for _, _, q, _ in list(self.questions))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def scratch():
    return tempfile.TemporaryDirectory(prefix="seth-webhook-")


def test_the_webhook_says_who_it_is():
    with scratch() as d, Webhook(d) as hook, Server(*hook.options) as s:
        user = whoami(s, "good:jane")
        assert user == {"username": "jane", "uid": "u-1", "groups": ["dev", "system:authenticated"],
                        "extra": {"example.com/team": ["a", "b"]}}, user
        path, headers, question, peer = hook.questions[0]
        assert path == "/review" and headers["Content-Type"] == "application/json"
        assert question["kind"] == "TokenReview" and question["apiVersion"] == VERSION, question
        assert question["spec"] == {"token": "good:jane", "audiences": ["https://kubernetes.default.svc"]}, question
        assert ((("commonName", "client"),),) == peer["subject"], peer
        assert bearer(s, "good:jane")[0] == 403
        status = s.ok("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "good:tom"}})["status"]
        assert status["authenticated"] and status["user"]["username"] == "tom", status
        status = s.ok("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "bad:tom"}})["status"]
        assert not status.get("authenticated") and "revoked yesterday" in status["error"], status
        # Tokens of our own are nobody else's business.
        asked = len(hook.questions)
        ns = s.namespace()
        s.ok("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "robot"}})
        token = s.ok("POST", f"/api/v1/namespaces/{ns}/serviceaccounts/robot/token", {"spec": {}})["status"]["token"]
        assert bearer(s, token)[0] == 403
        assert len(hook.questions) == asked


def test_the_example_of_the_document():
    text = (TOP / "docs/SECURITY.md").read_text().split("**Webhook.**")[1]
    document = re.search(r"```yaml\n(.*?)```", text, re.S).group(1)
    with scratch() as d, Webhook(d) as hook:
        for name, path in (("https://tokens.example.com", hook.background.url), ("/etc/seth/webhook-ca.crt", hook.cert),
                           ("/etc/seth/webhook-client.crt", hook.client_cert), ("/etc/seth/webhook-client.key", hook.client_key)):
            assert name in document, name
            document = document.replace(name, str(path))
        hook.config.write_text(document)
        with Server(*hook.options) as s:
            assert whoami(s, "good:jane")["username"] == "jane"


def test_an_answer_is_asked_for_once():
    with scratch() as d, Webhook(d) as hook, Server(*hook.options, "--threads", "4") as s:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            statuses = list(pool.map(lambda _: bearer(s, "good:jane")[0], range(64)))
        assert set(statuses) == {403}, statuses
        assert hook.n_asked("good:jane") == 1
        assert bearer(s, "bad:jane")[0] == 401 and bearer(s, "bad:jane")[0] == 401
        assert hook.n_asked("bad:jane") == 1
        s.process.send_signal(signal.SIGHUP)
        wait_until(lambda: bearer(s, "good:jane")[0] == 403 and hook.n_asked("good:jane") == 2, what="being asked again")


def test_what_the_webhook_gets_wrong_lets_nobody_in():
    with scratch() as d, Webhook(d) as hook, Server(*hook.options) as s:
        hows = ("bad", "other", "nobody", "text", "groups", "large", "fails", "garbage", "moved", "version", "unknown", "")
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            statuses = dict(zip(hows, pool.map(lambda how: bearer(s, f"{how}:jane")[0], hows)))
        assert set(statuses.values()) == {401}, statuses
        assert hook.n_asked("fails:jane") == 3  # it might have been for a moment
        assert hook.n_asked("garbage:jane") == 1
        assert whoami(s, "good:jane")["username"] == "jane"
        assert "cannot ask the token webhook" in s.read_log()
        assert "good:jane" not in s.read_log() and "bad:jane" not in s.read_log()


def test_a_webhook_that_is_away():
    with scratch() as d, Webhook(d) as hook, Server(*hook.options) as s:
        assert bearer(s, "good:jane")[0] == 403
        hook.stop()
        assert bearer(s, "good:jane")[0] == 403  # still remembered
        assert bearer(s, "good:tom")[0] == 401
        assert s.request("GET", "/api/v1/namespaces")[0] == 200
        hook.start()
        wait_until(lambda: bearer(s, "good:tom")[0] == 403, what="the webhook to be asked again")


def test_a_webhook_of_another_authority_is_not_asked():
    with scratch() as d, Webhook(d) as hook:
        stranger, _ = make_certificate(d, "stranger")
        hook.config.write_text(hook.config.read_text().replace("webhook.crt", str(stranger)))
        with Server(*hook.options) as s:
            assert bearer(s, "good:jane")[0] == 401
            assert not hook.questions
            assert "x509: certificate signed by unknown authority" in s.read_log()
