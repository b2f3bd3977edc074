/* SPDX-License-Identifier: BSD-2-Clause */
/* The fields of struct puc_proto: for those that read its bytecode. Others need proto.h only. */
#ifndef LUA_PUC_PROTO_PRIV_H
#define LUA_PUC_PROTO_PRIV_H

#include "lua/proto_text.h"
#include "lua/family.h"
#include "proto.h"
#include "bc.h"

struct puc_const {
	uint64_t number; /* as the VM stores it; 0: no number */
	const char *str; /* of a string; NULL: it could not be read */
	bool is_str;
};

struct puc_upval {
	const char *name; /* "?" without debug information; NULL: unknown */
};

struct puc_local {
	const char *name; /* NULL: unknown */
	uint32_t startpc, endpc;
};

struct puc_child {
	uint64_t proto;
	int nups; /* 5.1: number of data words after CLOSURE; -1: unknown */
};

/*
 * Each array has the elements that are known. If the prototype has more, complete is false: one
 * that is not found may exist.
 */
struct puc_proto {
	struct proto base;
	uint64_t addr;
	uint32_t fingerprint;
	unsigned version;
	int32_t linedefined, lastlinedefined;
	uint32_t sizecode;
	uint8_t numparams;
	bool complete;
	const char *misfit; /* puc_proto_misfit() */
	bool has_lines;
	bool order; /* PUC_ORDER */

	uint32_t *code;
	uint32_t ncode;
	int32_t *lines; /* of each instruction; -1: unknown */
	uint32_t nlines;
	struct puc_const *k;
	uint32_t nk;
	struct puc_upval *upvals;
	uint32_t nupvals;
	struct puc_local *locals;
	uint32_t nlocals;
	bool locals_cut; /* more exist, which are unknown */
	struct puc_child *children;
	uint32_t nchildren;

	struct proto_texts names;
	char *chunkname;
	size_t chunklen;
};

static inline bool puc_proto_has_ins(const struct puc_proto *p, uint32_t pc)
{
	return pc < p->ncode;
}

/* Returns PUC_BC_OTHER if the instruction is unknown. */
static inline struct puc_ins puc_proto_ins(const struct puc_proto *p, uint32_t pc)
{
	if (!puc_proto_has_ins(p, pc))
		return (struct puc_ins){.op = PUC_BC_OTHER, .mm = ""};
	return puc_bc_decode(p->version, p->code[pc]);
}

/* 5.1: sets the number of data words after this instruction: the upvalues of CLOSURE's function, a
 * large number of SETLIST. False: it is unknown. */
bool puc_proto_data_words(const struct puc_proto *p, const struct puc_ins *i, uint32_t *n);

/* Returns the name of an upvalue; "?": it has none; NULL: unknown. */
const char *puc_proto_upvalname(const struct puc_proto *p, uint32_t idx);

/* Returns the text of a string constant; NULL for other constants and unknown ones. */
const char *puc_proto_kstr(const struct puc_proto *p, uint32_t idx);

/* Returns the index of the constant that LOADK or LOADKX at pc loads. */
uint32_t puc_proto_loadk(const struct puc_proto *p, uint32_t pc, const struct puc_ins *i);

#endif
