/* SPDX-License-Identifier: BSD-2-Clause */
/* count of a command: by the hook module, which its interpreters load. */
#ifndef CMDS_COUNT_COMMAND_H
#define CMDS_COUNT_COMMAND_H

#include "base/error.h"
#include "cli/options.h"

/* Runs opts->command, writes its calls by function. *code: its exit code. */
int count_command(const struct options *opts, int *code, struct error *err);

#endif
