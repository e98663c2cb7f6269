/* SPDX-License-Identifier: Apache-2.0 */
/* A whole fleet from its ramp to its report. */
#pragma once

struct fleet_settings;

/* The exit code of the program: 0 when no request failed and every device could start. */
int fleet_run(const struct fleet_settings *s);
