// SPDX-License-Identifier: BSD-2-Clause
#include "losses.h"

#include <string.h>

#include "base/cleanup.h"

enum class { RESOLVED, OUTSIDE, LOST };

static const struct {
	const char *key, *sentence;
	enum class class;
} reasons[] = {
#define LB_STATUS(id, class, key, sentence) {key, sentence, class},
#include <unwind/status.def>
#undef LB_STATUS
	{"proto-ambiguous", "another prototype took the address before the name was checked", LOST},
	{LOSS_GONE,
	 "the function was collected, or its process had ended, before its names were read", LOST},
	{"memory-waits",
	 "a page of the process's memory never came: a FUSE file system's daemon, or "
	 "a userfaultfd's, is to provide it",
	 LOST},
	{"layout-source", "of most functions the chunk's name is no string: a VM that was patched",
	 LOST},
	{"layout-lines", "most functions end on a line before their first: a VM that was patched",
	 LOST},
	{"layout-lineinfo",
	 "most functions have more or fewer lines than instructions: a VM that was patched", LOST},
	{"layout-constants", "most functions have constants of no type: a VM that was patched",
	 LOST},
	{"layout-code", "most functions do not end with a return: a VM that was patched", LOST},
	{LOSS_UNNAMED, "the function's names could not be read, or not be trusted", LOST},
	{LOSS_BAD_RECORD, "a record of the ring buffer was malformed", LOST},
};

const char *loss_sentence(const char *key)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (!strcmp(reasons[i].key, key))
			return reasons[i].sentence;
	return key;
}

const char *loss_reason(size_t i)
{
	for (size_t k = 0; k < sizeof(reasons) / sizeof(reasons[0]); k++)
		if (reasons[k].class == LOST && !i--)
			return reasons[k].key;
	return NULL;
}

int losses_add(struct losses *l, const char *reason, uint64_t count)
{
	return prof_lose(l->prof, reason, count);
}

/* Adds the counts of the classes lost and outside Lua. */
static int add_status_counts(struct prof *prof, const uint64_t status_counts[LB_STATUS__MAX])
{
	static const struct {
		enum class class;
		const char *key;
	} all[LB_STATUS__MAX] = {
#define LB_STATUS(id, class, key, sentence) [LB_STATUS_##id] = {class, key},
#include <unwind/status.def>
#undef LB_STATUS
	};
	int i, r = 0;

	for (i = 0; i < LB_STATUS__MAX && !r; i++) {
		int as = all[i].class == OUTSIDE ? LB_STATUS_OUTSIDE : i;

		if (all[i].class != RESOLVED && status_counts[i])
			r = prof_lose(prof, all[as].key, status_counts[i]);
	}
	return r;
}

int losses_count(struct losses *l, const uint64_t status_counts[LB_STATUS__MAX])
{
	uint64_t more[LB_STATUS__MAX], not_lua;
	int i, r;

	for (i = 0; i < LB_STATUS__MAX; i++) /* RESOLVED may be less: release_slot() in bpf/ */
		more[i] = status_counts[i] - l->counted[i];
	memcpy(l->counted, status_counts, sizeof(l->counted));
	not_lua = more[LB_STATUS_UNRECOGNISED];
	if (l->not_lua < not_lua)
		not_lua = l->not_lua;
	l->not_lua -= not_lua;
	more[LB_STATUS_UNRECOGNISED] -= not_lua;
	if (!l->everywhere)
		more[LB_STATUS_OUTSIDE] += not_lua;
	for (i = 0; i < LB_STATUS__MAX; i++)
		l->status_counts[i] += more[i];
	r = add_status_counts(l->prof, more);
	if (!r && l->bad)
		r = losses_add(l, LOSS_BAD_RECORD, l->bad);
	l->bad = 0;
	return r;
}

int losses_of_process(pid_t pid, const uint64_t status_counts[LB_STATUS__MAX], uint64_t shown,
		      struct prof **out)
{
	const struct prof_labels labels = {.vmstate = 'I', .pid = (uint32_t)pid, .comm = ""};
	__cleanup(prof_free) struct prof *prof = NULL;
	int r = prof_new(&prof);

	if (!r && shown)
		r = prof_add(prof, NULL, 0, &labels, shown);
	if (!r)
		r = add_status_counts(prof, status_counts);
	if (!r && status_counts[LB_STATUS_RESOLVED] > shown)
		r = prof_lose(prof, LOSS_UNNAMED, status_counts[LB_STATUS_RESOLVED] - shown);
	if (!r)
		*out = TAKE_PTR(prof);
	return r;
}
