# SPDX-License-Identifier: Apache-2.0
"""Configurations as files: what differs from run to run gets names that do not.

UUIDs and chosen subnets are named in the order in which they appear, times and versions by what they are, and a sealed part is shown as
what the device finds in it. SETH_WRITE_GOLDEN=1 writes the files anew."""
import base64
import difflib
import json
import os
import pathlib
import re

DATA = pathlib.Path(__file__).resolve().parents[1] / "data/examples"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
CHOSEN = re.compile(r"\b(?!10\.100\.100\.)10\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.\d+(?=\.)")  # 10.64.0.0/10 but for an example's proxy
MADE = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b")   # what Deployments append
VOLATILE = {"configTimestamp": "time", "vncDisplay": "display", "controllercertConfighash": "hash"}
SEALED = {"cipherContextId", "cipherData"}


def is_writing():
    return os.environ.get("SETH_WRITE_GOLDEN") == "1"


def _masked(value):
    return MADE.sub("-made", CHOSEN.sub("subnet", UUID.sub("uuid", json.dumps(value, sort_keys=True))))


def _open(key, text):
    return base64.b64decode(text).decode().splitlines() if key == "protectedUserData" else text


def _plain(value, decrypt):
    """Without what no two runs have in common."""
    if isinstance(value, list):
        return [_plain(v, decrypt) for v in value]
    if not isinstance(value, dict):
        return value
    if SEALED <= value.keys() and isinstance(value["cipherData"], str):
        return {"sealed": {k: _open(k, v) for k, v in sorted(decrypt(value).items())}}
    return {k: VOLATILE.get(k) or _plain(v, decrypt) for k, v in value.items()}


def _by_contents(value):
    """The lists of a configuration are in the order of their keys, which are random."""
    return sorted(value, key=_masked) if isinstance(value, list) else value


def normal(config, decrypt):
    """The configuration of a box as it stands in a file."""
    config = {k: _by_contents(v) for k, v in _plain(config, decrypt).items()}
    config["id"]["version"] = "version"
    for context in config.get("cipherContexts", []):
        context.update({k: k for k in context if k.endswith("Hash") or k == "contextId"})
    text, names, subnets = json.dumps(dict(sorted(config.items())), indent=1), {}, {}
    text = UUID.sub(lambda m: names.setdefault(m.group(0), f"uuid-{len(names) + 1}"), text)
    text = CHOSEN.sub(lambda m: subnets.setdefault(m.group(0), f"subnet-{len(subnets) + 1}"), text)
    return json.loads(MADE.sub("-made", text))


def path(name):
    return DATA / f"{name}.json"


def read(name):
    return json.loads(path(name).read_text())


def write(name, steps):
    DATA.mkdir(parents=True, exist_ok=True)
    path(name).write_text(json.dumps(steps, indent=1) + "\n")


def difference(wanted, found):
    lines = [json.dumps(x, indent=1).splitlines() for x in (wanted, found)]
    return "\n".join(difflib.unified_diff(*lines, "wanted", "found", lineterm="", n=4))
