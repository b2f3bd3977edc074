// SPDX-License-Identifier: BSD-2-Clause
#include "frame_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "folded_name.h"

const struct frame_name *frame_names_add(struct frame_names *names, const char *text, size_t len)
{
	struct frame_name *name;
	unsigned int hash;

	HASH_VALUE(text, len, hash);
	HASH_FIND_BYHASHVALUE(hh, names->table, text, len, hash, name);
	if (name)
		return name;
	name = malloc(sizeof(*name) + len + 1);
	if (!name)
		return NULL;
	name->number = (uint32_t)HASH_COUNT(names->table);
	name->len = len;
	memcpy(name->text, text, len);
	name->text[len] = '\0';
	if (array_grow(&names->all, name->number, sizeof(*names->all))) {
		free(name);
		return NULL;
	}
	HASH_ADD_BYHASHVALUE(hh, names->table, text, len, hash, name);
	if (!name->hh.tbl) {
		free(name);
		return NULL;
	}
	names->all[name->number] = name;
	return name;
}

static struct text *put_frame(struct frame_names *names, uint32_t frame)
{
	struct text *raw = &names->raw, *text = &names->text;

	text_clear(raw);
	text_clear(text);
	if (names->what == FRAME_UNIQUE)
		functions_put_unique(names->functions, raw, functions_of(names->functions, frame));
	else
		functions_put_jitp(names->functions, raw, frame, names->what, names->flags);
	if (!names->folded)
		return raw;
	folded_put_frame(text, raw);
	return text_err(raw) ? raw : text;
}

static struct frame_number *make_name(struct frame_names *names, uint32_t frame)
{
	const struct text *text = put_frame(names, frame);
	const struct frame_name *name =
		text_err(text) ? NULL : frame_names_add(names, text_str(text), text->len);

	if (!name)
		return NULL;
	names->of[frame] =
		(struct frame_number){.number = name->number + 1, .len = (uint32_t)name->len};
	return &names->of[frame];
}

const struct frame_number *frame_names_number(struct frame_names *names, uint32_t frame)
{
	if (!names->of)
		names->of = calloc(prof_nframes(names->prof) + 1, sizeof(*names->of));
	if (!names->of)
		return NULL;
	return names->of[frame].number ? &names->of[frame] : make_name(names, frame);
}

const struct frame_name *frame_names_get(struct frame_names *names, uint32_t frame)
{
	const struct frame_number *number = frame_names_number(names, frame);

	return number ? names->all[number->number - 1] : NULL;
}

void frame_names_free(struct frame_names *names)
{
	size_t n = HASH_COUNT(names->table);

	HASH_CLEAR(hh, names->table);
	for (size_t i = 0; i < n; i++)
		free(names->all[i]);
	free(names->all);
	free(names->of);
	text_free(&names->raw);
	text_free(&names->text);
}
