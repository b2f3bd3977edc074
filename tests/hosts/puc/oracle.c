// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: [VERBOSE=1] oracle [SECONDS [WORKLOAD]]
 *
 * Asks the walker of PUC Lua and knows the answer. Lua code runs in this process, in the shared
 * library as it is shipped, and a signal interrupts it at any instruction. The handler runs
 * puc_find() and the walk over the process's own memory, from the registers of the interrupted
 * code, and compares what they say with
 *
 *     the lua_State that runs: lua_resume() is wrapped here, so the coroutine library of liblua
 *                              comes by, too
 *     the function             each function of `calls` stores its line in T[2] when it begins
 *     the line                 each line of `lines` stores its number in T[1] before the rest
 *     the collector            the C stack is unwound by its call frame information
 *
 * A lua_State that has no function yet, has none any more, or has yielded is on its way in or out:
 * then it and its resumer are both right ("edge"). A line whose store is being executed may show
 * the line before it in T[1]. Prints a line of key=value for each workload.
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

#include <luabpf/find_puc.h>

#include "sym/puc_proto.h"
#include "target/elf.h"
#include "vm/puc_recognise.h"

#define MAX_SAMPLES (1 << 20)
#define TOP 3 /* frames kept of each sample */

/* ---- what the handler sees ---- */

enum rule {
	RULE_WALK,   /* puc_find() */
	RULE_JMP,    /* smallest errorJmp above sp of all lua_States that the C stack shows */
	RULE_CCALLS, /* largest nCcalls of these */
	RULE_FIRST,  /* the first of these */
	RULES,
};
static const char *const rule_names[RULES] = {"walk", "errorJmp", "nCcalls", "first"};

struct sample {
	struct lb_frame top[TOP];
	uint64_t line; /* T[1] */
	uint64_t func; /* T[2] */
	uint64_t ip;
	uint32_t n, end;
	uint32_t right; /* bit for each rule */
	uint32_t stacks, expected;
	bool ran, edge, in_vm;
	char state;
	bool gc;
};

static struct puc_walk walk, tries;
static struct vm_build build;
static uint64_t bias;
static uint64_t stack_hi;
static struct sample *samples;
static size_t nsamples;
static const char *slots; /* T's array */

/* The lua_States that run, the outermost first. */
#define MAX_DEPTH 200
static lua_State *volatile running[MAX_DEPTH + 1];
static volatile int depth;

static int read_self(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	struct iovec to = {dst, size}, from = {(void *)addr, size};

	(void)mem;
	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
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

	w->puc = build.build.puc.puc;
	w->pc_reg = build.build.puc.pc_reg;
	w->jmp_marked = build.build.puc.jmp_marked;
	w->gc_skip = build.build.puc.gc_skip;
	w->gc_skip_size = build.build.puc.gc_skip_size;
	w->vm_start = bias + build.start;
	w->vm_end = w->vm_start + build.size;
	w->gc_lo = build.gc_lo ? bias + build.gc_lo : 0;
	w->gc_hi = build.gc_lo ? bias + build.gc_hi : 0;
	w->text_lo = w->vm_start & ~0xffffULL;
	w->text_hi = w->vm_end;
	w->stack_hi = stack_hi;
	for (i = 0; i < LB_GPRS; i++)
		w->gprs.r[i] = (uint64_t)uc->uc_mcontext.gregs[order[i]];
	w->regs.ip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
	w->regs.sp = (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
	w->cache.sample++;
	w->rec.stack.n = 0;
	w->rec.stack.flags = 0;
	w->nfresh = 0;
}

/* ---- the other rules, over all registers and the whole C stack ---- */

struct pick {
	uint64_t L, key;
};

static void consider(struct pick picks[RULES], uint64_t word)
{
	uint64_t jmp = word ? puc_try(&mem, &tries, word) : 0;
	uint16_t calls = 0;
	uint64_t down;

	if (!jmp)
		return;
	read_self(&mem, &calls, sizeof(calls), word + tries.puc.L_nCcalls);
	down = 0x10000u - calls;
	if (!picks[RULE_JMP].L || jmp < picks[RULE_JMP].key)
		picks[RULE_JMP] = (struct pick){word, jmp};
	if (!picks[RULE_CCALLS].L || down < picks[RULE_CCALLS].key)
		picks[RULE_CCALLS] = (struct pick){word, down};
	if (!picks[RULE_FIRST].L)
		picks[RULE_FIRST] = (struct pick){word, 0};
}

static void other_rules(const ucontext_t *uc, struct pick picks[RULES])
{
	const uint64_t *word;
	int i;

	set_walk(&tries, uc);
	tries.g = 0;
	tries.floor = tries.regs.sp - 1;
	for (i = 0; i < LB_GPRS; i++)
		consider(picks, tries.gprs.r[i]);
	for (word = (const uint64_t *)tries.regs.sp; (uint64_t)word < stack_hi; word++) {
		if (puc_is_candidate(&tries, *word))
			consider(picks, *word);
		if (picks[RULE_JMP].L && (uint64_t)word > picks[RULE_JMP].key)
			break;
	}
}

/* ---- the sample ---- */

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
static void find_gc_step(uint64_t text_lo, uint64_t text_hi)
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
	struct pick picks[RULES] = {0};
	struct sample *s;
	lua_State *truth = depth ? running[depth] : NULL;
	int i;

	(void)sig;
	(void)info;
	if (nsamples == MAX_SAMPLES)
		return;
	s = &samples[nsamples++];
	*s = (struct sample){.line = slot(1), .func = slot(2)};

	set_walk(&walk, uc);
	walk.end = LB_END_LOOP;
	puc_find(&mem, &walk);
	for (i = 0; i < LB_MAX_STEPS && puc_step(&mem, &walk) == LB_MORE; i++)
		;
	walk.L_hint = walk.end == LB_END_RESOLVED ? walk.L : walk.L_hint;
	other_rules(uc, picks);
	picks[RULE_WALK].L = walk.end == LB_END_OUTSIDE ? 0 : walk.L;

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

/* ---- who runs ---- */

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

static int resume_any(lua_State *L, lua_State *from, int nargs)
{
#if LUA_VERSION_NUM == 501
	(void)from;
	return lua_resume(L, nargs);
#elif LUA_VERSION_NUM < 504
	return lua_resume(L, from, nargs);
#else
	int nres;

	return lua_resume(L, from, nargs, &nres);
#endif
}

/* ---- workloads ---- */

/* resumed(co): resumes a coroutine from C until it is done. */
static int l_resumed(lua_State *L)
{
	lua_State *co = lua_tothread(L, 1);
	int r;

	do {
		r = resume_any(co, L, 0);
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

static const char *const prelude = "local T, resumed, other, burn = ...\n"
				   "local load = loadstring or load\n"
				   "local unpack = unpack or table.unpack\n"
				   "W = {}\n";

/*
 * lines: `for` on line 2, the lines to judge from 3 on to `last`, then `end`. Each begins with a
 * store of its number.
 */
static const char *const lines =
	"local body = {\n"
	"  'x = (x * 1103515245 + 12345) % 2147483648 y = x * 2 - y z = y - x * z % 7',\n"
	"  'a[i % 10 + 1] = x y = a[1] + a[2] z = a[3] or 0',\n"
	"  'h.alpha = x h.beta = h.alpha y = h.beta + h.gamma h.gamma = 1',\n"
	"  's = \"k\" .. (i % 50) .. \"v\"',\n"
	"  'if x > y then z = z + 1 else z = z - 1 end if z == y then z = 0 end',\n"
	"  'up = up + 1 y = up * 2 up = up % 1000',\n"
	"  'g = 1 y = g + 1 z = math.pi + y',\n"
	"  'y = math.floor(x / 3) z = math.max(y, x, 1)',\n"
	"  'z = string.byte(s) y = #s + z s = string.rep(\"ab\", 20)',\n"
	"  't = {x, y, z} y = #t z = t[1]',\n"
	"  'fn = function() return x + i end',\n"
	"  's = string.format(\"%d %s\", i, \"abc\")',\n"
	"  'y = mt.field z = mt.other mt.third = y',\n"
	"  'z = -x y = not z x = x + (y and 1 or 2)',\n"
	"  'y = x ^ 2 % 1000 z = x / 3 y = y + z * 2 - x % 13 z = y * y - z',\n"
	"  't = {a = x, b = y} h.t = t y = t.a z = h.t.b y = y + z',\n"
	"  'a[1], a[2], a[3] = a[2] or 1, a[3] or 2, a[1] or 3',\n"
	"  'b = s < \"m\" c = s == \"ab\" b = b and c y = b and 1 or 2',\n"
	"}\n"
	"local function make(bodies)\n"
	"  local src = {'local T, a, h, mt, up = ... local x, y, z, s, t, fn, b, c, g = "
	"1, 2, 3, \"s\" return function(n)', 'for i = 1, n do'}\n"
	"  for _, b in ipairs(bodies) do\n"
	"    local n = #src + 1\n"
	"    src[n] = 'T[1] = ' .. n .. ' ' .. b\n"
	"  end\n"
	"  src[#src + 1] = 'end'\n"
	"  src[#src + 1] = 'T[1] = 0 end'\n"
	"  local mt = setmetatable({}, {__index = {field = 1, other = 2}, __newindex = rawset})\n"
	"  local f = assert(load(table.concat(src, '\\n'), '=lines'))\n"
	"  return f(T, {1, 2, 3}, {gamma = 1}, mt, 0), #src - 2\n"
	"end\n"
	"local all, last = make(body)\n"
	"last_line = last\n"
	"function W.lines() all(500) end\n"
	"local each = {}\n"
	"for i, b in ipairs(body) do\n"
	"  local two = {}\n"
	"  for k = 1, #body do two[k] = body[(i + k % 2 - 1) % #body + 1] end\n"
	"  each[i] = make(two)\n"
	"end\n"
	"function W.pairs() for i = 1, #each do each[i](100) end end\n";

/* calls: functions by the line they begin on; T[2] holds that of the one that runs. */
static const char *const calls =
	"local load = loadstring or load\n" /* line 1 */
	"local T = T_\n"
	"local function leaf1(x) T[2] = 3 return x * 2 + 1 end\n"
	"local function leaf2(x, y, z) T[2] = 4 local a = x + y return a - z end\n"
	"local function leaf3(...) T[2] = 5 local a, b = ... return a, b end\n"
	"local function mid1(x)\n" /* 6 */
	"  T[2] = 6\n"
	"  local a = leaf1(x) T[2] = 6\n"
	"  local b, c = 1, leaf2(x, a, 3) T[2] = 6\n"
	"  local d = string.byte('abc', 2)\n"
	"  local e = leaf3(a, b) T[2] = 6\n"
	"  return a + b + c + d + e\n"
	"end\n"
	"local function mid2(x)\n" /* 14 */
	"  T[2] = 14\n"
	"  local p, q, r, s, t = 1, 2, 3, 4, 5\n"
	"  local a, b = leaf3(p, q, r, s) T[2] = 14\n"
	"  local d = math.max(p, q, r)\n"
	"  local e = leaf2(a, d, t) T[2] = 14\n"
	"  local f = leaf1(s) T[2] = 14\n"
	"  return e + f\n"
	"end\n"
	"local function fib(n)\n" /* 23 */
	"  T[2] = 23\n"
	"  if n < 2 then return n end\n"
	"  local a = fib(n - 1) T[2] = 23\n"
	"  local b = fib(n - 2) T[2] = 23\n"
	"  return a + b\n"
	"end\n"
	"function W.calls()\n" /* 30 */
	"  for i = 1, 200 do\n"
	"    T[2] = 30\n"
	"    mid1(i) T[2] = 30\n"
	"    mid2(i) T[2] = 30\n"
	"    math.floor(i / 2)\n"
	"  end\n"
	"  fib(12)\n"
	"  T[2] = 0\n"
	"end\n";
static const struct {
	uint32_t func, parents[3];
} call_tree[] = {
	{3, {6, 14, 0}},  {4, {6, 14, 0}},   {5, {6, 14, 0}}, {6, {30, 0, 0}},
	{14, {30, 0, 0}}, {23, {30, 23, 0}}, {30, {0, 0, 0}},
};

static const char *const prelude_others = "local T, resumed, other, burn = ...\n";
static const char *const others =
	"function W.nested()\n"
	"  local function level(n)\n"
	"    local s = 0\n"
	"    for i = 1, 30 do s = s + i % 7 end\n"
	"    if n > 0 then\n"
	"      local co = coroutine.create(level)\n"
	"      assert(coroutine.resume(co, n - 1))\n"
	"    end\n"
	"    coroutine.yield(s)\n"
	"    return s\n"
	"  end\n"
	"  local co = coroutine.wrap(function() level(6) end)\n"
	"  co() co()\n"
	"end\n"
	"function W.wrap()\n"
	"  local gen = coroutine.wrap(function()\n"
	"    for i = 1, 100 do\n"
	"      local s = tostring(i) .. 'x'\n"
	"      coroutine.yield(#s)\n"
	"    end\n"
	"  end)\n"
	"  for i = 1, 100 do local x = gen() + math.floor(i / 3) end\n"
	"end\n"
	"function W.fromc()\n"
	"  local co = coroutine.create(function()\n"
	"    for i = 1, 20 do\n"
	"      local s = string.rep('x', i)\n"
	"      burn(20)\n"
	"      coroutine.yield()\n"
	"    end\n"
	"  end)\n"
	"  assert(resumed(co))\n"
	"end\n"
	"function W.errors()\n"
	"  local co = coroutine.create(function()\n"
	"    for i = 1, 5 do\n"
	"      local ok, e = pcall(function() local x = i * 2 error('e' .. x) end)\n"
	"      coroutine.yield(ok)\n"
	"    end\n"
	"    local t = nil\n"
	"    return t.x\n"
	"  end)\n"
	"  for i = 1, 5 do assert(coroutine.resume(co)) end\n"
	"  assert(not coroutine.resume(co))\n"
	"end\n"
	"local mt = {__index = function(t, k) return k * 2 end, __add = function(a, b) return 3 "
	"end,\n"
	"  __lt = function() return true end, __concat = function(a, b) return 'c' end,\n"
	"  __newindex = function(t, k, v) rawset(t, 'x', v) end, __call = function(self, a) return "
	"a end}\n"
	"function W.meta()\n"
	"  local o = setmetatable({}, mt)\n"
	"  for i = 1, 50 do\n"
	"    local a = o[i] + (o + 1)\n"
	"    local b = o < setmetatable({}, mt)\n"
	"    local c = o .. 'x' o[i] = a\n"
	"    c = o(a)\n"
	"  end\n"
	"end\n"
	"function W.sort()\n"
	"  local t = {}\n"
	"  for i = 1, 60 do t[i] = (i * 7919) % 61 end\n"
	"  table.sort(t, function(a, b) return a < b end)\n"
	"end\n"
	"function W.gsub()\n"
	"  local n = 0\n"
	"  local s = ('hello world '):rep(8):gsub('%w+', function(w) n = n + #w return w .. n "
	"end)\n"
	"  s = s:gsub('o', {o = '0'}):upper():find('W0RLD', 1, true)\n"
	"end\n"
	"function W.gc()\n"
	"  local keep = {}\n"
	"  for i = 1, 300 do\n"
	"    keep[i % 50 + 1] = {i, {i}, tostring(i)}\n"
	"    local f = function() return keep end\n"
	"  end\n"
	"  if newproxy then\n"
	"    local p = newproxy(true) getmetatable(p).__gc = function() local x = #keep end\n"
	"  else\n"
	"    setmetatable({}, {__gc = function() local x = #keep end})\n"
	"  end\n"
	"  local co = coroutine.wrap(function() local t = {} for i = 1, 50 do t[i] = {} end end)\n"
	"  co()\n"
	"end\n"
	"function W.deep()\n"
	"  local function down(n) if n == 0 then return 0 end return 1 + down(n - 1) end\n"
	"  down(100)\n"
	"  local function c(n) if n == 0 then return 0 end return (select(2, pcall(c, n - 1))) "
	"end\n"
	"  c(20)\n"
	"end\n"
	"function W.tail()\n"
	"  local function loop(n, a) if n == 0 then return a end return loop(n - 1, a + n) end\n"
	"  loop(200, 0)\n"
	"end\n"
	"function W.strings()\n"
	"  for i = 1, 30 do\n"
	"    local s = string.rep('ab', 50)\n"
	"    local u = string.format('%s %d %g', s, i, i / 3)\n"
	"    local v = table.concat({u, s, i}, ',')\n"
	"    local w = v:sub(3, 20):upper():reverse()\n"
	"  end\n"
	"end\n"
	"function W.conly()\n"
	"  for i = 1, 20 do\n"
	"    if not setfenv then local co = coroutine.wrap(string.rep) co('xyz', 300)\n"
	"    local co = coroutine.wrap(burn) co(30) end\n"
	"    if not setfenv then local co = coroutine.wrap(coroutine.wrap(function(n) for i = 1, n "
	"do end end)) co(40) end\n"
	"  end\n"
	"end\n"
	"function W.vms() other(100) for i = 1, 100 do local x = i * 2 end end\n"
	"if coroutine.close then function W.close()\n"
	"  local co = coroutine.create(load([[\n"
	"    local x <close> = setmetatable({}, {__close = function() local s = 0 for i = 1, 50 do "
	"s = s + i end end})\n"
	"    coroutine.yield() ]]))\n"
	"  coroutine.resume(co) coroutine.close(co)\n"
	"end end\n"
	"function W.many()\n"
	"  local cos = {}\n"
	"  for i = 1, 20 do cos[i] = coroutine.wrap(function() while true do\n"
	"    local s = 0 for k = 1, 20 do s = s + k end coroutine.yield(s) end end) end\n"
	"  for r = 1, 10 do for i = 1, 20 do cos[i]() end end\n"
	"end\n";

/* ---- what came of it ---- */

struct result {
	uint64_t samples, edges, lua, found, phantom;
	uint64_t right[RULES];
	uint64_t ends[LB_END__MAX];
	uint64_t chains, chains_right;
	uint64_t lines[2], lines_right[2]; /* [1]: ip in luaV_execute */
	uint64_t funcs, funcs_right;
	uint64_t states[3]; /* I C G */
	uint64_t states_right;
};

static struct puc_proto *protos[64];
static uint32_t last_line;

static struct puc_proto *proto_of(uint64_t addr)
{
	size_t i;

	for (i = 0; i < 64 && protos[i]; i++)
		if (puc_proto_addr(protos[i]) == addr)
			return protos[i];
	if (i == 64)
		return NULL;
	if (puc_proto_read(&mem, &build.build.puc.puc, addr, &protos[i]))
		protos[i] = NULL;
	return protos[i];
}

static void forget_protos(void)
{
	size_t i;

	for (i = 0; i < 64; i++)
		if (protos[i])
			puc_proto_free(&protos[i]);
}

static bool verbose;

static bool line_right(const struct sample *s, const struct puc_proto *p)
{
	uint32_t pc = s->top[0].pc, truth = (uint32_t)s->line;
	int32_t line = puc_proto_line(p, pc);
	/* one of the line's first two instructions: GETUPVAL T, SETI or SETTABLE */
	bool storing =
		pc < 2 || puc_proto_line(p, pc - 1) != line || puc_proto_line(p, pc - 2) != line;

	if (line == (int32_t)truth)
		return true;
	if (truth == last_line) /* the loop goes round, or ends */
		return line == 2 || (storing && (line == 3 || line == (int32_t)last_line + 2));
	return storing && line == (int32_t)truth + 1;
}

static uint32_t func_of(const struct sample *s, uint32_t i)
{
	const struct puc_proto *p;

	if (i >= s->n || i >= TOP || LB_FRAME_KIND(&s->top[i]) != LB_FRAME_LUA)
		return 0;
	p = proto_of(LB_FRAME_PTR(&s->top[i]));
	return p ? (uint32_t)puc_proto_firstline(p) : 0;
}

static bool is_parent(uint32_t parent, uint32_t func)
{
	size_t i;

	for (i = 0; i < sizeof(call_tree) / sizeof(call_tree[0]); i++)
		if (call_tree[i].func == func)
			return call_tree[i].parents[0] == parent ||
			       call_tree[i].parents[1] == parent ||
			       call_tree[i].parents[2] == parent;
	return false;
}

static bool func_right(const struct sample *s)
{
	uint32_t top = LB_FRAME_KIND(&s->top[0]) != LB_FRAME_LUA;
	uint32_t func = func_of(s, top), below = func_of(s, top + 1), truth = (uint32_t)s->func;

	if (top && func_of(s, 1) == 0)
		return false;
	return func == truth || is_parent(func, truth) || (below == truth && !top);
}

static void judge(const char *workload, const struct sample *s, struct result *r)
{
	const struct puc_proto *p;
	int i;

	r->samples++;
	r->ends[s->end]++;
	if (!s->ran) {
		r->phantom += s->end != LB_END_OUTSIDE;
		return;
	}
	if (s->edge) {
		r->edges++;
		return;
	}
	r->lua++;
	r->found += s->end == LB_END_RESOLVED;
	for (i = 0; i < RULES; i++)
		r->right[i] += s->right >> i & 1;
	if (s->end != LB_END_RESOLVED || !(s->right & 1)) {
		if (verbose)
			printf("  %s: end %u right %u ip %#lx state %c n %u\n", workload, s->end,
			       s->right, (unsigned long)(s->ip - bias), s->state, s->n);
		return;
	}
	r->chains++;
	r->chains_right += s->stacks == s->expected;
	if (verbose && s->stacks != s->expected)
		printf("  %s: %u stacks for %u ip %#lx state %c n %u\n", workload, s->stacks,
		       s->expected, (unsigned long)(s->ip - bias), s->state, s->n);
	r->states[s->state == 'I' ? 0 : s->state == 'C' ? 1 : 2]++;
	r->states_right += (s->state == 'G') == s->gc;
	if (verbose && (s->state == 'G') != s->gc)
		printf("  %s: state %c, gc %d ip %#lx\n", workload, s->state, s->gc,
		       (unsigned long)(s->ip - bias));
	p = LB_FRAME_KIND(&s->top[0]) == LB_FRAME_LUA ? proto_of(LB_FRAME_PTR(&s->top[0])) : NULL;
	if (s->line && p && !strcmp(puc_proto_chunkname(p, NULL), "=lines")) {
		bool good = line_right(s, p);

		r->lines[s->in_vm]++;
		r->lines_right[s->in_vm] += good;
		if (verbose && !good)
			printf("  %s: line %d (pc %u) for %u ip %#lx\n", workload,
			       puc_proto_line(p, s->top[0].pc), s->top[0].pc, (unsigned)s->line,
			       (unsigned long)(s->ip - bias));
	}
	if (s->func) {
		bool good = func_right(s);

		r->funcs++;
		r->funcs_right += good;
		if (verbose && !good)
			printf("  %s: func %u %u %u for %u ip %#lx\n", workload, func_of(s, 0),
			       func_of(s, 1), func_of(s, 2), (unsigned)s->func,
			       (unsigned long)(s->ip - bias));
	}
}

static void tell(const char *workload, const struct result *r)
{
	int i;

	printf("workload=%s samples=%lu edge=%lu lua=%lu found=%lu phantom=%lu", workload,
	       (unsigned long)r->samples, (unsigned long)r->edges, (unsigned long)r->lua,
	       (unsigned long)r->found, (unsigned long)r->phantom);
	for (i = 0; i < RULES; i++)
		printf(" %s=%lu", rule_names[i], (unsigned long)r->right[i]);
	printf(" chains=%lu chains_right=%lu vm_lines=%lu vm_lines_right=%lu lines=%lu "
	       "lines_right=%lu funcs=%lu funcs_right=%lu I=%lu C=%lu G=%lu states_right=%lu ends=",
	       (unsigned long)r->chains, (unsigned long)r->chains_right, (unsigned long)r->lines[1],
	       (unsigned long)r->lines_right[1], (unsigned long)r->lines[0],
	       (unsigned long)r->lines_right[0], (unsigned long)r->funcs,
	       (unsigned long)r->funcs_right, (unsigned long)r->states[0],
	       (unsigned long)r->states[1], (unsigned long)r->states[2],
	       (unsigned long)r->states_right);
	for (i = 0; i < LB_END__MAX; i++)
		printf("%s%lu", i ? "," : "", (unsigned long)r->ends[i]);
	printf("\n");
	fflush(stdout);
}

/* ---- set-up ---- */

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

		if (ph->p_type == PT_LOAD && ph->p_flags & PF_X)
			find_gc_step(bias + ph->p_vaddr, bias + ph->p_vaddr + ph->p_memsz);
	}
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

static void run_chunk(lua_State *L, const char *a, const char *b)
{
	char *src = NULL;

	if (asprintf(&src, "%s%s", a, b) < 0 || luaL_loadbuffer(L, src, strlen(src), "=chunk")) {
		fprintf(stderr, "oracle: %s\n", lua_tostring(L, -1));
		exit(1);
	}
	free(src);
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
	int i;

	luaL_openlibs(L);
	lua_createtable(L, 4, 0);
	for (i = 1; i <= 4; i++) {
		lua_pushinteger(L, 0);
		lua_rawseti(L, -2, i);
	}
	find_slots(L);
	lua_setglobal(L, "T_");
	run_chunk(L, prelude, lines);
	run_chunk(L, calls, "");
	run_chunk(L, prelude_others, others);
	lua_getglobal(L, "last_line");
	last_line = (uint32_t)lua_tointeger(L, -1);
	lua_pop(L, 1);
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
	struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};

	ev._sigev_un._tid = (int)syscall(SYS_gettid);
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

static void run(lua_State *L, const char *name, enum how how, double until)
{
	while (now() < until && is_lua_function(L, name)) {
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

static void run_workload(lua_State *L, size_t w, double seconds, struct result *all)
{
	const uint64_t *from;
	struct result r = {0};
	sigset_t set;
	uint64_t *to;
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
	run(L, workloads[w].function, workloads[w].how, now() + seconds);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (i = 0; i < nsamples; i++)
		judge(workloads[w].name, &samples[i], &r);
	forget_protos();
	tell(workloads[w].name, &r);
	for (i = 0, from = (const uint64_t *)&r, to = (uint64_t *)all;
	     i < sizeof(r) / sizeof(*from); i++)
		to[i] += from[i];
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0.3;
	struct result all = {0};
	sigset_t set;
	lua_State *L;
	size_t w;

	verbose = getenv("VERBOSE") != NULL;
	recognise();
	find_stack();
	L = set_up();
	samples = calloc(MAX_SAMPLES, sizeof(*samples));
	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	sigprocmask(SIG_BLOCK, &set, NULL);
	start_timer();
	for (w = 0; w < sizeof(workloads) / sizeof(workloads[0]); w++)
		if (argc < 3 || !strcmp(argv[2], workloads[w].name))
			run_workload(L, w, seconds, &all);
	timer_delete(timer);
	tell("all", &all);
	return 0;
}
