// SPDX-License-Identifier: BSD-2-Clause
/* The report of a VM as text: the trees of traces, the starts without a trace, the reasons. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grid.h"
#include "lua/lj/proto_parts.h"
#include "report.h"

#define CHUNK_TEXT 40
#define DEPTH_MOST 20	  /* of a tree; deeper traces are shown at this depth */
#define FUNCTIONS_SHOWN 3 /* of a trace's lines */
#define EXITS_SHOWN 3

/* ---- places ---------------------------------------------------------------------------------- */

void traces_put_chunk(const struct lj_proto *pt, struct text *out)
{
	const char *name = pt->chunkname;
	size_t len = strcspn(name, "\n");

	if (pt->firstline < 0) {
		text_puts(out, "builtin:");
		text_put_utf8(out, name, len);
	} else if (*name == '@') {
		const char *base = strrchr(name, '/');

		name = base ? base + 1 : name + 1;
		text_put_utf8(out, name, strlen(name));
	} else if (*name == '=') {
		text_put_utf8(out, name + 1, len - 1);
	} else { /* source text */
		text_putc(out, '"');
		text_put_utf8(out, name, len > CHUNK_TEXT ? CHUNK_TEXT : len);
		text_puts(out, len > CHUNK_TEXT || name[len] ? "...\"" : "\"");
	}
}

void traces_put_place(const struct traces_place *at, struct text *out)
{
	if (!at->pt) {
		text_puts(out, "?");
		return;
	}
	traces_put_chunk(at->pt, out);
	if (at->line > 0)
		text_printf(out, ":%d", (int)at->line);
}

void traces_put_range(const struct traces_lines *lines, struct text *out)
{
	text_printf(out, lines->from == lines->to ? "%d" : "%d-%d", (int)lines->from,
		    (int)lines->to);
}

static void put_share(uint64_t n, uint64_t of, struct text *out)
{
	if (of)
		text_printf(out, "%.1f %%", 100.0 * (double)n / (double)of);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- traces ---------------------------------------------------------------------------------- */

enum trace_column { TRACE, START, LINK, LINES, BYTECODES, IR, SNAPS, MCODE, TIME, COLUMNS };

static const struct grid_column columns[COLUMNS] = {
	[TRACE] = {"TRACE", false, "-"}, [START] = {"START", false, "-"},
	[LINK] = {"LINK", false, "-"},	 [LINES] = {"LINES", false, "-"},
	[BYTECODES] = {"BC", true, "-"}, [IR] = {"IR", true, "-"},
	[SNAPS] = {"SNAPS", true, "-"},	 [MCODE] = {"MCODE", true, "-"},
	[TIME] = {"TIME", true, "-"},
};

void traces_put_link(const struct traces_trace *t, struct text *out)
{
	const char *name = traces_link_name(t->linktype);

	if (t->linktype == TRACES_LINK_INTERP)
		text_puts(out, "fallback to interpreter");
	else if (!t->link || t->link == t->no)
		text_puts(out, name);
	else if (t->linktype == TRACES_LINK_ROOT)
		text_printf(out, "-> %u", t->link);
	else
		text_printf(out, "-> %u %s", t->link, name);
}

static void put_lines(const struct traces_trace *t, struct text *out)
{
	for (size_t i = 0; i < t->nlines && i < FUNCTIONS_SHOWN; i++) {
		if (i)
			text_puts(out, ", ");
		if (t->lines[i].pt->chunklen != t->lines[0].pt->chunklen ||
		    strcmp(t->lines[i].pt->chunkname, t->lines[0].pt->chunkname)) {
			traces_put_chunk(t->lines[i].pt, out);
			text_putc(out, ':');
		}
		traces_put_range(&t->lines[i], out);
	}
	if (t->nlines > FUNCTIONS_SHOWN)
		text_printf(out, ", +%zu", t->nlines - FUNCTIONS_SHOWN);
}

/* The exits without a side trace that were taken most often. */
static void put_exits(const struct traces_trace *t, struct text *out)
{
	uint32_t shown[EXITS_SHOWN], n, i;

	for (n = 0; n < EXITS_SHOWN; n++) {
		uint32_t best = t->snapshots;

		for (i = 0; i < t->snapshots; i++) {
			uint8_t count = t->exits[i].count;
			bool used = !count || count == TRACES_EXIT_DONE;

			for (uint32_t k = 0; k < n; k++)
				used |= shown[k] == i;
			if (!used && (best == t->snapshots || count > t->exits[best].count))
				best = i;
		}
		if (best == t->snapshots)
			break;
		shown[n] = best;
		text_printf(out, "%s%s %u at ", n || !out->len ? "" : "; ", n ? "," : "exit", best);
		traces_put_place(&t->exits[best].at, out);
		text_printf(out, " taken %u time%s", t->exits[best].count,
			    plural(t->exits[best].count));
	}
}

static int add_trace(struct grid *grid, const struct traces_trace *t, unsigned int depth,
		     const struct traces_shares *shares)
{
	struct text *cell = grid_add(grid), *note = cell ? &cell[grid->ncolumns] : NULL;

	if (!cell)
		return -ENOMEM;
	text_printf(&cell[TRACE], "%*s%u", (int)(2 * depth), "", t->no);
	if (t->stitched)
		text_printf(&cell[TRACE], " (%u/stitch)", t->parent);
	else if (t->parent)
		text_printf(&cell[TRACE], " (%u/%u)", t->parent, t->exitno);
	if (t->gone)
		text_puts(&cell[TRACE], " flushed");
	traces_put_place(&t->start, &cell[START]);
	traces_put_link(t, &cell[LINK]);
	put_lines(t, &cell[LINES]);
	if (t->bytecodes)
		text_printf(&cell[BYTECODES], "%u", t->bytecodes);
	text_printf(&cell[IR], "%u", t->ir);
	text_printf(&cell[SNAPS], "%u", t->snapshots);
	text_printf(&cell[MCODE], "%u", t->mcode_size);
	if (shares)
		put_share(t->samples, shares->samples, &cell[TIME]);
	if (t->times > 1)
		text_printf(note, "compiled %u times", t->times);
	put_exits(t, note);
	return grid_err(grid);
}

/* Traces in the order of their trees: each below its parent. */
struct forest {
	const struct traces_vm *vm;
	bool *shown;
	struct grid *grid;
	const struct traces_shares *shares;
};

static bool is_child(const struct forest *f, size_t child, size_t parent)
{
	const struct traces_trace *c = &f->vm->traces[child], *p = &f->vm->traces[parent];

	return !f->shown[child] && c->parent == p->no && !c->gone && !p->gone;
}

/* Adds a trace and all below it: `path` has the indices of those above the current one. */
static int add_tree(struct forest *f, size_t root)
{
	size_t path[DEPTH_MOST + 1], depth = 0, i;
	int r = 0;

	path[0] = root;
	f->shown[root] = true;
	r = add_trace(f->grid, &f->vm->traces[root], 0, f->shares);
	while (!r) {
		for (i = 0; i < f->vm->ntraces && !is_child(f, i, path[depth]); i++)
			;
		if (i == f->vm->ntraces) {
			if (!depth--)
				break;
			continue;
		}
		f->shown[i] = true;
		if (depth < DEPTH_MOST)
			depth++;
		path[depth] = i;
		r = add_trace(f->grid, &f->vm->traces[i], (unsigned int)depth, f->shares);
	}
	return r;
}

static bool has_parent(const struct traces_vm *vm, const struct traces_trace *t)
{
	for (size_t i = 0; i < vm->ntraces && t->parent; i++)
		if (vm->traces[i].no == t->parent && !vm->traces[i].gone)
			return true;
	return false;
}

/* Roots first, then what hostile memory may have made a circle; those that are gone last. */
static int add_traces(struct forest *f)
{
	const struct traces_vm *vm = f->vm;
	int r = 0;

	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < vm->ntraces && !r; i++) {
			const struct traces_trace *t = &vm->traces[i];
			bool now = round == 0	? !t->gone && !has_parent(vm, t)
				   : round == 1 ? !t->gone
						: t->gone;

			if (now && !f->shown[i])
				r = add_tree(f, i);
		}
	return r;
}

static int print_traces(const struct traces_vm *vm, const struct traces_shares *shares, FILE *to)
{
	bool *shown __cleanup(cleanup_free) = calloc(vm->ntraces + 1, sizeof(*shown));
	__cleanup(grid_free) struct grid grid = {.columns = columns,
						 .ncolumns = shares ? COLUMNS : TIME};
	struct forest f = {vm, shown, &grid, shares};
	int r = shown ? add_traces(&f) : -ENOMEM;

	if (!r && grid.nrows)
		grid_print(&grid, 2, to);
	return r;
}

/* ---- starts ---------------------------------------------------------------------------------- */

enum start_column { PLACE, REASON, STATE, SHARE, START_COLUMNS };

static const struct grid_column start_columns[START_COLUMNS] = {
	[PLACE] = {"NOT COMPILED", false, "-"},
	[REASON] = {"REASON", false, "-"},
	[STATE] = {"STATE", false, "-"},
	[SHARE] = {"TIME", true, "-"},
};

void traces_put_start(const struct traces_start *s, struct text *out)
{
	traces_put_chunk(s->at.pt, out);
	text_putc(out, ':');
	if (s->lines.from > 0)
		traces_put_range(&s->lines, out);
	text_puts(out, s->kind == TRACES_LOOP ? " loop" : " function");
}

void traces_put_reason(const struct traces_vm *vm, const struct traces_start *s, struct text *out)
{
	char reason[128];

	traces_reason(vm, s, reason, sizeof(reason));
	text_puts(out, reason);
	if (!s->has_cause || !s->cause.pt)
		return;
	text_puts(out, " at ");
	traces_put_place(&s->cause, out);
}

void traces_put_state(const struct traces_start *s, struct text *out)
{
	if (s->state == TRACES_PENALISED)
		text_printf(out, "penalty %u", s->penalty);
	else
		text_puts(out, s->state == TRACES_JIT_OFF ? "jit.off()" : "blacklisted");
}

static int add_start(struct grid *grid, const struct traces_vm *vm, const struct traces_start *s,
		     const struct traces_shares *shares)
{
	struct text *cell = grid_add(grid);

	if (!cell)
		return -ENOMEM;
	traces_put_start(s, &cell[PLACE]);
	traces_put_reason(vm, s, &cell[REASON]);
	traces_put_state(s, &cell[STATE]);
	if (shares)
		put_share(s->samples, shares->samples, &cell[SHARE]);
	return grid_err(grid);
}

static int compare_starts(const void *a, const void *b)
{
	const struct traces_start *x = *(const struct traces_start *const *)a,
				  *y = *(const struct traces_start *const *)b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return x < y ? -1 : x > y;
}

/* Those that are without a trace now, most time first. *n of them; NULL: out of memory. */
static const struct traces_start **sorted_starts(const struct traces_vm *vm, size_t *n)
{
	const struct traces_start **starts = calloc(vm->nstarts + 1, sizeof(const void *));

	*n = 0;
	for (size_t i = 0; starts && i < vm->nstarts; i++)
		if (!vm->starts[i].gone)
			starts[(*n)++] = &vm->starts[i];
	if (starts)
		qsort(starts, *n, sizeof(const void *), compare_starts);
	return starts;
}

static int print_starts(const struct traces_vm *vm, const struct traces_start **starts, size_t n,
			const struct traces_shares *shares, FILE *to)
{
	__cleanup(grid_free) struct grid grid = {.columns = start_columns,
						 .ncolumns = shares ? START_COLUMNS : SHARE};
	int r = 0;

	for (size_t i = 0; i < n && !r; i++)
		r = add_start(&grid, vm, starts[i], shares);
	if (!r && n) {
		fputc('\n', to);
		grid_print(&grid, 2, to);
	}
	return r;
}

/* ---- reasons --------------------------------------------------------------------------------- */

struct cause {
	char reason[128];
	uint32_t loops, functions;
	uint64_t samples;
};

static int compare_causes(const void *a, const void *b)
{
	const struct cause *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return strcmp(x->reason, y->reason);
}

static size_t sum_causes(const struct traces_vm *vm, const struct traces_start **starts, size_t n,
			 struct cause *causes)
{
	size_t ncauses = 0;

	for (size_t i = 0; i < n; i++) {
		struct cause one = {};
		size_t k = 0;

		traces_reason(vm, starts[i], one.reason, sizeof(one.reason));
		while (k < ncauses && strcmp(causes[k].reason, one.reason))
			k++;
		if (k == ncauses)
			causes[ncauses++] = one;
		causes[k].loops += starts[i]->kind == TRACES_LOOP;
		causes[k].functions += starts[i]->kind == TRACES_FUNCTION;
		causes[k].samples += starts[i]->samples;
	}
	qsort(causes, ncauses, sizeof(*causes), compare_causes);
	return ncauses;
}

static void print_cause(const struct cause *c, const struct traces_shares *shares, FILE *to)
{
	fprintf(to, "  %s: ", c->reason);
	if (c->loops)
		fprintf(to, "in %u loop%s", c->loops, plural(c->loops));
	if (c->functions)
		fprintf(to, "%s%u function%s", c->loops ? " and " : "in ", c->functions,
			plural(c->functions));
	if (shares && shares->interpreted)
		fprintf(to, ", %.1f %% of interpreted time",
			100.0 * (double)c->samples / (double)shares->interpreted);
	fputc('\n', to);
}

static int print_causes(const struct traces_vm *vm, const struct traces_start **starts, size_t n,
			const struct traces_shares *shares, FILE *to)
{
	struct cause *causes __cleanup(cleanup_free) = calloc(n + 1, sizeof(*causes));
	size_t ncauses;

	if (!causes)
		return -ENOMEM;
	ncauses = sum_causes(vm, starts, n, causes);
	if (ncauses || (shares && shares->no_reason))
		fprintf(to, "\nWhy code is not compiled:\n");
	for (size_t i = 0; i < ncauses; i++)
		print_cause(&causes[i], shares, to);
	if (shares && shares->no_reason)
		fprintf(to,
			"  no abort is known: %.1f %% of interpreted time (not hot, or before its "
			"trace was made)\n",
			100.0 * (double)shares->no_reason / (double)shares->interpreted);
	return 0;
}

static void print_shares(const struct traces_shares *s, FILE *to)
{
	const struct {
		const char *name;
		uint64_t n;
	} states[] = {{"compiled", s->compiled},
		      {"interpreted", s->interpreted},
		      {"C code", s->c},
		      {"garbage collector", s->collector},
		      {"JIT compiler", s->compiler}};

	fprintf(to, "%llu sample%s:", (unsigned long long)s->samples, plural(s->samples));
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]) && s->samples; i++)
		fprintf(to, "%s %.1f %% %s", i ? "," : "",
			100.0 * (double)states[i].n / (double)s->samples, states[i].name);
	fputc('\n', to);
	if (s->no_trace)
		fprintf(to, "%.1f %% were in traces that were gone before they were read\n",
			100.0 * (double)s->no_trace / (double)s->samples);
}

static void print_head(const struct traces_vm *vm, FILE *to)
{
	size_t roots = 0, sides = 0, gone = 0;
	uint64_t mcode = 0;

	for (size_t i = 0; i < vm->ntraces; i++) {
		const struct traces_trace *t = &vm->traces[i];

		gone += t->gone;
		sides += !t->gone && t->root;
		roots += !t->gone && !t->root;
		mcode += t->gone ? 0 : t->mcode_size;
	}
	fprintf(to, "%zu trace%s (%zu root, %zu side), %.1f KiB of machine code", roots + sides,
		plural(roots + sides), roots, sides, (double)mcode / 1024);
	if (gone)
		fprintf(to, "; %zu flushed since", gone);
	fputc('\n', to);
	if (vm->unread)
		fprintf(to, "%u trace%s changed or could not be read\n", vm->unread,
			plural(vm->unread));
	if (vm->unread_starts)
		fprintf(to, "%u aborted start%s: the function could not be read\n",
			vm->unread_starts, plural(vm->unread_starts));
	if (!vm->has_penalties)
		fputs("the penalty cache was not found: reasons of aborts are not known\n", to);
	if (!vm->has_heap)
		fputs("not all functions were searched for blacklisted loops: the heap is too "
		      "large, "
		      "or changed meanwhile\n",
		      to);
}

int traces_print(const struct traces_vm *vm, const struct traces_shares *shares, FILE *to)
{
	size_t n;
	const struct traces_start **starts __cleanup(cleanup_free) = sorted_starts(vm, &n);
	int r = starts ? 0 : -ENOMEM;

	print_head(vm, to);
	if (shares)
		print_shares(shares, to);
	fputc('\n', to);
	if (!r)
		r = print_traces(vm, shares, to);
	if (!r)
		r = print_starts(vm, starts, n, shares, to);
	return r ? r : print_causes(vm, starts, n, shares, to);
}
