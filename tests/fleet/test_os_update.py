# SPDX-License-Identifier: Apache-2.0
"""examples/os-update: the way of a device from one version of EVE to another, when it goes well and when it does not."""
from boxes import Box, get, wait_condition
from seth import TOP, Server, wait_until

NS, NAME, OLD, NEW = "os-update", "edge-node-03", "14.4.0-kvm-amd64", "14.5.0-kvm-amd64"


def running(version, **more):
    return {"shortVersion": version, "userStatus": "UPDATED", "activated": True, "partitionState": "active", "partitionLabel": "IMGA", **more}


def other(version, status, **more):
    return {"shortVersion": version, "userStatus": status, "partitionState": "unused", "partitionLabel": "IMGB", **more}


def begin(s):
    s.kubectl("apply", "-f", str(TOP / "examples" / NS))
    box = Box(s, NS, NAME, "4CE21370XC").begin()
    box.report(software=[running(OLD)])
    wait_condition(s, NS, "devices", NAME, "BaseOSUpdated", "False", "Waiting")
    config = box.until(lambda c: c.get("baseos", {}).get("baseOsVersion") == NEW, "the update")
    tree = next(t for t in config["contentInfo"] if t["uuid"] == config["baseos"]["contentTreeUuid"])
    assert config["baseos"]["activate"] and tree["URL"] == f"lfedge/eve:{NEW}" and tree["iformat"] == "CONTAINER", config
    return box


def test_an_update_that_works():
    with Server() as s:
        box = begin(s)
        rows = s.kubectl("get", "edev", "-n", NS)
        assert OLD in rows and NEW in rows, rows
        for software, reason, words in ((other(NEW, "DOWNLOADING", downloadProgress=40), "Downloading", "40 %"),
                                        (other(NEW, "DOWNLOAD_DONE"), "Downloaded", None),
                                        (other(NEW, "UPDATING", partitionState="updating", subStatus="UPDATE_REBOOTING"), "Updating", "reboot")):
            box.report(software=[running(OLD), software])
            c = wait_condition(s, NS, "devices", NAME, "BaseOSUpdated", "False", reason)
            wait_until(lambda: words is None or words in wait_condition(s, NS, "devices", NAME, "BaseOSUpdated", "False", reason)["message"], what=f"{words} in {c}")
        box.report(software=[running(NEW), other(OLD, "NONE")])
        wait_condition(s, NS, "devices", NAME, "BaseOSUpdated", "True", "Updated")
        wait_until(lambda: get(s, NS, "devices", NAME)["status"]["eve-os-version"] == NEW, what="the version")
        before = box.fetch()["baseos"]
        box.report(software=[running(NEW), other(OLD, "NONE")], bootTime={"seconds": 1700000000})
        box.fetch()
        assert box.config["baseos"] == before and before["baseOsVersion"] == NEW, "the entry stays when it runs"


def test_an_update_that_fails_and_is_tried_again():
    with Server() as s:
        box = begin(s)
        words = "image size 400MB is larger than the partition"
        box.report(software=[running(OLD), other(NEW, "FAILED", swErr={"description": words, "severity": "SEVERITY_ERROR"})])
        c = wait_condition(s, NS, "devices", NAME, "BaseOSUpdated", "False", "Failed")
        assert words in c["message"], c
        wait_until(lambda: words in s.kubectl("describe", "-n", NS, "edev", NAME).split("Events:")[-1], what="the Event")
        before = box.fetch()["baseos"].get("retryUpdate", {}).get("counter", 0)
        for step, when in enumerate(("monday", "tuesday"), 1):
            s.kubectl("annotate", "-n", NS, "edev", NAME, "--overwrite", f"eve.lfedge.org/retry-update={when}")
            box.until(lambda c: c["baseos"].get("retryUpdate", {}).get("counter", 0) == before + step, f"attempt {step}")
        s.kubectl("annotate", "-n", NS, "edev", NAME, "shift=night")
        box.report(software=[running(NEW), other(OLD, "NONE")], baseos_update_counter=before + 2)
        wait_condition(s, NS, "devices", NAME, "BaseOSUpdated", "True")
        assert box.fetch()["baseos"]["retryUpdate"]["counter"] == before + 2


def test_a_version_that_no_image_has():
    """It is stored with a warning; the update begins when the Image is there."""
    with Server() as s:
        box = begin(s)
        done = s.kubectl("patch", "-n", NS, "edev", NAME, "--type=merge", "-p", '{"spec":{"eve-os-version":"15.0.0-kvm-amd64"}}', check=False)
        assert done.returncode == 0 and "15.0.0-kvm-amd64" in done.stderr and "Warning" in done.stderr, done
        s.kubectl("apply", "-f", "-", input=f"""
apiVersion: eve.lfedge.org/v1beta1
kind: Image
metadata: {{name: eve-15, namespace: {NS}}}
spec: {{ref: "lfedge/eve:15.0.0-kvm-amd64", storageClass: eve-docker, type: eve-os}}
""")
        box.until(lambda c: c.get("baseos", {}).get("baseOsVersion") == "15.0.0-kvm-amd64", "the newer update")
