/* SPDX-License-Identifier: BSD-2-Clause */
/* Why the kernel refused a BPF program or an event, as a message for the user. */
#ifndef BPF_LOAD_ERROR_H
#define BPF_LOAD_ERROR_H

#include "base/error.h"

/* Of r, -EPERM or -EACCES, for `what`. Returns r. */
int load_error_privilege(int r, const char *what, struct error *err);

/* Of r, from loading programs: a right, a helper that the kernel lacks, or another. Returns r. */
int load_error(int r, struct error *err);

#endif
