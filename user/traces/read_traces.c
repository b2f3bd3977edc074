// SPDX-License-Identifier: BSD-2-Clause
/*
 * The traces of a VM: heads, snapshots, and, where user/jit can follow it, the bytecode that was
 * recorded. jit_State.trace has one address for each number. The head is read before and after the
 * rest: a trace that differs is another one, or is freed by now. Numbers are given again after a
 * flush, so that a trace is identified by where its parts are, their sizes, and its first
 * instruction.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <unwind/lj/fingerprint.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "detect/lj/ir.h"
#include "jit/jit.h"
#include "lua/lj/table.h"
#include "lua/foreign.h"
#include "lua/lj/proto.h"
#include "lua/lj/proto_parts.h"
#include "reader.h"

#define SNAPS_MOST 65535
#define MAP_MOST (1u << 20)
#define INS_MOST 65535
#define KEPT_MOST 10000	      /* traces of a VM that flushes without end */
#define EXITS_MOST (4u << 20) /* of all of them: hostile ones may share a table of snapshots */
#define COVERED_MOST (1u << 20)
#define TRIES 3

/* The head of a trace, of any build. */
struct trace_head {
	uint64_t addr, id;
	uint64_t ir, snap, snapmap, startpt, startpc, mcode;
	uint32_t nins, nk, nsnap, nsnapmap, szmcode;
	uint32_t no, link, root;
	uint8_t linktype;
	uint32_t startins; /* with 2.1's number */
	enum lj_snaps snaps;
};

static void parse_sizes(const struct lj_layout *lj, const uint8_t *b, struct trace_head *h)
{
	h->snaps = LJ_SNAPS_MCOFS;
	h->nsnap = lb_short(b, LJ_OFF(lj, TRACE_NSNAP));
	h->nsnapmap = foreign_half(b, LJ_OFF(lj, TRACE_NSNAPMAP));
	h->linktype = b[LJ_OFF(lj, TRACE_LINKTYPE)];
	if (lj->mcofs)
		return;
	h->snaps = LJ_SNAPS_2019;
	if (h->nsnapmap >> 16 == 0)
		return;
	h->snaps = LJ_SNAPS_2017;
	h->nsnap = lb_short(b, LJ_OFF(lj, TRACE_NSNAP_2017));
	h->nsnapmap >>= 16;
	h->linktype = b[LJ_OFF(lj, TRACE_LINKTYPE_2017)];
}

static bool parse_head(const struct lj_layout *lj, const uint8_t *b, struct trace_head *h)
{
	struct lj_trace_words words = lj_trace_words(lj, b);

	h->ir = foreign_word(b, LJ_OFF(lj, TRACE_IR));
	h->nins = foreign_half(b, LJ_OFF(lj, TRACE_NINS));
	h->nk = foreign_half(b, LJ_OFF(lj, TRACE_NK));
	h->snap = foreign_word(b, LJ_OFF(lj, TRACE_SNAP));
	h->snapmap = foreign_word(b, LJ_OFF(lj, TRACE_SNAPMAP));
	h->startpt = lj_ref_at(lj, b, LJ_OFF(lj, TRACE_STARTPT));
	h->startpc = lj_ref_at(lj, b, LJ_OFF(lj, TRACE_STARTPC));
	h->startins = lj_bc_of_21(lj, foreign_half(b, LJ_OFF(lj, TRACE_STARTINS)));
	h->szmcode = foreign_half(b, LJ_OFF(lj, TRACE_SZMCODE));
	h->mcode = foreign_word(b, LJ_OFF(lj, TRACE_MCODE));
	h->no = lb_short(b, LJ_OFF(lj, TRACE_TRACENO));
	h->link = lb_short(b, LJ_OFF(lj, TRACE_LINK));
	h->root = lb_short(b, LJ_OFF(lj, TRACE_ROOT));
	parse_sizes(lj, b, h);
	h->id = lj_fp_trace(&words) | h->startpc << 32;
	return b[LJ_OFF(lj, TRACE_GCT)] == LJ_GCT_TRACE && h->nk <= LJ_REF_BIAS &&
	       h->nins > LJ_REF_BIAS && h->nins - h->nk <= INS_MOST && h->nsnap &&
	       h->nsnap <= SNAPS_MOST && h->nsnapmap <= MAP_MOST && h->szmcode &&
	       h->linktype < TRACES_LINKS;
}

/* -ENOENT: no trace has this number, or it is being recorded; -EBADMSG: these bytes are none. */
static int read_head(const struct traces_reader *rd, uint32_t no, uint64_t addr,
		     struct trace_head *h)
{
	uint8_t bytes[LJ_TRACE_SIZE] __attribute__((aligned(8)));
	uint64_t cur = rd->g; /* jit_State.cur lies in the block of the VM's state */
	int r;

	if (!addr || (addr > cur && addr < cur + rd->lj->g2disp))
		return -ENOENT;
	if (!foreign_plausible(addr))
		return -EBADMSG;
	r = mem_read(rd->mem, bytes, LJ_OFF(rd->lj, TRACE_SIZE), addr);
	if (r)
		return r;
	h->addr = addr;
	return parse_head(rd->lj, bytes, h) && h->no == no ? 0 : -EBADMSG;
}

static const uint8_t snap_sizes[] = {
	[LJ_SNAPS_MCOFS] = LJ_SNAP_SIZE,
	[LJ_SNAPS_2019] = LJ_SNAP_SIZE,
	[LJ_SNAPS_2017] = LJ_SNAP_SIZE_2017,
};

struct snap {
	uint32_t mapofs;
	uint8_t nent, count; /* neighbours in all shapes */
};

static struct snap parse_snap(const struct trace_head *h, const uint8_t *p)
{
	uint32_t nent = h->snaps == LJ_SNAPS_MCOFS  ? LJ_SNAP_NENT
			: h->snaps == LJ_SNAPS_2019 ? LJ_SNAP_NENT - 2
						    : LJ_SNAP_NENT - 4;
	struct snap s = {foreign_half(p, LJ_SNAP_MAPOFS), p[nent], p[nent + 1]};

	if (h->snaps == LJ_SNAPS_2017)
		s.mapofs &= 0xffff;
	return s;
}

/* Returns the pc of a snapshot, which is behind its entries; 0: they are not all there. */
static uint64_t snap_pc(const struct lj_layout *lj, const struct trace_head *h,
			const struct snap *s, const uint8_t *map)
{
	uint64_t at = (uint64_t)s->mapofs + s->nent;

	if (at + (lj_is_gc32(lj) ? 1 : 2) > h->nsnapmap)
		return 0;
	return lj_is_gc32(lj) ? foreign_half(map, (unsigned int)(4 * at))
			      : foreign_word(map, (unsigned int)(4 * at)) >> 8;
}

/* The newest copies of counts that the exits of a trace have. */
static int read_counts(const struct traces_reader *rd, const struct trace_head *h, uint8_t **snaps)
{
	uint32_t size = snap_sizes[h->snaps];
	int r;

	*snaps = malloc((size_t)h->nsnap * size);
	if (!*snaps)
		return -ENOMEM;
	r = mem_read(rd->mem, *snaps, h->nsnap * size, h->snap);
	return r;
}

static int read_exits(struct traces_reader *rd, const struct trace_head *h, struct traces_trace *t)
{
	uint8_t *snaps __cleanup(cleanup_free) = NULL;
	uint8_t *map __cleanup(cleanup_free) = malloc(4ULL * h->nsnapmap + 8);
	int r;

	if (rd->nexits + h->nsnap > EXITS_MOST)
		return -ENOBUFS;
	t->exits = calloc(h->nsnap, sizeof(*t->exits));
	if (!t->exits || !map)
		return -ENOMEM;
	r = read_counts(rd, h, &snaps);
	if (!r)
		r = mem_read(rd->mem, map, 4 * h->nsnapmap, h->snapmap);
	for (uint32_t i = 0; i < h->nsnap && !r; i++) {
		struct snap s = parse_snap(h, snaps + (size_t)i * snap_sizes[h->snaps]);
		struct traces_exit *e = &t->exits[i];
		uint64_t pc = snap_pc(rd->lj, h, &s, map);

		if (!pc)
			return -EBADMSG;
		e->count = s.count;
		r = traces_place_of(rd, pc, h->startpt, &e->at);
		if (r != -ENOMEM) /* its function may be a built-in one */
			r = 0;
	}
	return r;
}

/* Instead of the lines that were recorded: those to which its exits lead. */
static int add_exit_lines(struct traces_trace *t)
{
	int r = 0;

	for (uint32_t i = 0; i < t->snapshots && !r; i++) {
		const struct traces_place *at = &t->exits[i].at;

		if (at->pt && at->line > 0)
			r = traces_add_lines(&t->lines, &t->nlines, at->pt, at->line, at->line);
	}
	return r;
}

static int compare_ins(const void *a, const void *b)
{
	const struct traces_ins *x = a, *y = b;

	if (x->pt != y->pt)
		return x->pt < y->pt ? -1 : 1;
	return x->bcpos < y->bcpos ? -1 : x->bcpos > y->bcpos;
}

/* Sorts them by function, each once: a loop's second copy and functions inlined twice have them again. */
static void sort_covered(struct traces_trace *t)
{
	size_t n = 0;

	if (t->ncovered)
		qsort(t->covered, t->ncovered, sizeof(*t->covered), compare_ins);
	for (size_t i = 0; i < t->ncovered; i++)
		if (!n || compare_ins(&t->covered[n - 1], &t->covered[i]))
			t->covered[n++] = t->covered[i];
	t->ncovered = n;
}

/* Lines and number of the bytecodes that were recorded, if they can be followed. */
static int add_recorded(struct traces_reader *rd, struct traces_trace *t)
{
	struct lj_trace *jt __cleanup(lj_trace_free) = NULL;
	int r = lj_trace_read(rd->mem, rd->lj, rd->g, t->no, rd->names, &jt);
	uint32_t i, n;

	if (r)
		return r == -ENOMEM ? r : 0;
	n = lj_trace_recorded(jt);
	t->covered = calloc(n + 1, sizeof(*t->covered));
	if (!t->covered)
		return -ENOMEM;
	for (i = 0; i < n && !r; i++) {
		const struct lj_proto *pt;
		struct lj_trace_frame f = lj_trace_recorded_at(jt, i);
		int32_t line;

		if (traces_function_at(rd, f.proto, &pt))
			continue;
		line = lj_proto_line(pt, f.pc);
		if (line > 0)
			r = traces_add_lines(&t->lines, &t->nlines, pt, line, line);
		t->covered[t->ncovered++] = (struct traces_ins){pt, f.pc};
	}
	t->bytecodes = n;
	sort_covered(t);
	return r;
}

/* IR_BASE has the numbers of the parent and its exit; in a stitched trace 0 and the parent's. */
static int read_parent(const struct traces_reader *rd, const struct trace_head *h,
		       struct traces_trace *t)
{
	struct lj_ins base;
	int r = mem_read(rd->mem, &base, sizeof(base), h->ir + sizeof(base) * LJ_REF_BIAS);

	if (r)
		return r;
	t->parent = base.op1;
	t->exitno = base.op2;
	t->stitched = !base.op1 && base.op2;
	if (t->stitched) {
		t->parent = base.op2;
		t->exitno = 0;
	}
	return 0;
}

static void drop_covered(struct traces_trace *t)
{
	free(t->covered);
	t->covered = NULL;
	t->ncovered = 0;
}

static void trace_free(struct traces_trace *t)
{
	drop_covered(t);
	free(t->lines);
	free(t->exits);
	t->lines = NULL;
	t->exits = NULL;
}

/* A trace that is kept counts for the bounds; beyond that of instructions it has no list of them. */
static void account(struct traces_vm *vm, struct traces_trace *t)
{
	struct traces_reader *rd = vm->reader;

	rd->nexits += t->snapshots;
	if (rd->ncovered + t->ncovered > COVERED_MOST)
		drop_covered(t);
	rd->ncovered += t->ncovered;
}

static void forget(struct traces_vm *vm, struct traces_trace *t)
{
	vm->reader->nexits -= t->snapshots;
	trace_free(t);
}

/* It is not shown in listings any more. */
static void set_gone(struct traces_vm *vm, struct traces_trace *t)
{
	t->gone = true;
	vm->reader->ncovered -= t->ncovered;
	drop_covered(t);
}

static int read_rest(struct traces_reader *rd, const struct trace_head *h, struct traces_trace *t)
{
	const struct lj_proto *pt;
	int r;

	*t = (struct traces_trace){
		.no = h->no,
		.root = h->root,
		.link = h->link,
		.linktype = h->linktype,
		.ir = h->nins - LJ_REF_BIAS - 1,
		.constants = LJ_REF_BIAS - h->nk,
		.snapshots = h->nsnap,
		.mcode_size = h->szmcode,
		.mcode = h->mcode,
		.startpc = h->startpc,
		.startins = h->startins,
		.id = h->id,
		.times = 1,
	};
	r = traces_function_at(rd, h->startpt, &pt);
	if (!r)
		r = traces_place_of(rd, h->startpc, h->startpt, &t->start);
	if (!r && t->start.line > 0)
		r = traces_add_lines(&t->lines, &t->nlines, t->start.pt, t->start.line,
				     t->start.line);
	if (!r)
		r = read_parent(rd, h, t);
	if (!r)
		r = read_exits(rd, h, t);
	if (!r && rd->lj->ir)
		r = add_recorded(rd, t);
	if (!r && !t->bytecodes)
		r = add_exit_lines(t);
	return r;
}

/* Reads a new trace. -EAGAIN: it was another one afterwards. */
static int read_new(struct traces_reader *rd, const struct trace_head *h, struct traces_trace *t)
{
	struct trace_head again;
	int r = read_rest(rd, h, t);

	if (!r && (read_head(rd, h->no, h->addr, &again) || again.id != h->id))
		r = -EAGAIN;
	if (r)
		trace_free(t);
	return r;
}

/* Reads a known trace again: its link may be set later, and exits are taken. */
static int read_again(const struct traces_reader *rd, const struct trace_head *h,
		      struct traces_trace *t)
{
	uint8_t *snaps __cleanup(cleanup_free) = NULL;
	int r = read_counts(rd, h, &snaps);

	t->link = h->link;
	t->linktype = h->linktype;
	for (uint32_t i = 0; i < h->nsnap && !r; i++)
		t->exits[i].count = parse_snap(h, snaps + (size_t)i * snap_sizes[h->snaps]).count;
	return r == -ENOMEM ? r : 0;
}

static struct traces_trace *find(struct traces_vm *vm, uint32_t no)
{
	uint32_t i = vm->reader->live[no];

	return i ? &vm->traces[i - 1] : NULL;
}

/* The same code, compiled anew after a flush. */
static bool is_same(const struct traces_trace *a, const struct traces_trace *b)
{
	return a->no == b->no && a->startpc == b->startpc && a->start.pt == b->start.pt &&
	       a->parent == b->parent && a->exitno == b->exitno && a->linktype == b->linktype &&
	       a->ir == b->ir && a->constants == b->constants && a->snapshots == b->snapshots &&
	       a->mcode_size == b->mcode_size;
}

/* Puts a trace in the place of one that is gone. */
static bool replace_gone(struct traces_vm *vm, const struct traces_trace *t)
{
	for (size_t i = 0; i < vm->ntraces; i++) {
		struct traces_trace *gone = &vm->traces[i];
		uint32_t times = gone->times;

		if (!gone->gone || !is_same(gone, t))
			continue;
		forget(vm, gone);
		*gone = *t;
		account(vm, gone);
		gone->times = times + 1;
		vm->reader->live[t->no] = (uint32_t)i + 1;
		return true;
	}
	return false;
}

/* Takes what t owns. */
static int add_trace(struct traces_vm *vm, const struct traces_trace *t)
{
	if (replace_gone(vm, t))
		return 0;
	if (vm->ntraces == KEPT_MOST)
		return -ENOBUFS;
	if (array_grow(&vm->traces, vm->ntraces, sizeof(*t)))
		return -ENOMEM;
	vm->traces[vm->ntraces++] = *t;
	account(vm, &vm->traces[vm->ntraces - 1]);
	vm->reader->live[t->no] = (uint32_t)vm->ntraces;
	return 0;
}

static int address_of(const struct traces_reader *rd, uint32_t no, uint64_t *addr)
{
	uint64_t traces;
	int r = mem_read(rd->mem, &traces, sizeof(traces), rd->g + rd->lj->g2trace);

	return r ? r
		 : lj_reference(rd->lj, rd->mem, traces + (uint64_t)lj_ref_size(rd->lj) * no, addr);
}

/* Reads the trace of a number, whose address is given. */
static int read_one(struct traces_vm *vm, uint32_t no, uint64_t addr)
{
	struct traces_reader *rd = vm->reader;
	struct traces_trace *known = find(vm, no), t;
	struct trace_head h = {};
	int r = -EAGAIN;

	for (int i = 0; i < TRIES && (r == -EAGAIN || r == -EBADMSG); i++) {
		if (i && address_of(rd, no, &addr))
			return 0;
		r = read_head(rd, no, addr, &h);
		if (!r && known && known->id == h.id && known->snapshots == h.nsnap)
			return read_again(rd, &h, known);
		if (!r)
			r = read_new(rd, &h, &t);
	}
	if (known)
		set_gone(vm, known);
	rd->live[no] = 0;
	if (!r) {
		r = add_trace(vm, &t);
		if (r)
			trace_free(&t);
	}
	vm->unread += r && r != -ENOENT;
	return r == -ENOMEM ? r : 0;
}

static int read_table(const struct traces_reader *rd, uint32_t *n, uint8_t **table)
{
	uint64_t at = rd->g + rd->lj->g2trace, traces;
	int r = mem_read(rd->mem, &traces, sizeof(traces), at);

	if (!r)
		r = mem_read(rd->mem, n, sizeof(*n), at + LJ_J_SIZETRACE);
	if (r)
		return r;
	if (*n > TRACES_NUMBERS)
		return -EBADMSG;
	*table = calloc(*n + 1, 8);
	if (!*table)
		return -ENOMEM;
	return *n ? mem_read(rd->mem, *table, lj_ref_size(rd->lj) * *n, traces) : 0;
}

int traces_read_traces(struct traces_vm *vm)
{
	const struct traces_reader *rd = vm->reader;
	uint8_t *table __cleanup(cleanup_free) = NULL;
	uint32_t size = lj_ref_size(rd->lj), n = 0, no;
	int r = read_table(rd, &n, &table);

	vm->unread = 0;
	for (no = 1; no < n && !r; no++) {
		uint64_t addr = 0;

		memcpy(&addr, table + (size_t)size * no, size);
		r = read_one(vm, no, addr);
	}
	return r;
}

void traces_traces_free(struct traces_vm *vm)
{
	for (size_t i = 0; i < vm->ntraces; i++)
		trace_free(&vm->traces[i]);
	free(vm->traces);
}

const char *traces_link_name(enum traces_link link)
{
	static const char *const names[TRACES_LINKS] = {
		"none",		  "root",	 "loop",   "tail-recursion", "up-recursion",
		"down-recursion", "interpreter", "return", "stitch",
	};

	return names[link];
}
