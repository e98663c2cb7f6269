# SPDX-License-Identifier: Apache-2.0
"""A device proves itself to a real server: in software, and with a TPM."""
import base64
import contextlib
import json

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

import wire
from attested import COMPLETE, Attested
from fleet import shared_site as site
from seth import unique, wait_until
from test_sealing import PASSWORD, registry
from tpm import Tpm as Chip

ECDH, QUOTE, ENDORSEMENT = 4, 2, 3
DEVICE_ECDH, DEVICE_QUOTE, DEVICE_ENDORSEMENT = 13, 11, 12


class Tpm(Chip):
    """Without the keys of another's making: the device makes its own."""

    def _make_keys(self):
        self.tcti = f"swtpm:path={self.dir}/tpm"


def complete(d):
    wait_until(lambda: d.state() == COMPLETE, what=f"attestation to complete: {d.status()}")


def kept_certs(d):
    """{type: certificate} as the server keeps them."""
    data = d.kept().get("certificates")
    return {c["type"]: c for c in wire.decode("attest.ZAttestReq", data)["certs"]} if data else {}


def is_fetched(d):
    return d.status().get("ConfigGetStatus") == 1


# ---- in software

def test_certificates_reach_the_server_and_stay_the_same(s):
    with Attested(site(s)) as d:
        with d.live():
            complete(d)
            wait_until(lambda: set(kept_certs(d)) == {DEVICE_ECDH, DEVICE_QUOTE}, what="the certificates")
        own, kept = d.certs(), kept_certs(d)
        assert set(own) == {ECDH, QUOTE} and not any(c["IsTpm"] for c in own.values())
        assert base64.b64decode(own[ECDH]["Cert"]) == kept[DEVICE_ECDH]["cert"] == d.read("persist/certs/ecdh.cert.pem")
        cert = x509.load_pem_x509_certificate(kept[DEVICE_ECDH]["cert"])
        d.certificate().public_key().verify(cert.signature, cert.tbs_certificate_bytes, ec.ECDSA(cert.signature_hash_algorithm))
        assert (d.root / "persist/certs/ecdh.key.pem").stat().st_mode & 0o777 == 0o600
        with d.live():
            complete(d)
        assert d.certs() == own and kept_certs(d) == kept


def test_without_a_tpm_there_is_a_token_and_no_key(s):
    with Attested(site(s)) as d:
        with d.live():
            complete(d)
            assert len(d.token()) >= 16 and d.token() == d.kept()["integrity-token"]
            wait_until(lambda: d.attested() == "True", what="Attested")
            assert not d.status()["AttestError"] and not d.status()["EdgeNodeCertsRefused"]
        assert not d.kept().get("storage-keys")
        vault = d.topic("vaultmgr", "EncryptedVaultKeyFromDevice", "Application Data Store")
        assert vault["EncryptedVaultKey"] is None and not vault["IsTpmEnabled"]
        assert not (d.root / "run/zedagent/AttestNonce").exists() or not d.topic("zedagent", "AttestNonce")


def blocks(value):
    """Every CipherBlockStatus in a topic's value."""
    if isinstance(value, dict):
        if value.get("IsCipher"):
            yield value
        for v in value.values():
            yield from blocks(v)
    elif isinstance(value, list):
        for v in value:
            yield from blocks(v)


def opened(d, life, topic):
    """What the secrets of a topic's values hold."""
    for value in d.topic("zedagent", topic).values():
        for block in blocks(value):
            plain = base64.b64decode(life.ask("opened", open=block)["plain"])
            yield wire.decode("common.EncryptionBlock", plain)


def secrets_are_opened(s, d, life):
    store = registry(s, site(s))
    name = unique("app")
    s.ok("POST", site(s).path("images"), {"apiVersion": "eve.lfedge.org/v1beta1", "kind": "Image", "metadata": {"name": name},
                                          "spec": {"ref": "corp/app:1", "storageClass": store}})
    s.ok("POST", site(s).path("applications"), {
        "apiVersion": "eve.lfedge.org/v1beta1", "kind": "Application", "metadata": {"name": name},
        "spec": {"nodeSelector": {"name": d.name()}, "userData": "#cloud-config\npassword: " + PASSWORD, "containers": [{"name": "main", "image": name}]}})
    wait_until(lambda: any(list(blocks(v)) for v in d.topic("zedagent", "DatastoreConfig").values()), what="the datastore", seconds=120)
    stores = list(opened(d, life, "DatastoreConfig"))
    assert [(b["dsAPIKey"], b["dsPassword"]) for b in stores] == [("robot", PASSWORD)]
    wait_until(lambda: any(list(blocks(v)) for v in d.topic("zedagent", "AppInstanceConfig").values()), what="the application", seconds=120)
    users = [b for b in opened(d, life, "AppInstanceConfig") if b.get("protectedUserData")]
    assert users and all(base64.b64decode(b["protectedUserData"]).decode().endswith(PASSWORD) for b in users)


def test_secrets_are_opened(s):
    with Attested(site(s)) as d, d.live() as life:
        complete(d)
        secrets_are_opened(s, d, life)
        said = life.ask("signed", sign="words of an application")
        container = wire.decode("auth.AuthContainer", base64.b64decode(said["envelope"]))
        assert container["protectedPayload"]["payload"] == b"words of an application"
        assert life.ask("error", tpm=True)["words"]


def test_certificates_that_are_refused(s):
    """The server keeps another certificate of the type for good: the device says so, and comes out of it when an operator removes it."""
    with Attested(site(s)) as d:
        with d.live():
            complete(d)
            wait_until(lambda: kept_certs(d), what="the certificates")
        for name in ("ecdh.cert.pem", "ecdh.key.pem"):
            (d.root / "persist/certs" / name).unlink()
        with d.live():
            wait_until(lambda: d.status().get("EdgeNodeCertsRefused"), what="refusal", seconds=60)
            s.ok("PATCH", f"/api/v1/namespaces/{site(s).ns}/secrets/{d.name()}.eve-device", {"data": {"certificates": None}},
                 {"Content-Type": "application/merge-patch+json"})
            wait_until(lambda: not d.status().get("EdgeNodeCertsRefused"), what="an end of refusal", seconds=60)
            assert kept_certs(d)[DEVICE_ECDH]["cert"] == d.read("persist/certs/ecdh.cert.pem")


def test_forbidden_until_it_attests_again(s):
    """The server has forgotten the token: config is 403, the device attests anew and has its configuration."""
    with Attested(site(s)) as d:
        d.annotate(attestation="enforce")
        with d.live():
            complete(d)
            wait_until(lambda: is_fetched(d), what="a configuration", seconds=60)
            before = d.token()
            s.ok("PATCH", f"/api/v1/namespaces/{site(s).ns}/secrets/{d.name()}.eve-device",
                 {"data": {"integrity-token": base64.b64encode(b"of another life").decode()}}, {"Content-Type": "application/merge-patch+json"})
            d.annotate(**{"config.timer.config.interval": "61"})  # something new to be told
            wait_until(lambda: d.token() not in (before, None) and d.state() == COMPLETE, what="another token", seconds=120)
            wait_until(lambda: d.topic("zedagent", "ConfigItemValueMap", "global")["GlobalSettings"]["timer.config.interval"]["IntValue"] == 61,
                       what="the configuration", seconds=120)


def test_a_server_that_is_down_is_asked_again(s):
    with Attested(site(s)) as d:
        s.stop()
        with d.live():
            wait_until(lambda: d.status().get("AttestError"), what="an error")
            assert d.state() == 1
            s.start()
            complete(d)
            assert not d.status()["AttestError"]


# ---- with a TPM

@contextlib.contextmanager
def with_tpm(s):
    with Tpm() as tpm, Attested(site(s)) as d:
        yield d, tpm


def test_a_quote_is_accepted_and_its_token_used(s):
    with with_tpm(s) as (d, tpm):
        d.annotate(attestation="enforce")
        with d.live(tcti=tpm.tcti) as life:
            complete(d)
            wait_until(lambda: set(kept_certs(d)) == {DEVICE_ECDH, DEVICE_QUOTE, DEVICE_ENDORSEMENT}, what="the certificates")
            wait_until(lambda: d.attested() == "True", what="Attested")
            wait_until(lambda: is_fetched(d), what="a configuration", seconds=60)
            assert d.token() == d.kept()["integrity-token"]
            assert all(c["IsTpm"] for c in d.certs().values())
            assert d.read("persist/certs/ecdh.key.pem") is None
            quoted = wire.decode("attest.ZAttestQuote", d.kept()["pcrs"])
            assert {v["version_type"]: v["version"] for v in quoted["versions"]} == {1: "13.4.0-kvm-amd64", 2: "Maker-1.0"}
            assert {p.get("index", 0): p["value"] for p in quoted["pcr_values"]} == tpm.pcrs()
            assert len(base64.b64decode(life.ask("tpm", tpm=True)["name"])) == 2 + 34
            secrets_are_opened(s, d, life)  # by the TPM


def test_the_key_of_the_vault_is_escrowed_and_comes_back(s):
    with with_tpm(s) as (d, tpm):
        def vault():
            return d.topic("vaultmgr", "VaultStatus", "Application Data Store") or {}

        with d.live(tcti=tpm.tcti):
            complete(d)
            assert vault()["UnlockMethod"] == 1
            keys = wire.decode("attest.AttestStorageKeys", d.kept()["storage-keys"])["keys"]
            escrowed = d.topic("vaultmgr", "EncryptedVaultKeyFromDevice", "Application Data Store")["EncryptedVaultKey"]
            assert [k["key"] for k in keys] == [base64.b64decode(escrowed)]
        # The same boot: the TPM opens it, and the server keeps the same bytes.
        with d.live(tcti=tpm.tcti):
            complete(d)
            assert vault()["UnlockMethod"] == 1
            assert d.topic("zedagent", "EncryptedVaultKeyFromController", "Application Data Store")["EncryptedVaultKey"] == escrowed
        # Something else has booted, the server accepts it, and gives the key back.
        tpm.extend(9, b"another kernel")
        with d.live(tcti=tpm.tcti):
            complete(d)
            assert vault()["UnlockMethod"] == 2
            assert d.topic("vaultmgr", "EncryptedVaultKeyFromDevice", "Application Data Store")["EncryptedVaultKey"] == escrowed
        with d.live(tcti=tpm.tcti):
            complete(d)
            assert vault()["UnlockMethod"] == 1
        assert wire.decode("attest.AttestStorageKeys", d.kept()["storage-keys"])["keys"] == keys


def test_a_quote_that_does_not_fit_is_tried_again(s):
    """With templates for other registers the server says no; once it has the right ones, the device is let in."""
    with with_tpm(s) as (d, tpm):
        d.annotate(attestation="enforce")
        path = "/api/v1/namespaces/eve-system/configmaps"
        version = "13.4.0-kvm-amd64"
        template = {"eveVersion": version, "firmwareVersion": "Maker-1.0", "PCRValues": [{"index": 0, "value": "11" * 32}]}
        s.ok("POST", path, {"metadata": {"name": "pcr-templates"}, "data": {"templates.json": json.dumps([template])}})
        try:
            with d.live(tcti=tpm.tcti):
                wait_until(lambda: d.status().get("AttestError"), what="a refusal", seconds=60)
                assert d.state() != COMPLETE and not d.token()
                s.ok("DELETE", f"{path}/pcr-templates")
                wait_until(lambda: d.state() == COMPLETE, what="attestation", seconds=60)
                wait_until(lambda: is_fetched(d), what="a configuration", seconds=60)
        finally:
            s.request("DELETE", f"{path}/pcr-templates")
