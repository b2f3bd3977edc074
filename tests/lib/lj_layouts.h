/* SPDX-License-Identifier: BSD-2-Clause */
/* Layouts of LuaJIT builds, for images (lj_layouts.def). */
#ifndef LIB_LJ_LAYOUTS_H
#define LIB_LJ_LAYOUTS_H

#include <stddef.h>

#include <unwind/lj/layout.h>

/* Row i; NULL beyond the last. */
const struct lj_layout *lj_layout_row(size_t i, const char **name);
unsigned int lj_layout_hookmask(size_t i);

/* The rows that scenes are run on: one of each shape. */
#define LJ_LAYOUT_SCENES64 5
#define LJ_LAYOUT_SCENES 8
static inline const struct lj_layout *lj_layout_scene(size_t i, const char **name)
{
	return i < LJ_LAYOUT_SCENES ? lj_layout_row(i, name) : NULL;
}

#endif
