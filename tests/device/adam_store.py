# SPDX-License-Identifier: Apache-2.0
"""A store as Adam leaves it behind: a directory, or the same in a Redis; with certificates that its devices trust.

    store = AdamStore(directory)
    d = store.add_device()              # an eve.Device that has been registered with Adam
    store.write_directory()             # or write_redis(port)"""
import base64
import datetime
import ipaddress
import json
import socket
import subprocess
import tempfile
import uuid

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

import eve
import wire
from seth import wait_until

FILES = {"DEVICE_CERTS": "device-certificate.pem", "DEVICE_ONBOARD_CERTS": "onboard-certificate.pem", "DEVICE_SERIALS": "serial.txt",
         "DEVICE_CONFIGS": "config.json", "DEVICE_ATTEST_CERTS": "certs.json", "DEVICE_STORAGE_KEYS": "storage-keys.json", "DEVICE_OPTIONS": "options.json"}


def b64(data):
    return base64.b64encode(data).decode()


def go_json(value):
    """Go's plain JSON of a message given with proto names: bytes as base64, enums as numbers, zeros left out."""
    if isinstance(value, bytes):
        return b64(value)
    if isinstance(value, dict):
        return {k: go_json(v) for k, v in value.items() if v}
    return [go_json(v) for v in value] if isinstance(value, list) else value


def server_identity(authority, *names):
    key = eve.new_key()
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None, microsecond=0)
    alternatives = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")), *map(x509.DNSName, names)]
    certificate = (x509.CertificateBuilder().subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "adam.example.org")]))
                   .issuer_name(authority.certificate.subject).public_key(key.public_key()).serial_number(x509.random_serial_number())
                   .not_valid_before(now - datetime.timedelta(minutes=5)).not_valid_after(now + datetime.timedelta(days=365))
                   .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
                   .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
                   .sign(authority.key, hashes.SHA256()))
    return eve.Identity(key, certificate)


class AdamStore:
    def __init__(self, directory):
        self.dir, self.devices, self.onboards, self.options = directory, {}, {}, None
        self.authority = eve.issue("Adam's root", "LFEdge", is_ca=True)
        self.pairs = {"server": server_identity(self.authority), "signing": eve.issue("signing", issuer=self.authority), "encrypt": eve.issue("encrypt", issuer=self.authority)}
        self.onboarding = eve.onboarding_identity()
        self.add_onboard(self.onboarding, ["*"])

    def write_certs(self):
        directory = self.dir / "certs"
        directory.mkdir()
        for name, pair in self.pairs.items():
            (directory / f"{name}.pem").write_bytes(pair.pem)
            (directory / f"{name}-key.pem").write_bytes(pair.key_pem())
        (directory / "root-certificate.pem").write_bytes(self.authority.pem)
        return directory

    def add_onboard(self, identity, serials):
        self.onboards[identity.certificate.subject.rfc4514_string().split("=")[-1]] = (identity.pem, serials)

    def add_device(self, config=None, is_binary=True, **replaced):
        """With a configuration, attestation certificates, escrowed keys and an integrity token."""
        d = eve.Device("127.0.0.1", 0, self.authority.pem, self.onboarding, serial=f"serial-{len(self.devices)}")
        d.uuid, d.token = str(uuid.uuid4()), uuid.uuid4().hex.encode()
        config = {"id": {"uuid": d.uuid, "version": "17"}, "maintenance_mode": True, "device_name": "old", **(config or {})}
        certs = [go_json(c) for c in d.own_certs()]
        parts = {"DEVICE_CERTS": d.identity.pem, "DEVICE_ONBOARD_CERTS": d.onboarding.pem, "DEVICE_SERIALS": d.serial.encode(),
                 "DEVICE_CONFIGS": wire.encode("config.EdgeDevConfig", config) if is_binary else json.dumps(config).encode(),
                 "DEVICE_ATTEST_CERTS": json.dumps({"certs": certs}).encode(),
                 "DEVICE_STORAGE_KEYS": json.dumps(go_json({"integrity_token": d.token, "keys": [{"key_type": 1, "key": b"sealed"}]})).encode(),
                 "DEVICE_OPTIONS": json.dumps({"nonce": "abc", "integrityToken": d.token.decode(), "receivedPCRTemplate": None, "attested": True, "eventLog": None}).encode()}
        self.devices[d.uuid] = {k: v for k, v in {**parts, **replaced}.items() if v is not None}
        return d

    def write_directory(self):
        top = self.dir / "adam"
        (top / "device").mkdir(parents=True, exist_ok=True)
        (top / "onboard").mkdir(exist_ok=True)
        for name, parts in self.devices.items():
            (top / "device" / name / "logs").mkdir(parents=True, exist_ok=True)
            for part, data in parts.items():
                (top / "device" / name / FILES[part]).write_bytes(data)
        for name, (pem, serials) in self.onboards.items():
            (top / "onboard" / name).mkdir(exist_ok=True)
            (top / "onboard" / name / "cert.pem").write_bytes(pem)
            (top / "onboard" / name / "onboard-serials.txt").write_text("\n".join(serials))
        if self.options is not None:
            (top / "global-options.json").write_text(json.dumps(self.options))
        return top

    def write_redis(self, redis):
        for name, parts in self.devices.items():
            for part, data in parts.items():
                redis.command("HSET", part, name, data)
        for name, (pem, serials) in self.onboards.items():
            redis.command("HSET", "ONBOARD_CERTS", name, pem)
            redis.command("HSET", "ONBOARD_SERIALS", name, msgpack(serials))
        if self.options is not None:
            redis.command("HSET", "GLOBAL_OPTIONS", "GLOBAL_OPTIONS", json.dumps(self.options))


def msgpack(texts):
    """A list of short texts."""
    return bytes([0x90 + len(texts)]) + b"".join((bytes([0xA0 + len(t)]) if len(t) < 32 else bytes([0xD9, len(t)])) + t.encode() for t in texts)


class Redis:
    """A redis-server of the test's own."""

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="redis-test-")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.dir.name, "--save", ""],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._answers, what="redis-server")
        return self

    def _answers(self):
        try:
            return self.command("PING") == b"+PONG\r\n"
        except OSError:
            return False

    def command(self, *words):
        """The first piece of the reply."""
        words = [w if isinstance(w, bytes) else w.encode() for w in words]
        with socket.create_connection(("127.0.0.1", self.port), 10) as s:
            s.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
            return s.recv(65536)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.dir.cleanup()
