# SPDX-License-Identifier: Apache-2.0
"""A software TPM with an attestation key, as EVE has one: swtpm and tpm2-tools in a directory of their own.

    with Tpm() as tpm:
        device.own_certs(tpm.public_key)
        data, signature, pcrs = tpm.quote(nonce)
        tpm.extend(9, b"another kernel")"""
import hashlib
import pathlib
import shutil
import subprocess
import tempfile
import time

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

QUOTED, READ = range(16), range(24)     # what pillar selects, and what it sends
HANDLE, EK_HANDLE = "0x81000001", "0x81010001"
RESTRICTED = "fixedtpm|fixedparent|sensitivedataorigin|userwithauth|restricted|sign"
START_SECONDS = 20


class Tpm:
    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="seth-tpm-"))
        self.process = subprocess.Popen(
            ["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={self.dir}", "--server", f"type=unixio,path={self.dir}/tpm",
             "--ctrl", f"type=unixio,path={self.dir}/tpm.ctrl", "--flags", "not-need-init,startup-clear"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._wait()
            self._make_keys()
        except BaseException:
            self.__exit__()
            raise

    def _wait(self):
        end = time.monotonic() + START_SECONDS
        while not (self.dir / "tpm").exists():
            assert self.process.poll() is None and time.monotonic() < end, "swtpm did not start"
            time.sleep(0.01)

    def _make_keys(self):
        self.run("createprimary", "-C", "o", "-G", "ecc256:ecdsa-sha256:null", "-a", RESTRICTED, "-c", "ak.ctx")
        self.run("evictcontrol", "-C", "o", "-c", "ak.ctx", HANDLE)
        self.run("readpublic", "-c", HANDLE, "-f", "pem", "-o", "ak.pem")
        self.run("createek", "-G", "ecc", "-c", EK_HANDLE, "-f", "pem", "-u", "ek.pem")
        self.run("readpublic", "-c", EK_HANDLE, "-f", "tss", "-o", "ek.tss")
        self.public_key, self.ek = (serialization.load_pem_public_key((self.dir / f).read_bytes()) for f in ("ak.pem", "ek.pem"))
        self.ek_public = (self.dir / "ek.tss").read_bytes()  # TPM2B_PUBLIC

    def run(self, tool, *arguments):
        for words in ((f"tpm2_{tool}", *arguments), ("tpm2_flushcontext", "-t")):
            done = subprocess.run([*words, "-T", f"swtpm:path={self.dir}/tpm"], cwd=self.dir, capture_output=True, timeout=60)
            assert done.returncode == 0, f"{' '.join(words)}: {done.stderr.decode()}"

    def pcrs(self):
        """{index: value} of the SHA-256 bank."""
        self.run("pcrread", "sha256:" + ",".join(map(str, READ)), "-o", "pcrs")
        data = (self.dir / "pcrs").read_bytes()
        assert len(data) == 32 * len(READ)
        return {i: data[32 * i:32 * i + 32] for i in READ}

    def extend(self, index, data):
        self.run("pcrextend", f"{index}:sha256={hashlib.sha256(data).hexdigest()}")

    def quote(self, nonce):
        """(TPMS_ATTEST, signature as ASN.1 DER, the register values)."""
        pcrs = self.pcrs()
        self.run("quote", "-c", HANDLE, "-l", "sha256:" + ",".join(map(str, QUOTED)), "-q", nonce.hex(), "-m", "data", "-s", "signature", "-f", "tss")
        return (self.dir / "data").read_bytes(), der_signature((self.dir / "signature").read_bytes()), pcrs

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        shutil.rmtree(self.dir, ignore_errors=True)


def der_signature(tpmt):
    """A TPMT_SIGNATURE of ECDSA with SHA-256 as DER."""
    assert tpmt[:4] == b"\x00\x18\x00\x0b", tpmt[:4]
    n = int.from_bytes(tpmt[4:6], "big")
    r, rest = tpmt[6:6 + n], tpmt[6 + n:]
    assert len(rest) == 2 + int.from_bytes(rest[:2], "big")
    return encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(rest[2:], "big"))


class PaperTpm:
    """Quotes without a TPM, signed by a key of ours: for tests with hundreds of devices. What it signs has the form that Tpm shows."""

    def __init__(self):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.public_key = self.key.public_key()
        self.values = {i: hashlib.sha256(bytes([i])).digest() for i in QUOTED}

    def quote(self, nonce):
        def sized(data):
            return len(data).to_bytes(2, "big") + data

        clock, firmware, selection = bytes(17), bytes(8), b"\0\0\0\1\0\x0b\3\xff\xff\0"
        digest = hashlib.sha256(b"".join(self.values[i] for i in QUOTED)).digest()
        data = b"\xffTCG\x80\x18" + sized(b"\0\x0b" + bytes(32)) + sized(nonce) + clock + firmware + selection + sized(digest)
        return data, self.key.sign(data, ec.ECDSA(hashes.SHA256())), self.values
