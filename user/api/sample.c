// SPDX-License-Identifier: BSD-2-Clause
/* A sample's stack and labels. Names are those of luabpf's reports (prof/function.h), by what is known so far. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "out/dumpstack.h"
#include "out/folded_name.h"
#include "prof/name.h"
#include "recording.h"

static struct prof_row row_of(const luabpf_sample *s)
{
	struct prof_row row;

	prof_row(session_prof(s->recording->session), s->row, &row);
	return row;
}

/* Names are chosen again when a frame has come: it may be a function of the same name. */
static int choose_names(luabpf *r, const struct prof *prof)
{
	size_t n = prof_nframes(prof);

	if (r->functions && r->nframes == n)
		return 0;
	functions_free(&r->functions);
	r->nframes = n;
	return functions_new(prof, &r->functions);
}

struct naming {
	luabpf *recording;
	bool folded;
};

static int put_frame(void *arg, struct text *out, uint32_t frame, char what, unsigned int flags)
{
	const struct naming *n = arg;
	struct text *raw = &n->recording->raw;

	text_clear(raw);
	functions_put_jitp(n->recording->functions, raw, frame, what, flags);
	if (n->folded)
		folded_put_frame(out, raw);
	else
		text_put_clean(out, text_str(raw), raw->len);
	return text_err(raw);
}

const char *luabpf_dumpstack(luabpf_sample *s, const char *fmt, int depth, size_t *len)
{
	luabpf *r = s->recording;
	const struct prof *prof = session_prof(r->session);
	struct naming naming = {.recording = r, .folded = strchr(fmt, ';') != NULL};
	const struct dumpstack how = {
		.fmt = fmt,
		.depth = depth,
		.folded = naming.folded,
		.most = SIZE_MAX,
		.put = put_frame,
		.arg = &naming,
	};
	struct prof_row row = row_of(s);
	int err = choose_names(r, prof);

	text_clear(&r->dump);
	if (!err)
		err = dumpstack(&how, prof, &row, &r->dump);
	if (err || text_err(&r->dump)) {
		error_set(&r->error, -ENOMEM, "out of memory");
		return NULL;
	}
	if (len)
		*len = r->dump.len;
	return text_str(&r->dump);
}

int luabpf_pid(const luabpf_sample *s)
{
	return (int)row_of(s).labels.pid;
}

int luabpf_tid(const luabpf_sample *s)
{
	return (int)row_of(s).labels.tid;
}

unsigned long luabpf_vm_id(const luabpf_sample *s)
{
	return row_of(s).labels.vm;
}

/* As readable text; NULL for "" or NULL. */
static const char *readable(luabpf *r, const char *label)
{
	text_clear(&r->name);
	if (label)
		text_put_clean(&r->name, label, strlen(label));
	return r->name.len && !text_err(&r->name) ? text_str(&r->name) : NULL;
}

/* Returns the label of a coroutine or of a VM: its address. NULL: it has none. */
static const char *address_label(luabpf *r, uint64_t address)
{
	char id[32];

	if (!address)
		return NULL;
	name_coroutine(address, id, sizeof(id));
	return readable(r, id);
}

const char *luabpf_label(luabpf_sample *s, const char *name)
{
	luabpf *r = s->recording;
	struct prof_row row = row_of(s);
	const struct prof_origin *origin;

	if (!strcmp(name, "comm"))
		return readable(r, row.labels.comm);
	if (!strcmp(name, "coroutine"))
		return address_label(r, row.labels.coroutine);
	if (!strcmp(name, "vm_id"))
		return address_label(r, row.labels.vm);
	if (!strcmp(name, "zone"))
		return row.labels.zone && strcmp(row.labels.zone, PROF_NO_ZONE) != 0
			       ? readable(r, row.labels.zone)
			       : NULL;
	origin = prof_origin(session_prof(r->session), row.labels.origin);
	for (int i = 0; i < PROF_ORIGIN_STRINGS; i++)
		if (!strcmp(name, prof_origin_labels[i]))
			return readable(r, origin->string[i]);
	return NULL;
}
