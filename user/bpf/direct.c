// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <luabpf/abi.h>

#include "base/cleanup.h"
#include "direct.h"

#define PAGE 4096
#define PAGEMAP_PRESENT (UINT64_C(1) << 63) /* Documentation/admin-guide/mm/pagemap.rst */
#define PAGEMAP_FRAME ((UINT64_C(1) << 55) - 1)
#define TRIES 3 /* a page may be moved between two looks at it */

/* What programs call: libbpf's callback has no other way to know. */
static struct kernel_cast now;

/* Returns 1 for a call, -1 for the type that one is made with, else 0. */
static int put_number(struct bpf_insn *insn)
{
	uint8_t class = BPF_CLASS(insn->code);

	if (insn->code == (BPF_JMP | BPF_CALL) && !insn->src_reg && insn->imm == LB_CAST_CALL) {
		insn->src_reg = BPF_PSEUDO_KFUNC_CALL;
		insn->imm = (int32_t)now.function;
		return 1;
	}
	if ((class == BPF_ALU || class == BPF_ALU64) && BPF_OP(insn->code) == BPF_MOV &&
	    BPF_SRC(insn->code) == BPF_K && insn->imm == LB_CAST_TYPE) {
		insn->imm = (int32_t)now.type;
		return -1;
	}
	return 0;
}

/* A program, its functions included, is about to be loaded, with the flags that are the cookie. */
static int put_numbers(struct bpf_program *prog, struct bpf_prog_load_opts *opts, long cookie)
{
	size_t n = bpf_program__insn_cnt(prog), i;
	struct bpf_insn *insns __free = malloc(n * sizeof(*insns));
	int left = 0;

	opts->prog_flags |= (uint32_t)cookie;
	if (!insns)
		return -ENOMEM;
	memcpy(insns, bpf_program__insns(prog), n * sizeof(*insns));
	for (i = 0; i < n; i++)
		left += put_number(&insns[i]);
	if (left) /* the compiler has not made them what we know */
		return -EINVAL;
	return bpf_program__set_insns(prog, insns, n);
}

int direct_set_cast(const struct kernel_cast *cast)
{
	static const struct {
		const char *name;
		enum bpf_prog_type type;
		uint32_t flags; /* that libbpf would set */
	} sections[] = {
		{"perf_event", BPF_PROG_TYPE_PERF_EVENT, 0},
		{"raw_tp", BPF_PROG_TYPE_RAW_TRACEPOINT, 0},
		{"syscall", BPF_PROG_TYPE_SYSCALL, BPF_F_SLEEPABLE},
	};
	static bool registered;

	now = *cast;
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]) && !registered; i++) {
		LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .cookie = sections[i].flags,
			    .prog_prepare_load_fn = put_numbers);
		int r = libbpf_register_prog_handler(sections[i].name, sections[i].type, 0, &opts);

		if (r < 0)
			return r;
	}
	registered = true;
	return 0;
}

/* 0: the kernel does not tell. */
static uint64_t physical_address(uint64_t addr)
{
	int fd __close = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry;

	if (fd < 0 || pread(fd, &entry, sizeof(entry), (off_t)(addr / PAGE * sizeof(entry))) !=
			      (ssize_t)sizeof(entry))
		return 0;
	return entry & PAGEMAP_PRESENT ? (entry & PAGEMAP_FRAME) * PAGE : 0;
}

static void *new_page(void)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

bool direct_is_possible(void)
{
	void *page = new_page();
	bool told = page && physical_address((uintptr_t)page);

	if (page)
		munmap(page, PAGE);
	return told;
}

static bool proves(int prog, void *page)
{
	struct lb_prove p = {.addr = (uintptr_t)page};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &p, .ctx_size_in = sizeof(p));

	if (getrandom(p.word, sizeof(p.word), 0) != (ssize_t)sizeof(p.word))
		return false;
	memcpy(page, p.word, sizeof(p.word));
	p.physical = physical_address(p.addr);
	return p.physical && !bpf_prog_test_run_opts(prog, &opts) && opts.retval == 1;
}

bool direct_prove(int prog)
{
	void *page = new_page();
	bool proved = false;

	if (!page)
		return false;
	for (int i = 0; i < TRIES && !proved; i++)
		proved = proves(prog, page);
	munmap(page, PAGE);
	return proved;
}
