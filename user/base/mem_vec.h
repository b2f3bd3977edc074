/* SPDX-License-Identifier: BSD-2-Clause */
/* Vectored reads of a target's memory: of a live process, one system call for 64 pieces. */
#ifndef BASE_MEM_VEC_H
#define BASE_MEM_VEC_H

#include <stddef.h>
#include <stdint.h>

#include <unwind/mem.h>

/* One piece. err is set for each: 0, or a negative errno and dst is undefined. */
struct mem_vec {
	void *dst;
	uint32_t size;
	uint64_t addr;
	int err;
};

/*
 * A piece that cannot be read does not hinder the others. Returns the number of pieces read, or
 * -errno when nothing can be read at all: -ESRCH, -EPERM.
 */
long mem_readv(const struct lb_mem *mem, struct mem_vec *vec, size_t n);

#endif
