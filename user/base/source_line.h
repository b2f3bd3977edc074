/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a source file by the lines that Lua counts: "\n", "\r", "\r\n" and "\n\r" end one. */
#ifndef BASE_SOURCE_LINE_H
#define BASE_SOURCE_LINE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * Reads the next line into *line, without what ends it; *size is what malloc() gave it. Returns its length, or -1: there is
 * none, or no memory. As getline(), the caller frees *line. *crlf: it ended in "\r\n"; may be NULL.
 */
ssize_t source_line(FILE *in, char **line, size_t *size, bool *crlf);

#endif
