// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fsids.h"
#include "base/sudo.h"
#include "saved.h"

int saved_open(const char *path, FILE **file, struct error *err)
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

int saved_sources(const struct options *opts, const char *what, struct target_source **files,
		  bool *of_users, struct error *err)
{
	uid_t uids[SOURCE_USERS];
	size_t n = 0;
	int ret;

	if (geteuid() && opts->has_source_user)
		return error_set(err, -EPERM, "--source-user: only root opens files as others");
	ret = geteuid() ? 0 : source_users(opts, uids, &n, err);
	if (ret < 0)
		return ret;
	if (geteuid())
		ret = target_source_of_caller(files);
	else
		ret = n ? target_source_of_users(uids, n, files) : target_source_of_all(files);
	*of_users = n;
	return ret ? error_set(err, ret, "%s: source files: %s", what, strerror(-ret)) : 0;
}
