// SPDX-License-Identifier: Apache-2.0
// What a program with @kubernetes/client-node does: node client.mjs <command> <kubeconfig> ... One JSON line per result on stdout.
import * as k8s from '@kubernetes/client-node';

const RESTART_MS = 100;
const [command, kubeconfig, ...rest] = process.argv.slice(2);
const config = new k8s.KubeConfig();
config.loadFromFile(kubeconfig);

const say = (what) => process.stdout.write(JSON.stringify(what) + '\n');
const as = (type) => k8s.setHeaderOptions('Content-Type', type);

/** The Status of a call that must fail. */
async function refusal(call) {
    try {
        await call;
    } catch (e) {
        const body = typeof e.body === 'string' ? JSON.parse(e.body) : e.body;
        return { code: e.code, reason: body?.reason, message: body?.message };
    }
    throw new Error('this should have been refused');
}

async function nativeObjects(namespace) {
    const core = config.makeApiClient(k8s.CoreV1Api);
    const one = { namespace, name: 'a' };
    say({ namespaces: (await core.listNamespace()).items.map((n) => n.metadata.name) });
    const made = await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'a', labels: { app: 'x' } }, data: { k: '1' } } });
    say({ made: made.data, uid: made.metadata.uid, isDate: made.metadata.creationTimestamp instanceof Date });
    say({ exists: await refusal(core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'a' } } })) });
    say({ missing: await refusal(core.readNamespacedConfigMap({ namespace, name: 'nope' })) });
    const read = await core.readNamespacedConfigMap(one);
    await core.replaceNamespacedConfigMap({ ...one, body: { ...read, data: { k: '2' } } });
    say({ stale: await refusal(core.replaceNamespacedConfigMap({ ...one, body: { ...read, data: { k: '3' } } })) });
    const merged = await core.patchNamespacedConfigMap({ ...one, body: { data: { l: '1' } } }, as(k8s.PatchStrategy.MergePatch));
    const stepped = await core.patchNamespacedConfigMap({ ...one, body: [{ op: 'remove', path: '/data/k' }] }, as(k8s.PatchStrategy.JsonPatch));
    const strategic = await core.patchNamespacedConfigMap({ ...one, body: { data: { m: '1' } } }, as(k8s.PatchStrategy.StrategicMergePatch));
    say({ merged: merged.data, stepped: stepped.data, strategic: strategic.data });
    const intent = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' }, data: { k: '1' } };
    const apply = (fieldManager, body, force) =>
        core.patchNamespacedConfigMap({ namespace, name: 'applied', body, fieldManager, force }, as(k8s.PatchStrategy.ServerSideApply));
    await apply('one', intent);
    const conflict = await refusal(apply('two', { ...intent, data: { k: '2' } }));
    const forced = await apply('two', { ...intent, data: { k: '2' } }, true);
    say({ conflict, forced: forced.data, managers: forced.metadata.managedFields.map((m) => m.manager + ' ' + m.operation) });
    for (let i = 0; i < 5; i++) await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: `p${i}`, labels: { page: 'y' } } } });
    const paged = [];
    let _continue;
    do {
        const page = await core.listNamespacedConfigMap({ namespace, labelSelector: 'page=y', limit: 2, _continue });
        paged.push(page.items.map((i) => i.metadata.name));
        _continue = page.metadata._continue;
    } while (_continue);
    say({ paged });
    say({ deleted: (await core.deleteNamespacedConfigMap(one)).status });
    await core.deleteCollectionNamespacedConfigMap({ namespace, labelSelector: 'page=y' });
    say({ left: (await core.listNamespacedConfigMap({ namespace })).items.map((i) => i.metadata.name) });
}

async function customObjects(namespace, group) {
    const api = config.makeApiClient(k8s.CustomObjectsApi);
    const where = { group, version: 'v1', namespace, plural: 'pumps' };
    const one = { ...where, name: 'p' };
    const body = { apiVersion: `${group}/v1`, kind: 'Pump', metadata: { name: 'p' }, spec: { serial: 'AB-1' } };
    say({ made: (await api.createNamespacedCustomObject({ ...where, body })).spec });
    say({ invalid: await refusal(api.createNamespacedCustomObject({ ...where, body: { ...body, metadata: { name: 'q' }, spec: { serial: 'x' } } })) });
    say({ merged: (await api.patchNamespacedCustomObject({ ...one, body: { spec: { mode: 'off' } } }, as(k8s.PatchStrategy.MergePatch))).spec.mode });
    const status = await api.patchNamespacedCustomObjectStatus({ ...one, body: { status: { phase: 'Running' } } }, as(k8s.PatchStrategy.MergePatch));
    say({ status: status.status, generation: status.metadata.generation });
    const applied = await api.patchNamespacedCustomObject(
        { ...one, body: { ...body, spec: { serial: 'AB-1', cores: 4 } }, fieldManager: 'js', force: true }, as(k8s.PatchStrategy.ServerSideApply));
    say({ applied: applied.spec });
    say({ scale: (await api.getNamespacedCustomObjectScale(one)).spec });
    say({ listed: (await api.listNamespacedCustomObject(where)).items.map((i) => i.metadata.name) });
    const generic = k8s.KubernetesObjectApi.makeApiClient(config);
    say({ generic: (await generic.read({ apiVersion: `${group}/v1`, kind: 'Pump', metadata: { name: 'p', namespace } })).spec.serial });
    say({ deleted: (await api.deleteNamespacedCustomObject(one)).status });
    say({ gone: await refusal(api.getNamespacedCustomObject(one)) });
}

async function watch(path, query) {
    const done = (e) => say({ done: true, error: e?.message });
    await new k8s.Watch(config).watch(path, Object.fromEntries(new URLSearchParams(query)), (type, object) =>
        say({ type, name: object.metadata?.name, code: object.code }), done);
    say({ started: true });
}

/** Runs until killed; after an error it starts again, as the package's documentation advises. */
function informer(path, group) {
    const list = group
        ? () => config.makeApiClient(k8s.CustomObjectsApi).listNamespacedCustomObject({ group, version: 'v1', namespace: path.split('/')[5], plural: 'pumps' })
        : () => config.makeApiClient(k8s.CoreV1Api).listNamespacedConfigMap({ namespace: path.split('/')[4], labelSelector: 'informed=y' });
    const it = k8s.makeInformer(config, path, list, group ? undefined : 'informed=y');
    for (const type of ['add', 'update', 'delete']) it.on(type, (o) => say({ type, name: o.metadata.name, version: o.metadata.resourceVersion, data: o.data ?? o.spec }));
    it.on('connect', () => say({ type: 'connect', cached: it.list().map((o) => o.metadata.name).sort() }));
    it.on('error', () => setTimeout(() => it.start(), RESTART_MS));
    return it.start();
}

await { nativeObjects, customObjects, watch, informer }[command](...rest);
