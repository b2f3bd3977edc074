/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What LuaJIT's compiler made of a live VM's program: its traces, the starts that it gave up, and
 * why. All is read out of the target, which runs on meanwhile: a trace or a start that changes while
 * it is read is read again, and counted if it cannot be read. Nothing of it is shown then.
 *
 * A VM may be read repeatedly. Earlier results stay: a trace that is gone is kept, with `gone` set.
 */
#ifndef TRACES_TRACES_H
#define TRACES_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unwind/lj/layout.h>
#include <unwind/mem.h>

struct lj_proto;

/* A position in a function. */
struct traces_place {
	const struct lj_proto *pt; /* NULL: the function could not be read */
	uint32_t bcpos;
	int32_t line; /* 0: no line information; -1: not known */
};

/* Lines of a function that a trace covers, or that a loop has. */
struct traces_lines {
	const struct lj_proto *pt;
	int32_t from, to;
};

/* A bytecode instruction that a trace was recorded from. */
struct traces_ins {
	const struct lj_proto *pt;
	uint32_t bcpos;
};

/* A snapshot: where a guard that fails leaves the trace. */
struct traces_exit {
	struct traces_place at;
	uint8_t count; /* how often it was taken, until a side trace was tried; TRACES_EXIT_DONE */
};
#define TRACES_EXIT_DONE 255 /* a side trace starts there, or the trace ends there */

/* LJ_TRLINK_* (lj_jit.h) */
enum traces_link {
	TRACES_LINK_NONE,
	TRACES_LINK_ROOT,
	TRACES_LINK_LOOP,
	TRACES_LINK_TAILREC,
	TRACES_LINK_UPREC,
	TRACES_LINK_DOWNREC,
	TRACES_LINK_INTERP,
	TRACES_LINK_RETURN,
	TRACES_LINK_STITCH,
	TRACES_LINKS,
};

struct traces_trace {
	uint32_t no;
	uint32_t root;	 /* 0: it is a root trace */
	uint32_t parent; /* of a side trace, or of one that was stitched; 0: none */
	uint32_t exitno; /* of the parent, at which a side trace starts */
	uint32_t link;	 /* the trace that it goes on in; 0: none */
	enum traces_link linktype;
	bool stitched; /* goes on after a C function that its parent could not compile */
	bool gone;     /* flushed, or freed with its function, since it was read */
	uint32_t ir, constants, snapshots, mcode_size; /* as jit.util.traceinfo() counts */
	uint64_t mcode, startpc;
	struct traces_place start;
	uint32_t startins;	    /* of a root trace: the instruction in whose place it is */
	uint32_t bytecodes;	    /* recorded; 0: not known */
	struct traces_ins *covered; /* each of them once, by function; none: not known */
	size_t ncovered;
	struct traces_lines *lines; /* by function, that of the start first */
	size_t nlines;
	struct traces_exit *exits; /* [snapshots] */
	uint32_t times;		   /* that it was compiled anew after a flush, the first included */
	uint64_t id;		   /* distinguishes it from others that had its number */
	uint64_t samples;
};

enum traces_kind { TRACES_LOOP, TRACES_FUNCTION };
enum traces_state {
	TRACES_PENALISED,   /* tried, and will be tried again */
	TRACES_BLACKLISTED, /* will not be tried again */
	TRACES_JIT_OFF,	    /* jit.off() for this function */
};
#define TRACES_NO_REASON (-1)

/* A loop or function that was hot, and has no trace. */
struct traces_start {
	uint64_t pc;
	struct traces_place at;
	struct traces_lines lines; /* of the loop, or of the function */
	enum traces_kind kind;
	enum traces_state state;
	uint32_t penalty; /* the count from which it starts again; 0: not in the penalty cache */
	int reason;	  /* LJ_TRERR_* (traces_reason()); TRACES_NO_REASON */
	/* Its last abort, if the VM had recorded no other trace when it was read: */
	bool has_cause;
	struct traces_place cause; /* the line that was recorded; pt NULL: of no Lua function */
	char info[64];		   /* what the reason names: "FNEW", "string.gsub"; "": nothing */
	bool gone;		   /* compiled since, or its function was freed */
	uint64_t samples;
};

struct traces_vm {
	/* lists, in the order of their first reading */
	struct traces_trace *traces;
	size_t ntraces;
	struct traces_start *starts;
	size_t nstarts;
	uint32_t unread;	/* traces that could not be read at the last reading */
	uint32_t unread_starts; /* ... and penalised starts, as their function could not be read */
	bool has_penalties;	/* ... the penalty cache was found */
	bool has_heap;		/* all functions were searched for patched loops, at least once */
	uint64_t g;
	struct traces_reader *reader;
};

/*
 * Does not read. mem, and the layout, outlive it. -ENOMEM.
 */
int traces_vm_new(const struct lb_mem *mem, const struct lj_layout *lj, uint64_t g,
		  struct traces_vm **out);
void traces_vm_free(struct traces_vm **vm);

/* Which lists traces_vm_read() reads. */
enum {
	TRACES_TRACES = 1,
	TRACES_STARTS = 2, /* from the penalty cache */
	TRACES_HEAP = 4,   /* and from all functions: takes about a second for a million objects */
	TRACES_CODE = 8, /* the bytecode of all that are listed (listing.h), as it is patched now */
};

/*
 * Reads what the VM has now. Returns 0; -ENOMEM; errors of mem_read() if the VM itself cannot be
 * read: what was read before stays.
 */
int traces_vm_read(struct traces_vm *vm, unsigned int what);

/* "NYI: bytecode FNEW": the reason of a start, with what it names. */
void traces_reason(const struct traces_vm *vm, const struct traces_start *start, char *buf,
		   size_t size);

/* As jit.util.traceinfo().linktype. */
const char *traces_link_name(enum traces_link link);

#endif
