// SPDX-License-Identifier: BSD-2-Clause
/*
 * The walker of PUC Lua over damaged images: input chooses a scene and a layout, then changes
 * registers, the layout itself, and bytes of objects and of the C stack. A walk must end in its
 * bound, with a reason, and every frame must be one that could be sent.
 */
#include <stdlib.h>
#include <string.h>

#include <unwind/puc/unwind.h>

#include "fuzz_walk.h"
#include "puc_scene.h"
#include "detect/puc/recognise.h"
#include "walk_host.h"

#define ROWS_MAX 32 /* of layouts */

/* ip, sp, the general registers, and the bounds of what is mapped. */
static void damage_regs(struct puc_selftest *in, uint64_t at, uint64_t value)
{
	__u64 *const words[] = {&in->regs.ip, &in->regs.sp,  &in->L,	   &in->vm_start,
				&in->vm_end,  &in->text_lo,  &in->text_hi, &in->gc_lo,
				&in->gc_hi,   &in->stack_hi, NULL};
	size_t n = sizeof(words) / sizeof(words[0]) - 1, i = at & 0x1f;
	__u64 *word = i < LB_GPRS ? &in->gprs.r[i] : words[(i - LB_GPRS) % n];

	*word = at & 0x80 ? *word + (uint64_t)(int64_t)(int8_t)value : value;
}

/* An object, and where in it. */
static uint8_t *place_in_heap(struct puc_image *img, uint64_t at, size_t size)
{
	size_t n = (at & 0xff) % img->nobjects;

	return img->heap + img->objects[n].offset +
	       fuzz_offset((uint32_t)(at >> 8), img->objects[n].size, size);
}

static void damage(struct puc_scene *s, struct puc_selftest *sample, struct fuzz_undo *undo,
		   struct fuzz_input *in)
{
	uint64_t op = fuzz_take(in, 1), at = fuzz_take(in, 3), value;
	size_t size = (size_t)1 << (op >> 2 & 3);
	uint64_t offset = at * 8 % (PUI_CSTACK_END - s->img.sp);

	switch (op & 3) {
	case 0:
		damage_regs(sample, at, fuzz_take(in, 8));
		break;
	case 1:
		value = fuzz_take(in, 8);
		if (op & 16) /* a layout that was measured wrongly */
			((uint8_t *)&sample->build)[at % sizeof(sample->build)] = (uint8_t)value;
		else if (PUI_CSTACK_END - s->img.sp > offset + 8)
			fuzz_change(undo, pui_at(&s->img, s->img.sp + offset, 8), value, 8);
		break;
	case 2:
		value = fuzz_take(in, size);
		fuzz_change(undo, place_in_heap(&s->img, at, size), value, size);
		break;
	case 3: /* a pointer to another object, or into the C stack */
		value = PUI_HEAP + s->img.objects[fuzz_take(in, 1) % s->img.nobjects].offset;
		if (op & 16)
			value = s->img.sp + 8 * fuzz_take(in, 2);
		fuzz_change(undo, place_in_heap(&s->img, at & ~(7ULL << 8), 8), value, 8);
		break;
	}
}

static void check_frame(const struct lb_frame *f)
{
	if (!LB_FRAME_PTR(f) || (LB_FRAME_KIND(f) == LB_FRAME_C && f->pc != LB_NO_PC))
		abort();
}

static void check(struct puc_walk *w, uint32_t steps)
{
	uint32_t i;

	if (steps > LB_MAX_STEPS)
		abort();
	fuzz_check_walk(puc_common(w), 1 << LB_FRAME_LUA | 1 << LB_FRAME_C | 1 << LB_FRAME_VM,
			LB_FRAME_THREAD | LB_FRAME_TAIL | LB_FRAME_FIN | LB_FRAME_HOOK);
	for (i = 0; i < w->rec.stack.n; i++)
		check_frame(&w->rec.stack.frame[i]);
	if (w->end != LB_STATUS_RESOLVED)
		return;
	if (!(LB_FRAME_FLAGS(&w->rec.stack.frame[0]) & LB_FRAME_THREAD))
		abort();
	if (!w->g || !w->L || !strchr("ICG", w->state))
		abort();
}

static struct puc_scene *build(size_t row, size_t i)
{
	static uint8_t *text; /* the same in nearly all scenes: one copy */
	struct puc_scene *s = malloc(sizeof(*s));
	struct mem_range *range;
	const char *name;

	if (!s)
		abort();
	puc_scene_init(s, puc_scene_at(i), puc_layout_row(row, &name));
	fuzz_trim(&s->img.mem, &s->img.heap, s->img.used);
	if (!text)
		text = s->img.text;
	for (range = s->img.mem.ranges; range->bytes != s->img.text; range++)
		;
	if (text != s->img.text && !memcmp(text, s->img.text, PUI_TEXT_USED)) {
		free(s->img.text);
		s->img.text = range->bytes = text;
	}
	return s;
}

/* Built when it is first asked for, and kept. */
static struct puc_scene *scene(size_t row, size_t i)
{
	static struct puc_scene *built[ROWS_MAX][SCENES_MAX];
	static size_t rows, count;
	const char *name;

	while (puc_layout_row(rows, &name))
		rows++;
	if (!count)
		count = puc_scene_count();
	if (count > SCENES_MAX)
		abort();
	if (rows > ROWS_MAX)
		abort();
	row %= rows;
	i %= count;
	if (!built[row][i])
		built[row][i] = build(row, i);
	return built[row][i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {.p = data, .left = size};
	static struct fuzz_undo undo;
	static struct puc_walk walk;
	struct puc_selftest sample;
	struct puc_scene *s;
	struct fuzz_mem mem;
	uint32_t fail;
	size_t row;

	row = fuzz_take(&in, 1);
	s = scene(row, fuzz_take(&in, 1));
	fail = (uint32_t)fuzz_take(&in, 1);
	puc_scene_hint(s, 0);
	puc_scene_hint(s, fail & 3); /* if the scene has as many */
	sample = s->in;
	while (in.left)
		damage(s, &sample, &undo, &in);
	fuzz_mem_init(&mem, &s->img.mem.mem, fail);
	check(&walk, walk_host_puc(&mem.mem.mem, &sample, &walk));
	fuzz_undo(&undo);
	return 0;
}
