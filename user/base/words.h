/* SPDX-License-Identifier: BSD-2-Clause */
/* A list of strings, in the order in which they were added. */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

#include <stddef.h>

struct words {
	char **word;
	size_t n;
};

int words_add(struct words *words, const char *word); /* a copy; 0 or -ENOMEM */
void words_free(struct words *words);

#endif
