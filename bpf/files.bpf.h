/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Recognises a process by its files at its first event, also after exec or when it has mapped more
 * code: hundreds of short children would exit before user space has looked at each. The files of all
 * executable mappings are looked up in `files`. The result is used only if each is there: then user
 * space would come to the same.
 *
 * The kernel's own search (bpf_find_vma) finds the mapping of one address, and fails if it is called a
 * second time in an interrupt. So this traverses the tree of mappings breadth-first as memory
 * (include/linux/maple_tree.h), without its lock, TREE_NODES nodes at most:
 *
 *	root or inner node, 10 or 16 slots	a slot: node | type << 3 | flags, in 256 bytes
 *	leaf, 16 slots				a slot: vm_area_struct, or 0 for a gap
 *
 *	word 0	parent; this node: it was replaced (ma_dead_node())
 *	1 ..	pivot[]: the last address of its slot; 0: it is the last
 *	16 ..	slot[], from 10 on in nodes of 10 slots
 *
 * The tree is for readers under RCU, as programs are: a node is replaced by a changed copy, and then
 * marked. Behind the mark its pivots are overwritten, so that a search which meets one has no result.
 * A wrong VM does no harm: a walk checks its memory.
 */
#ifndef LUABPF_FILES_BPF_H
#define LUABPF_FILES_BPF_H

#include "emit.bpf.h"
#include "target.bpf.h"

#define TREE_IS_NODE(slot) (((slot)&3) == 2 && (slot) > 4096) /* xa_is_node() */
#define TREE_TYPE(slot) ((slot) >> 3 & 15)
#define TREE_ADDRESS(slot) ((slot) & ~255ULL)
#define TREE_LEAF 1   /* maple_leaf_64 */
#define TREE_INNER 2  /* maple_range_64 */
#define TREE_ARANGE 3 /* maple_arange_64 */
#define TREE_SLOTS 16
#define TREE_ARANGE_SLOTS 10

static __always_inline void file_key(const struct file *file, struct lb_file_key *key)
{
	const struct inode *inode = BPF_CORE_READ(file, f_inode);
	const struct inode___public *public = (const void *)inode;
	const struct inode___private *private = (const void *)inode;

	key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	key->ino = BPF_CORE_READ(inode, i_ino);
	if (bpf_core_field_exists(inode->i_mtime_sec)) {
		key->mtime = BPF_CORE_READ(inode, i_mtime_sec);
		key->mtime_ns = BPF_CORE_READ(inode, i_mtime_nsec);
	} else if (bpf_core_field_exists(private->__i_mtime)) {
		key->mtime = BPF_CORE_READ(private, __i_mtime.tv_sec);
		key->mtime_ns = BPF_CORE_READ(private, __i_mtime.tv_nsec);
	} else {
		key->mtime = BPF_CORE_READ(public, i_mtime.tv_sec);
		key->mtime_ns = BPF_CORE_READ(public, i_mtime.tv_nsec);
	}
}

static __always_inline void add_module(struct lb_search *s, const struct vm_area_struct *vma,
				       const struct lb_file *f)
{
	__u64 start = BPF_CORE_READ(vma, vm_start), end = BPF_CORE_READ(vma, vm_end);
	__u64 offset = BPF_CORE_READ(vma, vm_pgoff) * LB_PAGE;
	__u64 vm = start + (f->offset - offset);
	__u32 n = s->proc.nmodules;
	struct lb_module *m;

	if (f->offset < offset || vm + f->size > end) /* another mapping of the file */
		return;
	if (n >= LB_MODULES) { /* user space registers processes with more */
		s->unknown = 1;
		return;
	}
	m = &s->proc.module[n];
	m->vm_start = vm;
	m->vm_end = vm + f->size;
	m->text_lo = start;
	m->text_hi = end;
	m->gc_lo = f->gc_hi ? vm + f->gc_lo : 0;
	m->gc_hi = f->gc_hi ? vm + f->gc_hi : 0;
	m->build = f->build;
	m->family = (__u8)f->family;
	m->id = (__u8)n;
	s->proc.families |= 1u << (f->family & 31);
	s->proc.nmodules = n + 1;
}

static __always_inline void look_at_mapping(struct lb_search *s, const struct vm_area_struct *vma)
{
	const struct file *file;
	struct lb_file_key key;
	const struct lb_file *f;

	if (!(BPF_CORE_READ(vma, vm_flags) & VM_EXEC))
		return;
	file = BPF_CORE_READ(vma, vm_file);
	if (!file)
		return;
	file_key(file, &key);
	f = bpf_map_lookup_elem(&files, &key);
	if (!f)
		s->unknown = 1;
	else if (f->family)
		add_module(s, vma, f);
}

struct node_ctx {
	struct lb_search *search;
	__u64 max; /* the node's last address */
	__u32 type;
};

static long look_at_slot(__u32 i, struct node_ctx *c)
{
	__u32 slots = c->type == TREE_ARANGE ? TREE_ARANGE_SLOTS : TREE_SLOTS;
	struct lb_search *s = c->search;
	__u64 pivot, slot;

	if (i >= slots)
		return 1;
	slot = s->word[(slots + i) & (TREE_WORDS - 1)];
	pivot = i + 1 < slots ? s->word[(i + 1) & (TREE_WORDS - 1)] : c->max;
	if (i && !pivot)
		pivot = c->max;
	if (c->type == TREE_LEAF) {
		if (slot)
			look_at_mapping(s, (const void *)slot);
	} else if (s->n < TREE_NODES) {
		s->node[s->n & (TREE_NODES - 1)] = slot;
		s->max[s->n & (TREE_NODES - 1)] = pivot;
		s->n++;
	} else {
		s->unknown = 1;
	}
	return pivot >= c->max;
}

/* Reads a node. Returns 0, or -1 if it has no node type, or was replaced before all words were read. */
static __always_inline int read_node(struct lb_search *s, __u64 node)
{
	__u64 addr = TREE_ADDRESS(node), parent;

	if (TREE_TYPE(node) < TREE_LEAF || TREE_TYPE(node) > TREE_ARANGE ||
	    bpf_probe_read_kernel(s->word, sizeof(s->word), (const void *)addr) ||
	    bpf_probe_read_kernel(&parent, sizeof(parent), (const void *)addr))
		return -1;
	return TREE_ADDRESS(parent) == addr ? -1 : 0;
}

static long look_at_node(__u32 i, struct lb_search **search)
{
	struct lb_search *s = *search;
	struct node_ctx c = {.search = s};
	__u64 node;

	if (i >= s->n)
		return 1;
	node = s->node[i & (TREE_NODES - 1)];
	c.max = s->max[i & (TREE_NODES - 1)];
	c.type = TREE_TYPE(node);
	if (read_node(s, node)) {
		s->unknown = 1;
		return 1;
	}
	lb_rare_loop(TREE_SLOTS, look_at_slot, &c);
	return 0;
}

enum by_files {
	FILES_UNKNOWN, /* user space has not examined a mapped file, or the mappings could not be read */
	FILES_NO_VM,
	FILES_VM,
};

/* Fills s->proc with the VMs of a tree of mappings. */
static __always_inline enum by_files files_search_tree(struct lb_search *s, __u64 root)
{
	if (!TREE_IS_NODE(root))
		return FILES_UNKNOWN;
	__builtin_memset(&s->proc, 0, sizeof(s->proc));
	s->unknown = 0;
	s->node[0] = root;
	s->max[0] = ~0ULL;
	s->n = 1;
	lb_rare_loop(TREE_NODES, look_at_node, &s);
	if (s->unknown)
		return FILES_UNKNOWN;
	return s->proc.nmodules ? FILES_VM : FILES_NO_VM;
}

/* The same of the current process. */
LB_SUBPROG int files_search(struct lb_search *s)
{
	const struct mm_struct *mm = BPF_CORE_READ(bpf_get_current_task_btf(), mm);

	if (!s || !mm || !bpf_core_field_exists(mm->mm_mt))
		return FILES_UNKNOWN;
	return files_search_tree(s, (__u64)BPF_CORE_READ(mm, mm_mt.ma_root));
}

/*
 * Adds the current process to procs, and to this CPU's cache for this event, by what a search has found;
 * the caller has set exec_vm in it. ended: the epoch of another image that procs has of it; 0: none.
 * Returns FILES_VM; FILES_UNKNOWN: there is no room for it. Not inlined: it is rare.
 */
static __noinline int files_adopt(struct lb_cpu *cpu, __u32 pid, __u64 exec_id, __u32 ended)
{
	struct lb_target *target = &cpu->target[pid & (CPU_TARGETS - 1)];

	target->pid = 0;
	target->proc = cpu->search.proc;
	target->proc.exec_id = exec_id;
	target->proc.epoch = LB_EPOCH(exec_id);
	if (emit_known(pid, exec_id, ended))
		return FILES_UNKNOWN;
	if (bpf_map_update_elem(&procs, &pid, &target->proc, BPF_ANY))
		return FILES_UNKNOWN;
	__sync_fetch_and_add(&procs_version, 1); /* other CPUs may cache the old entry */
	return FILES_VM;
}

#endif
