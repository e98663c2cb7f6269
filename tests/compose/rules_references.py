# SPDX-License-Identifier: Apache-2.0
"""Every reference leads somewhere."""
import re

from validator import datastore_ids, is_network_io, label_of, lower_of, rule

UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
RESERVED_LABELS = {"all", "uplink", "freeuplink"}


@rule
def uuids_are_textual(c):
    """Every UUID is textual (8-4-4-4-12); references are judged by what they refer to."""
    owners = [("id", c.raw["id"].get("uuid"))] if c.raw.get("id", {}).get("uuid") else []
    for name in ("apps", "networkInstances"):
        owners += [(f"{at}.uuidandversion", x["uuidandversion"].get("uuid")) for at, x in c.each(name) if "uuidandversion" in x]
    for name, key in (("networks", "id"), ("datastores", "id"), ("contentInfo", "uuid"), ("volumes", "uuid"), ("patchEnvelopes", "uuid")):
        owners += [(at, x.get(key)) for at, x in c.each(name)]
    for name in ("apps", "volumes", "contentInfo"):
        owners += [(f"{at}.designatedNodeId", x["designatedNodeId"]) for at, x in c.each(name) if x.get("designatedNodeId")]
    for at, uuid in owners:
        if not UUID.fullmatch(uuid or ""):
            yield at, f"{uuid!r} is no UUID"


@rule
def identities_are_unique(c):
    """What others refer to stands once in its list."""
    keys = {"networks": "id", "datastores": "id", "contentInfo": "uuid", "volumes": "uuid", "cipherContexts": "contextId", "systemAdapterList": "name",
            "scepProfiles": "profileName", "patchEnvelopes": "uuid"}
    for name, key in keys.items():
        yield from twice((at, x.get(key)) for at, x in c.each(name))
    for name in ("apps", "networkInstances"):
        yield from twice((at, x.get("uuidandversion", {}).get("uuid")) for at, x in c.each(name))


def twice(named):
    seen = set()
    for at, identity in named:
        if identity and identity in seen:
            yield at, f"{identity} stands twice"
        seen.add(identity)


@rule
def volume_references_resolve(c):
    """AppInstanceConfig.volumeRefList[].uuid -> Volume.uuid"""
    for at, app in c.each("apps"):
        for j, ref in enumerate(app.get("volumeRefList", [])):
            if ref.get("uuid") not in c.volumes:
                yield f"{at}.volumeRefList[{j}].uuid", f"there is no volume {ref.get('uuid')}"


@rule
def volume_references_have_the_generation(c):
    """AppInstanceConfig.volumeRefList[].generationCount -> Volume.generationCount"""
    for at, app in c.each("apps"):
        for j, ref in enumerate(app.get("volumeRefList", [])):
            volume = c.volumes.get(ref.get("uuid"))
            if volume and volume.get("generationCount", 0) != ref.get("generationCount", 0):
                yield f"{at}.volumeRefList[{j}].generationCount", f"the volume has {volume.get('generationCount', 0)}"


@rule
def volume_contents_resolve(c):
    """Volume.origin.downloadContentTreeID -> ContentTree.uuid; VCOT_DOWNLOAD(2) needs the tree"""
    for at, volume in c.each("volumes"):
        origin = volume.get("origin", {})
        if origin.get("type") == "VCOT_DOWNLOAD" and origin.get("downloadContentTreeID") not in c.contents:
            yield f"{at}.origin.downloadContentTreeID", f"there is no content tree {origin.get('downloadContentTreeID')}"


@rule
def content_datastores_resolve(c):
    """ContentTree.ds_ids_list[] (old: dsId) -> DatastoreConfig.id. A tree whose datastore is missing waits forever without an error."""
    for at, content in c.each("contentInfo"):
        ids = datastore_ids(content)
        for identity in ids:
            if identity not in c.datastores:
                yield f"{at}.dsIdsList", f"there is no datastore {identity}"
        if not ids:
            yield f"{at}.dsIdsList", "names no datastore"


@rule
def base_os_content_resolves(c):
    """BaseOS.content_tree_uuid -> ContentTree.uuid"""
    baseos = c.raw.get("baseos")
    if baseos and baseos.get("contentTreeUuid") not in c.contents:
        yield "baseos.contentTreeUuid", f"there is no content tree {baseos.get('contentTreeUuid')}"


@rule
def interface_networks_resolve(c):
    """AppInstanceConfig.interfaces[].networkId -> NetworkInstanceConfig.uuidandversion.uuid"""
    for at, _, interface, instance in c.interfaces():
        if instance is None:
            yield f"{at}.networkId", f"there is no network instance {interface.get('networkId')}"


@rule
def instance_ports_resolve(c):
    """NetworkInstanceConfig.port.name -> SystemAdapter.name or a shared label"""
    labels = RESERVED_LABELS | {a.get("name") for a in c.list("systemAdapterList")}
    labels |= {label for a in c.list("systemAdapterList") for label in a.get("sharedLabels", [])}
    for at, instance in c.each("networkInstances"):
        name = instance.get("port", {}).get("name")
        if name and name not in labels:
            yield f"{at}.port.name", f"there is no port or label {name}"


@rule
def adapter_networks_resolve(c):
    """SystemAdapter.networkUUID -> NetworkConfig.id"""
    for at, adapter in c.each("systemAdapterList"):
        if adapter.get("networkUUID") and adapter["networkUUID"] not in c.networks:
            yield f"{at}.networkUUID", f"there is no network {adapter['networkUUID']}"


@rule
def adapter_lower_layers_resolve(c):
    """SystemAdapter.lowerLayerName must match exactly one of PhysicalIO (network type), bond, vlan"""
    labels = [label_of(io) for io in c.list("deviceIoList") if is_network_io(io)]
    labels += [x.get("logicallabel") for name in ("bonds", "vlans") for x in c.list(name)]
    for at, adapter in c.each("systemAdapterList"):
        if lower_of(adapter) not in labels:
            yield f"{at}.lowerLayerName", f"no port, bond or VLAN is called {lower_of(adapter)}"


@rule
def vlan_lower_layers_resolve(c):
    """VlanAdapter.lower_layer_name -> PhysicalIO or BondAdapter .logicallabel"""
    labels = {label_of(io) for io in c.list("deviceIoList")} | {b.get("logicallabel") for b in c.list("bonds")}
    for at, vlan in c.each("vlans"):
        if vlan.get("lowerLayerName") not in labels:
            yield f"{at}.lowerLayerName", f"no port or bond is called {vlan.get('lowerLayerName')}"


@rule
def bond_members_resolve(c):
    """BondAdapter.lower_layer_names[] -> PhysicalIO.logicallabel"""
    labels = {label_of(io) for io in c.list("deviceIoList")}
    for at, bond in c.each("bonds"):
        for name in bond.get("lowerLayerNames", []):
            if name not in labels:
                yield f"{at}.lowerLayerNames", f"no port is called {name}"


@rule
def passed_hardware_resolves(c):
    """AppInstanceConfig.adapters[].name -> PhysicalIO.assigngrp (logical/physical label also found); an empty group cannot be given to an app"""
    names = {io.get(key) for io in c.list("deviceIoList") if io.get("assigngrp") for key in ("assigngrp", "logicallabel", "phylabel")} - {None, ""}
    for at, app in c.each("apps"):
        for j, adapter in enumerate(app.get("adapters", [])):
            if adapter.get("name") not in names:
                yield f"{at}.adapters[{j}].name", f"no assignment group is called {adapter.get('name')}"


@rule
def cipher_contexts_resolve(c):
    """CipherBlock.cipherContextId -> EdgeDevConfig.cipherContexts[].contextId. A block whose context is missing fails at use."""
    contexts = {x.get("contextId") for x in c.list("cipherContexts")}
    for at, block in c.cipher_blocks():
        if block.get("cipherContextId") and block["cipherContextId"] not in contexts:
            yield f"{at}.cipherContextId", f"there is no cipher context {block['cipherContextId']}"


@rule
def pnac_references_resolve(c):
    """PNAC.logicallabel -> PhysicalIO (Ethernet); PNAC.cert_enrollment_profile_name -> SCEPProfile.profile_name"""
    ports = {label_of(io) for io in c.list("deviceIoList") if io.get("ptype") == "PhyIoNetEth"}
    profiles = {p.get("profileName") for p in c.list("scepProfiles")}
    for at, pnac in c.each("pnacs"):
        if pnac.get("logicallabel") not in ports:
            yield f"{at}.logicallabel", f"no Ethernet port is called {pnac.get('logicallabel')}"
        if pnac.get("certEnrollmentProfileName") not in profiles:
            yield f"{at}.certEnrollmentProfileName", f"no profile is called {pnac.get('certEnrollmentProfileName')}"


@rule
def patch_volumes_resolve(c):
    """EvePatchEnvelope.artifacts[].volumeRef.imageId -> Volume.uuid (target AppCustom)"""
    for at, envelope in c.each("patchEnvelopes"):
        for j, artifact in enumerate(envelope.get("artifacts", [])):
            if "volumeRef" not in artifact:
                continue
            volume = c.volumes.get(artifact["volumeRef"].get("imageId"))
            if not volume or volume.get("target") != "AppCustom":
                yield f"{at}.artifacts[{j}].volumeRef.imageId", "is no volume with target AppCustom"


@rule
def cluster_interface_resolves(c):
    """EdgeNodeCluster.cluster_interface -> PhysicalIO.logicallabel"""
    cluster = c.raw.get("cluster")
    if cluster and cluster.get("clusterInterface") not in {label_of(io) for io in c.list("deviceIoList")}:
        yield "cluster.clusterInterface", f"no port is called {cluster.get('clusterInterface')}"


@rule
def loc_datastores_resolve(c):
    """LOCConfig.datastore_collect_info_id[] -> DatastoreConfig.id (http/https only)"""
    for identity in c.raw.get("locConfig", {}).get("datastoreCollectInfoId", []):
        if c.datastores.get(identity, {}).get("dType") not in ("DsHttp", "DsHttps"):
            yield "locConfig.datastoreCollectInfoId", f"{identity} is no datastore of HTTP or HTTPS"
