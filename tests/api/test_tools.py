# SPDX-License-Identifier: Apache-2.0
"""What the tools of the ecosystem ask, in their order, with their own credentials: Argo CD, Flux, Helm, Terraform, k9s."""
import base64
import concurrent.futures
import gzip
import json

from seth import unique, wait_until

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
DISCOVERY = ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
             "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json")
OPENAPI_PROTO = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


class Client:
    """One tool: its bearer token and user agent, no certificate."""

    def __init__(self, s, token, agent, **headers):
        self.s, self.headers = s, {"Authorization": f"Bearer {token}", "User-Agent": agent, **headers}

    def exchange(self, method, path, body=None, **headers):
        sent = {**self.headers, **{k.replace("_", "-"): v for k, v in headers.items()}}
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
            sent.setdefault("Content-Type", "application/json")
        connection = self.s.connect(with_certificate=False)
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            data = answer.read()
            if answer.headers.get("Content-Encoding") == "gzip":
                data = gzip.decompress(data)
            return answer.status, answer.headers, data
        finally:
            connection.close()

    def ask(self, method, path, body=None, **headers):
        status, _, data = self.exchange(method, path, body, **headers)
        return status, json.loads(data) if data[:1] in b"{[" else data

    def ok(self, method, path, body=None, **headers):
        status, answer = self.ask(method, path, body, **headers)
        assert 200 <= status < 300, f"{method} {path}: {status} {answer}"
        return answer


def robot(s, namespace, name, role, agent, **headers):
    """A ServiceAccount with a ClusterRole and a token of an hour."""
    s.ok("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
    s.ok("POST", f"{RBAC}/clusterrolebindings",
         {"metadata": {"name": unique(name)}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
          "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]})
    token = s.ok("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    return Client(s, token, agent, **headers)


def listable(client):
    """Every resource that discovery says can be listed and watched, as (path, is it namespaced)."""
    paths = []
    for root in ("/api", "/apis"):
        for group in client.ok("GET", root, Accept=DISCOVERY)["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                base = f"/apis/{name}/{version['version']}" if name else f"/api/{version['version']}"
                paths += [f"{base}/{r['resource']}" for r in version["resources"] if {"list", "watch"} <= set(r["verbs"])]
    return paths


def definition(name):
    group = f"{name}.example.org"
    return group, {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"lamps.{group}"},
                   "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "lamps", "singular": "lamp", "kind": "Lamp", "listKind": "LampList"},
                            "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
                                "type": "object", "properties": {"spec": {"type": "object", "properties": {"watts": {"type": "integer", "default": 40}}},
                                                                 "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}]}}


# ---- Argo CD ------------------------------------------------------------------------------


def test_argocd_cluster_add_then_sync(s):
    """`argocd cluster add`: an account in kube-system with a Secret that must be filled; then what the controller asks of the cluster."""
    account, role = unique("argocd-manager"), unique("argocd-manager-role")
    s.ok("POST", "/api/v1/namespaces/kube-system/serviceaccounts", {"metadata": {"name": account}})
    s.ok("POST", f"{RBAC}/clusterroles", {"metadata": {"name": role}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
                                                                            {"nonResourceURLs": ["*"], "verbs": ["*"]}]})
    s.ok("POST", f"{RBAC}/clusterrolebindings",
         {"metadata": {"name": role + "-binding"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
          "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}]})
    secrets = "/api/v1/namespaces/kube-system/secrets"
    s.ok("POST", secrets, {"metadata": {"name": f"{account}-token", "annotations": {"kubernetes.io/service-account.name": account}},
                           "type": "kubernetes.io/service-account-token"})
    data = wait_until(lambda: (d := s.ok("GET", f"{secrets}/{account}-token").get("data", {})).get("token") and d, what="the token Secret to be filled")
    assert base64.b64decode(data["ca.crt"]).startswith(b"-----BEGIN CERTIFICATE"), data
    assert base64.b64decode(data["namespace"]) == b"kube-system"
    argo = Client(s, base64.b64decode(data["token"]).decode(), "argocd-application-controller/v2.12")

    version = argo.ok("GET", "/version")
    assert version["gitVersion"].startswith("v1.") and version["major"] == "1" and version["minor"].isdigit(), version
    status, headers, schema = argo.exchange("GET", "/openapi/v2", Accept=OPENAPI_PROTO)
    assert status == 200 and headers["Content-Type"].startswith("application/com.github.proto-openapi") and schema[:1] == b"\x0a", headers
    paths = listable(argo)
    assert len(paths) > 15, paths

    def list_and_watch(path):
        revision = argo.ok("GET", f"{path}?limit=500")["metadata"]["resourceVersion"]
        assert int(revision) > 0
        status, _, _ = argo.exchange("GET", f"{path}?watch=true&allowWatchBookmarks=true&resourceVersion={revision}&timeoutSeconds=1")
        assert status == 200, path
    with concurrent.futures.ThreadPoolExecutor(len(paths)) as pool:  # one that fails fails the whole cluster
        list(pool.map(list_and_watch, paths))
    review = argo.ok("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                     {"spec": {"resourceAttributes": {"verb": "list", "resource": "configmaps"}}})
    assert review["status"]["allowed"] is True

    # Sync: server-side dry run for the difference, apply, then foreground deletion with a dependent that blocks it.
    ns = unique("argo")
    argo.ok("POST", "/api/v1/namespaces", {"metadata": {"name": ns}})
    maps = f"/api/v1/namespaces/{ns}/configmaps"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}, "data": {"a": "1"}}
    apply = {"Content_Type": "application/apply-patch+yaml"}
    dry = argo.ok("PATCH", f"{maps}/app?fieldManager=argocd-controller&force=true&dryRun=All", body, **apply)
    assert dry["data"] == {"a": "1"} and argo.ask("GET", f"{maps}/app")[0] == 404
    owner = argo.ok("PATCH", f"{maps}/app?fieldManager=argocd-controller&force=true", body, **apply)
    argo.ok("POST", maps, {"metadata": {"name": "child", "finalizers": ["example.org/wait"], "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "app", "uid": owner["metadata"]["uid"], "blockOwnerDeletion": True}]}})
    argo.ok("DELETE", f"{maps}/app", {"propagationPolicy": "Foreground"})
    wait_until(lambda: "deletionTimestamp" in argo.ok("GET", f"{maps}/child")["metadata"], what="the dependent to be deleted")
    assert argo.ask("GET", f"{maps}/app")[0] == 200, "the owner went before its dependent"
    argo.ok("PATCH", f"{maps}/child", {"metadata": {"finalizers": None}}, Content_Type="application/merge-patch+json")
    wait_until(lambda: argo.ask("GET", f"{maps}/app")[0] == 404, what="the owner to go")

    # Taken away again: the token dies with its account.
    s.ok("DELETE", f"/api/v1/namespaces/kube-system/serviceaccounts/{account}")
    assert argo.ask("GET", "/version")[0] == 401


# ---- Flux ---------------------------------------------------------------------------------


def test_flux_applies_as_the_account_of_a_tenant(s):
    """kustomize-controller impersonates the tenant's account: CRDs first, dry run of each object, apply, drift, prune."""
    ns = s.namespace()
    group, crd = definition(unique("flux"))
    tenant = f"system:serviceaccount:{ns}:tenant"
    s.ok("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "tenant"}})
    s.ok("POST", f"{RBAC}/namespaces/{ns}/rolebindings",
         {"metadata": {"name": "tenant"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
          "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": ns}]})
    flux = robot(s, ns, "kustomize-controller", "cluster-admin", "kustomize-controller/v1.3.0")
    flux.ok("PATCH", f"{CRDS}/lamps.{group}?fieldManager=kustomize-controller&force=true", crd, Content_Type="application/apply-patch+yaml")
    wait_until(lambda: any(c["type"] == "Established" and c["status"] == "True"
                           for c in flux.ok("GET", f"{CRDS}/lamps.{group}").get("status", {}).get("conditions") or []), what="the CRD to be established")
    flux.ok("POST", f"{RBAC}/clusterroles", {"metadata": {"name": unique("lamps"), "labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}},
                                            "rules": [{"apiGroups": [group], "resources": ["lamps"], "verbs": ["*"]}]})
    as_tenant = {"Impersonate_User": tenant, "Content_Type": "application/apply-patch+yaml"}
    lamp = {"apiVersion": f"{group}/v1", "kind": "Lamp", "metadata": {"name": "hall"}, "spec": {"watts": 60}}
    path = f"/apis/{group}/v1/namespaces/{ns}/lamps/hall?fieldManager=kustomize-controller&force=true"
    wait_until(lambda: flux.ask("PATCH", path + "&dryRun=All", lamp, **as_tenant)[0] in (200, 201), what="the aggregated role to reach the tenant")
    first = flux.ok("PATCH", path, lamp, **as_tenant)
    assert flux.ok("PATCH", path + "&dryRun=All", lamp, **as_tenant)["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"], "drift where there is none"
    status, refused = flux.ask("PATCH", "/api/v1/namespaces/kube-system/configmaps/x?fieldManager=f&force=true",
                               {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}, **as_tenant)
    assert status == 403 and refused["message"].startswith(f'configmaps "x" is forbidden: User "{tenant}" cannot patch resource "configmaps"'), refused
    flux.ok("DELETE", path.split("?")[0], Impersonate_User=tenant)
    assert flux.ask("GET", path.split("?")[0], Impersonate_User=tenant)[0] == 404
    s.ok("DELETE", f"{CRDS}/lamps.{group}")


# ---- Helm ---------------------------------------------------------------------------------


def test_helm_keeps_its_releases_in_secrets(s):
    """install, upgrade, history, uninstall: discovery, version, Secrets of its type found by label, up to a megabyte each."""
    ns = s.namespace()
    helm = robot(s, ns, "deployer", "cluster-admin", "Helm/3.15.0")
    helm.ok("GET", "/version?timeout=32s")
    listable(helm)
    secrets = f"/api/v1/namespaces/{ns}/secrets"
    assert helm.ok("GET", f"{secrets}?labelSelector=name%3Dweb%2Cowner%3Dhelm")["items"] == []

    def release(revision, state, size):
        return {"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "data": {"release": base64.b64encode(b"x" * size).decode()},
                "metadata": {"name": f"sh.helm.release.v1.web.v{revision}", "labels": {"name": "web", "owner": "helm", "status": state, "version": str(revision)}}}
    helm.ok("POST", secrets, release(1, "pending-install", 700_000))
    helm.ok("POST", f"/api/v1/namespaces/{ns}/configmaps?fieldManager=helm", {"metadata": {"name": "web", "labels": {"app.kubernetes.io/managed-by": "Helm"}}, "data": {"v": "1"}})
    helm.ok("PUT", f"{secrets}/sh.helm.release.v1.web.v1", release(1, "deployed", 700_000))
    helm.ok("POST", secrets, release(2, "pending-upgrade", 500_000))
    helm.ok("PATCH", f"/api/v1/namespaces/{ns}/configmaps/web?fieldManager=helm", {"data": {"v": "2"}}, Content_Type="application/strategic-merge-patch+json")
    helm.ok("PUT", f"{secrets}/sh.helm.release.v1.web.v1", release(1, "superseded", 700_000))
    helm.ok("PUT", f"{secrets}/sh.helm.release.v1.web.v2", release(2, "deployed", 500_000))
    found = helm.ok("GET", f"{secrets}?labelSelector=name%3Dweb%2Cowner%3Dhelm%2Cstatus%3Ddeployed")["items"]
    assert [i["metadata"]["labels"]["version"] for i in found] == ["2"], found
    status, refused = helm.ask("POST", secrets, release(3, "pending-upgrade", 1_100_000))
    assert status == 422 and "Too long: may not be more than 1048576 bytes" in refused["message"], (status, str(refused)[:300])
    for revision in (1, 2):
        helm.ok("DELETE", f"{secrets}/sh.helm.release.v1.web.v{revision}")
    helm.ok("DELETE", f"/api/v1/namespaces/{ns}/configmaps/web")
    assert helm.ok("GET", f"{secrets}?labelSelector=owner%3Dhelm")["items"] == []


# ---- Terraform ----------------------------------------------------------------------------


def test_terraform_second_plan_is_empty(s):
    """kubernetes_manifest: credentials by /apis, schema from the CRD, plan by dry run, apply, and nothing to do the second time."""
    ns = s.namespace()
    group, crd = definition(unique("tf"))
    s.ok("POST", CRDS, crd)
    terraform = robot(s, ns, "terraform", "cluster-admin", "Terraform/1.9 kubernetes_manifest")
    assert any(g["name"] == "apiextensions.k8s.io" for g in terraform.ok("GET", "/apis")["groups"])
    wait_until(lambda: any(r["kind"] == "Lamp" for r in (terraform.ask("GET", f"/apis/{group}/v1")[1] or {}).get("resources", [])) if
               terraform.ask("GET", f"/apis/{group}/v1")[0] == 200 else False, what="the kind to be served")
    schema = terraform.ok("GET", "/openapi/v2")
    assert "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" in schema["definitions"]
    definitions = {i["metadata"]["name"]: i for i in terraform.ok("GET", CRDS)["items"]}
    assert definitions[f"lamps.{group}"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    lamp = {"apiVersion": f"{group}/v1", "kind": "Lamp", "metadata": {"name": "porch", "namespace": ns}, "spec": {"watts": 25}}
    path = f"/apis/{group}/v1/namespaces/{ns}/lamps/porch"
    apply = {"Content_Type": "application/apply-patch+yaml"}

    def known(o):
        meta = {k: v for k, v in o["metadata"].items() if k not in ("uid", "resourceVersion", "generation", "managedFields", "creationTimestamp")}
        return {**{k: v for k, v in o.items() if k != "status"}, "metadata": meta}
    plan = terraform.ok("PATCH", f"{path}?fieldManager=Terraform&dryRun=All&force=false", lamp, **apply)
    made = terraform.ok("PATCH", f"{path}?fieldManager=Terraform&force=false", lamp, **apply)
    assert known(plan) == known(made) == lamp, (plan, made)
    again = terraform.ok("PATCH", f"{path}?fieldManager=Terraform&dryRun=All&force=false", lamp, **apply)
    assert known(again) == lamp and again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    terraform.ok("DELETE", path, {"propagationPolicy": "Background"})
    s.ok("DELETE", f"{CRDS}/lamps.{group}")


# ---- k9s ----------------------------------------------------------------------------------


def test_k9s_shows_what_its_user_may_see(s):
    """A reader of one namespace: one review per verb and kind, then tables; what is refused is refused in words it matches."""
    ns = s.namespace()
    s.ok("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "viewer"}})
    s.ok("POST", f"{RBAC}/namespaces/{ns}/rolebindings",
         {"metadata": {"name": "viewer"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
          "subjects": [{"kind": "ServiceAccount", "name": "viewer", "namespace": ns}]})
    token = s.ok("POST", f"/api/v1/namespaces/{ns}/serviceaccounts/viewer/token", {"spec": {}})["status"]["token"]
    k9s = Client(s, token, "k9s/v0.50.18")
    k9s.ok("GET", "/version?timeout=15s")
    assert listable(k9s)

    def may(verb, resource, namespace=""):
        attributes = {"verb": verb, "resource": resource, "namespace": namespace}
        return k9s.ok("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes}})["status"]["allowed"]
    assert not may("list", "namespaces") and may("list", "configmaps", ns) and may("watch", "configmaps", ns)
    assert not may("delete", "configmaps", ns) and not may("list", "secrets", ns), "view reads no Secrets and deletes nothing"
    status, refused = k9s.ask("GET", "/api/v1/namespaces")
    assert status == 403 and refused["reason"] == "Forbidden"
    s.ok("POST", f"/api/v1/namespaces/{ns}/configmaps", {"metadata": {"name": "seen"}, "data": {"a": "1"}})
    table = k9s.ok("GET", f"/api/v1/namespaces/{ns}/configmaps?includeObject=Object", Accept=TABLE)
    assert table["kind"] == "Table" and "seen" in [r["cells"][0] for r in table["rows"]], table
    assert k9s.ask("GET", "/apis/metrics.k8s.io/v1beta1/nodes")[0] in (403, 404), "its absence is tolerated"
    rules = k9s.ok("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": ns}})["status"]
    assert any("configmaps" in r.get("resources", []) and set(r["verbs"]) == {"get", "list", "watch"} for r in rules["resourceRules"]), rules
    assert rules["incomplete"] is False
