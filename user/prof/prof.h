/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile in memory: interned strings, frames, stacks, counts, losses. It knows nothing of BPF,
 * /proc or a VM; session fills it, prof/pprof loads and saves it, out/ renders it.
 *
 * All functions that return int return 0 or -errno and leave their outputs alone on failure.
 */
#ifndef PROF_H
#define PROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct prof;

enum prof_kind {
	PROF_LUA,     /* Lua function */
	PROF_C,	      /* C function registered with the VM */
	PROF_BUILTIN, /* fast function of LuaJIT's libraries */
	PROF_CUT,     /* pseudo frame, root end only: the stack was deeper than was recorded */
	PROF_TAIL,    /* pseudo frame: calls that tail calls replaced */
	PROF_OTHER,   /* pseudo frame: one or more functions, or a stack, beyond the bounds below */
	PROF_VM, /* pseudo frame: a C function of another VM, whose frames follow, called this one */
};

/* Longer strings are cut, as the symbolizers cut those of a live process. */
enum { PROF_MAX_NAME = 1023, PROF_MAX_CHUNK = 8191 };

/*
 * Bounds of all frames, with their strings, and of all rows, in bytes of the file that pprof_write()
 * makes of them. A profile in memory takes about as much. A frame that would exceed its bound
 * becomes PROF_OTHER, a row becomes one of PROF_OTHER without other labels than its state: no sample
 * is lost.
 */
#define PROF_MAX_FRAMES (120UL << 20)
#define PROF_MAX_ROWS (128UL << 20)

#define PROF_NO_ORDER UINT32_MAX /* an order that is not known */

/*
 * One frame as the symbolizer describes it. Strings are borrowed for the call; NULL means "not
 * known". They are foreign bytes: may hold control characters, ';', newlines. In a frame that
 * prof_frame() returns, equal strings are the same pointer.
 */
struct prof_frame {
	enum prof_kind kind;
	const char *
		callname; /* the name jit.p derives from the caller's bytecode; NULL: none can be */
	const char *defname; /* LUA: the name where the function is defined; "": it has none there;
				NULL: not known, as its parent was not on the stack */
	const char *chunk; /* LUA: chunkname as the VM holds it: "@path", "=name" or source text; C:
			      file that holds the function; NULL: not known */
	const char *symbol; /* C: ELF symbol; BUILTIN: "string.rep" */
	/*
	 * LUA: of a function that chunk and line do not identify: in its chunk, "3", "3.1"; where that
	 * is not known, or the chunk, "~" and what it consists of, "~0a1b2c3d", "~0a1b2c3d.2"
	 */
	const char *position;
	uint64_t addr;	   /* C: of the function, in the file, or in the process; BUILTIN: its
				 number (ffid) */
	int32_t firstline; /* LUA: line of definition; -1: a library function in bytecode,
			       [builtin:chunk] */
	int32_t line;	   /* LUA: current line; -1: not known */
	uint32_t
		shape; /* LUA: hash of the prototype's sizes, or contents (position); 0: not known */
	uint32_t
		order; /* LUA: so many like it the VM made before it: of this line, in this chunk, with these
			  contents where they are known; PROF_NO_ORDER */
	uint32_t place;	   /* LUA: the same, whatever their contents */
	uint32_t contents; /* LUA, of a file: hash of bytecode and constants; 0: not known */
};

/*
 * Labels that the samples of one VM in one process share. "": not known; NULL counts as that.
 * Foreign, but readable as a recording sets them: text_put_utf8().
 */
#define PROF_ORIGIN_STRINGS 4
struct prof_origin {
	union {
		struct {
			const char *exe;       /* path of the executable, as the kernel has it */
			const char *cgroup;    /* path */
			const char *container; /* or systemd unit, as `luabpf ps` names it */
			const char *vm;	       /* its release, likewise */
		};
		const char *string[PROF_ORIGIN_STRINGS];
	};
};

/* Each one's name in a saved profile, in the order of string[]. */
extern const char *const prof_origin_labels[PROF_ORIGIN_STRINGS];

/* The cause of a VM state. */
enum prof_cause {
	PROF_CAUSE_NONE, /* not known, or there is none */
	/* N: in the loop of the trace, not in what leads there */
	PROF_IN_LOOP,
	/* J, LuaJIT's vmstate: leaves a trace; records, optimises, assembles one */
	PROF_EXIT,
	PROF_RECORD,
	PROF_OPTIMISE,
	PROF_ASSEMBLE,
	/* G: the collector's gcstate */
	PROF_MARK,
	PROF_SWEEP,
	PROF_FINALISE,
	PROF_CAUSES
};

/*
 * Labels that all samples of one row share. vmstate is jit.p's letter: N I C G J. comm is the task's
 * name; NULL counts as "", and is "" in the rows that prof_row() gives.
 */
struct prof_labels {
	char vmstate;
	uint32_t pid, tid;
	const char *comm;
	uint32_t origin;    /* of prof_origin_id(); 0: nothing is known */
	uint64_t coroutine; /* address of the lua_State, with PROF_MAIN; 0: was not recorded */
	const char *zone;   /* readable, or one of the words below; NULL: was not recorded */
	uint8_t cause;	    /* enum prof_cause */
	uint32_t trace;	    /* LuaJIT: number of the trace that ran, or was left; 0: none */
	bool snapshot_line; /* compiled code: line and inlined functions are those of a guard before */
	uint64_t vm;	    /* address of its global_State; 0: was not recorded; not saved */
};
#define PROF_NO_ZONE "(none)" /* jit.p's word: the zone stack was empty, or there was none */
#define PROF_UNKNOWN_ZONE "(unknown)" /* it was being changed, or was no array of strings */
#define PROF_ZONE_NOT_RECORDED "(zone not recorded)" /* of NULL, in reports */
#define PROF_LINE "line" /* label of a saved profile with the value below, if snapshot_line */
#define PROF_LINE_OF_SNAPSHOT "snapshot"
#define PROF_MAIN UINT64_C(1) /* in an address: the VM's main thread */

/* How the profile was recorded. A number is 0 if it is not known. */
struct prof_meta {
	uint64_t period_ns;   /* CPU time between two samples */
	uint64_t time_ns;     /* wall clock of the start, since the epoch */
	uint64_t duration_ns; /* how long it ran */

	/*
	 * The process's user. In a loaded profile it is only the file's claim: it may
	 * take rights to read files away, never give some.
	 */
	bool has_uid;
	uint32_t uid;
};

int prof_new(struct prof **out);

/* Smaller bounds, for tests; before anything is added. */
void prof_limit(struct prof *prof, size_t frames, size_t rows);
void prof_free(struct prof **prof);

/* Interns a frame; equal frames get equal ids. */
int prof_frame_id(struct prof *prof, const struct prof_frame *frame, uint32_t *id);

/* Interns an origin; 0 if it would exceed the rows' bound, too. */
int prof_origin_id(struct prof *prof, const struct prof_origin *origin, uint32_t *id);

/*
 * The row of a stack, leaf first. n may be 0 (in Lua, but no frame known). Equal stacks with equal
 * labels are one row; rows stay in the order in which they first appeared, and their ids the same.
 */
int prof_row_id(struct prof *prof, const uint32_t *frames, size_t n,
		const struct prof_labels *labels, size_t *id);

/* Adds `count` samples to a row, which counts to INT64_MAX. */
void prof_count(struct prof *prof, size_t id, uint64_t count);
/* Takes samples from one row, at most those that it has, to another. */
void prof_move(struct prof *prof, size_t from, size_t to, uint64_t count);

/* Both. */
int prof_add(struct prof *prof, const uint32_t *frames, size_t n, const struct prof_labels *labels,
	     uint64_t count);

/*
 * Samples that did not become a stack: `reason` is the key of include/unwind/status.def or of user
 * space's own reasons ("no-lua", "ring-full", ...). Adds to what is there.
 */
int prof_lose(struct prof *prof, const char *reason, uint64_t count);

struct prof_meta *prof_meta(struct prof *prof);
const struct prof_meta *prof_meta_of(const struct prof *prof);

/* Views for reporters. Pointers stay valid until the profile is changed or freed. */
struct prof_row {
	const uint32_t *frames; /* leaf first */
	size_t nframes;
	struct prof_labels labels;
	uint64_t count;
};
struct prof_loss {
	const char *reason;
	uint64_t count;
};
/* Not lost, though it is counted with the losses: the thread ran no Lua. */
static inline bool prof_is_outside(const char *reason)
{
	return !strcmp(reason, "outside-lua");
}
uint64_t prof_samples(const struct prof *prof); /* sum of all rows' counts */
uint64_t prof_other(const struct prof *prof);	/* of these, with a PROF_OTHER in their stack */
size_t prof_nrows(const struct prof *prof);
void prof_row(const struct prof *prof, size_t i, struct prof_row *row);
size_t prof_nframes(const struct prof *prof); /* distinct frames: ids are 0 .. n-1 */
const struct prof_frame *prof_frame(const struct prof *prof, uint32_t id);
size_t prof_nstrings(const struct prof *prof);
size_t prof_bytes(const struct prof *prof);    /* of the bounds: what frames and rows take up */
size_t prof_norigins(const struct prof *prof); /* ids are 0 .. n-1 */
const struct prof_origin *prof_origin(const struct prof *prof, uint32_t id);
size_t prof_nlosses(const struct prof *prof);
void prof_loss(const struct prof *prof, size_t i, struct prof_loss *loss);
uint64_t prof_lost(const struct prof *prof, const char *reason); /* 0: none for it */

#endif
