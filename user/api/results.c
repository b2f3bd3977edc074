// SPDX-License-Identifier: BSD-2-Clause
/* luabpf_losses(3): what came of a recording. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "prof/pprof.h"
#include "record/losses.h"
#include "recording.h"

#define LOSS_NOT_DELIVERED "not-delivered"

/* While it samples, counts of BPF are behind. */
static int count(luabpf *r)
{
	int err = recording_check(r);

	if (!err && !r->session)
		err = error_set(&r->error, -EINVAL, "this recording has not begun");
	if (err || r->state != RECORDING_ON)
		return err;
	shared_enter();
	err = session_count(r->session, &r->error);
	shared_leave();
	return err;
}

unsigned long luabpf_samples(const luabpf *r)
{
	return r->session ? prof_samples(session_prof(r->session)) : 0;
}

int luabpf_losses(luabpf *r, luabpf_loss callback, void *data)
{
	int err = count(r);
	const struct prof *prof;

	if (err)
		return err;
	prof = session_prof(r->session);
	for (size_t i = 0; i < prof_nlosses(prof); i++) {
		struct prof_loss loss;

		prof_loss(prof, i, &loss);
		callback(data, loss.reason, loss_sentence(loss.reason), loss.count);
	}
	if (r->dropped)
		callback(data, LOSS_NOT_DELIVERED,
			 "luabpf_stop() was called within the callback, which was not called again",
			 r->dropped);
	return 0;
}

static int write_to(luabpf *r, int fd)
{
	int own __close = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *f __fclose = own < 0 ? NULL : fdopen(own, "wb");

	if (!f)
		return -errno;
	own = -1; /* the stream's */
	return pprof_write(session_prof(r->session), f);
}

int luabpf_write(luabpf *r, int fd)
{
	int err = count(r);

	if (err)
		return err;
	err = write_to(r, fd);
	return err ? error_set(&r->error, err, "descriptor %d: %s", fd, strerror(-err)) : 0;
}

const char *luabpf_error(const luabpf *recording)
{
	luabpf *r = (luabpf *)recording; /* the text is its own, as that of luabpf_dumpstack() */

	text_clear(&r->message);
	text_put_clean(&r->message, r->error.what, strlen(r->error.what));
	if (*r->error.remedy)
		text_puts(&r->message, "; ");
	text_put_clean(&r->message, r->error.remedy, strlen(r->error.remedy));
	return text_str(&r->message);
}

const char *luabpf_version(void)
{
	return LUABPF_VERSION;
}
