/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The ABI between BPF and user space: ring buffer records, map keys and values. Fixed-width
 * integers, explicit padding, sizes asserted. Host byte order; never leaves the machine.
 */
#ifndef LUABPF_UNWIND_ABI_H
#define LUABPF_UNWIND_ABI_H

#ifndef __bpf__
#include <linux/types.h>
#endif
#include <unwind/lj/layout.h>
#include <unwind/puc/layout.h>

#define LB_MAX_FRAMES 127
#define LB_COMM 16

enum lb_status {
#define LB_STATUS(id, class, key, sentence) LB_STATUS_##id,
#include <unwind/status.def>
#undef LB_STATUS
	LB_STATUS__MAX,
};

/* ---- ring buffer records --------------------------------------------------------------------- */

enum lb_rec_type {
	LB_REC_SAMPLE = 1,
	LB_REC_PROTO = 2, /* a prototype's memory; comes before the first sample that has it */
	LB_REC_TASK = 3,  /* a process that user space has to recognise */
	LB_REC_ZONE = 4,  /* a zone's name; comes before the first sample that has it */
};

struct lb_rec_head {
	__u32 type; /* enum lb_rec_type */
	__u32 size; /* of the whole record, head included */
};

enum lb_frame_kind {
	LB_FRAME_LUA =
		1,	 /* ptr: GCproto, Proto; pc: instruction or LB_NO_PC; fp: its fingerprint */
	LB_FRAME_C = 2,	 /* ptr: lua_CFunction */
	LB_FRAME_FF = 3, /* ptr: fast function number (ffid) */
	LB_FRAME_VM =
		4, /* no function: the VM below, of the same build, called the one above from C.
			    ptr: its global_State */
};
enum {
	LB_FRAME_THREAD = 1, /* flag: first (innermost) frame of its lua_State */
	LB_FRAME_TRACE =
		2, /* flag: the frame runs compiled code; it is inlined in it or the trace's own */
	LB_FRAME_TAIL = 4, /* flag: entered by a tail call: the frame below is not its caller */
	LB_FRAME_FIN = 8,  /* flag: a finalizer: no instruction of the frame below called it */
	LB_FRAME_HOOK =
		16, /* flag: C code called it, as a hook: no instruction of the frame below did */
};

#define LB_NO_PC 0xffffffffu

#define LB_FRAME_PTR_MASK ((1ULL << 48) - 1)
#define LB_FRAME_PTR(f) ((f)->word & LB_FRAME_PTR_MASK)
#define LB_FRAME_KIND(f) ((__u8)((f)->word >> 56))
#define LB_FRAME_FLAGS(f) ((__u8)((f)->word >> 48))
#define LB_FRAME_WORD(kind, flags, ptr) (((__u64)(kind) << 56) | ((__u64)(flags) << 48) | (ptr))

struct lb_frame {
	__u64 word; /* kind (8 bits), flags (8), address (48) */
	__u32 pc;
	__u32 fp; /* fingerprint of the prototype at the time of the sample */
};

enum {
	LB_SAMPLE_CUT =
		1, /* the lower end is missing: frames beyond LB_MAX_FRAMES, a resumer, an outer VM */
};

/* Frames, leaf first. One more than the limit, so that an index can be masked. */
struct lb_stack {
	__u32 n;
	__u32 flags; /* LB_SAMPLE_* */
	struct lb_frame frame[LB_MAX_FRAMES + 1];
};

/*
 * The detail of a VM state, 0: none, or not known. N: LB_IN_LOOP. J: the number of LuaJIT's vmstate
 * (lj_obj.h), 4 to 7. G: 1 + the collector's gcstate (lj_obj.h, lgc.h).
 */
#define LB_STATE(letter, detail) ((__u32)(letter) | (__u32)(detail) << 8)
#define LB_STATE_LETTER(state) ((__u8)(state))
#define LB_STATE_DETAIL(state) ((__u8)((state) >> 8))
#define LB_IN_LOOP 1 /* the sample is in the loop of trace `traceno` */

struct lb_rec_sample {
	struct lb_rec_head head;
	__u64 hash; /* of all that follows; identifies the stack */
	/* LuaJIT: offset of pc in the machine code of trace traceno; 0 without one */
	__u32 mcofs;
	__u32 state; /* LB_STATE(): jit.p's letter, N I C G J, and its detail */
	__u64 zone;  /* LB_ZONE(): 0: zones are not recorded */
	__u32 pid;   /* in the root pid namespace */
	__u32 tid;
	__u64 vm;     /* global_State */
	__u64 thread; /* the lua_State that ran, if `by_coroutine` is set; else 0 */
	__u32 epoch;  /* of the process, see struct lb_proc */
	__u32 build;  /* index into `builds` */
	char comm[LB_COMM];
	/* LuaJIT: the trace whose snapshot the topmost frames come from; 0: none */
	__u32 traceno;
	/* its fingerprint, as trace numbers are reused. Not 0 only if ip is in its machine code or in
	 * C code that this called: mcofs is valid then */
	__u32 trace_fp;
	struct lb_stack stack; /* the record ends after stack.n frames */
};
#define LB_SAMPLE_SIZE(n)                                                                          \
	(__builtin_offsetof(struct lb_rec_sample, stack.frame) + sizeof(struct lb_frame) * (n))

/*
 * Most samples are not sent, but counted, in a table of LB_STACKS words that both sides write. A
 * stack is sent whole when it takes its empty slot, and only counted there from then on; a stack
 * whose slot another one has is sent whole each time. User space empties slots; BPF only that of a
 * stack whose sending failed.
 *
 *	63                      12 11            0
 *	| hash without its slot   | count         |     0: the slot is empty
 *
 * A word is changed by compare and swap: no sample is counted for another stack.
 */
#define LB_STACKS 4096 /* power of two */
#define LB_STACK_SLOT(hash) ((hash) & (LB_STACKS - 1))
#define LB_STACK_TAG(word) ((word) & ~(__u64)(LB_STACKS - 1))
#define LB_STACK_COUNT(word) ((word) & (LB_STACKS - 1))

/* Slot of a prototype in BPF's table of those that were sent. */
#define LB_PROTO_SLOTS (1 << 16) /* power of two */
#define LB_PROTO_SLOT(proto, pid)                                                                  \
	(((__u32)((proto) >> 4) * 0x9e3779b1u >> 7 ^ (pid)*0x85ebca6bu) & (LB_PROTO_SLOTS - 1))

/*
 * A sample's zone: what is known of it, and the generation of the struct lb_zone by which it was
 * read. From LB_ZONE_NAMES on a word is a hash of the zone's name, of 56 bits.
 */
enum lb_zone_word {
	LB_ZONE_UNSEEN =
		1, /* `zones` has no valid entry: not searched yet, evicted, or being written */
	LB_ZONE_ABSENT,	   /* it has, and there was none */
	LB_ZONE_EMPTY,	   /* the zone stack is empty */
	LB_ZONE_UNKNOWN,   /* the zone stack could not be read, or its length is not certain */
	LB_ZONE_NO_STRING, /* the innermost zone is no string */
	LB_ZONE_NAMES = 16,
};
#define LB_ZONE(word, generation) ((__u64)(word) << 8 | (__u8)(generation))
#define LB_ZONE_WORD(zone) ((zone) >> 8)
#define LB_ZONE_GENERATION(zone) ((__u8)(zone))

/* A zone's name. The same name has the same hash in all VMs. */
#define LB_ZONE_TEXT 255 /* bytes of a name; longer ones are truncated */
struct lb_rec_zone {
	struct lb_rec_head head;
	__u64 word; /* its hash */
	__u32 len;  /* of the name in the VM */
	__u32 pad;
	char text[LB_ZONE_TEXT + 1]; /* the record ends after the bytes that it has of it */
};
#define LB_ZONE_SIZE(len) (__builtin_offsetof(struct lb_rec_zone, text) + (len))

/* Bytes of the target's memory, [addr, addr + len). They follow, padded to 8 bytes. */
struct lb_part {
	__u64 addr;
	__u32 len;
	__u32 pad;
};
#define LB_PART_MOST 4096 /* bytes of a part; longer arrays are truncated */
#define LB_PART_SIZE(len) (sizeof(struct lb_part) + (((len) + 7) & ~7U))

static inline const struct lb_part *lb_next_part(const struct lb_part *part)
{
	return (const struct lb_part *)((const char *)part + LB_PART_SIZE(part->len));
}

/*
 * The memory of a prototype's names and lines at the time of the sample, so that a process that
 * exits at once keeps its names. User space reads the rest from the live process. Each family
 * chooses the parts (bpf/emit_lj.bpf.h, bpf/emit_puc.bpf.h); user space maps them at their
 * addresses and reads them like any memory.
 */
struct lb_rec_proto {
	struct lb_rec_head head;
	__u64 proto;
	__u32 pid;
	__u32 epoch;
	__u32 fp;
	__u32 build; /* index into `builds` */
		     /* struct lb_part, each with its bytes, to the end of the record */
};

/*
 * The conditions that a process has to meet in a recording of all processes that is narrowed
 * (narrow.bpf.h). Members without a condition are 0.
 */
enum {
	LB_NARROW_EXE = 1,
	LB_NARROW_COMM = 2,
	LB_NARROW_CGROUP = 4,
	LB_NARROW_USER = 8,
};
struct lb_identity {
	__u64 exe_mount, exe_dentry; /* kernel addresses that stand for the executable's path */
	__u64 exe_ino;
	__u64 cgroup; /* id of its cgroup of version 2 */
	__u32 uid;    /* for files */
	__u32 pad;
	char comm[LB_COMM];
};

struct lb_rec_task {
	struct lb_rec_head head;
	__u32 pid;
	__u32 epoch; /* of the entry that BPF found, 0: none */
	__u64 exec_id;
	__u16 sample;	/* 1: a sample was lost by it; 0: an event between two samples */
	__u16 nmodules; /* of that entry, with those replaced, if it is of this image; else 0 */
	__u32 origin;	/* 0; or the parent's pid, when BPF added it to `procs` as a copy of that */
	__u32 known;	/* 0; or its epoch, when BPF added it there by its files */
	__u32 exec_vm;	/* pages of executable mappings then */
	/* narrowed recordings only: the process at the time of the record */
	__u64 start_stack;
	struct lb_identity identity;
};

/* ---- maps ------------------------------------------------------------------------------------ */

#define LB_PROCS 4096	    /* at a time */
#define LB_MODULES 4	    /* of a process in its entry; those of one with more are in `modules` */
#define LB_MODULES_MOST 256 /* of a process */
#define LB_MODULES_POOL 8192 /* in `modules`, of all processes */
#define LB_BUILDS 64

/* Key of the map process_ends: samples of a process by status. */
struct lb_process_end {
	__u32 pid;
	__u32 end; /* enum lb_status */
};
#define LB_VM_TEXT (32 << 10) /* no VM's text is larger */

struct lj_build {
	struct lj_layout lj;
	/* One bit for each offset in the VM's text: set at the return address of a call before
	 * which BASE was saved in rbp only, as L->base was not stored; and at the instructions
	 * around it at which rdx may hold another value. */
	__u8 rbp_site[LB_VM_TEXT / 8];
	/* The same, where a call stores its link. */
	__u8 link_site[LB_VM_TEXT / 8];
	/* The same, where PC may be a jump's target, whose instruction is not fetched yet. */
	__u8 jump_site[LB_VM_TEXT / 8];
	/* Those at which PC is one, as a trace was left: [lo, hi), offsets; 0, 0: not found. */
	__u32 exit_lo, exit_hi;
};

enum lb_family {
	LB_FAMILY_LJ = 1,
	LB_FAMILY_PUC = 2,
	LB_FAMILY_LJ32 = 3, /* LuaJIT without GC64: of the same members as LB_FAMILY_LJ */
};
#define LB_FAMILIES_MOST 4 /* ids are less than this */
#define LB_FAMILY_BIT(name) (1u << LB_FAMILY_##name)
#define LB_FAMILIES (LB_FAMILY_BIT(LJ) | LB_FAMILY_BIT(PUC)) /* the usual ones */
#define LB_FAMILIES_ALL (LB_FAMILIES | LB_FAMILY_BIT(LJ32))

static inline int lb_is_luajit(__u32 family)
{
	return family == LB_FAMILY_LJ || family == LB_FAMILY_LJ32;
}

/* A VM build: index into the map `builds`. */
struct lb_build {
	__u32 family; /* enum lb_family: selects the member */
	__u32 pad;
	union {
		struct lj_build lj;
		struct {
			struct puc_build puc;
			struct puc_stdlib stdlib;
		};
	};
};

/* Where a process has a VM mapped. */
struct lb_module {
	__u64 vm_start; /* text of the assembler VM, or of luaV_execute: [vm_start, vm_end) */
	__u64 vm_end;
	__u64 text_lo; /* text of the whole module */
	__u64 text_hi;
	__u64 gc_lo; /* PUC Lua: text of the collector: [gc_lo, gc_hi); 0, 0: not found */
	__u64 gc_hi;
	__u32 build;
	__u8 family; /* enum lb_family, as in the build */
	__u8 id;     /* its index among the process's: the same while it is mapped */
	__u8 order;  /* in `modules`: the id of the one at this place by address */
	__u8 pad;
};

/* A target process: key pid (tgid) in the map `procs`. User space and BPF write it. */
struct lb_proc {
	/* task's self_exec_id and start time: differs in each image and process. 0: not known until its first event */
	__u64 exec_id;
	__u64 image;	 /* LB_IMAGE() where exec_id is not known; 0: not known either */
	__u32 epoch;	 /* counts the images that this pid had; stamped on every record */
	__u32 nmodules;	 /* up to LB_MODULES_MOST */
	__u32 families;	 /* LB_FAMILY_BIT() of each that a module has */
	__u32 shares;	 /* 1: a fingerprint counts for an epoch (lb_is_proved()) */
	__u16 unsampled; /* 1: it has a VM that is not in module[] */
	__u16 replaced; /* how many VMs it has had that were unloaded, and whose place others have; not more than fit */
	/* mm->exec_vm, the number of pages of executable mappings, when the VMs in them were known: user
	 * space has looked at them, or BPF has found no other. Another number: code was mapped or unmapped */
	__u32 exec_vm;
	/* 0; or, if nmodules exceeds LB_MODULES, one more than the index in `modules` of the first:
	 * module[] is unused then */
	__u32 more;
	__u32 asked_vm; /* such pages when BPF last asked user space to look at them; 0: it answered */
	/* of BPF alone, 0 at first (changed.bpf.h) */
	__u64 searched;	 /* time at which it last looked at the mappings */
	__u32 read_only; /* pages of read-only data mappings at that time, plus 1 */
	__u32 code_pages; /* executable pages that it takes for machine code until it looks again; 0: none */
	struct lb_module module[LB_MODULES];
};

/*
 * Distinguishes one image of a process from another by what /proc/PID/stat shows of it, too: exec draws anew where the
 * stack begins, and where the program is. Without ASLR another program has another end.
 */
#define LB_IMAGE(start_stack, end_code) ((start_stack)*0x9e3779b97f4a7c15ULL ^ (end_code))

/*
 * Epoch of an image with samples: the same whether user space or BPF adds it to `procs`, which may
 * happen at once. User space numbers other images, without the bit.
 */
#define LB_EPOCH_IMAGE 0x80000000u
#define LB_EPOCH(exec_id) ((__u32)((exec_id)*0x9e3779b97f4a7c15ULL >> 32) | LB_EPOCH_IMAGE)

/*
 * A file that user space has examined: key in the map `files`. Device and inode as /proc/PID/maps
 * has them, and the time of its last change: a write makes another key.
 */
struct lb_file_key {
	__u64 dev; /* major << 20 | minor, as the kernel has it */
	__u64 ino;
	__s64 mtime, mtime_ns;
};

/* The VM in it. */
struct lb_file {
	__u64 offset, size;  /* text of the VM in the file */
	__u64 gc_lo, gc_hi;  /* of its collector, from the VM's on; 0, 0: not found */
	__u32 build, family; /* as in struct lb_module; family 0: it has no VM */
};

#define LB_FILES 4096 /* the last ones found in a mapping */

#define LB_VERDICTS 4096 /* identities whose verdict is known */

#define LB_THREAD_VMS 4 /* kept for each thread; power of two */

/*
 * The zone stack of a VM: key and value of the map `zones`. User space writes it, and reads the
 * table again in each round. If its parts have moved, this becomes another generation; the zones of
 * samples of earlier ones are unknown.
 */
#define LB_ZONE_VMS 8192 /* the last ones that were sampled */
struct lb_zone_key {
	__u64 g; /* global_State */
	__u32 pid;
	__u32 epoch; /* of the process */
};
struct lb_zone {
	__u64 table; /* 0: the VM has none */
	__u64 array, node;
	__u32 size; /* of the array part: keys 1 .. size */
	__u32 nodes; /* of the hash part; 0: other keys have all of them, so that a zone would enlarge it */
	__u32 generation;
	__u32 check; /* lb_zone_check(): an update may reuse the map's element while BPF copies it */
};

static inline __u64 lb_zone_mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

static inline __u32 lb_zone_check(const struct lb_zone_key *key, const struct lb_zone *zone)
{
	__u64 hash = lb_zone_mix(key->g, (__u64)key->pid << 32 | key->epoch);

	hash = lb_zone_mix(hash, zone->table);
	hash = lb_zone_mix(hash, zone->array);
	hash = lb_zone_mix(hash, zone->node);
	hash = lb_zone_mix(hash, (__u64)zone->size << 32 | zone->nodes);
	return (__u32)(lb_zone_mix(hash, zone->generation) >> 32);
}

/*
 * Where a VM build keeps tables and strings. An element k of a table's array part has its value at
 * array + value_origin + k * value_stride. Offsets are in bytes.
 */
struct lb_zone_layout {
	__u64 seed;    /* of the names' hashes */
	__u16 gc_type; /* of the object header: the byte with the type ... */
	__u8 gc_mask, gc_str, gc_longstr;
	/* LuaJIT: the type is the word's bits from here on; 0: it is a byte of its own */
	__u8 type_shift;
	__s16 value_origin, value_stride, type_origin, type_stride;
	__u16 node_size, node_value, node_value_type, node_key, node_key_type;
	__u8 key_integer;   /* PUC Lua: type of an integer key; */
	__u8 key_double;    /* keys are doubles */
	__u16 str_shortlen; /* the byte with a short string's length; 0: none */
	__u16 str_len, str_text;
	__u8 str_len32;	   /* str_len has 4 bytes; 0: 8 */
	__u8 longstr_away; /* a long string has a pointer to its text */
};

_Static_assert(sizeof(struct lb_frame) == 16, "ring ABI");
_Static_assert(LB_SAMPLE_SIZE(0) == 96, "ring ABI");
_Static_assert(sizeof(struct lb_rec_proto) == 32 && sizeof(struct lb_part) == 16, "ring ABI");
_Static_assert(sizeof(struct lb_rec_task) == 48 + sizeof(struct lb_identity), "ring ABI");
_Static_assert(LB_ZONE_SIZE(0) == 24, "ring ABI");
_Static_assert(sizeof(struct lb_zone_key) == 16 && sizeof(struct lb_zone) == 40, "map ABI");
_Static_assert(sizeof(struct lb_identity) == 56, "map ABI: a key has no hidden padding");
_Static_assert(sizeof(struct lb_proc) == 64 + LB_MODULES * 56, "map ABI");

#endif
