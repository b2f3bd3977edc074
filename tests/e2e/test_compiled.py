# SPDX-License-Identifier: BSD-2-Clause
"""Compiled code of known splits (lua/compiled.lua): line and function of code without guards."""
import collections
import re

import pytest

import pprof
import truth
import vms

SCRIPT = vms.LUA / "compiled.lua"
SECONDS = 0.6  # of CPU time: 6000 samples; bounds are five standard deviations of these (truth.py)
HZ = 10000
WORKLOADS = ["lines", "functions", "objects", "metamethods", "protected", "tailed", "varargs", "branches", "ffi", "unrolled", "metatype",
             "roots", "texts"]
BUILDS = ["luajit-jon", "luajit2-jon", "host32-jon"]  # the third: without GC64, and of 2017, without mcofs
SHARED = "host-jon"  # the first build's JIT compiler, as a shared library: a few workloads will do


def divisions():
    """line -> how many it has."""
    return {number: int(m[1]) for number, text in enumerate(SCRIPT.read_text().splitlines(), 1)
            if (m := re.search(r"--= (\d+)", text))}


def names():
    """line of a definition -> name of the function."""
    return {number: m[1] for number, text in enumerate(SCRIPT.read_text().splitlines(), 1)
            if (m := re.search(r"--@ (\w+)", text) or re.match(r" *function (?:object|methods):(\w+)", text)
                or re.search(r"local function (first|second)", text))}


def recorded(tmp_path, vm, script, workload, seconds=SECONDS):
    """The profile of a whole workload, from its first turn on, and the share of samples that the timer missed."""
    vm = (vms.VMS | vms.VMS32)[vm]
    saved = tmp_path / "p.pb.gz"
    with vms.Target([*vm.argv, script, workload, seconds], vm.env) as t:
        t.ready()
        tool = vms.Luabpf("-p", t.pid, "-F", HZ, "-o", saved).wait_banner()
        t.go()
        r = tool.done()
    assert r.code == 0, r
    return pprof.Profile(saved), r.missing


def rows(workloads, shared):
    return [(vm, workload) for vm in BUILDS for workload in workloads] + [(SHARED, workload) for workload in shared]


@pytest.mark.parametrize("vm,workload", rows(WORKLOADS, ["lines", "functions", "ffi"]))
def test_known_splits(tmp_path, luajit2, texluajit, vm, workload):
    """Each line has its part of the divisions, and its function and callers are its own."""
    profile, missing = recorded(tmp_path, vm, SCRIPT, workload)
    lines, owners, wrong, total = collections.Counter(), names(), collections.Counter(), 0
    source = SCRIPT.read_text().splitlines()
    for s in profile.samples:
        top = s.stack[-1]
        if s.labels.get("vmstate") != "Compiled" or top.base != SCRIPT.name:
            continue
        total += s.count
        lines[top.line] += s.count
        # the function's first line, and below it the function that calls it
        inlined = owners.get(top.start)
        below = next((f for f in s.stack[-2::-1] if f.kind == pprof.LUA), None)  # pcall() is in between
        if inlined and not (below and below.start and below.start not in owners and inlined in
                            source[below.line - 1].replace("f2", "two")
                            .replace("f6", "six").replace("f12", "twelve").replace("o + 2", "add")):
            wrong[f"{inlined} called from {below}"] += s.count
    want = {line: n for line, n in divisions().items() if lines[line] > 0.01 * total}
    per_turn = sum(want.values()) / (2 if workload == "branches" else 1)
    assert sorted(want.values()) == ([6, 12] if workload == "branches" else [2, 6, 12]), (lines, total)
    assert total > (0.8 - missing) * SECONDS * HZ
    # The processor is interrupted at the instruction after the one that it waits for: a division that ends a line
    # counts for the next.
    skid = 1.3 / per_turn
    assert sum(lines[line] for line in want) > (0.94 - skid) * total, lines.most_common(8)
    in_lines = sum(lines[line] for line in want)
    for line, n in want.items():
        true = n / sum(want.values())
        assert abs(lines[line] / in_lines - true) < skid + truth.bound(true, in_lines) + missing, (line, true, lines)
    assert sum(wrong.values()) <= truth.allowed(total), wrong.most_common(4)


@pytest.mark.parametrize("vm", BUILDS)
def test_the_call_that_ends_a_trace(tmp_path, luajit2, texluajit, vm):
    """A string of 8000 bytes takes most of the time, and not what was called before in the same place. It has over 0.9
    of the samples; 100 are enough for its being under a half by chance to be less than one in a million."""
    profile, _ = recorded(tmp_path, vm, SCRIPT, "stitched")
    tops = collections.Counter()
    for s in profile.samples:
        if top := next((f.line for f in s.stack[::-1] if f.kind == pprof.LUA and f.base == SCRIPT.name), None):
            tops[top] += s.count
    long = next(number for number, text in enumerate(SCRIPT.read_text().splitlines(), 1) if text.endswith("-- long"))
    assert sum(tops.values()) >= 100, tops
    assert tops[long] > 0.5 * sum(tops.values()), (long, tops)


@pytest.mark.parametrize("vm", BUILDS)
def test_the_collector_in_compiled_code(tmp_path, luajit2, texluajit, vm):
    """Its time is the allocation's, in a function that was inlined, and not the loop's. Where the collector has to be left
    to the interpreter, the trace is left at the loop: under a third of its samples. Of 200 samples of which no more than
    that are the loop's, a half are by chance in fewer than one of a million runs."""
    profile, _ = recorded(tmp_path, vm, SCRIPT, "allocates")
    tops = collections.Counter()
    for s in profile.samples:
        if s.labels.get("vmstate") == "Garbage Collector":
            if top := next((f.line for f in s.stack[::-1] if f.kind == pprof.LUA and f.base == SCRIPT.name), None):
                tops[top] += s.count
    allocated = next(number for number, text in enumerate(SCRIPT.read_text().splitlines(), 1) if text.endswith("-- allocated"))
    assert tops.total() >= 200, tops
    assert tops[allocated] > 0.5 * tops.total(), (allocated, tops)


DRIVEN = """
print("ready") io.stdout:flush() io.read()
local start, x = os.clock(), 1.2
repeat x = run(x) until os.clock() - start > tonumber(arg[2])
"""
# 11 calls of 60 divisions that wait for each other, in one trace without a guard between them: 8 of first(), 3 of second()
STRAIGHT = """
local function first(x) x = DIV60 return x end
local function second(x) x = first(x) x = DIV60 return x end
local function run(x)
  for i = 1, 1000 do x = second(x) x = first(x) x = second(x) x = first(x) x = second(x) x = first(x) x = first(x) x = first(x) end
  return x
end
""" + DRIVEN
# An integer, and the number that a field of a table has of it: each has a remainder of its own
FORWARDED = """
local function second(x, n)
  if n % 3 == 1 and x > 1e9 then
    x = 1e9
  end
  return DIV10
end
local function first(o) local x = second(o.x, o.n) return DIV14 end
local function run(x)
  for i = 1, 1000 do
    if i % 3 == 1 then x = DIV20 else x = -x x = -DIV20 end
    x = first({ x = x, n = i })
  end
  return x
end
""" + DRIVEN


# A trace that returns twice from a function that calls itself, which is a constant once and then what a slot holds
RETURNED = """
local T = { s = "abc" }
local function plain(x) return x end
local function looping(x)
  local n = 0
  while true do n = n + 1 x = plain(x) if n >= 3 then break end end
  return x
end
local function again(x, i)
  if i > 100000 then
    return DIV14
  end
  x = looping(x)
  x = again(x, i + 60000)
  if #T.s == 3 then x = DIV31 end
  return x
end
local function first(x, i)
  x = again(x, i)
  return DIV14
end
local function run(x)
  for i = 1, 840 do x = first(x, i) end
  return x
end
""" + DRIVEN


# A loop that checks twice that an upvalue is open, but loads it before only
UPVALUE = """
local C = {}
function C.new(v) return setmetatable({ v = v }, C) end
C.__add = function(a, b) local x = a.v return DIV40 end
local function run(x)
  for i = 1, 840 do
    local o = C.new(x)
    x = o + o
    x = DIV60
  end
  return x
end
""" + DRIVEN


# The same of an upvalue that two functions share: the loop has it by one of them only
BY_TWO = """
local C = {}
function C.new(v) return setmetatable({ v = v }, C) end
local function second(a) local x = a.v return C.new(DIV40) end
local function run(x)
  for i = 1, 840 do
    local o = C.new(x)
    x = second(o).v
    x = DIV60
  end
  return x
end
""" + DRIVEN


def line_of(script, text):
    return next(n for n, line in enumerate(script.splitlines(), 1) if text in line)


DIVISIONS = {"straight": (STRAIGHT, {"first": 8 / 11, "second": 3 / 11}),
             "forwarded": (FORWARDED, {"run": 20 / 44, "first": 14 / 44, "second": 10 / 44}),
             "upvalue": (UPVALUE, {line_of(UPVALUE, "DIV40"): 0.4, line_of(UPVALUE, "DIV60"): 0.6}),
             "shared": (BY_TWO, {"second": 0.4, "run": 0.6}),
             "returned": (RETURNED, {line_of(RETURNED, "DIV31"): 62 / 90, line_of(RETURNED, "    return DIV14"): 14 / 90})}


# without GC64 a half of "forwarded" is not followed
@pytest.mark.parametrize("vm,case", [(vm, case) for vm in BUILDS for case in DIVISIONS if (vm, case) != ("host32-jon", "forwarded")])
def test_divisions_of_functions(tmp_path, luajit2, texluajit, vm, case):
    """Each function, or line, has its part of the divisions. 1000 samples: five standard deviations, and 3 % for the skid and for
    what is no division."""
    path, (script, shares) = tmp_path / "script.lua", DIVISIONS[case]
    path.write_text(re.sub(r"DIV(\d+)", lambda m: "1.5/(" * int(m[1]) + "x" + ")" * int(m[1]), script))
    profile, missing = recorded(tmp_path, vm, path, "", 0.25)
    tops = collections.Counter()
    for s in profile.samples:
        if s.labels.get("vmstate") == "Compiled" and s.stack[-1].kind == pprof.LUA:
            tops[s.stack[-1].name] += s.count
            tops[s.stack[-1].line] += s.count
    n = tops.total() // 2
    assert n >= 1000, tops
    for what, share in shares.items():
        assert abs(tops[what] / n - share) <= truth.bound(share, n) + 0.03 + missing, (what, tops)


LEFT = vms.LUA / "left.lua"


@pytest.mark.parametrize("vm,workload", rows(["stitched", "coroutines", "exits", "recursion", "loops"], ["stitched", "exits"]))
def test_traces_that_are_left(tmp_path, luajit2, texluajit, vm, workload):
    """Each Lua frame has a line, and an exit is charged to the one that it leaves from."""
    profile, missing = recorded(tmp_path, vm, LEFT, workload)
    leaves = next(i for i, text in enumerate(LEFT.read_text().splitlines(), 1) if "--= leaves" in text)
    bad, total, exits = collections.Counter(), 0, collections.Counter()
    for s in profile.samples:
        total += s.count
        if any(f.kind == pprof.LUA and not f.line for f in s.stack):
            bad[str(s.stack)] += s.count
        if s.labels.get("vmstate") == "JIT Compiler":
            exits[s.stack[-1].line] += s.count
    assert total > (0.8 - missing) * SECONDS * HZ
    assert sum(bad.values()) <= truth.allowed(total, 0.0001), bad.most_common(4)
    if workload == "exits":
        assert exits.total() > 0.05 * total
        assert exits[leaves] > 0.95 * exits.total(), exits
