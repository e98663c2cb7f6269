# SPDX-License-Identifier: Apache-2.0
"""What users write into a DeviceConfig themselves: it stays, it is named, and it leaves no remains behind."""
import json

from boxes import Box, app_of, condition, counter, get, wait_condition
from seth import TOP, Server, wait_until

NS, DEVICE, APP = "first-device", "eve-device.lab1", "web"


def begin(s):
    s.kubectl("apply", "-f", str(TOP / "examples" / NS))
    box = Box(s, NS, DEVICE, "6654abbcc44").begin()
    box.report()
    box.until_app(APP)
    box.keeps.add(APP)
    return box


def config(**fields):
    return json.dumps({"apiVersion": "eve.lfedge.org/v1beta1", "kind": "DeviceConfig", "metadata": {"name": DEVICE, "namespace": NS}, "spec": {"config": fields}})


def words(s):
    return condition(get(s, NS, "deviceconfigs", DEVICE), "Overridden")["message"]


def items(c):
    return {i["key"]: i.get("value", "") for i in c.get("configItems", [])}


def test_parts_of_lists_are_taken_over_and_given_back():
    with Server() as s:
        box = begin(s)
        s.kubectl("apply", "--server-side", "--field-manager=ann", "-f", "-", input=config(
            apps=[{"displayname": APP, "startDelayInSeconds": 30}], configItems=[{"key": "debug.enable.usb", "value": "true"}]))
        box.until(lambda c: app_of(c, APP).get("startDelayInSeconds") == 30 and items(c).get("debug.enable.usb") == "true", "what ann wants")
        wait_condition(s, NS, "deviceconfigs", DEVICE, "Overridden", "True")
        wait_until(lambda: all(w in words(s) for w in ("startDelayInSeconds", "debug.enable.usb", "ann")), what=f"every field by name: {words(s)}")
        assert "bob" not in words(s)
        # Somebody else takes over what is composed; without force that is refused.
        mine = config(configItems=[{"key": "timer.config.interval", "value": "10"}])
        done = s.kubectl("apply", "--server-side", "--field-manager=bob", "-f", "-", input=mine, check=False)
        assert done.returncode != 0 and "seth-composer" in done.stderr, done
        s.kubectl("apply", "--server-side", "--field-manager=bob", "--force-conflicts", "-f", "-", input=mine)
        box.until(lambda c: items(c).get("timer.config.interval") == "10", "what bob wants")
        s.kubectl("annotate", "-n", NS, "edev", DEVICE, "--overwrite", "eve.lfedge.org/config.timer.config.interval=50", "eve.lfedge.org/config.timer.metric.interval=40")
        box.until(lambda c: items(c).get("timer.metric.interval") == "40", "what is composed beside it")
        assert items(box.config)["timer.config.interval"] == "10"
        wait_until(lambda: "bob" in words(s) and "ann" in words(s), what=f"both by name: {words(s)}")
        # Bob gives back what was his, by applying without it.
        s.kubectl("apply", "--server-side", "--field-manager=bob", "-f", "-", input=config())
        box.until(lambda c: items(c).get("timer.config.interval") == "50", "what is composed")
        wait_until(lambda: "bob" not in words(s), what=f"only ann by name: {words(s)}")


def test_nothing_is_left_of_what_is_deleted():
    with Server() as s:
        box = begin(s)
        s.kubectl("apply", "--server-side", "--field-manager=ann", "-f", "-", input=config(apps=[{"displayname": APP, "startDelayInSeconds": 30}]))
        box.until(lambda c: app_of(c, APP).get("startDelayInSeconds") == 30, "what ann wants")
        box.keeps.clear()
        s.kubectl("delete", "-n", NS, "eapp", APP)
        box.until(lambda c: not c.get("apps"), "no application")
        wait_condition(s, NS, "deviceconfigs", DEVICE, "Overridden", "False")


def test_a_whole_configuration_is_the_users():
    """Annotated so, nobody composes it, until it is deleted."""
    with Server() as s:
        box = begin(s)
        restarts = counter(app_of(box.config, APP), "restart")
        s.kubectl("annotate", "-n", NS, "dcfg", DEVICE, "eve.lfedge.org/composed=false")
        wait_condition(s, NS, "deviceconfigs", DEVICE, "Overridden", "True", "WholeConfiguration")
        s.kubectl("annotate", "-n", NS, "edev", DEVICE, "eve.lfedge.org/config.timer.metric.interval=40")
        s.kubectl("patch", "-n", NS, "dcfg", DEVICE, "--type=merge", "-p", '{"spec":{"config":{"deviceName":"all-mine"}}}')
        box.until(lambda c: c["deviceName"] == "all-mine", "the user's")
        assert "timer.metric.interval" not in items(box.config)
        s.kubectl("delete", "-n", NS, "dcfg", DEVICE)
        box.until(lambda c: c["deviceName"] == DEVICE and items(c).get("timer.metric.interval") == "40", "what is composed")
        assert counter(app_of(box.config, APP), "restart") == restarts
