/* SPDX-License-Identifier: BSD-2-Clause */
/* What --exe, --comm, --cgroup and --user ask for. */
#ifndef CMDS_NARROW_H
#define CMDS_NARROW_H

#include "cli/options.h"
#include "proc/narrow.h"

/* *out: of the options, which outlive it; to be freed by narrow_free() in any case. */
int narrow_of_options(const struct options *opts, struct narrow *out, struct error *err);

#endif
