// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "base/uses.h"
#include "base/sudo.h"
#include "out/jitp.h"
#include "out/sections.h"
#include "output.h"

/* Refuses two names of one file: the second commit would replace the first. */
static int check_distinct(const struct outputs *o, struct error *err)
{
	const struct {
		const char *name;
		const struct outfile *file;
	} outs[] = {{"the -jp report", o->jitp}, {"-o", o->file}, {"--stats", o->stats}};
	const size_t n = sizeof(outs) / sizeof(*outs);

	for (size_t i = 0; i < n; i++)
		for (size_t j = i + 1; j < n; j++)
			if (outs[i].file && outs[j].file &&
			    outfile_same(outs[i].file, outs[j].file))
				return error_set(err, -EINVAL, "%s and %s would both go to %s",
						 outs[i].name, outs[j].name,
						 outfile_name(outs[i].file));
	return 0;
}

static bool is_file(const char *path)
{
	return path && strcmp(path, "-") != 0;
}

bool outputs_have_file(const struct options *opts)
{
	return (opts->jitp && is_file(opts->jitp_output)) || is_file(opts->output) ||
	       is_file(opts->stats) || opts->metrics || is_file(opts->trace.annotate);
}

unsigned outputs_use(const struct options *opts)
{
	struct sudo_caller caller;
	unsigned uses = USE_ANY;

	if (outputs_have_file(opts))
		uses |= USE_FILES | (sudo_caller(&caller, NULL) > 0 ? USE_CALLER : 0);
	if ((opts->jitp && opts->jitp_options.annotate) || opts->trace.annotate)
		uses |= USE_SOURCES;
	return uses;
}

int outputs_open(const struct options *opts, struct outputs *out, struct error *err)
{
	int (*open)(const char *path, struct outfile **out, struct error *err) =
		opts->every_ns ? outfile_open_ready : outfile_open;
	__outputs struct outputs o = {};
	int ret = 0;

	if (opts->output && opts->format->binary && !strcmp(opts->output, "-") &&
	    isatty(STDOUT_FILENO)) {
		error_set(err, 0, "standard output: %s is not for a terminal", opts->format->name);
		return error_remedy(err, -EINVAL, "name a file with -o, or use a pipe");
	}
	if (opts->jitp)
		ret = open(opts->jitp_output, &o.jitp, err);
	if (!ret && opts->output)
		ret = open(opts->output, &o.file, err);
	if (!ret && opts->stats)
		ret = open(opts->stats, &o.stats, err);
	if (!ret)
		ret = check_distinct(&o, err);
	if (ret)
		return ret;
	*out = o;
	o = (struct outputs){};
	return 0;
}

bool outputs_show_lines(const struct options *opts)
{
	return (opts->jitp && jitp_shows_lines(&opts->jitp_options)) ||
	       (opts->output && opts->format->lines);
}

void outputs_warn(const struct options *opts)
{
	const struct jitp_options *o = &opts->jitp_options;

	for (const char *c = opts->jitp ? o->unknown : ""; *c; c++)
		fprintf(stderr, "luabpf: -jp: warning: jit.p knows no option '%c'; ignored\n", *c);
	if (opts->jitp && o->shows_nothing)
		fprintf(stderr, "luabpf: -jp: warning: for this combination jit.p shows no row\n");
}

int outputs_finish(struct outfile **file, int rendered, struct error *err)
{
	if (!rendered || outfile_error(*file))
		return outfile_commit(file, err);
	error_set(err, rendered, "%s: %s", outfile_name(*file), strerror(-rendered));
	outfile_abort(file);
	return rendered;
}

/* Formats that are text have no labels to group by: root frames say it. */
static int write_file(const struct options *opts, const struct prof *prof, FILE *to)
{
	__cleanup(prof_free) struct prof *roots = NULL;
	int ret = 0;

	if (opts->by && !opts->format->binary) {
		ret = sections_as_roots(prof, opts->by, &roots);
		prof = roots;
	}
	return ret ? ret : opts->format->write(prof, to);
}

int outputs_write(const struct options *opts, struct outputs *out, const struct prof *prof,
		  const struct source *source, struct error *err)
{
	int ret = 0, more = 0;

	if (out->jitp) {
		FILE *to = outfile_stream(out->jitp);

		ret = opts->by ? sections_render(prof, opts->by, &opts->jitp_options, source, to)
			       : jitp_render(prof, &opts->jitp_options, source, to);
		ret = outputs_finish(&out->jitp, ret, err);
	}
	if (out->file) {
		more = write_file(opts, prof, outfile_stream(out->file));
		more = outputs_finish(&out->file, more, ret ? NULL : err);
	}
	return ret ? ret : more;
}

void outputs_close(struct outputs *out)
{
	outfile_abort(&out->jitp);
	outfile_abort(&out->file);
	outfile_abort(&out->stats);
}
