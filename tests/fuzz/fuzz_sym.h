/* SPDX-License-Identifier: BSD-2-Clause */
/* For fuzz_luasym and fuzz_pucsym: memory that counts its reads, and what is asked of both. */
#ifndef TESTS_FUZZ_FUZZ_SYM_H
#define TESTS_FUZZ_FUZZ_SYM_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <unwind/mem.h>

#define BASE 0x40000000ULL /* where the bytes lie */
#define MAX_READS 3000000u /* per input */

struct counted {
	struct lb_mem mem;
	const struct lb_mem *under;
	unsigned *reads;
};

static inline int counted_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	const struct counted *c = (const struct counted *)mem;

	if (++*c->reads > MAX_READS)
		abort(); /* no bound, or a bad one */
	return mem_read(c->under, dst, size, addr);
}

/* For lj_proto_definitions(), puc_proto_definitions(): reads each name. arg: the sum of lengths. */
static inline int on_definition(void *arg, uint64_t child, const char *name)
{
	(void)child;
	*(size_t *)arg += strlen(name);
	return 0;
}

#endif
