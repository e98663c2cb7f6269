# SPDX-License-Identifier: Apache-2.0
"""What a device would be told before anybody writes anything, why it is told what it is told, and what dry runs say of devices."""
import json
import os
import re
import subprocess

from expect import APPLY, MERGE, refused
from expect import warnings as warning_headers
from fleet import Site
from seth import KUBECTLS, TOP, Server, unique, wait_until

OPTIONS = ("--threads", "2")
API = "eve.lfedge.org/v1beta1"
LAST = "kubectl.kubernetes.io/last-applied-configuration"
PLURALS = {"ConfigMap": "configmaps", "Secret": "secrets", "PersistentVolumeClaim": "persistentvolumeclaims"}


def path(ns, plural, name=None, rest=""):
    root = "/api/v1" if plural in PLURALS.values() else f"/apis/{API}"
    return f"{root}/namespaces/{ns}/{plural}" + (f"/{name}" if name else "") + rest


def plural(kind):
    return PLURALS.get(kind, kind.lower() + "s")


def thing(kind, name, spec=None, **metadata):
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec or {}}


def application(name, device, image="nginx", memory="256Mi", **spec):
    return thing("Application", name, {"nodeSelector": {"name": device}, **spec,
                                       "containers": [{"name": "main", "image": image, "resources": {"limits": {"memory": memory}}}]})


def make(s, ns, *objects):
    for o in objects:
        s.ok("POST", path(ns, plural(o["kind"])), o)


def config(s, ns, device):
    status, answer = s.request("GET", path(ns, "deviceconfigs", device))
    return answer["spec"].get("config", {}) if status == 200 else {}


def apps(s, ns, device):
    return {a["displayname"]: a for a in config(s, ns, device).get("apps", [])}


def world(s, names=("web",), **application_spec):
    """A namespace with a device that has been told of its applications, and a second image."""
    ns, device = s.namespace(), "edge-1"
    make(s, ns, thing("Device", device), *(thing("Image", i, {"ref": f"library/{i}:1", "storageClass": "eve-docker"}) for i in ("nginx", "other")),
         *(application(n, device, **application_spec) for n in names))
    wait_until(lambda: set(apps(s, ns, device)) == set(names), what="the configuration")
    settle(s, ns, device)
    return ns, device


def settle(s, ns, device):
    """What is pending is composed: a preview without objects shows nothing."""
    wait_until(lambda: s.ok("GET", path(ns, "devices", device, "/preview"))["changes"] == [], what="a configuration as composed")


def preview(s, ns, device, *objects, options="", **headers):
    body = json.dumps(list(objects))
    return s.request("POST", path(ns, "devices", device, f"/preview{options}"), body, {"Content-Type": "application/json", **headers})


def previewed(s, ns, device, *objects, options=""):
    status, answer = preview(s, ns, device, *objects, options=options)
    assert status == 200, answer
    return answer


def places(answer):
    return {c["path"]: c for c in answer["changes"]}


def dry_run(s, method, where, body=None, headers=None):
    """(status, the warnings about devices)."""
    text = None if body is None else json.dumps(body)
    glue = "&" if "?" in where else "?"
    status, got, data = s.exchange(method, f"{where}{glue}dryRun=All", text, {"Content-Type": "application/json", **(headers or {})})
    assert status in (200, 201), (status, data)
    texts = [re.fullmatch('299 - "(.*)"', w).group(1) for w in warning_headers(got)]
    return [t for t in texts if re.search("device|application", t)]


# ---- preview -----------------------------------------------------------------------------------


def test_memory_restarts_the_application(s):
    ns, device = world(s)
    before = s.ok("GET", path(ns, "applications", "web"))
    answer = previewed(s, ns, device, application("web", device, memory="512Mi"))
    assert answer["restarts"] == ["web"] and answer["purges"] == [] and answer["reboots"] is False, answer
    assert answer["effects"] == ["application web restarts"]
    change = places(answer)['apps[displayname="web"].fixedresources.memory']
    assert (change["old"], change["new"]) == (262144, 524288)
    assert change["source"]["kind"] == "Application" and change["source"]["name"] == "web" and change["source"]["generation"] == 2, change
    after = s.ok("GET", path(ns, "applications", "web"))
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"]), "a preview has written something"
    # What was foretold is what comes.
    s.ok("PATCH", path(ns, "applications", "web"), {"spec": application("web", device, memory="512Mi")["spec"]}, MERGE)
    foretold = places(answer)['apps[displayname="web"].restart.counter']["new"]
    wait_until(lambda: apps(s, ns, device)["web"]["fixedresources"]["memory"] == 524288, what="the new memory")
    assert apps(s, ns, device)["web"]["restart"]["counter"] == foretold == 1


def test_another_image_purges(s):
    ns, device = world(s, ("db", "web"))
    answer = previewed(s, ns, device, application("db", device, image="other"))
    assert answer["purges"] == ["db"] and answer["restarts"] == [], answer
    assert "application db is purged: its boot volume is made anew" in answer["effects"], answer["effects"]
    assert not any(p.startswith('apps[displayname="web"]') for p in places(answer)), places(answer).keys()


def test_an_edit_of_an_image_reaches_who_uses_it(s):
    ns, device = world(s, ("db", "web"))
    answer = previewed(s, ns, device, thing("Image", "nginx", {"ref": "library/nginx:2", "storageClass": "eve-docker"}))
    assert answer["purges"] == ["db", "web"], answer
    url = next(c for p, c in places(answer).items() if p.startswith("contentInfo[") and p.endswith(".URL"))
    assert (url["old"], url["new"], url["source"]["kind"]) == ("library/nginx:1", "library/nginx:2", "Image")


def test_objects_may_refer_to_each_other_in_any_order(s):
    ns, device = world(s, ())
    things = [application("cam", device, image="camera"), thing("Image", "camera", {"ref": "library/camera:1", "storageClass": "eve-docker"})]
    for body in (things, list(reversed(things))):
        answer = previewed(s, ns, device, *body)
        assert answer["effects"] == ["application cam is new"] and answer["problems"] == [], answer
        assert places(answer)['apps[displayname="cam"]']["old"] is None
    body = refused(preview(s, ns, device, things[0]), 422, "Invalid")
    assert [(c["reason"], c["field"]) for c in body["details"]["causes"]] == [("FieldValueNotFound", "spec.containers[0].image")], body
    assert s.request("GET", path(ns, "images", "camera"))[0] == 404 and s.request("GET", path(ns, "applications", "cam"))[0] == 404


def test_claims_get_their_volumes(s):
    ns, device = world(s, ())
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
             "spec": {"storageClassName": "eve-blank", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    app = application("db", device, volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
                                             {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": claim["spec"]}}}])
    app["spec"]["containers"][0]["volumeMounts"] = [{"name": "d", "mountPath": "/data"}, {"name": "own", "mountPath": "/own"}]
    answer = previewed(s, ns, device, claim, app)
    assert answer["problems"] == [], answer["problems"]
    new = places(answer)['apps[displayname="db"]']["new"]
    assert [v.get("mountDir") for v in new["volumeRefList"]] == ["/", "/data", "/own"], new


def test_yaml_documents_and_lists(s):
    ns, device = world(s)
    text = "".join(f"---\n{json.dumps(application('web', device, memory=m))}\n" for m in ("1Gi",))
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": [application("web", device, memory="1Gi")]})
    where = path(ns, "devices", device, "/preview")
    for body in (text, text + "---\n# nothing more\n", listed, json.dumps(application("web", device, memory="1Gi"))):
        status, answer = s.request("POST", where, body, {"Content-Type": "application/yaml"})
        assert status == 200 and answer["restarts"] == ["web"], answer


def test_deletion(s):
    ns, device = world(s, ("db", "web"))
    db = thing("Application", "db")
    answer = previewed(s, ns, device, db, options="?delete=true")
    assert answer["effects"] == ["application db is removed"], answer
    assert places(answer)['apps[displayname="db"]']["new"] is None
    marked = thing("Application", "db", deletionTimestamp="2026-01-02T03:04:05Z")
    assert previewed(s, ns, device, marked)["effects"] == ["application db is removed"]
    # An Image goes with its users, not without.
    image = thing("Image", "nginx")
    refused(preview(s, ns, device, image, options="?delete=true"), 409, "Conflict")
    gone = previewed(s, ns, device, image, db, thing("Application", "web"), options="?delete=true")
    assert gone["effects"] == ["application db is removed", "application web is removed"], gone
    refused(preview(s, ns, device, thing("Application", "none"), options="?delete=true"), 404, "NotFound")
    assert previewed(s, ns, device, thing("Device", device), options="?delete=true")["notes"] == ["the Device is gone: it is told nothing any more"]


def test_what_was_applied_and_is_left_out_goes(s):
    """As kubectl apply has it, by either way."""
    ns, device = world(s, ())
    full = {**application("web", device), "metadata": {"name": "web", "namespace": ns}}
    full["spec"]["vnc"] = True
    less = json.loads(json.dumps(full))
    del less["spec"]["vnc"]
    for way in ([], ["--server-side"]):
        s.kubectl("apply", *way, "-f", "-", input=json.dumps(full))
        wait_until(lambda: apps(s, ns, device).get("web", {}).get("fixedresources", {}).get("enableVnc"), what="the console")
        settle(s, ns, device)
        answer = previewed(s, ns, device, less)
        change = places(answer).get('apps[displayname="web"].fixedresources.enableVnc')
        assert change and change["old"] is True and change["new"] in (None, False), (way, places(answer).keys())
        s.ok("DELETE", path(ns, "applications", "web"))
        wait_until(lambda: apps(s, ns, device) == {}, what="the end")


def test_what_is_read_can_be_sent_back(s):
    ns, device = world(s)
    stored = s.ok("GET", path(ns, "applications", "web"))
    assert previewed(s, ns, device, stored)["changes"] == []


def test_refusals_are_those_of_the_write(s):
    ns, device = world(s)
    bad = application("web", device, memory="lots")
    asked = s.request("PATCH", path(ns, "applications", "web", "?dryRun=All&fieldManager=kubectl&force=true"), json.dumps(bad), APPLY)
    assert preview(s, ns, device, bad) == asked and asked[0] == 422, asked
    where = path(ns, "devices", device, "/preview")
    refused(s.request("POST", where, "{", {}), 400, "BadRequest")
    refused(s.request("POST", where, "", {}), 400, "BadRequest")
    refused(preview(s, ns, device, {"apiVersion": "no.such/v1", "kind": "Thing", "metadata": {"name": "x"}}), 400, "BadRequest")
    refused(preview(s, ns, device, bad, bad), 400, "BadRequest")
    refused(preview(s, ns, device, thing("Application", "")), 400, "BadRequest")
    refused(preview(s, ns, device, application("web", device), options="?fieldManager=a%26b"), 400, "BadRequest")
    refused(preview(s, ns, device, application("web", device), options="?format=xml"), 400, "BadRequest")
    refused(preview(s, ns, device, *(thing("Application", f"a{i}") for i in range(257))), 413, "RequestEntityTooLarge")
    refused(s.request("POST", where, "#" * (3 * 1024 * 1024) + "\n{}", {}), 413, "RequestEntityTooLarge")
    refused(preview(s, ns, "none", application("web", device)), 404, "NotFound")
    refused(s.request("DELETE", where), 405, "MethodNotAllowed")
    refused(s.request("POST", path(ns, "devices", device, "/provenance"), "{}"), 405, "MethodNotAllowed")


def test_what_cannot_be_composed_is_told(s):
    ns, device = world(s)
    answer = previewed(s, ns, device, application("web", device, devicePassthrough=["gpu"]))
    problem = next(p for p in answer["problems"] if p["kind"] == "Application")
    assert problem["name"] == "web" and problem["field"] == "spec.devicePassthrough" and problem["isNew"] is True, problem
    assert answer["effects"] == [], "what the device has stays as it was"


def test_who_is_not_for_this_device_is_named(s):
    ns, device = world(s)
    make(s, ns, thing("Device", "edge-2"))
    free = application("free", device)
    free["spec"]["nodeSelector"] = {"site": "nowhere"}
    answer = previewed(s, ns, device, free, application("elsewhere", "edge-2"))
    assert answer["changes"] == [] and len(answer["notes"]) == 2, answer


def test_a_users_field_is_not_changed(s):
    ns, device = world(s)
    taken = {"apiVersion": API, "kind": "DeviceConfig", "metadata": {"name": device},
             "spec": {"config": {"apps": [{"displayname": "web", "fixedresources": {"memory": 300000}}]}}}
    where = path(ns, "deviceconfigs", device)
    s.ok("PATCH", f"{where}?fieldManager=ann&force=true", json.dumps(taken), APPLY)
    place = 'apps[displayname="web"].fixedresources.memory'

    def overrides():
        return s.ok("GET", path(ns, "devices", device, "/provenance"))["overrides"]

    wait_until(lambda: {"path": place, "manager": "ann"} in overrides(), what="the composer to yield")
    answer = previewed(s, ns, device, application("web", device, memory="512Mi"))
    assert places(answer)[place]["overriddenBy"] == "ann", answer
    now = s.ok("GET", path(ns, "devices", device, "/preview"))
    assert all("overriddenBy" in c for c in now["changes"]), now
    text = s.ok("GET", path(ns, "devices", device, "/preview?format=text"))
    assert "ann has taken it over" in text


def test_whole_configurations_are_left_alone(s):
    ns, device = s.namespace(), "edge-1"
    make(s, ns, thing("Device", device))
    wait_until(lambda: config(s, ns, device), what="the configuration")
    s.ok("PATCH", path(ns, "deviceconfigs", device), {"metadata": {"annotations": {"eve.lfedge.org/composed": "false"}}}, MERGE)
    make(s, ns, thing("Image", "nginx", {"ref": "library/nginx:1", "storageClass": "eve-docker"}))
    answer = previewed(s, ns, device, application("web", device))
    assert answer["changes"] == [] and "its writer's alone" in answer["notes"][0], answer
    assert s.ok("GET", path(ns, "devices", device, "/provenance"))["sources"] == []


def test_text_for_people(s):
    ns, device = world(s)
    where = path(ns, "devices", device, "/preview")
    body = json.dumps(application("web", device, memory="512Mi"))
    status, headers, data = s.exchange("POST", where, body, {"Accept": "text/plain"})
    lines = data.decode().splitlines()
    assert status == 200 and headers["Content-Type"].startswith("text/plain")
    assert lines[:2] == [f"Device {ns}/{device}", "  application web restarts"], lines
    at = next(i for i, line in enumerate(lines) if line.startswith('@@ apps[displayname="web"].fixedresources.memory @@'))
    assert lines[at + 1:at + 3] == ["-262144", "+524288"], lines
    assert "nothing changes" in s.ok("GET", where + "?format=text")


def test_secrets_stay_sealed(s):
    """With a device that has sent its certificate: what changes is told, what is in it is not."""
    site = Site(s)
    d, ns = site.onboarded(), site.ns
    d.attest_certs()
    device = site.name(d)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cloud"}, "stringData": {"userData": "hunter1"}}
    make(s, ns, thing("Image", "nginx", {"ref": "library/nginx:1", "storageClass": "eve-docker"}), secret, application("web", device, userDataSecret="cloud"))
    wait_until(lambda: "cipherData" in apps(s, ns, device).get("web", {}), what="the sealed part")
    settle(s, ns, device)
    changed = {**secret, "stringData": {"userData": "hunter2"}}
    answer = previewed(s, ns, device, changed)
    change = places(answer)['apps[displayname="web"].cipherData']
    assert change["old"].startswith("(sealed") and change["new"].startswith("(sealed") and change["old"] != change["new"], answer
    assert "hunter" not in json.dumps(answer) and answer["restarts"] == [], answer
    assert previewed(s, ns, device, secret)["changes"] == []
    assert dry_run(s, "PATCH", path(ns, "secrets", "cloud"), {"stringData": {"userData": "hunter2"}}, MERGE) == ["would change the configuration of 1 device"]
    source = s.ok("GET", path(ns, "devices", device, "/provenance?path=apps[0].cipherData"))["sources"]
    assert {x["kind"] for x in source} >= {"Secret"}, source


# ---- provenance --------------------------------------------------------------------------------


def test_every_part_has_a_source(s):
    ns, device = world(s)
    answer = s.ok("GET", path(ns, "devices", device, "/provenance"))
    assert answer["problems"] == [] and answer["overrides"] == [], answer
    short = [{k: v for k, v in x.items() if k not in ("apiVersion", "namespace")} for x in answer["sources"]]
    wait_until(lambda: s.ok("GET", path(ns, "deviceconfigs", device)).get("status", {}).get("sources") == short, what="the same sources in the status")
    web = next(x for x in answer["sources"] if x["path"] == "apps[0]")
    assert {k: web[k] for k in ("apiVersion", "kind", "namespace", "name")} == {"apiVersion": API, "kind": "Application", "namespace": ns, "name": "web"}
    assert web["generation"] == 1 and web["field"]


def test_a_path_is_explained(s):
    ns, device = world(s, ("db", "web"))
    where = path(ns, "devices", device, "/provenance?path=")
    for asked in ("apps[1].fixedresources.memory", "apps[displayname=%22web%22].fixedresources.memory"):
        answer = s.ok("GET", where + asked)
        assert answer["path"] == 'apps[displayname="web"].fixedresources.memory' and answer["value"] == 262144, answer
        assert answer["sources"] and {x["name"] for x in answer["sources"]} == {"web"}, answer
    text = s.ok("GET", where + "apps[1].fixedresources.memory&format=text")
    header = next(line for line in text.splitlines() if line.startswith("PATH"))
    row = next(line for line in text.splitlines() if "Application" in line)
    assert header.index("OBJECT") == row.index("Application") and "generation 1" in row, text
    assert s.ok("GET", where + "nothing[3].of.this")["sources"] == []


def test_discovery_shows_them(s):
    plain = {r["name"]: r for r in s.ok("GET", f"/apis/{API}")["resources"]}
    for name, verbs in (("preview", ["create", "get"]), ("provenance", ["get"]), ("log", ["get"]), ("lastseen", ["get"])):
        assert plain[f"devices/{name}"]["verbs"] == verbs and plain[f"devices/{name}"]["kind"] == "Device", plain
    assert "applications/preview" not in plain


# ---- rights ------------------------------------------------------------------------------------


def grant(s, ns, user, *rules):
    role = unique("role")
    s.ok("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles", {"metadata": {"name": role}, "rules": [
        {"apiGroups": [g], "resources": r, "verbs": v} for g, r, v in rules]})
    s.ok("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings", {
        "metadata": {"name": role}, "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role}})


def test_rights(s):
    ns, device = world(s)
    user = unique("user")
    who = {"Impersonate-User": user}
    group = "eve.lfedge.org"
    where = path(ns, "devices", device)
    body = json.dumps(application("web", device, memory="512Mi"))

    def codes():
        return [s.request("GET", f"{where}/provenance", None, who)[0], s.request("GET", f"{where}/preview", None, who)[0],
                s.request("POST", f"{where}/preview", body, who)[0]]

    assert codes() == [403, 403, 403]
    grant(s, ns, user, (group, ["devices", "applications"], ["get", "create", "patch"]))
    assert codes() == [403, 403, 403]
    grant(s, ns, user, (group, ["devices/provenance"], ["get"]))
    assert codes() == [200, 403, 403]
    grant(s, ns, user, (group, ["devices/preview"], ["get"]))
    assert codes() == [200, 200, 403]
    grant(s, ns, user, (group, ["devices/preview"], ["create"]))
    assert codes() == [200, 200, 200]


def test_what_may_not_be_read_is_not_previewed(s):
    """Else guessing would show what is in a Secret: nothing changes when the guess is right."""
    ns, device = world(s)
    user = unique("user")
    make(s, ns, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "word"}, "stringData": {"a": "b"}})
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "word"}, "stringData": {"a": "c"}}
    grant(s, ns, user, ("eve.lfedge.org", ["devices/preview"], ["create"]))
    refused(preview(s, ns, device, secret, **{"Impersonate-User": user}), 403, "Forbidden")
    grant(s, ns, user, ("", ["secrets"], ["get"]))
    assert preview(s, ns, device, secret, **{"Impersonate-User": user})[0] == 200


# ---- dry runs ----------------------------------------------------------------------------------


def test_dry_runs_say_how_many_devices_change(s):
    ns, device = world(s, ("db", "web"))
    make(s, ns, thing("Device", "edge-2"))
    wait_until(lambda: config(s, ns, "edge-2"), what="the second configuration")
    one, two = "would change the configuration of 1 device", "would change the configuration of 2 devices"
    web = path(ns, "applications", "web")
    assert dry_run(s, "PATCH", web, {"spec": application("web", device, memory="1Gi")["spec"]}, MERGE) == [f"{one} (1 restart)"]
    assert dry_run(s, "PATCH", web + "?fieldManager=x&force=true", application("web", device, image="other"), APPLY) == [f"{one} (1 purge)"]
    assert dry_run(s, "DELETE", web) == [one]
    assert dry_run(s, "POST", path(ns, "applications"), application("new", "edge-2")) == [one]
    image = s.ok("GET", path(ns, "images", "nginx"))
    image["spec"]["ref"] = "library/nginx:2"
    assert dry_run(s, "PUT", path(ns, "images", "nginx"), image) == [f"{one} (2 purges)"]
    assert dry_run(s, "PATCH", path(ns, "devices", device), {"metadata": {"annotations": {"eve.lfedge.org/config.timer.config.interval": "77"}}}, MERGE) == [one]
    options = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "eve-options"}, "data": {"config.timer.config.interval": "99"}}
    assert dry_run(s, "POST", path(ns, "configmaps"), options) == [two]
    make(s, ns, thing("NetworkConfig", "dhcp", {"ip": "dhcp"}))
    got = dry_run(s, "POST", path(ns, "devicenetworks"), thing("DeviceNetwork", "lan", {"networkConfig": "dhcp", "nodeSelector": {"name": device}}))
    assert got == [f"{one} (2 restarts)"], "both join the network"
    assert dry_run(s, "DELETE", path(ns, "applications")) == [one]
    # Nothing of it has happened.
    assert s.ok("GET", web)["spec"]["containers"][0]["image"] == "nginx" and apps(s, ns, device).keys() == {"db", "web"}


def test_dry_runs_that_change_no_device(s):
    ns, device = world(s)
    labels = {"metadata": {"labels": {"team": "a"}}}
    assert dry_run(s, "PATCH", path(ns, "applications", "web"), labels, MERGE) == ["would change the configuration of no device"]
    assert dry_run(s, "PATCH", path(ns, "applications", "web"), {"spec": application("web", device)["spec"]}, MERGE) == []
    assert dry_run(s, "POST", path(ns, "configmaps"), {"metadata": {"name": "other"}, "data": {"a": "b"}}) == []
    assert dry_run(s, "POST", path(ns, "secrets"), {"metadata": {"name": "other"}, "data": {"a": "Yg=="}}) == []
    free = application("free", device)
    free["spec"]["nodeSelector"] = {"site": "nowhere"}
    assert dry_run(s, "POST", path(ns, "applications"), free) == ["1 application would be left to the scheduler"]
    assert dry_run(s, "POST", path(ns, "applications"), application("lost", "none")) == []


def test_dry_runs_of_what_makes_applications(s):
    ns, _ = world(s, ())
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"nodeSelector": {"site": "nowhere"}, "containers": [{"name": "c", "image": "nginx"}]}}
    other = json.loads(json.dumps(template))
    other["spec"]["containers"][0]["image"] = "other"
    base = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    for kind, more in (("ApplicationDeployment", {}), ("ApplicationStatefulSet", {"serviceName": "a"})):
        o = thing(kind, "many", {**base, "replicas": 3, **more})
        where = path(ns, kind.lower() + "s")
        assert dry_run(s, "POST", where, o) == ["3 applications would be made"]
        make(s, ns, o)
        assert dry_run(s, "PATCH", f"{where}/many", {"spec": {"replicas": 5, "template": other}}, MERGE) == ["2 applications would be made, and 3 applications would be replaced"]
        assert dry_run(s, "PATCH", f"{where}/many", {"spec": {"replicas": 2}}, MERGE) == ["1 application would be removed"]
        assert dry_run(s, "PATCH", f"{where}/many", {"metadata": {"labels": {"a": "b"}}}, MERGE) == []
        assert dry_run(s, "DELETE", f"{where}/many") == dry_run(s, "DELETE", where) == ["3 applications would be removed"]
    partition = {"spec": {"template": other, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}}
    assert dry_run(s, "PATCH", path(ns, "applicationstatefulsets", "many"), partition, MERGE) == ["1 application would be replaced"]
    by_hand = {"spec": {"template": other, "updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}
    assert dry_run(s, "PATCH", path(ns, "applicationstatefulsets", "many"), by_hand, MERGE) == []
    daemons = thing("ApplicationDaemonSet", "all", base)
    assert dry_run(s, "POST", path(ns, "applicationdaemonsets"), daemons) == ["an application would be made on every device that fits"]


def test_numbers_say_nothing_else(s):
    """Who may write and not read Devices learns how many, not which."""
    ns, device = world(s)
    user = unique("user")
    grant(s, ns, user, ("eve.lfedge.org", ["applications"], ["patch"]))
    got = dry_run(s, "PATCH", path(ns, "applications", "web"), {"spec": application("web", device, memory="1Gi")["spec"]}, {**MERGE, "Impersonate-User": user})
    assert got == ["would change the configuration of 1 device (1 restart)"], got


def test_many_devices_are_counted_as_far_as_there_is_time(s):
    ns, n = s.namespace(), 230
    make(s, ns, *(thing("Device", f"d{i:03}") for i in range(n)))
    options = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "eve-options"}, "data": {"config.timer.config.interval": "99"}}
    wait_until(lambda: config(s, ns, f"d{n - 1:03}"), what="the configurations")
    got = dry_run(s, "POST", path(ns, "configmaps"), options)
    counts = re.fullmatch(rf"would change the configuration of at least (\d+) of {n} devices concerned", got[0])
    assert counts and 0 < int(counts.group(1)) <= 200, got


def test_kubectl_shows_the_warning(s):
    ns, device = world(s)
    manifest = {**application("web", device, memory="1Gi"), "metadata": {"name": "web", "namespace": ns}}
    for version in ("old", "new"):
        done = s.kubectl("apply", "--dry-run=server", "--server-side", "--force-conflicts", "-f", "-", input=json.dumps(manifest), version=version, check=False)
        assert done.returncode == 0 and "Warning: would change the configuration of 1 device (1 restart)" in done.stderr, done
    text = s.kubectl("get", "--raw", path(ns, "devices", device, "/provenance?format=text"))
    assert "Application" in text
    (s.dir / "app.json").write_text(json.dumps(manifest))
    answer = json.loads(s.kubectl("create", "--raw", path(ns, "devices", device, "/preview"), "-f", str(s.dir / "app.json")))
    assert answer["restarts"] == ["web"]
    for subresource, verb in (("preview", "create"), ("preview", "get"), ("provenance", "get"), ("log", "get")):
        done = s.kubectl("auth", "can-i", verb, f"devices.eve.lfedge.org/{device}", f"--subresource={subresource}", "-n", ns, check=False)
        assert done.stdout == "yes\n" and "Warning" not in done.stderr, done


# ---- the page ----------------------------------------------------------------------------------


def test_commands_of_the_page_run_as_written():
    text = (TOP / "docs/PREVIEW.md").read_text()
    script = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.S))
    assert script.count("kubectl") >= 5, "the page has lost its commands"
    with Server() as s:
        env = {**os.environ, "PATH": f"{KUBECTLS['new'].parent}:{os.environ['PATH']}", "HOME": str(s.dir), "KUBECONFIG": s.kubeconfig}
        s.kubectl("apply", "-f", "examples/first-device")
        wait_until(lambda: "web" in apps(s, "first-device", "eve-device.lab1"), what="the configuration")
        settle(s, "first-device", "eve-device.lab1")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=TOP, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        for expected in ("application web restarts", "application web is removed", 'apps[displayname="web"].fixedresources.memory\n 524288\n'):
            assert expected in done.stdout, (expected, done.stdout)
        assert "Warning: would change the configuration of 1 device (1 restart)" in done.stderr, done.stderr
