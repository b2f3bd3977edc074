// SPDX-License-Identifier: BSD-2-Clause
/*
 * The LuaJIT walker over damaged images: input chooses a scene and a layout, then changes registers
 * and bytes of objects and of the C stack. A walk must end in its bound, with a reason, and every
 * frame must be one that could be sent.
 */
#include <stdlib.h>
#include <string.h>

#include "lj_scene.h"
#include "vm/lj_recognise.h"
#include "walk_host.h"

struct input {
	const uint8_t *p;
	size_t left;
};

static uint64_t take(struct input *in, size_t size)
{
	uint64_t v = 0;

	if (size > in->left)
		size = in->left;
	memcpy(&v, in->p, size);
	in->p += size;
	in->left -= size;
	return v;
}

static void damage_regs(struct lb_regs *regs, uint64_t at, uint64_t value)
{
	uint64_t *word = (uint64_t *)regs + at % (sizeof(*regs) / 8);

	*word = at & 0x80 ? *word + (uint64_t)(int64_t)(int8_t)value : value;
}

/* An object, and where in it; bytes beyond the first KiB (stacks) are reached in words. */
static uint8_t *place_in_heap(struct lj_image *img, uint64_t at, size_t size)
{
	uint32_t n = (uint32_t)(at & 0xff) % (uint32_t)img->nobjects;
	uint32_t len = img->objects[n].size, offset = (uint32_t)(at >> 8 & 0xffff);

	offset = len > 1024 && offset & 1 ? offset * 8 % len : offset % (len < 1024 ? len : 1024);
	if (offset + size > len)
		offset = 0;
	return img->heap + img->objects[n].offset + offset;
}

static void damage(struct lj_scene *s, struct input *in)
{
	uint64_t op = take(in, 1), at = take(in, 3), value;
	size_t size = (size_t)1 << (op >> 2 & 3);
	uint64_t offset = at * 8 % (LJI_CSTACK_END - s->img.sp);

	switch (op & 3) {
	case 0:
		damage_regs(&s->in.regs, at, take(in, 8));
		break;
	case 1:
		value = take(in, 8);
		if (LJI_CSTACK_END - s->img.sp > offset + 8)
			lji_put64(&s->img, s->img.sp + offset, value);
		break;
	case 2:
		value = take(in, size);
		memcpy(place_in_heap(&s->img, at, size), &value, size);
		break;
	case 3: /* a pointer to another object */
		value = LJI_HEAP + s->img.objects[take(in, 1) % s->img.nobjects].offset;
		if (op & 16)
			value = LJI_TV(LJ_TFUNC, value);
		memcpy(place_in_heap(&s->img, at & ~(7ULL << 8), 8), &value, 8);
		break;
	}
}

static void check_frame(const struct lb_frame *f)
{
	uint8_t kind = LB_FRAME_KIND(f);

	if (kind != LB_FRAME_LUA && kind != LB_FRAME_C && kind != LB_FRAME_FF)
		abort();
	if (LB_FRAME_FLAGS(f) & ~(LB_FRAME_THREAD | LB_FRAME_TRACE))
		abort();
}

static void check(const struct lj_walk *w, uint32_t steps)
{
	uint32_t i;

	if (steps > 3 * LB_MAX_STEPS || w->end >= LB_END__MAX)
		abort();
	if (w->rec.stack.n > LB_MAX_FRAMES || w->rec.stack.flags & ~LB_SAMPLE_CUT)
		abort();
	if (w->end == LB_END_RESOLVED && !w->rec.stack.n)
		abort();
	if (w->nfresh > LB_FRESH)
		abort();
	for (i = 0; i < w->rec.stack.n; i++)
		check_frame(&w->rec.stack.frame[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.p = data, .left = size};
	static struct lj_walk walk;
	const struct lj_layout *lj;
	struct mem_failing mem;
	uint32_t reads, fail;
	struct lj_scene s;
	const char *name;
	uint64_t where;

	lj = lj_layout_row(take(&in, 1) & 1, &name);
	lj_scene_init(&s, lj_scene_at(take(&in, 1) % lj_scene_count()), lj);
	fail = (uint32_t)take(&in, 1);
	while (in.left)
		damage(&s, &in);
	mem_failing_init(&mem, &s.img.mem.mem, fail < 128 ? FAIL_NEVER : FAIL_THERE, 0, fail & 127,
			 &reads, &where);
	check(&walk, walk_host(&mem.mem, &s.in, &walk));
	lj_scene_free(&s);
	return 0;
}
