# SPDX-License-Identifier: Apache-2.0
"""The server starts, answers, and stops."""
from seth import Server, unique


def test_create_read_delete(s):
    ns = s.namespace()
    made = s.ok("POST", f"/api/v1/namespaces/{ns}/configmaps", {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert made["data"] == {"k": "v"} and made["metadata"]["namespace"] == ns
    assert s.ok("GET", f"/api/v1/namespaces/{ns}/configmaps/a") == made
    s.ok("DELETE", f"/api/v1/namespaces/{ns}/configmaps/a")
    status, answer = s.request("GET", f"/api/v1/namespaces/{ns}/configmaps/a")
    assert status == 404 and answer["reason"] == "NotFound"


def test_restart_keeps_objects():
    with Server() as s:
        name = unique()
        made = s.ok("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}})
        assert s.stop() == 0
        s.start()
        assert s.ok("GET", f"/api/v1/namespaces/default/configmaps/{name}") == made


def test_only_the_administrator_may_read(s):
    connection = s.connect(with_certificate=False)
    connection.request("GET", "/api/v1/namespaces")
    assert connection.getresponse().status == 403
