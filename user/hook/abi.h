/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file that the hook module (agent/hook.c) shares with luabpf: one for each global state of a
 * process. The module maps and writes it; luabpf reads it with pread(2), and of the bytes it writes
 * only `tail`. All offsets are constants, so that luabpf trusts none of the file's bytes.
 *
 *      0  struct hook_header       one page
 *   4096  struct hook_func[]       by function ID; 0 stands for the functions that found no room
 *      .  bytes                    of names, sources and dumped functions
 *      .  struct hook_event[]      mode HOOK_TRACE only: a ring
 *
 * The file is sparse; the module reserves pages before it touches them.
 */
#ifndef HOOK_ABI_H
#define HOOK_ABI_H

#include <stdint.h>

#define HOOK_MAGIC 0x316b6f6f6861756cULL /* "luahook1" */

enum hook_mode {
	HOOK_COUNT = 1, /* calls are counted in struct hook_func */
	HOOK_TRACE = 2, /* events go through the ring, too */
};

/* Causes of incomplete counts or events that the module notices. */
enum hook_flag {
	HOOK_PROGRAM_HOOK = 1 << 0, /* debug.sethook was called: what it calls is not seen */
	HOOK_REPLACED = 1 << 1,	    /* C code has put another hook in the place of the module's */
	HOOK_REALLOCATED = 1 << 2,  /* C code has replaced the allocator: IDs may be mixed up */
	HOOK_JIT_HIDES = 1 << 3,    /* this LuaJIT compiles calls in spite of a call hook */
	HOOK_FULL = 1 << 4,	    /* no memory or file space for all functions: see function 0 */
	HOOK_READER_GONE = 1 << 5,  /* the ring was full and luabpf had ended */
	HOOK_LATE = 1 << 6,	    /* the module was loaded by code that ran already */
	HOOK_FORKED = 1 << 8,	  /* of a forked process: frames are of calls that its parent has */
	HOOK_FINALIZERS = 1 << 7, /* code of the program names __gc or ffi.gc: no hook runs there */
};

/*
 * The module recognises LuaJIT by luaJIT_setmode(), which its forks export, too. jit.version differs
 * between them, and the program may set it, even in Lua 5.1.
 */
#define HOOK_VM_LUAJIT 1

struct hook_header {
	uint64_t magic; /* written last */
	uint32_t mode;	/* enum hook_mode */
	uint32_t pid;	/* in its own PID namespace */
	uint32_t state; /* 0, 1, ... of the global states of this process */
	uint32_t flags; /* enum hook_flag */
	uint32_t nfuncs;
	uint32_t nbytes;  /* of names, sources and dumps */
	uint64_t started; /* CLOCK_MONOTONIC, in ns */
	uint64_t waited;  /* ns for which the program stood still because the ring was full */
	uint32_t vm;	  /* LUA_VERSION_NUM; of LuaJIT and its forks HOOK_VM_LUAJIT */
	uint64_t head __attribute__((aligned(64))); /* events written since the start */
	uint64_t tail __attribute__((aligned(64))); /* events read; written by luabpf */
};

enum hook_kind {
	HOOK_OTHERS = 0, /* function 0 */
	HOOK_LUA = 1,
	HOOK_MAIN = 2, /* a chunk */
	HOOK_C = 3,
};

/* A range of the file's bytes. */
struct hook_bytes {
	uint32_t at, len;
};

/*
 * A function: all closures of one definition, or all of one C function. A definition that is loaded
 * twice is one function.
 */
struct hook_func {
	uint64_t calls;
	/* Lua: a hash of the dumped function and of `twin`. C: its address less that of its module, or 0. */
	uint64_t identity;
	uint32_t kind; /* enum hook_kind */
	uint32_t line, last_line;
	uint32_t twin;		  /* hook_twin() */
	struct hook_bytes name;	  /* may come later than the record; none: no call site has one */
	struct hook_bytes source; /* Lua: as lua_Debug has it, with @ or =. C: its module's path */
	struct hook_bytes dump;	  /* HOOK_TRACE, Lua: the function as lua_dump() writes it */
	struct hook_bytes file;	  /* HOOK_TRACE, source is a file: "SIZE MTIME_NS PATH" */
};

/*
 * Functions on one line may have equal code, or code that differs only in the functions that it holds. Their numbers
 * differ. A chunk's is 0. Any other function's follows from the number and the first line of the function that holds
 * it, and from `before`: 0, or one more than its predecessor's there if that ends on its first line. It is 0 where a
 * function shares its first line neither with such a predecessor nor with the beginning of one that holds it.
 */
static inline uint32_t hook_twin(uint32_t outer, uint32_t outer_line, uint32_t line,
				 uint32_t before)
{
	uint64_t n = (uint64_t)outer << 32 | outer_line;

	if (!outer && !before && line != outer_line)
		return 0;
	n = (n ^ before * 0x9e3779b97f4a7c15ULL) * 0xff51afd7ed558ccdULL;
	n = (n ^ n >> 32) * 0xc4ceb9fe1a85ec53ULL;
	return n >> 32 ?: 1;
}

/* A hash of code, and the number. */
static inline uint64_t hook_twin_hash(uint64_t code, uint32_t twin)
{
	return code ^ twin * 0x9e3779b97f4a7c15ULL;
}

enum hook_event_kind {
	HOOK_EV_CALL = 1,      /* func has been called in frame */
	HOOK_EV_TAIL_CALL = 2, /* the same, 5.2 and later: instead of the frame's function */
	HOOK_EV_RETURN = 3,    /* the frame's function returns; LuaJIT: Lua functions only */
	HOOK_EV_TAIL_RETURN =
		4,	   /* 5.1: a function returns that was replaced by a tail call; no frame */
	HOOK_EV_LINE = 5,  /* line of the frame's function begins */
	HOOK_EV_FRAME = 6, /* func ran in frame already when the file began; outermost first */
	HOOK_EV_WAITED =
		7, /* frame is the ns that the program has waited until now: the ring was full,
			     * or a function was described */
};

/*
 * frame names an activation among those of its thread that are alive: of two events of a thread with
 * the same frame between which no call was seen there, both are of one activation. An error unwinds
 * frames without an event: the next event's frame shows which one goes on. 5.1 and LuaJIT: greater
 * is deeper. LuaJIT: a vararg function's lines and return have a greater frame than its call, so that
 * an event's activation is the one with the greatest frame not above it; bits 32 up of a call's frame
 * are its caller's. 5.2 and later: an address.
 */
struct hook_event {
	uint64_t time; /* CLOCK_MONOTONIC, in ns: when the hook began; WAITED: now */
	uint64_t
		thread; /* address of its lua_State; may be used again when the thread is collected */
	uint64_t frame;
	uint32_t func;		/* CALL, TAIL_CALL, FRAME: function ID */
	uint32_t kind_and_line; /* kind << 24 | line */
};

#define HOOK_LINE_MAX 0xffffff

/* The chunk name of the module's own Lua functions. In HOOK_TRACE it calls one when it starts, whose
 * lines do next to nothing: the times between its events are those of the hook. */
#define HOOK_OWN_SOURCE "=luabpf"

#define HOOK_FUNCS_MAX (1U << 17)
#define HOOK_BYTES_MAX (1U << 26)
#define HOOK_EVENTS (1U << 17) /* of the ring */

#define HOOK_FUNCS_AT 4096ULL
#define HOOK_BYTES_AT (HOOK_FUNCS_AT + HOOK_FUNCS_MAX * sizeof(struct hook_func))
#define HOOK_EVENTS_AT (HOOK_BYTES_AT + HOOK_BYTES_MAX)
#define HOOK_COUNT_SIZE HOOK_EVENTS_AT
#define HOOK_TRACE_SIZE (HOOK_EVENTS_AT + HOOK_EVENTS * sizeof(struct hook_event))

_Static_assert(sizeof(struct hook_header) <= HOOK_FUNCS_AT, "a page");
_Static_assert(sizeof(struct hook_func) == 64, "a cache line");
_Static_assert(sizeof(struct hook_event) == 32, "two in a cache line");

/*
 * The environment by which luabpf reaches the module. It has a directory of the user, mode 0700; a
 * state's file is made there as "PID-STATE". While luabpf runs, it holds an exclusive flock(2) on
 * HOOK_ALIVE in it.
 */
#define HOOK_ENV_DIR "LUABPF_HOOK_DIR"
#define HOOK_ENV_MODE "LUABPF_HOOK_MODE" /* "count", "trace" */
#define HOOK_ENV_LIB "LUABPF_HOOK_LIB"	 /* VERSION/luabpf/hook.so lies below it */
#define HOOK_ENV_USER "LUABPF_"		 /* before LUA_INIT...: the user's own value */
#define HOOK_ALIVE "alive"

/*
 * The first state that could not make its file makes a symbolic link of this name there, to the number
 * of the error. The link takes no space, and RLIMIT_FSIZE does not apply.
 */
#define HOOK_FAILED "failed"

#endif
