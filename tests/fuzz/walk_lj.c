// SPDX-License-Identifier: BSD-2-Clause
/*
 * The LuaJIT walker over damaged images: input chooses a scene and a layout, then changes registers
 * and bytes of objects and of the C stack. A walk must end in its bound, with a reason, and every
 * frame must be one that could be sent.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz_walk.h"
#include "lj_scene.h"
#include "lj_layouts.h"
#include "walk_host.h"

#ifdef FUZZ_GC32
#define FIRST_ROW LJ_LAYOUT_SCENES64
#define ROWS (LJ_LAYOUT_SCENES - LJ_LAYOUT_SCENES64)
#else
#define FIRST_ROW 0
#define ROWS LJ_LAYOUT_SCENES64
#endif

static void damage_regs(struct lb_regs *regs, uint64_t at, uint64_t value)
{
	uint64_t *word = (uint64_t *)regs + at % (sizeof(*regs) / 8);

	*word = at & 0x80 ? *word + (uint64_t)(int64_t)(int8_t)value : value;
}

/* An object, and where in it. */
static uint8_t *place_in_heap(struct lj_image *img, uint64_t at, size_t size)
{
	size_t n = (at & 0xff) % img->nobjects;

	return img->heap + img->objects[n].offset +
	       fuzz_offset((uint32_t)(at >> 8), img->objects[n].size, size);
}

static void damage(struct lj_scene *s, struct lb_selftest *sample, struct fuzz_undo *undo,
		   struct fuzz_input *in)
{
	uint64_t op = fuzz_take(in, 1), at = fuzz_take(in, 3), value;
	size_t size = (size_t)1 << (op >> 2 & 3);
	uint64_t offset = at * 8 % (LJI_CSTACK_END - s->img.sp);

	switch (op & 3) {
	case 0:
		damage_regs(&sample->regs, at, fuzz_take(in, 8));
		break;
	case 1:
		value = fuzz_take(in, 8);
		if (LJI_CSTACK_END - s->img.sp > offset + 8)
			fuzz_change(undo, lji_at(&s->img, s->img.sp + offset, 8), value, 8);
		break;
	case 2:
		value = fuzz_take(in, size);
		fuzz_change(undo, place_in_heap(&s->img, at, size), value, size);
		break;
	case 3: /* a pointer to another object */
		value = s->img.heap_at + s->img.objects[fuzz_take(in, 1) % s->img.nobjects].offset;
		if (op & 16)
			value = LJI_TV(LJ_TFUNC, value);
		fuzz_change(undo, place_in_heap(&s->img, at & ~(7ULL << 8), 8), value, 8);
		break;
	}
}

static void check(struct lj_walk *w, uint32_t steps)
{
	if (steps > 3 * LB_MAX_STEPS)
		abort();
	fuzz_check_walk(lj_common(w),
			1 << LB_FRAME_LUA | 1 << LB_FRAME_C | 1 << LB_FRAME_FF | 1 << LB_FRAME_VM,
			LB_FRAME_THREAD | LB_FRAME_TRACE | LB_FRAME_HOOK);
}

/* Built when it is first asked for, and kept. */
static struct lj_scene *scene(size_t row, size_t i)
{
	static struct lj_scene *built[ROWS][SCENES_MAX];
	static size_t count;
	struct lj_scene **s;
	const char *name;

	if (!count)
		count = lj_scene_count();
	if (count > SCENES_MAX)
		abort();
	i %= count;
	s = &built[row % ROWS][i];
	if (!*s) {
		*s = malloc(sizeof(**s));
		if (!*s)
			abort();
		lj_scene_init(*s, lj_scene_at(i), lj_layout_scene(FIRST_ROW + row % ROWS, &name));
		fuzz_trim(&(*s)->img.mem, &(*s)->img.heap, (*s)->img.used);
	}
	return *s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {.p = data, .left = size};
	static struct fuzz_undo undo;
	static struct lj_walk walk;
	struct lb_selftest sample;
	struct fuzz_mem mem;
	struct lj_scene *s;
	size_t row;
	uint32_t fail;

	row = fuzz_take(&in, 1);
	s = scene(row, fuzz_take(&in, 1));
	fail = (uint32_t)fuzz_take(&in, 1);
	sample = s->in;
	while (in.left)
		damage(s, &sample, &undo, &in);
	fuzz_mem_init(&mem, &s->img.mem.mem, fail);
	check(&walk, walk_host(&mem.mem.mem, &sample, &walk));
	fuzz_undo(&undo);
	return 0;
}
