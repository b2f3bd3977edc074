// SPDX-License-Identifier: BSD-2-Clause
#include "interval.h"

#include <malloc.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "proc/process.h"

/* Stores in the profile as whom `report` opens source files, if all live roots have one user. */
static void note_user(struct intervals *iv)
{
	struct prof_meta *meta = prof_meta(iv->prof);
	bool seen = false, differ = false;
	const struct process *p;
	uid_t uid, first = 0;

	for (p = iv->processes->all; p; p = p->hh.next) {
		if (!p->is_root || process_uid(p->pid, &uid))
			continue;
		differ |= seen && uid != first;
		first = uid;
		seen = true;
	}
	if (!seen)
		return;
	meta->has_uid = !differ;
	meta->uid = differ ? 0 : first;
}

void intervals_begin(struct intervals *iv, uint64_t period_ns)
{
	iv->start = (struct moment){
		.ns = clock_ns(CLOCK_MONOTONIC),
		.time_ns = clock_ns(CLOCK_REALTIME),
	};
	iv->begin = iv->counted = iv->start;
	prof_meta(iv->prof)->period_ns = period_ns;
	prof_meta(iv->prof)->time_ns = iv->start.time_ns;
	note_user(iv);
}

int intervals_count(struct intervals *iv, const uint64_t status_counts[LB_STATUS__MAX], uint64_t ns)
{
	struct moment *now = &iv->counted;
	int r;

	iv->losses->bad += ring_take_bad(iv->ring);
	r = losses_count(iv->losses, status_counts);
	if (r)
		return r;
	now->ns = ns;
	now->time_ns = clock_ns(CLOCK_REALTIME);
	memcpy(now->status_counts, iv->losses->status_counts, sizeof(now->status_counts));
	now->cpu_ns = loader_cpu_time(iv->loader);
	loader_cost(iv->loader, &now->bpf_ns, &now->bpf_runs);
	now->snapshot_line = symbolizer_snapshot_lines(iv->symbolizer);
	now->records = ring_records(iv->ring);
	prof_meta(iv->prof)->duration_ns = ns - iv->begin.ns;
	note_user(iv); /* again, as a server may change its user when it starts */
	return 0;
}

static bool has_other(const struct prof *prof, const struct prof_row *row)
{
	for (size_t i = 0; i < row->nframes; i++)
		if (prof_frame(prof, row->frames[i])->kind == PROF_OTHER)
			return true;
	return false;
}

/* Adds all samples and losses to `sum`, with nothing of their stacks but PROF_OTHER. */
static int add_counts(struct prof *sum, const struct prof *prof)
{
	const struct prof_frame other = {.kind = PROF_OTHER, .line = -1};
	uint32_t id;
	int r = 0;

	for (size_t i = 0; i < prof_nrows(prof) && !r; i++) {
		struct prof_labels labels = {};
		struct prof_row row;
		size_t n;

		prof_row(prof, i, &row);
		labels.vmstate = row.labels.vmstate;
		n = has_other(prof, &row);
		if (n)
			r = prof_frame_id(sum, &other, &id);
		if (!r)
			r = prof_add(sum, &id, n, &labels, row.count);
	}
	for (size_t i = 0; i < prof_nlosses(prof) && !r; i++) {
		struct prof_loss loss;

		prof_loss(prof, i, &loss);
		r = prof_lose(sum, loss.reason, loss.count);
	}
	return r;
}

int intervals_total(const struct intervals *iv, struct prof **out)
{
	__cleanup(prof_free) struct prof *sum = NULL;
	int r = prof_new(&sum);

	if (!r && iv->before)
		r = add_counts(sum, iv->before);
	if (!r)
		r = add_counts(sum, iv->prof);
	if (!r)
		*out = TAKE_PTR(sum);
	return r;
}

struct resend {
	struct loader *loader;
	pid_t pid;
};

static void send_again(void *arg, uint64_t proto)
{
	const struct resend *resend = arg;

	loader_send_again(resend->loader, resend->pid, proto);
}

int intervals_next(struct intervals *iv)
{
	__cleanup(prof_free) struct prof *next = NULL, *sum = NULL;
	int r = prof_new(&next);

	if (!r)
		r = intervals_total(iv, &sum);
	if (r)
		return r;
	*prof_meta(next) = *prof_meta(iv->prof);
	prof_meta(next)->time_ns = iv->counted.time_ns;
	prof_meta(next)->duration_ns = 0;
	symbolizer_begin(iv->symbolizer, next);
	for (struct process *p = iv->processes->all; p; p = p->hh.next) {
		struct resend resend = {iv->loader, p->pid};

		if (p->image)
			image_begin_profile(p->image, send_again, &resend);
	}
	processes_forget_ended(iv->processes);
	iv->stacks_before += prof_nrows(iv->prof);
	iv->begin = iv->counted;
	prof_free(&iv->before);
	iv->before = TAKE_PTR(sum);
	prof_free(&iv->prof);
	iv->prof = iv->losses->prof = TAKE_PTR(next);
	malloc_trim(0); /* the old profile's memory would stay resident for weeks */
	return 0;
}

void intervals_free(struct intervals *iv)
{
	prof_free(&iv->before);
	prof_free(&iv->prof);
}
