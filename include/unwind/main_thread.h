/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A VM's main thread and its global_State are in one block of memory, at a distance that its build has. */
#ifndef UNWIND_MAIN_THREAD_H
#define UNWIND_MAIN_THREAD_H

#include <unwind/abi.h>

struct lb_main_thread {
	__u64 global_ref; /* offset in a lua_State of the pointer to its global_State */
	/* from the main thread to its global_State, modulo 2^64: it may lie before it */
	__u64 least, most;
	__u64 mask; /* of the pointer in its word */
};

static inline struct lb_main_thread lb_main_thread_of(const struct lb_build *build)
{
	const struct puc_layout *puc = &build->puc.puc;
	const struct lj_layout *lj = &build->lj.lj;
	__u64 distance;

	if (lb_is_luajit(build->family))
		return (struct lb_main_thread){LJ_OFF(lj, L_GLREF), LJ_OFF(lj, L_SIZE_LEAST),
					       LJ_OFF(lj, L_SIZE_MOST),
					       lj_is_gc32(lj) ? ~0U : ~0ULL};
	distance = puc->flags & PUC_MAIN_EMBEDDED ? -(__u64)puc->g_mainthread : puc->L_size;
	return (struct lb_main_thread){puc->L_l_G, distance, distance, ~0ULL};
}

/* True if L may be the main thread of g by their addresses. */
static inline int lb_may_be_main_thread(const struct lb_main_thread *m, __u64 L, __u64 g)
{
	return g - L - m->least <= m->most - m->least;
}

#endif
