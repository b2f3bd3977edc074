// SPDX-License-Identifier: BSD-2-Clause
/*
 * A large profile, as a server's recording of hours has: its functions call each other at random,
 * with a preference for a few, in many threads. The same arguments give the same profile.
 *
 * usage: profile write FILE [STACKS [SAMPLES]]    makes it and saves it
 *        profile read FILE
 *
 * Prints the seconds of CPU time that saving, or reading, has taken.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "prof/pprof.h"

#define FUNCTIONS 5000
#define PER_CHUNK 25 /* functions */
#define CALLS 4	     /* of each function, in lines of their own */
#define LEAVES 200
#define PROCESSES 100
#define THREADS 3 /* of a process */
#define LEAST 20  /* frames of a stack */
#define MOST 60

static uint64_t random_state = 0x9e3779b97f4a7c15;

static uint32_t draw(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)((random_state >> 32) * below >> 32);
}

/* Small numbers are drawn more often. */
static uint32_t draw_few(uint32_t below)
{
	return (uint32_t)((uint64_t)draw(below) * draw(below) / below);
}

static void check(int r, const char *what)
{
	if (r)
		errx(1, "%s: %s", what, strerror(-r));
}

static uint32_t frame(struct prof *prof, uint32_t function, uint32_t call)
{
	char chunk[64], name[32];
	struct prof_frame f = {
		.kind = function % 20 ? PROF_LUA : PROF_C,
		.line = -1,
		.callname = name,
		.chunk = chunk,
	};
	uint32_t id;

	snprintf(name, sizeof(name), "handle_%" PRIu32, function);
	if (f.kind == PROF_C) {
		snprintf(chunk, sizeof(chunk), "libmodule%" PRIu32 ".so", function / PER_CHUNK);
		f.symbol = name;
		f.addr = UINT64_C(0x1000) + 64 * function;
	} else {
		snprintf(chunk, sizeof(chunk), "@/usr/share/server/lib/part%" PRIu32 "/module.lua",
			 function / PER_CHUNK);
		f.defname = name;
		f.firstline = 1 + (int32_t)(function % PER_CHUNK * 20);
		f.line = f.firstline + 1 + (int32_t)call;
	}
	check(prof_frame_id(prof, &f, &id), "frame");
	return id;
}

/* A function calls the same ones from the same lines, so stacks share their root ends. A few leaves
 * take most of the time. */
static size_t make_stack(const uint32_t *ids, uint32_t *stack)
{
	size_t depth = LEAST + draw(MOST - LEAST + 1);
	uint32_t function = draw_few(PROCESSES);

	for (size_t i = depth; i-- > 0;) {
		uint32_t call = draw_few(CALLS);

		stack[i] = ids[function * CALLS + call];
		function = (function * 7919 + call * 104729 + 1) % FUNCTIONS;
	}
	stack[0] = ids[draw_few(1 + draw_few(LEAVES)) * CALLS + draw_few(CALLS)];
	return depth;
}

/* A stack belongs to a thread; one sample in ten is another thread's of its process. */
static void add(struct prof *prof, const uint32_t *stack, size_t n, uint32_t number)
{
	uint32_t process = number % PROCESSES, thread = number / PROCESSES;
	char comm[16];
	struct prof_labels labels = {.vmstate = "NICG"[number % 4], .comm = comm};

	snprintf(comm, sizeof(comm), "worker-%" PRIu32, process / 10);
	labels.pid = 1000 + process * THREADS;
	labels.tid = labels.pid + (thread + !draw(10)) % THREADS;
	check(prof_add(prof, stack, n, &labels, 1), "row");
}

static struct prof *make(uint32_t nstacks, uint32_t nsamples)
{
	__free uint32_t *ids = calloc((size_t)FUNCTIONS * CALLS, sizeof(*ids));
	__free uint32_t *stacks = calloc((size_t)nstacks * MOST, sizeof(*stacks));
	__free size_t *depths = calloc(nstacks, sizeof(*depths));
	struct prof *prof;

	if (!ids || !stacks || !depths)
		errx(1, "out of memory");
	check(prof_new(&prof), "profile");
	prof_meta(prof)->period_ns = 10000000;
	for (uint32_t i = 0; i < FUNCTIONS * CALLS; i++)
		ids[i] = frame(prof, i / CALLS, i % CALLS);
	for (uint32_t i = 0; i < nstacks; i++)
		depths[i] = make_stack(ids, stacks + (size_t)i * MOST);
	for (uint32_t i = 0; i < nsamples; i++) {
		uint32_t stack = i < nstacks ? i : draw_few(nstacks);

		add(prof, stacks + (size_t)stack * MOST, depths[stack], stack);
	}
	return prof;
}

static double write_profile(const char *path, uint32_t nstacks, uint32_t nsamples)
{
	__cleanup(prof_free) struct prof *prof = make(nstacks, nsamples);
	__fclose FILE *out = fopen(path, "we");
	uint64_t begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	if (!out)
		err(1, "%s", path);
	check(pprof_write(prof, out), path);
	fprintf(stderr, "%zu rows, %zu frames, %" PRIu64 " samples\n", prof_nrows(prof),
		prof_nframes(prof), prof_samples(prof));
	return 1e-9 * (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin);
}

static double read_profile(const char *path)
{
	__cleanup(prof_free) struct prof *prof = NULL;
	__fclose FILE *in = fopen(path, "re");
	uint64_t begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct error error = {};

	if (!in)
		err(1, "%s", path);
	if (pprof_read_file(in, path, &prof, &error))
		errx(1, "%s", error.what);
	return 1e-9 * (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin);
}

int main(int argc, char **argv)
{
	double seconds;

	if (argc < 3)
		errx(2, "usage: profile write FILE [STACKS [SAMPLES]] | read FILE");
	if (!strcmp(argv[1], "read"))
		seconds = read_profile(argv[2]);
	else
		seconds = write_profile(argv[2], argc > 3 ? (uint32_t)atoi(argv[3]) : 100000,
					argc > 4 ? (uint32_t)atoi(argv[4]) : 1000000);
	printf("%.3f\n", seconds);
	return 0;
}
