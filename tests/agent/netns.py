# SPDX-License-Identifier: Apache-2.0
"""Network namespaces of tests: the commands that make them, and sockets inside them."""
import contextlib
import ctypes
import os
import subprocess

CLONE_NEWNET = 0x40000000


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stderr} (these tests need root and iproute2)"
    return done.stdout


@contextlib.contextmanager
def inside(namespace):
    """This thread's new sockets belong to the namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{namespace}") as there:
        assert libc.setns(there.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            assert libc.setns(home.fileno(), CLONE_NEWNET) == 0
