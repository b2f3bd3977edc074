// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lj_scene.h"

static const struct lj_scene_row *const tables[] = {lj_scenes_frames, lj_scenes_top,
						    lj_scenes_trace, lj_scenes_find};

const struct lj_scene_row *lj_scene_at(size_t i)
{
	size_t t, n;

	for (t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
		for (n = 0; tables[t][n].name; n++)
			if (!i--)
				return &tables[t][n];
	return NULL;
}

size_t lj_scene_count(void)
{
	size_t n = 0;

	while (lj_scene_at(n))
		n++;
	return n;
}

void lj_scene_init(struct lj_scene *s, const struct lj_scene_row *row, const struct lj_layout *lj)
{
	memset(s, 0, sizeof(*s));
	lji_init(&s->img, lj);
	s->end = LB_END_RESOLVED;
	s->state = 'I';
	s->in.build.lj = *lj;
	s->in.build.rbp_site[SC_SITE_RBP / 8] = 1 << SC_SITE_RBP % 8;
	s->in.vm_start = LJI_VM;
	s->in.vm_end = LJI_VM + LJI_VM_SIZE;
	s->in.text_lo = LJI_TEXT;
	s->in.text_hi = LJI_TEXT + LJI_TEXT_SIZE;
	s->in.stack_hi = LJI_CSTACK_END;
	s->in.sample = 1;
	s->in.known[0] = s->img.g;
	s->in.regs.gl = s->img.g + lj->g2disp;
	lji_put32(&s->img, SC_IP_LINK, 0xf85a8948); /* 48 89 5a f8 */
	row->make(s);
}

void lj_scene_free(struct lj_scene *s)
{
	lji_free(&s->img);
}

static bool same_stack(const struct lj_scene *s, const struct lb_stack *got)
{
	uint32_t i;

	if (got->n != s->nwant || got->flags != s->flags)
		return false;
	for (i = 0; i < got->n; i++)
		if (got->frame[i].word != s->want[i].word || got->frame[i].pc != s->want[i].pc)
			return false;
	return true;
}

static size_t print_frames(char *to, size_t size, const struct lb_frame *f, uint32_t n)
{
	size_t at = 0;
	uint32_t i;

	for (i = 0; i < n && i < 12 && at < size; i++)
		at += (size_t)snprintf(to + at, size - at, " %016" PRIx64 ":%d",
				       (uint64_t)f[i].word, (int)f[i].pc);
	return at < size ? at : size - 1;
}

bool lj_scene_check(const struct lj_scene *s, const struct lj_walk *w, char *why, size_t size)
{
	static const char *const ends[] = {
#define LB_END(id, class, key, sentence) key,
#include <luabpf/ends.def>
#undef LB_END
	};
	const struct lb_stack *got = &w->rec.stack;
	size_t at;

	if (w->end == s->end && s->end != LB_END_RESOLVED)
		return true;
	if (w->end == s->end && w->state == s->state && same_stack(s, got))
		return true;
	at = (size_t)snprintf(why, size, "%s %c flags %u, want %s %c flags %u\n  got:",
			      w->end < LB_END__MAX ? ends[w->end] : "?", w->state ? w->state : '-',
			      got->flags, ends[s->end], s->state, s->flags);
	at += print_frames(why + at, size - at, got->frame, got->n);
	at += (size_t)snprintf(why + at, size - at, "\n  want:");
	print_frames(why + at, size - at, s->want, s->nwant);
	return false;
}

void sc_begin(struct lj_scene *s)
{
	struct lj_image *img = &s->img;

	s->main = sc_func(s, 0);
	s->cframe = lji_cframe(img, img->main_L, 1, img->main_L, 0);
	s->st = lji_stack(img, img->main_L);
	lji_sync(img, &s->st);
	lji_push(img, &s->st, s->main, 2, LJ_FRAME_CP);
	lji_run(img, img->main_L);
	lji_vmstate(img, LJ_VMST_INTERP);
}

uint64_t sc_func(struct lj_scene *s, int firstline)
{
	return lji_function(&s->img, firstline);
}

void sc_in_vm(struct lj_scene *s, uint64_t base, uint64_t pc)
{
	s->in.regs.ip = SC_IP;
	s->in.regs.sp = s->img.sp;
	s->in.regs.base = base;
	s->in.regs.pc = pc;
	s->in.regs.rb = 0x1234;
}

static void in_library(struct lj_scene *s)
{
	lji_c_code(&s->img, 12);
	s->in.regs = (struct lb_regs){
		.ip = SC_HELPER, .sp = s->img.sp, .base = 7, .pc = 0x99, .rb = s->img.sp, .gl = 3};
}

void sc_in_helper(struct lj_scene *s, uint64_t pc)
{
	uint64_t cframe = lji_get64(&s->img, s->st.L + LJ_L_CFRAME) & LJ_CFRAME_RAWMASK;

	lji_sync(&s->img, &s->st);
	lji_set_pc(&s->img, cframe, pc);
	lji_vm_calls(&s->img, SC_SITE);
	in_library(s);
}

void sc_in_c(struct lj_scene *s)
{
	lji_sync(&s->img, &s->st);
	lji_vmstate(&s->img, LJ_VMST_C);
	lji_vm_calls(&s->img, SC_SITE);
	in_library(s);
	s->in.regs.ip = SC_CFUNC + 4;
	s->state = 'C';
}

static void want(struct lj_scene *s, uint8_t kind, uint8_t flags, uint64_t ptr, uint32_t pc)
{
	s->want[s->nwant].word = LB_FRAME_WORD(kind, flags, ptr);
	s->want[s->nwant++].pc = pc;
}

void want_lua(struct lj_scene *s, uint64_t func, uint32_t pos, uint8_t flags)
{
	want(s, LB_FRAME_LUA, flags, lji_proto_of(&s->img, func), pos);
}

void want_c(struct lj_scene *s, uint64_t f, uint8_t flags)
{
	want(s, LB_FRAME_C, flags, f, LB_NO_PC);
}

void want_ff(struct lj_scene *s, uint8_t ffid, uint8_t flags)
{
	want(s, LB_FRAME_FF, flags, ffid, ffid);
}
