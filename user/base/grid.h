/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of text, whose columns are as wide as their widest cell. */
#ifndef BASE_GRID_H
#define BASE_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "text.h"

struct grid_column {
	const char *head;
	bool to_right;
	const char *empty; /* printed in place of an empty cell */
};

struct grid {
	const struct grid_column *columns; /* the last one is not padded */
	size_t ncolumns;
	struct text *cells; /* rows of ncolumns cells and a note */
	size_t nrows;
};

/* Adds a row. Returns its cells, valid until the next one; cell [ncolumns] has lines of text that are
 * printed below the row, if it is not empty. NULL: out of memory. */
struct text *grid_add(struct grid *grid);

/* Returns -ENOMEM if a cell could not be written, else 0. */
int grid_err(const struct grid *grid);

/* Prints the head and all rows, each behind `indent` blanks. */
void grid_print(const struct grid *grid, int indent, FILE *to);

void grid_free(struct grid *grid);

#endif
