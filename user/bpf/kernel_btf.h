/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small BTF for libbpf's CO-RE relocations, with the few structures that our programs read. In
 * the kernel's own BTF libbpf compares each of our type names with those of all types, which takes
 * a large part of the time to the first sample.
 */
#ifndef BPF_KERNEL_BTF_H
#define BPF_KERNEL_BTF_H

#include <stddef.h>

#include "base/error.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

struct bpf_object_open_opts;
struct btf;

/*
 * Copies the structures of these names that exist, out of BTF as files have it. Types that their
 * members point to, and members that are structures of other names, are left out. The caller frees
 * *out with btf__free(). -EBADMSG: these bytes are no BTF.
 */
int kernel_btf_pick(const void *bytes, size_t size, const char *const *names, size_t n,
		    struct btf **out);

/* kernel_btf_pick() of the running kernel, in a memory file. Returns -errno. */
int kernel_btf_open(const char *const *names, size_t n, int *fd);

#define KERNEL_BTF_PATH 32

/* An object that is opened with these options takes its relocations from fd: -1, from the kernel's
 * whole BTF. path is read when the object is loaded. */
void kernel_btf_use(struct bpf_object_open_opts *options, int fd, char path[KERNEL_BTF_PATH]);

/* -ENOENT without the kernel's BTF: err says why. */
int kernel_btf_check(struct error *err);

#endif
