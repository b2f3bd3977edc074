// SPDX-License-Identifier: BSD-2-Clause
/* Parses the command line and runs its verb. */
#include <errno.h>
#include <fcntl.h>

#include "base/signals.h"
#include "cli/cli.h"
#include "cmds/cmds.h"

/* A descriptor 0, 1 or 2 that came closed must not become that of a file we open. Writes to it
 * fail. */
static void occupy_std_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static int dispatch(const struct options *opts)
{
	switch (opts->verb) {
	case VERB_RECORD:
		return cmd_record(opts);
	case VERB_REPORT:
		return cmd_report(opts);
	case VERB_DOCTOR:
		return cmd_doctor(opts);
	case VERB_PS:
		return cmd_ps(opts);
	case VERB_COUNT:
		return cmd_count(opts);
	case VERB_TRACE:
		return cmd_trace(opts);
	case VERB_TRACES:
		return cmd_traces(opts);
	case VERB_HELP:
	case VERB_VERSION:
		return cmd_help(opts);
	}
	return EXIT_FAILED;
}

int main(int argc, char **argv)
{
	__options struct options *opts = NULL;
	struct error err;
	int ret;

	occupy_std_fds();
	signals_take();
	ret = cli_parse(argc, argv, &opts, &err);
	if (!ret)
		return dispatch(opts);
	cmd_error(ret, &err);
	if (ret != -EINVAL)
		return EXIT_FAILED;
	fprintf(stderr, "try luabpf --help\n");
	return EXIT_USAGE;
}
