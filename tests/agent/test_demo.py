# SPDX-License-Identifier: Apache-2.0
"""`make demo`, as a user runs it: a server, an agent in its own namespace, an application that really runs, its words read back."""
import os
import pathlib
import re
import subprocess
import tempfile

from agents import AGENT, SECONDS
from seth import KUBECTLS, TOP, binary


def test_the_demonstration_runs_to_its_end():
    with tempfile.TemporaryDirectory() as d:
        done = subprocess.run([str(TOP / "tools/demo"), "--once", "--seth", binary(), "--agent", str(AGENT), "--directory", f"{d}/demo"],
                              capture_output=True, text=True, timeout=4 * SECONDS,
                              env={**os.environ, "PATH": f"{KUBECTLS['new'].parent}:{os.environ['PATH']}"})
        logs = "\n".join(p.read_text(errors="replace")[-3000:] for p in pathlib.Path(d, "demo").glob("*.log"))
        assert done.returncode == 0, (done.stdout, done.stderr, logs)
        assert re.search(r"its newest line: hello from \S+, line \d+", done.stdout), done.stdout
        assert re.search(r"its kubeconfig is Secret demo/\S+", done.stdout), done.stdout
        assert "Sanitizer" not in logs, logs
        name = re.search(r"namespace (seth-demo-\d+)", done.stdout).group(1)
        assert name not in subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        assert "the application has ended" in done.stdout
        assert not subprocess.run(["pgrep", "-f", f"{d}/demo"], capture_output=True, text=True).stdout, "something still runs"


def test_the_makefile_runs_the_same():
    text = (TOP / "Makefile").read_text()
    assert re.search(r"^demo: .*\n\t@tools/demo\b", text, re.M)
