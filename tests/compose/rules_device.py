# SPDX-License-Identifier: Apache-2.0
"""The device itself: identity, settings, commands, secrets, cluster and the other blocks."""
import ipaddress
import urllib.parse

from rules_references import UUID
from validator import rule

RANGES = {"timer.config.interval": (5, 86400), "timer.metric.interval": (5, 3600), "network.download.max.cost": (0, 255)}
COUNTS = {"timer.deviceinfo.interval", "timer.cert.interval", "timer.send.timeout", "timer.dial.timeout", "timer.reboot.no.network", "timer.download.retry",
          "timer.boot.retry", "timer.gc.vdisk", "timer.defer.content.delete", "timer.test.baseimage.update", "timer.update.fallback.no.network", "force.fallback.counter"}
CHOICES = {"network.fallback.any.eth": {"enabled", "disabled"}, "maintenance.mode": {"enabled", "disabled", "none"}, "airgap.mode": {"enabled", "disabled", "none"},
           **{key: {"true", "false"} for key in ("debug.enable.usb", "debug.enable.vga", "debug.enable.console", "app.allow.vnc", "newlog.allow.fastupload", "memory.apps.ignore.check")}}
UNREAD = ("base", "manufacturer", "productName", "backup")
UNREAD_IN = {"apps": ("drives", "vmResolution", "patchRef"), "contentInfo": ("siginfo", "generationCount")}
UNREAD_RESOURCES = ("extraargs", "cpus", "devicetree", "dtdev", "irqs", "iomem", "bootMode")


@rule
def the_device_is_named(c):
    """id.uuid empty -> apps ignored. version is free text, bump it per change."""
    for key in ("uuid", "version"):
        if not c.raw.get("id", {}).get(key):
            yield f"id.{key}", "is needed"


@rule
def nothing_is_sent_in_vain(c):
    """Ignored by pillar although in the schema: base, drives, siginfo, generation_count, extraargs, cpus, ... ; backup is not implemented."""
    for key in UNREAD:
        if key in c.raw:
            yield key, "is not read"
    for name, keys in UNREAD_IN.items():
        for at, x in c.each(name):
            yield from ((f"{at}.{key}", "is not read") for key in keys if key in x)
    for at, app in c.each("apps"):
        yield from ((f"{at}.fixedresources.{key}", "is not read") for key in UNREAD_RESOURCES if key in (app.get("fixedresources") or {}))
    for at, _, interface, _ in c.interfaces():
        if "hostname" in interface:
            yield f"{at}.hostname", "is not read"


@rule
def settings_stand_once_as_text(c):
    """configItems: list of {key, value}, values as strings."""
    seen = set()
    for at, item in c.each("configItems"):
        if not item.get("key") or item["key"] in seen or not isinstance(item.get("value", ""), str):
            yield at, "needs a key of its own and a text"
        seen.add(item.get("key"))


@rule
def settings_have_good_values(c):
    """Invalid ones keep the previous value and are reported: ranges, enabled|disabled|none."""
    for at, item in c.each("configItems"):
        key, value = item.get("key"), item.get("value", "")
        low, high = RANGES.get(key, (0, 1 << 32))
        if key in RANGES or key in COUNTS:
            if not str(value).isdigit() or not low <= int(value) <= high:
                yield f"{at}.value", f"{value!r} is not from {low} to {high}"
        elif key in CHOICES and value not in CHOICES[key]:
            yield f"{at}.value", f"{value!r} is none of {sorted(CHOICES[key])}"


@rule
def commands_are_there_from_the_start(c):
    """The first command ever seen is only recorded. So send reboot: {counter: N, desiredState: true} from the start (and shutdown)."""
    for key in ("reboot", "shutdown"):
        if not c.raw.get(key, {}).get("desiredState"):
            yield key, "is not there with desiredState"


@rule
def cipher_contexts_are_complete(c):
    """One context per (device ECDH cert, controller ECDH cert)."""
    pairs = set()
    for at, context in c.each("cipherContexts"):
        pair = (context.get("deviceCertHash"), context.get("controllerCertHash"))
        if not context.get("contextId") or not all(pair) or pair in pairs:
            yield at, "needs an identity and a pair of certificates of its own"
        pairs.add(pair)


@rule
def cipher_blocks_are_complete(c):
    """An incomplete cipher block is as good as none."""
    for at, block in c.cipher_blocks():
        for key in ("cipherContextId", "initialValue", "cipherData", "clearTextSha256"):
            if not block.get(key):
                yield f"{at}.{key}", "is needed"


@rule
def the_cluster_is_complete(c):
    """Bad prefix, join IP, cluster_id, tie breaker UUID or an incomplete cipher block -> treated as no cluster config (not reported)."""
    cluster = c.raw.get("cluster")
    if cluster is None:
        return
    try:
        ipaddress.ip_interface(cluster.get("clusterIpPrefix", ""))
        ipaddress.ip_address(cluster.get("joinServerIp", ""))
    except ValueError as e:
        yield "cluster", str(e)
    if "/" not in cluster.get("clusterIpPrefix", "/"):
        yield "cluster.clusterIpPrefix", "has no length of prefix"
    if not UUID.fullmatch(cluster.get("clusterId", "")) or not UUID.fullmatch(cluster.get("tieBreakerNodeId") or cluster.get("clusterId", "")):
        yield "cluster", "clusterId or tieBreakerNodeId is no UUID"
    if "encryptedClusterToken" not in cluster:
        yield "cluster.encryptedClusterToken", "is needed"


@rule
def load_balancers_need_native_orchestration(c):
    """load_balancer_service: only with native k8s orchestration (type K3S_BASE 1, or type 2 with enable_native_k8s_orchestration)."""
    cluster = c.raw.get("cluster", {})
    is_native = cluster.get("clusterType") == "CLUSTER_TYPE_K3S_BASE" or cluster.get("enableNativeK8sOrchestration")
    if cluster.get("loadBalancerService") and not is_native:
        yield "cluster.loadBalancerService", "needs native orchestration"


@rule
def certificate_profiles_are_complete(c):
    """scep_profiles: profile_name and absolute scep_url required, renew_period_percent <= 100."""
    for at, profile in c.each("scepProfiles"):
        url = urllib.parse.urlsplit(profile.get("scepUrl", ""))
        if not profile.get("profileName") or not (url.scheme and url.netloc) or profile.get("csrProfile", {}).get("renewPeriodPercent", 0) > 100:
            yield at, "needs a name, an absolute URL and a period of at most 100 per cent"


@rule
def port_authentication_is_by_tls(c):
    """pnacs: Ethernet IO, EAP_METHOD_TLS(1) only"""
    for at, pnac in c.each("pnacs"):
        if pnac.get("eapMethod") != "EAP_METHOD_TLS":
            yield f"{at}.eapMethod", "must be EAP_METHOD_TLS"


@rule
def patch_artifacts_are_complete(c):
    """One bad artifact aborts the parse of the whole list."""
    for at, envelope in c.each("patchEnvelopes"):
        for j, artifact in enumerate(envelope.get("artifacts", [])):
            if sum(key in artifact for key in ("inline", "volumeRef", "encryptedInline", "encryptedVolumeref")) != 1:
                yield f"{at}.artifacts[{j}]", "needs exactly one source"


@rule
def edgeview_has_a_token(c):
    """edgeview: token must have three dot-separated parts"""
    token = c.raw.get("edgeview", {}).get("token", "")
    if "edgeview" in c.raw and (token.count(".") != 2 or not all(token.split("."))):
        yield "edgeview.token", "does not have three parts"
