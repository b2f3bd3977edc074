// SPDX-License-Identifier: BSD-2-Clause
/*
 * report: renders a saved profile to the same text as a recording.
 *
 * A profile is untrusted input: saved.h has the rules for the source files that it names.
 */
#include <errno.h>
#include <string.h>

#include "base/confine.h"
#include "cmds.h"
#include "output.h"
#include "prof/pprof.h"
#include "proc/source.h"
#include "record/summary.h"
#include "saved.h"

/* An empty file is a valid protobuf message, but no profile was written to it. */
static int load_stream(FILE *file, const char *name, struct prof **prof, struct error *err)
{
	int c = getc(file);

	if (c == EOF && !ferror(file))
		return error_set(err, -ENODATA, "%s: empty: there is no profile in it", name);
	if (c != EOF)
		ungetc(c, file);
	return pprof_read_file(file, name, prof, err);
}

/* Drops unused rights before reading the first byte. */
static int load(const struct options *opts, struct prof **prof, struct error *err)
{
	const bool is_stdin = !strcmp(opts->input, "-");
	__fclose FILE *file = NULL;
	int ret = is_stdin ? 0 : saved_open(opts->input, &file, err);

	if (!ret)
		ret = confine(outputs_use(opts), err);
	if (ret)
		return ret;
	return is_stdin ? load_stream(stdin, "standard input", prof, err)
			: load_stream(file, opts->input, prof, err);
}

struct report_files {
	struct target_source *files; /* NULL: none is asked for */
	bool of_users;
};

static void report_files_free(struct report_files *s)
{
	target_source_free(&s->files);
}

static int open_sources(const struct options *opts, struct report_files *out, struct error *err)
{
	if (!opts->jitp || !opts->jitp_options.annotate)
		return 0;
	return saved_sources(opts, "-jp", &out->files, &out->of_users, err);
}

/* The user whom the profile names must be able to open them, too. */
static int restrict_sources(struct report_files *s, const struct prof_meta *meta, struct error *err)
{
	__cleanup(target_source_free) struct target_source *theirs = NULL;
	int ret;

	if (!s->of_users || !meta->has_uid || !meta->uid)
		return 0;
	ret = target_source_of_users(&meta->uid, 1, &theirs);
	if (ret)
		return error_set(err, ret, "-jp: source files: %s", strerror(-ret));
	target_source_join(s->files, theirs);
	return 0;
}

static int run(const struct options *opts, struct error *err)
{
	__cleanup(prof_free) struct prof *prof = NULL;
	__cleanup(report_files_free) struct report_files sources = {};
	struct source source = {.open = target_source_open};
	__outputs struct outputs out = {};
	int ret;

	outputs_warn(opts);
	ret = outputs_open(opts, &out, err);
	if (!ret)
		ret = open_sources(opts, &sources, err);
	if (!ret)
		ret = load(opts, &prof, err);
	if (!ret)
		summary_print_other(prof_other(prof), stderr);
	if (!ret && !opts->quiet)
		summary_print_lines(prof, outputs_show_lines(opts), stderr);
	if (!ret)
		ret = restrict_sources(&sources, prof_meta_of(prof), err);
	source.ctx = sources.files;
	if (!ret)
		source.since_ns = prof_meta_of(prof)->time_ns;
	return ret ? ret : outputs_write(opts, &out, prof, &source, err);
}

int cmd_report(const struct options *opts)
{
	struct error err = {};
	int ret = run(opts, &err);

	if (!ret)
		return EXIT_DONE;
	cmd_error(ret, &err);
	return EXIT_FAILED;
}
