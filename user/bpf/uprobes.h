/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Uprobes of one process in one file. Since Linux 6.6 a link has many (uprobe_multi), so that removing them waits for
 * the kernel's grace periods once; before, each probe is a perf event with a link of its own.
 */
#ifndef BPF_UPROBES_H
#define BPF_UPROBES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct bpf_program;
struct uprobes;

struct uprobes_options {
	const struct bpf_program *program;
	bool multi; /* the program was opened for it */
	pid_t pid;
	int fd; /* of the file */
};

/* To be called before the program is loaded, if its probes are to be of one link. */
void uprobes_make_multi(struct bpf_program *program);

/* Attaches the program at n offsets, each with a cookie. 0 or -errno. */
int uprobes_attach(const struct uprobes_options *options, const uint64_t *offsets,
		   const uint64_t *cookies, uint32_t n, struct uprobes **out);
void uprobes_free(struct uprobes **uprobes);

#endif
