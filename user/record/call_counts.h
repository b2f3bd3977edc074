/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the calls of a running process by function (bpf/counter.h), for `luabpf count -p`. Each
 * call costs the process a trap. Its cost is measured: that of one probe on this machine before
 * it begins, and from then on by the hits in the process's CPU time.
 */
#ifndef RECORD_CALL_COUNTS_H
#define RECORD_CALL_COUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <unwind/calls.h>

#include "base/error.h"
#include "prof/prof.h"

struct call_counts;

struct call_counts_options {
	pid_t pid;
	uint64_t duration_ns; /* 0: until a signal, or its end */
	double max_slowdown;  /* stops beyond it */
};

/* Attaches the probes. */
int call_counts_open(const struct call_counts_options *options, struct call_counts **out,
		     struct error *err);
void call_counts_free(struct call_counts **calls);

/* The cost of counting to the process, over some time. */
struct call_counts_cost {
	double hit_ns;	 /* of a probe, with its program */
	double hits;	 /* for each second of its CPU time */
	double slowdown; /* its CPU time, divided by what it would be without probes; 0: it did not
			    run */
};
#define COUNTS_SLOWDOWN_MOST 100 /* a larger one is not measurable */

enum call_counts_end {
	COUNTS_SIGNAL,
	COUNTS_DURATION,
	COUNTS_ENDED,	 /* the process has */
	COUNTS_EXEC,	 /* it has called exec */
	COUNTS_SLOWDOWN, /* beyond max_slowdown */
};

/*
 * Counts for a moment, so that *cost is known. True in *over: it has ended already. stop: a descriptor
 * that polls readable when a signal was caught (base/signals.h).
 */
int call_counts_estimate(struct call_counts *calls, int stop, struct call_counts_cost *cost,
			 bool *over, struct error *err);

/* Counts until the end. */
int call_counts_run(struct call_counts *calls, struct error *err);

struct call_counts_result {
	bool other_vm;		 /* it has loaded another Lua since, whose calls are not counted */
	bool unread_code;	 /* it mapped code just before the end, which was not looked at */
	const struct prof *prof; /* a row's topmost frame is the function, its count the calls */
	enum call_counts_end end;
	uint64_t duration_ns;	      /* the interval that was counted */
	uint64_t cpu_ns;	      /* of the process in it */
	struct call_counts_cost cost; /* of the interval */
	struct call_counts_cost
		last; /* of the time before call_counts_estimate() ended, or the process was too slow */
	uint64_t counted;  /* calls in prof */
	uint64_t nameless; /* calls of functions that have no name any more: not in prof */
	uint64_t misses[LB_CALL_MISSES];
	uint64_t dropped; /* hits that the kernel did not pass on */
	bool compiled;	  /* LuaJIT's compiler was on: calls in compiled code are not counted */
	bool unseen; /* no VM of a LuaJIT was looked at: whether its compiler is on is not known */
	double in_traces; /* share of its CPU time in compiled code */
	bool luajit;	  /* the process has a LuaJIT */
};

/* Gives the counts their names: after call_counts_run(). */
int call_counts_finish(struct call_counts *calls, struct call_counts_result *result,
		       struct error *err);

/* Writes the builds that are counted. */
void call_counts_describe(const struct call_counts *calls, char *buf, size_t size);

#endif
