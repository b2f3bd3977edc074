/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of IR operations that bytecode instructions become (layer 1, for jit/ only). */
#ifndef JIT_OPS_H
#define JIT_OPS_H

#include "model.h"

/* A set of operations, or another argument of a wanted_fn. */
typedef unsigned __int128 op_set;
_Static_assert(LJ_IR__MAX <= 128, "a set of operations");

#define OPS(op) ((op_set)1 << LJ_IR_##op)

#define LOADS (OPS(ALOAD) | OPS(HLOAD) | OPS(ULOAD) | OPS(FLOAD) | OPS(XLOAD) | OPS(VLOAD))
#define STORES (OPS(ASTORE) | OPS(HSTORE) | OPS(USTORE) | OPS(FSTORE) | OPS(XSTORE))
#define CALLS (OPS(CALLN) | OPS(CALLA) | OPS(CALLL) | OPS(CALLS) | OPS(CALLXS))

#endif
