# SPDX-License-Identifier: Apache-2.0
"""Runs the functions check_* of a test file on Debian's kernel in a virtual machine, for what this machine's kernel may lack. It sees this
machine's files (its own /tmp, /run and /etc/netns apart), so the same programs and the same Python run there, and reaches its loopback
as HOST. It is emulated: slow, but the same everywhere.

    checks = Checks(__file__, ("bonding", "veth"))

    def test_bond():
        checks.assert_good("check_bond")        # calls check_bond(given) there; checks.start(given) has said what with

    if __name__ == "__main__":
        main(globals())"""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

TOP = pathlib.Path(__file__).resolve().parents[2]
KERNEL = TOP / "build/tools/kernel-amd64"
HOST = "10.0.2.2"
MODULES = ("virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "netfs", "fscache", "9pnet", "9pnet_virtio", "9p",
           "failover", "net_failover", "virtio_net")
NEEDS = {"bridge": ("llc", "stp"), "8021q": ("mrp", "garp"), "bonding": ("tls",)}  # a bridge before a VLAN
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /dev /top
/bin/busybox mount -t proc proc /proc
for m in $(/bin/busybox cat /modules); do /bin/busybox insmod /$m.ko; done
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose top /top
exec /bin/busybox switch_root /top /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root PYTHONDONTWRITEBYTECODE=1 SETH=%s %s %s '%s'
"""
GOOD, SECONDS = "is good", 900
POWER_OFF, MS_BIND = 0x4321fedc, 4096


# ---- inside

def mount(kind, where, source=None, flags=0):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount((source or kind).encode(), str(where).encode(), kind.encode(), flags, None) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(where))


def mount_all():
    """What is the machine's own. This checkout stays in sight wherever it is."""
    top = os.open(TOP, os.O_PATH)
    for kind, where in (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run"), ("tmpfs", "/tmp"), ("tmpfs", "/mnt")):
        mount(kind, where)
        if TOP.is_relative_to(where):
            TOP.mkdir(parents=True)
            mount("", TOP, f"/proc/self/fd/{top}", MS_BIND)
    os.close(top)
    if os.path.isdir("/etc/netns"):
        mount("tmpfs", "/etc/netns")


def run(name, function, given):
    begin = time.monotonic()
    try:
        function(given)
        print(f"{name} {GOOD} after {time.monotonic() - begin:.1f} s", flush=True)
    except BaseException:
        print(f"{name} has failed", flush=True)
        traceback.print_exc(file=sys.stdout)


def main(functions):
    """As the first process of the machine."""
    try:
        mount_all()
        given = json.loads(pathlib.Path(sys.argv[1]).read_text())
        for words in ("link set lo up", "link set eth0 up", "addr add 10.0.2.15/24 dev eth0"):
            subprocess.run(["ip", *words.split()], check=True)
        for name, function in list(functions.items()):
            if name.startswith("check_"):
                run(name, function, given)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    os.sync()
    ctypes.CDLL(None).reboot(POWER_OFF)


# ---- outside

class Checks:
    """All of a file are run by one machine, when the first result is wanted."""

    def __init__(self, file, modules):
        self.file, self.modules, self.output = file, modules, None

    def start(self, given):
        """What they are given is JSON."""
        if self.output is None:
            self.output = self.run(given)

    def assert_good(self, name):
        assert f"{name} {GOOD}" in self.output, self.output[-12000:]

    def run(self, given):
        kernel = next(iter(sorted((KERNEL / "boot").glob("vmlinuz-*"))), None)
        assert kernel, f"no kernel under {KERNEL}: run tools/install-packages test"
        with tempfile.TemporaryDirectory(prefix="kernel-", dir="/var/tmp") as name:
            directory = pathlib.Path(name)
            (directory / "given").write_text(json.dumps(given))
            initrd = directory / "initrd"
            initrd.write_bytes(self.archive(directory / "root", directory / "given"))
            command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "768", "-smp", "2", "-nodefaults", "-no-user-config",
                       "-display", "none", "-serial", "stdio", "-no-reboot", "-kernel", str(kernel), "-initrd", str(initrd),
                       "-netdev", "user,id=host", "-device", "virtio-net-pci,netdev=host,romfile=", "-append", "console=ttyS0 quiet panic=-1 random.trust_cpu=on",
                       "-virtfs", "local,path=/,mount_tag=top,security_model=passthrough,multidevs=remap"]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=SECONDS)
        return done.stdout + done.stderr

    def archive(self, root, given):
        """An initial file system: a shell, the modules, and the way to this machine's files."""
        (root / "bin").mkdir(parents=True)
        modules = [*MODULES, *(n for m in self.modules for n in (*NEEDS.get(m, ()), m))]
        for name in modules:
            source = next(KERNEL.rglob(f"{name}.ko"), None)
            assert source, f"no module {name} under {KERNEL}"
            (root / f"{name}.ko").write_bytes(source.read_bytes())
        (root / "modules").write_text(" ".join(modules))
        (root / "bin/busybox").write_bytes(pathlib.Path("/bin/busybox").read_bytes())
        (root / "bin/busybox").chmod(0o755)
        (root / "init").write_text(INIT % (os.path.abspath(os.environ.get("SETH", TOP / "build/dev/server/seth")), sys.executable, self.file, given))
        (root / "init").chmod(0o755)
        names = "\n".join(str(p.relative_to(root)) for p in sorted(root.rglob("*"))) + "\n"
        return subprocess.run(["/bin/busybox", "cpio", "-o", "-H", "newc"], input=names.encode(), cwd=root, capture_output=True, check=True).stdout
