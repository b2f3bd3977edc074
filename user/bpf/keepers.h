/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the kernel from swapping a sampled thread's event context with that of a thread it started.
 * At a switch between the two, a swap may replace stopping and starting their events. The CPU time
 * since the thread's last event is then lost when the other ends: a thread that often starts short
 * ones gets no samples. With one event that is not inherited - a dummy, never enabled - the
 * contexts differ and are not swapped (perf_event_context_sched_out() of kernel/events/core.c).
 */
#ifndef BPF_KEEPERS_H
#define BPF_KEEPERS_H

#include <stdbool.h>
#include <sys/types.h>

struct keeper;

struct keepers {
	struct keeper *all; /* of all processes */
	bool given_up;	    /* descriptors ran short: none is opened any more */
};

/* Adds one for a thread to those of its process, unless descriptors run short. */
void keepers_add(struct keepers *ks, pid_t tid, struct keeper **of_process);

/* Releases those of a process. */
void keepers_drop(struct keepers *ks, struct keeper **of_process);

/* Closes all, and opens none from now on: the events that sample and user space's files need the
 * descriptors. False: there was none to close. */
bool keepers_give_up(struct keepers *ks);

/* The same, if few descriptors are left beyond fd, the last that was opened. */
void keepers_make_room(struct keepers *ks, int fd);

#endif
