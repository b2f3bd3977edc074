/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The ABI of bpf/count.bpf.c: the probes of a VM's calls, and the map of the functions that were
 * called.
 */
#ifndef LUABPF_UNWIND_CALLS_H
#define LUABPF_UNWIND_CALLS_H

#include <unwind/abi.h>

/* Where a probe is, which says what the registers hold. Its cookie: LB_CALL_COOKIE(). */
enum lb_call_site {
	/* LuaJIT: the jump by which the handler of a function's header leaves for more stack: taken,
	 * the handler runs again. BASE is the frame of the function. */
	LB_CALL_LJ_CHECK = 1,
	/* LuaJIT: in the handler of a fast function, before any jump. */
	LB_CALL_LJ_FAST,
	/* PUC Lua: in luaD_precall or luaD_pretailcall, before any jump. The first argument is the
	 * lua_State, the second or the third is the function's stack slot. */
	LB_CALL_PUC_ENTRY,
	/* PUC Lua: where luaT_gettmbyobj has returned the value of a metamethod "__call". */
	LB_CALL_PUC_META,
	/* The same in 5.4.0 to 5.4.3, where luaV_execute replaces the value of a tail call by its metamethod
	 * itself, and calls luaD_precall or luaD_pretailcall then: only for a call that has met LB_CALL_PUC_ENTRY. */
	LB_CALL_PUC_META_WITHIN,
};
#define LB_CALL_COOKIE(site, build) ((__u64)(site) << 32 | (build))
#define LB_CALL_SITE(cookie) ((__u32)((cookie) >> 32))
#define LB_CALL_BUILD(cookie) ((__u32)(cookie))

/*
 * A function: key of the map `calls`. Two prototypes that had one address, one after the other, have
 * different fingerprints.
 */
struct lb_call_key {
	__u64 word; /* as struct lb_frame has it, without flags */
	__u64 vm;   /* global_State; 0: not known */
	__u32 fp;
	__u32 build; /* index into `builds` */
};

struct lb_calls {
	__u64 count;
	__u32 sent; /* 1: user space has its record, a stack with this function on top */
	__u32 pad;
};

#define LB_CALL_KEYS 16384 /* functions that are counted */
#define LB_CALL_SPARE 3	   /* walks in addition to one for each CPU */

/* Calls that were not counted by function. */
enum lb_call_miss {
	LB_CALL_FULL,	     /* the map has LB_CALL_KEYS others */
	LB_CALL_UNREADABLE,  /* the function could not be read */
	LB_CALL_BUSY,	     /* all walks were in use: a program was preempted in each */
	LB_CALL_OTHER_IMAGE, /* the process has called exec */
	LB_CALL_MISSES,
};

/* Identifies a record: not 0 in its slot's bits only. */
static inline __u64 lb_call_hash(const struct lb_call_key *key)
{
	return lb_zone_mix(lb_zone_mix(key->word ^ key->vm << 1, key->fp), key->build + 1ULL);
}

_Static_assert(sizeof(struct lb_call_key) == 24, "map ABI: a key has no hidden padding");
_Static_assert(sizeof(struct lb_calls) == 16, "map ABI");

#endif
