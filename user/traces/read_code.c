// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads the functions that are listed once more: the VM patches their bytecode when it makes a
 * trace or gives one up, and back when traces are flushed. And those that they define, whose
 * instructions FNEW show where that is. A function that cannot be read any more stays as it was.
 */
#include <errno.h>

#include "lua/lj/proto_parts.h"
#include "reader.h"

static int read_function(struct traces_reader *rd, const struct lj_proto *of)
{
	return of && traces_family_at(rd, of->addr) == -ENOMEM ? -ENOMEM : 0;
}

static int read_of_trace(struct traces_reader *rd, const struct traces_trace *t)
{
	int r = read_function(rd, t->start.pt);

	for (size_t i = 0; i < t->ncovered && !r; i++)
		if (!i || t->covered[i].pt != t->covered[i - 1].pt)
			r = read_function(rd, t->covered[i].pt);
	for (uint32_t i = 0; i < t->snapshots && !r; i++)
		if (t->exits[i].count && (!i || t->exits[i].at.pt != t->exits[i - 1].at.pt))
			r = read_function(rd, t->exits[i].at.pt);
	return r;
}

int traces_read_code(struct traces_vm *vm)
{
	int r = 0;

	for (size_t i = 0; i < vm->ntraces && !r; i++)
		if (!vm->traces[i].gone)
			r = read_of_trace(vm->reader, &vm->traces[i]);
	for (size_t i = 0; i < vm->nstarts && !r; i++)
		if (!vm->starts[i].gone)
			r = read_function(vm->reader, vm->starts[i].at.pt);
	for (size_t i = 0; i < vm->nstarts && !r; i++)
		if (!vm->starts[i].gone && vm->starts[i].has_cause)
			r = read_function(vm->reader, vm->starts[i].cause.pt);
	return r;
}
