// SPDX-License-Identifier: BSD-2-Clause
/*
 * A callback that leaves by longjmp(), as an error of Lua does: of each call, until 40 samples were
 * delivered; then one poll without, and the end. Prints how many samples were delivered, and how many
 * were recorded.
 *
 *     api_jumps PID
 */
#include <luabpf.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static jmp_buf out;
static volatile int calls, delivered, jumps;

static void callback(void *data, luabpf_sample *sample, int samples, int vmstate)
{
	(void)vmstate;
	if (!luabpf_dumpstack(sample, "FZ;", -100, NULL) || data != &out)
		abort();
	calls++;
	delivered += samples;
	if (delivered < 40) {
		jumps++;
		longjmp(out, 1);
	}
}

static int fail(luabpf *r)
{
	fprintf(stderr, "%s\n", luabpf_error(r));
	luabpf_free(r);
	return 1;
}

int main(int argc, char **argv)
{
	luabpf *r = luabpf_new();
	volatile bool over = false;

	if (argc < 2 || luabpf_attach(r, atoi(argv[1])) || luabpf_start(r, "i1", callback, &out))
		return fail(r);
	while (delivered < 40 && !over)
		if (!setjmp(out))
			over = luabpf_poll(r, 100) <= 0;
	luabpf_poll(r, 100);
	if (luabpf_stop(r))
		return fail(r);
	printf("%d %d %d %lu\n", calls, jumps, delivered, luabpf_samples(r));
	luabpf_free(r);
	return 0;
}
