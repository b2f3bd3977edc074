// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: [VERBOSE=1] oracle [SAMPLES [WORKLOAD]]
 *
 * Asks the walker of PUC Lua and knows the answer. Lua code runs in this process, in the shared
 * library as it is shipped, and a signal interrupts it at any instruction. The handler runs
 * puc_walk_begin() and the walk over the process's own memory, from the registers of the interrupted
 * code, and compares what they say with
 *
 *     the lua_State that runs: lua_resume() is wrapped here, so the coroutine library of liblua
 *                              comes by, too
 *     the function             each of oracle_calls.lua stores its line in T[2] when it begins
 *     the line                 each of oracle_lines.lua stores its number in T[1] before the rest
 *     the collector            the C stack is unwound by its call frame information
 *
 * A lua_State that has no function yet, has none any more, or has yielded is on its way in or out:
 * then it and its resumer are both right ("edge"). A line whose store is being executed may show
 * the line before it in T[1]. tests/lib/oracle_judge.h judges. Prints a line of key=value for each
 * workload, which runs until it has been interrupted SAMPLES times.
 */
#include <errno.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <unwind/puc/unwind.h>

#include "../host.h"
#include "oracle_judge.h"
#include "proc/elf.h"
#include "detect/puc/recognise.h"

#define MAX_SAMPLES (1 << 20)

/* ---- what the handler sees ------------------------------------------------------------------- */

static struct puc_walk walk, tries;
static struct vm_build build;
static uint64_t bias;
static uint64_t text_lo, text_hi; /* of the library */
static uint64_t stack_hi;
static struct oracle_sample *samples;
static volatile size_t nsamples;
static pid_t pid;
static const char *slots; /* T's array */

/* The lua_States that run, the outermost first. */
#define MAX_DEPTH 200
static lua_State *volatile running[MAX_DEPTH + 1];
static volatile int depth;

/* What the kernel says of pages is kept for one sample, during which no mapping changes. */
#define PAGE 4096u
static struct {
	uint64_t page;
	bool readable;
} pages[256];

static bool is_readable(uint64_t page)
{
	struct iovec to = {&(char){0}, 1}, from = {(void *)page, 1};
	size_t i = page / PAGE % 256;

	if (pages[i].page != page) {
		pages[i].page = page;
		pages[i].readable = process_vm_readv(pid, &to, 1, &from, 1, 0) == 1;
	}
	return pages[i].readable;
}

static int read_self(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	uint64_t page = addr & ~(uint64_t)(PAGE - 1);

	(void)mem;
	if (addr + size < addr)
		return -EFAULT;
	for (; page < addr + size; page += PAGE)
		if (!page || !is_readable(page))
			return -EFAULT;
	memcpy(dst, (const void *)addr, size);
	return 0;
}

static const struct lb_mem mem = {.read = read_self};

static uint64_t slot(int i)
{
	const char *value = slots + (size_t)PUC_TV_SIZE * (i - 1);
#if LUA_VERSION_NUM < 503
	return (uint64_t) * (const double *)value;
#else
	return *(const uint64_t *)value;
#endif
}

static void set_walk(struct puc_walk *w, const ucontext_t *uc)
{
	static const int order[LB_GPRS] = {
		REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
		REG_R8,	 REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
	};
	int i;

	puc_set_build(w, &build.build.puc);
	w->stdlib = build.build.stdlib;
	w->vm_start = bias + build.start;
	w->vm_end = w->vm_start + build.size;
	w->gc_lo = build.gc_lo ? bias + build.gc_lo : 0;
	w->gc_hi = build.gc_lo ? bias + build.gc_hi : 0;
	w->text_lo = text_lo;
	w->text_hi = text_hi;
	w->stack_hi = stack_hi;
	for (i = 0; i < LB_GPRS; i++)
		w->gprs.r[i] = (uint64_t)uc->uc_mcontext.gregs[order[i]];
	w->regs.ip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
	w->regs.sp = (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
	lb_begin(&w->cache, w->cache.sample + 1);
	w->rec.stack.n = 0;
	w->rec.stack.flags = 0;
}

/* ---- the other rules, over all registers and the whole C stack ------------------------------- */

struct oracle_pick {
	uint64_t L, key;
};

static void consider(struct oracle_pick picks[RULES], uint64_t word)
{
	uint64_t jmp = word ? puc_try(&mem, &tries, word) : 0;
	uint16_t calls = 0;
	uint64_t down;

	if (!jmp)
		return;
	read_self(&mem, &calls, sizeof(calls), word + tries.puc.L_nCcalls);
	down = 0x10000u - calls;
	if (!picks[RULE_JMP].L || jmp < picks[RULE_JMP].key)
		picks[RULE_JMP] = (struct oracle_pick){word, jmp};
	if (!picks[RULE_CCALLS].L || down < picks[RULE_CCALLS].key)
		picks[RULE_CCALLS] = (struct oracle_pick){word, down};
	if (!picks[RULE_FIRST].L)
		picks[RULE_FIRST] = (struct oracle_pick){word, 0};
}

static void other_rules(const ucontext_t *uc, struct oracle_pick picks[RULES])
{
	const uint64_t *word;
	int i;

	set_walk(&tries, uc);
	tries.g = 0;
	tries.search.floor = tries.regs.sp - 1;
	for (i = 0; i < LB_GPRS; i++)
		consider(picks, tries.gprs.r[i]);
	for (word = (const uint64_t *)tries.regs.sp; (uint64_t)word < stack_hi; word++) {
		if (puc_is_candidate(&tries, *word))
			consider(picks, *word);
		if (picks[RULE_JMP].L && (uint64_t)word > picks[RULE_JMP].key)
			break;
	}
}

/* ---- the sample ------------------------------------------------------------------------------ */

static bool has_function(lua_State *L)
{
	lua_Debug ar;

	return lua_status(L) == 0 && lua_getstack(L, 0, &ar);
}

static bool same_vm(lua_State *a, lua_State *b)
{
	return lua_topointer(a, LUA_REGISTRYINDEX) == lua_topointer(b, LUA_REGISTRYINDEX);
}

/* Does luaC_step run? By unwinding the C stack down to luaV_execute. */
static uint64_t gc_step, gc_forced;

static _Unwind_Reason_Code look_for_gc(struct _Unwind_Context *frame, void *arg)
{
	uint64_t ip = _Unwind_GetIP(frame);
	bool *gc = arg;

	uint64_t start = puc_in_gc(&walk, ip) ? _Unwind_GetRegionStart(frame) : 0;

	if (start && (start == gc_step || start == gc_forced))
		*gc = true;
	return *gc || puc_in_vm(&walk, ip) ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static bool collects(void)
{
	bool gc = false;

	_Unwind_Backtrace(look_for_gc, &gc);
	return gc;
}

/* luaC_step: of the collector's functions that luaV_execute calls, the one with the most calls. */
static void find_gc_step(void)
{
	uint64_t lo = bias + build.gc_lo, size = build.gc_hi - build.gc_lo, at;
	uint32_t best = 0, *calls = calloc(size + 1, sizeof(*calls));
	bool *by_vm = calloc(size + 1, sizeof(*by_vm));

	for (at = text_lo; build.gc_lo && at + 5 <= text_hi; at++) {
		uint64_t to = at + 5 + (uint64_t)(int64_t) * (const int32_t *)(at + 1);

		if (*(const uint8_t *)at != 0xe8 || to - lo >= size)
			continue;
		calls[to - lo]++;
		by_vm[to - lo] |= at - bias - build.start < build.size;
	}
	for (at = 0; at < size; at++)
		if (by_vm[at] && calls[at] > best) {
			best = calls[at];
			gc_step = lo + at;
		}
	for (at = gc_step; gc_step && at < gc_step + 32 && !gc_forced; at++) /* 5.2: jumps on */
		if (*(const uint8_t *)at == 0xe9 || (*(const uint8_t *)at & 0xfe) == 0x84)
			gc_forced = at + 5 + (uint64_t)(int64_t) * (const int32_t *)(at + 1);
	free(calls);
	free(by_vm);
}

static uint32_t count_stacks(const struct lb_stack *stack)
{
	uint32_t i, n = 0;

	for (i = 0; i < stack->n; i++)
		n += !!(LB_FRAME_FLAGS(&stack->frame[i]) & LB_FRAME_THREAD);
	return n;
}

static timer_t timer;

/* Once, from now on: the handler must not eat up all the time. */
static void arm(void)
{
	static uint32_t seed = 1;
	struct itimerspec once = {0};

	seed = seed * 1664525 + 1013904223;
	once.it_value.tv_nsec = 20000 + (seed >> 16) % 60000;
	timer_settime(timer, 0, &once, NULL);
}

static void on_signal(int sig, siginfo_t *info, void *arg)
{
	const ucontext_t *uc = arg;
	struct oracle_pick picks[RULES] = {0};
	struct oracle_sample *s;
	lua_State *truth = depth ? running[depth] : NULL;
	int i;

	(void)sig;
	(void)info;
	if (nsamples == MAX_SAMPLES)
		return;
	memset(pages, 0, sizeof(pages));
	s = &samples[nsamples++];
	*s = (struct oracle_sample){.line = slot(1), .func = slot(2)};

	set_walk(&walk, uc);
	walk.end = LB_STATUS_LOOP;
	puc_walk_begin(&mem, &walk);
	for (i = 0; i < LB_MAX_STEPS && puc_step(&mem, &walk) == LB_MORE; i++)
		;
	walk.L_hint = walk.end == LB_STATUS_RESOLVED ? walk.L : walk.L_hint;
	other_rules(uc, picks);
	picks[RULE_WALK].L = walk.end == LB_STATUS_OUTSIDE ? 0 : walk.L;

	s->ran = truth != NULL;
	s->edge = truth && !has_function(truth);
	for (i = 0; i < RULES; i++)
		s->right |= (uint32_t)(picks[i].L == (uint64_t)truth) << i;
	for (i = 1; i <= depth; i++)
		s->expected += has_function(running[i]) && same_vm(running[i], truth);
	s->end = walk.end;
	s->ip = walk.regs.ip;
	s->in_vm = puc_in_vm(&walk, walk.regs.ip);
	s->state = (char)walk.state;
	if (s->ran && !s->edge)
		s->gc = collects();
	s->n = walk.rec.stack.n;
	s->stacks = count_stacks(&walk.rec.stack);
	memcpy(s->top, walk.rec.stack.frame, sizeof(s->top));
	arm();
}

/* ---- who runs -------------------------------------------------------------------------------- */

static void begins(lua_State *L)
{
	running[depth + 1] = L;
	__asm__ volatile("" ::: "memory");
	depth++;
}

static void ended(int before)
{
	depth = before;
}

static void *real(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);

	if (!f)
		abort();
	return f;
}

#if LUA_VERSION_NUM == 501
int lua_resume(lua_State *L, int nargs)
{
	static int (*f)(lua_State *, int);
	int before = depth, r;

	if (!f)
		f = (int (*)(lua_State *, int))real("lua_resume");
	begins(L);
	r = f(L, nargs);
	ended(before);
	return r;
}
#elif LUA_VERSION_NUM < 504
int lua_resume(lua_State *L, lua_State *from, int nargs)
{
	static int (*f)(lua_State *, lua_State *, int);
	int before = depth, r;

	if (!f)
		f = (int (*)(lua_State *, lua_State *, int))real("lua_resume");
	begins(L);
	r = f(L, from, nargs);
	ended(before);
	return r;
}
#else
int lua_resume(lua_State *L, lua_State *from, int nargs, int *nres)
{
	static int (*f)(lua_State *, lua_State *, int, int *);
	int before = depth, r;

	if (!f)
		f = (int (*)(lua_State *, lua_State *, int, int *))real("lua_resume");
	begins(L);
	r = f(L, from, nargs, nres);
	ended(before);
	return r;
}

int lua_resetthread(lua_State *L)
{
	static int (*f)(lua_State *);
	int before = depth, r;

	if (!f)
		f = (int (*)(lua_State *))real("lua_resetthread");
	begins(L);
	r = f(L);
	ended(before);
	return r;
}
#endif

/* ---- workloads ------------------------------------------------------------------------------- */

/* resumed(co): resumes a coroutine from C until it is done. */
static int l_resumed(lua_State *L)
{
	lua_State *co = lua_tothread(L, 1);
	int r;

	do {
		r = host_resume(co, L, 0);
		if (r == LUA_YIELD)
			lua_settop(co, 0);
	} while (r == LUA_YIELD);
	lua_pushboolean(L, r == 0);
	return 1;
}

/* other(n): calls f of another VM, on this thread. */
static lua_State *other_vm;

static int l_other(lua_State *L)
{
	int before = depth;

	lua_getglobal(other_vm, "f");
	lua_pushinteger(other_vm, luaL_checkinteger(L, 1));
	begins(other_vm);
	lua_call(other_vm, 1, 0);
	ended(before);
	return 0;
}

/* burn(n): works in C, below a large frame. */
static volatile double sink;

static int l_burn(lua_State *L)
{
	int i, n = (int)luaL_checkinteger(L, 1);
	volatile char big[6000];

	big[0] = 0;
	for (i = 0; i < n; i++)
		sink = sink * 0.999 + i + big[0];
	return 0;
}

/* Each puts functions into W: the workloads. */
static const char *const chunks[] = {
#include "oracle_lines.lua.h"
	,
#include "oracle_calls.lua.h"
	,
#include "oracle_others.lua.h"
};

/* ---- set-up ---------------------------------------------------------------------------------- */

static int find_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	int i;

	if (!strstr(info->dlpi_name, "liblua5."))
		return 0;
	bias = info->dlpi_addr;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && ph->p_flags & PF_X) {
			text_lo = bias + ph->p_vaddr;
			text_hi = text_lo + ph->p_memsz;
		}
	}
	find_gc_step();
	return 1;
}

static void recognise(void)
{
	struct error err;
	struct elf_file *elf;
	Dl_info info;

	if (!dladdr(real("lua_newstate"), &info) || elf_open(info.dli_fname, &elf) ||
	    puc_recognise(elf, &build, &err)) {
		fprintf(stderr, "oracle: the library is not recognised\n");
		exit(1);
	}
	elf_close(&elf);
	dl_iterate_phdr(find_module, NULL);
}

static void find_stack(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long lo, hi;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx", &lo, &hi) == 2 && (unsigned long)&lo >= lo &&
		    (unsigned long)&lo < hi)
			stack_hi = hi;
	if (f)
		fclose(f);
}

static void find_slots(lua_State *L)
{
	const struct puc_layout *puc = &build.build.puc.puc;
	const char *table = lua_topointer(L, -1);

	lua_pushinteger(L, 12345);
	lua_rawseti(L, -2, 1);
	slots = *(const char *const *)(table + puc->t_array);
	if (slot(1) != 12345) {
		fprintf(stderr, "oracle: T is not where it should be\n");
		exit(1);
	}
	lua_pushinteger(L, 0);
	lua_rawseti(L, -2, 1);
}

static void run_chunk(lua_State *L, const char *src)
{
	if (luaL_loadbuffer(L, src, strlen(src), "=chunk")) {
		fprintf(stderr, "oracle: %s\n", lua_tostring(L, -1));
		exit(1);
	}
	lua_getglobal(L, "T_");
	lua_pushcfunction(L, l_resumed);
	lua_pushcfunction(L, l_other);
	lua_pushcfunction(L, l_burn);
	if (lua_pcall(L, 4, 0, 0)) {
		fprintf(stderr, "oracle: %s\n", lua_tostring(L, -1));
		exit(1);
	}
}

static lua_State *set_up(void)
{
	lua_State *L = luaL_newstate();
	size_t i;

	luaL_openlibs(L);
	lua_createtable(L, 4, 0);
	for (i = 1; i <= 4; i++) {
		lua_pushinteger(L, 0);
		lua_rawseti(L, -2, (int)i);
	}
	find_slots(L);
	lua_setglobal(L, "T_");
	lua_newtable(L);
	lua_setglobal(L, "W");
	for (i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++)
		run_chunk(L, chunks[i]);
	other_vm = luaL_newstate();
	luaL_openlibs(other_vm);
	if (luaL_dostring(
		    other_vm,
		    "function f(n) local s = 0 for i = 1, n do s = s + math.floor(i / 2) end end"))
		exit(1);
	return L;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void start_timer(void)
{
	static char own_stack[1 << 18] __attribute__((aligned(64)));
	/* BPF leaves nothing on the stack that it samples: a pc that this walker kept there
	 * would be taken for one that Lua's callees have pushed */
	stack_t alternate = {.ss_sp = own_stack, .ss_size = sizeof(own_stack)};
	struct sigaction sa = {.sa_sigaction = on_signal,
			       .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};

	ev._sigev_un._tid = (int)syscall(SYS_gettid);
	if (sigaltstack(&alternate, NULL))
		abort();
	sigaction(SIGPROF, &sa, NULL);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer)) {
		perror("oracle: timer");
		exit(1);
	}
	arm();
}

static int is_lua_function(lua_State *L, const char *name)
{
	int is;

	lua_getglobal(L, "W");
	lua_getfield(L, -1, name);
	lua_remove(L, -2);
	is = lua_isfunction(L, -1);
	if (!is)
		lua_pop(L, 1);
	return is;
}

enum how {
	PROTECTED,   /* lua_pcall, as hosts do */
	UNPROTECTED, /* lua_call: the main thread has no errorJmp */
	IDLE,	     /* in between, the thread works in C */
};

static void run(lua_State *L, const char *name, enum how how, size_t wanted)
{
	while (nsamples < wanted && is_lua_function(L, name)) {
		begins(L);
		if (how == UNPROTECTED)
			lua_call(L, 0, 0);
		else if (lua_pcall(L, 0, 0, 0)) {
			fprintf(stderr, "oracle: %s: %s\n", name, lua_tostring(L, -1));
			exit(1);
		}
		ended(0);
		if (how == IDLE) {
			double pause = now() + 0.0005;

			while (now() < pause)
				sink = sink * 0.999 + 1;
		}
	}
}

static const struct {
	const char *name, *function;
	enum how how;
} workloads[] = {
	{"lines", "lines", PROTECTED},
	{"pairs", "pairs", PROTECTED},
	{"calls", "calls", PROTECTED},
	{"nested", "nested", PROTECTED},
	{"wrap", "wrap", PROTECTED},
	{"fromc", "fromc", PROTECTED},
	{"errors", "errors", PROTECTED},
	{"meta", "meta", PROTECTED},
	{"sort", "sort", PROTECTED},
	{"gsub", "gsub", PROTECTED},
	{"gc", "gc", PROTECTED},
	{"deep", "deep", PROTECTED},
	{"tail", "tail", PROTECTED},
	{"strings", "strings", PROTECTED},
	{"buffers", "buffers", PROTECTED},
	{"conly", "conly", PROTECTED},
	{"vms", "vms", PROTECTED},
	{"close", "close", PROTECTED},
	{"many", "many", PROTECTED},
	{"lines-unprotected", "lines", UNPROTECTED},
	{"nested-unprotected", "nested", UNPROTECTED},
	{"gsub-unprotected", "gsub", UNPROTECTED},
	{"nested-idle", "nested", IDLE},
	{"lines-idle", "lines", IDLE},
};

static void run_workload(lua_State *L, size_t w, size_t wanted, struct oracle_judge *judge,
			 struct oracle_result *all)
{
	struct oracle_result r = {0};
	sigset_t set;
	size_t i;

	if (!is_lua_function(L, workloads[w].function))
		return;
	lua_pop(L, 1);
	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	nsamples = 0;
	if (luaL_dostring(L, "T_[1] = 0 T_[2] = 0")) /* they say nothing yet */
		exit(1);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	run(L, workloads[w].function, workloads[w].how, wanted);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (i = 0; i < nsamples; i++)
		oracle_judge(judge, workloads[w].name, &samples[i], &r);
	oracle_forget(judge);
	oracle_tell(workloads[w].name, &r);
	oracle_add(all, &r);
}

int main(int argc, char **argv)
{
	size_t wanted = argc > 1 ? strtoul(argv[1], NULL, 10) : 500; /* of each workload */
	struct oracle_judge judge = {.mem = &mem, .puc = &build.build.puc.puc};
	struct oracle_result all = {0};
	sigset_t set;
	lua_State *L;
	size_t w;

	pid = getpid();
	recognise();
	find_stack();
	L = set_up();
	lua_getglobal(L, "last_line");
	judge.last_line = (uint32_t)lua_tointeger(L, -1);
	lua_pop(L, 1);
	judge.bias = bias;
	judge.verbose = getenv("VERBOSE") != NULL;
	if (wanted > MAX_SAMPLES)
		return 2;
	samples = calloc(MAX_SAMPLES, sizeof(*samples));
	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	sigprocmask(SIG_BLOCK, &set, NULL);
	start_timer();
	for (w = 0; w < sizeof(workloads) / sizeof(workloads[0]); w++)
		if (argc < 3 || !strcmp(argv[2], workloads[w].name))
			run_workload(L, w, wanted, &judge, &all);
	timer_delete(timer);
	oracle_tell("all", &all);
	return 0;
}
