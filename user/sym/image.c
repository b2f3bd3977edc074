// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "image_priv.h"
#include "proc/process.h"

/* A program that makes functions without end must not make us keep them without end. */
#define KNOWN_MAX 20000
#define FRAMES_MAX 100000

static void drop_frames(struct image *image)
{
	struct cached_frame *f, *tmp;

	HASH_ITER (hh, image->frames, f, tmp) {
		HASH_DEL(image->frames, f);
		free(f);
	}
}

/*
 * Also when one prototype turns out to be another: its content is in the frames that show it, in
 * those of the functions that it called, and by way of definitions in any that stood on it.
 */
static void forget_frames(void *arg)
{
	struct image *image = arg;

	image->owner->changes++;
	drop_frames(image);
}

int image_new(struct symbolizer *symbolizer, pid_t pid, struct image **out)
{
	struct image *image __cleanup(image_free) = calloc(1, sizeof(*image));
	int r;

	if (!image)
		return -ENOMEM;
	image->owner = symbolizer;
	mem_remote_init(&image->remote, pid);
	r = protos_new(&image->remote.mem, forget_frames, image, &image->protos);
	if (!r)
		r = native_maps_new(symbolizer->native, pid, &image->maps);
	if (r)
		return r;
	*out = TAKE_PTR(image);
	return 0;
}

bool image_learn(struct image *image)
{
	if (image->learned)
		return false;
	image->learned = true;
	native_learn(image->maps);
	origin_read(&image->origin, image->remote.pid);
	return true;
}

void image_free(struct image **image)
{
	struct image *i = *image;

	if (!i)
		return;
	forget_frames(i);
	protos_free(&i->protos);
	vm_names_free(&i->vms);
	kept_free(&i->kept);
	vm_zones_free(&i->zones);
	alike_free(&i->alike);
	if (i->compiled)
		i->compiled->family->compiled_free(&i->compiled);
	native_maps_free(&i->maps);
	origin_free(&i->origin);
	free(i);
	*image = NULL;
}

void image_fork(struct image *image, struct image *parent)
{
	image_learn(image);
	image_learn(parent);
	native_fork(image->maps, parent->maps);
	origin_fork(&image->origin, &parent->origin);
}

void image_ended(struct image *image)
{
	protos_end(image->protos);
}

bool image_share(struct image *image)
{
	return protos_share(image->protos, image->owner->round);
}

void image_left(struct image *image)
{
	protos_left(image->protos, image->owner->round);
}

void image_begin_profile(struct image *image, image_evicted_fn *fn, void *arg)
{
	drop_frames(image);
	alike_free(&image->alike); /* it has the numbers of the profile's frames */
	origin_forget(&image->origin);
	protos_evict(image->protos, image->profile_round, fn, arg);
	image->profile_round = image->owner->round;
}

struct image_sizes image_sizes(const struct image *image)
{
	return (struct image_sizes){
		.prototypes = protos_kept(image->protos),
		.frames = HASH_COUNT(image->frames),
	};
}

void image_bound(struct image *image)
{
	if (protos_count(image->protos) <= KNOWN_MAX && HASH_COUNT(image->frames) <= FRAMES_MAX)
		return;
	forget_frames(image);
	protos_clear(image->protos);
}

uint64_t image_maps_now(struct image *image, uint64_t addr)
{
	if (addr >= image->text_start && addr < image->text_end)
		return 0;
	if (image->maps_round != image->owner->round) {
		image->maps_round = image->owner->round;
		if (!image->text_end)
			process_text(image->remote.pid, &image->text_start, &image->text_end);
		native_learn(image->maps); /* what was known stays when it has ended */
	}
	return native_maps_id(image->maps);
}
