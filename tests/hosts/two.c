// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: two MODE SECONDS LIBRARY NAME [LIBRARY NAME]...
 *
 * A program with many Lua libraries, of different versions or copies of one, in it, each loaded as a plugin's
 * own: it sees its own lua_* functions and nobody else does. Each has a VM that runs a function
 * NAME of a chunk =NAME. It says "ready", waits for a line on stdin, works for SECONDS of CPU time
 * (per thread), and prints what each took: "NAME TID SECONDS".
 *
 *     turns    one thread runs all of them by turns
 *     threads  a thread for each
 *     late     one thread runs one after the other for SECONDS each; all but the first are loaded
 *              when their turn comes; each runs a function "warm" of a chunk =warm until there is
 *              another line on stdin
 *     sudden   the same without "warm": a library runs its function as soon as it is loaded
 *     unloaded one thread: each in turn is loaded, runs for 20 ms, and is unloaded, for SECONDS in all
 *     inside   one thread: the first calls a C function that runs the second, which calls one that
 *              runs the third; the others are idle
 */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_VMS 300

/* As far as all versions agree: a header of one version is no good for another. */
typedef struct lua_State lua_State;
typedef int (*lua_CFunction)(lua_State *L);

struct vm {
	const char *name;
	lua_State *L;
	double took;  /* inside: with those that it called */
	void *handle; /* of dlopen() */

	void (*close)(lua_State *L);
	void (*pushvalue)(lua_State *L, int index);
	void (*pushnumber)(lua_State *L, double number);
	/* lua_call() is a macro for lua_callk() from 5.2 on */
	void (*call)(lua_State *L, int nargs, int nresults);
	void (*callk)(lua_State *L, int nargs, int nresults, long ctx, void *k);
};

static struct vm vms[MAX_VMS];
static int nvms;
static double seconds = 1;

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

static void *symbol(void *library, const char *name)
{
	void *p = dlsym(library, name);

	if (!p) {
		fprintf(stderr, "two: %s\n", dlerror());
		exit(1);
	}
	return p;
}

static void call(const struct vm *vm, int nargs, int nresults)
{
	if (vm->callk)
		vm->callk(vm->L, nargs, nresults, 0, NULL);
	else
		vm->call(vm->L, nargs, nresults);
}

/* Calls the VM's function for up to five milliseconds, so that the time outside of it, most of it in cpu(), is
 * small beside it. Each call's length is drawn at random from a wide range: with calls of equal length, the
 * sampling timer would stay in phase with them, and samples would not be independent. */
static void work(struct vm *vm)
{
	static _Thread_local unsigned int random = 1;
	double start = cpu();

	random = random * 1103515245 + 12345;
	vm->pushvalue(vm->L, -1);
	vm->pushnumber(vm->L, 1 + (random >> 12) % 400000);
	call(vm, 1, 0);
	vm->took += cpu() - start;
}

static int run_second(lua_State *L)
{
	(void)L;
	work(&vms[1]);
	return 0;
}

static int run_third(lua_State *L)
{
	(void)L;
	work(&vms[2]);
	return 0;
}

static const char *const code = "local name, inner = ...\n"
				"return assert((loadstring or load)(([[\n"
				"local inner = ...\n"
				"local function NAME(n)\n"
				"  local s = 0\n"
				"  for i = 1, n do\n"
				"    s = s + i % 7\n"
				"  end\n"
				"  if inner then inner() end\n"
				"  return s\n"
				"end\n"
				"return NAME]]):gsub('NAME', name), '=' .. name))(inner)\n";

static void open_vm(struct vm *vm, const char *path, const char *name, lua_CFunction inner)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	lua_State *(*newstate)(void);
	void (*openlibs)(lua_State * L);
	int (*loadstring)(lua_State * L, const char *text);
	void (*pushstring)(lua_State * L, const char *text);
	void (*pushcclosure)(lua_State * L, lua_CFunction f, int n);

	if (!library) {
		fprintf(stderr, "two: %s\n", dlerror());
		exit(1);
	}
	*(void **)&newstate = symbol(library, "luaL_newstate");
	*(void **)&openlibs = symbol(library, "luaL_openlibs");
	*(void **)&loadstring = symbol(library, "luaL_loadstring");
	*(void **)&pushstring = symbol(library, "lua_pushstring");
	*(void **)&pushcclosure = symbol(library, "lua_pushcclosure");
	vm->handle = library;
	*(void **)&vm->close = symbol(library, "lua_close");
	*(void **)&vm->pushvalue = symbol(library, "lua_pushvalue");
	*(void **)&vm->pushnumber = symbol(library, "lua_pushnumber");
	*(void **)&vm->callk = dlsym(library, "lua_callk");
	if (!vm->callk)
		*(void **)&vm->call = symbol(library, "lua_call");
	vm->name = name;
	vm->L = newstate();
	openlibs(vm->L);
	if (loadstring(vm->L, code))
		abort();
	pushstring(vm->L, name);
	if (inner)
		pushcclosure(vm->L, inner, 0);
	call(vm, inner ? 2 : 1, 1);
}

static void turns(void)
{
	double end = cpu() + seconds;
	int i;

	while (cpu() < end)
		for (i = 0; i < nvms; i++)
			work(&vms[i]);
	for (i = 0; i < nvms; i++)
		print_part(vms[i].name, vms[i].took);
}

static void *worker(void *arg)
{
	double end = cpu() + seconds;
	struct vm *vm = arg;

	while (cpu() < end)
		work(vm);
	print_part(vm->name, vm->took);
	return NULL;
}

static void threads(void)
{
	pthread_t t[MAX_VMS];
	int i;

	for (i = 0; i < nvms; i++)
		pthread_create(&t[i], NULL, worker, &vms[i]);
	for (i = 0; i < nvms; i++)
		pthread_join(t[i], NULL);
}

/* In another VM of the library, until there is a line on stdin. */
static void warm_up(const char *library)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	struct vm warm = {};
	char line[16];

	open_vm(&warm, library, "warm", NULL);
	do
		work(&warm);
	while (poll(&input, 1, 0) <= 0);
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

static void late(char **libraries, int warms_up)
{
	int i;

	for (i = 0; i < nvms; i++) {
		if (i) {
			if (warms_up)
				warm_up(libraries[2 * i]);
			open_vm(&vms[i], libraries[2 * i], libraries[2 * i + 1], NULL);
		}
		worker(&vms[i]);
	}
}

static void unloaded(char **libraries)
{
	double end = cpu() + seconds;
	int i;

	for (i = 0; cpu() < end; i = (i + 1) % nvms) {
		double stop = cpu() + 0.02;

		if (!vms[i].handle)
			open_vm(&vms[i], libraries[2 * i], libraries[2 * i + 1], NULL);
		while (cpu() < stop)
			work(&vms[i]);
		vms[i].close(vms[i].L);
		dlclose(vms[i].handle);
		vms[i].handle = NULL;
	}
	for (i = 0; i < nvms; i++)
		print_part(vms[i].name, vms[i].took);
}

static void inside(void)
{
	double end = cpu() + seconds;
	int i;

	while (cpu() < end)
		work(&vms[0]);
	for (i = 0; i < nvms; i++)
		print_part(vms[i].name, vms[i].took - (i + 1 < nvms ? vms[i + 1].took : 0));
}

int main(int argc, char **argv)
{
	static const lua_CFunction inner[MAX_VMS] = {run_second, run_third};
	int i, nest, sudden, swap, at_once;
	char line[16];

	if (argc < 5 || argc > 3 + 2 * MAX_VMS || argc % 2 == 0)
		return 2;
	nest = !strcmp(argv[1], "inside");
	seconds = atof(argv[2]);
	nvms = (argc - 3) / 2;
	sudden = !strcmp(argv[1], "sudden");
	swap = !strcmp(argv[1], "unloaded");
	at_once = swap || sudden || !strcmp(argv[1], "late") ? 1 : nvms;
	for (i = 0; i < at_once; i++)
		open_vm(&vms[i], argv[3 + 2 * i], argv[4 + 2 * i],
			nest && i + 1 < nvms ? inner[i] : NULL);
	setvbuf(stdin, NULL, _IONBF, 0); /* poll() sees all that was not read */
	printf("ready\n");
	fflush(stdout);
	if (at_once < nvms && !sudden && !swap)
		warm_up(argv[3]);
	else if (!fgets(line, sizeof(line), stdin))
		return 1;
	if (nest)
		inside();
	else if (swap)
		unloaded(argv + 3);
	else if (at_once < nvms)
		late(argv + 3, !sudden);
	else if (!strcmp(argv[1], "threads"))
		threads();
	else
		turns();
	return 0;
}
