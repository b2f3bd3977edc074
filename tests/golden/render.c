// SPDX-License-Identifier: BSD-2-Clause
/*
 * Renders a profile that a test wrote down as text. Usage:
 *
 *   render SAMPLES direct|pprof    for each line of stdin, an option string of -jp (or "!folded"):
 *                                  the report as "LENGTH\n" and that many bytes; "pprof" saves
 *                                  and loads the profile first
 *   render SAMPLES save FILE       writes it as pprof
 *
 * SAMPLES has one thing per line, words separated by one space. Strings have %XX for what is not a
 * letter, digit or one of "_.-"; a string that is not known is the single character ~.
 *
 *   M period_ns time_ns duration_ns
 *   F kind callname defname chunk symbol addr firstline line position     kind: L C B X
 *   R vmstate pid tid comm count zone frame...                   leaf first; frames count from 0
 *   L reason count
 */
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "out/folded.h"
#include "out/jitp.h"
#include "prof/pprof.h"
#include "source_plain.h"

#define MAX_FRAMES 65536

static uint32_t ids[MAX_FRAMES];
static size_t nids;

static char *word(char **line)
{
	char *w = strsep(line, " ");

	if (!w)
		errx(2, "a word is missing");
	return w;
}

static uint64_t number(char **line)
{
	return strtoull(word(line), NULL, 0);
}

static int32_t integer(char **line)
{
	return (int32_t)strtol(word(line), NULL, 0);
}

static void unescape(char *s)
{
	char *to = s;

	while (*s) {
		char hex[3] = {0};

		if (*s != '%' || !isxdigit(s[1]) || !isxdigit(s[2])) {
			*to++ = *s++;
			continue;
		}
		memcpy(hex, s + 1, 2);
		*to++ = (char)strtoul(hex, NULL, 16);
		s += 3;
	}
	*to = '\0';
}

static const char *string(char **line)
{
	char *w = word(line);

	if (!strcmp(w, "~"))
		return NULL;
	unescape(w);
	return w;
}

static enum prof_kind kind_of(const char *letter)
{
	switch (*letter) {
	case 'L':
		return PROF_LUA;
	case 'C':
		return PROF_C;
	case 'B':
		return PROF_BUILTIN;
	case 'X':
		return PROF_CUT;
	}
	errx(2, "no such kind: %s", letter);
}

static void read_frame(struct prof *prof, char *line)
{
	struct prof_frame frame = {.kind = kind_of(word(&line))};

	if (nids == MAX_FRAMES)
		errx(2, "too many frames");
	frame.callname = string(&line);
	frame.defname = string(&line);
	frame.chunk = string(&line);
	frame.symbol = string(&line);
	frame.addr = number(&line);
	frame.firstline = integer(&line);
	frame.line = integer(&line);
	frame.position = string(&line);
	if (prof_frame_id(prof, &frame, &ids[nids++]))
		errx(2, "prof_frame_id");
}

static void read_row(struct prof *prof, char *line)
{
	struct prof_labels labels = {0};
	static uint32_t frames[MAX_FRAMES];
	uint64_t count;
	size_t n = 0;

	labels.vmstate = *word(&line);
	labels.pid = number(&line);
	labels.tid = number(&line);
	labels.comm = string(&line);
	count = number(&line);
	labels.zone = string(&line);
	while (line && n < MAX_FRAMES)
		frames[n++] = ids[number(&line)];
	if (prof_add(prof, frames, n, &labels, count))
		errx(2, "prof_add");
}

static void read_line(struct prof *prof, char *line)
{
	char *what = word(&line);
	struct prof_meta *meta = prof_meta(prof);
	const char *reason;

	switch (*what) {
	case 'M':
		meta->period_ns = number(&line);
		meta->time_ns = number(&line);
		meta->duration_ns = number(&line);
		break;
	case 'F':
		read_frame(prof, line);
		break;
	case 'R':
		read_row(prof, line);
		break;
	case 'L':
		reason = string(&line);
		prof_lose(prof, reason, number(&line));
		break;
	default:
		errx(2, "no such line: %s", what);
	}
}

static struct prof *read_samples(const char *path)
{
	__fclose FILE *in = fopen(path, "r");
	__free char *line = NULL;
	struct prof *prof;
	size_t cap = 0;
	ssize_t len;

	if (!in || prof_new(&prof))
		err(2, "%s", path);
	while ((len = getline(&line, &cap, in)) > 0) {
		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		if (*line)
			read_line(prof, line);
	}
	return prof;
}

static struct prof *save_and_load(struct prof *prof)
{
	__free char *data = NULL;
	size_t len = 0;
	FILE *file = open_memstream(&data, &len);
	struct prof *loaded;
	struct error error;

	if (!file || pprof_write(prof, file))
		errx(2, "pprof_write");
	fclose(file);
	if (pprof_read(data, len, "saved", &loaded, &error))
		errx(1, "%s", error.what);
	prof_free(&prof);
	return loaded;
}

static void render(const struct prof *prof, const char *option, FILE *out)
{
	struct jitp_options options;
	struct error error;

	if (!strcmp(option, "!folded")) {
		folded_write(prof, out);
		return;
	}
	if (jitp_options(option, &options, &error))
		errx(1, "%s: %s", option, error.what);
	if (jitp_render(prof, &options, &source_plain, out))
		errx(1, "%s: jitp_render", option);
}

static void render_all(const struct prof *prof)
{
	__free char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		__free char *data = NULL;
		size_t len = 0;
		FILE *out = open_memstream(&data, &len);

		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (!out)
			err(2, "memory");
		render(prof, line, out);
		fclose(out);
		printf("%zu\n", len);
		fwrite(data, 1, len, stdout);
	}
}

int main(int argc, char **argv)
{
	struct prof *prof;

	if (argc < 3)
		errx(2, "usage: render SAMPLES direct|pprof|save [FILE]");
	prof = read_samples(argv[1]);
	if (!strcmp(argv[2], "save")) {
		__fclose FILE *out = argc > 3 ? fopen(argv[3], "w") : NULL;

		if (!out || pprof_write(prof, out))
			err(1, "cannot write");
		prof_free(&prof);
		return 0;
	}
	if (!strcmp(argv[2], "pprof"))
		prof = save_and_load(prof);
	render_all(prof);
	prof_free(&prof);
	return 0;
}
