/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `seth-agent`, one line each. */
#include "program/agent.h"

const struct option_spec plain_options[] = {{0}};

static const struct command commands[] = {
    {"run", "", "run the services of a device", run_options, run_command},
    {"client", " selfRegister|getUuid...", "register with the controller, learn the UUID, end",
     client_options_table, client_command},
    {"diag", "", "print how the device reaches its controller", diag_options_table, diag_command},
    {"version", "", "print the version", plain_options, version_command},
    {"completion", " [COMMAND]", "print what may follow, for shells", plain_options,
     completion_command},
    {"man", "", "print the manual page", plain_options, manual_command},
    {0},
};

static const struct program agent = {
    .name = "seth-agent",
    .title = "the services of an EVE device that talk to its controller",
    .description =
        "Onboards a machine with an EVE controller, fetches its configuration, runs applications, "
        "reports, uploads logs. It stands in for services of EVE, one or all.\nEvery option may "
        "also be set in the environment, as\n.B SETH_AGENT_NAME_OF_OPTION\n(upper case, "
        "underscores), or in the YAML file of\n.BR \\-\\-config .\n",
    .files = ".TP\n.I /config\nwhat the installer wrote: server, root-certificate.pem, "
             "onboard.cert.pem, onboard.key.pem; the device's own certificate is made there\n"
             ".TP\n.I /persist\nconfiguration, logs, applications\n"
             ".TP\n.I /run\ntopics by which services exchange their state\n",
    .signals = ".TP\n.B SIGTERM\nends the agent; applications go on.\n",
    .commands = commands,
};

int main(int argc, char **argv)
{
    return program_main(&agent, argc, argv);
}
