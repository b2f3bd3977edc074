# SPDX-License-Identifier: BSD-2-Clause
"""Targets whose memory and files wait for a user's daemon that never answers: a FUSE file system, see fuse.py. The process that
reads such a page cannot be killed, so luabpf must not be it."""
import contextlib
import sys

import pytest

import vms

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


@contextlib.contextmanager
def daemon(content="-"):
    with vms.Target([sys.executable, vms.HERE / "fuse.py", content]) as fs:
        fs.ready()
        fs.file = f"/proc/{fs.pid}/root/mnt/fs/file"
        yield fs


@pytest.fixture
def silent(tmp_path):
    """The daemon, and a Lua program with a name in its file."""
    (tmp_path / "name.lua").write_text(NAME)
    with daemon() as fs, vms.Target(["luajit", "-joff", tmp_path / "name.lua", fs.file]) as t:
        t.fs = fs
        yield t.ready()


def test_memory_that_a_daemon_does_not_answer_for(silent, tmp_path):
    """The samples of that process are lost by name. Those of others have their names, and luabpf ends."""
    with vms.Target(["luajit", "-joff", "-e", LOOP]) as other:
        r = vms.record([silent, other], 0.5, "-jp=f", "-o", tmp_path / "p.pb.gz")
    lost = r.stats["lost_by_reason"]
    assert r.code == 0 and list(lost) == ["memory-waits"] and f"lost {lost['memory-waits']} (memory-waits): a page" in r.err, r
    assert silent.fs.line() == "asked 15" and r.stats["samples"] > 0, r


def test_a_signal_while_it_waits(silent):
    """The recording ends, although its reader cannot be killed."""
    tool = vms.Luabpf("-p", silent.pid, "-jp=f")
    assert silent.fs.line() == "asked 15"
    tool.signal()
    r = tool.done()
    assert r.code == 0 and r.stats["ended_by"] == "signal" and list(r.stats["lost_by_reason"]) == ["memory-waits"], r
