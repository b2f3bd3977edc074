// SPDX-License-Identifier: BSD-2-Clause
/* One VM that is read again and again: its traces, and what each reading keeps for the next. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "reader.h"

int traces_vm_new(const struct lb_mem *mem, const struct lj_layout *lj, uint64_t g,
		  struct traces_vm **out)
{
	struct traces_vm *vm __cleanup(traces_vm_free) = calloc(1, sizeof(*vm));

	if (!vm)
		return -ENOMEM;
	vm->g = g;
	vm->reader = calloc(1, sizeof(*vm->reader));
	if (!vm->reader)
		return -ENOMEM;
	vm->reader->mem = mem;
	vm->reader->lj = lj;
	vm->reader->g = g;
	*out = TAKE_PTR(vm);
	return 0;
}

void traces_vm_free(struct traces_vm **vm)
{
	struct traces_reader *rd = *vm ? (*vm)->reader : NULL;

	if (!*vm)
		return;
	traces_traces_free(*vm);
	free((*vm)->starts);
	if (rd) {
		traces_functions_free(rd);
		lj_ffnames_free(&rd->names);
		free(rd->heap);
	}
	free(rd);
	free(*vm);
	*vm = NULL;
}

int traces_vm_read(struct traces_vm *vm, unsigned int what)
{
	struct traces_reader *rd = vm->reader;
	int r = 0;

	if (!rd->names && lj_ffnames_read(rd->mem, rd->lj, rd->g, &rd->names) == -ENOMEM)
		return -ENOMEM;
	rd->reading++;
	rd->nheap = 0;
	rd->has_heap = false;
	if (what & TRACES_HEAP)
		r = traces_read_heap(rd);
	vm->has_heap |= rd->has_heap;
	if (!r && what & TRACES_TRACES)
		r = traces_read_traces(vm);
	if (!r && what & (TRACES_STARTS | TRACES_HEAP))
		r = traces_read_starts(vm);
	if (!r && what & TRACES_CODE)
		r = traces_read_code(vm);
	return r;
}
