/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moments in the life of a process that runs PUC Lua: an image, the registers of a sample taken
 * there, and the stack that the sample should show. Run by the unit tests for each layout, in the
 * kernel, and as fuzzing seeds.
 */
#ifndef LIB_PUC_SCENE_H
#define LIB_PUC_SCENE_H

#include <stdbool.h>

#include <unwind/puc/selftest.h>

#include "puc_image.h"
#include "scene.h"

struct puc_walk;

#define PS_HINTS PUC_SELFTEST_CHILDREN

struct puc_scene {
	struct scene; /* what to expect */

	struct puc_image img;
	struct puc_selftest in;

	uint64_t L; /* that should run; 0: not said */
	/* A lua_State that cannot be read is not recognised: another is shown,
	 * of another VM, or whole where this one is broken. */
	bool inner_is_guess;
	bool absent; /* what the scene is about does not exist in this version */

	/* while it is made */
	struct pui_stack st;
	struct pui_fn main; /* the main chunk's function */
	/* what a thread may remember: the scene's own choice is the first */
	uint64_t hints[PS_HINTS];
	uint32_t nhints;
};

struct puc_scene_row {
	const char *name;
	void (*make)(struct puc_scene *s);
};

/* Terminated by a row without a name. */
extern const struct puc_scene_row puc_scenes_frames[];	/* kinds of calls */
extern const struct puc_scene_row puc_scenes_threads[]; /* which lua_State runs, who resumed it */
extern const struct puc_scene_row puc_scenes_top[];	/* pc of the topmost frame, the state */
extern const struct puc_scene_row puc_scenes_own[];	/* what Lua's own C functions prove */
extern const struct puc_scene_row puc_scenes_moved[];	/* a stack is being moved */
extern const struct puc_scene_row puc_scenes_idle[];	/* nothing of it runs, or it is broken */

/* All of them, counted from 0; NULL beyond the last. */
const struct puc_scene_row *puc_scene_at(size_t i);
size_t puc_scene_count(void);

/* For a layout of puc_layout_row(). */
void puc_scene_init(struct puc_scene *s, const struct puc_scene_row *row,
		    const struct puc_layout *puc);
void puc_scene_free(struct puc_scene *s);

/*
 * Makes the thread remember the i-th of the lua_States that it may, and the next as what resumed
 * any of them: whatever these are, the outcome is the same. False when there are fewer.
 */
bool puc_scene_hint(struct puc_scene *s, uint32_t i);

/* Is this walk's outcome the expected one? Else why says how it differs. */
bool puc_scene_check(const struct puc_scene *s, const struct puc_walk *w, char *why, size_t size);

/* ---- for the scenes' makers ------------------------------------------------------------------ */

/* The library's C code, a C function's address, the interpreter's loop, a call in it. */
#define PS_HELPER (PUI_TEXT + 0x20000)
#define PS_CFUNC (PUI_LIBC + 0x1230)
#define PS_CFUNC2 (PUI_LIBC + 0x1970)
#define PS_OWN (PUI_TEXT + 0x3000)    /* of Lua's own libraries, as are the next */
#define PS_RESUME (PUI_TEXT + 0x3200) /* coroutine.resume */
#define PS_WRAP (PUI_TEXT + 0x3400)   /* what coroutine.wrap returns */
#define PS_OWN_SITE (PUI_TEXT + 0x3080)
#define PS_OWN_SIZE 0x1000u
#define PS_API (PUI_TEXT + 0xd000) /* the C API */
#define PS_API_SIZE 0x1000u
#define PS_API_GC (PUI_TEXT + 0xd100)	/* a call of luaC_step in it */
#define PS_API_NEW (PUI_TEXT + 0xd200)	/* and of luaC_newobj, */
#define PS_API_CORE (PUI_TEXT + 0xd300) /* and of another function of the core */
#define PS_CORE (PUI_TEXT + 0xb800)
#define PS_PRECALL_GC (PUI_TEXT + 0x6100) /* luaD_precall of 5.2 calls luaC_step */
#define PS_LIBC (PUI_LIBC + 0x100)
#define PS_IP (PUI_VM + 0x1000)
#define PS_FETCH (PUI_VM + 0x1400) /* the fetch's block, in versions that keep pc in a register */
#define PS_FETCH_SIZE 8
#define PS_JUMP (PUI_VM + 0x1600) /* on the way from a jump to the fetch */
#define PS_JUMP_SIZE 12
#define PS_FETCH_REG PUI_R14 /* has the address of the instruction that comes, there */
#define PS_SITE (PUI_VM + 0x500)
#define PS_SITE_GC (PUI_VM + 0x600) /* a call of luaC_step */
#define PS_IP_GC (PUI_GC + 0x80)
#define PS_GC_SITE (PUI_GC + 0x300)   /* a call in the collector, of one of its functions */
#define PS_GC_CALLEE (PUI_GC + 0x400) /* a call in that, by pointer */
#define PS_GC_PCALL (PUI_GC + 0x500)  /* GCTM calls luaD_pcall, */
#define PS_PCALL (PUI_TEXT + 0x6280)  /* a call in luaD_pcall */
#define PS_NEWOBJ (PUI_GC + 0x1000)   /* luaC_newobj, which lies among the collector's functions */
#define PS_NEWOBJ_SIZE 0x80

/* The host has called the main chunk by lua_pcall, or by lua_call, and it runs. */
void ps_begin(struct puc_scene *s);
void ps_begin_unprotected(struct puc_scene *s);

/* A Lua function at a first line of its own. */
struct pui_fn ps_func(struct puc_scene *s, int linedefined);

/* The current Lua function calls a C function at pos. */
void ps_call_c(struct puc_scene *s, uint32_t pos, uint64_t f);

/* A C function, or the VM's C code, calls a Lua function. */
void ps_call_lua(struct puc_scene *s, struct pui_fn fn);

/*
 * luaV_execute executes instruction pos, and calls C code of the VM, which has `words` of locals.
 */
void ps_helper(struct puc_scene *s, uint32_t pos, uint32_t words);

/* luaV_execute executes instruction pos, and calls the collector, which calls something. */
void ps_collect(struct puc_scene *s, uint32_t pos);

/* The current C function resumes co by lua_resume, which is about to call its function. */
void ps_resume(struct puc_scene *s, uint64_t co);

/* The same; it has called fn, which runs. */
void ps_resume_lua(struct puc_scene *s, uint64_t co, struct pui_fn fn);

/* A hook of the host's begins, which leaves its mark and has no CallInfo. */
void ps_hook(struct puc_scene *s);

/* The sample is taken here. */
void ps_sample(struct puc_scene *s, uint64_t ip);
/* The instruction pointer is in luaV_execute, pc where this version keeps it, and nowhere else. */
void ps_in_vm(struct puc_scene *s, uint32_t pos);
/* luaV_execute has saved pc and called the VM's C code. */
void ps_in_helper(struct puc_scene *s, uint32_t pos);
/* A C function runs. */
void ps_in_c(struct puc_scene *s);

/* Nothing in a register or kept by the innermost functions leads to anything. */
void ps_clobber(struct puc_scene *s);

/* A thread may remember this one. */
void ps_hint(struct puc_scene *s, uint64_t L);
/* It remembers this one, and no other is tried. */
void ps_only_hint(struct puc_scene *s, uint64_t L);

void ps_want_lua(struct puc_scene *s, struct pui_fn fn, uint32_t pos, uint8_t flags);
/* Another VM has called the frame before. */
void ps_want_vm(struct puc_scene *s, uint64_t g);
void ps_want_c(struct puc_scene *s, uint64_t f, uint8_t flags);

#endif
