# SPDX-License-Identifier: Apache-2.0
"""What an operator does: kubeconfigs for people, files that change under a running server, certificates that renew, systemd, packages."""
import configparser
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import tempfile

from seth import KUBECTLS, TOP, Server, binary, wait_until

POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: {level}\n"


def seth(*arguments, check=True, **options):
    done = subprocess.run([binary(), *map(str, arguments)], capture_output=True, text=True, timeout=60, **options)
    assert not check or done.returncode == 0, done.stderr
    return done


def kubectl(kubeconfig, *arguments, check=True):
    done = subprocess.run([str(KUBECTLS["new"]), "--kubeconfig", str(kubeconfig), *arguments], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "HOME": str(pathlib.Path(kubeconfig).parent)})
    assert not check or done.returncode == 0, done.stderr
    return done


def whoami(kubeconfig, *arguments):
    return json.loads(kubectl(kubeconfig, "auth", "whoami", "-o", "json", *arguments).stdout)["status"]["userInfo"]


def whoami_of(s, *options):
    """The groups of the user that `seth kubeconfig` makes with these options."""
    path = s.dir / "whoami.kubeconfig"
    seth("kubeconfig", "--user", "gus", "--output", path, *options)
    return whoami(path)["groups"]


def with_token(s, token, path="/api"):
    connection = s.connect(with_certificate=False)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status
    finally:
        connection.close()


# ---- kubeconfigs --------------------------------------------------------------------------


def test_kubeconfig_of_a_user_with_groups_and_namespace(s):
    ns, path = s.namespace(), s.dir / "ann.kubeconfig"
    seth("kubeconfig", "--data-dir", s.dir, "--user", "ann", "--group", "dev,ops", "--namespace", ns, "--output", path)
    assert path.stat().st_mode & 0o777 == 0o600
    user = whoami(path)
    assert user["username"] == "ann" and user["groups"] == ["dev", "ops", "system:authenticated"], user
    refused = kubectl(path, "get", "configmaps", check=False)
    assert f'User "ann" cannot list resource "configmaps" in API group "" in the namespace "{ns}"' in refused.stderr, refused.stderr
    s.kubectl("create", "rolebinding", "dev", "--clusterrole=edit", "--group=dev", "-n", ns)
    kubectl(path, "create", "configmap", "mine")
    assert "mine" in kubectl(path, "get", "configmaps").stdout


def test_kubeconfig_without_group_gives_no_rights(s):
    path = s.dir / "bob.kubeconfig"
    seth("kubeconfig", "--data-dir", s.dir, "--user", "bob", "--output", path)
    assert whoami(path)["groups"] == ["system:authenticated"], "only the administrator's own name is an administrator unasked"


def test_kubeconfig_merges_and_keeps_what_is_there(s):
    path = s.dir / "merged.kubeconfig"
    path.write_text("apiVersion: v1\nkind: Config\npreferences: {colors: true}\nclusters:\n- name: other\n  cluster: {server: https://other.example.org}\n"
                    "users:\n- name: me\n  user: {token: secret}\ncontexts:\n- name: other\n  context: {cluster: other, user: me}\ncurrent-context: other\n")
    for user in ("carol", "dave"):  # the second time its entries are replaced
        seth("kubeconfig", "--data-dir", s.dir, "--user", user, "--context-name", "lab", "--merge", path)
    view = json.loads(kubectl(path, "config", "view", "--raw", "-o", "json").stdout)
    assert {c["name"] for c in view["contexts"]} == {"other", "lab"} and view["current-context"] == "lab"
    users = {u["name"]: u["user"] for u in view["users"]}
    assert set(users) == {"me", "carol", "dave"} and users["me"] == {"token": "secret"}
    assert view["preferences"] == {"colors": True}
    assert whoami(path)["username"] == "dave"
    path.write_text("just text")
    refused = seth("kubeconfig", "--data-dir", s.dir, "--merge", path, check=False)
    assert refused.returncode and "is no kubeconfig" in refused.stderr and path.read_text() == "just text", refused.stderr


def test_kubeconfig_expires(s):
    path = s.dir / "short.kubeconfig"
    seth("kubeconfig", "--data-dir", s.dir, "--user", "erin", "--expiry", "1s", "--output", path)
    wait_until(lambda: "Unauthorized" in kubectl(path, "auth", "whoami", check=False).stderr or
               "certificate" in kubectl(path, "auth", "whoami", check=False).stderr, what="the certificate to be refused")
    for wrong in ("0d", "5", "-1h", "11000d", "1y", ""):
        done = seth("kubeconfig", "--data-dir", s.dir, "--expiry", wrong, check=False)
        assert done.returncode and "as in 90m, 12h or 30d" in done.stderr, (wrong, done.stderr)


def test_kubeconfig_of_a_token_and_of_oidc(s):
    path = s.dir / "token.kubeconfig"
    s.ok("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "ci"}})
    token = s.kubectl("create", "token", "ci").strip()
    seth("kubeconfig", "--data-dir", s.dir, "--user", "ci", "--token", token, "--output", path)
    assert whoami(path)["username"] == "system:serviceaccount:default:ci"
    text = seth("kubeconfig", "--data-dir", s.dir, "--user", "me", "--oidc-issuer-url", "https://login.example.org", "--oidc-client-id", "seth").stdout
    assert "client-certificate-data" not in text and "- --oidc-issuer-url=https://login.example.org" in text and "client.authentication.k8s.io/v1" in text, text
    both = seth("kubeconfig", "--data-dir", s.dir, "--token", "x", "--oidc-issuer-url", "https://y", "--oidc-client-id", "z", check=False)
    assert both.returncode and "--token: cannot go with --oidc-issuer-url" in both.stderr


def test_commands_name_a_wrong_data_directory():
    with tempfile.TemporaryDirectory() as d:
        for command in ("kubeconfig", "health"):
            done = seth(command, "--data-dir", d, check=False)
            assert done.returncode and "no server has been started with this --data-dir" in done.stderr, done.stderr
        assert os.listdir(d) == []


def test_one_file_of_options_serves_all_commands(s):
    path = s.dir / "seth.yaml"
    path.write_text(f"data-dir: {s.dir}\nbind-address: 127.0.0.1\ngroup: [from-file]\n")
    seth("backup", "--config", path, s.dir / "copy.db")
    assert whoami_of(s, "--config", path) == ["from-file", "system:authenticated"]
    assert whoami_of(s, "--config", path, "--group", "one", "--group", "two") == ["one", "two", "system:authenticated"], "a flag beats the file"
    path.write_text("data-dir: x\nno-such-option: 1\n")
    refused = seth("backup", "--config", path, s.dir / "copy2.db", check=False)
    assert refused.returncode and "unknown option 'no-such-option'" in refused.stderr


# ---- files that change --------------------------------------------------------------------


def test_files_are_read_again_when_they_change():
    with tempfile.TemporaryDirectory() as d:
        tokens, policy, log = (pathlib.Path(d) / n for n in ("tokens.csv", "policy.yaml", "audit.log"))
        tokens.write_text("first-token,ann,1\n")
        policy.write_text(POLICY.format(level="None"))
        with Server("--token-auth-file", str(tokens), "--audit-policy-file", str(policy), "--audit-log-path", str(log)) as s:
            assert with_token(s, "first-token") == 200 and with_token(s, "other-token") == 401
            tokens.write_text("other-token,bob,2\n")  # in place
            wait_until(lambda: with_token(s, "other-token") == 200, what="the changed file to be read")
            assert with_token(s, "first-token") == 401
            fresh = tokens.with_suffix(".new")
            fresh.write_text("third-token,eve,3\n")
            fresh.rename(tokens)  # by rename
            wait_until(lambda: with_token(s, "third-token") == 200, what="the renamed file to be read")
            tokens.write_text("only one field\n")  # a mistake keeps what was
            wait_until(lambda: "keeping what was read before" in s.read_log(), what="the mistake to be reported")
            assert with_token(s, "third-token") == 200 and str(tokens) in s.read_log()
            assert not log.exists() or not log.read_text()
            policy.write_text(POLICY.format(level="Metadata"))
            wait_until(lambda: (s.request("GET", "/version"), log.exists() and "/version" in log.read_text())[1], what="the new policy to hold")


def test_files_behind_the_links_of_mounted_secrets():
    with tempfile.TemporaryDirectory() as d:
        top = pathlib.Path(d)

        def publish(name, text):  # as the kubelet does: a new directory, then the link ..data swapped
            (top / name).mkdir()
            (top / name / "tokens.csv").write_text(text)
            (top / "..tmp").symlink_to(name)
            (top / "..tmp").rename(top / "..data")
        publish("one", "first-token,ann,1\n")
        (top / "tokens.csv").symlink_to("..data/tokens.csv")
        with Server("--token-auth-file", str(top / "tokens.csv")) as s:
            assert with_token(s, "first-token") == 200
            publish("two", "second-token,ann,1\n")
            wait_until(lambda: with_token(s, "second-token") == 200, what="the swapped file to be read")


def test_certificate_renews_itself():
    def serial(s):
        with socket.create_connection(("127.0.0.1", s.port)) as raw, s.context().wrap_socket(raw, server_hostname="localhost") as tls:
            return ssl.DER_cert_to_PEM_cert(tls.getpeercert(True))
    with Server("--tls-cert-lifetime-seconds", "6") as s:
        first = serial(s)
        old = s.connect()
        old.request("GET", "/readyz")
        assert old.getresponse().read() == b"ok"
        wait_until(lambda: serial(s) != first, what="a new certificate")
        old.request("GET", "/readyz")  # the connection from before lives on
        assert old.getresponse().read() == b"ok"


# ---- systemd ------------------------------------------------------------------------------


def test_tells_systemd():
    with tempfile.TemporaryDirectory() as d, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        path = f"{d}/notify"
        notified.bind(path)
        notified.settimeout(30)
        with Server(environment={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"}) as s:
            assert notified.recv(100) == b"READY=1"
            assert notified.recv(100) == b"WATCHDOG=1" == notified.recv(100)
            s.process.send_signal(1)
            heard = []
            while b"READY=1" not in heard:
                heard.append(notified.recv(100))
            assert any(re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=\d+", h) for h in heard), heard
            s.stop()
            while (last := notified.recv(100)) == b"WATCHDOG=1":
                pass
            assert last == b"STOPPING=1"


def test_unit_file_is_sound():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(TOP / "packaging/seth.service")
    service = unit["Service"]
    for key, value in {"Type": "notify", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "DynamicUser": "yes", "StateDirectory": "seth",
                       "Restart": "on-failure"}.items():
        assert service[key] == value, key
    assert int(service["LimitNOFILE"]) >= 100_000
    program, *words = service["ExecStart"].split()
    assert program == "/usr/bin/seth" and words[0] == "server"
    options = seth("completion", "server").stdout.split()
    assert all(w in options for w in words if w.startswith("--"))
    for line in (TOP / "packaging/seth.yaml").read_text().splitlines():
        assert not line or line.startswith("#") or f"--{line.split(':')[0]}" in options, line


def test_unit_file_of_the_agent_is_sound():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(TOP / "packaging/seth-agent.service")
    service = unit["Service"]
    for key, value in {"Type": "notify", "KillMode": "process", "Delegate": "yes", "Restart": "always", "StateDirectory": "seth-agent"}.items():
        assert service[key] == value, key
    program, *words = service["ExecStart"].split()
    assert program == "/usr/bin/seth-agent" and words[0] == "run"
    agent = pathlib.Path(binary()).resolve().parents[1] / "agent/program/seth-agent"
    options = subprocess.run([agent, "completion", "run"], check=True, capture_output=True, text=True).stdout.split()
    assert all(w in options for w in words if w.startswith("--"))
    for line in (TOP / "packaging/seth-agent.yaml").read_text().splitlines():
        assert not line or line.startswith("#") or f"--{line.split(':')[0]}" in options, line


# ---- help and packages --------------------------------------------------------------------


def test_health_asks_the_server(s):
    assert seth("health", "--data-dir", s.dir).stdout == "ok\n"
    with Server() as other:
        directory = other.dir
        other.stop()
        gone = seth("health", "--data-dir", directory, check=False)
        assert gone.returncode == 1 and gone.stderr.startswith("seth: "), gone


def test_completion_and_manual_know_everything():
    commands = seth("completion").stdout.split()
    manual = seth("man").stdout
    assert {"server", "kubeconfig", "backup", "restore", "rotate-key", "health", "version"} <= set(commands)
    for command in commands:
        offered = seth("completion", command).stdout.split()
        shown = re.findall(r"^  (--[\w-]+)", seth(command, "--help").stdout, re.M)
        assert offered == shown and len(offered) > 1, command
        for option in offered[:-1]:
            assert option.replace("-", "\\-") in manual, option
    assert not re.search(r"^\.(?!TH|SH|SS|TP|B|BI|BR|I) ", manual, re.M)
    script = f'source {TOP}/packaging/seth.bash-completion; PATH={pathlib.Path(binary()).parent}:$PATH; ' \
             'COMP_WORDS=(seth kubeconfig --us); COMP_CWORD=2; _seth; echo "${COMPREPLY[@]}"; COMP_WORDS=(seth ba); COMP_CWORD=1; _seth; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30)
    assert done.stdout.split() == ["--user", "backup"], (done.stdout, done.stderr)


def test_install_puts_everything_in_its_place():
    with tempfile.TemporaryDirectory() as d:
        text = (TOP / "Makefile").read_text()
        body = re.search(r"^install: build\n((?:\t.*\n)+)", text, re.M).group(1)
        for line in body.splitlines():
            line = line.strip().lstrip("@").replace("$(DESTDIR)", d).replace("$(PREFIX)", "/usr").replace(
                "build/release/seth-agent", "build/release/agent/program/seth-agent").replace("build/release/seth ", "build/release/server/seth ").replace(
                "build/release", str(pathlib.Path(binary()).resolve().parents[1]))
            subprocess.run(["sh", "-c", line], cwd=TOP, check=True, capture_output=True)
        for path in ("usr/bin/seth", "usr/share/man/man8/seth.8", "usr/share/bash-completion/completions/seth", "lib/systemd/system/seth.service", "etc/seth/seth.yaml",
                     "usr/bin/seth-agent", "usr/bin/seth-fleet", "usr/share/man/man8/seth-agent.8", "usr/share/bash-completion/completions/seth-agent",
                     "lib/systemd/system/seth-agent.service", "etc/seth-agent/seth-agent.yaml"):
            assert (pathlib.Path(d) / path).stat().st_size > 100, path
        assert "ExecStart=/usr/bin/seth-agent run" in (pathlib.Path(d) / "lib/systemd/system/seth-agent.service").read_text()
        assert "ExecStart=/usr/bin/seth server" in (pathlib.Path(d) / "lib/systemd/system/seth.service").read_text()


def test_container_file_refers_to_what_exists():
    text = (TOP / "packaging/Dockerfile").read_text()
    stages = re.findall(r"^FROM \S+(?: AS (\w+))?", text, re.M)
    assert stages == ["build", ""], stages
    for source in re.findall(r"^COPY --from=(\w+)", text, re.M):
        assert source in stages
    assert re.search(r"^USER 6443$", text, re.M) and "HEALTHCHECK" in text and '["/usr/bin/seth", "health"]' in text
    packages = subprocess.run([str(TOP / "tools/runtime-packages"), binary()], check=True, capture_output=True, text=True).stdout.split()
    assert {"libssl3", "libsqlite3-0", "libuv1", "libnghttp2-14"} <= set(packages), packages
    command = json.loads(re.search(r"^CMD (\[.*\])$", text, re.M).group(1))
    assert command[0] == "server" and command[1] in seth("completion", "server").stdout.split()
