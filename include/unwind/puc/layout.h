/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The offsets of the struct fields that are read of a 64-bit build of PUC Lua. There is one row per
 * layout (user/detect/puc/layouts.def). The release in the file and the offsets in its code choose
 * the row (user/detect/puc/recognise.c), and each walk proves it: it has to end at base_ci. Offsets
 * are in bytes, names are Lua's own (lstate.h, lobject.h, ldo.c); 0xffff: the version has no such
 * field.
 */
#ifndef LUABPF_UNWIND_PUC_LAYOUT_H
#define LUABPF_UNWIND_PUC_LAYOUT_H

#include <linux/types.h>

#define PUC_NONE 0xffff

struct puc_layout {
	/* 51, 52, 53, 54, 55: opcodes, encodings, rules of names */
	__u8 version;
	__u8 flags; /* PUC_* */

	/* lua_State (lstate.h) */
	__u16 L_status;
	__u16 L_top;
	__u16 L_l_G;
	__u16 L_ci;
	__u16 L_stack;
	__u16 L_stack_last;
	__u16 L_base_ci;  /* 5.1: pointer to an array; later the struct itself */
	__u16 L_errorJmp; /* struct lua_longjmp (ldo.c), its first word is `previous` */
	__u16 L_nCcalls;
	__u16 L_savedpc;   /* 5.1: pc of the running function; later in CallInfo */
	__u16 L_hookmask;  /* 5.1: byte; the release follows from it */
	__u16 L_allowhook; /* 5.1: byte, 0 while a hook or a finalizer runs; 0: see callstatus */
	__u16 L_size;	   /* sizeof(lua_State): greater than all of these */

	/* global_State */
	__u16 g_mainthread; /* pointer; PUC_MAIN_EMBEDDED: the lua_State itself */
	__u16 g_registry;   /* TValue */
	__u16 g_gcstate;    /* byte */

	/* CallInfo */
	__u16 ci_func;
	__u16 ci_previous; /* 5.1: none, it is the array's element before */
	__u16 ci_savedpc;
	__u16 ci_callstatus; /* 5.1: tailcalls, the number of calls lost to tail calls */
	__u16 ci_size;
	__u32 cist_tail;   /* bits of callstatus: called by a tail call (5.1: any bit) */
	__u32 cist_hooked; /* runs a hook, which no instruction has called */
	__u32 cist_fin;	   /* called as a finalizer */
	__u32 cist_lua;	   /* of a Lua function (5.2, 5.3) */
	__u32 cist_c;	   /* of a C function (5.4 on) */
	__u32 cist_mask;   /* callstatus has 1, 2 or 4 bytes: 0xff, 0xffff, 0xffffffff */

	/* Closure: LClosure.p and CClosure.f have the same offset */
	__u16 closure_p;
	__u16 closure_isC; /* 5.1, 5.2.0: byte; the GC header of both has tt_lcl there */

	/* Proto */
	__u16 p_code, p_sizecode;
	__u16 p_lineinfo, p_sizelineinfo;
	__u16 p_abslineinfo, p_sizeabslineinfo; /* 5.4 on */
	__u16 p_source;
	__u16 p_linedefined, p_lastlinedefined;
	__u16 p_k, p_sizek;
	__u16 p_p, p_sizep;
	__u16 p_locvars, p_sizelocvars;
	__u16 p_upvalues, p_sizeupvalues;
	__u16 p_numparams, p_is_vararg; /* 5.5: is_vararg is `flag` */
	__u16 p_size;			/* sizeof(Proto) */
	__u16 upvaldesc_size; /* 5.1: upvalues is TString *[], 8; name is the first word in all */

	/* TString */
	__u16 s_shrlen; /* length of a short string, u8; PUC_NONE: only s_len */
	__u16 s_len;	/* size_t */
	__u16 s_text;	/* 5.5, long strings: pointer to the text */

	/* Table and Node: the loaded libraries are read by user space only */
	__u16 t_array, t_sizearray, t_node, t_lsizenode, t_metatable;
	__u16 node_val, node_key, node_key_tt, node_next, node_size;

	/* type tags as stored, without BIT_ISCOLLECTABLE (0x40) */
	__u8 tt_proto;	/* of the GC header */
	__u8 tt_lcl;	/* Lua closure */
	__u8 tt_ccl;	/* C closure; 5.1: the same, isC differs */
	__u8 tt_lcf;	/* light C function; 0xff: none (5.1) */
	__u8 tt_shrstr; /* short string */
	__u8 tt_lngstr; /* long string; 5.1, 5.2.0: the same */
	__u8 tt_nkeys;	/* 1, 5.4 on: node's key type is one byte; 0: an int */
	__u8 op_return; /* 5.4 on: the first opcode of RETURN, RETURN0, RETURN1 */
};

/* puc_layout.flags */
enum {
	PUC_CI_ARRAY = 1,	/* 5.1: CallInfo is an array */
	PUC_MAIN_EMBEDDED = 2,	/* 5.5: global_State holds the main lua_State */
	PUC_SAVEDPC_EXACT = 4,	/* 5.2, 5.3: each instruction stores savedpc */
	PUC_TABLE_READONLY = 8, /* Redis: Table has a field `readonly` */
	PUC_ORDER = 16,		/* 5.4.0 to 5.4.2: metamethods of comparisons are named "order" */
};

/* the same in all versions */
enum {
	PUC_GC_NEXT = 0,
	PUC_GC_TT = 8,
	PUC_TT_THREAD = 8,
	PUC_TT_MASK = 0x3f,
	PUC_TV_VALUE = 0,
	PUC_TV_TT = 8,
	PUC_TV_SIZE = 16,
	PUC_LONGJMP_PREVIOUS = 0,
};

/* Text of the module: bytes from luaV_execute's start, before it when negative. */
struct puc_stretch {
	__s32 at;
	__u32 size;
};

/*
 * Text and C functions of a build, as offsets from luaV_execute:
 * - api_caller: text of the C API and its callers, which the collector never calls; size 0: no more
 * - no_resume: functions of the libraries that run no lua_State but their caller's, a hash table with
 *   linear probing; 0: empty
 * - resume, wrap: the two that resume a coroutine; 0: unknown
 */
#define PUC_NO_RESUME 256 /* power of two */
#define PUC_NO_RESUME_PROBES 8
#define PUC_API_CALLERS 32
struct puc_stdlib {
	struct puc_stretch api_caller[PUC_API_CALLERS];
	__s32 no_resume[PUC_NO_RESUME];
	__s32 resume; /* coroutine.resume: the coroutine is its first argument */
	__s32 wrap;   /* the function of coroutine.wrap: the coroutine is its first upvalue */
};

static inline __u32 puc_no_resume_index(__s32 function)
{
	return (__u32)function * 0x9e3779b1u >> 24;
}

/* The size of the longest Proto, and the bound of an offset for the verifier. */
#define PUC_PROTO_HEAD 128

/* Text of luaV_execute: bytes, from its start. */
struct puc_text {
	__u32 at, size;
};

#define PUC_FETCHES 8

/* The properties of a build that BPF uses, beside its mapping (struct lb_module). */
struct puc_build {
	struct puc_layout puc;
	/* The general register that holds pc in luaV_execute, by its number in an instruction's
	 * encoding (struct lb_gprs); PUC_NO_REG: not found, any that points into the code counts */
	__u32 pc_reg;
	/* The general register (as pc_reg) by which luaV_execute fetches, and the text where it has
	 * the instruction's address in place of pc_reg: fetch[0] is the fetch up to the step of
	 * pc_reg; there it is the next instruction's. The others lead from a jump to the fetch;
	 * there it may be the jumping instruction's. size 0: no more. */
	__u32 fetch_reg;
	struct puc_text fetch[PUC_FETCHES];
	/* luaC_newobj may be among the collector's functions, but collects nothing: gc_skip_size
	 * bytes of text from gc_lo + gc_skip on (struct lb_module); 0, 0: it is not. */
	__u32 gc_skip, gc_skip_size;
	/* 1: a lua_longjmp holds a jmp_buf that glibc has mangled, distinct from other words.
	 * 0: it may not: a C++ build throws, other C libraries do not mangle. */
	__u32 jmp_marked;
};
#define PUC_NO_REG 0xff

#endif
