# SPDX-License-Identifier: BSD-2-Clause
"""--wait: a process that loads Lua later."""
import os
import signal
import sys

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
    r = vms.luabpf("-p", loop.pid, "--wait", "-d", 0.2)
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
