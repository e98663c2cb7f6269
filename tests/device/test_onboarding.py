# SPDX-License-Identifier: Apache-2.0
"""Who may register: the seven cases of the policy over the wire, what users see of each decision, revocation, and a fleet at once."""
import base64
import concurrent.futures

import eve
import seth
from fleet import GROUP, Site, shared_site as site
from seth import wait_until

API = "eve.lfedge.org/v1beta1"
SYSTEM = f"{GROUP}/namespaces/eve-system/enrollmentrequests"
MERGE = {"Content-Type": "application/merge-patch+json"}


def make(s, ns, plural, kind, name, **spec):
    return s.ok("POST", f"{GROUP}/namespaces/{ns}/{plural}", {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec})


def text(identity):
    return base64.b64encode(identity.pem).decode()


def stranger(s, **more):
    """A device with an onboarding certificate that nobody knows."""
    return site(s).device(**{"onboarding": eve.onboarding_identity(), **more})


def events(s, ns, name):
    return {e["reason"]: e for e in s.ok("GET", f"/api/v1/namespaces/{ns}/events")["items"] if e["involvedObject"]["name"] == name}


def let_in(s, device, status=201):
    """Registers; what wrote the object that lets it in is answered before its event has come everywhere."""
    wait_until(lambda: device.register().status == status, what=f"status {status}")
    device.certs()
    assert device.ask_uuid()[0].status == 200
    return device


def devices(s, ns):
    return {o["metadata"]["name"]: o for o in s.ok("GET", f"{GROUP}/namespaces/{ns}/devices")["items"]}


def request_of(device):
    return f"{SYSTEM}/{device.identity.der_hash.hex()}"


def test_a_device_by_its_certificate(s):
    ns, d = s.namespace(), stranger(s)
    make(s, ns, "devices", "Device", "known", certificate=text(d.identity))
    let_in(s, d, 200)
    assert devices(s, ns)["known"]["status"]["uuid"] == d.uuid
    assert "RegisteredAgain" in events(s, ns, "known")


def test_a_planned_device(s):
    ns, d = s.namespace(), stranger(s)
    make(s, ns, "devices", "Device", "planned", onboard=text(d.onboarding), serial=d.serial)
    assert stranger(s, onboarding=d.onboarding).register().status == 403  # another serial number
    let_in(s, d)
    planned = devices(s, ns)["planned"]
    assert planned["status"]["uuid"] == d.uuid and planned["spec"]["certificate"].encode() == d.identity.pem
    assert "Registered" in events(s, ns, "planned")
    assert d.register().status == 200
    assert stranger(s, onboarding=d.onboarding, serial=d.serial).register().status == 409
    wait_until(lambda: "RegistrationConflict" in events(s, ns, "planned"), what="the Event of the conflict")


def test_an_authority_of_devices(s):
    ns, ca = s.namespace(), eve.issue("maker", is_ca=True)
    make(s, ns, "devicecertificateauthorities", "DeviceCertificateAuthority", "maker", certificate=text(ca))
    d = let_in(s, stranger(s, identity=eve.device_identity(ca)))
    made = devices(s, ns)[f"eve-{d.identity.der_hash.hex()[:8]}"]
    assert made["metadata"]["annotations"]["eve.lfedge.org/onboarded-by"] == "DeviceCertificateAuthority/maker", made
    assert made["metadata"]["name"] in events(s, ns, "maker")["DeviceRegistered"]["message"]


def test_an_onboarding_certificate(s):
    here = Site(s)
    d = let_in(s, here.device())
    made = here.object(d)
    assert made["metadata"]["annotations"] == {"eve.lfedge.org/activate": "true", "eve.lfedge.org/onboarded-by": "OnboardCertificate/onboard"}, made
    assert made["spec"]["serial"] == d.serial and made["spec"]["onboard"].encode() == here.onboarding.pem
    assert "DeviceRegistered" in events(s, here.ns, "onboard")


def test_an_authority_of_onboarding_certificates(s):
    ns, ca = s.namespace(), eve.issue("integrator", is_ca=True)
    make(s, ns, "onboardcertificateauthorities", "OnboardCertificateAuthority", "integrator", certificate=text(ca))
    d = let_in(s, stranger(s, onboarding=eve.onboarding_identity(ca)))
    assert devices(s, ns)[f"eve-{d.identity.der_hash.hex()[:8]}"]
    assert "DeviceRegistered" in events(s, ns, "integrator")


def test_open_registration():
    with seth.Server() as s:
        ns = s.namespace()
        options = "/api/v1/namespaces/eve-system/configmaps/global-options"
        d = stranger(s)
        assert d.register().status == 403
        s.ok("PATCH", options, {"data": {"registration": "open", "registration.namespace": ns}}, MERGE)
        let_in(s, d)
        assert devices(s, ns) and "DeviceRegistered" in events(s, "eve-system", "global-options")
        s.ok("PATCH", options, {"data": {"registration": "closed"}}, MERGE)
        wait_until(lambda: stranger(s).register().status == 403, what="registration to be closed")


def test_a_request_that_is_approved(s):
    ns, d = s.namespace(), stranger(s, soft_serial="soft-1")
    assert d.register().status == 403
    request = s.ok("GET", request_of(d))
    assert request["spec"]["serial"] == d.serial and request["spec"]["softSerial"] == "soft-1" and request["spec"]["sourceAddress"] == "127.0.0.1", request
    assert request["spec"]["certificate"].encode() == d.identity.pem
    assert "RegistrationRefused" in events(s, "eve-system", request["metadata"]["name"])
    assert d.register().status == 403
    s.ok("PATCH", request_of(d) + "/status", {"status": {"namespace": ns, "conditions": [{"type": "Approved", "status": "True"}]}}, MERGE)
    name = wait_until(lambda: s.ok("GET", request_of(d))["status"].get("device"), what="the Device of the request")
    assert name in devices(s, ns)
    let_in(s, d, 200)
    s.ok("DELETE", f"{GROUP}/namespaces/{ns}/devices/{name}")  # a revocation, however it came in
    wait_until(lambda: d.config()[0].status == 401, what="the device to be refused")
    assert d.register().status == 403 and not devices(s, ns)


def test_a_request_that_is_not_needed_any_more_goes(s):
    here = Site(s, serials=["other"])
    d = here.device(serial="mine")
    assert d.register().status == 403
    s.ok("GET", request_of(d))
    s.ok("PATCH", here.path("onboardcertificates", "onboard"), {"spec": {"serials": ["mine"]}}, MERGE)
    let_in(s, d)
    wait_until(lambda: s.request("GET", request_of(d))[0] == 404, what="the request to go")


def test_deleted_and_registered_again_is_another(s):
    here = Site(s)
    d = here.onboarded()
    before = d.uuid
    here.delete(d)
    wait_until(lambda: d.ask_uuid()[0].status == 401, what="the device to be refused")
    let_in(s, d)
    assert d.uuid != before


def test_at_once(s):
    """One device, many registrations at once: one Device; and many devices with one identity: one of them."""
    here = Site(s)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        d = here.device()
        answers = sorted(a.status for a in pool.map(lambda _: d.register(), range(8)))
        assert answers == [200] * 7 + [201], answers
        assert len(devices(s, here.ns)) == 1
        rivals = [here.device(serial="same") for _ in range(8)]
        answers = sorted(a.status for a in pool.map(lambda r: r.register(), rivals))
        assert answers == [201] + [409] * 7, answers
    assert len(devices(s, here.ns)) == 2


def test_over_a_restart():
    """What onboarding knows it learns again from the objects."""
    with seth.Server() as s:
        here = Site(s)
        d = here.onboarded()
        refused = stranger(s)
        assert refused.register().status == 403
        s.stop()
        s.start()
        wait_until(lambda: d.register().status == 200, what="the device to be known again")
        assert here.device(serial=d.serial).register().status == 409
        assert refused.register().status == 403
        assert len(s.ok("GET", SYSTEM)["items"]) == 1
        let_in(s, here.device())
