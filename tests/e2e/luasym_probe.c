/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks user/sym about a live LuaJIT process (sym_probe.h). For test_luasym.py.
 *
 *     luasym_probe PID
 *     proto FUNC     address of the prototype of a closure
 *     names PROTO    per instruction: position, line, kind of name, name
 *     defs PROTO     per named child: its prototype, name
 *     ff THREAD      per fast function: number, name
 *     cfunc THREAD FUNC   name of a C function in the loaded modules
 */
#include <stdlib.h>
#include <string.h>

#include <unwind/lj/layout.h>

#include "base/mem_remote.h"
#include "lua/lj/ffnames.h"
#include "lua/lj/proto.h"
#include "sym_probe.h"

/* Both of Debian's builds (2022-03-20 and 2023-01-19): offset of registrytv in global_State. */
static const struct lj_layout layout = {.registrytv = 272, .str_len = LJ_STR_LEN};

static void print_names(const struct lb_mem *mem, uint64_t pt)
{
	struct lj_proto *p = NULL;
	uint32_t pos;
	int err = lj_proto_read(mem, &layout, pt, &p);

	if (err)
		printf("error %d\n", err);
	for (pos = 0; p && pos < lj_proto_sizebc(p); pos++) {
		const char *name = "";
		enum lj_namewhat what = lj_proto_callname(p, pos, &name);

		printf("%u %d %s %s\n", pos, lj_proto_line(p, pos),
		       what ? lj_namewhat_str(what) : "none", name);
	}
	lj_proto_free(&p);
}

static void print_defs(const struct lb_mem *mem, uint64_t pt)
{
	struct lj_proto *p = NULL;
	int err = lj_proto_read(mem, &layout, pt, &p);

	if (err)
		printf("error %d\n", err);
	else
		lj_proto_definitions(p, print_def, NULL);
	lj_proto_free(&p);
}

static void print_ff(const struct lb_mem *mem, uint64_t L, uint64_t func)
{
	struct lj_ffnames *names = NULL;
	int i, err = lj_ffnames_read(mem, &layout, word_at(mem, L + LJ_L_GLREF), &names);

	if (err) {
		printf("error %d\n", err);
		return;
	}
	if (func) {
		const char *name = lj_cfunc_name(names, word_at(mem, func + LJ_FUNC_F));

		printf("%s\n", name ? name : "none");
	} else {
		for (i = 0; i < 256; i++)
			if (lj_ffname(names, (uint8_t)i))
				printf("%d %s\n", i, lj_ffname(names, (uint8_t)i));
	}
	lj_ffnames_free(&names);
}

static void answer(void *arg, const char *verb, uint64_t a, uint64_t b)
{
	const struct lb_mem *mem = arg;

	if (!strcmp(verb, "proto"))
		printf("%" PRIx64 "\n", word_at(mem, a + LJ_FUNC_PC) - LJ_PROTO_SIZE);
	else if (!strcmp(verb, "names"))
		print_names(mem, a);
	else if (!strcmp(verb, "defs"))
		print_defs(mem, a);
	else if (!strcmp(verb, "ff") || !strcmp(verb, "cfunc"))
		print_ff(mem, a, b);
}

int main(int argc, char **argv)
{
	struct mem_remote target;

	if (argc != 2)
		return 2;
	mem_remote_init(&target, atoi(argv[1]));
	return answer_commands(answer, &target.mem);
}
