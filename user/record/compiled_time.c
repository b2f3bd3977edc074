// SPDX-License-Identifier: BSD-2-Clause
#include "compiled_time.h"

void compiled_time_init(struct compiled_time *t, pid_t pid)
{
	*t = (struct compiled_time){};
	mem_remote_init(&t->remote, pid);
}

int compiled_time_meet(struct compiled_time *t, const struct vm_build *build, uint64_t g)
{
	uint32_t i;

	if (!build || !g || !lb_is_luajit(build->build.family) || t->n == COMPILED_TIME_VMS)
		return 0;
	for (i = 0; i < t->n; i++)
		if (t->vm[i].g == g)
			return 0;
	t->vm[t->n].g = g;
	t->vm[t->n++].lj = &build->build.lj.lj;
	return 0;
}

/* vmstate is the number of a trace. */
static bool is_compiled(const struct compiled_time *t, uint32_t i)
{
	int32_t vmstate = -1;

	return !mem_read(&t->remote.mem, &vmstate, sizeof(vmstate),
			 t->vm[i].g + t->vm[i].lj->vmstate) &&
	       vmstate > 0;
}

/*
 * While the compiler is on, the handler of FUNCF counts calls; off, it is that of IFUNCF, which is next to it in
 * the dispatch table (lj_dispatch.c).
 */
static bool is_on(struct compiled_time *t, uint32_t i)
{
	const struct lj_layout *lj = t->vm[i].lj;
	uint64_t handler[2] = {0, 0};

	if (mem_read(&t->remote.mem, handler, sizeof(handler),
		     t->vm[i].g + lj->g2disp + 8ULL * lj->bc_funcf))
		return false;
	t->looked = true;
	return handler[0] != handler[1];
}

void compiled_time_look(struct compiled_time *t, uint64_t cpu_ns)
{
	uint64_t since = t->last_cpu_ns ? cpu_ns - t->last_cpu_ns : 0;
	bool compiled = false;
	uint32_t i;

	for (i = 0; i < t->n; i++) {
		compiled |= is_compiled(t, i);
		t->on |= is_on(t, i) || compiled;
	}
	t->cpu_ns += since;
	t->compiled_ns += compiled ? since : 0;
	t->last_cpu_ns = cpu_ns;
}

double compiled_time_share(const struct compiled_time *t)
{
	return t->cpu_ns ? (double)t->compiled_ns / (double)t->cpu_ns : 0;
}
