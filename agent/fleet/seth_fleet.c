/* SPDX-License-Identifier: Apache-2.0 */
/* seth-fleet: many simulated devices in one process. */
#include <stdlib.h>

#include "cli/program.h"
#include "fleet/run.h"
#include "fleet/settings.h"

static int run_command(const struct options *o)
{
    struct fleet_settings s;
    return fleet_settings_read(o, &s) < 0 ? EXIT_FAILURE : fleet_run(&s);
}

static const struct option_spec no_options[] = {{0}};

static const struct command commands[] = {
    {"run", "", "runs a fleet of simulated devices against a controller", fleet_run_options,
     run_command},
    {"completion", " [WORD...]", "words that can follow, for the shell", no_options,
     completion_command},
    {"manual", "", "prints the manual page", no_options, manual_command},
    {"version", "", "prints the version", no_options, version_command},
    {0},
};

static const struct program seth_fleet = {
    .name = "seth-fleet",
    .title = "a fleet of simulated EVE devices",
    .description =
        "Runs many devices in one process, each with the services of seth-agent on a machine and "
        "a runtime that are simulated, against one controller, which it measures. The exit code "
        "is 0 when no request has failed and 1 otherwise.",
    .files = "The devices' files are in the directory of \\-\\-state\\-dir, one directory for "
             "each serial number.",
    .signals = "SIGINT and SIGTERM end the run with its report; SIGUSR2 takes the next speed of "
               "\\-\\-speed, SIGUSR1 the one before.",
    .commands = commands,
};

int main(int argc, char **argv)
{
    return program_main(&seth_fleet, argc, argv);
}
