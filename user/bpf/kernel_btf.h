/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small BTF for libbpf to relocate by, with the few structures that our programs read. Of the
 * kernel's it would compare the names of all types with each of theirs, which takes as long as much
 * of the rest until the first sample.
 */
#ifndef BPF_KERNEL_BTF_H
#define BPF_KERNEL_BTF_H

#include <stddef.h>
#include <stdint.h>

struct btf;

/*
 * The structures of these names, as many as there are. What their members point to, and structures
 * in them that have another name, are left out. The caller frees it: btf__free(). Returns -errno.
 */
int kernel_btf_pick(const struct btf *from, const char *const *names, size_t n, struct btf **out);

/* kernel_btf_pick() of the running kernel, in a memory file. Returns -errno. */
int kernel_btf_open(const char *const *names, size_t n, int *fd);

#endif
