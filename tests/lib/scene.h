/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the scenes of all walkers have (lj_scene.h, puc_scene.h): the stack that a sample should
 * show, and how a walk's outcome is compared with it and reported.
 */
#ifndef LIB_SCENE_H
#define LIB_SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unwind/unwind.h>

#define SCENE_GCSTATE 3 /* of all VMs */

/* The first member of a walker's own struct, without a name, as struct lb_walk is (walk.h). */
struct scene {
	struct lb_frame want[LB_MAX_FRAMES]; /* without the fingerprints of prototypes */
	uint32_t nwant;
	uint32_t flags; /* LB_SAMPLE_* */
	enum lb_status end;
	bool lost;	/* any end will do but LB_STATUS_RESOLVED */
	char state;	/* 0: not said */
	uint8_t detail; /* of states N and J; that of G is always SCENE_GCSTATE's */
};

void scene_want(struct scene *s, uint8_t kind, uint8_t flags, uint64_t ptr, uint32_t pc);

/* Is this walk's outcome the expected one, as far as these go? */
bool scene_matches(const struct scene *s, const struct lb_walk *w);

/* Says what came and what was expected. Returns the text's length. */
size_t scene_tell(const struct scene *s, const struct lb_walk *w, char *text, size_t size);

/* What is wrong with a walk's end, whatever it read; NULL: nothing. */
const char *scene_bad_end(const struct lb_walk *w);

/*
 * When reads fail: nothing but what the intact walk has at the same place, or a line reported as
 * unknown. The fingerprint may be another: user space takes no prototype for that one then.
 */
bool scene_is_true(const struct lb_frame *got, const struct lb_frame *intact);

/*
 * Of tables of scenes, NULL after the last, the i-th row, counted from 0 through all of them; NULL
 * beyond. A row of any kind begins with its name, and one without a name ends its table.
 */
const void *scene_row(const void *const *tables, size_t row_size, size_t i);

/*
 * The scenes as parameters of a test, 0 to SCENE_SHARES - 1: that with parameter k runs scenes k,
 * k + SCENE_SHARES ... A process for each scene would cost more than most scenes.
 */
#define SCENE_SHARES 8
size_t *scene_shares(void);

#endif
