/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this machine and a process allow, and how to mend what they don't. Each check tells one
 * finding; what can be asked of the kernel is tried, not concluded from version numbers.
 */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <unwind/abi.h>

#include "base/error.h"
#include "base/text.h"
#include "record/summary.h"
#include "detect/build.h"

enum doctor_verdict {
	DOCTOR_OK,
	DOCTOR_WARN, /* works, but ... */
	DOCTOR_FAIL, /* cannot be profiled like this */
};

struct scan;

struct doctor {
	/* what, remedy: foreign bytes may be in them; remedy is "" when there is none */
	void (*tell)(void *arg, enum doctor_verdict verdict, const char *object, const char *what,
		     const char *remedy);
	void *arg;
};

void doctor_machine(const struct doctor *doctor);

/*
 * Also samples the processes for a moment, all at once. Of more than DOCTOR_ALL only those are told
 * of where something is not as it should be, unless `all` is set.
 */
#define DOCTOR_ALL 8
void doctor_processes(const struct doctor *doctor, const pid_t *pids, size_t n, bool all);

/* What a recording of a process proves. Exposed for its tests. */
void doctor_judge(const struct doctor *doctor, const struct summary *summary);

/* A file with a Lua VM that a process has mapped. */
struct doctor_module {
	const struct vm_build *build;
	const struct lb_module *at; /* addresses in the process */
	const char *path;	    /* as the process sees it: foreign; "" when it is not known */
};

typedef void doctor_show(void *arg, const struct doctor_module *module);

/* Calls fn, once. The path is found, as long as the process lives. */
void doctor_module(pid_t pid, const struct vm_build *build, const struct lb_module *at,
		   doctor_show *fn, void *arg);

/* Calls fn for each. Errors are those of scan_process(); err must come empty. `_by`: files that were
 * looked into before are not again. */
int doctor_modules_by(struct scan *scan, pid_t pid, doctor_show *fn, void *arg, struct error *err);
int doctor_modules(pid_t pid, doctor_show *fn, void *arg, struct error *err);

/* "[PATH: ]ROW; interpreter 0x..-0x..; ...": one line, without control characters. */
void doctor_module_text(const struct doctor_module *module, struct text *out);

#endif
