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

static struct process_source *add(struct process_sources *s, pid_t pid)
{
	struct process_source *p = realloc(s->all, (s->n + 1) * sizeof(*p));

	if (!p)
		return NULL;
	s->all = p;
	p[s->n] = (struct process_source){.pid = pid};
	return &p[s->n++];
}

int process_sources_add(struct process_sources *s, pid_t pid, uint64_t image)
{
	__cleanup(target_source_free) struct target_source *files = NULL;
	struct process_source *known = find(s, pid), *p = known ?: add(s, pid);
	int err;

	if (known && !known->files)
		return -ESTALE;
	err = target_source_new(pid, image, &files);
	if (!p)
		return -ENOMEM;
	p->gone = err == -ESRCH && !known;
	/* it has called exec, or another has its number now; and its samples are under one number */
	if (p->files && !err)
		target_source_join(files, p->files);
	target_source_free(&p->files);
	p->files = TAKE_PTR(files);
	return err;
}

void process_sources_look(struct process_sources *s, pid_t pid)
{
	struct process_source *p = find(s, pid);

	if (p && p->files)
		target_source_look(p->files);
}

void process_sources_forked(struct process_sources *s, pid_t pid)
{
	struct process_source *p = find(s, pid);

	if (!p)
		return;
	target_source_free(&p->files);
	p->gone = false;
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

static int open_for_all(struct process_sources *s, const char *path, FILE **out)
{
	int err = s->others ? 0 : target_source_of_all(&s->others);

	return err ? err : target_source_open(s->others, path, out);
}

/*
 * Of a process that was gone too soon the rights are not known. It was a child of one of those that
 * are: it had that one's rights, where all have the same. Children of root's may be anybody's.
 */
static int open_of_others(struct process_sources *s, const char *path, FILE **out)
{
	struct target_source *one = NULL;

	for (size_t i = 0; i < s->n; i++) {
		struct target_source *files = s->all[i].files;

		if (!files && s->all[i].gone)
			continue;
		if (!files || (one && !target_source_same(one, files)))
			return open_for_all(s, path, out);
		one = files;
	}
	if (!one || (!geteuid() && target_source_is_roots(one)))
		return open_for_all(s, path, out);
	return target_source_open(one, path, out);
}

static int open_of(struct process_sources *s, pid_t pid, const char *path, FILE **out)
{
	struct process_source *p = find(s, pid);

	if (!p || p->gone)
		return open_of_others(s, path, out);
	return p->files ? target_source_open(p->files, path, out) : open_for_all(s, path, out);
}

/* True if this process was asked for before, in this call. */
static bool was_tried(struct process_sources *s, pid_t pid, bool *others)
{
	struct process_source *p = find(s, pid);
	bool *tried = p ? &p->tried : others, was = *tried;

	*tried = true;
	return was;
}

/* A file system that does not answer is asked once. */
int process_sources_open(void *ctx, const char *path, FILE **out)
{
	struct process_sources *s = ctx;
	bool others = false;
	int err = -ENOENT;

	for (size_t i = 0; i < s->n; i++)
		s->all[i].tried = false;
	for (size_t i = 0; i < prof_nrows(s->prof) && err && err != -ETIMEDOUT; i++) {
		struct prof_row row;

		prof_row(s->prof, i, &row);
		if (names(s->prof, &row, path) && !was_tried(s, (pid_t)row.labels.pid, &others))
			err = open_of(s, (pid_t)row.labels.pid, path, out);
	}
	return err;
}
