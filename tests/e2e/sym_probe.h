/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What asks user/sym about a live process (luasym_probe, pucsym_probe): commands on stdin, answers
 * on stdout, each ended by a line ".". A command is a verb and one or two addresses, hexadecimal as
 * tostring() in the target shows them. For sym.py.
 */
#ifndef TESTS_E2E_SYM_PROBE_H
#define TESTS_E2E_SYM_PROBE_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include <unwind/mem.h>

/* b: 0 when the command has one address */
typedef void (*answer_fn)(void *arg, const char *verb, uint64_t a, uint64_t b);

/* Until stdin ends. Returns main()'s value. */
static inline int answer_commands(answer_fn fn, void *arg)
{
	char line[256];

	while (fgets(line, sizeof(line), stdin)) {
		uint64_t a = 0, b = 0;
		char verb[16] = "";

		if (sscanf(line, "%15s %" SCNx64 " %" SCNx64, verb, &a, &b) < 2)
			return 2;
		fn(arg, verb, a, b);
		printf(".\n");
		fflush(stdout);
	}
	return 0;
}

/* 0: cannot be read */
static inline uint64_t word_at(const struct lb_mem *mem, uint64_t addr)
{
	uint64_t v = 0;

	return mem_read(mem, &v, sizeof(v), addr) ? 0 : v;
}

/* For lj_proto_definitions(), puc_proto_definitions(). */
static inline int print_def(void *arg, uint64_t child, const char *name)
{
	(void)arg;
	printf("%" PRIx64 " %s\n", child, name);
	return 0;
}

#endif
