// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes short processes without Lua, one after the other, until its standard input ends.
 *
 * usage: spawn fork|exec|clone
 *        spawn storm NUMBER    makes so many, ROUND at a time, says "done", and ends
 *        spawn idle NUMBER     makes so many that wait, until a line is read; then ends them one by one
 *
 * A process exits at once, or calls exec first. Those of clone, storm and idle share this one's memory,
 * as after vfork(): copying its page tables would take nine tenths of their time. After each line that
 * is read it prints the least microseconds, of the wall clock, that one of ROUNDS rounds took for one
 * process; without a line it goes on. At its end it prints how many it has made.
 */
#include <err.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define ROUND 50  /* processes */
#define ROUNDS 30 /* of a measurement */

enum spawn_how { BY_FORK, BY_EXEC, BY_CLONE };

static unsigned long made;

/* A child's stack; it runs beside the others'. */
struct child_stack {
	_Alignas(16) char bytes[4096];
};

static int ends(void *arg)
{
	(void)arg;
	_exit(0);
}

static int waits(void *parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == *(const pid_t *)parent)
		pause();
	_exit(0);
}

static pid_t start(int (*child)(void *), struct child_stack *stack, void *arg)
{
	pid_t pid = clone(child, stack + 1, CLONE_VM | SIGCHLD, arg);

	if (pid < 0)
		err(1, "clone");
	return pid;
}

static void make(char **argv, enum spawn_how how)
{
	static struct child_stack stack;
	pid_t pid;

	if (how == BY_CLONE) {
		pid = start(ends, &stack, NULL);
	} else {
		pid = how == BY_EXEC ? vfork() : fork();
		if (pid < 0)
			err(1, "fork");
		if (!pid) {
			if (how == BY_EXEC)
				execv("/proc/self/exe", (char *[]){argv[0], "exit", NULL});
			_exit(how == BY_EXEC);
		}
	}
	waitpid(pid, NULL, 0);
	made++;
}

static void storm(unsigned long number)
{
	static struct child_stack stack[ROUND];

	while (made < number) {
		for (int i = 0; i < ROUND; i++)
			start(ends, stack + i, NULL);
		for (int i = 0; i < ROUND; i++)
			wait(NULL);
		made += ROUND;
	}
	printf("done\n");
}

static void idle(size_t number)
{
	struct child_stack *stack = calloc(number, sizeof(*stack));
	pid_t *pid = calloc(number, sizeof(*pid)), self = getpid();

	if (!stack || !pid)
		err(1, "calloc");
	for (size_t i = 0; i < number; i++) {
		pid[i] = start(waits, stack + i, &self);
		usleep(500);
	}
	printf("ready\n");
	fflush(stdout);
	getchar();
	for (size_t i = 0; i < number; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
		usleep(500);
	}
}

static double round_us(char **argv, enum spawn_how how)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < ROUND; i++)
		make(argv, how);
	return 1e-3 * (double)(clock_ns(CLOCK_MONOTONIC) - begin) / ROUND;
}

int main(int argc, char **argv)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	const char *mode = argc > 1 ? argv[1] : "";
	enum spawn_how how = !strcmp(mode, "exec")    ? BY_EXEC
			     : !strcmp(mode, "clone") ? BY_CLONE
						      : BY_FORK;
	char line[16];

	if (!strcmp(mode, "exit"))
		return 0;
	if (argc > 2 && !strcmp(mode, "idle")) {
		idle(strtoul(argv[2], NULL, 10));
		return 0;
	}
	printf("ready\n");
	fflush(stdout);
	if (argc > 2 && !strcmp(mode, "storm")) {
		storm(strtoul(argv[2], NULL, 10));
		return 0;
	}
	for (;;) {
		double least = round_us(argv, how);

		if (!poll(&in, 1, 0))
			continue;
		if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
			break;
		for (int i = 0; i < ROUNDS; i++) {
			double us = round_us(argv, how);

			least = us < least ? us : least;
		}
		printf("%.2f\n", least);
		fflush(stdout);
	}
	printf("%lu\n", made);
	return 0;
}
