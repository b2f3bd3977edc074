// SPDX-License-Identifier: BSD-2-Clause
/* walk_lj.c over images of builds without GC64. */
#define FUZZ_GC32
#include "walk_lj.c"
