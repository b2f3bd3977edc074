/* SPDX-License-Identifier: BSD-2-Clause */
/* The report of `luabpf count`: how often each function was called. */
#ifndef OUT_CALL_TABLE_H
#define OUT_CALL_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "prof/prof.h"

/* Strings are foreign bytes: filtered when they are written. */
struct call_row {
	char *name, *place;
	uint64_t calls;
};
struct call_table {
	struct call_row *row;
	size_t n;
};

/* Appends a function; copies the strings. 0 or -ENOMEM. */
int call_table_add(struct call_table *table, const char *name, const char *place, uint64_t calls);
void call_table_free(struct call_table *table);

/* Appends the functions of a profile: a row's topmost frame was called as often as it counts. */
int call_table_add_prof(struct call_table *table, const struct prof *prof);

/* Writes it, most calls first; sorts it. 0 or -errno of the stream. */
int call_table_write(struct call_table *table, FILE *to);

#endif
