// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes short processes without Lua, one after the other, until its standard input ends.
 *
 * usage: spawn fork|exec
 *        spawn storm NUMBER    makes so many, ROUND at a time, says "done", and ends
 *
 * A process exits at once, or calls exec first. After each line that is read it prints the least
 * microseconds, of the wall clock, that one of ROUNDS rounds took for one process; without a line
 * it goes on. At its end it prints how many it has made.
 */
#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define ROUND 50  /* processes */
#define ROUNDS 30 /* of a measurement */

static unsigned long made;

static void make(char **argv, int calls_exec)
{
	pid_t pid = calls_exec ? vfork() : fork();

	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		if (calls_exec)
			execv("/proc/self/exe", (char *[]){argv[0], "exit", NULL});
		_exit(calls_exec);
	}
	waitpid(pid, NULL, 0);
	made++;
}

static void storm(unsigned long number)
{
	while (made < number) {
		for (int i = 0; i < ROUND; i++) {
			pid_t pid = fork();

			if (pid < 0)
				err(1, "fork");
			if (!pid)
				_exit(0);
		}
		for (int i = 0; i < ROUND; i++)
			wait(NULL);
		made += ROUND;
	}
	printf("done\n");
}

static double round_us(char **argv, int calls_exec)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < ROUND; i++)
		make(argv, calls_exec);
	return 1e-3 * (double)(clock_ns(CLOCK_MONOTONIC) - begin) / ROUND;
}

int main(int argc, char **argv)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	int calls_exec = argc > 1 && !strcmp(argv[1], "exec");
	char line[16];

	if (argc > 1 && !strcmp(argv[1], "exit"))
		return 0;
	printf("ready\n");
	fflush(stdout);
	if (argc > 2 && !strcmp(argv[1], "storm")) {
		storm(strtoul(argv[2], NULL, 10));
		return 0;
	}
	for (;;) {
		double least = round_us(argv, calls_exec);

		if (!poll(&in, 1, 0))
			continue;
		if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
			break;
		for (int i = 0; i < ROUNDS; i++) {
			double us = round_us(argv, calls_exec);

			least = us < least ? us : least;
		}
		printf("%.2f\n", least);
		fflush(stdout);
	}
	printf("%lu\n", made);
	return 0;
}
