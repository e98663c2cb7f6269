# SPDX-License-Identifier: Apache-2.0
"""examples/private-registry: what is in a Secret reaches the device that needs it, and nobody else."""
import base64
import json

from boxes import Box, app_of, condition, get, wait_condition
from seth import TOP, Server

NS, NAME = "private-registry", "edge-node-02"
PASSWORD, TOKEN = "correct-horse-battery-staple", "not-for-everybody"
SECRETS = f"/api/v1/namespaces/{NS}/secrets"


def forms(text):
    """As it might stand somewhere in the clear."""
    plain = text.encode()
    return [plain, plain.hex().encode(), *(base64.b64encode(b"x" * n + plain)[4 if n else 0:-4] for n in range(3))]


def is_nowhere(data, *words):
    for word in words:
        for form in forms(word):
            assert form not in data, f"{word} is there as {form}"


def registry(config):
    return next((d for d in config.get("datastores", []) if d["fqdn"] == "docker://quay.io"), None)


def change(s, secret, **values):
    s.ok("PATCH", f"{SECRETS}/{secret}", {"stringData": values}, {"Content-Type": "application/merge-patch+json"})


def test_secrets_are_sealed_for_the_device():
    with Server() as s:
        s.kubectl("apply", "-f", str(TOP / "examples" / NS))
        box = Box(s, NS, NAME, "4CE21370XB").begin(with_certificates=False)
        box.report()
        # Until it has sent its certificate there is nobody to seal for: the part waits, and says so.
        config = box.until(lambda c: True)
        assert not config.get("apps") and not config.get("datastores"), config
        is_nowhere(box.raw, PASSWORD, TOKEN)
        c = wait_condition(s, NS, "applications", "gateway", "Composed", "False")
        assert "certificate" in c["message"], c
        box.send_certificates()
        app = box.until_app("gateway")
        wait_condition(s, NS, "applications", "gateway", "Composed", "True")
        box.keeps.add("gateway")
        is_nowhere(box.raw, PASSWORD, TOKEN)
        store = registry(box.config)
        assert box.decrypt(store["cipherData"]) == {"dsAPIKey": "corp1+edge", "dsPassword": PASSWORD}
        told = base64.b64decode(box.decrypt(app["cipherData"])["protectedUserData"]).decode()
        assert "LOG_LEVEL=info" in told and f"TOKEN={TOKEN}" in told and "BROKER=mqtts://broker.example.org:8883" in told, told
        assert "userData" not in app
        stays(s, box, store)
        changes(s, box, store)
        _, data = s.request("GET", f"/apis/eve.lfedge.org/v1beta1/namespaces/{NS}/deviceconfigs/{NAME}", raw=True)
        is_nowhere(data, PASSWORD, TOKEN, "tr0ub4dor&3-and-more", "another-token")
        is_nowhere(s.read_log().encode(), PASSWORD, TOKEN, "tr0ub4dor&3-and-more", "another-token")


def stays(s, box, store):
    """Something else changes: the sealed bytes do not."""
    app = app_of(box.config, "gateway")
    s.kubectl("patch", "-n", NS, "eapp", "gateway", "--type=json", "-p", '[{"op":"replace","path":"/spec/containers/0/resources/limits/memory","value":"512Mi"}]')
    after = box.until_app("gateway", lambda a: a["fixedresources"]["memory"] == 512 * 1024)
    assert registry(box.config) == store and after["cipherData"] == app["cipherData"], (store, registry(box.config), app, after)
    version = get(s, NS, "deviceconfigs", box.name)["metadata"]["resourceVersion"]
    s.kubectl("label", "-n", NS, "secret", "quay-creds", "shift=night")
    s.kubectl("annotate", "-n", NS, "edev", box.name, "eve.lfedge.org/config.timer.metric.interval=30")
    box.until(lambda c: {"key": "timer.metric.interval", "value": "30"} in c.get("configItems", []), "the option")
    assert registry(box.config) == store and version
    # The server starts again and has kept nothing but what is on disk.
    assert s.stop() == 0
    s.start()
    s.kubectl("annotate", "-n", NS, "edev", box.name, "--overwrite", "eve.lfedge.org/config.timer.metric.interval=40")
    box.until(lambda c: {"key": "timer.metric.interval", "value": "40"} in c.get("configItems", []), "the option")
    assert registry(box.config) == store and app_of(box.config, "gateway")["cipherData"] == after["cipherData"]


def changes(s, box, store):
    """The Secret changes: so do the sealed bytes, and only of what uses it."""
    app = app_of(box.config, "gateway")
    change(s, "quay-creds", password="tr0ub4dor&3-and-more")
    box.until(lambda c: registry(c)["cipherData"] != store["cipherData"], "another password")
    is_nowhere(box.raw, "tr0ub4dor&3-and-more")
    assert box.decrypt(registry(box.config)["cipherData"])["dsPassword"] == "tr0ub4dor&3-and-more"
    assert registry(box.config)["cipherData"]["initialValue"] != store["cipherData"]["initialValue"], "one IV for two texts"
    assert app_of(box.config, "gateway") == app, "the application has nothing to do with it"
    change(s, "gateway-token", token="another-token")
    after = box.until_app("gateway", lambda a: a["cipherData"] != app["cipherData"])
    is_nowhere(box.raw, "another-token")
    assert "TOKEN=another-token" in base64.b64decode(box.decrypt(after["cipherData"])["protectedUserData"]).decode()
    assert (after["restart"], after["purge"]) == (app["restart"], app["purge"]), "it is told at the next restart"


def test_two_devices_cannot_open_each_others():
    with Server() as s:
        s.kubectl("apply", "-f", str(TOP / "examples" / NS))
        s.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "eve.lfedge.org/v1beta1", "kind": "Device", "metadata": {
            "name": "edge-node-09", "namespace": NS, "labels": {"site": "bremen"}}, "spec": {"serial": "OTHER"}}))
        app = get(s, NS, "applications", "gateway")
        app = {**app, "metadata": {"name": "second", "namespace": NS}, "spec": {**app["spec"], "nodeSelector": {"site": "bremen"}}}
        app.pop("status", None)
        s.kubectl("create", "-f", "-", input=json.dumps(app))
        one, two = Box(s, NS, NAME, "4CE21370XB").begin(), Box(s, NS, "edge-node-09", "OTHER").begin()
        one.until_app("gateway"), two.until_app("second")
        blocks = [registry(b.config)["cipherData"] for b in (one, two)]
        assert len({json.dumps(b) for b in blocks}) == 2
        assert one.decrypt(blocks[0]) == two.decrypt(blocks[1])
        assert not app_of(two.config, "gateway") and not app_of(one.config, "second")
        assert condition(get(s, NS, "applications", "second"), "Scheduled")["status"] == "True"
