# SPDX-License-Identifier: Apache-2.0
"""`seth device-media` and `seth rotate-certs`: what a device is given, judged by openssl and by the device of tests/device, which knows the
protocol and nothing of the server."""
import base64
import os
import pathlib
import re
import socket
import ssl
import subprocess
import tempfile
import time
import uuid

import eve
import wire
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from fleet import Site
from seth import KUBECTLS, TOP, Server, binary, unique, wait_until

OPTIONS = ("--tls-san", "ctl.example.org")
FILES = {"server", "root-certificate.pem", "v2tlsbaseroot-certificates.pem", "onboard.cert.pem", "onboard.key.pem"}


def seth(*arguments, check=True):
    done = subprocess.run([binary(), *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert "Sanitizer" not in done.stderr, done.stderr
    assert not check or done.returncode == 0, done.stderr
    return done


def openssl(*arguments, check=True):
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


def media(s, *options, directory=None, check=True):
    """Runs the command; returns (directory, what it did)."""
    directory = directory or s.dir / unique("media")
    if "--server" not in options:
        options += ("--server", "ctl.example.org:8443")
    return directory, seth("device-media", directory, "--data-dir", s.dir, *options, check=check)


def identity(directory):
    """The onboarding certificate and key as a device reads them from its medium."""
    key = serialization.load_pem_private_key((directory / "onboard.key.pem").read_bytes(), None)
    return eve.Identity(key, x509.load_pem_x509_certificate((directory / "onboard.cert.pem").read_bytes()))


# ---- the medium ---------------------------------------------------------------------------


def test_medium_has_what_eve_reads(s):
    directory, _ = media(s)
    assert {f.name for f in directory.iterdir()} == FILES
    assert (directory / "server").read_text().strip() == "ctl.example.org:8443"
    root = (s.dir / "pki/root-certificate.pem").read_text()
    assert (directory / "root-certificate.pem").read_text() == root == (directory / "v2tlsbaseroot-certificates.pem").read_text()
    assert (directory / "onboard.key.pem").stat().st_mode & 0o777 == 0o600
    cert = directory / "onboard.cert.pem"
    name = re.search(r"CN ?= ?(\S+)", openssl("x509", "-in", cert, "-noout", "-subject")).group(1)
    assert str(uuid.UUID(name)) == name
    assert "prime256v1" in openssl("x509", "-in", cert, "-noout", "-text")
    assert openssl("x509", "-in", cert, "-noout", "-pubkey") == openssl("pkey", "-in", directory / "onboard.key.pem", "-pubout")
    openssl("verify", "-CAfile", cert, "-partial_chain", cert)  # by itself
    openssl("verify", "-CAfile", directory / "root-certificate.pem", "-verify_hostname", "ctl.example.org", "-purpose", "sslserver", s.dir / "pki/server.pem")


def test_hosts_are_for_devices_without_dns(s):
    directory, _ = media(s, "--ip", "192.0.2.1")
    assert (directory / "hosts").read_text().split() == ["192.0.2.1", "ctl.example.org"]
    directory, _ = media(s, "--server", "[2001:db8::1]:8443")
    assert (directory / "server").read_text() == "[2001:db8::1]:8443\n"


def test_every_medium_has_a_key_of_its_own(s):
    a, b = (identity(media(s)[0]) for _ in range(2))
    assert a.pem != b.pem and a.certificate.subject != b.certificate.subject
    assert a.certificate.public_key().public_numbers() == a.key.public_key().public_numbers()


def test_manifest_names_the_certificate_and_serials(s):
    ns = s.namespace()
    directory, done = media(s, "--serial", "a1,b2", "--serial", "c3", "--namespace", ns, "--name", "line-4")
    assert s.kubectl("apply", "-f", "-", input=done.stdout).strip() == "onboardcertificate.eve.lfedge.org/line-4 created"
    made = s.ok("GET", f"/apis/eve.lfedge.org/v1beta1/namespaces/{ns}/onboardcertificates/line-4")["spec"]
    assert made == {"certificate": (directory / "onboard.cert.pem").read_text(), "serials": ["a1", "b2", "c3"]}, made
    directory, done = media(s)
    assert f"name: onboard-{identity(directory).der_hash.hex()[:8]}\n" in done.stdout and "serials" not in done.stdout and "namespace" not in done.stdout


def test_given_onboarding_certificate_is_used(s):
    first, _ = media(s)
    options = ("--onboard-cert", first / "onboard.cert.pem", "--onboard-key", first / "onboard.key.pem")
    second, done = media(s, *options)
    for name in ("onboard.cert.pem", "onboard.key.pem"):
        assert (second / name).read_text() == (first / name).read_text()
    # The same key again is no overwriting: the address of the server may change.
    media(s, *options, "--server", "other.example.org:443", directory=first)
    assert (first / "server").read_text() == "other.example.org:443\n"
    assert identity(first).pem.decode().splitlines()[1] in done.stdout


def test_key_that_is_there_is_not_overwritten(s):
    directory, _ = media(s)
    before = {f.name: f.read_bytes() for f in directory.iterdir()}
    _, done = media(s, "--server", "other.example.org:443", directory=directory, check=False)
    assert done.returncode == 1 and "--force" in done.stderr and not done.stdout, done
    assert {f.name: f.read_bytes() for f in directory.iterdir()} == before
    media(s, "--force", directory=directory)
    assert (directory / "onboard.key.pem").read_bytes() != before["onboard.key.pem"]


def test_bad_options_are_named_and_write_nothing(s):
    other, _ = media(s)
    p384 = s.dir / "p384.pem"
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384", "-nodes", "-subj", "/CN=x", "-keyout", p384, "-out", s.dir / "p384.crt")
    own = s.dir / "pki"
    for options, expected in (
            (("--server", ""), "--server"), (("--server", "ctl.example.org"), "--server"), (("--server", "https://ctl.example.org:8443"), "--server"),
            (("--server", "ctl.example.org:0"), "--server"), (("--server", "ctl.example.org:65536"), "--server"), (("--server", "a b:1"), "--server"),
            (("--server", "2001:db8::1:8443"), "--server"), (("--ip", "name"), "--ip"), (("--ip", "192.0.2.1", "--server", "192.0.2.2:1"), "--ip"),
            (("--onboard-cert", other / "onboard.cert.pem"), "--onboard-key"), (("--onboard-cert", "/nowhere", "--onboard-key", "/nowhere"), "/nowhere"),
            (("--onboard-cert", other / "onboard.cert.pem", "--onboard-key", own / "root-key.pem"), "is not the key"),
            (("--onboard-cert", s.dir / "p384.crt", "--onboard-key", p384), "P-256"),
            (("--address", "192.0.2.7/24"), "--bootstrap"),
            (("--bootstrap", "--address", "192.0.2.7"), "192.0.2.7/24"), (("--bootstrap", "--address", "192.0.2.7/33"), "--address"),
            (("--bootstrap", "--address", "192.0.2.7/24"), "--gateway"), (("--bootstrap", "--address", "192.0.2.7/24", "--gateway", "2001:db8::1"), "--gateway"),
            (("--bootstrap", "--address", "192.0.2.7/24", "--gateway", "192.0.2.1"), "--dns"),
            (("--bootstrap", "--address", "192.0.2.7/24", "--gateway", "192.0.2.1", "--dns", "ns.example.org"), "--dns"),
            (("--bootstrap", "--port", "an-interface-that-is-too-long"), "--port"), (("--force=yes",), "force")):
        directory, done = media(s, *options, check=False)
        assert done.returncode == 1 and expected in done.stderr and not done.stdout, (options, done)
        assert not directory.exists(), options
    assert "name the directory" in seth("device-media", "--data-dir", s.dir, check=False).stderr
    with tempfile.TemporaryDirectory() as d:
        done = seth("device-media", f"{d}/x", "--data-dir", d, "--server", "a:1", check=False)
        assert "no server has been started with this --data-dir" in done.stderr and os.listdir(d) == []


def test_wrong_name_of_the_server_is_said(s):
    assert "warning" not in media(s)[1].stderr
    _, done = media(s, "--server", "other.example.org:8443")
    assert "does not have the name other.example.org; start it with --tls-san other.example.org" in done.stderr


# ---- the first configuration --------------------------------------------------------------


def bootstrap(s, directory):
    """The configuration in it, believed as a device does."""
    message = wire.decode("config.BootstrapConfig", (directory / "bootstrap-config.pb").read_bytes())
    root = [x509.load_pem_x509_certificate((directory / "root-certificate.pem").read_bytes())]
    certs = message["controller_certs"]
    assert [c["type"] for c in certs] == [eve.SIGNING], certs
    eve.verify_chain(x509.load_pem_x509_certificate(certs[0]["cert"]), [], root)
    container = wire.encode("auth.AuthContainer", message["signed_config"])
    return wire.decode("config.EdgeDevConfig", eve.open_envelope(container, certs[0]["cert"]))


def test_bootstrap_by_dhcp(s):
    directory, _ = media(s, "--bootstrap", "--ntp", "time.example.org")
    assert {f.name for f in directory.iterdir()} == FILES | {"bootstrap-config.pb"}
    c = bootstrap(s, directory)
    assert abs(c["config_timestamp"]["seconds"] - time.time()) < 60
    network, adapter, port = c["networks"][0], c["systemAdapterList"][0], c["deviceIoList"][0]
    assert network["ip"] == {"dhcp": wire.number("common.DHCPType", "Client"), "ntp": "time.example.org"}, network
    assert network["type"] == wire.number("common.NetworkType", "V4") and str(uuid.UUID(network["id"])) == network["id"]
    assert adapter == {"name": "eth0", "uplink": True, "networkUUID": network["id"], "lowerLayerName": "eth0"}, adapter
    assert port["phylabel"] == port["logicallabel"] == "eth0" and port["phyaddrs"] == {"ifname": "eth0"} and port["ptype"] == 1 and port["usage"] == 1, port


def test_bootstrap_with_a_static_address(s):
    for address, subnet, gateway, dns in (("192.0.2.77/26", "192.0.2.64/26", "192.0.2.65", ["192.0.2.2", "192.0.2.3"]),
                                          ("2001:db8::7/33", "2001:db8::/33", "2001:db8::1", ["2001:db8::2"])):
        directory, _ = media(s, "--bootstrap", "--port", "eth1", "--address", address, "--gateway", gateway, "--dns", ",".join(dns), "--domain", "example.org")
        c = bootstrap(s, directory)
        ip = c["networks"][0]["ip"]
        assert ip == {"dhcp": wire.number("common.DHCPType", "Static"), "subnet": subnet, "gateway": gateway, "dns": dns, "domain": "example.org"}, ip
        assert c["networks"][0]["type"] == (6 if ":" in address else 4)
        assert c["systemAdapterList"][0]["addr"] == address.split("/")[0] and c["systemAdapterList"][0]["name"] == "eth1"


# ---- the controller's certificates --------------------------------------------------------


def pair(s, name):
    """(certificate, public key of the private key), as PEM, of a file that holds both."""
    return openssl("x509", "-in", s.dir / "pki" / name), openssl("pkey", "-in", s.dir / "pki" / name, "-pubout")


def test_chains_by_openssl(s):
    seth("rotate-certs", "--data-dir", s.dir)
    root = s.dir / "pki/root-certificate.pem"
    for name in ("signing.pem", "ecdh.pem"):
        path = s.dir / "pki" / name
        openssl("verify", "-x509_strict", "-CAfile", root, "-purpose", "sslserver", path)
        assert "prime256v1" in openssl("x509", "-in", path, "-noout", "-text")
        assert openssl("x509", "-in", path, "-noout", "-pubkey") == pair(s, name)[1]
        assert path.stat().st_mode & 0o777 == 0o600
        # A device whose clock is behind by hours believes it too.
        openssl("verify", "-CAfile", root, "-attime", int(time.time()) - 20 * 3600, path)


def test_rotation_changes_what_is_named_and_keeps_ecdh_keys(s):
    seth("rotate-certs", "--data-dir", s.dir)
    for options, changed in ((("--signing",), {"signing.pem"}), (("--ecdh",), {"ecdh.pem"}), ((), {"signing.pem", "ecdh.pem"}),
                             (("--server",), {"server.pem"}), (("--server", "--ecdh"), {"server.pem", "ecdh.pem"})):
        names = ("signing.pem", "ecdh.pem", "server.pem")
        before = {n: (s.dir / "pki" / n).read_bytes() for n in names}
        seth("rotate-certs", "--data-dir", s.dir, *options)
        assert {n for n in names if (s.dir / "pki" / n).read_bytes() != before[n]} == changed, options
        if "ecdh.pem" in changed:
            kept = [f.read_bytes() for f in (s.dir / "pki").glob("ecdh-*.pem")]
            assert before["ecdh.pem"] in kept


def test_rotation_says_what_is_wrong(s):
    with tempfile.TemporaryDirectory() as d:
        for options in ((), ("--server",)):
            done = seth("rotate-certs", "--data-dir", d, *options, check=False)
            assert done.returncode == 1 and "no server has been started with this --data-dir" in done.stderr, done.stderr
        config = pathlib.Path(d) / "seth.yaml"
        config.write_text(f"data-dir: {s.dir}\nserver: https://of.another.command\ndevice-signing-cert-file: /theirs.pem\n")
        done = seth("rotate-certs", "--config", config, "--signing", check=False)
        assert done.returncode == 1 and "--device-signing-cert-file /theirs.pem" in done.stderr, done.stderr
        seth("rotate-certs", "--config", config, "--ecdh")


def test_server_certificate_is_rotated_under_the_running_server():
    def serving(s):
        with socket.create_connection(("127.0.0.1", s.port)) as raw, s.context().wrap_socket(raw, server_hostname="localhost") as tls:
            return ssl.DER_cert_to_PEM_cert(tls.getpeercert(True))
    with Server("--tls-san", "ctl.example.org,192.0.2.1") as s:
        def names():
            return openssl("x509", "-in", s.dir / "pki/server.pem", "-noout", "-ext", "subjectAltName")
        first, had = serving(s), names()
        assert "ctl.example.org" in had and "192.0.2.1" in had
        seth("rotate-certs", "--data-dir", s.dir, "--server")
        wait_until(lambda: serving(s) != first, what="the new certificate to be served")
        assert names() == had


# ---- a device and its medium --------------------------------------------------------------


def test_device_follows_every_rotation():
    """It holds old certificates, is answered by new ones, fetches them and goes on."""
    with Server("--tls-san", "ctl.example.org") as s:
        ns = s.namespace()
        directory, done = media(s, "--namespace", ns)
        s.kubectl("apply", "-f", "-", input=done.stdout)
        d = eve.Device("127.0.0.1", s.device_port, (directory / "root-certificate.pem").read_bytes(), onboarding=identity(directory))
        d.onboard()
        known = d.config()[1]["config"]["controllercert_confighash"]
        for options, is_signing in ((("--signing",), True), (("--ecdh",), False), ((), True)):
            old_signing, old_ecdh = d.signing_pem, [h for h, _ in d.ecdh]
            seth("rotate-certs", "--data-dir", s.dir, *options)

            def answered():
                """What the device makes of the next poll: "" while nothing has changed."""
                try:
                    _, response = d.config()
                    return "changed" if response and response["config"]["controllercert_confighash"] != known else ""
                except eve.Distrust as e:
                    return str(e)
            heard = wait_until(answered, what="the rotation to be noticed")
            assert heard.startswith("CertMiss") if is_signing else heard == "changed", heard
            d.certs()
            assert (d.signing_pem != old_signing) == is_signing
            assert ([h for h, _ in d.ecdh] == old_ecdh) == ("--signing" in options)
            answer, response = d.config(known="")
            assert answer.status == 200 and response["config"]["controllercert_confighash"] != known
            known = response["config"]["controllercert_confighash"]


def b64(data):
    return base64.b64encode(data).decode()


def test_secrets_are_encrypted_again_after_a_rotation():
    """A block that somebody sealed with the first ECDH certificate is readable with each that follows, also after a restart."""
    with Server() as s:
        ns = s.namespace()
        directory, done = media(s, "--namespace", ns, "--server", "localhost:8443")
        s.kubectl("apply", "-f", "-", input=done.stdout)
        d = eve.Device("127.0.0.1", s.device_port, (directory / "root-certificate.pem").read_bytes(), onboarding=identity(directory)).onboard()
        assert d.attest_certs()[0].status == 201
        known_hash, certificate = d.ecdh[0]
        key, iv = eve.shared_key(d.ecdh_identity.key, certificate.public_key()), os.urandom(16)
        plain = wire.encode("common.EncryptionBlock", {"dsAPIKey": "user", "dsPassword": "a secret"})
        sealed = subprocess.run(["openssl", "enc", "-aes-256-cfb", "-K", key.hex(), "-iv", iv.hex()], input=plain, capture_output=True, check=True).stdout
        config = {"id": {"uuid": d.uuid, "version": "1"},
                  "cipherContexts": [{"contextId": "mine", "hashScheme": "HASH_ALGORITHM_SHA256_16BYTES", "keyExchangeScheme": "KEA_ECDH", "encryptionScheme": "SA_AES_256_CFB",
                                      "deviceCertHash": b64(d.ecdh_identity.pem_hash[:16]), "controllerCertHash": b64(known_hash)}],
                  "datastores": [{"id": str(uuid.uuid4()), "dType": "DsHttps", "fqdn": "https://images.example.org",
                                  "cipherData": {"cipherContextId": "mine", "initialValue": b64(iv), "cipherData": b64(sealed), "clearTextSha256": b64(eve.sha256(plain))}}]}
        site = Site(s)
        site.ns = ns
        site.tell(d, config)

        def opened():
            """What the device finds in its configuration, None while there is nothing or it lacks a certificate."""
            try:
                got = (d.config(known="")[1] or {}).get("config", {})
            except eve.Distrust:
                d.certs()
                return None
            if not got.get("datastores") or got["cipherContexts"][0]["controllerCertHash"] not in [h for h, _ in d.ecdh]:
                d.certs()
                return None
            return got["cipherContexts"][0]["controllerCertHash"], d.decrypt(got, got["datastores"][0]["cipherData"])
        assert wait_until(opened, what="the configuration") == (known_hash, plain)
        seen = {known_hash}
        for options in (("--ecdh",), (), ("--ecdh",)):
            seth("rotate-certs", "--data-dir", s.dir, *options)
            found = wait_until(lambda: (o := opened()) and o[0] not in seen and o, what="the new certificate to be used")
            assert found[1] == plain
            seen.add(found[0])
        s.stop()
        s.start()
        d.port = s.device_port
        assert wait_until(opened, what="the configuration after the restart") == found


def test_given_certificates_with_an_intermediate():
    with tempfile.TemporaryDirectory() as d, Server() as s:
        d = pathlib.Path(d)
        root = eve.issue("their root", is_ca=True)
        middle = eve.issue("middle", issuer=root, is_ca=True)
        for role in ("signing", "ecdh"):
            leaf = eve.issue(role, issuer=middle)
            (d / f"{role}.pem").write_bytes(leaf.pem + middle.pem)
            (d / f"{role}.key").write_bytes(leaf.key_pem())
        options = [w for role in ("signing", "ecdh") for w in (f"--device-{role}-cert-file", str(d / f"{role}.pem"), f"--device-{role}-key-file", str(d / f"{role}.key"))]
        s.stop()
        refused = seth("server", "--data-dir", s.dir, "--secure-port", 0, "--device-port", 0, *options, check=False)
        assert refused.returncode == 1 and "devices would refuse the signing certificate" in refused.stderr, refused.stderr
        (s.dir / "pki/device-roots.pem").write_bytes(root.pem)
        s.options = options
        s.start()
        directory, _ = media(s, "--bootstrap", *options)
        device = eve.Device("127.0.0.1", s.device_port, (directory / "root-certificate.pem").read_bytes())
        assert device.certs().status == 200
        assert x509.load_pem_x509_certificate(device.signing_pem).issuer == middle.certificate.subject


# ---- the manual ---------------------------------------------------------------------------


def run_shell(s, script):
    """As the reader of docs/ONBOARDING.md, in a directory of their own."""
    home = s.dir / "reader"
    home.mkdir(exist_ok=True)
    script = f'seth() {{ {binary()} "$@"; }}\n' + script.replace("/var/lib/seth", str(s.dir)).replace(" -w\n", "\n")
    env = {**os.environ, "PATH": f"{KUBECTLS['new'].parent}:{os.environ['PATH']}", "HOME": str(home), "KUBECONFIG": s.kubeconfig}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=home, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (script, done.stdout + done.stderr)
    return done.stdout


def booted(s, medium, serial=None):
    """A machine installed from this medium."""
    directory = s.dir / "reader" / medium
    return eve.Device("127.0.0.1", s.device_port, (directory / "root-certificate.pem").read_bytes(), onboarding=identity(directory), serial=serial)


def test_onboarding_page_as_written():
    text = (TOP / "docs/ONBOARDING.md").read_text()
    for option in set(re.findall(r"(--[a-z][a-z-]+)", re.sub(r"```sh\n.*?```", "", text, flags=re.S))):
        assert any(option in seth(c, "--help").stdout for c in ("server", "device-media", "rotate-certs")), option
    start, medium, serials, watch, named, approve, everybody, trouble, attestation, templates, revoke, rotate = re.findall(r"```sh\n(.*?)```", text, re.S)
    words = start.split()
    assert words[:2] == ["seth", "server"] and "--device-port" in words
    with Server(*words[words.index("--tls-san"):]) as s:
        assert "onboardcertificate.eve.lfedge.org/onboard-" in run_shell(s, medium)
        run_shell(s, serials)
        assert not run_shell(s, watch)
        d = booted(s, "usb").onboard()
        name = f"eve-{d.identity.der_hash.hex()[:8]}"
        assert name in run_shell(s, watch)
        assert booted(s, "two", "4CE21370XA").onboard() and booted(s, "two", "another").certs().status == 200
        stranger = booted(s, "two", "another")
        stranger.certs()
        assert stranger.register().status == 403
        run_shell(s, approve)
        wait_until(lambda: stranger.register().status in (200, 201), what="the approved request to let it in")
        run_shell(s, everybody)
        late = booted(s, "two", "nobody's")
        wait_until(lambda: late.register().status == 201, what="open registration")
        assert f"eve-{late.identity.der_hash.hex()[:8]}" in run_shell(s, watch)
        run_shell(s, named)
        chosen = booted(s, "static", "4CE21370XC").onboard()
        assert s.ok("GET", "/apis/eve.lfedge.org/v1beta1/namespaces/plant/devices/press-7")["status"]["uuid"] == chosen.uuid
        assert "DeviceRegistered" in run_shell(s, trouble)
        assert d.config()[0].status == 200
        run_shell(s, attestation)
        wait_until(lambda: d.config(known="")[0].status == 403, what="attestation to be asked for")
        assert chosen.config(known="")[0].status == 200
        run_shell(s, templates)
        assert "PCRValues" in s.ok("GET", "/api/v1/namespaces/eve-system/configmaps/pcr-templates")["data"]["templates.json"]
        run_shell(s, rotate)
        revoked = revoke.splitlines()
        run_shell(s, revoked[0])
        wait_until(lambda: chosen.send("POST", chosen.path("config"), eve.seal(chosen.identity, b"")).status == 403, what="the device to be refused")
        run_shell(s, "\n".join(revoked[1:]))
        wait_until(lambda: chosen.send("POST", chosen.path("config"), eve.seal(chosen.identity, b"")).status in (400, 401, 403, 404), what="the device to be gone")
