// SPDX-License-Identifier: BSD-2-Clause
/* Reading a dump's bytes within their bounds, and building a listing. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "listing_priv.h"

uint8_t cursor_byte(struct dump_cursor *c)
{
	if (c->at == c->end)
		c->bad = true;
	return c->bad ? 0 : *c->at++;
}

uint32_t cursor_word(struct dump_cursor *c)
{
	const uint8_t *at = cursor_skip(c, 1, sizeof(uint32_t));
	uint32_t word = 0;

	if (at)
		memcpy(&word, at, sizeof(word));
	return word;
}

const uint8_t *cursor_skip(struct dump_cursor *c, uint64_t n, uint64_t size)
{
	const uint8_t *at = c->at;

	if (c->bad || n > (uint64_t)(c->end - c->at) / size) {
		c->bad = true;
		return NULL;
	}
	c->at += n * size;
	return at;
}

static int compare_lines(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Collects the lines of instructions that are reached, each once. */
static int collect_lines(const struct listing_code *code, struct listing_function *f)
{
	__free bool *reached = calloc(code->n + 1, sizeof(*reached));
	__free uint32_t *stack = calloc(code->n + 1, sizeof(*stack));
	__free uint32_t *lines = calloc(code->n + 1, sizeof(*lines));
	size_t n = 0;

	if (!reached || !stack || !lines)
		return -ENOMEM;
	listing_reach(code, reached, stack);
	for (size_t i = code->skips_first; i < code->n; i++)
		if (reached[i] && code->lines[i] && code->lines[i] <= INT32_MAX)
			lines[n++] = code->lines[i];
	qsort(lines, n, sizeof(*lines), compare_lines);
	for (size_t i = 0; i < n; i++)
		if (!f->nlines || lines[f->nlines - 1] != lines[i])
			lines[f->nlines++] = lines[i];
	f->lines = TAKE_PTR(lines);
	return 0;
}

int listing_add(struct listing *listing, const struct listing_function *like,
		const struct listing_code *code)
{
	struct listing_function f = *like;
	int ret;

	if (listing->n == LISTING_FUNCTIONS_MAX)
		return -EBADMSG;
	ret = array_grow(&listing->functions, listing->n, sizeof(f));
	if (!ret)
		ret = collect_lines(code, &f);
	if (!ret)
		listing->functions[listing->n++] = f;
	return ret;
}
