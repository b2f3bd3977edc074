/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scene in compiled code: main calls f at 5; trace 3 began in f at 10 and inlined more, by its
 * snapshots:
 *
 *	mcofs	pc	frames
 *	0x20	f 10	f
 *	0x60	g 8	g, called by f at 12
 *	0xa0	h 3	h, called by g at 9; g; f
 *	0xe0	v 6	v, a vararg function, called by f at 20
 *	0x120	m 2	m, a metamethod of f at 25
 */
#ifndef LIB_LJ_SCENE_COMPILED_H
#define LIB_LJ_SCENE_COMPILED_H

#include "lj_scene.h"

#define THREAD LB_FRAME_THREAD
#define TRACE LB_FRAME_TRACE
#define SPADJUST 24u
#define SZMCODE 0x180u

struct compiled_scene {
	struct lji_trace t;
	uint64_t f, g, h, v, m;
};

/* Begins the scene: the trace runs, ip is to be set. */
struct compiled_scene sc_compiled(struct lj_scene *s);

/* The frames of snapshot no. The trace's own frame is marked as compiled only when on top. */
void sc_want_snapshot(struct lj_scene *s, const struct compiled_scene *c, int no);

#endif
