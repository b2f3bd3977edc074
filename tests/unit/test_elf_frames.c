// SPDX-License-Identifier: BSD-2-Clause
/* Call-frame information that costs libdw memory or time without bound (proc/elf_frames.c says how). */
#include <criterion/criterion.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "proc/elf.h"

TestSuite(elf_frames, .timeout = 30);

/*
 *	0x000	ELF header, program headers
 *	0x200	.eh_frame_hdr, with a table of one function
 *	0x400	.eh_frame: the CIE, and the FDE behind it
 */
#define HDR 0x200
#define FRAMES 0x400
#define TEXT 0x8000
#define TEXT_SIZE 0x40

static uint8_t image[0x4000];

static void put32(size_t at, size_t v)
{
	uint32_t v32 = (uint32_t)v;

	memcpy(image + at, &v32, 4);
}

static void put_headers(size_t fde)
{
	const Elf64_Phdr ph[] = {
		{.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = sizeof(image)},
		{.p_type = PT_GNU_EH_FRAME, .p_vaddr = HDR, .p_filesz = 20},
	};
	const Elf64_Ehdr eh = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(eh),
		.e_ehsize = sizeof(eh),
		.e_phentsize = sizeof(ph[0]),
		.e_phnum = 2,
	};

	memcpy(image, &eh, sizeof(eh));
	memcpy(image + sizeof(eh), ph, sizeof(ph));
	memcpy(image + HDR, "\x01\x1b\x03\x3b", 4);
	put32(HDR + 4, FRAMES - (HDR + 4));
	put32(HDR + 8, 1);
	put32(HDR + 12, TEXT - HDR);
	put32(HDR + 16, fde - HDR);
}

/* A CIE with n letters 'S' in its augmentation, and the FDE of one function. */
static void make(size_t n, const char *instructions, size_t len)
{
	/* code and data alignment, return address; data: pcrel sdata4; CFA = rsp + 8 */
	static const char tail[] = "R\0\x01\x78\x10\x01\x1b\x0c\x07\x08";
	size_t cie = 4 + 1 + 1 + n + sizeof(tail) - 1, fde = FRAMES + 4 + cie;

	memset(image, 0, sizeof(image));
	put_headers(fde);
	put32(FRAMES, cie);
	image[FRAMES + 8] = 1; /* version */
	image[FRAMES + 9] = 'z';
	memset(image + FRAMES + 10, 'S', n);
	memcpy(image + FRAMES + 10 + n, tail, sizeof(tail) - 1);
	put32(fde, 13 + len);
	put32(fde + 4, fde + 4 - FRAMES);
	put32(fde + 8, TEXT - (fde + 8));
	put32(fde + 12, TEXT_SIZE);
	memcpy(image + fde + 17, instructions, len);
}

static int keep(void *arg, const struct elf_fde *fde)
{
	struct elf_fde *to = arg;

	*to = *fde;
	return 1;
}

static struct elf_fde only_function(void)
{
	struct elf_file *elf = NULL;
	struct elf_fde fde = {0};

	cr_assert_eq(elf_open_bytes(image, sizeof(image), &elf), 0);
	cr_assert_geq(elf_fdes(elf, keep, &fde), 0);
	elf_close(&elf);
	return fde;
}

Test(elf_frames, a_frame)
{
	struct elf_fde fde;

	make(0, "\x0e\x50\x86\x02", 4); /* CFA = rsp + 80; rbp at CFA - 16 */
	fde = only_function();
	cr_expect(fde.start == TEXT && fde.size == TEXT_SIZE);
	cr_expect(fde.cfa_offset == 80 && fde.saved == 1 << 6, "%u %x", fde.cfa_offset, fde.saved);
}

static long peak_kib(void)
{
	struct rusage use;

	cr_assert_eq(getrusage(RUSAGE_SELF, &use), 0);
	return use.ru_maxrss;
}

/* The registers of a frame are as many as the largest number says, in libdw: 8 bytes for each. */
Test(elf_frames, a_register_of_a_large_number)
{
	long before = peak_kib();
	struct elf_fde fde;

	make(0, "\x05\xc0\x8e\xde\x0f\x01", 6); /* register 33,000,000 at CFA - 8 */
	fde = only_function();
	cr_expect(fde.start == TEXT && fde.cfa_offset == 8 && !fde.saved);
	cr_expect_lt(peak_kib() - before, 64 << 10);
}

/* libdw reads a CIE again for each FDE, however long its augmentation is. */
Test(elf_frames, an_endless_augmentation)
{
	make(5, "\x0e\x50", 2);
	cr_expect_eq(only_function().size, TEXT_SIZE);
	make(6, "\x0e\x50", 2);
	cr_expect_eq(only_function().size, 0);
	make(8192, "\x0e\x50", 2);
	cr_expect_eq(only_function().size, 0);
}
