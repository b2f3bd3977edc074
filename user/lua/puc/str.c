/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *     head | text                  all other strings
 *     head | pointer to the text   long strings of 5.5
 *
 * where the head has a length of one byte for short strings (5.3.1 on) and a size_t for others.
 */
#include "str.h"

#include <errno.h>
#include <string.h>

#include "lua/foreign.h"

#define FIRST_READ 64 /* head and text of most names */

struct head {
	uint8_t bytes[FIRST_READ];
	uint32_t have; /* bytes that were read */
};

struct puc_str_text {
	uint64_t addr;
	uint64_t len;
	bool inline_; /* follows the head */
};

static int read_head(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t ref,
		     struct head *h)
{
	if (!foreign_plausible(ref))
		return -EBADMSG;
	h->have = FIRST_READ;
	if (!mem_read(mem, h->bytes, h->have, ref))
		return 0;
	h->have = puc->s_text;
	return mem_read(mem, h->bytes, h->have, ref) ? -EFAULT : 0;
}

static int find_text(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t ref,
		     const struct head *h, struct puc_str_text *t)
{
	uint8_t tt = h->bytes[PUC_GC_TT] & PUC_TT_MASK;
	bool is_short = tt == puc->tt_shrstr;

	if (!is_short && tt != puc->tt_lngstr)
		return -EBADMSG;
	memcpy(&t->len, h->bytes + puc->s_len, sizeof(t->len));
	if (is_short && puc->s_shrlen != PUC_NONE)
		t->len = h->bytes[puc->s_shrlen];
	t->inline_ = is_short || puc->version < 55;
	t->addr = ref + puc->s_text;
	if (t->inline_)
		return 0;
	return mem_read(mem, &t->addr, sizeof(t->addr), ref + puc->s_text);
}

/*
 * True if a NUL follows the text. All strings have one, which their length does not count. Another
 * byte shows that it is no string of this layout: a patched VM's names would be garbage.
 */
static bool is_terminated(const struct lb_mem *mem, const struct puc_layout *puc,
			  const struct head *h, const struct puc_str_text *t)
{
	uint8_t end;

	if (t->inline_ && t->len < h->have - puc->s_text)
		return !h->bytes[puc->s_text + t->len];
	return mem_read(mem, &end, sizeof(end), t->addr + t->len) || !end; /* or not readable */
}

int puc_str_read(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t ref, char *dst,
		 size_t max, size_t *len, bool *cut)
{
	struct head h;
	struct puc_str_text t;
	uint32_t want;
	int err = read_head(mem, puc, ref, &h);

	if (!err)
		err = find_text(mem, puc, ref, &h, &t);
	if (err)
		return err;
	if (!is_terminated(mem, puc, &h, &t))
		return -EBADMSG;
	want = (uint32_t)(t.len < max ? t.len : max);
	if (t.inline_ && puc->s_text + want <= h.have) {
		memcpy(dst, h.bytes + puc->s_text, want);
	} else if (want) {
		uint32_t got = foreign_prefix(mem, dst, t.addr, want, 1);

		*cut |= got < want;
		want = got;
	}
	dst[want] = '\0';
	*len = want;
	return 0;
}
