# SPDX-License-Identifier: Apache-2.0
"""examples/: every file is taken as it stands, and devices are told what the golden files in tests/data/examples say."""
import re

import yaml

import golden
from boxes import PATIENCE, STILL, Box, settle
from seth import TOP, Server, wait_until

EXAMPLES = TOP / "examples"
# Steps of an example: what is done, and what each device is told then.
DEVICES = {"first-device": {"eve-device.lab1": "6654abbcc44"},
           "virtual-machine": {"edge-node-01": "4CE21370XA"},
           "private-registry": {"edge-node-02": "4CE21370XB"},
           "fleet-rollout": {"press-1": "PRESS-0001", "press-2": "PRESS-0002", "press-3": "PRESS-0003"},
           "os-update": {"edge-node-03": "4CE21370XC"},
           "complete-application": {"edge-node-01": "4CE21370XD"}}


def directories():
    return sorted(d for d in EXAMPLES.iterdir() if d.is_dir() and d.name not in ("demo", "tour"))  # which have tests of their own


def test_every_file_is_taken_in_order(s):
    for directory in directories():
        files = sorted(directory.glob("*"))
        assert files and all(re.fullmatch(r"\d-[a-z-]+\.yaml", f.name) for f in files), files
        for f in files:
            for version, words in (("old", ["--dry-run=server"]), ("new", ["--dry-run=server", "--validate=strict"]), ("new", ["--validate=strict"])):
                done = s.kubectl("apply", *words, "-f", str(f), version=version, check=False)
                assert done.returncode == 0 and "created" in done.stdout, (f, done)


def test_every_directory_is_in_the_readme_and_devices_are_here():
    text = (EXAMPLES / "README.md").read_text()
    for directory in directories():
        assert f"]({directory.name})" in text, directory
        kinds = [o for f in directory.glob("*.yaml") for o in yaml.safe_load_all(f.read_text())]
        assert all(o["kind"] in ("Namespace", "StorageClass") or o["metadata"]["namespace"] == directory.name for o in kinds), directory
        serials = {o["metadata"]["name"]: o["spec"]["serial"] for o in kinds if o["kind"] == "Device" and "serial" in o["spec"]}
        assert serials == DEVICES.get(directory.name, {}), directory
    for link in re.findall(r"\]\(([^)#]+)", text):
        assert (EXAMPLES / link).exists(), link


def is_told(box, wanted):
    """Until it is told so, and nothing else any more."""
    same = [0]

    def holds():
        config = box.fetch()
        same[0] = same[0] + 1 if config and golden.normal(config, box.decrypt) == wanted else 0
        return same[0] > STILL

    try:
        wait_until(holds, PATIENCE, f"what {box.name} is to be told")
    except AssertionError as e:
        found = golden.normal(box.config, box.decrypt) if box.config else None
        raise AssertionError(f"{e}:\n{golden.difference(wanted, found)}") from None


def steps_of(name, s):
    """Yields what has been done, after it is done, with the devices."""
    s.kubectl("apply", "--validate=strict", "-f", str(EXAMPLES / name))
    boxes = [Box(s, name, device, serial).begin(with_certificates=False) for device, serial in DEVICES[name].items()]
    yield "registered", boxes
    for box in boxes:
        box.send_certificates()
        box.report()
        box.metrics()
    yield "reported", boxes


def check(name):
    with Server() as s:
        told = {}
        wanted = {} if golden.is_writing() else golden.read(name)
        for step, boxes in steps_of(name, s):
            for box in boxes:
                if golden.is_writing():
                    settle(box)
                    told.setdefault(step, {})[box.name] = golden.normal(box.config, box.decrypt)
                else:
                    is_told(box, wanted[step][box.name])
        if golden.is_writing():
            golden.write(name, told)
        # Once more, and nothing is news to anybody.
        known = {box.name: box.device.hash for box in boxes}
        s.kubectl("apply", "-f", str(EXAMPLES / name))
        for box in boxes:
            for _ in range(STILL):
                box.fetch()
            assert box.device.hash == known[box.name], box.name


def test_first_device():
    check("first-device")


def test_virtual_machine():
    check("virtual-machine")


def test_private_registry():
    check("private-registry")


def test_fleet_rollout():
    check("fleet-rollout")


def test_os_update():
    check("os-update")


def test_complete_application():
    check("complete-application")


def test_golden_files_belong_to_examples():
    assert sorted(p.stem for p in golden.DATA.glob("*.json")) == sorted(DEVICES), "a file without an example, or an example without a file"
