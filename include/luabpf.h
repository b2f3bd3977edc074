/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * luabpf as a library: samples what Lua and LuaJIT processes do, from outside. In the manner of LuaJIT's
 * luaJIT_profile_start(), luaJIT_profile_dumpstack() and luaJIT_profile_stop(), for other processes than
 * one's own:
 *
 *     static void count(void *data, luabpf_sample *sample, int samples, int vmstate)
 *     {
 *             printf("%d %c %s\n", samples, vmstate, luabpf_dumpstack(sample, "fZ < ", 3, NULL));
 *     }
 *
 *     luabpf *r = luabpf_new();
 *     if (!luabpf_attach(r, pid) && !luabpf_start(r, "i10", count, NULL))
 *             while (luabpf_poll(r, 1000) > 0)
 *                     ;
 *     if (luabpf_stop(r))
 *             fprintf(stderr, "%s\n", luabpf_error(r));
 *     luabpf_free(r);
 *
 * Functions that return int return 0, or what they say here, or a negative errno; then luabpf_error() is
 * a sentence with object, cause and remedy. The library prints nothing, handles no signals, starts no
 * threads and changes no rights. It needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.
 *
 * A recording is used by one thread at a time; several may be open at once. After fork() it is the
 * parent's: in the child its functions return -ECHILD, and luabpf_free() does nothing.
 *
 * docs/api.md has more; each group of functions has a manual page.
 */
#ifndef LUABPF_H
#define LUABPF_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LUABPF_API __attribute__((visibility("default")))
#else
#define LUABPF_API
#endif

/* A recording. */
typedef struct luabpf luabpf;

/* A sample: valid within the callback only. */
typedef struct luabpf_sample luabpf_sample;

/* ---- luabpf_new(3): a recording and its targets ---------------------------------------------- */

/* Returns NULL if there is no memory. */
LUABPF_API luabpf *luabpf_new(void);

/* Stops it without further callbacks, and releases all that it has. Not within its callback. NULL is allowed. */
LUABPF_API void luabpf_free(luabpf *recording);

/* Adds a process that runs; before luabpf_start(). Its own process is allowed. */
LUABPF_API int luabpf_attach(luabpf *recording, int pid);

/* All processes of this machine, now and later, its own too, in place of single ones. */
LUABPF_API int luabpf_attach_all(luabpf *recording);

/*
 * With luabpf_attach_all(): only processes that match. Several of one kind are alternatives; a process
 * has to match each kind that is given.
 */
#define LUABPF_EXE 1	/* pattern of glob(7) of the executable; without '/', of its file name */
#define LUABPF_COMM 2	/* the process's name */
#define LUABPF_CGROUP 3 /* the cgroup's path, and those below it */
#define LUABPF_USER 4	/* the user's number */
LUABPF_API int luabpf_narrow(luabpf *recording, int kind, const char *value);

/* Options: a value other than 0 means yes. Before luabpf_start(). */
#define LUABPF_FOLLOW 1	    /* record what the processes fork from now on; yes unless set */
#define LUABPF_CHILDREN 2   /* record the present children of the processes, and theirs */
#define LUABPF_ZONES 3	    /* samples have the label "zone" */
#define LUABPF_COROUTINES 4 /* samples have the label "coroutine" */
LUABPF_API int luabpf_set(luabpf *recording, int option, int value);

/* Zones are in the table that this module of the targets returns, not in that of jit.zone or zone. */
LUABPF_API int luabpf_zone_from(luabpf *recording, const char *module);

/* ---- luabpf_start(3): recording -------------------------------------------------------------- */

/*
 * samples: how many of them were the same, usually 1; vmstate: 'N' compiled, 'I' interpreted, 'C' C
 * code, 'G' garbage collector, 'J' JIT compiler. The callback may call luabpf_stop(). It may leave by
 * longjmp(): its sample counts as delivered, and the next luabpf_poll() delivers the following ones.
 */
typedef void (*luabpf_callback)(void *data, luabpf_sample *sample, int samples, int vmstate);

/*
 * Begins to sample. mode is that of LuaJIT's profiler: "i" and the milliseconds of CPU time between two
 * samples (10); "f" and "l", the precision of LuaJIT's own profiler, make no difference here, as samples are always
 * exact to the line. Other letters are ignored. callback: NULL if luabpf_write() is enough. Once for a
 * recording.
 */
LUABPF_API int luabpf_start(luabpf *recording, const char *mode, luabpf_callback callback,
			    void *data);

/*
 * Records for timeout_ms (-1: until it is over; 0: handles what has come), and calls back. Returns 1
 * when the time is up or a signal came; 0 when it is over: the targets have ended, or the callback has
 * called luabpf_stop().
 */
LUABPF_API int luabpf_poll(luabpf *recording, int timeout_ms);

/*
 * The same without callbacks: the samples come with the next luabpf_poll() or luabpf_stop(), those of
 * one stack in one call. For a report at the end: a function's name may be known better by then.
 */
LUABPF_API int luabpf_wait(luabpf *recording, int timeout_ms);

/*
 * A descriptor for poll(2), epoll(7) or the like: when it is readable, luabpf_poll(recording, 0) has
 * something to do. It is the library's. -EINVAL before luabpf_start().
 */
LUABPF_API int luabpf_fd(const luabpf *recording);

/*
 * Ends the sampling, and calls back for the samples that have not been delivered. Within the callback,
 * and after one that left by longjmp(), it does not call back: these samples are the loss
 * "not-delivered". The recording stays until luabpf_free(). A second call does nothing.
 */
LUABPF_API int luabpf_stop(luabpf *recording);

/* ---- luabpf_dumpstack(3): a sample ----------------------------------------------------------- */

/*
 * Formats the stack, for each of the topmost `depth` frames; < 0: the same in inverse order.
 *
 *     f    the function's name, else module:line of its definition
 *     F    module:name, else the same
 *     l    module:line that runs
 *     p    modules with their whole path from here on
 *     Z    drops what follows behind the last frame
 *
 * All other characters stand for themselves. Names are those of the reports of luabpf -jp: control
 * characters in them are \xNN. With ';' in the format frames are those of folded stacks. The text is
 * valid until the next call for this recording; len may be NULL. NULL if there is no memory.
 */
LUABPF_API const char *luabpf_dumpstack(luabpf_sample *sample, const char *format, int depth,
					size_t *len);

/* The process and its thread. */
LUABPF_API int luabpf_pid(const luabpf_sample *sample);
LUABPF_API int luabpf_tid(const luabpf_sample *sample);

/* Which of its process's VMs ran: the address of its global_State. As long as a VM lives, no other has it. */
LUABPF_API unsigned long luabpf_vm_id(const luabpf_sample *sample);

/*
 * A label by its name: "comm" (the thread's name), "vm" (its release), "vm_id" ("0x7f3a2c0050"), "exe", "cgroup", "container",
 * "zone" (the innermost), "coroutine" ("main:0x7f3a2c0050"). Returns NULL if the sample has no such label, or the
 * label was not recorded. Valid as luabpf_dumpstack() is.
 */
LUABPF_API const char *luabpf_label(luabpf_sample *sample, const char *name);

/* ---- luabpf_losses(3): results --------------------------------------------------------------- */

/* Samples that have a stack, delivered or not. */
LUABPF_API unsigned long luabpf_samples(const luabpf *recording);

/*
 * Calls back for each reason why samples have no stack, or were not delivered. reason: a word;
 * sentence: what it means. "outside-lua" is no loss: the thread ran no Lua.
 */
typedef void (*luabpf_loss)(void *data, const char *reason, const char *sentence,
			    unsigned long count);
LUABPF_API int luabpf_losses(luabpf *recording, luabpf_loss callback, void *data);

/* Writes a profile that `luabpf report` and go tool pprof read. */
LUABPF_API int luabpf_write(luabpf *recording, int fd);

/* The sentence of the last function that failed; "" if there was none. Valid until the next call. */
LUABPF_API const char *luabpf_error(const luabpf *recording);

/* "0.1.0" */
LUABPF_API const char *luabpf_version(void);

#ifdef __cplusplus
}
#endif

#endif
