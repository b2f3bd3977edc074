// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as events of a debug hook: the first is the dialect. The trace file that is written of
 * them reads back as the same calls and hits.
 */
#include <stdlib.h>

#include "trace_events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace_events e;

	if (!size)
		return 0;
	trace_events_open(&e, data[0] % (TRACE_LUAJIT + 1));
	if (trace_events_any(&e, data + 1, size - 1))
		abort();
	stats_finish(
		e.stats); /* as the file's: a function that a fork's child ran only is known by its time */
	trace_events_check_file(&e);
	trace_events_close(&e);
	return 0;
}
