# SPDX-License-Identifier: Apache-2.0
"""Disks for virtual machines, made here: a boot sector that writes a line on the serial port and halts, and a small Linux (Debian's kernel for clouds,
which tools/install-packages unpacks, with busybox) that a boot loader starts from a FAT file system."""
import functools
import gzip
import pathlib
import shutil
import stat
import subprocess
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
KERNEL = TOP / "build/tools/kernel-cloud"
MODULES = """virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio-rng virtio_blk failover net_failover virtio_net
scsi_common scsi_mod virtio_scsi cdrom sr_mod isofs button evdev""".split()

# Set up by the kernel's init, then what the test asks for, from the drive of cloud-init if there is one.
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t devtmpfs dev /dev; mount -t proc proc /proc; mount -t sysfs sys /sys
for m in MODULES; do insmod /modules/$m.ko; done
echo "vm: up on $(nproc) cpu"
for d in /sys/block/vd*; do echo "vm: disk $(basename $d) $(cat $d/size) ro=$(cat $d/ro)"; done
for d in /dev/sr*; do mount -t iso9660 -o ro $d /mnt && echo "vm: medium $(ls /mnt | tr '\\n' ' ')"; done
n=0; while [ ! -e /sys/class/net/eth0 ] && [ $n -lt 20 ]; do n=$((n + 1)); usleep 50000; done
if [ -e /sys/class/net/eth0 ]; then
  ip link set lo up; ip link set eth0 up
  udhcpc -q -n -t 20 -T 1 -i eth0 -s /bin/lease >/dev/null 2>&1 || echo "vm: no lease"
  wget -q -O /tmp/network http://169.254.169.254/eve/v1/network.json && echo "vm: metadata $(tr -d ' \\n' </tmp/network)"
fi
for e in /dev/input/event*; do (head -c 1 $e >/dev/null && echo "vm: button" && poweroff -f) & done
[ -f /mnt/user-data ] && sh /mnt/user-data
echo "vm: ready"
while :; do sleep 1000; done
"""
LEASE = """#!/bin/sh
[ "$1" = bound ] || [ "$1" = renew ] || exit 0
ip addr flush dev $interface
ip addr add $ip/$mask dev $interface
[ -n "$router" ] && ip route add default via $router
for s in $dns; do echo nameserver $s; done >/etc/resolv.conf
[ -n "$mtu" ] && ip link set $interface mtu $mtu
echo "vm: lease $ip/$mask via $router dns $dns host $hostname" >/dev/console
"""


def boot_sector(text):
    """Writes the text to COM1 and halts for good."""
    code = bytes([0xFA, 0xBE, 0x00, 0x00,              # cli; mov si, text
                  0x2E, 0xAC,                          # next: cs lodsb
                  0x84, 0xC0, 0x74, 0x12,              # test al, al; jz halt
                  0x88, 0xC4,                          # mov ah, al
                  0xBA, 0xFD, 0x03,                    # mov dx, 0x3fd
                  0xEC, 0xA8, 0x20, 0x74, 0xFB,        # wait: in al, dx; test al, 0x20; jz wait
                  0xBA, 0xF8, 0x03,                    # mov dx, 0x3f8
                  0x88, 0xE0, 0xEE, 0xEB, 0xE8,        # mov al, ah; out dx, al; jmp next
                  0xF4, 0xEB, 0xFD])                   # halt: hlt; jmp halt
    code = code.replace(b"\xBE\x00\x00", b"\xBE" + (0x7C00 + len(code)).to_bytes(2, "little"), 1) + text.encode() + b"\0"
    assert len(code) <= 510
    return (code.ljust(510, b"\0") + b"\x55\xAA").ljust(1 << 20, b"\0")


def run(*command):
    subprocess.run([str(c) for c in command], check=True, capture_output=True)


def write_image(path, raw, form="qcow2"):
    """An image of a raw disk, as qemu-img calls the format."""
    with tempfile.NamedTemporaryFile(dir=path.parent) as f:
        f.write(raw)
        f.flush()
        run("qemu-img", "convert", "-f", "raw", "-O", form, f.name, path)
    return path


def cpio(entries):
    """The format "newc" that the kernel unpacks; entries: (name, mode, content)."""
    out = bytearray()
    for number, (name, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")]):
        fields = [number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
        out += b"070701" + b"".join(b"%08x" % f for f in fields) + name.encode() + b"\0"
        out += bytes(-len(out) % 4) + content
        out += bytes(-len(out) % 4)
    return bytes(out)


def initramfs():
    modules = next((KERNEL / "lib/modules").iterdir())
    found = {p.stem: p for p in modules.rglob("*.ko")}
    script, directory = stat.S_IFREG | 0o755, stat.S_IFDIR | 0o755
    names = [m for m in MODULES if m in found]
    entries = [(d, directory, b"") for d in ("bin", "dev", "etc", "mnt", "modules", "proc", "sys", "tmp")]
    entries += [("bin/busybox", script, pathlib.Path(shutil.which("busybox")).read_bytes()), ("bin/lease", script, LEASE.encode()),
                ("init", script, INIT.replace("MODULES", " ".join(names)).encode())]
    return gzip.compress(cpio(entries + [(f"modules/{m}.ko", script, found[m].read_bytes()) for m in names]), 1)


@functools.cache
def linux():
    """The bytes of a qcow2 that boots; made once."""
    assert (KERNEL / ".done").exists(), "tools/install-packages test unpacks the kernel that these tests boot"
    with tempfile.TemporaryDirectory(prefix="vm-") as d:
        d = pathlib.Path(d)
        (d / "initrd").write_bytes(initramfs())
        (d / "syslinux.cfg").write_text("DEFAULT linux\nPROMPT 0\nLABEL linux\n  KERNEL linux\n  INITRD initrd\n  APPEND console=ttyS0 quiet loglevel=3 panic=1\n")
        disk = d / "disk"
        with disk.open("wb") as f:
            f.truncate(32 << 20)
        run("mformat", "-i", disk, "-t", 32, "-h", 64, "-s", 32, "::")
        run("mcopy", "-i", disk, next((KERNEL / "boot").glob("vmlinuz-*")), "::linux")
        run("mcopy", "-i", disk, d / "initrd", d / "syslinux.cfg", "::")
        run("syslinux", "--install", disk)
        return write_image(d / "disk.qcow2", disk.read_bytes()).read_bytes()
