// SPDX-License-Identifier: BSD-2-Clause
#include "sources.h"

#include <errno.h>

#include "base/cleanup.h"

void sources_drop(struct sources *s)
{
	if (!s->ended)
		target_source_free(&s->files);
	s->files = NULL;
	s->ended = NULL;
}

int sources_hold(struct sources *s, pid_t pid, uint64_t image_id)
{
	__cleanup(target_source_free) struct target_source *files = NULL;
	bool known = s->held;
	int err;

	if (s->ended) /* another has its number: as sources_forked() */
		sources_drop(s);
	if (known && !s->files)
		return -ESTALE;
	s->held = true;
	err = target_source_new(pid, image_id, &files);
	s->ended_early = err == -ESRCH && !known;
	/* it has called exec, or another has its number now; and its samples are under one number */
	if (s->files && !err)
		target_source_join(files, s->files);
	target_source_free(&s->files);
	s->files = TAKE_PTR(files);
	return err;
}

void sources_look(struct sources *s)
{
	if (s->files && !s->ended)
		target_source_look(s->files);
}

static struct ended_source *ended_like(struct ended_sources *ended, struct target_source *files)
{
	for (size_t i = 0; i < ended->n; i++) {
		struct ended_source *e = &ended->all[i];

		if (target_source_same(e->files, files) &&
		    target_source_same_names(e->files, files))
			return e;
	}
	return NULL;
}

void sources_ended(struct ended_sources *ended, struct sources *s)
{
	struct ended_source *like;

	if (!s->files || s->ended)
		return;
	target_source_ended(s->files); /* looks once more, as long as /proc knows it */
	like = ended_like(ended, s->files);
	if (!like && ended->n < SOURCES_ENDED) {
		like = &ended->all[ended->n++];
		like->files = TAKE_PTR(s->files);
	}
	target_source_free(&s->files);
	s->ended = like;
	s->files = like ? like->files : NULL;
}

void ended_sources_free(struct ended_sources *ended)
{
	for (size_t i = 0; i < ended->n; i++)
		target_source_free(&ended->all[i].files);
	ended->n = 0;
}
