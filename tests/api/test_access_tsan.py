# SPDX-License-Identifier: Apache-2.0
"""Who asks, what they may, what is recorded: all of it changing at once under ThreadSanitizer, up to the end under load."""
import http.client
import json
import os
import pathlib
import random
import signal
import tempfile
import threading
import time

from certificates import issue, read_authority
from cryptography import x509
from cryptography.x509.oid import NameOID
from h2 import DATA, END_STREAM, RST_STREAM, Http2
from issuer import Issuer, Key
from seth import Server, unique, wait_until
from test_csr import Request
from test_load_tsan import CRDS, MERGE, crd, tsan_binary
from test_token_webhook import Webhook
from webhook import Configuration, Webhooks, patch, rule

SEED = 20260102
SECONDS, MIN_ROUNDS = 12, 3
LIMIT_SECONDS = 120  # only for a test that has failed
NAMESPACE = "access"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
CONFIGMAPS = f"{CORE}/configmaps"
RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
TEAM = "team"
POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "RequestResponse"}]}
ALLOWED, FORBIDDEN, UNKNOWN = (200, 201, 404, 409), (403,), (401,)


class Scene:
    """The server and what the workers share."""

    def __init__(self, s, tokens, policy, issuer, keys):
        self.s, self.tokens, self.policy, self.issuer, self.keys = s, tokens, policy, issuer, keys
        self.hooks = Webhooks()
        self.is_over = threading.Event()
        self.is_stopping = threading.Event()


def write_tokens(path, has_both):
    lines = [f'fixed,static-user,1,"{TEAM}"'] + ([f'fleeting,fleeting-user,2,"{TEAM}"'] if has_both else [])
    replace(path, "\n".join(lines) + "\n")


def replace(path, text):
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    os.replace(fresh, path)


class Worker(threading.Thread):
    """Rounds until all have made enough, then on until the server goes; keeps the first failure."""

    def __init__(self, scene, number=0):
        super().__init__(daemon=True)
        self.scene, self.s, self.number = scene, scene.s, number
        self.rng = random.Random(f"{SEED} {type(self).__name__} {number}")
        self.error, self.n_done, self.connection = None, 0, None

    def run(self):
        try:
            while not self.scene.is_over.is_set():
                self.round()
                self.n_done += 1
        except (http.client.HTTPException, OSError) as e:
            if not self.scene.is_stopping.is_set():
                self.error = e
        except BaseException as e:
            self.error = e

    def context(self):
        return self.s.context()

    def headers(self):
        return {}

    def connect(self):
        """From an address of its own: failed logins hold back others of the same."""
        source = f"127.{self.rng.randint(1, 250)}.{self.rng.randint(0, 250)}.{self.rng.randint(1, 250)}"
        return http.client.HTTPSConnection("127.0.0.1", self.s.port, context=self.context(), timeout=60, source_address=(source, 0))

    def ask(self, method, path, body=None, content_type="application/json", **headers):
        if self.connection is None or self.rng.random() < 0.1:
            if self.connection:
                self.connection.close()
            self.connection = self.connect()
        data = json.dumps(body) if body is not None else None
        self.connection.request(method, path, data, {"Content-Type": content_type, **self.headers(), **headers})
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def expect(self, wanted, method, path, body=None, content_type="application/json", **headers):
        status, data = self.ask(method, path, body, content_type, **headers)
        assert status in wanted, (method, path, status, data[:500])
        return json.loads(data) if data[:1] == b"{" else data


# ---- those who ask --------------------------------------------------------------------------


class User(Worker):
    """Reads, writes and watches; what it may changes meanwhile."""
    EXPECTED = ALLOWED + FORBIDDEN

    def round(self):
        name = f"{type(self).__name__.lower()}-{self.number}-{self.rng.randint(0, 5)}"
        path = f"{CONFIGMAPS}/{name}"
        steps = (("GET", CONFIGMAPS), ("GET", path), ("POST", CONFIGMAPS, {"metadata": {"name": name}, "data": {"text": "x" * self.rng.randint(0, 2000)}}),
                 ("PATCH", path, {"data": {"a": str(self.n_done)}}, MERGE), ("DELETE", path), ("GET", "/version"),
                 ("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": NAMESPACE}}))
        for _ in range(4):
            self.expect(self.EXPECTED, *self.rng.choice(steps))
        if self.rng.random() < 0.3:
            self.watch()
        else:
            self.over_http2(steps[:5])

    def watch(self):
        status, data = self.ask("GET", f"{CONFIGMAPS}?watch=1&timeoutSeconds=1")
        assert status in self.EXPECTED, (status, data[:500])
        for line in data.splitlines() if status == 200 else ():
            assert json.loads(line)["type"] in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"), line

    def over_http2(self, steps):
        """Several streams at once, one of them reset; failures say their code in the body."""
        connection = Http2(self.s, timeout=60, context=self.context())
        fields = tuple((k.lower(), v) for k, v in self.headers().items())
        bodies = {}
        for method, path, *rest in self.rng.sample(steps, 3):
            body = json.dumps(rest[0]).encode() if rest else None
            if method != "PATCH":
                bodies[connection.request(method, path, body, fields)] = b""
        cancelled = connection.request("GET", f"{CONFIGMAPS}?watch=1", None, fields)
        connection.send(RST_STREAM, 0, cancelled, b"\0\0\0\x08")
        unfinished = set(bodies)
        while unfinished:
            frame = connection.read()
            if not frame:
                raise ConnectionError("the connection ended")
            if frame.stream in bodies and frame.type == DATA:
                bodies[frame.stream] += frame.payload
            if frame.flags & END_STREAM or frame.type == RST_STREAM:
                unfinished.discard(frame.stream)
        for body in bodies.values():
            answer = json.loads(body or b"{}")
            assert answer.get("kind") != "Status" or answer.get("code", 200) in self.EXPECTED, answer
        connection.close()


class CertificateUser(User):
    def context(self):
        context = self.s.context(with_certificate=False)
        context.load_cert_chain(*self.scene.certificate)
        return context


class Impersonator(User):
    def headers(self):
        return {"Impersonate-User": f"jane-{self.number}", "Impersonate-Group": TEAM, "Impersonate-Extra-Reason": "why not"}


class Bearer(User):
    def context(self):
        return self.s.context(with_certificate=False)

    def headers(self):
        return {"Authorization": f"Bearer {self.token()}"}


class Account(Bearer):
    def token(self):
        return self.scene.account_token


class Fixed(Bearer):
    def token(self):
        return "fixed"


class Fleeting(Bearer):
    """In the token file and not, as it is read again."""
    EXPECTED = ALLOWED + FORBIDDEN + UNKNOWN

    def token(self):
        return "fleeting"


class Reviewed(Bearer):
    """Another server says who they are."""

    def token(self):
        return f"good:jane-{self.rng.randint(0, 9)}"


class Issued(Bearer):
    """Tokens of an OpenID Connect issuer; of its two keys one comes and goes."""
    EXPECTED = ALLOWED + FORBIDDEN + UNKNOWN

    def token(self):
        return self.rng.choice(self.scene.issued)


class SurelyIssued(Issued):
    EXPECTED = ALLOWED + FORBIDDEN

    def token(self):
        return self.scene.issued[0]


class Guesser(Bearer):
    """Tokens of nobody, from few addresses: answers are held back, and now and then it does not wait for them."""
    EXPECTED = UNKNOWN

    def token(self):
        return self.rng.choice(("wrong", "bad:jane", "fails:tom", "a.b.c", unique()))

    def connect(self):
        return http.client.HTTPSConnection("127.0.0.1", self.s.port, context=self.context(), timeout=60, source_address=(f"127.9.9.{self.number + 1}", 0))

    def round(self):
        for _ in range(3):
            c = self.connect()
            c.request(self.rng.choice(("GET", "DELETE")), CONFIGMAPS, None, self.headers())
            if self.rng.random() < 0.4:
                assert c.getresponse().status == 401
            c.close()
        self.rng.random() < 0.3 or time.sleep(0.05)


# ---- those who change things ----------------------------------------------------------------


class Grants(Worker):
    """A right that comes and goes, and counts at once."""

    def may(self, user):
        question = {"spec": {"user": user, "resourceAttributes": {"namespace": NAMESPACE, "verb": "get", "resource": "secrets"}}}
        return self.expect((201,), "POST", REVIEWS, question)["status"]["allowed"]

    def round(self):
        user, role, bound = unique("user"), unique("role"), unique("bound")
        rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
        self.expect((201,), "POST", f"{RBAC}/roles", {"metadata": {"name": role}, "rules": rules})
        subjects = [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]
        reference = {"kind": "Role", "name": role, "apiGroup": "rbac.authorization.k8s.io"}
        self.expect((201,), "POST", f"{RBAC}/rolebindings", {"metadata": {"name": bound}, "subjects": subjects, "roleRef": reference})
        assert self.may(user)
        self.expect((200,), "PATCH", f"{RBAC}/roles/{role}", {"rules": []}, MERGE)
        assert not self.may(user)
        self.expect((200,), "PATCH", f"{RBAC}/roles/{role}", {"rules": rules}, MERGE)
        assert self.may(user)
        self.expect((200,), "DELETE", f"{RBAC}/rolebindings/{bound}")
        assert not self.may(user)
        self.expect((200,), "DELETE", f"{RBAC}/roles/{role}")


class Flips(Worker):
    """What the team may do with ConfigMaps."""

    def round(self):
        self.expect((200,), "DELETE", f"{RBAC}/rolebindings/team")
        self.expect((201,), "POST", f"{RBAC}/rolebindings", self.scene.team)
        verbs = self.rng.choice((["*"], ["get", "list"], ["create", "watch"]))
        self.expect((200,), "PATCH", f"{RBAC}/roles/team", {"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]}, MERGE)
        time.sleep(0.05)


class Accounts(Worker):
    """ServiceAccounts and Secrets with tokens; a token ends with what it is bound to."""

    def who(self, token):
        context = self.s.context(with_certificate=False)
        source = f"127.{self.rng.randint(1, 250)}.{self.rng.randint(0, 250)}.{self.rng.randint(1, 250)}"
        c = http.client.HTTPSConnection("127.0.0.1", self.s.port, context=context, timeout=60, source_address=(source, 0))
        c.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}", {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        status = c.getresponse().status
        c.close()
        return status

    def round(self):
        name = unique("robot")
        path = f"{CORE}/serviceaccounts/{name}"
        self.expect((201,), "POST", f"{CORE}/serviceaccounts", {"metadata": {"name": name}})
        bound = self.expect((201,), "POST", f"{path}/token", {"spec": {"audiences": []}})["status"]["token"]
        secret = {"metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": name}}, "type": "kubernetes.io/service-account-token"}
        self.expect((201,), "POST", f"{CORE}/secrets", secret)
        wait_until(lambda: self.expect((200,), "GET", f"{CORE}/secrets/{name}").get("data", {}).get("token"), what="the token")
        assert self.who(bound) == 201
        self.expect((200,), "DELETE", path)
        assert self.who(bound) == 401, "the account is gone, its token is not"
        # With the account its Secret goes.
        wait_until(lambda: self.ask("GET", f"{CORE}/secrets/{name}")[0] == 404, what="the Secret to go")


class Hooks(Worker):
    """A webhook that marks what it sees, there for a while."""

    def round(self):
        mark = f"mark-{self.number}"

        def answer(request):
            has_some = request["object"]["metadata"].get("annotations")
            return patch({"op": "add", "path": f"/metadata/annotations/{mark}", "value": "yes"} if has_some
                         else {"op": "add", "path": "/metadata/annotations", "value": {mark: "yes"}})
        path = self.scene.hooks.on(answer)
        name = unique("hooked")
        entry = {"path": path, "ns": NAMESPACE, "rules": [rule(("CREATE", "UPDATE"))], "timeoutSeconds": 30}
        with Configuration(self.s, self.scene.hooks, "mutating", [entry]):
            made = self.expect((201,), "POST", CONFIGMAPS, {"metadata": {"name": name}})
            assert made["metadata"]["annotations"][mark] == "yes", made
            self.expect((200,), "PATCH", f"{CONFIGMAPS}/{name}", {"data": {"a": "b"}}, MERGE)
        self.expect((200,), "DELETE", f"{CONFIGMAPS}/{name}")


class Kinds(Worker):
    def is_established(self, name):
        conditions = self.expect((200,), "GET", f"{CRDS}/{name}").get("status", {}).get("conditions") or []
        return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

    def round(self):
        plural = f"thing{self.number}s"
        name, path = f"{plural}.load.example.org", f"/apis/load.example.org/v1/namespaces/{NAMESPACE}/{plural}"
        self.expect((201,), "POST", CRDS, crd(plural))
        wait_until(lambda: self.is_established(name), what="the kind")
        self.expect((201,), "POST", path, {"apiVersion": "load.example.org/v1", "kind": plural[:-1].title(), "metadata": {"name": "a"}})
        self.expect((200,), "DELETE", f"{CRDS}/{name}")
        wait_until(lambda: self.ask("GET", f"{CRDS}/{name}")[0] == 404, 60, "the kind to go")


class Requests(Worker):
    """Certificates asked for, approved and signed."""

    def round(self):
        request = Request(self.s, "/CN=somebody")
        request.make()
        request.approve()
        request.wait_for_certificate()
        self.expect((200,), "DELETE", request.path)


class Keys(Worker):
    def round(self):
        keys = self.scene.keys
        self.scene.issuer.publish(*(keys if self.n_done % 2 else keys[:1]))
        time.sleep(0.3)


class Scraper(Worker):
    def round(self):
        text = self.expect((200,), "GET", "/metrics")
        assert b"apiserver_request_total" in text, text[:500]
        self.expect((200,), "GET", "/readyz?verbose")


class Operator(Worker):
    """Files that change, good and bad, and signals."""

    def round(self):
        write_tokens(self.scene.tokens, self.n_done % 2 == 0)
        policy = {**POLICY, "omitStages": ["RequestReceived"]} if self.n_done % 2 else POLICY
        replace(self.scene.policy, json.dumps(policy) if self.n_done % 5 else "rules: [")
        if self.n_done % 3:
            self.s.process.send_signal(signal.SIGHUP)
        time.sleep(0.2)


def make_certificate(s):
    subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, TEAM), x509.NameAttribute(NameOID.COMMON_NAME, "certificate-user")])
    authority, key = read_authority(s)
    return issue(s.dir, "client", authority, key, subject=subject)[2]


def prepare(scene):
    s = scene.s
    s.ok("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    s.ok("POST", f"{CORE}/resourcequotas", {"metadata": {"name": "quota"}, "spec": {"hard": {"count/configmaps": "1000", "count/secrets": "1000"}}})
    s.ok("POST", f"{RBAC}/roles", {"metadata": {"name": "team"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]})
    subjects = [{"kind": "Group", "name": name, "apiGroup": "rbac.authorization.k8s.io"} for name in (TEAM, "dev", f"system:serviceaccounts:{NAMESPACE}")]
    scene.team = {"metadata": {"name": "team"}, "subjects": subjects,
                  "roleRef": {"kind": "Role", "name": "team", "apiGroup": "rbac.authorization.k8s.io"}}
    s.ok("POST", f"{RBAC}/rolebindings", scene.team)
    s.ok("POST", f"{CORE}/serviceaccounts", {"metadata": {"name": "robot"}})
    scene.account_token = s.ok("POST", f"{CORE}/serviceaccounts/robot/token", {"spec": {}})["status"]["token"]
    scene.certificate = make_certificate(s)
    scene.issued = [key.token(scene.issuer.claims(groups=[TEAM])) for key in scene.keys]


def run_all(scene, workers):
    """Until the time is over and each has made its rounds; the end comes while they go on."""
    for w in workers:
        w.start()
    begin = time.monotonic()

    def is_enough():
        return any(w.error for w in workers) or (time.monotonic() - begin > SECONDS and all(w.n_done >= MIN_ROUNDS for w in workers))
    try:
        wait_until(is_enough, LIMIT_SECONDS, "every worker's rounds")
    except AssertionError as e:
        raise AssertionError(f"{e}: {[(type(w).__name__, w.n_done) for w in workers]}") from e
    raise_first(workers)
    scene.is_stopping.set()
    code = scene.s.stop(30)
    scene.is_over.set()
    for w in workers:
        w.join(60)
        assert not w.is_alive(), f"{type(w).__name__} hangs after {w.n_done}"
    raise_first(workers)
    return code


def raise_first(workers):
    for w in workers:
        if w.error:
            raise AssertionError(f"{type(w).__name__} {w.number} after {w.n_done}: {w.error!r}") from w.error


def check_audit(log):
    """Each line whole, in the file of now and those before it."""
    users = set()
    files = list(log.parent.glob("audit*"))
    for file in files:
        for line in file.read_text().splitlines():
            event = json.loads(line)
            users.add(event.get("user", {}).get("username"))
    assert len(files) > 1, "nothing was rotated"
    assert {"certificate-user", "static-user", f"system:serviceaccount:{NAMESPACE}:robot", "seth-admin", None} <= users, users


def test_no_races_of_those_who_ask_and_what_they_may():
    os.environ["SETH"] = tsan_binary()
    environment = {"TSAN_OPTIONS": "halt_on_error=0 exitcode=66 second_deadlock_stack=1 history_size=4"}
    with tempfile.TemporaryDirectory(prefix="seth-access-") as d, Webhook(d) as token_webhook, Issuer(f"{d}/issuer") as issuer:
        d = pathlib.Path(d)
        keys = [Key(d, "a", "ES256"), Key(d, "b", "ES256")]
        issuer.publish(*keys)
        tokens, policy, log = d / "tokens.csv", d / "policy.yaml", d / "logs/audit.log"
        log.parent.mkdir()
        write_tokens(tokens, True)
        policy.write_text(json.dumps(POLICY))
        options = ("--threads", "4", "--token-auth-file", str(tokens), "--audit-log-path", str(log), "--audit-policy-file", str(policy),
                   "--audit-log-maxsize", "1", "--authentication-token-webhook-cache-ttl", "1", *token_webhook.options,
                   "--oidc-issuer-url", issuer.url, "--oidc-client-id", "seth", "--oidc-ca-file", str(issuer.ca),
                   "--oidc-groups-claim", "groups", "--oidc-signing-algs", "ES256")
        with Server(*options, environment=environment) as s:
            scene = Scene(s, tokens, policy, issuer, keys)
            prepare(scene)
            users = [kind(scene, i) for kind in (CertificateUser, Impersonator, Account, Fixed, Fleeting, Reviewed) for i in range(2)]
            users += [Issued(scene), SurelyIssued(scene)]
            changers = [kind(scene, i) for kind in (Guesser, Hooks) for i in range(2)]
            changers += [kind(scene) for kind in (Grants, Flips, Accounts, Kinds, Requests, Keys, Scraper, Operator)]
            code = run_all(scene, users + changers)
            text = s.read_log()
            assert "ThreadSanitizer" not in text, text[text.index("ThreadSanitizer") - 200:][:8000]
            assert code == 0, f"exit code {code}\n{text[-3000:]}"
            check_audit(log)
