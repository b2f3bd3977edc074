// SPDX-License-Identifier: BSD-2-Clause
/*
 * Looks at the components of a cgroup's path, one after the other. Container managers give them these
 * names, where ID is 64 hexadecimal digits:
 *
 *   cgroupfs driver: docker/ID, libpod_parent/libpod-ID, kubepods/burstable/podUID/ID, NAMESPACE/NAME
 *   systemd driver: docker-ID.scope, libpod-ID.scope,
 *     kubepods-burstable-podUID.slice/cri-containerd-ID.scope, the UID with _ for -
 *   both at once, by mistake: kubepods-burstable-podUID.slice:cri-containerd:ID
 *
 * The files of a unit's processes are below NAME.service or NAME.scope.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cgroup.h"
#include "process.h"

#define ID_DIGITS 64
#define ID_SHOWN 12 /* as docker ps does */
#define FILE_MAX (64u << 10)

/* Bytes of the file. */
struct word {
	const char *at;
	size_t len;
};

static bool is(struct word w, const char *text)
{
	return w.len == strlen(text) && !memcmp(w.at, text, w.len);
}

static bool skip(struct word *w, const char *prefix)
{
	size_t len = strlen(prefix);

	if (w->len < len || memcmp(w->at, prefix, len) != 0)
		return false;
	w->at += len;
	w->len -= len;
	return true;
}

static bool cut(struct word *w, const char *suffix)
{
	size_t len = strlen(suffix);

	if (w->len < len || memcmp(w->at + w->len - len, suffix, len) != 0)
		return false;
	w->len -= len;
	return true;
}

/* Takes what is before the separator, or all. */
static struct word take(struct word *w, char separator)
{
	const char *end = memchr(w->at, separator, w->len);
	struct word first = {w->at, end ? (size_t)(end - w->at) : w->len};
	size_t used = first.len + (end != NULL);

	w->at += used;
	w->len -= used;
	return first;
}

static size_t span(struct word w, const char *bytes)
{
	size_t n = 0;

	while (n < w.len && w.at[n] && strchr(bytes, w.at[n]))
		n++;
	return n;
}

static bool is_id(struct word w)
{
	return w.len == ID_DIGITS && span(w, "0123456789abcdef") == ID_DIGITS;
}

static bool copy(struct word w, char *out, size_t size)
{
	if (!w.len || w.len >= size)
		return false;
	memcpy(out, w.at, w.len);
	out[w.len] = '\0';
	return true;
}

static void set_container(struct cgroup *out, const char *runtime, struct word id)
{
	if (copy(id, out->id, sizeof(out->id)))
		out->runtime = runtime;
}

/* "docker-ID.scope"; a runtime's own helper has another name: "libpod-conmon-ID.scope" */
static bool take_named(struct word w, struct cgroup *out)
{
	static const struct {
		const char *prefix, *runtime;
	} names[] = {
		{"docker-", "docker"},	    {"cri-containerd-", "containerd"},
		{"nerdctl-", "containerd"}, {"libpod-payload-", "podman"},
		{"libpod-", "podman"},	    {"crio-", "cri-o"},
	};
	size_t i;

	cut(&w, ".scope");
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct word id = w;

		if (!skip(&id, names[i].prefix) || !is_id(id))
			continue;
		set_container(out, names[i].runtime, id);
		return true;
	}
	return false;
}

/* "podUID"; "kubepods-burstable-podUID.slice"; 32 digits, and 4 dashes unless the pod is static */
static void take_pod(struct word w, struct cgroup *out)
{
	struct word uid = w;
	char *c;

	if (skip(&uid, "kubepods") && cut(&uid, ".slice")) {
		if (!skip(&uid, "-burstable") && !skip(&uid, "-besteffort"))
			skip(&uid, "-guaranteed");
		if (!skip(&uid, "-"))
			return;
	}
	if (!skip(&uid, "pod") || uid.len < 32 || uid.len > 36 ||
	    span(uid, "0123456789abcdef-_") != uid.len)
		return;
	copy(uid, out->pod, sizeof(out->pod));
	while ((c = strchr(out->pod, '_')))
		*c = '-';
	out->runtime = NULL; /* the containers of the pod come next */
	out->id[0] = '\0';
}

/* "podUID.slice:cri-containerd:ID", where runc was given systemd's names and does not use systemd */
static bool take_colons(struct word w, struct cgroup *out)
{
	struct word slice = take(&w, ':'), runtime = take(&w, ':');

	if (!is_id(w))
		return false;
	take_pod(slice, out);
	set_container(out,
		      is(runtime, "cri-containerd") ? "containerd"
		      : is(runtime, "docker")	    ? "docker"
		      : is(runtime, "crio")	    ? "cri-o"
						    : "container",
		      w);
	return true;
}

static const char *runtime_below(struct word parent, const struct cgroup *out)
{
	if (is(parent, "docker") || is(parent, "moby"))
		return "docker";
	if (is(parent, "k8s.io") || is(parent, "default"))
		return "containerd";
	return *out->pod ? "kubernetes" : "container";
}

static void take_component(struct word parent, bool is_second, struct word w, struct cgroup *out)
{
	struct word unit = w;

	if (take_named(w, out) || take_colons(w, out))
		return;
	/* ctr(8) names containers as it likes, in the namespace "default" of containerd */
	if (is_id(w) || (is_second && is(parent, "default")))
		set_container(out, runtime_below(parent, out), w);
	else if (!out->runtime && !*out->pod && (cut(&unit, ".service") || cut(&unit, ".scope")) &&
		 unit.len)
		copy(w, out->id, sizeof(out->id));
	else
		take_pod(w, out);
}

static void parse_path(struct word path, struct cgroup *out)
{
	struct word parent = {"", 0};
	unsigned depth = 0;

	path.len = process_path_len(path.at, path.len);
	while (path.len) {
		struct word w = take(&path, '/');

		if (!w.len)
			continue;
		take_component(parent, ++depth == 2, w, out);
		parent = w;
	}
}

static int rank(const struct cgroup *c)
{
	return c->runtime ? 3 : *c->pod ? 2 : *c->id ? 1 : 0;
}

void cgroup_parse(const char *text, size_t len, struct cgroup *out)
{
	struct word rest = {text, len};

	struct word path = {}, path2 = {};

	*out = (struct cgroup){};
	while (rest.len) {
		struct word line = take(&rest, '\n');
		struct word hierarchy = take(&line, ':'), controllers = take(&line, ':');
		struct cgroup found = {};

		parse_path(line, &found);
		if (!path.len)
			path = line;
		if (rank(&found) > rank(out)) {
			path = line;
			*out = found;
		}
		if (is(hierarchy, "0") && !controllers.len && line.len > 1)
			path2 = line;
	}
	if (path2.len)
		path = path2;
	if (path.len)
		snprintf(out->path, sizeof(out->path), "%.*s", (int)path.len, path.at);
}

int cgroup_of(pid_t pid, struct cgroup *out)
{
	char *text __free = malloc(FILE_MAX);
	FILE *f __fclose = NULL;
	char path[64];

	*out = (struct cgroup){};
	if (!text)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -ESRCH;
	cgroup_parse(text, fread(text, 1, FILE_MAX, f), out);
	return 0;
}

void cgroup_put(const struct cgroup *c, struct text *out)
{
	size_t len = strlen(c->id);
	bool is_hex = is_id((struct word){c->id, len});

	if (!c->runtime && *c->pod) {
		text_printf(out, "pod:%s", c->pod);
		return;
	}
	if (c->runtime)
		text_printf(out, "%s:", c->runtime);
	text_put_utf8(out, c->id, is_hex ? ID_SHOWN : len);
}
