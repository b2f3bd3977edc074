// SPDX-License-Identifier: BSD-2-Clause
#include "family_object.h"

#include <stddef.h>

#include <bpf/libbpf.h>

#include <unwind/abi.h>

#include "luabpf.skel.h"
#include "luabpf32.skel.h"

/* The objects' variables are in shared maps, so that they have to be at the same offsets. */
#define SAME(section, variable)                                                                    \
	_Static_assert(offsetof(struct luabpf_bpf__##section, variable) ==                         \
			       offsetof(struct luabpf32_bpf__##section, variable),                 \
		       "variables of both objects")
SAME(rodata, by_coroutine);
SAME(rodata, by_zone);
SAME(bss, zones_version);
SAME(bss, first_sample);
SAME(bss, proto_sent);
SAME(bss, stack_counts);
SAME(data, proof_epoch);
_Static_assert(sizeof(struct luabpf_bpf__bss) == sizeof(struct luabpf32_bpf__bss), "bss");

static const struct {
	const char *program, *walks;
	const void *(*bytes)(size_t *size);
} objects[LB_FAMILIES_MOST] = {
	[LB_FAMILY_LJ] = {"luabpf_lj", "walks", luabpf_bpf__elf_bytes},
	[LB_FAMILY_PUC] = {"luabpf_puc", "puc_walks", luabpf_bpf__elf_bytes},
	[LB_FAMILY_LJ32] = {"luabpf_lj32", "walks", luabpf32_bpf__elf_bytes},
};

struct bpf_object *family_object_open(uint32_t family, const char *name,
				      struct bpf_object_open_opts *options)
{
	size_t size;
	const void *bytes = objects[family].bytes(&size);

	options->object_name = name;
	return bpf_object__open_mem(bytes, size, options);
}

const char *family_program(uint32_t family)
{
	return objects[family].program;
}

const char *family_walks(uint32_t family)
{
	return objects[family].walks;
}
