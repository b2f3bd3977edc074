// SPDX-License-Identifier: BSD-2-Clause
/* Compiled code: in a trace, at its head and its end, and in what it calls. */
#include "lj_scene_compiled.h"

static uint64_t call_link(struct lj_scene *s, uint64_t func, uint32_t pos, uint8_t a)
{
	return lji_ins(&s->img, func, pos, LJ_OP_CALLM + 1, a) + 4;
}

static uint64_t tv(uint64_t func)
{
	return LJI_TV(LJ_TFUNC, func);
}

static void add_snapshots(struct lj_scene *s, struct compiled_scene *c)
{
	uint64_t lg = call_link(s, c->f, 12, 4), lh = call_link(s, c->g, 9, 2);
	uint64_t lv = call_link(s, c->f, 20, 4), cm = lji_bc(&s->img, c->f, 26);
	struct lji_entry e[] = {{6, tv(c->g)}, {7, lg}, {10, tv(c->h)}, {11, lh}};
	struct lji_entry v[] = {
		{6, tv(c->v)}, {7, lv}, {10, tv(c->v)}, {11, 4 * 8 | LJ_FRAME_VARG}};
	struct lji_entry m[] = {
		{8, LJI_VM + 0x700}, {9, cm}, {10, tv(c->m)}, {11, 10 * 8 | LJ_FRAME_CONT}};
	struct lji_trace *t = &c->t;

	lji_snap(&s->img, t, 0x20, lji_bc(&s->img, c->f, 10), 0, NULL, 0);
	lji_snap(&s->img, t, 0x60, lji_bc(&s->img, c->g, 8), 6, e, 2);
	lji_snap(&s->img, t, 0xa0, lji_bc(&s->img, c->h, 3), 10, e, 4);
	lji_snap(&s->img, t, 0xe0, lji_bc(&s->img, c->v, 6), 10, v, 4);
	lji_snap(&s->img, t, 0x120, lji_bc(&s->img, c->m, 2), 10, m, 4);
}

struct compiled_scene sc_compiled(struct lj_scene *s)
{
	struct compiled_scene c;

	sc_begin(s);
	c.f = sc_func(s, 10);
	c.g = sc_func(s, 30);
	c.h = sc_func(s, 50);
	c.v = sc_func(s, 70);
	c.m = sc_func(s, 90);
	lji_call(&s->img, &s->st, s->main, 5, 3, c.f);
	c.t = lji_trace(&s->img, 3, lji_proto_of(&s->img, c.f), lji_bc(&s->img, c.f, 10), SZMCODE,
			SPADJUST);
	add_snapshots(s, &c);
	lji_vmstate(&s->img, 3);
	lji_jit_base(&s->img, s->st.base);
	s->img.sp = s->cframe - 16 - SPADJUST;
	s->in.regs = (struct lb_regs){.sp = s->img.sp,
				      .base = 0x1,
				      .pc = 0x2,
				      .rb = 0x3,
				      .gl = s->img.g + s->img.lj.g2disp};
	s->state = 'N';
	return c;
}

void sc_want_snapshot(struct lj_scene *s, const struct compiled_scene *c, int no)
{
	static const uint32_t below[] = {10, 12, 12, 20, 25};

	switch (no) {
	case 1:
		want_lua(s, c->g, 8, THREAD | TRACE);
		break;
	case 2:
		want_lua(s, c->h, 3, THREAD | TRACE);
		want_lua(s, c->g, 9, TRACE);
		break;
	case 3:
		want_lua(s, c->v, 6, THREAD | TRACE);
		break;
	case 4:
		want_lua(s, c->m, 2, THREAD | TRACE);
		break;
	}
	want_lua(s, c->f, below[no], no ? TRACE : THREAD | TRACE);
	want_lua(s, s->main, 5, 0);
}

static void in_mcode(struct lj_scene *s, uint32_t offset, int snapshot)
{
	struct compiled_scene c = sc_compiled(s);

	s->in.regs.ip = c.t.mcode + offset;
	sc_want_snapshot(s, &c, snapshot);
}

static void mcode_before_first(struct lj_scene *s)
{
	in_mcode(s, 0x8, 0);
}

static void mcode_first(struct lj_scene *s)
{
	in_mcode(s, 0x20, 0);
}

static void mcode_last_byte_of_first(struct lj_scene *s)
{
	in_mcode(s, 0x5f, 0);
}

static void mcode_inlined(struct lj_scene *s)
{
	in_mcode(s, 0x60, 1);
}

static void mcode_inlined_twice(struct lj_scene *s)
{
	in_mcode(s, 0xaf, 2);
}

static void mcode_inlined_vararg(struct lj_scene *s)
{
	in_mcode(s, 0xe1, 3);
}

static void mcode_inlined_metamethod(struct lj_scene *s)
{
	in_mcode(s, 0x17f, 4);
}

/* An interrupt came behind the instruction that the processor waited for, the last of a snapshot. */
static void mcode_waited(struct lj_scene *s)
{
	in_mcode(s, 0x60, 0);
	s->in.regs.behind = 1;
}

static void mcode_waited_for_first(struct lj_scene *s)
{
	in_mcode(s, 0, 0);
	s->in.regs.behind = 1;
}

/* ... which was the jump back to the head of the loop. */
static void mcode_waited_for_jump(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);

	lji_put32(&s->img, c.t.addr + LJI_OFF(&s->img, TRACE_MCLOOP), 0x60);
	s->in.regs.ip = c.t.mcode + 0x60;
	s->in.regs.behind = 1;
	s->detail = LB_IN_LOOP;
	sc_want_snapshot(s, &c, 4);
}

/* A page fault of the same instruction. */
static void mcode_loop_faults(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);

	lji_put32(&s->img, c.t.addr + LJI_OFF(&s->img, TRACE_MCLOOP), 0x60);
	s->in.regs.ip = c.t.mcode + 0x60;
	s->detail = LB_IN_LOOP;
	sc_want_snapshot(s, &c, 1);
}

static void mcode_before_loop(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);

	lji_put32(&s->img, c.t.addr + LJI_OFF(&s->img, TRACE_MCLOOP), 0x61);
	s->in.regs.ip = c.t.mcode + 0x60;
	sc_want_snapshot(s, &c, 1);
}

/*
 * The trace began at the end of the loop 4 .. 10 of f. Its last guard ends the loop: the snapshot goes on behind it.
 * Without mcofs the code before this guard is the loop's, with mcofs the snapshot begins there.
 */
static void ends_loop(struct lj_scene *s, struct compiled_scene *c, uint32_t startins)
{
	*c = sc_compiled(s);
	lji_put32(&s->img, c->t.addr + LJI_OFF(&s->img, TRACE_STARTINS), startins);
	s->in.regs.ip = c->t.mcode + 0x151;
}

static void want_loop(struct lj_scene *s, struct compiled_scene *c, uint32_t end)
{
	lji_snap(&s->img, &c->t, 0x150, lji_bc(&s->img, c->f, end), 0, NULL, 0);
	want_lua(s, c->f, s->img.lj.mcofs ? end : 10, THREAD | TRACE);
	want_lua(s, s->main, 5, 0);
}

static void mcode_ends_for(struct lj_scene *s)
{
	struct compiled_scene c;

	ends_loop(s, &c, (0x8000u - 6) << 16);
	want_loop(s, &c, 11);
}

static void mcode_ends_while(struct lj_scene *s)
{
	struct compiled_scene c;

	ends_loop(s, &c, (0x8000u + 6) << 16);
	want_loop(s, &c, 17);
}

/* The snapshot is of another instruction, or the loop's instruction has no jump. */
static void mcode_ends_no_loop(struct lj_scene *s)
{
	struct compiled_scene c;

	ends_loop(s, &c, 2u << 16);
	lji_snap(&s->img, &c.t, 0x150, lji_bc(&s->img, c.f, 11), 0, NULL, 0);
	want_lua(s, c.f, 11, THREAD | TRACE);
	want_lua(s, s->main, 5, 0);
}

/* f has called itself, and the guard ends the inner loop. */
static void mcode_ends_inlined_loop(struct lj_scene *s)
{
	struct compiled_scene c;

	ends_loop(s, &c, (0x8000u - 6) << 16);
	lji_snap(&s->img, &c.t, 0x150, lji_bc(&s->img, c.f, 11), 6,
		 (struct lji_entry[]){{6, tv(c.f)}, {7, call_link(s, c.f, 12, 4)}}, 2);
	want_lua(s, c.f, 11, THREAD | TRACE);
	want_lua(s, c.f, 12, TRACE);
	want_lua(s, s->main, 5, 0);
}

/* A side trace begins at any instruction, such as the jump of an inner loop. */
static void mcode_side_ends_loop(struct lj_scene *s)
{
	struct compiled_scene c;

	ends_loop(s, &c, (0x8000u - 6) << 16);
	lji_put16(&s->img, c.t.addr + LJI_OFF(&s->img, TRACE_ROOT), 2);
	lji_snap(&s->img, &c.t, 0x150, lji_bc(&s->img, c.f, 11), 0, NULL, 0);
	want_lua(s, c.f, 11, THREAD | TRACE);
	want_lua(s, s->main, 5, 0);
}

/*
 * Frames that the trace did not make are still on the stack: the function and the link of a slot
 * that its snapshot does not have, or that it loaded from there.
 */
static void mcode_slots_on_stack(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);
	struct lji_entry link = {7, call_link(s, c.f, 12, 4)};

	sc_two_slots(s);
	lji_put64(&s->img, s->st.base + 8 * 6 - 16, tv(c.g));
	lji_snap(&s->img, &c.t, 0x150, lji_bc(&s->img, c.g, 8), 6, &link, 1);
	s->in.regs.ip = c.t.mcode + 0x151;
	sc_want_snapshot(s, &c, 1);
}

/*
 * The trace has called g in the place of f, whose frame is the trace's base: the slot still holds
 * f. The link's entry says that it was a tail call.
 */
static void mcode_tail_called(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);
	const struct lji_entry entries[] = {{0, tv(c.g)}, {1, 0}};

	lji_snap(&s->img, &c.t, 0x150, lji_bc(&s->img, c.g, 8), 0, entries, 2);
	s->in.regs.ip = c.t.mcode + 0x151;
	want_lua(s, c.g, 8, THREAD | TRACE);
	want_lua(s, s->main, 5, 0);
}

/* Without that entry there was none: what stands at the base now is what its slot says. */
static void mcode_base_has_moved(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);
	const struct lji_entry entries[] = {{0, tv(c.g)}};

	sc_two_slots(s);
	lji_snap(&s->img, &c.t, 0x150, lji_bc(&s->img, c.g, 8), 0, entries, 1);
	s->in.regs.ip = c.t.mcode + 0x151;
	want_lua(s, c.f, LB_NO_PC, THREAD | TRACE);
	want_lua(s, s->main, 5, 0);
}

/* g is a closure that the trace has made: known by its prototype only, a constant of trace t. */
static void computed(struct lj_scene *s, struct compiled_scene *c, struct lji_trace *t)
{
	struct lji_entry e[] = {{6, tv(c->g)}, {7, call_link(s, c->f, 12, 4)}};
	const uint32_t ref = LJ_SNAP_FRAME | LJ_REF_BIAS | 3;
	uint64_t at = c->t.snapmap + 4ULL * c->t.nmap;

	lji_snap(&s->img, &c->t, 0x150, lji_bc(&s->img, c->g, 8), 6, e, 2);
	lji_put32(&s->img, at, (4 + lji_frame_slots(&s->img)) << 24 | ref);
	lji_const_proto(&s->img, t, lji_proto_of(&s->img, c->h));
	lji_const_proto(&s->img, t, lji_proto_of(&s->img, c->g));
	s->in.regs.ip = c->t.mcode + 0x151;
}

static void mcode_closure(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);

	computed(s, &c, &c.t);
	sc_want_snapshot(s, &c, 1);
}

/* The function was specialized in the trace that this one grew from, or in that one's. */
static void mcode_closure_of_parent(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);
	struct lji_trace parent, root;

	parent = lji_trace(&s->img, 4, 0, 0, 64, 0);
	root = lji_trace(&s->img, 5, 0, 0, 64, 0);
	lji_const(&s->img, &parent, 1);
	lji_parent(&s->img, &c.t, 4);
	lji_parent(&s->img, &parent, 5);
	computed(s, &c, &root);
	sc_want_snapshot(s, &c, 1);
}

static void mcode_closure_of_nobody(struct lj_scene *s)
{
	mcode_closure_of_parent(s);
	lji_number(&s->img, 5, 0);
	s->end = LB_STATUS_BAD_TRACE;
}

/* A trace cannot be its own parent; who says so does not keep us. */
static void mcode_closure_of_itself(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);
	struct lji_trace other = lji_trace(&s->img, 4, 0, 0, 64, 0);

	lji_parent(&s->img, &c.t, 3);
	computed(s, &c, &other);
	s->end = LB_STATUS_BAD_TRACE;
}

/* The end of a trace: its frames are real and jit_base is moved, the machine code not left. */
static void mcode_tail(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);

	lji_call(&s->img, &s->st, c.f, 12, 4, c.g);
	lji_jit_base(&s->img, s->st.base);
	s->in.regs.ip = c.t.mcode + 0x70;
	sc_want_snapshot(s, &c, 1);
	s->want[1].word &= ~((uint64_t)TRACE << 48);
}

/* The snapshot has a constant function, f, at the trace's base, and a virtual frame of g, called by f at 12. The real frame
 * at jit_base is also a g that f called at 12. */
static struct compiled_scene twice(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);
	const struct lji_entry e[] = {
		{0, tv(c.f)}, {1, 0}, {6, tv(c.g)}, {7, call_link(s, c.f, 12, 4)}};

	lji_snap(&s->img, &c.t, 0x150, lji_bc(&s->img, c.g, 8), 6, e, 4);
	lji_call(&s->img, &s->st, c.f, 12, 4, c.g);
	lji_jit_base(&s->img, s->st.base);
	return c;
}

/* At the last jump, after the store of jit_base: the frame at jit_base is the snapshot's virtual one. */
static void mcode_tail_of_constant(struct lj_scene *s)
{
	struct compiled_scene c = twice(s);

	s->in.regs.ip = c.t.mcode + SZMCODE - 5;
	s->in.regs.behind = 1;
	sc_want_snapshot(s, &c, 1);
	s->want[1].word &= ~((uint64_t)TRACE << 48);
}

/* Before that store: g has tail-called f, which calls the virtual g. */
static void mcode_tail_called_by_its_own(struct lj_scene *s)
{
	struct compiled_scene c = twice(s);

	s->in.regs.ip = c.t.mcode + SZMCODE - 12;
	s->in.regs.behind = 1;
	sc_want_snapshot(s, &c, 1);
	s->nwant--;
	want_lua(s, c.f, 12, 0);
	want_lua(s, s->main, 5, 0);
}

/* The trace has called C: its return address is where the trace's frame ends. */
static void helper(struct lj_scene *s, uint32_t ret, int snapshot)
{
	struct compiled_scene c = sc_compiled(s);

	s->img.sp -= 8;
	lji_put64(&s->img, s->img.sp, c.t.mcode + ret);
	lji_c_code(&s->img, 16);
	s->in.regs.ip = SC_HELPER;
	s->in.regs.sp = s->img.sp;
	s->in.regs.gl = 0;
	sc_want_snapshot(s, &c, snapshot);
}

static void trace_helper(struct lj_scene *s)
{
	helper(s, 0x70, 1);
}

/* The call was the last instruction before the next snapshot. */
static void trace_helper_at_edge(struct lj_scene *s)
{
	helper(s, 0xa0, 1);
}

static void trace_helper_at_end(struct lj_scene *s)
{
	helper(s, SZMCODE, 4);
}

/* The collector's answer is tested behind its call: test eax, eax; jnz. */
static void calls_gc(struct lj_scene *s, uint64_t ret)
{
	lji_put64(&s->img, ret, 0x12345678850fc085);
}

/* A collector step called from the trace hides its number: the thread's last one is given. */
static void trace_collector(struct lj_scene *s)
{
	helper(s, 0x70, 1);
	calls_gc(s, lji_get64(&s->img, s->cframe - 16 - SPADJUST - 8));
	lji_vmstate(&s->img, LJ_VMST_GC);
	lji_sync(&s->img, &s->st);
	s->in.traceno = 3;
	s->state = 'G';
}

/* ... and it was another one, which is no more. */
static void trace_collector_sought(struct lj_scene *s)
{
	trace_collector(s);
	s->in.traceno = 5;
}

/* Trace `no`, whose frame on the C stack is larger by `more` words: where it calls from. */
static uint64_t another_trace(struct lj_scene *s, uint32_t no, uint32_t more)
{
	struct lji_trace t = lji_trace(&s->img, no, lji_proto_of(&s->img, s->main),
				       lji_bc(&s->img, s->main, 1), SZMCODE, SPADJUST + 8 * more);

	return t.mcode;
}

/* Among others, of which none can have called. */
static void trace_collector_sought_among(struct lj_scene *s)
{
	trace_collector_sought(s);
	another_trace(s, 1, 0);
	another_trace(s, 4, 1);
	another_trace(s, 15, 2);
}

/*
 * Where another trace would have its return address, that of an earlier call is left: the trace is
 * ambiguous, and f, on which both stand, is at no line.
 */
static void trace_collector_one_of_two(struct lj_scene *s)
{
	uint64_t ret;

	trace_collector_sought(s);
	ret = another_trace(s, 9, 1) + 0x30;
	calls_gc(s, ret);
	lji_put64(&s->img, s->cframe - 16 - SPADJUST - 8 - 8, ret);
	s->want[0] = s->want[1];
	s->want[0].word ^= (uint64_t)(THREAD ^ TRACE) << 48;
	s->want[0].pc = LB_NO_PC;
	s->want[1] = s->want[2];
	s->nwant--;
}

/*
 * ... and the earlier call, by the trace that the thread was seen in last, was of something else.
 */
static void trace_collector_not_the_last(struct lj_scene *s)
{
	trace_collector(s);
	s->in.traceno = 9;
	lji_put64(&s->img, s->cframe - 16 - SPADJUST - 8 - 8, another_trace(s, 9, 1) + 0x30);
}

/* The first instruction of a trace: jit_base is set, the state is not. */
static void trace_head(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);

	lji_vmstate(&s->img, LJ_VMST_INTERP);
	s->img.sp = s->cframe - 16;
	s->in.regs.ip = c.t.mcode;
	s->in.regs.sp = s->img.sp;
	s->in.regs.base = s->st.base;
	s->in.regs.pc = lji_bc(&s->img, c.f, 11);
	s->state = 'I';
	want_lua(s, c.f, 10, THREAD);
	want_lua(s, s->main, 5, 0);
}

/* Trace `no` begins in f, at 10. */
static struct lji_trace other_trace(struct lj_scene *s, const struct compiled_scene *c, uint32_t no)
{
	struct lji_trace t = lji_trace(&s->img, no, lji_proto_of(&s->img, c->f),
				       lji_bc(&s->img, c->f, 10), SZMCODE, SPADJUST);

	lji_snap(&s->img, &t, 0x20, lji_bc(&s->img, c->f, 14), 0, NULL, 0);
	return t;
}

static void put_kin(struct lj_scene *s, const struct lji_trace *t, uint32_t field, uint16_t no)
{
	lji_put16(&s->img, t->addr + field, no);
}

/* Another trace's first instructions: the state is that of the one that has jumped there. */
static void at_head(struct lj_scene *s, const struct compiled_scene *c, const struct lji_trace *t)
{
	s->in.regs.ip = t->mcode + 4;
	want_lua(s, c->f, 14, THREAD | TRACE);
	want_lua(s, s->main, 5, 0);
}

static void head_of_link(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);
	struct lji_trace t = other_trace(s, &c, 4);

	put_kin(s, &c.t, LJI_OFF(&s->img, TRACE_LINK), 4);
	at_head(s, &c, &t);
}

static void head_of_side(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);
	struct lji_trace link = other_trace(s, &c, 4), side = other_trace(s, &c, 5);
	struct lji_trace t = other_trace(s, &c, 6);

	put_kin(s, &c.t, LJI_OFF(&s->img, TRACE_LINK), 4);
	put_kin(s, &link, LJI_OFF(&s->img, TRACE_NEXTSIDE), 6); /* of another root */
	put_kin(s, &c.t, LJI_OFF(&s->img, TRACE_NEXTSIDE), 5);
	put_kin(s, &side, LJI_OFF(&s->img, TRACE_NEXTSIDE), 6);
	at_head(s, &c, &t);
}

/* A side trace has jumped to another one. */
static void head_of_sibling(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);
	struct lji_trace root = other_trace(s, &c, 4), t = other_trace(s, &c, 5);

	put_kin(s, &c.t, LJI_OFF(&s->img, TRACE_ROOT), 4);
	put_kin(s, &root, LJI_OFF(&s->img, TRACE_NEXTSIDE), 3);
	put_kin(s, &c.t, LJI_OFF(&s->img, TRACE_NEXTSIDE), 5);
	at_head(s, &c, &t);
}

static void head_of_nobody(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);
	struct lji_trace t = other_trace(s, &c, 4);

	put_kin(s, &c.t, LJI_OFF(&s->img, TRACE_LINK), 3); /* a loop */
	s->in.regs.ip = t.mcode + 4;
	sc_want_snapshot(s, &c, 0);
}

/* Side traces do not go round. */
static void head_in_circle(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);

	put_kin(s, &c.t, LJI_OFF(&s->img, TRACE_NEXTSIDE), 3);
	s->in.regs.ip = LJI_MCODE + 0x9000;
	sc_want_snapshot(s, &c, 0);
}

/* vm_exit_interp: g is on top, and PC that of the instruction which comes. The state is not set. */
static struct compiled_scene ends(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);

	s->img.sp = s->cframe - 16;
	sc_in_vm(s, 0, 0);
	return c;
}

static void trace_ends(struct lj_scene *s)
{
	struct compiled_scene c = ends(s);

	lji_call(&s->img, &s->st, c.f, 12, 4, c.g);
	s->in.regs.base = s->st.base;
	s->in.regs.pc = lji_bc(&s->img, c.g, 8);
	want_lua(s, c.g, 8, THREAD);
	want_lua(s, c.f, 12, 0);
	want_lua(s, s->main, 5, 0);
}

/* ... the function's header. */
static void trace_ends_at_header(struct lj_scene *s)
{
	struct compiled_scene c = ends(s);

	s->in.regs.base = s->st.base;
	s->in.regs.pc = lji_bc(&s->img, c.f, 0);
	want_lua(s, c.f, 0, THREAD);
	want_lua(s, s->main, 5, 0);
}

/* Around a C function, which has a continuation's frame. PC is the function's own. */
static void trace_ends_stitched(struct lj_scene *s)
{
	struct compiled_scene c = ends(s);
	uint64_t floor = lji_ff(&s->img, FF_FLOOR);

	lji_cont(&s->img, &s->st, floor, 10, LJI_VM + 0x700, lji_bc(&s->img, c.f, 13));
	s->in.regs.base = s->st.base;
	s->in.regs.pc = lji_get64(&s->img, floor + LJ_FUNC_PC);
	want_ff(s, FF_FLOOR, THREAD);
	want_lua(s, c.f, 12, 0);
	want_lua(s, s->main, 5, 0);
}

/* In place of the instruction is a JLOOP; PC is that of its copy in a trace. */
static void trace_ends_at_copy(struct lj_scene *s)
{
	struct compiled_scene c = ends(s);
	struct lji_trace t = other_trace(s, &c, 4);

	s->in.regs.base = s->st.base;
	s->in.regs.pc = t.addr + LJI_OFF(&s->img, TRACE_STARTINS);
	want_lua(s, c.f, 10, THREAD);
	want_lua(s, s->main, 5, 0);
}

/* The state is set, the instruction not fetched. */
static void trace_has_ended(struct lj_scene *s)
{
	trace_ends(s);
	lji_vmstate(&s->img, LJ_VMST_INTERP);
	lji_jit_base(&s->img, 0);
	lji_sync(&s->img, &s->st);
	s->in.regs.ip = SC_IP_EXIT + 9;
	s->state = 'I';
}

/* ... it is. */
static void trace_has_ended_and_fetched(struct lj_scene *s)
{
	trace_has_ended(s);
	s->in.regs.ip = SC_IP_EXIT + 12;
	s->in.regs.pc += 4;
}

static void no_such_trace(struct lj_scene *s)
{
	in_mcode(s, 0x60, 1);
	lji_vmstate(&s->img, 7);
	s->end = LB_STATUS_BAD_TRACE;
}

static void trace_of_other_number(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);

	s->in.regs.ip = c.t.mcode + 0x60;
	lji_number(&s->img, 7, c.t.addr);
	lji_vmstate(&s->img, 7);
	s->end = LB_STATUS_BAD_TRACE;
}

const struct lj_scene_row lj_scenes_trace[] = {
	{"mcode_before_first", mcode_before_first},
	{"mcode_first", mcode_first},
	{"mcode_last_byte_of_first", mcode_last_byte_of_first},
	{"mcode_inlined", mcode_inlined},
	{"mcode_inlined_twice", mcode_inlined_twice},
	{"mcode_inlined_vararg", mcode_inlined_vararg},
	{"mcode_inlined_metamethod", mcode_inlined_metamethod},
	{"mcode_waited", mcode_waited},
	{"mcode_waited_for_first", mcode_waited_for_first},
	{"mcode_waited_for_jump", mcode_waited_for_jump},
	{"mcode_loop_faults", mcode_loop_faults},
	{"mcode_before_loop", mcode_before_loop},
	{"mcode_ends_for", mcode_ends_for},
	{"mcode_ends_while", mcode_ends_while},
	{"mcode_ends_no_loop", mcode_ends_no_loop},
	{"mcode_ends_inlined_loop", mcode_ends_inlined_loop},
	{"mcode_side_ends_loop", mcode_side_ends_loop},
	{"mcode_slots_on_stack", mcode_slots_on_stack},
	{"mcode_tail_called", mcode_tail_called},
	{"mcode_base_has_moved", mcode_base_has_moved},
	{"mcode_closure", mcode_closure},
	{"mcode_closure_of_parent", mcode_closure_of_parent},
	{"mcode_closure_of_nobody", mcode_closure_of_nobody},
	{"mcode_closure_of_itself", mcode_closure_of_itself},
	{"mcode_tail", mcode_tail},
	{"mcode_tail_of_constant", mcode_tail_of_constant},
	{"mcode_tail_called_by_its_own", mcode_tail_called_by_its_own},
	{"trace_helper", trace_helper},
	{"trace_helper_at_edge", trace_helper_at_edge},
	{"trace_helper_at_end", trace_helper_at_end},
	{"trace_collector", trace_collector},
	{"trace_collector_sought", trace_collector_sought},
	{"trace_collector_sought_among", trace_collector_sought_among},
	{"trace_collector_one_of_two", trace_collector_one_of_two},
	{"trace_collector_not_the_last", trace_collector_not_the_last},
	{"trace_head", trace_head},
	{"head_of_link", head_of_link},
	{"head_of_side", head_of_side},
	{"head_of_sibling", head_of_sibling},
	{"head_of_nobody", head_of_nobody},
	{"head_in_circle", head_in_circle},
	{"trace_ends", trace_ends},
	{"trace_ends_at_header", trace_ends_at_header},
	{"trace_ends_stitched", trace_ends_stitched},
	{"trace_ends_at_copy", trace_ends_at_copy},
	{"trace_has_ended", trace_has_ended},
	{"trace_has_ended_and_fetched", trace_has_ended_and_fetched},
	{"no_such_trace", no_such_trace},
	{"trace_of_other_number", trace_of_other_number},
	{NULL, NULL},
};
