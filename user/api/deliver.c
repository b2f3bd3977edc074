// SPDX-License-Identifier: BSD-2-Clause
/*
 * Delivers samples to the callback. The session counts samples of a row of the profile while it handles
 * events; they wait here until it is done. A sample is taken out of the queue before its callback, which
 * may stop the recording, and may leave by longjmp().
 */
#include <limits.h>

#include "base/array.h"
#include "recording.h"

static int make_room(luabpf *r, size_t row)
{
	while (r->nwaiting <= row) {
		int err = array_grow(&r->waiting, r->nwaiting, sizeof(*r->waiting));

		if (err)
			return err;
		r->waiting[r->nwaiting++] = 0;
	}
	return 0;
}

int deliver_count(void *recording, size_t row, uint64_t count)
{
	luabpf *r = recording;
	int err = make_room(r, row);

	if (!err && !r->waiting[row])
		err = array_grow(&r->rows, r->nrows, sizeof(*r->rows));
	if (err)
		return err;
	if (!r->waiting[row])
		r->rows[r->nrows++] = row;
	r->waiting[row] += count;
	return 0;
}

static int take(uint64_t *count)
{
	int part = *count > INT_MAX ? INT_MAX : (int)*count;

	*count -= (uint64_t)part;
	return part;
}

void deliver_waiting(luabpf *r)
{
	const struct prof *prof = session_prof(r->session);
	struct prof_row row;

	while (r->delivered < r->nrows) {
		size_t id = r->rows[r->delivered];
		int samples = take(&r->waiting[id]);

		r->delivered += !r->waiting[id];
		prof_row(prof, id, &row);
		r->sample = (struct luabpf_sample){.recording = r, .row = id};
		r->calling = true;
		r->callback(r->data, &r->sample, samples, row.labels.vmstate);
		r->calling = false;
	}
	r->delivered = r->nrows = 0;
}

void deliver_drop(luabpf *r)
{
	for (; r->delivered < r->nrows; r->delivered++) {
		r->dropped += r->waiting[r->rows[r->delivered]];
		r->waiting[r->rows[r->delivered]] = 0;
	}
	r->delivered = r->nrows = 0;
}
