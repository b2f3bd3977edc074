// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <string.h>

#include "oracle_judge.h"
#include "lua/puc/proto.h"

static const char *const rule_names[RULES] = {"walk", "errorJmp", "nCcalls", "first"};

/* Who calls whom in tests/hosts/puc/oracle_calls.lua, by the lines they begin on. */
static const struct {
	uint32_t func, parents[3];
} call_tree[] = {
	{3, {6, 14, 0}},  {4, {6, 14, 0}},   {5, {6, 14, 0}}, {6, {30, 0, 0}},
	{14, {30, 0, 0}}, {23, {30, 23, 0}}, {30, {0, 0, 0}},
};

static struct puc_proto *proto_of(struct oracle_judge *j, const struct lb_frame *f)
{
	uint64_t addr = LB_FRAME_PTR(f);
	size_t i;

	if (LB_FRAME_KIND(f) != LB_FRAME_LUA)
		return NULL;
	for (i = 0; i < ORACLE_PROTOS && j->protos[i]; i++)
		if (puc_proto_addr(j->protos[i]) == addr)
			return j->protos[i];
	if (i == ORACLE_PROTOS)
		return NULL;
	if (puc_proto_read(j->mem, j->puc, addr, &j->protos[i]))
		j->protos[i] = NULL;
	return j->protos[i];
}

void oracle_forget(struct oracle_judge *j)
{
	size_t i;

	for (i = 0; i < ORACLE_PROTOS; i++)
		if (j->protos[i])
			puc_proto_free(&j->protos[i]);
}

static unsigned long ip_of(const struct oracle_judge *j, const struct oracle_sample *s)
{
	return (unsigned long)(s->ip - j->bias);
}

/* ---- which lua_State runs -------------------------------------------------------------------- */

/* Is there more to judge? */
static bool judge_walk(const struct oracle_judge *j, const char *workload,
		       const struct oracle_sample *s, struct oracle_result *r)
{
	int i;

	r->samples++;
	r->ends[s->end]++;
	if (!s->ran) {
		r->phantom += s->end != LB_STATUS_OUTSIDE;
		return false;
	}
	if (s->edge) {
		r->edges++;
		return false;
	}
	r->lua++;
	r->found += s->end == LB_STATUS_RESOLVED;
	for (i = 0; i < RULES; i++)
		r->right[i] += s->right >> i & 1;
	if (s->end == LB_STATUS_RESOLVED && s->right & 1 << RULE_WALK)
		return true;
	if (j->verbose)
		printf("  %s: end %u right %u ip %#lx state %c n %u\n", workload, s->end, s->right,
		       ip_of(j, s), s->state, s->n);
	return false;
}

static void judge_chain(const struct oracle_judge *j, const char *workload,
			const struct oracle_sample *s, struct oracle_result *r)
{
	r->chains++;
	r->chains_right += s->stacks == s->expected;
	if (j->verbose && s->stacks != s->expected)
		printf("  %s: %u stacks for %u ip %#lx state %c n %u\n", workload, s->stacks,
		       s->expected, ip_of(j, s), s->state, s->n);
	r->states[s->state == 'I' ? 0 : s->state == 'C' ? 1 : 2]++;
	r->states_right += (s->state == 'G') == s->gc;
	if (j->verbose && (s->state == 'G') != s->gc)
		printf("  %s: state %c, gc %d ip %#lx\n", workload, s->state, s->gc, ip_of(j, s));
}

/* ---- the line -------------------------------------------------------------------------------- */

static bool line_right(const struct oracle_sample *s, const struct puc_proto *p, uint32_t last_line)
{
	uint32_t pc = s->top[0].pc, truth = (uint32_t)s->line;
	int32_t line = puc_proto_line(p, pc);
	/* one of the line's first two instructions: GETUPVAL T, SETI or SETTABLE */
	bool storing =
		pc < 2 || puc_proto_line(p, pc - 1) != line || puc_proto_line(p, pc - 2) != line;

	if (line == (int32_t)truth)
		return true;
	if (truth == last_line) /* the loop goes round, or ends */
		return line == 2 || (storing && (line == 3 || line == (int32_t)last_line + 2));
	return storing && line == (int32_t)truth + 1;
}

static void judge_line(struct oracle_judge *j, const char *workload, const struct oracle_sample *s,
		       struct oracle_result *r)
{
	const struct puc_proto *p = proto_of(j, &s->top[0]);
	bool good;

	if (!s->line || !p || strcmp(puc_proto_chunkname(p, NULL), "=lines"))
		return;
	good = line_right(s, p, j->last_line);
	r->lines[s->in_vm]++;
	r->lines_right[s->in_vm] += good;
	if (j->verbose && !good)
		printf("  %s: line %d (pc %u) for %u ip %#lx\n", workload,
		       puc_proto_line(p, s->top[0].pc), s->top[0].pc, (unsigned)s->line,
		       ip_of(j, s));
}

/* ---- the function ---------------------------------------------------------------------------- */

static uint32_t func_of(struct oracle_judge *j, const struct oracle_sample *s, uint32_t i)
{
	const struct puc_proto *p = i < s->n && i < ORACLE_TOP ? proto_of(j, &s->top[i]) : NULL;

	return p ? (uint32_t)puc_proto_firstline(p) : 0;
}

static bool is_parent(uint32_t parent, uint32_t func)
{
	size_t i;

	for (i = 0; i < sizeof(call_tree) / sizeof(call_tree[0]); i++)
		if (call_tree[i].func == func)
			return call_tree[i].parents[0] == parent ||
			       call_tree[i].parents[1] == parent ||
			       call_tree[i].parents[2] == parent;
	return false;
}

/* Until a function stores its line, T[2] holds that of its caller, or of what it called last. */
static bool func_right(struct oracle_judge *j, const struct oracle_sample *s)
{
	uint32_t top = LB_FRAME_KIND(&s->top[0]) != LB_FRAME_LUA;
	uint32_t func = func_of(j, s, top), below = func_of(j, s, top + 1);
	uint32_t truth = (uint32_t)s->func;

	if (top && func_of(j, s, 1) == 0)
		return false;
	return func == truth || is_parent(func, truth) || (below == truth && !top);
}

static void judge_func(struct oracle_judge *j, const char *workload, const struct oracle_sample *s,
		       struct oracle_result *r)
{
	bool good;

	if (!s->func)
		return;
	good = func_right(j, s);
	r->funcs++;
	r->funcs_right += good;
	if (j->verbose && !good)
		printf("  %s: func %u %u %u for %u ip %#lx\n", workload, func_of(j, s, 0),
		       func_of(j, s, 1), func_of(j, s, 2), (unsigned)s->func, ip_of(j, s));
}

void oracle_judge(struct oracle_judge *j, const char *workload, const struct oracle_sample *s,
		  struct oracle_result *r)
{
	if (!judge_walk(j, workload, s, r))
		return;
	judge_chain(j, workload, s, r);
	judge_line(j, workload, s, r);
	judge_func(j, workload, s, r);
}

/* ---- the sum --------------------------------------------------------------------------------- */

void oracle_add(struct oracle_result *to, const struct oracle_result *from)
{
	const uint64_t *src = (const uint64_t *)from;
	uint64_t *dst = (uint64_t *)to;
	size_t i;

	for (i = 0; i < sizeof(*from) / sizeof(*src); i++)
		dst[i] += src[i];
}

void oracle_tell(const char *workload, const struct oracle_result *r)
{
	int i;

	printf("workload=%s samples=%lu edge=%lu lua=%lu found=%lu phantom=%lu", workload,
	       (unsigned long)r->samples, (unsigned long)r->edges, (unsigned long)r->lua,
	       (unsigned long)r->found, (unsigned long)r->phantom);
	for (i = 0; i < RULES; i++)
		printf(" %s=%lu", rule_names[i], (unsigned long)r->right[i]);
	printf(" chains=%lu chains_right=%lu vm_lines=%lu vm_lines_right=%lu lines=%lu "
	       "lines_right=%lu funcs=%lu funcs_right=%lu I=%lu C=%lu G=%lu states_right=%lu ends=",
	       (unsigned long)r->chains, (unsigned long)r->chains_right, (unsigned long)r->lines[1],
	       (unsigned long)r->lines_right[1], (unsigned long)r->lines[0],
	       (unsigned long)r->lines_right[0], (unsigned long)r->funcs,
	       (unsigned long)r->funcs_right, (unsigned long)r->states[0],
	       (unsigned long)r->states[1], (unsigned long)r->states[2],
	       (unsigned long)r->states_right);
	for (i = 0; i < LB_STATUS__MAX; i++)
		printf("%s%lu", i ? "," : "", (unsigned long)r->ends[i]);
	printf("\n");
	fflush(stdout);
}
