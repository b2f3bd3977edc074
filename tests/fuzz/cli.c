// SPDX-License-Identifier: BSD-2-Clause
/* Command lines: words separated by NUL. What is accepted must be consistent. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define MAX_WORDS 32

static bool has_one_target(enum verb verb)
{
	return verb == VERB_COUNT || verb == VERB_TRACES;
}

static bool has_report(enum verb verb)
{
	return verb == VERB_RECORD || verb == VERB_REPORT;
}

static void check(const struct options *o)
{
	if (o->verb == VERB_HELP || o->verb == VERB_VERSION)
		return;
	if (o->verb == VERB_RECORD && !!o->npids + !!o->command + o->all != 1)
		abort();
	if (has_one_target(o->verb) && !!o->npids + !!o->command != 1)
		abort();
	if (o->verb == VERB_TRACE && !!o->trace.from + !!o->command != 1)
		abort();
	if (o->json && o->verb != VERB_PS && o->verb != VERB_COUNT && o->verb != VERB_TRACES)
		abort();
	if (o->verb == VERB_REPORT && !o->input)
		abort();
	if (!o->period_ns)
		abort();
	if (has_report(o->verb) && (!o->jitp_output || (!o->jitp && !o->output)))
		abort();
	if (has_report(o->verb) && !o->output != !o->format)
		abort();
	for (size_t i = 0; i < o->npids; i++) {
		if (o->pids[i] <= 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *words[MAX_WORDS + 2] = {"luabpf"};
	char *text = malloc(size + 1);
	struct options *opts = NULL;
	struct error err;
	int n = 1;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (char *word = text; word <= text + size && n <= MAX_WORDS; word += strlen(word) + 1)
		words[n++] = word;
	if (!cli_parse(n, words, &opts, &err))
		check(opts);
	else if (!memchr(err.what, '\0', sizeof(err.what)) || !*err.what || opts)
		abort();
	options_free(&opts);
	free(text);
	return 0;
}
