// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: hidden MODE SECONDS
 *
 * C functions that are known only because their VM ran on the thread before: they use the
 * register in which the VM has its state, and their frames are larger than what is searched of the
 * C stack. Says "ready", waits for a line on stdin, works for SECONDS of CPU time (per thread), and
 * prints what each took: "NAME TID SECONDS".
 *
 *     places  two threads on one CPU, each with a VM "host"; their numbers differ by a multiple of
 *             512, so that what is known of them may have the same place
 *     moves   a VM "outer" calls C code that runs a VM "inner" on another CPU, whose C
 *             function goes back to the first one, where "inner" was never seen
 */
#include <alloca.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PLACES 512
#define DEEP (64 << 10)

static double seconds, inner_took;
static int cpus[2];
static lua_State *inner;
static pid_t first;
static pthread_barrier_t begun, go;

static double cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void print_part(const char *name, double took)
{
	printf("%s %d %.6f\n", name, (int)gettid(), took);
	fflush(stdout);
}

static void one_cpu(cpu_set_t *set, int cpu)
{
	CPU_ZERO(set);
	CPU_SET(cpu, set);
}

static void run_on(int cpu)
{
	cpu_set_t set;

	one_cpu(&set, cpu);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Takes some ms on CPU `there`, then goes to `then`; r14 is none of the VM's all the while. */
static __attribute__((noinline)) void spin(volatile char *frame, int there, int then)
{
	long n = 5000000, call = SYS_sched_setaffinity;
	cpu_set_t sets[2];
	cpu_set_t *set = &sets[0];

	frame[0] = 1;
	one_cpu(&sets[0], there);
	one_cpu(&sets[1], then);
	__asm__ volatile("xor %%r14d, %%r14d\n"
			 "syscall\n"
			 "1: dec %[n]\n"
			 "jnz 1b\n"
			 "mov %[again], %%eax\n"
			 "add %[size], %%rdx\n"
			 "syscall\n"
			 : "+a"(call), [n] "+r"(n), "+d"(set)
			 : "D"(0L), "S"(sizeof(sets[0])), [again] "i"(SYS_sched_setaffinity),
			   [size] "i"(sizeof(sets[0]))
			 : "r14", "rcx", "r11", "memory", "cc");
}

static void hide(int there, int then)
{
	volatile char *frame = alloca(DEEP);
	size_t i;

	for (i = 0; i < DEEP; i += 1024)
		frame[i] = 0;
	spin(frame, there, then);
}

static int hidden(lua_State *L)
{
	(void)L;
	hide(cpus[0], cpus[0]);
	return 0;
}

static int over(lua_State *L)
{
	lua_pushboolean(L, cpu_time() > seconds);
	return 1;
}

static int back(lua_State *L)
{
	(void)L;
	hide(cpus[0], cpus[1]);
	return 0;
}

static int nest(lua_State *L)
{
	double t;

	(void)L;
	run_on(cpus[1]);
	t = cpu_time();
	lua_getglobal(inner, "main");
	if (lua_pcall(inner, 0, 0, 0))
		exit(1);
	inner_took += cpu_time() - t;
	run_on(cpus[0]);
	return 0;
}

static lua_State *vm(const char *name, const char *code)
{
	lua_State *L = luaL_newstate();

	luaL_openlibs(L);
	lua_register(L, "hidden", hidden);
	lua_register(L, "back", back);
	lua_register(L, "nest", nest);
	lua_register(L, "over", over);
	if (luaL_loadbuffer(L, code, strlen(code), name))
		exit(1);
	return L;
}

static const char host[] = "local x = 0\n"
			   "repeat\n"
			   "  for i = 1, 300000 do x = x + i % 7 end\n"
			   "  hidden()\n"
			   "until over()\n";
static const char outer_code[] = "local x = 0\n"
				 "repeat\n"
				 "  for i = 1, 300000 do x = x + i % 7 end\n"
				 "  nest()\n"
				 "until over()\n";
static const char inner_code[] = "function main()\n"
				 "  local x = 0\n"
				 "  for i = 1, 300000 do x = x + i % 7 end\n"
				 "  back()\n"
				 "end\n";

static void work(void)
{
	lua_State *L = vm("=host", host);
	double t;

	pthread_barrier_wait(&begun);
	pthread_barrier_wait(&go);
	t = cpu_time();
	if (lua_pcall(L, 0, 0, 0))
		exit(1);
	print_part("host", cpu_time() - t);
}

/* Ends at once, but for the one whose number is wanted. */
static void *try_number(void *found)
{
	if ((gettid() - first) % PLACES)
		return NULL;
	*(bool *)found = true;
	work();
	return NULL;
}

static void places(void)
{
	bool found = false;
	pthread_t thread;

	run_on(cpus[0]);
	first = gettid();
	while (!found) {
		if (pthread_create(&thread, NULL, try_number, &found))
			exit(1);
		while (!__atomic_load_n(&found, __ATOMIC_ACQUIRE) &&
		       pthread_tryjoin_np(thread, NULL))
			sched_yield();
	}
	work();
	pthread_join(thread, NULL);
}

static void wait_for_go(void)
{
	puts("ready");
	fflush(stdout);
	getchar();
}

static void *start(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&begun);
	wait_for_go();
	pthread_barrier_wait(&go);
	return NULL;
}

static void moves(void)
{
	lua_State *outer = vm("=outer", outer_code);
	double t;

	inner = vm("=inner", inner_code);
	lua_call(inner, 0, 0);
	run_on(cpus[0]);
	wait_for_go();
	t = cpu_time();
	if (lua_pcall(outer, 0, 0, 0))
		exit(1);
	print_part("outer", cpu_time() - t - inner_took);
	print_part("inner", inner_took);
}

int main(int argc, char **argv)
{
	pthread_t starter;
	cpu_set_t set;
	int cpu, n = 0;

	if (argc != 3 || sched_getaffinity(0, sizeof(set), &set))
		return 2;
	for (cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[n++] = cpu;
	seconds = atof(argv[2]);
	if (!strcmp(argv[1], "moves")) {
		moves();
		return 0;
	}
	pthread_barrier_init(&begun, NULL, 3);
	pthread_barrier_init(&go, NULL, 3);
	if (pthread_create(&starter, NULL, start, NULL))
		return 1;
	places();
	pthread_join(starter, NULL);
	return 0;
}
