/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds the memory of a process that runs PUC Lua, for any layout, as a sample would find it:
 * global_State, threads with their stacks and CallInfos, functions and prototypes, and a C stack
 * with the frames of luaV_execute, of luaD_rawrunprotected and of C functions. What a walker has
 * no business with is filled with junk.
 *
 *	PUI_HEAP	objects, in order of creation
 *	PUI_CSTACK	the C stack; grows down from its end
 *	PUI_TEXT	the library's text: luaV_execute at PUI_VM, the collector at PUI_GC; of its
 *			bytes only calls
 *
 * The addresses are fixed, so that the image can also be mapped there and walked by the kernel.
 * All state is in one struct. Running out of room aborts: a scene's size is known.
 */
#ifndef LIB_PUC_IMAGE_H
#define LIB_PUC_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unwind/puc/layout.h>
#include <unwind/unwind.h>

#include "base/mem_image.h"

#define PUI_HEAP 0x210000000000ULL
#define PUI_HEAP_SIZE (128u << 10)
#define PUI_CSTACK 0x210010000000ULL
#define PUI_CSTACK_SIZE (20u << 10)
#define PUI_CSTACK_END (PUI_CSTACK + PUI_CSTACK_SIZE)
#define PUI_TEXT 0x210020000000ULL
#define PUI_TEXT_SIZE 0x40000u
#define PUI_VM (PUI_TEXT + 0x10000)
#define PUI_VM_SIZE 0x2000u
#define PUI_TEXT_USED 0x12000u /* up to luaV_execute's end: has bytes */
#define PUI_GC (PUI_TEXT + 0x8000)
#define PUI_GC_SIZE 0x2000u
#define PUI_LIBC 0x210028000000ULL /* text of another library */

#define PUI_OBJECTS 512
#define PUI_G_SIZE 1600 /* no version's global_State is larger */

/* Registers by their number in an instruction's encoding (struct lb_gprs). */
enum {
	PUI_RAX = 0,
	PUI_RBX = 3,
	PUI_RSP = 4,
	PUI_RBP = 5,
	PUI_RDI = 7,
	PUI_R12 = 12,
	PUI_R13 = 13,
	PUI_R14 = 14,
	PUI_R15 = 15,
};
#define PUI_PC_REG PUI_R13 /* where luaV_execute keeps pc, in the versions that do */

struct puc_image {
	struct mem_image mem; /* hand &mem.mem to mem_read() */
	struct puc_layout puc;
	uint8_t *heap, *cstack, *text; /* the bytes, owned by mem */
	size_t used;		       /* of the heap */
	uint64_t g, main_L;
	uint64_t sp;	     /* of the C stack */
	struct lb_gprs gprs; /* of the C code that runs; r[PUI_RSP] is not kept: see sp */
	uint32_t noise;	     /* for bits and bytes that mean nothing */
	struct {
		uint32_t offset, size; /* in the heap */
	} objects[PUI_OBJECTS];
	size_t nobjects;
};

void pui_init(struct puc_image *img, const struct puc_layout *puc);
void pui_free(struct puc_image *img);

/* A second VM in the same image; img->g and main_L become its own. */
void pui_new_vm(struct puc_image *img);

uint64_t pui_alloc(struct puc_image *img, size_t size); /* filled with junk */
void *pui_at(struct puc_image *img, uint64_t addr, size_t size);
void pui_put(struct puc_image *img, uint64_t addr, uint32_t size, uint64_t value);
uint64_t pui_get(struct puc_image *img, uint64_t addr, uint32_t size);

/* ---- objects --------------------------------------------------------------------------------- */

#define PUI_CODE 64 /* instructions of a function */

/* A function as a TValue: collectable, or a C function's address itself. */
struct pui_fn {
	uint64_t value;
	uint8_t tt; /* as stored */
};

uint64_t pui_proto(struct puc_image *img, int linedefined, uint32_t sizecode);
struct pui_fn pui_lua(struct puc_image *img, uint64_t proto);
struct pui_fn pui_cclosure(struct puc_image *img, uint64_t f);
struct pui_fn pui_light(struct puc_image *img, uint64_t f); /* 5.1: has none, a closure */

uint64_t pui_proto_of(struct puc_image *img, struct pui_fn fn);
/* Address of instruction pos. */
uint64_t pui_code(struct puc_image *img, struct pui_fn fn, uint32_t pos);

/* ---- threads --------------------------------------------------------------------------------- */

#define PUI_SLOTS 160
#define PUI_CALLS 24

/* A new lua_State, not started. */
uint64_t pui_thread(struct puc_image *img);

/* A larger stack for L, on which nothing was pushed yet. */
void pui_grow(struct puc_image *img, uint64_t L, uint32_t slots, uint32_t calls);

/* A lua_State that is being filled: its topmost call. */
struct pui_stack {
	uint64_t L;
	uint64_t ci;
	uint64_t func; /* slot */
	struct pui_fn fn;
};

/* The empty stack of L: ci is base_ci. */
struct pui_stack pui_stack(struct puc_image *img, uint64_t L);
uint64_t pui_base_ci(struct puc_image *img, uint64_t L);

/* A call of fn. A Lua function has executed nothing yet. */
void pui_push(struct puc_image *img, struct pui_stack *st, struct pui_fn fn);

/* The current Lua function calls fn by its instruction pos. */
void pui_call(struct puc_image *img, struct pui_stack *st, uint32_t pos, struct pui_fn fn);

/* The current function returns; the caller's savedpc is where it left it. */
void pui_pop(struct puc_image *img, struct pui_stack *st);

/* The current function is a vararg function, which has copied itself above its arguments (5.4). */
void pui_vararg(struct puc_image *img, struct pui_stack *st, uint32_t nargs);

/* Stores the pc of the current Lua function: its instruction pos is being executed. */
void pui_savepc(struct puc_image *img, struct pui_stack *st, uint32_t pos);

/* Bits of the current call's callstatus, by the layout's masks; 5.1: tailcalls. */
void pui_callstatus(struct puc_image *img, struct pui_stack *st, uint32_t bits);

void pui_status(struct puc_image *img, uint64_t L, uint8_t status);

/*
 * luaD_reallocstack moves L's stack: it has corrected `func` of so many CallInfos of those that it
 * has to, from the topmost down. offsets: as 5.4.5 and later do, which have made offsets of those.
 */
void pui_move(struct puc_image *img, uint64_t L, uint32_t corrected, bool offsets);

/* ---- the C stack ----------------------------------------------------------------------------- */

void pui_word(struct puc_image *img, uint64_t word);

/* Frames of C code: words that hold nothing of ours. */
void pui_c_code(struct puc_image *img, uint32_t words);

/*
 * A C function is called, by the instruction before `ret`: it pushes the registers that it has to
 * keep, and has `words` of locals. What it keeps in these registers itself is the caller's to say.
 */
void pui_enter(struct puc_image *img, uint64_t ret, uint32_t words);

/* luaD_rawrunprotected for L: its lua_longjmp becomes L->errorJmp. Returns its address. */
uint64_t pui_protect(struct puc_image *img, uint64_t L);

/* At ret - 5 in luaV_execute stands a call of a function at `to`. */
void pui_call_site(struct puc_image *img, uint64_t ret, uint64_t to);

/* luaV_execute begins for the current call. */
void pui_execute(struct puc_image *img, const struct pui_stack *st);

/* The pc register of luaV_execute, which runs: it is executing instruction pos of fn. */
void pui_pc(struct puc_image *img, struct pui_fn fn, uint32_t pos);

#endif
