/* SPDX-License-Identifier: Apache-2.0 */
#include "thing.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/hooks.h"

/* Behaviour plays no part in documents. */
const struct kind_hooks *kind_hooks_find(struct str group, struct str plural)
{
    (void) group;
    (void) plural;
    return NULL;
}

/* The schema has one of everything that documents treat specially. */
static const char thing_crd[] =
    "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
    "\"metadata\":{\"name\":\"things.example.org\"},\"spec\":{\"group\":\"example.org\",\"scope\":"
    "\"Namespaced\","
    "\"names\":{\"plural\":\"things\",\"singular\":\"thing\",\"kind\":\"Thing\",\"listKind\":"
    "\"ThingList\","
    "\"shortNames\":[\"tg\"],\"categories\":[\"all\",\"eve\"]},\"versions\":["
    "{\"name\":\"v1\",\"served\":true,\"storage\":true,\"subresources\":{\"status\":{},\"scale\":"
    "{\"specReplicasPath\":\".spec.replicas\",\"statusReplicasPath\":\".status.replicas\"}},"
    "\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"description\":\"A "
    "thing.\",\"properties\":{"
    "\"spec\":{\"type\":\"object\",\"description\":\"What is "
    "wanted.\",\"required\":[\"size\",\"note\"],\"properties\":{"
    "\"size\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"How large.\"},"
    "\"replicas\":{\"type\":\"integer\",\"format\":\"int32\"},"
    "\"note\":{\"type\":\"string\",\"nullable\":true,\"maxLength\":300,\"pattern\":\"^[a-z]*$\"},"
    "\"mode\":{\"type\":\"string\",\"enum\":[\"a\",\"b\"],\"default\":\"a\"},"
    "\"any\":{\"x-kubernetes-preserve-unknown-fields\":true,\"type\":\"object\"},"
    "\"port\":{\"x-kubernetes-int-or-string\":true},"
    "\"template\":{\"type\":\"object\",\"x-kubernetes-embedded-resource\":true,\"properties\":"
    "{\"spec\":{\"type\":\"object\"}}},"
    "\"weights\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\",\"maximum\":2."
    "5}},"
    "\"choice\":{\"type\":\"object\",\"oneOf\":[{\"required\":[\"l\"]},{\"required\":[\"r\"]}],"
    "\"properties\":"
    "{\"l\":{\"type\":\"string\"},\"r\":{\"type\":\"boolean\"}}},"
    "\"items\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-"
    "keys\":[\"name\"],"
    "\"items\":{\"type\":\"object\",\"required\":[\"name\"],\"properties\":{\"name\":{\"type\":"
    "\"string\"}}}}}},"
    "\"status\":{\"type\":\"object\",\"properties\":{\"replicas\":{\"type\":\"integer\"}}}}}}},"
    "{\"name\":\"v1alpha1\",\"served\":true,\"storage\":false,\"deprecated\":true,\"schema\":{"
    "\"openAPIV3Schema\":"
    "{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}}},"
    "{\"name\":\"v2beta1\",\"served\":true,\"storage\":false,\"schema\":{\"openAPIV3Schema\":"
    "{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}}}]}}";

struct registry *thing_registry(void)
{
    ARENA_AUTO a = arena_new();
    const struct json *crd = json_parse_quick(a, str_range(thing_crd, sizeof(thing_crd) - 1));
    struct str error = STR("not parsed");
    struct registry *r = crd ? registry_build(&crd, 1, 1, &error) : NULL;
    if (!r) {
        fprintf(stderr, "thing_registry: %.*s\n", STR_ARG(error));
        abort();
    }
    return r;
}
