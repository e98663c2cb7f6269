# SPDX-License-Identifier: Apache-2.0
"""The tour of the README, run as written against a server of its own."""
import os
import re
import subprocess

from seth import KUBECTLS, TOP, Server, binary


def tour():
    text = (TOP / "README.md").read_text()
    part = re.search(r"<!-- tour -->(.*?)<!-- /tour -->", text, re.S).group(1)
    blocks = re.findall(r"```sh\n(.*?)```", part, re.S)
    assert len(blocks) >= 5, "the tour has lost its commands"
    return "\n".join(blocks)


def test_tour_runs_as_written():
    with Server() as s:
        script = tour().replace("$PWD/build/data/admin.kubeconfig", s.kubeconfig)
        script = script.replace("build/release/seth", binary()).replace("build/data", str(s.dir)).replace("build/tour-backup.db", f"{s.dir}/copy.db")
        script = script.replace("build/ann.kubeconfig", f"{s.dir}/ann.kubeconfig")
        # `! command` must fail: bash -e lets both outcomes pass, so ask for it.
        script = re.sub(r"^! (.*)$", r"if \1; then echo 'should have been refused' >&2; exit 1; fi", script, flags=re.M)
        env = {**os.environ, "PATH": f"{KUBECTLS['new'].parent}:{os.environ['PATH']}", "HOME": str(s.dir)}
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=TOP, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        for expected in ("namespace/plant created", "stamping", "Time between two readings", "sensor.example.org/press", "configmap/shift created", 'namespace "plant" deleted', "apps[0] Application/web spec", 'namespace "first-device" deleted'):
            assert expected in done.stdout, (expected, done.stdout)
        assert (s.dir / "copy.db").stat().st_size > 0


def test_commands_of_the_operations_page():
    """Every option named in docs/OPERATIONS.md exists, and the commands run."""
    text = (TOP / "docs/OPERATIONS.md").read_text()
    with Server() as s:
        helps = {}
        for command in ("server", "kubeconfig", "backup", "restore", "rotate-key", "health"):
            helps[command] = subprocess.run([binary(), command, "--help"], capture_output=True, text=True, check=True).stdout
        for option in set(re.findall(r"`?(--[a-z][a-z-]+)", text)):
            assert any(option in h for h in helps.values()), f"{option} is in the document and not in --help"
        commands = re.findall(r"^    (seth kubeconfig .*)$", text, re.M)
        assert len(commands) == 4
        s.kubectl("create", "serviceaccount", "ci")
        (s.dir / ".kube").mkdir()
        script = f"cd {s.dir}\nseth() {{ {binary()} \"$@\"; }}\n" + "\n".join(commands).replace("DIR", str(s.dir)) + f"\nseth health --data-dir {s.dir}\n"
        env = {**os.environ, "PATH": f"{KUBECTLS['new'].parent}:{os.environ['PATH']}", "HOME": str(s.dir), "KUBECONFIG": s.kubeconfig}
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and done.stdout == "ok\n", done.stdout + done.stderr
        for name, user in (("ann.kubeconfig", "ann"), (".kube/config", "me"), ("ci.kubeconfig", "system:serviceaccount:default:ci")):
            s.kubeconfig = str(s.dir / name)
            assert user in s.kubectl("auth", "whoami"), name
        assert "oidc-login" in (s.dir / "me.kubeconfig").read_text()
