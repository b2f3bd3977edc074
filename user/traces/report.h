/* SPDX-License-Identifier: BSD-2-Clause */
/* The report of one VM's traces: as text, or as JSON. */
#ifndef TRACES_REPORT_H
#define TRACES_REPORT_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include "shares.h"
#include "base/text.h"

/* shares: NULL without samples. 0 or -ENOMEM. */
int traces_print(const struct traces_vm *vm, const struct traces_shares *shares, FILE *to);

/* NULL: out of memory. */
cJSON *traces_json(const struct traces_vm *vm, const struct traces_shares *shares);

/* Puts "file.lua:12", as jit.util.funcinfo().loc; "?" if the function is not known. */
void traces_put_place(const struct traces_place *at, struct text *out);

/* Puts "file.lua", or the beginning of the source text. */
void traces_put_chunk(const struct lj_proto *pt, struct text *out);

#endif
