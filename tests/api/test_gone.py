# SPDX-License-Identifier: Apache-2.0
"""Those who leave before they are answered: in the middle of a write, of one that waits at a webhook, of a login that waits at
another server, and while the server ends. What they asked for is done or not, and recorded as it was."""
import contextlib
import json
import pathlib
import tempfile
import threading
import time

from h2 import RST_STREAM, Http2
from issuer import Background, HttpsServer
from seth import Server, unique, wait_until
from test_token_webhook import Handler, Webhook
from webhook import Configuration, Webhooks, rule

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "RequestResponse", "omitStages": ["RequestReceived"]}]}
N_GONE = 60
CANCEL = b"\0\0\0\x08"


class SlowHandler(Handler):
    def do_POST(self):
        self.server.arrived.release()
        self.server.may_answer.wait(60)
        super().do_POST()


class SlowWebhook(Webhook):
    """Answers about tokens when it is told to."""

    def start(self):
        self.arrived, self.may_answer = threading.Semaphore(0), threading.Event()
        server = HttpsServer(SlowHandler, self.cert, self.key, self.port, client_ca=self.client_cert)
        server.questions, server.lock, server.arrived, server.may_answer = self.questions, threading.Lock(), self.arrived, self.may_answer
        self.port, self.background = server.server_address[1], Background(server)


@contextlib.contextmanager
def world(*options):
    """A server with an audit log and a slow token webhook, and admission webhooks for it."""
    with tempfile.TemporaryDirectory(prefix="seth-gone-") as d, SlowWebhook(d) as tokens:
        policy, log = pathlib.Path(d) / "policy.yaml", pathlib.Path(d) / "audit.log"
        policy.write_text(json.dumps(POLICY))
        with Server("--audit-log-path", str(log), "--audit-policy-file", str(policy), "--audit-log-maxsize", "0", *tokens.options, *options) as s:
            s.audit_log = log
            yield s, tokens, Webhooks()
        tokens.may_answer.set()


def events(s, **wanted):
    found = []
    for line in s.audit_log.read_text().splitlines():
        e = json.loads(line)
        flat = {"verb": e["verb"], "name": e.get("objectRef", {}).get("name") or (e.get("requestObject") or {}).get("metadata", {}).get("name"),
                "code": e.get("responseStatus", {}).get("code"), "uri": e["requestURI"]}
        if all(flat[k] == v for k, v in wanted.items()):
            found.append(flat)
    return found


def begin(s, method, path, body=None, token=None):
    """A request whose answer nobody has read."""
    connection = s.connect(with_certificate=token is None)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json", **headers})
    return connection


def configmap(name):
    return {"metadata": {"name": name}, "data": {"text": "x" * 5000}}


def names(s):
    return {o["metadata"]["name"] for o in s.ok("GET", CONFIGMAPS)["items"]}


def test_in_the_middle_of_a_write():
    with world("--threads", "2") as (s, _, _):
        prefix = unique("gone")
        for i in range(N_GONE):
            begin(s, "POST", CONFIGMAPS, configmap(f"{prefix}-one-{i}")).close()
            h2 = Http2(s)
            stream = h2.request("POST", CONFIGMAPS, json.dumps(configmap(f"{prefix}-two-{i}")).encode())
            h2.send(RST_STREAM, 0, stream, CANCEL)
            h2.request("POST", CONFIGMAPS, b'{"metadata":', ends=False)
            h2.close()
        s.ok("POST", CONFIGMAPS, configmap(f"{prefix}-last"))
        made = {n for n in names(s) if n.startswith(prefix)}
        assert len(made) > 1, "nothing of those who left was written"
        # Whatever was written is recorded as written, whoever waited for the answer.
        wait_until(lambda: made <= {e["name"] for e in events(s, verb="create", code=201)},
                   what=f"the record of each of {len(made)}")


def slow(hooks, begun):
    """A webhook that answers once it is let go."""
    def answer(request):
        begun.release()
        hooks.released.wait(60)
        return {}
    return hooks.on(answer)


def test_while_a_webhook_thinks():
    with world("--threads", "2") as (s, _, hooks):
        begun = threading.Semaphore(0)
        ns = s.namespace()
        path = f"/api/v1/namespaces/{ns}/configmaps"
        with Configuration(s, hooks, "mutating", [{"path": slow(hooks, begun), "ns": ns}]):
            leaving = [begin(s, "POST", path, configmap(f"left-{i}")) for i in range(10)]
            staying = [begin(s, "POST", path, configmap(f"stayed-{i}")) for i in range(3)]
            h2 = Http2(s)
            for i in range(5):
                h2.send(RST_STREAM, 0, h2.request("POST", path, json.dumps(configmap(f"reset-{i}")).encode()), CANCEL)
            for _ in range(13):
                assert begun.acquire(timeout=30)
            for c in leaving:
                c.close()
            h2.close()
            s.ok("GET", "/readyz")  # others go on
            hooks.released.set()
            assert [c.getresponse().status for c in staying] == [201] * 3
        made = lambda: {o["metadata"]["name"] for o in s.ok("GET", path)["items"]}
        wait_until(lambda: len([n for n in made() if n.startswith("left")]) == 10, what="what those who left had asked for")
        wait_until(lambda: made() - {"kube-root-ca.crt"} <= {e["name"] for e in events(s, verb="create", code=201)}, what="their records")


def test_while_a_login_is_decided():
    with world("--threads", "2") as (s, tokens, _):
        for method in ("GET", "DELETE"):
            leaving = [begin(s, method, CONFIGMAPS, token=f"good:left-{method}-{i}") for i in range(10)]
            staying = begin(s, method, CONFIGMAPS, token=f"good:stayed-{method}")
            for _ in range(11):
                assert tokens.arrived.acquire(timeout=30)
            for c in leaving:
                c.close()
            s.ok("GET", "/readyz")
            tokens.may_answer.set()
            assert staying.getresponse().status == 403
            tokens.may_answer.clear()
        # And those who are refused: answers held back, for more at once than the server keeps memory for.
        tokens.may_answer.set()
        wrong = [begin(s, "GET", CONFIGMAPS, token=f"bad:{i}") for i in range(30)]
        for c in wrong[::2]:
            c.close()
        assert {c.getresponse().status for c in wrong[1:8:2]} == {401}


def test_hundreds_of_refusals_at_once():
    """More exchanges at once than the server keeps for the next, all answered late."""
    with Server("--threads", "1") as s:
        waiting = [begin(s, "GET", CONFIGMAPS, token=f"wrong-{i}") for i in range(300)]
        assert {c.getresponse().status for c in waiting} == {401}


def test_while_the_server_ends():
    with world("--threads", "2") as (s, tokens, hooks):
        begun = threading.Semaphore(0)
        ns = s.namespace()
        path = f"/api/v1/namespaces/{ns}/configmaps"
        hook = {"ns": ns, "timeoutSeconds": 30, "failurePolicy": "Ignore"}
        at_secrets = threading.Semaphore(0)
        configuration = Configuration(s, hooks, "mutating", [
            {**hook, "path": slow(hooks, begun)}, {**hook, "path": slow(hooks, at_secrets), "rules": [rule(("UPDATE",), ("secrets",))]}])
        s.ok("POST", configuration.path, configuration.body)
        # A controller waits, too.
        s.ok("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "robot"}})
        s.ok("POST", f"/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "robot", "annotations": {"kubernetes.io/service-account.name": "robot"}},
                                                          "type": "kubernetes.io/service-account-token"})
        assert at_secrets.acquire(timeout=30)
        writing = [begin(s, "POST", path, configmap(f"w-{i}")) for i in range(6)]
        logins = [begin(s, "POST", path, {}, token=f"good:{i}") for i in range(6)]
        for _ in range(6):
            assert begun.acquire(timeout=30) and tokens.arrived.acquire(timeout=30)
        plain = [begin(s, "POST", CONFIGMAPS, configmap(f"p-{i}")) for i in range(20)]
        watch = begin(s, "GET", f"{CONFIGMAPS}?watch=1")
        for c in writing[:3] + logins[:3] + plain[:10]:
            c.close()
        started = time.monotonic()
        assert s.stop(40) == 0, s.read_log()[-3000:]
        assert time.monotonic() - started < 20, "who is waited for kept the server from ending"
        watch.close()
        hooks.released.set()
        tokens.may_answer.set()
        # A webhook that was not asked to the end has not agreed, whatever its failurePolicy.
        s.start()
        there = {o["metadata"]["name"] for o in s.ok("GET", path)["items"]}
        assert not [n for n in there if n.startswith("w-")], there
