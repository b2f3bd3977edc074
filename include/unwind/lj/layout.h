/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Where a VM build keeps what we read. Offsets are in bytes. Names are LuaJIT's own (lj_obj.h,
 * lj_jit.h, lj_dispatch.h, lj_frame.h).
 *
 * A number that never varied between GC64 builds of LuaJIT 2.1 since 2017 is an enum LJ_* below. One
 * that never varied between builds without GC64 (GC32, LuaJIT 2.0 among them) is an enum LJ32_*, and
 * LJ_OFF() chooses between the two. A number that varies is a field of struct lj_layout: it is
 * measured in the VM's text (user/detect/lj/measure.c) and passed to BPF in a map.
 */
#ifndef LUABPF_UNWIND_LJ_LAYOUT_H
#define LUABPF_UNWIND_LJ_LAYOUT_H

#include <linux/types.h>
#include <machine/lj_cframe.h>

struct lj_layout {
	/* GG_State (lj_dispatch.h) */
	/* GG_G2DISP: dispatch table - global_State; r14 = g + g2disp in VM and mcode */
	__u16 g2disp;
	__u16 g2trace; /* &J.trace - global_State; freetrace, sizetrace (u32) follow it */
	/* global_State (lj_obj.h) */
	__u16 vmstate;
	__u16 cur_L;
	__u16 jit_base; /* directly behind cur_L; in Tarantool's, one word later */
	__u16 registrytv;
	/* jit_State, counted from &J.trace */
	__u16 j_parent; /* traceno of the last exit */
	__u16 j_exitno; /* its exit (snapshot) number */
	/* the VM's frame on the C stack (lj_frame.h CFRAME_*) */
	__u8 cframe_size;
	__u8 cframe_prev;
	__u8 str_len;  /* GCstr.len: LJ_STR_LEN or LJ_STR_LEN_2017 */
	__u8 bc_funcf; /* lowest bytecode number of function headers (lj_bc.h) */
	__u8 mcofs;    /* 1: snapshots say where their machine code begins */
	__u8 ir; /* numbering of its intermediate code: enum lj_ir_numbers (user/detect/lj/ir.h) */
	/* states of vmstate that are the interpreter's: INTERP; in Tarantool's, LFUNC and FFUNC, too */
	__u8 interp_states;
	__u8 gc32; /* 1: references have 32 bits and a frame takes one slot: LJ32_* */
	/* 1: LuaJIT 2.0, which has jit_L in the place of cur_L: the thread of compiled code, or NULL */
	__u8 v20;
	__u8 gc_total; /* global_State.gc.total, the first field of GCState */
};

/*
 * Is a build GC32? A BPF program is compiled for one kind, so that for it this is a constant; user
 * space and tests know both.
 */
#ifdef LUABPF_GC32
#define lj_is_gc32(lj) 1
#elif defined(__bpf__)
#define lj_is_gc32(lj) 0
#else
#define lj_is_gc32(lj) ((lj)->gc32)
#endif

/* Returns the offset (or another number) of a build. */
#define LJ_OFF(lj, name) ((__u32)(lj_is_gc32(lj) ? LJ32_##name : LJ_##name))

/* Size of a reference (GCRef, MRef). */
#define lj_ref_size(lj) (lj_is_gc32(lj) ? 4u : 8u)

/* LuaJIT 2.0 has four instructions less before these. */
#define LJ_OPS_20 4
#define LJ_FUNCF_20 85

/* Calls by which a Lua function calls: CALLM .. ITERN, of which one stands before each return address
 * (lj_bc.h; the same in all builds of 2.1). */
enum {
	LJ_OP_CALLM = 65,
	LJ_OP_ITERN = 70,
};

/* Function headers, counted from lj_layout.bc_funcf. FUNCCW is next to FUNCC. */
enum {
	LJ_FUNCC = 6,
};

/* Bytecode that branches, but for the JMP that follows a comparison (lj_bc.h; the same in all
 * builds of 2.1). */
enum {
	LJ_OP_COMPARES = 16, /* those below are comparisons */
	LJ_OP_FORI = 77,
	LJ_OP_JITERL = 84, /* the last of the loops' */
	LJ_OP_JMP = 88,
};

/* lua_State */
enum {
	LJ_L_GCT = 9,
	LJ_L_STATUS = 11,
	LJ_L_GLREF = 16,
	LJ_L_BASE = 32,
	LJ_L_TOP = 40,
	LJ_L_MAXSTACK = 48,
	LJ_L_STACK = 56,
	LJ_L_CFRAME = 80,
	LJ_L_READ = 88, /* bytes that cover all of these */
	/* It is 96 to 112 bytes long, by build. Another one before the global_State is at least twice
	 * that away, as the main thread's lies between. */
	LJ_L_SIZE_LEAST = 96,
	LJ_L_SIZE_MOST = 128,

	LJ32_L_GCT = 5,
	LJ32_L_STATUS = 7,
	LJ32_L_GLREF = 8, /* references of 32 bits: this one, maxstack and stack */
	LJ32_L_BASE = 16,
	LJ32_L_TOP = 24,
	LJ32_L_MAXSTACK = 32,
	LJ32_L_STACK = 36,
	LJ32_L_CFRAME = 48,
	LJ32_L_READ = 56,
	LJ32_L_SIZE_LEAST = 64,
	LJ32_L_SIZE_MOST = 96,
};

enum {
	LJ_GC_NEXT = 0, /* GCHeader.nextgc */
};

/* global_State.gc (GCState) */
enum {
	/* gc.state, behind gc.total, gc.threshold and gc.currentwhite */
	LJ_GC_STATE_BEHIND_TOTAL = 17,
	LJ32_GC_STATE_BEHIND_TOTAL = 9,
	LJ_GC_ROOT_BEHIND_TOTAL = 24, /* gc.root: the list of all objects but strings */
	LJ32_GC_ROOT_BEHIND_TOTAL = 16,
};

/* GCobj types as stored in the gct byte: ~LJ_T* */
enum {
	LJ_GCT_STR = 4,
	LJ_GCT_THREAD = 6,
	LJ_GCT_PROTO = 7,
	LJ_GCT_FUNC = 8,
	LJ_GCT_TRACE = 9,
	LJ_GCT_UDATA = 12, /* the last */
};
/* The word that holds the kind of an object, and the type in it. */
#define LJ_KIND_GCT(kind) ((kind) >> 8 & 0xff)

/* GCfunc: GCfuncL and GCfuncC share the head */
enum {
	LJ_FUNC_KIND = 8,
	LJ_FUNC_GCT = 9,
	LJ_FUNC_FFID = 10, /* 0 Lua, 1 C, above: fast function number */
	LJ_FUNC_PC = 32,   /* Lua: first bytecode = GCproto + LJ_PROTO_SIZE */
	LJ_FUNC_F = 40,	   /* C: lua_CFunction */
	LJ_FUNC_READ = 48,
	LJ_FUNC_ENV = 16,

	LJ32_FUNC_KIND = 4,
	LJ32_FUNC_GCT = 5,
	LJ32_FUNC_FFID = 6,
	LJ32_FUNC_PC = 16,
	LJ32_FUNC_F = 24, /* 64 bits */
	LJ32_FUNC_READ = 32,
	LJ32_FUNC_ENV = 8,
};

/* GCfuncL's references to its upvalues (GCupval), GCfuncC's upvalues; GCupval */
enum {
	LJ_FUNC_UVPTR = 40,
	LJ_FUNC_UPVALUE = 48,
	LJ_UPVAL_IMMUTABLE = 11,
	LJ_UPVAL_V = 32,
	LJ_UPVAL_READ = 40,

	LJ32_FUNC_UVPTR = 20,
	LJ32_FUNC_UPVALUE = 32,
	LJ32_UPVAL_IMMUTABLE = 7,
	LJ32_UPVAL_V = 16,
	LJ32_UPVAL_READ = 24,
};

/* GCcdata: a struct follows it; CType, whose name is its last field */
enum {
	LJ_CDATA_TYPE = 10,
	LJ_CDATA_SIZE = 16,
	LJ_CTYPE_NAME = 16,
	LJ_CTYPE_SIZE = 24,

	LJ32_CDATA_TYPE = 6,
	LJ32_CDATA_SIZE = 8,
	LJ32_CTYPE_NAME = 12,
	LJ32_CTYPE_SIZE = 16,
};

/* GCproto, its bytecode follows at LJ_PROTO_SIZE */
enum {
	LJ_PROTO_KIND = 8,
	LJ_PROTO_GCT = 9,
	LJ_PROTO_NUMPARAMS = 10,
	LJ_PROTO_FRAMESIZE = 11,
	LJ_PROTO_SIZEBC = 12,
	LJ_PROTO_K = 32, /* GCRef constants below, lua_Number constants above */
	LJ_PROTO_SIZEKGC = 48,
	LJ_PROTO_SIZEKN = 52,
	LJ_PROTO_SIZEPT = 56, /* bytes of the whole prototype, debug information included */
	LJ_PROTO_SIZEUV = 60,
	LJ_PROTO_FLAGS = 61,
	LJ_PROTO_VARARG = 2, /* bit of the flags: PROTO_VARARG */
	LJ_PROTO_NOJIT = 8,  /* ... PROTO_NOJIT: jit.off() */
	LJ_PROTO_ILOOP = 16, /* ... PROTO_ILOOP: has instructions ILOOP, IFORL, IITERL or IFUNCF */
	LJ_PROTO_TRACE = 62, /* anchor of the function's root trace, u16 */
	LJ_PROTO_CHUNKNAME = 64,
	LJ_PROTO_FIRSTLINE = 72, /* -1: bytecode of a built-in library function */
	LJ_PROTO_NUMLINE = 76,
	LJ_PROTO_LINEINFO =
		80, /* u8, u16 or u32 per instruction after the first: see lj_debug_line */
	LJ_PROTO_UVINFO = 88,
	LJ_PROTO_VARINFO = 96,
	LJ_PROTO_SIZE = 104,

	LJ32_PROTO_KIND = 4,
	LJ32_PROTO_GCT = 5,
	LJ32_PROTO_NUMPARAMS = 6,
	LJ32_PROTO_FRAMESIZE = 7,
	LJ32_PROTO_SIZEBC = 8,
	LJ32_PROTO_K = 16,
	LJ32_PROTO_SIZEKGC = 24,
	LJ32_PROTO_SIZEKN = 28,
	LJ32_PROTO_SIZEPT = 32,
	LJ32_PROTO_SIZEUV = 36,
	LJ32_PROTO_FLAGS = 37,
	LJ32_PROTO_CHUNKNAME = 40,
	LJ32_PROTO_FIRSTLINE = 44,
	LJ32_PROTO_NUMLINE = 48,
	LJ32_PROTO_LINEINFO = 52,
	LJ32_PROTO_UVINFO = 56,
	LJ32_PROTO_VARINFO = 60,
	LJ32_PROTO_SIZE = 64,
};

/* GCstr; the text follows, NUL-terminated. Until 2020-06-23, and in Tarantool's: {hash, len} at 12,
 * which identify a string as well as {sid, hash}. */
enum {
	LJ_STR_KIND = 8,
	LJ_STR_GCT = 9,
	LJ_STR_SID = 12,
	LJ_STR_HASH = 16,
	LJ_STR_LEN_2017 = 16,
	LJ_STR_LEN = 20,
	LJ_STR_SIZE = 24,

	/* the text follows len directly: at 16 or 20 */
	LJ32_STR_KIND = 4,
	LJ32_STR_GCT = 5,
	LJ32_STR_SID = 8,
	LJ32_STR_HASH = 12,
	LJ32_STR_LEN_2017 = 12,
	LJ32_STR_LEN = 16,
	LJ32_STR_SIZE = 20, /* at most */
};
/* Where a string's text begins. */
static inline __u32 lj_str_text(const struct lj_layout *lj)
{
	return lj_is_gc32(lj) ? lj->str_len + 4u : (__u32)LJ_STR_SIZE;
}

/* GCtab and Node */
enum {
	LJ_TAB_GCT = 9,
	LJ_TAB_ARRAY = 16,
	LJ_TAB_METATABLE = 32,
	LJ_TAB_NODE = 40,
	LJ_TAB_ASIZE = 48,
	LJ_TAB_HMASK = 52,
	LJ_TAB_SIZE = 64,

	LJ32_TAB_GCT = 5,
	LJ32_TAB_ARRAY = 8,
	LJ32_TAB_NODE = 20,
	LJ32_TAB_ASIZE = 24,
	LJ32_TAB_HMASK = 28,
	LJ32_TAB_SIZE = 32,

	LJ_NODE_VAL = 0,
	LJ_NODE_KEY = 8,
	LJ_NODE_NEXT = 16,
	LJ_NODE_SIZE = 24,
};

/* TValue in GC64: the type is the top 17 bits, (int32)(tv >> 47) */
#define LJ_TV_TYPE(tv) ((__s32)((__s64)(tv) >> 47))
#define LJ_TV_GCPTR(tv) ((tv) & ((1ULL << 47) - 1))
enum {
	LJ_TNIL = -1,
	LJ_TSTR = -5,
	LJ_TTHREAD = -7,
	LJ_TPROTO = -8,
	LJ_TFUNC = -9,
	LJ_TTAB = -12,
	LJ_TUDATA = -13,
};
/* In GC32 the upper half is the type, or that of a number. */
#define LJ32_TV_TYPE(tv) ((__s32)((__s64)(tv) >> 32))
#define LJ32_TV_GCPTR(tv) ((tv)&0xffffffffu)

/* GCtrace and SnapShot (lj_jit.h), since 2021-03-23 (mcofs). Before: enum lj_snaps. */
enum {
	LJ_TRACE_KIND = 8,
	LJ_TRACE_GCT = 9,
	LJ_TRACE_NSNAP = 10,
	LJ_TRACE_NINS = 12,
	LJ_TRACE_IR = 32,
	LJ_TRACE_NK = 40,
	LJ_TRACE_NSNAPMAP = 44,
	LJ_TRACE_SNAP = 48,
	LJ_TRACE_SNAPMAP = 56,
	LJ_TRACE_STARTPT = 64,
	LJ_TRACE_STARTPC = 72,
	LJ_TRACE_STARTINS = 80,
	LJ_TRACE_SZMCODE = 84,
	LJ_TRACE_MCODE = 88,
	LJ_TRACE_MCLOOP = 96,
	LJ_TRACE_SPADJUST = 102,
	LJ_TRACE_TRACENO = 104,
	LJ_TRACE_LINK = 106,
	LJ_TRACE_ROOT = 108,
	LJ_TRACE_READ = 112,
	LJ_TRACE_NEXTSIDE = 112,
	LJ_TRACE_KIN_READ = 40, /* from startins on */
	LJ_TRACE_LINKTYPE = 116,
	LJ_TRACE_LINKTYPE_2017 = 11,
	LJ_TRACE_NSNAP_2017 = 44,
	LJ_TRACE_SIZE = 120,

	LJ32_TRACE_KIND = 4,
	LJ32_TRACE_GCT = 5,
	LJ32_TRACE_NSNAP = 6,
	LJ32_TRACE_NINS = 8,
	LJ32_TRACE_IR = 16,
	LJ32_TRACE_NK = 24,
	LJ32_TRACE_NSNAPMAP = 28,
	LJ32_TRACE_SNAP = 32,
	LJ32_TRACE_SNAPMAP = 40,
	LJ32_TRACE_STARTPT = 48,
	LJ32_TRACE_STARTPC = 52,
	LJ32_TRACE_STARTINS = 56,
	LJ32_TRACE_SZMCODE = 60,
	LJ32_TRACE_MCODE = 64,
	LJ32_TRACE_MCLOOP = 72,
	LJ32_TRACE_SPADJUST = 78,
	LJ32_TRACE_TRACENO = 80,
	LJ32_TRACE_LINK = 82,
	LJ32_TRACE_ROOT = 84,
	LJ32_TRACE_READ = 88,
	LJ32_TRACE_NEXTSIDE = 88,
	LJ32_TRACE_LINKTYPE = 92,
	LJ32_TRACE_LINKTYPE_2017 = 7,
	LJ32_TRACE_NSNAP_2017 = 28,
	LJ32_TRACE_SIZE = 96,

	LJ_SNAP_MAPOFS = 0,
	LJ_SNAP_REF = 4,
	LJ_SNAP_MCOFS = 6,
	LJ_SNAP_NENT = 10,
	LJ_SNAP_SIZE = 12,
};
/* Snapshots of which shape does a trace have? */
enum lj_snaps {
	LJ_SNAPS_MCOFS,
	LJ_SNAPS_2019, /* since 2019-01-10: no mcofs, so that nslots and what follows are 2 lower */
	LJ_SNAPS_2017, /* mapofs is a u16, what follows is 4 lower; nsnap, nsnapmap are u16 at 44 */
};
#define LJ_SNAP_SIZE_2017 8
#define LJ_SNAP_FRAME 0x010000u /* the slot holds a frame link */
#define LJ_SNAP_CONT 0x020000u	/* ... a continuation, or its pc */
#define LJ_IRT_PROTO 7
#define LJ_REF_BIAS 0x8000u /* IR references below are constants; the last three are primitive */

/* jit_State, counted from J.trace; what is before it is the same in all builds (lj_jit.h) */
enum {
	LJ_J_SIZETRACE = 12,
	LJ_J_SNAPBUF = -32, /* GCtrace cur has this pointer and the next, too, while it records */
	LJ_J_SNAPMAPBUF = -24,
};
/* ... counted from J.cur, at the start of jit_State */
enum {
	LJ_J_PC = 136, /* the instruction that is recorded */
	LJ_J_FN = 144,
	LJ_J_PT = 152, /* NULL: fn is no Lua function */
	LJ_J_READ = 160,

	LJ32_J_PC = 112,
	LJ32_J_FN = 120,
	LJ32_J_PT = 128,
	LJ32_J_READ = 136,
};
/* ... counted from J.parent: errinfo, what the reason of an abort is about */
enum {
	LJ_J_ERRINFO = 72,
	LJ_J_ERRINFO_2020 = 64, /* without exitcode, which came with mcofs */
	LJ_J_ERRINFO_2025 = 88, /* with mcmin, mcmax */
};
/* HotPenalty: the penalty cache ends before penaltyslot (u32) and what is up to J.parent */
enum {
	LJ_PENALTY_PC = 0,
	LJ_PENALTY_VAL = 8,
	LJ_PENALTY_REASON = 10,
	LJ_PENALTY_SIZE = 16,
	LJ_PENALTY_SLOTS = 64,
	LJ_PENALTY_BEFORE_PARENT = 1192,
	LJ_PENALTY_BEFORE_PARENT_2020 = 1200, /* J.prngstate is between; Tarantool's until 2022 */

	LJ32_PENALTY_PC = 0,
	LJ32_PENALTY_VAL = 4,
	LJ32_PENALTY_REASON = 6,
	LJ32_PENALTY_SIZE = 8,
	LJ32_PENALTY_SLOTS = 64,
	LJ32_PENALTY_BEFORE_PARENT = 672,
	LJ32_PENALTY_BEFORE_PARENT_2020 = 680,
};

/* L->cframe: flags in the pointer (lj_frame.h, CFRAME_RAWMASK) */
#define LJ_CFRAME_RAWMASK (~3ULL)

/* Frame links on the Lua stack (lj_frame.h FRAME_*) */
enum {
	LJ_FRAME_LUA = 0,
	LJ_FRAME_C = 1,
	LJ_FRAME_CONT = 2,
	LJ_FRAME_VARG = 3,
	LJ_FRAME_LUAP = 4,
	LJ_FRAME_CP = 5,
	LJ_FRAME_PCALL = 6,
	LJ_FRAME_PCALLH = 7,
};

/* Bytes below base that a frame takes on the Lua stack: function and link. */
enum {
	LJ_FRAME_BYTES = 16,
	LJ32_FRAME_BYTES = 8,
};

/* Continuations that are no addresses (lj_frame.h) */
enum {
	LJ_CONT_TAILCALL = 0,
	LJ_CONT_FFI_CALLBACK = 1,
};

/* Returns the offset of gc.state in global_State. */
static inline __u32 lj_gc_state(const struct lj_layout *lj)
{
	return lj->gc_total + LJ_OFF(lj, GC_STATE_BEHIND_TOTAL);
}

#endif
