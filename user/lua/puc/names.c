/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines and call-site names of a prototype, as each version's ldebug.c derives them: it finds the
 * instruction that set the called register, and the source of its value. ldebug.c relies on the
 * compiler's output, this checks: the bytes are untrusted. BUDGET bounds a search.
 *
 * A part that could not be read gives no name if a guess might be wrong.
 *
 * Releases of one version differ: 5.1.0 and 5.1.1 take the words after CLOSURE for instructions, up
 * to 5.2.2 jumps were followed as in 5.1, and up to 5.4.6 any name "_ENV" made a global. The later
 * rules are used: they give fewer names, or correct ones.
 */
#include "proto_priv.h"

#include <string.h>

#define ENV "_ENV" /* llex.h, LUA_ENV */

/*
 * A search for a name. Each copy that it follows is a pass over all variables and all instructions
 * before it: untrusted bytes could have many.
 */
struct puc_name_search {
	const struct puc_proto *p;
	uint32_t budget;
};
#define BUDGET (2u << 20) /* instructions and variables: 8 passes over the longest code */

/* False if the budget is used up: then no result is valid. */
static bool spend(struct puc_name_search *s, uint32_t n)
{
	bool enough = n <= s->budget;

	s->budget = enough ? s->budget - n : 0;
	return enough;
}

/* The source of the value in a register. */
struct origin {
	enum {
		ORIGIN_UNKNOWN, /* or nothing that has a name */
		ORIGIN_NAMED,
		ORIGIN_INS, /* the instruction at pc may give a name */
	} how;
	enum puc_namewhat what; /* ORIGIN_NAMED */
	const char *name;
	uint32_t pc; /* ORIGIN_INS */
};

bool puc_proto_data_words(const struct puc_proto *p, const struct puc_ins *i, uint32_t *n)
{
	*n = 0;
	if (i->op == PUC_BC_SETLIST)
		*n = !i->c;
	if (i->op != PUC_BC_CLOSURE)
		return true;
	if (i->bx >= p->nchildren || p->children[i->bx].nups < 0)
		return false;
	*n = (uint32_t)p->children[i->bx].nups;
	return true;
}

int32_t puc_proto_line(const struct puc_proto *p, uint32_t pc)
{
	if (!p->has_lines)
		return 0;
	return pc < p->nlines ? p->lines[pc] : -1;
}

/* luaF_getlocalname: returns the local variable in a register at pc, or NULL. */
static const struct puc_local *local_at(struct puc_name_search *s, uint32_t pc, uint32_t reg)
{
	const struct puc_proto *p = s->p;
	uint32_t i;

	if (!spend(s, p->nlocals))
		return NULL;
	for (i = 0; i < p->nlocals && p->locals[i].startpc <= pc; i++)
		if (pc < p->locals[i].endpc && reg-- == 0)
			return &p->locals[i];
	return NULL;
}

const char *puc_proto_upvalname(const struct puc_proto *p, uint32_t idx)
{
	if (idx < p->nupvals)
		return p->upvals[idx].name;
	/* 5.1 drops the whole table with the debug information */
	return p->complete ? "?" : NULL;
}

const char *puc_proto_kstr(const struct puc_proto *p, uint32_t idx)
{
	return idx < p->nk ? p->k[idx].str : NULL;
}

uint32_t puc_proto_loadk(const struct puc_proto *p, uint32_t pc, const struct puc_ins *i)
{
	if (i->op == PUC_BC_LOADK)
		return i->bx;
	return puc_proto_has_ins(p, pc + 1) ? puc_bc_ax(p->version, p->code[pc + 1]) : UINT32_MAX;
}

/* Sets a name and returns its kind; none if the name is unknown. */
static enum puc_namewhat named(enum puc_namewhat what, const char *text, const char **name)
{
	if (!text)
		return PUC_NAME_NONE;
	*name = text;
	return what;
}

/* ---- which instruction set a register -------------------------------------------------------- */

static bool changes_51(const struct puc_ins *i, uint32_t reg)
{
	switch (i->op) {
	case PUC_BC_LOADNIL:
		return i->a <= reg && reg <= i->b;
	case PUC_BC_SELF:
		return reg == i->a || reg == i->a + 1;
	case PUC_BC_TFORCALL:
		return reg >= i->a + 2;
	case PUC_BC_CALL:
	case PUC_BC_TAILCALL:
		return reg >= i->a;
	default:
		return i->writes_a && reg == i->a;
	}
}

/* Returns how many words after pc may list a closure's upvalues: lparser.c sets their operand A to
 * 0. */
static uint32_t maybe_data(const struct puc_proto *p, uint32_t pc)
{
	uint32_t n = 0;

	for (;; n++) {
		struct puc_ins i = puc_proto_ins(p, pc + 1 + n);

		if ((i.op != PUC_BC_MOVE && i.op != PUC_BC_GETUPVAL) || i.a)
			return n;
	}
}

/*
 * symbexec() of 5.1: follows forward jumps, so it skips the other branch, and skips data words. If
 * their number is unknown, the words that may be data may also be instructions, which set register
 * 0 only: then its setter is unknown.
 */
static bool find_set_51(const struct puc_proto *p, uint32_t lastpc, uint32_t reg, uint32_t *set)
{
	bool found = false;
	uint32_t pc, words;

	for (pc = 0; pc < lastpc; pc++) {
		struct puc_ins i = puc_proto_ins(p, pc);

		if (changes_51(&i, reg)) {
			*set = pc;
			found = true;
		}
		switch (i.op) {
		case PUC_BC_JMP:
		case PUC_BC_FORPREP:
		case PUC_BC_FORLOOP:
			if (i.sj >= 0 && (uint64_t)pc + 1 + (uint32_t)i.sj <= lastpc)
				pc += (uint32_t)i.sj;
			break;
		default:
			if (!puc_proto_data_words(p, &i, &words)) {
				words = maybe_data(p, pc);
				found &= reg || !words;
			}
			pc += words;
			break;
		}
	}
	return found;
}

static bool changes(const struct puc_ins *i, uint32_t reg)
{
	switch (i->op) {
	case PUC_BC_LOADNIL:
		return i->a <= reg && reg <= i->a + i->b;
	case PUC_BC_TFORCALL:
		return reg >= i->a + 2;
	case PUC_BC_CALL:
	case PUC_BC_TAILCALL:
		return reg >= i->a;
	case PUC_BC_JMP:
		return false;
	case PUC_BC_TEST:
		return reg == i->a;
	default:
		return i->writes_a && reg == i->a;
	}
}

/* findsetreg() of 5.2 on: an instruction that a jump may have skipped gives no result. */
static bool find_set_52(const struct puc_proto *p, uint32_t lastpc, uint32_t reg, uint32_t *set)
{
	uint32_t pc, jmptarget = 0;
	bool found = false;

	if (lastpc && puc_proto_ins(p, lastpc).op == PUC_BC_MMBIN)
		lastpc--; /* the instruction before it was not executed */
	for (pc = 0; pc < lastpc; pc++) {
		struct puc_ins i = puc_proto_ins(p, pc);

		if (i.op == PUC_BC_JMP && i.sj >= 0) {
			uint64_t dest = (uint64_t)pc + 1 + (uint32_t)i.sj;

			if (dest <= lastpc && dest > jmptarget)
				jmptarget = (uint32_t)dest;
		}
		if (changes(&i, reg)) {
			found = pc >= jmptarget;
			*set = pc;
		}
	}
	return found;
}

/* Finds the instruction before lastpc that set a register. All of these are known: code is read
 * from its start. */
static bool find_set(struct puc_name_search *s, uint32_t lastpc, uint32_t reg, uint32_t *set)
{
	if (!spend(s, lastpc))
		return false;
	return s->p->version == 51 ? find_set_51(s->p, lastpc, reg, set)
				   : find_set_52(s->p, lastpc, reg, set);
}

/* ---- names ----------------------------------------------------------------------------------- */

static struct origin name_of(enum puc_namewhat what, const char *name)
{
	if (!name)
		return (struct origin){.how = ORIGIN_UNKNOWN};
	return (struct origin){.how = ORIGIN_NAMED, .what = what, .name = name};
}

/* Returns the name by the instruction that set the register, of an upvalue or a constant. */
static struct origin name_by_load(const struct puc_proto *p, uint32_t pc, const struct puc_ins *i)
{
	switch (i->op) {
	case PUC_BC_GETUPVAL:
		return name_of(PUC_NAME_UPVALUE, puc_proto_upvalname(p, i->b));
	case PUC_BC_LOADK:
	case PUC_BC_LOADKX:
		if (p->version == 51)
			break;
		return name_of(PUC_NAME_CONSTANT, puc_proto_kstr(p, puc_proto_loadk(p, pc, i)));
	case PUC_BC_MOVE:
		break;
	default:
		return (struct origin){.how = ORIGIN_INS, .pc = pc};
	}
	return (struct origin){.how = ORIGIN_UNKNOWN};
}

/*
 * The part of getobjname() for registers: returns a local variable, or follows copies to the
 * instruction that computed the value. Only copies from lower registers count, so this terminates.
 */
static struct origin origin_of(struct puc_name_search *s, uint32_t lastpc, uint32_t reg)
{
	const struct puc_proto *p = s->p;

	for (;;) {
		const struct puc_local *local = local_at(s, lastpc, reg);
		struct puc_ins i;
		uint32_t pc = 0;

		if (local)
			return name_of(PUC_NAME_LOCAL, local->name);
		if (p->locals_cut || !find_set(s, lastpc, reg, &pc))
			return (struct origin){.how = ORIGIN_UNKNOWN};
		i = puc_proto_ins(p, pc);
		if (i.op != PUC_BC_MOVE || i.b >= i.a)
			return name_by_load(p, pc, &i);
		reg = i.b;
		if (p->version != 51) /* 5.1 searches from the call again in each step */
			lastpc = pc;
	}
}

/* kname: returns a constant key; "?" if it is no string. */
static const char *key_const(const struct puc_proto *p, uint32_t idx)
{
	if (idx >= p->nk)
		return NULL;
	return p->k[idx].is_str ? p->k[idx].str : "?";
}

/* rname: returns a key in a register; "?" unless it is a constant string. */
static const char *key_reg(struct puc_name_search *s, uint32_t pc, uint32_t reg)
{
	struct origin o = origin_of(s, pc, reg);

	if (o.how == ORIGIN_UNKNOWN && !s->p->complete)
		return NULL;
	return o.how == ORIGIN_NAMED && o.what == PUC_NAME_CONSTANT ? o.name : "?";
}

/* Returns the key of GETTABLE and SELF, and up to 5.3 of GETTABUP: operand C. */
static const char *key_c(struct puc_name_search *s, uint32_t pc, const struct puc_ins *i)
{
	const struct puc_proto *p = s->p;
	uint32_t k;

	if (p->version < 54) {
		if (puc_bc_isk(i->c, &k))
			return key_const(p, k);
		return p->version == 51 ? "?" : key_reg(s, pc, i->c);
	}
	if (i->op == PUC_BC_GETTABLE || (i->op == PUC_BC_SELF && p->version == 54 && !i->k))
		return key_reg(s, pc, i->c);
	return key_const(p, i->c);
}

/* Returns 1 if the instruction indexes the variable _ENV, 0 if not; -1: unknown. */
static int is_env(struct puc_name_search *s, uint32_t pc, const struct puc_ins *i)
{
	const struct puc_proto *p = s->p;
	const char *name = NULL;

	if (p->version == 51)
		return 0;
	if (i->op == PUC_BC_GETTABUP) {
		name = puc_proto_upvalname(p, i->b);
	} else if (p->version < 54) {
		const struct puc_local *local = local_at(s, pc, i->b);

		if (!local) /* all locals are known: origin_of() checks it */
			return 0;
		name = local->name;
	} else {
		struct origin o = origin_of(s, pc, i->b);

		if (o.how == ORIGIN_UNKNOWN)
			return p->complete ? 0 : -1;
		if (o.how == ORIGIN_INS || o.what == PUC_NAME_CONSTANT)
			return 0;
		name = o.name;
	}
	return name ? !strcmp(name, ENV) : -1;
}

/* Names a value that was read from a table. */
static enum puc_namewhat indexed(struct puc_name_search *s, uint32_t pc, const struct puc_ins *i,
				 const char *key, const char **name)
{
	int env = is_env(s, pc, i);

	if (env < 0)
		return PUC_NAME_NONE;
	return named(env ? PUC_NAME_GLOBAL : PUC_NAME_FIELD, key, name);
}

static enum puc_namewhat find_name(struct puc_name_search *s, uint32_t lastpc, uint32_t reg,
				   const char **name)
{
	struct origin o = origin_of(s, lastpc, reg);
	const struct puc_proto *p = s->p;
	struct puc_ins i;

	if (o.how == ORIGIN_NAMED)
		return named(o.what, o.name, name);
	if (o.how == ORIGIN_UNKNOWN)
		return PUC_NAME_NONE;
	i = puc_proto_ins(p, o.pc);
	switch (i.op) {
	case PUC_BC_GETGLOBAL:
		return named(PUC_NAME_GLOBAL, puc_proto_kstr(p, i.bx), name);
	case PUC_BC_GETTABUP:
	case PUC_BC_GETTABLE:
		return indexed(s, o.pc, &i, key_c(s, o.pc, &i), name);
	case PUC_BC_GETI:
		return named(PUC_NAME_FIELD, "integer index", name);
	case PUC_BC_GETFIELD:
		return indexed(s, o.pc, &i, key_const(p, i.c), name);
	case PUC_BC_SELF:
		return named(PUC_NAME_METHOD, key_c(s, o.pc, &i), name);
	default:
		return PUC_NAME_NONE;
	}
}

static enum puc_namewhat objname(const struct puc_proto *p, uint32_t lastpc, uint32_t reg,
				 const char **name)
{
	struct puc_name_search s = {.p = p, .budget = BUDGET};
	enum puc_namewhat what;
	const char *found;

	what = find_name(&s, lastpc, reg, &found);
	return s.budget && what ? named(what, found, name) : PUC_NAME_NONE;
}

enum puc_namewhat puc_proto_callname(const struct puc_proto *p, uint32_t pc, const char **name)
{
	struct puc_ins i = puc_proto_ins(p, pc);

	switch (i.op) {
	case PUC_BC_CALL:
	case PUC_BC_TAILCALL:
		return objname(p, pc, i.a, name);
	case PUC_BC_TFORCALL:
		if (p->version == 51)
			return objname(p, pc, i.a, name);
		return named(PUC_NAME_FOR_ITERATOR, "for iterator", name);
	case PUC_BC_MMBIN:
		i.mm = puc_bc_event(i.c);
		break;
	default:
		break;
	}
	if (p->order && (!strcmp(i.mm, "__lt") || !strcmp(i.mm, "__le")))
		i.mm = "order";
	return *i.mm ? named(PUC_NAME_METAMETHOD, i.mm, name) : PUC_NAME_NONE;
}

/* Compares pointers: a name is a string of p. */
bool puc_proto_is_parameter(const struct puc_proto *p, const char *name)
{
	uint32_t i;

	for (i = 0; i < p->numparams && i < p->nlocals; i++)
		if (p->locals[i].name == name)
			return true;
	return false;
}

const char *puc_namewhat_str(enum puc_namewhat what)
{
	static const char *const names[] = {
		[PUC_NAME_NONE] = "",
		[PUC_NAME_LOCAL] = "local",
		[PUC_NAME_GLOBAL] = "global",
		[PUC_NAME_METHOD] = "method",
		[PUC_NAME_FIELD] = "field",
		[PUC_NAME_UPVALUE] = "upvalue",
		[PUC_NAME_METAMETHOD] = "metamethod",
		[PUC_NAME_CONSTANT] = "constant",
		[PUC_NAME_FOR_ITERATOR] = "for iterator",
	};

	return names[what];
}
