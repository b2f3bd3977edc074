# SPDX-License-Identifier: BSD-2-Clause
"""Lua stacks that grow, which takes a thousand page faults, and that overflow (lua/grows.lua)."""
import math

import pytest

import pprof
import truth
import vms

HZ, SECONDS = 10000, 0.4
INSIDE = {"runaway", "deep", "inside", "pcall"}


@pytest.mark.parametrize("vm", ["luajit-jon", "luajit-joff", "luajit2-jon", "luajit2-joff"])
def test_growing_stacks(tmp_path, luajit2, vm):
    """The share of what recurses is what it measured itself: 6 standard deviations of some 4000 samples, and a
    hundredth for what is at the ends of a measured span. Lost is what hits mremap(), in which the stack is nowhere:
    at most 2 %, but for one run in a million. The resumer has its own time only, which the program measures."""
    saved = tmp_path / "p.pb.gz"
    vm = vms.VMS[vm]
    with vms.Target([*vm.argv, vms.LUA / "grows.lua", SECONDS], vm.env) as t:
        t.ready()
        tool = vms.Luabpf("-p", t.pid, "-F", HZ, "-o", saved).wait_banner()
        t.go()
        everything, used, resuming = map(float, t.line().split())
        r = tool.done()
    assert r.code == 0, r
    total = inside = resumer = 0
    for s in pprof.Profile(saved).samples:
        names = [f.callname or f.name for f in s.stack]
        total += s.count
        inside += s.count * bool(INSIDE & set(names))
        resumer += s.count * (names[-1] == "co")
    share = used / everything
    assert abs(inside / total - share) <= 6 * math.sqrt(share * (1 - share) / total) + 0.01 + r.missing, (inside, total, share, r)
    assert resumer <= truth.allowed(total, 0.001 + resuming / everything + r.missing), (resumer, resuming, everything, r)
    assert r.stats["lost"] <= truth.allowed(r.stats["samples"], 0.02), r


LARGE = """
local names = {}
for i = 1, 195 do names[i] = "a" .. i end
local f = assert(loadstring("local f f = function(n, work) local " .. table.concat(names, ",") ..
                            " = 1 if n == 0 then work() return 0 end return f(n - 1, work) + a1 end return f"))()
local function busy() local t = os.clock() repeat for i = 1, 1e4 do end until os.clock() - t > 0.3 end
f(6000, busy)
"""


def test_a_stack_beyond_a_million_slots(tmp_path):
    """Lua 5.1 limits the calls, and not the slots: 6000 frames of 200 each take 19 MB."""
    (tmp_path / "large.lua").write_text(LARGE)
    r = vms.luabpf("-F", 1000, "-o", tmp_path / "p.pb.gz", "--", "lua5.1", tmp_path / "large.lua")
    busy = sum(s.count for s in pprof.Profile(tmp_path / "p.pb.gz").samples if any(f.start == 6 for f in s.stack))
    assert r.code == 0 and busy >= r.least(300) and r.stats["lost"] <= truth.allowed(r.stats["samples"], 0.01), (busy, r)


@pytest.mark.parametrize("vm", ["lua5.1", "lua5.2", "lua5.3", "lua5.4"])
def test_calls_that_begin_in_a_new_page(tmp_path, vm):
    """In 5.1 a call waits for a page of the array of CallInfos that was never written: 12 to 14 % of the samples were lost
    there. The share of the overflows is what the program measured: 6 standard deviations, and two hundredths."""
    saved = tmp_path / "p.pb.gz"
    with vms.Target([*vms.VMS[vm].argv, vms.LUA / "overflows.lua", 0.5]) as t:
        t.ready()
        tool = vms.Luabpf("-p", t.pid, "-F", 5000, "-o", saved).wait_banner()
        t.go()
        share = float(t.line())
        t.go()
        r = tool.done()
    assert r.code == 0, r
    total = inside = 0
    for s in pprof.Profile(saved).samples:
        total += s.count
        inside += s.count * any(f.start == 10 for f in s.stack)
    assert abs(inside / total - share) <= 6 * math.sqrt(share * (1 - share) / total) + 0.02 + r.missing, (inside, total, share, r)
    assert r.stats["lost"] <= truth.allowed(r.stats["samples"], 0.01), r
