// SPDX-License-Identifier: BSD-2-Clause
/*
 * Parses the option letters as jit/p.lua (prof_start) does. Three passes over the string take out
 * the numbers: i, then m, then the depth. The rest is a set of letters; their order counts only in
 * the two calls of in_order().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "jitp_options.h"

#define DEFAULT_INTERVAL_MS 10
#define DEFAULT_MIN 3
#define RAW_DEPTH (-100)
#define KNOWN "fFlspvVzraAG"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads digits at *p and moves on; saturates. */
static int32_t number(const char **p)
{
	int64_t n = 0;

	for (; is_digit(**p); (*p)++) {
		n = n * 10 + (**p - '0');
		if (n > INT32_MAX)
			n = INT32_MAX;
	}
	return (int32_t)n;
}

/* mode:gsub("i%d*", "") */
static void take_interval(char *mode, int32_t *interval)
{
	const char *p = mode;
	char *to = mode;

	while (*p) {
		if (*p != 'i') {
			*to++ = *p++;
			continue;
		}
		p++;
		*interval = number(&p);
		if (*interval <= 0)
			*interval = 1;
	}
	*to = '\0';
}

/* mode:gsub("m(%d+)", "") */
static void take_min(char *mode, int32_t *min)
{
	const char *p = mode;
	char *to = mode;

	while (*p) {
		if (*p != 'm' || !is_digit(p[1])) {
			*to++ = *p++;
			continue;
		}
		p++;
		*min = number(&p);
	}
	*to = '\0';
}

/* mode:gsub("%-?%d+", "") */
static void take_depth(char *mode, int32_t *depth)
{
	const char *p = mode;
	char *to = mode;

	while (*p) {
		bool minus = *p == '-' && is_digit(p[1]);

		if (!minus && !is_digit(*p)) {
			*to++ = *p++;
			continue;
		}
		p += minus;
		*depth = number(&p);
		if (minus)
			*depth = -*depth;
	}
	*to = '\0';
}

static bool has(const char *mode, char letter)
{
	return strchr(mode, letter) != NULL;
}

/* mode:find("[first].*[then]") */
static bool in_order(const char *mode, const char *first, const char *then)
{
	const char *p = strpbrk(mode, first);

	return p && strpbrk(p + 1, then);
}

static char scope_of(const char *mode, bool states)
{
	if (has(mode, 'l'))
		return 'l';
	if (has(mode, 'f'))
		return 'f';
	if (has(mode, 'F'))
		return 'F';
	return states ? '\0' : 'f';
}

static void set_split(const char *mode, char *scope, struct jitp_options *o)
{
	if (has(mode, 's')) {
		o->split = JITP_CALLER;
		if (o->depth == -1 || has(mode, '-'))
			o->depth = -2;
		else if (o->depth == 1)
			o->depth = 2;
	} else if (in_order(mode, "fF", "l")) {
		*scope = 'l';
		o->split = JITP_LINE;
	} else if (!*scope || in_order(mode, "zvV", "lfF")) {
		o->split = JITP_STATE_FIRST;
	} else {
		o->split = JITP_ONE_LEVEL;
	}
}

static void set_view(const char *mode, char scope, struct jitp_options *o)
{
	o->path = has(mode, 'p');
	if (has(mode, 'A') || has(mode, 'a')) {
		o->annotate = has(mode, 'A') ? JITP_WHOLE_FILES : JITP_EXCERPTS;
		o->stack = 'l';
		o->path = true;
		o->split = JITP_ONE_LEVEL;
		o->depth = 1;
	} else if (has(mode, 'G') && scope) {
		o->stack = scope;
		o->depth = RAW_DEPTH;
		o->raw = JITP_STACKS;
		o->min = 0;
	} else if (scope) {
		o->stack = scope;
		if (o->split == JITP_LINE && has(mode, 'f'))
			o->stack = 'f';
		else if (has(mode, 'F'))
			o->stack = 'F';
	}
	o->shows_nothing = o->split == JITP_CALLER && !o->stack;
}

static void collect_unknown(const char *mode, struct jitp_options *o)
{
	bool minus = has(mode, 's'); /* without digits it reverses the split */
	size_t n = 0;

	for (; *mode && n < sizeof(o->unknown) - 1; mode++) {
		char c = *mode > ' ' && *mode <= '~' ? *mode : '?';

		if (has(KNOWN, *mode) || (*mode == '-' && minus) || memchr(o->unknown, c, n))
			continue;
		o->unknown[n++] = c;
	}
}

int jitp_options(const char *text, struct jitp_options *out, struct error *err)
{
	__free char *mode = strdup(text ? text : "f");
	struct jitp_options o = {
		.depth = 1, .min = DEFAULT_MIN, .interval_ms = DEFAULT_INTERVAL_MS};
	char scope;

	if (!mode)
		return error_set(err, -ENOMEM, "-jp: out of memory");
	take_interval(mode, &o.interval_ms);
	take_min(mode, &o.min);
	take_depth(mode, &o.depth);
	o.zones = has(mode, 'z');
	o.causes = has(mode, 'V');
	o.states = (o.causes || has(mode, 'v')) && !o.zones;
	o.raw = has(mode, 'r') ? JITP_COUNTS : JITP_PERCENT;
	scope = scope_of(mode, o.states || o.zones);
	set_split(mode, &scope, &o);
	set_view(mode, scope, &o);
	collect_unknown(mode, &o);
	*out = o;
	return 0;
}
