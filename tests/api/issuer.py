#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small OpenID Connect issuer: keys and signatures by the openssl command, its documents served over TLS by a process of its
own (this file, run with a directory).

    issuer = Issuer(directory)
    key = Key(directory, "a", "RS256")
    issuer.publish(key)
    token = key.token({"iss": issuer.url, ...})
"""
import base64
import http.server
import json
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import threading
import time

from seth import wait_until


def openssl(*words, input=None):
    return subprocess.run(["openssl", *map(str, words)], input=input, capture_output=True, check=True).stdout


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def make_certificate(directory, name="tls"):
    """A certificate for 127.0.0.1 that is its own authority; returns the paths of certificate and key."""
    cert, key = pathlib.Path(directory) / f"{name}.crt", pathlib.Path(directory) / f"{name}.key"
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", f"/CN={name}",
            "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert)
    return cert, key


class Key:
    """A signing key; two of the same kid may differ."""

    def __init__(self, directory, kid, alg="RS256"):
        self.kid, self.alg, self.path = kid, alg, pathlib.Path(directory) / f"{alg}-{kid}-{os.urandom(4).hex()}.pem"
        how = ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"] if alg == "RS256" else ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
        openssl("genpkey", "-algorithm", *how, "-out", self.path)

    def jwk(self):
        common = {"kid": self.kid, "use": "sig", "alg": self.alg}
        if self.alg == "RS256":
            modulus = bytes.fromhex(openssl("rsa", "-in", self.path, "-noout", "-modulus").decode().strip().split("=")[1])
            return {**common, "kty": "RSA", "n": base64url(modulus), "e": "AQAB"}
        point = openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER")[-64:]
        return {**common, "kty": "EC", "crv": "P-256", "x": base64url(point[:32]), "y": base64url(point[32:])}

    def public_pem(self):
        return openssl("pkey", "-in", self.path, "-pubout")

    def sign(self, data):
        signature = openssl("dgst", "-sha256", "-sign", self.path, input=data)
        return signature if self.alg == "RS256" else raw_ecdsa(signature)

    def token(self, claims, **header):
        head = {"alg": self.alg, "kid": self.kid, "typ": "JWT", **header}
        text = ".".join(base64url(json.dumps(part).encode()) for part in (head, claims))
        return f"{text}.{base64url(self.sign(text.encode()))}"


def raw_ecdsa(der):
    """The two numbers of a DER signature, 32 bytes each (RFC 7518 3.4)."""
    numbers, at = [], 2
    for _ in range(2):
        length = der[at + 1]
        numbers.append(der[at + 2:at + 2 + length].lstrip(b"\0").rjust(32, b"\0"))
        at += 2 + length
    return b"".join(numbers)


class Issuer:
    def __init__(self, directory):
        self.dir, self.port, self.process = pathlib.Path(directory), 0, None
        self.dir.mkdir(parents=True, exist_ok=True)
        self.ca, _ = make_certificate(self.dir)
        self.start()

    def start(self):
        """Starts, again on the port it had."""
        self.process = subprocess.Popen([sys.executable, __file__, str(self.dir), str(self.port)], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.url = f"https://127.0.0.1:{self.port}"
        self._write("openid-configuration", {"issuer": self.url, "jwks_uri": f"{self.url}/jwks.json"})

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def _write(self, name, document):
        fresh = self.dir / f"{name}.new"
        fresh.write_text(json.dumps(document))
        fresh.rename(self.dir / name)

    def publish(self, *keys):
        self._write("jwks.json", {"keys": [k.jwk() for k in keys]})

    def n_fetches(self):
        """How often the keys were asked for."""
        log = self.dir / "requests.log"
        return log.read_text().count("/jwks.json\n") if log.exists() else 0

    def claims(self, user="jane", audience="seth", lasts=600, **more):
        now = int(time.time())
        return {"iss": self.url, "aud": audience, "sub": user, "iat": now, "exp": now + lasts, **more}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self):
        directory = self.server.directory
        with open(directory / "requests.log", "a", encoding="ascii") as log:
            log.write(f"{self.path}\n")
        name = self.path.removeprefix("/.well-known/").removeprefix("/")
        known = name in ("openid-configuration", "jwks.json") and (directory / name).exists()
        body = (directory / name).read_bytes() if known else b"no"
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class HttpsServer(http.server.ThreadingHTTPServer):
    """Shakes hands on the connection's own thread, so that nobody waits for another's."""
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler, cert, key, port=0, client_ca=None):
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(cert, key)
        if client_ca:
            self.tls.verify_mode = ssl.CERT_REQUIRED
            self.tls.load_verify_locations(client_ca)
        self.connections = set()
        super().__init__(("127.0.0.1", port), handler)

    def process_request_thread(self, request, client_address):
        try:
            wrapped = self.tls.wrap_socket(request, server_side=True)
        except OSError:
            self.shutdown_request(request)
            return
        self.connections.add(wrapped)
        super().process_request_thread(wrapped, client_address)
        self.connections.discard(wrapped)

    def cut_off(self):
        """Ends the connections that are kept open, as the end of a process would."""
        for connection in list(self.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def handle_error(self, *_):
        pass  # a client that went away


class Background:
    """An HttpsServer on a thread of this process."""

    def __init__(self, server):
        self.server, self.url = server, f"https://127.0.0.1:{server.server_address[1]}"
        self.thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.server.cut_off()
        self.thread.join()


def bearer(s, token, method="GET", path="/api/v1/namespaces", body=None):
    """One request with a token and no certificate: (status, headers, decoded JSON)."""
    connection = s.connect(with_certificate=False)
    try:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, json.loads(answer.read())
    finally:
        connection.close()


def whoami(s, token):
    """The user that the server takes the token's owner for."""
    status, _, answer = bearer(s, token, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                               {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    assert status == 201, (status, answer)
    return answer["status"]["userInfo"]


def accepted_soon(s, token):
    return wait_until(lambda: bearer(s, token)[0] != 401, what="the token to be accepted")


def allow(s, kind, name):
    """Lets a user or group read everything."""
    s.ok("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "metadata": {"name": f"{kind.lower()}-{base64url(name.encode()).lower().replace('_', 'x').strip('-')}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}]})


def main():
    directory = pathlib.Path(sys.argv[1])
    server = HttpsServer(Handler, directory / "tls.crt", directory / "tls.key", int(sys.argv[2]))
    server.directory = directory
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
