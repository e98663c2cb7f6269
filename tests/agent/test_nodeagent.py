# SPDX-License-Identifier: Apache-2.0
"""Why a device starts, over lives that end by a command of a real server, by a kill, or by themselves."""
import re

from attested import Attested
from fleet import shared_site as site
from seth import wait_until

FIRST, REBOOT_COMMAND, UNKNOWN = 1, 2, 12
FAST = 60


def reason(d):
    node = d.node()
    return node.get("BootReason"), node.get("RestartCounter")


def command(s, d, counter):
    """A whole configuration in place of what is composed: that has counters only for devices that have reported."""
    path = site(s).path("deviceconfigs", d.name())

    def is_written():
        o = s.ok("GET", path)
        o["metadata"].setdefault("annotations", {})["eve.lfedge.org/composed"] = "false"
        o["spec"]["config"]["reboot"] = {"counter": counter, "desiredState": True, "opsTime": "2026-01-01T00:00:00Z"}
        status, answer = s.request("PUT", path, o)
        assert status in (200, 409), answer
        return status == 200

    wait_until(is_written, what="the configuration to be written")


def test_each_life_has_its_reason(s):
    with Attested(site(s)) as d:
        with d.live() as life:
            wait_until(lambda: d.node(), what="NodeAgentStatus")
            assert reason(d) == (FIRST, 0) and d.node()["RebootReason"].startswith("NORMAL: First boot of device - at ")
            life.process.kill()
            life.process.wait()
            life.process.returncode = 0
        with d.live():
            wait_until(lambda: reason(d)[1] == 1, what="another life")
            assert reason(d) == (UNKNOWN, 1)
            assert re.match(r"Unknown reboot reason - power failure or crash - at \d{4}-", d.node()["RebootReason"])
        (d.root / "persist/reboot-reason").write_text("fatal: agent zedagent[7] exit at EVE version 13.4.0\n")
        (d.root / "persist/boot-reason").write_text("BootReasonFatal")
        (d.root / "persist/reboot-stack").write_text("goroutine 1 [running]\n")
        with d.live():
            wait_until(lambda: reason(d)[1] == 2, what="another life")
            node = d.node()
            assert node["BootReason"] == 6 and node["RebootReason"].startswith("fatal: agent zedagent[7]")
            assert node["RebootStack"] == "goroutine 1 [running]"
            assert not any((d.root / "persist" / f).exists() for f in ("reboot-reason", "boot-reason", "reboot-stack"))


def test_a_reboot_that_the_server_asks_for(s):
    with Attested(site(s)) as d:
        with d.live(speed=FAST) as life:
            wait_until(lambda: d.status().get("ConfigGetStatus") == 1, what="a configuration")
            life.say(app={"Activated": True})
            command(s, d, 1)  # of the first counter a device only takes note
            wait_until(lambda: (d.root / "persist/status/rebootConfig").exists(), what="the counter", seconds=60)
            command(s, d, 2)
            wait_until(lambda: d.status().get("RebootCmd"), what="the command", seconds=60)
            wait_until(lambda: d.node().get("DeviceReboot"), what="the device to obey")
            wait_until(lambda: (d.root / "persist/boot-reason").exists(), what="a reason", seconds=60)
            assert not d.node()["AllDomainsHalted"]
            life.say(app={"Activated": False})
            assert life.hear("restart")["reason"] == "NORMAL: controller reboot"
            life.end()
        with d.live(speed=FAST):
            wait_until(lambda: reason(d) == (REBOOT_COMMAND, 1), what="another life")
            assert d.node()["RebootReason"].startswith("NORMAL: controller reboot at EVE version 13.4.0-kvm-amd64 at ")
            wait_until(lambda: d.status().get("ConfigGetStatus") == 1, what="a configuration")
            # The command was for the life before.
            assert not d.status()["RebootCmd"] and not d.node()["DeviceReboot"]


def test_the_image_that_runs_is_known(s):
    with Attested(site(s)) as d, d.live():
        wait_until(lambda: d.topic("baseosmgr", "ZbootStatus"), what="ZbootStatus")
        partition = d.topic("baseosmgr", "ZbootStatus", "IMGA")
        assert (partition["ShortVersion"], partition["PartitionState"], partition["CurrentPartition"]) == ("13.4.0-kvm-amd64", "active", True)
