/* SPDX-License-Identifier: Apache-2.0 */
#include "../api/kinds_fixture.h"
#include "hook_fixture.h"
#include "test.h"

#define REGISTRY CLEANUP(registry_unrefp) struct registry *

#define SUBDOMAIN \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or " \
    "'.', and must start " \
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " \
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define CONFIG_KEY \
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. " \
    "'key.name',  or 'KEY_NAME',  " \
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
#define CLAIM(more) \
    "{'metadata':{'name':'p'},'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'" \
    "storage':'1Gi'}}" more "}}"
#define VOLUME(more) \
    "{'metadata':{'name':'v'},'spec':{'capacity':{'storage':'1Gi'},'accessModes':['ReadWriteOnce'" \
    "]" more "}}"

TEST(new_objects_are_judged)
{
    static const struct {
        const char *kind, *object, *causes;
    } cases[] = {
        /* config maps */
        {"core/v1/configmaps", "{'data':{'a':'1'},'binaryData':{'b':'MQ=='}}", ""},
        {"core/v1/configmaps", "{'data':{'a':'1'},'binaryData':{'a':'MQ=='}}",
         "data[a]: Invalid value: \"a\": duplicate of key present in binaryData"},
        {"core/v1/configmaps", "{'data':{'..':'y'}}",
         "data[..]: Invalid value: \"..\": must not be '..'"},
        {"core/v1/configmaps", "{'data':{'..x':'y'}}",
         "data[..x]: Invalid value: \"..x\": must not start with '..'"},
        {"core/v1/configmaps", "{'data':{'':'z'}}", "data[]: Invalid value: \"\": " CONFIG_KEY},
        {"core/v1/configmaps", "{'binaryData':{'a/b':''}}",
         "binaryData[a/b]: Invalid value: \"a/b\": " CONFIG_KEY},
        /* secrets */
        {"core/v1/secrets", "{}", ""},
        {"core/v1/secrets", "{'type':'my.example.org/anything'}", ""},
        {"core/v1/secrets", "{'type':'kubernetes.io/dockerconfigjson'}",
         "data[.dockerconfigjson]: Required value"},
        {"core/v1/secrets",
         "{'type':'kubernetes.io/dockerconfigjson','stringData':{'.dockerconfigjson':'{'}}",
         "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": unexpected end "
         "of JSON input"},
        {"core/v1/secrets", "{'type':'kubernetes.io/dockercfg','stringData':{'.dockercfg':'{}'}}",
         ""},
        {"core/v1/secrets", "{'type':'kubernetes.io/basic-auth'}",
         "data[username]: Required value | data[password]: Required value"},
        {"core/v1/secrets", "{'type':'kubernetes.io/basic-auth','stringData':{'username':'u'}}",
         ""},
        {"core/v1/secrets", "{'type':'kubernetes.io/tls','stringData':{'tls.crt':'x'}}",
         "data[tls.key]: Required value"},
        {"core/v1/secrets", "{'type':'kubernetes.io/ssh-auth'}",
         "data[ssh-privatekey]: Required value"},
        {"core/v1/secrets", "{'type':'kubernetes.io/service-account-token'}",
         "metadata.annotations[kubernetes.io/service-account.name]: Required value"},
        /* namespaces */
        {"core/v1/namespaces", "{'spec':{'finalizers':['a.b/c']}}", ""},
        {"core/v1/namespaces", "{'spec':{'finalizers':['bad']}}",
         "spec.finalizers: Invalid value: \"bad\": name is neither a standard finalizer name nor "
         "is it fully qualified"},
        /* leases */
        {"coordination.k8s.io/v1/leases", "{'spec':{'leaseDurationSeconds':0}}",
         "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"},
        {"coordination.k8s.io/v1/leases",
         "{'spec':{'leaseDurationSeconds':1,'leaseTransitions':-1}}",
         "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"},
        /* storage classes */
        {"storage.k8s.io/v1/storageclasses",
         "{'provisioner':'example.org/p','parameters':{'a':'b'}}", ""},
        {"storage.k8s.io/v1/storageclasses", "{}", "provisioner: Required value"},
        {"storage.k8s.io/v1/storageclasses",
         "{'provisioner':'p','reclaimPolicy':'Nope','volumeBindingMode':'Nope','parameters':{'':'x'"
         "}}",
         "parameters: Invalid value: \"\": field can not be empty. | reclaimPolicy: Unsupported "
         "value: \"Nope\": supported "
         "values: \"Delete\", \"Retain\" | volumeBindingMode: Unsupported value: \"Nope\": "
         "supported values: "
         "\"Immediate\", \"WaitForFirstConsumer\""},
        {"storage.k8s.io/v1/storageclasses", "{'provisioner':'Bad Name!'}",
         "provisioner: Invalid value: \"bad name!\": name part must consist of alphanumeric "
         "characters, '-', '_' or '.', "
         "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
         "'123-abc', regex used "
         "for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
        {"storage.k8s.io/v1/storageclasses",
         "{'provisioner':'eve','parameters':{'type':'container','URL':'r.example','certificate':'"
         "no "
         "PEM'}}",
         "parameters.certificate: Invalid value: must be certificates in PEM, at most 32"},
        /* controller revisions */
        {"apps/v1/controllerrevisions", "{'revision':-1}",
         "data: Required value: data is mandatory | revision: Invalid value: -1: must be greater "
         "than or equal to 0"},
        /* quotas */
        {"core/v1/resourcequotas",
         "{'spec':{'hard':{'secrets':'2','count/leases.coordination.k8s.io':'0','cpu':'1'}}}", ""},
        {"core/v1/resourcequotas",
         "{'spec':{'hard':{'nope':'1','pods':'1.5','count/configmaps':'-1'}}}",
         "spec.hard[count/configmaps]: Invalid value: \"-1\": must be greater than or equal to 0 | "
         "spec.hard[nope]: "
         "Invalid value: \"nope\": must be a standard resource type or fully qualified | "
         "spec.hard[nope]: Invalid value: "
         "\"nope\": must be a standard resource for quota | spec.hard[pods]: Invalid value: "
         "\"1500m\": must be an integer"},
        {"core/v1/resourcequotas",
         "{'spec':{'scopes':['BestEffort','NotBestEffort'],'hard':{'pods':'1'}}}",
         "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: conflicting scopes"},
        {"core/v1/resourcequotas", "{'spec':{'scopes':['BestEffort'],'hard':{'cpu':'1'}}}",
         "spec.scopes: Invalid value: [\"BestEffort\"]: unsupported scope applied to resource"},
        {"core/v1/resourcequotas", "{'spec':{'scopes':['Nope']}}",
         "spec.scopes: Invalid value: [\"Nope\"]: unsupported scope"},
        /* limit ranges */
        {"core/v1/limitranges",
         "{'spec':{'limits':[{'type':'PersistentVolumeClaim','min':{'storage':'1Gi'}}]}}", ""},
        {"core/v1/limitranges",
         "{'spec':{'limits':[{'type':'Nope','max':{'cpu':'1'},'min':{'cpu':'2'}}]}}",
         "spec.limits[0].type: Invalid value: \"Nope\": must be a standard limit type or fully "
         "qualified | "
         "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1"},
        {"core/v1/limitranges", "{'spec':{'limits':[{'type':'PersistentVolumeClaim'}]}}",
         "spec.limits[0].limits: Required value: either minimum or maximum storage value is "
         "required, but neither was "
         "provided"},
        {"core/v1/limitranges", "{'spec':{'limits':[{'type':'Pod','default':{'cpu':'1'}}]}}",
         "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"},
        {"core/v1/limitranges",
         "{'spec':{'limits':[{'type':'Container','default':{'storage':'1'}}]}}",
         "spec.limits[0].default[storage]: Invalid value: \"storage\": must be a standard resource "
         "for containers | "
         "spec.limits[0].defaultRequest[storage]: Invalid value: \"storage\": must be a standard "
         "resource for containers"},
        {"core/v1/limitranges", "{'spec':{'limits':[{'type':'a.b/c'},{'type':'a.b/c'}]}}",
         "spec.limits[1].type: Duplicate value: \"a.b/c\""},
        {"core/v1/limitranges",
         "{'spec':{'limits':[{'type':'a.b/c','maxLimitRequestRatio':{'cpu':'0.5'}}]}}",
         "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"500m\": ratio 500m is less "
         "than 1"},
        /* events */
        {"core/v1/events", "{'metadata':{'namespace':'n'},'involvedObject':{'namespace':'n'}}", ""},
        {"core/v1/events", "{'metadata':{'namespace':'n'},'involvedObject':{'namespace':'other'}}",
         "involvedObject.namespace: Invalid value: \"other\": does not match event.namespace"},
        {"core/v1/events", "{'metadata':{'namespace':'n'}}",
         "involvedObject.namespace: Invalid value: \"\": does not match event.namespace"},
        {"core/v1/events",
         "{'metadata':{'namespace':'default'},'eventTime':'2001-01-01T00:00:00.000000Z'}",
         "reportingController: Required value | reportingController: Invalid value: \"\": name "
         "part must be non-empty | "
         "reportingController: Invalid value: \"\": name part must consist of alphanumeric "
         "characters, '-', '_' or '.', "
         "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
         "'123-abc', regex used "
         "for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') | reportingInstance: "
         "Required value | action: "
         "Required value | reason: Required value"},
        {"events.k8s.io/v1/events",
         "{'metadata':{'namespace':'n'},'regarding':{'namespace':'n'},'type':'Nope'}",
         "eventTime: Required value | type: Invalid value: \"\": has invalid value: Nope"},
        {"events.k8s.io/v1/events",
         "{'metadata':{'namespace':'n'},'regarding':{'namespace':'n'},'type':'Normal','"
         "deprecatedCount':2,"
         "'eventTime':'2001-01-01T00:00:00.000000Z','reportingController':'a.b/"
         "c','reportingInstance':'i','action':'a',"
         "'reason':'r','series':{'count':1}}",
         "series.count: Invalid value: \"\": should be at least 2 | series.lastObservedTime: "
         "Required value | count: Invalid "
         "value: \"\": needs to be unset"},
        /* claims */
        {"core/v1/persistentvolumeclaims", CLAIM(""), ""},
        {"core/v1/persistentvolumeclaims", "{}",
         "spec.accessModes: Required value: at least 1 access mode is required | "
         "spec.resources[storage]: Required value"},
        {"core/v1/persistentvolumeclaims",
         "{'spec':{'accessModes':['Nope'],'resources':{'requests':{'storage':'-1Gi'}}}}",
         "spec.accessModes: Unsupported value: \"Nope\": supported values: \"ReadOnlyMany\", "
         "\"ReadWriteMany\", "
         "\"ReadWriteOnce\", \"ReadWriteOncePod\" | spec.resources[storage]: Invalid value: "
         "\"-1Gi\": must be greater than "
         "zero"},
        {"core/v1/persistentvolumeclaims",
         "{'spec':{'accessModes':['ReadWriteOncePod','ReadWriteOnce'],'resources':{'requests':{'"
         "storage':'1'}}}}",
         "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"},
        {"core/v1/persistentvolumeclaims",
         CLAIM(",'volumeMode':'Nope','storageClassName':'Bad_Name'"),
         "spec.storageClassName: Invalid value: \"Bad_Name\": " SUBDOMAIN
         " | spec.volumeMode: Unsupported value: \"Nope\": supported values: \"Block\", "
         "\"Filesystem\""},
        {"core/v1/persistentvolumeclaims", CLAIM(",'dataSource':{'kind':'Pod','name':'x'}"), ""},
        {"core/v1/persistentvolumeclaims", CLAIM(",'dataSourceRef':{'kind':'','name':''}"),
         "spec.dataSource.name: Required value | spec.dataSource.kind: Required value | "
         "spec.dataSource: Invalid value: "
         "\"\": must be 'PersistentVolumeClaim' when referencing the default apiGroup | "
         "spec.dataSourceRef.name: Required "
         "value | spec.dataSourceRef.kind: Required value | spec.dataSourceRef: Invalid value: "
         "\"\": must be "
         "'PersistentVolumeClaim' when referencing the default apiGroup"},
        {"core/v1/persistentvolumeclaims",
         CLAIM(",'dataSource':{'kind':'PersistentVolumeClaim','name':'a'},"
               "'dataSourceRef':{'kind':'PersistentVolumeClaim','name':'b'}"),
         "spec: Invalid value: {}: must match dataSourceRef"},
        {"core/v1/persistentvolumeclaims",
         CLAIM(",'selector':{'matchExpressions':[{'key':'a','operator':'Nope'}]}"),
         "spec.selector.matchExpressions[0].operator: Invalid value: \"Nope\": not a valid "
         "selector operator"},
        {"core/v1/persistentvolumeclaims",
         CLAIM(",'selector':{'matchExpressions':[{'key':'a','operator':'In'},"
               "{'key':'b','operator':'Exists','values':['x']}]}"),
         "spec.selector.matchExpressions[0].values: Required value: must be specified when "
         "`operator` is 'In' or 'NotIn' | "
         "spec.selector.matchExpressions[1].values: Forbidden: may not be specified when "
         "`operator` is 'Exists' or "
         "'DoesNotExist'"},
        /* volumes */
        {"core/v1/persistentvolumes", VOLUME(",'hostPath':{'path':'/x'}"), ""},
        {"core/v1/persistentvolumes", "{'spec':{}}",
         "spec.accessModes: Required value | spec.capacity: Required value | spec.capacity: "
         "Unsupported value: null: "
         "supported values: \"storage\" | spec: Required value: must specify a volume type"},
        {"core/v1/persistentvolumes",
         VOLUME(",'hostPath':{'path':'../x'},'persistentVolumeReclaimPolicy':'Nope'"),
         "spec.persistentVolumeReclaimPolicy: Unsupported value: \"Nope\": supported values: "
         "\"Delete\", \"Recycle\", "
         "\"Retain\" | spec.hostPath.path: Invalid value: \"../x\": must not contain '..'"},
        {"core/v1/persistentvolumes",
         VOLUME(",'hostPath':{'path':'/x'},'nfs':{'server':'s','path':'/'}"),
         "spec.nfs: Forbidden: may not specify more than 1 volume type"},
        {"core/v1/persistentvolumes", VOLUME(",'local':{'path':''}"),
         "spec.local.path: Required value | spec.nodeAffinity: Required value: Local volume "
         "requires node affinity"},
        {"core/v1/persistentvolumes", VOLUME(",'csi':{}"),
         "spec.csi.driver: Required value | spec.csi.volumeHandle: Required value"},
        /* roles and bindings */
        {"rbac.authorization.k8s.io/v1/roles",
         "{'rules':[{'verbs':['get'],'apiGroups':[''],'resources':['pods']}]}", ""},
        {"rbac.authorization.k8s.io/v1/roles", "{'rules':[{}]}",
         "rules[0].verbs: Required value: verbs must contain at least one value | "
         "rules[0].apiGroups: Required value: "
         "resource rules must supply at least one api group | rules[0].resources: Required value: "
         "resource rules must "
         "supply at least one resource"},
        {"rbac.authorization.k8s.io/v1/roles",
         "{'rules':[{'verbs':['get'],'nonResourceURLs':['/x']}]}",
         "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to "
         "non-resource URLs"},
        {"rbac.authorization.k8s.io/v1/clusterroles",
         "{'rules':[{'verbs':['get'],'nonResourceURLs':['/x'],'resources':['pods']}]}",
         "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: rules cannot apply to both regular "
         "resources and non-resource "
         "URLs"},
        {"rbac.authorization.k8s.io/v1/clusterroles", "{'aggregationRule':{}}",
         "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector "
         "required if "
         "aggregationRule is non-nil"},
        {"rbac.authorization.k8s.io/v1/rolebindings",
         "{'roleRef':{'kind':'Nope'},'subjects':[{'kind':'Weird'}]}",
         "roleRef.kind: Unsupported value: \"Nope\": supported values: \"Role\", \"ClusterRole\" | "
         "roleRef.name: Required "
         "value | subjects[0].name: Required value | subjects[0].kind: Unsupported value: "
         "\"Weird\": supported values: "
         "\"ServiceAccount\", \"User\", \"Group\""},
        {"rbac.authorization.k8s.io/v1/clusterrolebindings",
         "{'roleRef':{'kind':'Role','name':'r'},'subjects':[{'kind':'ServiceAccount','name':'s'}]}",
         "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\" | "
         "subjects[0].namespace: Required "
         "value"},
    };
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        const struct hook_run run = {.kind = cases[i].kind,
                                     .object = fixture_json(a, cases[i].object)};
        const struct str causes = hook_run(a, r, &run);
        if (!str_is(causes, cases[i].causes))
            fail_msg("%s %s: got \"%.*s\"", cases[i].kind, cases[i].object, STR_ARG(causes));
    }
}

TEST(objects_are_prepared_as_kube_apiserver_does)
{
    static const struct {
        const char *kind, *object, *prepared;
    } cases[] = {
        {"core/v1/secrets", "{'stringData':{'x':'y'},'data':{'x':'eno=','z':'eg=='}}",
         "{'data':{'x':'eQ==','z':'eg=='},'type':'Opaque'}"},
        {"core/v1/namespaces",
         "{'metadata':{'name':'n','labels':{'z':'1'}},'status':{'phase':'Nope'}}",
         "{'metadata':{'name':'n','labels':{'kubernetes.io/metadata.name':'n','z':'1'}},"
         "'spec':{'finalizers':['kubernetes']},'status':{'phase':'Active'}}"},
        {"core/v1/serviceaccounts",
         "{'secrets':[{'name':'s','kind':'Secret','uid':'1'},{'uid':'2'}]}",
         "{'secrets':[{'name':'s'},{}]}"},
        {"coordination.k8s.io/v1/leases",
         "{'spec':{'holderIdentity':'h','strategy':'nope','preferredHolder':'x'}}",
         "{'spec':{'holderIdentity':'h'}}"},
        {"core/v1/resourcequotas", "{'status':{'used':{'cpu':'1'}}}", "{'spec':{},'status':{}}"},
        {"core/v1/limitranges",
         "{'spec':{'limits':[{'type':'Container','max':{'cpu':'2'},'min':{'memory':'1Mi'},'default'"
         ":{'memory':'4Mi'}}]}}",
         "{'spec':{'limits':[{'type':'Container','max':{'cpu':'2'},'min':{'memory':'1Mi'},"
         "'default':{'cpu':'2','memory':'4Mi'},'defaultRequest':{'cpu':'2','memory':'4Mi'}}]}}"},
        {"core/v1/persistentvolumeclaims",
         CLAIM(",'dataSourceRef':{'apiGroup':'eve.lfedge.org','kind':'Image','name':'i'}"),
         "{'metadata':{'name':'p','finalizers':['kubernetes.io/"
         "pvc-protection']},'spec':{'accessModes':['ReadWriteOnce'],"
         "'resources':{'requests':{'storage':'1Gi'}},'volumeMode':'Filesystem',"
         "'dataSource':{'apiGroup':'eve.lfedge.org','kind':'Image','name':'i'},"
         "'dataSourceRef':{'apiGroup':'eve.lfedge.org','kind':'Image','name':'i'}},'status':{'"
         "phase':'Pending'}}"},
        {"core/v1/persistentvolumes", VOLUME(",'hostPath':{'path':'/x'}"),
         "{'metadata':{'name':'v','finalizers':['kubernetes.io/"
         "pv-protection']},'spec':{'capacity':{'storage':'1Gi'},"
         "'hostPath':{'path':'/"
         "x','type':''},'accessModes':['ReadWriteOnce'],'persistentVolumeReclaimPolicy':'Retain',"
         "'volumeMode':'Filesystem'},'status':{'phase':'Pending','lastPhaseTransitionTime':'1970-"
         "01-01T00:00:01Z'}}"},
        {"rbac.authorization.k8s.io/v1/rolebindings",
         "{'roleRef':{'kind':'Role','name':'r'},'subjects':[{'kind':'User','name':'u'},"
         "{'kind':'ServiceAccount','name':'s'}]}",
         "{'subjects':[{'kind':'User','apiGroup':'rbac.authorization.k8s.io','name':'u'},"
         "{'kind':'ServiceAccount','name':'s'}],"
         "'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':'Role','name':'r'}}"},
    };
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        const struct hook_run run = {.kind = cases[i].kind,
                                     .object = fixture_json(a, cases[i].object)};
        assert_str(hook_run(a, r, &run), "");
        if (!json_equal(run.object, fixture_json(a, cases[i].prepared)))
            fail_msg("%s gave %.*s", cases[i].kind, STR_ARG(json_text(a, run.object)));
    }
}

TEST(updates_are_judged)
{
    static const struct {
        const char *kind, *subresource, *old, *object, *causes;
    } cases[] = {
        {"core/v1/configmaps", NULL, "{'data':{'a':'1'},'immutable':true}",
         "{'data':{'a':'1'},'immutable':true}", ""},
        {"core/v1/configmaps", NULL, "{'data':{'a':'1'},'immutable':true}",
         "{'data':{'a':'2'},'immutable':true}",
         "data: Forbidden: field is immutable when `immutable` is set"},
        {"core/v1/configmaps", NULL, "{'immutable':true}", "{'binaryData':{'b':'MQ=='}}",
         "immutable: Forbidden: field is immutable when `immutable` is set | binaryData: "
         "Forbidden: field is immutable when "
         "`immutable` is set"},
        {"core/v1/secrets", NULL, "{'type':'Opaque'}", "{'type':'a.b/c'}",
         "type: Invalid value: \"a.b/c\": field is immutable"},
        {"core/v1/secrets", NULL, "{'type':'Opaque','immutable':true,'data':{'a':'Yg=='}}",
         "{'immutable':true,'data':{'a':'Yw=='}}",
         "data: Forbidden: field is immutable when `immutable` is set"},
        {"core/v1/namespaces", NULL,
         "{'spec':{'finalizers':['kubernetes']},'status':{'phase':'Active'}}",
         "{'spec':{'finalizers':['bad']}}", ""},
        {"core/v1/namespaces", "finalize",
         "{'spec':{'finalizers':['kubernetes']},'status':{'phase':'Active'}}",
         "{'spec':{'finalizers':['kubernetes','bad']}}",
         "spec.finalizers[1]: Invalid value: \"bad\": name is neither a standard finalizer name "
         "nor is it fully qualified"},
        {"core/v1/namespaces", "status", "{'status':{'phase':'Active'}}",
         "{'status':{'phase':'Terminating'}}",
         "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if "
         "`deletionTimestamp` is empty"},
        {"storage.k8s.io/v1/storageclasses", NULL,
         "{'provisioner':'p','reclaimPolicy':'Delete','volumeBindingMode':'Immediate','parameters':"
         "{'a':'b','c':'d'}}",
         "{'provisioner':'o','reclaimPolicy':'Retain','parameters':{'c':'d','a':'x'}}",
         "parameters: Invalid value: {\"a\":\"x\",\"c\":\"d\"}: field is immutable | provisioner: "
         "Invalid value: \"o\": "
         "field is immutable | reclaimPolicy: Invalid value: \"Retain\": field is immutable"},
        {"apps/v1/controllerrevisions", NULL, "{'data':{'a':1},'revision':1}",
         "{'data':{'a':2},'revision':2}", "data: Invalid value: {\"a\":2}: field is immutable"},
        {"core/v1/resourcequotas", NULL, "{'spec':{'scopes':['BestEffort']}}", "{'spec':{}}",
         "spec.scopes: Invalid value: null: field is immutable"},
        {"rbac.authorization.k8s.io/v1/rolebindings", NULL,
         "{'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':'Role','name':'r'}}",
         "{'roleRef':{'kind':'Role','name':'other'}}",
         "roleRef: Invalid value: "
         "{\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"other\"}: "
         "cannot "
         "change roleRef"},
        {"events.k8s.io/v1/events", NULL,
         "{'metadata':{'namespace':'n'},'regarding':{'namespace':'n','name':'a'},'note':'x'}",
         "{'metadata':{'namespace':'n'},'regarding':{'namespace':'n','name':'a'},'note':'y'}",
         "message: Invalid value: \"y\": field is immutable"},
        {"core/v1/persistentvolumes", NULL,
         VOLUME(",'hostPath':{'path':'/x','type':''},'volumeMode':'Filesystem'"),
         VOLUME(",'hostPath':{'path':'/y'}"),
         "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after "
         "creation\n"
         "@@ -2,7 +2,7 @@\n  \"GCEPersistentDisk\": null,\n  \"AWSElasticBlockStore\": null,\n  "
         "\"HostPath\": {\n"
         "-  \"Path\": \"/x\",\n+  \"Path\": \"/y\",\n   \"Type\": \"\"\n  },\n  \"Glusterfs\": "
         "null,\n"},
    };
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        const struct hook_run run = {
            .kind = cases[i].kind,
            .subresource = cases[i].subresource,
            .old = fixture_json(a, cases[i].old),
            .object = fixture_json(a, cases[i].object),
        };
        const struct str causes = hook_run(a, r, &run);
        if (!str_is(causes, cases[i].causes))
            fail_msg("%s: got \"%.*s\"", cases[i].kind, STR_ARG(causes));
    }
}

TEST(a_claim_may_change_only_where_allowed)
{
#define IMMUTABLE \
    "spec: Forbidden: spec is immutable after creation except resources.requests and " \
    "volumeAttributesClassName for bound " \
    "claims\n"
#define OLD_CLAIM \
    "{'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}},'" \
    "storageClassName':'eve-x'," \
    "'volumeMode':'Filesystem'},'status':{'phase':'Pending'}}"
#define BOUND(storage) \
    "{'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'" storage \
    "'}},'volumeName':'pv'," \
    "'volumeMode':'Filesystem'},'status':{'phase':'Bound','capacity':{'storage':'1Gi'}}}"
    static const struct {
        const char *old, *object, *causes;
    } cases[] = {
        {OLD_CLAIM, OLD_CLAIM, ""},
        {OLD_CLAIM, CLAIM(",'storageClassName':'eve-x','volumeName':'pv'"), ""},
        {OLD_CLAIM, CLAIM(",'storageClassName':'other'"),
         IMMUTABLE "@@ -10,7 +10,7 @@\n   }\n  },\n  \"VolumeName\": \"\",\n- "
                   "\"StorageClassName\": \"eve-x\",\n"
                   "+ \"StorageClassName\": \"other\",\n  \"VolumeMode\": \"Filesystem\",\n  "
                   "\"DataSource\": null,\n"
                   "  \"DataSourceRef\": null,\n"},
        {OLD_CLAIM,
         "{'spec':{'accessModes':['ReadWriteMany'],'resources':{'requests':{'storage':'1Gi'}},'"
         "storageClassName':'eve-x'}}",
         IMMUTABLE "@@ -1,6 +1,6 @@\n {\n  \"AccessModes\": [\n-  \"ReadWriteOnce\"\n+  "
                   "\"ReadWriteMany\"\n  ],\n"
                   "  \"Selector\": null,\n  \"Resources\": {\n"},
        {BOUND("1Gi"), BOUND("2Gi"), ""},
        {BOUND("3Gi"), BOUND("2Gi"), ""},
        {BOUND("3Gi"), BOUND("1Gi"),
         "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"},
    };
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        const struct hook_run run = {.kind = "core/v1/persistentvolumeclaims",
                                     .old = fixture_json(a, cases[i].old),
                                     .object = fixture_json(a, cases[i].object)};
        assert_str(hook_run(a, r, &run), cases[i].causes);
    }
}

TEST(events_convert_to_the_newer_form_and_back)
{
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    const struct kind *k = fixture_kind(r, "events.k8s.io/v1/events");
    static const char stored[] = "{'metadata':{'name':'e1'},'involvedObject':{'kind':'ConfigMap'},'"
                                 "reason':'R','message':'hello',"
                                 "'source':{'component':'me'},'firstTimestamp':'2001-01-01T00:00:"
                                 "00Z','lastTimestamp':'2001-01-01T00:00:00Z',"
                                 "'count':3,'type':'Normal','eventTime':null,'reportingComponent':'"
                                 "','reportingInstance':''}";
    static const char newer[] =
        "{'metadata':{'name':'e1'},'eventTime':null,'reason':'R','regarding':{'kind':'ConfigMap'},'"
        "note':'hello',"
        "'type':'Normal','deprecatedSource':{'component':'me'},'deprecatedFirstTimestamp':'2001-01-"
        "01T00:00:00Z',"
        "'deprecatedLastTimestamp':'2001-01-01T00:00:00Z','deprecatedCount':3}";
    struct json *object = fixture_json(a, stored);
    k->from_stored(a, object);
    assert_true(json_equal(object, fixture_json(a, newer)));
    k->to_stored(a, object);
    assert_true(json_equal(object, fixture_json(a, stored)));
}

TEST(namespaces_know_what_keeps_them)
{
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    const struct kind *k = fixture_kind(r, "core/v1/namespaces");
    struct hook_context h = {.arena = a, .kind = k, .subresource = STR("")};
    assert_str(k->hooks->check_delete(&h, fixture_json(a, "{'metadata':{'name':'kube-system'}}")),
               "this namespace may not be deleted");
    assert_int_equal(k->hooks->check_delete(&h, fixture_json(a, "{'metadata':{'name':'mine'}}")).n,
                     0);
    struct json *object =
        fixture_json(a, "{'spec':{'finalizers':['kubernetes']},'status':{'phase':'Active'}}");
    assert_true(k->hooks->must_stay(object));
    k->hooks->prepare_delete(&h, object);
    assert_str(json_str(json_at(object, "status", "phase", NULL)), "Terminating");
    assert_false(k->hooks->must_stay(fixture_json(a, "{'spec':{}}")));
}

TEST(config_maps_and_secrets_are_bounded)
{
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    char *text = arena_alloc(a, 1048577 + 1);
    memset(text, 'x', 1048577);
    struct json *map = fixture_json(a, "{'data':{}}"),
                *secret = fixture_json(a, "{'stringData':{}}");
    (void) json_set(a, json_get(map, STR("data")), STR("k"), json_string(str_range(text, 1048577)));
    (void) json_set(a, json_get(secret, STR("stringData")), STR("k"),
                    json_string(str_range(text, 1048577)));
    const struct hook_run map_run = {.kind = "core/v1/configmaps", .object = map};
    const struct hook_run secret_run = {.kind = "core/v1/secrets", .object = secret};
    assert_str(hook_run(a, r, &map_run), "[]: Too long: may not be more than 1048576 bytes");
    assert_str(hook_run(a, r, &secret_run), "data: Too long: may not be more than 1048576 bytes");
}
