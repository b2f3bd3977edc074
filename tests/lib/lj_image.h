/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds the memory of a LuaJIT process, as a sample would find it: GG_State, threads with their
 * Lua stacks, functions, traces, and a C stack with the VM's cframes. Each object lies at a fixed
 * address below, so that the image can also be mapped there and walked by the kernel.
 *
 *	LJI_HEAP	objects, in order of creation, the first being GG_State; in GC32 LJI_HEAP32
 *	LJI_CSTACK	the C stack; grows down from its end
 *	LJI_TEXT	the library's text; only the assembler VM's, at LJI_VM, has bytes
 *	LJI_MCODE	machine code of traces; zeros
 *
 * All state is in one struct. Running out of the heap aborts: a scene's size is known.
 */
#ifndef LIB_LJ_IMAGE_H
#define LIB_LJ_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include <unwind/lj/selftest.h>

#include "base/mem_image.h"

#define LJI_HEAP 0x200000000000ULL
#define LJI_HEAP32 0x20000000ULL /* references have 32 bits */
#define LJI_HEAP_SIZE (256u << 10)
#define LJI_CSTACK 0x200010000000ULL
#define LJI_CSTACK_SIZE (32u << 10)
#define LJI_CSTACK_END (LJI_CSTACK + LJI_CSTACK_SIZE)
#define LJI_TEXT 0x200020000000ULL
#define LJI_TEXT_SIZE 0x80000u
#define LJI_VM (LJI_TEXT + 0x8000)
#define LJI_VM_SIZE 0x4000u
#define LJI_LIBC 0x200028000000ULL /* text of another library */
#define LJI_MCODE 0x200030000000ULL
#define LJI_MCODE_SIZE 0x10000u

#define LJI_OBJECTS 512

struct lj_image {
	struct mem_image mem; /* hand &mem.mem to mem_read() */
	struct lj_layout lj;
	uint8_t *heap, *cstack, *vm, *mcode; /* the bytes, owned by mem */
	uint64_t heap_at;		     /* address of the heap */
	size_t used;			     /* of the heap */
	uint64_t g, main_L;
	uint64_t sp; /* of the C stack */
	uint64_t traces;
	struct {
		uint32_t offset, size; /* in the heap */
	} objects[LJI_OBJECTS];
	size_t nobjects;
};

void lji_init(struct lj_image *img, const struct lj_layout *lj);
void lji_free(struct lj_image *img);

/* A second VM in the same image; img->g and main_L become its own. */
void lji_new_vm(struct lj_image *img);

uint64_t lji_alloc(struct lj_image *img, size_t size);
void *lji_at(struct lj_image *img, uint64_t addr, size_t size);
void lji_put64(struct lj_image *img, uint64_t addr, uint64_t value);
void lji_put32(struct lj_image *img, uint64_t addr, uint32_t value);
void lji_put16(struct lj_image *img, uint64_t addr, uint16_t value);
void lji_put8(struct lj_image *img, uint64_t addr, uint8_t value);
uint64_t lji_get64(struct lj_image *img, uint64_t addr);

/* A reference (GCRef, MRef), of the build's size. */
void lji_put_ref(struct lj_image *img, uint64_t addr, uint64_t ref);
uint64_t lji_get_ref(struct lj_image *img, uint64_t addr);

/* The offset of a field in the image's build. */
#define LJI_OFF(img, name) LJ_OFF(&(img)->lj, name)

/* ---- objects --------------------------------------------------------------------------------- */

#define LJI_TV(type, ptr) ((uint64_t)(int64_t)(type) << 47 | (ptr))

uint64_t lji_str(struct lj_image *img, const char *text);
uint64_t lji_proto(struct lj_image *img, const char *chunk, int firstline, uint32_t sizebc);
uint64_t lji_lua(struct lj_image *img, uint64_t proto);
uint64_t lji_cfunc(struct lj_image *img, uint64_t f);
uint64_t lji_ff(struct lj_image *img, uint8_t ffid);

/* A Lua function of a new prototype in "@test.lua", 64 instructions long. */
uint64_t lji_function(struct lj_image *img, int firstline);
uint64_t lji_proto_of(struct lj_image *img, uint64_t func);

/* Slots of a frame below its base: function and link, in GC32 in one. */
static inline uint32_t lji_frame_slots(const struct lj_image *img)
{
	return LJI_OFF(img, FRAME_BYTES) / 8;
}

/* The function and the link of the frame at base: two slots, in GC32 the halves of one. */
void lji_put_func(struct lj_image *img, uint64_t base, int32_t type, uint64_t ref);
void lji_put_link(struct lj_image *img, uint64_t base, uint64_t link);
uint64_t lji_func_at(struct lj_image *img, uint64_t base);

/* Address of instruction pos; writes op, a there when op is not 0. op: as 2.1 numbers it. */
uint64_t lji_bc(struct lj_image *img, uint64_t func, uint32_t pos);
uint64_t lji_ins(struct lj_image *img, uint64_t func, uint32_t pos, uint8_t op, uint8_t a);

/* ---- threads --------------------------------------------------------------------------------- */

#define LJI_SLOTS 1600

/* A new lua_State with an empty stack of LJI_SLOTS. */
uint64_t lji_thread(struct lj_image *img);

struct lji_stack {
	uint64_t L;
	uint64_t base; /* of the topmost frame that was pushed */
};

/* The empty stack of L: what lji_push puts on it is called from C. */
struct lji_stack lji_stack(struct lj_image *img, uint64_t L);

/*
 * Pushes a frame whose base is `slots` above the current one. Writes the function and the link,
 * (distance | type); LJ_FRAME_LUA takes lji_call instead.
 */
void lji_push(struct lj_image *img, struct lji_stack *s, uint64_t func, uint32_t slots,
	      uint32_t type);

/* Pushes the frame of a function that caller calls by its instruction pos: writes that, with A. */
void lji_call(struct lj_image *img, struct lji_stack *s, uint64_t caller, uint32_t pos, uint8_t a,
	      uint64_t func);

/* Pushes a metamethod's frame; cont is the continuation's address or 1 for an FFI callback. */
void lji_cont(struct lj_image *img, struct lji_stack *s, uint64_t func, uint32_t slots,
	      uint64_t cont, uint64_t contpc);

/* Makes the current frame that of a vararg function that is running: copies it up. */
void lji_vararg(struct lj_image *img, struct lji_stack *s, uint64_t func, uint32_t slots);

/* L->base = the current base. */
void lji_sync(struct lj_image *img, const struct lji_stack *s);

/* ---- the C stack ----------------------------------------------------------------------------- */

/* Frames of C code: words that hold nothing of ours. */
void lji_c_code(struct lj_image *img, uint32_t words);

enum { LJI_RESUME = 1 }; /* flag in L->cframe */

/*
 * The VM's frame for L, which becomes L->cframe; PREV is what L->cframe was, or 0 with LJI_RESUME.
 * Returns its address.
 */
uint64_t lji_cframe(struct lj_image *img, uint64_t L, int32_t nres, uint64_t pc, uint32_t flags);

/* The VM calls C: pushes the return address into its text. */
void lji_vm_calls(struct lj_image *img, uint32_t site);

void lji_set_pc(struct lj_image *img, uint64_t cframe, uint64_t pc);

/* ---- the VM ---------------------------------------------------------------------------------- */

void lji_run(struct lj_image *img, uint64_t L); /* cur_L */
void lji_vmstate(struct lj_image *img, int32_t state);
void lji_jit_base(struct lj_image *img, uint64_t base);

/* ---- traces ---------------------------------------------------------------------------------- */

#define LJI_SNAPS 16

struct lji_trace {
	uint64_t addr, ir, snap, snapmap, mcode;
	uint32_t no, nk, nsnap, nmap;
};

/* Trace no, szmcode bytes at its own place in LJI_MCODE. */
struct lji_trace lji_trace(struct lj_image *img, uint32_t no, uint64_t startpt, uint64_t startpc,
			   uint32_t szmcode, uint16_t spadjust);

/* The trace at addr, 0: none, has number no. */
void lji_number(struct lj_image *img, uint32_t no, uint64_t addr);

/* A 64-bit constant; returns its IR reference. */
uint32_t lji_const(struct lj_image *img, struct lji_trace *t, uint64_t value);

/* The same with a prototype's address. */
uint32_t lji_const_proto(struct lj_image *img, struct lji_trace *t, uint64_t proto);

/* Makes t a side trace of trace no. */
void lji_parent(struct lj_image *img, const struct lji_trace *t, uint16_t no);

struct lji_entry {
	uint8_t slot;
	uint64_t value; /* of the constant */
};

/* Appends a snapshot: slot (baseslot - 2) of its function, n entries by slot, and the pc. */
void lji_snap(struct lj_image *img, struct lji_trace *t, uint16_t mcofs, uint64_t pc, uint8_t slot,
	      const struct lji_entry *entries, uint32_t n);

/* J.parent, J.exitno */
void lji_exit(struct lj_image *img, uint32_t parent, uint32_t exitno);

#endif
