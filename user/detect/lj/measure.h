/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of a LuaJIT build, by what was measured in the text of its assembler VM. */
#ifndef DETECT_LJ_MEASURE_H
#define DETECT_LJ_MEASURE_H

#include <stdint.h>

#include <unwind/lj/layout.h>

#include "arch/lj_facts.h"

/* "vmstate"; for messages */
extern const char *const lj_fact_names[LJ_FACTS];

/*
 * Computes the layout from the facts. Returns LJ_FACTS, or the first fact that is missing or
 * inconsistent with those before it. Does not set lj->ir.
 */
enum lj_fact lj_layout_of(const struct lj_measured *m, uint32_t cframe_size, struct lj_layout *lj);

#endif
