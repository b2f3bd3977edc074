// SPDX-License-Identifier: BSD-2-Clause
/* traces: the traces of LuaJIT's compiler, and the code that it does not compile. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

#include "base/caps.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/outfile.h"
#include "base/text.h"
#include "base/uses.h"
#include "cmds.h"
#include "output.h"
#include "traces/report.h"
#include "traces_vms.h"

static const struct traces_shares *shares_of(const struct options *opts, const struct traced_vm *t)
{
	return opts->command || opts->duration_ns ? &t->shares : NULL;
}

static void put_head(const struct traced_vm *t, struct text *head)
{
	text_printf(head, "pid %d (", (int)t->pid);
	text_put_utf8(head, t->command, strlen(t->command));
	text_printf(head, "): %s, VM 0x%" PRIx64 "%s", t->at.release, t->at.g,
		    t->at.jit ? "" : ", the JIT compiler is off");
}

static int print_vm(const struct options *opts, const struct traced_vm *t, FILE *to)
{
	__text struct text head = {0};

	put_head(t, &head);
	if (text_err(&head))
		return -ENOMEM;
	fprintf(to, "%s\n", text_str(&head));
	return traces_print(t->vm, shares_of(opts, t), to);
}

static int print_text(const struct options *opts, const struct traced_vms *vms, FILE *to)
{
	int r = 0;

	for (size_t i = 0; i < vms->n && !r; i++) {
		if (i)
			fputc('\n', to);
		r = print_vm(opts, vms->at[i], to);
	}
	return r;
}

static int print_json(const struct options *opts, const struct traced_vms *vms, FILE *to)
{
	struct json all = json_array();

	for (size_t i = 0; i < vms->n; i++) {
		const struct traced_vm *t = vms->at[i];
		struct json o = {.item = traces_json(t->vm, shares_of(opts, t))};

		json_number(&o, "pid", t->pid);
		json_text(&o, "command", t->command);
		json_text(&o, "release", t->at.release);
		json_bool(&o, "jit", t->at.jit);
		json_append(&all, json_take(&o));
	}
	return json_print(json_take(&all), to);
}

static int annotate_vm(const struct options *opts, struct traced_vm *t, FILE *to)
{
	const struct source source = {.open = traced_vm_open_source, .ctx = t};
	__text struct text head = {0};

	put_head(t, &head);
	if (text_err(&head))
		return -ENOMEM;
	fprintf(to, "%s\n", text_str(&head));
	return traces_annotate(t->vm, shares_of(opts, t), &source, to);
}

/* file: NULL: behind the report. */
static int annotate(const struct options *opts, const struct traced_vms *vms, struct outfile *file,
		    FILE *report)
{
	FILE *to = file ? outfile_stream(file) : report;
	int r = 0;

	if (!file)
		fputc('\n', to);
	for (size_t i = 0; i < vms->n && !r; i++) {
		if (i)
			fputc('\n', to);
		r = annotate_vm(opts, vms->at[i], to);
	}
	return r;
}

static int look(const struct options *opts, struct traced_vms *vms, struct error *err)
{
	int r = caps_keep(USE_TARGETS | outputs_use(opts), err);

	for (size_t i = 0; i < opts->npids && !r; i++)
		r = traced_vms_find(vms, opts->pids[i], err);
	if (!r)
		r = traced_vms_read(vms, true);
	return r;
}

static int run(const struct options *opts, int *status, struct error *err)
{
	__cleanup(traced_vms_free) struct traced_vms vms = {.hold_sources = opts->trace.annotate};
	__outfile struct outfile *out = NULL, *annotated = NULL;
	int r = outfile_open("-", &out, err);

	if (!r && opts->trace.annotate && strcmp(opts->trace.annotate, "-"))
		r = outfile_open(opts->trace.annotate, &annotated, err);

	if (!opts->command)
		caps_more_files();
	if (!r)
		r = opts->command || opts->duration_ns ? traced_vms_record(&vms, opts, status, err)
						       : look(opts, &vms, err);
	if (!r && !vms.n)
		r = error_set(err, -ENODATA, "no VM of LuaJIT was seen");
	if (!r)
		r = (opts->json ? print_json : print_text)(opts, &vms, outfile_stream(out));
	if (!r && opts->trace.annotate)
		r = annotate(opts, &vms, annotated, outfile_stream(out));
	if (r)
		return *err->what ? r : error_set(err, r, "%s", strerror(-r));
	if (annotated)
		r = outfile_commit(&annotated, err);
	return r ? r : outfile_commit(&out, err);
}

int cmd_traces(const struct options *opts)
{
	struct error err = {};
	int status = 0, r = run(opts, &status, &err);

	if (r) {
		cmd_error(r, &err);
		return EXIT_FAILED;
	}
	if (status < 0)
		return EXIT_FAILED;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
