// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: modes MODE [SECONDS]
 *
 * A program that uses Lua (LuaJIT; in puc/modes.c PUC Lua) in ways that only hosts can. It says
 * "ready", waits for a line on stdin, works for SECONDS of CPU time (per thread), and prints what
 * each part took: "NAME TID SECONDS". SIGUSR1 ends it early.
 *
 *     threads  four threads, each with a VM of its own; thread k runs lua function worker_k
 *     nested   one thread, two VMs: a C function that the outer one calls runs the inner one
 *     turns    one VM, three threads that take turns under a lock; thread k calls moved_k
 *     idle     one thread runs Lua, then burns time in C: after a return, after an error, after
 *              a yield, and with the VM closed
 *     failed   one thread calls functions, protected, on a coroutine that has failed, on one that has yielded, and on a
 *              main thread that an error left by lua_atpanic(), by turns
 *     fork     runs Lua, and so does its child
 *     burn     one thread runs Lua, another never touches it
 *     many     one thread, six VMs by turns: more than are remembered per thread
 *     tenants  one thread, 32 VMs at random, each in string.gsub() for most of its time; C code between two of them
 *     direct   one thread, six VMs by turns, whose C functions the host calls by lua_pcall(): no Lua function runs
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef resume_vm
#define resume_vm(co, n) lua_resume(co, n)
#endif

static double seconds = 1;
static volatile sig_atomic_t stop;
static volatile double sink;

static double cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void print_part(const char *name, double took)
{
	printf("%s %d %.6f\n", name, (int)syscall(SYS_gettid), took);
	fflush(stdout);
}

/* Burns CPU time in C. */
static void burn(double until)
{
	int i;

	while (cpu() < until)
		for (i = 0; i < 20000; i++)
			sink = sink * 0.999 + i;
}

static const char *const code = "local name = ...\n"
				"return assert((loadstring or load)(([[\n"
				"local function NAME(n)\n"
				"  local s = 0\n"
				"  for i = 1, n do\n"
				"    s = s + i % 7\n"
				"  end\n"
				"  return s\n"
				"end\n"
				"return NAME]]):gsub('NAME', name), '=' .. name))()\n";

/* A VM with a function of this name on its stack. */
static lua_State *vm_with(const char *name)
{
	lua_State *L = luaL_newstate();

	luaL_openlibs(L);
	if (luaL_loadstring(L, code))
		abort();
	lua_pushstring(L, name);
	lua_call(L, 1, 1);
	return L;
}

/*
 * Drawn anew each time, and `more` is to be most of it: the profiler's timer falls in step with
 * rounds that are about as long as each other.
 */
static int uneven(int least, int more)
{
	static _Thread_local unsigned int random = 1;

	random = random * 1103515245 + 12345;
	return least + (int)(random >> 16) % more;
}

/* Calls the function on top of the stack for half a millisecond or so. */
static void call(lua_State *L)
{
	lua_pushvalue(L, -1);
	lua_pushinteger(L, uneven(1, 40000));
	lua_call(L, 1, 0);
}

static double call_until(lua_State *L, double until)
{
	double start = cpu();

	while (!stop && cpu() < until)
		call(L);
	return cpu() - start;
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *worker(void *arg)
{
	char name[32];
	lua_State *L;

	snprintf(name, sizeof(name), "worker_%ld", (long)arg);
	L = vm_with(name);
	print_part(name, call_until(L, cpu() + seconds));
	lua_close(L);
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];
	long i;

	for (i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, worker, (void *)(i + 1));
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

/* ---- nested ---------------------------------------------------------------------------------- */

static lua_State *inner_vm;
static double inner_time;

static int run_inner(lua_State *L)
{
	double start = cpu();
	int i = uneven(5, 11);

	(void)L;
	while (i--)
		call(inner_vm);
	inner_time += cpu() - start;
	return 0;
}

static void nested(void)
{
	lua_State *outer = vm_with("outer_work");
	double start = cpu(), all;

	inner_vm = vm_with("inner_work");
	lua_pushcfunction(outer, run_inner);
	lua_setglobal(outer, "run_inner");
	luaL_loadstring(outer, "local work = ...\n"
			       "local function caller(n)\n"
			       "  run_inner()\n"
			       "  for i = 1, 5 do work(n) end\n"
			       "end\n"
			       "return caller\n");
	lua_pushvalue(outer, -2);
	lua_call(outer, 1, 1);
	all = call_until(outer, start + seconds);
	print_part("inner_work", inner_time);
	print_part("outer_work", all - inner_time);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lua_State *shared;

static void *taker(void *arg)
{
	double took = 0;
	char name[32];

	snprintf(name, sizeof(name), "moved_%ld", (long)arg);
	while (took < seconds) {
		pthread_mutex_lock(&lock);
		lua_getglobal(shared, name);
		took += call_until(shared, cpu() + 0.003);
		lua_pop(shared, 1);
		pthread_mutex_unlock(&lock);
		usleep(500); /* let the others have it */
	}
	print_part(name, took);
	return NULL;
}

static void turns(void)
{
	pthread_t t[3];
	char name[32];
	long i;

	shared = vm_with("unused");
	for (i = 1; i <= 3; i++) {
		snprintf(name, sizeof(name), "moved_%ld", i);
		luaL_loadstring(shared, code);
		lua_pushstring(shared, name);
		lua_call(shared, 1, 1);
		lua_setglobal(shared, name);
	}
	for (i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, taker, (void *)(i + 1));
	for (i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
}

/* ---- failed ---------------------------------------------------------------------------------- */

static jmp_buf panicked;

static int on_panic(lua_State *L)
{
	(void)L;
	longjmp(panicked, 1);
}

/* A coroutine that runs this text once. */
static lua_State *coroutine_of(lua_State *L, const char *text)
{
	lua_State *co = lua_newthread(L);

	if (luaL_loadstring(co, text))
		abort();
	if (!resume_vm(co, 0))
		abort();
	lua_settop(co, 0);
	return co;
}

/* Calls the VM's global function f on one of its threads. */
static double call_on(lua_State *L)
{
	double start = cpu();

	lua_getglobal(L, "f");
	lua_pushinteger(L, uneven(20000, 40000));
	if (lua_pcall(L, 1, 0, 0))
		abort();
	return cpu() - start;
}

/* A VM whose global function f has this name, and runs nothing. */
static lua_State *vm_to_call(const char *name)
{
	lua_State *L = vm_with(name);

	lua_setglobal(L, "f");
	return L;
}

static void failed(void)
{
	lua_State *dead = coroutine_of(vm_to_call("on_failed"), "error('x')");
	lua_State *asleep = coroutine_of(vm_to_call("on_yielded"), "coroutine.yield()");
	lua_State *left = vm_to_call("after_panic");
	double took[3] = {0}, end = cpu() + seconds;

	lua_atpanic(left, on_panic);
	if (!setjmp(panicked)) {
		lua_getglobal(left, "error");
		lua_call(left, 0, 0);
	}
	while (cpu() < end) {
		took[0] += call_on(dead);
		took[1] += call_on(asleep);
		took[2] += call_on(left);
	}
	print_part("on_failed", took[0]);
	print_part("on_yielded", took[1]);
	print_part("after_panic", took[2]);
}

/* ---- idle ------------------------------------------------------------------------------------ */

static void idle(void)
{
	lua_State *L = vm_with("busy"), *co;
	double lua = 0, c = 0, t;
	int i;

	lua += call_until(L, cpu() + seconds / 8);
	t = cpu();
	burn(t + seconds / 8);
	c += cpu() - t;

	if (luaL_loadstring(L, "local f = ... f(1000000) error('x')"))
		abort();
	for (i = 0; i < 20; i++) { /* an error leaves the stack of the VM as it was */
		t = cpu();
		lua_pushvalue(L, -1);
		lua_pushvalue(L, -3);
		if (!lua_pcall(L, 1, 0, 0))
			abort();
		lua_pop(L, 1);
		lua += cpu() - t;
		t = cpu();
		burn(t + seconds / 80);
		c += cpu() - t;
	}
	lua_pop(L, 1);

	co = lua_newthread(L);
	luaL_loadstring(co, "local f = ... while true do f(1000000) coroutine.yield() end");
	lua_pushvalue(L, -2);
	lua_xmove(L, co, 1);
	for (i = 0; i < 20; i++) {
		t = cpu();
		if (resume_vm(co, i ? 0 : 1) != LUA_YIELD)
			abort();
		lua += cpu() - t;
		t = cpu();
		burn(t + seconds / 80);
		c += cpu() - t;
	}
	lua_close(L);
	t = cpu();
	burn(t + seconds / 8);
	c += cpu() - t;
	print_part("lua", lua);
	print_part("c", c);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static void forks(void)
{
	lua_State *L = vm_with("parent_work");
	pid_t child = fork();

	if (!child) {
		lua_State *own = vm_with("child_work");

		print_part("child_work", call_until(own, cpu() + seconds));
		_exit(0);
	}
	print_part("parent_work", call_until(L, cpu() + seconds));
	waitpid(child, NULL, 0);
}

/* ---- burn ------------------------------------------------------------------------------------ */

static void *burner(void *arg)
{
	(void)arg;
	burn(cpu() + seconds);
	print_part("c", seconds);
	return NULL;
}

static void burns(void)
{
	lua_State *L = vm_with("busy");
	pthread_t t;

	pthread_create(&t, NULL, burner, NULL);
	print_part("busy", call_until(L, cpu() + seconds));
	pthread_join(t, NULL);
}

/* ---- many ------------------------------------------------------------------------------------ */

static void many(void)
{
	double took[6] = {0}, end;
	lua_State *vm[6];
	char name[32];
	int i;

	for (i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "vm_%d", i);
		vm[i] = vm_with(name);
	}
	end = cpu() + seconds;
	while (cpu() < end)
		for (i = 0; i < 6; i++)
			took[i] += call_until(vm[i], cpu() + 0.0017);
	for (i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "vm_%d", i);
		print_part(name, took[i]);
	}
}

/* ---- tenants --------------------------------------------------------------------------------- */

#define TENANTS 32

static const char *const tenant =
	"local text = ('the quick brown fox '):rep(1000)\n"
	"return function(n) return (text:sub(1, n):gsub('%w+', 'x')) end\n";

static void tenants(void)
{
	double took = 0, idle = 0, start, now;
	lua_State *vm[TENANTS];
	int i;

	for (i = 0; i < TENANTS; i++) {
		vm[i] = luaL_newstate();
		luaL_openlibs(vm[i]);
		if (luaL_loadstring(vm[i], tenant))
			abort();
		lua_call(vm[i], 0, 1);
	}
	for (start = cpu(); took + idle < seconds; start = now) {
		lua_State *L = vm[uneven(0, TENANTS)];

		lua_pushvalue(L, -1);
		lua_pushinteger(L, uneven(1, 20000));
		lua_call(L, 1, 0);
		now = cpu();
		took += now - start;
		burn(now + uneven(0, 500) / 1e6);
		start = now;
		now = cpu();
		idle += now - start;
	}
	print_part("lua", took);
	print_part("c", idle);
}

/* ---- direct ---------------------------------------------------------------------------------- */

#define DIRECT 6

static int burn_in_vm(lua_State *L)
{
	burn(cpu() + lua_tonumber(L, 1));
	return 0;
}

/* lua_pcall(), whose jmp_buf gets a value from the caller's register that is no address. */
static __attribute__((noinline)) int pcall_with_number(lua_State *L)
{
	register long number __asm__("r15") = -1;
	int r;

	__asm__ volatile("" : "+r"(number));
	r = lua_pcall(L, 1, 0, 0);
	__asm__ volatile("" : : "r"(number));
	return r;
}

static void direct(void)
{
	double took = 0, idle = 0, t;
	lua_State *vm[DIRECT];
	int i;

	for (i = 0; i < DIRECT; i++)
		vm[i] = luaL_newstate();
	for (i = 0; took + idle < seconds; i++) {
		lua_State *L = vm[i % DIRECT];

		t = cpu();
		lua_pushcfunction(L, burn_in_vm);
		lua_pushnumber(L, uneven(500, 3000) / 1e6);
		if (pcall_with_number(L))
			abort();
		took += cpu() - t;
		t = cpu();
		burn(t + uneven(500, 3000) / 1e6);
		idle += cpu() - t;
	}
	print_part("lua", took);
	print_part("c", idle);
}

static void on_stop(int sig)
{
	(void)sig;
	stop = 1;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {
		{"threads", threads}, {"nested", nested}, {"turns", turns}, {"idle", idle},
		{"failed", failed},   {"fork", forks},	  {"burn", burns},  {"many", many},
		{"tenants", tenants}, {"direct", direct},
	};
	char line[16];
	size_t i;

	if (argc < 2)
		return 2;
	if (argc > 2)
		seconds = atof(argv[2]);
	signal(SIGUSR1, on_stop);
	printf("ready\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[1], modes[i].name)) {
			modes[i].run();
			return 0;
		}
	return 2;
}
