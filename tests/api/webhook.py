# SPDX-License-Identifier: Apache-2.0
"""An HTTPS server that answers AdmissionReviews as a test wants, with an authority of its own."""
import base64
import http.server
import json
import pathlib
import ssl
import subprocess
import tempfile
import threading

from seth import unique

# What controllers make in every namespace: no test asks about it.
CONTROLLED = ("kube-root-ca.crt", "default")
GROUP = "/apis/admissionregistration.k8s.io/v1"


def make_authority(directory, name):
    """name-ca.pem, and name.pem with name-key.pem for 127.0.0.1."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=directory)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    openssl("req", "-x509", *key, "-subj", f"/CN={name} authority", "-keyout", f"{name}-ca-key.pem", "-out", f"{name}-ca.pem")
    openssl("req", *key, "-subj", f"/CN={name}", "-keyout", f"{name}-key.pem", "-out", f"{name}.csr")
    (pathlib.Path(directory) / f"{name}.ext").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{name}-ca.pem", "-CAkey", f"{name}-ca-key.pem", "-CAcreateserial",
            "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem")


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # a client that went away, or did not trust us


class Webhooks:
    """All webhooks of a test run behind one port, each at a path of its own."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="seth-webhook-")
        make_authority(self.dir, "hook")
        make_authority(self.dir, "other")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{self.dir}/hook.pem", f"{self.dir}/hook-key.pem")
        self.functions, self.seen, self.released = {}, {}, threading.Event()
        self.server = Listener(("127.0.0.1", 0), self._handler())
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _handler(outer):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                path = self.path.split("?")[0]
                if review["request"].get("name") in CONTROLLED:
                    return self.answer(200, "application/json", outer.review(review, {}))
                outer.seen.setdefault(path, []).append((self.path, self.headers, review))
                answer = outer.functions[path](review["request"])
                status, kind, body = answer if isinstance(answer, tuple) else (200, "application/json", answer)
                if isinstance(body, dict):
                    body = outer.review(review, body)
                return self.answer(status, kind, body)

            def answer(self, status, kind, body):
                body = body.encode() if isinstance(body, str) else body
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass
        return Handler

    @staticmethod
    def review(review, response):
        return json.dumps({"kind": review["kind"], "apiVersion": review["apiVersion"],
                           "response": {"uid": review["request"]["uid"], "allowed": True, **response}})

    @property
    def port(self):
        return self.server.server_address[1]

    def bundle(self, name="hook"):
        return base64.b64encode(pathlib.Path(self.dir, f"{name}-ca.pem").read_bytes()).decode()

    def on(self, function):
        """A path where function(request) gives the response: a dict to add to uid and allowed, or (status, type, body)."""
        path = "/" + unique("hook")
        self.functions[path] = function
        self.seen[path] = []
        return path

    def requests(self, path):
        return [review["request"] for _, _, review in self.seen[path]]


def patch(*operations, **response):
    """A response with a JSON patch."""
    return {"patch": base64.b64encode(json.dumps(operations).encode()).decode(), "patchType": "JSONPatch", **response}


def deny(**status):
    return {"allowed": False, **({"status": status} if status else {})}


def rule(operations=("CREATE",), resources=("configmaps",), groups=("",), versions=("v1",), **more):
    return {"operations": list(operations), "resources": list(resources), "apiGroups": list(groups), "apiVersions": list(versions), **more}


class Configuration:
    """A webhook configuration that exists for the length of a with statement."""

    def __init__(self, s, hooks, phase, entries, name=None):
        """entries: dicts with `path`, and what a webhook's entry is to have besides the usual."""
        self.s, self.hooks = s, hooks
        self.path = f"{GROUP}/{phase}webhookconfigurations"
        self.name = name or unique("w")
        self.body = {"metadata": {"name": self.name}, "webhooks": [self._entry(i, e) for i, e in enumerate(entries)]}

    def _entry(self, i, entry):
        entry = dict(entry)
        path, ns = entry.pop("path", None), entry.pop("ns", None)
        client = {"url": f"https://127.0.0.1:{self.hooks.port}{path}", "caBundle": self.hooks.bundle()}
        usual = {"name": f"h{i}.example.org", "clientConfig": client, "rules": [rule()], "sideEffects": "None",
                 "admissionReviewVersions": ["v1"], "timeoutSeconds": 10}
        if ns:
            usual["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": ns}}
        return {**usual, **entry}

    def __enter__(self):
        self.s.ok("POST", self.path, self.body)
        return self

    def __exit__(self, kind, value, trace):
        self.s.request("DELETE", f"{self.path}/{self.name}")
