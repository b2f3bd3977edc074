/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of struct puc_proto: for lua/puc/proto.c, lua/puc/names.c, lua/puc/defs.c only. */
#ifndef LUA_PUC_PROTO_PRIV_H
#define LUA_PUC_PROTO_PRIV_H

#include "lua/proto_text.h"
#include "lua/family.h"
#include "proto.h"
#include "bc.h"

/* A text that may be unknown because it could not be read (NULL), or known not to be there. */
struct puc_const {
	uint64_t number; /* as the VM stores it; 0: it is none */
	const char *str; /* of a string, when it could be read */
	bool is_str;
};

struct puc_upval {
	const char *name; /* "?" without debug information; NULL: not known */
};

struct puc_local {
	const char *name; /* NULL: not known */
	uint32_t startpc, endpc;
};

struct puc_child {
	uint64_t proto;
	int nups; /* 5.1: so many words after CLOSURE are no instructions; -1: not known */
};

/*
 * Tables have n elements, as many as are known. Where that is less than what the prototype has,
 * complete is false: what is not found in them may be there yet.
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
	int32_t *lines; /* of each instruction; -1: not known */
	uint32_t nlines;
	struct puc_const *k;
	uint32_t nk;
	struct puc_upval *upvals;
	uint32_t nupvals;
	struct puc_local *locals;
	uint32_t nlocals;
	bool locals_cut; /* there are more that are not known */
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

/* PUC_BC_OTHER when it is not known. */
struct puc_ins puc_proto_ins(const struct puc_proto *p, uint32_t pc);

/* 5.1: how many words after this instruction are none, but belong to it: CLOSURE lists the upvalues
 * of the new function, SETLIST a large number. False: that is not known. */
bool puc_proto_data_words(const struct puc_proto *p, const struct puc_ins *i, uint32_t *n);

/* Name of an upvalue, "?" when it has none, NULL when that is not known. */
const char *puc_proto_upvalname(const struct puc_proto *p, uint32_t idx);

/* Text of a string constant; NULL when it is none, or not known. */
const char *puc_proto_kstr(const struct puc_proto *p, uint32_t idx);

/* The constant that LOADK or LOADKX at pc loads. */
uint32_t puc_proto_loadk(const struct puc_proto *p, uint32_t pc, const struct puc_ins *i);

#endif
