# SPDX-License-Identifier: Apache-2.0
"""Client certificates that the server itself would never issue."""
import contextlib
import datetime
import pathlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


def issue(directory, name, issuer=None, issuer_key=None, begin=-1, end=1, purpose="client", is_ca=False, subject=None):
    """Files of a certificate valid from `begin` to `end` days from now; self-signed without an issuer."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.utcnow()
    subject = subject or x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters"), x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = {"client": ExtendedKeyUsageOID.CLIENT_AUTH, "server": ExtendedKeyUsageOID.SERVER_AUTH}[purpose]
    builder = (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer.subject if issuer else subject).public_key(key.public_key())
               .serial_number(x509.random_serial_number()).not_valid_before(now + datetime.timedelta(days=begin)).not_valid_after(now + datetime.timedelta(days=end))
               .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True))
    if not is_ca:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    certificate = builder.sign(issuer_key or key, hashes.SHA256())
    files = [str(directory / f"{name}.crt"), str(directory / f"{name}.key")]
    pathlib.Path(files[0]).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pathlib.Path(files[1]).write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return certificate, key, files


def read_authority(s):
    certificate = x509.load_pem_x509_certificate((s.dir / "ca.pem").read_bytes())
    for file in sorted((s.dir / "pki").glob("*.key")) + sorted((s.dir / "pki").glob("*key*.pem")):
        with contextlib.suppress(ValueError, TypeError):
            key = serialization.load_pem_private_key(file.read_bytes(), None)
            if key.public_key().public_numbers() == certificate.public_key().public_numbers():
                return certificate, key
    raise AssertionError(f"no key of the authority in {sorted((s.dir / 'pki').iterdir())}")
