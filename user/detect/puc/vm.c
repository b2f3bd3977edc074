// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds luaV_execute by its loop. All compilers emit these parts, in varying order:
 *
 *	mov  (%r13),%ebx	fetch: 32 bits through a register,
 *	add  $4,%r13		and the step to the next instruction
 *	mov  %r13,0x20(%rbp)	pc saved in CallInfo, in 5.1 in lua_State
 *	and  $0x7f,%eax		the opcode,
 *	jmp  *(%r14,%rax,8)	by which it jumps through a table: `switch` or computed goto
 *
 * With retpolines (-mindirect-branch=thunk) the last is a load and a direct jump out of the function:
 *
 *	mov  (%r14,%rax,8),%rax
 *	jmp  __x86_indirect_thunk_rax
 *
 * Other functions read opcodes, too (lcode.c, ldebug.c), but they index code instead of stepping
 * through it, or are small. The register that most fetches step and most stores save holds pc: a
 * majority vote. Each function with an opcode mask is decoded once.
 *
 * A `switch` may have one fetch for all instructions, reached with the next one's address in
 * another register; until the step, pc's register has the address of the instruction before. After
 * a jump that one does not run:
 *
 *	lea  -0x7fffc(%r13,%rax,4),%r14
 *	jmp  top
 *   top: movzbl 0x64(%rbp),%eax	in 5.1, hookmask
 *	mov  (%r14),%ebx	fetch,
 *	lea  4(%r14),%r13	and the step
 *
 * Or pc's register is set first, to one before the target, while the other register still has the
 * address of the instruction that jumps:
 *
 *	lea  -0x7fffc(%r13,%rax,4),%r13
 *	lea  4(%r13),%r14
 *	jmp  top
 *
 * Without optimisation pc is a variable on the C stack, and in a register only for the step:
 *
 *	mov  -0x10(%rbp),%rax
 *	lea  4(%rax),%rdx
 *	mov  %rdx,-0x10(%rbp)
 *	mov  (%rax),%eax	fetch
 */
#include "vm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <unwind/puc/layout.h>

#include "base/cleanup.h"
#include "arch/puc_loop.h"

#define MIN_SIZE 2048 /* the smallest known has 4100 bytes, by gcc -Os */
#define MAX_SIZE (64u << 10)
#define DECODE_STEPS 8 /* per byte */
#define STEP_NEAR 6    /* instructions between a fetch and its step */
#define JUMP_NEAR 24   /* instructions from the opcode to the jump */
#define BLOCK_NEAR 8   /* instructions from the start of the fetch's block to the fetch */

struct code {
	struct insn *in;
	uint32_t *at;	 /* offsets from the function's start */
	uint32_t *index; /* by byte of the function: the instruction that begins there */
	size_t n, size, room;
};
#define NO_INDEX UINT32_MAX /* none does */

static void code_free(struct code *code)
{
	free(code->in);
	free(code->at);
	free(code->index);
}

/* Allocates for a function of size bytes: its instructions may have one byte each. */
static int code_reserve(struct code *code, size_t size)
{
	if (size <= code->room)
		return 0;
	code_free(code);
	code->in = calloc(size, sizeof(*code->in));
	code->at = calloc(size, sizeof(*code->at));
	code->index = calloc(size, sizeof(*code->index));
	code->room = code->in && code->at && code->index ? size : 0;
	return code->room ? 0 : -ENOMEM;
}

struct vm_votes {
	uint16_t fetch[INSN_REGS];
	uint16_t save[INSN_REGS][INSN_REGS]; /* [base][source] */
	uint16_t address; /* lea of the field: clang may keep a pointer to savedpc */
};

struct vm_search {
	struct elf_file *elf;
	const struct puc_vm_wanted *wanted;
	uint8_t *text;
	struct code code;
	struct elf_puc_vm best;
};

static void decode(struct code *code, const uint8_t *text, size_t size)
{
	size_t at = 0;

	code->n = 0;
	code->size = size;
	memset(code->index, 0xff, size * sizeof(*code->index));
	while (at < size) {
		struct insn *in = &code->in[code->n];

		if (!insn_decode(text + at, size - at, in)) {
			at++; /* padding, or an unknown instruction: resynchronises */
			continue;
		}
		code->index[at] = (uint32_t)code->n;
		code->at[code->n++] = (uint32_t)at;
		at += in->len;
	}
}

static uint8_t fetch_steps(const struct code *c, size_t at)
{
	size_t i = at > STEP_NEAR ? at - STEP_NEAR : 0;
	uint8_t reg = INSN_NO_REG;

	for (; i < c->n && i <= at + STEP_NEAR; i++) {
		uint8_t r = puc_stepped(&c->in[i], c->in[at].base);

		if (r != INSN_NO_REG)
			reg = r;
	}
	return reg;
}

/* True if the fetch `at` steps a variable on the C stack: a load before it and a store after it. */
static bool steps_local(const struct code *c, size_t at, uint8_t stepped_to)
{
	size_t first = at > STEP_NEAR ? at - STEP_NEAR : 0, i, k;

	for (i = first; i < at; i++)
		for (k = i + 1; k < at + STEP_NEAR && k < c->n; k++)
			if (puc_moves_local(&c->in[i], 0, c->in[at].base) &&
			    puc_moves_local(&c->in[k], 1, stepped_to) &&
			    c->in[i].disp == c->in[k].disp)
				return true;
	return false;
}

static bool leaves(const struct code *c, size_t i)
{
	uint32_t target = c->at[i] + c->in[i].len + (uint32_t)c->in[i].imm;

	return insn_is_jump(&c->in[i]) && target > c->at[c->n - 1];
}

/* True if instruction i + 1 is adjacent to i and runs after it, unless i is a taken branch. */
static bool goes_on(const struct code *c, size_t i)
{
	const struct insn *in = &c->in[i];

	return i + 1 < c->n && c->at[i] + in->len == c->at[i + 1] && !insn_is_call(in) &&
	       !insn_is_jump(in) && !insn_ends(in);
}

/* Returns the instruction that runs after i, branches not taken; c->n: unknown. */
static size_t next_run(const struct code *c, size_t i)
{
	uint32_t target = c->at[i] + c->in[i].len + (uint32_t)c->in[i].imm;

	if (!insn_is_jump(&c->in[i]))
		return goes_on(c, i) ? i + 1 : c->n;
	return target < c->size && c->index[target] != NO_INDEX ? c->index[target] : c->n;
}

/* True if i jumps to an indirect jump: without optimisation all share one. */
static bool jumps_on(const struct code *c, size_t i)
{
	size_t next = insn_is_jump(&c->in[i]) ? next_run(c, i) : c->n;

	return next < c->n && insn_is_indirect_jump(&c->in[next]);
}

static bool jumps_by_opcode(const struct code *c, size_t at, const struct puc_vm_wanted *w)
{
	size_t i;

	if (!puc_is_opcode(&c->in[at], w->opcode_mask))
		return false;
	for (i = at + 1; i < c->n && i < at + JUMP_NEAR; i++) {
		const struct insn *in = &c->in[i];

		if (insn_is_indirect_jump(in) ||
		    (leaves(c, i) && puc_loads_by_index(&c->in[i - 1])) || jumps_on(c, i))
			return true;
		if (insn_is_call(in) || insn_ends(in) ||
		    puc_refutes(in, c->in[at].reg[0], w->opcode_limit))
			return false;
	}
	return false;
}

/* Returns the stores by the base register that has most of them. */
static const uint16_t *saves_to(const struct vm_votes *v)
{
	unsigned base, reg, most = 0, best = 0;

	for (base = 0; base < INSN_REGS; base++) {
		unsigned sum = 0;

		for (reg = 0; reg < INSN_REGS; reg++)
			sum += v->save[base][reg];
		if (sum > most) {
			most = sum;
			best = base;
		}
	}
	return v->save[best];
}

/* Returns the register with twice the votes of any other; none if pc is kept on the C stack. */
static uint8_t elect(const struct vm_votes *v, const uint16_t *saves)
{
	unsigned reg, first = 0, second = 0, best = 0;

	for (reg = 0; reg < INSN_REGS; reg++) {
		unsigned n = v->fetch[reg] + saves[reg];

		if (n > first) {
			second = first;
			first = n;
			best = reg;
		} else if (n > second) {
			second = n;
		}
	}
	return first >= 2 && first >= 2 * second ? (uint8_t)best : PUC_NO_REG;
}

/* Returns the offset at which registers that fetch are stored most often; 0xffff: none. */
static uint16_t saved_elsewhere(const struct code *c, const struct vm_votes *v)
{
	uint16_t count[256] = {}, best = 0xffff, most = 1;
	size_t i;

	for (i = 0; i < c->n; i++) {
		const struct insn *in = &c->in[i];

		if (in->disp < 0 || in->disp > 255 || !puc_is_save(in) || !v->fetch[in->reg[1]])
			continue;
		if (++count[in->disp] > most) {
			most = count[in->disp];
			best = (uint16_t)in->disp;
		}
	}
	return best;
}

/* Finds the step of the fetch `at`, to pc_reg, after it, with the fetch's base unchanged. */
static bool step_behind(const struct code *c, size_t at, uint8_t pc_reg, size_t *step)
{
	uint8_t base = c->in[at].base;
	size_t i;

	if (c->in[at].disp)
		return false;
	for (i = at; i < at + STEP_NEAR && goes_on(c, i) && !insn_writes(&c->in[i], base); i++)
		if (puc_stepped(&c->in[i + 1], base) == pc_reg) {
			*step = i + 1;
			return true;
		}
	return false;
}

/* The same before it: then the fetch is from pc_reg - 4, or from another register. */
static bool step_before(const struct code *c, size_t at, uint8_t pc_reg, size_t *step)
{
	const struct insn *fetch = &c->in[at];
	size_t i;

	if ((fetch->disp != 0) != (fetch->base == pc_reg))
		return false;
	for (i = at; i && at - i < STEP_NEAR && goes_on(c, i - 1); i--)
		if (puc_stepped(&c->in[i - 1], fetch->base) == pc_reg) {
			*step = i - 1;
			return true;
		}
	return false;
}

/*
 * Returns the start of the block that ends with a fetch: the last jump target before it, if base is
 * unchanged from there on; else the fetch itself.
 */
static size_t block_begins(const struct code *c, size_t first, uint8_t base)
{
	uint32_t begin = 0;
	size_t i;

	for (i = 0; i < c->n; i++) {
		const struct insn *in = &c->in[i];
		uint32_t target = c->at[i] + in->len + (uint32_t)in->imm;

		if ((insn_is_branch(in) || insn_is_jump(in)) && target <= c->at[first] &&
		    target > begin)
			begin = target;
	}
	for (i = first; c->at[i] != begin; i--)
		if (!i || first - i == BLOCK_NEAR || !goes_on(c, i - 1) ||
		    insn_writes(&c->in[i - 1], base))
			return first;
	return i;
}

static bool begins_one(const struct puc_text *text, size_t n, uint32_t at)
{
	while (n--)
		if (text[n].at == at)
			return true;
	return false;
}

/*
 * Adds the text of the path from behind instruction i to one of the n known texts (the fetch's own,
 * or another path to it). Returns the new number of texts: n if there is no short path, or no room.
 */
static size_t add_way(const struct code *c, size_t i, struct puc_text *text, size_t n)
{
	size_t known = n, left;

	for (left = BLOCK_NEAR; left; left--) {
		size_t next = next_run(c, i);

		if (next == c->n)
			break;
		if (begins_one(text, known, c->at[next]))
			return n;
		if (n == known || next != i + 1) {
			if (n == PUC_FETCHES)
				break;
			text[n++] = (struct puc_text){c->at[next], 0};
		}
		text[n - 1].size += c->in[next].len;
		i = next;
	}
	memset(text + known, 0, (n - known) * sizeof(*text));
	return known;
}

/*
 * If there is a single fetch, finds the text in which its base is the next instruction's address.
 * Fetches without a step in the same block do not count: 5.1's OP_CLOSURE reads the instructions
 * after it in a loop.
 */
static void find_fetch(const struct code *c, struct elf_puc_vm *vm)
{
	size_t i, at = 0, step = 0, fetches = 0, begin, n = 1;

	for (i = 0; i < c->n; i++)
		if (puc_is_fetch(&c->in[i]) && (step_behind(c, i, vm->pc_reg, &step) ||
						step_before(c, i, vm->pc_reg, &step))) {
			fetches++;
			at = i;
		}
	if (fetches != 1)
		return;
	begin = block_begins(c, step < at ? step : at, c->in[at].base);
	vm->fetch_reg = c->in[at].base;
	vm->fetch[0] = (struct puc_text){c->at[begin], c->at[step] - c->at[begin] + 1};
	if (vm->fetch_reg == vm->pc_reg)
		return;
	for (i = 0; i < c->n; i++)
		if (puc_jumps_pc(&c->in[i], vm->pc_reg))
			n = add_way(c, i, vm->fetch, n);
}

static void measure(const struct code *c, const struct puc_vm_wanted *w, struct elf_puc_vm *vm)
{
	struct vm_votes v = {};
	const uint16_t *saves;
	unsigned reg;
	size_t i;

	for (i = 0; i < c->n; i++) {
		const struct insn *in = &c->in[i];
		uint8_t r = puc_is_fetch(in) ? fetch_steps(c, i) : INSN_NO_REG;

		if (r != INSN_NO_REG) {
			v.fetch[r]++;
			vm->fetches++;
			vm->local += steps_local(c, i, r);
		}
		if (puc_is_save(in) && in->disp == w->savedpc)
			v.save[in->base][in->reg[1]]++;
		v.address += puc_takes_address(in, w->savedpc);
		vm->jumps += jumps_by_opcode(c, i, w);
	}
	saves = saves_to(&v);
	vm->pc_reg = elect(&v, saves);
	for (reg = 0; reg < INSN_REGS; reg++)
		if (vm->pc_reg == PUC_NO_REG ? v.fetch[reg] != 0 : reg == vm->pc_reg)
			vm->saves += saves[reg];
	if (!vm->saves)
		vm->elsewhere = saved_elsewhere(c, &v);
	if (!vm->elsewhere)
		vm->saves = v.address;
	if (vm->pc_reg != PUC_NO_REG)
		find_fetch(c, vm);
}

static bool better(const struct elf_puc_vm *a, const struct elf_puc_vm *b)
{
	if (!a->saves != !b->saves)
		return a->saves;
	return a->size > b->size;
}

static int look_at(void *arg, const struct elf_fde *fde)
{
	struct vm_search *s = arg;
	struct elf_puc_vm vm = {.start = fde->start, .size = fde->size, .elsewhere = 0xffff};

	if (fde->size < MIN_SIZE || fde->size > MAX_SIZE ||
	    elf_read(s->elf, fde->start, s->text, fde->size) ||
	    !puc_has_opcode(s->text, fde->size, s->wanted->opcode_mask))
		return 0;
	if (!elf_spend(s->elf, fde->size * DECODE_STEPS)) /* FDEs may overlap */
		return -EDQUOT;
	if (code_reserve(&s->code, fde->size))
		return -ENOMEM;
	decode(&s->code, s->text, fde->size);
	measure(&s->code, s->wanted, &vm);
	if (vm.fetches && vm.jumps && better(&vm, &s->best))
		s->best = vm;
	return 0;
}

static void search_free(struct vm_search *s)
{
	code_free(&s->code);
}

int elf_find_puc_vm(struct elf_file *elf, const struct puc_vm_wanted *wanted, struct elf_puc_vm *vm)
{
	uint8_t *text __free = malloc(MAX_SIZE);
	struct vm_search s __cleanup(search_free) = {.elf = elf, .wanted = wanted, .text = text};
	int err;

	if (!text)
		return -ENOMEM;
	err = elf_fdes(elf, look_at, &s);
	if (err)
		return err;
	if (!s.best.size)
		return -ENOENT;
	*vm = s.best;
	return 0;
}
