/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces in an arena, whole: bytecode, intermediate code, snapshots and machine code of small
 * loops, as LuaJIT would have made them. For lj_trace.h; the walker's traces, which have snapshots
 * only, are lj_image.h's.
 */
#ifndef LIB_LJ_TRACED_H
#define LIB_LJ_TRACED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <unwind/abi.h>

#include "arena.h"

#define LJ_TRACED_NO 3 /* the trace's number */
#define LJ_TRACED_PLACES 24

struct lj_traced {
	struct test_arena *arena;
	struct lj_build build;
	uint64_t g, trace, ir; /* ir: address of reference 0 */
	uint64_t main, callee; /* prototypes; callee 0: none */
	uint32_t nk, nins;
	bool decides; /* what is read of objects decides on a branch */
	bool unfit;   /* the build has no such operation */
	const char *name;
	/*
	 * what is true of it: from `mcofs` on, up to the next, the machine code was made from this
	 */
	struct {
		uint32_t mcofs;
		uint32_t pc;	  /* in main, or in callee; LB_NO_PC: nothing finer is known */
		uint32_t callpc;  /* in main, when it is in callee; else LB_NO_PC */
		uint32_t snap_pc; /* what the snapshot says, in main */
	} place[LJ_TRACED_PLACES];
	uint32_t nplaces;
};

struct lj_traced_row {
	const char *name;
	void (*make)(struct lj_traced *t);
};
#define LJ_TRACED_ROWS 64 /* at most */
extern const struct lj_traced_row lj_traced_rows[];
extern const size_t lj_traced_count;

/* Of a build with GC64, without, and of LuaJIT 2.0: the numbers of lj_layout_scene(). */
enum lj_traced_build { LJ_TRACED_GC64 = 0, LJ_TRACED_GC32 = 5, LJ_TRACED_20 = 7 };
void lj_traced_init(struct lj_traced *t, const struct lj_traced_row *row,
		    enum lj_traced_build build);
void lj_traced_free(struct lj_traced *t);

/* Makes it one of a build whose snapshots have no mcofs: as in 2017, or in 2019. */
void lj_traced_without_mcofs(struct lj_traced *t, bool of_2017);

/* False where a guard has no branch: there mcofs alone shows where the next one begins. */
static inline bool lj_traced_has_branches(const struct lj_traced *t)
{
	return strcmp(t->name, "same_end") != 0;
}

/* Changes an instruction of the intermediate code. */
void lj_traced_set_ins(struct lj_traced *t, uint32_t ref, uint8_t o, uint16_t op1, uint16_t op2);

#endif
