/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Varies the periods of sampling events. At a fixed period, a loop whose round takes as long shows
 * only the part at which the samples fall: a sample's own cost may keep it in step with them. So
 * each event holds a period for PERIOD_SAMPLES samples at least, and then gets another at random.
 * The range is narrow: each sample stands for the mean period, and children keep their parent's.
 */
#ifndef BPF_PERIODS_H
#define BPF_PERIODS_H

#include <stdint.h>
#include <sys/types.h>

#define PERIOD_SAMPLES 32
#define PERIOD_RANGE 10 /* a period differs from the mean by this part of it at most */

struct period {
	uint64_t ns;
	uint64_t since_ns; /* the event's CPU time when this period began */
	int64_t behind_ns; /* CPU time until then that the samples do not stand for */
};

/*
 * Returns the event's next period at a CPU time, or 0: it keeps its own. A longer one follows if
 * there were too many samples so far, a shorter one if there were too few: a change restarts the
 * period, which loses half of one. random: any number, each as likely.
 */
uint64_t period_next(struct period *p, uint64_t mean_ns, uint64_t now_ns, uint32_t random);

/*
 * Gives an event its next period if that is due. tid: the thread that the event samples, whose
 * children have events of their own; 0: it samples a CPU.
 */
void period_vary(struct period *p, uint64_t mean_ns, int event, pid_t tid);

/* Returns a thread's CPU time, or 0: it has ended, or the kernel does not say. */
uint64_t period_thread_ns(pid_t tid);

#endif
