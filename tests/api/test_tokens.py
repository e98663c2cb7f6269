# SPDX-License-Identifier: Apache-2.0
"""Bearer tokens: of ServiceAccounts (bound, legacy), of the token file, for bootstrapping; and forgeries of them."""
import base64
import hashlib
import hmac
import json
import pathlib
import signal
import subprocess
import time

from bystander import bystander
from seth import Server, unique, wait_until

ISSUER = "https://kubernetes.default.svc"
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


def encode(data):
    data = data if isinstance(data, bytes) else json.dumps(data, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def claims_of(token):
    return json.loads(decode(token.split(".")[1]))


def raw_signature(der):
    """ECDSA-Sig-Value as r||s."""
    halves, at = [], 2
    for _ in range(2):
        n = der[at + 1]
        halves.append(int.from_bytes(der[at + 2:at + 2 + n], "big").to_bytes(32, "big"))
        at += 2 + n
    return b"".join(halves)


def sign(key, header, claims):
    """A token as whoever holds this key file could make it."""
    text = f"{encode(header)}.{encode(claims)}"
    der = subprocess.run(["openssl", "dgst", "-sha256", "-sign", str(key)], input=text.encode(), capture_output=True, check=True).stdout
    return f"{text}.{encode(raw_signature(der))}"


def new_key(path):
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(path)], check=True)
    return path


def with_token(s, token, method="GET", path="/api", body=None):
    """One request with nothing but the token; (status, answer)."""
    connection = s.connect(with_certificate=False)
    try:
        data = json.dumps(body) if body is not None else None
        connection.request(method, path, data, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def whoami(s, token):
    """The user of the token, or None when it is nobody's."""
    status, answer = with_token(s, token, "POST", WHOAMI, {})
    assert status in (201, 401), (status, answer)
    return answer["status"]["userInfo"] if status == 201 else None


def is_good(s, token):
    """As whoami() says it, asked by the administrator: failed logins are answered with delay."""
    return s.ok("POST", REVIEWS, {"spec": {"token": token}})["status"].get("authenticated", False)


def account(s, name="robot"):
    """A ServiceAccount in a namespace of its own: (namespace, path, object)."""
    ns = s.namespace()
    made = s.ok("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": name}})
    return ns, f"/api/v1/namespaces/{ns}/serviceaccounts/{name}", made


def request_token(s, path, **spec):
    return s.ok("POST", f"{path}/token", {"spec": spec})["status"]["token"]


def token_secret(s, ns, name, account_name="robot"):
    path = f"/api/v1/namespaces/{ns}/secrets"
    s.ok("POST", path, {"metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": account_name}},
                        "type": "kubernetes.io/service-account-token"})
    return wait_until(lambda: (lambda o: o if o.get("data", {}).get("token") else None)(s.ok("GET", f"{path}/{name}")),
                      what="the token")


# ---- ServiceAccounts ----------------------------------------------------------------------------


def test_kubectl_makes_and_uses_a_token(s):
    ns, _, made = account(s)
    token = s.kubectl("-n", ns, "create", "token", "robot", "--duration", "20m").strip()
    claims = claims_of(token)
    assert claims["exp"] - claims["iat"] == 1200 and claims["aud"] == [ISSUER] and claims["iss"] == ISSUER
    assert claims["kubernetes.io"] == {"namespace": ns, "serviceaccount": {"name": "robot", "uid": made["metadata"]["uid"]}}
    s.kubectl("-n", ns, "create", "rolebinding", "viewer", "--clusterrole=view", f"--serviceaccount={ns}:robot")
    login = ["--kubeconfig", "/dev/null", "--server", f"https://127.0.0.1:{s.port}", "--certificate-authority", str(s.dir / "ca.pem"),
             "--token", token]
    assert f"system:serviceaccount:{ns}:robot" in s.kubectl(*login, "auth", "whoami")
    s.kubectl(*login, "-n", ns, "get", "configmaps")
    refused = s.kubectl(*login, "-n", ns, "get", "secrets", check=False)
    assert refused.returncode and f'User "system:serviceaccount:{ns}:robot" cannot list resource "secrets"' in refused.stderr


def test_the_user_of_a_token(s):
    ns, path, made = account(s)
    token = request_token(s, path)
    user = whoami(s, token)
    assert user == {"username": f"system:serviceaccount:{ns}:robot", "uid": made["metadata"]["uid"],
                    "groups": ["system:serviceaccounts", f"system:serviceaccounts:{ns}", "system:authenticated"],
                    "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={claims_of(token)['jti']}"]}}


def test_a_token_for_others_opens_nothing_here(s):
    _, path, _ = account(s)
    token = request_token(s, path, audiences=["vault"])
    assert not is_good(s, token)
    status = s.ok("POST", REVIEWS, {"spec": {"token": token, "audiences": ["vault", "x"]}})["status"]
    assert status["authenticated"] and status["audiences"] == ["vault"]
    status = s.ok("POST", REVIEWS, {"spec": {"token": token}})["status"]
    assert "authenticated" not in status and '["vault"]' in status["error"]


def test_a_token_ends_with_its_account(s):
    _, path, _ = account(s)
    token = request_token(s, path)
    assert whoami(s, token)
    s.ok("DELETE", path)
    assert whoami(s, token) is None  # at once, although it was verified a moment ago
    s.ok("POST", path.rsplit("/", 1)[0], {"metadata": {"name": "robot"}})
    assert not is_good(s, token)  # a namesake is another


def test_a_token_ends_with_the_secret_it_is_bound_to(s):
    ns, path, _ = account(s)
    secrets = f"/api/v1/namespaces/{ns}/secrets"
    made = s.ok("POST", secrets, {"metadata": {"name": "anchor"}})
    reference = {"kind": "Secret", "apiVersion": "v1", "name": "anchor"}
    status, answer = s.request("POST", f"{path}/token", {"spec": {"boundObjectRef": {**reference, "uid": "another"}}})
    assert status == 409 and "does not match the UID in record" in answer["message"], answer
    token = request_token(s, path, boundObjectRef={**reference, "uid": made["metadata"]["uid"]})
    assert claims_of(token)["kubernetes.io"]["secret"] == {"name": "anchor", "uid": made["metadata"]["uid"]}
    assert whoami(s, token)
    s.ok("DELETE", f"{secrets}/anchor")
    assert not is_good(s, token)
    s.ok("POST", secrets, {"metadata": {"name": "anchor"}})
    assert not is_good(s, token)


def test_forged_tokens(s):
    ns, path, _ = account(s)
    good = request_token(s, path)
    key = s.dir / "pki/service-account-key.pem"
    header, claims = json.loads(decode(good.split(".")[0])), claims_of(good)
    public = subprocess.run(["openssl", "ec", "-in", str(key), "-pubout"], capture_output=True, check=True).stdout
    now = int(time.time())

    def hs256(secret):
        text = f"{encode({'alg': 'HS256', 'kid': header['kid']})}.{encode(claims)}"
        return f"{text}.{encode(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"

    assert whoami(s, sign(key, header, claims)), "the key signs what is believed"
    text, signature = good.rsplit(".", 1)
    forged = {
        "expired": sign(key, header, {**claims, "exp": now - 1}),
        "not yet": sign(key, header, {**claims, "nbf": now + 3600}),
        "issued in the future": sign(key, header, {**claims, "iat": now + 3600}),
        "other audience": sign(key, header, {**claims, "aud": ["other"]}),
        "other issuer": sign(key, header, {**claims, "iss": "https://elsewhere.example.org"}),
        "no expiry": sign(key, header, {k: v for k, v in claims.items() if k != "exp"}),
        "alg none": f"{encode({'alg': 'none'})}.{encode(claims)}.",
        "alg none, kept signature": f"{encode({'alg': 'none'})}.{encode(claims)}.{signature}",
        "HS256 with the public key": hs256(public),
        "HS256 with nothing": hs256(b""),
        "another algorithm's name": sign(key, {**header, "alg": "RS256"}, claims),
        "unknown key id": sign(key, {**header, "kid": "unknown"}, claims),
        "unknown demand": sign(key, {**header, "crit": ["exp"]}, claims),
        "stripped signature": f"{text}.",
        "no signature": text,
        "another's key": sign(new_key(s.dir / f"{unique()}.pem"), header, claims),
        "another account": sign(key, header, {**claims, "sub": f"system:serviceaccount:{ns}:default"}),
        "changed payload": f"{good.split('.')[0]}.{encode({**claims, 'sub': 'x'})}.{signature}",
        "padded": f"{good}==",
        "other spelling of the last bits": good[:-1] + chr(ord(good[-1]) + 1),
        "too large": good + "A" * 20000,
    }
    with bystander(s):  # somebody else is served as ever
        for name, token in forged.items():
            assert not is_good(s, token), name
        assert whoami(s, forged["alg none"]) is None
        assert whoami(s, good), "the good one is good still"
        s.ok("DELETE", path)
        assert not is_good(s, good), "replayed after it was revoked"


def test_tokens_that_are_none(s):
    for value in ("Bearer", "Bearer ", "Bearer x y", "bearer garbage", "Basic YTpi"):
        connection = s.connect(with_certificate=False)
        connection.request("GET", "/api", None, {"Authorization": value})
        status = connection.getresponse().status
        connection.close()
        assert status in (401, 403), (value, status)


def test_longest_life_is_the_operators():
    with Server("--service-account-max-token-expiration", "3600") as s:
        _, path, _ = account(s)
        status, headers, data = s.exchange("POST", f"{path}/token", {"spec": {"expirationSeconds": 7200}})
        answer = json.loads(data)
        assert status == 201 and answer["spec"]["expirationSeconds"] == 3600
        assert "requested expiration of 7200 seconds shortened to 3600 seconds" in headers["Warning"]
        claims = claims_of(answer["status"]["token"])
        assert claims["exp"] - claims["iat"] == 3600


def test_keys_are_rotated():
    with Server() as s:
        _, path, _ = account(s)
        old = request_token(s, path)
        s.stop()
        key = new_key(s.dir / "next.pem")
        s.options = ("--service-account-signing-key-file", str(key), "--service-account-key-file",
                     str(s.dir / "pki/service-account-key.pem"))
        s.start()
        fresh = request_token(s, path)
        assert whoami(s, old) and whoami(s, fresh)
        assert len(s.ok("GET", "/openid/v1/jwks")["keys"]) == 2
        s.stop()
        s.options = ("--service-account-signing-key-file", str(key))
        s.start()
        assert not is_good(s, old) and whoami(s, fresh)


def test_rsa_key_of_the_operator():
    with Server() as s:
        s.stop()
        key = s.dir / "rsa.pem"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        s.options = ("--service-account-signing-key-file", str(key), "--service-account-issuer", "https://a.example.org",
                     "--service-account-jwks-uri", "https://keys.example.org/jwks")
        s.start()
        _, path, _ = account(s)
        token = request_token(s, path)
        assert json.loads(decode(token.split(".")[0]))["alg"] == "RS256" and claims_of(token)["iss"] == "https://a.example.org"
        assert whoami(s, token)
        keys = s.ok("GET", "/openid/v1/jwks")["keys"]
        assert s.ok("GET", "/.well-known/openid-configuration")["jwks_uri"] == "https://keys.example.org/jwks"
        assert [k["kty"] for k in keys] == ["RSA"] and keys[0]["alg"] == "RS256" and keys[0]["e"] == "AQAB"


def test_issuer_discovery(s):
    status, headers, data = s.exchange("GET", "/.well-known/openid-configuration")
    document = json.loads(data)
    assert status == 200 and headers["Content-Type"] == "application/json" and document["issuer"] == ISSUER
    assert document["jwks_uri"].endswith("/openid/v1/jwks") and document["id_token_signing_alg_values_supported"] == ["ES256"]
    status, headers, data = s.exchange("GET", "/openid/v1/jwks")
    assert status == 200 and headers["Content-Type"] == "application/jwk-set+json"
    key = json.loads(data)["keys"][0]
    assert key["kty"] == "EC" and key["crv"] == "P-256" and key["use"] == "sig" and "d" not in key
    _, path, _ = account(s)
    assert json.loads(decode(request_token(s, path).split(".")[0])) == {"alg": "ES256", "kid": key["kid"]}
    assert s.request("POST", "/openid/v1/jwks", {})[0] == 405


# ---- their Secrets ------------------------------------------------------------------------------


def test_a_token_secret_is_filled(s):
    ns, _, made = account(s)
    secret = token_secret(s, ns, "robot-token")
    data = {k: base64.b64decode(v) for k, v in secret["data"].items()}
    assert data["namespace"].decode() == ns and data["ca.crt"] == (s.dir / "ca.pem").read_bytes()
    assert secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == made["metadata"]["uid"]
    token = data["token"].decode()
    user = whoami(s, token)
    assert user["username"] == f"system:serviceaccount:{ns}:robot" and "extra" not in user
    assert claims_of(token)["kubernetes.io/serviceaccount/secret.name"] == "robot-token" and "exp" not in claims_of(token)


def test_a_legacy_token_ends_with_its_secret(s):
    ns, _, _ = account(s)
    path = f"/api/v1/namespaces/{ns}/secrets/robot-token"
    token = base64.b64decode(token_secret(s, ns, "robot-token")["data"]["token"]).decode()
    assert whoami(s, token)
    s.kubectl("-n", ns, "label", "secret", "robot-token", "a=b")
    assert whoami(s, token)
    s.ok("DELETE", path)
    assert not is_good(s, token)
    again = base64.b64decode(token_secret(s, ns, "robot-token")["data"]["token"]).decode()
    s.request("PATCH", path, json.dumps({"data": {"token": base64.b64encode(b"x").decode()}}),
              {"Content-Type": "application/merge-patch+json"})
    assert not is_good(s, again)


def test_token_secrets_go_with_their_account(s):
    ns, path, _ = account(s)
    token = base64.b64decode(token_secret(s, ns, "robot-token")["data"]["token"]).decode()
    s.ok("DELETE", path)
    assert not is_good(s, token)
    wait_until(lambda: s.request("GET", f"/api/v1/namespaces/{ns}/secrets/robot-token")[0] == 404, what="the Secret to go")


def test_an_account_forgets_a_secret_that_is_gone(s):
    ns, path, _ = account(s)
    token_secret(s, ns, "robot-token")
    s.kubectl("-n", ns, "patch", "serviceaccount", "robot", "-p", '{"secrets": [{"name": "robot-token"}, {"name": "other"}]}')
    s.ok("DELETE", f"/api/v1/namespaces/{ns}/secrets/robot-token")
    wait_until(lambda: s.ok("GET", path)["secrets"] == [{"name": "other"}], what="the reference to go")


def test_a_token_secret_without_account_goes(s):
    ns = s.namespace()
    path = f"/api/v1/namespaces/{ns}/secrets"
    s.ok("POST", path, {"metadata": {"name": "orphan", "annotations": {"kubernetes.io/service-account.name": "absent"}},
                        "type": "kubernetes.io/service-account-token"})
    wait_until(lambda: s.request("GET", f"{path}/orphan")[0] == 404, what="the Secret to go")


# ---- bootstrap tokens ---------------------------------------------------------------------------


def bootstrap_secret(s, token_id, **data):
    values = {"token-id": token_id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true", **data}
    s.ok("POST", "/api/v1/namespaces/kube-system/secrets",
         {"metadata": {"name": f"bootstrap-token-{token_id}"}, "type": "bootstrap.kubernetes.io/token", "stringData": values})
    return f"{token_id}.0123456789abcdef", f"/api/v1/namespaces/kube-system/secrets/bootstrap-token-{token_id}"


def test_bootstrap_token(s):
    token, path = bootstrap_secret(s, unique("")[-6:], **{"auth-extra-groups": "system:bootstrappers:edge"})
    user = whoami(s, token)
    assert user["username"] == f"system:bootstrap:{token[:6]}"
    assert user["groups"] == ["system:bootstrappers", "system:bootstrappers:edge", "system:authenticated"]
    assert not is_good(s, token[:-1] + "0")
    s.ok("DELETE", path)
    assert not is_good(s, token)


def test_bootstrap_tokens_that_are_over_or_for_something_else(s):
    expired, _ = bootstrap_secret(s, unique("")[-6:], expiration="2020-01-01T00:00:00Z")
    other, _ = bootstrap_secret(s, unique("")[-6:], **{"usage-bootstrap-authentication": "false"})
    masters, _ = bootstrap_secret(s, unique("")[-6:], **{"auth-extra-groups": "system:masters"})
    for token in (expired, other, masters):
        assert not is_good(s, token), token


# ---- the token file -----------------------------------------------------------------------------


def write_tokens(s, path, text):
    offset = len(s.read_log())
    path.write_text(text)
    s.process.send_signal(signal.SIGHUP)
    return lambda word: wait_until(lambda: [x for x in s.read_log(offset).splitlines() if word in x], what=word)


def test_token_file_and_its_reload():
    with Server() as s:
        s.stop()
        path = pathlib.Path(s.dir / "tokens.csv")
        path.write_text('alices-secret,alice,uid-1,"ops,system:masters"\n\nbobs-secret,bob,uid-2\n')
        s.options = ("--token-auth-file", str(path))
        s.start()
        assert whoami(s, "alices-secret") == {"username": "alice", "uid": "uid-1", "groups": ["ops", "system:masters", "system:authenticated"]}
        assert with_token(s, "alices-secret", path="/api/v1/namespaces")[0] == 200
        assert with_token(s, "bobs-secret", path="/api/v1/namespaces")[0] == 403
        assert not is_good(s, "carols-secret") and not is_good(s, "alices-secret,alice")
        write_tokens(s, path, "carols-secret,carol,uid-3\nbobs-secret,bob,uid-2\n")('what="tokens"')
        assert not is_good(s, "alices-secret") and whoami(s, "carols-secret")["username"] == "carol"
        lines = write_tokens(s, path, "daves-secret,dave,uid-4\nbroken\n")("keeping what was read before")
        assert "line 2" in lines[0] and "secret" not in lines[0]
        assert whoami(s, "carols-secret") and not is_good(s, "daves-secret")
