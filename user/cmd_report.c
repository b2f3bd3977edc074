// SPDX-License-Identifier: BSD-2-Clause
/* report: renders a saved profile as a recording would have. */
#include <errno.h>
#include <string.h>

#include "cmd.h"
#include "cmd_output.h"
#include "prof/pprof.h"

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
		ret = outputs_write(opts, &out, prof, &source_plain, err);
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
