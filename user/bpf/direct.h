/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a target's pages in place (luabpf/pages.h): can this kernel do it, and is it proved? What
 * an object's programs are to call is told before it is loaded; and then its luabpf_prove has to
 * say that they may. Where not, the object that copies is: slower, no less true.
 */
#ifndef BPF_DIRECT_H
#define BPF_DIRECT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <bpf/libbpf.h>

#include "kernel_btf.h"

/*
 * Opens an object of bpf/, that which reads in place or that which copies, both of which the caller
 * includes. They are one source: one's maps, programs and variables are the other's, and so is its
 * skeleton, as far as that names what they share: DIRECT_SAME. NULL and errno, or a struct
 * name_bpf.
 */
#define DIRECT_OPEN(name, in_place, opts)                                                          \
	({                                                                                         \
		struct name##_bpf *skel_ = calloc(1, sizeof(*skel_));                              \
		int err_ = skel_ ? name##_bpf__create_skeleton(skel_) : -ENOMEM;                   \
                                                                                                   \
		if (!err_ && (in_place))                                                           \
			skel_->skeleton->data =                                                    \
				(void *)name##_direct_bpf__elf_bytes(&skel_->skeleton->data_sz);   \
		if (!err_)                                                                         \
			err_ = bpf_object__open_skeleton(skel_->skeleton, opts);                   \
		if (err_) {                                                                        \
			name##_bpf__destroy(skel_);                                                \
			skel_ = NULL;                                                              \
			errno = -err_;                                                             \
		}                                                                                  \
		skel_;                                                                             \
	})

/* A variable of both, in their section (bss, rodata). */
#define DIRECT_SAME(name, section, variable)                                                       \
	_Static_assert(offsetof(struct name##_bpf__##section, variable) ==                         \
			       offsetof(struct name##_direct_bpf__##section, variable),            \
		       "one source")

/* Does the kernel tell this process what direct_prove() needs? */
bool direct_is_possible(void);

/*
 * All objects that are opened and loaded from now on call this. It holds for the process, and for
 * programs in the sections that ours are in. Returns -errno.
 */
int direct_set_cast(const struct kernel_cast *cast);

/* prog: luabpf_prove of the loaded object. */
bool direct_prove(int prog);

#endif
