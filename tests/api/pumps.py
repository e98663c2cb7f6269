# SPDX-License-Identifier: Apache-2.0
"""A user's kind with a bit of everything, each time in a group of its own."""
from seth import unique, wait_until

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

SPEC = {
    "type": "object", "required": ["serial"], "description": "What the pump shall do.",
    "properties": {
        "serial": {"type": "string", "pattern": "^[A-Z0-9-]+$", "minLength": 2, "maxLength": 12, "description": "As printed on the plate."},
        "mode": {"type": "string", "enum": ["auto", "manual", "off"], "default": "auto"},
        "replicas": {"type": "integer", "format": "int32", "minimum": 0, "default": 1},
        "pressure": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "multipleOf": 0.25},
        "cores": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 64},
        "note": {"type": "string", "nullable": True},
        "limit": {"x-kubernetes-int-or-string": True},
        "since": {"type": "string", "format": "date-time"},
        "firmware": {"type": "string", "format": "byte"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 4, "x-kubernetes-list-type": "set"},
        "valves": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                   "items": {"type": "object", "required": ["name"],
                             "properties": {"name": {"type": "string"}, "open": {"type": "boolean"}, "flow": {"type": "integer"}}}},
        "steps": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        "marks": {"type": "object", "minProperties": 1, "maxProperties": 3, "additionalProperties": {"type": "string"}},
        "tuning": {"type": "object", "properties": {"curve": {"type": "object", "properties": {"gain": {"type": "integer", "default": 7}},
                                                             "default": {}}}},
        "vendor": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "template": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    },
}
STATUS = {
    "type": "object",
    "properties": {
        "phase": {"type": "string", "enum": ["Running", "Stopped"]},
        "replicas": {"type": "integer"}, "selector": {"type": "string"}, "observedGeneration": {"type": "integer", "format": "int64"},
        "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                       "items": {"type": "object", "required": ["type", "status"],
                                 "properties": {"type": {"type": "string"}, "status": {"type": "string"}, "reason": {"type": "string"},
                                                "message": {"type": "string"}, "observedGeneration": {"type": "integer", "format": "int64"},
                                                "lastTransitionTime": {"type": "string", "format": "date-time"}}}},
    },
}


def definition(group, plural="pumps", kind="Pump", scope="Namespaced", short=None, versions=None, **names):
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group, "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, **({"shortNames": [short]} if short else {}), **names},
            "versions": versions or [version("v1")],
        },
    }


def version(name, schema=None, storage=True, served=True, **more):
    return {
        "name": name, "served": served, "storage": storage,
        "schema": {"openAPIV3Schema": schema or {"type": "object", "description": "A pump.", "required": ["spec"],
                                                 "properties": {"spec": SPEC, "status": STATUS}}},
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                                                 "labelSelectorPath": ".status.selector"}},
        "selectableFields": [{"jsonPath": ".spec.mode"}],
        "additionalPrinterColumns": [
            {"name": "Serial", "type": "string", "jsonPath": ".spec.serial"},
            {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "description": "What it does."},
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}],
        **more,
    }


class Pumps:
    """The kind on a server: its group, where its objects are, and objects to send."""

    def __init__(self, s, **options):
        self.s, self.group, self.ns = s, unique("g") + ".example.org", s.namespace()
        self.definition = definition(self.group, **options)
        self.crd = f"{CRDS}/{self.definition['metadata']['name']}"
        s.ok("POST", CRDS, self.definition)
        wait_until(self.is_established, what="Established")

    def is_established(self):
        conditions = self.s.ok("GET", self.crd).get("status", {}).get("conditions") or []
        return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

    def path(self, name=None, sub=None, version="v1", ns=None):
        path = f"/apis/{self.group}/{version}/namespaces/{ns or self.ns}/pumps"
        return path + (f"/{name}" if name else "") + (f"/{sub}" if sub else "")

    def body(self, name, spec=None, version="v1", **rest):
        metadata = {"name": name, **rest.pop("metadata", {})}
        return {"apiVersion": f"{self.group}/{version}", "kind": "Pump", "metadata": metadata, "spec": {"serial": "AB-1", **(spec or {})}, **rest}

    def create(self, name, spec=None, **rest):
        return self.s.ok("POST", self.path(), self.body(name, spec, **rest))
