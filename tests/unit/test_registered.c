/* SPDX-License-Identifier: BSD-2-Clause */
/* The names under which Debian's interpreters register their own functions. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "proc/elf_regs.h"
#include "sym/registered.h"

static const char *const common[] = {"",   "string",	"table", "math",     "os",
				     "io", "io.method", "debug", "coroutine"};
#define COMMON (sizeof(common) / sizeof(common[0]))

struct registered_seen {
	const struct registered *registered;
	unsigned int libraries; /* bit: of common[] */
	unsigned int functions;
	uint64_t sort;
};

static int check(void *arg, const struct elf_regs *regs)
{
	struct registered_seen *s = arg;
	size_t i;

	if (!regs->library)
		return 0;
	for (i = 0; i < COMMON; i++)
		if (!strcmp(regs->library, common[i]))
			s->libraries |= 1u << i;
	if (!strcmp(regs->library, "table"))
		s->sort = elf_regs_function(regs, "sort");
	for (i = 0; i < regs->n; i++) {
		if (!regs->function[i])
			continue;
		s->functions++;
		cr_expect_not_null(registered_name(s->registered, regs->function[i]), "%s.%s",
				   regs->library, regs->name[i]);
		cr_expect_null(registered_name(s->registered, regs->function[i] + 1));
	}
	return 0;
}

Test(registered, functions_of_the_interpreters)
{
	static const char *const versions[] = {"5.1", "5.2", "5.3", "5.4"};
	size_t i;

	for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		struct registered *r __cleanup(registered_free) = NULL;
		struct elf_file *elf __cleanup(elf_close) = NULL;
		struct registered_seen s = {};
		char path[64];

		snprintf(path, sizeof(path), "/usr/bin/lua%s", versions[i]);
		cr_assert_eq(elf_open(path, &elf), 0, "%s", path);
		cr_assert_eq(registered_read(elf, &r), 0, "%s", path);
		cr_assert_not_null(r, "%s", path);
		s.registered = r;
		cr_assert_eq(elf_regs(elf, check, &s), 0);
		cr_expect_eq(s.libraries, (1u << COMMON) - 1, "%s: %x", path, s.libraries);
		cr_expect_gt(s.functions, 100, "%s", path);
		cr_expect_str_eq(registered_name(r, s.sort), "table.sort");
		cr_expect_gt(registered_bytes(r), 0);
	}
}

Test(registered, a_file_without_lua)
{
	struct registered *r __cleanup(registered_free) = NULL;
	struct elf_file *elf __cleanup(elf_close) = NULL;

	cr_assert_eq(elf_open("/lib/x86_64-linux-gnu/libz.so.1", &elf), 0);
	cr_expect_eq(registered_read(elf, &r), 0);
	cr_expect_null(r);
	cr_expect_null(registered_name(r, 0x1000));
	cr_expect_eq(registered_bytes(r), 0);
}
