# SPDX-License-Identifier: BSD-2-Clause
"""Single operations of LuaJIT in loops of their own. What takes a few instructions of the VM is a small share of any real
program, and most of one of these: no sample is lost in them, and each has its main chunk at the bottom."""
import collections
import contextlib

import pytest

import pprof
import truth
import vms

pytestmark = pytest.mark.usefixtures("root")
HZ, SECONDS = 10000, 0.25  # of CPU time: 2500 samples
FFI = ("local ffi = require 'ffi'\n"
       "local a = ffi.metatype('struct {int n;}', {__add = function(a, b) return a end, __index = {n2 = 1}})(3)\n")
OPERATIONS = {  # name: (set-up, operation)
    "length": ("local t = {1, 2, 3}", "local x = #t"),
    "next": ("local t = {1, 2, a = 1}\nlocal k", "k = next(t, k)"),
    # two slots below its own call the main chunk has keys() itself: where lj_tab_next() keeps the address of its results,
    # there is a frame of keys(), it seems
    "next_in_function": ("local t = {} for i = 1, 200 do t['k' .. i] = i end\nlocal function keys(t) "
                         "local n, k = 0, next(t) while k ~= nil do n = n + 1 k = next(t, k) end return n end", "keys(t)"),
    "pairs": ("local t = {1, 2, a = 1}", "for k, v in pairs(t) do end"),
    "rawget": ("local t = {1, 2, 3}", "local x = rawget(t, 1)"),
    "pcall": ("local function f() end", "pcall(f)"),
    "pcall_error": ("", "pcall(error, 'x')"),
    "xpcall": ("local function f() end", "xpcall(f, f)"),
    "metamethod": ("local t = setmetatable({}, {__add = function() return 1 end})", "local x = t + t"),
    "tail_call": ("local function f(n) if n == 0 then return 0 end return f(n - 1) end", "local x = f(10)"),
    "wrap": ("local c = coroutine.wrap(function() while true do coroutine.yield() end end)", "c()"),
    "tostring": ("local t = {}", "local x = tostring(t)"),
    "tonumber": ("", "local x = tonumber('ff', 16)"),
    "modf": ("", "local x, y = math.modf(i + 0.5)"),
    "sinh": ("", "local x = math.sinh(1)"),
    "gsub": ("local function f() return 'y' end", "local x = string.gsub('abcabc', 'b', f)"),
    "sort": ("local t = {5, 3, 1}\nlocal function f(a, b) return a < b end", "table.sort(t, f)"),
    "metatype": (FFI, "local x = a + a"),
}


SCRIPT = """io.write('ready\\n') io.flush() SETUP
io.read()
local start = os.clock()
while os.clock() - start < SECONDS do BODY end
io.write('done\\n') io.flush()
io.read()
"""


def side_by_side(tmp_path, names, setup, body, seconds):
    """One recording of a loop under each of these interpreters, for so many seconds of its CPU time each; its samples by
    interpreter."""
    script = tmp_path / "x.lua"
    script.write_text(SCRIPT.replace("SETUP", setup).replace("SECONDS", str(seconds)).replace("BODY", body))
    with contextlib.ExitStack() as stack:
        targets = {name: stack.enter_context(vms.Target([*vms.VMS[name].argv, script], vms.VMS[name].env)) for name in names}
        for t in targets.values():
            t.ready()
        pids = ",".join(str(t.pid) for t in targets.values())
        tool = vms.Luabpf("-p", pids, "-F", HZ, "-o", tmp_path / "p.pb.gz").wait_banner()
        for t in targets.values():
            t.go()
        for t in targets.values():
            assert t.line() == "done"
        tool.signal()
        done = tool.done()
    assert done.code == 0, done
    samples = {name: [] for name in names}
    of = {str(t.pid): name for name, t in targets.items()}
    for s in pprof.Profile(tmp_path / "p.pb.gz").samples:
        samples[of[s.labels["pid"]]].append(s)
    return samples, done


@pytest.mark.parametrize("name", OPERATIONS)
def test_nothing_is_lost(luajit2, tmp_path, name):
    """2500 samples of each interpreter are due. In all of them together no more are lost or without a root than 0.1 % of
    one's, which chance exceeds once in a million."""
    setup, operation = OPERATIONS[name]
    samples, done = side_by_side(tmp_path, ["luajit-joff", "luajit-jon", "luajit2-joff", "luajit2-jon"], setup,
                                 f"for i = 1, 1000 do\n{operation}\nend", SECONDS)
    for vm, of in samples.items():
        assert sum(s.count for s in of) > done.least(HZ * SECONDS, 0.5), (vm, done)
    rootless = collections.Counter({vm: sum(s.count for s in of if not any(f.name.endswith("/x.lua:0") for f in s.stack))
                                    for vm, of in samples.items()})
    assert done.stats["lost"] + rootless.total() <= truth.allowed(HZ * SECONDS), (done.stats["lost_by_reason"], rootless, done)


LOOPS = {
    "while": "while j < 5000 do\nj = j + 1\nend",
    "repeat": "repeat\nj = j + 1\nuntil j > 5000",
    "else": "while j < 5000 do\nj = j + 1 if j % 2 == 0 then\nk = k + 1\nelse\nk = k - 1\nend\nend",
    "goto": "::again::\nj = j + 1\nif j < 5000 then goto again end",
    "in": "for n, v in pairs(t) do\nk = v\nend",
}


@pytest.mark.parametrize("name", LOOPS)
def test_line_before_a_loop(luajit2, tmp_path, name):
    """It runs once in 5000 turns, and is not seen each time the VM goes back to the loop's beginning. 5000 samples are due."""
    setup = ("local t = {} for i = 1, 5000 do t[i] = i end\n"
             f"local function f() local j, k\nj, k = 0, 0\n{LOOPS[name]}\nend")
    names = ["luajit-joff", "luajit2-joff", "lua5.4", *(["lua5.1"] if name != "goto" else [])]  # which 5.1 does not have
    samples, done = side_by_side(tmp_path, names, setup, "f()", 0.5)
    for vm, of in samples.items():
        lines = collections.Counter()
        for s in of:
            lines.update({f.line: s.count for f in s.stack if f.name.partition(" (")[0] == "f"})
        assert lines.total() > done.least(HZ / 2, 0.5), (vm, done)
        assert lines[3] <= truth.allowed(lines.total()), (vm, lines)
