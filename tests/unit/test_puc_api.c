// SPDX-License-Identifier: BSD-2-Clause
/* What the code of PUC Lua's API shows of its structs: made code, and installed files. */
#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detect/puc/api.h"
#include "detect/puc/recognise.h"
#include "detect/puc/structs.h"
#include "file_bytes.h"

#define LIB "/usr/lib/x86_64-linux-gnu/"
#define LUA54 LIB "liblua5.4.so.0"

/* ---- code of API functions ------------------------------------------------------------------- */

#define FACTS(facts, code) puc_api_facts((const uint8_t *)(code), sizeof(code) - 1, facts)

static void expect_fact(const struct puc_fact *f, unsigned depth, unsigned d1, unsigned at,
			unsigned width)
{
	cr_expect_eq(f->path.depth, (int)depth);
	cr_expect_eq(f->path.d[0], (int)d1);
	cr_expect_eq(f->at, at);
	cr_expect_eq(f->width, width);
}

Test(puc_api, fact_of_a_byte)
{
	struct puc_fact f[PUC_FACTS];

	/* movzbl 0xc(%rdi),%eax; ret */
	cr_assert_eq(FACTS(f, "\x0f\xb6\x47\x0c\xc3"), 1);
	expect_fact(&f[0], 1, 0, 12, 1);
}

Test(puc_api, facts_behind_a_pointer)
{
	struct puc_fact f[PUC_FACTS];

	/* mov 0x18(%rdi),%rax; mov 0x100(%rax),%rdx; mov %rsi,0x108(%rax); ret */
	cr_assert_eq(FACTS(f, "\x48\x8b\x47\x18\x48\x8b\x90\x00\x01\x00\x00"
			      "\x48\x89\xb0\x08\x01\x00\x00\xc3"),
		     3);
	expect_fact(&f[0], 1, 0, 24, 8);
	expect_fact(&f[1], 2, 24, 256, 8);
	expect_fact(&f[2], 2, 24, 264, 8);
}

/* L moves to a register that survives a call, and is followed down both branches. */
Test(puc_api, facts_after_a_call)
{
	struct puc_fact f[PUC_FACTS];

	/* mov %rdi,%rbx; call; test %eax,%eax; je +5; lea 0x60(%rbx),%rax; ret;
	 * (at the target) mov 0x20(%rbx),%rax; mov 0x10(%rdi),%rax; ret */
	cr_assert_eq(FACTS(f, "\x48\x89\xfb\xe8\x00\x01\x00\x00\x85\xc0\x74\x05"
			      "\x48\x8d\x43\x60\xc3\x48\x8b\x43\x20\x48\x8b\x47\x10\xc3"),
		     2);
	expect_fact(&f[0], 1, 0, 96, PUC_ADDRESS);
	expect_fact(&f[1], 1, 0, 32, 8);
}

Test(puc_api, facts_of_loops_and_nonsense)
{
	struct puc_fact f[PUC_FACTS];
	uint8_t code[PUC_API_TEXT];
	size_t i;

	cr_expect_eq(FACTS(f, "\xeb\xfe"), 0);			   /* jmp to itself */
	cr_expect_eq(FACTS(f, "\x48\x8b\x47"), 0);		   /* ends too early */
	cr_expect_eq(FACTS(f, "\x48\x8b\x87\xf8\xff\xff\xff"), 0); /* below L */
	cr_expect_eq(puc_api_facts(code, 0, f), 0);
	for (i = 0; i + 4 <= sizeof(code);
	     i += 4) /* mov i(%rdi),%rax: more than there is room for */
		memcpy(code + i, (uint8_t[]){0x48, 0x8b, 0x47, (uint8_t)(i / 4 % 128)}, 4);
	cr_expect_eq(puc_api_facts(code, sizeof(code), f), PUC_FACTS);
	memset(code, 0x74, sizeof(code)); /* je: each leads to the next */
	cr_expect_eq(puc_api_facts(code, sizeof(code), f), 0);
}

/* ---- installed files ------------------------------------------------------------------------- */

/* What code shows of functions, strings and tables, by layouts that are not the file's. */
struct uses {
	unsigned known, unknown;
	char last[32];
};

static void count_use(void *arg, const struct puc_struct_use *use)
{
	struct uses *u = arg;

	u->known += use->known;
	u->unknown += !use->known;
	if (!use->known)
		snprintf(u->last, sizeof(u->last), "%s %u:%u", use->name, use->at, use->width);
}

static struct uses uses_of(struct elf_file *elf, const struct puc_layout *puc)
{
	struct uses u = {0};

	puc_structs_used(elf, puc, count_use, &u);
	return u;
}

/* What nothing explains any more when one field is elsewhere. */
static unsigned unknown_uses(struct elf_file *elf, const struct puc_layout *puc, size_t field)
{
	struct puc_layout other = *puc;
	uint16_t at;

	memcpy(&at, (uint8_t *)&other + field, sizeof(at));
	at += 200;
	memcpy((uint8_t *)&other + field, &at, sizeof(at));
	return uses_of(elf, &other).unknown;
}

#define F(f) offsetof(struct puc_layout, f)
static const struct {
	size_t offset;
	unsigned from; /* version */
} shown[] = {
	{F(closure_p), 51},
	{F(p_k), 51},
	{F(p_code), 51},
	{F(p_p), 51},
	{F(p_lineinfo), 51},
	{F(p_abslineinfo), 54},
	{F(p_locvars), 51},
	{F(p_upvalues), 51},
	{F(p_source), 51},
	{F(p_sizek), 51},
	{F(p_sizecode), 51},
	{F(p_sizep), 51},
	{F(p_sizelineinfo), 51},
	{F(p_sizelocvars), 51},
	{F(p_sizeupvalues), 51},
	{F(p_linedefined), 51},
	{F(p_lastlinedefined), 51},
	{F(p_sizeabslineinfo), 54},
	{F(s_len), 53},
	{F(s_text), 53},
	{F(t_node), 52},
};
#undef F

static void expect_structs(const char *path, const char *release)
{
	const char *row;
	const struct puc_layout *puc = puc_layout_of(release, &row);
	struct elf_file *elf = NULL;
	struct file_bytes f;
	struct uses u;
	size_t i;

	cr_assert(file_bytes_read(path, &f), "%s", path);
	cr_assert_eq(elf_open_bytes(f.bytes, f.len, &elf), 0);
	u = uses_of(elf, puc);
	cr_expect_eq(u.unknown, 0, "%s: %s", path, u.last);
	cr_expect_geq(u.known, 16, "%s: %u", path, u.known);
	for (i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (shown[i].from <= puc->version)
			cr_expect_gt(unknown_uses(elf, puc, shown[i].offset), 0, "%s: field %zu",
				     path, i);
	elf_close(&elf);
	free(f.bytes);
}

Test(puc_api, structs_of_lua51)
{
	expect_structs("/usr/bin/lua5.1", "5.1.5");
}
Test(puc_api, structs_of_lua52)
{
	expect_structs("/usr/bin/lua5.2", "5.2.4");
}
Test(puc_api, structs_of_lua53)
{
	expect_structs("/usr/bin/lua5.3", "5.3.6");
}
Test(puc_api, structs_of_lua54)
{
	expect_structs(LUA54, "5.4.4");
}
