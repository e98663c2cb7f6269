/* SPDX-License-Identifier: Apache-2.0 */
#include "api/admission/admission.h"

/* In running order. What takes something into account comes last, when nobody else can refuse. */
static const struct admission_hook *const hooks[] = {
    &definition_lifecycle, &namespace_lifecycle, &limit_range,       &mutating_webhooks,
    &escalation,           &certificate_rights,  &enrollment_rights, &validating_webhooks,
    &reference_rules,      &unique_values,       &resource_quota,
};

int admission_admit(struct admission *a)
{
    int r = 0;
    for (size_t i = 0; i < N_ELEMENTS(hooks) && r == 0; i++)
        r = hooks[i]->admit ? hooks[i]->admit(a) : 0;
    return r;
}

int admission_validate(struct admission *a)
{
    int r = 0;
    for (size_t i = 0; i < N_ELEMENTS(hooks) && r == 0; i++)
        r = hooks[i]->validate ? hooks[i]->validate(a) : 0;
    return r;
}

int admission_delete(struct admission *a)
{
    int r = 0;
    for (size_t i = 0; i < N_ELEMENTS(hooks) && r == 0; i++)
        r = hooks[i]->remove ? hooks[i]->remove(a) : 0;
    return r;
}

void admission_release(struct call *c)
{
    for (size_t i = 0; i < N_ELEMENTS(hooks); i++)
        if (hooks[i]->release)
            hooks[i]->release(c);
}
