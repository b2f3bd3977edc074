// SPDX-License-Identifier: BSD-2-Clause
#include "words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

int words_add(struct words *w, const char *word)
{
	if (array_grow(&w->word, w->n, sizeof(*w->word)))
		return -ENOMEM;
	w->word[w->n] = strdup(word);
	if (!w->word[w->n])
		return -ENOMEM;
	w->n++;
	return 0;
}

void words_free(struct words *w)
{
	while (w->n)
		free(w->word[--w->n]);
	free(w->word);
	w->word = NULL;
}
