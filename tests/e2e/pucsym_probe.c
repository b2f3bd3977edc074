/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks user/sym about a live PUC Lua process (sym_probe.h). For test_pucsym.py.
 *
 *     pucsym_probe PID RELEASE
 *     proto FUNC     address of the prototype of a closure
 *     about PROTO    chunk name, first line, last line, "complete", "stripped"
 *     names PROTO    per instruction: position, line, kind of name, name
 *     defs PROTO     per named child: its prototype, name
 *     cfunc THREAD FUNC   name of a C function in the loaded modules
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem_remote.h"
#include "lua/puc/cnames.h"
#include "lua/puc/proto.h"
#include "sym_probe.h"
#include "detect/puc/recognise.h"

struct probe {
	struct mem_remote target;
	const struct puc_layout *puc;
	struct puc_cnames *names;
};

static void print_names(const struct puc_proto *p)
{
	uint32_t pc;

	for (pc = 0; pc < puc_proto_sizecode(p); pc++) {
		const char *name = "";
		enum puc_namewhat what = puc_proto_callname(p, pc, &name);

		printf("%u %d %s %s\n", pc, puc_proto_line(p, pc),
		       what == PUC_NAME_FOR_ITERATOR ? "for_iterator"
		       : what			     ? puc_namewhat_str(what)
						     : "none",
		       name);
	}
}

static void print_proto(const struct probe *t, const char *verb, uint64_t addr)
{
	struct puc_proto *p = NULL;
	int err = puc_proto_read(&t->target.mem, t->puc, addr, &p);

	if (err)
		printf("error %d\n", err);
	else if (!strcmp(verb, "names"))
		print_names(p);
	else if (!strcmp(verb, "defs"))
		puc_proto_definitions(p, print_def, NULL);
	else
		printf("%s\n%d\n%d\n%d\n%d\n", puc_proto_chunkname(p, NULL), puc_proto_firstline(p),
		       puc_proto_lastline(p), puc_proto_complete(p), puc_proto_stripped(p));
	puc_proto_free(&p);
}

/* tostring() shows a light C function as its own address, a closure as that of the closure. */
static void print_cfunc(struct probe *t, uint64_t L, uint64_t func)
{
	const struct lb_mem *mem = &t->target.mem;
	const char *name;
	int err = 0;

	if (!t->names)
		err = puc_cnames_read(mem, t->puc, word_at(mem, L + t->puc->L_l_G), &t->names);
	if (err)
		printf("error %d\n", err);
	name = puc_cname(t->names, func);
	if (!name)
		name = puc_cname(t->names, word_at(mem, func + t->puc->closure_p));
	printf("%s\n", name ? name : "none");
}

static void answer(void *arg, const char *verb, uint64_t a, uint64_t b)
{
	struct probe *t = arg;

	if (!strcmp(verb, "proto"))
		printf("%" PRIx64 "\n", word_at(&t->target.mem, a + t->puc->closure_p));
	else if (!strcmp(verb, "cfunc"))
		print_cfunc(t, a, b);
	else
		print_proto(t, verb, a);
}

int main(int argc, char **argv)
{
	struct probe t = {0};
	const char *row;
	int ret;

	if (argc != 3)
		return 2;
	mem_remote_init(&t.target, atoi(argv[1]));
	t.puc = puc_layout_of(argv[2], &row);
	if (!t.puc)
		return 3;
	ret = answer_commands(answer, &t);
	puc_cnames_free(&t.names);
	return ret;
}
