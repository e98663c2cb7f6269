# SPDX-License-Identifier: Apache-2.0
"""What most tests say: patch this, expect that refusal."""
import json

MERGE = {"Content-Type": "application/merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
PARTIAL_LIST = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}


def configmaps(ns, name=None):
    return f"/api/v1/namespaces/{ns}/configmaps" + (f"/{name}" if name else "")


def configmap(name, data=None, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, **({"data": data} if data else {})}


def merge(s, path, patch):
    return s.ok("PATCH", path, patch, MERGE)


def apply(s, path, manager, body, force=False, options=""):
    """Server-side apply; returns (status, answer)."""
    return s.request("PATCH", f"{path}?fieldManager={manager}{'&force=true' if force else ''}{options}", json.dumps(body), APPLY)


def applied(s, path, manager, body, force=False, options=""):
    status, answer = apply(s, path, manager, body, force, options)
    assert status in (200, 201), (status, answer)
    return answer


def refused(answer, code, reason, message=None, causes=None):
    """The (status, body) of an answer is that failure; causes are (reason, field) in any order."""
    status, body = answer
    assert status == code, (status, body)
    assert isinstance(body, dict) and body.get("kind") == "Status" and body["status"] == "Failure", body
    assert body["code"] == code and body.get("reason", "") == reason, body
    if message is not None:
        assert body["message"] == message, f"\nexpected {message!r}\ngot      {body['message']!r}"
    if causes is not None:
        got = sorted((c["reason"], c.get("field", "")) for c in body["details"]["causes"])
        assert got == sorted(causes), got
    return body


def names(answer):
    return [item["metadata"]["name"] for item in answer["items"]]


def managers(thing):
    """{(manager, operation, subresource): fields} of an object."""
    return {(m["manager"], m["operation"], m.get("subresource", "")): m["fieldsV1"] for m in thing["metadata"].get("managedFields", [])}


def warnings(headers):
    return headers.get_all("Warning") or []
