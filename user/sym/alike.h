/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compiled code of a VM that was closed before its traces were read. A program that makes a VM for each request compiles
 * the same code in each of them, and some are read in time. What these show at an offset of a trace's machine code
 * holds for the others that stand on the same frames of a snapshot there: if two traces agree, and four more for each that
 * differs. Samples that come before wait for it in rows of the profile.
 */
#ifndef SYM_ALIKE_H
#define SYM_ALIKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALIKE_FRAMES 128 /* of a profile, in a stack; longer ones are left out */

/* Frames of a profile by number, innermost first. */
struct alike_stack {
	uint32_t n;
	uint32_t ids[ALIKE_FRAMES];
};

/* A place in compiled code. */
struct alike_place {
	uint32_t traceno, mcofs;
	const struct alike_stack *snapshot; /* the stack that the snapshot gives there */
};

struct alike; /* NULL: nothing was learned yet */

void alike_free(struct alike **alike);

/*
 * Notes the stack of a trace that was read. trace_fp: which one it is. same: whether two frames of a profile are one
 * place in the source: how they are called there depends on what else was read. Nothing is noted when memory runs out.
 */
void alike_learn(struct alike **alike, const struct alike_place *place, uint32_t trace_fp,
		 const struct alike_stack *exact,
		 bool (*same)(const void *arg, uint32_t a, uint32_t b), const void *arg);

/* Returns the stack at a place of a trace that was not read; NULL: it is not known. */
const struct alike_stack *alike_find(const struct alike *alike, const struct alike_place *place);

/* Samples of a row of the profile. */
struct alike_waiting {
	size_t row;
	uint64_t count;
};

/* Notes samples of a place that is not known: those of 64 rows at most. */
void alike_wait(struct alike **alike, const struct alike_place *place, size_t row, uint64_t count);

/* True if samples wait anywhere: nothing has to be learned else. */
bool alike_waits(const struct alike *alike);

/*
 * The offsets of a trace's places at which samples wait, n at most. A place is given 8 times: its stack may not be that of
 * the traces that were read.
 */
uint32_t alike_waiting_at(struct alike *alike, uint32_t traceno, uint32_t *mcofs, uint32_t n);

/* Takes those that wait for a place: how many rows there are in *out, which the caller frees. */
size_t alike_take_waiting(struct alike *alike, const struct alike_place *place,
			  struct alike_waiting **out);

#endif
