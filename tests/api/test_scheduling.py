# SPDX-License-Identifier: Apache-2.0
"""Where Applications go: as a user of kubectl sees it."""
import json

from seth import Server, wait_until

GROUP = "eve.lfedge.org/v1beta1"
NETWORKS = "k8s.v1.cni.cncf.io/networks"


def path(ns, plural, name):
    return f"/apis/{GROUP}/namespaces/{ns}/{plural}/{name}"


def thing(kind, name, spec=None, labels=None, annotations=None):
    return {"apiVersion": GROUP, "kind": kind, "metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}}, "spec": spec or {}}


def device(name, **labels):
    return thing("Device", name, labels=labels)


def application(name, memory="1Gi", cpu="1", networks=None, **spec):
    container = {"name": "main", "image": "web", "resources": {"limits": {"memory": memory, "cpu": cpu}}}
    return thing("Application", name, {"containers": [container], **spec}, annotations={NETWORKS: networks} if networks else None)


def apply(s, ns, *things):
    s.kubectl("-n", ns, "apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(things)}))


def room(s, ns, name, memory, cpu):
    patch = {"status": {"allocatable": {"memory": memory, "cpu": cpu}}}
    s.kubectl("-n", ns, "patch", "edev", name, "--subresource=status", "--type=merge", "-p", json.dumps(patch))


def fresh(s):
    """A namespace with an Image."""
    ns = s.namespace()
    apply(s, ns, thing("Image", "web", {"ref": "library/nginx:1.27", "storageClass": "eve-docker"}))
    return ns


def get(s, ns, name):
    return s.ok("GET", path(ns, "applications", name))


def condition(app, kind="Scheduled"):
    return next((c for c in app.get("status", {}).get("conditions", []) if c["type"] == kind), {})


def device_of(s, ns, name, expected):
    """Waits until it is there."""
    return wait_until(lambda: (app := get(s, ns, name)).get("status", {}).get("device") == expected and app, what=f"{name} on {expected}")


def refused(s, ns, name, reason, message=None):
    """Waits until it is told that it fits nowhere."""
    def is_so():
        app = get(s, ns, name)
        c = condition(app)
        return c.get("status") == "False" and c["reason"] == reason and message in (None, c["message"]) and app
    app = wait_until(is_so, what=f"{name} refused: {reason} {message or ''}; it is {condition(get(s, ns, name))}")
    assert "device" not in app["status"], app["status"]
    return app


def events(s, ns, reason):
    items = s.ok("GET", f"/api/v1/namespaces/{ns}/events")["items"]
    return [e for e in items if e["reason"] == reason]


def test_the_best_device_is_chosen_and_said(s):
    ns = fresh(s)
    apply(s, ns, device("small", site="north"), device("large", site="north"), device("far", site="south"))
    room(s, ns, "small", "2Gi", "4")
    room(s, ns, "large", "8Gi", "4")
    room(s, ns, "far", "64Gi", "32")
    apply(s, ns, application("web", nodeSelector={"site": "north"}))
    s.kubectl("-n", ns, "wait", "--for=condition=Scheduled", "eapp/web", "--timeout=30s")
    app = device_of(s, ns, "web", "large")
    assert condition(app)["message"] == "assigned to device 'large'"
    assert condition(app)["observedGeneration"] == app["metadata"]["generation"] == app["status"]["observedGeneration"]
    assert condition(app, "Accepted")["status"] == "True"
    event = wait_until(lambda: events(s, ns, "Scheduled"))[0]
    assert event["involvedObject"]["name"] == "web" and event["type"] == "Normal", event
    assert s.kubectl("-n", ns, "get", "eapp", "web", "-o", "jsonpath={.status.device}") == "large"


def test_selectors_by_name_label_and_affinity(s):
    ns = fresh(s)
    apply(s, ns, device("a", rack="3"), device("b", rack="7"), device("c"))
    term = {"matchExpressions": [{"key": "rack", "operator": "Gt", "values": ["5"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 10, "preference": {"matchExpressions": [{"key": "rack", "operator": "DoesNotExist"}]}}]}
    apply(s, ns, application("by-name", nodeSelector={"name": "c"}), application("by-label", nodeSelector={"rack": "3"}),
          application("by-term", affinity={"nodeAffinity": required}), application("by-wish", affinity={"nodeAffinity": preferred}))
    for name, expected in {"by-name": "c", "by-label": "a", "by-term": "b", "by-wish": "c"}.items():
        device_of(s, ns, name, expected)


def test_what_fits_nowhere_says_why_and_waits(s):
    ns = fresh(s)
    apply(s, ns, device("full", site="north"), device("far", site="south"), device("off", site="north"))
    room(s, ns, "full", "512Mi", "4")
    s.kubectl("-n", ns, "annotate", "edev", "off", "eve.lfedge.org/activate=false")
    apply(s, ns, application("web", nodeSelector={"site": "north"}))
    refused(s, ns, "web", "InsufficientResources",
            "0/3 devices are available: 1 didn't match its nodeSelector or nodeAffinity, 1 not active, 1 with insufficient memory. "
            "It asks for 1024Mi of memory and 1 cpu.")
    event = wait_until(lambda: events(s, ns, "FailedScheduling"))[0]
    assert event["type"] == "Warning" and event["message"].startswith("0/3 devices are available"), event
    room(s, ns, "full", "4Gi", "4")
    device_of(s, ns, "web", "full")


def test_room_is_counted_and_freed(s):
    ns = fresh(s)
    apply(s, ns, device("d"))
    room(s, ns, "d", "3Gi", "4")
    apply(s, ns, *(application(f"app-{i}") for i in range(5)))

    def placed():
        apps = [get(s, ns, f"app-{i}") for i in range(5)]
        settled = [condition(a).get("status") for a in apps]
        return None not in settled and [a["metadata"]["name"] for a in apps if a["status"].get("device") == "d"]
    first = wait_until(placed)
    assert len(first) == 3, first
    s.kubectl("-n", ns, "delete", "eapp", first[0], first[1])
    others = [n for n in (f"app-{i}" for i in range(5)) if n not in first]
    for name in others:
        device_of(s, ns, name, "d")


def test_a_device_that_comes_is_used(s):
    ns = fresh(s)
    apply(s, ns, application("web", nodeSelector={"name": "late"}))
    refused(s, ns, "web", "NoMatchingDevice", "0/0 devices are available.")
    apply(s, ns, device("late"))
    device_of(s, ns, "web", "late")


def test_a_choice_sticks(s):
    ns = fresh(s)
    apply(s, ns, device("d"))
    room(s, ns, "d", "2Gi", "2")
    apply(s, ns, application("web"))
    device_of(s, ns, "web", "d")
    apply(s, ns, device("larger"))
    room(s, ns, "larger", "64Gi", "64")
    room(s, ns, "d", "256Mi", "1")
    s.kubectl("-n", ns, "annotate", "edev", "d", "eve.lfedge.org/activate=false")
    s.kubectl("-n", ns, "label", "edev", "d", "more=x")
    # What is chosen after all that was chosen with all that in sight.
    apply(s, ns, application("second"))
    device_of(s, ns, "second", "larger")
    assert get(s, ns, "web")["status"]["device"] == "d"


def test_it_moves_when_its_device_goes_or_is_relabelled(s):
    ns = fresh(s)
    apply(s, ns, device("a", site="north"), device("b"))
    apply(s, ns, application("web", nodeSelector={"site": "north"}))
    device_of(s, ns, "web", "a")
    s.kubectl("-n", ns, "patch", "eapp", "web", "--subresource=status", "--type=merge", "-p",
              json.dumps({"status": {"state": "RUNNING", "statuses": [{"state": "RUNNING"}], "addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]}}))
    s.kubectl("-n", ns, "label", "edev", "a", "site-")
    app = refused(s, ns, "web", "NoMatchingDevice")
    assert "state" not in app["status"] and "addresses" not in app["status"], app["status"]
    assert app["status"]["statuses"] == [{"state": "RUNNING"}]
    assert condition(app, "Ready")["status"] == "Unknown"
    s.kubectl("-n", ns, "label", "edev", "b", "site=north")
    device_of(s, ns, "web", "b")
    apply(s, ns, device("c", site="north"))
    s.kubectl("-n", ns, "delete", "edev", "b")
    device_of(s, ns, "web", "c")


def test_networks_must_be_on_the_device(s):
    ns = fresh(s)
    apply(s, ns, thing("NetworkConfig", "dhcp", {"ip": "dhcp"}))
    apply(s, ns, thing("DeviceNetwork", "lan", {"networkConfig": "dhcp", "nodeSelector": {"lan": "yes"}}), device("a"), device("b", lan="yes"))
    apply(s, ns, application("web", networks="lan"), application("list", networks=json.dumps([{"name": "lan"}])))
    device_of(s, ns, "web", "b")
    device_of(s, ns, "list", "b")
    s.kubectl("-n", ns, "label", "edev", "b", "lan-")
    refused(s, ns, "web", "MissingNetwork", "0/2 devices are available: 2 without its networks.")
    s.kubectl("-n", ns, "label", "edev", "a", "lan=yes")
    device_of(s, ns, "web", "a")


def test_claims_hold_their_applications(s):
    ns = fresh(s)
    apply(s, ns, device("a"), device("b"))
    room(s, ns, "a", "2Gi", "4")
    room(s, ns, "b", "64Gi", "64")
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
             "spec": {"storageClassName": "eve-blank", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    apply(s, ns, claim, thing("Volume", "data-a", {"claim": "data", "device": "a"}))
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    apply(s, ns, application("web", volumes=volumes))
    device_of(s, ns, "web", "a")


def test_choices_survive_a_restart():
    with Server() as s:
        ns = fresh(s)
        apply(s, ns, device("a"), device("b"), device("c"))
        for name in "abc":
            room(s, ns, name, "4Gi", "8")
        apply(s, ns, *(application(f"app-{i}") for i in range(14)))

        def settled():
            apps = s.ok("GET", f"/apis/{GROUP}/namespaces/{ns}/applications")["items"]
            return all(condition(a) for a in apps) and {a["metadata"]["name"]: a["status"].get("device") for a in apps}
        before = wait_until(settled)
        assert sorted(d or "" for d in before.values()) == ["", ""] + ["a"] * 4 + ["b"] * 4 + ["c"] * 4, before
        s.stop()
        s.start()
        waiting = next(n for n, d in before.items() if not d)
        s.kubectl("-n", ns, "delete", "eapp", "--field-selector", f"metadata.name={next(n for n, d in before.items() if d)}")
        wait_until(lambda: any(settled().get(n) for n, d in before.items() if not d), what=f"{waiting} or another that waited")
        after = settled()
        assert all(after[n] == d for n, d in before.items() if d and n in after), (before, after)
