# SPDX-License-Identifier: Apache-2.0
"""The custom resource that is measured: a kind with a schema of some twenty fields, objects of any size of it, and prepared
requests for bench/load."""
import json

GROUP, VERSION, PLURAL, NAMESPACE = "bench.example.com", "v1", "gadgets", "bench"
BASE = f"/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/{PLURAL}"


def text(**rules):
    return {"type": "string", **rules}


def fields(**properties):
    return {"type": "object", "properties": properties}


SPEC = fields(
    displayName=text(minLength=1, maxLength=63),
    description=text(maxLength=16384),
    serial=text(pattern="^[A-Z]{2}-[0-9]{8}$"),
    model=text(enum=["small", "medium", "large"]),
    mode=text(enum=["Active", "Standby", "Off"], default="Active"),
    address=text(format="ipv4"),
    hardwareAddress=text(pattern="^([0-9a-f]{2}:){5}[0-9a-f]{2}$"),
    created=text(format="date-time"),
    replicas={"type": "integer", "minimum": 0, "maximum": 1000, "default": 1},
    priority={"type": "integer", "format": "int32"},
    ratio={"type": "number", "minimum": 0, "maximum": 1},
    enabled={"type": "boolean", "default": True},
    tags={"type": "array", "items": text(maxLength=32), "x-kubernetes-list-type": "set", "maxItems": 32},
    limits={"type": "object", "additionalProperties": text(pattern="^[0-9]+(m|Mi|Gi)?$")},
    adapters={"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "maxItems": 16,
              "items": {**fields(name=text(pattern="^[a-z0-9-]+$"), kind=text(enum=["ethernet", "wlan", "wwan"]),
                                 mtu={"type": "integer", "minimum": 68, "maximum": 9000, "default": 1500},
                                 dhcp={"type": "boolean", "default": True}), "required": ["name", "kind"]}},
    reference=fields(name=text(), namespace=text(default="default")),
)
SPEC["required"] = ["displayName", "serial", "model"]
STATUS = fields(phase=text(enum=["New", "Running", "Failed"]), observedGeneration={"type": "integer"},
                message=text(), conditions={"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": {
                    **fields(type=text(), status=text(), reason=text(), lastTransitionTime=text(format="date-time")), "required": ["type", "status"]}})
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {"group": GROUP, "scope": "Namespaced",
             "names": {"plural": PLURAL, "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
             "versions": [{"name": VERSION, "served": True, "storage": True, "subresources": {"status": {}},
                           "schema": {"openAPIV3Schema": fields(spec=SPEC, status=STATUS)}}]}}


def encode(value):
    return json.dumps(value, separators=(",", ":")).encode()


def name_of(i):
    return f"gadget-{(i * 2654435761) % 2**32:08x}"  # in mixed order, as names come


def gadget(i, size=2048):
    """Object number i, its description filled up so that its text has the size."""
    o = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Gadget",
         "metadata": {"name": name_of(i), "namespace": NAMESPACE, "labels": {"app": "bench", "shard": str(i % 16)}},
         "spec": {"displayName": f"Gadget {i}", "description": "", "serial": f"GA-{i % 10**8:08d}", "model": "medium",
                  "address": f"10.{i >> 16 & 255}.{i >> 8 & 255}.{i & 255}", "hardwareAddress": "02:00:5e:10:00:01",
                  "created": "2026-01-02T03:04:05Z", "replicas": i % 1000, "priority": 7, "ratio": 0.25,
                  "tags": ["edge", "factory", f"row-{i % 50}"], "limits": {"cpu": "500m", "memory": "256Mi", "disk": "8Gi"},
                  "adapters": [{"name": f"eth{k}", "kind": "ethernet", "mtu": 1500} for k in range(4)],
                  "reference": {"name": "model-7"}}}
    o["spec"]["description"] = ("The quick brown fox jumps over the lazy dog. " * (size // 45 + 1))[:max(0, size - len(encode(o)))]
    return o


STATUS_VALUE = {"phase": "Running", "observedGeneration": 1, "message": "as it should be", "conditions": [
    {"type": kind, "status": "True", "reason": "Measured", "lastTransitionTime": "2026-01-02T03:04:05Z"} for kind in ("Ready", "Reachable")]}


def prepared(method, path, content_type, body):
    data = encode(body)
    return f"{method} {path} {content_type} {len(data)}\n".encode() + data + b"\n"


# What is measured: how a prepared request is made of object number i and its state in the server (None for a create).
def create(i, _):
    return prepared("POST", BASE, "application/json", gadget(i))


def update(i, current):
    changed = gadget(i)
    changed["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
    changed["spec"]["replicas"] = (i + 1) % 1000
    return prepared("PUT", f"{BASE}/{name_of(i)}", "application/json", changed)


def update_status(i, current):
    changed = {**gadget(i), "status": STATUS_VALUE}
    changed["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
    return prepared("PUT", f"{BASE}/{name_of(i)}/status", "application/json", changed)


def merge_patch(i, _):
    return prepared("PATCH", f"{BASE}/{name_of(i)}", "application/merge-patch+json",
                    {"metadata": {"labels": {"patched": "yes"}}, "spec": {"replicas": (i + 2) % 1000, "mode": "Standby"}})


def apply(i, _):
    changed = gadget(i)
    changed["spec"]["replicas"] = (i + 3) % 1000
    return prepared("PATCH", f"{BASE}/{name_of(i)}?fieldManager=bench&force=true", "application/apply-patch+yaml", changed)


def touch(i, count):
    """The count-th of a run of updates that each change something."""
    return prepared("PATCH", f"{BASE}/{name_of(i)}", "application/merge-patch+json", {"spec": {"priority": count}})


WRITES = {"create": create, "update": update, "status update": update_status, "merge patch": merge_patch, "apply": apply}
