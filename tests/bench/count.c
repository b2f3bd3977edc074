// SPDX-License-Identifier: BSD-2-Clause
/*
 * Attaches the counting program (bpf/count.bpf.c) to a process, or to all, in the very way that luabpf
 * attaches its own, and keeps it there until it is ended.
 *
 * usage: count OBJECT PID|all PERIOD_NS [stats]
 *
 * With "stats" the kernel counts the program's run time, as it does for `luabpf --stats`; bench.py
 * reads it from /proc/PID/fdinfo of either. Prints "attached" when that is done.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

/* tid -1: all tasks of a CPU; cpu -1: any. -ENODEV: that CPU is offline. */
static int attach_event(struct bpf_program *prog, pid_t tid, int cpu, __u64 period_ns)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.inherit = cpu < 0,
		.inherit_thread = cpu < 0,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0) {
		fd = -errno;
		if (fd != -ENODEV)
			perror("count: perf_event_open");
		return fd;
	}
	if (!bpf_program__attach_perf_event(prog, fd)) {
		perror("count: attach");
		return -1;
	}
	return 0;
}

static int attach_process(struct bpf_program *prog, pid_t pid, __u64 period_ns)
{
	struct dirent *entry;
	char path[64];
	DIR *dir;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir) {
		perror(path);
		return -1;
	}
	while (!r && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			r = attach_event(prog, atoi(entry->d_name), -1, period_ns);
	closedir(dir);
	return r;
}

static int attach_all(struct bpf_program *prog, __u64 period_ns)
{
	int r = 0;

	for (int cpu = 0; cpu < libbpf_num_possible_cpus() && !r; cpu++) {
		r = attach_event(prog, -1, cpu, period_ns);
		if (r == -ENODEV) /* it is offline */
			r = 0;
	}
	return r;
}

int main(int argc, char **argv)
{
	__u64 period_ns;
	__u32 pid, one = 1;
	struct bpf_object *object;
	struct bpf_program *prog;
	struct bpf_map *targets;

	if (argc < 4) {
		fprintf(stderr, "usage: count OBJECT PID|all PERIOD_NS [stats]\n");
		return 2;
	}
	pid = (__u32)atoi(argv[2]);
	object = bpf_object__open_file(argv[1], NULL);
	if (!object || bpf_object__load(object)) {
		fprintf(stderr, "count: %s: cannot be loaded\n", argv[1]);
		return 1;
	}
	prog = bpf_object__find_program_by_name(object, "count_sample");
	targets = bpf_object__find_map_by_name(object, "targets");
	if (!prog || !targets ||
	    bpf_map__update_elem(targets, &pid, sizeof(pid), &one, sizeof(one), BPF_ANY))
		return 1;
	if (argc > 4 && !strcmp(argv[4], "stats") && bpf_enable_stats(BPF_STATS_RUN_TIME) < 0) {
		perror("count: BPF_ENABLE_STATS");
		return 1;
	}
	period_ns = strtoull(argv[3], NULL, 10);
	if (strcmp(argv[2], "all") ? attach_process(prog, (pid_t)pid, period_ns)
				   : attach_all(prog, period_ns))
		return 1;
	printf("attached\n");
	fflush(stdout);
	for (;;)
		pause();
}
