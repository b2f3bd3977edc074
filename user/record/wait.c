// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel reports a new mapping only through an event on each thread of the process. So its
 * executable mappings are polled 50 times a second; files are scanned only if a mapping is new.
 * Signals have their default action: they end the wait at once.
 */
#include "wait.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "proc/process.h"
#include "detect/scan.h"

#define LOOK_MS 20

struct wait {
	struct scan *scan;
	uint64_t *mapped; /* of each process: process_mapped() at the last look */
};

enum found { WITHOUT, WITH_LUA, ENDED };

/* It has no memory, or another than a moment ago: it has ended, or is in exec. */
static enum found without_memory(pid_t pid)
{
	return process_check(pid, NULL) ? ENDED : WITHOUT;
}

static enum found look(struct wait *w, size_t i, pid_t pid)
{
	uint64_t mapped = process_mapped(pid);
	struct error unknown = {};
	struct lb_proc proc;
	int ret;

	if (!mapped)
		return without_memory(pid);
	if (mapped == w->mapped[i])
		return WITHOUT;
	w->mapped[i] = mapped;
	ret = scan_process(w->scan, pid, &proc, &unknown);
	if (ret == -ESRCH)
		return without_memory(pid);
	return ret || proc.nmodules || *unknown.what ? WITH_LUA : WITHOUT;
}

static int all_ended(const pid_t *pids, size_t n, struct error *err)
{
	__text struct text all = {};

	process_put_pids(&all, pids, n);
	return error_set(err, -ENODATA, "process%s %s: ended without Lua", n > 1 ? "es" : "",
			 text_str(&all));
}

static int wait_with(struct wait *w, const pid_t *pids, size_t n, void (*waits)(void *arg),
		     void *arg, struct error *err)
{
	for (bool said = false;; said = true) {
		size_t ended = 0;

		for (size_t i = 0; i < n; i++) {
			enum found found = look(w, i, pids[i]);

			if (found == WITH_LUA)
				return 0;
			ended += found == ENDED;
		}
		if (ended == n)
			return all_ended(pids, n, err);
		if (!said && waits)
			waits(arg);
		poll(NULL, 0, LOOK_MS);
	}
}

int session_wait_lua(const pid_t *pids, size_t n, void (*waits)(void *arg), void *arg,
		     struct error *err)
{
	struct scan *scan __cleanup(scan_free) = NULL;
	__free uint64_t *mapped = calloc(n, sizeof(*mapped));
	struct wait w = {.mapped = mapped};
	int ret = mapped ? scan_new(&scan) : -ENOMEM;

	if (ret)
		return error_set(err, ret, "out of memory");
	w.scan = scan;
	for (size_t i = 0; i < n; i++) {
		ret = process_check(pids[i], err);
		if (ret)
			return ret;
	}
	return wait_with(&w, pids, n, waits, arg, err);
}
