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
	char *name, *location;
	uint64_t calls;
};
struct call_table {
	struct call_row *row;
	size_t n;
	char **inexact; /* sentences on what was not counted, and why */
	size_t ninexact;
};

/* Appends a function; copies the strings. 0 or -ENOMEM. */
int call_table_add(struct call_table *table, const char *name, const char *location,
		   uint64_t calls);
void call_table_free(struct call_table *table);

/* Appends the functions of a profile: a row's topmost frame was called as often as it counts. */
int call_table_add_prof(struct call_table *table, const struct prof *prof);

/* Adds a sentence on what was not counted, once. From then on the counts are not exact. */
int call_table_inexact(struct call_table *table, const char *sentence);

/* Writes it, most calls first; sorts it. 0, -ENOMEM or -errno of the stream. */
int call_table_write(struct call_table *table, FILE *to);
int call_table_json(struct call_table *table, FILE *to);

/* "1234 calls of 5 functions, exact", or what was not counted, a line each. */
void call_table_summary(const struct call_table *table, FILE *to);

#endif
