// SPDX-License-Identifier: BSD-2-Clause
#include "origin.h"

#include <string.h>

#include "proc/cgroup.h"
#include "proc/process.h"

/* Bytes of a path: its readable form is at most four times as long, and a label then. */
#define PATH_SHOWN 2000

void origin_read(struct image_origin *o, pid_t pid)
{
	struct cgroup cgroup;
	char exe[PATH_SHOWN];

	process_exe(pid, exe, sizeof(exe));
	text_put_utf8(&o->exe, exe, strlen(exe));
	cgroup_of(pid, &cgroup);
	text_put_utf8(&o->cgroup, cgroup.path, strlen(cgroup.path));
	cgroup_put(&cgroup, &o->container);
}

void origin_free(struct image_origin *o)
{
	text_free(&o->exe);
	text_free(&o->cgroup);
	text_free(&o->container);
}

static void take(struct text *own, const struct text *parents)
{
	text_clear(own);
	text_puts(own, text_str(parents));
}

/* Its own executable may be that of an exec since; its own cgroup that into which it was moved. */
void origin_fork(struct image_origin *o, const struct image_origin *parent)
{
	take(&o->exe, &parent->exe);
	if (!o->cgroup.len) {
		take(&o->cgroup, &parent->cgroup);
		take(&o->container, &parent->container);
	}
	origin_forget(o);
}

void origin_forget(struct image_origin *o)
{
	memset(o->ids, 0, sizeof(o->ids));
}

int origin_id(struct image_origin *o, struct prof *prof, uint32_t build, const char *vm,
	      uint32_t *id)
{
	const struct prof_origin all = {
		.exe = text_str(&o->exe),
		.cgroup = text_str(&o->cgroup),
		.container = text_str(&o->container),
		.vm = vm,
	};
	int r = o->ids[build] ? 0 : prof_origin_id(prof, &all, &o->ids[build]);

	if (!r)
		*id = o->ids[build];
	return r;
}
