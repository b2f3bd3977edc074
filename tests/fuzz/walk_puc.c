// SPDX-License-Identifier: BSD-2-Clause
/*
 * The walker of PUC Lua over damaged images: input chooses a scene and a layout, then changes
 * registers, the layout itself, and bytes of objects and of the C stack. A walk must end in its
 * bound, with a reason, and every frame must be one that could be sent.
 */
#include <stdlib.h>
#include <string.h>

#include <luabpf/walk_puc.h>

#include "puc_scene.h"
#include "vm/puc_recognise.h"
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

/* An object, and where in it; bytes beyond the first KiB (stacks) are reached in words. */
static uint8_t *place_in_heap(struct puc_image *img, uint64_t at, size_t size)
{
	uint32_t n = (uint32_t)(at & 0xff) % (uint32_t)img->nobjects;
	uint32_t len = img->objects[n].size, offset = (uint32_t)(at >> 8 & 0xffff);

	offset = len > 1024 && offset & 1 ? offset * 8 % len : offset % (len < 1024 ? len : 1024);
	if (offset + size > len)
		offset = 0;
	return img->heap + img->objects[n].offset + offset;
}

static void damage(struct puc_scene *s, struct input *in)
{
	uint64_t op = take(in, 1), at = take(in, 3), value;
	size_t size = (size_t)1 << (op >> 2 & 3);
	uint64_t offset = at * 8 % (PUI_CSTACK_END - s->img.sp);

	switch (op & 3) {
	case 0:
		damage_regs(&s->in, at, take(in, 8));
		break;
	case 1:
		value = take(in, 8);
		if (op & 16) /* a layout that was measured wrongly */
			((uint8_t *)&s->in.build)[at % sizeof(s->in.build)] = (uint8_t)value;
		else if (PUI_CSTACK_END - s->img.sp > offset + 8)
			pui_put(&s->img, s->img.sp + offset, 8, value);
		break;
	case 2:
		value = take(in, size);
		memcpy(place_in_heap(&s->img, at, size), &value, size);
		break;
	case 3: /* a pointer to another object, or into the C stack */
		value = PUI_HEAP + s->img.objects[take(in, 1) % s->img.nobjects].offset;
		if (op & 16)
			value = s->img.sp + 8 * take(in, 2);
		memcpy(place_in_heap(&s->img, at & ~(7ULL << 8), 8), &value, 8);
		break;
	}
}

static void check_frame(const struct lb_frame *f)
{
	uint8_t kind = LB_FRAME_KIND(f);

	if (kind != LB_FRAME_LUA && kind != LB_FRAME_C)
		abort();
	if (LB_FRAME_FLAGS(f) & ~(LB_FRAME_THREAD | LB_FRAME_TAIL | LB_FRAME_FIN | LB_FRAME_HOOK))
		abort();
	if (!LB_FRAME_PTR(f) || (kind == LB_FRAME_C && f->pc != LB_NO_PC))
		abort();
}

static void check(const struct puc_walk *w, uint32_t steps)
{
	uint32_t i;

	if (steps > LB_MAX_STEPS || w->end >= LB_END__MAX)
		abort();
	if (w->rec.stack.n > LB_MAX_FRAMES || w->rec.stack.flags & ~LB_SAMPLE_CUT)
		abort();
	if (w->nfresh > LB_FRESH)
		abort();
	for (i = 0; i < w->rec.stack.n; i++)
		check_frame(&w->rec.stack.frame[i]);
	if (w->end != LB_END_RESOLVED)
		return;
	if (!w->rec.stack.n || !(LB_FRAME_FLAGS(&w->rec.stack.frame[0]) & LB_FRAME_THREAD))
		abort();
	if (!w->g || !w->L || !strchr("ICG", w->state))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.p = data, .left = size};
	static struct puc_walk walk;
	const struct puc_layout *puc;
	struct mem_failing mem;
	uint32_t reads, fail;
	struct puc_scene s;
	const char *name;
	uint64_t where;
	size_t rows = 0;

	while (puc_layout_row(rows, &name))
		rows++;
	puc = puc_layout_row(take(&in, 1) % rows, &name);
	puc_scene_init(&s, puc_scene_at(take(&in, 1) % puc_scene_count()), puc);
	fail = (uint32_t)take(&in, 1);
	puc_scene_hint(&s, fail & 3);
	while (in.left)
		damage(&s, &in);
	mem_failing_init(&mem, &s.img.mem.mem, fail < 128 ? FAIL_NEVER : FAIL_THERE, 0, fail & 127,
			 &reads, &where);
	check(&walk, walk_host_puc(&mem.mem, &s.in, &walk));
	puc_scene_free(&s);
	return 0;
}
