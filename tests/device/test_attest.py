# SPDX-License-Identifier: Apache-2.0
"""Attestation against templates of register values, and what of it outlives the server."""
import json

import eve
import seth
from fleet import Site
from seth import wait_until
from tpm import Tpm

TEMPLATES = "/api/v1/namespaces/eve-system/configmaps"
VERSIONS = ("14.5.0-kvm-amd64", "UEFI 1.0")


def quoting(here, tpm):
    """A device with a TPM whose certificates are known."""
    d = here.onboarded()
    certs = d.own_certs(tpm.public_key)
    assert d.attest_certs(certs)[0].status == 201
    return d


def attempt(d, tpm, versions=VERSIONS):
    answer, result = d.quote(*tpm.quote(d.nonce()), versions=versions)
    assert answer.status == 201, answer
    return result.get("response", 0), result


def put_templates(s, *templates):
    body = {"metadata": {"name": "pcr-templates"}, "data": {"templates.json": json.dumps(templates)}}
    s.request("DELETE", f"{TEMPLATES}/pcr-templates")
    s.ok("POST", TEMPLATES, body)


def template(pcrs, version=VERSIONS[0], firmware=VERSIONS[1]):
    return {"eveVersion": version, "firmwareVersion": firmware, "PCRValues": [{"index": i, "value": v.hex()} for i, v in pcrs.items()]}


def attested(here, d):
    return next((c for c in here.object(d)["status"].get("conditions", []) if c["type"] == "Attested"), {})


def test_templates():
    with seth.Server() as s, Tpm() as tpm:
        here = Site(s)
        d = quoting(here, tpm)
        here.annotate(d, attestation="enforce")
        wait_until(lambda: d.config(known="")[0].status == 403, what="attestation to be asked for")
        first = tpm.pcrs()
        put_templates(s, template({9: b"\x99" * 32}, version="13.0.0"), template(first))
        assert attempt(d, tpm)[0] == eve.SUCCESS
        assert d.config(known="")[0].status == 200
        assert attempt(d, tpm, versions=("14.6.0",))[0] == 0  # no template is for that version
        assert d.config(known="")[0].status == 403  # and what it was given before counts no more
        assert attempt(d, tpm)[0] == eve.SUCCESS
        tpm.extend(9, b"another kernel")
        code, result = attempt(d, tpm)
        assert code == eve.QUOTE_FAILED and not result.get("integrity_token"), result
        assert d.config(known="")[0].status == 403
        wait_until(lambda: attested(here, d).get("status") == "False" and "PCR 9" in attested(here, d)["message"], what="the condition to name the register")
        events = s.ok("GET", f"/api/v1/namespaces/{here.ns}/events")["items"]
        assert any(e["reason"] == "AttestationFailed" and e["involvedObject"]["name"] == here.name(d) for e in events), events
        put_templates(s, template(first), template({**tpm.pcrs(), 0: b""}, firmware=""))  # both kernels, any firmware
        assert attempt(d, tpm)[0] == eve.SUCCESS
        assert d.config(known="")[0].status == 200


def test_what_was_acknowledged_outlives_kill():
    with seth.Server() as s, Tpm() as tpm:
        here = Site(s)
        d = quoting(here, tpm)
        here.annotate(d, attestation="enforce")
        assert attempt(d, tpm)[0] == eve.SUCCESS
        keys = [b"\x00\xff sealed to the TPM", b"another"]
        answer, result = d.store_keys(keys)
        assert answer.status == 201 and result["response"] == 1, result
        nonce = d.nonce()
        s.kill()
        s.start()
        wait_until(lambda: d.config(known="")[0].status == 200, what="the token to be known again")
        answer, result = d.quote(*tpm.quote(nonce), versions=VERSIONS)  # nonces are not kept: the device asks for another
        assert result["response"] == eve.NONCE_MISMATCH, result
        code, result = attempt(d, tpm)
        assert code == eve.SUCCESS and [k["key"] for k in result["keys"]] == keys, result
        replaced = [d.zcert(eve.issue("device ECDH", issuer=d.identity), eve.ECDH_CERT)]
        assert d.attest_certs(replaced)[0].status == 403
        secrets = s.ok("GET", f"/api/v1/namespaces/{here.ns}/secrets/{here.name(d)}.eve-device")
        assert secrets["metadata"]["ownerReferences"][0]["uid"] == here.object(d)["metadata"]["uid"]
        here.delete(d)
        wait_until(lambda: s.request("GET", f"/api/v1/namespaces/{here.ns}/secrets/{here.name(d)}.eve-device")[0] == 404, what="the Secret to go with its Device")
