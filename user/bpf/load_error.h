/* SPDX-License-Identifier: BSD-2-Clause */
/* Why the kernel refused a BPF program or an event, as a message for the user. */
#ifndef BPF_LOAD_ERROR_H
#define BPF_LOAD_ERROR_H

#include "base/error.h"

/* Describes r, -EPERM or -EACCES, for `what`. Returns r. */
int load_error_privilege(int r, const char *what, struct error *err);

/* Describes r, from loading programs: a right or a helper is missing, or another cause. Returns r. */
int load_error(int r, struct error *err);

#endif
