# SPDX-License-Identifier: Apache-2.0
"""Random lives of devices, composed by the real composer: every configuration, and every step from one to the next, is judged by the
validator, which knows nothing of the composer."""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from validator import validate, validate_change  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parents[2]
COMPOSER = TOP / "build/dev/tests/test_composer_properties"


def lives():
    """The configurations of each device, one after the other."""
    with tempfile.NamedTemporaryFile("r") as out:
        subprocess.run([COMPOSER], env={**os.environ, "SETH_COMPOSED": out.name}, check=True, stdout=subprocess.DEVNULL)
        text = pathlib.Path(out.name).read_text()
    return [[json.loads(line) for line in life.splitlines()] for life in text.split("\n\n") if life.strip()]


def delivered(told, version):
    """As delivery completes it."""
    config = copy.deepcopy(told["config"])
    config["id"]["version"] = str(version)
    return config


def test_every_configuration_can_be_taken():
    n_configs = n_changes = n_apps = 0
    for number, life in enumerate(lives()):
        before = None
        for version, told in enumerate(life, 1):
            config = delivered(told, version)
            findings = validate(config)
            if not told["isReported"] or version == 1:  # a device only takes note of the first command it sees: docs/COMPOSITION.md
                findings = [f for f in findings if f.rule != "commands_are_there_from_the_start"]
            findings += validate_change(before, config) if before else []
            assert not findings, f"life {number}, version {version}: {findings[:3]}\n{json.dumps(config)}"
            n_changes += before is not None and config != before
            before, n_configs, n_apps = config, n_configs + 1, n_apps + len(config.get("apps", []))
    assert n_configs > 1000 and n_changes > 500 and n_apps > 1000, (n_configs, n_changes, n_apps)
