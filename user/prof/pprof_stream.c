// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/hash.h"
#include "pprof_stream.h"

#define WBITS_GZIP (15 + 16)

/* For a large profile level 6 takes a third longer, and 3 % less room. */
#define LEVEL 4

struct string_entry {
	UT_hash_handle hh;
	int64_t index;
	char data[];
};

void stream_fail(struct writer *w, int err)
{
	if (!w->err)
		w->err = err;
}

/* Deflates what is in w->in. */
static void deflate_some(struct writer *w, int flush)
{
	unsigned char buf[16384];
	int rc;

	w->zip.avail_in = (uInt)w->nin;
	w->zip.next_in = w->in;
	do {
		w->zip.next_out = buf;
		w->zip.avail_out = sizeof(buf);
		rc = deflate(&w->zip, flush);
		if (rc == Z_STREAM_ERROR) {
			stream_fail(w, -EIO);
			return;
		}
		errno = 0;
		if (fwrite(buf, 1, sizeof(buf) - w->zip.avail_out, w->out) !=
		    sizeof(buf) - w->zip.avail_out) {
			stream_fail(w, errno ? -errno : -EIO);
			return;
		}
	} while (w->zip.avail_out == 0);
	w->nin = 0;
}

static void append(ProtobufCBuffer *buffer, size_t len, const uint8_t *data)
{
	struct writer *w = (struct writer *)buffer;

	if (w->err)
		return;
	while (len && !w->err) {
		size_t n = MIN(len, sizeof(w->in) - w->nin);

		memcpy(w->in + w->nin, data, n);
		w->nin += n;
		data += n;
		len -= n;
		if (w->nin == sizeof(w->in))
			deflate_some(w, Z_NO_FLUSH);
	}
}

void stream_put(struct writer *w, const Pprof__Profile *part)
{
	if (!w->err)
		protobuf_c_message_pack_to_buffer(&part->base, &w->base);
}

void stream_sample(struct writer *w, const Pprof__Sample *sample)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	ProtobufCBinaryData bytes = {.len = pprof__sample__get_packed_size(sample)};

	if (bytes.len > w->packed_cap) {
		free(w->packed);
		w->packed_cap = 2 * bytes.len;
		w->packed = malloc(w->packed_cap);
	}
	if (!w->packed) {
		w->packed_cap = 0;
		stream_fail(w, -ENOMEM);
		return;
	}
	pprof__sample__pack(sample, w->packed);
	bytes.data = w->packed;
	part.n_sample = 1;
	part.sample = &bytes;
	stream_put(w, &part);
}

/* Index of a string that is UTF-8 without control characters; writes it when it is new. */
int64_t stream_string(struct writer *w, const char *str)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	size_t len = strlen(str);
	struct string_entry *entry;

	HASH_FIND(hh, w->strings, str, len, entry);
	if (entry)
		return entry->index;
	entry = calloc(1, sizeof(*entry) + len + 1);
	if (!entry) {
		stream_fail(w, -ENOMEM);
		return 0;
	}
	memcpy(entry->data, str, len);
	entry->index = HASH_COUNT(w->strings);
	HASH_ADD(hh, w->strings, data, len, entry);
	if (!entry->hh.tbl) {
		free(entry);
		stream_fail(w, -ENOMEM);
		return 0;
	}
	part.n_string_table = 1;
	part.string_table = (char *[]){entry->data};
	stream_put(w, &part);
	return entry->index;
}

/* Index of the readable form of any bytes. */
int64_t stream_readable(struct writer *w, const char *raw)
{
	__text struct text clean = {0};

	text_put_utf8(&clean, raw, strlen(raw));
	if (text_err(&clean)) {
		stream_fail(w, text_err(&clean));
		return 0;
	}
	return stream_string(w, text_str(&clean));
}

int stream_open(struct writer *w, FILE *out)
{
	w->base.append = append;
	w->out = out;
	if (deflateInit2(&w->zip, LEVEL, Z_DEFLATED, WBITS_GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	return 0;
}

int stream_close(struct writer *w)
{
	struct string_entry *s, *snext;

	if (!w->err)
		deflate_some(w, Z_FINISH);
	if (!w->err && fflush(w->out))
		stream_fail(w, -errno);
	HASH_ITER (hh, w->strings, s, snext) {
		HASH_DEL(w->strings, s);
		free(s);
	}
	free(w->origins);
	text_free(&w->text);
	free(w->packed);
	deflateEnd(&w->zip);
	return w->err;
}
