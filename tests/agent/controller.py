# SPDX-License-Identifier: Apache-2.0
"""A controller that answers what a test tells it to, for answers that no good controller gives.

    with Controller() as c:
        c.root_pem, c.port                            # for the device's config directory
        c.configure({"deviceName": "a"})              # 200 with it, and 304 to who has it
        c.answer = lambda request: Reply(503)         # or anything else; request.hash, request.token are the device's
        c.asked                                       # [(endpoint, hash)] so far"""
import collections
import datetime
import http.server
import ipaddress
import ssl
import tempfile
import threading
import uuid

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID

import eve
import wire

Reply = collections.namedtuple("Reply", "status body type", defaults=(b"", eve.PROTO))
Request = collections.namedtuple("Request", "hash token")


def web_identity(authority):
    """What TLS shows: a certificate for this machine's own address."""
    key, now = eve.new_key(), datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    certificate = (x509.CertificateBuilder().subject_name(x509.Name([])).issuer_name(authority.certificate.subject).public_key(key.public_key())
                   .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(now + datetime.timedelta(days=900))
                   .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=True)
                   .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False).sign(authority.key, hashes.SHA256()))
    return eve.Identity(key, certificate)


def sealed(identity, payload):
    """A controller names its certificate by the hash of the PEM."""
    return eve.seal(identity, payload, sender_hash=identity.pem_hash)


class Controller:
    def __init__(self):
        self.authority = eve.issue(f"root {uuid.uuid4()}", is_ca=True)
        self.root_pem = self.authority.pem
        self.signing, self.exchange = eve.issue("signing", issuer=self.authority), eve.issue("exchange", issuer=self.authority)
        self.uuid, self.asked, self.config, self.answer = None, [], None, None
        self.compound = None  # what an operator console hands on: an envelope
        self.commands, self.acknowledged = {}, []  # and orders itself; timestamps that came back
        self.web = web_identity(self.authority)
        self.port = 0

    # -- answers

    def certs(self):
        one = lambda identity, kind: {"hashAlgo": eve.SHA256_32, "certHash": identity.pem_hash, "type": kind, "cert": identity.pem}
        payload = wire.encode("certs.ZControllerCert", {"certs": [one(self.signing, eve.SIGNING), one(self.exchange, eve.ECDH)]})
        return Reply(200, sealed(self.signing, payload))

    def configure(self, config, hash=None):
        self.config = config
        self.hash = hash or eve.sha256(repr(config).encode()).hex()
        self.answer = lambda request: Reply(304) if request.hash == self.hash else self.response()

    def response(self, signer=None, **more):
        """200 with the configuration."""
        payload = wire.encode("config.ConfigResponse", {"config": {"id": {"uuid": self.uuid, "version": "1"}, **self.config}, "configHash": self.hash})
        return Reply(200, sealed(signer or self.signing, payload), **more)

    def reply(self, path, body):
        endpoint = path.rstrip("/").rsplit("/", 1)[-1]
        if endpoint == "certs":
            self.asked.append(("certs", None))
            return self.certs()
        if endpoint == "config":
            r = wire.decode("config.ConfigRequest", eve.payload_of(body))
            request = Request(r.get("configHash", ""), r.get("integrity_token", b""))
            self.asked.append(("config", request.hash))
            return self.answer(request)
        if endpoint == "compound-config" and self.compound:
            r = wire.decode("config.CompoundEdgeDevConfigRequest", eve.payload_of(body))
            self.asked.append((endpoint, r.get("cfg_req", {}).get("configHash", "")))
            self.acknowledged.append(r.get("last_cmd_timestamp", 0))
            return Reply(200, wire.encode("config.CompoundEdgeDevConfig", {
                "timestamp": 1, "protected_config": wire.decode("auth.AuthContainer", self.compound), **self.commands}))
        self.asked.append((endpoint, None))
        return Reply(404)

    def count(self, endpoint):
        return sum(e == endpoint for e, _ in self.asked)

    # -- life

    def start(self):
        controller = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_it(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                reply = controller.reply(self.path.split("?")[0], body)
                self.send_response(reply.status)
                if reply.type:
                    self.send_header("Content-Type", reply.type)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            do_GET = do_POST = handle_it

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_):
                pass

        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as f:
            f.write(self.web.key_pem() + self.web.pem)
            f.flush()
            tls.load_cert_chain(f.name)
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        return self

    def stop(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
