// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a uprobe costs by itself: attaches an empty program (luabpf_count_nothing of OBJECT) to a function of its own, and
 * prints the ns of a call of it, the median of many batches.
 *
 * usage: trap OBJECT
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#define BATCH 1000
#define BATCHES 101

void probed(void);
/* Its first instruction is one that the kernel emulates, as most that luabpf probes. */
__asm__(".text\n.globl probed\n.type probed, %function\nprobed:\n	nop\n	ret\n.size probed, "
	". - probed\n");

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double measure(void)
{
	double took[BATCHES], before;
	int i, k;

	for (i = 0; i < BATCHES; i++) {
		before = now();
		for (k = 0; k < BATCH; k++)
			probed();
		took[i] = (now() - before) / BATCH;
	}
	qsort(took, BATCHES, sizeof(*took), by_value);
	return took[BATCHES / 2];
}

static struct bpf_program *load(const char *path)
{
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	struct bpf_program *prog, *nothing;
	struct bpf_map *map;

	if (!obj)
		return NULL;
	nothing = bpf_object__find_program_by_name(obj, "luabpf_count_nothing");
	bpf_object__for_each_program (prog, obj)
		bpf_program__set_autoload(prog, prog == nothing);
	bpf_object__for_each_map(map, obj) if (!bpf_map__is_internal(map))
		bpf_map__set_autocreate(map, false);
	return nothing && !bpf_object__load(obj) ? nothing : NULL;
}

int main(int argc, char **argv)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .func_name = "probed");
	struct bpf_program *nothing = argc == 2 ? load(argv[1]) : NULL;

	if (!nothing ||
	    !bpf_program__attach_uprobe_opts(nothing, getpid(), "/proc/self/exe", 0, &opts)) {
		fprintf(stderr, "trap: the probe could not be attached\n");
		return 1;
	}
	printf("%.1f\n", measure());
	return 0;
}
