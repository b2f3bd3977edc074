// SPDX-License-Identifier: BSD-2-Clause
#include "lj32.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <unwind/abi.h>

#include "luabpf32.skel.h"

/* Both objects are compiled from one source, so that their variables are at the same offsets. */
#define SAME(section, variable)                                                                    \
	_Static_assert(offsetof(struct luabpf_bpf__##section, variable) ==                         \
			       offsetof(struct luabpf32_bpf__##section, variable),                 \
		       "variables of both objects")
SAME(rodata, narrowed_by);
SAME(rodata, events_per_sample);
SAME(rodata, by_process);
SAME(rodata, by_coroutine);
SAME(rodata, by_zone);
SAME(bss, procs_version);
SAME(bss, doubled);
SAME(bss, first_sample);
SAME(bss, proto_sent);
SAME(bss, stack_counts);
SAME(data, proof_epoch);
_Static_assert(sizeof(struct luabpf_bpf__bss) == sizeof(struct luabpf32_bpf__bss), "bss");

/* Returns a map's name without that of its object, which the names of data sections begin with. */
static const char *own_name(const struct bpf_map *map)
{
	const char *name = bpf_map__name(map), *dot = strchr(name, '.');

	return bpf_map__is_internal(map) && dot ? dot : name;
}

static int fd_of(const struct luabpf_bpf *first, const struct bpf_map *map)
{
	struct bpf_map *its;

	bpf_object__for_each_map(its, first->obj)
	{
		if (!strcmp(own_name(its), own_name(map)))
			return bpf_map__fd(its);
	}
	return -1;
}

static int share_maps(const struct luabpf_bpf *first, struct luabpf32_bpf *lj32)
{
	struct bpf_map *map;
	int r = 0;

	bpf_object__for_each_map(map, lj32->obj)
	{
		int fd = fd_of(first, map);

		if (fd >= 0)
			r = bpf_map__reuse_fd(map, fd);
		else if (map == lj32->maps.walks)
			r = bpf_map__set_max_entries(map, (uint32_t)libbpf_num_possible_cpus());
		else
			r = bpf_map__set_autocreate(map, false);
		if (r)
			return r;
	}
	return 0;
}

int lj32_load(const struct luabpf_bpf *first, const struct bpf_object_open_opts *opts)
{
	struct luabpf32_bpf *lj32 = luabpf32_bpf__open_opts(opts);
	uint32_t family = LB_FAMILY_LJ32;
	int r, fd;

	if (!lj32)
		return -errno;
	r = share_maps(first, lj32);
	if (!r)
		r = luabpf32_bpf__load(lj32);
	fd = bpf_program__fd(lj32->progs.luabpf_lj32);
	if (!r)
		r = bpf_map__update_elem(first->maps.family_programs, &family, sizeof(family), &fd,
					 sizeof(fd), BPF_ANY);
	luabpf32_bpf__destroy(lj32);
	return r;
}
