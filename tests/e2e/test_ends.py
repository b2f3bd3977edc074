# SPDX-License-Identifier: BSD-2-Clause
"""luabpf ends when it is asked to, in each phase, and leaves nothing in the command that it holds. Each test brings it into
the phase by something that waits for good: a FIFO, a constructor, a stopped process."""
import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

import vms

pytestmark = pytest.mark.usefixtures("root")
LOOP = "local x = 0 while true do for i = 1, 1e5 do x = x + i % 7 end end"
SIGNALS = [signal.SIGINT, signal.SIGTERM]

# Runs before the program's entry, in the program that $HOLD names only: not in luabpf.
CONSTRUCTOR = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((constructor)) static void hold(int argc, char **argv)
{
	const char *name = getenv("HOLD"), *how = getenv("HOW"), *fifo = getenv("FIFO");

	(void)argc;
	if (!name || strcmp(name, program_invocation_short_name))
		return;
	unsetenv("HOLD");
	close(open(getenv("HERE"), O_CREAT | O_WRONLY, 0666));
	if (!strcmp(how, "wait"))
		close(open(fifo, O_RDONLY));
	else if (!strcmp(how, "exit"))
		_exit(7);
	else if (!strcmp(how, "die"))
		raise(SIGSEGV);
	else if (!strcmp(how, "exec"))
		execvp(argv[0], argv);
	else if (!strcmp(how, "fork")) {
		int status;
		if (fork())
			wait(&status), setenv("STATUS", status ? "bad" : "good", 1);
	} else if (!strncmp(how, "clone", 5)) {
		int status;
		if (syscall(SYS_clone, strtol(how + 5, NULL, 0), 0, 0, 0, 0))
			waitpid(-1, &status, __WALL), setenv("STATUS", status ? "bad" : "good", 1);
	} else if (!strcmp(how, "spawn")) {
		int status;
		pid_t pid;
		char *args[] = {"sh", "-c", "echo spawned", NULL};
		posix_spawn(&pid, "/bin/sh", NULL, NULL, args, environ);
		waitpid(pid, &status, 0), setenv("STATUS", status ? "bad" : "good", 1);
	} else if (!strcmp(how, "thread")) {
		pthread_t thread;
		pthread_create(&thread, NULL, (void *(*)(void *))getenv, "HOW");
		pthread_join(thread, NULL);
	} else if (!strcmp(how, "stop"))
		raise(SIGSTOP);
}
"""


@pytest.fixture(scope="module")
def preload(tmp_path_factory):
    path = tmp_path_factory.mktemp("preload")
    (path / "hold.c").write_text(CONSTRUCTOR)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path / "hold.so", path / "hold.c"], check=True)
    return path / "hold.so"


class Held:
    """luabpf, with a command whose constructor does something."""

    def __init__(self, preload, tmp_path, how, *command, **kw):
        self.here, self.fifo, name = tmp_path / "here", tmp_path / "fifo", Path(command[0]).name
        if not self.fifo.exists():
            os.mkfifo(self.fifo)
        self.tool = vms.Luabpf("-o", tmp_path / "p.pb.gz", "--", *command, stats=False, **kw,
                               env={"LD_PRELOAD": preload, "HOLD": name, "HOW": how, "HERE": self.here, "FIFO": self.fifo})

    def wait(self):
        """Returns the command, once it waits in its constructor."""
        vms.wait_until(self.here.exists)
        [command] = vms.commands_of(self.tool.p.pid)
        return command


def gone(pid):
    try:
        return state(pid) in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def ignored():
    """As a background job of a script is started."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


@pytest.mark.parametrize("sig,given", [(signal.SIGINT, None), (signal.SIGTERM, None), (signal.SIGHUP, None), (signal.SIGKILL, None),
                                       (signal.SIGINT, ignored), (signal.SIGTERM, ignored)])
def test_while_it_holds_a_command(preload, tmp_path, sig, given):
    """It ends, and the command with it: none of its program has run, no breakpoint is left to run into, and no file."""
    held = Held(preload, tmp_path, "wait", "sh", "-c", f"touch {tmp_path}/ran", preexec_fn=given)
    command = held.wait()
    held.tool.signal(sig)
    assert held.tool.done().code == -sig
    vms.wait_until(lambda: gone(command))
    assert {f.name for f in tmp_path.iterdir()} == {"here", "fifo"}


def state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0]


def test_a_command_that_is_stopped_before_its_entry(preload, tmp_path):
    """And continued: it is held at its entry after that."""
    held = Held(preload, tmp_path, "stop", "sh", "-c", "echo ran")
    command = held.wait()
    vms.wait_until(lambda: state(command) in "tT")
    os.kill(command, signal.SIGCONT)
    r = held.tool.done()
    assert (r.code, r.out) == (0, "ran\n"), r


def test_what_a_constructor_does(preload, tmp_path):
    """It makes a process, in each way: that one, which nobody traces, runs into no breakpoint, and the command does if the two share
    memory. It calls exec: the command is held once more."""
    for how in ("fork", "clone0", "clone0x4011"):  # without an end's signal; CLONE_VFORK | SIGCHLD
        r = Held(preload, tmp_path, how, "sh", "-c", "echo ran $STATUS").tool.done()
        assert (r.code, r.out) == (0, "ran\nran good\n"), (how, r)
    r = Held(preload, tmp_path, "spawn", "sh", "-c", "echo ran $STATUS").tool.done()
    assert (r.code, r.out) == (0, "spawned\nran good\n"), r
    r = Held(preload, tmp_path, "thread", "sh", "-c", "echo ran").tool.done()
    assert (r.code, r.out) == (0, "ran\n"), r
    r = Held(preload, tmp_path, "exec", "sh", "-c", "echo ran").tool.done()
    assert (r.code, r.out) == (0, "ran\n"), r


@pytest.mark.parametrize("how,said", [("exit", "with exit status 7"), ("die", "by SIGSEGV")])
def test_a_command_that_ends_before_its_entry(preload, tmp_path, how, said):
    r = Held(preload, tmp_path, how, "sh", "-c", "echo ran").tool.done()
    assert r.code == 1 and not r.out and f"sh: ended before its program began, {said}" in r.err, r


@pytest.mark.parametrize("sig", SIGNALS)
def test_while_it_opens_an_output(tmp_path, sig):
    os.mkfifo(tmp_path / "fifo")
    with vms.Target(["luajit", "-e", LOOP]).spend(0.02) as t:
        tool = vms.Luabpf("-p", t.pid, f"-jp=,{tmp_path}/fifo", stats=False)
        vms.wait_until(lambda: Path(f"/proc/{tool.p.pid}/syscall").read_text().split()[0] in ("2", "257"))  # open, openat
        tool.signal(sig)
        assert tool.done().code == -sig
        assert t.p.poll() is None


MANY = "".join(f"local function f{i}() local x = 0 for i = 1, 50 do x = x + i end end " for i in range(150)) + \
    "while true do " + " ".join(f"f{i}()" for i in range(150)) + " end"


def syscall(pid):
    """The number of the one that it waits in."""
    return Path(f"/proc/{pid}/syscall").read_text().split()[0]


@pytest.mark.parametrize("sig", SIGNALS)
def test_while_it_writes(tmp_path, sig):
    """To a FIFO that nobody reads, after -d."""
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, 1031, 4096)  # F_SETPIPE_SZ
    (tmp_path / "many.lua").write_text(MANY)
    with vms.Target(["luajit", "-joff", tmp_path / "many.lua"]).spend(0.02) as t:
        tool = vms.Luabpf("-p", t.pid, "-F", 4000, f"-jp=G,{tmp_path}/fifo", stats=False).wait_banner()
        t.spend(1)
        t.p.kill()  # it ends without a signal
        vms.wait_until(lambda: tool.p.poll() is not None or syscall(tool.p.pid) == "1" and
                       struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, bytes(4)))[0] == 4096)
        assert tool.p.poll() is None, "the report fitted into the pipe: this test tests nothing"
        tool.signal(sig)
        assert tool.done().code == -sig
    os.close(reader)


def dispositions(pid):
    """SIGINT and SIGTERM among the blocked, ignored and caught signals of a process."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    masks = [int(status[key], 16) for key in ("SigBlk", "ShdPnd", "SigIgn", "SigCgt")]
    return [mask >> (sig - 1) & 1 for mask in masks for sig in SIGNALS]


def test_report_is_ended_by_the_kernel(tmp_path):
    """A report leaves nothing to clean up: from its first read to its last write, no code has to ask for signals."""
    profile = tmp_path / "x.pb.gz"
    subprocess.run([vms.LUABPF.parent / "tests/bench/profile", "write", profile, "500", "500"], check=True, capture_output=True)
    saved = profile.read_bytes()
    for sig in SIGNALS:
        p = subprocess.Popen([vms.LUABPF, "report", "-", "-jp=G"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=vms.clean_env())
        p.stdin.write(saved[:1000])
        p.stdin.flush()
        vms.wait_until(lambda: syscall(p.pid) == "0")  # read
        assert not any(dispositions(p.pid))
        p.stdin.write(saved[1000:])
        p.stdin.close()
        vms.wait_until(lambda: syscall(p.pid) == "1")  # write: of more than the pipe holds
        assert not any(dispositions(p.pid))
        p.send_signal(sig)
        assert p.wait(vms.HANG) == -sig
        p.stdout.close()


def test_doctor_while_it_writes(tmp_path):
    read, write = os.pipe()
    fcntl.fcntl(write, 1031, 4096)
    os.write(write, bytes(4096))
    for sig in SIGNALS:
        p = subprocess.Popen([vms.LUABPF, "doctor"], stdout=write, env=vms.clean_env())
        vms.wait_until(lambda: syscall(p.pid) == "1")
        p.send_signal(sig)
        assert p.wait(vms.HANG) == -sig
    os.close(read)
    os.close(write)


def test_closed_terminal_after_a_hangup(tmp_path):
    """The shell hangs up, and so does the kernel when the shell has ended: the report is written all the same."""
    report = tmp_path / "report"
    with vms.Target(["luajit", "-joff", "-e", LOOP]).spend(0.02) as t:
        tool = vms.Luabpf("-p", t.pid, "-F", 1000, f"-jp=f,{report}",
                          preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)).wait_banner()
        t.spend(0.1)
        os.kill(t.pid, signal.SIGSTOP)
        for _ in range(20):
            tool.signal(signal.SIGHUP)
        r = tool.done()
    assert r.code == 0 and r.stats["ended_by"] == "signal" and "%" in report.read_text(), r


# Time stands still while $STILL exists.
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *now)
{
	static int (*next)(clockid_t, struct timespec *);
	static struct timespec last;
	int r;

	if (!next)
		next = dlsym(RTLD_NEXT, "clock_gettime");
	r = next(id, now);
	if (id != CLOCK_MONOTONIC)
		return r;
	if (last.tv_sec && !access(getenv("STILL"), F_OK))
		*now = last;
	last = *now;
	return r;
}
"""


@pytest.mark.parametrize("sig", SIGNALS)
@pytest.mark.parametrize("again", [True, False], ids=["again", "later"])
def test_a_second_signal(tmp_path, sig, again):
    """The second one ends luabpf, which waits for the reader of its report, but not if it is the first one again: timeout(1)
    sends one to its child and one to its process group."""
    (tmp_path / "clock.c").write_text(CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "clock.so", tmp_path / "clock.c"], check=True)
    env = vms.clean_env() | {"LD_PRELOAD": str(tmp_path / "clock.so"), "STILL": str(tmp_path / "still")}
    read, write = os.pipe()
    fcntl.fcntl(write, 1031, 4096)
    os.write(write, bytes(4096))
    with vms.Target(["luajit", "-joff", "-e", LOOP]).spend(0.02) as t:
        p = subprocess.Popen([vms.LUABPF, "-p", str(t.pid), "-F", "1000", "-jp=f"], stdout=write, stderr=subprocess.PIPE, text=True, env=env)
        assert "sampling" in p.stderr.readline()
        t.spend(0.05)
        if again:
            (tmp_path / "still").touch()
        p.send_signal(sig)
        vms.wait_until(lambda: syscall(p.pid) == "1")
        if not again:
            time.sleep(0.1)
        p.send_signal(sig)
        if again:
            vms.wait_until(lambda: "ShdPnd:\t" + 16 * "0" in Path(f"/proc/{p.pid}/status").read_text())
        os.close(write)
        if not again:
            assert p.wait(vms.HANG) == -sig
            os.close(read)
    report = b""
    while again and (part := os.read(read, 65536)):
        report += part
    assert not again or (p.wait(vms.HANG) == 0 and b"%" in report), report
    p.stderr.close()


# In luabpf: the first look into a target's memory once there is $GO waits for who opens $FIFO. Counts the looks from then on.
COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>
static long looks, before;
static int stopped;
ssize_t process_vm_readv(pid_t pid, const struct iovec *l, unsigned long nl, const struct iovec *r, unsigned long nr, unsigned long flags)
{
	static ssize_t (*next)(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long, unsigned long);

	if (!next)
		next = dlsym(RTLD_NEXT, "process_vm_readv");
	if (!looks && access(getenv("GO"), F_OK))
		return next(pid, l, nl, r, nr, flags);
	if (!looks++) {
		close(open(getenv("HERE"), O_CREAT | O_WRONLY, 0666));
		close(open(getenv("FIFO"), O_RDONLY));
	}
	before += !stopped;
	return next(pid, l, nl, r, nr, flags);
}
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
	stopped |= request == PERF_EVENT_IOC_DISABLE;
	return next(fd, request, arg);
}
__attribute__((destructor)) static void report(void)
{
	FILE *f = looks ? fopen(getenv("COUNTS"), "w") : NULL;

	if (f)
		fprintf(f, "%ld %ld\n", before, looks), fclose(f);
}
"""


def test_sampling_stops_before_all_is_named(tmp_path):
    """12 processes wait for their names when the signal comes, while luabpf reads those of the first: it stops sampling when
    it has those, and reads the others' for the report."""
    (tmp_path / "count.c").write_text(COUNTER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "count.so", tmp_path / "count.c"], check=True)
    os.mkfifo(tmp_path / "fifo")
    text = "for line in io.lines() do local t = os.clock() repeat string.rep('x', 1e5) until os.clock() - t > 0.02 print('done') io.flush() end"
    with contextlib.ExitStack() as stack:
        targets = [stack.enter_context(vms.Target(["luajit", "-joff", "-e", text])).sleeps() for _ in range(12)]
        tool = vms.Luabpf("-p", ",".join(str(t.pid) for t in targets), "-F", 1000, "-jp=G",
                          env={"LD_PRELOAD": tmp_path / "count.so", "HERE": tmp_path / "here", "FIFO": tmp_path / "fifo",
                               "GO": tmp_path / "go", "COUNTS": tmp_path / "counts"}).wait_banner()
        (tmp_path / "go").touch()
        for t in targets:
            t.go()
            assert t.line() == "done"
            if t == targets[0]:
                vms.wait_until((tmp_path / "here").exists)
        tool.signal()
        os.close(os.open(tmp_path / "fifo", os.O_WRONLY))
        r = tool.done()
    assert r.code == 0 and r.stats["ended_by"] == "signal" and r.stats["lost"] == 0, r
    before, looks = map(int, (tmp_path / "counts").read_text().split())
    assert before * 4 < looks, (before, looks, r)
