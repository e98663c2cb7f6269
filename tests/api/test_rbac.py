# SPDX-License-Identifier: Apache-2.0
"""Who may do what: roles and bindings at work, impersonation, escalation, the objects of the start."""
import json
import time

from expect import MERGE, configmap, configmaps, refused
from seth import Server, unique, wait_until

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1"


def as_user(name, *groups, **more):
    """Headers that impersonate; groups need headers of the same name, so only one fits here."""
    headers = {"Impersonate-User": name, **more}
    if groups:
        assert len(groups) == 1
        headers["Impersonate-Group"] = groups[0]
    return headers


def rule(resources, verbs, group="", names=None):
    made = {"apiGroups": [group], "resources": resources, "verbs": verbs}
    return {**made, "resourceNames": names} if names else made


def role_path(ns=None, name=None):
    kind = f"/namespaces/{ns}/roles" if ns else "/clusterroles"
    return RBAC + kind + (f"/{name}" if name else "")


def binding_path(ns=None, name=None):
    kind = f"/namespaces/{ns}/rolebindings" if ns else "/clusterrolebindings"
    return RBAC + kind + (f"/{name}" if name else "")


def binding(name, role, *subjects, kind="ClusterRole"):
    return {"metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [dict(zip(("kind", "name", "namespace"), s)) for s in subjects]}


def grant(s, user, rules, ns=None):
    """A role of its own for a user, in a namespace or everywhere."""
    name = unique("role")
    s.ok("POST", role_path(ns), {"metadata": {"name": name}, "rules": rules})
    s.ok("POST", binding_path(ns), binding(name, name, ("User", user), kind="Role" if ns else "ClusterRole"))
    return name


def status_of(s, user, method, path, body=None, **headers):
    return s.request(method, path, body, as_user(user, **headers))[0]


def anonymous(s, method, path, headers=None):
    connection = s.connect(with_certificate=False)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null") if answer.headers["Content-Type"] == "application/json" else None
    finally:
        connection.close()


# ---- roles at work

def test_a_role_counts_at_once_and_ends_at_once(s):
    ns, user = s.namespace(), unique("user")
    assert status_of(s, user, "GET", configmaps(ns)) == 403
    name = grant(s, user, [rule(["configmaps"], ["get", "list"]), rule(["secrets"], ["get"], names=["one"])], ns)
    assert status_of(s, user, "GET", configmaps(ns)) == 200
    assert status_of(s, user, "GET", configmaps(ns, "none")) == 404
    assert status_of(s, user, "GET", configmaps("default")) == 403
    assert status_of(s, user, "GET", f"/api/v1/namespaces/{ns}/secrets/one") == 404
    assert status_of(s, user, "GET", f"/api/v1/namespaces/{ns}/secrets/two") == 403
    s.ok("PATCH", role_path(ns, name), {"rules": [rule(["configmaps"], ["create"])]}, MERGE)
    assert status_of(s, user, "GET", configmaps(ns)) == 403
    assert status_of(s, user, "POST", configmaps(ns), configmap("a")) == 201
    s.ok("DELETE", binding_path(ns, name))
    assert status_of(s, user, "POST", configmaps(ns), configmap("b")) == 403


def test_a_list_by_name_needs_the_right_to_that_name(s):
    ns, user = s.namespace(), unique("user")
    grant(s, user, [rule(["configmaps"], ["list", "watch"], names=["mine"])], ns)
    assert status_of(s, user, "GET", configmaps(ns) + "?fieldSelector=metadata.name%3Dmine") == 200
    assert status_of(s, user, "GET", configmaps(ns) + "?fieldSelector=metadata.name%3D%3Dmine") == 200
    assert status_of(s, user, "GET", configmaps(ns) + "?fieldSelector=metadata.name!%3Dmine") == 403
    assert status_of(s, user, "GET", configmaps(ns) + "?fieldSelector=metadata.name%3Dother") == 403
    assert status_of(s, user, "GET", configmaps(ns)) == 403
    refused(s.request("GET", configmaps(ns) + "?fieldSelector=metadata.name%3Dother", headers=as_user(user)), 403, "Forbidden",
            f'configmaps "other" is forbidden: User "{user}" cannot list resource "configmaps" in API group "" in the namespace "{ns}"')


def test_a_namespace_is_inside_itself(s):
    ns, user = s.namespace(), unique("user")
    grant(s, user, [rule(["namespaces"], ["get"])], ns)
    assert status_of(s, user, "GET", f"/api/v1/namespaces/{ns}") == 200
    assert status_of(s, user, "GET", "/api/v1/namespaces/default") == 403
    assert status_of(s, user, "GET", "/api/v1/namespaces") == 403


def test_groups_accounts_and_subresources(s):
    ns, group = s.namespace(), unique("group")
    s.ok("POST", role_path(ns), {"metadata": {"name": "r"}, "rules": [rule(["*/status"], ["patch"]), rule(["configmaps"], ["get"])]})
    s.ok("POST", binding_path(ns), binding("b", "r", ("Group", group), ("ServiceAccount", "robot"), kind="Role"))
    member = as_user("somebody", group)
    assert s.request("GET", configmaps(ns, "x"), headers=member)[0] == 404
    assert status_of(s, f"system:serviceaccount:{ns}:robot", "GET", configmaps(ns, "x")) == 404
    assert status_of(s, f"system:serviceaccount:default:robot", "GET", configmaps(ns, "x")) == 403
    claim = f"/api/v1/namespaces/{ns}/persistentvolumeclaims/x"
    assert s.request("PATCH", claim + "/status", {}, {**MERGE, **member})[0] == 404
    assert s.request("PATCH", claim, {}, {**MERGE, **member})[0] == 403


def test_kubectl_asks_what_it_may(s):
    ns, user = s.namespace(), unique("user")
    grant(s, user, [rule(["configmaps"], ["get", "list"])], ns)
    for version in ("old", "new"):
        can = lambda *words: s.kubectl("auth", "can-i", *words, "-n", ns, "--as", user, version=version, check=False).stdout.strip()
        assert can("list", "configmaps") == "yes"
        assert can("delete", "configmaps") == "no"
        assert can("get", "/version") == "yes"
        assert can("get", "/metrics") == "no"
        listed = s.kubectl("auth", "can-i", "--list", "-n", ns, "--as", user, version=version)
        assert any(line.split()[0] == "configmaps" and line.endswith("[get list]") for line in listed.splitlines()), listed
        assert s.kubectl("get", "configmaps", "-n", ns, "--as", user, version=version)
        failed = s.kubectl("delete", "configmap", "x", "-n", ns, "--as", user, version=version, check=False)
        assert f'Error from server (Forbidden): configmaps "x" is forbidden: User "{user}" cannot delete' in failed.stderr, failed.stderr
    assert "seth-admin" in s.kubectl("auth", "whoami")
    assert user in s.kubectl("auth", "whoami", "--as", user)


def test_a_review_names_the_binding(s):
    ns, user = s.namespace(), unique("user")
    name = grant(s, user, [rule(["configmaps"], ["get"])], ns)
    spec = {"user": user, "resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": ns,
                                                 "fieldSelector": {"rawSelector": "metadata.name=a"},
                                                 "labelSelector": {"requirements": [{"key": "a", "operator": "Exists"}]}}}
    answer = s.ok("POST", REVIEWS + "/subjectaccessreviews", {"spec": spec})
    assert answer["status"] == {"allowed": True, "reason": f'RBAC: allowed by RoleBinding "{name}/{ns}" of Role "{name}" to User "{user}"'}
    local = s.ok("POST", f"{REVIEWS}/namespaces/{ns}/localsubjectaccessreviews", {"spec": spec})
    assert local["status"]["allowed"] is True
    spec["resourceAttributes"]["labelSelector"] = {}
    refused(s.request("POST", REVIEWS + "/subjectaccessreviews", {"spec": spec}), 422, "Invalid",
            causes=[("FieldValueRequired", "spec.resourceAttributes.labelSelector.requirements")])


# ---- who

def test_without_credentials(s):
    for path in ("/version", "/healthz", "/livez", "/readyz"):
        assert anonymous(s, "GET", path)[0] == 200, path
    for path in ("/api", "/apis", "/metrics", "/openapi/v2", "/"):
        refused(anonymous(s, "GET", path), 403, "Forbidden", f'forbidden: User "system:anonymous" cannot get path "{path}"')
    for header in ("Bearer ", "Basic YTpi", "nonsense", "bearer"):
        refused(anonymous(s, "GET", "/api", {"Authorization": header}), 403, "Forbidden",
                'forbidden: User "system:anonymous" cannot get path "/api"')
    for header in ("Bearer nope", "bearer eyJhbGciOiJub25lIn0.e30.x"):
        refused(anonymous(s, "GET", "/healthz", {"Authorization": header}), 401, "Unauthorized", "Unauthorized")
    refused(anonymous(s, "GET", "/api/v1/secrets", {"Impersonate-User": "seth-admin"}), 403, "Forbidden",
            'users "seth-admin" is forbidden: User "system:anonymous" cannot impersonate resource "users" in API group "" at the cluster scope')


def test_public_paths_are_public_by_their_binding_alone():
    with Server() as s:
        s.ok("DELETE", binding_path(None, "system:public-info-viewer"))
        assert anonymous(s, "GET", "/version")[0] == 403
        assert s.request("GET", "/version")[0] == 200


def token_of(s, ns):
    """A ServiceAccount with a token: somebody who is not an administrator."""
    account = unique("sa")
    s.ok("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": account}})
    answer = s.ok("POST", f"/api/v1/namespaces/{ns}/serviceaccounts/{account}/token", {"spec": {}})
    return f"system:serviceaccount:{ns}:{account}", answer["status"]["token"]


def test_impersonation_is_a_right_for_each_part(s):
    ns = s.namespace()
    user, token = token_of(s, ns)

    def ask(**headers):
        return anonymous(s, "GET", "/api", {"Authorization": f"Bearer {token}", **{k.replace("_", "-"): v for k, v in headers.items()}})

    def denied(resource, name, group="", where="at the cluster scope", full=None):
        return (403, f'{full or resource} "{name}" is forbidden: User "{user}" cannot impersonate resource "{resource}" '
                     f'in API group "{group}" {where}')

    def check(answer, expected):
        assert (answer[0], answer[1]["message"]) == expected, answer

    check(ask(Impersonate_User="jane"), denied("users", "jane"))
    check(ask(Impersonate_User=f"system:serviceaccount:{ns}:other"),
          denied("serviceaccounts", "other", where=f'in the namespace "{ns}"'))
    rights = [rule(["users"], ["impersonate"], names=["jane"])]
    role = grant(s, user, rights)
    assert ask(Impersonate_User="jane")[0] == 200
    check(ask(Impersonate_User="john"), denied("users", "john"))
    check(ask(Impersonate_User="jane", Impersonate_Group="g"), denied("groups", "g"))
    check(ask(Impersonate_User="jane", Impersonate_Uid="u"),
          denied("uids", "u", "authentication.k8s.io", full="uids.authentication.k8s.io"))
    check(ask(Impersonate_User="jane", **{"Impersonate-Extra-Acme%2fX": "v"}),
          denied("userextras/acme/x", "v", "authentication.k8s.io", full="userextras.authentication.k8s.io"))
    rights += [rule(["groups"], ["impersonate"], names=["g"]), rule(["uids"], ["impersonate"], "authentication.k8s.io"),
               rule(["userextras/acme/x"], ["impersonate"], "authentication.k8s.io", names=["v"])]
    s.ok("PATCH", role_path(None, role), {"rules": rights}, MERGE)
    assert ask(Impersonate_User="jane", Impersonate_Group="g", Impersonate_Uid="u", **{"Impersonate-Extra-Acme%2fX": "v"})[0] == 200
    assert ask(Impersonate_User="jane", **{"Impersonate-Extra-Acme%2fX": "w"})[0] == 403
    assert ask(Impersonate_Group="g")[0] == 400
    # Whom one acts as decides, not who one is.
    check(ask(Impersonate_User="jane", Impersonate_Group="system:masters"), denied("groups", "system:masters"))


# ---- escalation

def manager(s, ns=None, *more):
    user = unique("mgr")
    grant(s, user, [rule(["*"], ["create", "update", "patch", "get"], "rbac.authorization.k8s.io"),
                    rule(["configmaps"], ["get"]), *more], ns)
    return user


def refuses_escalation(answer, *missing):
    assert answer[0] == 403 and "is attempting to grant RBAC permissions not currently held:\n" in answer[1]["message"], answer
    assert answer[1]["message"].split("\n")[1:] == list(missing), answer[1]["message"]


def test_nobody_hands_out_what_they_do_not_have(s):
    ns = s.namespace()
    user = manager(s, ns)
    me = as_user(user)
    make = lambda rules, name=None: s.request("POST", role_path(ns), {"metadata": {"name": name or unique("r")}, "rules": rules}, me)
    assert make([rule(["configmaps"], ["get"])], "ok")[0] == 201
    refuses_escalation(make([rule(["secrets", "pods"], ["list", "get"])]),
                       '{APIGroups:[""], Resources:["pods"], Verbs:["list" "get"]}',
                       '{APIGroups:[""], Resources:["secrets"], Verbs:["list" "get"]}')
    refuses_escalation(make([rule(["configmaps", "*"], ["get", "*"])]),
                       '{APIGroups:[""], Resources:["*"], Verbs:["get" "*"]}', '{APIGroups:[""], Resources:["configmaps"], Verbs:["*"]}')
    refuses_escalation(make([rule(["configmaps"], ["get"], "*")]), '{APIGroups:["*"], Resources:["configmaps"], Verbs:["get"]}')
    for method, body, headers in (("PATCH", {"rules": [rule(["secrets"], ["get"])]}, MERGE),
                                  ("PUT", {"metadata": {"name": "ok"}, "rules": [rule(["secrets"], ["get"])]}, {})):
        refuses_escalation(s.request(method, role_path(ns, "ok"), body, {**me, **headers}),
                           '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}')
    # An apply and a create by PUT are writes like any other.
    wanted = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "new"}, "rules": [rule(["secrets"], ["get"])]}
    apply = s.request("PATCH", role_path(ns, "new") + "?fieldManager=x", json.dumps(wanted), {**me, "Content-Type": "application/apply-patch+yaml"})
    refuses_escalation(apply, '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}')
    refuses_escalation(s.request("PUT", role_path(ns, "new"), wanted, me), '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}')
    assert s.request("GET", role_path(ns, "new"))[0] == 404
    # A change of nothing is no grant; neither is a finalizer on what somebody else granted.
    s.ok("POST", role_path(ns), {"metadata": {"name": "big"}, "rules": [rule(["*"], ["*"], "*")]})
    big = s.ok("GET", role_path(ns, "big"))
    assert s.request("PUT", role_path(ns, "big"), big, me)[0] == 200
    big["metadata"]["finalizers"] = []
    assert s.request("PUT", role_path(ns, "big"), big, me)[0] == 200
    big["metadata"]["labels"] = {"a": "b"}
    refuses_escalation(s.request("PUT", role_path(ns, "big"), big, me), '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}')


def test_a_binding_grants_what_its_role_has(s):
    ns = s.namespace()
    user = manager(s, ns)
    me = as_user(user)
    s.ok("POST", role_path(ns), {"metadata": {"name": "small"}, "rules": [rule(["configmaps"], ["get"])]})
    s.ok("POST", role_path(ns), {"metadata": {"name": "big"}, "rules": [rule(["secrets"], ["get"])]})
    bind = lambda name, role, kind="Role": s.request("POST", binding_path(ns), binding(name, role, ("User", user), kind=kind), me)
    assert bind("a", "small")[0] == 201
    refuses_escalation(bind("b", "big"), '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}')
    refuses_escalation(bind("b", "cluster-admin", "ClusterRole"), '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}',
                       '{NonResourceURLs:["*"], Verbs:["*"]}')
    refused(bind("c", "absent"), 404, "NotFound", 'rolebindings.rbac.authorization.k8s.io "absent" not found')
    refused(s.request("POST", binding_path(), binding("d", "cluster-admin", ("User", user)), me), 403, "Forbidden")
    s.ok("POST", binding_path(ns), binding("held", "big", ("User", "x"), kind="Role"))
    refuses_escalation(s.request("PATCH", binding_path(ns, "held"), {"subjects": [{"kind": "User", "name": user}]}, {**MERGE, **me}),
                       '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}')


def test_bind_and_escalate_are_rights(s):
    ns = s.namespace()
    group = "rbac.authorization.k8s.io"
    user = manager(s, ns, rule(["roles"], ["bind"], group, names=["big"]), rule(["roles"], ["escalate"], group, names=["free"]))
    me = as_user(user)
    for name in ("big", "other", "free", "tight"):
        s.ok("POST", role_path(ns), {"metadata": {"name": name}, "rules": [rule(["secrets"], ["get"])]})
    bind = lambda role: s.request("POST", binding_path(ns), binding(unique("b"), role, ("User", "x"), kind="Role"), me)[0]
    assert (bind("big"), bind("other")) == (201, 403)
    widen = lambda role: s.request("PATCH", role_path(ns, role), {"rules": [rule(["*"], ["*"])]}, {**MERGE, **me})[0]
    assert (widen("free"), widen("tight")) == (200, 403)


def test_aggregation_needs_everything(s):
    selector = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    body = lambda: {"metadata": {"name": unique("agg")}, "aggregationRule": selector}
    user = manager(s)
    refused(s.request("POST", role_path(), body(), as_user(user)), 403, "Forbidden")
    answer = s.request("POST", role_path(), body(), as_user(user))[1]
    assert answer["message"].endswith("must have cluster-admin privileges to use the aggregationRule"), answer
    boss = unique("boss")
    s.ok("POST", binding_path(), binding(unique("b"), "cluster-admin", ("User", boss)))
    assert status_of(s, boss, "POST", role_path(), body()) == 201


def test_a_role_of_absurd_size_is_refused_quickly(s):
    ns = s.namespace()
    user = manager(s, ns)
    many = lambda prefix: [f"{prefix}{i}" for i in range(1000)]
    body = {"metadata": {"name": "huge"}, "rules": [{"apiGroups": many("g"), "resources": many("r"), "verbs": many("v")}]}
    began = time.monotonic()
    refused(s.request("POST", role_path(ns), body, as_user(user)), 403, "Forbidden")
    assert time.monotonic() - began < 5
    # An administrator may; whoever is bound to it is judged all the same.
    s.ok("POST", role_path(ns), body)
    s.ok("POST", binding_path(ns), binding("huge", "huge", ("User", user), kind="Role"))
    review = lambda verb: s.ok("POST", REVIEWS + "/subjectaccessreviews", {"spec": {"user": user, "resourceAttributes": {
        "verb": verb, "group": "g999", "resource": "r7", "namespace": ns}}})["status"]["allowed"]
    assert (review("v500"), review("v1000")) == (True, False)


# ---- the start

def test_what_the_start_made_is_restored_and_what_was_added_stays():
    with Server() as s:
        role, protected = role_path(None, "system:discovery"), role_path(None, "system:basic-user")
        had = s.ok("GET", role)["rules"]
        extra = rule(["configmaps"], ["get"])
        s.ok("PATCH", role, {"rules": [extra]}, MERGE)
        s.ok("PATCH", protected, {"rules": [], "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}}, MERGE)
        s.ok("PATCH", binding_path(None, "system:discovery"), {"subjects": [{"kind": "User", "name": "kept"}]}, MERGE)
        s.ok("DELETE", binding_path(None, "system:basic-user"))
        s.ok("DELETE", role_path(None, "view"))
        assert status_of(s, "jane", "GET", "/apis") == 403
        s.stop()
        s.start()
        rules = s.ok("GET", role)["rules"]
        assert rules[0] == extra and all(r in rules for r in had), rules
        assert "rules" not in (answer := s.ok("GET", protected)) or not answer["rules"], answer
        subjects = s.ok("GET", binding_path(None, "system:discovery"))["subjects"]
        assert [x["name"] for x in subjects] == ["kept", "system:authenticated"], subjects
        s.ok("GET", binding_path(None, "system:basic-user"))
        wait_until(lambda: s.request("GET", role_path(None, "view"))[1].get("rules"), what="view to be aggregated again")
        assert status_of(s, "jane", "GET", "/apis") == 200
        # A third start finds nothing to do.
        revision = s.ok("GET", role)["metadata"]["resourceVersion"]
        s.stop()
        s.start()
        assert s.ok("GET", role)["metadata"]["resourceVersion"] == revision


def test_our_kinds_are_in_admin_edit_and_view(s):
    of_eve = lambda role: [r for r in s.ok("GET", role_path(None, role)).get("rules") or [] if r.get("apiGroups") == ["eve.lfedge.org"]]
    devices = lambda ns: f"/apis/eve.lfedge.org/v1beta1/namespaces/{ns}/devices"
    ns = s.namespace()
    for role in ("view", "edit", "admin"):
        wait_until(lambda: of_eve(role), what=f"our kinds in {role}")
        s.ok("POST", binding_path(ns), binding(role, role, ("User", role)))
    wait_until(lambda: len(of_eve("admin")) > len(of_eve("edit")) > len(of_eve("view")) > 0, what="each to have what it gathers")
    body = {"apiVersion": "eve.lfedge.org/v1beta1", "kind": "Device", "metadata": {"name": "d"}}
    assert (status_of(s, "view", "GET", devices(ns)), status_of(s, "view", "POST", devices(ns), body)) == (200, 403)
    assert status_of(s, "edit", "POST", devices(ns), body) == 201
    assert status_of(s, "admin", "DELETE", devices(ns) + "/d") == 200
