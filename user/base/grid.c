// SPDX-License-Identifier: BSD-2-Clause
#include "grid.h"

#include <stdlib.h>

#include "array.h"

struct text *grid_add(struct grid *grid)
{
	size_t n = grid->ncolumns + 1, i;
	struct text *cells;

	if (array_grow(&grid->cells, grid->nrows, n * sizeof(*cells)))
		return NULL;
	cells = grid->cells + grid->nrows++ * n;
	for (i = 0; i < n; i++)
		cells[i] = (struct text){};
	return cells;
}

int grid_err(const struct grid *grid)
{
	int err = 0;

	for (size_t i = 0; i < grid->nrows * (grid->ncolumns + 1) && !err; i++)
		err = text_err(&grid->cells[i]);
	return err;
}

/* Characters of UTF-8. */
static size_t width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

static const struct text *row_of(const struct grid *grid, size_t row)
{
	return &grid->cells[(row - 1) * (grid->ncolumns + 1)];
}

/* Row 0 is the head. */
static const char *cell(const struct grid *grid, size_t row, size_t column)
{
	const char *text = row ? text_str(&row_of(grid, row)[column]) : grid->columns[column].head;

	return *text ? text : grid->columns[column].empty;
}

static size_t column_width(const struct grid *grid, size_t column)
{
	size_t most = 0;

	for (size_t row = 0; row <= grid->nrows; row++)
		if (width(cell(grid, row, column)) > most)
			most = width(cell(grid, row, column));
	return most;
}

void grid_print(const struct grid *grid, int indent, FILE *to)
{
	size_t *widths = calloc(grid->ncolumns, sizeof(*widths));

	for (size_t c = 0; widths && c < grid->ncolumns; c++)
		widths[c] = column_width(grid, c);
	for (size_t row = 0; row <= grid->nrows; row++) {
		const char *note = row ? text_str(&row_of(grid, row)[grid->ncolumns]) : "";

		fprintf(to, "%*s", indent, "");
		for (size_t c = 0; c < grid->ncolumns; c++) {
			bool last = c + 1 == grid->ncolumns, right = grid->columns[c].to_right;
			const char *text = cell(grid, row, c);
			int pad = widths ? (int)(widths[c] - width(text)) : 0;

			fprintf(to, "%*s%s%*s%s", right ? pad : 0, "", text,
				right || last ? 0 : pad, "", last ? "\n" : "  ");
		}
		for (size_t n; *note; note += n + (note[n] == '\n')) {
			n = strcspn(note, "\n");
			fprintf(to, "%*s%.*s\n", indent + (widths ? (int)widths[0] : 0) + 2, "",
				(int)n, note);
		}
	}
	free(widths);
}

void grid_free(struct grid *grid)
{
	for (size_t i = 0; i < grid->nrows * (grid->ncolumns + 1); i++)
		text_free(&grid->cells[i]);
	free(grid->cells);
	grid->cells = NULL;
	grid->nrows = 0;
}
