# SPDX-License-Identifier: Apache-2.0
"""An EVE device as the controller sees it, written from the description of the protocol and not from the server.

    onboarding = onboarding_identity()                         # shared by many devices, told apart by their serial
    d = Device("127.0.0.1", port, root_pem, onboarding, serial="s1")
    d.onboard()                                                # GET certs (verified as EVE does), POST register, POST uuid
    answer, response = d.config()                              # 200 and a ConfigResponse, or 304 and None
    d.info({"ztype": "ZiDevice", "dinfo": {...}})              # an Answer: .status .headers .body
    d.newlogs([entry("hello")])

Every request has a connection of its own, as pillar does it. A method that posts returns the Answer whatever its status; one that reads a
message back returns (Answer, message or None) and raises Distrust when a device would not believe the answer. post() takes the bytes of
any payload, send() any body, talk() any bytes at all: for input that no device sends."""
import base64
import collections
import datetime
import hashlib
import http.client
import json
import socket
import ssl
import subprocess
import tempfile
import uuid
import zlib

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

import wire

PROTO = "application/x-proto-binary"
BASE, BASE_V1 = "/api/v2/edgedevice", "/api/v1/edgedevice"
SHA256_16, SHA256_32 = 1, 2
SIGNING, INTERMEDIATE, ECDH = 1, 2, 3                       # certificates of the controller
QUOTE_CERT, EK_CERT, ECDH_CERT = 11, 12, 13                 # and of the device
REQ_CERT, REQ_NONCE, REQ_QUOTE, REQ_STORE_KEYS = 1, 2, 3, 4
SUCCESS, NONCE_MISMATCH, NO_CERT, QUOTE_FAILED = 1, 2, 3, 4  # of a quote
# The only suites pillar offers below TLS 1.3.
SUITES = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256"
SECONDS = 60


class Distrust(Exception):
    """What a device would say to the answer: CertMiss, SignVerifyFail, AlgoFail, HashSizeError, CertInvalid, ..."""


def sha256(data):
    return hashlib.sha256(data).digest()


# ---- keys and certificates

class Identity:
    """A P-256 key and its certificate. pem is the file's text, with the newline at its end."""

    def __init__(self, key, certificate):
        self.key, self.certificate = key, certificate
        self.pem = certificate.public_bytes(serialization.Encoding.PEM)
        self.der = certificate.public_bytes(serialization.Encoding.DER)
        self.der_hash, self.pem_hash = sha256(self.der), sha256(self.pem)

    def key_pem(self):
        return self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())

    def sign(self, payload):
        """Raw r||s over SHA-256, each 32 bytes."""
        return raw_signature(self.key.sign(payload, ec.ECDSA(hashes.SHA256())))


def raw_signature(der, size=32):
    r, s = decode_dss_signature(der)
    return r.to_bytes(size, "big") + s.to_bytes(size, "big")


def new_key():
    return ec.generate_private_key(ec.SECP256R1())


def _name(common_name, organization=None):
    words = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    return x509.Name(([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []) + words)


def issue(common_name, organization="The Linux Foundation", issuer=None, public_key=None, is_ca=False, years=20, key=None, minutes_ago=5):
    """A certificate for a new key (or for `public_key`, whose private half is elsewhere), signed by `issuer` or by itself."""
    key = key or (None if public_key else new_key())
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None, microsecond=0)
    subject = _name(common_name, organization)
    usage = dict(digital_signature=True, key_cert_sign=is_ca, content_commitment=False, key_encipherment=False, data_encipherment=False,
                 key_agreement=False, crl_sign=False, encipher_only=False, decipher_only=False)
    builder = (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer.certificate.subject if issuer else subject)
               .public_key(public_key or key.public_key()).serial_number(x509.random_serial_number())
               .not_valid_before(now - datetime.timedelta(minutes=minutes_ago)).not_valid_after(now + datetime.timedelta(days=365 * years))
               .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
               .add_extension(x509.KeyUsage(**usage), critical=True))
    if is_ca:
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    return Identity(key, builder.sign(issuer.key if issuer else key, hashes.SHA256()))


def onboarding_identity(issuer=None):
    return issue(str(uuid.uuid4()), None, issuer=issuer)


def device_identity(issuer=None):
    """Self-signed and able to issue the device's other certificates."""
    return issue("EVE", issuer=issuer, is_ca=True)


def _time(certificate, which):
    aware = getattr(certificate, which + "_utc", None)
    return aware or getattr(certificate, which).replace(tzinfo=datetime.timezone.utc)


def _extension(certificate, kind):
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _verify(public_key, signature, data, algorithm):
    if isinstance(public_key, ec.EllipticCurvePublicKey):
        public_key.verify(signature, data, ec.ECDSA(algorithm))
    else:
        public_key.verify(signature, data, padding.PKCS1v15(), algorithm)


def _is_issued_by(certificate, issuer):
    if certificate.issuer != issuer.subject:
        return False
    try:
        _verify(issuer.public_key(), certificate.signature, certificate.tbs_certificate_bytes, certificate.signature_hash_algorithm)
    except InvalidSignature:
        return False
    basic, usage = _extension(issuer, x509.BasicConstraints), _extension(issuer, x509.KeyUsage)
    return bool(basic and basic.ca) and (usage is None or usage.key_cert_sign)


def verify_chain(leaf, intermediates, roots):
    """As Go's x509.Verify with its defaults: validity, authority, extended key usage serverAuth."""
    now = datetime.datetime.now(datetime.timezone.utc)

    def check(certificate, depth):
        if not _time(certificate, "not_valid_before") <= now <= _time(certificate, "not_valid_after"):
            raise Distrust("CertInvalid: not within its validity")
        usage = _extension(certificate, x509.ExtendedKeyUsage)
        if usage is not None and certificate not in roots and not {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE} & set(usage):
            raise Distrust("CertInvalid: extended key usage without serverAuth")
        if any(_is_issued_by(certificate, r) for r in roots):
            return
        above = [i for i in intermediates if depth < 8 and i != certificate and _is_issued_by(certificate, i)]
        if not above:
            raise Distrust("CertUnknownAuthority: it does not chain to the root")
        check(above[0], depth + 1)

    check(leaf, 0)


# ---- the envelope

def seal(identity, payload, algo=SHA256_32, sender_hash=None, signature=None, sender_cert=b""):
    """An AuthContainer of the payload; the optional ones replace what is right."""
    return wire.encode("auth.AuthContainer", {
        "protectedPayload": {"payload": payload}, "algo": algo,
        "senderCertHash": identity.der_hash if sender_hash is None else sender_hash,
        "signatureHash": identity.sign(payload) if signature is None else signature, "senderCert": sender_cert})


def payload_of(container):
    """What is inside, unchecked."""
    return wire.decode("auth.AuthContainer", container).get("protectedPayload", {}).get("payload", b"")


def open_envelope(container, signing_pem):
    """The payload of an answer, verified as a device does (the hash is over the PEM bytes as delivered)."""
    c = wire.decode("auth.AuthContainer", container)
    digest, algo = c.get("senderCertHash", b""), c.get("algo", 0)
    if len(digest) not in (16, 32):
        raise Distrust(f"HashSizeError: {len(digest)}")
    if algo not in (SHA256_16, SHA256_32):
        raise Distrust(f"AlgoFail: {algo}")
    if digest != sha256(signing_pem)[:16 if algo == SHA256_16 else 32]:
        raise Distrust("CertMiss: signed by another certificate than the known one")
    payload, signature = c.get("protectedPayload", {}).get("payload", b""), c.get("signatureHash", b"")
    key = x509.load_pem_x509_certificate(signing_pem).public_key()
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            size = key.curve.key_size // 8
            if len(signature) != 2 * size:
                raise Distrust(f"SignVerifyFail: {len(signature)} bytes")
            signature = encode_dss_signature(int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big"))
        _verify(key, signature, payload, hashes.SHA256())
    except InvalidSignature:
        raise Distrust("SignVerifyFail") from None
    return payload


# ---- logs

def entry(content, severity="info", source="test", iid="1", msgid=1, when=None, **more):
    """A LogEntry; `more`: tags, filename, function."""
    return {"severity": severity, "source": source, "iid": iid, "content": content, "msgid": msgid, "timestamp": wire.timestamp(when), **more}


def gzip_member(data, name=None, comment=None, mtime=0):
    """One gzip member with FNAME and FCOMMENT; characters beyond Latin-1 as \\uXXXX or \\UXXXXXXXX."""
    def text(s):
        return "".join(c if ord(c) < 256 else f"\\u{ord(c):04x}" if ord(c) < 65536 else f"\\U{ord(c):08x}" for c in s).encode("latin-1") + b"\0"

    flags = (0x08 if name else 0) | (0x10 if comment else 0)
    head = b"\x1f\x8b\x08" + bytes([flags]) + int(mtime).to_bytes(4, "little") + b"\0\xff"
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return (head + (text(name) if name else b"") + (text(comment) if comment else b"") + packer.compress(data) + packer.flush()
            + zlib.crc32(data).to_bytes(4, "little") + (len(data) % 2**32).to_bytes(4, "little"))


def log_lines(entries):
    """Go's plain JSON of the entries, one to a line, empty members left out."""
    return b"".join(json.dumps({k: v for k, v in e.items() if v}, separators=(",", ":")).encode() + b"\n" for e in entries)


# ---- transport

Answer = collections.namedtuple("Answer", "status headers body")


def context(root_pem=None, client=None, least=ssl.TLSVersion.TLSv1_2, most=None):
    """TLS as pillar has it; `client`: an Identity, sent when the server asks for one."""
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    c.minimum_version = least
    if most:
        c.maximum_version = most
    c.set_ciphers(SUITES if least >= ssl.TLSVersion.TLSv1_2 else "ALL:@SECLEVEL=0")
    if root_pem is None:
        c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
    else:
        c.load_verify_locations(cadata=root_pem.decode())
    if client:
        with tempfile.NamedTemporaryFile() as f:
            f.write(client.pem + client.key_pem())
            f.flush()
            c.load_cert_chain(f.name)
    return c


class _Socket:
    """A ready connection for http.client's reader."""

    def __init__(self, data):
        self.data = data

    def makefile(self, *_):
        return self.data


def connect(host, port, tls, session=None, seconds=SECONDS):
    raw = socket.create_connection((host, port), seconds)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        return tls.wrap_socket(raw, server_hostname=host, session=session)
    except BaseException:
        raw.close()
        raise


def read_answer(sock, method="POST"):
    """The next answer on a connection."""
    answer = http.client.HTTPResponse(_Socket(sock.makefile("rb")), method=method)
    answer.begin()
    return Answer(answer.status, answer.headers, answer.read())


def talk(host, port, data, tls=None, method="POST", seconds=SECONDS):
    """Sends these bytes, whatever they are, and reads one answer; data may be an iterable of pieces, of which no more are sent once the
    server has closed. None: it closed without an answer."""
    with connect(host, port, tls or context(), seconds=seconds) as s:
        for piece in [data] if isinstance(data, bytes) else data:
            try:
                s.sendall(piece)
            except (ConnectionError, ssl.SSLError):
                break
        try:
            return read_answer(s, method)
        except (ConnectionError, ssl.SSLError, http.client.BadStatusLine):
            return None


class Device:
    def __init__(self, host, port, root_pem, onboarding=None, serial=None, soft_serial="", identity=None, reuse_session=True):
        self.host, self.port, self.root_pem, self.reuse_session = host, port, root_pem, reuse_session
        self.onboarding, self.identity = onboarding, identity or device_identity()
        self.serial, self.soft_serial = uuid.uuid4().hex[:12] if serial is None else serial, soft_serial
        self.uuid, self.hash, self.token = None, "", b""
        self.signing_pem, self.backup_pem, self.ecdh = None, None, []  # of the controller: PEM, PEM; [(certHash, certificate)]
        self.refetches = False                                         # asks for them again when an answer is signed by another
        self.ecdh_identity, self.quote_identity, self.ek_identity = None, None, None
        self.tls, self.session = context(root_pem, client=self.identity), None

    # -- requests

    def path(self, action):
        return f"{BASE}/id/{self.uuid}/{action}"

    def send(self, method, path, body=None, headers=None, tls=None):
        """One request on a connection of its own; the body goes as it is."""
        head = {"X-Request-Id": str(uuid.uuid4()), "Connection": "close", "User-Agent": "Go-http-client/1.1"}
        if self.uuid is None:
            head.update({"X-Serial-Number": self.serial, "X-Soft-Serial": self.soft_serial})
        if body is not None:
            head["Content-Type"] = PROTO
        head.update(headers or {})
        connection = http.client.HTTPConnection(self.host, self.port, timeout=SECONDS)
        sock = connection.sock = connect(self.host, self.port, tls or self.tls, None if tls else self.session)
        try:
            connection.request(method, path, body, head)
            answer = connection.getresponse()
            if self.reuse_session and not tls:
                self.session = sock.session
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def post(self, action, payload, path=None, identity=None, **envelope):
        """The payload in an envelope of this device's (or another's) making; `envelope` as in seal()."""
        return self.send("POST", path or self.path(action), seal(identity or self.identity, payload, **envelope))

    def _read(self, answer, message):
        """(answer, decoded) of an answer that must be signed by the controller; (answer, None) of one without success."""
        if answer.status not in (200, 201):
            return answer, None
        if answer.headers.get_content_type() != PROTO:
            raise Distrust(f"content type {answer.headers.get('Content-Type')}")
        return answer, wire.decode(message, self._open(answer.body))

    def _open(self, container):
        """By the known certificate. With `refetches` also by the one before it, and a controller that has changed it is asked, once: what a
        device does in the end."""
        try:
            return open_envelope(container, self.signing_pem)
        except Distrust as e:
            if not self.refetches or "CertMiss" not in str(e):
                raise
        try:
            return open_envelope(container, self.backup_pem or self.signing_pem)
        except Distrust:
            self.certs()
            return open_envelope(container, self.signing_pem)

    # -- onboarding

    def ping(self):
        return self.send("GET", f"{BASE}/ping")

    def certs(self):
        """Fetches and verifies the controller's certificates by what section 4.1 demands."""
        answer = self.send("GET", f"{BASE}/certs")
        if answer.status != 200:
            return answer
        if answer.headers.get_content_type() != PROTO:
            raise Distrust(f"content type {answer.headers.get('Content-Type')}")
        self.take_certs(wire.decode("certs.ZControllerCert", payload_of(answer.body)).get("certs", []))
        open_envelope(answer.body, self.signing_pem)
        return answer

    def take_certs(self, certs):
        by_type = collections.defaultdict(list)
        for c in certs:
            by_type[c.get("type", 0)].append((c.get("certHash", b""), c.get("hashAlgo", 0), c["cert"], x509.load_pem_x509_certificate(c["cert"])))
        if set(by_type) - {SIGNING, INTERMEDIATE, ECDH}:
            raise Distrust(f"certificate types {sorted(by_type)}")
        if len(by_type[SIGNING]) != 1 or not by_type[ECDH]:
            raise Distrust(f"{len(by_type[SIGNING])} signing and {len(by_type[ECDH])} ECDH certificates")
        roots = [x509.load_pem_x509_certificate(p + b"-----END CERTIFICATE-----\n") for p in self.root_pem.split(b"-----END CERTIFICATE-----")[:-1]]
        for digest, algo, pem, leaf in by_type[SIGNING] + by_type[ECDH]:
            verify_chain(leaf, [i[3] for i in by_type[INTERMEDIATE]], roots)
            if not digest or digest != sha256(pem)[:{SHA256_16: 16, SHA256_32: 32}.get(algo, 0)]:
                raise Distrust("certHash is not the hash of the certificate's PEM")
        for _, _, _, leaf in by_type[ECDH]:
            if not isinstance(leaf.public_key(), ec.EllipticCurvePublicKey) or leaf.public_key().curve.name != "secp256r1":
                raise Distrust("ECDH certificate is not on P-256")
        if by_type[SIGNING][0][2] != self.signing_pem:
            self.backup_pem, self.signing_pem = self.signing_pem, by_type[SIGNING][0][2]
        self.ecdh = [(d, leaf) for d, _, _, leaf in by_type[ECDH]]

    def register(self, **envelope):
        payload = wire.encode("register.ZRegisterMsg", {"pemCert": base64.b64encode(self.identity.pem), "serial": self.serial, "softSerial": self.soft_serial})
        envelope.setdefault("sender_cert", base64.b64encode(self.onboarding.pem))
        return self.post(None, payload, path=f"{BASE}/register", identity=self.onboarding, **envelope)

    def ask_uuid(self):
        """(Answer, UuidResponse); remembers the uuid."""
        answer, response = self._read(self.post(None, b"", path=f"{BASE}/uuid"), "uuid.UuidResponse")
        if response is not None:
            self.uuid = str(uuid.UUID(response["uuid"]))
        return answer, response

    def onboard(self):
        """certs, register, uuid as a device does at boot; all must succeed. Returns itself."""
        answer = self.certs()
        assert answer.status == 200, answer
        if self.onboarding:
            answer = self.register()
            assert answer.status in (200, 201), answer
        answer, _ = self.ask_uuid()
        assert answer.status == 200, answer
        return self

    # -- configuration

    def config(self, known=None, token=None, path=None):
        """(Answer, ConfigResponse or None); remembers the hash and sends it the next time."""
        payload = wire.encode("config.ConfigRequest", {"configHash": self.hash if known is None else known,
                                                       "integrity_token": self.token if token is None else token})
        answer, response = self._read(self.post("config", payload, path=path), "config.ConfigResponse")
        if response is not None:
            if not response.get("configHash"):
                raise Distrust("an empty configHash hides the configuration")
            self.hash = response["configHash"]
        return answer, response

    def compound_config(self, **request):
        return self.post("compound-config", wire.encode("config.CompoundEdgeDevConfigRequest", {"cfg_req": {"configHash": self.hash}, **request}))

    def decrypt(self, config, block):
        """The plaintext of a CipherBlock of an EdgeDevConfig, by this device's ECDH key (section 9.3)."""
        found = next(c for c in config["cipherContexts"] if c["contextId"] == block["cipherContextId"])
        peer = next(c for digest, c in self.ecdh if digest == found["controllerCertHash"])
        assert found["deviceCertHash"] == self.ecdh_identity.pem_hash[:16], found
        key = shared_key(self.ecdh_identity.key, peer.public_key())
        plain = subprocess.run(["openssl", "enc", "-d", "-aes-256-cfb", "-K", key.hex(), "-iv", block["initialValue"].hex()],
                               input=block["cipherData"], capture_output=True, check=True).stdout
        if sha256(plain) != block["clearTextSha256"]:
            raise Distrust("the plaintext does not match its hash")
        return plain

    # -- attestation

    def zcert(self, identity, kind, **more):
        return {"hashAlgo": SHA256_16, "certHash": identity.pem_hash[:16], "type": kind, "cert": identity.pem, **more}

    def own_certs(self, quote_key=None):
        """The device's other certificates, made once; quote_key: the public key of a TPM's restricted signing key."""
        if self.ecdh_identity is None:
            self.ecdh_identity = issue("device ECDH", issuer=self.identity)
            self.quote_identity = issue("device attestation", issuer=self.identity, public_key=quote_key)
        return [self.zcert(self.ecdh_identity, ECDH_CERT), self.zcert(self.quote_identity, QUOTE_CERT)]

    def attest(self, request):
        """(Answer, ZAttestResponse or None)."""
        return self._read(self.post("attest", wire.encode("attest.ZAttestReq", request)), "attest.ZAttestResponse")

    def attest_certs(self, certs=None):
        return self.attest({"reqType": REQ_CERT, "certs": certs or self.own_certs()})

    def nonce(self):
        answer, response = self.attest({"reqType": REQ_NONCE})
        assert answer.status == 201 and response["respType"] == REQ_NONCE, (answer, response)
        nonce = response["nonce"]["nonce"]
        if not 12 <= len(nonce) <= 32:
            raise Distrust(f"a nonce of {len(nonce)} bytes")
        return nonce

    def quote(self, data=b"", signature=b"", pcrs=None, versions=(), **more):
        """(Answer, ZAttestQuoteResp); empty without a TPM. pcrs: {index: value}. Keeps the token of a success."""
        request = {"attestData": data, "signature": signature, "pcr_values": [{"index": i, "hash_algo": 2, "value": v} for i, v in sorted((pcrs or {}).items())],
                   "versions": [{"version_type": i + 1, "version": v} for i, v in enumerate(versions)], **more}
        answer, response = self.attest({"reqType": REQ_QUOTE, "quote": request})
        result = None if response is None else response.get("quoteResp", {})
        if result and result.get("response") == SUCCESS:
            self.token = result["integrity_token"]
        return answer, result

    def store_keys(self, keys, token=None):
        """(Answer, AttestStorageKeysResp); keys: a list of bytes, opaque to the controller."""
        answer, response = self.attest({"reqType": REQ_STORE_KEYS, "storage_keys": {
            "integrity_token": self.token if token is None else token, "keys": [{"key_type": 1, "key": k} for k in keys]}})
        return answer, None if response is None else response.get("storage_keys_resp", {})

    # -- telemetry

    def info(self, message):
        return self.post("info", wire.encode("info.ZInfoMsg", {"devId": self.uuid, "atTimeStamp": wire.timestamp(), **message}))

    def metrics(self, message=None):
        return self.post("metrics", wire.encode("metrics.ZMetricMsg", {"devID": self.uuid, "atTimeStamp": wire.timestamp(), **(message or {"dm": {}})}))

    def logs(self, entries):
        return self.post("logs", wire.encode("logs.LogBundle", {"devID": self.uuid, "image": "IMGA", "eveVersion": "13.4.0", "log": entries, "timestamp": wire.timestamp()}))

    def newlogs(self, entries, mtime=0):
        comment = json.dumps({"devID": self.uuid, "image": "IMGA", "eveVersion": "13.4.0"}, separators=(",", ":"))
        return self.post("newlogs", gzip_member(log_lines(entries), comment=comment, mtime=mtime))

    def app_log_paths(self, app, action):
        """Where logs of an application may be posted: by the specification, by Adam, by pillar."""
        return {"spec": f"{BASE}/apps/instanceid/{app}/{action}", "adam": self.path(f"apps/instances/id/{app}/{action}"),
                "pillar": self.path(f"apps/instanceid/{app}/{action}")}

    def app_logs(self, app, entries, form="adam"):
        payload = wire.encode("logs.AppInstanceLogBundle", {"log": entries, "timestamp": wire.timestamp()})
        return self.post(None, payload, path=self.app_log_paths(app, "logs")[form])

    def app_newlogs(self, app, entries, name="app", form="pillar"):
        return self.post(None, gzip_member(log_lines(entries), name=name), path=self.app_log_paths(app, "newlogs")[form])

    def flowlog(self, flows=(), dns=(), **scope):
        return self.post("flowlog", wire.encode("flowlog.FlowMessage", {"devId": self.uuid, "scope": scope, "flows": list(flows), "dnsReqs": list(dns)}))

    def hardwarehealth(self, **message):
        return self.post("hardwarehealth", wire.encode("hardwarehealth.ZHardwareHealth", {"dev_id": self.uuid, "at_time_stamp": wire.timestamp(), **message}))

    def scep(self, profile, **request):
        return self._read(self.post("proxy/scep", wire.encode("proxy.SCEPProxyRequest", {"scep_profile_name": profile, **request})), "proxy.SCEPProxyResponse")

    # -- version 1: who it is says the client certificate, bodies are bare

    def v1(self, method, action, payload=None, identity=None):
        return self.send(method, f"{BASE_V1}/{action}", payload, tls=context(self.root_pem, client=identity or self.identity))


def shared_key(private_key, public_key):
    """SHA-256(X || Y) of the ECDH point (section 9.2): the usual derivation gives X alone."""
    q = public_key.public_numbers()
    x, y = multiply(private_key.private_numbers().private_value, (q.x, q.y))
    return sha256(x.to_bytes(32, "big") + y.to_bytes(32, "big"))


P256 = 2**256 - 2**224 + 2**192 + 2**96 - 1


def multiply(scalar, point):
    """scalar * point on P-256: double and add, slow and simple."""
    def add(s, t):
        if s is None or t is None:
            return s or t
        if s[0] == t[0] and (s[1] + t[1]) % P256 == 0:
            return None
        slope = (3 * s[0] * s[0] - 3) * pow(2 * s[1], -1, P256) if s == t else (t[1] - s[1]) * pow(t[0] - s[0], -1, P256)
        x = (slope * slope - s[0] - t[0]) % P256
        return x, (slope * (s[0] - x) - s[1]) % P256

    total = None
    while scalar:
        if scalar & 1:
            total = add(total, point)
        point, scalar = add(point, point), scalar >> 1
    return total
