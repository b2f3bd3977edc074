// SPDX-License-Identifier: BSD-2-Clause
#include "source_open.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Returns the process if its files are held, live or ended; else NULL. */
static struct process *find(const struct processes *ps, pid_t pid)
{
	struct process *p = processes_find(ps, pid);

	if (!p)
		HASH_FIND_INT(ps->ended, &pid, p);
	return p && p->sources.held ? p : NULL;
}

void sources_forked(const struct processes *ps, pid_t pid)
{
	struct process *p = find(ps, pid);

	if (!p)
		return;
	sources_drop(&p->sources);
	p->sources.ended_early = false;
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

static int open_for_all(struct processes *ps, const char *path, FILE **out)
{
	int err = ps->files_of_all ? 0 : target_source_of_all(&ps->files_of_all);

	return err ? err : target_source_open(ps->files_of_all, path, out);
}

/* True if all of a table have the same rights as *one, which the first sets. */
static bool all_same(const struct process *first, struct target_source **one)
{
	for (const struct process *p = first; p; p = p->hh.next) {
		struct target_source *files = p->sources.files;

		if (!p->sources.held || (!files && p->sources.ended_early))
			continue;
		if (!files || (*one && !target_source_same(*one, files)))
			return false;
		*one = files;
	}
	return true;
}

/*
 * Opens for a process that ended before its rights were read. Its parent is in the table: if all
 * there have the same rights, the child had them, too. Root's children may have dropped theirs.
 */
static int open_of_others(struct processes *ps, const char *path, FILE **out)
{
	struct target_source *one = NULL;

	if (!all_same(ps->all, &one) || !all_same(ps->ended, &one) || !one ||
	    (!geteuid() && target_source_is_roots(one)))
		return open_for_all(ps, path, out);
	return target_source_open(one, path, out);
}

static int open_of(struct processes *ps, const struct process *p, const char *path, FILE **out)
{
	if (!p || p->sources.ended_early)
		return open_of_others(ps, path, out);
	return p->sources.files ? target_source_open(p->sources.files, path, out)
				: open_for_all(ps, path, out);
}

static void forget_tries(struct process *first)
{
	for (struct process *p = first; p; p = p->hh.next)
		p->sources.tried = false;
}

/* A process, and a file system that does not answer, is asked once. */
int sources_open(struct processes *ps, const struct prof *prof, const char *path, FILE **out)
{
	bool others = false;
	int err = -ENOENT;

	forget_tries(ps->all);
	forget_tries(ps->ended);
	for (size_t i = 0; i < ps->ended_sources.n; i++)
		ps->ended_sources.all[i].tried = false;
	for (size_t i = 0; i < prof_nrows(prof) && err && err != -ETIMEDOUT; i++) {
		struct prof_row row;
		struct process *p;
		bool *tried;

		prof_row(prof, i, &row);
		if (!names(prof, &row, path))
			continue;
		p = find(ps, (pid_t)row.labels.pid);
		tried = !p		   ? &others
			: p->sources.ended ? &p->sources.ended->tried
					   : &p->sources.tried;
		if (!*tried)
			err = open_of(ps, p, path, out);
		*tried = true;
	}
	return err;
}
