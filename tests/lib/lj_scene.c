// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "lj_scene.h"

static const void *const tables[] = {
	lj_scenes_frames, lj_scenes_top,   lj_scenes_called, lj_scenes_trace,
	lj_scenes_find,	  lj_scenes_moved, lj_scenes_exit,   NULL};

const struct lj_scene_row *lj_scene_at(size_t i)
{
	return scene_row(tables, sizeof(struct lj_scene_row), i);
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
	s->end = LB_STATUS_RESOLVED;
	s->state = 'I';
	s->in.build.lj = *lj;
	s->in.build.rbp_site[SC_SITE_RBP / 8] = 1 << SC_SITE_RBP % 8;
	s->in.build.jump_site[(SC_IP_JUMP - LJI_VM) / 8] = 1 << (SC_IP_JUMP - LJI_VM) % 8;
	s->in.build.jump_site[(SC_IP_EXIT - LJI_VM) / 8] = 0xff;
	s->in.build.jump_site[(SC_IP_EXIT - LJI_VM) / 8 + 1] = 0x0f;
	s->in.build.exit_lo = SC_IP_EXIT - LJI_VM;
	s->in.build.exit_hi = SC_IP_EXIT - LJI_VM + 12;
	s->in.vm_start = LJI_VM;
	s->in.vm_end = LJI_VM + LJI_VM_SIZE;
	s->in.text_lo = LJI_TEXT;
	s->in.text_hi = LJI_TEXT + LJI_TEXT_SIZE;
	s->in.stack_hi = LJI_CSTACK_END;
	s->in.sample = 1;
	s->in.known[0] = s->img.g;
	s->in.regs.gl = s->img.g + lj->g2disp;
	s->in.build.link_site[(SC_IP_LINK - LJI_VM) / 8] = 1 << (SC_IP_LINK - LJI_VM) % 8;
	row->make(s);
}

void lj_scene_free(struct lj_scene *s)
{
	lji_free(&s->img);
}

bool lj_scene_check(const struct lj_scene *s, const struct lj_walk *walk, char *why, size_t size)
{
	const struct scene *scene = (const struct scene *)s; /* the first members */
	const struct lb_walk *w = (const struct lb_walk *)walk;

	if (scene_matches(scene, w))
		return true;
	scene_tell(scene, w, why, size);
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
	lji_put8(img, img->g + lj_gc_state(&img->lj), SCENE_GCSTATE);
}

uint64_t sc_func(struct lj_scene *s, int firstline)
{
	return lji_function(&s->img, firstline);
}

uint64_t sc_begin_call(struct lj_scene *s)
{
	struct lji_stack deeper;
	uint64_t f, g;

	sc_begin(s);
	f = sc_func(s, 10);
	g = sc_func(s, 50);
	deeper = s->st;
	lji_call(&s->img, &deeper, s->main, 9, 20, g);
	lji_sync(&s->img, &deeper);
	lji_set_pc(&s->img, s->cframe, lji_bc(&s->img, g, 30));
	lji_ins(&s->img, s->main, 5, LJ_OP_CALLM + 1, 3);
	return f;
}

uint64_t sc_pc_of_call(struct lj_scene *s)
{
	return lji_bc(&s->img, s->main, 6);
}

uint64_t sc_begin_callback(struct lj_scene *s)
{
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_set_pc(&s->img, s->cframe, lji_bc(&s->img, s->main, 6));
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_ff(&s->img, FF_CALLBACK));
	lji_vm_calls(&s->img, SC_SITE);
	lji_c_code(&s->img, 14);
	lji_cframe(&s->img, s->st.L, 0, s->st.L, 0);
	lji_cont(&s->img, &s->st, f, 10, LJ_CONT_FFI_CALLBACK, 0);
	return f;
}

void sc_in_vm(struct lj_scene *s, uint64_t base, uint64_t pc)
{
	s->in.regs.ip = SC_IP;
	s->in.regs.sp = s->img.sp;
	s->in.regs.base = base;
	s->in.regs.pc = pc;
	s->in.regs.rb = 0x1234;
}

void sc_two_slots(struct lj_scene *s)
{
	s->absent = s->img.lj.gc32;
}

void sc_unlink(struct lj_scene *s, uint64_t garbage)
{
	if (s->img.lj.gc32) { /* then the slot is still a function's value, for one instruction */
		garbage = (uint32_t)LJ_TFUNC;
		s->in.regs.ip = SC_IP_LINK;
	}
	lji_put_link(&s->img, s->st.base, garbage);
}

void sc_return_over(struct lj_scene *s)
{
	lji_put64(&s->img, s->st.base - 8, ~0ULL);
	lji_put64(&s->img, s->st.base - LJI_OFF(&s->img, FRAME_BYTES), 0x4008000000000000);
}

static void in_library(struct lj_scene *s)
{
	lji_c_code(&s->img, 12);
	s->in.regs = (struct lb_regs){
		.ip = SC_HELPER, .sp = s->img.sp, .base = 7, .pc = 0x99, .rb = s->img.sp, .gl = 3};
}

void sc_in_helper(struct lj_scene *s, uint64_t pc)
{
	uint64_t cframe =
		lji_get64(&s->img, s->st.L + LJI_OFF(&s->img, L_CFRAME)) & LJ_CFRAME_RAWMASK;

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
	scene_want((struct scene *)s, kind, flags, ptr, pc);
}

void want_lua(struct lj_scene *s, uint64_t func, uint32_t pos, uint8_t flags)
{
	want(s, LB_FRAME_LUA, flags, lji_proto_of(&s->img, func), pos);
}

void want_c(struct lj_scene *s, uint64_t f, uint8_t flags)
{
	want(s, LB_FRAME_C, flags, f, LB_NO_PC);
}

void want_vm(struct lj_scene *s, uint64_t g)
{
	want(s, LB_FRAME_VM, 0, g, 0);
}

void want_ff(struct lj_scene *s, uint8_t ffid, uint8_t flags)
{
	want(s, LB_FRAME_FF, flags, ffid, ffid);
}

void want_main_at_call(struct lj_scene *s)
{
	want_lua(s, s->main, 5, s->nwant ? 0 : LB_FRAME_THREAD);
}
