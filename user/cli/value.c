// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "value.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int append_digit(char c, uint64_t max, uint64_t *value)
{
	unsigned digit = c - '0';

	if (*value > max / 10 || *value * 10 > max - digit)
		return -ERANGE;
	*value = *value * 10 + digit;
	return 0;
}

int cli_decimal(const char *text, unsigned decimals, uint64_t max, uint64_t *value)
{
	bool any = false, point = false;
	uint64_t v = 0;
	int ret = 0;

	for (; *text; text++) {
		if (*text == '.' && !point) {
			point = true;
			continue;
		}
		if (!is_digit(*text))
			return -EINVAL;
		any = true;
		if (point && !decimals)
			continue;
		decimals -= point;
		if (!ret)
			ret = append_digit(*text, max, &v);
	}
	if (!any)
		return -EINVAL;
	while (decimals-- && !ret)
		ret = append_digit('0', max, &v);
	if (!ret)
		*value = v;
	return ret;
}

static int add_pid(pid_t pid, pid_t **pids, size_t *npids)
{
	for (size_t i = 0; i < *npids; i++) {
		if ((*pids)[i] == pid)
			return 0;
	}
	if (array_grow(pids, *npids, sizeof(pid)))
		return -ENOMEM;
	(*pids)[(*npids)++] = pid;
	return 0;
}

int cli_pids(const char *text, pid_t **pids, size_t *npids)
{
	static const char separators[] = ", \t\n";

	text += strspn(text, separators + 1);
	do {
		uint64_t pid = 0;
		int ret = 0;

		if (!is_digit(*text))
			return -EINVAL;
		for (; is_digit(*text) && !ret; text++)
			ret = append_digit(*text, INT_MAX, &pid);
		if (ret || !pid || (*text && !strchr(separators, *text)))
			return -EINVAL;
		ret = add_pid(pid, pids, npids);
		if (ret)
			return ret;
		/* At most one comma and any blanks: "1,,2" is an error. */
		text += strspn(text, separators + 1);
		if (*text == ',') {
			text += 1 + strspn(text + 1, separators + 1);
			if (!*text)
				return -EINVAL;
		}
	} while (*text);
	return 0;
}
