/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions as .eh_frame describes them, in the order of .eh_frame_hdr's sorted table. Stripped
 * files keep both; static programs have no table. LSB 5.0, "DWARF Extensions".
 *
 * LuaJIT's VM is one function with one frame: buildvm_asm.c describes it by a single FDE, without
 * rules for its prologue:
 *
 *     CFA = rsp + 80; rbp at CFA-16, rbx at CFA-24, r15 at CFA-32, r14 at CFA-40
 *
 * No compiler emits that for 16 KiB of code. Built with LUAJIT_NO_UNWIND it is not described at all.
 *
 * Not libdw (0.188). It returns no function bounds: dwarf_frame_info() has the range of one row.
 * Files are untrusted, and dwarf_cfi_addrframe() allocates as many registers as the largest number,
 * again for each remembered state: 258 MiB for a file of 8 KiB that names register 33,000,000,
 * 12 GiB with 64 times DW_CFA_remember_state. The rest, dwarf_next_cfi(), reads a CIE again for
 * each FDE: 21 s for 8 MiB with two CIEs and 4000 FDEs, and four times that for twice the size. A
 * valid file (libLLVM-14, 95,000 FDEs) takes 69 ms instead of 15, without decoding the addresses.
 */
#include "elf_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "arch/elf_abi.h"
#include "base/cleanup.h"

#define MAX_EH_FRAME (128u << 20)
#define MAX_FDES (2u << 20) /* libLLVM 15 has 100,000 */
#define MAX_RULES 512	    /* bytes of instructions before the first that changes the frame */
#define FDE_STEPS 64
#define MIN_VM 8192 /* bytes of code */

enum { /* DW_EH_PE_* */
       PE_ABSPTR = 0,
       PE_UDATA2 = 2,
       PE_UDATA4 = 3,
       PE_UDATA8 = 4,
       PE_SDATA2 = 10,
       PE_SDATA4 = 11,
       PE_SDATA8 = 12,
       PE_FORMAT = 0x0f,
       PE_PCREL = 0x10,
       PE_DATAREL = 0x30,
};

struct cursor {
	const uint8_t *p, *end;
};

/* Unwind rules that hold for all instructions of a function. */
struct rules {
	uint64_t cfa_reg, cfa_offset;
	uint64_t at[ELF_ABI_REGS]; /* register saved at CFA - this; 0: not saved */
};

struct cie {
	uint8_t encoding; /* of addresses in FDEs */
	bool augmented;
	bool constant; /* its instructions are such rules only */
	int64_t data_align;
	struct rules rules;
};

/* .eh_frame, from its beginning to the end of its segment */
struct frames {
	struct elf_file *elf;
	uint8_t *bytes;
	size_t len;
	uint64_t vaddr;
	uint64_t cie_at; /* the CIE parsed last: FDEs of one CIE are adjacent */
	struct cie cie;
	bool have_cie, bad_cie;
};

static bool take(struct cursor *c, void *dst, size_t n)
{
	if ((size_t)(c->end - c->p) < n)
		return false;
	memcpy(dst, c->p, n);
	c->p += n;
	return true;
}

static bool take_u8(struct cursor *c, uint8_t *v)
{
	return take(c, v, 1);
}

static bool take_uleb(struct cursor *c, uint64_t *v)
{
	unsigned shift;
	uint8_t byte;

	*v = 0;
	for (shift = 0; shift < 64 && take_u8(c, &byte); shift += 7) {
		*v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

static bool take_sleb(struct cursor *c, int64_t *v)
{
	uint64_t bits = 0;
	unsigned shift;
	uint8_t byte;

	for (shift = 0; shift < 64 && take_u8(c, &byte);) {
		bits |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (byte >= 0x80)
			continue;
		if (byte & 0x40 && shift < 64)
			bits |= ~0ULL << shift;
		*v = (int64_t)bits;
		return true;
	}
	return false;
}

/* Reads a value in one of the formats, without its base. */
static bool take_encoded(struct cursor *c, uint8_t encoding, uint64_t *v)
{
	int16_t s2;
	int32_t s4;

	*v = 0;
	switch (encoding & PE_FORMAT) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return take(c, v, 8);
	case PE_UDATA4:
		return take(c, v, 4);
	case PE_UDATA2:
		return take(c, v, 2);
	case PE_SDATA4:
		if (!take(c, &s4, 4))
			return false;
		*v = (uint64_t)(int64_t)s4;
		return true;
	case PE_SDATA2:
		if (!take(c, &s2, 2))
			return false;
		*v = (uint64_t)(int64_t)s2;
		return true;
	default:
		return false;
	}
}

/* Sets c to the content of the CIE or FDE at an offset: after its length, up to its end. */
static bool entry_at(const struct frames *f, uint64_t offset, struct cursor *c)
{
	uint32_t len;

	if (offset > f->len)
		return false;
	*c = (struct cursor){f->bytes + offset, f->bytes + f->len};
	if (!take(c, &len, 4) || !len || len == 0xffffffff || len > (size_t)(c->end - c->p))
		return false;
	c->end = c->p + len;
	return true;
}

static bool parse_augmentation(struct cursor *c, const char *letters, struct cie *cie)
{
	struct cursor data;
	uint64_t len;
	uint8_t skip;

	if (*letters++ != 'z')
		return false;
	if (!take_uleb(c, &len) || len > (size_t)(c->end - c->p))
		return false;
	cie->augmented = true;
	data = (struct cursor){c->p, c->p + len};
	c->p += len;
	for (; *letters; letters++) {
		uint64_t personality;

		switch (*letters) {
		case 'R':
			if (!take_u8(&data, &cie->encoding))
				return false;
			break;
		case 'L':
			if (!take_u8(&data, &skip))
				return false;
			break;
		case 'P':
			if (!take_u8(&data, &skip) || !take_encoded(&data, skip, &personality))
				return false;
			break;
		default: /* 'S', 'B': no data */
			break;
		}
	}
	return true;
}

static bool set_saved(struct rules *r, uint64_t reg, uint64_t factored, int64_t align)
{
	uint64_t below = factored * (0 - (uint64_t)align);

	if (reg < ELF_ABI_REGS)
		r->at[reg] = below;
	return true;
}

/* Executes one instruction. Returns false if it does not set a rule for the whole function. */
static bool run_one(struct cursor *c, const struct cie *cie, struct rules *r)
{
	uint64_t a, b;
	uint8_t op;

	if (!take_u8(c, &op))
		return false;
	if ((op & 0xc0) == 0x80) /* DW_CFA_offset */
		return take_uleb(c, &a) && set_saved(r, op & 0x3f, a, cie->data_align);
	switch (op) {
	case 0x00: /* DW_CFA_nop */
		return true;
	case 0x05: /* DW_CFA_offset_extended */
		return take_uleb(c, &a) && take_uleb(c, &b) && set_saved(r, a, b, cie->data_align);
	case 0x0c: /* DW_CFA_def_cfa */
		return take_uleb(c, &r->cfa_reg) && take_uleb(c, &r->cfa_offset);
	case 0x0d: /* DW_CFA_def_cfa_register */
		return take_uleb(c, &r->cfa_reg);
	case 0x0e: /* DW_CFA_def_cfa_offset */
		return take_uleb(c, &r->cfa_offset);
	default:
		return false;
	}
}

/*
 * False if the frame changes. Compilers emit some tens of bytes before the first instruction that
 * changes it; more than MAX_RULES count as a change.
 */
static bool run(struct cursor c, const struct cie *cie, struct rules *r)
{
	const uint8_t *end = c.end;

	if (c.end - c.p > MAX_RULES)
		c.end = c.p + MAX_RULES;
	while (c.p < c.end)
		if (!run_one(&c, cie, r))
			return false;
	return c.end == end;
}

static bool parse_cie(const struct frames *f, uint64_t offset, struct cie *cie)
{
	char letters[8] = "";
	uint64_t code_align, ra;
	struct cursor c;
	uint8_t version, ra1;
	uint32_t id;
	size_t i = 0;

	*cie = (struct cie){.encoding = PE_ABSPTR};
	if (!entry_at(f, offset, &c) || !take(&c, &id, 4) || id || !take_u8(&c, &version))
		return false;
	do {
		if (i >= sizeof(letters) || !take(&c, &letters[i], 1))
			return false;
	} while (letters[i++]);
	if (!take_uleb(&c, &code_align) || !take_sleb(&c, &cie->data_align))
		return false;
	if (version == 1 ? !take_u8(&c, &ra1) : !take_uleb(&c, &ra))
		return false;
	if (*letters && !parse_augmentation(&c, letters, cie))
		return false;
	cie->constant = run(c, cie, &cie->rules);
	return true;
}

/* Parses a CIE once for all adjacent FDEs that refer to it. */
static const struct cie *cie_at(struct frames *f, uint64_t offset)
{
	if (!f->have_cie || f->cie_at != offset) {
		f->have_cie = true;
		f->cie_at = offset;
		f->bad_cie = !parse_cie(f, offset, &f->cie);
	}
	return f->bad_cie ? NULL : &f->cie;
}

static void describe(const struct cie *cie, struct cursor instructions, struct elf_fde *fde)
{
	struct rules r = cie->rules;
	unsigned i;

	if (!cie->constant || !run(instructions, cie, &r) || r.cfa_reg != elf_abi_sp ||
	    r.cfa_offset > UINT32_MAX)
		return;
	fde->cfa_offset = (uint32_t)r.cfa_offset;
	for (i = 0; i < ELF_ABI_REGS; i++)
		if (r.at[i])
			fde->saved |= 1u << i;
}

static bool parse_fde(struct frames *f, uint64_t offset, struct elf_fde *fde)
{
	const struct cie *cie;
	uint64_t at, back_at, len;
	uint32_t back;
	struct cursor c;

	*fde = (struct elf_fde){0};
	if (!entry_at(f, offset, &c))
		return false;
	back_at = (uint64_t)(c.p - f->bytes);
	if (!take(&c, &back, 4) || !back || back > back_at)
		return false;
	cie = cie_at(f, back_at - back);
	if (!cie)
		return false;
	at = f->vaddr + (uint64_t)(c.p - f->bytes);
	if (!take_encoded(&c, cie->encoding, &fde->start) ||
	    !take_encoded(&c, cie->encoding & 7, &fde->size))
		return false;
	if ((cie->encoding & 0x70) == PE_PCREL)
		fde->start += at;
	if (cie->augmented) {
		if (!take_uleb(&c, &len) || len > (size_t)(c.end - c.p))
			return false;
		c.p += len;
	}
	describe(cie, c, fde);
	return true;
}

/* The binary search table: pairs of function and FDE, relative to the header. */
struct frame_table {
	int32_t (*entries)[2];
	size_t n;
	uint64_t eh_frame;
};

#define TABLE_HEAD 32 /* version, three encodings, two values */

static int read_table(struct elf_file *elf, struct frame_table *t)
{
	uint64_t base = elf->eh_frame_hdr, at, n;
	uint8_t head[4], *first __free = NULL, *bytes __free = NULL;
	struct cursor c;
	size_t len;
	int err;

	if (!base)
		return -ENOENT;
	err = elf_read_rest(elf, base, TABLE_HEAD, &first, &len);
	if (err)
		return err;
	c = (struct cursor){first, first + len};
	if (!take(&c, head, 4) || head[0] != 1 || head[3] != (PE_DATAREL | PE_SDATA4))
		return -ENOTSUP;
	at = base + (uint64_t)(c.p - first);
	if (!take_encoded(&c, head[1], &t->eh_frame) || !take_encoded(&c, head[2], &n))
		return -ENOTSUP;
	if ((head[1] & 0x70) == PE_PCREL)
		t->eh_frame += at;
	else if ((head[1] & 0x70) == PE_DATAREL)
		t->eh_frame += base;
	if (!n)
		return 0;
	err = elf_read_rest(elf, base + (uint64_t)(c.p - first),
			    (n < MAX_FDES ? n : MAX_FDES) * sizeof(*t->entries), &bytes, &len);
	if (err)
		return err;
	t->entries = (void *)TAKE_PTR(bytes);
	t->n = len / sizeof(*t->entries);
	return 0;
}

static bool is_named(struct elf_file *elf, const Elf64_Shdr *sh, const char *name)
{
	const Elf64_Shdr *names = &elf->sections[elf->section_names];
	size_t size = strlen(name) + 1;
	char is[16];

	return sh->sh_name < names->sh_size && size <= sizeof(is) &&
	       !elf_pread(elf, is, size, names->sh_offset + sh->sh_name) && !memcmp(is, name, size);
}

/* Finds .eh_frame by its section header: static programs have no table. */
static int find_section(struct elf_file *elf, uint64_t *vaddr, uint64_t *size)
{
	size_t i;

	for (i = 0; i < elf->nsections && elf->section_names < elf->nsections; i++) {
		const Elf64_Shdr *sh = &elf->sections[i];

		if (sh->sh_flags & SHF_ALLOC && is_named(elf, sh, ".eh_frame")) {
			*vaddr = sh->sh_addr;
			*size = sh->sh_size;
			return 0;
		}
	}
	return -ENOENT;
}

static int by_start(const void *a, const void *b)
{
	const struct elf_fde *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Parses all FDEs of a section, and sorts them by start. */
static int read_section(struct frames *f, struct elf_fde **fdes, size_t *n)
{
	struct elf_fde *all __free = NULL;
	uint64_t at = 0, len;
	size_t count = 0;
	struct cursor c;

	for (; entry_at(f, at, &c) && count < MAX_FDES; at += 4 + len) {
		len = (uint64_t)(c.end - (f->bytes + at)) - 4;
		if (!elf_spend(f->elf, FDE_STEPS))
			return -EDQUOT;
		if (array_grow(&all, count, sizeof(*all)))
			return -ENOMEM;
		if (parse_fde(f, at, &all[count]))
			count++;
	}
	if (count)
		qsort(all, count, sizeof(*all), by_start);
	*fdes = TAKE_PTR(all);
	*n = count;
	return 0;
}

static int fdes_of_section(struct elf_file *elf, int (*fn)(void *arg, const struct elf_fde *fde),
			   void *arg)
{
	struct elf_fde *fdes __free = NULL;
	uint8_t *bytes __free = NULL;
	struct frames f = {.elf = elf};
	uint64_t size;
	size_t i, n;
	int err = find_section(elf, &f.vaddr, &size);

	if (!err)
		err = elf_read_rest(elf, f.vaddr, size < MAX_EH_FRAME ? size : MAX_EH_FRAME,
				    &f.bytes, &f.len);
	bytes = f.bytes;
	if (!err)
		err = read_section(&f, &fdes, &n);
	if (err)
		return err;
	for (i = 0; i < n; i++) {
		int stop = fn(arg, &fdes[i]);

		if (stop)
			return stop;
	}
	return 0;
}

static int fdes_of_table(struct frames *f, const struct frame_table *t,
			 int (*fn)(void *arg, const struct elf_fde *fde), void *arg)
{
	size_t i;

	for (i = 0; i < t->n; i++) {
		uint64_t at = f->elf->eh_frame_hdr + (uint64_t)(int64_t)t->entries[i][1];
		struct elf_fde fde;
		int stop;

		if (!elf_spend(f->elf, FDE_STEPS))
			return -EDQUOT;
		if (!parse_fde(f, at - f->vaddr, &fde))
			continue;
		stop = fn(arg, &fde);
		if (stop)
			return stop;
	}
	return 0;
}

int elf_fdes(struct elf_file *elf, int (*fn)(void *arg, const struct elf_fde *fde), void *arg)
{
	struct frames f = {.elf = elf};
	void *entries __free = NULL;
	uint8_t *bytes __free = NULL;
	struct frame_table t = {0};
	int err;

	if (!elf->eh_frame_hdr)
		return fdes_of_section(elf, fn, arg);
	err = read_table(elf, &t);
	entries = t.entries;
	if (!err && t.n)
		err = elf_read_rest(elf, t.eh_frame, MAX_EH_FRAME, &f.bytes, &f.len);
	bytes = f.bytes;
	f.vaddr = t.eh_frame;
	return err ? err : fdes_of_table(&f, &t, fn, arg);
}

#define FEW_FDES 64 /* Lua has hundreds of functions */

static int count_fde(void *arg, const struct elf_fde *fde)
{
	unsigned *n = arg;

	(void)fde;
	return ++*n >= FEW_FDES;
}

bool elf_lacks_fdes(struct elf_file *elf)
{
	unsigned n = 0;
	int r = elf_fdes(elf, count_fde, &n);

	return !r || r == -ENOENT;
}

struct fde_search {
	struct elf_lj_vm vm;	       /* the largest that is described */
	struct elf_lj_vm *undescribed; /* or NULL */
	int n;
	uint64_t most, end; /* of the functions up to here */
	size_t nfdes;
};

static int look_for_vm(void *arg, const struct elf_fde *fde)
{
	struct fde_search *s = arg;
	uint64_t gap = fde->start - s->end;

	s->nfdes++;
	if ((fde->cfa_offset == 80 || fde->cfa_offset == 96) &&
	    (fde->saved & elf_abi_vm_saved) == elf_abi_vm_saved && fde->size >= MIN_VM &&
	    fde->size > s->vm.size)
		s->vm = (struct elf_lj_vm){
			.start = fde->start, .size = fde->size, .cframe_size = fde->cfa_offset};
	if (s->undescribed && s->end && s->n < ELF_LJ_VMS && fde->start > s->end && gap >= MIN_VM &&
	    gap <= s->most)
		s->undescribed[s->n++] = (struct elf_lj_vm){.start = s->end, .size = gap};
	if (fde->start + fde->size > s->end)
		s->end = fde->start + fde->size;
	return 0;
}

int elf_lj_vms(struct elf_file *elf, uint64_t most, struct elf_lj_vm vms[ELF_LJ_VMS], bool *lacks)
{
	struct fde_search s = {.undescribed = vms, .most = most};
	int err = elf_fdes(elf, look_for_vm, &s);

	*lacks = err == -ENOENT || (!err && s.nfdes < FEW_FDES);
	if (err)
		return err;
	if (!s.vm.size)
		return s.n;
	vms[0] = s.vm;
	return 1;
}

int elf_find_lj_vm(struct elf_file *elf, struct elf_lj_vm *vm)
{
	struct fde_search s = {0};
	int err = elf_fdes(elf, look_for_vm, &s);

	if (err)
		return err;
	if (!s.vm.size)
		return -ENOENT;
	*vm = s.vm;
	return 0;
}
