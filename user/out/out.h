/* SPDX-License-Identifier: BSD-2-Clause */
/* The file formats of -f and -o: a table of names and of functions that write a profile. */
#ifndef OUT_OUT_H
#define OUT_OUT_H

#include <stdbool.h>
#include <stdio.h>

#include "prof/prof.h"

struct out_format {
	const char *name;				  /* of -f */
	const char *what;				  /* its description in the help */
	const char *suffixes;				  /* of -o, separated by spaces */
	bool binary;					  /* not for a terminal */
	bool lines;					  /* it names them */
	int (*write)(const struct prof *prof, FILE *out); /* 0 or -errno */
};

/* All formats; ends with one whose name is NULL. */
extern const struct out_format out_formats[];

/* Both return NULL if there is none. */
const struct out_format *out_format_named(const char *name);
const struct out_format *out_format_of_file(const char *path);

#endif
