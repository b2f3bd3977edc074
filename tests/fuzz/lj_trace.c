// SPDX-License-Identifier: BSD-2-Clause
/*
 * Traces, damaged: input chooses one (lj_traced.h), then changes bytes of its objects. Reading it
 * and asking about each place of its machine code must end, and return frames that can exist.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz_sym.h"
#include "fuzz_walk.h"
#include "lj_traced.h"
#include "jit/jit.h"

static void damage(struct lj_traced *t, struct fuzz_undo *undo, struct fuzz_input *in)
{
	uint64_t op = fuzz_take(in, 1), at = fuzz_take(in, 3), value;
	size_t size = (size_t)1 << (op >> 1 & 3);
	unsigned n = (at & 0xff) % t->arena->n;
	uint64_t object = t->arena->objects[n].addr;
	uint32_t len = t->arena->objects[n].size;

	if (len < size)
		return;
	if (op & 1) { /* a pointer to another object */
		value = t->arena->objects[fuzz_take(in, 1) % t->arena->n].addr;
		size = len < 8 ? len : 8;
	} else {
		value = fuzz_take(in, size);
	}
	object += fuzz_offset((uint32_t)(at >> 8), len, size) - ARENA_BASE;
	fuzz_change(undo, t->arena->img.ranges[0].bytes + object, value, size);
}

static void ask(const struct lj_trace *trace)
{
	struct lj_trace_frame exact_frames[LJ_TRACE_FRAMES], snap_frames[LJ_TRACE_FRAMES];
	uint32_t ofs, nsnap_frames = 0;

	for (ofs = 0; ofs < 300; ofs += 5) {
		int n = lj_trace_frames(trace, ofs, exact_frames, snap_frames, &nsnap_frames);

		if (n > LJ_TRACE_FRAMES ||
		    (n > 0 && (!nsnap_frames || nsnap_frames > LJ_TRACE_FRAMES)) || !n)
			abort();
		if (n > 0 && (!exact_frames[n - 1].proto ||
			      exact_frames[n - 1].proto != snap_frames[nsnap_frames - 1].proto))
			abort();
	}
	lj_trace_frames(trace, UINT32_MAX, exact_frames, snap_frames, &nsnap_frames);
}

/* Built when it is first asked for, and kept: what is damaged is what arena_mem() shows. The rows, then those without
 * mcofs, and the same three without GC64; then LuaJIT 2.0's. */
static struct lj_traced *traced(size_t i)
{
	static struct lj_traced *built[7 * LJ_TRACED_ROWS];
	size_t row = i % lj_traced_count, shape = i / lj_traced_count % 7;

	i = shape * lj_traced_count + row;
	if (!built[i]) {
		built[i] = malloc(sizeof(*built[i]));
		if (!built[i])
			abort();
		lj_traced_init(built[i], &lj_traced_rows[row],
			       shape < 3   ? LJ_TRACED_GC64
			       : shape < 6 ? LJ_TRACED_GC32
					   : LJ_TRACED_20);
		if (shape % 3 || shape == 6)
			lj_traced_without_mcofs(built[i], shape % 3 != 1);
		arena_mem(built[i]->arena);
	}
	return built[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {.p = data, .left = size};
	struct lj_traced *t = traced(fuzz_take(&in, 1));
	struct lj_trace *trace = NULL;
	static struct fuzz_undo undo;
	unsigned reads = 0;
	struct counted mem = {
		.mem.read = counted_read, .under = &t->arena->img.mem, .reads = &reads};

	while (in.left)
		damage(t, &undo, &in);
	if (!lj_trace_read(&mem.mem, &t->build.lj, t->g, LJ_TRACED_NO, NULL, &trace))
		ask(trace);
	lj_trace_free(&trace);
	fuzz_undo(&undo);
	return 0;
}
