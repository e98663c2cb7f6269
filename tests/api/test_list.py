# SPDX-License-Identifier: Apache-2.0
"""List: selectors, pages over one snapshot, resourceVersion, forms of the answer."""
import concurrent.futures
import gzip
import json
import threading
import urllib.parse

from expect import PARTIAL_LIST, TABLE, configmap, configmaps, names, refused
from pumps import Pumps
from seth import Server, wait_until

MANY, WRITERS = 10_000, 8


def query(path, **parameters):
    return f"{path}?{urllib.parse.urlencode(parameters)}"


def create_some(s, count, ns=None, prefix="c"):
    """count maps labelled set=s, n=<number>, odd=<0|1>."""
    ns = ns or s.namespace()
    for i in range(count):
        s.ok("POST", configmaps(ns), configmap(f"{prefix}{i}", labels={"set": "s", "n": str(i), "odd": str(i % 2)}))
    return ns


def test_label_selectors(s):
    ns = create_some(s, 3)
    for selector, expected in [
        ("set=s", "c0 c1 c2"), ("set==s,n!=1,set", "c0 c2"), ("n in (0,2)", "c0 c2"), ("n notin (0,2),set", "c1"), ("!absent,set", "c0 c1 c2"),
        ("n>0,set", "c1 c2"), ("n<1", "c0"), ("set=nope", ""), ("n in (),set=s", ""), ("  set = s , n in ( 1 ) ", "c1"), ("set=,n", ""),
        ("set,!n", ""), ("odd=0,n in (0,1)", "c0"), ("n notin (0),odd notin (1),set", "c2"), ("n>-1,n<2", "c0 c1"),
    ]:
        assert names(s.ok("GET", query(configmaps(ns), labelSelector=selector))) == expected.split(), selector


def test_label_selector_mistakes(s):
    ns = s.namespace()
    for selector, message in [
        ("=", "found '=', expected: !, identifier, or 'end of string'"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b!", "found '!', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'"),
        ("n>x", "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"),
        ("a=" + "v" * 64, f"unable to parse requirement: values[0][a]: Invalid value: \"{'v' * 64}\": must be no more than 63 bytes"),
    ]:
        refused(s.request("GET", query(configmaps(ns), labelSelector=selector)), 400, "BadRequest", message)


def test_field_selectors(s):
    ns = create_some(s, 2)
    for path, selector, expected in [
        (configmaps(ns), "metadata.name=c1", "c1"), (configmaps(ns), "metadata.name==c0", "c0"),
        (configmaps(ns), "metadata.name!=c1,metadata.name!=kube-root-ca.crt", "c0"),
        (configmaps(ns), f"metadata.namespace={ns},metadata.name=c0", "c0"),
        ("/api/v1/configmaps", f"metadata.name=c0,metadata.namespace={ns}", "c0"),
        (configmaps(ns), "metadata.namespace=other", ""),
    ]:
        assert names(s.ok("GET", query(path, fieldSelector=selector))) == expected.split(), selector
    known = 'only "metadata.name", "metadata.namespace"'
    for selector, message in [
        ("data=x", f'"data" is not a known field selector: {known}'), ("metadata.uid=1", f'"metadata.uid" is not a known field selector: {known}'),
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
        ("metadata.name in (a)", "invalid selector: 'metadata.name in (a)'; can't understand 'metadata.name in (a)'"),
        ("metadata.name=c0,nope=1", f'"nope" is not a known field selector: {known}'),
    ]:
        refused(s.request("GET", query(configmaps(ns), fieldSelector=selector)), 400, "BadRequest", message)


def test_field_selectors_of_kinds(s):
    ns = s.namespace()
    for name, reason in (("e1", "Began"), ("e2", "Ended")):
        s.ok("POST", f"/api/v1/namespaces/{ns}/events", {"metadata": {"name": name}, "reason": reason, "type": "Normal",
             "involvedObject": {"kind": "ConfigMap", "namespace": ns, "name": "a", "uid": "u-1"}, "source": {"component": "me"}})
    for kind in (f"/api/v1/namespaces/{ns}/events", f"/apis/events.k8s.io/v1/namespaces/{ns}/events"):
        first = "involvedObject" if kind.startswith("/api/") else "regarding"
        assert names(s.ok("GET", query(kind, fieldSelector=f"{first}.name=a,reason=Ended"))) == ["e2"], kind
        assert names(s.ok("GET", query(kind, fieldSelector=f"{first}.uid=u-1,{first}.kind=ConfigMap"))) == ["e1", "e2"], kind
    assert names(s.ok("GET", query(f"/api/v1/namespaces/{ns}/events", fieldSelector="source=me,type=Normal"))) == ["e1", "e2"]
    s.ok("POST", f"/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "s"}, "type": "example.org/own"})
    assert names(s.ok("GET", query(f"/api/v1/namespaces/{ns}/secrets", fieldSelector="type=example.org/own"))) == ["s"]
    assert ns in names(s.ok("GET", query("/api/v1/namespaces", fieldSelector="status.phase=Active")))


def test_selectable_fields_of_a_custom_kind(s):
    pumps = Pumps(s)
    for name, mode in (("a", "auto"), ("b", "off"), ("c", "off")):
        pumps.create(name, {"mode": mode})
    assert names(s.ok("GET", query(pumps.path(), fieldSelector="spec.mode=off"))) == ["b", "c"]
    assert names(s.ok("GET", query(pumps.path(), fieldSelector="spec.mode!=off,metadata.name=a"))) == ["a"]
    refused(s.request("GET", query(pumps.path(), fieldSelector="spec.serial=AB-1")), 400, "BadRequest", "field label not supported: spec.serial")
    s.ok("DELETE", query(pumps.path(), fieldSelector="spec.mode=off"))
    assert names(s.ok("GET", pumps.path())) == ["a"]


def test_pages(s):
    ns = create_some(s, 5)
    page, seen, pages = s.ok("GET", query(configmaps(ns), labelSelector="set=s", limit=2)), [], 1
    version = page["metadata"]["resourceVersion"]
    assert "remainingItemCount" not in page["metadata"], "a count is not known behind a selector"
    while True:
        seen += names(page)
        if "continue" not in page["metadata"]:
            break
        page = s.ok("GET", query(configmaps(ns), labelSelector="set=s", limit=2, **{"continue": page["metadata"]["continue"]}))
        pages += 1
        assert page["metadata"]["resourceVersion"] == version
    assert seen == ["c0", "c1", "c2", "c3", "c4"] and pages == 3
    for limit in ("0", "-1"):
        assert names(s.ok("GET", query(configmaps(ns), labelSelector="n=1", limit=limit))) == ["c1"]
    refused(s.request("GET", query(configmaps(ns), limit="abc")), 400, "BadRequest")
    body = refused(s.request("GET", query(configmaps(ns), limit=2, **{"continue": "garbage"})), 400, "BadRequest")
    assert body["message"].startswith("invalid continue token: ")
    token = s.ok("GET", query(configmaps(ns), limit=1))["metadata"]["continue"]
    refused(s.request("GET", query(configmaps(ns), limit=1, resourceVersion=1, **{"continue": token})), 400, "BadRequest",
            "specifying resource version is not allowed when using continue")


def test_page_forms(s):
    ns = s.namespace()
    kind = f"/api/v1/namespaces/{ns}/secrets"
    version = [s.ok("POST", kind, {"metadata": {"name": f"s{i}"}}) for i in range(3)][-1]["metadata"]["resourceVersion"]
    for parameters in ({}, {"resourceVersion": version}, {"resourceVersion": version, "resourceVersionMatch": "Exact"},
                       {"resourceVersion": version, "resourceVersionMatch": "NotOlderThan"}):
        page = s.ok("GET", query(kind, limit=1, **parameters))
        assert names(page) == ["s0"] and page["metadata"]["remainingItemCount"] == 2 and page["metadata"]["continue"], (parameters, page)
    page = s.ok("GET", query(kind, limit=2), headers=PARTIAL_LIST)
    assert page["kind"] == "PartialObjectMetadataList" and page["apiVersion"] == "meta.k8s.io/v1" and page["metadata"]["remainingItemCount"] == 1
    assert [(i["kind"], i["metadata"]["name"], "type" in i) for i in page["items"]] == [("PartialObjectMetadata", f"s{i}", False) for i in range(2)]
    page = s.ok("GET", query(kind, limit=2), headers=TABLE)
    assert page["kind"] == "Table" and page["metadata"]["remainingItemCount"] == 1
    assert [c["name"] for c in page["columnDefinitions"]] == ["Name", "Type", "Data", "Age"]
    assert [r["cells"][:3] for r in page["rows"]] == [["s0", "Opaque", 0], ["s1", "Opaque", 0]]
    assert "continue" not in s.ok("GET", query(kind, limit=500))["metadata"]


def test_ten_thousand_objects_in_pages_while_they_change():
    """A pager sees the snapshot of its first page, whatever happens meanwhile."""
    with Server() as s, concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        ns = s.namespace()
        wait_until(lambda: s.request("GET", configmaps(ns, "kube-root-ca.crt"))[0] == 200, what="the namespace's own map")

        def create(i):
            s.ok("POST", configmaps(ns), configmap(f"m{i:05}", {"v": "1"}))

        list(pool.map(create, range(MANY)))
        expected = ["kube-root-ca.crt"] + [f"m{i:05}" for i in range(MANY)]
        page = s.ok("GET", query(configmaps(ns), limit=500))
        version, seen, values = page["metadata"]["resourceVersion"], names(page), []
        assert page["metadata"]["remainingItemCount"] == MANY + 1 - 500
        disturb = threading.Event()

        def change(w):
            """Replaces, deletes and creates until the pager is done; at least a round of each."""
            i = w
            while i < MANY and not (disturb.is_set() and i > 400):
                path = configmaps(ns, f"m{i:05}")
                if i % 3 == 0:
                    s.ok("DELETE", path)
                elif i % 3 == 1:
                    s.ok("PUT", path, configmap(f"m{i:05}", {"v": "2"}))
                else:
                    s.ok("POST", configmaps(ns), configmap(f"m{i:05}x", {"v": "new"}))
                i += WRITERS - 1

        changes = [pool.submit(change, w) for w in range(WRITERS - 1)]
        while "continue" in page["metadata"]:
            remaining = page["metadata"]["remainingItemCount"]
            page = s.ok("GET", query(configmaps(ns), limit=500, **{"continue": page["metadata"]["continue"]}))
            assert page["metadata"]["resourceVersion"] == version
            assert page["metadata"].get("remainingItemCount", 0) == max(remaining - 500, 0)
            seen += names(page)
            values += [item["data"]["v"] for item in page["items"]]
        disturb.set()
        for c in changes:
            c.result()
        assert seen == expected
        assert set(values) == {"1"}, "an object of the snapshot was shown as it became later"
        now = names(s.ok("GET", configmaps(ns)))
        assert now != expected and "m00000" not in now and "m00002x" in now
        old = s.ok("GET", query(configmaps(ns), resourceVersion=version, resourceVersionMatch="Exact"))
        assert names(old) == expected and old["metadata"]["resourceVersion"] == version


def test_resource_version_of_a_list(s):
    ns = s.namespace()
    version = s.ok("POST", configmaps(ns), configmap("a", {"v": "1"}, labels={"x": "y"}))["metadata"]["resourceVersion"]
    listed = s.ok("GET", query(configmaps(ns), labelSelector="x"))["metadata"]["resourceVersion"]
    assert int(listed) >= int(version) > 0 and listed == str(int(listed))
    for parameters in ({"resourceVersion": 0}, {"resourceVersion": version}, {"resourceVersion": version, "resourceVersionMatch": "NotOlderThan"},
                       {"resourceVersion": 0, "resourceVersionMatch": "NotOlderThan"}):
        answer = s.ok("GET", query(configmaps(ns), labelSelector="x", **parameters))
        assert names(answer) == ["a"] and int(answer["metadata"]["resourceVersion"]) >= int(version), parameters
    s.ok("PUT", configmaps(ns, "a"), configmap("a", {"v": "2"}))
    exact = s.ok("GET", query(configmaps(ns), labelSelector="x", resourceVersion=version, resourceVersionMatch="Exact"))
    assert [i["data"]["v"] for i in exact["items"]] == ["1"] and exact["metadata"]["resourceVersion"] == version
    assert s.ok("GET", configmaps(ns, "a") + "?resourceVersion=0")["data"] == {"v": "2"}


def test_resource_version_mistakes(s):
    ns = s.namespace()
    invalid = 'ListOptions.meta.k8s.io "" is invalid: '
    for parameters, message in [
        ({"resourceVersionMatch": "Exact"}, "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ({"resourceVersion": 0, "resourceVersionMatch": "Exact"},
         'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
        ({"resourceVersion": 1, "resourceVersionMatch": "Nope"},
         'resourceVersionMatch: Unsupported value: "Nope": supported values: "Exact", "NotOlderThan", ""'),
        ({"sendInitialEvents": "true"}, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
    ]:
        refused(s.request("GET", query(configmaps(ns), **parameters)), 422, "Invalid", invalid + message)
    for version in ("abc", "-1"):
        body = refused(s.request("GET", query(configmaps(ns), resourceVersion=version)), 400, "BadRequest")
        assert body["message"].startswith(f'invalid resource version: resourceVersion: Invalid value: "{version}"')
    refused(s.request("GET", query(configmaps(ns), timeout="abc")), 400, "BadRequest",
            'invalid timeout specified in the request URL - time: invalid duration "abc"')


def test_a_version_of_the_future(s):
    ns = s.namespace()
    status, headers, data = s.exchange("GET", configmaps(ns, "x") + "?resourceVersion=999999999")
    body = refused((status, json.loads(data)), 504, "Timeout", causes=[("ResourceVersionTooLarge", "")])
    assert body["message"].startswith("Timeout: Too large resource version: 999999999, current: ")
    assert headers["Retry-After"] == "1" and body["details"]["retryAfterSeconds"] == 1
    status, body = s.request("GET", query(configmaps(ns), resourceVersion=999999999, timeout="1s"))
    assert status == 504 and body["reason"] == "Timeout"


def test_history_that_is_gone():
    with Server("--history-seconds", "1") as s:
        ns = create_some(s, 3)
        version = s.ok("POST", configmaps(ns), configmap("z"))["metadata"]["resourceVersion"]
        page = s.ok("GET", query(configmaps(ns), labelSelector="set", limit=1))
        token = query(configmaps(ns), labelSelector="set", limit=1, **{"continue": page["metadata"]["continue"]})

        def expired():
            """History only goes when something newer takes its place."""
            s.ok("PUT", configmaps(ns, "z"), configmap("z", labels={"x": str(len(s.read_log()))}))
            status, body = s.request("GET", token)
            return body if status == 410 else None

        body = wait_until(expired, what="the token to expire")
        assert body["reason"] == "Expired" and body["message"].startswith("The provided continue parameter is too old to display a consistent list")
        rest = s.ok("GET", query(configmaps(ns), labelSelector="set", limit=1, **{"continue": body["metadata"]["continue"]}))
        assert names(rest) == ["c1"] and rest["metadata"]["continue"], "the token in the refusal goes on where the old one was"
        assert int(rest["metadata"]["resourceVersion"]) > int(page["metadata"]["resourceVersion"])
        refused(s.request("GET", query(configmaps(ns), resourceVersion=version, resourceVersionMatch="Exact")), 410, "Expired",
                "The resourceVersion for the provided list is too old.")


def test_across_namespaces(s):
    one, two = s.namespace(), s.namespace()
    for ns in (one, two):
        s.ok("POST", configmaps(ns), configmap("a", labels={"mark": one}))
    answer = s.ok("GET", query("/api/v1/configmaps", labelSelector=f"mark={one}"))
    assert sorted((i["metadata"]["namespace"], i["metadata"]["name"]) for i in answer["items"]) == sorted([(one, "a"), (two, "a")])
    assert answer["kind"] == "ConfigMapList" and answer["apiVersion"] == "v1" and "kind" not in answer["items"][0]
    empty = s.ok("GET", configmaps("none-" + one))
    assert empty["items"] == [] and int(empty["metadata"]["resourceVersion"]) > 0
    refused(s.request("GET", "/api/v1/configmaps/a"), 404, "NotFound", "the server could not find the requested resource")


def test_table_rows_carry_what_was_asked_for(s):
    ns = s.namespace()
    s.ok("POST", configmaps(ns), configmap("a", {"k": "v"}, labels={"l": "1"}))
    path = query(configmaps(ns), labelSelector="l")
    row = s.ok("GET", path, headers=TABLE)["rows"][0]
    assert row["cells"][:2] == ["a", 1] and row["object"]["kind"] == "PartialObjectMetadata" and "data" not in row["object"]
    assert s.ok("GET", path + "&includeObject=Object", headers=TABLE)["rows"][0]["object"]["data"] == {"k": "v"}
    assert s.ok("GET", path + "&includeObject=None", headers=TABLE)["rows"][0].get("object") is None
    refused(s.request("GET", path + "&includeObject=Nope", headers=TABLE), 400, "BadRequest",
            'Unable to convert to Table as requested: includeObject: Invalid value: "Nope": must be \'Metadata\', \'Object\', \'None\', or empty')
    old = s.ok("GET", path, headers={"Accept": "application/json;g=meta.k8s.io;v=v1beta1;as=Table, application/json"})
    assert old["kind"] == "Table" and old["apiVersion"] == "meta.k8s.io/v1beta1"


def test_large_answers_are_compressed_for_who_can_read_it(s):
    ns = s.namespace()
    s.ok("POST", configmaps(ns), configmap("big", {"k": "abc" * 100_000}))
    # Other objects are written meanwhile, so that two lists are equal only at one version.
    now = s.ok("GET", configmaps(ns))["metadata"]["resourceVersion"]
    path = query(configmaps(ns), resourceVersion=now, resourceVersionMatch="Exact")
    plain = s.exchange("GET", path)
    zipped = s.exchange("GET", path, headers={"Accept-Encoding": "gzip"})
    assert plain[1]["Content-Encoding"] is None and zipped[1]["Content-Encoding"] == "gzip"
    assert len(zipped[2]) < len(plain[2]) / 10 and gzip.decompress(zipped[2]) == plain[2]
    small = s.exchange("GET", configmaps("none-" + ns), headers={"Accept-Encoding": "gzip"})
    assert small[1]["Content-Encoding"] is None and json.loads(small[2])["items"] == []


def test_yaml(s):
    ns = s.namespace()
    s.ok("POST", configmaps(ns), configmap("a", {"no": "yes", "n": "5", "t": "two\nlines\n"}, labels={"l": "1"}))
    status, headers, data = s.exchange("GET", query(configmaps(ns), labelSelector="l"), headers={"Accept": "application/yaml"})
    text = data.decode()
    assert status == 200 and headers["Content-Type"] == "application/yaml"
    assert text.startswith("apiVersion: v1\nitems:\n- data:\n"), text
    assert "\nkind: ConfigMapList\nmetadata:\n" in text
    assert '    "n": "5"\n' in text and '    "no": "yes"\n' in text and "    t: |\n      two\n      lines\n" in text
