# SPDX-License-Identifier: Apache-2.0
"""Virtual machines by qemu: the process runtime on disks made here, then applications behind a bridge and under a whole agent."""
import base64
import contextlib
import ctypes
import http.server
import itertools
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import threading
import time

from agents import Place
from seth import wait_until
from test_apps import HALTED, OUTSIDE, RUNNING, Device, uuid_of
from test_runtime import MANIFEST, limits_memory, machine, sha
from vm import boot_sector, linux, run, write_image

MEMORY = 192 << 20
COUNT = "n=0; while :; do n=$((n + 1)); echo vm: line $n; usleep 100000; done &\n"


def sector_image(box, name="b.qcow2", text="hello from the sector", form="qcow2"):
    return write_image(box.root / name, boot_sector(text + "\r\n"), form)


def linux_image(box):
    path = box.root / "linux.qcow2"
    path.write_bytes(linux())
    return path


def boot(a, path, name="a", form="qcow2", size=0, **more):
    a.ok("prepare", id=f"{name}-image", url=f"file://{path}", format=form, sha256=sha(pathlib.Path(path).read_bytes()))
    a.ok("create", id=f"{name}-root", content=f"{name}-image", size=size)
    a.ok("start", id=name, root=f"{name}-root", **more)


def info(path):
    return json.loads(subprocess.run(["qemu-img", "info", "-U", "--output=json", str(path)], check=True, capture_output=True).stdout)


def has_landlock():
    """Whether the kernel can keep a process to some files: landlock_create_ruleset() tells its version."""
    return ctypes.CDLL(None).syscall(444, None, 0, 1) > 0


def monitor(directory, question):
    """Asks qemu; a socket's name is short, its directory's may be long."""
    at = os.open(directory, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(f"/proc/self/fd/{at}/qmp")
        os.close(at)
        s.sendall(b'{"execute":"qmp_capabilities"}\n' + json.dumps(question).encode() + b"\n")
        answers = (json.loads(line) for line in s.makefile())
        return list(itertools.islice((a for a in answers if "return" in a or "error" in a), 2))[1]


# ---- the runtime ----------------------------------------------------------------------------------------------------------------

def test_disks_of_every_format_boot_and_their_console_comes_back():
    with machine() as box:
        a = box.agent()
        for form, name in (("qcow2", "qcow2"), ("raw", "raw"), ("vmdk", "vmdk"), ("vpc", "vhd"), ("vhdx", "vhdx")):
            path = sector_image(box, f"b.{name}", f"hello from {name}", form)
            boot(a, path, name, name, size=64 << 20, memory=64 << 20, cpu=1000, stop=300)
            a.state(name, "RUNNING")
            a.line(f"hello from {name}")
            found = info(box.root / f"persist/volumes/{name}-root/disk.qcow2")
            assert found["format"] == "qcow2" and found["virtual-size"] == 64 << 20, found
            # The sector does not mind the button: it is killed after its time.
            began = time.monotonic()
            a.ok("stop", id=name)
            end = a.state(name, "HALTED")
            assert end["exit"] == 137 and time.monotonic() - began > 0.29, end
            for kind, ident in (("instance", name), ("volume", f"{name}-root"), ("content", f"{name}-image")):
                a.ok("purge", kind=kind, id=ident)
                a.state(ident, "INVALID")
        left = [p for d in ("persist/contents", "persist/volumes", "persist/instances", "run/qemu", "run/pipes") for p in (box.root / d).iterdir()]
        assert not left and not box.processes(), (left, box.processes())
        assert [s for s in a.states("raw") if s != "INVALID"] == ["INITIAL", "INSTALLED", "BOOTING", "RUNNING", "HALTING", "HALTED"], a.states("raw")
        a.end()


def test_a_linux_sees_its_disks_takes_its_drive_and_minds_the_button():
    medium = bytearray(64 * 1024)
    medium[32768:32774] = b"\1CD001"
    with machine() as box:
        a = box.agent()
        a.ok("create", id="data", size=8 << 20)
        (box.root / "m.iso").write_bytes(medium)
        boot(a, linux_image(box), memory=MEMORY, cpu=2000, mount={"volume": "data"}, size=48 << 20,
             user_data="cat /mnt/meta-data; dd if=/dev/vda of=/dev/null bs=1M count=8; dd if=/dev/zero of=/dev/vdb bs=1M count=4 conv=fsync; echo vm: written\n",
             meta_data="instance-id: seven\nlocal-hostname: seven\n")
        a.state("a", "RUNNING")
        a.line("vm: written")
        text = "\n".join(a.lines())
        assert "vm: up on 2 cpu" in text and "instance-id: seven" in text and "vm: medium meta-data user-data" in text, text
        assert f"vm: disk vda {(48 << 20) // 512} ro=0" in text and f"vm: disk vdb {(8 << 20) // 512} ro=0" in text, text
        end = time.monotonic() + 20
        while (m := a.metrics("a"))["disk_read"] < 8 << 20 or m["disk_written"] < 4 << 20:
            assert time.monotonic() < end, m
            time.sleep(0.05)
        assert m["cpu"] > 100_000_000 and m["memory"] > 20 << 20 and m["whole"] and (not limits_memory() or m["max"] == MEMORY), m
        # It is confined: no capabilities, a filter of system calls, a network of its own, a cgroup with its limits.
        pid = next(p for p in box.processes() if "qemu" in os.readlink(f"/proc/{p}/exe"))
        status = dict(x.split(":\t", 1) for x in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in x)
        assert status["CapBnd"] == status["CapEff"] == "0" * 16 and status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
        assert os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")
        a.ok("stop", id="a")
        end = a.state("a", "HALTED")
        assert end["exit"] == 0 and "vm: button" in "\n".join(a.lines()), end
        # What it has written is there for the next, which may only read it; so is a medium.
        assert (box.root / "persist/volumes/data/disk.raw").stat().st_blocks >= (4 << 20) // 512
        a.ok("prepare", id="iso", url=f"file://{box.root / 'm.iso'}", format="iso")
        a.ok("create", id="medium", content="iso")
        a.ok("start", id="a", root="a-root", memory=MEMORY, mount=[{"volume": "medium"}, {"volume": "data", "ro": True}],
             user_data="echo vm: media $(ls /sys/block | grep sr | tr '\\n' ' ')\n")
        a.until(lambda e: e["event"] == "log" and "vm: disk vdb" in e["line"] and "ro=1" in e["line"])
        a.line("vm: media sr0 sr1")
        a.end()


def test_the_next_agent_adopts_a_machine_and_its_console():
    with machine() as box:
        a = box.agent()
        boot(a, linux_image(box), memory=MEMORY, user_data=COUNT, meta_data="x")
        a.line("vm: line 3")
        pid = set(box.processes())
        a.kill()
        # The monitor is free now. Asked by whoever has got that far, qemu opens no file that is not its own.
        assert not has_landlock() or "Permission denied" in monitor(box.root / "run/qemu/a", {"execute": "blockdev-add", "arguments": {
            "driver": "raw", "node-name": "x", "file": {"driver": "file", "filename": "/etc/passwd"}, "read-only": True}})["error"]["desc"]
        b = box.agent()
        found = b.each()["instance", "a"]
        assert found["state"] == "RUNNING" and found["adopted"] and found["started"] > 0, found
        b.until(lambda e: e["event"] == "log" and "vm: line" in e["line"])
        first = int(b.lines()[-1].split()[-1])
        assert set(box.processes()) == pid
        # None is lost between the two: what the first had not read waits in the pipe.
        last = max(int(x.split()[-1]) for x in a.lines() if x.startswith("vm: line"))
        assert first <= last + 1, (first, last)
        assert b.do("purge", kind="volume", id="a-root") != "ok"
        b.ok("start", id="a", root="a-root", memory=MEMORY, user_data=COUNT, meta_data="x")
        b.ok("metrics", id="a")
        b.ok("stop", id="a")
        b.until(lambda e: e["event"] == "change" and e["id"] == "a" and e["state"] == "HALTED")
        assert "vm: button" in "\n".join(b.lines())
        # One that ends while there is no agent is found ended.
        b.ok("start", id="a", root="a-root", memory=MEMORY)
        b.until(lambda e: e["event"] == "change" and e["id"] == "a" and e["state"] == "RUNNING")
        b.kill()
        while box.processes():
            for p in box.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(p), 9)
            time.sleep(0.01)
        c = box.agent()
        if c.each()["instance", "a"]["state"] != "HALTED":  # nobody has reaped it yet
            c.state("a", "HALTED", error=True)
        c.ok("purge", kind="instance", id="a")
        c.state("a", "INVALID")
        assert not list((box.root / "run/qemu").iterdir())
        c.end()


def test_images_that_name_other_files_are_refused():
    with machine() as box:
        a = box.agent()
        secret = box.root / "secret"
        secret.write_bytes(b"s" * 65536)
        run("qemu-img", "create", "-f", "qcow2", "-b", secret, "-F", "raw", box.root / "backed.qcow2")
        run("qemu-img", "create", "-f", "qcow2", "-o", f"data_file={box.root / 'data'},data_file_raw=on", box.root / "external.qcow2", "1M")
        run("qemu-img", "create", "-f", "vmdk", "-b", sector_image(box, "base.vmdk", form="vmdk"), "-F", "vmdk", box.root / "child.vmdk")
        whole = bytearray(sector_image(box).read_bytes())
        (box.root / "flat.vmdk").write_text(f'# Disk DescriptorFile\nversion=1\nCID=1\nparentCID=ffffffff\ncreateType="monolithicFlat"\nRW 128 FLAT "{secret}" 0\n')
        sparse = bytearray((box.root / "base.vmdk").read_bytes())
        sparse[12:20] = bytes(8)  # qemu would follow its descriptor
        (box.root / "hollow.vmdk").write_bytes(sparse)
        (box.root / "corrupt.qcow2").write_bytes(whole[:72] + struct.pack(">Q", 2) + whole[80:])
        (box.root / "huge.qcow2").write_bytes(whole[:24] + struct.pack(">Q", 1 << 62) + whole[32:])
        (box.root / "cut.qcow2").write_bytes(whole[:60])
        (box.root / "text.qcow2").write_text("<html>not found</html>")
        for name, said in (("backed.qcow2", "names a backing file"), ("external.qcow2", "names an external data file"), ("child.vmdk", "names a parent"),
                           ("flat.vmdk", "no VMDK of one file"), ("hollow.vmdk", "a VMDK of 0 sectors"), ("corrupt.qcow2", "marked as corrupt"),
                           ("huge.qcow2", "larger than is allowed"), ("cut.qcow2", "no qcow2"), ("text.qcow2", "no qcow2")):
            a.ok("prepare", id=name, url=f"file://{box.root / name}", format=name.split(".")[1])
            assert said in (error := a.fails(name)), (name, error)
        a.ok("prepare", id="other", url=f"file://{box.root / 'b.qcow2'}", format="qcow2", sha256="0" * 64)
        assert "not sha256:000" in a.fails("other")
        # A raw disk is what it is, whatever it looks like: the guest sees the bytes, and nothing is opened for it.
        a.ok("prepare", id="raw", url=f"file://{box.root / 'backed.qcow2'}", format="raw")
        a.ok("create", id="as-it-is", content="raw")
        a.state("as-it-is", "CREATED_VOLUME")
        assert b"ssss" not in (box.root / "persist/volumes/as-it-is/disk.qcow2").read_bytes()
        assert [p.name for p in (box.root / "persist/contents").iterdir()] == ["raw"]
        a.end()
        # Should one deceive even qemu-img, there is still nothing that qemu-img may open.
        programs = box.root / "bin"
        programs.mkdir()
        (programs / "qemu-img").write_text(f"#!/bin/sh\n/usr/bin/cat {secret} >/dev/null 2>&1 && echo has read it >&2 || echo cannot read it >&2\nexit 1\n")
        (programs / "qemu-img").chmod(0o755)
        a = box.agent(prefix=["env", f"PATH={programs}:{os.environ['PATH']}"])
        a.ok("create", id="deceived", content="raw")
        assert ("cannot read it" if has_landlock() else "has read it") in (error := a.fails("deceived")), error
        a.end()


def test_an_artifact_holds_a_disk():
    with machine() as box:
        a = box.agent()
        disk, other = sector_image(box, text="hello from an artifact").read_bytes(), b"a kernel"
        role = {"annotations": {"org.lfedge.eci.role": "disk-root"}}
        layers = [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": f"sha256:{sha(b)}", "size": len(b), **more}
                  for b, more in ((other, {}), (disk, role))]
        config = b"{}"
        manifest = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "layers": layers,
                               "config": {"mediaType": "x", "digest": f"sha256:{sha(config)}", "size": len(config)}}).encode()
        index = {"schemaVersion": 2, "manifests": [{"mediaType": MANIFEST, "digest": f"sha256:{sha(manifest)}", "size": len(manifest)}]}
        blobs = box.root / "artifact/blobs/sha256"
        blobs.mkdir(parents=True)
        (box.root / "artifact/index.json").write_text(json.dumps(index))
        for blob in (disk, other, config, manifest):
            (blobs / sha(blob)).write_bytes(blob)
        a.ok("prepare", id="image", url=f"file://{box.root}/artifact", format="qcow2", sha256=sha(manifest))
        a.ok("create", id="root", content="image")
        a.ok("start", id="a", root="root", memory=64 << 20)
        a.line("hello from an artifact")
        assert sorted(p.name for p in (box.root / "persist/contents/image").iterdir()) == ["disk", "manifest.json"]
        # A tree of files is no disk for it.
        a.ok("stop", id="a", kill=True)
        a.until(lambda e: e["event"] == "change" and e["id"] == "a" and e["state"] == "HALTED")
        a.ok("create", id="tree")
        a.ok("start", id="a", root="root", mount={"volume": "tree"})
        assert "is no disk" in a.fails("a")
        a.end()


def test_without_qemu_a_disk_says_what_to_install():
    with machine() as box:
        programs = box.root / "bin"
        programs.mkdir()
        for name in ("crun", "curl"):
            (programs / name).symlink_to(shutil.which(name))
        for present, said in ((None, "there is no qemu-system-x86_64; install the package qemu-system-x86"),
                              ("qemu-system-x86_64", "there is no qemu-img; install the package qemu-utils")):
            if present:
                (programs / present).symlink_to(shutil.which(present))
            a = box.agent(prefix=["env", f"PATH={programs}"])
            a.ok("prepare", id="disk", url=f"file://{sector_image(box)}", format="qcow2")
            assert said in (error := a.fails("disk")), error
            a.end()


# ---- applications ---------------------------------------------------------------------------------------------------------------

# What a machine is told to do at its first start.
TASK = """printf '%01000d' 0 >/tmp/posted
wget -q -O /dev/null --header 'Content-Type: application/json' --post-file /tmp/posted http://169.254.169.254/eve/v1/kubeconfig && echo "vm: posted"
""" + COUNT


def deploy(d, a, name, image, generation=0, **more):
    """An application whose first volume is a disk."""
    (d.root / "images").mkdir(exist_ok=True)
    (d.root / "images" / name).write_bytes(image)
    content, volume = uuid_of("content" + name), uuid_of("volume" + name)
    a.publish("ContentTreeConfig", content, {"ContentID": content, "DatastoreIDList": [uuid_of("store")], "RelativeURL": name, "Format": 3,
                                             "ContentSha256": sha(image), "MaxDownloadSize": 0, "DisplayName": name})
    a.publish("VolumeConfig", f"{volume}#{generation}", {"VolumeID": volume, "ContentID": content, "VolumeContentOriginType": 2,
                                                         "GenerationCounter": generation, "DisplayName": name, "MaxVolSize": 64 << 20})
    more.setdefault("FixedResources", {"Memory": MEMORY // 1024, "VCpus": 1, "VirtualizationMode": 1})
    more.setdefault("VolumeRefConfigList", [{"VolumeID": volume, "GenerationCounter": generation, "AppUUID": uuid_of(name), "MountDir": ""}])
    return d.publish_app(a, name, **more)


def count(d, a, app):
    return max((int(x.split()[-1]) for x in d.lines(a, app) if x.startswith("vm: line")), default=0)


def test_a_machine_has_its_address_by_dhcp_and_its_metadata_and_outlives_the_agent():
    with Device() as d:
        a = d.agent()
        d.introduce(a)
        d.publish_network(a)
        app = deploy(d, a, "vm", linux(), env=TASK)
        status = a.state(app, RUNNING)
        assert status["AppNetAdapters"][0]["AssignedAddresses"]["IPv4Addrs"] == [{"Address": "10.77.0.2", "AssignedBy": 4}], status
        lines = "\n".join(d.wait_line(a, app, "vm: line 3"))
        assert f"vm: lease 10.77.0.2/24 via 10.77.0.1 dns {OUTSIDE} host {app}" in lines, lines
        assert "vm: metadata {" in lines and "vm: posted" in lines and f"vm: disk vda {(64 << 20) // 512}" in lines, lines
        path = d.root / "persist/status/msrv/AppInstMetaData" / f"{app}-1.json"
        assert base64.b64decode(json.loads(path.read_text())["Data"]) == b"0" * 1000
        metric = a.until(lambda: (m := a.status(app, "DomainMetric")) and m["UsedMemory"] > 10 and m, "no metrics")
        assert metric["Activated"] and (not limits_memory() or metric["AllocatedMB"] == MEMORY >> 20), metric
        disk = a.until(lambda: next((v for (topic, _), v in a.values.items() if topic == "AppDiskMetric"), None), "the disk is not measured")
        assert disk["DiskPath"].endswith("/disk.qcow2") and disk["UsedBytes"] > 10 << 20 and disk["ProvisionedBytes"] == 64 << 20, disk
        # Killed, the agent leaves it running, and the next one takes it over: its words, its interface, its address.
        pids = d.processes()
        a.kill()
        a = d.agent()
        d.introduce(a)
        d.publish_network(a)
        deploy(d, a, "vm", linux(), env=TASK)
        a.state(app, RUNNING)
        d.wait_line(a, app, f"vm: line {count(d, a, app) + 5}")
        assert d.processes() == pids and "\n".join(d.lines(a, app)).count("vm: up") == 1
        # A restart presses its button and starts it again.
        deploy(d, a, "vm", linux(), env=TASK, RestartCmd={"Counter": 1})
        a.until(lambda: a.states(app)[-3:] == [HALTED, 114, RUNNING], "no restart")
        d.wait_line(a, app, "vm: button")
        end = time.monotonic() + 60
        while "\n".join(d.lines(a, app)).count("vm: posted") < 2:
            assert time.monotonic() < end, d.lines(a, app)
            with contextlib.suppress(AssertionError):
                a.until(lambda: False, seconds=0.2)
        # A purge gives it a new disk.
        volume = uuid_of("volumevm")
        a.publish("VolumeConfig", f"{volume}#0", None)
        deploy(d, a, "vm", linux(), generation=1, env="echo vm: purged\n", RestartCmd={"Counter": 1}, PurgeCmd={"Counter": 1})
        d.wait_line(a, app, "vm: purged")
        a.until(lambda: a.status(app)["State"] == RUNNING and not a.status(app)["PurgeInprogress"], "no purge")
        # All of it goes again.
        for topic, key in (("AppInstanceConfig", app), ("VolumeConfig", f"{volume}#1"), ("ContentTreeConfig", uuid_of("contentvm")),
                           ("NetworkInstanceConfig", d.network)):
            a.publish(topic, key, None)
        a.gone("AppInstanceStatus", app)
        a.gone("NetworkInstanceStatus", d.network)
        a.gone("VolumeStatus", f"{volume}#1")
        a.gone("ContentTreeStatus", uuid_of("contentvm"))
        a.end()
        assert not d.namespaces() and not d.links() and not d.processes(), (d.namespaces(), d.links(), d.processes())
        assert not list((d.root / "persist/runtime/volumes").iterdir()) and not list((d.root / "persist/runtime/contents").iterdir())


def test_without_qemu_an_application_says_what_to_install():
    with Device() as d:
        programs = d.root / "bin"
        programs.mkdir()
        for name in ("nsenter", "ip", "nft", "crun", "curl"):
            (programs / name).symlink_to(shutil.which(name))
        before = os.environ["PATH"]
        try:
            os.environ["PATH"] = str(programs)
            a = d.agent()
        finally:
            os.environ["PATH"] = before
        d.introduce(a)
        d.publish_network(a)
        app = deploy(d, a, "vm", b"anything")
        status = a.until(lambda: (s := a.status(app)) and "install the package qemu-system-x86" in s["Error"] and s, "no error")
        assert status["State"] < 111, status
        a.end()


class Images(http.server.BaseHTTPRequestHandler):
    files = {}

    def do_GET(self):
        data = self.files.get(self.path)
        self.send_response(200 if data else 404)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        self.wfile.write(data or b"")

    def log_message(self, *_):
        pass


def test_an_application_of_a_controller_runs_in_a_machine():
    with Place() as place:
        Images.files = {"/vm/linux.qcow2": linux()}
        server = http.server.ThreadingHTTPServer((place.network.ours, 0), Images)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place.server.ok("POST", "/apis/storage.k8s.io/v1/storageclasses", {
            "metadata": {"name": "files"}, "provisioner": "eve",
            "parameters": {"type": "http", "URL": f"http://{place.network.ours}:{server.server_port}", "path": "vm"}})
        place.post("NetworkConfig", "net", {"ip": "dhcp"})
        place.post("DeviceNetwork", "net", {"networkConfig": "net"})
        place.post("Image", "linux", {"ref": "linux.qcow2", "storageClass": "files", "format": "qcow2", "sha256": sha(linux()), "size": "64Mi"})
        place.post("Application", "machine", {"containers": [{"name": "machine", "image": "linux", "resources": {
            "limits": {"cpu": "1", "memory": "192Mi", "storage": "64Mi"}}}]})
        place.agent.start()
        place.uuid()
        application = place.site.path("applications", "machine")
        state = place.agent.root / "run/apps/qemu"
        try:
            for line in ("vm: up on 1 cpu", "vm: lease 10.", "vm: metadata {"):
                wait_until(lambda: any(line in e["content"] for e in place.read("log", limit=1000)), 120, line)
            wait_until(lambda: "RUNNING" in json.dumps(place.server.ok("GET", application)["status"]).upper(), 60, "it to run")
        finally:
            place.server.ok("DELETE", application)
            wait_until(lambda: not any(state.iterdir()), 60, "the machine to end")
            server.shutdown()
