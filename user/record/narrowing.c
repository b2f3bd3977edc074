// SPDX-License-Identifier: BSD-2-Clause
/*
 * The record has the name and the user. Executable and cgroup have paths only in /proc, which may show
 * a later state of the process: the decision counts if start_stack and the cgroup's id are the
 * record's still.
 */
#include "narrowing.h"

#include "proc/process.h"

uint32_t narrowing_kinds(const struct narrow *n)
{
	return (n->exes->n ? LB_NARROW_EXE : 0) | (n->comms->n ? LB_NARROW_COMM : 0) |
	       (n->nuids ? LB_NARROW_USER : 0) | (n->cgroups.n ? LB_NARROW_CGROUP : 0);
}

static enum narrowing decide_exe(const struct narrow *n, const struct lb_rec_task *rec)
{
	char exe[PROCESS_NAME];

	if (!n->exes->n)
		return NARROWING_WANTED;
	process_exe((pid_t)rec->pid, exe, sizeof(exe));
	if (!*exe || process_start_stack((pid_t)rec->pid) != rec->start_stack)
		return NARROWING_UNDECIDED;
	return narrow_exe(n, exe) ? NARROWING_WANTED : NARROWING_UNWANTED;
}

static enum narrowing decide_cgroup(const struct narrow *n, const struct lb_rec_task *rec)
{
	char path[CGROUP2_PATH];

	if (!n->cgroups.n)
		return NARROWING_WANTED;
	if (cgroup2_of((pid_t)rec->pid, path))
		return NARROWING_UNDECIDED;
	if (!narrow_cgroup(n, path) && !cgroup2_is_below(path, "/"))
		return NARROWING_UNWANTED; /* it is beyond what this process can see */
	if (cgroup2_id(n->cgroup_mount, path) != rec->identity.cgroup)
		return NARROWING_UNDECIDED;
	return narrow_cgroup(n, path) ? NARROWING_WANTED : NARROWING_UNWANTED;
}

enum narrowing narrowing_decide(const struct narrow *n, struct loader *loader,
				const struct lb_rec_task *rec)
{
	char comm[LB_COMM + 1] = {};
	enum narrowing exe, cgroup, all;

	for (size_t i = 0; i < LB_COMM; i++)
		comm[i] = rec->identity.comm[i];
	exe = decide_exe(n, rec);
	cgroup = decide_cgroup(n, rec);
	if (!narrow_comm(n, comm) || !narrow_uid(n, rec->identity.uid) ||
	    exe == NARROWING_UNWANTED || cgroup == NARROWING_UNWANTED)
		all = NARROWING_UNWANTED;
	else if (exe == NARROWING_UNDECIDED || cgroup == NARROWING_UNDECIDED)
		return NARROWING_UNDECIDED;
	else
		all = NARROWING_WANTED;
	loader_set_verdict(loader, &rec->identity, all == NARROWING_WANTED);
	return all;
}
