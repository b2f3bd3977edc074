// SPDX-License-Identifier: BSD-2-Clause
/* Any bytes as /proc/PID/cgroup: what is found are bytes of the text, and is shown on one line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proc/cgroup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	__text struct text label = {0};
	struct cgroup found;
	const char *c;

	cgroup_parse((const char *)data, size, &found);
	if (!memchr(found.id, '\0', sizeof(found.id)) ||
	    !memchr(found.pod, '\0', sizeof(found.pod)) ||
	    !memchr(found.path, '\0', sizeof(found.path)))
		abort();
	if (*found.path && !memmem(data, size, found.path, strlen(found.path)))
		abort();
	if (*found.id && !memmem(data, size, found.id, strlen(found.id)))
		abort();
	if (*found.pod && strspn(found.pod, "0123456789abcdef-") != strlen(found.pod))
		abort();
	cgroup_put(&found, &label);
	for (c = text_str(&label); *c; c++)
		if ((unsigned char)*c < ' ' && *c != '\t')
			abort();
	return 0;
}
