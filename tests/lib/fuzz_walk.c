// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "fuzz_walk.h"

uint64_t fuzz_take(struct fuzz_input *in, size_t size)
{
	uint64_t v = 0;

	if (size > in->left)
		size = in->left;
	memcpy(&v, in->p, size);
	in->p += size;
	in->left -= size;
	return v;
}

uint32_t fuzz_offset(uint32_t at, uint32_t len, size_t size)
{
	uint32_t offset = at & 0xffff;

	offset = len > 1024 && offset & 1 ? offset * 8 % len : offset % (len < 1024 ? len : 1024);
	return offset + size > len ? 0 : offset;
}

void fuzz_change(struct fuzz_undo *undo, void *at, uint64_t value, size_t size)
{
	size_t n = undo->n;

	if (n == FUZZ_CHANGES)
		return;
	undo->change[n].at = at;
	undo->change[n].size = size;
	memcpy(&undo->change[n].was, at, size);
	memcpy(at, &value, size);
	undo->n++;
}

void fuzz_undo(struct fuzz_undo *undo)
{
	while (undo->n--)
		memcpy(undo->change[undo->n].at, &undo->change[undo->n].was,
		       undo->change[undo->n].size);
	undo->n = 0;
}

void fuzz_trim(struct mem_image *img, uint8_t **bytes, size_t used)
{
	size_t i;

	for (i = 0; i < img->n && img->ranges[i].bytes != *bytes; i++)
		;
	*bytes = realloc(*bytes, used);
	if (i == img->n || !*bytes)
		abort();
	img->ranges[i].bytes = *bytes;
	img->ranges[i].len = used;
}

void fuzz_mem_init(struct fuzz_mem *m, const struct lb_mem *under, uint32_t choice)
{
	mem_failing_init(&m->mem, under, choice < 128 ? FAIL_NEVER : FAIL_THERE, false,
			 choice & 127, &m->reads, &m->where);
}

void fuzz_check_walk(const struct lb_walk *w, uint32_t kinds, uint32_t flags)
{
	const struct lb_stack *stack = &w->rec.stack;
	uint32_t i;

	if (w->end >= LB_STATUS__MAX)
		abort();
	if (stack->n > LB_MAX_FRAMES || stack->flags & ~LB_SAMPLE_CUT)
		abort();
	if (w->end == LB_STATUS_RESOLVED && !stack->n)
		abort();
	for (i = 0; i < stack->n; i++) {
		uint8_t kind = LB_FRAME_KIND(&stack->frame[i]);

		if (kind > 31 || !(kinds >> kind & 1))
			abort();
		if (LB_FRAME_FLAGS(&stack->frame[i]) & ~flags)
			abort();
	}
}
