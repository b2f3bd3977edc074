/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "proc/elf.h"
#include "arch/lj_jumps.h"
#include "detect/lj/sites.h"
#include "arch/x86_64/insn.h"

#define LUAJIT "/usr/bin/luajit"

__attribute__((noinline)) int elf_test_function(int x)
{
	return x * 3;
}

static int find_self(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uint64_t *)arg = info->dlpi_addr;
	return 1; /* the first is the program itself */
}

Test(elf, own_symbols)
{
	uint64_t bias = 0, addr, size = 0, start = 0, vaddr;
	struct elf_file *elf = NULL;
	const char *name = NULL;

	dl_iterate_phdr(find_self, &bias);
	addr = (uintptr_t)elf_test_function - bias;
	cr_assert_eq(elf_open("/proc/self/exe", &elf), 0);
	cr_assert_eq(elf_lookup(elf, "elf_test_function", &vaddr, &size), 0);
	cr_assert_eq(vaddr, addr);
	cr_assert_eq(elf_symbol(elf, addr, &name, &start), 0);
	cr_assert_str_eq(name, "elf_test_function");
	cr_assert_eq(elf_symbol(elf, addr + size - 1, &name, &start), 0);
	cr_assert_str_eq(name, "elf_test_function");
	cr_assert_eq(start, addr);
	cr_assert_eq(elf_symbol(elf, 1, &name, NULL), -ENOENT);
	cr_assert_eq(elf_lookup(elf, "no such symbol", &vaddr, NULL), -ENOENT);
	elf_close(&elf);
	cr_assert_null(elf);
}

Test(elf, what_is_no_elf_file)
{
	struct elf_file *elf = (void *)1;

	cr_assert_eq(elf_open("/nonexistent", &elf), -ENOENT);
	cr_assert_eq(elf_open("/etc/passwd", &elf), -ENOEXEC);
	cr_assert_eq(elf_open("/dev/zero", &elf), -ENOEXEC);
	cr_assert_eq(elf_open("/", &elf), -ENOEXEC);
	cr_assert_eq(elf_open_bytes("", 0, &elf), -ENOEXEC);
	cr_assert_eq(elf_open_bytes("\177ELF", 4, &elf), -ENOEXEC);
	cr_assert_eq(elf, (void *)1);
}

Test(elf, luajit_vm_and_call_sites)
{
	struct elf_file *elf = NULL;
	struct elf_lj_vm vm = {0};
	struct lj_site sites[96];
	size_t n = 0, i;
	unsigned before = 0, behind = 0;

	if (access(LUAJIT, R_OK))
		cr_assert(false, "no " LUAJIT);
	cr_assert_eq(elf_open(LUAJIT, &elf), 0);
	cr_assert_eq(elf_find_lj_vm(elf, &vm), 0);
	cr_assert_eq(vm.cframe_size, 80);
	cr_assert(vm.size > 16000 && vm.size < 18000, "%lu", (unsigned long)vm.size);
	cr_assert_eq(elf_lj_rbp_sites(elf, &vm, false, sites, 96, &n), 0);
	cr_assert(n >= 20 && n <= 40, "%zu", n);
	for (i = 0; i < n; i++) {
		cr_assert(!i || sites[i - 1].ret < sites[i].ret);
		cr_assert_eq(sites[i].behind[0], sites[i].ret);
		behind = sites[i].nbehind > behind ? sites[i].nbehind : behind;
		before = sites[i].nbefore > before ? sites[i].nbefore : before;
	}
	cr_assert_gt(behind, 1, "BC_LEN: what is returned is converted first");
	cr_assert_gt(before, 1, "next: BASE's register takes an argument");
	cr_assert_eq(elf_lj_rbp_sites(elf, &vm, false, sites, n - 1, &n), -E2BIG);
	elf_close(&elf);
}

Test(elf, no_vm_in_other_programs)
{
	struct elf_file *elf = NULL;
	struct elf_lj_vm vm;

	cr_assert_eq(elf_open("/proc/self/exe", &elf), 0);
	cr_assert_eq(elf_find_lj_vm(elf, &vm), -ENOENT);
	elf_close(&elf);
}

/* Every prefix of a real file: the same answers or an error, no crash. */
Test(elf, cut_files)
{
	struct elf_file *elf;
	struct stat st;
	uint8_t *bytes;
	size_t cut;
	int fd = open(LUAJIT, O_RDONLY);

	if (fd < 0)
		cr_assert(false, "no " LUAJIT);
	fstat(fd, &st);
	bytes = malloc((size_t)st.st_size);
	cr_assert_eq(read(fd, bytes, (size_t)st.st_size), st.st_size);
	close(fd);
	for (cut = 0; cut < (size_t)st.st_size; cut += cut < 1024 ? 37 : 20011) {
		struct elf_lj_vm vm;
		const char *name;
		uint64_t addr;

		if (elf_open_bytes(bytes, cut, &elf))
			continue;
		elf_find_lj_vm(elf, &vm);
		elf_lookup(elf, "lua_newstate", &addr, NULL);
		elf_symbol(elf, 0x57710, &name, NULL);
		elf_close(&elf);
	}
	free(bytes);
}

Test(elf, bias_of_mappings)
{
	struct elf_file *elf = NULL;
	uint64_t text, bias = 0;

	if (access(LUAJIT, R_OK))
		cr_assert(false, "no " LUAJIT);
	cr_assert_eq(elf_open(LUAJIT, &elf), 0);
	cr_assert_eq(elf_lookup(elf, "lua_newstate", &text, NULL), 0);
	cr_assert_eq(elf_bias(elf, 0x555500008000, 0x8000, &bias), 0);
	cr_assert_eq(bias, 0x555500000000);
	cr_assert_eq(elf_bias(elf, 0x555500009000, 0x9000, &bias), 0, "a mapping split in two");
	cr_assert_eq(bias, 0x555500000000);
	cr_assert_eq(elf_bias(elf, 0x555500009000, 0x90000000, &bias), -ENOENT);
	elf_close(&elf);
}

/* An ELF file of nothing but its headers. */
static struct elf_file *with_segments(const Elf64_Phdr *ph, uint16_t n)
{
	uint8_t bytes[0x3000] = {0};
	Elf64_Ehdr *eh = (Elf64_Ehdr *)bytes;
	struct elf_file *elf = NULL;

	memcpy(eh->e_ident, ELFMAG, SELFMAG);
	eh->e_ident[EI_CLASS] = ELFCLASS64;
	eh->e_ident[EI_DATA] = ELFDATA2LSB;
	eh->e_ident[EI_VERSION] = eh->e_version = EV_CURRENT;
	eh->e_type = ET_DYN;
	eh->e_machine = EM_X86_64;
	eh->e_ehsize = sizeof(*eh);
	eh->e_phoff = sizeof(*eh);
	eh->e_phentsize = sizeof(*ph);
	eh->e_phnum = n;
	memcpy(bytes + sizeof(*eh), ph, n * sizeof(*ph));
	cr_assert_eq(elf_open_bytes(bytes, sizeof(bytes), &elf), 0);
	return elf;
}

/*
 * Old linkers let two segments share a page of the file: it is mapped twice, at different places.
 */
Test(elf, bias_of_a_shared_page)
{
	const Elf64_Phdr ph[] = {
		{.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 0x2800},
		{.p_type = PT_LOAD,
		 .p_flags = PF_R | PF_W,
		 .p_offset = 0x2800,
		 .p_vaddr = 0x203800,
		 .p_filesz = 0x400},
	};
	struct elf_file *elf = with_segments(ph, 2);
	uint64_t bias = 0;

	cr_assert_eq(elf_bias(elf, 0x7f0000000000, 0, &bias), 0);
	cr_assert_eq(bias, 0x7f0000000000);
	cr_assert_eq(elf_bias(elf, 0x7f0000001000, 0x1000, &bias), 0);
	cr_assert_eq(bias, 0x7f0000000000);
	cr_assert_eq(elf_bias(elf, 0x7f0000203000, 0x2000, &bias), 0);
	cr_assert_eq(bias, 0x7f0000000000, "%lx", (unsigned long)bias);
	elf_close(&elf);
}

/* lld begins text right behind the constants: in the same page of the file, but not of memory. */
Test(elf, text_in_a_shared_page)
{
	const Elf64_Phdr ph[] = {
		{.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 0x1510},
		{.p_type = PT_LOAD,
		 .p_flags = PF_R | PF_X,
		 .p_offset = 0x1510,
		 .p_vaddr = 0x2510,
		 .p_filesz = 0x1000},
	};
	struct elf_file *elf = with_segments(ph, 2);
	uint64_t at = 0, bias = 0;

	cr_assert_eq(elf_offset(elf, 0x1500, &at), 0);
	cr_assert_eq(at, 0x1500);
	cr_assert_eq(elf_offset(elf, 0x2510, &at), 0);
	cr_assert_eq(at, 0x1510);
	cr_assert_eq(elf_offset(elf, 0x350f, &at), 0);
	cr_assert_eq(at, 0x250f);
	cr_assert_eq(elf_offset(elf, 0x2000, &at), -ENOENT, "between the two");
	cr_assert_eq(elf_offset(elf, 0x3510, &at), -ENOENT);
	cr_assert_eq(elf_bias(elf, 0x7f0000002000, 0x1000, &bias), 0);
	cr_assert_eq(bias, 0x7f0000000000);
	elf_close(&elf);
}

Test(elf, x86_lengths_and_writes)
{
	static const struct {
		uint8_t len;
		const char *bytes;
		bool rdx;
	} insns[] = {
		{3, "\x48\x89\xea", true},		       /* mov rdx, rbp */
		{3, "\x48\x8b\xd5", true},		       /* the other way to say it */
		{4, "\x48\x8b\x55\x20", true},		       /* mov rdx, [rbp+0x20] */
		{5, "\x48\x8b\x54\x24\x20", true},	       /* mov rdx, [rsp+0x20] */
		{4, "\x0f\xb6\x4b\xfd", false},		       /* movzx ecx, byte [rbx-3] */
		{5, "\xe8\x01\x02\x03\x04", false},	       /* call */
		{4, "\xf2\x0f\x2a\xc0", false},		       /* cvtsi2sd xmm0, eax */
		{5, "\xf2\x0f\x11\x04\xca", false},	       /* movsd [rdx+rcx*8], xmm0 */
		{10, "\x49\xbb\0\0\0\0\0\x80\xfb\xff", false}, /* mov r11, imm64 */
		{11, "\x41\xc7\x86\x38\xf1\xff\xff\xff\xff\xff\xff", false}, /* mov [r14-..], -1 */
		{7, "\x41\xff\xa4\xee\xd0\x04\0", false}, /* jmp [r14+rbp*8+..]: 8 bytes, cut */
		{2, "\xf7\xe1", true},			  /* mul ecx */
		{1, "\x5a", true},			  /* pop rdx */
		{2, "\x41\x5a", false},			  /* pop r10 */
		{3, "\x48\x39\xd0", false},		  /* cmp rax, rdx */
		{1, "\x99", true},			  /* cdq */
		{3, "\x4c\x89\xd2", true},		  /* mov rdx, r10 */
		{3, "\x49\x89\xd2", false},		  /* mov r10, rdx */
	};
	struct insn in;
	size_t i;

	for (i = 0; i < sizeof(insns) / sizeof(insns[0]); i++) {
		const uint8_t *p = (const uint8_t *)insns[i].bytes;
		bool whole = i != 10;

		cr_assert_eq(insn_decode(p, insns[i].len, &in), whole, "insn %zu", i);
		if (!whole)
			continue;
		cr_assert_eq(in.len, insns[i].len, "insn %zu: %u", i, in.len);
		cr_assert_eq(insn_writes(&in, X86_RDX), insns[i].rdx, "insn %zu", i);
		cr_assert(!insn_decode(p, insns[i].len - 1u, &in) || in.len < insns[i].len);
	}
}

static struct insn decoded(const char *bytes, size_t n)
{
	struct insn in;

	cr_assert(insn_decode((const uint8_t *)bytes, n, &in));
	cr_assert_eq(in.len, n);
	return in;
}
#define DECODED(bytes) decoded(bytes, sizeof(bytes) - 1)

Test(elf, x86_operands)
{
	struct insn in = DECODED("\x90"); /* nop: not xchg eax, eax */

	cr_expect_eq(in.writes, 0);
	in = DECODED("\x0f\x1f\x40\x08"); /* nop dword [rax+8] */
	cr_expect(in.has_mem && !in.mem_size && in.base == X86_RAX && in.disp == 8);
	in = DECODED("\x48\x8d\x0d\xf0\xff\xff\xff"); /* lea rcx, [rip-16] */
	cr_expect(!in.mem_size && in.base == X86_RIP && in.index == INSN_NO_REG && in.disp == -16);
	cr_expect(in.size == 8 && in.reg[0] == X86_RCX && in.writes == 1 << X86_RCX);
	in = DECODED("\x66\x41\x83\x7c\x8e\x0c\xff"); /* cmp word [r14+rcx*4+12], -1 */
	cr_expect(in.mem_size == 2 && in.base == X86_R14 && in.index == X86_RCX && in.disp == 12);
	cr_expect(in.reg[0] == INSN_NO_REG && in.has_imm && in.imm == -1 && !in.relative);
	cr_expect(!x86_is_field(&in) && !in.writes);
	in = DECODED("\x0f\xb6\xc5"); /* movzx eax, ch */
	cr_expect(in.reg[0] == X86_RAX && in.reg[1] == X86_RCX && !in.has_mem);
	in = DECODED("\xf2\x44\x0f\x10\x00"); /* movsd xmm8, [rax] */
	cr_expect(in.reg[0] == X86_XMM + 8 && in.mem_size == 8 && !in.writes);
	in = DECODED("\x64\x48\x8b\x04\x25\x28\0\0\0"); /* mov rax, fs:0x28 */
	cr_expect(in.has_mem && in.base == INSN_NO_REG && in.disp == 0x28);
	in = DECODED("\xeb\xfe"); /* jmp to itself */
	cr_expect(insn_is_jump(&in) && in.relative && in.imm == -2 && !insn_ends(&in));
	in = DECODED("\x41\xff\xe3"); /* jmp r11 */
	cr_expect(!insn_is_jump(&in) && insn_ends(&in) && in.reg[0] == 11);
	in = DECODED("\xff\x15\x10\0\0\0"); /* call [rip+16] */
	cr_expect(insn_is_call(&in) && !in.relative && in.base == X86_RIP && in.mem_size == 8);
	cr_expect(!insn_decode((const uint8_t *)"\x06", 1, &in), "push es: not in 64-bit code");
	cr_expect(!insn_decode((const uint8_t *)"", 0, &in));
	cr_expect_str_eq(insn_reg_name(13), "r13");
	cr_expect_null(insn_reg_name(INSN_REGS));
}

static enum lj_site_class class_of(const char *after, size_t n)
{
	uint8_t text[64] = {0xe8, 0, 0, 0, 0};
	struct lj_site sites[8];
	size_t found = 0;

	memcpy(text + 5, after, n);
	memset(text + 5 + n, 0xcc, sizeof(text) - 5 - n);
	cr_assert_eq(lj_sites_scan(text, sizeof(text), false, 0x1000, sites, 8, &found), 0);
	cr_assert_geq(found, 1);
	cr_assert_eq(sites[0].ret, 5);
	cr_assert_eq(sites[0].callee, 0x1005);
	return (enum lj_site_class)sites[0].class;
}

/* Offsets at which PC may be a jump's target, as a set of bits. */
static uint64_t jumps(const char *text, size_t n)
{
	uint8_t sites[8] = {};
	uint64_t bits;

	cr_assert_leq(n, 64);
	lj_jumps_scan((const uint8_t *)text, n, false, sites);
	memcpy(&bits, sites, sizeof(bits));
	return bits;
}

#define JUMPS(bytes) jumps(bytes, sizeof(bytes) - 1)
#define BRANCH_PC "\x48\x8d\x9c\x83\x00\x00\xfe\xff"
#define NEXT "\x8b\x03\x0f\xb6\xcc\x0f\xb6\xe8\x48\x83\xc3\x04\xc1\xe8\x10"

#define SET_INTERP "\x41\xc7\x86\x38\xf1\xff\xff\xff\xff\xff\xff"
#define EXIT(bytes) exit_fetch(bytes, sizeof(bytes) - 1)

/* [lo, hi), as lo << 8 | hi. */
static uint32_t exit_fetch(const char *text, size_t n)
{
	uint32_t lo, hi;

	lj_exit_scan((const uint8_t *)text, n, &lo, &hi);
	return lo << 8 | hi;
}

Test(elf, exit_fetch)
{
	cr_expect_eq(EXIT(SET_INTERP NEXT), 11 << 8 | 23);
	cr_expect_eq(EXIT("\x90" SET_INTERP "\x90" SET_INTERP NEXT), 24 << 8 | 36);
	cr_expect_eq(EXIT(NEXT NEXT), 0, "no state is set");
	cr_expect_eq(EXIT(SET_INTERP "\x90" NEXT), 0, "something between");
	cr_expect_eq(EXIT("\x41\xc7\x86\x38\xf1\xff\xff\xfe\xff\xff\xff" NEXT), 0, "C");
	cr_expect_eq(EXIT(SET_INTERP), 0, "the end");
	cr_expect_eq(EXIT(SET_INTERP "\x8b\x03"), 0, "PC stays");
	cr_expect_eq(EXIT(SET_INTERP "\x8b\x03\x06" NEXT), 0, "no instruction");
	cr_expect_eq(EXIT(""), 0);
}

Test(elf, jumps)
{
	cr_expect_eq(JUMPS(BRANCH_PC NEXT), 1 << 8 | 1 << 10 | 1 << 13 | 1 << 16);
	cr_expect_eq(JUMPS(NEXT NEXT), 0, "without a jump");
	cr_expect_eq(JUMPS("\x48\x8d\x9c\x83\x00\x00\xfe\x7f" NEXT), 0, "another distance");
	cr_expect_eq(JUMPS("\x48\x8d\x9b\x00\x00\xfe\xff" NEXT), 0, "no operand");
	cr_expect_eq(JUMPS("\x48\x8d\x84\x83\x00\x00\xfe\xff" NEXT), 0, "not PC");
	cr_expect_eq(JUMPS(BRANCH_PC "\x48\x8b\x6c\x24\x10" NEXT),
		     1 << 8 | 1 << 13 | 1 << 15 | 1 << 18 | 1 << 21, "something between");
	cr_expect_eq(JUMPS(BRANCH_PC "\xe8\x00\x00\x00\x00" NEXT), 1 << 8, "a call");
	cr_expect_eq(JUMPS(BRANCH_PC "\xeb\x00" NEXT), 1 << 8, "a jump of the VM's own");
	cr_expect_eq(JUMPS(BRANCH_PC "\xff\x24\xee" NEXT), 1 << 8, "no way on");
	cr_expect_eq(JUMPS(BRANCH_PC), 0, "the end");
	cr_expect_eq(JUMPS(BRANCH_PC "\x8b"), 0, "half an instruction");
	cr_expect_eq(JUMPS("\x06" BRANCH_PC NEXT), 2 * (1 << 8 | 1 << 10 | 1 << 13 | 1 << 16),
		     "behind data");
}

#define CLASS(bytes) class_of(bytes, sizeof(bytes) - 1)

Test(elf, site_classes)
{
	cr_assert_eq(CLASS("\x48\x89\xea"), LJ_SITE_RBP);
	cr_assert_eq(CLASS("\x48\x8b\xd5"), LJ_SITE_RBP);
	cr_assert_eq(CLASS("\x0f\xb6\x4b\xfd\x48\x89\xea"), LJ_SITE_RBP, "PC_RA first");
	cr_assert_eq(CLASS("\x48\x8b\x55\x20"), LJ_SITE_LBASE);
	cr_assert_eq(CLASS("\x48\x8b\x55\x28"), LJ_SITE_UNKNOWN, "L->top");
	cr_assert_eq(CLASS("\x31\xd2\x48\x89\xea"), LJ_SITE_UNKNOWN, "rdx was written before");
	cr_assert_eq(CLASS("\x48\x8b\x6c\x24\x10\x48\x89\xea"), LJ_SITE_UNKNOWN, "rbp was");
	cr_assert_eq(CLASS("\xeb\x02\xcc\xcc\x48\x89\xea"), LJ_SITE_RBP, "behind a jump");
	cr_assert_eq(CLASS("\xeb\xfe\x48\x89\xea"), LJ_SITE_UNKNOWN, "a jump to itself");
	cr_assert_eq(CLASS("\xe9\xff\xff\xff\x7f"), LJ_SITE_UNKNOWN, "a jump out of the VM");
	cr_assert_eq(CLASS("\xe8\0\0\0\0\x48\x8b\x55\x20"), LJ_SITE_LBASE, "two calls");
	cr_assert_eq(CLASS("\xc3\x48\x89\xea"), LJ_SITE_UNKNOWN, "a return");
	cr_assert_eq(CLASS("\x06"), LJ_SITE_UNKNOWN, "no instruction");
}
