# SPDX-License-Identifier: Apache-2.0
"""Certificate enrolment through the controller: what reaches the SCEP server and what comes back."""
import base64
import contextlib
import http.server
import threading
import urllib.parse

from fleet import GROUP, shared_site as site

GET_CAPS, GET_CERT, PKI_MESSAGE = 1, 2, 4
GET, POST = 1, 2


@contextlib.contextmanager
def scep_server():
    """Its URL and the requests it got; answers what the test says."""
    seen, reply = [], {"status": 200, "type": "application/x-x509-ca-cert", "body": b"certificate"}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            seen.append((self.command, self.path, self.headers, body))
            self.send_response(reply["status"])
            self.send_header("Content-Type", reply["type"])
            self.send_header("Content-Length", str(len(reply["body"])))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(reply["body"])

        do_POST = do_GET

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/scep", seen, reply
    finally:
        server.shutdown()
        server.server_close()


def enrolling(s, url, **more):
    """A device whose configuration has the profile `corp`."""
    d = site(s).onboarded()
    path = f"{GROUP}/namespaces/{site(s).ns}/deviceconfigs"
    profile = {"profileName": "corp", "scepUrl": url, "useControllerProxy": True, **more}
    body = {"apiVersion": "eve.lfedge.org/v1beta1", "kind": "DeviceConfig", "metadata": {"name": site(s).name(d)}, "spec": {"config": {"scepProfiles": [profile]}}}
    status, _ = s.request("POST", path, body)
    if status == 409:  # somebody made one already
        s.ok("PATCH", f"{path}/{site(s).name(d)}", {"spec": body["spec"]}, {"Content-Type": "application/merge-patch+json"})
    return d


def test_get(s):
    with scep_server() as (url, seen, _):
        d = enrolling(s, url)
        answer, response = d.scep("corp", operation=GET_CERT, http_method=GET, message=b"\xfb\xef\xff identifier",
                                  http_header_fields=[{"name": "X-Tenant", "value": "7"}, {"name": "Host", "value": "elsewhere"},
                                                      {"name": "X-Evil", "value": "a\r\nX-Smuggled: 1"}])
        assert answer.status == 200, answer
        assert response["message"] == b"certificate" and response["http_status_code"] == 200, response
        assert {"name": "Content-Type", "value": "application/x-x509-ca-cert"} in response["http_header_fields"], response
        (method, path, headers, _), = seen
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)
        assert method == "GET" and query["operation"] == ["GetCACert"], path
        assert base64.urlsafe_b64decode(query["message"][0]) == b"\xfb\xef\xff identifier"
        assert headers["X-Tenant"] == "7" and headers["Host"] in url and not headers["X-Smuggled"], headers


def test_post(s):
    with scep_server() as (url, seen, _):
        d = enrolling(s, url + "?tenant=1")
        answer, response = d.scep("corp", operation=PKI_MESSAGE, http_method=POST, message=b"\x30\x80 pkcs7")
        assert answer.status == 200 and response["operation"] in (PKI_MESSAGE, "SCEP_OPERATION_PKI_MESSAGE"), (answer, response)
        (method, path, headers, body), = seen
        assert method == "POST" and body == b"\x30\x80 pkcs7" and headers["Content-Type"] == "application/x-pki-message", headers
        assert path.endswith("?tenant=1&operation=PKIOperation"), path


def test_an_error_of_the_server_is_the_devices(s):
    with scep_server() as (url, _, reply):
        reply.update(status=403, type="text/plain", body=b"no such challenge")
        answer, response = enrolling(s, url).scep("corp", operation=GET_CAPS)
        assert answer.status == 200 and response["http_status_code"] == 403, response
        assert response["error_body"] == b"no such challenge" and not response.get("message"), response


def test_a_server_that_is_not_there(s):
    with scep_server() as (url, _, _):
        pass
    assert enrolling(s, url).scep("corp", operation=GET_CAPS)[0].status == 502


def test_an_answer_beyond_the_limit(s):
    with scep_server() as (url, _, reply):
        reply.update(body=b"x" * (2 * 1024 * 1024 + 1))
        assert enrolling(s, url).scep("corp", operation=GET_CERT)[0].status == 502


def test_profiles_that_do_not_go_through_us(s):
    with scep_server() as (url, seen, _):
        assert enrolling(s, url, useControllerProxy=False).scep("corp", operation=GET_CAPS)[0].status == 403
        d = enrolling(s, url)
        assert d.scep("other", operation=GET_CAPS)[0].status == 403
        assert site(s).onboarded().scep("corp", operation=GET_CAPS)[0].status == 403  # another device's profile
        assert not seen
    assert enrolling(s, "file:///etc/passwd").scep("corp", operation=GET_CAPS)[0].status == 502


def test_what_is_no_request(s):
    with scep_server() as (url, seen, _):
        d = enrolling(s, url)
        assert d.scep("corp", operation=0)[0].status == 422
        assert d.scep("corp", operation=99)[0].status == 422
        assert d.post("proxy/scep", b"\xff\xff").status == 422
        assert d.scep("corp", operation=GET_CERT, http_method=GET, message=b"x" * 65536)[0].status == 422
        assert not seen
