// SPDX-License-Identifier: BSD-2-Clause
/*
 * report: renders a saved profile as a recording would have.
 *
 * A profile may come from anywhere, and the names of chunks in it from a program that is no friend
 * of who reads it. So root opens a source file as the user who called sudo, and as the user whose
 * process it was, and both must be able to; when neither is an ordinary user, only files that all
 * may read are shown. What the profile says of that user can only take rights away from the one who
 * called sudo, and gives root those of an ordinary user at most.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/sudo.h"
#include "cmd.h"
#include "cmd_output.h"
#include "prof/pprof.h"
#include "summary.h"
#include "target/source.h"

static void prof_cleanup(struct prof **prof)
{
	prof_free(prof);
}

/* No bytes at all are a valid message of protobuf; what they mean is that nothing was written. */
static int load_stream(FILE *file, const char *name, struct prof **prof, struct error *err)
{
	int c = getc(file);

	if (c == EOF && !ferror(file))
		return error_set(err, -ENODATA, "%s: empty: there is no profile in it", name);
	if (c != EOF)
		ungetc(c, file);
	return pprof_read_file(file, name, prof, err);
}

static int load(const char *path, struct prof **prof, struct error *err)
{
	__fclose FILE *file = NULL;

	if (!strcmp(path, "-"))
		return load_stream(stdin, "standard input", prof, err);
	file = fopen(path, "re");
	if (!file)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	return load_stream(file, path, prof, err);
}

static int open_sources(const struct prof_meta *meta, struct target_source **out, struct error *err)
{
	struct sudo_caller caller = {.uid = getuid()};
	uid_t uids[SOURCE_USERS];
	size_t n = 0;
	bool root = !geteuid(); /* others open files as whoever they are */
	int ret = caller.uid ? 0 : sudo_caller(&caller, err);

	if (ret < 0)
		return ret;
	if (root && caller.uid)
		uids[n++] = caller.uid;
	if (root && meta->has_uid && meta->uid)
		uids[n++] = meta->uid;
	ret = n || !root ? target_source_of_users(uids, n, out) : target_source_of_all(out);
	return ret ? error_set(err, ret, "-jp: source files: %s", strerror(-ret)) : 0;
}

static int write_outputs(const struct options *opts, struct outputs *out, const struct prof *prof,
			 struct error *err)
{
	__cleanup(target_source_free) struct target_source *files = NULL;
	struct source source = {.open = target_source_open};
	int ret = 0;

	if (opts->jitp && opts->jitp_options.annotate)
		ret = open_sources(prof_meta_of(prof), &files, err);
	if (ret)
		return ret;
	source.ctx = files;
	return outputs_write(opts, out, prof, &source, err);
}

static int run(const struct options *opts, struct error *err)
{
	__cleanup(prof_cleanup) struct prof *prof = NULL;
	__outputs struct outputs out = {};
	int ret;

	outputs_warn(opts);
	ret = outputs_open(opts, &out, err);
	if (!ret)
		ret = load(opts->input, &prof, err);
	if (!ret)
		summary_print_other(prof_other(prof), stderr);
	if (!ret)
		ret = write_outputs(opts, &out, prof, err);
	return ret;
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
