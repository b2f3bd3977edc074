/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks whether this machine and a process can be profiled. Each check reports one finding and its
 * remedy. Kernel features are tried, not concluded from version numbers.
 */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H

#include <stdbool.h>
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
	/* what, remedy: may hold foreign bytes; remedy is "" for none */
	void (*report)(void *arg, enum doctor_verdict verdict, const char *object, const char *what,
		       const char *remedy);
	void *arg;
};

void doctor_machine(const struct doctor *doctor);

/*
 * Also samples all processes together for 0.3 s. With more than DOCTOR_ALL, reports only those with
 * a warning or a failure, unless `all` is set.
 */
#define DOCTOR_ALL 8
void doctor_processes(const struct doctor *doctor, const pid_t *pids, size_t n, bool all);

/* Reports whether a recording proves that walks succeed. Exposed for its tests. */
void doctor_judge(const struct doctor *doctor, const struct summary *summary);

/* A file with a Lua VM that a process has mapped. */
struct doctor_module {
	const struct vm_build *build;
	const struct lb_module *at; /* addresses in the process */
	const char *path;	    /* as the process sees it: foreign; "" if unknown */
};

typedef void doctor_show(void *arg, const struct doctor_module *module);

/* Calls fn once. Reads the path from the process's mappings; "" if it has ended. */
void doctor_module(pid_t pid, const struct vm_build *build, const struct lb_module *at,
		   doctor_show *fn, void *arg);

/* Calls fn for each. Errors are those of scan_process(); err must be empty. `_by`: reuses scan's
 * results for files that it has scanned. */
int doctor_modules_by(struct scan *scan, pid_t pid, doctor_show *fn, void *arg, struct error *err);
int doctor_modules(pid_t pid, doctor_show *fn, void *arg, struct error *err);

/* Appends "[PATH: ]ROW; interpreter 0x..-0x..; ...": one line, without control characters. */
void doctor_module_text(const struct doctor_module *module, struct text *out);

#endif
