/* SPDX-License-Identifier: BSD-2-Clause */
/* The report of one VM's traces: as text, or as JSON. */
#ifndef TRACES_REPORT_H
#define TRACES_REPORT_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include "out/source.h"
#include "shares.h"
#include "base/json.h"
#include "base/text.h"

/* shares: NULL without samples. 0 or -ENOMEM. */
int traces_print(const struct traces_vm *vm, const struct traces_shares *shares, FILE *to);

/*
 * The source of each listed function (listing.h) with its bytecode below each line. source: NULL:
 * cannot be read. 0 or -ENOMEM.
 */
int traces_annotate(const struct traces_vm *vm, const struct traces_shares *shares,
		    const struct source *source, FILE *to);

/* Adds the listed functions, and how many are not listed. */
void traces_listing_json(const struct traces_vm *vm, struct json *o);

/* NULL: out of memory. */
cJSON *traces_json(const struct traces_vm *vm, const struct traces_shares *shares);

/* Puts "file.lua:12", as jit.util.funcinfo().loc; "?" if the function is not known. */
void traces_put_place(const struct traces_place *at, struct text *out);

/* Puts "12-14", or "12". */
void traces_put_range(const struct traces_lines *lines, struct text *out);

/* Puts "loop", "-> 3", "-> 4 tail-recursion". */
void traces_put_link(const struct traces_trace *t, struct text *out);

/* Puts "file.lua:12-14 loop"; why it has no trace, "NYI: bytecode FNEW at file.lua:13"; and
 * "penalty 72", "blacklisted" or "jit.off()". */
void traces_put_start(const struct traces_start *s, struct text *out);
void traces_put_reason(const struct traces_vm *vm, const struct traces_start *s, struct text *out);
void traces_put_state(const struct traces_start *s, struct text *out);

/* Puts "file.lua", or the beginning of the source text. */
void traces_put_chunk(const struct lj_proto *pt, struct text *out);

#endif
