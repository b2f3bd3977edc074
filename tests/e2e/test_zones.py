# SPDX-License-Identifier: BSD-2-Clause
"""-jp=z: the innermost zone of jit.zone, and of the module that luabpf ships for PUC Lua, at each sample."""
import collections
import contextlib
import json
import re
import subprocess
import types

import pytest

import pprof
import vms

HZ = 4000
SECONDS = 0.6  # of CPU time of each target
PATH = {"LUA_PATH": f"{vms.ROOT}/lua/?.lua;;"}
TARGETS = [("luajit-jon", "early"), ("luajit-joff", "late"), ("lua5.1", "late"), ("lua5.2", "early"), ("lua5.3", "late"),
           ("lua5.4", "early")]
NONE, UNKNOWN = "(none)", "(unknown)"


@pytest.fixture(scope="module")
def recording(root, tmp_path_factory):
    """One of all interpreters at once."""
    r = types.SimpleNamespace(saved=tmp_path_factory.mktemp("zones") / "x.pb.gz", samples={}, truth={})
    with contextlib.ExitStack() as stack:
        targets = {}
        for name, mode in TARGETS:
            vm = vms.VMS[name]
            argv = [*vm.argv, vms.LUA / "zones.lua", mode, SECONDS]
            targets[name] = stack.enter_context(vms.Target(argv, {**vm.env, **PATH} if vm.puc else vm.env)).ready()
        pids = {str(t.pid): name for name, t in targets.items()}
        tool = vms.Luabpf("-p", ",".join(pids), "-jp=zfm0r", "-o", r.saved, "-F", HZ).wait_banner()
        for t in targets.values():
            t.go()
        for name, t in targets.items():
            r.truth[name] = json.loads(t.rest())
        r.done = tool.done()
    assert r.done.code == 0, r.done
    profile = pprof.Profile(r.saved)
    for name in targets:
        r.samples[name] = [s for s in profile.samples if pids[s.labels["pid"]] == name]
    return r


def counts(samples):
    n = collections.Counter()
    for s in samples:
        n[s.labels["zone"]] += s.count
    return n


@pytest.mark.parametrize("name", dict(TARGETS))
def test_a_function_is_in_its_zone(recording, name):
    """Exactly: a zone is that of the very instant of the sample."""
    seen = collections.Counter()
    for s in recording.samples[name]:
        for frame in s.stack:
            if m := re.fullmatch(r"in_(\w+)", frame.name):
                assert s.labels["zone"] in ({NONE, UNKNOWN} if m[1] == "none" else {m[1], UNKNOWN}), s
                seen[m[1]] += s.count
    assert set(seen) >= {"alpha", "beta", "gamma", "leak", "deep"}, seen


@pytest.mark.parametrize("name", dict(TARGETS))
def test_shares(recording, name):
    """Of the zones that are entered by turns: within five standard deviations (a false alarm in 1.7 million each) and
    1 % for the clock's own time. Samples whose zone is unknown come before all of these."""
    zones = ["alpha", "beta", "gamma", "leak", "deep"]
    got, truth = counts(recording.samples[name]), recording.truth[name]
    total, whole = sum(got[z] for z in zones), sum(truth[z] for z in zones)
    spent = sum(truth.values())
    missed = vms.missed(got.total(), spent, HZ) * spent / whole  # it may all be of one zone
    assert total > 0.1 * HZ * SECONDS, got
    for z in zones:
        share = truth[z] / whole
        bound = 5 * (share * (1 - share) / total) ** 0.5 + 0.01 + missed
        assert abs(got[z] / total - share) < bound, (z, got[z] / total, share, bound)
    assert set(got) <= {*zones, "deep0", "deep1", NONE, UNKNOWN}



def test_reports_agree(recording):
    """The recording's own, the saved profile's, sections by zone; zones are roots of folded stacks."""
    text = vms.luabpf("report", recording.saved, "-jp=zfm0r", stats=False).out
    assert text == recording.done.out
    want = counts(s for samples in recording.samples.values() for s in samples)
    assert {m[2]: int(m[1]) for m in re.finditer(r"^ *(\d+)  (.*)$", text, re.M)} == want
    text = vms.luabpf("report", recording.saved, "-jp=fm0", "--by=zone", stats=False).out
    assert {m[1]: int(m[2]) for m in re.finditer(r"^==== (.*): \d+%, (\d+) samples ====$", text, re.M)} == want
    roots = collections.Counter()
    for line in vms.luabpf("report", recording.saved, "-jp=G", "--by=zone", stats=False).out.splitlines():
        roots[line.split(";")[0]] += int(line.rsplit(" ", 1)[1])
    assert roots == want
    zones = recording.done.stats["zones"]
    assert zones["unknown"] == want[UNKNOWN] and zones["vms"] == len(TARGETS) and not zones["vms_without"]


TWO_VMS = """local ffi = require("ffi")
ffi.cdef[[typedef struct lua_State lua_State; lua_State *luaL_newstate(void); void luaL_openlibs(lua_State *);
int luaL_loadstring(lua_State *, const char *); int lua_pcall(lua_State *, int, int, int);
void lua_pushvalue(lua_State *, int); void lua_settop(lua_State *, int);]]
local L = ffi.C.luaL_newstate()
ffi.C.luaL_openlibs(L)
assert(ffi.C.luaL_loadstring(L, [[local zone, spin = require("jit.zone"), ...
  local function in_inner(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
  return function() zone("inner") in_inner(20000) zone() end]]) == 0)
assert(ffi.C.lua_pcall(L, 0, 1, 0) == 0)
jit.off(true, true)
local zone, clock = require("jit.zone"), os.clock
local function in_outer(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
local begin = clock()
while clock() - begin < 0.3 do
  zone("outer")
  in_outer(20000)
  ffi.C.lua_pushvalue(L, -1)
  assert(ffi.C.lua_pcall(L, 0, 0, 0) == 0)
  zone()
end"""

# A zone stack of the program's own, whose functions leave room for zones in the hash part of its table.
OWN = """local own = {push = print, pop = print, top = print}
package.loaded["app.trace"] = own
local function in_first(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
local function in_third(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
local clock = os.clock
local begin = clock()
while clock() - begin < 0.3 do
  own[1] = "first" in_first(20000)
  own[2] = "second" own[3] = "third" in_third(20000)
  own[3] = nil own[2] = nil own[1] = nil
end"""


def zones_of(tmp_path, argv, *args):
    """{function's name: zones}"""
    saved = tmp_path / "x.pb.gz"
    done = vms.luabpf("-F", HZ, "-o", saved, *args, "--", *argv)
    assert done.code == 0, done
    seen = collections.defaultdict(collections.Counter)
    for s in pprof.Profile(saved).samples:
        for frame in s.stack:
            if frame.name.startswith("in_"):
                seen[frame.name][s.labels["zone"]] += s.count
    return seen, done


def test_each_vm_has_its_stack(root, tmp_path):
    """One VM runs within a C function of another's."""
    seen, done = zones_of(tmp_path, ["luajit", "-e", TWO_VMS], "-jp=z")
    assert set(seen) == {"in_outer", "in_inner"} and done.stats["zones"]["vms"] == 2
    assert set(seen["in_outer"]) <= {"outer", UNKNOWN} and seen["in_outer"]["outer"]
    assert set(seen["in_inner"]) <= {"inner", UNKNOWN} and seen["in_inner"]["inner"]


@pytest.mark.parametrize("name", ["luajit", "lua5.3"])
def test_zones_from_another_module(root, tmp_path, name):
    seen, _ = zones_of(tmp_path, [name, "-e", OWN], "--zone-from=app.trace")
    assert set(seen) == {"in_first", "in_third"}
    assert set(seen["in_first"]) <= {"first", UNKNOWN} and seen["in_first"]["first"]
    assert set(seen["in_third"]) <= {"third", UNKNOWN} and seen["in_third"]["third"]


def test_a_vm_without_zones(root, tmp_path):
    spin = "local function in_none() local x = 0 for i = 1, 1e7 do x = x + i % 7 end return x end local x = in_none() return x"
    seen, done = zones_of(tmp_path, ["lua5.4", "-e", spin], "-jp=z")
    assert set(seen["in_none"]) == {NONE} and "1 of 1 VM had no zones: the module is jit.zone" in done.err


@pytest.mark.parametrize("name", ["luajit", "lua5.4"])
def test_a_table_that_is_no_zone_stack(root, tmp_path, name):
    """Holes, numbers, metatables, a million elements, no table at all: the right zone or an unknown one."""
    seen, done = zones_of(tmp_path, [name, vms.LUA / "odd_zones.lua"], "--zone-from=odd")
    right = json.loads(done.out)
    assert set(seen) == set(right)
    for function, zones in seen.items():
        assert set(zones) <= {right[function], UNKNOWN}, (function, zones)
    assert set(seen["in_million"]) == {UNKNOWN} and seen["in_number"]["(not a string)"]


@pytest.mark.parametrize("name", ["luajit", "lua5.4"])
@pytest.mark.parametrize("other", ["{'a', 'b'}", "nil", "'text'"])
def test_a_module_that_is_replaced(root, tmp_path, name, other):
    """The program's own functions use its table still: it is in a zone, of which nothing is known."""
    program = f"""package.path = '{vms.ROOT}/lua/?.lua;' .. package.path
local zone = require(jit and 'jit.zone' or 'zone')
local function turns(f, seconds) local t = os.clock() repeat zone('one') f(1e4) zone() until os.clock() - t > seconds end
local function in_before(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
turns(in_before, 0.4)
package.loaded[jit and 'jit.zone' or 'zone'] = {other}
local function in_after(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
turns(in_after, 0.4)"""
    seen, done = zones_of(tmp_path, [name, "-e", program], "-jp=z")
    assert set(seen["in_before"]) <= {"one", UNKNOWN} and seen["in_before"]["one"]
    assert set(seen["in_after"]) <= {"one", UNKNOWN} and seen["in_after"][UNKNOWN]
    assert "after package.loaded lost it" in done.err, done.err


SHIPPED = """local zone = require("zone")
assert(not jit or zone == require("jit.zone"))
assert(zone:get() == nil)
zone("a") zone("b")
assert(zone:get() == "b" and zone() == "b" and zone:get() == "a")
zone("c") zone("d") zone:flush()
assert(zone:get() == nil and #zone == 0)
local ok, why = pcall(zone)
assert(not ok and why:find("empty zone stack"))
print("as jit.zone")"""


@pytest.mark.parametrize("name", ["luajit", "lua5.1", "lua5.2", "lua5.3", "lua5.4"])
def test_the_shipped_module(name):
    r = subprocess.run([name, "-e", SHIPPED], env=vms.clean_env(PATH), capture_output=True, text=True)
    assert r.stdout == "as jit.zone\n", r.stderr
