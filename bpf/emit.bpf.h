/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Writes records to the ring buffer. A wake-up of the reader costs more than the rest of a sample:
 * only a fill level, a new prototype or a process event causes one.
 */
#ifndef LUABPF_EMIT_BPF_H
#define LUABPF_EMIT_BPF_H

#include "emit_proto.bpf.h"
#include "maps.bpf.h"
#include "narrow.bpf.h"
#include "task.bpf.h"
#include "zone.bpf.h"

static __always_inline void count_ends(__u32 end, __s64 count)
{
	__u64 *n = bpf_map_lookup_elem(&status_counts, &end);

	if (n)
		*n += count;
}

/* Not inlined: few recordings use it. */
static __noinline void count_of_process(__u32 pid, __u32 end)
{
	struct lb_process_end key = {.pid = pid, .end = end};
	__u64 none = 0, *n;

	bpf_map_update_elem(&process_ends, &key, &none, BPF_NOEXIST);
	n = bpf_map_lookup_elem(&process_ends, &key);
	if (n)
		__sync_fetch_and_add(n, 1);
}

static __always_inline void count_end(__u32 pid, __u32 end)
{
	count_ends(end, 1);
	if (by_process)
		count_of_process(pid, end);
}

static __always_inline int emit_process(__u32 pid, __u32 epoch, __u64 exec_id, __u16 sample,
					__u16 nmodules, __u32 origin, __u32 known)
{
	struct lb_rec_task *rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);

	if (!rec)
		return -1;
	rec->head.type = LB_REC_TASK;
	rec->head.size = sizeof(*rec);
	rec->pid = pid;
	rec->epoch = epoch;
	rec->exec_id = exec_id;
	rec->sample = sample;
	rec->nmodules = nmodules;
	rec->origin = origin;
	rec->known = known;
	rec->exec_vm = task_exec_pages_read();
	rec->start_stack = 0;
	if (narrowed_by) {
		rec->start_stack = BPF_CORE_READ(bpf_get_current_task_btf(), mm, start_stack);
		narrow_identity(&rec->identity);
	}
	bpf_ringbuf_submit(rec, BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* Asks user space to look at a process, of which BPF knows so many modules. */
static __always_inline void emit_task(__u32 pid, __u32 epoch, __u64 exec_id, __u16 sample,
				      __u32 nmodules)
{
	emit_process(pid, epoch, exec_id, sample, (__u16)nmodules, 0, 0);
}

/* Reports a process that BPF knows by its parent. Returns 0, or -1 when the ring is full. */
static __always_inline int emit_forked(__u32 pid, __u64 exec_id, __u32 origin)
{
	return emit_process(pid, 0, exec_id, 0, 0, origin, 0);
}

/* Reports a process that BPF knows by its files. ended: epoch of its previous image; 0: none. */
static __always_inline int emit_known(__u32 pid, __u64 exec_id, __u32 ended)
{
	return emit_process(pid, ended, exec_id, 0, 0, 0, LB_EPOCH(exec_id));
}

struct hash_ctx {
	const struct lb_rec_sample *rec;
	__u64 hash;
};

static long functions_step(__u32 i, struct hash_ctx *c)
{
	const struct lb_frame *f = &c->rec->stack.frame[i & LB_MAX_FRAMES];

	c->hash = (__u32)c->hash * 31 + f->fp + (__u32)(f->word >> 3);
	return 0;
}

/* Hashes the functions of a stack, without their pcs. */
static __always_inline __u32 functions_hash(const struct lb_rec_sample *rec)
{
	struct hash_ctx c = {.rec = rec, .hash = rec->epoch};

	lb_rare_loop(rec->stack.n, functions_step, &c);
	return (__u32)c.hash;
}

/*
 * Sends the prototypes of a sample's functions, each once. Returns how many were sent, or -1 when
 * the ring had no room for all of them: the next sample sends the rest.
 */
static __always_inline int emit_protos(struct lb_walk *w, struct lb_thread *thread,
				       enum lb_family family)
{
	__u32 hash = functions_hash(&w->rec);

	/* the thread's previous sample had the same functions: there is nothing to send */
	if (thread->functions == hash)
		return 0;
	w->proto_sent = 0; /* in memory, where the verifier does not follow its value */
	if (family == LB_FAMILY_PUC)
		lb_rare_loop(w->rec.stack.n, emit_step_puc, &w);
	else
		lb_rare_loop(w->rec.stack.n, emit_step_lj, &w);
	if (w->proto_sent == ~0U)
		return -1;
	thread->functions = hash;
	return (int)w->proto_sent;
}

/* Hashes two words. The second product is independent of hash: the chain has one product a pair. */
static __always_inline __u64 hash_words(__u64 hash, const __u64 word[2])
{
	hash = (hash ^ word[0]) * 0x9e3779b97f4a7c15ULL;
	return (hash ^ hash >> 29) + word[1] * 0xd6e8feb86659fd93ULL;
}

/* Frames per turn: the verifier follows each turn of a loop. Frames from the stack's n on are
 * not hashed. */
#define HASH_RUN 16

static __always_inline __u64 hash_frames(const struct lb_rec_sample *rec, __u32 from, __u64 hash)
{
	__u32 n = rec->stack.n, i;

	LB_ROLLED
	for (i = 0; i < HASH_RUN && from + i < n; i++)
		hash = hash_words(hash,
				  (const void *)&rec->stack.frame[(from + i) & LB_MAX_FRAMES]);
	return hash;
}

static long hash_step(__u32 i, struct hash_ctx *c)
{
	c->hash = hash_frames(c->rec, 1 + (i + 1) * HASH_RUN, c->hash);
	return 0;
}

#define HASH_FROM __builtin_offsetof(struct lb_rec_sample, pid)
#define HASH_HEAD (__builtin_offsetof(struct lb_rec_sample, stack.frame) - HASH_FROM)
_Static_assert(HASH_FROM % 8 == 0 && HASH_HEAD % 16 == 0, "pairs of words");

/*
 * Returns a stack's hash, never less than LB_STACKS. Most stacks of a program differ only in the pc
 * of their topmost function: these have adjacent slots, so that their words share cache lines.
 */
LB_SUBPROG __u64 sample_hash(const struct lb_rec_sample *rec)
{
	const struct lb_frame *top;
	struct hash_ctx rest;
	__u64 hash, words[2];
	const __u64 *head;
	__u32 i, slot;

	if (!rec)
		return 0;
	head = (const void *)((const char *)rec + HASH_FROM);
	top = &rec->stack.frame[0];
	words[0] = top->word;
	words[1] = top->fp ^ rec->zone; /* its bits are random, or none but the lowest few */
	hash = 0;

	LB_UNROLLED
	for (i = 0; i < HASH_HEAD / 8; i += 2)
		hash = hash_words(hash, head + i);
	hash = hash_frames(rec, 1, hash);
	if (rec->stack.n > 1 + HASH_RUN) {
		rest.rec = rec;
		rest.hash = hash;
		bpf_loop((rec->stack.n - 2) / HASH_RUN, hash_step, &rest, 0);
		hash = rest.hash;
	}
	hash = hash_words(hash, words);
	hash ^= hash >> 32;
	slot = LB_STACK_SLOT((__u32)hash + top->pc + rec->mcofs / 2);
	words[0] = top->pc;
	words[1] = rec->mcofs | (__u64)rec->state << 32;
	hash = LB_STACK_TAG(hash_words(hash, words));
	return (hash ? hash : LB_STACKS) | slot;
}

static __always_inline int emit_whole(struct lb_walk *w, int nsent)
{
	__u32 n = w->rec.stack.n;

	if (n > LB_MAX_FRAMES)
		n = LB_MAX_FRAMES;
	w->rec.head.type = LB_REC_SAMPLE;
	w->rec.head.size = LB_SAMPLE_SIZE(n);
	return bpf_ringbuf_output(&ring, &w->rec, LB_SAMPLE_SIZE(n),
				  ring_wakeup(nsent || zone_is_asked(w), w->samples));
}

/* Sends a sample whole, after the prototypes of its functions and its zone's name. Returns 0, 1 when the ring had no
 * room for the zone's name, or -1 when it had none for the prototypes or the sample: read from the live process, a
 * prototype that was freed since then may look like another one's remains. */
static __always_inline int emit_stack(struct lb_walk *w, struct lb_thread *thread,
				      enum lb_family family)
{
	int nsent = emit_protos(w, thread, family), unnamed;

	if (nsent < 0)
		return -1;
	unnamed = emit_zone(w);
	return emit_whole(w, nsent) ? -1 : !!unnamed;
}

/* Not inlined: its BPF stack would add to that of the walks. */
static __noinline int emit_stack_lj(struct lb_walk *w, struct lb_thread *thread)
{
	return emit_stack(w, thread, LB_FAMILY_LJ);
}

static __noinline int emit_stack_puc(struct lb_walk *w, struct lb_thread *thread)
{
	return emit_stack(w, thread, LB_FAMILY_PUC);
}

/* Counts a sample in the slot of its stack. Returns 0, or -1 when the slot is another stack's, is
 * full, or was just changed by another CPU. */
static __always_inline int count_stack(__u64 *slot, __u64 was, __u64 hash)
{
	if (LB_STACK_TAG(was) != LB_STACK_TAG(hash) || !LB_STACK_COUNT(was + 1))
		return -1;
	return __sync_val_compare_and_swap(slot, was, was + 1) == was ? 0 : -1;
}

/* Empties the slot of a stack that was not sent, or not with all its prototypes: it will be sent again.
 * Samples that another CPU counted there meanwhile are lost. */
static __always_inline void release_slot(__u64 *slot)
{
	__u32 count = LB_STACK_COUNT(__sync_lock_test_and_set(slot, 0));

	count_ends(LB_STATUS_RING_FULL, count);
	count_ends(LB_STATUS_RESOLVED, -(__s64)count);
}

static __always_inline int emit_sample(struct lb_walk *w, struct lb_thread *thread,
				       enum lb_family family)
{
	__u64 *slot, was;
	int taken, r;

	w->rec.hash = sample_hash(&w->rec);
	slot = &stack_counts[LB_STACK_SLOT(w->rec.hash)];
	was = *(volatile __u64 *)slot;
	w->samples++;
	if (!count_stack(slot, was, w->rec.hash))
		return 0;
	/* before it is sent: user space forgets a stack that has no slot */
	taken = !was && !__sync_val_compare_and_swap(slot, 0, LB_STACK_TAG(w->rec.hash));
	r = family == LB_FAMILY_PUC ? emit_stack_puc(w, thread) : emit_stack_lj(w, thread);
	if (r && taken)
		release_slot(slot);
	return r < 0 ? -1 : 0;
}

#endif
