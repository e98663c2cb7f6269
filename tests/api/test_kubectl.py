# SPDX-License-Identifier: Apache-2.0
"""Every kubectl command that is not tied to workloads, with Debian's kubectl (old) and the newest."""
import base64
import json
import re
import subprocess

from expect import configmap, configmaps, managers, merge
from pumps import CRDS, Pumps, definition, version as crd_version
from seth import unique, wait_until


class Kubectl:
    """One of the two kubectls in a namespace of its own."""

    def __init__(self, s, version):
        self.s, self.version, self.ns = s, version, s.namespace()

    def __call__(self, *arguments, **options):
        return self.s.kubectl("-n", self.ns, *arguments, version=self.version, **options)

    def fails(self, *arguments, **options):
        done = self.s.kubectl("-n", self.ns, *arguments, version=self.version, check=False, **options)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)} should fail\n{done.stdout}"
        return done.stderr

    def both_streams(self, *arguments, **options):
        done = self.s.kubectl("-n", self.ns, *arguments, version=self.version, check=False, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def start(self, *arguments):
        words, variables = self.s.kubectl_command(self.version)
        return subprocess.Popen([*words, "-n", self.ns, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=variables)

    def make(self, *things):
        """Objects written directly, so that a command is tested alone."""
        for thing in things:
            self.s.ok("POST", configmaps(self.ns), thing)

    def get(self, name):
        return self.s.ok("GET", configmaps(self.ns, name))

    def file(self, *things):
        path = self.s.dir / (unique("file") + ".json")
        path.write_text("\n".join(json.dumps(t) for t in things))
        return str(path)


def with_each(*versions):
    """Runs a test with each of these kubectls and says which one failed."""
    def decorate(function):
        def run(s):
            for version in versions:
                try:
                    function(s, Kubectl(s, version))
                except Exception as e:
                    raise AssertionError(f"with kubectl '{version}'") from e
        return run
    return decorate


with_both = with_each("old", "new")
with_new = with_each("new")


def rows(text):
    return [line.split() for line in text.splitlines()]


@with_both
def test_get_as_table(s, k):
    k.make(configmap("a", {"k": "v"}, labels={"app": "x", "tier": "1"}), configmap("b", labels={"app": "y"}))
    out = rows(k("get", "configmaps", "a", "b"))
    assert out[0] == ["NAME", "DATA", "AGE"] and [r[:2] for r in out[1:]] == [["a", "1"], ["b", "0"]]
    assert re.fullmatch(r"\d+s", out[1][2])
    assert k("get", "cm", "a", "--no-headers").split()[:2] == ["a", "1"]
    assert rows(k("get", "cm", "-l", "app=x", "--show-labels"))[1][3] == "app=x,tier=1"
    assert rows(k("get", "cm", "-l", "app", "-L", "app", "-L", "tier"))[0] == ["NAME", "DATA", "AGE", "APP", "TIER"]
    assert [r[0] for r in rows(k("get", "cm", "-l", "app in (x,y),tier!=1"))[1:]] == ["b"]
    assert [r[0] for r in rows(k("get", "cm", "--field-selector", "metadata.name=b"))[1:]] == ["b"]
    assert [r[0] for r in rows(k("get", "cm", "-l", "app", "--sort-by=.metadata.labels.app"))[1:]] == ["a", "b"]
    assert [r[:2] for r in rows(k("get", "cm", "-A", "-l", "app"))[1:] if r[0] == k.ns] == [[k.ns, "a"], [k.ns, "b"]]
    assert "configmap/a" in k("get", "cm,secrets,sa", "--show-kind") and "serviceaccount/default" in k("get", "cm,sa")
    assert k.both_streams("get", "secrets") == f"No resources found in {k.ns} namespace.\n"
    assert rows(k("get", "cm", "a", "--server-print=false"))[0] == ["NAME", "AGE"]


@with_both
def test_get_in_other_forms(s, k):
    k.make(configmap("a", {"k": "v", "n": "5"}), configmap("b"))
    thing = json.loads(k("get", "cm", "a", "-o", "json"))
    assert (thing["kind"], thing["apiVersion"], thing["data"]) == ("ConfigMap", "v1", {"k": "v", "n": "5"})
    several = json.loads(k("get", "cm", "a", "b", "-o", "json"))
    assert several["kind"] == "List" and [i["metadata"]["name"] for i in several["items"]] == ["a", "b"] and several["items"][0]["kind"] == "ConfigMap"
    text = k("get", "cm", "a", "-o", "yaml")
    assert text.startswith("apiVersion: v1\ndata:\n  k: v\n") and '  "n": "5"\n' in text.replace("  n: ", '  "n": ')
    assert k("get", "cm", "a", "b", "-o", "name") == "configmap/a\nconfigmap/b\n"
    assert k("get", "cm", "a", "-o", "jsonpath={.data.k} {.metadata.namespace}") == f"v {k.ns}"
    assert rows(k("get", "cm", "a", "b", "-o", "custom-columns=WHO:.metadata.name,K:.data.k")) == [["WHO", "K"], ["a", "v"], ["b", "<none>"]]
    assert k("get", "cm", "a", "-o", "go-template={{.data.k}}") == "v"
    assert k("get", "ns", k.ns, "-o", "jsonpath={.status.phase}") == "Active"


@with_both
def test_get_what_is_not_there(s, k):
    assert k.fails("get", "cm", "nope") == 'Error from server (NotFound): configmaps "nope" not found\n'
    assert 'the server doesn\'t have a resource type "nopes"' in k.fails("get", "nopes")
    assert k("get", "cm", "nope", "--ignore-not-found") == ""
    assert "unable to parse requirement" in k.fails("get", "cm", "-l", "a b")


@with_both
def test_get_in_chunks(s, k):
    k.make(*(configmap(f"m{i:02}") for i in range(12)))
    done = s.kubectl("-n", k.ns, "get", "cm", "--chunk-size=5", "-v=8", version=k.version, check=False)
    assert [r[0] for r in rows(done.stdout)[1:] if r[0].startswith("m")] == [f"m{i:02}" for i in range(12)]
    asked = set(re.findall(r"/configmaps\?\S*limit=5\S*", done.stderr))
    assert len({a for a in asked if "continue=" in a}) == 2, asked


@with_both
def test_get_watch(s, k):
    k.make(configmap("a"))
    with k.start("get", "cm", "-w", "--field-selector", "metadata.name=a") as client:
        try:
            assert client.stdout.readline().split() == ["NAME", "DATA", "AGE"] and client.stdout.readline().split()[:2] == ["a", "0"]
            merge(s, configmaps(k.ns, "a"), {"data": {"x": "1"}})
            assert client.stdout.readline().split()[:2] == ["a", "1"]
            merge(s, configmaps(k.ns, "a"), {"data": {"y": "1"}})
            assert client.stdout.readline().split()[:2] == ["a", "2"]
        finally:
            client.kill()


@with_both
def test_get_watch_events(s, k):
    """By a list: of a single object kubectl watches from whatever is newest when it comes to it, and may miss what we delete meanwhile."""
    k.make(configmap("a"))
    with k.start("get", "cm", "--field-selector", "metadata.name=a", "-w", "--output-watch-events", "-o", "json") as client:
        try:
            decode, text = json.JSONDecoder(), ""

            def event():
                nonlocal text
                while True:
                    try:
                        value, end = decode.raw_decode(text.lstrip())
                        text = text.lstrip()[end:]
                        return value["type"], value["object"]["metadata"]["name"]
                    except ValueError:
                        line = client.stdout.readline()
                        assert line, text
                        text += line

            assert event() == ("ADDED", "a")
            s.ok("DELETE", configmaps(k.ns, "a"))
            assert event() == ("DELETED", "a")
        finally:
            client.kill()


@with_both
def test_names_of_kinds(s, k):
    short = "sn" + unique("x")[2:]
    pumps = Pumps(s, short=short, categories=["all", "cat" + short])
    s.ok("POST", pumps.path(ns=k.ns), pumps.body("p", {"mode": "off"}))
    k("api-resources")  # kubectl keeps what it found for minutes; this looks again
    for name in (short, f"pumps.{pumps.group}", f"pumps.v1.{pumps.group}", f"pump.{pumps.group}"):
        head, row = rows(k("get", name))
        assert head == ["NAME", "SERIAL", "MODE", "AGE"] and row[:3] == ["p", "AB-1", "off"], name
    assert rows(k("get", short, "-o", "wide"))[0] == ["NAME", "SERIAL", "MODE", "PHASE", "AGE"]
    for category in ("all", "cat" + short):
        assert [r[0].split("/")[-1] for r in rows(k("get", category))[1:]] == ["p"]
    assert k("get", short, "p", "-o", "name") == f"pump.{pumps.group}/p\n"
    assert rows(k("get", "crd", f"pumps.{pumps.group}"))[0] == ["NAME", "CREATED", "AT"]


@with_both
def test_describe(s, k):
    k.make(configmap("a", {"k": "v"}, labels={"app": "x"}, annotations={"note": "y"}))
    about = {"kind": "ConfigMap", "namespace": k.ns, "name": "a", "uid": k.get("a")["metadata"]["uid"], "apiVersion": "v1"}
    for name, reason, target in (("e1", "Changed", about), ("e2", "Elsewhere", {**about, "name": "other", "uid": "u"})):
        s.ok("POST", f"/api/v1/namespaces/{k.ns}/events", {"metadata": {"name": name}, "involvedObject": target, "reason": reason, "message": "it was", "type": "Warning",
             "source": {"component": "tester"}, "count": 2, "firstTimestamp": "2001-01-01T00:00:00Z", "lastTimestamp": "2001-01-01T00:00:00Z"})
    out = k("describe", "configmap", "a")
    assert "Name:         a\n" in out and "Labels:       app=x\n" in out and "Annotations:  note: y\n" in out and "\nk:\n----\nv\n" in out
    assert re.search(r"Warning\s+Changed\s+.*tester\s+it was", out) and "Elsewhere" not in out
    assert "Events:" not in k("describe", "configmap", "a", "--show-events=false")
    assert [n for n in re.findall(r"^Name:\s+(\S+)", k("describe", "cm"), re.M) if n != "kube-root-ca.crt"] == ["a"]
    assert "not found" in k.fails("describe", "cm", "nope")


@with_both
def test_describe_kinds(s, k):
    pumps = Pumps(s)
    s.ok("POST", pumps.path(ns=k.ns), pumps.body("p", {"valves": [{"name": "in", "open": True}]}))
    out = k("describe", f"pumps.{pumps.group}", "p")
    assert f"API Version:  {pumps.group}/v1\n" in out and re.search(r"^  Valves:\n    Name:  in\n    Open:  true\n", out, re.M) and "Events:" in out
    s.ok("POST", f"/api/v1/namespaces/{k.ns}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"secrets": "5"}}})
    wait_until(lambda: re.search(r"secrets\s+0\s+5", k("describe", "quota", "q")), what="the quota's use")
    assert re.search(r"Status:\s+Active", k("describe", "ns", k.ns)) and re.search(r"secrets\s+0\s+5", k("describe", "ns", k.ns))
    s.ok("POST", f"/api/v1/namespaces/{k.ns}/secrets", {"metadata": {"name": "s"}, "stringData": {"token": "four"}})
    out = k("describe", "secret", "s")
    assert re.search(r"^token:\s+4 bytes$", out, re.M) and "four" not in out
    assert "Established" in k("describe", "crd", f"pumps.{pumps.group}")


@with_both
def test_events(s, k):
    s.ok("POST", f"/api/v1/namespaces/{k.ns}/events", {"metadata": {"name": "e"}, "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": k.ns, "name": "a"},
         "reason": "Began", "message": "hello there", "type": "Normal", "lastTimestamp": "2001-01-01T00:00:00Z"})
    out = rows(k("get", "events"))
    assert out[0] == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"] and out[1][1:] == ["Normal", "Began", "configmap/a", "hello", "there"]
    assert rows(k("get", "events.events.k8s.io", "-o", "name")) == [["event.events.k8s.io/e"]]
    if k.version == "new":
        assert rows(k("events", "--for", "configmap/a"))[1][1:] == ["Normal", "Began", "ConfigMap/a", "hello", "there"]
        assert "No events found" in k.both_streams("events", "--types=Warning")


@with_both
def test_explain(s, k):
    pumps = Pumps(s)
    for kind, words in (("configmap", ["ConfigMap holds configuration data", "binaryData\t<map[string]string>", "immutable\t<boolean>"]),
                        ("cm.metadata.labels", ["labels <map[string]string>", "DESCRIPTION:"]),
                        ("leases.spec", ["holderIdentity\t<string>"]), ("crd.spec.names", ["shortNames\t<[]string>"]),
                        ("pvc.spec.resources", ["requests\t<map[string]"]),
                        ("pump", ["A pump."]), ("pump.spec.serial", ["serial <string>", "As printed on the plate."])):
        out = k("explain", kind, *(["--api-version", f"{pumps.group}/v1"] if kind.startswith("pump") else []))
        for word in words:
            assert word in out, (kind, out)
    out = k("explain", "pump.spec", "--recursive", "--api-version", f"{pumps.group}/v1")
    assert re.search(r"^ +tuning\t<Object>\n +curve\t<Object>\n +gain\t<integer>$", out, re.M) and re.search(r"^ +valves\t<\[\]Object>", out, re.M)
    assert "does not exist" in k.fails("explain", "configmap.nope")


@with_both
def test_what_there_is(s, k):
    pumps = Pumps(s, short="ar" + unique("x")[2:])
    out = rows(k("api-resources"))
    assert ["configmaps", "cm", "v1", "true", "ConfigMap"] in out and [f"{pumps.group}/v1", "true", "Pump"] in [r[2:] for r in out]
    assert k("api-resources", "--api-group", pumps.group, "--no-headers", "-o", "name") == f"pumps.{pumps.group}\n"
    assert "namespaces" in k("api-resources", "--namespaced=false", "-o", "name").split() and "secrets" not in k("api-resources", "--namespaced=false", "-o", "name").split()
    assert {"v1", "coordination.k8s.io/v1", f"{pumps.group}/v1"} <= set(k("api-versions").split())
    told = json.loads(k("version", "-o", "json"))["serverVersion"]
    assert told["major"] == "1" and told["gitVersion"].startswith("v1.") and "Server Version" in k("version")
    assert 'the server doesn\'t have a resource type "services"' in k.fails("cluster-info"), "it looks for Services, which this server does not have"
    assert k("config", "current-context").strip() and "DATA+OMITTED" in k("config", "view")


@with_both
def test_create_with_words(s, k):
    path = s.dir / unique("text")
    path.write_text("two\nlines\n")
    assert k("create", "configmap", "a", "--from-literal=k=v", f"--from-file=t={path}") == "configmap/a created\n"
    assert k.get("a")["data"] == {"k": "v", "t": "two\nlines\n"}
    assert k.fails("create", "configmap", "a").endswith('configmaps "a" already exists\n')
    assert k("create", "secret", "generic", "s", "--from-literal=p=secret") == "secret/s created\n"
    assert s.ok("GET", f"/api/v1/namespaces/{k.ns}/secrets/s")["data"] == {"p": base64.b64encode(b"secret").decode()}
    assert k("create", "secret", "docker-registry", "d", "--docker-username=u", "--docker-password=p", "--docker-server=registry.example.org") == "secret/d created\n"
    assert s.ok("GET", f"/api/v1/namespaces/{k.ns}/secrets/d")["type"] == "kubernetes.io/dockerconfigjson"
    assert k("create", "secret", "tls", "t", f"--cert={s.dir / 'admin.pem'}", f"--key={s.dir / 'admin-key.pem'}") == "secret/t created\n"
    assert k("create", "serviceaccount", "robot") == "serviceaccount/robot created\n"
    assert k("create", "quota", "q", "--hard=configmaps=100,secrets=50") == "resourcequota/q created\n"
    assert s.ok("GET", f"/api/v1/namespaces/{k.ns}/resourcequotas/q")["spec"]["hard"] == {"configmaps": "100", "secrets": "50"}
    name = unique("ns")
    assert k("create", "namespace", name) == f"namespace/{name} created\n" and s.ok("GET", f"/api/v1/namespaces/{name}")["status"]["phase"] == "Active"


@with_both
def test_create_from_files(s, k):
    several = k.file(configmap("a", {"k": "1"}), configmap("b", {"k": "2"}), {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    assert k("create", "-f", several) == "configmap/a created\nconfigmap/b created\nsecret/s created\n"
    assert "AlreadyExists" in k.fails("create", "-f", several)
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  generateName: gen-\ndata:\n  t: |\n    x\n"
    assert re.fullmatch(r"configmap/gen-\w{5} created\n", k("create", "-f", "-", input=text))
    assert k("create", "-f", "-", "--dry-run=server", input=json.dumps(configmap("dry"))) == "configmap/dry created (server dry run)\n"
    assert s.request("GET", configmaps(k.ns, "dry"))[0] == 404
    assert "kind: ConfigMap" in k("create", "configmap", "dry", "--dry-run=client", "-o", "yaml")
    unknown = k.fails("create", "-f", "-", input=json.dumps({**configmap("x"), "nope": 1}))
    assert 'unknown field "nope"' in unknown
    assert k.fails("create", "-f", "-", input=json.dumps(configmap("Bad_"))).startswith('The ConfigMap "Bad_" is invalid: metadata.name: Invalid value: "Bad_"')


@with_both
def test_a_kind_and_its_objects(s, k):
    group = unique("g") + ".example.org"
    assert k("create", "-f", k.file(definition(group))) == f"customresourcedefinition.apiextensions.k8s.io/pumps.{group} created\n"
    assert f"pumps.{group} condition met" in k("wait", "--for=condition=Established", f"crd/pumps.{group}")
    body = {"apiVersion": f"{group}/v1", "kind": "Pump", "metadata": {"name": "p"}, "spec": {"serial": "AB"}}
    assert k("create", "-f", k.file(body)) == f"pump.{group}/p created\n"
    bad = k.fails("create", "-f", k.file({**body, "metadata": {"name": "q"}, "spec": {"serial": "AB", "mode": "nope"}}), "--validate=false")
    assert 'The Pump "q" is invalid: spec.mode: Unsupported value: "nope": supported values: "auto", "manual", "off"' in bad
    unknown = k.fails("create", "-f", k.file({**body, "metadata": {"name": "q"}, "spec": {"serial": "AB", "nope": 1}}))
    assert 'unknown field "spec.nope"' in unknown or 'unknown field "nope"' in unknown
    assert k("delete", "crd", f"pumps.{group}") == f'customresourcedefinition.apiextensions.k8s.io "pumps.{group}" deleted\n'
    assert s.request("GET", f"{CRDS}/pumps.{group}")[0] == 404


@with_both
def test_apply(s, k):
    def put(*things, **options):
        return k("apply", "-f", "-", *options.get("more", ()), input="\n".join(json.dumps(t) for t in things))

    assert put(configmap("a", {"k": "1", "l": "2"}), configmap("b")) == "configmap/a created\nconfigmap/b created\n"
    assert put(configmap("a", {"k": "1", "l": "2"}), configmap("b")) == "configmap/a unchanged\nconfigmap/b unchanged\n"
    assert put(configmap("a", {"k": "9"}), more=["--dry-run=server"]) == "configmap/a configured (server dry run)\n"
    assert put(configmap("a", {"k": "9"})) == "configmap/a configured\n" and k.get("a")["data"] == {"k": "9"}
    assert json.loads(k("apply", "view-last-applied", "cm", "a", "-o", "json"))["data"] == {"k": "9"}
    k("apply", "set-last-applied", "--create-annotation", "-f", "-", input=json.dumps(configmap("a", {"k": "0"})))
    assert json.loads(k("apply", "view-last-applied", "cm", "a", "-o", "json"))["data"] == {"k": "0"}
    assert "no objects passed to apply" in k.fails("apply", "-f", "-", input="")
    directory = s.dir / unique("dir")
    directory.mkdir()
    for name in ("x", "y"):
        (directory / f"{name}.json").write_text(json.dumps(configmap(name)))
    assert k("apply", "-f", str(directory)) == "configmap/x created\nconfigmap/y created\n"
    assert rows(k("apply", "-f", str(directory), "-o", "name")) == [["configmap/x"], ["configmap/y"]]


@with_both
def test_apply_prunes(s, k):
    kinds = ["--prune-whitelist=core/v1/ConfigMap"] if k.version == "old" else ["--prune-allowlist=core/v1/ConfigMap"]
    k("apply", "-f", k.file(configmap("a", labels={"app": "x"}), configmap("b", labels={"app": "x"})))
    out = k("apply", "--prune", "-l", "app=x", *kinds, "-f", "-", input=json.dumps(configmap("a", labels={"app": "x"})))
    assert "configmap/a unchanged\n" in out and "configmap/b pruned\n" in out
    assert s.request("GET", configmaps(k.ns, "b"))[0] == 404


@with_both
def test_apply_server_side(s, k):
    pumps = Pumps(s)
    for thing, name in ((configmap("a", {"k": "1"}), "configmap/a"), (pumps.body("p", {"cores": 2}), f"pump.{pumps.group}/p")):
        out = k("apply", "--server-side", "-f", "-", input=json.dumps(thing))
        assert out == f"{name} serverside-applied\n"
    assert set(managers(k.get("a"))) == {("kubectl", "Apply", "")}
    assert "serverside-applied (server dry run)" in k("apply", "--server-side", "--dry-run=server", "-f", "-", input=json.dumps(configmap("a", {"k": "2"})))
    assert k.get("a")["data"] == {"k": "1"}


@with_both
def test_kustomize(s, k):
    directory = s.dir / unique("k")
    directory.mkdir()
    (directory / "base.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n")
    (directory / "kustomization.yaml").write_text("namePrefix: pre-\ncommonLabels:\n  app: x\nresources: [base.yaml]\nconfigMapGenerator:\n- name: made\n  literals: [x=1]\n")
    out = k("apply", "-k", str(directory))
    assert "configmap/pre-a created\n" in out and re.search(r"configmap/pre-made-\w{10} created\n", out)
    assert k.get("pre-a")["metadata"]["labels"] == {"app": "x"}
    assert len(rows(k("get", "-k", str(directory), "-o", "name"))) == 2 and "name: pre-a" in k("kustomize", str(directory))
    assert "unchanged" in k("apply", "-k", str(directory))
    k("delete", "-k", str(directory))
    assert s.request("GET", configmaps(k.ns, "pre-a"))[0] == 404


@with_both
def test_diff(s, k):
    pumps = Pumps(s)
    s.ok("POST", pumps.path(ns=k.ns), pumps.body("p", {"cores": 2}))
    k("apply", "--server-side", "-f", "-", input=json.dumps(configmap("a", {"k": "1"})))
    assert k("diff", "--server-side", "-f", "-", input=json.dumps(configmap("a", {"k": "1"}))) == ""
    done = s.kubectl("-n", k.ns, "diff", "-f", "-", version=k.version, check=False, input=json.dumps(pumps.body("p", {"cores": 3})))
    assert done.returncode == 1 and re.search(r"^-  cores: 2\n\+  cores: 3$", done.stdout, re.M), done.stderr + done.stdout
    assert s.ok("GET", pumps.path("p", ns=k.ns))["metadata"]["generation"] == 1
    done = s.kubectl("-n", k.ns, "diff", "-f", "-", version=k.version, check=False, input=json.dumps(configmap("new", {"k": "1"})))
    assert done.returncode == 1 and "+kind: ConfigMap" in done.stdout and s.request("GET", configmaps(k.ns, "new"))[0] == 404
    k("apply", "-f", "-", input=json.dumps(configmap("same", {"k": "1"})))
    assert k("diff", "-f", "-", input=json.dumps(configmap("same", {"k": "1"}))) == ""


def editor(s, *commands):
    """A program that edits with sed."""
    path = s.dir / unique("editor")
    path.write_text("#!/bin/sh\nsed -i " + " ".join(f"-e '{c}'" for c in commands) + ' "$1"\n')
    path.chmod(0o755)
    return {"KUBE_EDITOR": str(path)}


@with_both
def test_edit(s, k):
    pumps = Pumps(s)
    k.make(configmap("a", {"k": "1"}))
    s.ok("POST", pumps.path(ns=k.ns), pumps.body("p", {"cores": 2}))
    assert k("edit", "cm", "a", environment=editor(s, 's/k: "1"/k: "2"/')) == "configmap/a edited\n" and k.get("a")["data"] == {"k": "2"}
    assert "no changes made" in k.both_streams("edit", "cm", "a", environment=editor(s, "s/none/none/"))
    assert k("edit", f"pumps.{pumps.group}", "p", environment=editor(s, "s/cores: 2/cores: 3/")) == f"pump.{pumps.group}/p edited\n"
    assert s.ok("GET", pumps.path("p", ns=k.ns))["spec"]["cores"] == 3
    bad = k.fails("edit", f"pumps.{pumps.group}", "p", environment=editor(s, "s/cores: 3/cores: 99/"))
    assert '"p" is invalid' in bad and "no valid changes were saved" in bad and s.ok("GET", pumps.path("p", ns=k.ns))["spec"]["cores"] == 3


@with_both
def test_patch(s, k):
    pumps = Pumps(s)
    k.make(configmap("a", {"k": "1"}, finalizers=["example.org/a"]))
    s.ok("POST", pumps.path(ns=k.ns), pumps.body("p"))
    assert k("patch", "cm", "a", "-p", '{"data":{"l":"2"},"metadata":{"finalizers":["example.org/b"]}}') == "configmap/a patched\n"
    assert k.get("a")["data"] == {"k": "1", "l": "2"} and len(k.get("a")["metadata"]["finalizers"]) == 2, "strategic: lists of finalizers merge"
    assert k("patch", "cm", "a", "--type=merge", "-p", '{"data":{"k":null},"metadata":{"finalizers":null}}') == "configmap/a patched\n"
    assert k.get("a")["data"] == {"l": "2"}
    assert k("patch", "cm", "a", "--type=json", "-p", '[{"op":"replace","path":"/data/l","value":"9"}]') == "configmap/a patched\n"
    assert k("patch", "cm", "a", "--type=json", "-p", '[{"op":"replace","path":"/data/l","value":"9"}]') == "configmap/a patched (no change)\n"
    assert k("patch", "cm", "a", "--type=merge", "--dry-run=server", "-o", "jsonpath={.data.l}", "-p", '{"data":{"l":"0"}}') == "0"
    assert k.get("a")["data"] == {"l": "9"}
    kind = f"pumps.{pumps.group}"
    assert k("patch", kind, "p", "--type=merge", "-p", '{"spec":{"mode":"off"}}') == f"pump.{pumps.group}/p patched\n"
    assert "the body of the request was in an unknown format" in k.fails("patch", kind, "p", "-p", '{"spec":{"mode":"off"}}')
    assert "spec.mode: Unsupported value" in k.fails("patch", kind, "p", "--type=merge", "-p", '{"spec":{"mode":"x"}}')
    if k.version == "new":
        k("patch", kind, "p", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Running"}}')
        assert k("get", kind, "p", "--subresource=status", "-o", "jsonpath={.status.phase}") == "Running"


@with_both
def test_label_and_annotate(s, k):
    k.make(configmap("a", labels={"x": "1"}), configmap("b", labels={"x": "1"}))
    assert re.match(r"configmap/a labeled\n", k("label", "cm", "a", "app=web", "tier=1"))
    assert k.get("a")["metadata"]["labels"] == {"x": "1", "app": "web", "tier": "1"}
    assert "--overwrite is false" in k.fails("label", "cm", "a", "app=db")
    k("label", "cm", "a", "app=db", "tier-", "--overwrite")
    assert k.get("a")["metadata"]["labels"] == {"x": "1", "app": "db"}
    assert set(k("label", "cm", "-l", "x=1", "group=g").split("\n")) == {"configmap/a labeled", "configmap/b labeled", ""}
    assert "app=db" in k("label", "cm", "a", "--list")
    assert "a valid label must be" in k.fails("label", "cm", "a", "bad=not ok")
    assert k("annotate", "cm", "a", "b", "note=some text").count("annotated") == 2
    assert k.get("b")["metadata"]["annotations"] == {"note": "some text"}
    version = k.get("a")["metadata"]["resourceVersion"]
    k("annotate", "cm", "a", "note-", f"--resource-version={version}")
    assert "annotations" not in k.get("a")["metadata"]
    assert "the object has been modified" in k.fails("annotate", "cm", "a", "note=x", f"--resource-version={version}")
    assert "labeled" in k("label", "cm", "--all", "everything=yes") and k.get("kube-root-ca.crt")["metadata"]["labels"] == {"everything": "yes"}


@with_both
def test_replace(s, k):
    k.make(configmap("a", {"k": "1"}))
    uid = k.get("a")["metadata"]["uid"]
    assert k("replace", "-f", "-", input=json.dumps(configmap("a", {"l": "2"}))) == "configmap/a replaced\n" and k.get("a")["data"] == {"l": "2"}
    old = configmap("a", {"l": "3"}, resourceVersion="1")
    assert "the object has been modified" in k.fails("replace", "-f", "-", input=json.dumps(old))
    assert 'configmaps "nope" not found' in k.fails("replace", "-f", "-", input=json.dumps(configmap("nope")))
    assert "configmap/a replaced" in k("replace", "--force", "-f", "-", input=json.dumps(configmap("a", {"m": "4"})))
    assert k.get("a")["data"] == {"m": "4"} and k.get("a")["metadata"]["uid"] != uid


@with_both
def test_scale(s, k):
    pumps = Pumps(s)
    s.ok("POST", pumps.path(ns=k.ns), pumps.body("p"))
    kind = f"pumps.{pumps.group}"
    assert k("scale", kind, "p", "--replicas=4") == f"pump.{pumps.group}/p scaled\n"
    assert s.ok("GET", pumps.path("p", ns=k.ns))["spec"]["replicas"] == 4
    assert "Expected replicas to be 9, was 4" in k.fails("scale", kind, "p", "--current-replicas=9", "--replicas=1").replace("expected", "Expected")
    assert k("scale", kind, "p", "--current-replicas=4", "--replicas=0") == f"pump.{pumps.group}/p scaled\n"
    k.make(configmap("a"))
    assert k.fails("scale", "cm", "a", "--replicas=2")


@with_both
def test_delete(s, k):
    k.make(*(configmap(n, labels={"g": n[0]}) for n in ("a1", "a2", "b1", "b2", "c1", "d1")))
    assert k("delete", "cm", "c1").startswith('configmap "c1" deleted')
    assert k("delete", "cm/d1").startswith('configmap "d1" deleted')
    assert k("delete", "cm", "-l", "g=a").count("deleted") == 2
    assert 'configmaps "a1" not found' in k.fails("delete", "cm", "a1") and k("delete", "cm", "a1", "--ignore-not-found") == ""
    assert "(server dry run)" in k("delete", "cm", "b1", "--dry-run=server") and k.get("b1")
    assert k("delete", "-f", k.file(configmap("b1"))).startswith('configmap "b1" deleted')
    assert 'configmap "b2" deleted' in k("delete", "cm", "--all")
    assert [n for n in k("get", "cm", "-o", "name").split() if n != "configmap/kube-root-ca.crt"] == []
    k.make(configmap("raw"))
    assert '"status":"Success"' in k("delete", "--raw", configmaps(k.ns, "raw"))


@with_both
def test_delete_waits_for_finalizers(s, k):
    k.make(configmap("a", finalizers=["example.org/hold"]))
    assert k("delete", "cm", "a", "--wait=false").startswith('configmap "a" deleted') and k.get("a")["metadata"]["deletionTimestamp"]
    assert "timed out" in k.fails("delete", "cm", "a", "--timeout=1s")
    with k.start("delete", "cm", "a") as client:
        assert client.stdout.readline().startswith('configmap "a" deleted')
        assert client.poll() is None
        merge(s, configmaps(k.ns, "a"), {"metadata": {"finalizers": None}})
        assert client.wait(30) == 0


@with_both
def test_delete_and_what_depends(s, k):
    for cascade, left in (("background", False), ("foreground", False), ("orphan", True)):
        k.make(configmap("owner"))
        owner = k.get("owner")["metadata"]
        k.make(configmap("child", ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"], "blockOwnerDeletion": True}]))
        k("delete", "cm", "owner", f"--cascade={cascade}")
        assert s.request("GET", configmaps(k.ns, "owner"))[0] == 404
        if left:
            wait_until(lambda: "ownerReferences" not in k.get("child")["metadata"], what="the reference to go")
            s.ok("DELETE", configmaps(k.ns, "child"))
        else:
            wait_until(lambda: s.request("GET", configmaps(k.ns, "child"))[0] == 404, what="the child to go")


@with_both
def test_delete_a_namespace(s, k):
    k.make(configmap("a"))
    assert k("delete", "ns", k.ns) == f'namespace "{k.ns}" deleted\n'
    assert s.request("GET", f"/api/v1/namespaces/{k.ns}")[0] == 404
    assert "is forbidden: this namespace may not be deleted" in k.fails("delete", "ns", "default")


@with_both
def test_wait(s, k):
    pumps = Pumps(s)
    kind = f"pumps.{pumps.group}/p"
    s.ok("POST", pumps.path(ns=k.ns), pumps.body("p"))

    def ready(status, **more):
        merge(s, pumps.path("p", "status", ns=k.ns), {"status": {"conditions": [{"type": "Ready", "status": status, **more}]}})

    assert "timed out waiting for the condition" in k.fails("wait", kind, "--for=condition=Ready", "--timeout=1s")
    ready("False")
    assert k("wait", kind, "--for=condition=Ready=False") == f"pump.{pumps.group}/p condition met\n"
    with k.start("wait", kind, "--for=condition=Ready", "--timeout=30s") as client:
        ready("True")
        assert client.stdout.readline() == f"pump.{pumps.group}/p condition met\n" and client.wait(30) == 0
    k.make(configmap("a", finalizers=["example.org/hold"]))
    s.ok("DELETE", configmaps(k.ns, "a"))
    with k.start("wait", "cm/a", "--for=delete", "--timeout=30s", "-v=6") as client:
        while "watch=true" not in client.stdout.readline():
            assert client.poll() is None
        merge(s, configmaps(k.ns, "a"), {"metadata": {"finalizers": None}})
        assert client.wait(30) == 0 and "configmap/a condition met\n" in client.stdout.read()


@with_new
def test_wait_for_more(s, k):
    pumps = Pumps(s)
    kind = f"pumps.{pumps.group}/p"
    with k.start("wait", "cm/later", "--for=create", "--timeout=30s") as client:
        k.make(configmap("later"))
        assert client.stdout.readline() == "configmap/later condition met\n" and client.wait(30) == 0
    s.ok("POST", pumps.path(ns=k.ns), pumps.body("p"))
    with k.start("wait", kind, "--for=jsonpath={.status.phase}=Running", "--timeout=30s") as client:
        merge(s, pumps.path("p", "status", ns=k.ns), {"status": {"phase": "Running"}})
        assert client.stdout.readline() == f"pump.{pumps.group}/p condition met\n" and client.wait(30) == 0
    merge(s, pumps.path("p", "status", ns=k.ns), {"status": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}})
    merge(s, pumps.path("p", ns=k.ns), {"spec": {"cores": 7}})
    assert "timed out" in k.fails("wait", kind, "--for=condition=Ready", "--timeout=1s"), "a condition older than the spec does not count"
    assert k("wait", kind, "--for=jsonpath={.spec.cores}=7") == f"pump.{pumps.group}/p condition met\n"


@with_both
def test_raw_paths(s, k):
    assert k("get", "--raw", "/readyz") == "ok" and k("get", "--raw", "/livez?verbose").endswith("livez check passed\n")
    assert json.loads(k("get", "--raw", "/version"))["major"] == "1"
    assert json.loads(k("get", "--raw", configmaps(k.ns)))["kind"] == "ConfigMapList"
    assert "NotFound" in k.fails("get", "--raw", configmaps(k.ns, "nope"))
    made = k("create", "--raw", configmaps(k.ns), "-f", k.file(configmap("a", {"k": "1"})))
    assert json.loads(made)["data"] == {"k": "1"}


@with_new
def test_warnings_are_shown(s, k):
    pumps = Pumps(s, versions=[crd_version("v1"), crd_version("v1beta1", storage=False, deprecated=True, deprecationWarning="use v1, it is better")])
    s.ok("POST", pumps.path(ns=k.ns), pumps.body("p"))
    assert "Warning: use v1, it is better\n" in k.both_streams("get", f"pumps.v1beta1.{pumps.group}")
    out = k.both_streams("apply", "--validate=warn", "-f", "-", input=json.dumps({**configmap("a"), "nope": 1}))
    assert 'Warning: unknown field "nope"' in out and "configmap/a created" in out
