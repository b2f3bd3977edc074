# SPDX-License-Identifier: BSD-2-Clause
"""C code that goes on after it resumed or called another thread (hosts/resumes.c) is its own caller's."""
import math

import pytest

import pprof
import truth
import vms

SCRIPT = vms.LUA / "resumes.lua"
HOWS = ["yields", "ends", "fails", "calls", "main", "hooked", "far", "ffi", "later"]
LUAJIT_ONLY = {"hooked": ["luajit-joff"],  # hooks are another matter elsewhere
               "later": ["luajit-joff"],  # with the JIT on LuaJIT itself crashes
               **{how: ["luajit-jon", "luajit-joff"] for how in ("ffi",)}}
# Samples cost different time in Lua and in C: the program's clock includes sampling cost, sample counts do not. At 10000 Hz
# shares were 2 % off, and 6 to 9 on a machine that is busy.
HZ, SECONDS = 3000, 1
# the C code's frame, and its caller's: a C function of the VM, or one that run() calls through the FFI
FRAMES = {False: (pprof.C, "run", "caller"), True: (pprof.BUILTIN, "call_back", "run")}
HOSTS = {
    "luajit-jon": ([vms.HOSTS / "resumes"], []),
    "luajit-joff": ([vms.HOSTS / "resumes"], ["joff"]),
    **{f"lua{v}": ([vms.HOSTS / f"puc/resumes-{v}"], []) for v in ("5.1", "5.2", "5.3", "5.4")},
}


@pytest.mark.parametrize("host,how", [
    (host, how) for host in HOSTS for how in HOWS
    if host in LUAJIT_ONLY.get(how, HOSTS)])
def test_c_code_goes_on(tmp_path, host, how):
    """Its share is what it measured itself: 6 standard deviations of 3000 samples, and a hundredth for what is at its
    ends. It is called by caller(). All of the time is in Lua."""
    argv, more = HOSTS[host]
    saved = tmp_path / "p.pb.gz"
    with vms.Target([*argv, SCRIPT, how, SECONDS, *more]) as t:
        t.ready()
        tool = vms.Luabpf("-p", t.pid, "-F", HZ, "-o", saved).wait_banner()
        t.go()
        everything, in_c = map(float, t.line().split())
        r = tool.done()
    assert r.code == 0, r
    kind, name, caller = FRAMES[how == "ffi"]
    total = worked = astray = state = 0  # run() makes threads, too, for which the collector works
    for s in pprof.Profile(saved).samples:
        total += s.count
        top = s.stack[-1]
        if top.kind == kind and name in (top.name, top.callname):
            worked += s.count * (s.labels["vmstate"] != "Garbage Collector")
            astray += s.count * (s.stack[-2].name != caller)
            state += s.count * (s.labels["vmstate"] not in ("C code", "Garbage Collector"))
        elif how == "later":  # not on the frames of the yielded thread that it runs in
            astray += s.count * (top.name == "busy" and s.stack[-2].name != "run")
    share = in_c / everything
    assert abs(worked / total - share) <= 6 * math.sqrt(share * (1 - share) / total) + 0.01 + r.missing, (worked, total, share, r)
    assert astray <= truth.allowed(total), (astray, r)
    assert state <= truth.allowed(total, 0.01 if how == "ffi" else 0.001), (state, r)  # the way into C code
    assert r.stats["outside_lua"] <= truth.allowed(r.stats["samples"]) + 10, r  # it starts and ends in C
    assert r.stats["lost"] <= truth.allowed(r.stats["samples"]), r
