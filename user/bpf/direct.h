/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a target's pages in place (luabpf/pages.h): can this kernel do it, and is it proved? What
 * an object's programs are to call is told before it is loaded; and then its luabpf_prove has to
 * say that they may. Where not, reads are copies: slower, no less true.
 */
#ifndef BPF_DIRECT_H
#define BPF_DIRECT_H

#include <stdbool.h>

#include "kernel_btf.h"

/* Does the kernel tell this process what direct_prove() needs? */
bool direct_is_possible(void);

/*
 * All objects that are opened and loaded from now on call this; {} for those with lb_direct 0. It
 * holds for the process, and for programs in the sections that ours are in. Returns -errno.
 */
int direct_set_cast(const struct kernel_cast *cast);

/* prog: luabpf_prove of the loaded object. */
bool direct_prove(int prog);

#endif
