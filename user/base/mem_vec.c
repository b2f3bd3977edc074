// SPDX-License-Identifier: BSD-2-Clause
#include "base/mem_vec.h"

long mem_readv(const struct lb_mem *mem, struct mem_vec *vec, size_t n)
{
	long whole = 0;
	size_t i;

	if (mem->readv)
		return mem->readv(mem, vec, n);
	for (i = 0; i < n; i++) {
		vec[i].err = mem_read(mem, vec[i].dst, vec[i].size, vec[i].addr);
		whole += !vec[i].err;
	}
	return whole;
}
