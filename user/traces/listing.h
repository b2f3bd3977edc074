/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that have a trace, or a start without one; and for each of their bytecode
 * instructions the traces, exits and starts that are there.
 */
#ifndef TRACES_LISTING_H
#define TRACES_LISTING_H

#include "traces.h"

enum traces_mark_kind {
	TRACES_MARK_COVERED, /* the trace was recorded from it */
	TRACES_MARK_TRACE,   /* the trace starts here */
	TRACES_MARK_EXIT,    /* an exit leads here that was taken */
	TRACES_MARK_START,   /* a start without a trace */
	TRACES_MARK_CAUSE,   /* where a start's last recording was aborted */
};

struct traces_mark {
	uint32_t bcpos;
	enum traces_mark_kind kind;
	const struct traces_trace *trace; /* of the first three kinds */
	const struct traces_start *start; /* of the others */
	uint32_t exit;
	const struct traces_trace *side; /* that starts at the exit; NULL: none */
	const struct lj_proto *pt;
};

/* A function, with its marks by position. */
struct traces_listed {
	const struct lj_proto *pt;
	const struct traces_mark *marks;
	size_t nmarks;
};

struct traces_listing {
	struct traces_listed *functions; /* by chunk and line */
	size_t n;
	struct traces_mark *marks;
	size_t nmarks;
	size_t left_out;       /* functions: of more instructions than are listed */
	size_t left_out_marks; /* beyond so many */
};

/* 0 or -ENOMEM. vm outlives it. */
int traces_listing_new(const struct traces_vm *vm, struct traces_listing *out);
void traces_listing_free(struct traces_listing *listing);

#endif
