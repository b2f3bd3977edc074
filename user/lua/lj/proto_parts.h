/* SPDX-License-Identifier: BSD-2-Clause */
/* The fields of struct lj_proto and its parts: for those that read its bytecode. Others need proto.h only. */
#ifndef LUA_LJ_PROTO_PARTS_H
#define LUA_LJ_PROTO_PARTS_H

#include "lua/family.h"
#include "lua/proto_text.h"

/* A table inside the prototype's allocation. Bytes beyond len are not known (or not there). */
struct lj_part {
	const uint8_t *p;
	uint32_t len;
};

/* A collectable constant that bytecode can name: D operands have 16 bits. */
struct lj_kgc {
	uint64_t ref;
	uint64_t id;	 /* LJ_GCT_STR only: its number and hash, which identify it */
	const char *str; /* LJ_GCT_STR only; NULL: not readable */
	uint32_t len;	 /* of str, which may hold NULs */
	uint8_t gct;	 /* 0: not known */
};

struct lj_proto {
	struct proto base;
	uint64_t addr;
	uint32_t fingerprint;
	struct lj_layout lj;
	uint32_t sizebc;
	uint32_t numline;
	int32_t firstline;
	uint8_t sizeuv, numparams, flags;
	uint8_t framesize;
	bool complete; /* bytes[] holds the whole allocation */
	bool cut;      /* a string constant or the chunk's name is missing, or partial */
	bool has_lines, has_uvinfo;
	uint8_t *bytes; /* the allocation, as far as it was read; parts point into it */
	uint32_t size;
	struct lj_part bc, lineinfo, uvinfo, varinfo;
	struct lj_kgc *kgc; /* [i]: the constant of operand D = i */
	uint32_t nkgc;
	struct proto_texts names; /* of all kgc[].str */
	char *chunkname;
	size_t chunklen;
	uint64_t chunkid; /* as lj_kgc.id */
};

/* Returns an instruction of a build with 2.1's number. */
uint32_t lj_bc_of_21(const struct lj_layout *lj, uint32_t ins);

/* Returns 2.1's number of the lowest function header, FUNCF. */
static inline uint32_t lj_bc_funcf_21(const struct lj_layout *lj)
{
	return lj->bc_funcf + (lj->v20 ? LJ_OPS_20 : 0);
}

/* Returns the instruction at bcpos, with 2.1's number; 0 (ISLT of slot 0) if it is not known. */
uint32_t lj_proto_ins(const struct lj_proto *p, uint32_t bcpos);
static inline bool lj_proto_has_ins(const struct lj_proto *p, uint32_t bcpos)
{
	return bcpos < p->bc.len / 4;
}

/* Returns the text of string constant i; NULL for other constants and unknown ones. */
const char *lj_proto_kstr(const struct lj_proto *p, uint32_t i);

/* Copies the TValue of number constant i. False: not known. */
bool lj_proto_knum(const struct lj_proto *p, uint32_t i, uint64_t *tv);

/* Returns an upvalue's name as lj_debug_uvname(); NULL: not known. */
const char *lj_proto_uvname(const struct lj_proto *p, uint32_t idx);

/* One record of varinfo. */
struct lj_var {
	const char *name;
	uint32_t start, end; /* live in [start, end) */
};
struct lj_varcursor {
	const uint8_t *p, *end;
	uint32_t lastpc;
};
void lj_var_begin(const struct lj_proto *p, struct lj_varcursor *c);
bool lj_var_next(struct lj_varcursor *c, struct lj_var *var);

#endif
