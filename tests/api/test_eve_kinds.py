# SPDX-License-Identifier: Apache-2.0
"""The kinds of eve.lfedge.org as users meet them: kubectl, certificates in specs, options, what lets devices register."""
import base64
import concurrent.futures
import datetime
import functools
import hashlib
import re
from uuid import uuid4

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from expect import APPLY, MERGE, STRATEGIC, refused, warnings
from seth import Server, unique, wait_until

OPTIONS = ("--threads", "4")
GROUP = "/apis/eve.lfedge.org/v1beta1"
KINDS = {"applicationdaemonsets": "appds", "applicationdeployments": "appdep", "applications": "eapp", "applicationstatefulsets": "appsts",
         "devicecertificateauthorities": "devca", "deviceconfigs": "dcfg", "devicenetworks": "dnet", "devices": "edev",
         "enrollmentrequests": "enr", "images": "img", "networkconfigs": "ncfg", "onboardcertificateauthorities": "obca",
         "onboardcertificates": "obc", "volumes": "evol"}


def path(ns, plural, name=None, sub=None):
    return f"{GROUP}/namespaces/{ns}/{plural}" + (f"/{name}" if name else "") + (f"/{sub}" if sub else "")


@functools.lru_cache(maxsize=1)
def signing_key():
    return ec.generate_private_key(ec.SECP256R1())


def certificate(name=None, is_ca=False, begin=-1, end=10):
    """A certificate that nobody has yet, valid from begin to end days from now."""
    now = datetime.datetime.utcnow()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name or unique("device"))])
    return (x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(signing_key().public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(now + datetime.timedelta(days=begin))
            .not_valid_after(now + datetime.timedelta(days=end)).add_extension(x509.BasicConstraints(is_ca, None), critical=True)
            .sign(signing_key(), hashes.SHA256()))


def pem(cert):
    return cert.public_bytes(serialization.Encoding.PEM).decode()


def b64(text, is_wrapped=False):
    data = text.encode() if isinstance(text, str) else text
    return (base64.encodebytes if is_wrapped else base64.b64encode)(data).decode()


def encodings(cert):
    der = cert.public_bytes(serialization.Encoding.DER)
    twice = b64(b64(pem(cert), True), True)
    return [pem(cert), b64(pem(cert)), b64(b64(pem(cert))), b64(der), twice, " ".join(twice.split())]


def fingerprint(cert):
    return hashlib.sha256(cert.public_bytes(serialization.Encoding.DER)).hexdigest()


def thing(kind, name, spec=None, **metadata):
    return {"apiVersion": "eve.lfedge.org/v1beta1", "kind": kind, "metadata": {"name": name, **metadata}, **({"spec": spec} if spec is not None else {})}


def device(s, ns, name, cert=None, **metadata):
    spec = {} if cert is None else {"certificate": cert}
    return s.request("POST", path(ns, "devices"), thing("Device", name, spec, **metadata))


def condition(object, kind):
    return next((c for c in object.get("status", {}).get("conditions", []) if c["type"] == kind), {})


def at_once(n, function):
    with concurrent.futures.ThreadPoolExecutor(25) as pool:
        return list(pool.map(function, range(n)))


# ---- the kinds

def test_all_kinds_are_served_as_a_definition_would_have_them(s):
    listed = {r["name"]: r for r in s.ok("GET", GROUP)["resources"]}
    assert {n for n in listed if "/" not in n} == set(KINDS)
    for plural, short in KINDS.items():
        resource = listed[plural]
        assert resource["shortNames"] == [short] and resource["categories"] == ["eve"] and resource["namespaced"], resource
        assert set(listed[plural + "/status"]["verbs"]) == {"get", "patch", "update"}
    assert {n for n in listed if n.endswith("/scale")} == {"applicationdeployments/scale", "applicationstatefulsets/scale"}
    groups = [g["name"] for g in s.ok("GET", "/apis")["groups"]]
    assert groups.index("eve.lfedge.org") > groups.index("coordination.k8s.io")
    ns = s.namespace()
    assert device(s, ns, "d")[0] == 201
    assert s.request("PATCH", path(ns, "devices", "d"), {"spec": {"serial": "1"}}, STRATEGIC)[0] == 415
    refused(s.request("POST", path(ns, "images"), thing("Image", "i", {"ref": "a"})), 422, "Invalid", causes=[("FieldValueRequired", "spec.storageClass")])
    pruned = s.ok("POST", path(ns, "networkconfigs"), thing("NetworkConfig", "n", {"colour": "red"}))
    assert pruned["spec"] == {"ip": "dhcp"}, pruned


def test_kubectl_explains_and_lists_them(s):
    for version in ("old", "new"):
        for plural, short in KINDS.items():
            assert "DESCRIPTION" in s.kubectl("explain", f"{plural}.spec", version=version)
            s.kubectl("get", short, "-A", version=version)
        text = s.kubectl("explain", "device.status", "--recursive", version=version)
        for field in ("eve-os-version", "uuid", "addresses", "capacity", "allocatable", "nodeInfo", "conditions", "observedGeneration", "config", "apps"):
            assert re.search(rf"^\s+{field}\t", text, re.M), field


def test_no_definition_takes_the_place_of_a_built_in_kind(s):
    names = {"plural": "devices", "singular": "device", "kind": "Device", "listKind": "DeviceList"}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "devices.eve.lfedge.org"},
           "spec": {"group": "eve.lfedge.org", "scope": "Namespaced", "names": names, "versions": [
               {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}
    body = refused(s.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd), 403, "Forbidden")
    assert body["message"].endswith("this kind is built in"), body


SAMPLES = """
apiVersion: eve.lfedge.org/v1beta1
kind: Device
metadata:
  name: eve-device.lab1
  labels: {kubernetes.io/arch: amd64, kubernetes.io/os: eve}
  annotations: {eve.lfedge.org/node-type: virtual, eve.lfedge.org/location: texas/usa, eve.lfedge.org/activate: "true"}
spec:
  eve-os-version: 8.10.0-kvm-amd64
  certificate:
    %(folded)s
  serial: "6654abbcc44"
---
apiVersion: eve.lfedge.org/v1beta1
kind: OnboardCertificate
metadata: {name: onboard-cert-25}
spec:
  serials: ["*"]
  certificate:
    %(folded)s
---
apiVersion: eve.lfedge.org/v1beta1
kind: NetworkConfig
metadata: {name: default-ipv4}
spec:
  ip: dhcp
  proxies: ["https://10.100.100.1:8888"]
---
apiVersion: eve.lfedge.org/v1beta1
kind: DeviceNetwork
metadata: {name: default-ipv4, annotations: {ctrl.example.tv/network-control: "42"}}
spec:
  networkConfig: default-ipv4
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - {key: name, operator: In, values: [lab1-nuc, lab2-nuc]}
"""


def test_samples_apply_and_columns_show_them(s):
    ns, cert = s.namespace(), certificate()
    folded = b64(b64(pem(cert), True), True).strip().replace("\n", "\n    ")
    for _ in range(2):  # and again: nothing to do
        done = s.kubectl("apply", "-n", ns, "-f", "-", input=SAMPLES % {"folded": folded})
    assert done.count("unchanged") == 4, done
    assert s.kubectl("apply", "--server-side", "--force-conflicts", "-n", ns, "-f", "-", input=SAMPLES % {"folded": folded}).count("serverside-applied") == 4
    header, row = s.kubectl("get", "edev", "-n", ns).splitlines()
    assert re.split(r"\s{2,}", header.strip()) == ["NAME", "READY", "LAST SEEN", "EVE", "TARGET", "APPS", "AGE"], header
    assert re.match(r"eve-device.lab1 +Unknown +8.10.0-kvm-amd64 +0/0 +\d+s", row), row
    wait_until(lambda: re.search(r"onboard-cert-25 +True +0 ", s.kubectl("get", "obc", "-n", ns)), what="the certificate to be described")
    made_by_us = [name for name in s.kubectl("get", "eve", "-n", ns, "-o", "name").split() if not name.startswith("deviceconfig.")]
    assert made_by_us == [
        "devicenetwork.eve.lfedge.org/default-ipv4", "device.eve.lfedge.org/eve-device.lab1", "networkconfig.eve.lfedge.org/default-ipv4",
        "onboardcertificate.eve.lfedge.org/onboard-cert-25"]
    assert "default-ipv4" in s.kubectl("describe", "dnet", "-n", ns)


def test_scale(s):
    ns = s.namespace()
    s.ok("POST", path(ns, "images"), thing("Image", "i", {"ref": "a:1", "storageClass": "eve-docker"}))
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    for plural, kind in (("applicationdeployments", "ApplicationDeployment"), ("applicationstatefulsets", "ApplicationStatefulSet")):
        made = s.ok("POST", path(ns, plural), thing(kind, "x", {"selector": {"matchLabels": {"a": "b"}}, "template": template}))
        assert made["spec"]["replicas"] == 1 and made["spec"]["template"]["spec"]["activate"] is True, made
        s.kubectl("scale", "-n", ns, f"{plural}/x", "--replicas=3")
        assert s.ok("GET", path(ns, plural, "x"))["spec"]["replicas"] == 3
        assert s.ok("GET", path(ns, plural, "x", "scale"))["spec"]["replicas"] == 3


# ---- devices

def test_a_device_has_a_uuid_of_its_own_for_good(s):
    ns = s.namespace()
    made = device(s, ns, "a")[1]
    uuid = made["status"]["uuid"]
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", uuid)
    ready = condition(made, "Ready")
    assert ready["status"] == "Unknown" and ready["lastTransitionTime"] == made["metadata"]["creationTimestamp"], ready
    other = "ec232b65-602a-f2a9-287b-5d95721116e6"
    given = s.ok("POST", path(ns, "devices"), {**thing("Device", "b"), "status": {"uuid": other}})
    assert given["status"]["uuid"] not in (other, uuid)
    refused(s.request("PATCH", path(ns, "devices", "a", "status"), {"status": {"uuid": other}}, MERGE), 422, "Invalid",
            causes=[("FieldValueInvalid", "status.uuid")])
    refused(s.request("PATCH", path(ns, "devices", "a", "status") + "?fieldManager=m&force=true",
                      str(thing("Device", "a")).replace("'", '"')[:-1] + f', "status": {{"uuid": "{other}"}}}}', APPLY), 422, "Invalid")
    for body in ({"status": {"uuid": None}}, {"status": None}, {"status": {"apps": {"wanted": 3, "running": 1}}}):
        assert s.ok("PATCH", path(ns, "devices", "a", "status"), body, MERGE)["status"]["uuid"] == uuid

    def shows_apps():  # the server counts them, too, and may have the last word
        counted = s.ok("PATCH", path(ns, "devices", "a", "status"), {"status": {"apps": {"wanted": 3, "running": 1}}}, MERGE)["status"]["apps"]["summary"]
        assert counted == "1/3", counted
        return re.search(r"^a +1/3 ", s.kubectl("get", "edev", "a", "-n", ns).splitlines()[1])

    wait_until(shows_apps, what="the column of applications")
    s.ok("DELETE", path(ns, "devices", "a"))
    assert device(s, ns, "a")[1]["status"]["uuid"] != uuid
    # A device that moves here keeps its own, if who brings it may do everything.
    moved = device(s, ns, "c", annotations={"eve.lfedge.org/uuid": other.upper()})[1]
    assert moved["status"]["uuid"] == other and "annotations" not in moved["metadata"], moved
    refused(device(s, ns, "d", annotations={"eve.lfedge.org/uuid": other}), 422, "Invalid")
    refused(device(s, ns, "d", annotations={"eve.lfedge.org/uuid": "mine"}), 422, "Invalid")
    user = unique("user")
    grant(s, user, "edit", ns)
    ask = lambda: s.request("POST", path(ns, "devices"), thing("Device", "e", annotations={"eve.lfedge.org/uuid": str(uuid4())}), {"Impersonate-User": user})
    answer = wait_until(lambda: (a := ask())[0] != 403 and a, what="the rights of the user")
    refused(answer, 422, "Invalid", causes=[("FieldValueForbidden", "metadata.annotations[eve.lfedge.org/uuid]")])


def test_certificates_in_every_encoding_are_one_certificate(s):
    ns, cert = s.namespace(), certificate()
    for plural, kind in (("devices", "Device"), ("onboardcertificates", "OnboardCertificate"), ("devicecertificateauthorities", "DeviceCertificateAuthority")):
        for i, text in enumerate(encodings(cert)):
            status, body = s.request("POST", path(ns, plural), thing(kind, f"c{i}", {"certificate": text}))
            if plural != "devices" or i == 0:
                assert status == 201, body
                continue
            refused((status, body), 422, "Invalid", causes=[("FieldValueInvalid", "spec.certificate")])
            assert f"Device {ns}/c0 has it already" in body["message"], body
    assert s.ok("GET", path(ns, "devices", "c0"))["status"]["fingerprint"] == fingerprint(cert)
    forged = s.ok("PATCH", path(ns, "devices", "c0", "status"), {"status": {"fingerprint": "0" * 64}}, MERGE)
    assert forged["status"]["fingerprint"] == fingerprint(cert)
    elsewhere = s.namespace()
    assert device(s, elsewhere, "d", pem(cert))[0] == 422
    assert device(s, elsewhere, "d", pem(certificate()))[0] == 201
    refused(s.request("PATCH", path(elsewhere, "devices", "d"), {"spec": {"certificate": b64(pem(cert))}}, MERGE), 422, "Invalid")
    # Its own certificate in other words is no other certificate.
    s.ok("PATCH", path(ns, "devices", "c0"), {"spec": {"certificate": b64(pem(cert))}}, MERGE)
    assert "fingerprint" not in s.ok("PATCH", path(ns, "devices", "c0"), {"spec": {"certificate": None}}, MERGE)["status"]
    s.ok("PATCH", path(ns, "devices", "c0"), {"spec": {"certificate": pem(cert)}}, MERGE)
    s.ok("DELETE", path(ns, "devices", "c0"))
    assert device(s, elsewhere, "e", encodings(cert)[2])[0] == 201


def test_what_is_no_certificate_is_refused_with_the_reason(s):
    ns, cert = s.namespace(), certificate()
    bad = {"": "empty", "nonsense": "base64 of something that is no certificate", "?": "neither PEM nor base64",
           pem(cert).replace("A", "B", 3): "PEM without a readable certificate", b64("hello"): "base64 of something that is no certificate",
           b64(b64(b64(pem(cert)))): "holds neither PEM nor DER", b64(cert.public_bytes(serialization.Encoding.DER)[:-5]): "DER of no readable certificate",
           "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n": "PEM without a readable certificate"}
    fields = (("Device", "certificate"), ("Device", "onboard"), ("OnboardCertificate", "certificate"), ("OnboardCertificateAuthority", "certificate"),
              ("DeviceCertificateAuthority", "certificate"), ("EnrollmentRequest", "certificate"))
    plurals = {"Device": "devices", "OnboardCertificate": "onboardcertificates", "OnboardCertificateAuthority": "onboardcertificateauthorities",
               "DeviceCertificateAuthority": "devicecertificateauthorities", "EnrollmentRequest": "enrollmentrequests"}
    for kind, field in fields:
        for text, reason in bad.items():
            body = refused(s.request("POST", path(ns, plurals[kind]), thing(kind, "x", {field: text})), 422, "Invalid",
                           causes=[("FieldValueInvalid", f"spec.{field}")])
            assert f"must be a certificate: {reason}" in body["message"], (kind, text, body["message"])
            assert len(body["message"]) < 300, body["message"]
    assert device(s, ns, "d", pem(cert))[0] == 201
    refused(s.request("PATCH", path(ns, "devices", "d"), {"spec": {"certificate": "nonsense"}}, MERGE), 422, "Invalid")


def test_of_many_at_once_one_has_the_certificate(s):
    spaces = [s.namespace() for _ in range(4)]
    for turn in range(5):
        texts = encodings(certificate())
        answers = at_once(24, lambda i: device(s, spaces[i % 4], f"new{turn}-{i}", texts[i % len(texts)]))
        assert sorted(a[0] for a in answers) == [201] + [422] * 23, [a[0] for a in answers]
        holder = next(a[1]["metadata"] for a in answers if a[0] == 201)
        for status, body in answers:
            assert status == 201 or f"Device {holder['namespace']}/{holder['name']} has it already" in body["message"], body


def test_of_many_changes_at_once_one_gets_the_certificate(s):
    ns = s.namespace()
    for i in range(12):
        assert device(s, ns, f"d{i}")[0] == 201
    texts = encodings(certificate())
    patch = lambda i: s.request("PATCH", path(ns, "devices", f"d{i}"), {"spec": {"certificate": texts[i % len(texts)]}}, MERGE)[0]
    assert sorted(at_once(12, patch)) == [200] + [422] * 11
    # Whoever gives it up makes room for one other.
    held = next(d["metadata"]["name"] for d in s.ok("GET", path(ns, "devices"))["items"] if d.get("spec", {}).get("certificate"))
    s.ok("PATCH", path(ns, "devices", held), {"spec": {"certificate": None}}, MERGE)
    assert sorted(at_once(12, patch)).count(200) == 1


def test_a_dry_run_takes_nothing(s):
    ns, cert = s.namespace(), certificate()
    dry = path(ns, "devices") + "?dryRun=All"
    assert s.request("POST", dry, thing("Device", "a", {"certificate": pem(cert)}))[0] == 201
    assert device(s, ns, "b", pem(cert))[0] == 201
    assert s.request("POST", dry, thing("Device", "a", {"certificate": pem(cert)}))[0] == 422


def test_certificates_stay_taken_over_a_restart():
    with Server() as s:
        cert, gone = certificate(), certificate()
        assert device(s, "default", "a", pem(cert))[0] == 201
        assert device(s, "default", "b", pem(gone))[0] == 201
        s.ok("DELETE", path("default", "devices", "b"))
        uuid = s.ok("GET", path("default", "devices", "a"))["status"]["uuid"]
        s.stop()
        s.start()
        answers = at_once(8, lambda i: device(s, "default", f"n{i}", encodings(cert)[i % 6])[0])
        assert answers == [422] * 8, answers
        assert device(s, "default", "b", pem(gone))[0] == 201
        assert s.ok("GET", path("default", "devices", "a"))["status"]["uuid"] == uuid


# ---- options

def test_options_are_judged_where_they_are_written(s):
    ns = s.namespace()
    note = lambda **options: {"eve.lfedge.org/" + k.replace("_", "."): v for k, v in options.items()}
    for options, message in (({"activate": "yes"}, "Unsupported value"), ({"config_timer_config_interval": "1"}, "must be an integer between 5 and 86400"),
                             ({"attestation": "on"}, "must be off, report or enforce"), ({"telemetry_retention": "1"}, "must be a duration")):
        body = refused(device(s, ns, "d", annotations=note(**options)), 422, "Invalid")
        assert message in body["message"], body
    status, headers, _ = s.exchange("POST", path(ns, "devices"), thing("Device", "d", annotations=note(config_no_such_item="1", config_app_allow_vnc="true")))
    assert status == 201 and ["no option" in w for w in warnings(headers)] == [True], warnings(headers)
    refused(s.request("PATCH", path(ns, "devices", "d"), {"metadata": {"annotations": note(activate="")}}, MERGE), 422, "Invalid")
    # What was there before is not held against a change of something else.
    assert s.exchange("PATCH", path(ns, "devices", "d"), {"spec": {"serial": "1"}}, MERGE)[1].get("Warning") is None

    maps = f"/api/v1/namespaces/{ns}/configmaps"
    refused(s.request("POST", maps, {"metadata": {"name": "eve-options"}, "data": {"config.debug.enable.usb": "perhaps"}}), 422, "Invalid",
            causes=[("FieldValueInvalid", "data[config.debug.enable.usb]")])
    status, headers, _ = s.exchange("POST", maps, {"metadata": {"name": "eve-options"}, "data": {"registration": "open", "colour": "blue"}})
    assert status == 201 and len(warnings(headers)) == 2, warnings(headers)
    assert s.request("POST", maps, {"metadata": {"name": "other"}, "data": {"config.debug.enable.usb": "perhaps"}})[0] == 201


def test_options_of_all_devices_are_there_from_the_start(s):
    options = "/api/v1/namespaces/eve-system/configmaps/global-options"
    s.ok("GET", options)
    refused(s.request("PATCH", options, {"data": {"registration": "everybody"}}, MERGE), 422, "Invalid")
    s.ok("PATCH", options, {"data": {"registration": "closed", "registration.namespace": "default", "attestation": "report", "telemetry.retention": "30d"}}, MERGE)


# ---- what lets devices register

def test_certificates_say_how_they_are(s):
    ns = s.namespace()
    cases = (("OnboardCertificate", "onboardcertificates", certificate(), ("True", "Accepted")),
             ("OnboardCertificate", "onboardcertificates", certificate(begin=-5, end=-1), ("False", "Expired")),
             ("OnboardCertificate", "onboardcertificates", certificate(begin=1), ("False", "NotYetValid")),
             ("OnboardCertificateAuthority", "onboardcertificateauthorities", certificate(is_ca=True), ("True", "Accepted")),
             ("DeviceCertificateAuthority", "devicecertificateauthorities", certificate(is_ca=True), ("True", "Accepted")),
             ("DeviceCertificateAuthority", "devicecertificateauthorities", certificate(), ("False", "NotAnAuthority")))
    for i, (kind, plural, cert, expected) in enumerate(cases):
        s.ok("POST", path(ns, plural), thing(kind, f"c{i}", {"certificate": pem(cert)}))
        seen = wait_until(lambda: (o := s.ok("GET", path(ns, plural, f"c{i}"))).get("status", {}).get("conditions") and o, what="the status")
        valid = condition(seen, "Valid")
        assert (valid["status"], valid["reason"]) == expected, valid
        assert condition(seen, "Expired")["status"] == ("True" if expected[1] == "Expired" else "False")
        assert seen["status"]["fingerprint"] == fingerprint(cert)
        end = getattr(cert, "not_valid_after_utc", None) or cert.not_valid_after
        assert seen["status"]["notAfter"] == end.strftime("%Y-%m-%dT%H:%M:%SZ")
        assert seen["status"]["observedGeneration"] == 1 and seen["status"]["registered"] == 0
    # Another certificate in the same object.
    renewed = certificate()
    s.ok("PATCH", path(ns, "onboardcertificates", "c1"), {"spec": {"certificate": pem(renewed)}}, MERGE)
    wait_until(lambda: s.ok("GET", path(ns, "onboardcertificates", "c1"))["status"]["fingerprint"] == fingerprint(renewed), what="the new one")
    assert condition(s.ok("GET", path(ns, "onboardcertificates", "c1")), "Valid")["status"] == "True"


def test_devices_are_counted_where_they_came_from(s):
    ns = s.namespace()
    s.ok("POST", path(ns, "onboardcertificates"), thing("OnboardCertificate", "c", {"certificate": pem(certificate())}))
    by = {"annotations": {"eve.lfedge.org/onboarded-by": "OnboardCertificate/c"}}
    for i in range(3):
        assert device(s, ns, f"d{i}", **by)[0] == 201
    assert device(s, ns, "own")[0] == 201
    count = lambda n: wait_until(lambda: s.ok("GET", path(ns, "onboardcertificates", "c")).get("status", {}).get("registered") == n, what=f"{n} devices")
    count(3)
    s.ok("DELETE", path(ns, "devices", "d1"))
    count(2)


def as_user(user):
    return {"Impersonate-User": user, **MERGE}


def grant(s, user, role, *spaces):
    for ns in spaces:
        s.ok("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings", {
            "metadata": {"name": unique()}, "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "ClusterRole", "name": role, "apiGroup": "rbac.authorization.k8s.io"}})


def test_who_may_do_what(s):
    ns, user = s.namespace(), unique("user")
    for role in ("view", "edit", "admin"):
        grant(s, f"{role}-{user}", role, ns)
    can = lambda role, *words: s.kubectl("auth", "can-i", *words, "-n", ns, "--as", f"{role}-{user}", check=False).stdout.strip() == "yes"
    assert can("view", "get", "devices.eve.lfedge.org")
    for sub in ("log", "info", "metrics", "flowlog", "requests", "lastseen"):
        assert can("view", "get", "devices.eve.lfedge.org", f"--subresource={sub}"), sub
    assert can("view", "get", "deviceconfigs.eve.lfedge.org") and not can("view", "update", "deviceconfigs.eve.lfedge.org")
    assert can("edit", "delete", "deviceconfigs.eve.lfedge.org") and can("edit", "create", "devices.eve.lfedge.org")
    assert not can("edit", "create", "onboardcertificates.eve.lfedge.org") and can("admin", "create", "onboardcertificates.eve.lfedge.org")
    assert not can("edit", "update", "enrollmentrequests.eve.lfedge.org", "--subresource=status")
    assert can("admin", "update", "enrollmentrequests.eve.lfedge.org", "--subresource=status")
    assert not can("admin", "update", "devices.eve.lfedge.org", "--subresource=status")


def test_whoever_approves_could_have_made_the_device(s):
    ns, other, user = s.namespace(), s.namespace(), unique("user")
    cert = certificate()
    request = lambda name: path("eve-system", "enrollmentrequests", name, "status")
    name, twin = unique("r"), unique("r")
    made = s.ok("POST", path("eve-system", "enrollmentrequests"), thing("EnrollmentRequest", name, {"certificate": pem(cert), "serial": "1"}))
    assert made["status"]["fingerprint"] == fingerprint(cert)
    body = refused(s.request("POST", path("eve-system", "enrollmentrequests"), thing("EnrollmentRequest", twin, {"certificate": b64(pem(cert))})), 422, "Invalid")
    assert f"EnrollmentRequest eve-system/{name} has it already" in body["message"]
    refused(s.request("PATCH", path("eve-system", "enrollmentrequests", name), {"spec": {"serial": "2"}}, MERGE), 422, "Invalid")
    grant(s, user, "admin", "eve-system", ns)
    approval = lambda into: {"status": {"namespace": into, "conditions": [{"type": "Approved", "status": "True", "reason": "Known", "message": "ours"}]}}
    wait_until(lambda: s.request("PATCH", request(name), {"status": {"requests": 1}}, as_user(user))[0] == 200, what="the rights of the user")
    body = refused(s.request("PATCH", request(name), approval(other), as_user(user)), 403, "Forbidden")
    assert f'user not permitted to create devices in namespace "{other}"' in body["message"], body
    both = approval(ns)
    both["status"]["conditions"].append({"type": "Denied", "status": "True"})
    refused(s.request("PATCH", request(name), both, as_user(user)), 422, "Invalid")
    refused(s.request("PATCH", request(name), approval("Not A Name"), MERGE), 422, "Invalid")
    assert s.request("PATCH", request(name), approval(ns), as_user(user))[0] == 200
    # The Device is made, named by the certificate, and the request goes.
    device_name = "eve-" + fingerprint(cert)[:8]
    seen = wait_until(lambda: (a := s.request("GET", path(ns, "devices", device_name)))[0] == 200 and a[1], what="the Device")
    assert seen["metadata"]["annotations"] == {"eve.lfedge.org/activate": "true", "eve.lfedge.org/onboarded-by": f"EnrollmentRequest/{name}"}
    assert seen["spec"]["serial"] == "1"
    refused(s.request("PATCH", request(name), {"status": {"conditions": []}}, MERGE), 422, "Invalid")
    s.ok("DELETE", path(ns, "devices", device_name))
    wait_until(lambda: s.request("GET", path("eve-system", "enrollmentrequests", name))[0] == 404, what="the approval to go with its Device")
