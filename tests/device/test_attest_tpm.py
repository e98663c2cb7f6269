# SPDX-License-Identifier: Apache-2.0
"""Attestation with a TPM: quotes that a software TPM signed, and everything that can be wrong with one."""
import contextlib

import eve
import wire
from fleet import neighbour, shared_site as site
from seth import wait_until
from tpm import Tpm

VERSIONS = ("13.4.0-kvm-amd64", "UEFI 1.0")


@contextlib.contextmanager
def quoting(s):
    """A device with a TPM whose certificates are known."""
    with Tpm() as tpm:
        d = site(s).onboarded()
        certs = d.own_certs(tpm.public_key)
        d.ek_identity = eve.issue("device EK", issuer=d.identity, public_key=tpm.ek)
        certs.append(d.zcert(d.ek_identity, eve.EK_CERT, meta_data_items=[{"type": 1, "meta_data": tpm.ek_public}]))
        answer, response = d.attest_certs(certs)
        assert answer.status == 201 and response["respType"] == eve.REQ_CERT, (answer, response)
        yield d, tpm


def attempt(d, tpm, nonce=None, change=None):
    """One quote; change(data, signature, pcrs) -> what is sent instead. Returns the ZAttestQuoteResp."""
    asked = d.nonce()
    parts = tpm.quote(asked if nonce is None else nonce)
    answer, result = d.quote(*(change(*parts) if change else parts), versions=VERSIONS)
    assert answer.status == 201, answer
    return result


def failed(result, *codes):
    assert result.get("response", 0) in codes, result
    assert not result.get("integrity_token") and not result.get("keys"), f"given away to a quote that failed: {result}"


def test_a_good_quote(s):
    with quoting(s) as (d, tpm):
        result = attempt(d, tpm)
        assert result["response"] == eve.SUCCESS and len(result["integrity_token"]) >= 16, result
        assert d.config()[0].status == 200
        condition = wait_until(lambda: [c for c in site(s).object(d)["status"].get("conditions", []) if c["type"] == "Attested" and c["status"] == "True"], what="Attested")
        assert condition


def test_registers_changed_after_the_quote(s):
    """The values sent beside a quote are those the TPM signed, or it fails."""
    with quoting(s) as (d, tpm):
        def extended(data, signature, pcrs):
            tpm.extend(9, b"another kernel")
            return data, signature, tpm.pcrs()

        failed(attempt(d, tpm, change=extended), 0, eve.QUOTE_FAILED)
        for index in (0, 7, 15):
            failed(attempt(d, tpm, change=lambda data, signature, pcrs: (data, signature, {**pcrs, index: b"\1" * 32})), 0, eve.QUOTE_FAILED)
        assert attempt(d, tpm)["response"] == eve.SUCCESS  # honest about the new value


def test_registers_missing(s):
    with quoting(s) as (d, tpm):
        failed(attempt(d, tpm, change=lambda data, signature, pcrs: (data, signature, {})), 0, eve.QUOTE_FAILED)
        failed(attempt(d, tpm, change=lambda data, signature, pcrs: (data, signature, {i: v for i, v in pcrs.items() if i != 3})), 0, eve.QUOTE_FAILED)
        failed(attempt(d, tpm, change=lambda data, signature, pcrs: (data, signature, {**pcrs, 0: pcrs[0][:20]})), 0, eve.QUOTE_FAILED)
        assert attempt(d, tpm, change=lambda data, signature, pcrs: (data, signature, {i: pcrs[i] for i in range(16)}))["response"] == eve.SUCCESS


def test_wrong_nonce(s):
    with quoting(s) as (d, tpm):
        failed(attempt(d, tpm, nonce=b"0123456789abcdef0123456789abcdef"), eve.NONCE_MISMATCH)


def test_replayed_quote(s):
    """A nonce is good for one quote."""
    with quoting(s) as (d, tpm):
        parts = tpm.quote(d.nonce())
        assert d.quote(*parts)[1]["response"] == eve.SUCCESS
        failed(d.quote(*parts)[1], eve.NONCE_MISMATCH)
        d.nonce()
        failed(d.quote(*parts)[1], eve.NONCE_MISMATCH)
        old = d.nonce()
        d.nonce()  # asked again: the first is void
        failed(d.quote(*tpm.quote(old))[1], eve.NONCE_MISMATCH)


def test_nonce_of_another_device(s):
    with quoting(s) as (d, tpm):
        other = site(s).onboarded()
        d.nonce()
        failed(d.quote(*tpm.quote(other.nonce()))[1], eve.NONCE_MISMATCH)


def test_signature_of_another_tpm(s):
    with quoting(s) as (d, tpm), Tpm() as other:
        nonce = d.nonce()
        failed(d.quote(*other.quote(nonce))[1], 0, eve.QUOTE_FAILED)
        data, signature, pcrs = tpm.quote(d.nonce())
        failed(d.quote(data, signature[:-1], pcrs)[1], 0, eve.QUOTE_FAILED)
        data, signature, pcrs = tpm.quote(d.nonce())
        failed(d.quote(data, d.identity.sign(data), pcrs)[1], 0, eve.QUOTE_FAILED)  # the device's own key is not the TPM's


def test_statement_that_is_damaged(s):
    with quoting(s) as (d, tpm):
        neighbours = site(s).onboarded()
        with neighbour(neighbours):
            for change in (lambda data: data[:-1], lambda data: data + b"\0", lambda data: data[:40], lambda data: b"\xff" * len(data), lambda data: b"\xff" + data):
                failed(attempt(d, tpm, change=lambda data, signature, pcrs: (change(data), signature, pcrs)), 0, eve.NONCE_MISMATCH, eve.QUOTE_FAILED)


def test_quote_without_certificates(s):
    with Tpm() as tpm:
        d = site(s).onboarded()
        failed(attempt(d, tpm), eve.NO_CERT)


def test_a_device_with_a_tpm_does_not_do_without(s):
    with quoting(s) as (d, tpm):
        assert attempt(d, tpm)["response"] == eve.SUCCESS
        d.nonce()
        answer, result = d.quote()
        assert answer.status == 201
        failed(result, 0, eve.QUOTE_FAILED)


def test_keys_are_escrowed(s):
    """Stored before they are acknowledged, given back unchanged to every good quote and to no other, also after a restart."""
    with quoting(s) as (d, tpm):
        result = attempt(d, tpm)
        assert not result.get("keys"), result
        key = wire.encode("attest.AttestVolumeKeyData", {"encrypted_key": bytes(range(256)), "digest_sha256": bytes(32)})
        answer, stored = d.store_keys([key], token=b"x" * 32)
        assert answer.status == 201 and stored["response"] == 2, stored
        assert not attempt(d, tpm).get("keys")
        answer, stored = d.store_keys([key])
        assert answer.status == 201 and stored["response"] == 1, stored
        assert [k["key"] for k in attempt(d, tpm)["keys"]] == [key]
        failed(attempt(d, tpm, nonce=b"wrong nonce wrong nonce"), eve.NONCE_MISMATCH)
        newer = key + wire.delimited(99, b"of a newer version")
        assert d.store_keys([newer])[1]["response"] == 1
        assert [k["key"] for k in attempt(d, tpm)["keys"]] == [newer]
        s.kill()
        s.start()
        assert [k["key"] for k in attempt(d, tpm)["keys"]] == [newer], "a device would now delete its vault"


def test_enforcement(s):
    """With `attestation: enforce` there is no configuration without a good quote."""
    with quoting(s) as (d, tpm):
        assert d.config()[0].status == 200
        site(s).annotate(d, attestation="enforce")
        wait_until(lambda: d.config(known="", token=b"")[0].status == 403, what="enforcement")
        assert d.config(known="", token=b"x" * 64)[0].status == 403
        assert attempt(d, tpm)["response"] == eve.SUCCESS
        assert d.config(known="")[0].status == 200
        assert d.config(known="", token=b"")[0].status == 403
        assert d.config(known="", token=d.token + b"x")[0].status == 403


def test_event_log(s):
    with quoting(s) as (d, tpm):
        data, signature, pcrs = tpm.quote(d.nonce())
        answer, result = d.quote(data, signature, pcrs, tpm_binary_event_log=eve.gzip_member(b"event log" * 5000))
        assert answer.status == 201 and result["response"] == eve.SUCCESS, result
