# SPDX-License-Identifier: BSD-2-Clause
"""Names: those of functions that come and go; and the same ones that LuaJIT's own profiler shows."""
import collections
import re
import subprocess

import pytest

import pprof
import truth
import vms


def check_lost(r, lua, allowed):
    """No more than allowed; but for those of the first rounds, until BPF proves each sample: how long these are depends on
    how soon luabpf gets a CPU."""
    ambiguous = r.stats["lost_by_reason"].get("proto-ambiguous", 0)
    assert r.stats["lost"] - ambiguous <= allowed, r
    assert ambiguous <= 0.3 * lua, r


@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize("vm", ["luajit-joff", "luajit-jon", "luajit2-joff", "lua5.1", "lua5.2", "lua5.3", "lua5.4"])
def test_addresses_that_are_used_again(tmp_path, luajit2, vm, turns):
    """Each stack's names and lines belong to one and the same of the functions that came and went."""
    vm = vms.VMS[vm]
    saved = tmp_path / "p.pb.gz"
    with vms.Target([*vm.argv, vms.LUA / "reuse.lua", 1.25, turns], vm.env) as t:
        t.ready()
        tool = vms.Luabpf("-p", t.pid, "-F", 4000, "-o", saved).wait_banner()
        t.go()
        many = int(t.line())
        r = tool.done()
    assert r.code == 0, r
    mixed, seen, named, callees, total = collections.Counter(), set(), 0, 0, 0
    for s in pprof.Profile(saved).samples:
        ours = [f for f in s.stack if f.file == "=reused" and f.start]
        if not ours:
            continue
        total += s.count
        callees += s.count * (len(ours) > 1)  # the outermost is called by a name of its caller's, "outer"
        numbers = {m[0] for f in ours for n in (f.name, f.callname) if (m := re.search(r"\d{4}$", n))}
        seen |= numbers
        named += s.count * (len(ours) > 1 and bool(numbers))
        if len(numbers) > 1:
            mixed[" < ".join(f"{f.name}({f.callname})" for f in reversed(ours))] += s.count
        for number in numbers:
            shift = int(number) // 7 % 2
            starts = {"inner": shift + 2, "global": shift + 7, "outer": shift + 11}
            for f in ours:
                kind = f.name[:-4]
                if kind in starts and starts[kind] != f.start:
                    mixed[f"{f.name} at line {f.start}, not {starts[kind]}"] += s.count
                if not f.start <= f.line <= f.start + 4:
                    mixed[f"{f.name} at line {f.line}, begins at {f.start}"] += s.count
    print(f"{many} functions, {len(seen)} seen, {total} samples, {named} of them with names, {r.stats}")
    assert not mixed, (mixed.most_common(5), sum(mixed.values()), total)
    assert named >= 0.999 * callees
    assert total >= 0.2 * r.stats["resolved"], r  # the rest loads, compiles and collects them; 0.4 to 0.7 on different machines
    assert len(seen) > 0.9 * many, (len(seen), many, r)
    lua = r.stats["resolved"] + r.stats["lost"]
    check_lost(r, lua, truth.allowed(lua))


@pytest.mark.parametrize("vm", ["luajit-jon", "luajit2-jon"])
def test_traces_that_are_flushed(tmp_path, luajit2, vm):
    """Another trace at the address of one, with its number: no function shows under the other's caller, and each
    has its time."""
    vm, saved = vms.VMS[vm], tmp_path / "p.pb.gz"
    with vms.Target([*vm.argv, vms.LUA / "flush.lua", 1.5], vm.env) as t:
        t.ready()
        tool = vms.Luabpf("-p", t.pid, "-F", 4000, "-o", saved).wait_banner()
        t.go()
        r = tool.done()
    assert r.code == 0, r
    calls, top = collections.Counter(), collections.Counter()
    for s in pprof.Profile(saved).samples:
        ours = [f for f in s.stack if f.name in ("outer1", "outer2", "inner1", "inner2")]
        if ours:
            calls[" > ".join(f.name for f in ours)] += s.count
            top[ours[-1].name, ours[-1].line == ours[-1].start] += s.count
    print(calls, top, r.stats)
    total = sum(calls.values())
    mixed = sum(n for stack, n in calls.items() if len({name[-1] for name in stack.split(" > ")}) > 1)
    assert not mixed, (calls, r)
    for number in "12":
        assert sum(n for stack, n in calls.items() if number in stack) > 0.4 * total, (calls, r)
    # not on the functions' own lines: a trace that is attributed by another's head has no line
    starts = sum(n for (_, is_start), n in top.items() if is_start)
    assert starts <= truth.allowed(total, 0.01), (top, r)
    check_lost(r, total, truth.allowed(total))


CHUNKS = """
local load, seconds, k = loadstring or load, ..., 0
local start = os.clock()
while os.clock() - start < tonumber(seconds) do
  k = (k + 1) % 200
  local source = "local x = 0 " .. ("\\n"):rep(k) .. "for i = 1, 20000 do x = x + i % 7 end return x"
  local f = assert(load(source, "=c" .. k))
  f()
  f = nil
  if k % 3 == 0 then collectgarbage() end
end
"""


@pytest.mark.parametrize("vm", ["luajit-joff", "luajit2-jon", "lua5.1", "lua5.2", "lua5.3", "lua5.4"])
def test_chunks_whose_addresses_are_used_again(tmp_path, luajit2, vm):
    """Chunks of one shape that came and went, "c7" with its code on lines 1 and 8: a name stands over its own lines."""
    vm = vms.VMS[vm]
    script, saved = tmp_path / "chunks.lua", tmp_path / "p.pb.gz"
    script.write_text(CHUNKS)
    r = vms.luabpf("-F", 10000, "-o", saved, "--", *vm.argv, script, 1.2, env=vm.env)
    assert r.code == 0, r
    mixed, total = collections.Counter(), 0
    for s in pprof.Profile(saved).samples:
        for f in s.stack:
            if f.kind == pprof.LUA and f.known and (m := re.match(r"=?c(\d+)$", f.file)):
                total += s.count
                if f.line not in (0, 1, int(m[1]) + 1):  # 0: it is being entered
                    mixed[f"{f.file}:{f.line}"] += s.count
    assert not mixed, (mixed.most_common(9), total, r)
    lua = r.stats["resolved"] + r.stats["lost"]
    assert total > 0.5 * lua, (total, r)
    # one that lives for less than it takes to look at it may be lost
    check_lost(r, lua, truth.allowed(lua, 0.01))


def shares(text):
    """{name: percent} of jit.p's list."""
    return {m[2]: int(m[1]) for m in re.finditer(r"^ *(\d+)%  (.+)$", text, re.M)}


@pytest.mark.parametrize("vm", ["luajit", "luajit2"])
@pytest.mark.parametrize("workload", ["calls", "tables", "strings", "coros", "meta"])
def test_same_names_as_jit_p(tmp_path, luajit2, vm, workload):
    """What takes more than 5 % in LuaJIT's own profiler is in our stacks by the same name; and the Lua functions
    that take more than 5 % in ours are known to it.

    JIT off: with it on, jit.p has other code compiled than runs without it. jit.p counts a sample at the next
    bytecode that checks for hooks: it charges the time in C functions and builtins to that bytecode's function.
    So what it shows on top may be a caller with us, and names are compared, not shares.
    """
    build = vms.VMS[f"{vm}-joff"]
    argv = [vms.LUA / "driver.lua", vms.LUA / f"{workload}.lua", 0.5, "nowait"]
    theirs = subprocess.run([*build.argv, f"-jp=fi1m1,{tmp_path}/jitp", *map(str, argv)],
                            env=vms.clean_env(build.env), capture_output=True, text=True, timeout=vms.HANG)
    assert theirs.returncode == 0, theirs
    theirs = shares((tmp_path / "jitp").read_text())
    saved = tmp_path / "p.pb.gz"
    r = vms.luabpf("-F", 2000, "-o", saved, f"-jp=fm1,{tmp_path}/ours", "--", *build.argv, *argv, env=build.env)
    assert r.code == 0, r
    profile = pprof.Profile(saved)
    ours = shares((tmp_path / "ours").read_text())
    names, natives, anywhere = collections.defaultdict(set), set(), set()
    for f in {f for s in profile.samples for f in s.stack}:
        place = f"{f.file.rsplit('/', 1)[-1]}:{f.start}"
        names[f.shown] |= {f.callname, place}
        natives |= {f.shown} if f.kind != pprof.LUA else set()
        anywhere |= {f.callname, place}
    # luabpf does not take a parameter's name for the function's; the driver calls them all through it
    assert {n for n in theirs if theirs[n] > 5} - {"f"} <= anywhere, (theirs, ours)
    for name in {n for n in ours if ours[n] > 5} - natives:
        assert names[name] & set(theirs) or "f" in theirs and re.search(r"\.lua:\d+$", name), (name, theirs, ours)


@pytest.mark.parametrize("vm", ["luajit-jon", "luajit-joff", "lua5.1", "lua5.4"])
def test_a_chunk_that_is_loaded_again(tmp_path, vm):
    """Its functions are the same ones: under LuaJIT head() was tpl:2, tpl:2#2 to tpl:2#6 in every second run."""
    folded = tmp_path / "out.txt"
    with vms.Target([*vms.VMS[vm].argv, vms.LUA / "loaded_again.lua"], vms.VMS[vm].env) as t:
        t.ready()
        r = vms.record(t, 1.5, "-F", 2000, "-f", "folded", "-o", folded)
    assert r.code == 0, r
    text = folded.read_text()
    assert "(tpl:2" in text and "(tpl:3" in text, text
    assert not re.search(r"tpl:\d#\d", text), text


# dispatch() tail-calls a function that no name stands for: the caller's instruction names dispatch(). named() has the name of its call.
DISPATCHES = """
local handlers = {}
handlers[1] = function(n) local s = 0 for i = 1, n do s = s + i % 3 end return s end
local function dispatch(cmd, n) return handlers[cmd](n) end
local named = (function()
  return function(n) local s = 0 for i = 1, n do s = s + i % 5 end return s end
end)()
local t = os.clock()
repeat
  local x = dispatch(1, 1e5)
  local y = named(1e5)
until os.clock() - t >= 0.5
"""


@pytest.mark.parametrize("vm", ["luajit-jon", "luajit-joff", "luajit2-joff", "lua5.1", "lua5.4"])
def test_a_dispatcher_does_not_name_what_it_tail_calls(tmp_path, luajit2, vm):
    """Under LuaJIT it was dispatch (x.lua:3) in folded stacks, and in two of three reports of functions."""
    (tmp_path / "x.lua").write_text(DISPATCHES)
    folded, build = tmp_path / "out.txt", vms.VMS[vm]
    r = vms.luabpf("-F", 1000, "-f", "folded", "-o", folded, "--", *build.argv, tmp_path / "x.lua", env=build.env)
    assert r.code == 0, r
    tops = collections.Counter()
    for line in folded.read_text().splitlines():
        stack, n = line.rsplit(" ", 1)
        tops[stack.split(";")[-1].replace(f"{tmp_path}/", "")] += int(n)
    assert tops["x.lua:3"] > 100 and tops["named (x.lua:6)"] > 100, tops
    assert not any("dispatch" in name and ":4)" not in name for name in tops), tops
