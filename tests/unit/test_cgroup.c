// SPDX-License-Identifier: BSD-2-Clause
/* Containers and units by lines of /proc/PID/cgroup, as each manager writes them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc/cgroup.h"

#define ID "3f4a5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f90112233445566778aa"
#define ID2 "aa4a5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f90112233445566778bb"
#define UID "1f0a1b2c-3d4e-5f60-7182-93a4b5c6d7e8"
#define UID_ "1f0a1b2c_3d4e_5f60_7182_93a4b5c6d7e8"
#define STATIC_UID                                                                                 \
	"1f0a1b2c3d4e5f60718293a4b5c6d7e8" /* of a pod that the kubelet has from a file */

static struct cgroup parsed;

static void parse(const char *text)
{
	cgroup_parse(text, strlen(text), &parsed);
}

static void is(const char *text, const char *runtime, const char *id, const char *pod)
{
	parse(text);
	cr_expect_str_eq(parsed.runtime ?: "", runtime, "%s: %s", text, parsed.runtime ?: "none");
	cr_expect_str_eq(parsed.id, id, "%s: %s", text, parsed.id);
	cr_expect_str_eq(parsed.pod, pod, "%s: %s", text, parsed.pod);
}

static void shown(const char *text, const char *label)
{
	__text struct text out = {0};

	parse(text);
	cgroup_put(&parsed, &out);
	cr_expect_str_eq(text_str(&out), label, "%s: %s", text, text_str(&out));
}

Test(cgroup, docker)
{
	is("0::/system.slice/docker-" ID ".scope\n", "docker", ID, "");
	is("0::/docker/" ID "\n", "docker", ID, "");
	is("0::/docker/" ID "/init.scope\n", "docker", ID, "");
	is("0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID ".scope\n",
	   "docker", ID, "");
	is("12:memory:/docker/" ID "\n4:cpu,cpuacct:/docker/" ID "\n1:name=systemd:/docker/" ID
	   "\n0::/system.slice/containerd.service\n",
	   "docker", ID, "");
	is("11:pids:/system.slice/docker-" ID ".scope\n1:name=systemd:/system.slice/docker-" ID
	   ".scope\n0::/\n",
	   "docker", ID, "");
	is("0::/system.slice/docker.service\n", "", "docker.service", "");
}

Test(cgroup, containerd)
{
	is("0::/default/web\n", "containerd", "web", "");
	is("9:pids:/default/web-1\n0::/default/web-1\n", "containerd", "web-1", "");
	is("0::/default/" ID "\n", "containerd", ID, "");
	is("0::/system.slice/nerdctl-" ID ".scope\n", "containerd", ID, "");
	is("0::/k8s.io/" ID "\n", "containerd", ID, "");
	is("0::/system.slice/containerd.service\n", "", "containerd.service", "");
	is("0::/x/default/web\n", "", "", "");
}

Test(cgroup, podman)
{
	is("0::/machine.slice/libpod-" ID ".scope\n", "podman", ID, "");
	is("0::/machine.slice/libpod-" ID ".scope/container\n", "podman", ID, "");
	is("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
	   ".scope/container\n",
	   "podman", ID, "");
	is("0::/libpod_parent/libpod-" ID "\n", "podman", ID, "");
	is("0::/system.slice/web.service/libpod-payload-" ID "\n", "podman", ID, "");
	is("5:memory:/machine.slice/libpod-" ID ".scope\n1:name=systemd:/machine.slice/libpod-" ID
	   ".scope\n",
	   "podman", ID, "");
	/* the monitor is not in the container */
	is("0::/machine.slice/libpod-conmon-" ID ".scope\n", "", "libpod-conmon-" ID ".scope", "");
}

Test(cgroup, kubernetes)
{
	is("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
	   ".slice/cri-containerd-" ID ".scope\n",
	   "containerd", ID, UID);
	is("0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope\n", "cri-o", ID, UID);
	is("0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope/container\n", "cri-o",
	   ID, UID);
	is("0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_
	   ".slice/docker-" ID ".scope\n",
	   "docker", ID, UID);
	is("0::/kubepods/burstable/pod" UID "/" ID "\n", "kubernetes", ID, UID);
	is("12:memory:/kubepods/besteffort/pod" UID "/" ID
	   "\n1:name=systemd:/kubepods/besteffort/pod" UID "/" ID "\n0::/\n",
	   "kubernetes", ID, UID);
	is("0::/kubepods/pod" STATIC_UID "/" ID "\n", "kubernetes", ID, STATIC_UID);
	/* containerd with the systemd driver off, the kubelet's on */
	is("0::/system.slice/containerd.service/kubepods-burstable-pod" UID_
	   ".slice:cri-containerd:" ID "\n",
	   "containerd", ID, UID);
	is("0::/kubepods/burstable/pod" UID "\n", "", "", UID);
	/* a cluster in a container: the innermost one */
	is("0::/docker/" ID2 "/kubelet/kubepods/burstable/pod" UID "/" ID "\n", "kubernetes", ID,
	   UID);
	is("0::/docker/" ID2 "/kubelet.slice/kubelet-kubepods.slice/cri-containerd-" ID ".scope\n",
	   "containerd", ID, "");
}

Test(cgroup, units)
{
	is("0::/system.slice/foo.service\n", "", "foo.service", "");
	is("0::/system.slice/foo.service/worker\n", "", "foo.service", "");
	is("0::/system.slice/system-foo.slice/foo@a\\x2db.service\n", "", "foo@a\\x2db.service",
	   "");
	is("0::/user.slice/user-1000.slice/user@1000.service/app.slice/bar.service\n", "",
	   "bar.service", "");
	is("0::/user.slice/user-1000.slice/session-3.scope\n", "", "session-3.scope", "");
	is("0::/system.slice/foo.service (deleted)\n", "", "foo.service", "");
	is("9:memory:/system.slice/foo.service\n1:name=systemd:/system.slice/foo.service\n0::/\n",
	   "", "foo.service", "");
	is("0::/docker/" ID "/system.slice/foo.service\n", "docker", ID, "");
}

Test(cgroup, none)
{
	is("0::/\n", "", "", "");
	is("", "", "", "");
	is("12:memory:/\n0::/user.slice\n", "", "", "");
	is("0::/docker\n", "", "", "");
	is("0::/docker/3f4a5b\n", "", "", "");
	is("0::/docker/" ID "0\n", "", "", "");
	is("0::/.service\n", "", "", "");
	is("0::/kubepods/pod\n", "", "", "");
	is("0::/kubepods/pod" UID "0\n", "", "", "");
	is("0", "", "", "");
	is("0:::::", "", "", "");
	is("\n\n:\n::\n", "", "", "");
}

Test(cgroup, labels)
{
	shown("0::/system.slice/docker-" ID ".scope\n", "docker:3f4a5b6c7d8e");
	shown("0::/lxd/" ID "\n", "container:3f4a5b6c7d8e");
	shown("0::/default/web\n", "containerd:web");
	shown("0::/kubepods/burstable/pod" UID "/" ID "\n", "kubernetes:3f4a5b6c7d8e");
	shown("0::/kubepods/burstable/pod" UID "\n", "pod:" UID);
	shown("0::/system.slice/foo.service\n", "foo.service");
	shown("0::/system.slice/\033[2J.service\n", "\\x1b[2J.service");
	shown("0::/\n", "");
}

/* Every beginning of a file, in memory that ends there; names that are too long, or hold a NUL. */
Test(cgroup, hostile)
{
	static const char text[] = "12:memory:/kubepods/burstable/pod" UID "/" ID
				   "\n0::/system.slice/containerd.service/kubepods-pod" UID_
				   ".slice:cri-containerd:" ID "\n";
	char name[400] = "0::/";
	size_t len;

	for (len = 0; len < sizeof(text); len++) {
		char *bytes __free = malloc(len ?: 1);

		memcpy(bytes, text, len);
		cgroup_parse(bytes, len, &parsed);
		cr_expect(!*parsed.id || parsed.runtime || strstr(parsed.id, ".service"));
	}
	memset(name + 4, 'x', 300);
	strcpy(name + 304, ".service");
	is(name, "", "", "");
	cgroup_parse("0::/a\0b.service", 15, &parsed);
	cr_expect_str_eq(parsed.id, "a");
}

Test(cgroup, of_a_process)
{
	struct cgroup mine;

	cr_expect_eq(cgroup_of(getpid(), &mine), 0);
	cr_expect_eq(cgroup_of(0x3ffffffe, &mine), -ESRCH);
	cr_expect(!mine.runtime && !*mine.id && !*mine.pod);
}

static void has_path(const char *text, const char *path)
{
	parse(text);
	cr_expect_str_eq(parsed.path, path, "%s: %s", text, parsed.path);
}

/* Of version 2; else of the hierarchy that shows the container, else of the first. */
Test(cgroup, path)
{
	has_path("0::/\n", "/");
	has_path("0::/a/b c/x:y\n", "/a/b c/x:y");
	has_path("9:pids:/user.slice\n1:name=systemd:/system.slice/x.service\n0::/\n",
		 "/system.slice/x.service");
	has_path("9:pids:/a\n0::/b\n", "/b");
	has_path("9:pids:/a\n8:cpu:/b\n", "/a");
	has_path("9:pids:/docker/" ID "\n0::/system.slice/containerd.service\n",
		 "/system.slice/containerd.service");
	has_path("9:pids:/system.slice/y.service\n0::/docker/" ID "\n", "/docker/" ID);
	has_path("", "");
	has_path("no colon\n", "");
}

Test(cgroup, long_path)
{
	char text[8192] = "0::/";

	memset(text + 4, '\xff', sizeof(text) - 6);
	text[sizeof(text) - 2] = '\n';
	cgroup_parse(text, sizeof(text) - 1, &parsed);
	cr_expect_eq(strlen(parsed.path), sizeof(parsed.path) - 1);
}
