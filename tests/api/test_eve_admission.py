# SPDX-License-Identifier: Apache-2.0
"""What the objects of eve.lfedge.org refer to must exist and fit; what is in use is not deleted."""
import concurrent.futures
import json
import random
import threading

from expect import APPLY, MERGE, refused
from expect import warnings as warning_headers
from seth import Server, unique, wait_until

OPTIONS = ("--threads", "4")
GROUP = "/apis/eve.lfedge.org/v1beta1"
NETWORKS = "k8s.v1.cni.cncf.io/networks"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
KINDS = {"Application": "applications", "ApplicationDeployment": "applicationdeployments", "ApplicationDaemonSet": "applicationdaemonsets",
         "ApplicationStatefulSet": "applicationstatefulsets", "Device": "devices", "DeviceNetwork": "devicenetworks", "Image": "images",
         "NetworkConfig": "networkconfigs"}


def path(ns, kind, name=None, options=""):
    core = {"Secret": "secrets", "ConfigMap": "configmaps", "PersistentVolumeClaim": "persistentvolumeclaims"}
    root = f"/api/v1/namespaces/{ns}/{core[kind]}" if kind in core else f"{GROUP}/namespaces/{ns}/{KINDS[kind]}"
    return root + (f"/{name}" if name else "") + options


def thing(kind, name, spec, **metadata):
    return {"apiVersion": "eve.lfedge.org/v1beta1", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def post(s, ns, kind, name, spec, **metadata):
    return s.request("POST", path(ns, kind), thing(kind, name, spec, **metadata))


def made(s, ns, kind, name, spec, **metadata):
    code, body = post(s, ns, kind, name, spec, **metadata)
    assert code == 201, body
    return body


def remove(s, ns, kind, name):
    return s.request("DELETE", path(ns, kind, name))


def patch(s, ns, kind, name, change):
    return s.request("PATCH", path(ns, kind, name), change, MERGE)


def image(s, ns, name, **spec):
    return made(s, ns, "Image", name, {"ref": "library/nginx:1", "storageClass": "eve-docker", **spec})


def secret(s, ns, name, **data):
    s.ok("POST", path(ns, "Secret"), {"metadata": {"name": name}, "stringData": data})


def storage_class(s, provisioner="eve", **parameters):
    name = unique("class")
    code, body = s.request("POST", CLASSES, {"metadata": {"name": name}, "provisioner": provisioner, "parameters": parameters})
    assert code == 201, body
    return name


def claim_spec(**spec):
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}


def claim(s, ns, name, **spec):
    return s.request("POST", path(ns, "PersistentVolumeClaim"), {"metadata": {"name": name}, "spec": claim_spec(**spec)})


def container(**fields):
    return {"name": "main", "image": "img", **fields}


def application(s, ns, name="app", annotations=None, **spec):
    return post(s, ns, "Application", name, {"containers": [container()], **spec}, **({"annotations": annotations} if annotations else {}))


def invalid(answer, *expected):
    """Refused with exactly these causes: (reason, field) and the message of the field."""
    body = refused(answer, 422, "Invalid")
    got = sorted((c["field"], c["message"]) for c in body["details"]["causes"])
    assert got == sorted(expected), got
    return body


def in_use(answer, message):
    body = refused(answer, 409, "Conflict")
    assert body["message"].endswith(": " + message), body["message"]
    assert body["details"]["causes"] == [{"reason": "InUse", "message": message, "field": "metadata.name"}], body
    return body


def warnings(headers):
    """The texts alone."""
    assert all(w.startswith("299 - ") for w in warning_headers(headers))
    return [json.loads(w.removeprefix("299 - ")) for w in warning_headers(headers)]


def gone(answer):
    assert answer[0] == 200, answer


# ---- references

def test_an_application_needs_its_image(s):
    ns = s.namespace()
    body = refused(application(s, ns), 422, "Invalid", 'Application.eve.lfedge.org "app" is invalid: spec.containers[0].image: Not found: "img"')
    assert body["details"]["causes"] == [{"reason": "FieldValueNotFound", "message": 'Not found: "img"', "field": "spec.containers[0].image"}]
    other = s.namespace()
    image(s, other, "img")  # a namespace is a tenant
    invalid(application(s, ns), ("spec.containers[0].image", 'Not found: "img"'))
    invalid(s.request("POST", path(ns, "Application") + "?dryRun=All", thing("Application", "app", {"containers": [container()]})),
            ("spec.containers[0].image", 'Not found: "img"'))
    image(s, ns, "img")
    assert application(s, ns)[0] == 201
    invalid(patch(s, ns, "Application", "app", {"spec": {"containers": [container(image="none")]}}), ("spec.containers[0].image", 'Not found: "none"'))
    in_use(remove(s, ns, "Image", "img"), f"Application {ns}/app uses it (spec.containers[0].image)")
    refused(s.request("DELETE", path(ns, "Image", "img") + "?dryRun=All"), 409, "Conflict")
    gone(remove(s, ns, "Application", "app"))
    gone(remove(s, ns, "Image", "img"))
    image(s, ns, "eve", type="eve-os")
    invalid(post(s, ns, "Application", "app", {"containers": [container(image="eve")]}),
            ("spec.containers[0].image", 'Invalid value: "eve": this Image is a version of EVE and no application (type: eve-os)'))


def test_a_reference_moves_with_an_update(s):
    ns = s.namespace()
    image(s, ns, "img"), image(s, ns, "next")
    assert application(s, ns)[0] == 201
    assert patch(s, ns, "Application", "app", {"spec": {"containers": [container(image="next")]}})[0] == 200
    gone(remove(s, ns, "Image", "img"))
    in_use(remove(s, ns, "Image", "next"), f"Application {ns}/app uses it (spec.containers[0].image)")
    # what status says changes nothing
    assert s.request("PATCH", path(ns, "Application", "app") + "/status", {"status": {"state": "RUNNING"}}, MERGE)[0] == 200
    refused(remove(s, ns, "Image", "next"), 409, "Conflict")


def test_networks_of_an_application(s):
    ns = s.namespace()
    image(s, ns, "img")
    made(s, ns, "NetworkConfig", "cfg", {})
    made(s, ns, "DeviceNetwork", "a", {"networkConfig": "cfg"})
    at = f"metadata.annotations[{NETWORKS}]"
    for text, missing in (("a,b", "b"), (" b , a", "b"), ("a@eth1,b@eth2", "b"), (f"{ns}/b", "b"), ('[{"name":"a"},{"name":"b","interface":"eth1"}]', "b")):
        invalid(application(s, ns, annotations={NETWORKS: text}), (at, f'Not found: "{missing}"'))
    for text, why in (("a,,b", "must be a list of names, divided by commas, or a JSON list of objects with a name"), ("[", "is no JSON list"),
                      ('[{"namespace":"x"}]', "every network of a JSON list needs a name")):
        invalid(application(s, ns, annotations={NETWORKS: text}), (at, f"Invalid value: {json.dumps(text)}: {why}"))
    invalid(application(s, ns, annotations={NETWORKS: "other/a"}),
            (at, 'Invalid value: "other": must be the namespace of the Application, which uses networks of its own'))
    invalid(application(s, ns, annotations={NETWORKS: ",".join("a" for _ in range(65))}),
            (at, f'Invalid value: "{",".join("a" for _ in range(65))}": names more than 64 networks'))
    for i, text in enumerate(("a", "a@eth0", f"{ns}/a", '[{"name":"a"}]', "")):
        assert application(s, ns, f"app{i}", annotations={NETWORKS: text})[0] == 201, text
    for i in range(3):
        gone(remove(s, ns, "Application", f"app{i}"))
    in_use(remove(s, ns, "DeviceNetwork", "a"), f"Application {ns}/app3 uses it ({at})")
    # an annotation is no part of spec: it must not be missed
    assert patch(s, ns, "Application", "app3", {"metadata": {"annotations": {NETWORKS: None}}})[0] == 200
    assert patch(s, ns, "Application", "app4", {"metadata": {"annotations": {NETWORKS: "a"}}})[0] == 200
    in_use(remove(s, ns, "DeviceNetwork", "a"), f"Application {ns}/app4 uses it ({at})")
    invalid(patch(s, ns, "Application", "app4", {"metadata": {"annotations": {NETWORKS: "none"}}}), (at, 'Not found: "none"'))


def test_secrets_and_configmaps_of_an_application(s):
    ns = s.namespace()
    image(s, ns, "img")
    env = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "se", "key": "a"}}}, {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "b"}}}]
    spec = {"containers": [container(env=env)], "userDataSecret": "cloud"}
    at = "spec.containers[0].env"
    invalid(post(s, ns, "Application", "app", spec), (f"{at}[0].valueFrom.secretKeyRef.name", 'Not found: "se"'),
            (f"{at}[1].valueFrom.configMapKeyRef.name", 'Not found: "cm"'), ("spec.userDataSecret", 'Not found: "cloud"'))
    secret(s, ns, "se", x="1"), secret(s, ns, "cloud", x="1")
    s.ok("POST", path(ns, "ConfigMap"), {"metadata": {"name": "cm"}, "data": {"x": "1"}})
    invalid(post(s, ns, "Application", "app", spec), (f"{at}[0].valueFrom.secretKeyRef.name", 'Invalid value: "se": has no key "a"'),
            (f"{at}[1].valueFrom.configMapKeyRef.name", 'Invalid value: "cm": has no key "b"'), ("spec.userDataSecret", 'Invalid value: "cloud": has no key "userData"'))
    patch(s, ns, "Secret", "se", {"stringData": {"a": "1"}}), patch(s, ns, "Secret", "cloud", {"stringData": {"userData": "#cloud-config"}})
    patch(s, ns, "ConfigMap", "cm", {"data": {"b": "1"}})
    assert post(s, ns, "Application", "app", spec)[0] == 201
    in_use(remove(s, ns, "Secret", "se"), f"Application {ns}/app uses it ({at}[0].valueFrom.secretKeyRef.name)")
    in_use(remove(s, ns, "Secret", "cloud"), f"Application {ns}/app uses it (spec.userDataSecret)")
    in_use(remove(s, ns, "ConfigMap", "cm"), f"Application {ns}/app uses it ({at}[1].valueFrom.configMapKeyRef.name)")


def test_claims_of_an_application(s):
    ns = s.namespace()
    image(s, ns, "img")
    volumes = [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}, {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    uses = {"volumeMounts": [{"name": "data", "mountPath": "/data"}], "volumeDevices": [{"name": "disk", "devicePath": "/dev/sdb"}]}
    at = [f"spec.volumes[{i}].persistentVolumeClaim.claimName" for i in range(2)]
    spec = {"containers": [container(**uses)], "volumes": volumes}
    invalid(post(s, ns, "Application", "app", spec), (at[0], 'Not found: "disk"'), (at[1], 'Not found: "data"'))
    assert claim(s, ns, "disk", storageClassName="eve-blank", volumeMode="Block")[0] == claim(s, ns, "data", storageClassName="eve-blank")[0] == 201
    assert post(s, ns, "Application", "app", spec)[0] == 201
    in_use(remove(s, ns, "PersistentVolumeClaim", "data"), f"Application {ns}/app uses it ({at[1]})")
    swapped = [{"name": "disk", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}]
    invalid(post(s, ns, "Application", "b", {"containers": [container(**uses)], "volumes": swapped}),
            (at[0], 'Invalid value: "data": this claim has volumeMode Filesystem: it belongs into volumeMounts'),
            (at[1], 'Invalid value: "disk": this claim has volumeMode Block: it belongs into volumeDevices'))
    foreign = storage_class(s, provisioner="example.org/disks")
    assert claim(s, ns, "foreign", storageClassName=foreign)[0] == 201
    invalid(post(s, ns, "Application", "b", {"containers": [container()], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "foreign"}}]}),
            (at[0], 'Invalid value: "foreign": the provisioner of this claim\'s StorageClass is not "eve"'))
    gone(remove(s, ns, "Application", "app"))
    gone(remove(s, ns, "PersistentVolumeClaim", "data"))


def test_volumes_and_their_use(s):
    ns = s.namespace()
    image(s, ns, "img")
    own = {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": claim_spec(storageClassName="eve-blank", volumeMode="Block")}}}

    def with_volumes(volumes, **uses):
        return post(s, ns, "Application", unique("app"), {"containers": [container(**uses)], "volumes": volumes})
    use = "spec.containers[0]"
    invalid(with_volumes([own], volumeMounts=[{"name": "mypd", "mountPath": "/a"}], volumeDevices=[{"name": "raw", "devicePath": "/dev/sdb"}]),
            (f"{use}.volumeMounts[0].name", 'Not found: "mypd"'), (f"{use}.volumeDevices[0].name", 'Not found: "raw"'))
    invalid(with_volumes([own], volumeMounts=[{"name": "own", "mountPath": "/a"}]),
            (f"{use}.volumeMounts[0].name", 'Invalid value: "own": this volume has volumeMode Block: it belongs into volumeDevices'))
    invalid(with_volumes([own], volumeMounts=[{"name": "own", "mountPath": "/a"}], volumeDevices=[{"name": "own", "devicePath": "/dev/sdb"}]),
            (f"{use}.volumeMounts[0].name", 'Invalid value: "own": this volume has volumeMode Block: it belongs into volumeDevices'),
            (f"{use}.volumeDevices[0].name", 'Invalid value: "own": must not already exist in volumeMounts'))
    invalid(with_volumes([own], volumeDevices=[{"name": "own", "devicePath": "sdb"}]), (f"{use}.volumeDevices[0].devicePath", 'Invalid value: "sdb": must be an absolute path'))
    invalid(with_volumes([own], volumeDevices=[{"name": "own", "devicePath": "/a/../b"}]), (f"{use}.volumeDevices[0].devicePath", "Invalid value: \"/a/../b\": must not contain '..'"))
    invalid(with_volumes([{"name": "v"}]), ("spec.volumes[0]", "Required value: must specify a volume type"))
    body = refused(with_volumes([{"name": "V_"}, {**own, "persistentVolumeClaim": {"claimName": ""}}]), 422, "Invalid")
    assert {c["field"] for c in body["details"]["causes"]} == {"spec.volumes[0]", "spec.volumes[0].name", "spec.volumes[1].ephemeral", "spec.volumes[1].persistentVolumeClaim.claimName"}
    at = "spec.volumes[0].ephemeral.volumeClaimTemplate.spec"
    invalid(with_volumes([{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]),
            (f"{at}.accessModes", "Required value: at least 1 access mode is required"), (f"{at}.resources.requests[storage]", "Required value"))
    source = {"group": "eve.lfedge.org/v1beta1", "kind": "image", "name": "golden"}
    broken = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": claim_spec(storageClassName="none", dataSourceRef=source)}}}
    invalid(with_volumes([broken]), (f"{at}.storageClassName", 'Not found: "none"'), (f"{at}.dataSourceRef.name", 'Not found: "golden"'))
    foreign = storage_class(s, provisioner="example.org/disks")
    invalid(with_volumes([{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": claim_spec(storageClassName=foreign)}}}]),
            (f"{at}.storageClassName", f'Invalid value: "{foreign}": the provisioner of this StorageClass is not "eve"'))
    assert with_volumes([own], volumeDevices=[{"name": "own", "devicePath": "/dev/sdb"}])[0] == 201
    many = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": "x"}} for i in range(129)]
    invalid(with_volumes(many), ("spec.volumes", "Too many: 129: must have at most 128 items"))


def test_claims_and_their_image(s):
    ns = s.namespace()

    def of(**source):
        return claim(s, ns, unique("c"), storageClassName="eve-blank", dataSourceRef={"name": "img", **source})
    for source in ({"apiGroup": "eve.lfedge.org", "kind": "Image"}, {"group": "eve.lfedge.org/v1beta1", "kind": "image"}):
        invalid(of(**source), ("spec.dataSourceRef.name", 'Not found: "img"'))
    image(s, ns, "img")
    names = []
    for source in ({"apiGroup": "eve.lfedge.org", "kind": "Image"}, {"group": "eve.lfedge.org/v1beta1", "kind": "image"}, {"group": "eve.lfedge.org", "kind": "Image"}):
        code, body = of(**source)
        assert code == 201, body
        assert body["spec"]["dataSourceRef"] == {"apiGroup": "eve.lfedge.org", "kind": "Image", "name": "img"}, body["spec"]
        names.append(body["metadata"]["name"])
    body = refused(remove(s, ns, "Image", "img"), 409, "Conflict")
    assert any(f"PersistentVolumeClaim {ns}/{n} uses it (spec.dataSourceRef.name)" in body["message"] for n in names), body["message"]
    invalid(claim(s, ns, "other", storageClassName="eve-blank", dataSourceRef={"kind": "PersistentVolumeClaim", "name": "x"}),
            ("spec.storageClassName", 'Invalid value: "eve-blank": volumes of this StorageClass are blank or made from an Image (dataSourceRef: apiGroup eve.lfedge.org, kind Image)'))
    foreign = storage_class(s, provisioner="example.org/disks")
    invalid(claim(s, ns, "other", storageClassName=foreign, dataSourceRef={"apiGroup": "eve.lfedge.org", "kind": "Image", "name": "img"}),
            ("spec.storageClassName", f'Invalid value: "{foreign}": the provisioner of this StorageClass is not "eve"'))
    # as ever in Kubernetes: a claim may name a class that is not there, and other classes go while claims name them
    assert claim(s, ns, "early", storageClassName="nowhere")[0] == claim(s, ns, "foreign", storageClassName=foreign)[0] == 201
    assert s.request("DELETE", f"{CLASSES}/{foreign}")[0] == 200
    mine = storage_class(s, type="blank")
    assert claim(s, ns, "mine", storageClassName=mine)[0] == 201
    in_use(s.request("DELETE", f"{CLASSES}/{mine}"), f"PersistentVolumeClaim {ns}/mine uses it (spec.storageClassName)")


def test_an_image_and_where_it_is_stored(s):
    ns = s.namespace()
    at = "spec.storageClass"

    def img(cls, name="img", **spec):
        return post(s, ns, "Image", name, {"ref": "library/nginx:1", "storageClass": cls, **spec})
    invalid(img("none"), (at, 'Not found: "none"'))
    foreign = storage_class(s, provisioner="example.org/disks")
    invalid(img(foreign), (at, f'Invalid value: "{foreign}": the provisioner of this StorageClass is not "eve"'))
    invalid(img("eve-blank"), (at, 'Invalid value: "eve-blank": this StorageClass makes blank volumes and stores no images'))
    registry, web = storage_class(s, type="container", URL="quay.io"), storage_class(s, type="https", URL="https://images.example.org:8443/x")
    for bad in ("/nginx", "a b", "https://quay.io/nginx", "nginx/"):
        invalid(img(registry, ref=bad), ("spec.ref", f'Invalid value: "{bad}": must be repository:tag or repository@digest, as the StorageClass is a registry'))
    invalid(img(web, ref="https://x/vm.qcow2"), ("spec.ref", 'Invalid value: "https://x/vm.qcow2": must be a path below the URL of the StorageClass'),
            ("spec.sha256", "Required value: devices verify what does not come from a registry"))
    invalid(img(web, ref="vm.qcow2", sha256="ab"), ("spec.sha256", refused(img(web, ref="vm.qcow2", sha256="ab"), 422, "Invalid")["details"]["causes"][0]["message"]))
    for size, why in (("0", "must be greater than zero"), ("-1Gi", "must be greater than zero")):
        invalid(img("eve-docker", size=size), ("spec.size", f'Invalid value: "{size}": {why}'))
    refused(img("eve-docker", size="much"), 422, "Invalid")
    assert img(web, ref="vm.qcow2", sha256="ab" * 32, size="2Gi")[0] == 201
    assert img(registry, "second", ref="corp1/ubuntu@sha256:" + "ab" * 32)[0] == 201
    invalid(patch(s, ns, "Image", "img", {"spec": {"sha256": None}}), ("spec.sha256", "Required value: devices verify what does not come from a registry"))
    in_use(s.request("DELETE", f"{CLASSES}/{web}"), f"Image {ns}/img uses it (spec.storageClass)")
    gone(remove(s, ns, "Image", "img"))
    assert s.request("DELETE", f"{CLASSES}/{web}")[0] == 200


def test_a_class_needs_its_secret_where_it_is_used(s):
    ns, other = s.namespace(), s.namespace()
    private = storage_class(s, type="container", URL="https://registry.example.org", credentialsSecret="creds")
    missing = ("spec.storageClass", f'Not found: "creds": StorageClass "{private}" needs this Secret in the namespace')
    spec = {"ref": "a/b:1", "storageClass": private}
    invalid(post(s, ns, "Image", "img", spec), missing)
    secret(s, other, "creds", password="x")
    invalid(post(s, ns, "Image", "img", spec), missing)
    secret(s, ns, "creds", token="x")
    invalid(post(s, ns, "Image", "img", spec), ("spec.storageClass", 'Invalid value: "creds": the Secret has neither the key "username" nor "password"'))
    gone(remove(s, ns, "Secret", "creds"))
    secret(s, ns, "creds", password="x")
    made(s, ns, "Image", "img", spec)
    in_use(remove(s, ns, "Secret", "creds"), f"Image {ns}/img uses it by StorageClass {private} (spec.storageClass)")
    gone(remove(s, other, "Secret", "creds"))  # nobody uses the class there
    gone(remove(s, ns, "Image", "img"))
    gone(remove(s, ns, "Secret", "creds"))


def test_storage_classes_of_eve(s):
    for name, parameters in (("eve-blank", {"type": "blank"}), ("eve-docker", {"type": "container", "URL": "https://index.docker.io"}),
                             ("eve-quay", {"type": "container", "URL": "https://quay.io"})):
        found = s.ok("GET", f"{CLASSES}/{name}")
        assert found["provisioner"] == "eve" and found["parameters"] == parameters, found

    def refuse(*expected, **parameters):
        invalid(s.request("POST", CLASSES, {"metadata": {"name": unique("c")}, "provisioner": "eve", "parameters": parameters}), *expected)
    refuse(("parameters.type", "Required value"))
    refuse(("parameters.type", 'Unsupported value: "tape": supported values: "azureblob", "blank", "container", "ftp", "gcs", "http", "https", "s3", "sftp"'), type="tape")
    for kind in ("azureblob", "container", "ftp", "http", "https", "sftp"):
        refuse(("parameters.URL", f"Required value: type {kind} needs it"), type=kind)
    for url in ("example.org", "https://", "https://a:99999", "gopher://a", "https://user:word@a", "https://[::1"):
        refuse(("parameters.URL", f'Invalid value: "{url}": must be a URL of the store without a user, (e.g. https://images.example.org)'), type="https", URL=url)
    for kind in ("s3", "gcs"):
        refuse(("parameters.path", f"Required value: type {kind} needs a bucket"), type=kind)
    body = refused(s.request("POST", CLASSES, {"metadata": {"name": unique("c")}, "provisioner": "eve", "parameters": {"type": "blank", "credentialsSecret": "A_B"}}), 422, "Invalid")
    assert [c["field"] for c in body["details"]["causes"]] == ["parameters.credentialsSecret"], body
    code, headers, _ = s.exchange("POST", CLASSES, {"metadata": {"name": unique("c")}, "provisioner": "eve", "parameters": {"type": "ftp", "URL": "ftp://a.org", "colour": "red"}})
    assert code == 201 and sorted(warnings(headers)) == ["parameters.type: EVE knows no FTP: devices fetch from this class by SFTP", 'unknown field "parameters.colour"'], warnings(headers)


def test_network_configs(s):
    ns = s.namespace()

    def refuse(spec, *expected):
        invalid(post(s, ns, "NetworkConfig", "n", spec), *expected)
    cidr, address = "must be a valid CIDR block, (e.g. 10.9.8.0/24)", "must be a valid IP address, (e.g. 10.9.8.7)"
    proxy = "must be the URL of a proxy: http, https, ftp or socks, a host and perhaps a port, (e.g. https://10.9.8.7:8888)"
    refuse({"ip": "static"}, ("spec.subnet", "Required value: static addresses need it"), ("spec.gateway", "Required value: static addresses need it"))
    refuse({"ip": "static", "subnet": "10.0.0.0/33", "gateway": "10.0.0.1"}, ("spec.subnet", f'Invalid value: "10.0.0.0/33": {cidr}'))
    refuse({"ip": "static", "subnet": "10.0.1.0/23", "gateway": "10.0.2.1"}, ("spec.gateway", 'Invalid value: "10.0.2.1": must be in the subnet'))
    refuse({"gateway": "10.0.0"}, ("spec.gateway", f'Invalid value: "10.0.0": {address}'))
    refuse({"dns": ["8.8.8.8", "dns.example.org"]}, ("spec.dns[1]", f'Invalid value: "dns.example.org": {address}'))
    refuse({"ip": "static", "subnet": "10.0.0.0/24", "gateway": "10.0.0.1", "dns": ["2001:db8::1"]}, ("spec.dns[0]", 'Invalid value: "2001:db8::1": must be an IPv4 address, as the others are'))
    refuse({"ntp": ["pool.ntp.org", "a b"]}, ("spec.ntp[1]", 'Invalid value: "a b": must be an IP address or a DNS name'))
    refuse({"domain": "-x"}, ("spec.domain", 'Invalid value: "-x": must be a DNS name'))
    for bad in ("10.0.0.1:8888", "gopher://a:1", "https://a:0", "https://a:1/path", "https://:8080"):
        refuse({"proxies": [bad]}, ("spec.proxies[0]", f'Invalid value: "{bad}": {proxy}'))
    body = refused(post(s, ns, "NetworkConfig", "n", {"proxyCertificates": ["nonsense"]}), 422, "Invalid")
    assert body["details"]["causes"][0]["field"] == "spec.proxyCertificates[0]" and "must be a certificate" in body["message"], body
    for mtu in (1279, 65536):
        assert refused(post(s, ns, "NetworkConfig", "n", {"mtu": mtu}), 422, "Invalid")["details"]["causes"][0]["field"] == "spec.mtu"
    refuse({"wifi": {"ssid": "a"}, "cellular": {"apn": "b"}}, ("spec.cellular", "Forbidden: may not be specified together with wifi: a port is one or the other"))
    refuse({"wifi": {"ssid": "a", "scheme": "wpa-eap"}}, ("spec.wifi.credentialsSecret", "Required value: wpa-eap needs a user and a password"))
    refuse({"wifi": {"ssid": "a", "credentialsSecret": "air"}}, ("spec.wifi.credentialsSecret", 'Not found: "air"'))
    refuse({"cellular": {"apn": "a", "credentialsSecret": "sim"}}, ("spec.cellular.credentialsSecret", 'Not found: "sim"'))
    secret(s, ns, "air", password="x"), secret(s, ns, "sim", pin="1")
    refuse({"cellular": {"apn": "a", "credentialsSecret": "sim"}}, ("spec.cellular.credentialsSecret", 'Invalid value: "sim": the Secret has neither the key "username" nor "password"'))
    made(s, ns, "NetworkConfig", "wifi", {"wifi": {"ssid": "a", "credentialsSecret": "air"}})
    in_use(remove(s, ns, "Secret", "air"), f"NetworkConfig {ns}/wifi uses it (spec.wifi.credentialsSecret)")
    made(s, ns, "NetworkConfig", "all", {"ip": "static", "subnet": "10.0.1.0/23", "gateway": "10.0.0.1", "dns": ["10.0.0.2"], "ntp": ["pool.ntp.org", "10.0.0.3"], "mtu": 1280,
                                         "domain": "lab.example.org", "proxies": ["https://10.100.100.1:8888", "http://proxy.example.org", "socks://[2001:db8::1]:1080/"]})
    made(s, ns, "NetworkConfig", "six", {"ip": "static", "subnet": "2001:db8::/64", "gateway": "2001:db8::1", "dns": ["2001:db8::2"]})


def test_device_networks(s):
    ns = s.namespace()

    def refuse(spec, *expected):
        invalid(post(s, ns, "DeviceNetwork", "n", {"networkConfig": "cfg", **spec}), *expected)
    refused(post(s, ns, "DeviceNetwork", "n", {"networkConfig": "cfg"}), 422, "Invalid",
            'DeviceNetwork.eve.lfedge.org "n" is invalid: spec.networkConfig: Not found: "cfg"')
    made(s, ns, "NetworkConfig", "cfg", {})
    refuse({"subnet": "10.0.0.0/99"}, ("spec.subnet", 'Invalid value: "10.0.0.0/99": must be a valid CIDR block, (e.g. 10.9.8.0/24)'))
    refuse({"subnet": "10.0.0.0/31"}, ("spec.subnet", 'Invalid value: "10.0.0.0/31": must have at least 4 addresses'))
    refuse({"subnet": "2001:db8::/64"}, ("spec.subnet", 'Invalid value: "2001:db8::/64": must be an IPv4 network'))
    refuse({"subnet": "10.0.0.0/24", "type": "switch"}, ("spec.subnet", "Forbidden: a switch has no addresses of its own: applications are on the network of the port"))
    assert refused(post(s, ns, "DeviceNetwork", "n", {"networkConfig": "cfg", "type": "ring"}), 422, "Invalid")["details"]["causes"][0]["field"] == "spec.type"
    made(s, ns, "NetworkConfig", "silent", {"ip": "none"})
    refuse({"networkConfig": "silent"}, ("spec.networkConfig", 'Invalid value: "silent": this NetworkConfig has no addresses (ip: none), which needs management: false here'))
    made(s, ns, "DeviceNetwork", "silent", {"networkConfig": "silent", "management": False})
    refused(patch(s, ns, "DeviceNetwork", "silent", {"spec": {"management": True}}), 422, "Invalid")
    assert refused(patch(s, ns, "DeviceNetwork", "silent", {"spec": {"type": "switch"}}), 422, "Invalid")["details"]["causes"][0]["field"] == "spec.type"
    assert patch(s, ns, "DeviceNetwork", "silent", {"spec": {"type": "local", "ports": ["eth1"]}})[0] == 200
    terms = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"

    def match(**term):
        return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}}
    at = f"{terms}[0].matchExpressions[0]"
    refuse(match(matchExpressions=[{"key": "a", "operator": "In"}]), (f"{at}.values", "Required value: must be specified when `operator` is 'In' or 'NotIn'"))
    refuse(match(matchExpressions=[{"key": "a", "operator": "Exists", "values": ["x"]}]), (f"{at}.values", "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    refuse(match(matchExpressions=[{"key": "a", "operator": "Gt", "values": ["1", "2"]}]), (f"{at}.values", "Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"))
    refuse(match(matchExpressions=[{"key": "a", "operator": "Gt", "values": ["x"]}]), (f"{at}.values", "Invalid value: \"x\": must be an integer when `operator` is 'Lt' or 'Gt'"))
    refuse(match(matchFields=[{"key": "spec.x", "operator": "In", "values": ["x"]}]), (f"{terms}[0].matchFields[0].key", 'Invalid value: "spec.x": not a valid field selector key'))
    refuse({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}}, (terms, "Required value: must have at least one node selector term"))
    assert refused(post(s, ns, "DeviceNetwork", "n", {"networkConfig": "cfg", "nodeSelector": {"a b": "c"}}), 422, "Invalid")["details"]["causes"][0]["field"] == "spec.nodeSelector"
    made(s, ns, "DeviceNetwork", "n", {"networkConfig": "cfg", "subnet": "10.0.0.0/30", **match(matchExpressions=[{"key": "name", "operator": "In", "values": ["a"]}])})
    in_use(remove(s, ns, "NetworkConfig", "cfg"), f"DeviceNetwork {ns}/n uses it (spec.networkConfig)")
    # the networks of a Device's ports
    at = "metadata.annotations[eve.lfedge.org/network-eth0]"
    invalid(post(s, ns, "Device", "d", {"serial": "1"}, annotations={"eve.lfedge.org/network-eth0": "none"}), (at, 'Not found: "none"'))
    made(s, ns, "Device", "d", {"serial": "1"}, annotations={"eve.lfedge.org/network-eth0": "n"})
    in_use(remove(s, ns, "DeviceNetwork", "n"), f"Device {ns}/d uses it ({at})")


def test_containers(s):
    ns = s.namespace()
    image(s, ns, "img")

    def refuse(containers, *expected, **spec):
        invalid(post(s, ns, "Application", "app", {"containers": containers, **spec}), *expected)
    at = "spec.containers[0]"
    refuse([container(resources={"requests": {"memory": "0", "cpu": "-1", "storage": "2Gi"}, "limits": {"storage": "1Gi", "gpu": 1}})],
           (f"{at}.resources.requests[memory]", 'Invalid value: "0": must be greater than zero'), (f"{at}.resources.requests[cpu]", 'Invalid value: "-1": must be greater than zero'),
           (f"{at}.resources.requests[storage]", 'Invalid value: "2Gi": must be less than or equal to storage limit of 1Gi'),
           (f"{at}.resources.limits", 'Unsupported value: "gpu": supported values: "cpu", "memory", "storage"'))
    assert refused(post(s, ns, "Application", "app", {"containers": [container(resources={"requests": {"memory": "1Zi"}})]}), 422, "Invalid")
    refuse([container(ports=[{"containerPort": 80, "hostPort": 8080}]), {**container(ports=[{"containerPort": 8080}, {"containerPort": 8080, "protocol": "UDP"}]), "name": "b"}],
           ("spec.containers[1].ports[0].containerPort", "Duplicate value: 8080"))
    for port in (0, 65536):
        assert refused(post(s, ns, "Application", "app", {"containers": [container(ports=[{"containerPort": port}])]}), 422, "Invalid")["details"]["causes"][0]["field"] == f"{at}.ports[0].containerPort"
    assert refused(post(s, ns, "Application", "app", {"containers": [container(), container()]}), 422, "Invalid")["details"]["causes"][0]["reason"] == "FieldValueDuplicate"
    assert refused(post(s, ns, "Application", "app", {"containers": [{**container(), "name": "A_b"}]}), 422, "Invalid")["details"]["causes"][0]["field"] == f"{at}.name"
    body = refused(post(s, ns, "Application", "app", {"containers": [container(env=[{"name": "1A"}])]}), 422, "Invalid")
    assert "a valid environment variable name must consist of" in body["message"] and body["details"]["causes"][0]["field"] == f"{at}.env[0].name"
    both = {"secretKeyRef": {"name": "a", "key": "a"}, "configMapKeyRef": {"name": "a", "key": "a"}}
    refuse([container(env=[{"name": "A", "value": "x", "valueFrom": both}, {"name": "B", "valueFrom": {}}, {"name": "C", "valueFrom": both}])],
           (f"{at}.env[0].valueFrom", 'Invalid value: "": may not be specified when `value` is not empty'),
           (f"{at}.env[1].valueFrom", 'Invalid value: "": must specify one of: `secretKeyRef`, `configMapKeyRef`'),
           (f"{at}.env[2].valueFrom", 'Invalid value: "": may not have more than one field specified at a time'))
    refuse([container()], ("spec.userDataSecret", "Forbidden: may not be specified together with userData"), userData="#cloud-config", userDataSecret="x")
    refuse([{**container(), "name": f"c{i}"} for i in range(33)], ("spec.containers", "Too many: 33: must have at most 32 items"))
    assert application(s, ns, containers=[container(resources={"requests": {"cpu": 1, "memory": "256M", "storage": "8G", "example.org/gpu": 1}, "limits": {"memory": "1Gi"}},
                                                    env=[{"name": "A.b-c", "value": "1"}], ports=[{"containerPort": 80}])])[0] == 201


def test_templates_are_checked_as_applications(s):
    ns = s.namespace()
    labels = {"app": "web"}

    def workload(kind, name, template, selector=None, **spec):
        return post(s, ns, kind, name, {"selector": selector or {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [container()]}, **template}, **spec})
    for kind in ("ApplicationDeployment", "ApplicationDaemonSet", "ApplicationStatefulSet"):
        invalid(workload(kind, "w", {}), ("spec.template.spec.containers[0].image", 'Not found: "img"'))
        invalid(workload(kind, "w", {"metadata": {"labels": labels, "annotations": {NETWORKS: "none"}}, "spec": {"containers": [container(image="img")], "userDataSecret": "x"}}),
                ("spec.template.spec.containers[0].image", 'Not found: "img"'), ("spec.template.spec.userDataSecret", 'Not found: "x"'),
                (f"spec.template.metadata.annotations[{NETWORKS}]", 'Not found: "none"'))
    image(s, ns, "img")
    for kind in ("ApplicationDeployment", "ApplicationDaemonSet", "ApplicationStatefulSet"):
        invalid(workload(kind, "w", {"spec": {"containers": [container(volumeMounts=[{"name": "x", "mountPath": "/x"}])]}}),
                ("spec.template.spec.containers[0].volumeMounts[0].name", 'Not found: "x"'))
        invalid(workload(kind, "w", {"metadata": {"labels": {"app": "other"}}}), ("spec.template.metadata.labels", 'Invalid value: {"app":"other"}: `selector` does not match template `labels`'))
        invalid(workload(kind, "w", {"metadata": {}}), ("spec.template.metadata.labels", "Invalid value: {}: `selector` does not match template `labels`"))
        none = {} if kind == "ApplicationDaemonSet" else {"replicas": 0}  # or its Applications would use the Image, too
        assert workload(kind, "w", {}, **none)[0] == 201
        invalid(patch(s, ns, kind, "w", {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}}}),
                ("spec.selector", 'Invalid value: {"matchLabels":{"a":"b","app":"web"}}: field is immutable'))
    body = refused(remove(s, ns, "Image", "img"), 409, "Conflict")
    assert "/w uses it (spec.template.spec.containers[0].image)" in body["message"], body
    # claims that each of a StatefulSet has are volumes, too
    use = {"spec": {"containers": [container(volumeMounts=[{"name": "data", "mountPath": "/x"}])]}}
    templates = [{"metadata": {"name": "data"}, "spec": claim_spec(storageClassName="eve-blank")}]
    assert workload("ApplicationStatefulSet", "claims", use, volumeClaimTemplates=templates)[0] == 201
    templates[0]["spec"]["storageClassName"] = "none"
    invalid(workload("ApplicationStatefulSet", "x", use, volumeClaimTemplates=templates), ("spec.volumeClaimTemplates[0].spec.storageClassName", 'Not found: "none"'))
    refused(patch(s, ns, "ApplicationStatefulSet", "claims", {"spec": {"volumeClaimTemplates": []}}), 422, "Invalid")


def test_a_claim_holds_its_image_to_what_it_was_made_from(s):
    ns = s.namespace()
    image(s, ns, "golden")
    change = {"spec": {"ref": "library/nginx:2"}}
    s.ok("PATCH", path(ns, "Image", "golden"), change, MERGE)
    source = {"apiGroup": "eve.lfedge.org", "kind": "Image", "name": "golden"}
    code, body = claim(s, ns, "data", storageClassName="eve-docker", dataSourceRef=source)
    assert code == 201, body
    change = {"spec": {"ref": "library/nginx:3"}}
    why = f"Forbidden: PersistentVolumeClaim {ns}/data was made from it and holds data: make another Image"
    invalid(patch(s, ns, "Image", "golden", change), ("spec.ref", why))
    invalid(patch(s, ns, "Image", "golden", {"spec": {"format": "container", "sha256": "0" * 64}}), ("spec.sha256", why), ("spec.format", why))
    s.ok("PATCH", path(ns, "Image", "golden"), {"spec": {"size": "1Gi"}, "metadata": {"labels": {"a": "b"}}}, MERGE)
    s.ok("DELETE", path(ns, "PersistentVolumeClaim", "data"))
    wait_until(lambda: s.request("GET", path(ns, "PersistentVolumeClaim", "data"))[0] == 404)
    s.ok("PATCH", path(ns, "Image", "golden"), change, MERGE)


def test_versions_of_eve_are_wished_for(s):
    ns = s.namespace()
    text = 'spec.eve-os-version: no Image of type eve-os in this namespace has the tag "%s": the device stays as it is until there is one'

    def put(method, name, version, query="", **status):
        body = thing("Device", name, {"eve-os-version": version})
        where = path(ns, "Device", None if method == "POST" else name)
        code, headers, _ = s.exchange(method, where + query, body, MERGE if method == "PATCH" else None)
        assert code in (200, 201), (code, _)
        return warnings(headers)
    assert put("POST", "a", "14.5.0-kvm-amd64") == [text % "14.5.0-kvm-amd64"]
    image(s, ns, "plain", ref="lfedge/eve:14.6.0-kvm-amd64")  # not of the type
    assert put("PATCH", "a", "14.6.0-kvm-amd64") == [text % "14.6.0-kvm-amd64"]
    assert put("PATCH", "a", "14.6.0-kvm-amd64") == []  # unchanged
    image(s, ns, "os", ref="lfedge/eve:14.6.0-kvm-amd64@sha256:" + "0" * 64, type="eve-os")
    assert put("POST", "b", "14.6.0-kvm-amd64") == []
    gone(remove(s, ns, "Image", "os"))  # a wish keeps nothing
    assert put("POST", "c", "14.6.0-kvm-amd64") == [text % "14.6.0-kvm-amd64"]
    assert s.request("PATCH", path(ns, "Device", "c") + "/status", {"status": {"eve-os-version": "15.0.0"}}, MERGE)[0] == 200
    assert put("PATCH", "c", "15.0.0") == []  # it runs already
    code, headers, _ = s.exchange("POST", path(ns, "Image"), thing("Image", "untagged", {"ref": "lfedge/eve", "storageClass": "eve-docker", "type": "eve-os"}))
    assert code == 201 and warnings(headers) == ["spec.ref: has no tag: no Device can name this version of EVE"]


# ---- what goes all the same

def test_a_namespace_goes_with_all_that_is_in_it(s):
    ns = s.namespace()
    image(s, ns, "img")
    made(s, ns, "NetworkConfig", "cfg", {})
    made(s, ns, "DeviceNetwork", "net", {"networkConfig": "cfg"})
    assert claim(s, ns, "data", storageClassName="eve-blank")[0] == 201
    assert application(s, ns, annotations={NETWORKS: "net"}, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])[0] == 201
    s.ok("DELETE", f"/api/v1/namespaces/{ns}")
    wait_until(lambda: s.request("GET", f"/api/v1/namespaces/{ns}")[0] == 404, what="the namespace to go")


def test_what_loses_its_owner_goes_when_nothing_uses_it(s):
    ns = s.namespace()
    owner = s.ok("POST", path(ns, "ConfigMap"), {"metadata": {"name": "owner"}})
    owned = {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]}
    made(s, ns, "Image", "img", {"ref": "a:1", "storageClass": "eve-docker"}, **owned)
    made(s, ns, "Image", "kept", {"ref": "a:1", "storageClass": "eve-docker"}, **owned)
    made(s, ns, "Application", "app", {"containers": [container()]}, **owned)
    made(s, ns, "Application", "other", {"containers": [container(image="kept")]})
    gone(remove(s, ns, "ConfigMap", "owner"))
    for kind, name in (("Application", "app"), ("Image", "img")):
        wait_until(lambda: s.request("GET", path(ns, kind, name))[0] == 404, what=f"{name} to go")
    assert s.request("GET", path(ns, "Image", "kept"))[0] == 200  # used by one that stays
    gone(remove(s, ns, "Application", "other"))
    wait_until(lambda: s.request("GET", path(ns, "Image", "kept"))[0] == 404, what="the last to go")


def test_users_that_are_going_keep_nothing(s):
    ns = s.namespace()
    image(s, ns, "img")
    made(s, ns, "Application", "app", {"containers": [container()]}, finalizers=["example.org/wait"])
    refused(remove(s, ns, "Image", "img"), 409, "Conflict")
    gone(remove(s, ns, "Application", "app"))
    gone(remove(s, ns, "Image", "img"))
    # and one whose image has gone can still be written
    assert patch(s, ns, "Application", "app", {"metadata": {"finalizers": None}})[0] == 200


def test_what_is_going_is_not_taken_into_use(s):
    ns = s.namespace()
    made(s, ns, "Image", "img", {"ref": "a:1", "storageClass": "eve-docker"}, finalizers=["example.org/wait"])
    gone(remove(s, ns, "Image", "img"))
    invalid(application(s, ns), ("spec.containers[0].image", 'Invalid value: "img": this Image is being deleted'))
    patch(s, ns, "Image", "img", {"metadata": {"finalizers": None}})
    invalid(application(s, ns), ("spec.containers[0].image", 'Not found: "img"'))


def test_a_sweep_ends_at_what_is_in_use(s):
    ns = s.namespace()
    image(s, ns, "img")
    assert application(s, ns)[0] == 201
    in_use(s.request("DELETE", path(ns, "Image")), f"Application {ns}/app uses it (spec.containers[0].image)")
    gone(s.request("DELETE", path(ns, "Application")))
    gone(s.request("DELETE", path(ns, "Image")))
    assert s.ok("GET", path(ns, "Image"))["items"] == []


# ---- races and restarts

def at_the_same_moment(s, n_rounds, function):
    """Calls function(round, i) of 8 threads at once, each with its connection open; returns the answers of each round."""
    begin = threading.Barrier(8)

    def run(i):
        answers = []
        for r in range(n_rounds):
            s.request("GET", "/version")
            begin.wait(60)
            answers.append(function(r, i))
        return answers
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(zip(*pool.map(run, range(8))))


def test_nothing_dangles_after_a_race(s):
    """Nobody deletes the image under an application that was accepted: of the two one is refused."""
    ns = s.namespace()
    for r in range(60):
        image(s, ns, f"img{r}")

    def act(r, i):
        if i == r % 8:
            return remove(s, ns, "Image", f"img{r}")[0]
        return post(s, ns, "Application", f"app{r}-{i}", {"containers": [container(image=f"img{r}")]})[0]
    rounds = at_the_same_moment(s, 60, act)
    assert {c for codes in rounds for c in codes} <= {200, 409, 201, 422}, rounds  # either may win
    images = {o["metadata"]["name"] for o in s.ok("GET", path(ns, "Image"))["items"]}
    for a in s.ok("GET", path(ns, "Application"))["items"]:
        assert a["spec"]["containers"][0]["image"] in images, a["metadata"]["name"]


def test_many_rounds_of_making_and_deleting_side_by_side(s):
    ns = s.namespace()
    pairs = [(kind, unique("r")) for kind in ("Image", "NetworkConfig", "Secret") for _ in range(4)]
    specs = {"Image": {"ref": "a:1", "storageClass": "eve-docker"}, "NetworkConfig": {}}

    def target(kind, name):
        body = {"metadata": {"name": name}, "stringData": {"password": "x"}} if kind == "Secret" else thing(kind, name, specs[kind])
        return s.request("POST", path(ns, kind), body)[0]

    def user(kind, name, i):
        if kind == "Image":
            return post(s, ns, "Application", f"{name}-{i}", {"containers": [container(image=name)]})
        if kind == "NetworkConfig":
            return post(s, ns, "DeviceNetwork", f"{name}-{i}", {"networkConfig": name})
        return post(s, ns, "NetworkConfig", f"{name}-{i}", {"wifi": {"ssid": "a", "credentialsSecret": name}})

    def act(job):
        i, (kind, name) = job
        choice = random.Random(i).random()
        if choice < 0.3:
            return target(kind, name)
        if choice < 0.6:
            return remove(s, ns, kind, name)[0]
        return user(kind, name, i)[0]
    jobs = [(i, pairs[i % len(pairs)]) for i in range(600)]
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        codes = set(pool.map(act, jobs))
    assert {201, 200, 409, 422} <= codes <= {201, 200, 409, 404, 422}, codes

    def of(kind):
        return {o["metadata"]["name"]: o for o in s.ok("GET", path(ns, kind))["items"]}
    images, configs, secrets = of("Image"), of("NetworkConfig"), of("Secret")
    apps, networks = of("Application"), of("DeviceNetwork")
    assert apps and networks
    assert all(a["spec"]["containers"][0]["image"] in images for a in apps.values())
    assert all(n["spec"]["networkConfig"] in configs for n in networks.values())
    assert all(c["spec"].get("wifi", {}).get("credentialsSecret") in {None, *secrets} for c in configs.values())


def test_the_secret_of_a_class_in_a_race(s):
    ns = s.namespace()
    classes = []
    for r in range(60):
        secret(s, ns, f"creds{r}", password="x")
        classes.append(storage_class(s, type="container", URL="https://registry.example.org", credentialsSecret=f"creds{r}"))

    def act(r, i):
        if i == r % 8:
            return remove(s, ns, "Secret", f"creds{r}")[0]
        return post(s, ns, "Image", f"img{r}-{i}", {"ref": "a:1", "storageClass": classes[r]})[0]
    at_the_same_moment(s, 60, act)
    secrets = {o["metadata"]["name"] for o in s.ok("GET", path(ns, "Secret"))["items"]}
    for o in s.ok("GET", path(ns, "Image"))["items"]:
        assert f"creds{classes.index(o['spec']['storageClass'])}" in secrets, o["metadata"]["name"]


def test_references_outlive_a_restart():
    with Server(*OPTIONS) as s:
        ns = s.namespace()
        image(s, ns, "img"), image(s, ns, "os", ref="lfedge/eve:15.0.0", type="eve-os")
        secret(s, ns, "creds", password="x")
        private = storage_class(s, type="container", URL="https://registry.example.org", credentialsSecret="creds")
        made(s, ns, "Image", "private", {"ref": "a:1", "storageClass": private})
        assert application(s, ns)[0] == 201
        s.kill()
        s.start()
        in_use(remove(s, ns, "Image", "img"), f"Application {ns}/app uses it (spec.containers[0].image)")
        in_use(remove(s, ns, "Secret", "creds"), f"Image {ns}/private uses it by StorageClass {private} (spec.storageClass)")
        code, headers, _ = s.exchange("POST", path(ns, "Device"), thing("Device", "d", {"eve-os-version": "15.0.0"}))
        assert code == 201 and not warnings(headers)
        gone(remove(s, ns, "Application", "app"))
        gone(remove(s, ns, "Image", "img"))


# ---- as people see it

MANIFESTS = """
apiVersion: eve.lfedge.org/v1beta1
kind: Image
metadata: {name: golden-ubuntu-2004}
spec: {ref: "corp1/ubuntu:20.04", storageClass: eve-quay, type: user}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: ubuntuclaim}
spec:
  accessModes: [ReadWriteOnce]
  volumeMode: Block
  resources: {requests: {storage: 8Gi}}
  storageClassName: eve-quay
  dataSourceRef: {group: eve.lfedge.org/v1beta1, kind: image, name: golden-ubuntu-2004}
---
apiVersion: eve.lfedge.org/v1beta1
kind: Application
metadata: {name: app-ubuntu}
spec:
  containers:
  - name: frontend
    image: golden-ubuntu-2004
    resources: {requests: {cpu: 1, memory: 256M, storage: 8G}}
    volumeDevices: [{devicePath: /dev/sda2, name: ubuntu}]
  volumes: [{name: ubuntu, persistentVolumeClaim: {claimName: ubuntuclaim}}]
"""


def test_kubectl_shows_why(s):
    for version in ("old", "new"):
        ns = s.namespace()
        s.kubectl("apply", "-n", ns, "-f", "-", input=MANIFESTS, version=version)
        before = s.ok("GET", path(ns, "PersistentVolumeClaim", "ubuntuclaim"))["metadata"]["resourceVersion"]
        assert s.kubectl("apply", "-n", ns, "-f", "-", input=MANIFESTS, version=version).count("unchanged") >= 2
        assert s.ok("GET", path(ns, "PersistentVolumeClaim", "ubuntuclaim"))["metadata"]["resourceVersion"] == before
        shown = s.kubectl("delete", "-n", ns, "image", "golden-ubuntu-2004", check=False, version=version).stderr
        assert "Error from server (Conflict)" in shown and 'images.eve.lfedge.org "golden-ubuntu-2004"' in shown and " uses it (" in shown, shown
        other = s.namespace()
        shown = s.kubectl("apply", "-n", other, "-f", "-", input=MANIFESTS.split("---")[2], check=False, version=version).stderr
        assert 'spec.containers[0].image: Not found: "golden-ubuntu-2004"' in shown and 'claimName: Not found: "ubuntuclaim"' in shown, shown
        s.kubectl("delete", "-n", ns, "eapp", "app-ubuntu", version=version)
        s.kubectl("delete", "-n", ns, "pvc", "ubuntuclaim", version=version)
        s.kubectl("delete", "-n", ns, "image", "golden-ubuntu-2004", version=version)


def test_server_side_apply_is_asked_too(s):
    ns = s.namespace()
    where = path(ns, "DeviceNetwork", "n") + "?fieldManager=m"
    body = json.dumps(thing("DeviceNetwork", "n", {"networkConfig": "cfg"}))
    invalid(s.request("PATCH", where, body, APPLY), ("spec.networkConfig", 'Not found: "cfg"'))
    made(s, ns, "NetworkConfig", "cfg", {})
    assert s.request("PATCH", where, body, APPLY)[0] == 201
