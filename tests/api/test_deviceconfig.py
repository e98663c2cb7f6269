# SPDX-License-Identifier: Apache-2.0
"""DeviceConfig's schema: made from the tables of EVE's messages, owned field by field, whole on its way to a device."""
import csv
import json
import re
import subprocess

import yaml

from expect import MERGE, applied, apply, managers, refused
from fleet import shared_site as site
from good import good
from seth import TOP, unique

API = "eve.lfedge.org/v1beta1"
GROUP = f"/apis/{API}"
OPTIONS = ("--threads", "4")


def path(ns, name=""):
    return f"{GROUP}/namespaces/{ns}/deviceconfigs" + (f"/{name}" if name else "")


def deviceconfig(name, config):
    return {"apiVersion": API, "kind": "DeviceConfig", "metadata": {"name": name}, "spec": {"config": config}}


def manifest():
    return yaml.safe_load((TOP / "kinds/eve.lfedge.org/deviceconfigs.yaml").read_text())


def schema():
    return manifest()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["config"]


def table():
    """(message, field): row of what the tables have in the packages of a configuration."""
    with open(TOP / "tests/data/messages.csv", newline="") as f:
        return {(r["message"], r["field"]): r for r in csv.DictReader(f) if r["package"] in ("org.lfedge.eve.config", "org.lfedge.eve.common")}


def everything(part, name="config", nth=1):
    """A value with every field that the schema has, lists with two elements. nth tells elements apart."""
    if part.get("x-kubernetes-preserve-unknown-fields") and "properties" not in part:
        return {}
    if part.get("type") == "object" and "properties" in part:
        others = {key for pair in part.get("not", {}).get("anyOf", []) for key in pair["required"][1:]}  # of a oneof the first
        return {key: everything(below, key, nth) for key, below in part["properties"].items() if key not in others | {"@unknown"}}
    if part.get("type") == "object":
        return {"key": everything(part["additionalProperties"], name, nth)}
    if part.get("type") == "array":
        return [everything(part["items"], name, n) for n in (1, 2)]
    if part.get("x-kubernetes-int-or-string"):
        names = re.fullmatch(r"\^\((.*)\)\$", part["pattern"])
        return names.group(1).split("|")[-1] if names else str(9007199254740993 + nth)
    if part.get("format") == "byte":
        return "/+A="
    if part.get("format") == "date-time":
        return "2026-11-16T05:00:00Z"
    return {"boolean": True, "integer": nth, "string": f"{name} {nth}"}[part["type"]]


# ---- the generator -------------------------------------------------------------------------

def test_the_schema_is_what_the_generator_writes():
    done = subprocess.run([str(TOP / "tools/device-config-schema"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_field_of_the_tables_is_there_and_described():
    rows = table()
    json_name = lambda name: re.sub("_(.)", lambda m: m.group(1).upper(), name)
    whole = schema()
    wanted = {json_name(field) for message, field in rows if message == "EdgeDevConfig"}
    assert set(whole["properties"]) == wanted | {"@unknown"}
    app = {json_name(field) for message, field in rows if message == "AppInstanceConfig"}
    assert set(whole["properties"]["apps"]["items"]["properties"]) == app | {"@unknown"}

    def check(part, at):
        assert part.get("description"), at
        for key, below in part.get("properties", {}).items():
            check(below, f"{at}.{key}")
        if part.get("type") == "array":
            assert part["x-kubernetes-list-type"] in ("map", "atomic"), at
            keys = part.get("x-kubernetes-list-map-keys", [])
            assert bool(keys) == (part["x-kubernetes-list-type"] == "map"), at
            assert all("default" in part["items"]["properties"][key] for key in keys), at
            if "properties" in part["items"]:
                check(part["items"], f"{at}[]")

    check(whole, "config")


def test_the_definition_is_one_that_any_cluster_takes(s):
    """The server judges definitions as kube-apiserver does; the same schema under another name passes."""
    group = f"{unique('g')}.example.org"
    crd = manifest()
    crd["metadata"]["name"], crd["spec"]["group"] = f"deviceconfigs.{group}", group
    del crd["spec"]["names"]["shortNames"]
    made = json.loads(s.kubectl("create", "-f", "-", "-o", "json", input=json.dumps(crd)))
    assert made["spec"]["versions"][0]["schema"] == crd["spec"]["versions"][0]["schema"], "nothing was dropped"
    s.kubectl("delete", "crd", f"deviceconfigs.{group}")


# ---- server-side apply ----------------------------------------------------------------------

def test_two_managers_own_fields_of_one_application(s):
    ns, name = s.namespace(), unique("d")
    one = deviceconfig(name, {"apps": [{"displayname": "web", "activate": True, "fixedresources": {"memory": 1024, "vcpus": 1}}]})
    two = deviceconfig(name, {"apps": [{"displayname": "web", "fixedresources": {"enableVnc": True}}]})
    server_side = lambda who, body, **more: s.kubectl("apply", "-n", ns, "--server-side", f"--field-manager={who}", "-f", "-", input=json.dumps(body), **more)
    server_side("seth-composer", one)
    server_side("user", two)
    both = s.ok("GET", path(ns, name))
    assert both["spec"]["config"]["apps"] == [{"displayname": "web", "activate": True, "fixedresources": {"memory": 1024, "vcpus": 1, "enableVnc": True}}]
    key = 'k:{"displayname":"web"}'
    owned = {who: fields["f:spec"]["f:config"]["f:apps"][key] for (who, _, _), fields in managers(both).items()}
    assert owned == {"seth-composer": {".": {}, "f:activate": {}, "f:displayname": {}, "f:fixedresources": {"f:memory": {}, "f:vcpus": {}}},
                     "user": {".": {}, "f:displayname": {}, "f:fixedresources": {"f:enableVnc": {}}}}, owned
    one["spec"]["config"]["apps"][0]["fixedresources"]["memory"] = 2048
    server_side("seth-composer", one)
    after = s.ok("GET", path(ns, name))["spec"]["config"]["apps"][0]["fixedresources"]
    assert after == {"memory": 2048, "vcpus": 1, "enableVnc": True}, "each kept its own"


def test_conflicts_name_the_field_of_the_element(s):
    ns, name = s.namespace(), unique("d")
    config = {"apps": [{"displayname": "web", "fixedresources": {"memory": 1024}}], "configItems": [{"key": "timer.config.interval", "value": "60"}]}
    applied(s, path(ns, name), "seth-composer", deviceconfig(name, config))
    config["apps"][0]["fixedresources"]["memory"] = 1
    config["configItems"][0]["value"] = "5"
    fields = [".spec.config.apps[displayname=\"web\"].fixedresources.memory", ".spec.config.configItems[key=\"timer.config.interval\"].value"]
    refused(apply(s, path(ns, name), "user", deviceconfig(name, config)), 409, "Conflict",
            causes=[("FieldManagerConflict", field) for field in fields])
    done = s.kubectl("apply", "-n", ns, "--server-side", "--field-manager=user", "-f", "-", input=json.dumps(deviceconfig(name, config)), check=False)
    assert done.returncode != 0 and all(field in done.stderr for field in fields), done.stderr
    taken = applied(s, path(ns, name), "user", deviceconfig(name, config), force=True)
    assert taken["spec"]["config"]["apps"][0]["fixedresources"]["memory"] == 1
    given_back = applied(s, path(ns, name), "user", deviceconfig(name, {}))
    assert "apps" not in given_back["spec"]["config"] or "memory" not in given_back["spec"]["config"]["apps"][0].get("fixedresources", {})


def test_elements_are_added_and_removed_by_their_key(s):
    ns, name = s.namespace(), unique("d")
    network = lambda n: {"id": f"00000000-0000-4000-8000-00000000000{n}", "type": "V4", "ip": {"dhcp": "Client"}}
    applied(s, path(ns, name), "one", deviceconfig(name, {"networks": [network(1), network(2)]}))
    applied(s, path(ns, name), "two", deviceconfig(name, {"networks": [network(3)]}))
    left = applied(s, path(ns, name), "one", deviceconfig(name, {"networks": [network(2)]}))
    assert left["spec"]["config"]["networks"] == [network(2), network(3)]
    double = deviceconfig(unique("d"), {"networks": [network(1), network(1)]})
    body = refused(s.request("POST", path(ns), double), 422, "Invalid")
    assert [c["field"] for c in body["details"]["causes"]] == ["spec.config.networks[1]"], body


# ---- values ---------------------------------------------------------------------------------

def test_a_wrong_value_is_refused_with_its_path(s):
    ns = s.namespace()
    app = lambda **fields: {"apps": [{"displayname": "web", **fields}]}
    for config, field in (
            (app(fixedresources={"virtualizationMode": "HVN"}), "spec.config.apps[0].fixedresources.virtualizationMode"),
            (app(metaDataType=True), "spec.config.apps[0].metaDataType"),
            (app(volumeRefList=[{"uuid": "v", "generationCount": "many"}]), "spec.config.apps[0].volumeRefList[0].generationCount"),
            (app(fixedresources={"memory": -1}), "spec.config.apps[0].fixedresources.memory"),
            (app(fixedresources={"memory": 1 << 32}), "spec.config.apps[0].fixedresources.memory"),
            (app(cipherData={"initialValue": "%"}), "spec.config.apps[0].cipherData.initialValue"),
            ({"configTimestamp": "yesterday"}, "spec.config.configTimestamp"),
            ({"deviceIoList": [{"phylabel": "eth0", "phyaddrs": {"ifname": 1}}]}, "spec.config.deviceIoList[0].phyaddrs.ifname")):
        body = refused(s.request("POST", path(ns), deviceconfig(unique("d"), config)), 422, "Invalid")
        assert [c["field"] for c in body["details"]["causes"]] == [field], (config, body)
    both = {"bonds": [{"logicallabel": "b", "mii": {}, "arp": {}}]}  # of a oneof; in kube-apiserver's words
    body = refused(s.request("POST", path(ns), deviceconfig(unique("d"), both)), 422, "Invalid")
    assert '"spec.config.bonds[0]" must not validate the schema (not)' in body["message"], body
    done = s.kubectl("apply", "-n", ns, "-f", "-", input=json.dumps(deviceconfig("d", app(fixedresources={"virtualizationMode": "HVN"}))), check=False)
    assert done.returncode != 0 and "spec.config.apps[0].fixedresources.virtualizationMode" in done.stderr and "HVM" in done.stderr, done.stderr


def test_what_protobuf_json_tolerates_is_taken(s):
    ns, name = s.namespace(), unique("d")
    config = {"apps": [{"displayname": "web", "fixedresources": {"virtualizationMode": 1}, "metaDataType": 99,
                        "volumeRefList": [{"uuid": "a", "generationCount": 3}, {"uuid": "b", "generationCount": "9007199254740993"}]}],
              "controllerEpoch": "-1", "contentInfo": [{"uuid": "", "maxSizeBytes": "18446744073709551615"}]}
    made = s.ok("POST", path(ns), deviceconfig(name, config))
    assert made["spec"]["config"] == config
    unnamed = s.ok("POST", path(ns), deviceconfig(unique("d"), {"networks": [{"type": "V4"}], "deviceIoList": [{"vflist": {"data": [{"mac": "m"}]}}]}))
    assert unnamed["spec"]["config"]["networks"] == [{"id": "", "type": "V4"}], "an empty key is none, as in protobuf"
    assert unnamed["spec"]["config"]["deviceIoList"][0]["vflist"]["data"] == [{"index": 0, "mac": "m"}]


def test_what_a_newer_api_has_is_kept(s):
    ns, name = s.namespace(), unique("d")
    config = {"futureThing": {"a": [1, {"b": "c"}]}, "apps": [{"displayname": "web", "@unknown": "/+A="}], "disks": {"children": [{"children": [{"x": 1}]}]},
              "base": [{"baseOSVersion": "1"}]}
    s.ok("POST", path(ns), deviceconfig(name, config))
    changed = s.ok("PATCH", path(ns, name), {"spec": {"config": {"deviceName": "n"}}}, MERGE)
    assert changed["spec"]["config"] == {**config, "deviceName": "n"}
    typed = s.kubectl("apply", "-n", ns, "-f", "-", input=json.dumps(deviceconfig(unique("d"), {"apps": [{"displayname": "web", "activated": True}]})), check=False)
    assert typed.returncode != 0 and 'unknown field "spec.config.apps[0].activated"' in typed.stderr, "a slip is not swallowed"


def test_a_full_configuration_comes_back_and_reaches_a_device(s):
    ns, name = s.namespace(), unique("d")
    config = everything(schema())
    kept = json.loads(s.kubectl("create", "-n", ns, "-f", "-", "-o", "json", input=json.dumps(deviceconfig(name, config))))
    assert kept["spec"]["config"] == config
    assert s.ok("GET", path(ns, name))["spec"]["config"] == config
    again = applied(s, path(ns, name), "seth-composer", deviceconfig(name, config))
    assert again["spec"]["config"] == config and ("seth-composer", "Apply", "") in managers(again)
    d = site(s).onboarded()
    site(s).tell(d, {k: v for k, v in config.items() if k not in ("id", "configTimestamp")})
    answer, response = d.config(known="")
    assert answer.status == 200, answer
    fields = {field for message, field in table() if message == "EdgeDevConfig"}
    assert set(response["config"]) == fields, "the server reads every field by the name that the schema has"
    app = response["config"]["apps"][1]
    assert set(app) == {field for message, field in table() if message == "AppInstanceConfig"} and "?" not in app
    assert app["volumeRefList"][1]["generationCount"] == 9007199254740995 and app["displayname"] == "displayname 2"


def test_a_configuration_that_devices_take_is_taken(s):
    ns, name = s.namespace(), unique("d")
    made = s.ok("POST", path(ns) + "?fieldValidation=Strict", deviceconfig(name, good()))
    assert made["spec"]["config"] == good()


# ---- kubectl explain ------------------------------------------------------------------------

def test_explain_reaches_every_depth(s):
    """Of kubectls that read OpenAPI v3: in v2 an object that keeps unknown fields shows none, as with kube-apiserver."""
    shown = s.kubectl("explain", "deviceconfig.spec.config.apps")
    assert "The applications that the device is to run." in shown and "volumeRefList" in shown and "fixedresources" in shown, shown
    deep = s.kubectl("explain", "deviceconfig.spec.config.networks.wireless.cellularCfg.probe.customProbe.probeMethod")
    assert "CONNECTIVITY_PROBE_METHOD_TCP" in deep, deep
