# SPDX-License-Identifier: Apache-2.0
"""ApplicationDeployments, -DaemonSets and -StatefulSets with the real server and kubectl; the test reports what devices would."""
import collections
import contextlib
import json
import threading

import yaml
from expect import MERGE
from seth import unique, wait_until

GROUP = "/apis/eve.lfedge.org/v1beta1"
REVISION = "eve.lfedge.org/revision"
NOW = "2026-01-01T00:00:00Z"


def path(ns, plural, name=None):
    return f"{GROUP}/namespaces/{ns}/{plural}" + (f"/{name}" if name else "")


def workload(kind, name="web", image="one", **spec):
    return {"apiVersion": "eve.lfedge.org/v1beta1", "kind": kind, "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}, "annotations": {"example.com/why": "because"}},
                                  "spec": {"containers": [{"name": "main", "image": image}]}}, **spec}}


def apply(s, ns, *objects):
    s.kubectl("apply", "-n", ns, "-f", "-", input=yaml.safe_dump_all(objects))


def home(s):
    """A namespace with two images."""
    ns = s.namespace()
    for name in "one", "two":
        s.ok("POST", path(ns, "images"), {"apiVersion": "eve.lfedge.org/v1beta1", "kind": "Image", "metadata": {"name": name},
                                         "spec": {"ref": f"library/{name}:1", "storageClass": "eve-docker"}})
    return ns


def applications(s, ns):
    return {a["metadata"]["name"]: a for a in s.ok("GET", path(ns, "applications"))["items"]}


def image_of(application):
    return application["spec"]["containers"][0]["image"]


def is_ready(application):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in application.get("status", {}).get("conditions", []))


def report(s, ns, plural, name, status="True"):
    """Sets condition Ready as the report of a device would; False when the object is gone."""
    while True:
        code, o = s.request("GET", path(ns, plural, name))
        if code == 404:
            return False
        conditions = o.setdefault("status", {}).setdefault("conditions", [])
        conditions[:] = [c for c in conditions if c["type"] != "Ready"]
        conditions.append({"type": "Ready", "status": status, "reason": "Test", "message": "", "lastTransitionTime": NOW})
        code, body = s.request("PUT", path(ns, plural, name) + "/status", o)
        if code in (200, 404):
            return code == 200
        assert code == 409, body


class Seen:
    """What a watch of Applications saw at worst, event by event."""

    def __init__(self):
        self.now = {}
        self.max_live, self.min_ready, self.first_order, self.duplicates = 0, None, [], []

    def take(self, event):
        o = event["object"]
        name = o["metadata"]["name"]
        if event["type"] == "DELETED":
            self.now.pop(name, None)
        else:
            if name not in self.now:
                self.first_order.append(name)
            self.now[name] = o
        places = collections.Counter(a["spec"].get("nodeSelector", {}).get("name") for a in self.now.values())
        self.duplicates += [p for p, n in places.items() if p and n > 1]
        self.max_live = max(self.max_live, len(self.now))
        n_ready = sum(map(is_ready, self.now.values()))
        self.min_ready = n_ready if self.min_ready is None else min(self.min_ready, n_ready)


@contextlib.contextmanager
def devices_report(s, ns, only=lambda a: True):
    """While this lasts every Application becomes ready when it appears, in a watch that also remembers the worst it saw."""
    seen = Seen()
    stop = threading.Event()
    start = s.ok("GET", path(ns, "applications"))
    for a in start["items"]:
        seen.now[a["metadata"]["name"]] = a
    seen.max_live, seen.min_ready = len(seen.now), sum(map(is_ready, seen.now.values()))

    def run():
        for a in start["items"]:
            if not is_ready(a) and only(a):
                report(s, ns, "applications", a["metadata"]["name"])
        version = start["metadata"]["resourceVersion"]
        for event in s.watch(path(ns, "applications") + f"?watch=true&resourceVersion={version}"):
            seen.take(event)
            if stop.is_set():
                return
            o = event["object"]
            if event["type"] == "ADDED" and only(o) and not is_ready(o):
                report(s, ns, "applications", o["metadata"]["name"])

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        # One more event ends the watch.
        s.ok("POST", path(ns, "applications"), {"apiVersion": "eve.lfedge.org/v1beta1", "kind": "Application", "metadata": {"name": unique("end")},
                                               "spec": {"containers": [{"name": "main", "image": "one"}]}})
        thread.join(30)
        assert not thread.is_alive()


def ours(s, ns):
    return {n: a for n, a in applications(s, ns).items() if not n.startswith("end-")}


def status(s, ns, plural, name="web"):
    return s.ok("GET", path(ns, plural, name)).get("status", {})


def settled(s, ns, plural, **expected):
    """Waits until the status has these counts for the generation there is."""
    def check():
        o = s.ok("GET", path(ns, plural, "web"))
        st = o.get("status", {})
        return st.get("observedGeneration") == o["metadata"]["generation"] and all(st.get(k) == v for k, v in expected.items()) and st
    try:
        return wait_until(check, 60, f"{expected}")
    except AssertionError:
        raise AssertionError(f"{expected} but {json.dumps(status(s, ns, plural))}")


def events(s, ns, name="web"):
    return {e["reason"]: e for e in s.ok("GET", f"/api/v1/namespaces/{ns}/events")["items"] if e["involvedObject"]["name"] == name}


# ---- ApplicationDeployment

def test_a_deployment_from_kubectl_apply_to_its_end(s):
    ns = home(s)
    with devices_report(s, ns):
        apply(s, ns, workload("ApplicationDeployment", replicas=3))
        s.kubectl("wait", "-n", ns, "--for=condition=Available", "--timeout=60s", "appdep/web")
        settled(s, ns, "applicationdeployments", replicas=3, updatedReplicas=3, readyReplicas=3, availableReplicas=3, unavailableReplicas=0,
                selector="app=web")
        s.kubectl("scale", "-n", ns, "--replicas=5", "appdep/web")
        settled(s, ns, "applicationdeployments", replicas=5, availableReplicas=5)
        assert s.ok("GET", path(ns, "applicationdeployments", "web") + "/scale")["status"] == {"replicas": 5, "selector": "app=web"}
        s.kubectl("scale", "-n", ns, "--replicas=2", "appdep/web")
        settled(s, ns, "applicationdeployments", replicas=2, availableReplicas=2)
    made = ours(s, ns)
    revisions = s.ok("GET", f"/apis/apps/v1/namespaces/{ns}/controllerrevisions")["items"]
    owner = s.ok("GET", path(ns, "applicationdeployments", "web"))
    assert len(made) == 2 and len(revisions) == 1
    for name, a in made.items():
        meta = a["metadata"]
        assert name.startswith(revisions[0]["metadata"]["name"] + "-") and len(name.rsplit("-", 1)[1]) == 5
        assert meta["labels"] == {"app": "web", REVISION: revisions[0]["metadata"]["labels"][REVISION]}
        assert meta["annotations"] == {"example.com/why": "because"}
        assert meta["ownerReferences"] == [{"apiVersion": "eve.lfedge.org/v1beta1", "kind": "ApplicationDeployment", "name": "web",
                                           "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}]
    wait_until(lambda: {"SuccessfulCreate", "SuccessfulDelete"} <= set(events(s, ns)), what="Events")
    heads, row = (line.split() for line in s.kubectl("get", "-n", ns, "appdep", "web").splitlines())
    assert dict(zip(heads, row))["READY"] == "2" and dict(zip(heads, row))["AVAILABLE"] == "2", (heads, row)
    s.kubectl("delete", "-n", ns, "appdep/web", "--cascade=foreground", "--timeout=60s")
    assert not ours(s, ns)
    wait_until(lambda: not s.ok("GET", f"/apis/apps/v1/namespaces/{ns}/controllerrevisions")["items"], what="revisions to go")


def test_a_rolling_update_keeps_its_limits(s):
    ns = home(s)
    strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    with devices_report(s, ns):
        apply(s, ns, workload("ApplicationDeployment", replicas=4, strategy=strategy))
        settled(s, ns, "applicationdeployments", availableReplicas=4)
    for name in applications(s, ns):
        if name.startswith("end-"):
            s.ok("DELETE", path(ns, "applications", name))
    with devices_report(s, ns) as seen:
        apply(s, ns, workload("ApplicationDeployment", image="two", replicas=4, strategy=strategy))
        st = settled(s, ns, "applicationdeployments", replicas=4, updatedReplicas=4, availableReplicas=4)
        wait_until(lambda: len(seen.now) == 4 and all(image_of(a) == "two" for a in seen.now.values()), what="the watch")
        assert seen.max_live <= 5 and seen.min_ready >= 3, (seen.max_live, seen.min_ready)
    conditions = {c["type"]: c for c in st["conditions"]}
    assert conditions["Progressing"]["reason"] == "NewRevisionAvailable" and conditions["Progressing"]["lastUpdateTime"]
    revisions = {r["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: r
                 for r in s.ok("GET", f"/apis/apps/v1/namespaces/{ns}/controllerrevisions")["items"]}
    assert {i: r["revision"] for i, r in revisions.items()} == {"one": 1, "two": 2}
    # The history and the way back, as the page on workloads has them.
    history = s.kubectl("get", "-n", ns, "controllerrevisions", "-l", "app=web", "--sort-by=.revision", "-o", "name").split()
    assert history == [f"controllerrevision.apps/{revisions[i]['metadata']['name']}" for i in ("one", "two")], history
    template = s.kubectl("get", "-n", ns, "controllerrevision", revisions["one"]["metadata"]["name"], "-o", "jsonpath={.data.spec.template}")
    with devices_report(s, ns):
        s.kubectl("patch", "-n", ns, "appdep", "web", "--type=json", "-p", f'[{{"op": "replace", "path": "/spec/template", "value": {template}}}]')
        settled(s, ns, "applicationdeployments", replicas=4, updatedReplicas=4, availableReplicas=4)
    assert {image_of(a) for a in ours(s, ns).values()} == {"one"}
    again = s.ok("GET", f"/apis/apps/v1/namespaces/{ns}/controllerrevisions")["items"]
    assert {r["metadata"]["uid"]: r["revision"] for r in again} == {revisions["one"]["metadata"]["uid"]: 3, revisions["two"]["metadata"]["uid"]: 2}


def test_orphans_stay_and_are_adopted(s):
    ns = home(s)
    apply(s, ns, workload("ApplicationDeployment", replicas=2))
    settled(s, ns, "applicationdeployments", replicas=2)
    before = {n: a["metadata"]["uid"] for n, a in applications(s, ns).items()}
    s.kubectl("delete", "-n", ns, "appdep/web", "--cascade=orphan", "--timeout=60s")
    left = applications(s, ns)
    assert {n: a["metadata"]["uid"] for n, a in left.items()} == before
    assert all("ownerReferences" not in a["metadata"] for a in left.values())
    apply(s, ns, workload("ApplicationDeployment", replicas=2))
    settled(s, ns, "applicationdeployments", replicas=2, updatedReplicas=2)
    assert {n: a["metadata"]["uid"] for n, a in applications(s, ns).items()} == before
    s.kubectl("delete", "-n", ns, "appdep/web", "--timeout=60s")
    wait_until(lambda: not applications(s, ns), what="Applications to go")


def test_a_refused_application_is_told_of(s):
    ns = home(s)
    s.ok("POST", f"/api/v1/namespaces/{ns}/resourcequotas",
         {"metadata": {"name": "few"}, "spec": {"hard": {"count/applications.eve.lfedge.org": "2"}}})
    wait_until(lambda: s.ok("GET", f"/api/v1/namespaces/{ns}/resourcequotas/few").get("status", {}).get("hard"), what="the quota")
    apply(s, ns, workload("ApplicationDeployment", replicas=3))
    st = wait_until(lambda: (lambda x: x.get("replicas") == 2 and any(c["type"] == "ReplicaFailure" for c in x.get("conditions", [])) and x)(
        status(s, ns, "applicationdeployments")), what="ReplicaFailure")
    failure = next(c for c in st["conditions"] if c["type"] == "ReplicaFailure")
    assert failure["status"] == "True" and failure["reason"] == "FailedCreate" and "exceeded quota: few" in failure["message"], failure
    assert "exceeded quota: few" in wait_until(lambda: events(s, ns).get("FailedCreate"), what="the Event")["message"]
    s.ok("DELETE", f"/api/v1/namespaces/{ns}/resourcequotas/few")
    st = settled(s, ns, "applicationdeployments", replicas=3)
    wait_until(lambda: not any(c["type"] == "ReplicaFailure" for c in status(s, ns, "applicationdeployments")["conditions"]), what="the failure to end")


# ---- ApplicationDaemonSet

def device(s, ns, name, tier="edge"):
    s.ok("POST", path(ns, "devices"), {"apiVersion": "eve.lfedge.org/v1beta1", "kind": "Device",
                                      "metadata": {"name": name, "labels": {"tier": tier}}, "spec": {"serial": unique(name)}})


def test_one_on_every_device_that_fits(s):
    ns = home(s)
    for name in "a", "b", "c":
        device(s, ns, name)
    device(s, ns, "d", tier="core")
    daemon = workload("ApplicationDaemonSet")
    daemon["spec"]["template"]["spec"]["nodeSelector"] = {"tier": "edge"}
    with devices_report(s, ns):
        apply(s, ns, daemon)
        settled(s, ns, "applicationdaemonsets", desiredNumberScheduled=3, currentNumberScheduled=3, numberReady=3, numberAvailable=3,
                updatedNumberScheduled=3, numberUnavailable=0, numberMisscheduled=0)
        s.kubectl("wait", "-n", ns, "--for=condition=Available", "--timeout=60s", "appds/web")
    made = ours(s, ns)
    assert {n: a["spec"]["nodeSelector"] for n, a in made.items()} == {f"web-{d}": {"tier": "edge", "name": d} for d in "abc"}
    wait_until(lambda: {a.get("status", {}).get("device") for a in ours(s, ns).values()} == {"a", "b", "c"}, what="the scheduler")
    s.kubectl("label", "-n", ns, "edev/d", "tier=edge", "--overwrite")
    settled(s, ns, "applicationdaemonsets", desiredNumberScheduled=4, currentNumberScheduled=4)
    s.kubectl("label", "-n", ns, "edev/a", "tier-")
    settled(s, ns, "applicationdaemonsets", desiredNumberScheduled=3, currentNumberScheduled=3)
    assert set(ours(s, ns)) == {"web-b", "web-c", "web-d"}
    # Nobody has ever heard of these devices: they are updated without being waited for.
    daemon["spec"]["template"]["spec"]["containers"][0]["image"] = "two"
    apply(s, ns, daemon)
    settled(s, ns, "applicationdaemonsets", updatedNumberScheduled=3, numberReady=0, numberUnavailable=3)
    assert {image_of(a) for a in ours(s, ns).values()} == {"two"}
    s.kubectl("delete", "-n", ns, "appds/web", "--cascade=foreground", "--timeout=60s")
    assert not ours(s, ns)


def test_a_rolling_update_of_devices_in_touch_keeps_its_limit(s):
    ns = home(s)
    names = [f"d{i}" for i in range(5)]
    for name in names:
        device(s, ns, name)
        assert report(s, ns, "devices", name)
    with devices_report(s, ns):
        apply(s, ns, workload("ApplicationDaemonSet", updateStrategy={"rollingUpdate": {"maxUnavailable": 2}}))
        settled(s, ns, "applicationdaemonsets", desiredNumberScheduled=5, numberAvailable=5)
    s.kubectl("delete", "-n", ns, "eapp", *(n for n in applications(s, ns) if n.startswith("end-")))
    with devices_report(s, ns) as seen:
        apply(s, ns, workload("ApplicationDaemonSet", image="two", updateStrategy={"rollingUpdate": {"maxUnavailable": 2}}))
        settled(s, ns, "applicationdaemonsets", updatedNumberScheduled=5, numberAvailable=5)
        wait_until(lambda: len(seen.now) == 5 and all(image_of(a) == "two" and is_ready(a) for a in seen.now.values()), what="the watch")
        assert seen.min_ready == 3 and not seen.duplicates, (seen.min_ready, seen.duplicates)
    # One whose new Application never gets ready holds up the rest.
    with devices_report(s, ns, only=lambda a: image_of(a) == "two"):
        apply(s, ns, workload("ApplicationDaemonSet", updateStrategy={"rollingUpdate": {"maxUnavailable": 2}}))
        settled(s, ns, "applicationdaemonsets", updatedNumberScheduled=2, currentNumberScheduled=5, numberAvailable=3)
    assert collections.Counter(image_of(a) for a in ours(s, ns).values()) == {"one": 2, "two": 3}


# ---- ApplicationStatefulSet

def test_numbers_claims_and_a_partition(s):
    ns = home(s)
    claims = f"/api/v1/namespaces/{ns}/persistentvolumeclaims"
    stateful = workload("ApplicationStatefulSet", replicas=3, volumeClaimTemplates=[
        {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "eve-blank",
                                                "resources": {"requests": {"storage": "1Gi"}}}}])
    main = stateful["spec"]["template"]["spec"]["containers"][0]
    main["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    with devices_report(s, ns) as seen:
        apply(s, ns, stateful)
        settled(s, ns, "applicationstatefulsets", replicas=3, readyReplicas=3, currentReplicas=3, updatedReplicas=3, availableReplicas=3)
        assert seen.first_order == ["web-0", "web-1", "web-2"]
    made = ours(s, ns)
    assert made["web-1"]["metadata"]["labels"]["eve.lfedge.org/ordinal"] == "1"
    assert made["web-1"]["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}]
    uids = {c["metadata"]["name"]: c["metadata"]["uid"] for c in s.ok("GET", claims)["items"]}
    assert set(uids) == {"data-web-0", "data-web-1", "data-web-2"}
    main["image"] = "two"
    stateful["spec"]["updateStrategy"] = {"rollingUpdate": {"partition": 1}}
    with devices_report(s, ns):
        apply(s, ns, stateful)
        st = settled(s, ns, "applicationstatefulsets", readyReplicas=3, updatedReplicas=2, currentReplicas=1)
        assert st["currentRevision"] != st["updateRevision"]
        assert {n: image_of(a) for n, a in ours(s, ns).items() if n.startswith("web-")} == {"web-0": "one", "web-1": "two", "web-2": "two"}
        s.kubectl("patch", "-n", ns, "appsts", "web", "--type=merge", "-p", '{"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}')
        st = settled(s, ns, "applicationstatefulsets", readyReplicas=3, updatedReplicas=3, currentReplicas=3)
        assert st["currentRevision"] == st["updateRevision"]
        s.kubectl("scale", "-n", ns, "--replicas=1", "appsts/web")
        settled(s, ns, "applicationstatefulsets", replicas=1, readyReplicas=1)
        assert [n for n in applications(s, ns) if n.startswith("web-")] == ["web-0"]
    s.kubectl("delete", "-n", ns, "appsts/web", "--cascade=foreground", "--timeout=60s")
    assert not ours(s, ns)
    assert {c["metadata"]["name"]: c["metadata"]["uid"] for c in s.ok("GET", claims)["items"]} == uids


def test_claims_go_with_the_set_when_the_policy_says_so(s):
    ns = home(s)
    claims = f"/api/v1/namespaces/{ns}/persistentvolumeclaims"
    stateful = workload("ApplicationStatefulSet", replicas=2, podManagementPolicy="Parallel",
                        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Delete"}, volumeClaimTemplates=[
                            {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "eve-blank",
                                                                    "resources": {"requests": {"storage": "1Gi"}}}}])
    apply(s, ns, stateful)
    settled(s, ns, "applicationstatefulsets", replicas=2)
    s.ok("PATCH", path(ns, "applicationstatefulsets", "web"), {"spec": {"replicas": 1}}, MERGE)
    settled(s, ns, "applicationstatefulsets", replicas=1)
    wait_until(lambda: [c["metadata"]["name"] for c in s.ok("GET", claims)["items"]] == ["data-web-0"], what="the claim to go")
    s.kubectl("delete", "-n", ns, "appsts/web", "--timeout=60s")
    wait_until(lambda: not s.ok("GET", claims)["items"], what="the claims to go")


def test_a_number_returns_to_the_device_that_has_its_volume(s):
    ns = home(s)
    for name in "a", "b", "c", "d":
        device(s, ns, name)
    stateful = workload("ApplicationStatefulSet", replicas=3, podManagementPolicy="Parallel", volumeClaimTemplates=[
        {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "eve-blank",
                                                "resources": {"requests": {"storage": "1Gi"}}}}])

    def places():
        found = {n: a.get("status", {}).get("device") for n, a in applications(s, ns).items()}
        return len(found) == 3 and all(found.values()) and found

    apply(s, ns, stateful)
    before = wait_until(places, what="the scheduler")
    wait_until(lambda: len(s.ok("GET", path(ns, "volumes"))["items"]) == 3, what="the Volumes")
    volumes = {v["metadata"]["uid"] for v in s.ok("GET", path(ns, "volumes"))["items"]}
    stateful["spec"]["template"]["spec"]["containers"][0]["image"] = "two"
    apply(s, ns, stateful)
    settled(s, ns, "applicationstatefulsets", replicas=3, updatedReplicas=3, currentReplicas=3)
    assert wait_until(places, what="the scheduler") == before
    assert {v["metadata"]["uid"] for v in s.ok("GET", path(ns, "volumes"))["items"]} == volumes
