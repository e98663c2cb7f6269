# SPDX-License-Identifier: Apache-2.0
"""The audit log of the running server: who is recorded at which level, what never is, rotation, reload, load."""
import base64
import concurrent.futures
import contextlib
import json
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import uuid

from expect import configmap
from seth import Server, binary, unique, wait_until

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
NS = "/api/v1/namespaces/default"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
MEMBERS = ["kind", "apiVersion", "level", "auditID", "stage", "requestURI", "verb", "user", "impersonatedUser", "sourceIPs", "userAgent", "objectRef",
           "responseStatus", "requestObject", "responseObject", "requestReceivedTimestamp", "stageTimestamp", "annotations"]


def policy(*rules, **more):
    return json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **more})


class Audited:
    """A server with an audit log; the policy is text, None: no policy file."""

    def __init__(self, text, *options):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="seth-audit-"))
        self.policy, self.log = self.dir / "policy.yaml", self.dir / "audit.log"
        more = ("--audit-log-path", str(self.log), *options)
        if text is not None:
            self.policy.write_text(text)
            more += ("--audit-policy-file", str(self.policy))
        self.server = Server(*more)

    def events(self):
        """Of all files, rotated ones too; every line must be an event."""
        lines = []
        for path in sorted(self.dir.glob("audit*.log")):
            text = path.read_text()
            assert text == "" or text.endswith("\n"), f"{path} ends in a line"
            lines += text.splitlines()
        events = [json.loads(line) for line in lines]
        for e in events:
            assert e["kind"] == "Event" and e["apiVersion"] == "audit.k8s.io/v1", e
        return events

    def of(self, audit_id, n=1):
        """The events of one request, once there are n."""
        def found():
            # The line may just be under way.
            with contextlib.suppress(ValueError, AssertionError):
                events = [e for e in self.events() if e["auditID"] == audit_id]
                return events if len(events) >= n else None
        return wait_until(found, what=f"{n} events of {audit_id}")

    def ask(self, method, path, body=None, n=1, **headers):
        """One request and its events."""
        status, answer, data = self.server.exchange(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        return status, data, self.of(answer["Audit-Id"], n)

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *error):
        try:
            self.server.__exit__(*error)
        finally:
            shutil.rmtree(self.dir, ignore_errors=True)


def test_members_of_an_event():
    with Audited(None) as a:
        name = unique()
        status, _, (e,) = a.ask("POST", f"{NS}/configmaps?fieldManager=me", configmap(name), User_Agent="tester/1.0 (x; \"y\")")
        assert status == 201
        assert list(e) == [m for m in MEMBERS if m in e], list(e)
        assert (e["level"], e["stage"], e["verb"]) == ("Metadata", "ResponseComplete", "create"), e
        assert e["requestURI"] == f"{NS}/configmaps?fieldManager=me" and e["userAgent"] == 'tester/1.0 (x; "y")', e
        assert e["user"]["username"] == "seth-admin" and "system:masters" in e["user"]["groups"], e
        assert e["sourceIPs"] == ["127.0.0.1"] and "impersonatedUser" not in e, e
        assert e["objectRef"]["resource"] == "configmaps" and e["objectRef"]["namespace"] == "default" and e["objectRef"]["apiVersion"] == "v1", e
        assert "apiGroup" not in e["objectRef"] and "requestObject" not in e and "responseObject" not in e, e
        assert e["responseStatus"] == {"metadata": {}, "code": 201}, e
        assert TIME.fullmatch(e["requestReceivedTimestamp"]) and TIME.fullmatch(e["stageTimestamp"]), e
        assert e["requestReceivedTimestamp"] <= e["stageTimestamp"], e
        assert e["annotations"]["authorization.k8s.io/decision"] == "allow" and "authorization.k8s.io/reason" in e["annotations"], e
        assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", e["auditID"]), e

        status, _, (e,) = a.ask("GET", f"{NS}/configmaps/{unique('absent')}")
        assert status == 404 and e["responseStatus"]["reason"] == "NotFound" and e["responseStatus"]["code"] == 404, e
        assert e["responseStatus"]["status"] == "Failure" and "not found" in e["responseStatus"]["message"], e
        status, _, (e,) = a.ask("GET", "/version")
        assert status == 200 and e["verb"] == "get" and "objectRef" not in e, e
        status, _, (e,) = a.ask("GET", "/apis/coordination.k8s.io/v1/leases?limit=1")
        assert e["verb"] == "list" and e["objectRef"] == {"resource": "leases", "apiGroup": "coordination.k8s.io", "apiVersion": "v1"}, e
        status, _, (e,) = a.ask("GET", "/no/such%2fpath?x=%zz")
        assert status == 404 and e["requestURI"] == "/no/such%2fpath?x=%zz" and e["responseStatus"]["code"] == 404, e


def test_who_is_forbidden_unknown_or_impersonated():
    with Audited(None) as a:
        status, _, (e,) = a.ask("GET", f"{NS}/configmaps", Impersonate_User="jane", Impersonate_Group="dev")
        assert status == 403, status
        assert e["user"]["username"] == "seth-admin" and e["impersonatedUser"]["username"] == "jane", e
        assert "dev" in e["impersonatedUser"]["groups"], e
        assert e["annotations"]["authorization.k8s.io/decision"] == "forbid", e
        assert e["responseStatus"]["reason"] == "Forbidden", e
        connection = a.server.connect(with_certificate=False)
        connection.request("GET", f"{NS}/configmaps", headers={"Authorization": "Bearer nobody-knows-this"})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 401, (answer.status, text)
        e = a.of(answer.headers["Audit-Id"])[-1]
        assert e["responseStatus"]["code"] == 401 and e["user"] == {}, e
        connection.request("GET", f"{NS}/configmaps")
        answer = connection.getresponse()
        answer.read()
        e = a.of(answer.headers["Audit-Id"])[-1]
        assert answer.status in (401, 403) and e["responseStatus"]["code"] == answer.status, e
        assert "nobody-knows-this" not in a.log.read_text()


LEVELS = policy(
    {"level": "None", "nonResourceURLs": ["/version", "/openapi/*"]},
    {"level": "None", "resources": [{"group": "", "resources": ["configmaps"], "resourceNames": ["unseen"]}]},
    {"level": "Request", "verbs": ["create"], "resources": [{"group": "", "resources": ["configmaps"]}]},
    {"level": "RequestResponse", "verbs": ["patch", "update", "delete"], "resources": [{"group": "", "resources": ["configmaps"]}]},
    {"level": "RequestResponse", "verbs": ["list"], "omitManagedFields": True, "resources": [{"group": "", "resources": ["configmaps"]}]},
    {"level": "RequestResponse", "resources": [{"group": "", "resources": ["*"]}, {"group": "authentication.k8s.io"}]},
    {"level": "Metadata", "omitStages": ["RequestReceived"]})


def test_levels_of_a_policy():
    with Audited(LEVELS) as a:
        name = unique()
        _, data, (received, e) = a.ask("POST", f"{NS}/configmaps", configmap(name, {"k": "one"}), n=2)
        assert received["stage"] == "RequestReceived" and "responseStatus" not in received and "requestObject" not in received, received
        assert e["level"] == "Request" and e["requestObject"]["data"] and e["requestObject"]["metadata"]["name"] == name, e
        assert "responseObject" not in e, e
        _, data, events = a.ask("PATCH", f"{NS}/configmaps/{name}", {"data": {"k": "two"}}, n=2, Content_Type=MERGE)
        e = events[-1]
        assert e["level"] == "RequestResponse" and e["requestObject"] == {"data": {"k": "two"}}, e
        assert e["responseObject"] == json.loads(data) and e["responseObject"]["metadata"]["managedFields"], e
        _, data, events = a.ask("GET", f"{NS}/configmaps", n=2)
        items = events[-1]["responseObject"]["items"]
        assert [i["metadata"]["name"] for i in items] == [i["metadata"]["name"] for i in json.loads(data)["items"]], items
        assert all("managedFields" not in i["metadata"] for i in items), items
        # A YAML body, and one that is nothing.
        other = unique()
        status, _, events = a.ask("PATCH", f"{NS}/configmaps/{other}?fieldManager=m",
                                  f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {other}\n", n=2, Content_Type=APPLY)
        assert status == 201 and events[-1]["requestObject"]["metadata"] == {"name": other}, events
        status, _, events = a.ask("POST", f"{NS}/configmaps", '{"metadata":', n=2, Content_Type="application/json")
        assert status == 400 and "requestObject" not in events[-1], events
        # A body too large for the log.
        for i in range(3):
            a.server.ok("POST", f"{NS}/configmaps", configmap(unique("large"), {"k": "x" * 100_000}))
        _, _, events = a.ask("GET", f"{NS}/configmaps", n=2)
        assert "responseObject" not in events[-1] and events[-1]["annotations"]["audit.k8s.io/truncated"] == "true", events[-1]["annotations"]
        # What a rule hides leaves no line behind.
        status, headers, _ = a.server.exchange("GET", "/version")
        a.server.exchange("GET", f"{NS}/configmaps/unseen")
        a.ask("GET", "/readyz")
        events = a.events()
        assert not [e for e in events if e["requestURI"] == "/version" or e["requestURI"].endswith("/unseen")]
        assert [e["stage"] for e in events if e["requestURI"] == "/readyz"][-1] == "ResponseComplete"


def test_secrets_are_never_shown():
    with Audited(policy({"level": "RequestResponse"})) as a:
        s, ns = a.server, a.server.namespace()
        mark = "hush-" + uuid.uuid4().hex
        encoded = base64.b64encode(mark.encode()).decode()
        body = {"metadata": {"name": "s", "annotations": {"note": mark}}, "data": {"k": encoded}}
        secrets = f"/api/v1/namespaces/{ns}/secrets"
        ids = []

        def ask(method, path, body=None, **headers):
            status, answer, data = s.exchange(method, path, body, headers)
            ids.append(answer["Audit-Id"])
            return status, data

        assert ask("POST", secrets, body)[0] == 201
        ask("GET", f"{secrets}/s")
        ask("GET", secrets)
        ask("GET", "/api/v1/secrets")
        ask("GET", f"{secrets}/s", Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        ask("PATCH", f"{secrets}/s", json.dumps({"stringData": {"other": mark}}), **{"Content-Type": MERGE})
        ask("PUT", f"{secrets}/s", {**body, "apiVersion": "v1", "kind": "Secret"})
        ask("PATCH", f"{secrets}/s?fieldManager=x&force=true", json.dumps({"apiVersion": "v1", "kind": "Secret", **body}),
            **{"Content-Type": APPLY})
        watched = next(s.watch(f"{secrets}?watch=1&timeoutSeconds=5"))
        assert watched["object"]["metadata"]["name"] == "s"
        accounts = f"/api/v1/namespaces/{ns}/serviceaccounts"
        wait_until(lambda: s.request("GET", f"{accounts}/default")[0] == 200, what="the account")
        status, data = ask("POST", f"{accounts}/default/token",
                           {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
        token = json.loads(data).get("status", {}).get("token") if status == 201 else None
        assert status == 201 and token, (status, data)
        ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}})
        ask("DELETE", f"{secrets}/s")
        ask("DELETE", secrets)
        for audit_id in ids:
            for e in a.of(audit_id, 2):
                assert e["level"] == "Metadata", e
        # The level of others is as it was asked for.
        status, _, events = a.ask("GET", f"/api/v1/namespaces/{ns}/configmaps", n=2)
        assert events[-1]["level"] == "RequestResponse", events
        text = a.log.read_text()
        assert mark not in text and encoded not in text
        assert token not in text and token.split(".")[2] not in text


def test_watches_have_three_stages():
    with Audited(policy({"level": "Metadata"})) as a:
        connection = a.server.connect()
        connection.request("GET", f"{NS}/configmaps?watch=1&timeoutSeconds=600")
        answer = connection.getresponse()
        audit_id = answer.headers["Audit-Id"]
        events = a.of(audit_id, 2)
        assert [e["stage"] for e in events] == ["RequestReceived", "ResponseStarted"], events
        assert events[1]["responseStatus"]["code"] == 200 and events[1]["verb"] == "watch", events
        connection.close()
        events = a.of(audit_id, 3)
        assert [e["stage"] for e in events] == ["RequestReceived", "ResponseStarted", "ResponseComplete"], events
        assert events[2]["stageTimestamp"] > events[1]["requestReceivedTimestamp"], events


def test_the_clients_audit_id_is_kept():
    with Audited(None) as a:
        mine = str(uuid.uuid4())
        status, headers, _ = a.server.exchange("GET", "/version", headers={"Audit-ID": mine})
        assert status == 200 and headers["Audit-Id"] == mine
        assert a.of(mine)[0]["requestURI"] == "/version"
        # No way to write what one likes into the log or the answer.
        status, headers, _ = a.server.exchange("GET", "/version", headers={"Audit-ID": 'x","level":"None'})
        assert re.fullmatch(r"[0-9a-f-]{36}", headers["Audit-Id"]), headers["Audit-Id"]
        a.of(headers["Audit-Id"])


def test_reload_and_rotation_from_outside():
    with Audited(policy({"level": "Metadata", "omitStages": ["RequestReceived"]})) as a:
        s = a.server
        _, _, (e,) = a.ask("GET", f"{NS}/configmaps")
        assert e["level"] == "Metadata"

        def reload(text, expected):
            offset = len(s.read_log())
            a.policy.write_text(text)
            s.process.send_signal(signal.SIGHUP)
            wait_until(lambda: re.search(expected, s.read_log()[offset:]), what=expected)

        reload(policy({"level": "Everything"}), r"rules\[0\]\.level: 'Everything' is none of")
        _, _, (e,) = a.ask("GET", f"{NS}/configmaps")
        assert e["level"] == "Metadata", "the policy of before must stay"
        a.log.rename(a.dir / "audit-moved.log")
        reload(policy({"level": "RequestResponse", "omitStages": ["RequestReceived"]}), r'reloaded.*audit')
        _, _, (e,) = a.ask("GET", f"{NS}/configmaps")
        assert e["level"] == "RequestResponse", e
        assert e["auditID"] in a.log.read_text(), "the log did not follow its path"
        # Also without a signal, as logrotate without postrotate does.
        a.log.rename(a.dir / "audit-moved-again.log")
        _, _, (e,) = a.ask("GET", "/version")
        assert e["auditID"] in a.log.read_text()


def count_metric(s, name):
    text = s.exchange("GET", "/metrics")[2].decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if re.match(rf"{name}(\{{| )", line))


def test_every_request_of_a_load_is_recorded_or_counted():
    """Several loops, rotation under way: as many lines as requests, each id once, less what was counted as dropped."""
    n_threads, n_requests = 8, 150
    with Audited(policy({"level": "RequestResponse", "omitStages": ["RequestReceived"]}), "--audit-log-maxsize", "1", "--audit-log-maxbackup", "0",
                 "--threads", "4") as a:
        s, padding = a.server, "x" * 2000

        def work(k):
            ids = []
            connection = s.connect()
            for i in range(n_requests):
                path = f"{NS}/configmaps" if i % 3 == 0 else f"{NS}/configmaps/w-{k}" if i % 3 == 1 else "/version"
                if i == 0:
                    connection.request("POST", path, json.dumps(configmap(f"w-{k}", {"k": padding})), {"Content-Type": "application/json"})
                else:
                    connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
                ids.append(answer.headers["Audit-Id"])
            connection.close()
            return ids

        with concurrent.futures.ThreadPoolExecutor(n_threads) as pool:
            ids = [i for found in pool.map(work, range(n_threads)) for i in found]
        assert len(set(ids)) == n_threads * n_requests, "an id was given twice"
        a.of(a.server.exchange("GET", "/livez")[1]["Audit-Id"])
        dropped = int(count_metric(s, "seth_audit_events_dropped_total"))
        counted = int(count_metric(s, "apiserver_audit_event_total"))
        wait_until(lambda: len(list(a.dir.glob("audit-*.log"))) >= 2, what="rotation")
        assert s.stop() == 0
        recorded = [e["auditID"] for e in a.events()]
        assert len(recorded) == len(set(recorded)), "an event was written twice"
        assert len(set(ids) - set(recorded)) <= dropped, (len(set(ids) - set(recorded)), dropped)
        assert counted >= len(ids) - dropped and len(recorded) >= counted, (counted, len(recorded), len(ids))
        for path in a.dir.glob("audit-*.log"):
            assert path.stat().st_size <= 1024 * 1024, path
            assert re.fullmatch(r"audit-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}\.log", path.name), path


def test_backups_beyond_the_limit_go():
    with Audited(policy({"level": "RequestResponse"}), "--audit-log-maxsize", "1", "--audit-log-maxbackup", "2") as a:
        a.server.ok("POST", f"{NS}/configmaps", configmap("large", {"k": "x" * 200_000}))
        for _ in range(30):
            a.server.ok("GET", f"{NS}/configmaps/large")
        a.of(a.server.exchange("GET", "/livez")[1]["Audit-Id"], 2)
        backups = sorted(p.name for p in a.dir.glob("audit-*.log"))
        assert len(backups) == 2, backups
        assert max(e["stageTimestamp"] for e in a.events())[:4] >= "2026"


def test_a_log_that_cannot_be_written_does_not_stop_requests():
    """/dev/full takes nothing: requests go on, attempts are counted, the log says so once."""
    with Server("--audit-log-path", "/dev/full") as s:
        for _ in range(200):
            s.ok("GET", f"{NS}/configmaps")
        wait_until(lambda: count_metric(s, "seth_audit_write_errors_total") >= 1, what="errors to be counted")
        assert s.read_log().count("cannot write the audit log") == 1, s.read_log()[-2000:]
        s.ok("GET", "/readyz")


def refuses_to_start(*options):
    directory = tempfile.mkdtemp(prefix="seth-audit-")
    try:
        done = subprocess.run([binary(), "server", "--data-dir", directory, "--secure-port", "0", *options], capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and "Sanitizer" not in done.stderr, done.stderr[-3000:]
        return done.stderr
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def test_a_bad_policy_or_path_is_refused_at_the_start():
    with tempfile.TemporaryDirectory(prefix="seth-audit-") as directory:
        path = pathlib.Path(directory) / "policy.yaml"
        path.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n  resources:\n  - grup: ''\n")
        said = refuses_to_start("--audit-log-path", f"{directory}/audit.log", "--audit-policy-file", str(path))
        assert "policy.yaml: rules[0].resources[0].grup: unknown field" in said, said
        said = refuses_to_start("--audit-log-path", f"{directory}/no/such/audit.log")
        assert "audit.log: No such file or directory" in said, said
        said = refuses_to_start("--audit-log-path", f"{directory}/audit.log", "--audit-policy-file", f"{directory}/absent.yaml")
        assert "absent.yaml: cannot read it" in said, said
