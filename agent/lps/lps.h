/* SPDX-License-Identifier: Apache-2.0 */
/* Talks to the local profile server, an application of the device whose address the controller
 * names: tells it about the device and its applications, and takes its orders. What an order does
 * is zedagent/local.h. Without such a server it costs nothing but its own memory. */
#pragma once

struct lps;
struct node;
struct report;
struct zedagent;

/* The others outlive it. */
int lps_new(struct zedagent *z, struct node *n, struct report *r, struct lps **ret);
/* NULL allowed. */
void lps_free(struct lps *l);
