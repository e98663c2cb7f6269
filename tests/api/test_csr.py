# SPDX-License-Identifier: Apache-2.0
"""CertificateSigningRequests: openssl asks, kubectl decides, the certificate opens the door with its rights."""
import base64
import datetime
import http.client
import json
import os
import re
import ssl
import subprocess

from seth import KUBECTLS, TOP, Server, unique, wait_until

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client"
USAGES = ["digital signature", "client auth"]


def openssl(*arguments, input=None):
    done = subprocess.run(["openssl", *arguments], input=input, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Request:
    """A key and a request of its own."""

    def __init__(self, s, subject, kind=("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")):
        self.s, self.name = s, unique("csr")
        self.key, self.cert = s.dir / f"{self.name}.key", s.dir / f"{self.name}.pem"
        self.pem = openssl("req", "-new", *kind, "-nodes", "-keyout", str(self.key), "-subj", subject,
                           "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "subjectAltName=DNS:kubernetes")

    def object(self, signer=CLIENT, usages=USAGES, **spec):
        return {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": self.name},
                "spec": {"request": base64.b64encode(self.pem.encode()).decode(), "signerName": signer, "usages": usages, **spec}}

    def make(self, headers=None, **options):
        return self.s.ok("POST", CSRS, self.object(**options), headers)

    @property
    def path(self):
        return f"{CSRS}/{self.name}"

    def get(self):
        return self.s.ok("GET", self.path)

    def conditions(self):
        return {c["type"]: c for c in self.get()["status"].get("conditions", [])}

    def approve(self, kind="Approved", headers=None):
        csr = self.get()
        csr["status"]["conditions"] = [{"type": kind, "status": "True", "reason": "Test", "message": "m"}]
        return self.s.request("PUT", f"{self.path}/approval", csr, headers)

    def wait_for_certificate(self):
        text = wait_until(lambda: self.get()["status"].get("certificate"), what="the certificate")
        self.cert.write_bytes(base64.b64decode(text))
        return openssl("x509", "-noout", "-text", "-in", str(self.cert))

    def login(self, path):
        """A request with the certificate as the only credential."""
        context = ssl.create_default_context(cafile=str(self.s.dir / "ca.pem"))
        context.load_cert_chain(self.cert, self.key)
        connection = http.client.HTTPSConnection("127.0.0.1", self.s.port, context=context, timeout=60)
        try:
            connection.request("GET" if "selfsubject" not in path else "POST", path,
                               None if "selfsubject" not in path else "{}", {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


def may(s, user, *rules):
    """Gives a user rights in the whole cluster."""
    name = unique("role")
    s.ok("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
         {"metadata": {"name": name}, "rules": [{"apiGroups": g, "resources": r, "verbs": v, **({"resourceNames": n[0]} if n else {})}
                                                for g, r, v, *n in rules]})
    s.ok("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
         {"metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
          "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}]})


# ---- the way of a certificate -------------------------------------------------------------------


def check_way(s, version):
    r = Request(s, "/O=dev/O=ops/CN=jane")
    s.kubectl("create", "-f", "-", input=json.dumps(r.object()), version=version)
    row = s.kubectl("get", "csr", r.name, "--no-headers", version=version).split()
    assert row[0] == r.name and row[2:] == [CLIENT, "seth-admin", "<none>", "Pending"], row
    assert "Subject:" in s.kubectl("describe", "csr", r.name, version=version)
    s.kubectl("certificate", "approve", r.name, version=version)
    text = r.wait_for_certificate()
    assert "Approved,Issued" in s.kubectl("get", "csr", r.name, version=version)
    assert re.search(r"Subject: O\s*=\s*dev, O\s*=\s*ops, CN\s*=\s*jane", text), text
    assert "CA:FALSE" in text and "TLS Web Client Authentication" in text and "TLS Web Server" not in text
    assert "CA:TRUE" not in text and "DNS:kubernetes" not in text
    openssl("verify", "-CAfile", str(s.dir / "ca.pem"), "-purpose", "sslclient", str(r.cert))
    status, review = r.login("/apis/authentication.k8s.io/v1/selfsubjectreviews")
    assert status == 201, review
    user = review["status"]["userInfo"]
    assert user["username"] == "jane" and user["groups"] == ["dev", "ops", "system:authenticated"]


def test_with_the_old_kubectl(s):
    check_way(s, "old")


def test_with_the_new_kubectl(s):
    check_way(s, "new")


def test_as_the_manual_says(s):
    manual = (TOP / "docs/SECURITY.md").read_text()
    script = re.search(r"## Certificates for people.*?```sh\n(.*?)```", manual, re.S).group(1)
    directory = s.dir / unique("manual")
    directory.mkdir()
    variables = {**os.environ, "HOME": str(s.dir), "KUBECONFIG": s.kubeconfig, "PATH": f"{KUBECTLS['new'].parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-e"], input=script, capture_output=True, text=True, cwd=directory, env=variables, timeout=120)
    assert done.returncode == 0, done.stderr
    assert valid_seconds(openssl("x509", "-noout", "-text", "-in", str(directory / "jane.pem"))) == 2592000


def test_the_certificate_has_the_rights_of_its_names(s):
    user = unique("jane")
    r = Request(s, f"/CN={user}")
    r.make()
    assert r.approve()[0] == 200
    r.wait_for_certificate()
    status, answer = r.login("/api/v1/namespaces/default/configmaps")
    assert status == 403 and f'User \\"{user}\\" cannot list' in json.dumps(answer)
    may(s, user, ([""], ["configmaps"], ["list"]))
    assert r.login("/api/v1/namespaces/default/configmaps")[0] == 200
    assert r.login("/api/v1/namespaces/default/secrets")[0] == 403


def test_other_keys_work_as_well(s):
    for kind in (("-newkey", "rsa:2048"), ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"), ("-newkey", "ed25519")):
        r = Request(s, "/CN=robot", kind)
        r.make()
        assert r.approve()[0] == 200
        r.wait_for_certificate()
        assert r.login("/api/v1/namespaces/default/configmaps")[0] == 403


def valid_seconds(text):
    begin, end = (datetime.datetime.strptime(re.search(rf"Not {w}\s*: (.*) GMT", text).group(1), "%b %d %H:%M:%S %Y") for w in ("Before", "After"))
    return (end - begin).total_seconds()


def test_the_life_of_a_certificate(s):
    for asked, wanted in ((None, 31536000), (600, 900), (86400, 86400), (2000000000, 31536000)):
        r = Request(s, "/CN=robot")
        r.make(**({"expirationSeconds": asked} if asked else {}))
        assert r.approve()[0] == 200
        assert valid_seconds(r.wait_for_certificate()) == wanted, asked


def test_the_most_a_certificate_lives_is_an_option():
    with Server("--cluster-signing-duration-seconds", "3600") as s:
        r = Request(s, "/CN=robot")
        r.make(expirationSeconds=86400)
        assert r.approve()[0] == 200
        assert valid_seconds(r.wait_for_certificate()) == 3900
        assert r.login("/api/v1/namespaces/default/configmaps")[0] == 403


# ---- decisions ----------------------------------------------------------------------------------


def test_a_denied_request_gets_nothing(s):
    for version in ("old", "new"):
        r = Request(s, "/CN=robot")
        r.make()
        s.kubectl("certificate", "deny", r.name, version=version)
        assert "Denied" in s.kubectl("get", "csr", r.name, version=version)
        status, answer = r.approve()
        assert status == 422 and 'may not remove a condition of type "Denied"' in answer["message"]
        later = Request(s, "/CN=robot")  # signed after it, so that one has been looked at
        later.make()
        assert later.approve()[0] == 200
        later.wait_for_certificate()
        assert "certificate" not in r.get()["status"]


def test_other_signers_are_left_alone(s):
    r = Request(s, "/CN=robot")
    r.make(signer="example.org/signer")
    assert r.approve()[0] == 200
    later = Request(s, "/CN=robot")
    later.make()
    assert later.approve()[0] == 200
    later.wait_for_certificate()
    assert r.get()["status"].keys() == {"conditions"} and list(r.conditions()) == ["Approved"]
    # ... and may answer themselves, once.
    csr = r.get()
    csr["status"]["certificate"] = base64.b64encode(later.cert.read_bytes()).decode()
    s.ok("PUT", f"{r.path}/status", csr)
    csr = r.get()
    csr["status"]["certificate"] = base64.b64encode(later.cert.read_bytes() * 2).decode()
    status, answer = s.request("PUT", f"{r.path}/status", csr)
    assert status == 422 and "updates may not modify existing certificate content" in answer["message"]


def test_what_the_signer_cannot_do_is_a_condition(s):
    for usages, message in ((["client auth", "server auth"], "invalid usage for client certificate: server auth"),
                            (["digital signature"], "missing required usage for client certificate: client auth")):
        r = Request(s, "/CN=robot")
        r.make(usages=usages)
        assert r.approve()[0] == 200
        failed = wait_until(lambda: r.conditions().get("Failed"), what="the failure")
        assert failed["status"] == "True" and failed["reason"] == "SignerValidationFailure" and failed["message"] == message
        assert failed["lastUpdateTime"] and failed["lastTransitionTime"] and "certificate" not in r.get()["status"]
        assert "Approved,Failed" in s.kubectl("get", "csr", r.name)
    weak = Request(s, "/CN=robot", ("-newkey", "rsa:1024"))
    weak.make()
    assert weak.approve()[0] == 200
    assert "2048" in wait_until(lambda: weak.conditions().get("Failed"), what="the failure")["message"]


def test_each_way_of_writing_touches_its_part(s):
    r = Request(s, "/CN=robot")
    r.make(signer="example.org/signer")
    csr = r.get()
    csr["status"]["conditions"] = [{"type": "Approved", "status": "True"}]
    s.ok("PUT", r.path, csr)
    assert r.get()["status"] == {}, "a write to the object decides nothing"
    status, answer = s.request("PUT", f"{r.path}/status", csr)
    assert status == 422 and 'updates may not add a condition of type "Approved"' in answer["message"]
    csr["status"]["certificate"] = base64.b64encode(b"x").decode()
    csr["spec"]["username"] = "evil"
    csr["spec"]["usages"] = ["any"]
    s.ok("PUT", f"{r.path}/approval", csr)
    got = r.get()
    assert "certificate" not in got["status"] and got["spec"]["username"] == "seth-admin" and got["spec"]["usages"] == USAGES
    got["status"]["conditions"][0]["message"] = "changed"
    got["status"]["conditions"].append({"type": "Later", "status": "Unknown"})
    s.ok("PUT", f"{r.path}/status", got)
    conditions = r.conditions()
    assert "message" not in conditions["Approved"] and conditions["Later"]["lastTransitionTime"]
    for wrong, words in (([{"type": "Approved", "status": "False"}], 'supported values: "True"'),
                         ([{"type": "Approved", "status": "True"}, {"type": "Denied", "status": "True"}], "mutually exclusive"),
                         ([{"type": "Approved", "status": "True"}, {"type": "X"}], "status.conditions[1].status: Required value"),
                         ([{"type": "Approved", "status": "True"}, {"status": "True"}], "status.conditions[1].type: Required value")):
        csr = r.get()
        csr["status"]["conditions"] = wrong
        status, answer = s.request("PUT", f"{r.path}/approval", csr)
        assert status == 422 and words in answer["message"], answer


def test_an_approval_by_patch(s):
    r = Request(s, "/CN=robot")
    r.make()
    s.ok("PATCH", f"{r.path}/approval", {"status": {"conditions": [{"type": "Approved", "status": "True"}]}},
         {"Content-Type": "application/strategic-merge-patch+json"})
    r.wait_for_certificate()


def test_apply_in_both_ways(s):
    for version in ("old", "new"):
        for options in ([], ["--server-side"]):
            r = Request(s, "/CN=robot")
            for label in ("a", "b"):
                wanted = r.object()
                wanted["metadata"]["labels"] = {"l": label}
                s.kubectl("apply", *options, "-f", "-", input=json.dumps(wanted), version=version)
                got = r.get()
                assert got["metadata"]["labels"] == {"l": label} and got["spec"] == {**wanted["spec"], "username": "seth-admin", "groups": got["spec"]["groups"]}


def test_who_owns_what(s):
    """Nobody owns the request itself, which cannot change."""
    r = Request(s, "/CN=robot")
    wanted = r.object()
    wanted["metadata"]["labels"] = {"l": "a"}
    s.ok("POST", CSRS, wanted)
    assert r.approve()[0] == 200
    r.wait_for_certificate()
    owners = {e.get("subresource"): e["fieldsV1"] for e in r.get()["metadata"]["managedFields"]}
    assert owners.keys() == {None, "approval", "status"} and owners["status"] == {"f:status": {"f:certificate": {}}}
    assert owners[None] == {"f:metadata": {"f:labels": {".": {}, "f:l": {}}}}
    assert list(owners["approval"]["f:status"]) == ["f:conditions"]


def test_requests_of_one_signer(s):
    signer = f"example.org/{unique('signer')}"
    r, other = Request(s, "/CN=robot"), Request(s, "/CN=robot")
    r.make(signer=signer)
    other.make()
    items = s.ok("GET", f"{CSRS}?fieldSelector=spec.signerName%3D{signer.replace('/', '%2F')}")["items"]
    assert [i["metadata"]["name"] for i in items] == [r.name]


# ---- rights -------------------------------------------------------------------------------------


def test_who_asked_is_what_the_server_saw(s):
    user = unique("joe")
    may(s, user, (["certificates.k8s.io"], ["certificatesigningrequests"], ["create"]))
    r = Request(s, "/CN=root/O=system:nodes")
    made = r.make({"Impersonate-User": user, "Impersonate-Uid": "u-1", "Impersonate-Extra-Scopes": "a"},
                  username="evil", groups=["system:masters"], uid="0", extra={"a": ["b"]})
    assert made["spec"]["username"] == user and made["spec"]["groups"] == ["system:authenticated"]
    assert made["spec"]["uid"] == "u-1" and made["spec"]["extra"] == {"scopes": ["a"]}


def test_approving_is_a_right_of_its_own(s):
    writing = (["certificates.k8s.io"], ["certificatesigningrequests/approval"], ["update"])
    for names, is_allowed in (([CLIENT], True), (["kubernetes.io/*"], True), (["kubernetes.io/kubelet-serving"], False), (["example.org/*"], False), (None, False)):
        user = unique("approver")
        may(s, user, writing, *([(["certificates.k8s.io"], ["signers"], ["approve"], names)] if names else []))
        r = Request(s, "/CN=robot")
        r.make()
        status, answer = r.approve(headers={"Impersonate-User": user})
        assert (status == 200) == is_allowed, (names, answer)
        if not is_allowed:
            assert status == 403 and answer["message"] == (f'certificatesigningrequests.certificates.k8s.io "{r.name}" is forbidden: '
                                                           f'user not permitted to approve requests with signerName "{CLIENT}"')
            assert r.get()["status"] == {}


def test_signing_is_a_right_of_its_own(s):
    user, signer = unique("signer"), f"example.org/{unique('signer')}"
    may(s, user, (["certificates.k8s.io"], ["certificatesigningrequests/status"], ["update"]))
    r = Request(s, "/CN=robot")
    r.make(signer=signer)
    assert r.approve()[0] == 200
    csr = r.get()
    assert s.request("PUT", f"{r.path}/status", csr, {"Impersonate-User": user})[0] == 200, "nothing is signed by that"
    csr["status"]["conditions"].append({"type": "Failed", "status": "True"})
    status, answer = s.request("PUT", f"{r.path}/status", csr, {"Impersonate-User": user})
    assert status == 403 and f'user not permitted to sign requests with signerName "{signer}"' in answer["message"]
    may(s, user, (["certificates.k8s.io"], ["signers"], ["sign"], ["example.org/*"]))
    assert s.request("PUT", f"{r.path}/status", csr, {"Impersonate-User": user})[0] == 200


def test_nobody_asks_for_everything(s):
    r = Request(s, "/O=dev/O=system:masters/CN=jane")
    status, answer = s.request("POST", CSRS, r.object())
    assert status == 403 and answer["message"] == (f'certificatesigningrequests.certificates.k8s.io "{r.name}" is forbidden: use of '
                                                   f"{CLIENT} signer with system:masters group is not allowed")
    assert s.request("GET", r.path)[0] == 404
    r.make(signer="example.org/signer")  # which is no affair of ours


def test_a_request_of_another_key_is_refused(s):
    a, b = Request(s, "/CN=a"), Request(s, "/CN=b")
    der = [bytearray(base64.b64decode("".join(r.pem.splitlines()[1:-1]))) for r in (a, b)]
    der[0][-20] ^= 1
    a.pem = "-----BEGIN CERTIFICATE REQUEST-----\n" + base64.encodebytes(bytes(der[0])).decode() + "-----END CERTIFICATE REQUEST-----\n"
    status, answer = s.request("POST", CSRS, a.object())
    assert status == 422 and answer["details"]["causes"][0]["field"] == "spec.request" and "verification failure" in answer["message"]
    b.pem += b.pem
    assert s.request("POST", CSRS, b.object(signer="example.org/x"))[0] == 422
