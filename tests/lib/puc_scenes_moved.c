// SPDX-License-Identifier: BSD-2-Clause
/*
 * luaD_reallocstack moves the stack of a coroutine that main has resumed: before it has corrected
 * any CallInfo, between two of them, and behind the last. And a call that writes the first CallInfo of a page.
 */
#include <string.h>

#include "puc_scene.h"

#define THREAD LB_FRAME_THREAD

enum { CALLS = 4 }; /* of the coroutine, and base_ci */

static void moves(struct puc_scene *s, uint32_t corrected, bool offsets)
{
	struct pui_fn f, g;
	uint64_t co;

	ps_begin(s);
	f = ps_func(s, 10);
	g = ps_func(s, 30);
	ps_call_c(s, 5, PS_CFUNC);
	co = pui_thread(&s->img);
	ps_resume_lua(s, co, f);
	ps_call_c(s, 7, PS_CFUNC2);
	ps_call_lua(s, g);
	ps_in_helper(s, 3);
	/* 5.1 corrects base_ci first: nothing shows where the others have gone */
	s->absent = offsets ? s->img.puc.version < 54 : s->img.puc.version < 52;
	if (s->absent)
		return;
	pui_move(&s->img, co, corrected, offsets);
	ps_want_lua(s, g, 3, THREAD);
	ps_want_c(s, PS_CFUNC2, 0);
	ps_want_lua(s, f, 7, 0);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

static void begins(struct puc_scene *s)
{
	moves(s, 0, false);
}

static void first_corrected(struct puc_scene *s)
{
	moves(s, 1, false);
}

static void half_corrected(struct puc_scene *s)
{
	moves(s, CALLS / 2, false);
}

static void all_corrected(struct puc_scene *s)
{
	moves(s, CALLS, false);
}

static void offsets(struct puc_scene *s)
{
	moves(s, 0, true);
}

static void offsets_first_corrected(struct puc_scene *s)
{
	moves(s, 1, true);
}

static void offsets_half_corrected(struct puc_scene *s)
{
	moves(s, CALLS / 2, true);
}

/* luaD_precall of 5.1 has set L->ci, and waits for the page in which it stores `func`. */
static void call_on_new_page(struct puc_scene *s)
{
	const struct puc_layout *l = &s->img.puc;
	uint64_t ci;

	s->absent = !(l->flags & PUC_CI_ARRAY);
	if (s->absent)
		return;
	ps_begin(s);
	ps_in_helper(s, 3);
	ci = s->st.ci + l->ci_size;
	pui_put(&s->img, s->st.L + l->L_ci, 8, ci);
	memset(pui_at(&s->img, ci, l->ci_size), 0, l->ci_size);
	ps_want_lua(s, s->main, 3, THREAD);
}

const struct puc_scene_row puc_scenes_moved[] = {
	{"moves_begins", begins},
	{"moves_first_corrected", first_corrected},
	{"moves_half_corrected", half_corrected},
	{"moves_all_corrected", all_corrected},
	{"moves_offsets", offsets},
	{"moves_offsets_first_corrected", offsets_first_corrected},
	{"moves_offsets_half_corrected", offsets_half_corrected},
	{"call_on_new_page", call_on_new_page},
	{NULL, NULL},
};
