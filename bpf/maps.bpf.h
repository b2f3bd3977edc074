/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Every map: who writes, who reads, why this size. Key and value types are in include/unwind/abi.h.
 */
#ifndef LUABPF_MAPS_BPF_H
#define LUABPF_MAPS_BPF_H

#include <unwind/abi.h>
#include <unwind/lj/state.h>
#include <unwind/puc/state.h>

/*
 * Samples, prototypes and task events. User space reads it every 50 to 200 ms, and is woken when a
 * quarter is full: the rest has to hold the records until it runs.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} ring SEC(".maps");

/* When the reader was last woken for a new function, CLOCK_MONOTONIC in ns. BPF alone. */
__u64 ring_woken;

/* Target processes. User space writes; BPF reads, adopts exec_id at a process's first sample, and
 * adds the children that a target forks. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LB_PROCS);
	__type(key, __u32);
	__type(value, struct lb_proc);
} procs SEC(".maps");

/* VM builds, by the index that struct lb_module names. User space writes, BPF reads. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LB_BUILDS);
	__type(key, __u32);
	__type(value, struct lb_build);
} builds SEC(".maps");

/*
 * The VMs of processes that have more than LB_MODULES. Those of a process are in sequence, by id; the
 * order[] of the sequence sorts them by address. User space writes, BPF reads.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LB_MODULES_POOL);
	__type(key, __u32);
	__type(value, struct lb_module);
} modules SEC(".maps");

/*
 * The programs that walk, by enum lb_family: those that were loaded. User space writes, BPF calls. Calls
 * with a constant index are direct jumps, which the kernel patches.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, LB_FAMILIES_MOST);
	__type(key, __u32);
	__type(value, __u32);
} family_programs SEC(".maps");

/* Which VM a file holds. User space writes, BPF reads. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LB_FILES);
	__type(key, struct lb_file_key);
	__type(value, struct lb_file);
} files SEC(".maps");

/*
 * By what a system-wide recording is narrowed, LB_NARROW_*; 0: all processes are wanted. User space
 * sets it before the load, and with it the size of `verdicts`.
 */
const volatile __u32 narrowed_by;

/* Whether processes of this identity are wanted: 1 or 0. User space writes, BPF reads. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct lb_identity);
	__type(value, __u32);
} verdicts SEC(".maps");

/* The last LB_THREAD_VMS VMs that ran on a thread. */
struct lb_vms {
	__u64 exec_id; /* of the thread's process */
	__u64 g[LB_THREAD_VMS];
	__u8 module[LB_THREAD_VMS]; /* its id */
	__u32 next;		    /* index into g[] of the one to replace */
};

/*
 * The VMs of all threads: nothing else may identify a VM whose C function runs deep in the C stack.
 * Written when a VM is new on its thread, read when a thread is new on a CPU or has migrated. BPF
 * alone.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct lb_vms);
} vms SEC(".maps");

/* A CPU's cached state of a thread that it has sampled. */
struct lb_thread {
	struct lb_vms vms;
	__u32 tid;		  /* 0: unowned */
	__u32 functions;	  /* functions_hash() of the last sample that was sent whole */
	__u64 stack_lo, stack_hi; /* the mapping that holds the C stack */
	__u32 migrations;	  /* of the thread, from CPU to CPU */
	__u8 scan_wait;		  /* samples until the stack is searched again for a VM */
	__u8 scan_pause;	  /* last wait; doubles while nothing is found */
	/* the run of events of which one is the sample: events that remain, and how many remain
	 * after the sample */
	__u32 draw_left, draw_at;

	/* of the previous sample; cleared when the thread migrates */
	__u32 traceno; /* the last trace: a collector step called from a trace hides its number */
	__u32 puc_module; /* its id */
	__u64 puc_L;	  /* the lua_State that ran; 0: none */
	__u64 lj_L;	  /* the outermost lua_State on its stack; 0: none */

	/* the zone stack of the VM that ran last: a copy of its entry in `zones` */
	__u64 zone_g;	     /* 0: of none */
	__u32 zones_version; /* when it was copied */
	__u32 zone_depth;    /* zones in the last sample */
	struct lb_zone zone;
} LB_LINE_ALIGNED;

/*
 * A CPU's direct-mapped caches of the processes and threads that it has sampled. Each sample needs
 * both; a lookup here costs no helper call, unlike one in a hash map. No other CPU uses them, so
 * that a collision just evicts.
 */
#define CPU_TARGETS 64	/* power of two */
#define STACK_WORDS 64	/* in a page, as they are aligned; power of two */
#define CPU_THREADS 512 /* power of two */
struct lb_target {
	__u32 pid;     /* 0: unowned */
	__u32 version; /* procs_version when this was copied from procs */
	struct lb_proc proc;
} LB_LINE_ALIGNED;

/* The choice of the VMs that may run, in a process with many: see modules.bpf.h. */
struct lb_choice {
	__u64 stack[STACK_WORDS]; /* a part of the C stack */
	__u64 from, sp;		  /* the C stack is searched from there on; it begins there */
	__u64 lo, size;		  /* from the first module's text to the end of the last one's */
	__u32 first, n;		  /* the process's, in `modules` */
	__u64 word; /* whose module is searched for, from `low` to before `high` by order */
	__u32 low, high;
};

/* A search of a process's mappings for known files: see files.bpf.h. */
#define TREE_NODES 128 /* power of two; each has ten mappings or more */
#define TREE_WORDS 32
struct lb_search {
	__u64 word[TREE_WORDS];			 /* the current node */
	__u64 node[TREE_NODES], max[TREE_NODES]; /* queue of nodes, and their last addresses */
	__u32 n;
	__u32 unknown; /* a file that is not in `files`, or a part of the tree that was not read */
	struct lb_proc proc;
};

/* A process without a VM: see plain.bpf.h. */
#define CPU_PLAIN 256 /* power of two */
struct lb_plain {
	__u64 exec_id;
	__u32 pid; /* 0: unowned */
	__u32 exec_vm;
	__u32 asked;   /* user space was asked to look at it: it may find a VM, and change procs */
	__u32 version; /* procs_version then */
};

struct lb_cpu {
	/* the last one: a process with more VMs than an entry holds, with those of one sample */
	struct lb_target target[CPU_TARGETS + 1];
	struct lb_thread thread[CPU_THREADS];
	/* for the program of a family: index of the process in target[]; and in a process with both, once
	 * luabpf_lj has looked for its VM, the result: enum lb_status, and where its frame is */
	__u32 current, lj_has_begun, lj_status;
	__u64 lj_cframe;
	struct lb_choice choice;
	struct lb_search search;
	struct lb_identity identity; /* of the current process */
	struct lb_plain plain[CPU_PLAIN];
};

/* One for each CPU: the loader sets their number. BPF alone. Mappable as `walks`. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct lb_cpu);
} cpus SEC(".maps");

/* Counts the changes of procs: user space raises it after each. BPF reads. */
__u32 procs_version;

/* The event that a thread's samples come from. BPF alone; after an eviction it is the next one. */
struct lb_root {
	__u64 exec_id;
	__u64 event;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct lb_root);
} roots SEC(".maps");

/* Some thread may have two events: see is_duplicate(). User space sets it, BPF reads. */
__u32 doubled;

/*
 * One of events_per_sample events on a CPU is a sample; user space sets it before the load. A
 * thread's first event comes after a period of its own CPU time: were each event a sample, one in
 * 10 ms, a shorter thread would never show, and all others would lose half a sample each.
 */
const volatile __u32 events_per_sample = 1;

/* The current epoch, never 0: see lb_is_proved(). User space raises it, BPF reads. */
volatile __u32 proof_epoch = 1;

/* When the first sample was sent, CLOCK_MONOTONIC in ns; 0: none was. BPF sets, user space reads:
 * reading the clock in each sample costs too much. */
__u64 first_sample;

/*
 * The current LuaJIT walk, one for each CPU: the loader sets their number. BPF alone. It is too
 * large for the BPF stack, and for a per-CPU map, which has a limit of 32 KiB. A perf_event program
 * does not nest on a CPU. Mappable only to be page-aligned, which keeps the alignment to cache
 * lines.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct lj_walk);
} walks SEC(".maps");

/* The same for PUC Lua. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct puc_walk);
} puc_walks SEC(".maps");

/*
 * The prototype's record that is being made: one for each CPU, as `walks`. Longer ones are cut: user
 * space reads the rest from the live process.
 */
#define LB_PARTS_BYTES (32 << 10) /* power of two; what is beyond is the verifier's bound */
#define LB_PROTO_WORDS 64	  /* power of two */
struct lb_proto_record {
	struct lb_rec_proto rec;
	__u8 parts[LB_PARTS_BYTES + LB_PART_SIZE(LB_PART_MOST)];
	__u64 words[LB_PROTO_WORDS]; /* read of the prototype to make it; not sent */
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct lb_proto_record);
} proto_records SEC(".maps");

/* How samples ended, by enum lb_status. BPF counts, user space reads. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LB_STATUS__MAX);
	__type(key, __u32);
	__type(value, __u64);
} status_counts SEC(".maps");

/*
 * The same for each process, if user space sets by_process before the load: it sets the map's size,
 * too.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct lb_process_end);
	__type(value, __u64);
} process_ends SEC(".maps");
const volatile __u8 by_process;

/* Samples of one stack in two coroutines are two stacks: user space sets it before the load. */
const volatile __u8 by_coroutine;

/*
 * Prototypes that were sent: a direct-mapped cache of fingerprints. An eviction only sends one
 * again. BPF; user space empties the slots of those that it has forgotten.
 */
__u32 proto_sent[LB_PROTO_SLOTS];

/* Zones are recorded: user space sets it before the load, and with it the size of `zones`. */
const volatile __u8 by_zone;

/* Where each VM has its zone stack. User space writes, BPF reads. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct lb_zone_key);
	__type(value, struct lb_zone);
} zones SEC(".maps");

/* Counts the changes of `zones` by user space, which raises it after each. BPF reads. */
__u32 zones_version;

/* By the index of a VM build. User space writes, BPF reads. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LB_BUILDS);
	__type(key, __u32);
	__type(value, struct lb_zone_layout);
} zone_layouts SEC(".maps");

/* Names of zones that were sent, by their hashes: a direct-mapped cache. BPF alone. */
#define ZONES_SENT 1024 /* power of two */
__u64 zone_sent[ZONES_SENT];

/* Slots of stacks: see LB_STACKS. BPF and user space. */
__u64 stack_counts[LB_STACKS];

#endif
