// SPDX-License-Identifier: BSD-2-Clause
/* The maps that say which processes, files and builds have Lua, and which are sampled. */
#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "loader_priv.h"

int loader_set_build(struct loader *l, uint32_t index, const struct lb_build *build)
{
	return bpf_map__update_elem(l->skel->maps.builds, &index, sizeof(index), build,
				    sizeof(*build), BPF_ANY);
}

int loader_set_zone_layout(struct loader *l, uint32_t build, struct lb_zone_layout *layout)
{
	layout->seed = l->zone_seed;
	return bpf_map__update_elem(l->skel->maps.zone_layouts, &build, sizeof(build), layout,
				    sizeof(*layout), BPF_ANY);
}

int loader_set_zone(struct loader *l, const struct lb_zone_key *key, const struct lb_zone *zone)
{
	struct lb_zone value = *zone;
	int r;

	value.check = lb_zone_check(key, zone);
	r = bpf_map__update_elem(l->skel->maps.zones, key, sizeof(*key), &value, sizeof(value),
				 BPF_ANY);
	__atomic_add_fetch(&l->skel->bss->zones_version, 1, __ATOMIC_RELEASE);
	return r;
}

int loader_set_file(struct loader *l, const struct lb_file_key *key, const struct lb_file *file)
{
	return bpf_map__update_elem(l->skel->maps.files, key, sizeof(*key), file, sizeof(*file),
				    BPF_ANY);
}

int loader_set_verdict(struct loader *l, const struct lb_identity *identity, bool wanted)
{
	uint32_t value = wanted;

	return bpf_map__update_elem(l->skel->maps.verdicts, identity, sizeof(*identity), &value,
				    sizeof(value), BPF_ANY);
}

/* Invalidates BPF's cached copies. */
static int procs_changed(struct loader *l, int r)
{
	__atomic_add_fetch(&l->skel->bss->procs_version, 1, __ATOMIC_RELEASE);
	return r;
}

int loader_put_proc(struct loader *l, pid_t pid, const struct lb_proc *proc)
{
	uint32_t key = (uint32_t)pid;

	return procs_changed(l, bpf_map__update_elem(l->skel->maps.procs, &key, sizeof(key), proc,
						     sizeof(*proc), BPF_ANY));
}

/* Modules that an entry does not hold. */
static int pool_modules(struct loader *l, struct lb_proc *proc, const struct lb_module *modules,
			uint32_t n)
{
	const struct module_block *b;
	bool is_new;
	int r = module_pool_hold(&l->pool, modules, n, &b, &is_new);

	if (r)
		return r;
	for (uint32_t i = 0; i < n && is_new && !r; i++) {
		uint32_t key = b->first + i;

		r = bpf_map__update_elem(l->skel->maps.modules, &key, sizeof(key), &b->modules[i],
					 sizeof(b->modules[i]), BPF_ANY);
	}
	if (r)
		module_pool_drop(&l->pool, b->first);
	else
		proc->more = b->first + 1;
	return r;
}

int loader_set_proc(struct loader *l, pid_t pid, struct lb_proc *proc,
		    const struct lb_module *modules, uint32_t n)
{
	struct lb_proc was = *proc;
	int r = 0;

	proc->more = 0;
	if (n > LB_MODULES)
		r = pool_modules(l, proc, modules, n);
	if (r == -ENOSPC) {
		n = LB_MODULES;
		proc->unsampled = 1;
		r = 0;
	}
	proc->nmodules = n;
	proc->families = 0;
	memset(proc->module, 0, sizeof(proc->module));
	for (uint32_t i = 0; i < n; i++) {
		proc->families |= 1u << modules[i].family;
		if (!proc->more)
			proc->module[i] = modules[i];
	}
	if (!r)
		r = loader_put_proc(l, pid, proc);
	if (r)
		loader_drop_modules(l, proc);
	else
		loader_drop_modules(l, &was);
	if (r)
		*proc = was;
	return r;
}

bool loader_share_modules(struct loader *l, const struct lb_proc *proc)
{
	return !proc->more || module_pool_share(&l->pool, proc->more - 1);
}

void loader_drop_modules(struct loader *l, struct lb_proc *proc)
{
	if (proc->more)
		module_pool_drop(&l->pool, proc->more - 1);
	proc->more = 0;
}

int loader_get_proc(struct loader *l, pid_t pid, struct lb_proc *proc)
{
	uint32_t key = (uint32_t)pid;

	return bpf_map__lookup_elem(l->skel->maps.procs, &key, sizeof(key), proc, sizeof(*proc), 0);
}

int loader_drop_proc(struct loader *l, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	return procs_changed(l, bpf_map__delete_elem(l->skel->maps.procs, &key, sizeof(key), 0));
}

uint32_t loader_procs(const struct loader *l)
{
	uint32_t key, *before = NULL, n = 0;

	while (n < LB_PROCS &&
	       !bpf_map__get_next_key(l->skel->maps.procs, before, &key, sizeof(key))) {
		before = &key;
		n++;
	}
	return n;
}

void loader_send_again(struct loader *l, pid_t pid, uint64_t proto)
{
	__u32 *slot = &l->skel->bss->proto_sent[LB_PROTO_SLOT(proto, (__u32)pid)];

	__atomic_store_n(slot, 0, __ATOMIC_RELAXED);
}
