# SPDX-License-Identifier: BSD-2-Clause
"""--wait: a process that loads Lua later."""
import os
import signal
import sys
import time
from pathlib import Path

import pytest

import vms

pytestmark = pytest.mark.usefixtures("root")
# a host that has Lua after a line from its standard input
HOST = """
import ctypes, sys
print("ready", flush=True)
if not sys.stdin.readline():
    sys.exit()
lua = ctypes.CDLL(sys.argv[1])
lua.luaL_newstate.restype = ctypes.c_void_p
L = ctypes.c_void_p(lua.luaL_newstate())
lua.luaL_openlibs(L)
lua.luaL_loadstring(L, b"local function late() for i = 1, 1e6 do local x = i % 7 end end print(1) io.flush() while true do late() end")
call = getattr(lua, "lua_pcallk", None)
call(L, 0, 0, 0, 0, None) if call else lua.lua_pcall(L, 0, 0, 0)
"""
LIBRARIES = {"luajit": "libluajit-5.1.so.2", "5.1": "liblua5.1.so.0", "5.4": "liblua5.4.so.0"}


@pytest.fixture
def loop():
    with vms.Target(["luajit", "-e", "print('ready') io.flush() while true do end"]) as t:
        yield t.ready()


def host(library="libluajit-5.1.so.2"):
    return vms.Target([sys.executable, "-c", HOST, library])


@pytest.mark.parametrize("vm", LIBRARIES)
def test_lua_that_is_loaded_later(vm):
    with host(LIBRARIES[vm]) as t:
        assert t.line() == "ready"
        tool = vms.Luabpf("-p", t.pid, "--wait", "-F", 1000, "-jp=fm0").wait_for(f"process {t.pid}: no Lua yet")
        t.go()
        assert t.line() == "1"
        tool.wait_banner()
        t.spend(0.3)
        tool.signal()
        r = tool.done()
    assert r.code == 0 and "late" in r.out and f"sampling process {t.pid}" in r.err, r


def test_lua_that_is_there(loop):
    tool = vms.Luabpf("-p", loop.pid, "--wait").wait_banner()
    loop.spend(0.2)
    tool.signal()
    r = tool.done()
    assert r.code == 0 and "no Lua yet" not in r.err and r.stats["samples"], r


def test_one_has_lua_and_one_not_yet(loop):
    """It begins at once; the other's Lua, of another family, is sampled when it is loaded."""
    with host(LIBRARIES["5.4"]) as t:
        assert t.line() == "ready"
        tool = vms.Luabpf("-v", "-p", f"{loop.pid},{t.pid}", "--wait", "-F", 1000, "-jp=fm0").wait_banner()
        t.go()
        assert t.line() == "1"
        tool.wait_for(f"pid {t.pid}: .*interpreter 0x")
        t.spend(0.3)
        tool.signal()
        r = tool.done()
    assert r.code == 0 and "late" in r.out, r


def test_it_ends_without_lua():
    with host() as t:
        assert t.line() == "ready"
        tool = vms.Luabpf("-p", t.pid, "--wait", stats=False).wait_for("no Lua yet")
        t.p.stdin.close()
        r = tool.done()
    assert r.code == 1 and r.err.endswith(f"luabpf: process {t.pid}: ended without Lua\n"), r


# a shell without Lua, whose children run it after a line from standard input, until they are killed; then it ends
LATE = "local function %s() for i = 1, 1e5 do local x = i * i end end while os.clock() < %s do %s() end"
CHILD = f'lua5.4 -e "{LATE % ("late", "%s", "late")}"'
LATER = f'luajit -joff -e "{LATE % ("later", "%s", "later")}"'
FORKS = f"echo ready; read x; {CHILD}; {LATER}; :"
HAS_CHILD = f"exec 3<&0; sh -c 'read x; exec {CHILD}' <&3 & echo ready; wait"


def child_of(t):
    """Returns once there is one that has called exec."""
    def child():
        for pid in Path(f"/proc/{t.pid}/task/{t.pid}/children").read_text().split():
            if os.readlink(f"/proc/{pid}/exe") != os.readlink(f"/proc/{t.pid}/exe"):
                return int(pid)
    vms.wait_until(child)
    return child()


def end_child(pid):
    """After 0.2 s of CPU time more."""
    end = time.clock_gettime(~pid << 3 | 2) + 0.2
    vms.wait_until(lambda: time.clock_gettime(~pid << 3 | 2) >= end)
    os.kill(pid, signal.SIGKILL)


def test_what_it_starts_runs_lua():
    """The process itself never does. Its end is that of the recording."""
    with vms.Target(["sh", "-c", FORKS % (60, 60)]) as t:
        t.ready()
        tool = vms.Luabpf("-v", "-p", t.pid, "--wait", "-F", 1000, "-jp=fm0").wait_for("no Lua yet; .* or a process that it starts")
        t.go()
        first = child_of(t)
        tool.wait_banner()
        end_child(first)
        vms.wait_until(lambda: not Path(f"/proc/{first}").exists())
        second = child_of(t)
        tool.wait_for(f"pid {second}: .*interpreter 0x")
        end_child(second)
        r = tool.done()
    assert r.code == 0 and "late\n" in r.out and "later\n" in r.out and r.stats["ended_by"] == "targets-ended", r


def test_a_present_child_runs_lua():
    with vms.Target(["sh", "-c", HAS_CHILD % 60]) as t:
        t.ready()
        tool = vms.Luabpf("-p", t.pid, "--wait", "--children", "-F", 1000, "-jp=fm0").wait_for("no Lua yet")
        t.go()
        tool.wait_banner()
        end_child(child_of(t))
        r = tool.done()
    assert r.code == 0 and "late\n" in r.out and r.stats["ended_by"] == "targets-ended", r


def test_a_duration_begins_with_lua():
    with vms.Target(["sh", "-c", FORKS % (60, 0)]) as t:
        t.ready()
        tool = vms.Luabpf("-p", t.pid, "--wait", "-d", 0.2, "-jp=fm0").wait_for("no Lua yet")
        time.sleep(0.3)
        assert tool.p.poll() is None
        t.go()
        r = tool.done()
        os.kill(child_of(t), signal.SIGKILL)
    assert r.code == 0 and r.stats["ended_by"] == "duration" and r.stats["wall_seconds"] >= 0.5, r


@pytest.mark.parametrize("script,options", [(FORKS % (0.1, 0.1), ["--no-follow"]), (HAS_CHILD % 0.1, [])], ids=["forked", "present"])
def test_a_child_that_is_not_followed(script, options):
    with vms.Target(["sh", "-c", script]) as t:
        t.ready()
        tool = vms.Luabpf("-p", t.pid, "--wait", *options, stats=False).wait_for("no Lua yet")
        t.go()
        r = tool.done()
    assert r.code == 1 and f"luabpf: process {t.pid}: ended without Lua\n" in r.err, r


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait(sig, tmp_path):
    with host() as t:
        assert t.line() == "ready"
        tool = vms.Luabpf("-p", t.pid, "--wait", "-o", tmp_path / "x.pb.gz", stats=False).wait_for("no Lua yet")
        tool.signal(sig)
        assert tool.done().code == -sig
    assert not os.listdir(tmp_path)


def test_only_with_pids():
    r = vms.luabpf("--wait", "--", "true", stats=False)
    assert r.code == 2 and "--wait goes with -p" in r.err
