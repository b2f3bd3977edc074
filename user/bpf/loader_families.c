// SPDX-License-Identifier: BSD-2-Clause
/* The programs of families: each is loaded by a child process, or in this one. */
#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "families.h"
#include "family_object.h"
#include "kernel_btf.h"
#include "load_error.h"
#include "loader_priv.h"

void loader_choose_program(const struct bpf_object *obj, const struct bpf_program *chosen)
{
	struct bpf_program *program;

	bpf_object__for_each_program (program, obj)
		bpf_program__set_autoload(program, program == chosen);
}

/* They have the maps of the program of the events, and their own walk. */
static int share_maps(const struct loader *l, struct bpf_object *obj, const struct bpf_map *walk)
{
	struct bpf_map *map;
	int r = 0;

	bpf_object__for_each_map(map, obj)
	{
		struct bpf_map *ours =
			bpf_object__find_map_by_name(l->skel->obj, bpf_map__name(map));
		int fd = ours ? bpf_map__fd(ours) : -1;

		if (fd >= 0)
			r = bpf_map__reuse_fd(map, fd);
		else if (map == walk)
			r = bpf_map__set_max_entries(map, (uint32_t)libbpf_num_possible_cpus());
		else
			r = bpf_map__set_autocreate(map, false);
		if (r)
			return r;
	}
	return 0;
}

static int load_family(void *arg, uint32_t family)
{
	const struct loader *l = arg;
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	char path[KERNEL_BTF_PATH];
	struct bpf_program *program;
	struct bpf_object *obj;
	int r, fd;

	kernel_btf_use(&opts, l->btf, path);
	obj = family_object_open(family, bpf_object__name(l->skel->obj), &opts);
	if (!obj)
		return -errno;
	program = bpf_object__find_program_by_name(obj, family_program(family));
	loader_choose_program(obj, program);
	r = share_maps(l, obj, bpf_object__find_map_by_name(obj, family_walks(family)));
	if (!r)
		r = bpf_object__load(obj);
	fd = bpf_program__fd(program);
	if (!r)
		r = bpf_map__update_elem(l->skel->maps.family_programs, &family, sizeof(family),
					 &fd, sizeof(fd), BPF_ANY);
	bpf_object__close(obj);
	return r;
}

#define MAPS_MOST 64

int loader_start_families(struct loader *l, struct error *err)
{
	struct families_options o = {.load = load_family, .arg = l, .families = LB_FAMILIES_ALL};
	int keep[MAPS_MOST + 1], r;
	struct bpf_map *map;

	bpf_object__for_each_map(map,
				 l->skel->obj) if (bpf_map__fd(map) >= 0 && o.nkeep < MAPS_MOST)
		keep[o.nkeep++] = bpf_map__fd(map);
	keep[o.nkeep++] = l->btf;
	o.keep = keep;
	r = families_start(&o, &l->families);
	return r ? error_set(err, r, "cannot start a process: %s", strerror(-r)) : 0;
}

/* Loads those that were not requested before. */
static void load_here(struct loader *l, uint32_t bits)
{
	bits &= ~l->families_here;
	l->families_here |= bits;
	for (uint32_t i = 0; i < LB_FAMILIES_MOST && !l->families_error; i++)
		if (bits >> i & 1)
			l->families_error = load_family(l, i);
}

void loader_request_families(struct loader *l, uint32_t families)
{
	if (l->families)
		families_request(l->families, families);
	else
		load_here(l, families);
}

void loader_prepare_families(struct loader *l, uint32_t families)
{
	if (l->families)
		families_prepare(l->families, families);
}

void loader_reap_families(struct loader *l)
{
	if (l->families)
		families_reap(l->families);
}

int loader_wait_families(struct loader *l, struct error *err)
{
	int r = l->families ? families_wait(l->families) : l->families_error;

	if (r == -EIO)
		return error_set(err, r, "BPF programs: the process that loads one was killed");
	return r ? load_error(r, err) : 0;
}
