# SPDX-License-Identifier: Apache-2.0
"""Secrets on their way to a device: only encrypted, only for it, the same bytes as long as nothing changed."""
import base64
import subprocess

import wire
from fleet import Site, shared_site as site
from seth import Server, binary, unique, wait_until

API = "eve.lfedge.org/v1beta1"
MERGE = {"Content-Type": "application/merge-patch+json"}
PASSWORD = "correct-horse-battery-staple"


def registry(s, where):
    """A StorageClass whose credentials are in a Secret; returns the name of both."""
    name = unique("store")
    s.ok("POST", f"/api/v1/namespaces/{where.ns}/secrets", {"metadata": {"name": name}, "stringData": {"username": "robot", "password": PASSWORD}})
    s.ok("POST", "/apis/storage.k8s.io/v1/storageclasses", {
        "metadata": {"name": name}, "provisioner": "eve",
        "parameters": {"type": "container", "URL": "https://quay.example", "credentialsSecret": name}})
    return name


def application(s, where, d, store):
    name = unique("app")
    s.ok("POST", where.path("images"), {"apiVersion": API, "kind": "Image", "metadata": {"name": name}, "spec": {"ref": "corp/app:1", "storageClass": store}})
    s.ok("POST", where.path("applications"), {
        "apiVersion": API, "kind": "Application", "metadata": {"name": name},
        "spec": {"nodeSelector": {"name": where.name(d)}, "userData": "#cloud-config\npassword: " + PASSWORD, "containers": [{"name": "main", "image": name}]}})
    return name


def told(d, holds):
    """What the device is told, once it is as it should be."""
    def look():
        answer, response = d.config()
        assert answer.status in (200, 304, 429), answer  # which it is when it asks too often
        if answer.status == 200:
            assert PASSWORD.encode() not in wire.encode("config.EdgeDevConfig", response["config"]), "in the clear"
            d.told = response["config"]
        return holds(d.told)

    wait_until(look, what="the configuration")
    return d.told


def has_app(name):
    return lambda c: any(a["displayname"] == name for a in c.get("apps", []))


def datastore(config):
    return next(x for x in config["datastores"] if "quay.example" in x["fqdn"])


def opened(d, config, block):
    return wire.decode("common.EncryptionBlock", d.decrypt(config, block))


def composed(s, where, name):
    o = s.ok("GET", where.path("applications", name))
    return next((c for c in o["status"].get("conditions", []) if c["type"] == "Composed"), {"status": None})


def test_it_waits_for_the_certificate_and_is_then_sealed_for_it(s):
    d, store = site(s).onboarded(), registry(s, site(s))
    name = application(s, site(s), d, store)
    wait_until(lambda: composed(s, site(s), name)["status"] == "False", what="Composed=False")
    assert "certificate" in composed(s, site(s), name)["message"]
    told(d, lambda c: not c.get("apps"))
    d.attest_certs()
    config = told(d, has_app(name))
    credentials = opened(d, config, datastore(config)["cipherData"])
    assert (credentials["dsAPIKey"], credentials["dsPassword"]) == ("robot", PASSWORD)
    app = next(a for a in config["apps"] if a["displayname"] == name)
    assert base64.b64decode(opened(d, config, app["cipherData"])["protectedUserData"]).decode().endswith(PASSWORD)
    wait_until(lambda: composed(s, site(s), name)["status"] == "True", what="Composed=True")


def test_the_bytes_stay_until_something_changes():
    with Server() as s:
        where = Site(s)
        d, other = where.onboarded(), where.onboarded()
        store = registry(s, where)
        for one in (d, other):
            one.attest_certs()
        name, elsewhere = application(s, where, d, store), application(s, where, other, store)
        first = told(d, has_app(name))
        block = datastore(first)["cipherData"]
        # Another device has other bytes.
        assert datastore(told(other, has_app(elsewhere)))["cipherData"] != block
        # A change of something else, and a restart.
        where.annotate(d, **{"config.timer.config.interval": "61"})
        again = told(d, lambda c: c["id"]["version"] != first["id"]["version"])
        assert datastore(again)["cipherData"] == block
        s.stop()
        s.start()
        assert d.config()[0].status == 304
        # Another password.
        s.ok("PATCH", f"/api/v1/namespaces/{where.ns}/secrets/{store}", {"stringData": {"password": "another"}}, MERGE)
        changed = told(d, lambda c: datastore(c)["cipherData"] != block)
        assert datastore(changed)["cipherData"]["initialValue"] != block["initialValue"]
        assert opened(d, changed, datastore(changed)["cipherData"])["dsPassword"] == "another"


def test_another_key_of_the_controller():
    with Server() as s:
        where = Site(s)
        d, store = where.onboarded(), registry(s, where)
        d.attest_certs()
        name = application(s, where, d, store)
        before = told(d, has_app(name))
        subprocess.run([binary(), "rotate-certs", "--data-dir", str(s.dir), "--ecdh"], check=True, capture_output=True)

        def is_sealed_anew():
            answer, response = d.config()
            assert d.certs().status == 200  # after it, so that the one it was sealed with is among them
            return answer.status == 200 and response["config"]["cipherContexts"] != before["cipherContexts"] and response["config"]

        config = wait_until(is_sealed_anew, what="the new certificate")
        assert opened(d, config, datastore(config)["cipherData"])["dsPassword"] == PASSWORD
        # It comes to rest, and its hash is what users see.
        wait_until(lambda: d.config()[0].status == 304, what="no more changes")
        wait_until(lambda: s.ok("GET", where.path("deviceconfigs", where.name(d)))["status"]["hash"] == d.hash, what="the hash in the status")
