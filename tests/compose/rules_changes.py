# SPDX-License-Identifier: Apache-2.0
"""What a change of a configuration must bring along."""
from validator import change_rule

CONTENT = ("URL", "iformat", "sha256")
LIVE_RESOURCES = {"bootOrder", "disableLogs"}


def both(old, new, name, identity):
    """(path, before, after) of what is in both."""
    before = {identity(x): x for x in old.list(name)}
    for at, x in new.each(name):
        if identity(x) in before:
            yield at, before[identity(x)], x


def apps_in_both(old, new):
    return both(old, new, "apps", lambda x: x.get("uuidandversion", {}).get("uuid"))


def counter(app, name):
    return app.get(name, {}).get("counter", 0)


@change_rule
def time_does_not_go_backwards(old, new):
    """config_timestamp older than the applied one -> whole config ignored. Equal is fine."""
    one, two = old.raw.get("configTimestamp"), new.raw.get("configTimestamp")
    if one and two and two < one:
        yield "configTimestamp", f"{two} is before {one}"


@change_rule
def the_version_follows_changes(old, new):
    """version is free text, bump it per change"""
    strip = lambda c: {k: v for k, v in c.raw.items() if k not in ("id", "configTimestamp")}
    if strip(old) != strip(new) and old.raw.get("id") == new.raw.get("id"):
        yield "id.version", "is that of another configuration"


@change_rule
def instances_keep_their_type(old, new):
    """Changing the type of an existing UUID is refused."""
    for at, before, after in both(old, new, "networkInstances", lambda x: x.get("uuidandversion", {}).get("uuid")):
        if before.get("instType") != after.get("instType"):
            yield f"{at}.instType", "has changed"


@change_rule
def changed_volumes_have_a_new_generation(old, new):
    """Changing content, origin type, size or readonly needs generationCount + 1."""
    def essence(c, volume):
        content = c.contents.get(volume.get("origin", {}).get("downloadContentTreeID"), {})
        return [volume.get("origin"), volume.get("maxsizebytes", 0), volume.get("readonly", False), [content.get(key) for key in CONTENT]]

    for at, before, after in both(old, new, "volumes", lambda x: x.get("uuid")):
        if essence(old, before) != essence(new, after) and after.get("generationCount", 0) <= before.get("generationCount", 0):
            yield f"{at}.generationCount", "must grow"


@change_rule
def changed_resources_restart(old, new):
    """fixedresources (memory, cpu, mode, vnc, ...): restart.counter + 1 in the same config, else error "Need restart"."""
    strip = lambda app: {k: v for k, v in app.get("fixedresources", {}).items() if k not in LIVE_RESOURCES}
    for at, before, after in apps_in_both(old, new):
        if strip(before) != strip(after) and counter(after, "restart") <= counter(before, "restart"):
            yield f"{at}.restart.counter", "must grow"


@change_rule
def changed_interfaces_restart(old, new):
    """interfaces (number, network, IP, MAC): applied at the next restart (restart.counter + 1), or purge."""
    strip = lambda app: [[i.get(k) for k in ("networkId", "addr", "macAddress")] for i in app.get("interfaces", [])]
    for at, before, after in apps_in_both(old, new):
        if strip(before) != strip(after) and all(counter(after, k) <= counter(before, k) for k in ("restart", "purge")):
            yield f"{at}.restart.counter", "must grow"


@change_rule
def changed_volumes_and_hardware_purge(old, new):
    """volumeRefList, adapters: purge.counter + 1 in the same config, else error "Need purge"."""
    for at, before, after in apps_in_both(old, new):
        changed = any(before.get(k, []) != after.get(k, []) for k in ("volumeRefList", "adapters"))
        if changed and counter(after, "purge") <= counter(before, "purge"):
            yield f"{at}.purge.counter", "must grow"


@change_rule
def changed_user_data_is_taken_again(old, new):
    """Re-applied when cloud_init_version changes, or, if that is 0, when uuidandversion.version changes."""
    def version(app):
        return app.get("cloudInitVersion") or app.get("uuidandversion", {}).get("version")

    def data(app):
        return app.get("userData"), app.get("cipherData", {}).get("clearTextSha256")

    for at, before, after in apps_in_both(old, new):
        if data(before) != data(after) and version(before) == version(after):
            yield f"{at}.cloudInitVersion", "must change"


@change_rule
def counters_do_not_go_back(old, new):
    """Counters: any difference triggers once. An older value would act as a new command."""
    pairs = [(key, old.raw.get(key, {}), new.raw.get(key, {})) for key in ("reboot", "shutdown")]
    if "baseos" in new.raw:  # without it nothing is said of updates
        pairs.append(("baseos.retryUpdate", old.raw.get("baseos", {}).get("retryUpdate", {}), new.raw["baseos"].get("retryUpdate", {})))
    for at, before, after in apps_in_both(old, new):
        pairs += [(f"{at}.{key}", before.get(key, {}), after.get(key, {})) for key in ("restart", "purge")]
    for at, before, after in pairs:
        if after.get("counter", 0) < before.get("counter", 0):
            yield f"{at}.counter", f"goes back to {after.get('counter', 0)}"


@change_rule
def commands_stay(old, new):
    """Removing the field deletes the stored value."""
    for key in ("reboot", "shutdown"):
        if key in old.raw and key not in new.raw:
            yield key, "is gone"
