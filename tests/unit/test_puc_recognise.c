// SPDX-License-Identifier: BSD-2-Clause
/* Which PUC Lua build: what code says, the files that this machine has, and damaged copies. */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "file_bytes.h"
#include "detect/puc/api.h"
#include "detect/puc/recognise.h"
#include "detect/puc/structs.h"

#define LIB "/usr/lib/x86_64-linux-gnu/"

/* ---- installed files ------------------------------------------------------------------------- */

static void file_read(const char *path, struct file_bytes *f)
{
	bool is_read = file_bytes_read(path, f);

	if (!is_read && strstr(path, "haproxy")) /* make deps installs no services */
		cr_skip_test("%s is not installed", path);
	cr_assert(is_read, "%s is not installed", path);
}

static int recognise(const struct file_bytes *f, struct vm_build *b, struct error *err)
{
	struct elf_file *elf;
	int r;

	memset(err, 0, sizeof(*err));
	if (elf_open_bytes(f->bytes, f->len, &elf))
		return -ENOEXEC;
	r = puc_recognise(elf, b, err);
	elf_close(&elf);
	return r;
}

/* Most files that processes map have no Lua: a megabyte of constants is read once. */
Test(puc_recognise, a_file_without_lua_is_searched_once)
{
	static struct {
		Elf64_Ehdr eh;
		Elf64_Phdr load;
		char constants[1 << 20];
	} image = {
		.eh = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
		       .e_phoff = sizeof(image.eh),
		       .e_phentsize = sizeof(image.load),
		       .e_phnum = 1},
		.load = {.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = sizeof(image)},
	};
	struct budget all = {.remaining = 1 << 30};
	struct elf_file *elf;
	struct vm_build b;
	struct error err = {};

	cr_assert_eq(elf_open_bytes(&image, sizeof(image), &elf), 0);
	elf_charge(elf, &all);
	cr_expect_eq(puc_recognise(elf, &b, &err), -ENOENT);
	cr_expect_lt((1 << 30) - all.remaining, sizeof(image) * 5 / 4);
	elf_close(&elf);
}

static bool is_plain(const struct vm_build *b, uint64_t function)
{
	int32_t at = (int32_t)(function - b->start);
	size_t i;

	for (i = 0; i < PUC_NO_RESUME; i++)
		if (b->build.stdlib.no_resume[i] == at) {
			cr_expect_lt((i - puc_no_resume_index(at)) & (PUC_NO_RESUME - 1),
				     PUC_NO_RESUME_PROBES);
			return true;
		}
	return false;
}

/* What the dynamic linker writes to an address: the file's relocations, found by their look. */
static uint64_t relocated(const struct file_bytes *f, uint64_t at)
{
	size_t i;

	for (i = 0; i + sizeof(Elf64_Rela) <= f->len; i += 8) {
		const Elf64_Rela *r = (const Elf64_Rela *)(f->bytes + i);

		if (r->r_offset == at && r->r_info == R_X86_64_RELATIVE)
			return (uint64_t)r->r_addend;
	}
	return 0;
}

/* Returns how many library functions of this name (luaL_Reg tables) resume nothing, and the last of them. */
static unsigned count_no_resume(const struct file_bytes *f, const struct vm_build *b,
				const char *name, uint64_t *last)
{
	size_t len = strlen(name) + 1, i;
	unsigned n = 0;

	*last = 0;
	for (i = 0; i + sizeof(Elf64_Rela) <= f->len; i += 8) {
		const Elf64_Rela *r = (const Elf64_Rela *)(f->bytes + i);
		uint64_t function;

		if (r->r_info != R_X86_64_RELATIVE || (uint64_t)r->r_addend + len > f->len ||
		    memcmp(f->bytes + r->r_addend, name, len) != 0)
			continue;
		function = relocated(f, r->r_offset + 8);
		if (function)
			*last = function;
		n += function && is_plain(b, function);
	}
	return n;
}

static void expect_own(const char *path, const struct file_bytes *f, const struct vm_build *b)
{
	static const char *const names[] = {"format", "gsub", "concat", "sort",
					    "floor",  "next", "print",	"tostring"};
	static const char *const others[] = {"resume", "wrap", "status", "exit",   "sethook",
					     "close",  "load", "pcall",	 "require"};
	uint64_t function;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_expect_geq(count_no_resume(f, b, names[i], &function), 1, "%s: %s", path,
			      names[i]);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_expect_eq(count_no_resume(f, b, others[i], &function), 0, "%s: %s", path,
			     others[i]);
	cr_expect_eq(count_no_resume(f, b, "resume", &function), 0);
	cr_expect_eq(b->build.stdlib.resume, (int32_t)(function - b->start), "%s", path);
	cr_expect_neq(b->build.stdlib.wrap, 0, "%s", path);
	cr_expect_neq(b->build.stdlib.wrap, b->build.stdlib.resume, "%s", path);
}

static bool is_client(const struct vm_build *b, uint64_t at)
{
	size_t i;

	for (i = 0; i < PUC_API_CALLERS; i++) {
		const struct puc_stretch *text = &b->build.stdlib.api_caller[i];

		if (at - b->start - (uint64_t)(int64_t)text->at < text->size)
			return true;
	}
	return false;
}

/* The libraries and the API are, from the first byte to the last; the core is not. */
static void expect_api_callers(const char *path, const struct file_bytes *f,
			       const struct vm_build *b)
{
	static const char *const libraries[] = {"format", "gsub", "concat", "resume"};
	static const char *const api[] = {"lua_newstate",   "lua_callk",      "lua_call",
					  "lua_gc",	    "lua_pushstring", "lua_concat",
					  "luaL_addlstring"};
	uint64_t at, size;
	struct elf_file *elf;
	size_t i;

	for (i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		count_no_resume(f, b, libraries[i], &at);
		cr_expect(is_client(b, at), "%s: %s", path, libraries[i]);
	}
	cr_assert_eq(elf_open_bytes(f->bytes, f->len, &elf), 0);
	for (i = 0; i < sizeof(api) / sizeof(api[0]); i++)
		if (!elf_lookup(elf, api[i], &at, &size))
			cr_expect(is_client(b, at) && is_client(b, at + size - 1), "%s: %s", path,
				  api[i]);
	elf_close(&elf);
	for (at = b->start; at < b->start + b->size; at++)
		cr_assert(!is_client(b, at), "%s: luaV_execute", path);
	for (at = b->gc_lo; at < b->gc_hi; at++)
		cr_assert(!is_client(b, at), "%s: the collector at %#llx", path,
			  (unsigned long long)at);
}

/* 5.1 has a `switch`, and so one fetch. */
static void expect_fetch(const char *path, const struct vm_build *b)
{
	const struct puc_build *puc = &b->build.puc;

	if (puc->puc.version != 51) {
		cr_expect_eq(puc->fetch[0].size, 0, "%s", path);
		return;
	}
	cr_expect(puc->fetch[0].size > 4 && puc->fetch[0].size < 40, "%s: %u", path,
		  puc->fetch[0].size);
	cr_expect(puc->fetch[0].at && puc->fetch[0].at + puc->fetch[0].size < b->size, "%s", path);
	cr_expect(puc->fetch[1].size && puc->fetch[2].size, "%s: jumps", path);
	cr_expect(puc->fetch_reg < 16 && puc->fetch_reg != puc->pc_reg, "%s", path);
}

static void expect_build(const char *path, const char *name, unsigned pc_reg)
{
	static struct vm_build b;
	struct file_bytes f;
	struct error err;

	file_read(path, &f);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s: %s", path, err.what);
	cr_expect_str_eq(b.name, name, "%s", path);
	cr_expect_eq(b.build.family, LB_FAMILY_PUC);
	cr_expect_eq(b.build.puc.pc_reg, pc_reg, "%s: %u", path, b.build.puc.pc_reg);
	expect_fetch(path, &b);
	cr_expect(b.size > 4000 && b.size < 20000, "%s: %zu bytes", path, (size_t)b.size);
	cr_expect(b.gc_lo && b.gc_hi > b.gc_lo + 5000 && b.gc_hi < b.gc_lo + 13000, "%s", path);
	cr_expect(b.build.puc.gc_skip + b.build.puc.gc_skip_size < b.gc_hi - b.gc_lo, "%s", path);
	cr_expect_eq(b.build.puc.jmp_marked, !strstr(path, "c++"), "%s", path);
	/* 5.1 has no luaC_newobj */
	cr_expect_eq(!b.build.puc.gc_skip_size, b.build.puc.puc.version == 51, "%s", path);
	cr_expect(b.gc_hi <= b.start || b.gc_lo >= b.start + b.size, "%s", path);
	cr_expect_not_null(strstr(b.evidence, "offsets agree"), "%s", b.evidence);
	/* the C++ build of 5.1 has lost lua_ident */
	cr_expect_eq(!strstr(b.release, " to "), !strstr(path, "c++"), "%s", b.release);
	cr_expect_eq(!strstr(b.release, "Redis"), !strstr(name, "Redis"), "%s", b.release);
	cr_expect_eq(strncmp(b.release, name, strlen("PUC Lua 5.1")), 0, "%s", b.release);
	expect_own(path, &f, &b);
	expect_api_callers(path, &f, &b);
	free(f.bytes);
}

#define INSTALLED(id, path, name, pc_reg)                                                          \
	Test(puc_recognise, installed_##id)                                                        \
	{                                                                                          \
		expect_build(path, name, pc_reg);                                                  \
	}
INSTALLED(lua51, "/usr/bin/lua5.1", "PUC Lua 5.1.3 to 5.1.5", 13)
INSTALLED(lua52, "/usr/bin/lua5.2", "PUC Lua 5.2.4", PUC_NO_REG)
INSTALLED(lua53, "/usr/bin/lua5.3", "PUC Lua 5.3.4 to 5.3.6", PUC_NO_REG)
INSTALLED(lua54, "/usr/bin/lua5.4", "PUC Lua 5.4.3 to 5.4.8", 13)
INSTALLED(liblua51, LIB "liblua5.1.so.0", "PUC Lua 5.1.3 to 5.1.5", 13)
INSTALLED(liblua51cxx, LIB "liblua5.1-c++.so.0", "PUC Lua 5.1.3 to 5.1.5", 13)
INSTALLED(liblua52, LIB "liblua5.2.so.0", "PUC Lua 5.2.4", PUC_NO_REG)
INSTALLED(liblua53, LIB "liblua5.3.so.0", "PUC Lua 5.3.4 to 5.3.6", PUC_NO_REG)
INSTALLED(liblua54, LIB "liblua5.4.so.0", "PUC Lua 5.4.3 to 5.4.8", 13)
INSTALLED(redis, "/usr/bin/redis-check-rdb", "PUC Lua 5.1 of Redis", 13)

/* luaV_execute calls luaC_step, which has to be in the collector's text. In 5.2 it is the last. */
Test(puc_recognise, luaC_step_of_lua52)
{
	static struct vm_build b;
	struct error err;
	struct file_bytes f;
	unsigned n = 0;
	uint64_t i;

	file_read("/usr/bin/lua5.2", &f);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	for (i = b.start; i + 5 <= b.start + b.size; i++) {
		int32_t distance;

		memcpy(&distance, f.bytes + i + 1, 4);
		if (f.bytes[i] == 0xe8)
			n += b.gc_hi - 64 < i + 5 + (uint64_t)distance &&
			     i + 5 + (uint64_t)distance < b.gc_hi;
	}
	cr_expect_gt(n, 0);
	free(f.bytes);
}

static void expect_none(const char *path)
{
	static struct vm_build b;
	struct file_bytes f;
	struct error err;

	file_read(path, &f);
	cr_expect_eq(recognise(&f, &b, &err), -ENOENT, "%s: %s", path, err.what);
	cr_expect_str_empty(b.name);
	free(f.bytes);
}

Test(puc_recognise, no_lua_in_libc)
{
	expect_none(LIB "libc.so.6");
}

Test(puc_recognise, no_puc_lua_in_luajit)
{
	expect_none(LIB "libluajit-5.1.so.2");
}

/* It needs liblua5.3.so.0, where the VM is. */
Test(puc_recognise, no_lua_in_haproxy)
{
	expect_none("/usr/sbin/haproxy");
}

Test(puc_recognise, none_in_this_program)
{
	static struct vm_build b;
	struct elf_file *elf;
	struct error err = {};

	cr_assert_eq(elf_open("/proc/self/exe", &elf), 0);
	cr_expect_eq(puc_recognise(elf, &b, &err), -ENOENT, "%s", err.what);
	elf_close(&elf);
}

/* ---- damaged copies -------------------------------------------------------------------------- */

#define LUA54 LIB "liblua5.4.so.0"

/* Replaces bytes in the whole file; returns how often. */
static unsigned replace(struct file_bytes *f, const void *old, const void *new, size_t len)
{
	uint8_t *at = f->bytes, *end = f->bytes + f->len;
	unsigned n = 0;

	while ((at = memmem(at, (size_t)(end - at), old, len))) {
		memcpy(at, new, len);
		at += len;
		n++;
	}
	return n;
}

/* A function's bytes in the file. */
static uint8_t *function(struct file_bytes *f, const char *name)
{
	uint64_t vaddr, size, at;
	struct elf_file *elf;

	cr_assert_eq(elf_open_bytes(f->bytes, f->len, &elf), 0);
	cr_assert_eq(elf_lookup(elf, name, &vaddr, &size), 0, "%s", name);
	cr_assert(!elf_offset(elf, vaddr, &at) && at == vaddr, "offsets are addresses");
	elf_close(&elf);
	return f->bytes + vaddr;
}

static void expect_refused(struct file_bytes *f, const char *what)
{
	static struct vm_build b;
	struct error err;

	cr_expect_eq(recognise(f, &b, &err), -ENOTSUP);
	cr_expect_not_null(strstr(err.what, what), "\"%s\" is not in \"%s\"", what, err.what);
	cr_expect_str_empty(b.name);
}

Test(puc_recognise, another_lua_State)
{
	struct file_bytes f;
	uint8_t *code;

	file_read(LUA54, &f);
	code = function(&f, "lua_status");
	cr_assert_eq(memcmp(code, "\x0f\xb6\x47\x0a", 4), 0); /* movzbl 0xa(%rdi),%eax */
	code[3] = 11;
	expect_refused(&f, "PUC Lua 5.4.4 (lua_ident) of an unknown layout: lua_status uses 11 "
			   "where L_status is 10; what agrees: savedpc 32, l_G 24");
	free(f.bytes);
}

Test(puc_recognise, another_global_State)
{
	struct file_bytes f;
	uint8_t *code;

	file_read(LUA54, &f);
	code = function(&f, "lua_pushthread");
	code = memmem(code, 48, "\x08\x01\x00\x00", 4); /* cmp %rdi,0x108(%rax) */
	cr_assert_not_null(code);
	code[0] = 0x10;
	expect_refused(&f, "lua_pushthread uses 272 where g_mainthread is 264");
	free(f.bytes);
}

Test(puc_recognise, another_LClosure)
{
	struct file_bytes f;
	uint8_t *code;

	file_read(LUA54, &f);
	code = function(&f, "lua_dump");
	code = memmem(code, 48, "\x48\x8b\x40\x18", 4); /* mov 0x18(%rax),%rax */
	cr_assert_not_null(code);
	code[3] = 0x20;
	expect_refused(&f, "PUC Lua 5.4.4 (lua_ident) of an unknown layout: lua_dump uses 8 bytes "
			   "at 32 of LClosure, where no field is known; what agrees: savedpc 32");
	free(f.bytes);
}

Test(puc_recognise, another_CallInfo)
{
	struct file_bytes f;

	file_read(LUA54, &f);
	/* mov %r13,0x20(%rbp), how luaV_execute saves pc */
	cr_assert_gt(replace(&f, "\x4c\x89\x6d\x20", "\x4c\x89\x6d\x28", 4), 20);
	replace(&f, "\x4c\x89\x65\x20", "\x4c\x89\x65\x28", 4);
	expect_refused(&f, "luaV_execute uses 40 where ci_savedpc is 32");
	free(f.bytes);
}

Test(puc_recognise, a_release_that_it_is_not)
{
	struct file_bytes f;

	file_read(LUA54, &f);
	cr_assert_eq(replace(&f, "Lua 5.4.4  ", "Lua 5.4.0  ", 11), 1);
	expect_refused(&f, "PUC Lua 5.4.0 (lua_ident) of an unknown layout: ");
	expect_refused(&f, "lua_pushthread uses 264 where g_mainthread is 256");
	cr_assert_eq(replace(&f, "Lua 5.4.0  ", "Lua 5.4.2  ", 11), 1);
	expect_refused(&f, "lua_getstack uses 96 where L_base_ci is 88");
	cr_assert_eq(replace(&f, "Lua 5.4.2  ", "Lua 5.6.0  ", 11), 1);
	expect_refused(&f, "PUC Lua 5.6.0 (lua_ident): this release is not known");
	free(f.bytes);
}

Test(puc_recognise, a_release_to_come)
{
	static struct vm_build b;
	struct error err;
	struct file_bytes f;

	file_read(LUA54, &f);
	cr_assert_eq(replace(&f, "Lua 5.4.4  ", "Lua 5.4.77 ", 11), 1);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	cr_expect_not_null(strstr(b.evidence, "5.4.77, newer than known; 13 offsets agree"), "%s",
			   b.evidence);
	free(f.bytes);
}

/* Releases of 5.1 differ in where the hook's fields are. */
Test(puc_recognise, release_of_lua51)
{
	static struct vm_build b;
	struct file_bytes f;
	struct error err;

	file_read("/usr/bin/lua5.1", &f);
	cr_assert_gt(replace(&f, "Lua 5.1.5 ", "Lua 5.1.2 ", 10), 0);
	expect_refused(&f, "PUC Lua 5.1.2 (lua_ident) of an unknown layout: lua_gethookmask uses "
			   "100 where L_hookmask is 98");
	cr_assert_gt(replace(&f, "Lua: Lua 5.1", "xua: Lua 5.1", 12), 0);
	expect_refused(&f, "PUC Lua 5.1.2 (its banner) of an unknown layout: lua_gethookmask uses "
			   "100 where L_hookmask is 98");
	cr_assert_gt(replace(&f, " Copyright (C)", " Xopyright (C)", 14), 1);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	cr_expect_str_eq(b.name, "PUC Lua 5.1.3 to 5.1.5");
	free(f.bytes);
}

/* Linkers drop lua_ident when nothing refers to it: lua.c's banner has the release, too. */
Test(puc_recognise, no_ident)
{
	static struct vm_build b;
	struct error err;
	struct file_bytes f;

	file_read(LUA54, &f);
	cr_assert_eq(replace(&f, "$LuaVersion", "$xuaVersion", 11), 1);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	cr_expect_str_eq(b.name, "PUC Lua 5.4.3 to 5.4.8");
	cr_expect_not_null(strstr(b.evidence, "its banner says 5.4.4;"), "%s", b.evidence);
	cr_expect_str_eq(b.release, "PUC Lua 5.4.4");
	cr_assert_gt(replace(&f, "lua_", "xua_", 4), 50);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	cr_expect_str_eq(b.name, "PUC Lua 5.4.3 to 5.4.8");
	cr_expect_not_null(strstr(b.evidence, "its banner says 5.4.4; 1 offsets"), "%s",
			   b.evidence);
	replace(&f, "\x4c\x89\x6d\x20", "\x4c\x89\x6d\x28", 4);
	replace(&f, "\x4c\x89\x65\x20", "\x4c\x89\x65\x28", 4);
	expect_refused(&f, "PUC Lua 5.4.4 (its banner) of an unknown layout: luaV_execute uses 40");
	free(f.bytes);
}

/* A host's own program has no banner: texts that came with a release, or went, are there. */
Test(puc_recognise, no_ident_no_banner)
{
	static struct vm_build b;
	struct error err;
	struct file_bytes f;

	file_read(LUA54, &f);
	cr_assert_gt(replace(&f, "Lua 5.4.4  Copyright", "Lua 5.4.4  Xopyright", 20), 0);
	cr_assert_eq(replace(&f, "$LuaVersion", "$xuaVersion", 11), 1);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	cr_expect_not_null(strstr(b.evidence, "_VERSION says 5.4; 13 offsets"), "%s", b.evidence);
	cr_expect_str_eq(b.release, "PUC Lua 5.4.3 to 5.4.8", "%s", b.release);
	cr_assert_gt(replace(&f, "lua_", "xua_", 4), 50);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	cr_expect_str_eq(b.name, "PUC Lua 5.4.3 to 5.4.8");
	cr_assert_eq(replace(&f, "at index %I in table", "at index %D in table", 20), 1);
	expect_refused(&f, "PUC Lua 5.4 (_VERSION) of an unknown layout: no text has its release, "
			   "and too few functions show offsets; what agrees: savedpc 32");
	cr_assert_eq(replace(&f, "attempt to compare two", "attempt to xompare two", 22), 1);
	cr_expect_eq(recognise(&f, &b, &err), -ENOENT);
	free(f.bytes);
}

static void without_banner(const char *path, const char *core, const char *name)
{
	static struct vm_build b;
	struct error err;
	struct file_bytes f;

	file_read(path, &f);
	cr_assert(replace(&f, "$Lua", "$xua", 4) && replace(&f, "lua_", "xua_", 4) &&
		  replace(&f, " Copyright", " Xopyright", 10));
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	cr_expect_str_eq(b.name, name);
	cr_assert(replace(&f, core, "x", 1));
	cr_expect_neq(recognise(&f, &b, &err), 0, "%s", b.evidence);
	free(f.bytes);
}

/* The same of 5.1 and 5.2. Of releases that differ in tables only it is the last one. */
Test(puc_recognise, old_versions_without_banner)
{
	without_banner(LIB "liblua5.1.so.0", "variables in assignment", "PUC Lua 5.1.3 to 5.1.5");
	without_banner(LIB "liblua5.2.so.0", "no message", "PUC Lua 5.2.4");
}

/* Two versions' names, or LuaJIT's, which has the same message: neither is PUC Lua of a version. */
Test(puc_recognise, no_ident_but_other_names)
{
	static struct vm_build b;
	struct error err;
	struct file_bytes f;

	file_read(LUA54, &f);
	cr_assert_eq(replace(&f, "$LuaVersion", "$xuaVersion", 11), 1);
	cr_assert_gt(replace(&f, "lua_", "xua_", 4), 50);
	cr_assert_eq(replace(&f, "attempt to perform 'n%%0'", "Lua 5.3\0to perform 'n%%0'", 25), 1);
	cr_expect_eq(recognise(&f, &b, &err), -ENOENT);
	cr_assert_eq(replace(&f, "Lua 5.3\0to perform 'n%%0'", "LuaJIT 2.1 perform 'n%%0'", 25), 1);
	cr_expect_eq(recognise(&f, &b, &err), -ENOENT);
	free(f.bytes);
}

/* A program that exports nothing: lua_gc is what collectgarbage calls. */
static void expect_collector(const char *path)
{
	static struct vm_build b, named;
	struct error err;
	struct file_bytes f;

	file_read(path, &f);
	cr_assert_eq(recognise(&f, &named, &err), 0, "%s", err.what);
	cr_assert_neq(named.gc_lo, 0, "%s", path);
	cr_assert_gt(replace(&f, "lua_", "xua_", 4), 50);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	cr_expect_eq(b.gc_lo, named.gc_lo, "%s", path);
	cr_expect_eq(b.gc_hi, named.gc_hi, "%s", path);
	cr_expect_eq(b.build.puc.gc_skip, named.build.puc.gc_skip, "%s", path);
	cr_expect_eq(b.build.puc.gc_skip_size, named.build.puc.gc_skip_size, "%s", path);
	cr_assert_gt(replace(&f, "collectgarbage", "xollectgarbage", 14), 0);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	cr_expect_eq(b.gc_lo, 0);
	free(f.bytes);
}

Test(puc_recognise, collector_without_symbols)
{
	expect_collector("/usr/bin/lua5.1");
	expect_collector("/usr/bin/lua5.2");
	expect_collector("/usr/bin/lua5.3");
	expect_collector("/usr/bin/lua5.4");
}

/* Nothing is exported: the release comes from the text, luaV_execute from its shape. */
Test(puc_recognise, no_symbols)
{
	static struct vm_build b;
	struct error err;
	struct file_bytes f;

	file_read(LUA54, &f);
	cr_assert_gt(replace(&f, "lua_", "xua_", 4), 50);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	cr_expect_str_eq(b.name, "PUC Lua 5.4.3 to 5.4.8");
	cr_expect_eq(b.build.puc.pc_reg, 13);
	cr_expect_eq(b.gc_lo, 0);
	cr_expect_eq(b.gc_hi, 0);
	cr_expect_not_null(strstr(b.evidence, "its text says 5.4.4; 1 offsets agree: savedpc 32"),
			   "%s", b.evidence);
	free(f.bytes);
}

/*
 * The fetch of lua5.1, at its block's beginning:
 *
 *	0f b6 45 64	movzbl 0x64(%rbp),%eax
 *	41 8b 1e	mov    (%r14),%ebx
 *	4d 8d 6e 04	lea    4(%r14),%r13
 */
#define FETCH_LEN 11
static const struct made_fetch {
	const char *code, *what;
	uint8_t reg, at, size; /* at: from the block's beginning */
} made_fetches[] = {
	{"\x0f\xb6\x45\x64\x41\x8b\x1e\x4d\x8d\x6e\x04", "as it is", 14, 0, 8},
	{"\x0f\xb6\x45\x64\x4d\x8d\x6e\x04\x41\x8b\x1e", "lea first", 14, 0, 5},
	{"\x41\x8b\x5d\x00\x49\x83\xc5\x04\x0f\x1f\x00", "add to pc", 13, 0, 5},
	{"\x49\x83\xc5\x04\x41\x8b\x5d\xfc\x0f\x1f\x00", "add first", 13, 0, 1},
	{"\x4d\x8d\x75\x04\x41\x8b\x1e\x4d\x8d\x6e\x04", "base from pc", 14, 4, 4},
	{"\xc3\x90\x90\x90\x41\x8b\x1e\x4d\x8d\x6e\x04", "after a return", 14, 4, 4},
	{"\x41\x8b\x1e\xeb\x02\x90\x90\x4d\x8d\x6e\x04", "jump between", 0, 0, 0},
	{"\x45\x8b\x36\x90\x90\x90\x90\x4d\x8d\x6e\x04", "base is lost", 0, 0, 0},
	{"\x0f\xb6\x45\x64\x41\x8b\x1e\x49\x83\xc6\x04", "not to pc", 0, 0, 0},
};

Test(puc_recognise, made_fetches)
{
	static struct vm_build b;
	const struct made_fetch *m = made_fetches;
	struct file_bytes f;
	struct error err;
	uint64_t block;
	size_t i;

	file_read("/usr/bin/lua5.1", &f);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	block = b.start + b.build.puc.fetch[0].at;
	cr_assert_eq(memcmp(f.bytes + block, m->code, FETCH_LEN), 0);
	for (i = 0; i < sizeof(made_fetches) / sizeof(made_fetches[0]); i++, m++) {
		memcpy(f.bytes + block, m->code, FETCH_LEN);
		cr_assert_eq(recognise(&f, &b, &err), 0, "%s: %s", m->what, err.what);
		cr_expect_eq(b.build.puc.pc_reg, 13, "%s", m->what);
		cr_expect_eq(b.build.puc.fetch_reg, m->reg, "%s", m->what);
		cr_expect_eq(b.build.puc.fetch[0].size, m->size, "%s", m->what);
		cr_expect(!m->size || b.start + b.build.puc.fetch[0].at == block + m->at, "%s",
			  m->what);
	}
	free(f.bytes);
}

/* Which of two would be asked in each turn? */
Test(puc_recognise, two_fetches)
{
	static struct vm_build b;
	struct file_bytes f;
	struct error err;

	file_read("/usr/bin/lua5.1", &f);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	memset(f.bytes + b.start + b.size - 32, 0x90, 32);
	memcpy(f.bytes + b.start + b.size - 7, "\x41\x8b\x1e\x4d\x8d\x6e\x04", 7);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	cr_expect_eq(b.build.puc.pc_reg, 13);
	cr_expect_eq(b.build.puc.fetch[0].size, 0);
	free(f.bytes);
}

/* Static programs have .eh_frame, but no table to search it by. */
Test(puc_recognise, no_frame_table)
{
	static struct vm_build whole, b;
	struct error err;
	struct file_bytes f;
	uint8_t *type;

	file_read(LUA54, &f);
	cr_assert_eq(recognise(&f, &whole, &err), 0, "%s", err.what);
	type = memmem(f.bytes, 1024, "\x50\xe5\x74\x64", 4); /* PT_GNU_EH_FRAME */
	cr_assert_not_null(type);
	memset(type, 0, 4);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	cr_expect(whole.start == b.start && whole.size == b.size);
	cr_expect(whole.gc_lo == b.gc_lo && whole.gc_hi == b.gc_hi);
	memset(f.bytes + offsetof(Elf64_Ehdr, e_shnum), 0, 2); /* nor a section */
	expect_refused(&f, "PUC Lua 5.4.4 (its text): the file lacks call frame information");
	free(f.bytes);
}

Test(puc_recognise, no_luaV_execute)
{
	static struct vm_build b;
	struct error err;
	struct file_bytes f;

	file_read(LUA54, &f);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	memset(f.bytes + b.start, 0x90, b.size);
	memset(&b, 0, sizeof(b));
	expect_refused(&f, "PUC Lua 5.4.4 (lua_ident): no function has the shape of luaV_execute");
	free(f.bytes);
}

/*
 * As gcc -O0 compiles it: pc is a variable, and all instructions jump to a single place that jumps
 * on. No register has pc, and so the line is not known: rdx would have been taken for that register.
 */
Test(puc_recognise, without_optimisation)
{
	static const uint8_t code[] = {
		0x48, 0x8b, 0x45, 0xf0, /* mov -0x10(%rbp),%rax */
		0x48, 0x8d, 0x50, 0x04, /* lea 4(%rax),%rdx */
		0x48, 0x89, 0x55, 0xf0, /* mov %rdx,-0x10(%rbp) */
		0x8b, 0x00,		/* mov (%rax),%eax */
		0x83, 0xe0, 0x7f,	/* and $0x7f,%eax */
		0xeb, 0x08,		/* jmp to the last one */
		0x48, 0x8b, 0x55, 0xf0, /* mov -0x10(%rbp),%rdx */
		0x48, 0x89, 0x50, 0x20, /* mov %rdx,0x20(%rax) */
		0xff, 0xe0,		/* jmp *%rax */
	};
	static struct vm_build b;
	struct error err;
	struct file_bytes f;

	file_read(LUA54, &f);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	memset(f.bytes + b.start, 0x90, b.size);
	memcpy(f.bytes + b.start, code, sizeof(code));
	expect_refused(&f, "PUC Lua 5.4.4 (lua_ident) was compiled without optimisation: which "
			   "line runs is in no register; compile it with -O1 or more");
	free(f.bytes);
}

/* As -mindirect-branch=thunk compiles it: the jump through the table is a direct one to a thunk. */
Test(puc_recognise, retpolines)
{
	/* mov (%r13),%ebx; add $4,%r13; mov %r13,0x20(%rbp); mov %ebx,%eax; and $0x7f,%eax;
	 * mov (%r14,%rax,8),%rax; jmp */
	static const uint8_t dispatch[] =
		"\x41\x8b\x5d\x00\x49\x83\xc5\x04\x4c\x89\x6d\x20\x89\xd8\x83\xe0\x7f"
		"\x49\x8b\x04\xc6\xe9";
	const size_t len = sizeof(dispatch) - 1;
	static struct vm_build b;
	struct file_bytes f;
	struct error err;
	uint8_t *text;
	uint32_t size;
	size_t i;

	file_read(LUA54, &f);
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	text = f.bytes + b.start;
	size = (uint32_t)b.size;
	memset(text, 0x90, size);
	for (i = 0; i < 4; i++) {
		memcpy(text + 64 * i, dispatch, len);
		memcpy(text + 64 * i + len, &size, 4);
	}
	cr_assert_eq(recognise(&f, &b, &err), 0, "%s", err.what);
	cr_expect(f.bytes + b.start == text && b.size == size);
	cr_expect_eq(b.build.puc.pc_reg, 13);
	for (i = 0; i < 4; i++) /* to somewhere in the function */
		memset(text + 64 * i + len, 0, 4);
	expect_refused(&f, "no function has the shape of luaV_execute");
	free(f.bytes);
}

Test(puc_recognise, cut_short)
{
	static struct vm_build b;
	struct error err;
	struct file_bytes f;
	size_t whole;

	file_read(LUA54, &f);
	whole = f.len;
	for (f.len = 0; f.len < whole; f.len += 4093) {
		int r = recognise(&f, &b, &err);

		cr_expect(r == -ENOEXEC || r == -ENOENT || r == -ENOTSUP || r == 0, "%d", r);
	}
	free(f.bytes);
}

/* A file with more constants than may be searched, without Lua as far as one can see. */
Test(puc_recognise, too_large)
{
	const off_t large = 12 << 20;
	struct budget all = {.remaining = 8 << 20, .of_what = "all files"};
	struct elf_file *elf = NULL;
	static struct vm_build b;
	struct error err = {};
	struct file_bytes f;
	Elf64_Phdr *ph;
	uint16_t i;
	int fd = memfd_create("large", MFD_CLOEXEC);

	file_read(LUA54, &f);
	cr_assert_gt(replace(&f, "$LuaVersion", "$xuaVersion", 11), 0);
	cr_assert_gt(replace(&f, "Lua 5.4", "Xua 5.4", 7), 0);
	ph = (Elf64_Phdr *)(f.bytes + ((const Elf64_Ehdr *)f.bytes)->e_phoff);
	for (i = 0; i < ((const Elf64_Ehdr *)f.bytes)->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_flags == PF_R && ph[i].p_offset)
			ph[i].p_filesz = (uint64_t)large - ph[i].p_offset;
	cr_assert_eq(write(fd, f.bytes, f.len), (ssize_t)f.len);
	cr_assert_eq(ftruncate(fd, large), 0);
	cr_assert_eq(elf_open_fd(fd, &elf), 0);
	elf_charge(elf, &all);
	cr_expect_eq(puc_recognise(elf, &b, &err), -ENOTSUP);
	cr_expect_not_null(strstr(err.what, "too large to be searched"), "%s", err.what);
	cr_expect_not_null(strstr(err.what, "all files"), "%s", err.what);
	elf_close(&elf);
	close(fd);
	free(f.bytes);
}
