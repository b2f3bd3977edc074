// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd_source.h"

static struct process_source *find(const struct process_sources *s, pid_t pid)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->all[i].pid == pid)
			return &s->all[i];
	return NULL;
}

int process_sources_add(struct process_sources *s, pid_t pid)
{
	__cleanup(target_source_free) struct target_source *files = NULL;
	struct process_source *old = find(s, pid), *p;
	int err = target_source_new(pid, &files);

	if (err)
		return err;
	if (old) { /* it has called exec, or another has its number now */
		target_source_free(&old->files);
		old->files = TAKE_PTR(files);
		return 0;
	}
	p = realloc(s->all, (s->n + 1) * sizeof(*p));
	if (!p)
		return -ENOMEM;
	s->all = p;
	p[s->n++] = (struct process_source){.pid = pid, .files = TAKE_PTR(files)};
	return 0;
}

void process_sources_free(struct process_sources *s)
{
	for (size_t i = 0; i < s->n; i++)
		target_source_free(&s->all[i].files);
	free(s->all);
	target_source_free(&s->others);
}

static bool names(const struct prof *prof, const struct prof_row *row, const char *path)
{
	for (size_t i = 0; i < row->nframes; i++) {
		const struct prof_frame *frame = prof_frame(prof, row->frames[i]);

		if (frame->kind == PROF_LUA && frame->chunk && strchr("@=", *frame->chunk) &&
		    *frame->chunk && !strcmp(frame->chunk + 1, path))
			return true;
	}
	return false;
}

/*
 * Of a process that was gone too soon the rights are not known. It was a child of the first one; of
 * root's it may have been anybody's.
 */
static int open_of_others(struct process_sources *s, const char *path, FILE **out)
{
	const struct prof_meta *meta = prof_meta_of(s->prof);
	int err = 0;

	if (geteuid() || (meta->has_uid && meta->uid))
		return s->n ? target_source_open(s->all[0].files, path, out) : -ESRCH;
	if (!s->others)
		err = target_source_of_all(&s->others);
	return err ? err : target_source_open(s->others, path, out);
}

int process_sources_open(void *ctx, const char *path, FILE **out)
{
	struct process_source unknown = {0}, *one;
	struct process_sources *s = ctx;
	int err = -ENOENT;

	for (size_t i = 0; i < s->n; i++)
		s->all[i].tried = false;
	for (size_t i = 0; i < prof_nrows(s->prof) && err; i++) {
		struct prof_row row;

		prof_row(s->prof, i, &row);
		one = find(s, (pid_t)row.labels.pid) ?: &unknown;
		if (one->tried || !names(s->prof, &row, path))
			continue;
		one->tried = true;
		err = one->files ? target_source_open(one->files, path, out)
				 : open_of_others(s, path, out);
	}
	return err;
}
