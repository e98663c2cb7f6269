# SPDX-License-Identifier: Apache-2.0
"""Datastores, content trees, volumes and the base OS."""
import re
import urllib.parse

from validator import datastore_ids, rule

SCHEMES = {"DsHttp": {"http"}, "DsHttps": {"https"}, "DsS3": {"http", "https"}, "DsSFTP": {"sftp"}, "DsContainerRegistry": {"docker", "oci"},
           "DsAzureBlob": {"https", ""}, "DsGoogleStorage": None}
WITH_BUCKET = ("DsS3", "DsAzureBlob", "DsGoogleStorage")
INSECURE = "datastore.http.security.allowinsecureauth"


@rule
def datastores_have_the_form_of_their_type(c):
    """The table of dType, fqdn, dpath: scheme://host; docker:// or oci:// of a registry; S3, Azure and Google need a bucket or container."""
    for at, store in c.each("datastores"):
        kind, fqdn = store.get("dType", "DsUnknown"), store.get("fqdn", "")
        if kind not in SCHEMES:
            yield f"{at}.dType", f"{kind} is no type"
            continue
        scheme, has_host = urllib.parse.urlsplit(fqdn).scheme if "://" in fqdn else "", bool(fqdn.split("://")[-1])
        if SCHEMES[kind] is not None and (scheme not in SCHEMES[kind] or not has_host):
            yield f"{at}.fqdn", f"{fqdn!r} does not fit {kind}"
        if kind in WITH_BUCKET and not store.get("dpath"):
            yield f"{at}.dpath", f"{kind} needs a bucket"


@rule
def credentials_are_encrypted(c):
    """Credentials travel in an EncryptionBlock: datastore -> dsAPIKey/dsPassword; wifi -> wifiUserName/wifiPassword."""
    for at, store in c.each("datastores"):
        if store.get("apiKey") or store.get("password"):
            yield at, "has credentials in clear text"
    for at, network in c.each("networks"):
        for j, wifi in enumerate(network.get("wireless", {}).get("wifiCfg", [])):
            if wifi.get("identity") or wifi.get("password"):
                yield f"{at}.wireless.wifiCfg[{j}]", "has credentials in clear text"


@rule
def plain_http_has_no_credentials(c):
    """Over plain http credentials only with datastore.http.security.allowinsecureauth"""
    for at, store in c.each("datastores"):
        if store.get("dType") == "DsHttp" and "cipherData" in store and c.items.get(INSECURE) not in ("true", "enabled"):
            yield f"{at}.cipherData", f"are not sent over HTTP without {INSECURE}"


@rule
def contents_have_a_hash(c):
    """sha256: mandatory for everything but an OCI registry; 64 hex digits."""
    for at, content in c.each("contentInfo"):
        text = content.get("sha256", "")
        if text and not re.fullmatch("[0-9a-fA-F]{64}", text):
            yield f"{at}.sha256", "is not 64 hexadecimal digits"
        if not text and c.datastores_of(content) and not c.is_registry(content):
            yield f"{at}.sha256", "is needed outside a registry"


@rule
def registries_stand_alone(c):
    """Several datastores per tree = fallback list with identical content; not allowed with an OCI registry."""
    for at, content in c.each("contentInfo"):
        if len(datastore_ids(content)) > 1 and c.is_registry(content):
            yield f"{at}.dsIdsList", "a registry has no fallback"


@rule
def contents_have_a_name_and_a_format(c):
    """Download URL = fqdn / dpath / ContentTree.URL; format RAW 1 to PVC 10."""
    for at, content in c.each("contentInfo"):
        if not content.get("URL"):
            yield f"{at}.URL", "is needed"
        kind = content.get("iformat", "FmtUnknown")
        if kind == "FmtUnknown" or kind.startswith("unknown"):
            yield f"{at}.iformat", f"{kind} is no format"


@rule
def volumes_have_an_origin(c):
    """VCOT_BLANK(1), VCOT_DOWNLOAD(2); 0 UNKNOWN -> error."""
    for at, volume in c.each("volumes"):
        if volume.get("origin", {}).get("type") not in ("VCOT_BLANK", "VCOT_DOWNLOAD"):
            yield f"{at}.origin.type", f"{volume.get('origin', {}).get('type')} is no origin"


@rule
def blank_volumes_have_a_size(c):
    """VCOT_BLANK(1) needs maxsizebytes > 0"""
    for at, volume in c.each("volumes"):
        if volume.get("origin", {}).get("type") == "VCOT_BLANK" and volume.get("maxsizebytes", 0) <= 0:
            yield f"{at}.maxsizebytes", "a blank volume needs a size"


@rule
def blobs_are_no_disks(c):
    """target AppCustom(5) = blob offered to apps through the metadata server or patch envelopes, not a disk."""
    for at, app in c.each("apps"):
        for j, ref in enumerate(app.get("volumeRefList", [])):
            if j == 0 and c.volumes.get(ref.get("uuid"), {}).get("target") == "AppCustom":
                yield f"{at}.volumeRefList[{j}]", "the root volume is a blob"


# ---- base OS -------------------------------------------------------------------------------

@rule
def base_os_has_a_version(c):
    """base_os_version must equal the short version inside the image, else "image name not match"."""
    if "baseos" in c.raw and not c.raw["baseos"].get("baseOsVersion"):
        yield "baseos.baseOsVersion", "is needed"


@rule
def base_os_has_no_volume(c):
    """BaseOS.content_tree_uuid -> ContentTree.uuid (no Volume)"""
    tree = c.raw.get("baseos", {}).get("contentTreeUuid")
    for at, volume in c.each("volumes"):
        if tree and volume.get("origin", {}).get("downloadContentTreeID") == tree:
            yield f"{at}.origin.downloadContentTreeID", "is the image of the base OS"


@rule
def base_os_has_a_fitting_format(c):
    """OCI eve image, iformat CONTAINER, or a raw rootfs with sha256."""
    content = c.contents.get(c.raw.get("baseos", {}).get("contentTreeUuid"))
    if content and c.datastores_of(content):
        if content.get("iformat") != ("CONTAINER" if c.is_registry(content) else "RAW"):
            yield "baseos.contentTreeUuid", f"{content.get('iformat')} is no format of a base OS there"
