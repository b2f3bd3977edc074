# SPDX-License-Identifier: BSD-2-Clause
"""Events at a fixed distance show one part of a loop whose round takes as long: their periods vary, around the mean."""
import struct
import subprocess

import pytest

import vms

HELD = 32  # samples, at least: PERIOD_SAMPLES
RANGE = 10  # PERIOD_RANGE

# In luabpf: each new period of an event goes to $PERIODS, too.
LISTENER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
int ioctl(int fd, unsigned long request, ...)
{
	static int (*next)(int, unsigned long, ...);
	va_list args;
	void *arg;

	if (!next)
		next = dlsym(RTLD_NEXT, "ioctl");
	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request == PERF_EVENT_IOC_PERIOD) {
		int file = open(getenv("PERIODS"), O_CREAT | O_WRONLY | O_APPEND, 0600);

		if (write(file, arg, 8) != 8)
			abort();
		close(file);
	}
	return next(fd, request, arg);
}
"""


@pytest.fixture
def listen(tmp_path):
    """Returns (the environment of a luabpf, a function that reads its periods so far)."""
    (tmp_path / "listen.c").write_text(LISTENER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "listen.so", tmp_path / "listen.c"], check=True)
    file = tmp_path / "periods"
    file.touch()
    return ({"LD_PRELOAD": tmp_path / "listen.so", "PERIODS": file},
            lambda: [n for n, in struct.iter_unpack("=Q", file.read_bytes())])


@pytest.mark.parametrize("vm", ["luajit", "lua5.4"])
@pytest.mark.parametrize("hz", [100, 1000])
def test_of_a_thread(listen, vm, hz):
    """Ten periods in the range, at least HELD samples between two of them. Of ten random ones at least three differ: they are
    of 100,000 and more."""
    env, periods = listen
    with vms.Target([vm, "-e", "print('ready') io.flush() io.read() while true do end"]) as t:
        t.ready()
        tool = vms.Luabpf("-p", t.pid, "-F", hz, "-jp=G", env=env).wait_banner()
        t.go()
        vms.wait_until(lambda: len(periods()) >= 10)
        tool.signal()
        r = tool.done()
    assert r.code == 0, r
    got, mean = periods(), 10**9 // hz
    assert all(abs(p - mean) <= mean // RANGE for p in got) and len(set(got)) >= 3, (got, r)
    # the event's own clock may be a little off the thread's
    assert len(got) * HELD * (1 - 1 / RANGE) * 0.9 / hz < r.stats["cpu_seconds"], (got, r)


def test_of_cpus(listen):
    env, periods = listen
    with vms.Target(["luajit", "-joff", "-e", "print('ready') io.flush() io.read() while true do end"]) as t:
        t.ready()
        tool = vms.Luabpf("--all", "-F", 1000, "-jp=G", env=env).wait_banner()
        t.go()
        vms.wait_until(lambda: len(periods()) >= 10)
        tool.signal()
        r = tool.done()
    assert r.code == 0, r
    got = periods()
    assert all(abs(p - 10**6) <= 10**6 // RANGE for p in got) and len(set(got)) >= 3, (got, r)


def test_not_of_a_command_with_few_samples(listen):
    """BPF draws its samples from events each millisecond: they are no fixed distance apart."""
    env, periods = listen
    r = vms.luabpf("-F", 100, "-jp=G", "--", "luajit", "-e", "local t = os.clock() repeat until os.clock() - t > 1", env=env)
    assert r.code == 0 and r.stats["samples"] and not periods(), (periods(), r)
