// SPDX-License-Identifier: BSD-2-Clause
#include "source_line.h"

#include <stdlib.h>

static bool put(char **line, size_t *size, size_t at, int c)
{
	size_t more = *size ? 2 * *size : 128;
	char *grown = *line;

	if (at >= *size) {
		grown = realloc(*line, more);
		if (!grown)
			return false;
		*line = grown;
		*size = more;
	}
	grown[at] = (char)c;
	return true;
}

ssize_t source_line(FILE *in, char **line, size_t *size, bool *crlf)
{
	size_t n = 0;
	int c, next;

	while ((c = getc_unlocked(in)) != EOF && c != '\n' && c != '\r')
		if (!put(line, size, n++, c))
			return -1;
	if (!put(line, size, n, '\0') || (c == EOF && !n))
		return -1;
	next = c == EOF ? EOF : getc_unlocked(in);
	if (next != EOF && (next == c || (next != '\n' && next != '\r')))
		ungetc(next, in);
	if (crlf)
		*crlf = c == '\r' && next == '\n';
	return (ssize_t)n;
}
