/* SPDX-License-Identifier: Apache-2.0 */
/* POST uuid: who the device is. The door has found it by its certificate. */
#include "device/endpoint.h"
#include "eve/uuid.pb-c.h"

/* Manufacturer and product would override what the device itself knows of its hardware; we know
 * nothing better. */
int device_uuid(struct device_call *c)
{
    Eve__Uuid__UuidResponse answer = EVE__UUID__UUID_RESPONSE__INIT;
    answer.uuid = c->device->uuid_text;
    return device_answer(c, 200, &answer.base);
}
