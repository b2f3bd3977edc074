/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prototypes of PUC Lua, built in an arena (arena.h) for the layout that it is of, with all that
 * names and lines are derived from: code, constants, local variables, upvalues, line tables. Their
 * code is written once for all versions.
 */
#ifndef LIB_PUC_CODE_H
#define LIB_PUC_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unwind/puc/layout.h>

#include "arena.h"
#include "detect/puc/recognise.h"

#define LENGTH(x) (sizeof(x) / sizeof(x[0]))

/* Each row of the table of layouts, with its name. */
#define EACH_PUC_LAYOUT(puc, name, i) for (i = 0; ((puc) = puc_layout_row(i, &(name))) != NULL; i++)

/* ---- instructions ---------------------------------------------------------------------------- */

/* One language for all versions: what they say in different ways. K is a constant's index. */
enum puc_code_op {
	I_MOVE,	     /* a b */
	I_CALL,	     /* a */
	I_GLOBAL,    /* a K */
	I_SELF,	     /* a b K */
	I_UPVAL,     /* a up */
	I_FIELD,     /* a b K */
	I_INDEX,     /* a b K: not a string */
	I_LOADK,     /* a K */
	I_ADDING,    /* the instruction that calls __add */
	I_LT,	     /* a: the instruction that calls __lt */
	I_LE,	     /* a */
	I_FORCALL,   /* a */
	I_TEST,	     /* a */
	I_JMP,	     /* how far */
	I_LOADNIL,   /* a last */
	I_CLOSURE,   /* a child */
	I_DATA,	     /* 5.1: an upvalue of the closure, MOVE a b; nothing since */
	I_SETGLOBAL, /* K c */
	I_SETFIELD,  /* a K c */
	I_SETUPVAL,  /* a up */
	I_NEWTABLE,  /* a */
	I_RETURN,
};

struct puc_code_ins {
	enum puc_code_op op;
	int a, b, c;
};

/* The version's own opcode for it, and the words that it encodes; k: 5.4 on. */
int puc_code_op(unsigned version, enum puc_code_op op);
uint32_t puc_code_abc(unsigned version, int op, int a, int b, int c, int k);
uint32_t puc_code_abx(unsigned version, int op, int a, int bx);
uint32_t puc_code_jump(unsigned version, int distance);

/* ---- objects --------------------------------------------------------------------------------- */

#define PUC_SHORT_STRING 40 /* the longest: LUAI_MAXSHORTLEN */
#define PUC_LONG_NAME "a_name_that_is_longer_than_the_forty_bytes_of_a_short_string"

/* A TString: the text itself, or, of 5.5's long ones, a reference to it. */
uint64_t puc_code_lstr(struct test_arena *a, const char *text, uint32_t len, bool is_short);
uint64_t puc_code_str(struct test_arena *a, const char *text);

/* A prototype that has no parts. */
uint64_t puc_code_empty(struct test_arena *a, int linedefined);

struct puc_code_source {
	const struct puc_code_ins *code;
	unsigned ncode;
	const char *const *k; /* 16 at most, up to NULL; "#" is a number */
	struct {
		const char *name;
		uint32_t start, end;
	} locals[8]; /* up to NULL */
	const uint64_t *children;
	unsigned nchildren;
	bool stripped;
};

/*
 * "@/srv/app/main.lua", lines 10 to 2000. Its upvalues are _ENV (5.1: first) and up; its
 * instructions' lines are those of puc_code_line(), two of them in abslineinfo where there is one.
 */
uint64_t puc_code_proto(struct test_arena *a, const struct puc_code_source *s);
int32_t puc_code_line(uint32_t pc);

/* What a Proto's head counts for in its fingerprint. */
uint64_t puc_code_print(const uint8_t *head, const struct puc_layout *puc);

#endif
