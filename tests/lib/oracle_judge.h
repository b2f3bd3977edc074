/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Was the walker right? Compares what it said of an interrupted instruction with what the process
 * itself knows, once the workload is over: the handler of tests/hosts/puc/oracle.c only takes
 * notes. A sample that was judged wrong is shown when asked for.
 */
#ifndef LIB_ORACLE_JUDGE_H
#define LIB_ORACLE_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include <unwind/abi.h>
#include <unwind/puc/layout.h>
#include <unwind/mem.h>

#define ORACLE_TOP 3 /* frames kept of each sample */

/* Which lua_State runs, by: */
enum oracle_rule {
	RULE_WALK,   /* puc_walk_begin() */
	RULE_JMP,    /* smallest errorJmp above sp of all lua_States that the C stack shows */
	RULE_CCALLS, /* largest nCcalls of these */
	RULE_FIRST,  /* the first of these */
	RULES,
};

struct oracle_sample {
	struct lb_frame top[ORACLE_TOP];
	uint64_t line; /* T[1]; 0: not said */
	uint64_t func; /* T[2]; 0: not said */
	uint64_t ip;
	uint32_t n, end;
	uint32_t right; /* bit for each rule */
	uint32_t stacks, expected;
	bool ran, edge, in_vm;
	char state;
	bool gc;
};

struct oracle_result {
	uint64_t samples, edges, lua, found, phantom;
	uint64_t right[RULES];
	uint64_t ends[LB_STATUS__MAX];
	uint64_t chains, chains_right;
	uint64_t lines[2], lines_right[2]; /* [1]: ip in luaV_execute */
	uint64_t funcs, funcs_right;
	uint64_t states[3]; /* I C G */
	uint64_t states_right;
};

#define ORACLE_PROTOS 64

struct oracle_judge {
	const struct lb_mem *mem;
	const struct puc_layout *puc;
	uint64_t bias;	    /* of the library: ip is shown without it */
	uint32_t last_line; /* of the lines to judge in a chunk "=lines" */
	bool verbose;
	struct puc_proto *protos[ORACLE_PROTOS]; /* those read so far */
};

void oracle_judge(struct oracle_judge *j, const char *workload, const struct oracle_sample *s,
		  struct oracle_result *r);

/* Prototypes may be collected, and others lie there: to be called before other code runs. */
void oracle_forget(struct oracle_judge *j);

void oracle_add(struct oracle_result *to, const struct oracle_result *from);

/* Prints a line of key=value. */
void oracle_tell(const char *workload, const struct oracle_result *r);

#endif
