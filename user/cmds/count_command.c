// SPDX-License-Identifier: BSD-2-Clause
/* count of a command: its Lua interpreters load the hook module, and its calls by function are
 * printed when it has ended. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

#include "base/outfile.h"
#include "base/signals.h"
#include "command.h"
#include "count_command.h"
#include "output.h"
#include "hook/hook.h"
#include "out/call_table.h"
#include "proc/launch.h"

static const struct {
	uint32_t flag; /* of enum hook_flag */
	const char *sentence;
} limits[] = {
	{HOOK_PROGRAM_HOOK,
	 "the program has set a hook (debug.sethook): calls that its hook function makes are not "
	 "counted"},
	{HOOK_REPLACED,
	 "C code has put another hook in the place of luabpf's: later calls are not counted"},
	{HOOK_REALLOCATED,
	 "C code has replaced the allocator: calls of a function that was collected may stand at "
	 "another one"},
	{HOOK_JIT_HIDES,
	 "this LuaJIT compiles calls in spite of a call hook: those in compiled code are not "
	 "counted; run it with -joff"},
	{HOOK_FULL, "there was no room for all functions: calls of the others stand at (other)"},
	{HOOK_FINALIZERS, "the program may have finalizers (__gc): Lua runs no hook in them, so "
			  "that calls there are "
			  "not counted"},
	{HOOK_LATE,
	 "the hook module was loaded by code that ran already: calls before, and in coroutines "
	 "that were made before, are not counted"},
};

/* A copy of the bytes as a string; NULL if there are none. */
static int copy_bytes(const struct hook_state *state, struct hook_bytes bytes, char **out)
{
	const char *data;
	size_t len;

	data = hook_state_bytes(state, bytes, &len);
	*out = len ? strndup(data, len) : NULL;
	return len && !*out ? -ENOMEM : 0;
}

/* A C function's file, as profiles have it. */
static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/*
 * Names are chosen as in a profile, each function being the one frame of a stack. Functions of one
 * line differ in their shape.
 */
static int add_function(struct prof *prof, const struct hook_state *state,
			const struct hook_func *func)
{
	char *name __free = NULL, *source __free = NULL;
	struct prof_frame frame = {.kind = PROF_OTHER, .line = -1};
	const struct prof_labels labels = {.vmstate = 'I'};
	uint32_t id;
	int ret;

	if (copy_bytes(state, func->name, &name) || copy_bytes(state, func->source, &source))
		return -ENOMEM;
	if (func->kind == HOOK_LUA || func->kind == HOOK_MAIN) {
		frame.kind = PROF_LUA;
		frame.callname = name;
		frame.chunk = source;
		frame.firstline = func->line > INT32_MAX ? 0 : (int32_t)func->line;
		frame.shape = (uint32_t)func->identity;
	} else if (func->kind == HOOK_C) {
		frame.kind = func->identity ? PROF_C : PROF_BUILTIN;
		frame.symbol = name || func->identity ? name : "?";
		frame.chunk = frame.kind == PROF_C ? base_name(source) : NULL;
		frame.addr = func->identity;
	}
	ret = prof_frame_id(prof, &frame, &id);
	return ret ? ret : prof_add(prof, &id, 1, &labels, func->calls);
}

static int add_limit(struct call_table *table, bool applies, const char *sentence)
{
	return applies ? call_table_inexact(table, sentence) : 0;
}

static int add_state(struct prof *prof, struct call_table *table, const struct hook_run *run,
		     const struct hook_state *state)
{
	const struct hook_header *header = hook_state_header(state);
	char runs[128];
	int ret = 0;

	for (uint32_t id = 0; !ret && id < hook_state_nfuncs(state); id++) {
		const struct hook_func *func = hook_state_func(state, id);

		if (func->calls)
			ret = add_function(prof, state, func);
	}
	for (size_t i = 0; !ret && i < sizeof(limits) / sizeof(*limits); i++)
		ret = add_limit(table, header->flags & limits[i].flag, limits[i].sentence);
	if (!ret)
		ret = add_limit(table, hook_state_broken(state),
				"the program has damaged a file of counts");
	snprintf(runs, sizeof(runs),
		 "process %" PRIu32
		 " runs on, though the command has ended: its later calls are not "
		 "counted",
		 header->pid);
	return ret ? ret : add_limit(table, hook_state_runs(run, state), runs);
}

static int collect(struct hook_run *run, struct call_table *table, const char *command,
		   struct error *err)
{
	__cleanup(prof_free) struct prof *prof = NULL;
	int ret = hook_run_poll(run, NULL, NULL, err);
	char failed[160];

	if (ret)
		return ret;
	ret = hook_run_check(run, command, err);
	if (ret)
		return ret;
	ret = prof_new(&prof);
	for (size_t i = 0; !ret && i < hook_run_nstates(run); i++)
		ret = add_state(prof, table, run, hook_run_state(run, i));
	if (!ret)
		ret = add_limit(table, hook_run_unread(run),
				"there were more Lua states than luabpf reads");
	snprintf(failed, sizeof(failed),
		 "a Lua state could not make its file of counts, and is not counted: %s",
		 strerror(hook_run_failed(run)));
	if (!ret)
		ret = add_limit(table, hook_run_failed(run), failed);
	if (!ret)
		ret = call_table_add_prof(table, prof);
	return ret ? error_set(err, ret, "%s", strerror(-ret)) : 0;
}

static int run_command(char *const argv[], int *status, struct error *err)
{
	struct command command __cleanup(command_free) = {.pidfd = -1};
	int stop, ret = signals_catch(&stop);
	pid_t pid;

	if (ret)
		return error_set(err, ret, "signals: %s", strerror(-ret));
	ret = launch_start(argv, &pid, err);
	if (ret)
		return ret;
	ret = launch_release(pid);
	if (ret)
		return error_set(err, ret, "%s: cannot release it: %s", argv[0], strerror(-ret));
	ret = command_begin(&command, pid, stop, err);
	while (!ret && !command.ended)
		ret = command_wait(&command, -1, err);
	*status = command.status;
	return ret;
}

int count_command(const struct options *opts, int *code, struct error *err)
{
	__cleanup(call_table_free) struct call_table table = {};
	__hook_run struct hook_run *run = NULL;
	__outfile struct outfile *out = NULL;
	int status, ret;

	ret = outfile_open(opts->output ? opts->output : "-", &out, err);
	if (!ret)
		ret = hook_run_open(HOOK_COUNT, &run, err);
	if (!ret)
		ret = run_command(opts->command, &status, err);
	if (!ret)
		ret = collect(run, &table, opts->command[0], err);
	if (ret)
		return ret;
	ret = (opts->json ? call_table_json : call_table_write)(&table, outfile_stream(out));
	ret = outputs_finish(&out, ret, err);
	if (!ret && !opts->quiet)
		call_table_summary(&table, stderr);
	*code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return ret;
}
