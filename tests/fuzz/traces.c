// SPDX-License-Identifier: BSD-2-Clause
/*
 * A VM's traces and starts, damaged: input changes bytes of its objects (lj_compiled_vm.h). Reading it
 * twice, once before and once after the second half of the damage, and all reports must end.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz_walk.h"
#include "lj_compiled_vm.h"
#include "lj_layouts.h"
#include "traces/report.h"

static void damage(struct lj_compiled_vm *vm, struct fuzz_undo *undo, struct fuzz_input *in)
{
	uint64_t op = fuzz_take(in, 1), at = fuzz_take(in, 3), value;
	size_t size = (size_t)1 << (op >> 1 & 3), n = (at & 0xff) % vm->img.nobjects;
	uint32_t len = vm->img.objects[n].size, offset;

	if (len < size)
		return;
	value = op & 1 ? LJI_HEAP + vm->img.objects[fuzz_take(in, 1) % vm->img.nobjects].offset
		       : fuzz_take(in, size);
	offset = fuzz_offset((uint32_t)(at >> 8), len, op & 1 && len >= 8 ? 8 : size);
	fuzz_change(undo, vm->img.heap + vm->img.objects[n].offset + offset, value,
		    op & 1 && len >= 8 ? 8 : size);
}

static struct lj_compiled_vm *vm_of(size_t i)
{
	static struct lj_compiled_vm vms[LJ_LAYOUT_SCENES64];
	const char *name;

	i %= LJ_LAYOUT_SCENES64;
	if (!vms[i].main)
		lj_compiled_vm_init(&vms[i], lj_layout_scene(i, &name));
	return &vms[i];
}

/* One of the reports: each takes longer than all else. */
static void report(const struct traces_vm *vm, size_t which)
{
	static FILE *null;
	cJSON *json;

	if (!null)
		null = fopen("/dev/null", "we");
	if (which % 3 == 0 && traces_print(vm, NULL, null))
		abort();
	if (which % 3 == 1 && traces_annotate(vm, NULL, NULL, null))
		abort();
	if (which % 3 == 2) {
		json = traces_json(vm, NULL);
		if (!json)
			abort();
		cJSON_Delete(json);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const unsigned int all = TRACES_TRACES | TRACES_STARTS | TRACES_HEAP | TRACES_CODE;
	struct fuzz_input in = {.p = data, .left = size};
	struct lj_compiled_vm *cv = vm_of(fuzz_take(&in, 1));
	static struct fuzz_undo undo;
	struct traces_vm *vm;

	if (traces_vm_new(&cv->img.mem.mem, &cv->img.lj, cv->img.g, &vm))
		abort();
	while (in.left > size / 2)
		damage(cv, &undo, &in);
	traces_vm_read(vm, all);
	while (in.left)
		damage(cv, &undo, &in);
	traces_vm_read(vm, all);
	report(vm, size);
	traces_vm_free(&vm);
	fuzz_undo(&undo);
	return 0;
}
