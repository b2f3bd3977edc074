// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <stdio.h>

#include "scene.h"

void scene_want(struct scene *s, uint8_t kind, uint8_t flags, uint64_t ptr, uint32_t pc)
{
	s->want[s->nwant].word = LB_FRAME_WORD(kind, flags, ptr);
	s->want[s->nwant++].pc = pc;
}

static bool same_stack(const struct scene *s, const struct lb_stack *got)
{
	uint32_t i;

	if (got->n != s->nwant || got->flags != s->flags)
		return false;
	for (i = 0; i < got->n; i++)
		if (got->frame[i].word != s->want[i].word || got->frame[i].pc != s->want[i].pc)
			return false;
	return true;
}

static bool detail_fits(const struct scene *s, const struct lb_walk *w)
{
	return !s->state || w->detail == (s->state == 'G' ? SCENE_GCSTATE + 1 : s->detail);
}

bool scene_matches(const struct scene *s, const struct lb_walk *w)
{
	if (s->lost)
		return w->end != LB_STATUS_RESOLVED && w->end < LB_STATUS__MAX;
	if (w->end != s->end)
		return false;
	if (s->end != LB_STATUS_RESOLVED)
		return true;
	return (!s->state || (char)w->state == s->state) && detail_fits(s, w) &&
	       same_stack(s, &w->rec.stack);
}

static size_t print_frames(char *to, size_t size, const struct lb_frame *f, uint32_t n)
{
	size_t at = 0;
	uint32_t i;

	for (i = 0; i < n && i < 12 && at < size; i++)
		at += (size_t)snprintf(to + at, size - at, " %016" PRIx64 ":%d",
				       (uint64_t)f[i].word, (int)f[i].pc);
	return at < size ? at : size - 1;
}

size_t scene_tell(const struct scene *s, const struct lb_walk *w, char *text, size_t size)
{
	static const char *const ends[] = {
#define LB_STATUS(id, class, key, sentence) key,
#include <unwind/status.def>
#undef LB_STATUS
	};
	const struct lb_stack *got = &w->rec.stack;
	size_t at;

	at = (size_t)snprintf(
		text, size, "%s %c flags %u, want %s %c flags %u\n  got:",
		w->end < LB_STATUS__MAX ? ends[w->end] : "?", w->state ? w->state : '-', got->flags,
		s->lost ? "any loss" : ends[s->end], s->state ? s->state : '-', s->flags);
	at += print_frames(text + at, size - at, got->frame, got->n);
	at += (size_t)snprintf(text + at, size - at, "\n  want:");
	return at + print_frames(text + at, size - at, s->want, s->nwant);
}

const char *scene_bad_end(const struct lb_walk *w)
{
	if (w->end >= LB_STATUS__MAX)
		return "no end reason";
	return w->end == LB_STATUS_LOOP ? "did not end" : NULL;
}

bool scene_is_true(const struct lb_frame *got, const struct lb_frame *intact)
{
	return got->word == intact->word && (got->pc == intact->pc || got->pc == LB_NO_PC);
}

const void *scene_row(const void *const *tables, size_t row_size, size_t i)
{
	const char *row;

	for (; *tables; tables++)
		for (row = *tables; *(const char *const *)row; row += row_size)
			if (!i--)
				return row;
	return NULL;
}

size_t *scene_shares(void)
{
	static size_t shares[SCENE_SHARES];
	size_t i;

	for (i = 0; i < SCENE_SHARES; i++)
		shares[i] = i;
	return shares;
}
