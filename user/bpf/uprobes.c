// SPDX-License-Identifier: BSD-2-Clause
#include "uprobes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "base/cleanup.h"

struct uprobes {
	int multi; /* -1 */
	uint32_t n;
	struct bpf_link *link[]; /* of perf events */
};

/* include/uapi/linux/bpf.h: of Linux 6.6, which older headers and libbpf before 1.3 lack. */
#define UPROBE_MULTI 48 /* BPF_TRACE_UPROBE_MULTI of enum bpf_attach_type */
struct multi_attr {	/* the member link_create of union bpf_attr */
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, uprobe_flags, pid, pad;
};

void uprobes_make_multi(struct bpf_program *program)
{
	bpf_program__set_expected_attach_type(program, (enum bpf_attach_type)UPROBE_MULTI);
}

#define PATH_SIZE 32

static void put_path(int fd, char path[PATH_SIZE])
{
	snprintf(path, PATH_SIZE, "/proc/self/fd/%d", fd);
}

static int attach_multi(const struct uprobes_options *o, const uint64_t *offsets,
			const uint64_t *cookies, uint32_t n, int *link)
{
	char path[PATH_SIZE];
	struct multi_attr attr = {
		.prog_fd = (uint32_t)bpf_program__fd(o->program),
		.attach_type = UPROBE_MULTI,
		.path = (uint64_t)path,
		.offsets = (uint64_t)offsets,
		.cookies = (uint64_t)cookies,
		.cnt = n,
		.pid = (uint32_t)o->pid,
	};

	put_path(o->fd, path);
	*link = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	return *link < 0 ? -errno : 0;
}

static int attach_each(const struct uprobes_options *o, const uint64_t *offsets,
		       const uint64_t *cookies, uint32_t n, struct uprobes *u)
{
	char path[PATH_SIZE];

	put_path(o->fd, path);
	while (u->n < n) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = cookies[u->n]);

		u->link[u->n] = bpf_program__attach_uprobe_opts(o->program, o->pid, path,
								offsets[u->n], &opts);
		if (!u->link[u->n])
			return -errno;
		u->n++;
	}
	return 0;
}

int uprobes_attach(const struct uprobes_options *o, const uint64_t *offsets,
		   const uint64_t *cookies, uint32_t n, struct uprobes **out)
{
	struct uprobes *u __cleanup(uprobes_free) = calloc(1, sizeof(*u) + n * sizeof(u->link[0]));
	int r;

	if (!u)
		return -ENOMEM;
	u->multi = -1;
	r = o->multi ? attach_multi(o, offsets, cookies, n, &u->multi)
		     : attach_each(o, offsets, cookies, n, u);
	if (r)
		return r;
	*out = TAKE_PTR(u);
	return 0;
}

void uprobes_free(struct uprobes **uprobes)
{
	struct uprobes *u = *uprobes;

	if (!u)
		return;
	while (u->n)
		bpf_link__destroy(u->link[--u->n]);
	cleanup_fd(&u->multi);
	free(u);
	*uprobes = NULL;
}
