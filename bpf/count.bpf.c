// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * Counts calls by function, for `luabpf count -p`: a uprobe where the interpreter makes a call. An
 * object of its own, loaded for that command only.
 *
 *	LuaJIT	 the handlers of the function headers, FUNCF to FUNCCW, and of the fast functions
 *	PUC Lua	 luaD_precall and luaD_pretailcall
 *
 * A function is its prototype, with a fingerprint, or its C function. At its first call its stack is
 * sent, with the prototypes in it, as a sample's: names are derived as a profile's are.
 *
 * The kernel may preempt a uprobe's program, and run another one on the CPU: counts change
 * atomically, and a walk is acquired (struct slot). proto_records has one for each CPU: a stack is
 * sent by the owner of the CPU's own walk only.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <unwind/calls.h>
#include <unwind/lj/stack.h>
#include <unwind/puc/thread.h>
#include "regs.bpf.h"
#include "maps.bpf.h"
#include "target.bpf.h"
#include "emit_proto.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* User space sets both before the load. */
const volatile __u32 counted_pid;
const volatile __u32 counted_epoch; /* of its image */

/* 0: nothing is counted yet, or any more: probes come and go one by one. User space sets it. */
volatile __u32 counting;

/* The image that is counted: that of the first call. BPF alone. */
__u64 counted_exec_id;

/* Hits of probes. BPF counts, user space reads. */
__u64 call_hits;

/* Pages of executable mappings at the last hit. BPF writes, user space reads. */
__u32 call_exec_vm;

/* Calls that no key has, by enum lb_call_miss. BPF counts, user space reads. */
__u64 call_misses[LB_CALL_MISSES];

/* BPF counts, user space reads. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LB_CALL_KEYS);
	__type(key, struct lb_call_key);
	__type(value, struct lb_calls);
} calls SEC(".maps");

/*
 * Threads that call a value which is no function, by id, with their lua_State: its metamethod
 * "__call" is looked up. BPF alone. Few are there at a time, as the lookup is short.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} metacalls SEC(".maps");

/* A walk. BPF alone. User space sets the maps' sizes: a walk for each CPU, and LB_CALL_SPARE. */
struct lj_slot {
	__u32 busy;
	struct lj_walk w;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lj_slot);
} lj_slots SEC(".maps");

struct puc_slot {
	__u32 busy;
	struct puc_walk w;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct puc_slot);
} puc_slots SEC(".maps");

static __always_inline void miss(enum lb_call_miss why)
{
	__sync_fetch_and_add(&call_misses[why], 1);
}

/*
 * Acquires this CPU's walk, or the next free one. A macro: the slots' types differ. Sets `at` to how
 * many were in use.
 */
#define ACQUIRE(slots, slot, at)                                                                   \
	do {                                                                                       \
		__u32 cpu_ = bpf_get_smp_processor_id();                                           \
		for (at = 0; at <= LB_CALL_SPARE; at++) {                                          \
			__u32 key_ = cpu_ + at;                                                    \
			slot = bpf_map_lookup_elem(&slots, &key_);                                 \
			if (slot && !__sync_val_compare_and_swap(&slot->busy, 0, 1))               \
				break;                                                             \
			slot = 0;                                                                  \
		}                                                                                  \
	} while (0)

static __always_inline void release(__u32 *busy)
{
	__sync_val_compare_and_swap(busy, 1, 0);
}

/* True if the current process is the one that is counted, in the image that it had. */
static __always_inline int is_counted(struct task_struct *task)
{
	__u64 id = EXEC_ID(task->group_leader->start_boottime, task->self_exec_id), was;

	if (task->tgid != counted_pid || !counting)
		return 0;
	__sync_fetch_and_add(&call_hits, 1);
	call_exec_vm = (__u32)task->mm->exec_vm;
	was = *(volatile __u64 *)&counted_exec_id;
	if (!was)
		was = __sync_val_compare_and_swap(&counted_exec_id, 0, id);
	if (!was || was == id)
		return 1;
	miss(LB_CALL_OTHER_IMAGE);
	return 0;
}

/* Counts a call. Returns its entry if the function's record is yet to be sent, by the caller. */
static __always_inline struct lb_calls *count_call(const struct lb_call_key *key)
{
	struct lb_calls *c = bpf_map_lookup_elem(&calls, key), none = {};

	if (!c) {
		bpf_map_update_elem(&calls, key, &none, BPF_NOEXIST);
		c = bpf_map_lookup_elem(&calls, key);
	}
	if (!c) {
		miss(LB_CALL_FULL);
		return 0;
	}
	__sync_fetch_and_add(&c->count, 1);
	return c->sent || __sync_val_compare_and_swap(&c->sent, 0, 1) ? 0 : c;
}

/* Begins a record: the function alone is on the stack. */
static __always_inline void describe(struct lb_walk *w, const struct lb_call_key *key)
{
	struct task_struct *task = bpf_get_current_task_btf();

	w->rec.pid = task->tgid;
	w->rec.tid = task->pid;
	w->rec.epoch = counted_epoch;
	w->rec.build = key->build;
	w->rec.vm = key->vm;
	w->rec.hash = lb_call_hash(key);
	w->rec.state = LB_STATE('I', 0);
	w->rec.mcofs = 0;
	w->rec.traceno = 0;
	w->rec.stack.flags = 0;
	w->rec.stack.n = 1;
	w->rec.stack.frame[0].word = key->word | LB_FRAME_WORD(0, LB_FRAME_THREAD, 0);
	w->rec.stack.frame[0].pc = LB_NO_PC;
	w->rec.stack.frame[0].fp = key->fp;
	w->epoch = 0; /* nothing is taken from earlier walks */
	w->prove = 1;
	w->single = 0;
}

/* Sends the record, after the prototypes that it shows. Returns 0, or -1 when the ring is full. */
static __always_inline int send(struct lb_walk *w, enum lb_family family)
{
	__u32 n = w->rec.stack.n;

	w->proto_sent = 0;
	if (family == LB_FAMILY_PUC)
		bpf_loop(n, emit_step_puc, &w, 0);
	else
		bpf_loop(n, emit_step_lj, &w, 0);
	if (w->proto_sent == ~0U)
		return -1;
	if (n > LB_MAX_FRAMES)
		n = LB_MAX_FRAMES;
	w->rec.head.type = LB_REC_SAMPLE;
	w->rec.head.size = LB_SAMPLE_SIZE(n);
	return bpf_ringbuf_output(&ring, &w->rec, LB_SAMPLE_SIZE(n), ring_wakeup(0, 0)) ? -1 : 0;
}

/* ---- LuaJIT ---------------------------------------------------------------------------------- */

static long lj_frames_step(__u32 i, struct lj_walk **at)
{
	struct lj_walk *w = *at;

	(void)i;
	return w->phase != LJ_PHASE_FRAME || w->outward || lj_step_frame(0, w) != LB_MORE;
}

/* Walks the frames of the thread that calls: the function's own is at BASE. Below SAVE_L is in the
 * C frame at sp. */
static __noinline int lj_send(struct lj_walk *w, const struct lb_call_key *key)
{
	__u64 base, L = 0;

	if (!w || !key)
		return -1;
	base = w->regs.base;
	describe(lj_common(w), key);
	if (!lj_read_ref(0, w, &L, w->regs.sp + LJ_AT(w, CFRAME_L)) && !lj_read_thread(0, w, L) &&
	    w->head.g == key->vm) {
		lj_enter_L(w, L, w->regs.sp);
		w->base = base;
		w->pc = w->regs.pc;
		w->rec.stack.n = 0;
		w->state = 'I';
		w->stack_hi = ~0ULL;
		lb_outer_begin(lj_common(w));
		bpf_loop(LB_MAX_STEPS, lj_frames_step, &w, 0);
		if ((w->rec.stack.frame[0].word & ~LB_FRAME_WORD(0, 0xff, 0)) != key->word ||
		    !w->rec.stack.n)
			describe(lj_common(w), key);
	}
	return send(lj_common(w), LB_FAMILY_LJ);
}

/* Sets the layout, and the walk to no VM. Returns 0. */
static __always_inline int lj_begin_count(struct lj_walk *w, __u32 key)
{
	struct lb_build *build;

	if (w->build_of != key + 1) {
		build = bpf_map_lookup_elem(&builds, &key);
		if (!build)
			return -1;
		w->lj = build->lj.lj;
		w->build_of = key + 1;
	}
	lb_begin(&w->cache, w->cache.sample + 1);
	w->fault = 0;
	w->epoch = 0;
	w->g = w->regs.gl - w->lj.g2disp;
	return 0;
}

/* Finds the function whose frame is at BASE. Returns 0, or -1 if it cannot be read. */
static __always_inline int lj_key(struct lj_walk *w, struct lb_call_key *key)
{
	const struct lj_seen *seen;
	__u64 func;
	int index;

	if (lj_read_func(0, w, w->regs.base, &func) || !lj_is_func(w, func))
		return -1;
	index = lj_func(0, w, lj_tv_gcptr(w, func));
	if (index < 0)
		return -1;
	seen = &w->seen[index & (LJ_SEEN - 1)];
	key->word = LB_FRAME_WORD(seen->kind, 0, seen->ptr);
	key->fp = seen->kind == LB_FRAME_LUA ? seen->fp : 0;
	key->vm = w->g;
	return 0;
}

static __always_inline void count_lj(struct lj_walk *w, __u32 build, int is_own)
{
	struct lb_call_key key = {.build = build};
	struct lb_calls *unsent;

	if (lj_begin_count(w, build) || lj_key(w, &key)) {
		miss(LB_CALL_UNREADABLE);
		return;
	}
	unsent = count_call(&key);
	if (unsent && (!is_own || lj_send(w, &key)))
		unsent->sent = 0;
}

SEC("uprobe")
int luabpf_count_lj(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct lj_slot *slot;
	__u32 at;

	if (!is_counted(bpf_get_current_task_btf()) ||
	    (LB_CALL_SITE(cookie) == LB_CALL_LJ_CHECK && REGS_ARE_ABOVE(ctx)))
		return 0;
	ACQUIRE(lj_slots, slot, at);
	if (!slot) {
		miss(LB_CALL_BUSY);
		return 0;
	}
	REGS_ROLES(&slot->w.regs, ctx);
	count_lj(&slot->w, LB_CALL_BUILD(cookie), !at);
	release(&slot->busy);
	return 0;
}

/* ---- PUC Lua --------------------------------------------------------------------------------- */

static long puc_frames_step(__u32 i, struct puc_walk **at)
{
	(void)i;
	return (*at)->phase != PUC_PHASE_FRAME || puc_step_frames(0, *at) != LB_MORE;
}

/* Walks the frames of L, below the function: the CallInfo is that of its caller. */
static __noinline int puc_send(struct puc_walk *w, const struct lb_call_key *key, __u64 L)
{
	if (!w || !key)
		return -1;
	describe(puc_common(w), key);
	w->search.floor = 0;
	w->stack_hi = ~0ULL;
	w->regs.ip = 0;
	w->fault = 0;
	w->search.child = 0;
	w->top.popped = 0;
	w->look.previous = 0;
	if (puc_try(0, w, L)) {
		puc_enter(w, &w->search.try);
		w->flags = 0; /* the function is the topmost of the thread */
		w->phase = PUC_PHASE_FRAME;
		bpf_loop(LB_MAX_STEPS, puc_frames_step, &w, 0);
	}
	return send(puc_common(w), LB_FAMILY_PUC);
}

static __always_inline int puc_begin_count(struct puc_walk *w, __u32 key)
{
	struct lb_build *build;

	if (w->build_of != key + 1) {
		build = bpf_map_lookup_elem(&builds, &key);
		if (!build)
			return -1;
		puc_set_build(w, &build->puc);
		w->build_of = key + 1;
	}
	lb_begin(&w->cache, w->cache.sample + 1);
	w->fault = 0;
	w->epoch = 0;
	w->g = 0;
	w->rec.stack.n = 0;
	return 0;
}

/*
 * Returns the stack slot of the function that L calls: the one of two arguments that is in L's
 * stack, as luaD_pretailcall has the CallInfo in front of it; 0: L is no lua_State. Sets w->g.
 */
static __always_inline __u64 puc_called(struct puc_walk *w, __u64 L, __u64 second, __u64 third)
{
	__u64 stack, size;
	const __u8 *head;

	if (!puc_is_pointer(L))
		return 0;
	head = puc_maybe(0, w, L, PUC_L_HEAD);
	if (!head || (lb_byte(head, PUC_GC_TT) & PUC_TT_MASK) != PUC_TT_THREAD)
		return 0;
	w->g = puc_word(head, w->puc.L_l_G);
	stack = puc_word(head, w->puc.L_stack);
	size = puc_word(head, w->puc.L_stack_last) + PUC_STACK_EXTRA - stack;
	if (second - stack < size)
		return second;
	return third - stack < size ? third : 0;
}

/* Reads the function in a slot. Returns 0, or -1 if it holds none. */
static __always_inline int puc_key(struct puc_walk *w, __u64 slot, struct lb_call_key *key)
{
	int index = puc_slot(0, w, slot);
	const struct puc_seen *seen;

	if (index == PUC_NOT)
		return -1;
	key->vm = w->g;
	if (index == PUC_LIGHT) {
		key->word = LB_FRAME_WORD(LB_FRAME_C, 0, w->look.fn & LB_FRAME_PTR_MASK);
		return 0;
	}
	seen = &w->seen[index & (PUC_SEEN - 1)];
	key->word = LB_FRAME_WORD(seen->kind, 0, seen->ptr & LB_FRAME_PTR_MASK);
	key->fp = seen->kind == LB_FRAME_LUA ? seen->fp : 0;
	return 0;
}

/* True if the value in a slot is nil, of any variant, or cannot be read. */
static __always_inline int puc_is_nil(struct puc_walk *w, __u64 slot)
{
	const __u8 *bytes = puc_maybe(0, w, slot, PUC_TV_SIZE);

	return !bytes || !(lb_byte(bytes, PUC_TV_TT) & 0xf);
}

/* Takes the lua_State that a thread has left for the metamethod that is called instead; 0: none. */
static __always_inline __u64 puc_take_metacall(__u32 tid)
{
	__u64 *at = bpf_map_lookup_elem(&metacalls, &tid), L = at ? *at : 0;

	if (at)
		bpf_map_delete_elem(&metacalls, &tid);
	return L;
}

static __always_inline void count_puc(struct puc_walk *w, __u64 cookie, int is_own)
{
	struct lb_call_key key = {.build = LB_CALL_BUILD(cookie)};
	__u32 tid = bpf_get_current_task_btf()->pid, site = LB_CALL_SITE(cookie);
	__u64 L = w->gprs.r[7], slot;
	struct lb_calls *unsent;

	if (puc_begin_count(w, key.build)) {
		miss(LB_CALL_UNREADABLE);
		return;
	}
	if (site != LB_CALL_PUC_ENTRY) {
		L = puc_take_metacall(tid);
		if (!L && site == LB_CALL_PUC_META_WITHIN)
			return; /* the entry is yet to come */
		slot = w->gprs.r[0];
		if (L)
			puc_called(w, L, 0, 0); /* sets w->g */
	} else {
		slot = puc_called(w, L, w->gprs.r[6], w->gprs.r[2]);
	}
	if (!slot) {
		miss(LB_CALL_UNREADABLE);
		return;
	}
	if (puc_key(w, slot, &key)) {
		if (w->fault)
			miss(LB_CALL_UNREADABLE);
		else if (site == LB_CALL_PUC_ENTRY ||
			 (site == LB_CALL_PUC_META_WITHIN && !puc_is_nil(w, slot)))
			bpf_map_update_elem(&metacalls, &tid, &L, BPF_ANY);
		return;
	}
	unsent = count_call(&key);
	if (unsent && (!is_own || puc_send(w, &key, L)))
		unsent->sent = 0;
}

SEC("uprobe")
int luabpf_count_puc(struct pt_regs *ctx)
{
	struct puc_slot *slot;
	__u32 at;

	if (!is_counted(bpf_get_current_task_btf()))
		return 0;
	ACQUIRE(puc_slots, slot, at);
	if (!slot) {
		miss(LB_CALL_BUSY);
		return 0;
	}
	REGS_ALL(&slot->w.gprs, ctx);
	count_puc(&slot->w, bpf_get_attach_cookie(ctx), !at);
	release(&slot->busy);
	return 0;
}

/* For the measurement of what a probe costs by itself. */
SEC("uprobe")
int luabpf_count_nothing(struct pt_regs *ctx)
{
	call_hits = 1;
	return 0;
}
