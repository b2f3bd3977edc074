// SPDX-License-Identifier: BSD-2-Clause
/*
 * The functions of a process that take most time, once a second:
 *
 *     cc -o top top.c $(pkg-config --cflags --libs luabpf) && sudo ./top PID [SECONDS]
 */
#include <luabpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 4096 /* functions */
#define SHOWN 20

struct top_function {
	char *name;
	int samples, compiled;
};

struct top {
	struct top_function function[MOST];
	size_t n;
	int samples;
};

static struct top_function *find(struct top *top, const char *name)
{
	size_t i;

	for (i = 0; i < top->n; i++)
		if (!strcmp(top->function[i].name, name))
			return &top->function[i];
	if (i == MOST || !(top->function[i].name = strdup(name)))
		return NULL;
	top->function[i].samples = top->function[i].compiled = 0;
	top->n++;
	return &top->function[i];
}

/* Called for each sample, or for several that were the same. */
static void count(void *data, luabpf_sample *sample, int samples, int vmstate)
{
	struct top *top = data;
	const char *name = luabpf_dumpstack(sample, "F", 1, NULL);
	struct top_function *f = name ? find(top, name) : NULL;

	top->samples += samples;
	if (!f)
		return;
	f->samples += samples;
	if (vmstate == 'N')
		f->compiled += samples;
}

static int by_samples(const void *a, const void *b)
{
	return ((const struct top_function *)b)->samples -
	       ((const struct top_function *)a)->samples;
}

static void print(struct top *top)
{
	size_t i;

	qsort(top->function, top->n, sizeof(top->function[0]), by_samples);
	printf("%d samples\n", top->samples);
	for (i = 0; i < top->n; i++) {
		struct top_function *f = &top->function[i];

		if (i < SHOWN)
			printf("%5.1f %%  %3d %% compiled  %s\n", 100.0 * f->samples / top->samples,
			       100 * f->compiled / f->samples, f->name);
		free(f->name);
	}
	printf("\n");
	fflush(stdout);
	top->n = 0;
	top->samples = 0;
}

static void print_loss(void *data, const char *reason, const char *sentence, unsigned long n)
{
	(void)data;
	fprintf(stderr, "%lu samples: %s: %s\n", n, reason, sentence);
}

int main(int argc, char **argv)
{
	int seconds = argc > 2 ? atoi(argv[2]) : -1, r;
	static struct top top;
	luabpf *recording = luabpf_new();

	if (argc < 2 || !recording) {
		fprintf(stderr, "usage: top PID [SECONDS]\n");
		return 2;
	}
	r = luabpf_attach(recording, atoi(argv[1]));
	if (!r)
		r = luabpf_start(recording, "i1", count, &top);
	while (!r && seconds--) {
		int on = luabpf_poll(recording, 1000);

		print(&top);
		if (on <= 0) { /* the process has ended, or an error */
			r = on;
			break;
		}
	}
	if (!r)
		r = luabpf_stop(recording); /* the rest */
	if (top.samples)
		print(&top);
	if (r)
		fprintf(stderr, "top: %s\n", luabpf_error(recording));
	else
		luabpf_losses(recording, print_loss, NULL);
	luabpf_free(recording);
	return r ? 1 : 0;
}
