/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures a uprobe on this machine: its cost and its kind, by probes on a function of luabpf's own. */
#ifndef BPF_TRAP_H
#define BPF_TRAP_H

#include <stdbool.h>

#include "base/error.h"

struct trap {
	double ns;  /* of a hit, apart from the program that runs at it */
	bool multi; /* uprobes_make_multi() works */
};

int trap_measure(struct trap *out, struct error *err);

/* Why a uprobe could not be attached, by r. Returns r. */
int trap_error(int r, struct error *err);

#endif
