// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <unwind/puc/unwind.h>

#include "puc_scene.h"

static const void *const tables[] = {puc_scenes_frames,
				     puc_scenes_threads,
				     puc_scenes_top,
				     puc_scenes_own,
				     puc_scenes_moved,
				     puc_scenes_idle,
				     NULL};

const struct puc_scene_row *puc_scene_at(size_t i)
{
	return scene_row(tables, sizeof(struct puc_scene_row), i);
}

size_t puc_scene_count(void)
{
	size_t n = 0;

	while (puc_scene_at(n))
		n++;
	return n;
}

static void set_pc(struct puc_build *build)
{
	build->pc_reg = PUI_PC_REG;
	build->fetch_reg = PS_FETCH_REG;
	build->fetch[0] = (struct puc_text){PS_FETCH - PUI_VM, PS_FETCH_SIZE};
	build->fetch[PUC_FETCHES - 1] = (struct puc_text){PS_JUMP - PUI_VM, PS_JUMP_SIZE};
}

static struct puc_stretch stretch(uint64_t at, uint32_t size)
{
	return (struct puc_stretch){(int32_t)(at - PUI_VM), size};
}

void puc_scene_init(struct puc_scene *s, const struct puc_scene_row *row,
		    const struct puc_layout *puc)
{
	memset(s, 0, sizeof(*s));
	pui_init(&s->img, puc);
	pui_put(&s->img, s->img.g + puc->g_gcstate, 1, SCENE_GCSTATE);
	s->end = LB_STATUS_RESOLVED;
	s->state = 'I';
	s->in.build.puc = *puc;
	s->in.build.jmp_marked = 1;
	s->in.build.pc_reg = PUC_NO_REG;
	if (!(puc->flags & PUC_SAVEDPC_EXACT))
		set_pc(&s->in.build);
	s->in.vm_start = PUI_VM;
	s->in.vm_end = PUI_VM + PUI_VM_SIZE;
	s->in.text_lo = PUI_TEXT;
	s->in.text_hi = PUI_TEXT + PUI_TEXT_SIZE;
	s->in.gc_lo = PUI_GC;
	s->in.gc_hi = PUI_GC + PUI_GC_SIZE;
	s->in.build.gc_skip = PS_NEWOBJ - PUI_GC;
	s->in.build.gc_skip_size = PS_NEWOBJ_SIZE;
	s->in.stdlib.no_resume[puc_no_resume_index((int32_t)(PS_OWN - PUI_VM))] =
		(int32_t)(PS_OWN - PUI_VM);
	s->in.stdlib.resume = (int32_t)(PS_RESUME - PUI_VM);
	s->in.stdlib.wrap = (int32_t)(PS_WRAP - PUI_VM);
	s->in.stdlib.api_caller[0] = stretch(PS_OWN, PS_OWN_SIZE);
	s->in.stdlib.api_caller[PUC_API_CALLERS - 1] = stretch(PS_API, PS_API_SIZE);
	s->in.stack_hi = PUI_CSTACK_END;
	s->in.sample = 1;
	pui_call_site(&s->img, PS_SITE, PS_HELPER);
	pui_call_site(&s->img, PS_SITE_GC, PUI_GC + 0x200);
	pui_call_site(&s->img, PS_GC_SITE, PS_GC_CALLEE - 0x40);
	pui_call_site(&s->img, PS_API_CORE, PS_CORE);
	pui_call_site(&s->img, PS_GC_PCALL, PS_PCALL - 0x40);
	pui_call_site(&s->img, PS_PCALL, PUI_TEXT + 0x6400);
	pui_call_site(&s->img, PS_PRECALL_GC, PUI_GC + 0x200);
	pui_call_site(&s->img, PS_API_GC, PUI_GC + 0x200);
	pui_call_site(&s->img, PS_API_NEW, PS_NEWOBJ);
	row->make(s);
	if (!s->nhints) {
		ps_hint(s, s->st.L);
		ps_hint(s, 0);
		ps_hint(s, s->img.main_L);
		ps_hint(s, PUI_HEAP + 8); /* was freed, and is something else now */
	}
	puc_scene_hint(s, 0);
}

void puc_scene_free(struct puc_scene *s)
{
	pui_free(&s->img);
}

bool puc_scene_hint(struct puc_scene *s, uint32_t i)
{
	if (i >= s->nhints)
		return false;
	s->in.L = s->hints[i];
	memcpy(s->in.child, s->hints, sizeof(s->in.child));
	s->in.resumer = s->hints[(i + 1) % s->nhints];
	return true;
}

static bool same_L(const struct puc_scene *s, const struct lb_walk *w)
{
	if (s->lost || s->end != LB_STATUS_RESOLVED || !s->L)
		return true;
	return w->L == s->L &&
	       w->g == pui_get((struct puc_image *)&s->img, s->L + s->img.puc.L_l_G, 8);
}

bool puc_scene_check(const struct puc_scene *s, const struct puc_walk *walk, char *why, size_t size)
{
	const struct scene *scene = (const struct scene *)s; /* the first members */
	const struct lb_walk *w = (const struct lb_walk *)walk;
	size_t at;

	if (scene_matches(scene, w) && same_L(s, w))
		return true;
	at = scene_tell(scene, w, why, size);
	snprintf(why + at, size - at, "\n  L %#" PRIx64 ", want %#" PRIx64, (uint64_t)w->L, s->L);
	return false;
}

/* ---- for the scenes' makers ------------------------------------------------------------------ */

static void call_main(struct puc_scene *s)
{
	s->main = ps_func(s, 0);
	s->st = pui_stack(&s->img, s->img.main_L);
	pui_push(&s->img, &s->st, s->main);
	pui_execute(&s->img, &s->st);
	s->L = s->img.main_L;
}

void ps_begin(struct puc_scene *s)
{
	s->img.gprs.r[PUI_RBX] = s->img.main_L; /* the host's variable */
	pui_enter(&s->img, PUI_LIBC + 0x200, 4);
	pui_protect(&s->img, s->img.main_L);
	call_main(s);
}

void ps_begin_unprotected(struct puc_scene *s)
{
	s->img.gprs.r[PUI_RBX] = s->img.main_L;
	pui_enter(&s->img, PUI_LIBC + 0x200, 4);
	call_main(s);
}

struct pui_fn ps_func(struct puc_scene *s, int linedefined)
{
	return pui_lua(&s->img, pui_proto(&s->img, linedefined, PUI_CODE));
}

static void c_begins(struct puc_scene *s)
{
	pui_enter(&s->img, PS_SITE, 3); /* luaD_precall */
	s->img.gprs.r[PUI_RBX] = s->st.L;
	s->img.gprs.r[PUI_RBP] = s->st.ci;
	pui_enter(&s->img, PUI_TEXT + 0x6000, 6); /* the C function */
	s->img.gprs.r[PUI_R12] = s->st.L;
	s->img.gprs.r[PUI_RBX] = 3;
	s->img.gprs.r[PUI_PC_REG] = 0x11;
}

void ps_call_c(struct puc_scene *s, uint32_t pos, uint64_t f)
{
	pui_call(&s->img, &s->st, pos, pui_cclosure(&s->img, f));
	c_begins(s);
}

void ps_call_lua(struct puc_scene *s, struct pui_fn fn)
{
	pui_enter(&s->img, PUI_TEXT + 0x7000, 5); /* lua_call */
	s->img.gprs.r[PUI_RBP] = s->st.L;
	pui_push(&s->img, &s->st, fn);
	pui_execute(&s->img, &s->st);
}

static void vm_calls(struct puc_scene *s, uint32_t pos, uint64_t ret, uint32_t words)
{
	pui_savepc(&s->img, &s->st, pos);
	pui_pc(&s->img, s->st.fn, pos);
	pui_enter(&s->img, ret, words);
	s->img.gprs.r[PUI_RBX] = s->st.L;
	s->img.gprs.r[PUI_PC_REG] = 0x12;
}

void ps_helper(struct puc_scene *s, uint32_t pos, uint32_t words)
{
	vm_calls(s, pos, PS_SITE, words);
}

void ps_collect(struct puc_scene *s, uint32_t pos)
{
	vm_calls(s, pos, PS_SITE_GC, 3);
	pui_enter(&s->img, PS_GC_SITE, 4);
}

void ps_resume(struct puc_scene *s, uint64_t co)
{
	pui_enter(&s->img, PUI_LIBC + 0x300, 2); /* auxresume */
	s->img.gprs.r[PUI_RBP] = co;
	pui_enter(&s->img, PUI_TEXT + 0x7800, 7); /* lua_resume */
	pui_protect(&s->img, co);
	s->st = pui_stack(&s->img, co);
}

void ps_resume_lua(struct puc_scene *s, uint64_t co, struct pui_fn fn)
{
	ps_resume(s, co);
	pui_push(&s->img, &s->st, fn);
	pui_execute(&s->img, &s->st);
	s->L = co;
}

void ps_hook(struct puc_scene *s)
{
	if (s->img.puc.L_allowhook)
		pui_put(&s->img, s->st.L + s->img.puc.L_allowhook, 1, 0);
	else
		pui_callstatus(&s->img, &s->st, s->img.puc.cist_hooked);
}

void ps_sample(struct puc_scene *s, uint64_t ip)
{
	s->img.gprs.r[PUI_RSP] = s->img.sp;
	s->in.gprs = s->img.gprs;
	s->in.regs = (struct lb_regs){.ip = ip,
				      .sp = s->img.sp,
				      .base = s->img.gprs.r[2],
				      .pc = s->img.gprs.r[PUI_RBX],
				      .rb = s->img.gprs.r[PUI_RBP],
				      .gl = s->img.gprs.r[PUI_R14]};
}

void ps_in_vm(struct puc_scene *s, uint32_t pos)
{
	if (s->img.puc.flags & PUC_SAVEDPC_EXACT) {
		pui_savepc(&s->img, &s->st, pos);
		s->img.gprs.r[PUI_PC_REG] = 0x13;
	} else {
		pui_pc(&s->img, s->st.fn, pos);
	}
	ps_sample(s, PS_IP);
}

void ps_in_helper(struct puc_scene *s, uint32_t pos)
{
	ps_helper(s, pos, 4);
	ps_sample(s, PS_HELPER);
}

void ps_in_c(struct puc_scene *s)
{
	pui_c_code(&s->img, 10);
	ps_sample(s, PS_CFUNC + 4);
	s->state = 'C';
}

void ps_clobber(struct puc_scene *s)
{
	uint32_t i;

	for (i = 0; i < LB_GPRS; i++)
		s->img.gprs.r[i] = 0x1000 + i * 8;
}

void ps_hint(struct puc_scene *s, uint64_t L)
{
	s->hints[s->nhints++] = L;
}

void ps_only_hint(struct puc_scene *s, uint64_t L)
{
	s->nhints = 0;
	ps_hint(s, L);
}

static void want(struct puc_scene *s, uint8_t kind, uint8_t flags, uint64_t ptr, uint32_t pc)
{
	scene_want((struct scene *)s, kind, flags, ptr, pc);
}

void ps_want_lua(struct puc_scene *s, struct pui_fn fn, uint32_t pos, uint8_t flags)
{
	want(s, LB_FRAME_LUA, flags, pui_proto_of(&s->img, fn), pos);
}

void ps_want_vm(struct puc_scene *s, uint64_t g)
{
	want(s, LB_FRAME_VM, 0, g, 0);
}

void ps_want_c(struct puc_scene *s, uint64_t f, uint8_t flags)
{
	want(s, LB_FRAME_C, flags, f, LB_NO_PC);
}
