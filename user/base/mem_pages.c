// SPDX-License-Identifier: BSD-2-Clause
#include "base/mem_pages.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* NULL: it cannot be read. */
static const uint8_t *page_at(struct mem_pages *p, uint64_t at)
{
	size_t slot = at / MEM_PAGES_BYTES % MEM_PAGES_SLOTS;

	if (p->at[slot] == at + 1)
		return p->bytes[slot];
	p->at[slot] = 0;
	if (mem_read(p->under, p->bytes[slot], MEM_PAGES_BYTES, at))
		return NULL;
	p->at[slot] = at + 1;
	return p->bytes[slot];
}

static int pages_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	struct mem_pages *p = (struct mem_pages *)(uintptr_t)mem;

	if (mem_is_uncached(p->under) || size >= MEM_PAGES_BYTES)
		return mem_read(p->under, dst, size, addr);
	for (__u32 done = 0, part; done < size; done += part) {
		uint64_t offset = (addr + done) % MEM_PAGES_BYTES;
		const uint8_t *page = page_at(p, addr + done - offset);

		if (!page)
			return mem_read(p->under, dst, size, addr);
		part = MIN(size - done, (__u32)(MEM_PAGES_BYTES - offset));
		memcpy((char *)dst + done, page + offset, part);
	}
	return 0;
}

struct mem_pages *mem_pages_new(const struct lb_mem *under)
{
	struct mem_pages *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	p->mem = (struct lb_mem){.read = pages_read, .uncached = under->uncached};
	p->under = under;
	memset(p->at, 0, sizeof(p->at));
	return p;
}

void mem_pages_free(struct mem_pages **pages)
{
	free(*pages);
	*pages = NULL;
}
