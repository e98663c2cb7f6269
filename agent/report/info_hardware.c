/* SPDX-License-Identifier: Apache-2.0 */
/* The inventory of the machine. */
#include <stdlib.h>

#include "report/info.h"

#define MAX_DEVICES 4096

/* dddd:bb:dd.f */
static Eve__Info__PCIAddress *make_pci_address(struct world *w, struct str text)
{
    unsigned domain, bus, device, function;
    char z[16] = {0};
    memcpy(z, text.p, MIN(text.n, sizeof(z) - 1));
    char *at = z;
    domain = (unsigned) strtoul(at, &at, 16);
    bus = (unsigned) strtoul(at + (*at == ':'), &at, 16);
    device = (unsigned) strtoul(at + (*at == ':'), &at, 16);
    function = (unsigned) strtoul(at + (*at == '.'), &at, 16);
    Eve__Info__PCIAddress *a = MAKE(w, Eve__Info__PCIAddress, eve__info__pciaddress);
    a->domain = domain;
    a->bus = bus;
    a->device = device;
    a->function = function;
    return a;
}

static void add_pci(struct world *w, Eve__Info__HardwareInventory *i,
                    const struct machine_pci_device *d)
{
    Eve__Info__PCIDevice *p = MAKE(w, Eve__Info__PCIDevice, eve__info__pcidevice);
    p->driver = make_text(w, d->driver);
    p->address = make_pci_address(w, d->address);
    p->vendor_id = d->vendor;
    p->device_id = d->device;
    p->revision = d->revision;
    p->subsystem_id = d->subdevice;
    p->class_id = d->class_id >> 16;
    p->subclass_id = (d->class_id >> 8) & 0xff;
    PUSH(w, i, pci_devices, p);
}

/* 1-1.2: bus 1, port 1.2 */
static void add_usb(struct world *w, Eve__Info__HardwareInventory *i,
                    const struct machine_usb_device *d)
{
    Eve__Info__USBDevice *u = MAKE(w, Eve__Info__USBDevice, eve__info__usbdevice);
    const ptrdiff_t dash = str_find(d->address, '-');
    u->vendor_id = d->vendor;
    u->product_id = d->product;
    u->class_id = d->class_id;
    u->driver = make_text(w, d->driver);
    u->bus_port = MAKE(w, Eve__Info__USBAddress, eve__info__usbaddress);
    u->bus_port->bus = d->bus;
    u->bus_port->port =
        make_text(w, dash < 0 ? d->address : str_from(d->address, (size_t) dash + 1));
    PUSH(w, i, usb_devices, u);
}

static Eve__Info__NetworkDeviceType network_type(struct str name)
{
    if (str_starts_with(name, STR("wl")))
        return EVE__INFO__NETWORK_DEVICE_TYPE__NETWORK_DEVICE_TYPE_WIFI;
    if (str_starts_with(name, STR("ww")))
        return EVE__INFO__NETWORK_DEVICE_TYPE__NETWORK_DEVICE_TYPE_WWAN;
    return EVE__INFO__NETWORK_DEVICE_TYPE__NETWORK_DEVICE_TYPE_ETHERNET;
}

static void add_network(struct world *w, Eve__Info__HardwareInventory *i,
                        const struct machine_network_device *d)
{
    Eve__Info__NetworkDevice *n = MAKE(w, Eve__Info__NetworkDevice, eve__info__network_device);
    n->ifname = make_text(w, d->name);
    n->type = network_type(d->name);
    n->mac_address = make_text(w, d->mac);
    n->speed_mbps = (uint32_t) d->speed_mbits;
    if (d->pci_address.n) {
        n->parent = MAKE(w, Eve__Info__BusParent, eve__info__bus_parent);
        n->parent->pci_parent = make_pci_address(w, d->pci_address);
    }
    PUSH(w, i, network_devices, n);
}

static void add_cpu(struct world *w, Eve__Info__CPUInfo *i, const struct machine_cpu *d)
{
    Eve__Info__CPU *c = MAKE(w, Eve__Info__CPU, eve__info__cpu);
    c->id = d->id;
    c->model = make_text(w, d->model_name);
    c->vendor = make_text(w, d->vendor);
    c->freq = d->max_khz * 1000;
    PUSH(w, i, cpus, c);
}

static void add_misc(struct world *w, Eve__Info__HardwareInventory *i, struct str key,
                     struct str value)
{
    Eve__Info__HardwareInventory__MiscEntry *e =
        MAKE(w, Eve__Info__HardwareInventory__MiscEntry, eve__info__hardware_inventory__misc_entry);
    e->key = make_text(w, key);
    e->value = make_text(w, value);
    PUSH(w, i, misc, e);
}

/* The API has no list of disks any more: what they are is said in words. */
static void add_disk(struct world *w, Eve__Info__HardwareInventory *i, const struct machine_disk *d)
{
    i->total_storage_bytes += d->size_bytes;
    add_misc(w, i, arena_printf(w->arena, "disk.%.*s", STR_ARG(d->name)),
             arena_printf(w->arena, "%s%.*s %.*s, serial %.*s, %llu bytes",
                          d->is_rotational ? "rotating, " : "", STR_ARG(d->bus), STR_ARG(d->model),
                          STR_ARG(d->serial), (unsigned long long) d->size_bytes));
}

static Eve__Info__HardwareInventory *make_inventory(struct world *w,
                                                    const struct machine_hardware *h)
{
    const struct machine_identity *id = world_identity(w);
    Eve__Info__HardwareInventory *i =
        MAKE(w, Eve__Info__HardwareInventory, eve__info__hardware_inventory);
    for (size_t n = 0; n < MIN(h->n_pci, (size_t) MAX_DEVICES); n++)
        add_pci(w, i, &h->pci[n]);
    for (size_t n = 0; n < MIN(h->n_usb, (size_t) MAX_DEVICES); n++)
        add_usb(w, i, &h->usb[n]);
    for (size_t n = 0; n < MIN(h->n_network, (size_t) MAX_DEVICES); n++)
        add_network(w, i, &h->network[n]);
    for (size_t n = 0; n < MIN(h->n_disks, (size_t) MAX_DEVICES); n++)
        add_disk(w, i, &h->disks[n]);
    i->cpu_info = MAKE(w, Eve__Info__CPUInfo, eve__info__cpuinfo);
    for (size_t n = 0; n < MIN(h->n_cpus, (size_t) MAX_DEVICES); n++)
        add_cpu(w, i->cpu_info, &h->cpus[n]);
    i->bios = MAKE(w, Eve__Info__BIOS, eve__info__bios);
    i->bios->vendor = make_text(w, id->bios_vendor);
    i->bios->version = make_text(w, id->bios_version);
    i->total_memory_bytes = id->memory_bytes;
    i->watchdog_present = id->has_watchdog;
    i->tpm = MAKE(w, Eve__Info__TPM, eve__info__tpm);
    i->tpm->present = id->has_tpm;
    return i;
}

Eve__Info__ZInfoHardware *info_hardware(struct world *w)
{
    const struct machine_identity *id = world_identity(w);
    struct machine *m = w->ground->machine;
    struct machine_hardware hardware = {0};
    (void) m->functions->hardware(m, w->arena, &hardware);
    Eve__Info__ZInfoHardware *h = MAKE(w, Eve__Info__ZInfoHardware, eve__info__zinfo_hardware);
    h->eve_release = make_text(w, id->eve_version);
    h->eve_platform = make_text(w, id->platform);
    h->kernel_version = make_text(w, id->kernel_version);
    h->partition = TEXT(w, world_only(w, REPORT_NODEAGENT), "CurPart");
    h->inventory = make_inventory(w, &hardware);
    return h;
}
