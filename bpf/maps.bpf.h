/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Every map: who writes, who reads, why this size. Key and value types are in include/unwind/abi.h.
 */
#ifndef LUABPF_MAPS_BPF_H
#define LUABPF_MAPS_BPF_H

#include <unwind/abi.h>
#include <unwind/lj/state.h>
#include <unwind/puc/unwind.h>

/*
 * Samples, prototypes and task events, to user space, which reads now and then (50 to 200 ms), and
 * is woken at a quarter: the rest has to hold what comes until it does.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} ring SEC(".maps");

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

/* What files hold. User space writes, BPF reads. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LB_FILES);
	__type(key, struct lb_file_key);
	__type(value, struct lb_file);
} files SEC(".maps");

/* The VMs that ran on a thread, as long as there is no more than one for each place. */
struct lb_vms {
	__u64 exec_id; /* whose thread it is */
	__u64 g[LB_THREAD_VMS];
	__u8 module[LB_THREAD_VMS];
	__u32 next; /* place of g[] to replace */
};

/*
 * Ditto, of all threads: nothing else may tell of a VM whose C function runs deep in the C stack.
 * Written when a VM is new on its thread, read when a CPU has not seen the thread, or when it was
 * on another since. BPF alone.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct lb_vms);
} vms SEC(".maps");

/* What a CPU remembers of a thread that it has sampled. */
struct lb_thread {
	struct lb_vms vms;
	__u32 tid;		  /* 0: it is nobody's */
	__u32 functions;	  /* which ones the last sample that was sent as a whole showed */
	__u64 stack_lo, stack_hi; /* the mapping that holds the C stack */
	__u32 migrations;	  /* of the thread, from CPU to CPU */
	__u8 scan_wait;		  /* samples until the stack is searched again for a VM */
	__u8 scan_pause;	  /* the wait doubles while nothing is found */

	/* of the sample before, where the thread has not moved since */
	__u32 traceno; /* seen last: a collector step called from a trace hides its number */
	__u32 puc_module;
	__u64 puc_L; /* the lua_State that ran; 0: none */
	__u64 lj_L;  /* the outermost lua_State on its stack; 0: none */
} LB_LINE_ALIGNED;

/*
 * What a CPU has in hand: of processes and threads that it has sampled. Each sample asks for both,
 * and this is found without a call, which a lookup in a hash table is not. No other CPU uses it, so
 * that one whose number has the same place just takes that.
 */
#define CPU_TARGETS 16	/* power of two */
#define CPU_THREADS 512 /* ditto */
struct lb_target {
	__u32 pid;     /* 0: it is nobody's */
	__u32 version; /* procs_version when this was taken out of procs */
	struct lb_proc proc;
} LB_LINE_ALIGNED;

/* A search of a process's mappings for known files: see files.bpf.h. */
#define TREE_NODES 128 /* power of two; each has ten mappings or more */
#define TREE_WORDS 32
struct lb_search {
	__u64 word[TREE_WORDS];			 /* the node in hand */
	__u64 node[TREE_NODES], max[TREE_NODES]; /* those to look at, in the order of addresses */
	__u32 n;
	__u32 unknown; /* a file that is not in `files`, or a part of the tree that was not read */
	struct lb_proc proc;
};

struct lb_cpu {
	struct lb_target target[CPU_TARGETS];
	struct lb_thread thread[CPU_THREADS];
	/* the run of events of which one is the sample: how many are left, and how many when it
	 * comes */
	__u32 draw_left, draw_at;
	struct lb_search search;
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

/* The event that a thread's samples come from. BPF alone; of a lost entry it is the next one's. */
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
 * Of so many events on a CPU one is a sample; user space sets it before the program is loaded. A
 * thread's first event comes after a period of its own CPU time: were each a sample, one in 10 ms,
 * none that runs for less would ever show, and all others would have half a sample too few.
 */
const volatile __u32 events_per_sample = 1;

/* The epoch that runs, never 0: see lb_is_proved(). User space raises it, BPF reads. */
volatile __u32 proof_epoch = 1;

/* When the first sample was sent, CLOCK_MONOTONIC in ns; 0: none was. BPF sets, user space reads:
 * a clock's reading is too dear to have one in each sample. */
__u64 first_sample;

/*
 * The walk in hand, one for each CPU: the loader sets their number. BPF alone: too large for its
 * stack, and for a per-CPU map, which has a limit of 32 KiB. A perf_event program does not nest on
 * a CPU. Mappable, although nobody maps it: so it begins with a page, and what is made to fit into
 * a line of the processor's cache does.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct lj_walk);
} walks SEC(".maps");

/* Ditto, of PUC Lua. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct puc_walk);
} puc_walks SEC(".maps");

/* How samples ended, by enum lb_status. BPF counts, user space reads. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LB_STATUS__MAX);
	__type(key, __u32);
	__type(value, __u64);
} ends SEC(".maps");

/*
 * Ditto, of each process, where user space asks for it before the program is loaded: it sets the
 * map's size, too.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct lb_process_end);
	__type(value, __u64);
} process_ends SEC(".maps");
const volatile __u8 by_process;

/*
 * Prototypes that were shipped: a direct-mapped cache of fingerprints. A collision ships one again,
 * which costs time and nothing else. BPF alone.
 */
#define SHIPPED (1 << 16)
__u32 proto_sent[SHIPPED];

/* Slots of stacks: see LB_STACKS. BPF and user space. */
__u64 stack_counts[LB_STACKS];

#endif
