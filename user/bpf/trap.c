// SPDX-License-Identifier: BSD-2-Clause
#include "trap.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "count.skel.h"
#include "load_error.h"
#include "loader.h"
#include "uprobes.h"

/* A function whose first instruction the kernel emulates, as most that are probed. */
void trap_probed(void);
__asm__(".text\n"
	".globl trap_probed\n"
	".type trap_probed, %function\n"
	"trap_probed:\n"
	"	nop\n"
	"	ret\n"
	".size trap_probed, . - trap_probed\n");

struct own_offset {
	uint64_t addr, offset; /* 0: not found */
};

/* The executable comes first. */
static int find_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct own_offset *own = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t at = own->addr - info->dlpi_addr - p->p_vaddr;

		if (p->p_type == PT_LOAD && at < p->p_filesz)
			own->offset = at + p->p_offset;
	}
	return 1;
}

#define TRAP_BATCH 32
#define TRAP_BATCHES 256
#define TRAP_NS 10000000 /* that the measurement takes at most, but for its last batch */

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Returns the median of the batches' times for one call: others may use the CPU meanwhile. */
static double time_calls(void)
{
	uint64_t began = clock_ns(CLOCK_MONOTONIC), now = began, before;
	double took[TRAP_BATCHES];
	size_t n = 0;
	int i;

	while (n < TRAP_BATCHES && now - began < TRAP_NS) {
		before = now;
		for (i = 0; i < TRAP_BATCH; i++)
			trap_probed();
		now = clock_ns(CLOCK_MONOTONIC);
		took[n++] = (double)(now - before) / TRAP_BATCH;
	}
	qsort(took, n, sizeof(*took), by_time);
	return took[n / 2];
}

static int load_nothing(bool multi, struct count_bpf **out)
{
	struct count_bpf *skel = count_bpf__open();
	struct bpf_program *program;
	struct bpf_map *map;
	int r;

	if (!skel)
		return -errno;
	bpf_object__for_each_map(
		map, skel->obj) if (!bpf_map__is_internal(map)) /* without these libbpf fails */
		bpf_map__set_autocreate(map, false);
	bpf_object__for_each_program (program, skel->obj)
		bpf_program__set_autoload(program, program == skel->progs.luabpf_count_nothing);
	if (multi)
		uprobes_make_multi(skel->progs.luabpf_count_nothing);
	r = count_bpf__load(skel);
	if (r)
		count_bpf__destroy(skel);
	else
		*out = skel;
	return r;
}

static void *time_thread(void *ns)
{
	*(double *)ns = time_calls();
	return NULL;
}

/*
 * Times hits in another thread. -ENODATA: they do not reach the program, as in kernels before 6.10 that take a link's
 * process for its first thread.
 */
static int time_hits(struct count_bpf *skel, double *ns)
{
	pthread_t thread;
	int r = -pthread_create(&thread, NULL, time_thread, ns);

	if (r)
		return r;
	pthread_join(thread, NULL);
	return *(volatile __u64 *)&skel->bss->call_hits ? 0 : -ENODATA;
}

static int try_kind(bool multi, uint64_t offset, int fd, struct trap *out)
{
	const uint64_t cookie = 0;
	struct uprobes_options o = {.multi = multi, .pid = getpid(), .fd = fd};
	struct uprobes *uprobes = NULL;
	struct count_bpf *skel = NULL;
	double ns = 0;
	int r = load_nothing(multi, &skel);

	if (r)
		return r;
	o.program = skel->progs.luabpf_count_nothing;
	r = uprobes_attach(&o, &offset, &cookie, 1, &uprobes);
	if (!r)
		r = time_hits(skel, &ns);
	uprobes_free(&uprobes);
	count_bpf__destroy(skel);
	if (!r)
		*out = (struct trap){.ns = ns, .multi = multi};
	return r;
}

int trap_error(int r, struct error *err)
{
	if (r == -EPERM || r == -EACCES)
		return load_error_privilege(r, "attaching a uprobe", err);
	error_set(err, r, "uprobes: %s", strerror(-r));
	return error_remedy(err, r, "count -p needs a kernel built with CONFIG_UPROBE_EVENTS=y");
}

int trap_measure(struct trap *out, struct error *err)
{
	struct own_offset own = {.addr = (uint64_t)trap_probed};
	int fd __close = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), r;

	if (fd < 0)
		return error_set(err, -errno, "/proc/self/exe: %s", strerror(errno));
	dl_iterate_phdr(find_offset, &own);
	loader_be_silent();
	r = try_kind(true, own.offset, fd, out);
	if (r)
		r = try_kind(false, own.offset, fd, out);
	return r ? trap_error(r, err) : 0;
}
