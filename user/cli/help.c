// SPDX-License-Identifier: BSD-2-Clause
/* The text of `luabpf help`, with a line for each row of the option table. */
#include <string.h>

#include "table.h"

static const char help_head[] =
	"luabpf - profile Lua programs from outside\n"
	"\n"
	"Usage:\n"
	"  luabpf [record] -p PID[,PID...] [OPTIONS]     profile running processes\n"
	"  luabpf [record] [OPTIONS] -- COMMAND [ARG...] profile a command to its end\n"
	"  luabpf report FILE [OPTIONS]                  show a saved profile\n"
	"  luabpf [record] --all [OPTIONS]               profile all processes that run Lua\n"
	"  luabpf doctor [-p PID[,PID...]]               what this machine and a process allow\n"
	"  luabpf ps [OPTIONS]                           processes that run Lua, by VM and "
	"version\n"
	"  luabpf traces -p PID | -- COMMAND [ARG...]    what LuaJIT compiles, what not, and why\n"
	"  luabpf count -p PID [OPTIONS]                 how often each function was called\n"
	"  luabpf count [OPTIONS] -- COMMAND [ARG...]    the same, of a command\n"
	"  luabpf trace [OPTIONS] -- COMMAND [ARG...]    every line of a command: times, coverage\n"
	"  luabpf help\n"
	"\n"
	"Examples:\n"
	"  luabpf -p 4711                        # hot functions of a process, until Ctrl-C\n"
	"  luabpf -p 4711 -d 10 -jp=3si4m1       # 10 s: callers three deep, every 4 ms, from 1 %\n"
	"  luabpf -p 4711 -jp=l                  # hot lines\n"
	"  luabpf -p 4711 -jp=v                  # interpreted, compiled, C, garbage collector, "
	"JIT\n"
	"  luabpf -p 4711 -jp=a                  # source text beside its share of time\n"
	"  luabpf -jp=G,out.folded -- luajit x.lua    # stacks for flame graph tools\n"
	"  luabpf -F 1000 -o x.pb.gz -- luajit x.lua  # save; for go tool pprof, too\n"
	"  luabpf report x.pb.gz -jp=vf          # any report, from the saved profile\n"
	"  luabpf count -p 4711 -d 10            # how often was each function called?\n"
	"  luabpf count -- lua5.4 x.lua          # the same of a command; no root\n"
	"  luabpf ps                             # which processes are there to profile?\n"
	"  luabpf traces -p 4711 -d 10           # traces and aborts, with their shares of time\n"
	"  luabpf doctor -p 4711                 # can it be profiled? what is missing?\n"
	"  luabpf --user www-data --comm nginx -d 10  # all Lua in nginx, new workers too\n"
	"  luabpf -p 4711 -d 60 --stats s.json --max-lost 0.1  # for CI\n"
	"  luabpf --all --every 60 -o '%t.pb.gz'               # for weeks: a profile per minute\n"
	"  luabpf trace --lcov out.info -- lua5.1 tests.lua    # which lines do the tests run?\n"
	"\n"
	"Options:\n";

static const char help_tail[] =
	"\n"
	"--exe, --comm, --cgroup and --user may be repeated. A process has to match one of each "
	"kind "
	"that\n"
	"is given. Without -p and a command they imply --all.\n"
	"\n"
	"OPTIONS of -jp are those of LuaJIT's profiler (jit.p):\n"
	"  f l F       function (default), line, function with its module's name\n"
	"  <n> -<n>    depth of the stack shown: callers, or with a minus from the root\n"
	"  s           split by the second level        p    full paths of modules\n"
	"  v           VM state: native, interpreted, C, garbage collector, JIT compiler\n"
	"  V           the same with its cause: trace and loop, what the compiler or collector "
	"did\n"
	"  z           zone: the name that the program gives to what it does (jit.zone)\n"
	"  a A         annotated source, of hot lines or of whole files\n"
	"  r           counts, not percentages          G    folded stacks\n"
	"  m<n>        least percentage shown (3)       i<n> milliseconds between samples (10)\n"
	"LUAJIT_PROFILEFILE names the default OUTPUT.\n"
	"\n"
	"Exit codes: 0 done, 1 failed, 2 usage, 3 too much lost (--max-lost), 4 too little "
	"covered\n"
	"(--fail-under); the code of a launched command when luabpf itself succeeded.\n";

void cli_help(FILE *to)
{
	fputs(help_head, to);
	for (size_t i = 0; i < CLI_NROWS; i++) {
		const struct option_row *row = &cli_rows[i];
		bool jp = !strcmp(row->name, "jp");
		char names[64];

		if (jp)
			snprintf(names, sizeof(names), "-jp[=OPTIONS[,OUTPUT]]");
		else
			snprintf(names, sizeof(names), "%c%c%c --%s%s%s", row->letter ? '-' : ' ',
				 row->letter ? row->letter : ' ', row->letter ? ',' : ' ',
				 row->name, row->arg ? " " : "", row->arg ? row->arg : "");
		fprintf(to, "  %-24s  %s\n", names, row->help);
	}
	fputs("\nFormats of -f and -o:\n", to);
	for (const struct out_format *format = out_formats; format->name; format++)
		fprintf(to, "  %-11s %s (%s)\n", format->name, format->what, format->suffixes);
	fputs(help_tail, to);
}
