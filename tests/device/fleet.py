# SPDX-License-Identifier: Apache-2.0
"""Devices of a test: a namespace with an onboarding certificate, devices that register with it, and what users see of them.

    site = Site(server)
    d = site.onboarded()                       # an eve.Device with its uuid
    site.object(d)                             # its Device
    site.read(d, "log", app=...)               # what the server keeps of it: a list of JSON objects
    with neighbour(d): ...                     # d goes on polling, and is answered every time"""
import base64
import concurrent.futures
import contextlib
import json
import threading
import time
import urllib.parse

import eve
import seth

GROUP = "/apis/eve.lfedge.org/v1beta1"


class Site:
    def __init__(self, server, serials=None):
        self.server, self.ns, self.onboarding = server, server.namespace(), eve.onboarding_identity()
        spec = {"certificate": base64.b64encode(self.onboarding.pem).decode(), **({"serials": serials} if serials else {})}
        server.ok("POST", self.path("onboardcertificates"),
                  {"apiVersion": "eve.lfedge.org/v1beta1", "kind": "OnboardCertificate", "metadata": {"name": "onboard"}, "spec": spec})
        self.root_pem = (server.dir / "ca.pem").read_bytes()

    def path(self, plural, name=None):
        return f"{GROUP}/namespaces/{self.ns}/{plural}" + (f"/{name}" if name else "")

    def device(self, **more):
        """A device that has not yet said anything."""
        return eve.Device("127.0.0.1", self.server.device_port, self.root_pem, **{"onboarding": self.onboarding, **more})

    def onboarded(self, **more):
        return self.device(**more).onboard()

    def many(self, n, threads=16):
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda _: self.onboarded(), range(n)))

    def name(self, device):
        """Of a Device that a registration made."""
        return f"eve-{device.identity.der_hash.hex()[:8]}"

    def object(self, device):
        return self.server.ok("GET", self.path("devices", self.name(device)))

    def annotate(self, device, **annotations):
        body = {"metadata": {"annotations": {f"eve.lfedge.org/{k}": v for k, v in annotations.items()}}}
        return self.server.ok("PATCH", self.path("devices", self.name(device)), body, {"Content-Type": "application/merge-patch+json"})

    def delete(self, device):
        return self.server.ok("DELETE", self.path("devices", self.name(device)))

    def tell(self, device, config):
        """A whole configuration in place of what is composed for the device."""
        assert device.config(known="")[0].status == 200  # so that there is a DeviceConfig
        path = self.path("deviceconfigs", self.name(device))

        def is_written():
            o = self.server.ok("GET", path)
            o["metadata"].setdefault("annotations", {})["eve.lfedge.org/composed"] = "false"
            o["spec"] = {"config": config}
            status, answer = self.server.request("PUT", path, o)
            assert status in (200, 409), answer
            return status == 200

        seth.wait_until(is_written, what="the configuration to be written")

    def read(self, device, stream, **query):
        """The lines that are stored, oldest first."""
        status, data = self.server.request("GET", f"/edgenode/{device.uuid}/{stream}?{urllib.parse.urlencode(query)}", raw=True)
        assert status == 200, (status, data)
        return [json.loads(line) for line in data.splitlines()]


_shared = {}


def shared_site(server):
    """The one Site of the functions that share a server."""
    if server not in _shared:
        _shared[server] = Site(server)
    return _shared[server]


@contextlib.contextmanager
def neighbour(device, period=0.1):
    """While something bad is tried, this device polls as ever, a connection each time: every poll must succeed."""
    stop, results = threading.Event(), []

    def poll():
        while not stop.is_set():
            begin = time.monotonic()
            try:
                results.append((device.config()[0].status, time.monotonic() - begin))
            except Exception as e:
                results.append((repr(e), time.monotonic() - begin))
            stop.wait(period)

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield results
        seth.wait_until(lambda: len(results) > 3, what="the neighbour to be served")
    finally:
        stop.set()
        thread.join(eve.SECONDS)
    bad = [r for r in results if r[0] not in (200, 304)]
    assert not bad, f"{len(bad)} of {len(results)} polls of another device failed: {bad[:5]}"
