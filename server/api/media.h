/* SPDX-License-Identifier: Apache-2.0 */
/* Media types: what a client accepts, what its body is written in, and which of our forms answers
 * it. Parameters of a media type are a set, in any order. Protobuf is read
 * but not written, CBOR neither: ranges that name them are passed over. */
#pragma once

#include "api/status.h"

#define MEDIA_MAX_RANGES 64 /* ranges of one Accept header that are looked at */

struct media_range {
    struct str type, subtype; /* as sent; "*" for any */
    int quality;              /* thousandths, 0..1000 */
    bool has_transform;       /* one of as, g, v was given */
    struct str as, group, version;
    struct str stream, profile;
    bool is_pretty; /* pretty=1 */
};

/* The ranges by falling preference: quality, then the less general, then the order of the text.
 * What is no media range is left out. */
size_t media_parse_accept(struct arena *a, struct str header, struct media_range **ret_ranges);
bool media_range_matches(const struct media_range *r, struct str type, struct str subtype);

enum media_encoding { MEDIA_JSON, MEDIA_YAML, MEDIA_PROTOBUF /* bodies alone */ };
enum media_form { MEDIA_OBJECT, MEDIA_TABLE, MEDIA_PARTIAL, MEDIA_PARTIAL_LIST };

struct media_choice {
    enum media_encoding encoding;
    enum media_form form;
    struct str version; /* of meta.k8s.io for all forms but MEDIA_OBJECT: "v1" or "v1beta1" */
    bool is_pretty;
};

/* Who answers decides the words of a refusal: the routes of native kinds check the plain types
 * first. */
enum media_endpoint {
    MEDIA_NATIVE, /* one object of a native kind, /api/v1, /apis/<group>/<version> of native kinds
                   */
    MEDIA_NATIVE_LIST, /* their collections, which can be watched */
    MEDIA_CUSTOM,      /* custom resources, /apis, /apis/<group> */
};

/* How an object or a list is answered. Fails with 406. */
int media_choose(struct str accept, enum media_endpoint endpoint, struct media_choice *ret_choice,
                 struct status *st);
/* As media_choose() for a watch, which has no YAML form. */
int media_choose_watch(struct str accept, enum media_endpoint endpoint,
                       struct media_choice *ret_choice, struct status *st);
/* A document without other forms (discovery, version): json or yaml. */
int media_choose_plain(struct str accept, enum media_endpoint endpoint,
                       enum media_encoding *ret_encoding, struct status *st);
/* Does the client name Kubernetes's protobuf? */
bool media_names_protobuf(struct str accept);
/* Only JSON is offered (/version). */
int media_choose_json(struct str accept, struct status *st);
/* Does the client ask /api or /apis for the aggregated form, apidiscovery.k8s.io/v2? A range that
 * names it is preferred to a plain one wherever it stands; v2beta1 is not spoken any more. */
bool media_wants_aggregated_discovery(struct str accept, enum media_encoding *ret_encoding);

struct str media_content_type(enum media_encoding e);
/* Does Accept-Encoding allow gzip? */
bool media_accepts_gzip(struct str accept_encoding);

/* ---- bodies ------------------------------------------------------------------------------- */

/* The encoding of a POST, PUT or DELETE body; an absent Content-Type is JSON. Fails with 415. */
int media_body_encoding(struct str content_type, enum media_encoding *ret_encoding,
                        struct status *st);
/* The same 415, of a body whose kind has no such encoding. */
int media_refuse_body(struct status *st);

enum media_patch { MEDIA_PATCH_JSON, MEDIA_PATCH_MERGE, MEDIA_PATCH_STRATEGIC, MEDIA_PATCH_APPLY };
/* The kind of a patch. Strategic merge is for native kinds alone. Fails with 415. */
int media_patch_type(struct str content_type, bool is_native, enum media_patch *ret_patch,
                     struct status *st);
