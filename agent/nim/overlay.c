/* SPDX-License-Identifier: Apache-2.0 */
#include "nim/overlay.h"

static struct dpc_port *find_by_label(const struct dpc *d, const char *label)
{
    for (size_t i = 0; d && i < d->n_ports; i++)
        if (label[0] && strcmp(d->ports[i].label, label) == 0)
            return &d->ports[i];
    return NULL;
}

struct dpc_port *overlay_find(const struct dpc *overlay, const struct dpc_port *port,
                              struct arena *a, struct str *ret_error)
{
    struct dpc_port *found = find_by_label(overlay, port->label);
    struct str error = STR_NONE;
    if (!found)
        return NULL;
    if (port->allows_local_changes && port->wireless_type == found->wireless_type)
        return found;
    if (!ret_error)
        return NULL;
    if (!port->allows_local_changes)
        error = arena_printf(a, "local modifications not permitted for port \"%s\"", port->label);
    else
        error = arena_printf(a,
                             "LPS configuration for port \"%s\" rejected: wireless type mismatch "
                             "(controller=%d, LPS=%d)",
                             port->label, port->wireless_type, found->wireless_type);
    *ret_error = error;
    return NULL;
}

struct json *overlay_config(struct arena *a, const struct dpc *d, const struct dpc *overlay)
{
    struct json *ports = dpc_config(a, d);
    const struct json *covers = NULL;
    for (size_t i = 0; overlay && i < d->n_ports && i < json_count(ports); i++) {
        const struct dpc_port *by = overlay_find(overlay, &d->ports[i], NULL, NULL);
        if (!by)
            continue;
        covers = covers ? covers : dpc_config(a, overlay);
        const size_t at = (size_t) (by - overlay->ports);
        if (at < json_count(covers))
            dpc_cover_port(a, &ports->items[i], &covers->items[at]);
    }
    return ports;
}

bool overlay_touches(const struct dpc *d, const struct dpc *overlay)
{
    for (size_t i = 0; overlay && i < d->n_ports; i++)
        if (overlay_find(overlay, &d->ports[i], NULL, NULL))
            return true;
    return false;
}

bool overlay_covers_uplinks(const struct dpc *d, const struct dpc *overlay)
{
    bool has_uplink = false;
    for (size_t i = 0; overlay && i < d->n_ports; i++) {
        if (!dpc_port_is_management(d, &d->ports[i]))
            continue;
        if (!overlay_find(overlay, &d->ports[i], NULL, NULL))
            return false;
        has_uplink = true;
    }
    return has_uplink;
}
