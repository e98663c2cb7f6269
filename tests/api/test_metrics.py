# SPDX-License-Identifier: Apache-2.0
"""/metrics of the running server: the format read strictly, what was sent is counted, nobody without the right reads it."""
import concurrent.futures
import json
import math
import re
import socket
import threading

from expect import configmap
from seth import Server, unique, wait_until

OPTIONS = ("--threads", "3")
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
NUMBER = re.compile(r"[+-]?(\d+(\.\d+)?(e[+-]\d\d+)?|Inf)|NaN")
SUFFIXES = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


def parse_labels(text):
    labels = {}
    while text:
        m = LABEL.match(text)
        assert m and m.group(1) not in labels, text
        labels[m.group(1)] = re.sub(r"\\(.)", lambda e: "\n" if e.group(1) == "n" else e.group(1), m.group(2))
        text = text[m.end():]
        assert bool(text) == (m.group(3) == ","), text
    return labels


def parse(text):
    """The text format 0.0.4, strictly: {(name, frozenset of labels): value}, {family: type}."""
    assert text.endswith("\n") and "\r" not in text and "\n\n" not in text
    samples, types, helps, family = {}, {}, set(), None
    for line in text.splitlines():
        m = re.fullmatch(rf"# HELP ({NAME}) (.*)", line)
        if m:
            family = m.group(1)
            assert family not in helps, f"{family} comes twice"
            helps.add(family)
            continue
        m = re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge|histogram)", line)
        if m:
            assert m.group(1) == family and family not in types, line
            types[family] = m.group(2)
            continue
        m = re.fullmatch(rf"({NAME})(?:\{{(.*)\}})? (\S+)", line)
        assert m, line
        assert m.group(1) in [family + suffix for suffix in SUFFIXES[types[family]]], f"{line} stands below {family}"
        assert NUMBER.fullmatch(m.group(3)), line
        key = m.group(1), frozenset(parse_labels(m.group(2) or "").items())
        assert key not in samples, f"{line} comes twice"
        samples[key] = float(m.group(3))
    return samples, types


def check_histograms(samples, types):
    """Buckets rise, the last is +Inf and equals _count, and each has its _sum."""
    series = {}
    for (name, labels), value in samples.items():
        family = name.removesuffix("_bucket")
        if types.get(family) == "histogram" and name.endswith("_bucket"):
            rest = frozenset(pair for pair in labels if pair[0] != "le")
            series.setdefault((family, rest), []).append((float(dict(labels)["le"]), value))
    assert series
    for (family, labels), buckets in series.items():
        assert [b for b, _ in buckets] == sorted({b for b, _ in buckets}), (family, buckets)
        assert [n for _, n in buckets] == sorted(n for _, n in buckets), (family, buckets)
        assert buckets[-1][0] == math.inf and buckets[-1][1] == samples[family + "_count", labels], (family, labels)
        assert (family + "_sum", labels) in samples, family


def scrape(s):
    status, headers, data = s.exchange("GET", "/metrics")
    assert status == 200 and headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", (status, headers["Content-Type"])
    samples, types = parse(data.decode())
    for (name, _), value in samples.items():
        assert value >= 0 or types.get(name) != "counter", (name, value)
    return samples, types


def total(samples, metric, **labels):
    return sum(v for (name, have), v in samples.items() if name == metric and set(labels.items()) <= have)


def difference(before, after, metric, **labels):
    return total(after, metric, **labels) - total(before, metric, **labels)


FAMILIES = {
    "apiserver_request_total": "counter", "apiserver_request_duration_seconds": "histogram", "apiserver_request_sli_duration_seconds": "histogram",
    "apiserver_response_sizes": "histogram", "apiserver_current_inflight_requests": "gauge", "apiserver_tls_handshake_errors_total": "counter",
    "apiserver_resource_objects": "gauge", "apiserver_storage_objects": "gauge", "apiserver_storage_size_bytes": "gauge",
    "apiserver_audit_event_total": "counter", "kubernetes_build_info": "gauge", "kubernetes_healthcheck": "gauge", "workqueue_depth": "gauge",
    "workqueue_adds_total": "counter", "workqueue_queue_duration_seconds": "histogram", "workqueue_work_duration_seconds": "histogram",
    "process_cpu_seconds_total": "counter", "process_resident_memory_bytes": "gauge", "process_open_fds": "gauge", "process_max_fds": "gauge",
    "process_start_time_seconds": "gauge", "authentication_attempts": "counter", "authenticated_user_requests": "counter",
    "seth_requests_shed_total": "counter", "seth_login_failures_total": "counter"}


def test_the_text_is_well_formed_and_complete(s):
    s.ok("GET", CONFIGMAPS)
    samples, types = scrape(s)
    check_histograms(samples, types)
    assert {name: types.get(name) for name in FAMILIES} == FAMILIES
    assert total(samples, "kubernetes_healthcheck", name="ping", type="readyz") == 1
    info = [dict(labels) for (name, labels) in samples if name == "kubernetes_build_info"]
    version = s.ok("GET", "/version")
    assert [i["git_version"] for i in info] == [version["gitVersion"]] and info[0]["major"] == version["major"], info
    assert total(samples, "process_resident_memory_bytes") > 1 << 20 and total(samples, "process_open_fds") > 5
    queues = {dict(labels)["name"] for (name, labels) in samples if name == "workqueue_depth"}
    assert queues >= {"namespaces", "garbage-collector"}, queues
    assert len(samples) < 20_000, len(samples)


def test_requests_are_counted_exactly(s):
    """From several connections and so several loops, while others scrape."""
    n = 40
    name = unique("counted")
    scrape(s)
    before, _ = scrape(s)

    def work(k):
        connection = s.connect()
        for i in range(n):
            method, path, body = (("POST", CONFIGMAPS, configmap(f"{name}-{k}-{i}")), ("GET", f"{CONFIGMAPS}/{name}-{k}-{i - 1}", None),
                                  ("GET", CONFIGMAPS + "?limit=1", None), ("GET", f"{CONFIGMAPS}/{name}-absent", None))[i % 4]
            connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"} if body else {})
            connection.getresponse().read()
        connection.close()

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    after, types = scrape(s)
    check_histograms(after, types)
    each = 6 * n // 4
    core = {"group": "", "version": "v1", "resource": "configmaps", "subresource": "", "component": "apiserver"}
    requests = "apiserver_request_total"
    assert difference(before, after, requests, **core, verb="POST", code="201", scope="resource", dry_run="") == each
    assert difference(before, after, requests, **core, verb="GET", code="200", scope="resource") == each
    assert difference(before, after, requests, **core, verb="GET", code="404", scope="resource") == each
    assert difference(before, after, requests, **core, verb="LIST", code="200", scope="namespace") == each
    assert difference(before, after, "apiserver_request_duration_seconds_count", **core, verb="GET") == 2 * each
    assert difference(before, after, "apiserver_request_sli_duration_seconds_count", **core, verb="POST") == each
    assert difference(before, after, "apiserver_response_sizes_count", **core, verb="LIST") == each
    assert difference(before, after, "apiserver_response_sizes_sum", **core, verb="LIST") > each * 100
    assert difference(before, after, requests, resource="", subresource="/metrics", code="200", verb="GET") == 1
    assert difference(before, after, "apiserver_resource_objects", group="", resource="configmaps") == each
    assert difference(before, after, "apiserver_storage_objects", resource="configmaps") == each


def test_verbs_have_their_own_series(s):
    name = unique("verbs")
    path = f"{CONFIGMAPS}/{name}"
    before, _ = scrape(s)
    made = s.ok("POST", CONFIGMAPS + "?dryRun=All", configmap(name))
    made = s.ok("POST", CONFIGMAPS, configmap(name))
    s.ok("PUT", path, made)
    s.ok("PATCH", path, '{"data":{"k":"v"}}', {"Content-Type": "application/merge-patch+json"})
    s.ok("PATCH", path + "?fieldManager=me&force=true", f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n",
         {"Content-Type": "application/apply-patch+yaml"})
    s.ok("DELETE", path)
    s.ok("DELETE", CONFIGMAPS + f"?fieldSelector=metadata.name%3D{name}")
    s.ok("GET", "/apis/coordination.k8s.io/v1/leases")
    after, _ = scrape(s)
    for verb, code, more in (("POST", "201", {"dry_run": "All"}), ("POST", "201", {"dry_run": ""}), ("PUT", "200", {}), ("PATCH", "200", {}),
                             ("APPLY", "200", {}), ("DELETE", "200", {}), ("DELETECOLLECTION", "200", {})):
        assert difference(before, after, "apiserver_request_total", verb=verb, code=code, resource="configmaps", **more) == 1, (verb, more)
    assert difference(before, after, "apiserver_request_total", verb="LIST", group="coordination.k8s.io", version="v1", resource="leases",
                      scope="cluster") == 1


def test_watches_count_while_they_are_open(s):
    name = unique("watched")
    before, _ = scrape(s)
    events = s.watch(CONFIGMAPS + f"?watch=1&fieldSelector=metadata.name%3D{name}&timeoutSeconds=600")
    seen = []
    reader = threading.Thread(target=lambda: seen.append(next(events)), daemon=True)
    reader.start()
    watch = {"verb": "WATCH", "resource": "configmaps", "scope": "namespace"}
    wait_until(lambda: difference(before, scrape(s)[0], "apiserver_longrunning_requests", **watch) == 1, what="the watch to be counted")
    s.ok("POST", CONFIGMAPS, configmap(name))
    reader.join(30)
    assert seen and seen[0]["type"] == "ADDED", seen
    now, _ = scrape(s)
    assert difference(before, now, "apiserver_watch_events_total", group="", version="v1", resource="configmaps") >= 1
    assert difference(before, now, "apiserver_watch_events_sizes_count", resource="configmaps") >= 1
    assert difference(before, now, "apiserver_request_total", **watch) == 0, "a watch counts when it is over"
    events.close()
    wait_until(lambda: difference(before, scrape(s)[0], "apiserver_longrunning_requests", **watch) == 0, what="the watch to be over")
    after, _ = scrape(s)
    assert difference(before, after, "apiserver_request_total", **watch, code="200") == 1
    assert difference(before, after, "apiserver_request_sli_duration_seconds_count", **watch) == 0


def test_what_peers_make_up_makes_no_series(s):
    s.ok("GET", CONFIGMAPS)
    mark = unique("made-up")
    for path in (f"/api/v1/{mark}", f"/apis/{mark}/v1/{mark}", f"/api/v1/namespaces/{mark}/configmaps/{mark}", f"/{mark}", f"/healthz/{mark}",
                 f"{CONFIGMAPS}/{mark}/{mark}", f"/apis/apps/{mark}/x"):
        for method in ("GET", "PUT", "BREW" + mark.upper().replace("-", "")):
            s.exchange(method, path, "{}" if method != "GET" else None, {"User-Agent": mark, "Content-Type": "application/json"})
    before, _ = scrape(s)
    for i in range(50):
        s.exchange("GET", f"/apis/{mark}{i}.example.org/v1/{mark}s")
        s.exchange("GET", f"/api/v1/namespaces/{mark}{i}/configmaps/{mark}{i}")
    after, _ = scrape(s)
    assert len(after) == len(before), set(after) - set(before)
    assert mark.lower() not in repr(list(after)).lower()


def test_definitions_of_users_are_counted_by_their_names(s):
    plural, group = unique("x").replace("-", "") + "s", "metrics.example.org"
    s.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "singular": plural[:-1], "kind": plural.title(),
                                                                   "listKind": plural.title() + "List"},
                 "versions": [{"name": "v1", "served": True, "storage": True,
                               "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}})
    path = f"/apis/{group}/v1/namespaces/default/{plural}"
    wait_until(lambda: s.request("GET", path)[0] == 200, what="the kind to be served")
    s.ok("POST", path, {"apiVersion": f"{group}/v1", "kind": plural.title(), "metadata": {"name": "a"}})
    samples, _ = scrape(s)
    assert total(samples, "apiserver_request_total", group=group, version="v1", resource=plural, verb="POST", code="201") == 1
    assert total(samples, "apiserver_resource_objects", group=group, resource=plural) == 1
    assert total(samples, "apiserver_storage_objects", resource=f"{plural}.{group}") == 1


def test_failed_handshakes_and_logins_are_counted(s):
    before, _ = scrape(s)
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", s.port), timeout=30) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            while plain.recv(4096):
                pass
    connection = s.connect(with_certificate=False)
    connection.request("GET", CONFIGMAPS, headers={"Authorization": "Bearer wrong"})
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 401
    wait_until(lambda: difference(before, scrape(s)[0], "apiserver_tls_handshake_errors_total") >= 3, what="handshakes to be counted")
    after, _ = scrape(s)
    assert difference(before, after, "authentication_attempts", result="failure") == 1
    assert difference(before, after, "seth_login_failures_total") == 1
    assert difference(before, after, "authentication_attempts", result="success") >= 1
    assert difference(before, after, "apiserver_request_total", code="401") >= 1


def test_who_may_read_them(s):
    user, group = unique("jane"), unique("watchers")
    as_jane = {"Impersonate-User": user, "Impersonate-Group": group}
    status, answer = s.request("GET", "/metrics", headers=as_jane)
    assert status == 403 and answer["message"] == f'forbidden: User "{user}" cannot get path "/metrics"', (status, answer)
    connection = s.connect(with_certificate=False)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    answer.read()
    assert answer.status in (401, 403), answer.status
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    s.ok("POST", f"{rbac}/clusterroles", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": group},
                                          "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]})
    s.ok("POST", f"{rbac}/clusterrolebindings", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                                                 "metadata": {"name": group}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io",
                                                                                          "kind": "ClusterRole", "name": group},
                                                 "subjects": [{"kind": "Group", "name": group, "apiGroup": "rbac.authorization.k8s.io"}]})
    status, text = wait_until(lambda: (r := s.request("GET", "/metrics", headers=as_jane, raw=True))[0] == 200 and r, what="the right to arrive")
    parse(text.decode())
    assert s.request("POST", "/metrics")[0] in (404, 405)


def test_requests_are_logged_at_level_debug_only():
    for level in ("debug", "info"):
        with Server("--log-level", level) as s:
            name = unique("logged")
            _, headers, _ = s.exchange("GET", f"{CONFIGMAPS}/{name}?pretty=true", headers={"User-Agent": 'tester/1.0 "x"\ty'})
            wait_until(lambda: level == "info" or name in s.read_log(), what="the line")
            s.ok("GET", "/livez")
            lines = [line for line in s.read_log().splitlines() if name in line]
            if level == "info":
                assert not lines, lines
                continue
            assert len(lines) == 1, lines
            for part in ("level=debug", 'msg="request"', 'method="GET"', f'path="{CONFIGMAPS}/{name}"', "code=404", 'user="seth-admin"',
                         f'audit_id="{headers["Audit-Id"]}"', 'user_agent="tester/1.0 \\"x\\"'):
                assert part in lines[0], (part, lines[0])
            assert re.search(r"duration_us=\d+ response_bytes=\d+", lines[0]) and "pretty" not in lines[0], lines[0]
