// SPDX-License-Identifier: BSD-2-Clause
/*
 * What any bytes are recognised as: the text of LuaJIT's VM, a function of Lua's API, a file, or
 * the functions of a file that says it is PUC Lua. The first byte chooses one of these four.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "detect/calls.h"
#include "detect/puc/api.h"
#include "detect/puc/gc.h"
#include "detect/puc/lib.h"
#include "arch/lj_facts.h"
#include "detect/lj/measure.h"
#include "detect/lj/recognise.h"
#include "detect/puc/recognise.h"

static void measure_luajit(const uint8_t *data, size_t size)
{
	struct lj_measured m;
	struct lj_layout lj;
	int i;

	memset(&m, 0xff, sizeof(m));
	lj_measure(data, size, &m);
	for (i = 0; i < LJ_FACTS; i++)
		if (m.fact[i] > UINT16_MAX && m.fact[i] != LJ_FACT_DIFFERS)
			abort();
	if (lj_layout_of(&m, 80, &lj) == LJ_FACTS &&
	    (!lj.g2disp || lj.g2trace >= lj.g2disp || lj.jit_base - lj.cur_L > 16))
		abort();
}

static void read_api(const uint8_t *data, size_t size)
{
	struct puc_fact facts[PUC_FACTS];
	size_t n = puc_api_facts(data, size, facts), i;

	if (n > PUC_FACTS)
		abort();
	for (i = 0; i < n; i++)
		if (facts[i].path.depth < 1 || facts[i].path.depth > 3 || facts[i].width > 8)
			abort();
}

/*
 *	0x000	ELF header, program headers
 *	0x200	"$LuaVersion: Lua 5.4.4"
 *	0x300	.eh_frame: a CIE, and an FDE of 24 bytes for each function
 *	0x800	.eh_frame_hdr
 *	0x1000	text: functions of the same size, one after the other
 */
#define IDENT 0x200
#define EH_FRAME 0x300
#define EH_FRAME_HDR 0x800
#define TEXT 0x1000
#define TEXT_MAX 0x8000
#define FUNCTIONS 32
#define CIE_SIZE 24
#define FDE_SIZE 24

static uint8_t image[TEXT + TEXT_MAX];

static void put32(size_t at, uint32_t v)
{
	memcpy(image + at, &v, 4);
}

static void put_headers(size_t text)
{
	const Elf64_Phdr ph[] = {
		{PT_LOAD, PF_R, 0, 0, 0, TEXT, TEXT, TEXT},
		{PT_LOAD, PF_R | PF_X, TEXT, TEXT, TEXT, text, text, TEXT},
		{PT_GNU_EH_FRAME, PF_R, EH_FRAME_HDR, EH_FRAME_HDR, EH_FRAME_HDR,
		 TEXT - EH_FRAME_HDR, TEXT - EH_FRAME_HDR, 4},
	};
	const Elf64_Ehdr eh = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(eh),
		.e_ehsize = sizeof(eh),
		.e_phentsize = sizeof(ph[0]),
		.e_phnum = sizeof(ph) / sizeof(ph[0]),
	};

	memcpy(image, &eh, sizeof(eh));
	memcpy(image + sizeof(eh), ph, sizeof(ph));
}

static void put_frames(size_t n, size_t size)
{
	/* length, id, version, "zR", alignments, return address, pointers are pcrel sdata4 */
	static const uint8_t cie[CIE_SIZE] = {CIE_SIZE - 4, [8] = 1, 'z', 'R', 0, 1,
					      0x78,	    16,	     1,	  0x1b};
	size_t i;

	memcpy(image + EH_FRAME, cie, sizeof(cie));
	memcpy(image + EH_FRAME_HDR, "\x01\x1b\x03\x3b", 4);
	put32(EH_FRAME_HDR + 4, (uint32_t)(EH_FRAME - (EH_FRAME_HDR + 4)));
	put32(EH_FRAME_HDR + 8, (uint32_t)n);
	for (i = 0; i < n; i++) {
		size_t at = EH_FRAME + CIE_SIZE + i * FDE_SIZE, start = TEXT + i * size;

		put32(at, FDE_SIZE - 4);
		put32(at + 4, (uint32_t)(at + 4 - EH_FRAME));
		put32(at + 8, (uint32_t)(start - (at + 8)));
		put32(at + 12, (uint32_t)size);
		put32(EH_FRAME_HDR + 12 + 8 * i, (uint32_t)(start - EH_FRAME_HDR));
		put32(EH_FRAME_HDR + 16 + 8 * i, (uint32_t)(at - EH_FRAME_HDR));
	}
}

static void check_text(uint64_t lo, uint64_t hi, size_t text)
{
	if (lo < TEXT || hi <= lo || hi > TEXT + text)
		abort();
}

static void ask_calls(struct elf_file *elf, size_t text)
{
	static struct elf_puc_lib lib;
	struct call_graph calls;
	struct elf_puc_gc gc;
	uint32_t i;

	if (!call_graph_build(elf, TEXT, text, &calls)) {
		for (i = 0; i < calls.nedges; i++)
			if (calls.edge[i].from >= calls.n || calls.edge[i].to >= calls.n)
				abort();
		if (!elf_puc_collector(&calls, TEXT, &gc)) {
			check_text(gc.lo, gc.hi, text);
			if (gc.skip_lo && (gc.skip_lo <= gc.lo || gc.skip_hi > gc.hi))
				abort();
		}
		if (!elf_puc_collector_by(&calls, TEXT + text / 2, TEXT, &gc)) {
			check_text(gc.lo, gc.hi, text);
			if (gc.skip_lo && (gc.skip_lo <= gc.lo || gc.skip_hi > gc.hi))
				abort();
		}
		if (!elf_puc_library(&calls, &lib) && lib.n > ELF_PUC_LIB_MAX)
			abort();
	}
	call_graph_free(&calls);
}

static void ask_deep(struct elf_file *elf)
{
	struct puc_fact facts[PUC_DEEP_FACTS];
	size_t n = puc_api_deep_facts(elf, TEXT, facts), i;

	if (n > PUC_DEEP_FACTS)
		abort();
	for (i = 0; i < n; i++)
		if (facts[i].path.depth < PUC_DEEP || facts[i].path.depth > PUC_PATH + 1)
			abort();
}

static void check_registers(const struct vm_build *b)
{
	const struct puc_build *puc = &b->build.puc;
	uint32_t i;

	if (puc->pc_reg > 15 && puc->pc_reg != PUC_NO_REG)
		abort();
	if (puc->fetch_reg > 15)
		abort();
	for (i = 0; i < PUC_FETCHES; i++)
		if (puc->fetch[i].at > b->size || puc->fetch[i].size > b->size - puc->fetch[i].at)
			abort();
}

static void check_probes(struct elf_file *elf, const struct vm_build *b, size_t text)
{
	static struct call_probes probes;
	struct error err;
	uint32_t i;
	int r = puc_call_probes(elf, b, &probes, &err);

	if (r && r != -ENOTSUP && r != -ENOMEM)
		abort();
	for (i = 0; !r && i < probes.n; i++)
		if (probes.at[i].addr < TEXT || probes.at[i].addr > TEXT + text)
			abort();
}

static void ask_recognise(struct elf_file *elf, size_t text)
{
	static struct vm_build b;
	struct error err;
	int r = puc_recognise(elf, &b, &err);

	if (r && r != -ENOENT && r != -ENOTSUP)
		abort();
	if (!r && text) {
		check_text(b.start, b.start + b.size, text);
		check_registers(&b);
		check_probes(elf, &b, text);
		if (strlen(b.evidence) >= sizeof(b.evidence) || !*b.name || !*b.release)
			abort();
	}
}

enum fuzz_question { ASK_RECOGNISE, ASK_CALLS, ASK_DEEP };

/* text: how long the functions of image are; 0: the file is another */
static void ask_file(enum fuzz_question q, const void *bytes, size_t size, size_t text)
{
	struct elf_file *elf = NULL;

	if (elf_open_bytes(bytes, size, &elf))
		return;
	if (q == ASK_RECOGNISE)
		ask_recognise(elf, text);
	else if (q == ASK_CALLS)
		ask_calls(elf, text);
	else
		ask_deep(elf);
	elf_close(&elf);
}

/*
 * The low bits of the first byte choose the release; the low bits of the second the number of
 * functions, its high bits the question; the others are text.
 */
static void recognise_functions(const uint8_t *data, size_t size)
{
	static const char releases[][8] = {"5.1.5", "5.2.4", "5.3.6", "5.4.4",
					   "5.5.0", "5.4.0", "5.2.0", "5.4.9"};
	size_t n, text;

	if (size < 3)
		return;
	n = data[1] % FUNCTIONS + 1;
	text = size - 2 < TEXT_MAX ? size - 2 : TEXT_MAX;
	memset(image, 0, TEXT);
	put_headers(text);
	strcpy((char *)image + IDENT, data[0] % 8 ? "$LuaVersion: Lua " : "$Lua: Lua ");
	strcat((char *)image + IDENT, releases[data[0] % 8]);
	put_frames(n, text / n ? text / n : 1);
	memcpy(image + TEXT, data + 2, text);
	ask_file(data[1] / FUNCTIONS % (ASK_DEEP + 1), image, TEXT + text, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] >> 3 & 3) {
	case 0:
		recognise_functions(data, size);
		break;
	case 1:
		measure_luajit(data + 1, size - 1);
		break;
	case 2:
		read_api(data + 1, size - 1);
		break;
	case 3:
		ask_file(ASK_RECOGNISE, data + 1, size - 1, 0);
		break;
	}
	return 0;
}
