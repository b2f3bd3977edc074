// SPDX-License-Identifier: BSD-2-Clause
/*
 * Folded stacks of every Lua process of this machine, or of those with one name, until Ctrl-C: a program
 * with an event loop of its own. Each line is a sample; `sort | uniq -c` and flame graph tools count them.
 *
 *     cc -o folded folded.c $(pkg-config --cflags --libs luabpf) && sudo ./folded [NAME] >stacks.txt
 */
#include <luabpf.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void print_stack(void *data, luabpf_sample *sample, int samples, int vmstate)
{
	const char *stack = luabpf_dumpstack(sample, "fZ;", -100, NULL);
	const char *comm = luabpf_label(sample, "comm");

	(void)data;
	(void)vmstate;
	if (stack)
		printf("%s-%d;%s %d\n", comm ? comm : "?", luabpf_pid(sample), stack, samples);
}

static int loop(luabpf *recording)
{
	struct pollfd fds[2];
	sigset_t stop;
	int on = 1;

	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	fds[0].fd = luabpf_fd(recording);
	fds[1].fd = signalfd(-1, &stop, 0);
	fds[0].events = fds[1].events = POLLIN;
	while (on > 0 && poll(fds, 2, -1) > 0 && !fds[1].revents)
		on = luabpf_poll(recording, 0);
	close(fds[1].fd);
	return on < 0 ? on : 0;
}

int main(int argc, char **argv)
{
	luabpf *recording = luabpf_new();
	int r = recording ? luabpf_attach_all(recording) : -1;

	if (!r && argc > 1)
		r = luabpf_narrow(recording, LUABPF_COMM, argv[1]);
	if (!r)
		r = luabpf_start(recording, "i10", print_stack, NULL);
	if (!r) {
		fprintf(stderr, "folded: sampling; Ctrl-C stops\n");
		r = loop(recording);
	}
	if (!r)
		r = luabpf_stop(recording);
	if (r && recording)
		fprintf(stderr, "folded: %s\n", luabpf_error(recording));
	luabpf_free(recording);
	return r ? 1 : 0;
}
