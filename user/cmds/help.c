// SPDX-License-Identifier: BSD-2-Clause
/* help, --help and --version; and cmd_error() of all commands. */
#include <errno.h>
#include <string.h>

#include "base/outfile.h"
#include "base/text.h"
#include "cmds.h"

void cmd_error(int ret, const struct error *err)
{
	const char *remedy = err->remedy;
	__text struct text line = {0};

	/* The same remedy whichever call failed. */
	if (ret == -EMFILE)
		remedy = "raise the limit of open files: ulimit -n 4096";
	/* It may hold paths of targets. */
	text_put_clean(&line, err->what, strlen(err->what));
	fprintf(stderr, "luabpf: %s\n", text_str(&line));
	text_clear(&line);
	text_put_clean(&line, remedy, strlen(remedy));
	if (*text_str(&line))
		fprintf(stderr, "  %s\n", text_str(&line));
}

int cmd_help(const struct options *opts)
{
	__outfile struct outfile *out = NULL;
	struct error err = {};
	int ret = outfile_open("-", &out, &err);

	if (!ret && opts->verb == VERB_VERSION)
		fputs("luabpf " LUABPF_VERSION "\n", outfile_stream(out));
	else if (!ret)
		cli_help(outfile_stream(out));
	if (!ret)
		ret = outfile_commit(&out, &err);
	if (!ret)
		return EXIT_DONE;
	cmd_error(ret, &err);
	return EXIT_FAILED;
}
