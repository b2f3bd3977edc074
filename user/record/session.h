/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording: opens, attaches, polls, stops. Owns the targets, the BPF side and the profile.
 * session_run() is for a command, which does nothing else meanwhile; session_start(), session_poll()
 * and session_stop() are for a program with an event loop of its own.
 */
#ifndef RECORD_SESSION_H
#define RECORD_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <unwind/abi.h>

#include "base/error.h"
#include "prof/prof.h"
#include "vm_found.h"

struct session;
struct narrow; /* proc/narrow.h */

struct session_options {
	const pid_t *pids; /* running processes, or ... */
	size_t npids;
	bool may_lack;	 /* some of them may have no Lua yet */
	bool follow;	 /* and what they fork from now on; a command is followed anyway */
	bool children;	 /* and their present children, and theirs */
	char **command;	 /* ... one to start; NULL-terminated; or ... */
	bool everywhere; /* all that run, and will */
	const struct narrow *narrow; /* with everywhere: those that match; NULL: all. Outlives it */
	uint64_t period_ns;
	uint64_t duration_ns;  /* 0: until it is stopped, or all targets have ended */
	bool cost;	       /* count the time that BPF takes: costs all BPF programs a little */
	bool sources;	       /* session_open_source() will be called */
	bool by_vm;	       /* samples have the address of their VM */
	bool by_coroutine;     /* samples say which coroutine ran: one stack in two is two rows */
	bool zones;	       /* samples say in which zone of the program they were */
	const char *zone_from; /* the module whose table is the zone stack; NULL: jit.zone, zone */
	bool by_process;       /* session_process() will be called: with pids */
	bool in_process;       /* starts no processes of its own: for a library, see bpf/loader.h */
	unsigned confine;      /* enum use; session_start() gives up all other rights; 0: none */
};

/*
 * Loads the BPF side, recognises the targets, attaches. A command is started, and held: until
 * session_start() it ends when we do, however we end.
 */
int session_open(const struct session_options *opts, struct session **out, struct error *err);
void session_free(struct session **session);

/*
 * Calls fn for each VM that is recognised from now on, within session_poll(): a child's, one that
 * exec or a library brought.
 */
void session_watch(struct session *session, vm_found_fn *fn, void *arg);

/*
 * Calls fn within session_poll() after each `every_ns`, with the counts up to date, while BPF samples
 * on. `rotate`: the profile begins anew after each call. hangup: readable for a call at once; -1:
 * none. An error of fn's ends the recording. Not called at the end of the recording.
 */
struct session_ticks {
	uint64_t every_ns; /* 0: none */
	bool rotate;
	int hangup;
	int (*fn)(void *arg, struct session *session, struct error *err);
	void *arg;
};
void session_set_ticks(struct session *session, const struct session_ticks *ticks);

/*
 * Calls fn for each row of the profile to which samples are added, with their number: from within
 * session_poll(), session_stop() or session_run(). An error of fn's ends the recording. fn may read
 * session_prof(), and calls no other function of the session.
 */
typedef int session_count_fn(void *arg, size_t row, uint64_t count);
void session_on_count(struct session *session, session_count_fn *fn, void *arg);

/*
 * --wait: samples until a VM was recognised in one of the processes, or in one that they have started
 * meanwhile; before session_start(), whose duration begins then. Calls `waits` (may be NULL) once if
 * none was yet. -ENODATA: all have ended without Lua.
 */
int session_wait_lua(struct session *session, void (*waits)(void *arg), void *arg,
		     struct error *err);

/*
 * Lets a held command run, and begins to wait for events: the duration's end, the targets' ends, and
 * that stop becomes readable, which is of signals_catch(); -1: none.
 */
int session_start(struct session *session, int stop, struct error *err);

/*
 * Waits at most timeout_ms (-1: without a limit) for an event, and handles those that are there.
 * Returns 1 when the recording is over: session_stop() is next, and has the error if there was one. 0:
 * it goes on. -errno.
 */
int session_poll(struct session *session, int timeout_ms, struct error *err);

/* A descriptor that is readable when session_poll() has something to do. The session's. */
int session_fd(const struct session *session);

/* Brings the profile's losses and the statistics up to date while it samples on. */
int session_count(struct session *session, struct error *err);

/* Ends the sampling, and adds the samples that BPF has sent to the profile. Called once. */
int session_stop(struct session *session, struct error *err);

/* All three: samples until it is over. From the end of the sampling on it catches no signals any more
 * (signals_release()). */
int session_run(struct session *session, int stop, struct error *err);

enum session_end {
	SESSION_DURATION,
	SESSION_SIGNAL,
	SESSION_TARGETS_ENDED,
	SESSION_INTERVAL, /* of one that goes on */
	SESSION_HANGUP,	  /* the same, at SIGHUP */
};

/* How much there is of everything, now. */
struct session_sizes {
#define SIZE(name, sentence) uint64_t name;
#include "sizes.def"
#undef SIZE
};

struct session_stats {
	enum session_end end;
	uint64_t period_ns, wall_ns, cpu_ns; /* asked for; run; sampled of the targets' CPU time */
	uint64_t event_ns;		     /* CPU time between two events of a thread */
	uint64_t status_counts[LB_STATUS__MAX]; /* as BPF counted them */
	uint64_t stacks;			/* in the profiles */
	uint64_t snapshot_line;			/* samples, see symbolizer_snapshot_lines() */
	uint64_t bpf_ns, bpf_runs;		/* 0 unless asked for */
	uint64_t records;			/* of the ring buffer */
	uint64_t time_ns;			/* when it began, since the epoch */
	uint64_t first_sample_ns; /* from session_open() to the first sample; 0: none came */
	bool everywhere;	  /* cpu_ns is that of processes with Lua */
	bool closed;		  /* the files of a process could not be opened: it may run Lua */
	bool command_ended;
	int command_status; /* as waitpid() gives it */
};

/*
 * Returns the stats of one process, as far as they are counted by process, and a profile without
 * stacks, with its samples and losses. User space's losses are one number. -ENOMEM.
 */
int session_process(const struct session *session, pid_t pid, struct session_stats *stats,
		    struct prof **prof);

/* The whole recording, up to the last tick or its end. */
void session_stats(const struct session *session, struct session_stats *stats);

/* Makes a profile without stacks that has all samples and losses of the recording. 0 or -ENOMEM. */
int session_total(const struct session *session, struct prof **out);

/* The current interval: as session_stats(), unless session_ticks rotate. */
void session_interval(const struct session *session, struct session_stats *stats);
struct prof *session_prof(struct session *session);

void session_sizes(const struct session *session, struct session_sizes *sizes);

/* For a recording with zones. */
struct session_zones {
	uint64_t vms, without; /* VMs that were sampled; of these, without a zone stack */
	uint64_t unknown;      /* samples whose zone is not known */
};
void session_zones(const struct session *session, struct session_zones *out);

/* Waits until the command ends; its status as waitpid() gives it, or -errno. */
int session_wait_command(struct session *session);

/* "LuaJIT 2.1...": the builds of the targets, for the first line; "" when none is known yet. */
void session_describe(const struct session *session, char *buf, size_t size);

/* Returns why a VM of a target is not sampled; "" if all are. */
const char *session_unsampled(const struct session *session);

/*
 * Returns what the profile cannot show of the i-th build, as a sentence; "" when there is
 * nothing of the kind, NULL beyond the last build.
 */
const char *session_limit(const struct session *session, uint32_t i, const char **build);

/* Opens a source file with the rights of the processes whose stacks name it. Needs session_options'
 * sources. The signature is that of out/source.h. */
int session_open_source(void *session, const char *path, FILE **out);

/* The processes that it was opened for, at most max; with children. Returns how many there are. */
size_t session_roots(const struct session *session, pid_t *pids, size_t max);

#endif
