/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes actions as a trace file of luatrace (github.com/geoffleyland/luatrace):
 *
 *     > FILE FIRST LAST   call of the function that is defined on these lines
 *     T FILE FIRST LAST   tail call          <   return, also from the callers that made tail calls
 *     R NUMBER            resume             Y   yield, or the end of a coroutine
 *     P                   the next call is protected
 *     E                   error: the frames end up to the one that was followed by P
 *     LINE MICROSECONDS   time in a line; after a return, the rest of it
 *
 * C functions are not shown: their time is their caller's. The rest of what raw_read.h
 * reads is in lines that luatrace skips, as no two numbers with a blank between are in them:
 *
 *     #function FILE:FIRST-LAST,CODE,LINES,NAME   LINES: those that can run, as 1-3;7, or ?
 *     #code CODE                                  which function the next call of its place means
 *     #forked                                     the next call is another process's, which forked
 *     #source FILE,PATH,SIZE,MTIME_NS             the file
 *     #state N                                    the next records are of Lua state N, at first of 1
 *     #end                                        the last line: a file without it was cut
 *
 * In FILE, PATH and NAME each byte but ASCII letters, digits and ./_-:[] is %XX. FILE is the chunk
 * name without its "@"; any other one begins with "=" or, a program's text, with "[".
 */
#ifndef TRACE_RAW_WRITE_H
#define TRACE_RAW_WRITE_H

#include <stdio.h>

#include "base/cleanup.h"
#include "program.h"

struct raw_file;
struct raw_writer;

/* `program` and `to` outlive it. Errors of writes stay in the stream. -ENOMEM. */
int raw_file_new(FILE *to, const struct program *program, struct raw_file **out);
void raw_file_free(struct raw_file **file);

#define __raw_file __cleanup(raw_file_free)

/* Writes the functions that were not called, names that came late, and the end. */
int raw_file_finish(struct raw_file *file);

/* A writer of one Lua state's actions. Function ids are those of the program. */
int raw_writer_new(struct raw_file *file, struct raw_writer **out);
void raw_writer_free(struct raw_writer **writer);

#define __raw_writer __cleanup(raw_writer_free)

/* The put() of a trace_sink; ctx is a struct raw_writer. */
int raw_writer_put(void *writer, const struct trace_action *action);

/* Writes the time of the last line. */
void raw_writer_finish(struct raw_writer *writer);

#endif
