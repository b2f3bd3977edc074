// SPDX-License-Identifier: BSD-2-Clause
/*
 * jit/p.lua's prof_cb() (keys) and prof_top() (rows). Keys are raw bytes, so that distinct rows stay distinct; control characters are filtered when
 * keys are written.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "annotate.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dumpstack.h"
#include "folded.h"
#include "folded_name.h"
#include "frame_names.h"
#include "jitp.h"
#include "prof/function.h"
#include "prof/name.h"
#include "tally.h"

/* The keys of one row, reused for the next. */
struct keys {
	struct text stack, stack2, state, zone;
	struct frame_names names, lines;
	struct dumpstack first, second; /* of stack, stack2 */
	char fmt[8];
};

static void keys_free(struct keys *keys)
{
	text_free(&keys->stack);
	text_free(&keys->stack2);
	text_free(&keys->state);
	text_free(&keys->zone);
	frame_names_free(&keys->names);
	frame_names_free(&keys->lines);
}

/* The format that jit/p.lua passes to dumpstack(): "plF" and a separator. */
static void put_format(const struct jitp_options *o, char fmt[8])
{
	char *p = fmt;

	if (o->path || o->annotate)
		*p++ = 'p';
	*p++ = o->stack;
	if (o->annotate)
		*p = '\0';
	else if (o->raw == JITP_STACKS)
		strcpy(p, "Z;");
	else
		strcpy(p, o->depth >= 0 ? "Z < " : "Z > ");
}

static int put_frame(void *arg, struct text *out, uint32_t frame, char what, unsigned int flags)
{
	struct keys *keys = arg;
	const struct frame_name *name =
		frame_names_get(flags & NAME_NUMBER ? &keys->lines : &keys->names, frame);

	(void)what; /* as the options have it */
	if (!name)
		return -ENOMEM;
	text_put(out, name->text, name->len);
	return 0;
}

/* True if a folded stack can be split here into two valid folded stacks. */
static bool parts_folded(const char *key, const char *at)
{
	return at > key && !strchr("0123456789.;", at[-1]) && at[3] && at[3] != ';';
}

/* key:match("(.-) [<>] (.*)"): splits at the first separator, even inside a name. */
static bool split_key(struct keys *keys, bool folded)
{
	char *key = keys->stack.data;

	for (char *p = key ? strchr(key, ' ') : NULL; p; p = strchr(p + 1, ' ')) {
		if ((p[1] == '<' || p[1] == '>') && p[2] == ' ' &&
		    (!folded || parts_folded(key, p))) {
			text_puts(&keys->stack2, p + 3);
			*p = '\0';
			keys->stack.len = p - key;
			return true;
		}
	}
	return false;
}

/* "Compiled"; with causes "Compiled, loop, trace 3", or "Compiled, loop, trace 3, snapshot line". */
static void put_state_key(struct keys *keys, const struct prof_labels *labels, bool causes)
{
	const char *word = name_vmstate(labels->vmstate);

	if (word)
		text_puts(&keys->state, word);
	else if (labels->vmstate)
		text_putc(&keys->state, labels->vmstate);
	if (causes && labels->cause)
		text_printf(&keys->state, ", %s", name_cause(labels->cause));
	if (causes && labels->trace)
		text_printf(&keys->state, ", trace %" PRIu32, labels->trace);
	if (causes && labels->snapshot_line)
		text_puts(&keys->state, ", snapshot line");
}

static void put_zone_key(struct keys *keys, const char *zone, bool folded)
{
	struct text *name = folded ? &keys->zone : &keys->state;

	text_clear(&keys->zone);
	text_puts(name, zone ? zone : PROF_ZONE_NOT_RECORDED);
	if (folded)
		folded_put_frame(&keys->state, name);
}

/* Builds the keys of both levels; *k1 is NULL if the row is in no report. */
static int make_keys(struct keys *keys, const struct prof *prof, const struct prof_row *row,
		     const struct jitp_options *o, const char **k1, const char **k2)
{
	const char *stack = NULL, *stack2 = NULL, *state = NULL;
	bool second = false;
	int err = 0;

	text_clear(&keys->stack);
	text_clear(&keys->stack2);
	text_clear(&keys->state);
	if (o->states)
		put_state_key(keys, &row->labels, o->causes);
	if (o->zones)
		put_zone_key(keys, row->labels.zone, o->raw == JITP_STACKS);
	if (o->stack)
		err = dumpstack(&keys->first, prof, row, &keys->stack);
	if (o->stack && o->split == JITP_CALLER)
		second = split_key(keys, o->raw == JITP_STACKS);
	if (!err && o->stack && o->split == JITP_LINE) {
		err = dumpstack(&keys->second, prof, row, &keys->stack2);
		second = true;
	}
	if (err || text_err(&keys->stack) || text_err(&keys->stack2) || text_err(&keys->state) ||
	    text_err(&keys->zone))
		return -ENOMEM;
	if (o->states || o->zones)
		state = text_str(&keys->state);
	if (o->stack)
		stack = text_str(&keys->stack);
	if (second)
		stack2 = text_str(&keys->stack2);
	if (o->split == JITP_STATE_FIRST) {
		*k1 = state;
		*k2 = stack;
	} else {
		*k1 = stack;
		*k2 = stack2 ? stack2 : state;
	}
	return 0;
}

static void keys_begin(struct keys *keys, const struct prof *prof,
		       const struct functions *functions, const struct jitp_options *o)
{
	const struct frame_names names = {
		.prof = prof,
		.functions = functions,
		.what = o->stack,
		.flags = o->path ? NAME_PATH : 0,
		.folded = o->raw == JITP_STACKS,
	};

	keys->names = keys->lines = names;
	keys->lines.what = 'l'; /* jit/p.lua: without 'p' and without names of fast functions */
	keys->lines.flags = NAME_NUMBER;
	put_format(o, keys->fmt);
	keys->first = (struct dumpstack){
		.fmt = keys->fmt,
		.depth = o->depth,
		.folded = names.folded,
		.most = TALLY_MAX_KEY,
		.put = put_frame,
		.arg = keys,
	};
	keys->second = keys->first;
	keys->second.fmt = "l";
	keys->second.depth = 1;
}

static int count_rows(const struct prof *prof, const struct functions *functions,
		      const struct jitp_options *o, struct tallies *table)
{
	__cleanup(keys_free) struct keys keys = {};

	keys_begin(&keys, prof, functions, o);
	for (size_t i = 0; i < prof_nrows(prof); i++) {
		const char *k1 = NAME_OTHER, *k2 = NULL;
		struct prof_row row;
		int err = 0;

		prof_row(prof, i, &row);
		if (!tally_is_full(table))
			err = make_keys(&keys, prof, &row, o, &k1, &k2);
		if (!err && k1)
			err = tally_add(table, k1, k2, row.count);
		if (err)
			return err;
	}
	return 0;
}

static void put_row(const struct tally *t, int percent, const char *indent,
		    const struct jitp_options *o, struct text *line, FILE *out)
{
	text_clear(line);
	if (o->raw == JITP_PERCENT)
		text_printf(line, "%s%2d%%  ", indent, percent);
	else if (o->raw == JITP_COUNTS)
		text_printf(line, "%s%5" PRIu64 "  ", indent, t->count);
	text_put_clean(line, t->key, t->len);
	if (o->raw == JITP_STACKS)
		text_printf(line, " %" PRIu64, t->count);
	text_putc(line, '\n');
	if (line->data)
		fwrite(line->data, 1, line->len, out);
}

/*
 * `indent`: of the rows of `table`; "" in the first level. Recurses once, into the second level.
 */
static void put_top(const struct tally *table, uint64_t samples, const char *indent,
		    const struct jitp_options *o, struct text *line, FILE *out)
{
	const char *deeper = o->split == JITP_LINE || o->split == JITP_STATE_FIRST ? "  -- "
			     : o->depth < 0					   ? "  -> "
										   : "  <- ";

	for (const struct tally *t = table; t; t = t->next) {
		int percent = tally_percent(t->count, samples);

		if (percent < o->min)
			break;
		put_row(t, percent, indent, o, line, out);
		if (t->sub)
			put_top(t->sub, t->count, deeper, o, line, out);
	}
}

static int render(const struct prof *prof, const struct jitp_options *o,
		  const struct source *source, FILE *out)
{
	__cleanup(tally_free) struct tallies table = {0};
	struct functions *functions __cleanup(functions_free) = NULL;
	__text struct text line = {0};
	int err = functions_new(prof, &functions);

	if (!err)
		err = count_rows(prof, functions, o, &table);
	if (err)
		return err;
	if (o->annotate)
		return annotate_render(table.first, prof_samples(prof), o, source, out);
	err = tally_sort(&table);
	if (err)
		return err;
	put_top(table.first, prof_samples(prof), "", o, &line, out);
	return text_err(&line);
}

/* A raw dump of one level: its stacks are compared as the numbers of their names, not as text. */
static int render_stacks(const struct prof *prof, const struct jitp_options *o, FILE *out)
{
	const struct folded_names names = {
		.what = o->stack,
		.flags = o->path ? NAME_PATH : 0,
		.depth = (size_t)-o->depth,
		.min = o->min,
	};

	return folded_render(prof, &names, out);
}

static bool is_plain_dump(const struct jitp_options *o)
{
	return o->raw == JITP_STACKS && o->stack && !o->states && !o->zones &&
	       o->split == JITP_ONE_LEVEL && o->depth < 0;
}

int jitp_render(const struct prof *prof, const struct jitp_options *o, const struct source *source,
		FILE *out)
{
	int err = 0;

	errno = 0;
	if (prof_samples(prof) && is_plain_dump(o))
		err = render_stacks(prof, o, out);
	else if (prof_samples(prof))
		err = render(prof, o, source, out);
	else if (o->raw != JITP_STACKS)
		fputs("[No samples collected]\n", out);
	if (err)
		return err;
	if (fflush(out))
		return -errno;
	return ferror(out) ? -EIO : 0;
}
