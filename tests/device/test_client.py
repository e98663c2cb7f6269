# SPDX-License-Identifier: Apache-2.0
"""The client itself, against vectors and other programs: a client that is wrong in the same way twice would find nothing."""
import gzip
import hashlib
import json
import pathlib
import subprocess
import zlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

import eve
import tpm
import wire

TOP = pathlib.Path(__file__).resolve().parents[2]
# RFC 5903 section 8.1.
DC = 0xC88F01F510D9AC3F70A292DAA2316DE544E9AAB8AFE84049C62A9C57862D1433
QD = (0xD12DFB5289C8D4F81208B70270398C342296970A0BCCB74C736FC7554494BF63, 0x56FBF3CA366CC23E8157854C13C58D6AAC23F046ADA30F8353E74F33039872AB)


def distrusted(word, function, *arguments):
    try:
        function(*arguments)
    except eve.Distrust as e:
        assert word in str(e), e
        return
    raise AssertionError(f"believed, though {word}")


def protoc(mode, message, data):
    """What Google's compiler makes of a message: it reads our .proto files."""
    package = message.split(".")[0]
    done = subprocess.run(["protoc", "-I", str(TOP / "proto"), f"--{mode}=org.lfedge.eve.{message}", f"eve/{package}.proto"], input=data, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_wire_writes_what_protoc_reads():
    log = {"devID": "x", "log": [{"severity": "info", "msgid": 2**63, "content": "ä", "tags": {"a": "b"}, "timestamp": {"seconds": 1, "nanos": 5}}]}
    data = wire.encode("logs.LogBundle", log)
    text = protoc("decode", "logs.LogBundle", data)
    assert b"msgid: 9223372036854775808" in text and b'key: "a"' in text and b"nanos: 5" in text, text
    assert protoc("encode", "logs.LogBundle", text) == data
    assert wire.decode("logs.LogBundle", data) == log


def test_wire_numbers():
    assert wire.varint(300) == b"\xac\x02" and wire.varint(-1) == b"\xff" * 9 + b"\x01"
    assert wire.encode("info.ZInfoMsg", {"ztype": "ZiDevice", "dinfo": {}}) == b"\x08\x01\x1a\x00"
    assert wire.encode("attest.AttestPolicyPcrList", {"pcr_indices": [0, 1, 300], "policy_id": 0}) == b"\x0a\x04\x00\x01\xac\x02"
    assert wire.decode("attest.AttestPolicyPcrList", b"\x08\x05\x0a\x02\x01\x02") == {"pcr_indices": [5, 1, 2]}
    assert wire.encode("auth.AuthContainer", {"protectedPayload": {"payload": b""}}) == b"\x0a\x00"
    assert wire.decode("uuid.UuidResponse", b"\x7a\x01a")["?"] == [(15, 2, b"a")]
    for bad in (b"\x0a\x05abc", b"\x0a", b"\xff" * 11, b"\x0b"):
        try:
            wire.decode("uuid.UuidResponse", bad)
            raise AssertionError(bad)
        except wire.Malformed:
            pass


def test_envelope():
    one, other = eve.device_identity(), eve.device_identity()
    fields = wire.decode("auth.AuthContainer", eve.seal(one, b"abc"))
    assert fields["senderCertHash"] == hashlib.sha256(one.der).digest() and fields["algo"] == 2
    r, s = fields["signatureHash"][:32], fields["signatureHash"][32:]
    assert len(s) == 32
    one.key.public_key().verify(encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big")), b"abc", ec.ECDSA(hashes.SHA256()))
    for algo, n in ((1, 16), (2, 32)):
        assert eve.open_envelope(eve.seal(one, b"abc", algo=algo, sender_hash=one.pem_hash[:n]), one.pem) == b"abc"
    assert eve.open_envelope(eve.seal(one, b"", sender_hash=one.pem_hash), one.pem) == b""
    distrusted("CertMiss", eve.open_envelope, eve.seal(one, b"abc"), one.pem)  # the hash of DER, which is a device's
    distrusted("CertMiss", eve.open_envelope, eve.seal(one, b"abc", sender_hash=one.pem_hash), other.pem)
    distrusted("HashSize", eve.open_envelope, eve.seal(one, b"abc", sender_hash=one.pem_hash[:20]), one.pem)
    distrusted("AlgoFail", eve.open_envelope, eve.seal(one, b"abc", sender_hash=one.pem_hash, algo=0), one.pem)
    distrusted("SignVerifyFail", eve.open_envelope, eve.seal(one, b"abc", sender_hash=one.pem_hash, signature=other.sign(b"abc")), one.pem)
    distrusted("SignVerifyFail", eve.open_envelope, eve.seal(one, b"abc", sender_hash=one.pem_hash, signature=one.sign(b"abc")[:63]), one.pem)


def zcert(identity, kind):
    return {"hashAlgo": 1, "certHash": identity.pem_hash[:16], "type": kind, "cert": identity.pem}


def test_certs_of_a_controller():
    root, stranger = eve.issue("root", is_ca=True), eve.issue("root", is_ca=True)
    middle = eve.issue("middle", issuer=root, is_ca=True)
    signing, ecdh, below = eve.issue("s", issuer=root), eve.issue("e", issuer=root), eve.issue("b", issuer=middle)
    d = eve.Device("127.0.0.1", 1, stranger.pem + root.pem)
    d.take_certs([zcert(signing, 1), zcert(ecdh, 3)])
    assert d.signing_pem == signing.pem and d.ecdh[0][0] == ecdh.pem_hash[:16]
    d.take_certs([zcert(below, 1), zcert(middle, 2), zcert(ecdh, 3), zcert(below, 3)])
    distrusted("chain", d.take_certs, [zcert(below, 1), zcert(ecdh, 3)])
    distrusted("chain", d.take_certs, [zcert(eve.issue("x", issuer=stranger.__class__(eve.new_key(), root.certificate)), 1), zcert(ecdh, 3)])
    distrusted("0 ECDH", d.take_certs, [zcert(signing, 1)])
    distrusted("2 signing", d.take_certs, [zcert(signing, 1), zcert(below, 1), zcert(middle, 2), zcert(ecdh, 3)])
    distrusted("types", d.take_certs, [zcert(signing, 1), zcert(ecdh, 3), zcert(ecdh, 13)])
    distrusted("certHash", d.take_certs, [zcert(signing, 1), {**zcert(ecdh, 3), "certHash": ecdh.der_hash[:16]}])
    distrusted("validity", d.take_certs, [zcert(signing, 1), zcert(eve.issue("old", issuer=root, years=0), 3)])


def test_object_encryption_vector():
    key = ec.derive_private_key(DC, ec.SECP256R1())
    point = ec.EllipticCurvePublicNumbers(*QD, ec.SECP256R1()).public_key()
    assert eve.shared_key(key, point).hex() == "fe85d2895d95a73e2c9a2157c13c1b61dae4384f5ac17b0ffae227c057178c8e"
    d = eve.Device("127.0.0.1", 1, eve.issue("root", is_ca=True).pem)
    d.ecdh_identity = eve.issue("device ECDH", key=key)
    controller = eve.issue("controller", public_key=point, issuer=d.identity)
    d.ecdh = [(controller.pem_hash[:16], controller.certificate)]
    config = {"cipherContexts": [{"contextId": "c", "controllerCertHash": controller.pem_hash[:16], "deviceCertHash": d.ecdh_identity.pem_hash[:16]}]}
    plain = wire.encode("common.EncryptionBlock", {"dsAPIKey": "user", "dsPassword": "a-longer-password-20"})
    block = {"cipherContextId": "c", "initialValue": bytes(range(16)), "clearTextSha256": eve.sha256(plain),
             "cipherData": bytes.fromhex("16e3cb621bea4bb75f23e982b8c0ad6581164ebe460658638f14c1a9")}
    assert d.decrypt(config, block) == plain
    distrusted("hash", d.decrypt, config, {**block, "cipherData": bytes(28)})


def test_gzip_member():
    lines = eve.log_lines([eve.entry("one", msgid=7, when=1.5), eve.entry("two", severity="")])
    member = eve.gzip_member(lines, name="Küche \u20ac", comment='{"devID":"x"}', mtime=77)
    assert gzip.decompress(member) == lines and b"K\xfcche \\u20ac\0" in member and member[4:8] == b"\x4d\0\0\0"
    first = json.loads(lines.splitlines()[0])
    assert first["timestamp"] == {"seconds": 1, "nanos": 500000000} and first["msgid"] == 7 and "severity" not in json.loads(lines.splitlines()[1])
    assert zlib.decompressobj(31).decompress(member[:-1]) == lines


def test_certificates_as_eve_makes_them():
    device = eve.device_identity()
    assert device.certificate.subject.rfc4514_string() == "CN=EVE,O=The Linux Foundation"
    basic = device.certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert basic.ca and device.pem.endswith(b"-----END CERTIFICATE-----\n")
    quote = eve.issue("attestation", issuer=device)
    eve.verify_chain(quote.certificate, [], [device.certificate])


def test_paper_tpm_looks_like_the_other():
    paper = tpm.PaperTpm()
    with tpm.Tpm() as real:
        ours, theirs = paper.quote(b"0123456789ab")[0], real.quote(b"0123456789ab")[0]
    assert len(ours) == len(theirs) and ours[:10] == theirs[:10] and ours[42:56] == theirs[42:56] and ours[-44:-32] == theirs[-44:-32], (ours, theirs)
