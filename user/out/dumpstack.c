// SPDX-License-Identifier: BSD-2-Clause
/* LuaJIT's lj_debug_dumpstack(): the format is repeated for each level. */
#include "dumpstack.h"

#include <string.h>

#include "folded.h"
#include "prof/name.h"

/* Texts that stand in place of a frame. */
struct dump_level {
	const char *word;
	uint32_t frame;
};

struct stack_dump {
	const struct dumpstack *how;
	struct text *out;
	unsigned int flags;
	size_t zapped; /* the length up to which Z keeps the text; 0: there is no Z */
};

static int put_name(const struct stack_dump *d, const struct dump_level *level, char what)
{
	if (!level->word)
		return d->how->put(d->how->arg, d->out, level->frame, what, d->flags);
	text_puts(d->out, level->word);
	return 0;
}

static int put_level(struct stack_dump *d, const struct dump_level *level)
{
	int err = 0;

	for (const char *p = d->how->fmt; *p && !err; p++) {
		switch (*p) {
		case 'p':
			d->flags |= NAME_PATH;
			break;
		case 'f':
		case 'F':
		case 'l':
			err = put_name(d, level, *p);
			break;
		case 'Z':
			d->zapped = d->out->len;
			break;
		default:
			text_putc(d->out, *p);
		}
	}
	return err;
}

static int put_word(struct stack_dump *d, const char *word)
{
	const struct dump_level level = {.word = word};

	return put_level(d, &level);
}

/* Returns the index of the topmost Lua frame; 0 if the stack has no Lua frame. */
static size_t topmost_lua(const struct prof *prof, const struct prof_row *row)
{
	for (size_t i = 0; i < row->nframes; i++)
		if (prof_frame(prof, row->frames[i])->kind == PROF_LUA)
			return i;
	return 0;
}

/* The levels of n frames. */
static int put_levels(struct stack_dump *d, const uint32_t *frames, size_t n)
{
	const struct dumpstack *how = d->how;
	size_t wanted = how->depth < 0 ? -(int64_t)how->depth : how->depth;
	size_t levels = wanted < n ? wanted : n;
	int err = 0;

	if (how->folded && !n)
		return put_word(d, FOLDED_NO_FRAME);
	if (how->folded && how->depth < 0 && wanted < n)
		err = put_word(d, NAME_CUT);
	for (size_t i = 0; i < levels && !err; i++) {
		const struct dump_level level = {
			.frame = frames[how->depth < 0 ? levels - 1 - i : i]};

		if (d->out->len > how->most)
			return put_word(d, NAME_OTHER);
		err = put_level(d, &level);
	}
	return err;
}

int dumpstack(const struct dumpstack *how, const struct prof *prof, const struct prof_row *row,
	      struct text *out)
{
	struct stack_dump d = {.how = how, .out = out};
	size_t first = strcmp(how->fmt, "pl") != 0 ? 0 : topmost_lua(prof, row);
	int err;

	if (!strcmp(how->fmt, "l"))
		d.flags = NAME_NUMBER;
	err = put_levels(&d, row->frames + first, row->nframes - first);
	if (d.zapped) {
		out->len = d.zapped;
		out->data[out->len] = '\0';
	}
	return err;
}
