/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Where a VM build keeps what we read. Offsets are in bytes. Names are LuaJIT's own (lj_obj.h,
 * lj_jit.h, lj_dispatch.h, lj_frame.h).
 *
 * What never varied between GC64 builds of LuaJIT 2.1 since 2017 is an enum below; what varies is a
 * field of struct lj_layout, which is measured in the VM's text (user/detect/lj/measure.c) and
 * handed to BPF in a map.
 */
#ifndef LUABPF_UNWIND_LJ_LAYOUT_H
#define LUABPF_UNWIND_LJ_LAYOUT_H

#include <linux/types.h>

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
	/* 1: its intermediate code is user/detect/lj/ir.def's */
	__u8 ir;
	/* states of vmstate that are the interpreter's: INTERP; in Tarantool's, LFUNC and FFUNC, too */
	__u8 interp_states;
	__u8 gc_state; /* global_State.gc.state */
};

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
};

enum {
	LJ_GC_NEXT = 0, /* GCHeader.nextgc */
};

/* global_State.gc (GCState) */
enum {
	/* gc.state, behind allocf, allocd, gc.total, gc.threshold and gc.currentwhite; in builds with
	 * LJ_STR_LEN_2017 strhash, strmask and strnum are before these */
	LJ_G_GC_STATE = 33,
	LJ_G_GC_STATE_2017 = 49,
	LJ_GC_TOTAL_BEFORE_STATE = 17,
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
	LJ_PROTO_TRACE = 62, /* anchor of the function's root trace, u16 */
	LJ_PROTO_CHUNKNAME = 64,
	LJ_PROTO_FIRSTLINE = 72, /* -1: bytecode of a built-in library function */
	LJ_PROTO_NUMLINE = 76,
	LJ_PROTO_LINEINFO =
		80, /* u8, u16 or u32 per instruction after the first: see lj_debug_line */
	LJ_PROTO_UVINFO = 88,
	LJ_PROTO_VARINFO = 96,
	LJ_PROTO_SIZE = 104,
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
};

/* GCtab and Node */
enum {
	LJ_TAB_ARRAY = 16,
	LJ_TAB_METATABLE = 32,
	LJ_TAB_NODE = 40,
	LJ_TAB_ASIZE = 48,
	LJ_TAB_HMASK = 52,
	LJ_TAB_SIZE = 64,
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

/* The VM's frame on the C stack, x86-64 GC64 with external unwinding (lj_frame.h CFRAME_*): PREV,
 * whose offset varies, then r14, r15, rbx, rbp, return address */
enum {
	LJ_CFRAME_NRES = 8,
	LJ_CFRAME_L = 16,
	LJ_CFRAME_PC = 24,
	LJ_CFRAME_PREV = 32,
	LJ_CFRAME_SIZE = 80,
	/* Tarantool's, since 2020-12 */
	LJ_CFRAME_PREV_MOST = 48,
	LJ_CFRAME_SIZE_MOST = 96,
};
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

/* Continuations that are no addresses (lj_frame.h) */
enum {
	LJ_CONT_TAILCALL = 0,
	LJ_CONT_FFI_CALLBACK = 1,
};

#endif
