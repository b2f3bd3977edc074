/* SPDX-License-Identifier: BSD-2-Clause */
/* One function per verb. Each prints its errors itself and returns the exit code. */
#ifndef CMDS_CMDS_H
#define CMDS_CMDS_H

#include "base/error.h"
#include "cli/cli.h"

int cmd_record(const struct options *opts);
int cmd_report(const struct options *opts);
int cmd_doctor(const struct options *opts);
int cmd_ps(const struct options *opts);
int cmd_count(const struct options *opts);
int cmd_trace(const struct options *opts);
int cmd_traces(const struct options *opts);
int cmd_help(const struct options *opts);

/* Prints "luabpf: object: cause" and the remedy on standard error. ret: the -errno of err. */
void cmd_error(int ret, const struct error *err);

#endif
