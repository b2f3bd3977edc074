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

static int load(const char *path, struct prof **prof, struct error *err)
{
	__fclose FILE *file = NULL;
	int ret;

	if (!strcmp(path, "-"))
		return load_stream(stdin, "standard input", prof, err);
	ret = open_profile(path, &file, err);
	return ret ? ret : load_stream(file, path, prof, err);
}

/* Lists the users as each of whom root opens files; none: only files that all users can read. */
static int source_users(const struct options *opts, const struct prof_meta *meta, uid_t *uids,
			size_t *n, struct error *err)
{
	struct sudo_caller caller = {.uid = getuid()};
	int ret = caller.uid ? 0 : sudo_caller(&caller, err);

	if (ret < 0)
		return ret;
	if (caller.uid)
		uids[(*n)++] = caller.uid;
	if (opts->has_source_user)
		uids[(*n)++] = opts->source_user;
	if (*n && meta->has_uid && meta->uid)
		uids[(*n)++] = meta->uid;
	return 0;
}

static int open_sources(const struct options *opts, const struct prof_meta *meta,
			struct target_source **out, struct error *err)
{
	uid_t uids[SOURCE_USERS];
	size_t n = 0;
	int ret;

	if (geteuid() && opts->has_source_user)
		return error_set(err, -EPERM, "--source-user: only root opens files as others");
	ret = geteuid() ? 0 : source_users(opts, meta, uids, &n, err);
	if (ret < 0)
		return ret;
	if (geteuid())
		ret = target_source_of_caller(out);
	else
		ret = n ? target_source_of_users(uids, n, out) : target_source_of_all(out);
	return ret ? error_set(err, ret, "-jp: source files: %s", strerror(-ret)) : 0;
}

static int write_outputs(const struct options *opts, struct outputs *out, const struct prof *prof,
			 struct error *err)
{
	__cleanup(target_source_free) struct target_source *files = NULL;
	struct source source = {.open = target_source_open};
	int ret = 0;

	if (opts->jitp && opts->jitp_options.annotate)
		ret = open_sources(opts, prof_meta_of(prof), &files, err);
	if (ret)
		return ret;
	source.ctx = files;
	return outputs_write(opts, out, prof, &source, err);
}

static int run(const struct options *opts, struct error *err)
{
	__cleanup(prof_free) struct prof *prof = NULL;
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
