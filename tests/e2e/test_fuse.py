# SPDX-License-Identifier: BSD-2-Clause
"""Targets whose memory and files wait for a user's daemon that never answers: a FUSE file system, see fuse.py. The process that
reads such a page cannot be killed, so luabpf must not be it."""
import contextlib
import os
import sys
from pathlib import Path

import pytest

import vms
from api import Recording

pytestmark = pytest.mark.usefixtures("root")
LOOP = "local x = 0 while true do for i = 1, 1e5 do x = x + i % 7 end end"
# The second page of a chunk's name of many n becomes one of the file.
NAME = """
local ffi = require "ffi"
ffi.cdef[[int open(const char *, int); void *mmap(void *, size_t, int, int, int, long);]]
f = loadstring("local x = 0 while true do for i = 1, 1e5 do x = x + i % 7 end end", "@" .. ("n"):rep(16000))
local name = debug.getinfo(f, "S").source
local page = (tonumber(ffi.cast("uintptr_t", ffi.cast("const char *", name))) + 4095) / 4096
page = ffi.cast("void *", (page - page % 1) * 4096)
local fd = ffi.C.open(arg[1], 0)
assert(fd >= 0 and ffi.C.mmap(page, 4096, 3, 0x12, fd, 0) == page)
print("ready") io.stdout:flush()
f()
"""


# Maps an executable file and waits.
MAP = """
local ffi = require "ffi"
ffi.cdef[[int open(const char *, int); void *mmap(void *, size_t, int, int, int, long);]]
local fd = ffi.C.open(arg[1], 0)
assert(fd >= 0 and ffi.C.mmap(nil, 4096, 5, 2, fd, 0) ~= ffi.cast("void *", -1))
print("ready") io.stdout:flush()
io.read()
while true do end
"""


@contextlib.contextmanager
def daemon(*args, where="fs"):
    with vms.Target([sys.executable, vms.HERE / "fuse.py", *args]) as fs:
        fs.ready()
        fs.file = f"/proc/{fs.pid}/root/mnt/{where}/file"
        yield fs


@contextlib.contextmanager
def program(tmp_path, text, fs):
    """Runs it with the daemon's file. It ends after the daemon, as it may wait for that."""
    (tmp_path / "x.lua").write_text(text)
    with vms.Target(["luajit", "-joff", tmp_path / "x.lua", fs.file]) as t:
        try:
            yield t.ready()
        finally:
            fs.p.kill()


@pytest.fixture
def silent(tmp_path):
    """The daemon, and a Lua program with a name in its file."""
    with daemon("-") as fs, program(tmp_path, NAME, fs) as t:
        t.fs = fs
        yield t


def test_memory_that_a_daemon_does_not_answer_for(silent, tmp_path):
    """The samples of that process are lost by name. Those of others have their names, and luabpf ends."""
    with vms.Target(["luajit", "-joff", "-e", LOOP]) as other:
        r = vms.record([silent, other], 0.5, "-jp=f", "-o", tmp_path / "p.pb.gz")
    lost = r.stats["lost_by_reason"]
    assert r.code == 0 and list(lost) == ["memory-waits"] and f"lost {lost['memory-waits']} (memory-waits): a page" in r.err, r
    assert silent.fs.line() == "asked 15" and r.stats["samples"] > 0, r


def test_a_signal_while_it_waits(silent):
    """The recording ends, although its reader cannot be killed."""
    r = vms.record(silent, 0.2, "-F", 1000, "-jp=f")
    assert r.code == 0 and r.stats["ended_by"] == "signal" and list(r.stats["lost_by_reason"]) == ["memory-waits"], r


def test_an_executable_file_that_a_daemon_does_not_answer_for(tmp_path):
    """It is neither asked for its attributes nor opened, and named as not known."""
    with daemon("/bin/true") as fs, program(tmp_path, MAP, fs) as t:
        fs.go()
        assert fs.line() == "silent"
        t.go()
        r = vms.record(t, 0.1, "-F", 1000, "-jp=f")
        said = vms.luabpf("doctor", "-p", t.pid, stats=False)
        for text in r.err, said.out:
            assert "/mnt/fs/file" in text and "its file system waits for a user's daemon (FUSE)" in text, (r, said)
        assert r.code == 0 and r.stats["samples"] > 0, r
        fs.p.stdin.close()
        assert fs.rest() == ""


def test_an_overlay_over_files_that_a_daemon_does_not_answer_for(tmp_path):
    """Its device is not FUSE's, so the daemon is asked, but only once, and not by luabpf itself. Another test's luabpf may ask, too."""
    with daemon("/bin/true", "overlay", where="overlay") as fs:
        assert fs.line() == "overlay"
        with program(tmp_path, MAP, fs) as t:
            fs.go()
            assert fs.line() == "silent"
            t.go()
            tool = vms.Luabpf("-p", t.pid, "-F", 1000, "-jp=f").wait_banner()
            t.spend(0.1)
            tool.signal()
            r = tool.done()
            assert r.code == 0 and r.stats["samples"] > 0 and "/mnt/overlay/file" in r.err, r
            assert "its file system waits for a user's daemon (FUSE)" in r.err, r
            fs.p.stdin.close()
            assert [line for line in fs.rest().splitlines() if line.endswith(f" {tool.p.pid}")] == [f"asked 14 {tool.p.pid}"]


def readers():
    """The children of this process that read for the library. The list in /proc/PID/task/TID/children may lack one while another child ends."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            comm, _, rest = stat.read_text().partition("(")[2].rpartition(")")
            if comm == "luabpf-reader" and int(rest.split()[1]) == os.getpid():
                found.append(stat.parent.name)
    return found


def test_the_library_ends_its_reader():
    """While such a file system is there, a child reads. It ends with the last recording."""
    with daemon("-"), vms.Target(["luajit", "-joff", "-e", LOOP]) as t, Recording() as r, Recording() as two:
        two.attach(t.pid).start("i1")
        r.attach(t.pid).start("i1")
        while r.samples() < 20:
            r.poll(20)
        assert len(readers()) == 1
        r.stop()
        r.free()
        r.at = None
        assert len(readers()) == 1 and two.poll(50) == 1
        two.free()
        two.at = None
        assert not readers()
