// SPDX-License-Identifier: BSD-2-Clause
#include "periods.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"

uint64_t period_next(struct period *p, uint64_t mean_ns, uint64_t now_ns, uint32_t random)
{
	uint64_t passed = now_ns - p->since_ns, samples = passed / p->ns, off;

	if (now_ns < p->since_ns || samples < PERIOD_SAMPLES)
		return 0;
	p->behind_ns += (int64_t)passed - (int64_t)(samples * mean_ns);
	p->since_ns = now_ns;
	off = mean_ns / PERIOD_RANGE * random >> 32;
	p->ns = p->behind_ns > 0 ? mean_ns - off : mean_ns + off;
	return p->ns;
}

uint64_t period_thread_ns(pid_t tid)
{
	char path[64], text[64];
	ssize_t n;
	int fd __close;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return strtoull(text, NULL, 10);
}

void period_vary(struct period *p, uint64_t mean_ns, int event, pid_t tid)
{
	uint64_t now_ns = 0, ns;
	uint32_t random;

	if (tid)
		now_ns = period_thread_ns(tid);
	else if (read(event, &now_ns, sizeof(now_ns)) != sizeof(now_ns))
		return;
	if (now_ns - p->since_ns < PERIOD_SAMPLES * p->ns ||
	    getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		return;
	ns = period_next(p, mean_ns, now_ns, random);
	if (ns)
		ioctl(event, PERF_EVENT_IOC_PERIOD, &ns);
}
