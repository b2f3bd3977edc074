// SPDX-License-Identifier: BSD-2-Clause
/*
 * report: renders a saved profile to the same text as a recording.
 *
 * A profile is untrusted input, and so are the chunk names in it. So root opens source files as the
 * caller of sudo, or as --source-user; with neither, only files that all users can read. The user
 * whom the profile names as the process's must be able to open them, too: this claim can only
 * remove rights.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/confine.h"
#include "base/fsids.h"
#include "base/sudo.h"
#include "cmds.h"
#include "output.h"
#include "prof/pprof.h"
#include "record/summary.h"
#include "proc/source.h"

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

/* Opens the file as the caller of sudo, if there is one: opening a device can have effects. */
static int open_profile(const char *path, FILE **file, struct error *err)
{
	__free struct fsids *ids = NULL;
	__fsids struct fsids *own = NULL;
	int ret = fsids_of_caller(&ids, err);

	if (ret)
		return ret;
	ret = fsids_enter(ids, &own);
	if (ret)
		return error_set(err, ret, "%s: as user %u: %s", path, ids->uid, strerror(-ret));
	*file = fopen(path, "re");
	if (*file)
		return 0;
	ret = -errno;
	error_set(err, ret, "%s: %s", path, strerror(-ret));
	return ids && ids->uid && ret == -EACCES
		       ? error_remedy(err, ret,
				      "under sudo, it is opened with the rights of user %u: unset "
				      "SUDO_UID and SUDO_GID, or give it as standard input: -",
				      ids->uid)
		       : ret;
}

/* Drops unused rights before reading the first byte. */
static int load(const struct options *opts, struct prof **prof, struct error *err)
{
	const bool is_stdin = !strcmp(opts->input, "-");
	__fclose FILE *file = NULL;
	int ret = is_stdin ? 0 : open_profile(opts->input, &file, err);

	if (!ret)
		ret = confine(outputs_use(opts), err);
	if (ret)
		return ret;
	return is_stdin ? load_stream(stdin, "standard input", prof, err)
			: load_stream(file, opts->input, prof, err);
}

/* Lists the users as each of whom root opens files; none: only files that all users can read. */
static int source_users(const struct options *opts, uid_t *uids, size_t *n, struct error *err)
{
	struct sudo_caller caller = {.uid = getuid()};
	int ret = caller.uid ? 0 : sudo_caller(&caller, err);

	if (ret < 0)
		return ret;
	if (caller.uid)
		uids[(*n)++] = caller.uid;
	if (opts->has_source_user)
		uids[(*n)++] = opts->source_user;
	return 0;
}

struct report_files {
	struct target_source *files; /* NULL: none is asked for */
	bool of_users;
};

static void report_files_free(struct report_files *s)
{
	target_source_free(&s->files);
}

/* Called before the profile is read: NSS modules are unavailable once confined. */
static int open_sources(const struct options *opts, struct report_files *out, struct error *err)
{
	uid_t uids[SOURCE_USERS];
	size_t n = 0;
	int ret;

	if (!opts->jitp || !opts->jitp_options.annotate)
		return 0;
	if (geteuid() && opts->has_source_user)
		return error_set(err, -EPERM, "--source-user: only root opens files as others");
	ret = geteuid() ? 0 : source_users(opts, uids, &n, err);
	if (ret < 0)
		return ret;
	if (geteuid())
		ret = target_source_of_caller(&out->files);
	else
		ret = n ? target_source_of_users(uids, n, &out->files)
			: target_source_of_all(&out->files);
	out->of_users = n;
	return ret ? error_set(err, ret, "-jp: source files: %s", strerror(-ret)) : 0;
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
	if (!ret)
		ret = restrict_sources(&sources, prof_meta_of(prof), err);
	source.ctx = sources.files;
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
