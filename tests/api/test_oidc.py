# SPDX-License-Identifier: Apache-2.0
"""Tokens of OpenID Connect issuers: real issuer processes, real signatures, forgeries, rotation, an issuer that is down."""
import base64
import concurrent.futures
import hashlib
import hmac
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import time

from issuer import Issuer, Key, accepted_soon, allow, base64url, bearer, whoami
from seth import KUBECTLS, TOP, Server, binary, wait_until


def scratch():
    return tempfile.TemporaryDirectory(prefix="seth-oidc-")


def indented(text, by):
    return "".join(" " * by + line + "\n" for line in text.splitlines())


def configuration(path, *issuers):
    """Writes an AuthenticationConfiguration for issuers of (issuer, prefix)."""
    text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n"
    for issuer, prefix in issuers:
        text += f"""- issuer:
    url: {issuer.url}
    audiences: [seth, other-client]
    audienceMatchPolicy: MatchAny
    certificateAuthority: |
{indented(issuer.ca.read_text(), 6)}
  claimMappings:
    username: {{claim: sub, prefix: '{prefix}'}}
    groups: {{claim: groups, prefix: '{prefix}'}}
"""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(path)
    return ("--authentication-config", str(path))


def flags(issuer, *more):
    return ("--oidc-issuer-url", issuer.url, "--oidc-client-id", "seth", "--oidc-ca-file", str(issuer.ca),
            "--oidc-username-prefix", "oidc:", *more)


def unauthorized(answer):
    status, _, body = answer
    return status == 401 and body["reason"] == "Unauthorized"


# ---- who they are

def test_two_issuers_with_names_of_their_own():
    with scratch() as d, Issuer(f"{d}/one") as one, Issuer(f"{d}/two") as two:
        rs, es = Key(d, "a", "RS256"), Key(d, "a", "ES256")
        one.publish(rs)
        two.publish(es)
        with Server(*configuration(pathlib.Path(d) / "config.yaml", (one, "one:"), (two, "two:"))) as s:
            token = rs.token(one.claims(groups=["dev", "ops"]))
            accepted_soon(s, token)
            assert whoami(s, token) == {"username": "one:jane", "groups": ["one:dev", "one:ops", "system:authenticated"]}
            mine = whoami(s, es.token(two.claims(audience=["x", "other-client"], groups="solo")))
            assert mine == {"username": "two:jane", "groups": ["two:solo", "system:authenticated"]}, mine
            status, _, body = bearer(s, token)
            assert status == 403 and 'User "one:jane" cannot list resource "namespaces"' in body["message"], body
            allow(s, "Group", "one:ops")
            wait_until(lambda: bearer(s, token)[0] == 200, what="the rights of the group")
            assert bearer(s, rs.token(one.claims(groups=["dev"])))[0] == 403
            assert bearer(s, es.token(two.claims(groups=["ops"])))[0] == 403
            kubectl_with_token(s, d, token)
            review(s, token)


def kubectl_with_token(s, d, token):
    """As a person uses it: a kubeconfig with nothing but the token."""
    path = pathlib.Path(d) / "oidc.kubeconfig"
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{s.port}", "certificate-authority": str(s.dir / "ca.pem")}}],
        "users": [{"name": "c", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]}))
    done = subprocess.run([str(KUBECTLS["new"]), "--kubeconfig", str(path), "--cache-dir", f"{d}/cache", "get", "namespaces", "-o", "name"],
                          capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": d})
    assert "namespace/default" in done.stdout, done
    done = subprocess.run([str(KUBECTLS["new"]), "--kubeconfig", str(path), "--cache-dir", f"{d}/cache", "auth", "whoami"],
                          capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": d})
    assert "one:jane" in done.stdout, done


def review(s, token):
    status = s.ok("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})["status"]
    assert status["authenticated"] and status["user"]["username"] == "one:jane", status
    status = s.ok("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token, "audiences": ["vault"]}})["status"]
    assert not status.get("authenticated"), status


def test_flags_as_kube_apiserver_has_them():
    with scratch() as d, Issuer(d) as issuer:
        rs, es = Key(d, "a", "RS256"), Key(d, "b", "ES256")
        issuer.publish(rs, es)
        options = ("--oidc-issuer-url", issuer.url, "--oidc-client-id", "seth", "--oidc-ca-file", str(issuer.ca),
                   "--oidc-groups-claim", "roles", "--oidc-required-claim", "hd=example.com")
        with Server(*options) as s:
            token = rs.token(issuer.claims(roles=["dev"], hd="example.com"))
            accepted_soon(s, token)
            assert whoami(s, token) == {"username": f"{issuer.url}#jane", "groups": ["dev", "system:authenticated"]}
            assert unauthorized(bearer(s, rs.token(issuer.claims(hd="example.org"))))
            assert unauthorized(bearer(s, rs.token(issuer.claims())))
            # Only RS256 unless it is said otherwise.
            assert unauthorized(bearer(s, es.token(issuer.claims(hd="example.com"))))


def test_the_examples_of_the_document():
    text = (TOP / "docs/SECURITY.md").read_text().split("## OIDC and token webhook")[1].split("\n## ")[0]
    command, document = re.search(r"```sh\n(.*?)```", text, re.S).group(1), re.search(r"```yaml\n(.*?)```", text, re.S).group(1)
    with scratch() as d, Issuer(d) as issuer:
        key = Key(d, "a")
        issuer.publish(key)
        token = key.token(issuer.claims(email="jane@example.com", hd="example.com", groups=["ops"]))
        words = shlex.split(command.replace("\\\n", " ").replace("https://issuer.example.com", issuer.url))
        assert words[:2] == ["seth", "server"], words
        with Server(*words[2:], "--oidc-ca-file", str(issuer.ca)) as s:
            accepted_soon(s, token)
            assert whoami(s, token) == {"username": "jane@example.com", "groups": ["oidc:ops", "system:authenticated"]}
        path = pathlib.Path(d) / "config.yaml"
        path.write_text(re.sub(r" *<PEM.*>\n", lambda _: indented(issuer.ca.read_text(), 6), document)
                        .replace("https://issuer.example.com", issuer.url))
        with Server("--authentication-config", str(path)) as s:
            accepted_soon(s, token)
            assert whoami(s, token) == {"username": "oidc:jane@example.com", "groups": ["oidc:ops", "system:authenticated"]}
            assert unauthorized(bearer(s, key.token(issuer.claims(email="jane@example.com"))))


# ---- forgeries

def hs256(secret, claims, kid):
    text = ".".join(base64url(json.dumps(p).encode()) for p in ({"alg": "HS256", "kid": kid}, claims))
    return f"{text}.{base64url(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"


def forgeries(one, two, key, other):
    """What must not be let in, by name."""
    claims, now = one.claims(), int(time.time())
    good = key.token(claims)
    head, body, signature = good.split(".")
    admin = base64url(json.dumps({**claims, "sub": "admin", "groups": ["system:masters"]}).encode())
    none = base64url(json.dumps({"alg": "none"}).encode())
    raw = bytearray(base64.urlsafe_b64decode(signature + "=="))
    raw[-1] ^= 1
    return {
        "expired": key.token(one.claims(lasts=-1)),
        "without an end": key.token({k: v for k, v in claims.items() if k != "exp"}),
        "not yet valid": key.token(one.claims(nbf=now + 3600)),
        "issued in the future": key.token({**claims, "iat": now + 3600}),
        "wrong audience": key.token(one.claims(audience="someone-else")),
        "no audience": key.token({k: v for k, v in claims.items() if k != "aud"}),
        "other issuer": key.token({**claims, "iss": "https://issuer.example"}),
        "almost this issuer": key.token({**claims, "iss": one.url + "/"}),
        "key of the other issuer": other.token(claims),
        "key of this issuer for the other": key.token(two.claims()),
        "alg none": f"{none}.{body}.",
        "alg none with the signature": f"{none}.{body}.{signature}",
        "stripped signature": f"{head}.{body}.",
        "flipped bit in the signature": f"{head}.{body}.{base64url(bytes(raw))}",
        "other claims": f"{head}.{admin}.{signature}",
        "alg of another kind of key": key.token(claims, alg="ES256"),
        "public key as secret": hs256(key.public_pem(), claims, key.kid),
        "key in the header": Forged(key).token(claims),
        "critical extension": key.token(claims, crit=["b64"], b64=False),
        "two dots too many": good + "..",
        "padding": f"{head}.{body}.{signature}==",
        "user that is no text": key.token({**claims, "sub": ["jane"]}),
        "unknown kid": key.token(claims, kid="unknown"),
    }


class Forged(Key):
    """Signs with a key of its own that it also names in the header."""

    def __init__(self, key):
        super().__init__(key.path.parent, key.kid, "RS256")

    def token(self, claims, **header):
        return super().token(claims, jwk=self.jwk(), jku="https://127.0.0.1:1/keys", **header)


def test_forgeries_are_refused():
    with scratch() as d, Issuer(f"{d}/one") as one, Issuer(f"{d}/two") as two:
        key, other = Key(d, "a", "RS256"), Key(d, "a", "ES256")
        one.publish(key)
        two.publish(other)
        with Server(*configuration(pathlib.Path(d) / "config.yaml", (one, ""), (two, "two:")), "--log-level", "debug") as s:
            accepted_soon(s, key.token(one.claims()))
            accepted_soon(s, other.token(two.claims()))
            cases = forgeries(one, two, key, other)
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                answers = dict(zip(cases, pool.map(lambda t: bearer(s, t), cases.values())))
            let_in = [name for name, answer in answers.items() if not unauthorized(answer)]
            assert not let_in, let_in
            assert answers["expired"][2]["message"] == "Unauthorized"
            assert "oidc: token is expired" in s.read_log() and "got [\\\"someone-else\\\"]" in s.read_log()
            assert cases["expired"].split(".")[1] not in s.read_log()
            why = s.ok("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": cases["expired"]}})["status"]["error"]
            assert "oidc: verify token: oidc: token is expired" in why, why
            assert bearer(s, key.token(one.claims()))[0] == 403


# ---- keys that come and go

def test_keys_rotate_under_load():
    with scratch() as d, Issuer(d) as issuer:
        keys = [Key(d, "first", "RS256"), Key(d, "second", "ES256"), Key(d, "third", "RS256")]
        issuer.publish(keys[0])
        with Server(*flags(issuer, "--oidc-signing-algs", "RS256,ES256")) as s:
            allow(s, "User", "oidc:jane")
            wait_until(lambda: bearer(s, keys[0].token(issuer.claims()))[0] == 200, what="the first key")
            signing, done, lock = [keys[0]], threading.Event(), threading.Lock()
            answers = []  # (kid, status)

            def visit(number):
                n = 0
                while not done.is_set():
                    key, n = signing[0], n + 1
                    status = bearer(s, key.token(issuer.claims(jti=f"{number}-{n}")))[0]
                    with lock:
                        answers.append((key.kid, status))

            def used(key, n):
                return sum(kid == key.kid for kid, _ in list(answers)) >= n

            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                visitors = [pool.submit(visit, i) for i in range(4)]
                try:
                    for before, key in zip(keys, keys[1:]):
                        wait_until(lambda: used(before, 20), 60, "requests with the old key")
                        issuer.publish(before, key)
                        signing[0] = key
                        wait_until(lambda: used(key, 20), 60, "requests with the new key")
                        issuer.publish(key)
                    kubectl_get(s, d, keys[-1].token(issuer.claims()))
                finally:
                    done.set()
                for v in visitors:
                    v.result()
            refused = [a for a in answers if a[1] != 200]
            assert not refused, (len(refused), len(answers), refused[:5])
            assert {kid for kid, _ in answers} == {"first", "second", "third"}
            assert issuer.n_fetches() <= 4, issuer.n_fetches()
            # A key that was taken back dies with the next look at the issuer.
            assert unauthorized(bearer(s, Key(d, "unknown").token(issuer.claims())))
            wait_until(lambda: unauthorized(bearer(s, keys[0].token(issuer.claims(jti=os.urandom(4).hex())))), what="the old key to die")


def kubectl_get(s, d, token):
    done = subprocess.run([str(KUBECTLS["new"]), "--server", f"https://127.0.0.1:{s.port}", "--certificate-authority", str(s.dir / "ca.pem"),
                           "--token", token, "--cache-dir", f"{d}/cache", "get", "namespaces"],
                          capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": d, "KUBECONFIG": ""})
    assert done.returncode == 0, done


def test_an_issuer_that_is_down():
    with scratch() as d, Issuer(d) as issuer:
        key = Key(d, "a")
        issuer.publish(key)
        issuer.stop()
        with Server(*flags(issuer)) as s:  # ready without it
            wait_until(lambda: "cannot fetch keys of OIDC issuer" in s.read_log(), what="the warning")
            assert unauthorized(bearer(s, key.token(issuer.claims())))
            assert s.request("GET", "/api/v1/namespaces")[0] == 200
            issuer.start()
            accepted_soon(s, key.token(issuer.claims()))
            issuer.stop()
            # Fresh tokens of a known key need no issuer.
            for i in range(3):
                assert bearer(s, key.token(issuer.claims(jti=str(i))))[0] == 403
            assert unauthorized(bearer(s, Key(d, "new").token(issuer.claims())))
            issuer.start()


def test_a_flood_of_unknown_keys_does_not_reach_the_issuer():
    with scratch() as d, Issuer(d) as issuer:
        key = Key(d, "a")
        issuer.publish(key)
        with Server(*flags(issuer)) as s:
            accepted_soon(s, key.token(issuer.claims()))
            begin, before = time.monotonic(), issuer.n_fetches()
            stranger = Key(d, "x")
            tokens = [stranger.token(issuer.claims(), kid=f"unknown-{i}") for i in range(60)]
            good = [key.token(issuer.claims(jti=str(i))) for i in range(10)]
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                bad = [pool.submit(bearer, s, t) for t in tokens]
                # Whoever has a good token does not notice.
                assert [bearer(s, t)[0] for t in good] == [403] * len(good)
                assert all(unauthorized(b.result()) for b in bad)
            allowed = 3 + (time.monotonic() - begin) / 5 + 1
            assert issuer.n_fetches() - before <= allowed, (issuer.n_fetches(), before, allowed)


# ---- configuration

def test_the_configuration_is_read_again():
    with scratch() as d, Issuer(f"{d}/one") as one, Issuer(f"{d}/two") as two:
        a, b = Key(d, "a"), Key(d, "b")
        one.publish(a)
        two.publish(b)
        path = pathlib.Path(d) / "config.yaml"
        with Server(*configuration(path, (one, "old:"))) as s:
            accepted_soon(s, a.token(one.claims()))
            assert whoami(s, a.token(one.claims()))["username"] == "old:jane"
            assert unauthorized(bearer(s, b.token(two.claims())))
            token = a.token(one.claims())
            assert whoami(s, token)["username"] == "old:jane"
            configuration(path, (one, "new:"), (two, "two:"))
            s.process.send_signal(signal.SIGHUP)
            # Also those who are remembered.
            wait_until(lambda: whoami(s, token)["username"] == "new:jane", what="the new rules")
            accepted_soon(s, b.token(two.claims()))
            path.write_text("kind: Nothing\n")
            s.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "keeping what was read before" in s.read_log(), what="the complaint")
            assert whoami(s, a.token(one.claims()))["username"] == "new:jane"


def refused_start(*options):
    with tempfile.TemporaryDirectory(prefix="seth-test-") as data:
        done = subprocess.run([binary(), "server", "--data-dir", data, "--secure-port", "0", *options],
                              capture_output=True, text=True, timeout=60)
    assert done.returncode != 0, done
    assert "Sanitizer" not in done.stderr, done.stderr[-4000:]
    return done.stderr


def test_what_cannot_be_done_is_said_at_start():
    with scratch() as d:
        path = pathlib.Path(d) / "config.yaml"
        path.write_text("""apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: "https://issuer.example", audiences: [seth]}
  claimMappings:
    username: {expression: "claims.sub"}
""")
        said = refused_start("--authentication-config", str(path))
        assert f"{path}: jwt[0].claimMappings.username.expression: CEL expressions are not supported" in said, said
        said = refused_start("--oidc-issuer-url", "http://issuer.example", "--oidc-client-id", "seth")
        assert "URL scheme must be https" in said, said
        said = refused_start("--oidc-issuer-url", "https://issuer.example")
        assert "--oidc-issuer-url and --oidc-client-id must be specified together" in said, said
        said = refused_start("--authentication-config", f"{d}/absent.yaml")
        assert "absent.yaml: cannot read it: No such file or directory" in said, said
        said = refused_start("--oidc-issuer-url", "https://kubernetes.default.svc", "--oidc-client-id", "seth")
        assert "ServiceAccount tokens" in said, said
