// SPDX-License-Identifier: BSD-2-Clause
/* Copies a trace and the prototypes that it runs from the target (layer 0). Checks all sizes and
 * references: the bytes may be another object's by now. Bounded by LuaJIT's own limits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <unwind/lj/fingerprint.h>

#include "base/cleanup.h"
#include "lua/foreign.h"
#include "lua/lj/proto.h"
#include "lua/lj/proto_parts.h"
#include "lua/lj/table.h"
#include "guards.h"
#include "read.h"
#include "lua/lj/bc.h"

#define INS_MAX 10000 /* LuaJIT's own limits: maxrecord, maxirconst, maxsnap */
#define SNAPS_MAX 4000
#define MAP_MAX (1 << 20)
#define MCODE_MAX 65535
#define CODES_MAX 64
#define PARENTS_MAX 16
#define BC_MAX (1 << 17)

static int read_head(const struct lb_mem *mem, const struct lj_layout *lj, uint64_t g,
		     uint32_t traceno, uint8_t head[LJ_TRACE_READ])
{
	uint64_t traces, trace;
	int r;

	r = mem_read(mem, &traces, sizeof(traces), g + lj->g2trace);
	if (!r)
		r = lj_reference(lj, mem, traces + (uint64_t)lj_ref_size(lj) * traceno, &trace);
	if (!r && !foreign_plausible(trace))
		r = -EBADMSG;
	if (!r)
		r = mem_read(mem, head, LJ_OFF(lj, TRACE_READ), trace);
	if (!r && (lb_byte(head, LJ_OFF(lj, TRACE_GCT)) != LJ_GCT_TRACE ||
		   lb_short(head, LJ_OFF(lj, TRACE_TRACENO)) != traceno))
		r = -EBADMSG;
	return r;
}

/* Reads n elements of size bytes at addr into new memory. */
static int read_array(const struct lb_mem *mem, uint64_t addr, size_t n, size_t size, void *out)
{
	void *p = calloc(n ? n : 1, size);
	int r = p ? 0 : -ENOMEM;

	if (!r && n)
		r = mem_read(mem, p, (uint32_t)(n * size), addr);
	if (r) {
		free(p);
		return r;
	}
	memcpy(out, &p, sizeof(p));
	return 0;
}

struct trace_reader {
	const struct lb_mem *mem;
	const struct lj_layout *lj;
	uint64_t g;
	struct lj_trace *t;
	const struct lj_trace_wanted *wanted;
};

/* A root trace replaces the instruction at which it starts (JFORL and others) by its number.
 * Restores the instruction. */
static void put_back(const struct trace_reader *rd, uint32_t *ins)
{
	uint8_t head[LJ_TRACE_READ];
	uint8_t op = lj_bc_op(*ins);

	if ((op == LJ_BC_JFORL || op == LJ_BC_JITERL || op == LJ_BC_JLOOP) &&
	    !read_head(rd->mem, rd->lj, rd->g, lj_bc_d(*ins), head))
		*ins = lj_bc_of_21(rd->lj, lb_half(head, LJ_OFF(rd->lj, TRACE_STARTINS)));
}

/* Numbers are above K, within the prototype's allocation. */
static int copy_code(struct lj_code *code, const struct lj_proto *p)
{
	uint32_t nkn = lb_half(p->bytes, LJ_OFF(&p->lj, PROTO_SIZEKN)), i;
	uint64_t kn = lj_ref_at(&p->lj, p->bytes, LJ_OFF(&p->lj, PROTO_K)) - p->addr;

	if (p->sizebc > BC_MAX || p->nkgc > BC_MAX || kn > p->size || nkn > (p->size - kn) / 8)
		return -EBADMSG;
	code->bc = malloc(4ULL * p->sizebc);
	code->kgc = calloc(p->nkgc + 1, sizeof(*code->kgc));
	code->kn = calloc(nkn + 1, sizeof(*code->kn));
	if (!code->bc || !code->kgc || !code->kn)
		return -ENOMEM;
	code->sizebc = p->sizebc;
	code->nkgc = p->nkgc;
	code->nkn = nkn;
	memcpy(code->bc, p->bc.p, 4ULL * p->sizebc);
	memcpy(code->kn, p->bytes + kn, 8ULL * nkn);
	for (i = 0; i < p->nkgc; i++)
		code->kgc[i] = p->kgc[i].ref;
	return 0;
}

static int add_code(const struct trace_reader *rd, uint64_t proto)
{
	struct lj_trace *t = rd->t;
	struct lj_proto *p __cleanup(lj_proto_free) = NULL;
	struct lj_code *code;
	uint32_t i;
	int r;

	for (i = 0; i < t->ncodes; i++)
		if (t->codes[i].proto == proto)
			return 0;
	if (t->ncodes == CODES_MAX || !foreign_plausible(proto))
		return 0;
	r = lj_proto_read(rd->mem, rd->lj, proto, &p);
	if (!r && !p->complete)
		r = -EFAULT;
	if (r)
		return r;
	code = &t->codes[t->ncodes++];
	code->proto = proto;
	code->fp = lj_proto_fingerprint(p);
	if (rd->wanted->saw)
		rd->wanted->saw(rd->wanted->arg, proto, code->fp);
	code->numparams = p->numparams;
	code->vararg = p->flags & LJ_PROTO_VARARG;
	r = copy_code(code, p);
	if (r)
		return r;
	for (i = 0; i < code->sizebc; i++) {
		code->bc[i] = lj_bc_of_21(rd->lj, code->bc[i]);
		put_back(rd, &code->bc[i]);
	}
	return 0;
}

/* Where the IR holds a constant's value: in its slot, in the next slot, or behind a pointer in its slot. */
enum const_form { CONST_NONE, CONST_HERE, CONST_NEXT, CONST_POINTED_TO };

/* In GC64 all values but integers are in the next slot. */
static enum const_form const_form_of(const struct lj_layout *lj, uint8_t o)
{
	switch (o) {
	case LJ_IR_KNUM:
	case LJ_IR_KINT64:
		return lj->v20 ? CONST_POINTED_TO : CONST_NEXT;
	case LJ_IR_KGC:
	case LJ_IR_KPTR:
	case LJ_IR_KKPTR:
		return lj_is_gc32(lj) ? CONST_HERE : CONST_NEXT;
	default:
		return CONST_NONE;
	}
}

/* Copies the values of n constants. Replaces IR slots that hold a value by NOPs. Returns 0, or the error of mem_read(). */
static int take_values(const struct trace_reader *rd, struct lj_ins *ir, uint32_t n,
		       uint64_t *values)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < n && !r; i++) {
		uint64_t word = ir[i].op1 | (uint64_t)ir[i].op2 << 16;

		ir[i].o = lj_ir_of(rd->lj->ir, ir[i].o);
		switch (const_form_of(rd->lj, ir[i].o)) {
		case CONST_HERE:
			values[i] = word;
			break;
		case CONST_NEXT:
			if (i + 1 == n)
				break;
			memcpy(&values[i], &ir[i + 1], sizeof(*values));
			ir[++i] = (struct lj_ins){.o = LJ_IR_NOP};
			break;
		case CONST_POINTED_TO:
			r = mem_read(rd->mem, &values[i], sizeof(*values), word);
			break;
		default:
			break;
		}
	}
	return r;
}

/* Adds the prototypes of n constants, functions among them. */
static int add_codes(const struct trace_reader *rd, const struct lj_ins *ir, const uint64_t *values,
		     uint32_t n)
{
	const struct lj_layout *lj = rd->lj;
	uint32_t i;
	int r = 0;

	for (i = 0; i < n && !r; i++) {
		uint8_t func[LJ_FUNC_READ], type = ir[i].t & LJ_IRT_TYPE;

		if (ir[i].o != LJ_IR_KGC)
			continue;
		if (type == LJ_IRT_FUNC && foreign_plausible(values[i]) &&
		    !mem_read(rd->mem, func, LJ_OFF(lj, FUNC_READ), values[i]) &&
		    !lb_byte(func, LJ_OFF(lj, FUNC_FFID)))
			r = add_code(rd, lj_ref_at(lj, func, LJ_OFF(lj, FUNC_PC)) -
						 LJ_OFF(lj, PROTO_SIZE));
		else if (type == LJ_IRT_PROTO)
			r = add_code(rd, values[i]);
	}
	return r;
}

/* Adds those of the parent traces, too: their guards are not repeated here. */
static int add_parents(const struct trace_reader *rd)
{
	const struct lj_trace *t = rd->t;
	uint32_t parent = lj_ins_at(t, LJ_REF_BIAS)->op1, i, nk;
	const struct lj_layout *lj = rd->lj;
	uint8_t head[LJ_TRACE_READ];
	int r = 0;

	for (i = 0; i < PARENTS_MAX && parent && !r; i++) {
		struct lj_ins *ir __cleanup(cleanup_free) = NULL;
		uint64_t *values __cleanup(cleanup_free) = NULL;

		if (read_head(rd->mem, lj, rd->g, parent, head))
			return 0;
		r = add_code(rd, lj_ref_at(lj, head, LJ_OFF(lj, TRACE_STARTPT)));
		nk = lb_half(head, LJ_OFF(lj, TRACE_NK));
		if (r || nk > LJ_REF_BIAS || LJ_REF_BIAS - nk > INS_MAX)
			return r;
		r = read_array(rd->mem, lb_word(head, LJ_OFF(lj, TRACE_IR)) + 8ULL * nk,
			       LJ_REF_BIAS + 1 - nk, sizeof(*ir), &ir);
		values = calloc(LJ_REF_BIAS + 1 - nk, sizeof(*values));
		if (!r && !values)
			r = -ENOMEM;
		if (r)
			return r;
		r = take_values(rd, ir, LJ_REF_BIAS - nk, values);
		if (!r)
			r = add_codes(rd, ir, values, LJ_REF_BIAS - nk);
		parent = ir[LJ_REF_BIAS - nk].op1;
	}
	return r;
}

/* How a build stores snapshots (SnapShot): enum lj_snaps. */
static const struct snap_shape {
	uint8_t size, ref, nent;
	bool mcofs, mapofs_is_short;
} snap_shapes[] = {
	[LJ_SNAPS_MCOFS] = {LJ_SNAP_SIZE, LJ_SNAP_REF, LJ_SNAP_NENT, .mcofs = true},
	[LJ_SNAPS_2019] = {LJ_SNAP_SIZE, LJ_SNAP_REF, LJ_SNAP_NENT - 2},
	[LJ_SNAPS_2017] = {LJ_SNAP_SIZE_2017, LJ_SNAP_REF - 2, LJ_SNAP_NENT - 4,
			   .mapofs_is_short = true},
};

/* In 2019 nsnapmap is a u32, whose high half is 0; before, nsnap and nsnapmap are u16 there. */
static enum lj_snaps snaps_of(const struct lj_layout *lj, const uint8_t *head, uint32_t *nsnap,
			      uint32_t *nmap)
{
	*nsnap = lb_short(head, LJ_OFF(lj, TRACE_NSNAP));
	*nmap = lb_half(head, LJ_OFF(lj, TRACE_NSNAPMAP));
	if (lj->mcofs)
		return LJ_SNAPS_MCOFS;
	if (!(*nmap >> 16))
		return LJ_SNAPS_2019;
	*nsnap = lb_short(head, LJ_OFF(lj, TRACE_NSNAP_2017));
	*nmap >>= 16;
	return LJ_SNAPS_2017;
}

/*
 * Copies the pc, the topmost frame's slot and the links of a snapshot, which follow its entries:
 *
 *	GC64	one word with pc and slot; the links are constants
 *	GC32	the pc, then the links, the topmost frame's first; the slot is that of the last frame entry
 *
 * Returns 0; -EBADMSG: they extend beyond the map's end.
 */
static int take_pc(const struct lj_trace *t, struct lj_tsnap *s, const uint32_t *map_end)
{
	const uint32_t *behind = s->map + s->nent;
	uint32_t i;
	uint64_t pc;

	if (!lj_is_gc32(&t->lj)) {
		if (map_end - behind < 2)
			return -EBADMSG;
		pc = (uint64_t)behind[0] | (uint64_t)behind[1] << 32;
		s->slot = (int32_t)(pc & 0xff);
		s->pc = pc >> 8;
		return 0;
	}
	for (i = 0; i < s->nent; i++) {
		if (s->map[i] & LJ_SNAP_FRAME)
			s->slot = (int32_t)(s->map[i] >> 24);
		s->nlinks += s->map[i] & (LJ_SNAP_FRAME | LJ_SNAP_CONT) && s->map[i] >> 24;
	}
	if (map_end - behind < 1 + s->nlinks)
		return -EBADMSG;
	s->pc = behind[0];
	s->links = behind + 1;
	return 0;
}

static int read_snaps(const struct trace_reader *rd, const uint8_t *head)
{
	uint8_t *snaps __cleanup(cleanup_free) = NULL;
	struct lj_trace *t = rd->t;
	const struct snap_shape *shape;
	uint32_t nmap, i;
	int r;

	shape = &snap_shapes[snaps_of(rd->lj, head, &t->nsnap, &nmap)];
	if (!t->nsnap || t->nsnap > SNAPS_MAX || nmap > MAP_MAX)
		return -EBADMSG;
	r = read_array(rd->mem, lb_word(head, LJ_OFF(rd->lj, TRACE_SNAP)), t->nsnap, shape->size,
		       &snaps);
	if (!r)
		r = read_array(rd->mem, lb_word(head, LJ_OFF(rd->lj, TRACE_SNAPMAP)), nmap, 4,
			       &t->map);
	if (r)
		return r;
	t->snap = calloc(t->nsnap, sizeof(*t->snap));
	if (!t->snap)
		return -ENOMEM;
	for (i = 0; i < t->nsnap; i++) {
		const uint8_t *p = snaps + (size_t)shape->size * i;
		struct lj_tsnap *s = &t->snap[i];
		uint32_t ofs = shape->mapofs_is_short ? lb_short(p, LJ_SNAP_MAPOFS)
						      : lb_half(p, LJ_SNAP_MAPOFS);

		s->nent = lb_byte(p, shape->nent);
		s->ref = lb_short(p, shape->ref);
		s->mcofs = shape->mcofs ? lb_short(p, LJ_SNAP_MCOFS) : 0;
		s->step = s->frame = -1;
		if ((uint64_t)ofs + s->nent > nmap || s->ref < LJ_REF_BIAS || s->ref > t->nins ||
		    (i && s->ref < s[-1].ref) || (i && s->mcofs < s[-1].mcofs) ||
		    s->mcofs > t->szmcode)
			return -EBADMSG;
		s->map = t->map + ofs;
		r = take_pc(t, s, t->map + nmap);
		if (r)
			return r;
	}
	t->by_guards = !shape->mcofs;
	return t->by_guards
		       ? lj_trace_guards(t, rd->mem, lb_word(head, LJ_OFF(rd->lj, TRACE_MCODE)))
		       : 0;
}

/* As lj_loop_exit() in unwind/lj/snap.h. Where there is no jump, the operand is less than 0x4000. */
static uint64_t loop_exit_of(const struct lj_trace *t, const uint8_t *head)
{
	int32_t jump = (int32_t)(lb_half(head, LJ_OFF(&t->lj, TRACE_STARTINS)) >> 16) - 0x8000;

	if (jump < -0x4000 || lb_short(head, LJ_OFF(&t->lj, TRACE_ROOT)))
		return 0;
	return t->startpc + 4 + (jump > 0 ? 4ULL * (uint32_t)jump : 0);
}

/* True if operands precede their uses: all that follows references relies on it. */
static bool is_in_order(const struct lj_trace *t)
{
	uint32_t ref;

	for (ref = LJ_REF_BIAS + 1; ref < t->nins; ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref);

		if (ir->o >= LJ_IR__MAX ||
		    (lj_ir_op1_is_ref(ir->o) && (ir->op1 < t->nk || ir->op1 >= ref)) ||
		    (lj_ir_op2_is_ref(ir->o) && (ir->op2 < t->nk || ir->op2 >= ref)))
			return false;
	}
	return lj_ins_at(t, LJ_REF_BIAS)->o == LJ_IR_BASE;
}

static uint32_t print_head(const struct lj_layout *lj, const uint8_t head[LJ_TRACE_READ])
{
	struct lj_trace_words words = lj_trace_words(lj, head);

	return lj_fp_trace(&words);
}

/* Copies the IR. Operations get the numbers of enum lj_ir, and GC32's addresses GC64's type. */
static int read_ir(const struct trace_reader *rd, const uint8_t *head)
{
	struct lj_trace *t = rd->t;
	uint32_t ref, n = t->nins - t->nk;
	int r;

	r = read_array(rd->mem, lb_word(head, LJ_OFF(rd->lj, TRACE_IR)) + 8ULL * t->nk, n,
		       sizeof(*t->ir), &t->ir);
	if (r)
		return r;
	t->consts = calloc(LJ_REF_BIAS - t->nk, sizeof(*t->consts));
	if (!t->consts)
		return -ENOMEM;
	r = take_values(rd, t->ir, LJ_REF_BIAS - t->nk, t->consts);
	if (r)
		return r;
	for (ref = LJ_REF_BIAS; ref < t->nins; ref++) {
		struct lj_ins *ir = &t->ir[ref - t->nk];

		ir->o = lj_ir_of(rd->lj->ir, ir->o);
		if (lj_is_gc32(rd->lj) && (ir->t & LJ_IRT_TYPE) == LJ_IRT_P32)
			ir->t = (uint8_t)((ir->t & ~LJ_IRT_TYPE) | LJ_IRT_P64);
	}
	return is_in_order(t) ? 0 : -EBADMSG;
}

static int read_trace(const struct trace_reader *rd, uint32_t traceno)
{
	const struct lj_layout *lj = rd->lj;
	struct lj_trace *t = rd->t;
	uint8_t head[LJ_TRACE_READ];
	uint32_t ref;
	int r;

	r = read_head(rd->mem, rd->lj, rd->g, traceno, head);
	if (r)
		return r;
	t->fp = print_head(rd->lj, head);
	if (rd->wanted->fp && t->fp != rd->wanted->fp)
		return -ESTALE;
	t->lj = *lj;
	t->nins = lb_half(head, LJ_OFF(lj, TRACE_NINS));
	t->nk = lb_half(head, LJ_OFF(lj, TRACE_NK));
	t->szmcode = lb_half(head, LJ_OFF(lj, TRACE_SZMCODE));
	t->mcloop = lb_half(head, LJ_OFF(lj, TRACE_MCLOOP));
	t->startpc = lj_ref_at(lj, head, LJ_OFF(lj, TRACE_STARTPC));
	t->loop_exit = loop_exit_of(t, head);
	if (t->nk > LJ_REF_BIAS - 3 || t->nins <= LJ_REF_BIAS || t->nins - t->nk > INS_MAX ||
	    !t->szmcode || t->szmcode > MCODE_MAX || t->mcloop >= t->szmcode)
		return -EBADMSG;
	r = read_ir(rd, head);
	if (!r)
		r = read_array(rd->mem, lb_word(head, LJ_OFF(lj, TRACE_MCODE)), t->szmcode, 1,
			       &t->code_bytes);
	if (!r)
		r = read_snaps(rd, head);
	if (r)
		return r;
	for (ref = LJ_REF_BIAS + 1; ref < t->nins && !t->loopref; ref++)
		if (lj_ins_at(t, ref)->o == LJ_IR_LOOP)
			t->loopref = ref;
	for (t->npre = 0; t->npre < t->nsnap; t->npre++)
		if (t->loopref && t->snap[t->npre].ref > t->loopref)
			break;
	if (!t->npre) /* a loop without a recorded part */
		return -EBADMSG;
	t->codes = calloc(CODES_MAX, sizeof(*t->codes));
	if (!t->codes)
		return -ENOMEM;
	r = add_code(rd, lj_ref_at(lj, head, LJ_OFF(lj, TRACE_STARTPT)));
	if (!r)
		r = add_codes(rd, t->ir, t->consts, LJ_REF_BIAS - t->nk);
	if (!r)
		r = add_parents(rd);
	if (!r) /* it may be flushed by now, and its memory reused */
		r = read_head(rd->mem, rd->lj, rd->g, traceno, head);
	return r ? r : print_head(rd->lj, head) == t->fp ? 0 : -EAGAIN;
}

int lj_trace_copy(struct lj_trace *t, const struct lb_mem *mem, const struct lj_layout *lj,
		  uint64_t g, const struct lj_trace_wanted *wanted)
{
	struct trace_reader rd = {.mem = mem, .lj = lj, .g = g, .t = t, .wanted = wanted};

	return read_trace(&rd, wanted->no);
}

bool lj_trace_remains(const struct lj_trace *t, const struct lb_mem *mem, uint64_t g,
		      const struct lj_trace_wanted *wanted)
{
	uint8_t head[LJ_TRACE_READ];

	return !read_head(mem, &t->lj, g, wanted->no, head) && print_head(&t->lj, head) == t->fp;
}
