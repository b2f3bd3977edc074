/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moments in a LuaJIT process's life: an image, the registers of a sample taken there, and the
 * stack that the sample should show. Run by the unit tests, in the kernel, and as fuzzing seeds.
 */
#ifndef LIB_LJ_SCENE_H
#define LIB_LJ_SCENE_H

#include <stdbool.h>

#include "lj_image.h"
#include "scene.h"

struct lj_scene {
	struct scene; /* what to expect */

	struct lj_image img;
	struct lb_selftest in;

	bool absent; /* there is no such moment in this layout */

	/* A resumer, a VM or a thread inside of cur_L that cannot be read is not recognised. */
	bool resumer_is_guess, vm_is_guess, inner_is_guess;

	/* while it is made */
	struct lji_stack st;
	uint64_t main;	 /* the main chunk's function */
	uint64_t cframe; /* that runs it */
};

struct lj_scene_row {
	const char *name;
	void (*make)(struct lj_scene *s);
};

/* Terminated by a row without a name. */
extern const struct lj_scene_row lj_scenes_frames[]; /* kinds of frames */
extern const struct lj_scene_row lj_scenes_top[];    /* where the topmost frame is found */
extern const struct lj_scene_row lj_scenes_called[]; /* the same, while the VM has called C */
extern const struct lj_scene_row lj_scenes_trace[];  /* compiled code */
extern const struct lj_scene_row lj_scenes_exit[];   /* exits out of it */
extern const struct lj_scene_row lj_scenes_find[];   /* which VM runs on this thread */
extern const struct lj_scene_row lj_scenes_moved[];  /* a Lua stack that grows or overflows */

/* All of them, counted from 0; NULL beyond the last. */
const struct lj_scene_row *lj_scene_at(size_t i);
size_t lj_scene_count(void);

/* For a layout of lj_layout_scene(). */
void lj_scene_init(struct lj_scene *s, const struct lj_scene_row *row, const struct lj_layout *lj);
void lj_scene_free(struct lj_scene *s);

/* Is this walk's outcome the expected one? Else why says how it differs. */
bool lj_scene_check(const struct lj_scene *s, const struct lj_walk *w, char *why, size_t size);

/* ---- for the scenes' makers ------------------------------------------------------------------ */

/* The library's C code, a fast function's number, a C function's address. */
#define SC_HELPER (LJI_TEXT + 0x50000)
#define SC_CFUNC (LJI_LIBC + 0x1230)
#define SC_IP (LJI_VM + 0x1000)
#define SC_IP_LINK (LJI_VM + 0x1100) /* mov [BASE-8], PC: a call stores its link */
#define SC_IP_JUMP (LJI_VM + 0x1200) /* fetches from where a jump leads to */
#define SC_IP_EXIT (LJI_VM + 0x1300) /* fetches where a trace was left */
#define SC_SITE 0x500u		     /* in the VM: a call before which L->base and PC were stored */
#define SC_SITE_RBP 0x600u	     /* one before which BASE went to rbp only */
enum { FF_PCALL = 20, FF_RESUME = 34, FF_FLOOR = 50, FF_CALLBACK = 90 };

/* The host has called the main chunk, which runs. */
void sc_begin(struct lj_scene *s);
/* A Lua function at a first line of its own. */
uint64_t sc_func(struct lj_scene *s, int firstline);
/* main calls f at 5; main's base in s->st, f's is 5 slots above. L->base is stale: an older g's. */
uint64_t sc_begin_call(struct lj_scene *s);
uint64_t sc_pc_of_call(struct lj_scene *s);
/*
 * C code that main has called at 5 through the FFI calls back: the callback's function is on top.
 */
uint64_t sc_begin_callback(struct lj_scene *s);
/* The instruction pointer is in the assembler VM. */
void sc_in_vm(struct lj_scene *s, uint64_t base, uint64_t pc);
/* The VM has called the library's C code, L->base and SAVE_PC stored. */
void sc_in_helper(struct lj_scene *s, uint64_t pc);
/* A C function runs. */
void sc_in_c(struct lj_scene *s);

/* The scene exists only where function and link have a slot each, as in GC64. */
void sc_two_slots(struct lj_scene *s);
/* In the VM: the link of the frame on top is not stored yet; in GC64 its slot holds garbage. */
void sc_unlink(struct lj_scene *s, uint64_t garbage);
/* ... results, which are numbers, are over its function and its link. */
void sc_return_over(struct lj_scene *s);

void want_lua(struct lj_scene *s, uint64_t func, uint32_t pos, uint8_t flags);
void want_main_at_call(struct lj_scene *s);
void want_c(struct lj_scene *s, uint64_t f, uint8_t flags);
/* Another VM has called the frame before. */
void want_vm(struct lj_scene *s, uint64_t g);
void want_ff(struct lj_scene *s, uint8_t ffid, uint8_t flags);

#endif
