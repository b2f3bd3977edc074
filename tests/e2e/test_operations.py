# SPDX-License-Identifier: BSD-2-Clause
"""Single operations of LuaJIT in loops of their own. What takes a few instructions of the VM is a small share of any real
program, and most of one of these: no sample is lost in them, and each has its main chunk at the bottom."""
import collections

import pytest

import pprof
import truth
import vms

pytestmark = pytest.mark.usefixtures("root")
HZ, SECONDS = 5000, 0.5
FFI = ("local ffi = require 'ffi'\n"
       "local a = ffi.metatype('struct {int n;}', {__add = function(a, b) return a end, __index = {n2 = 1}})(3)\n")
OPERATIONS = {  # name: (set-up, operation)
    "length": ("local t = {1, 2, 3}", "local x = #t"),
    "next": ("local t = {1, 2, a = 1}\nlocal k", "k = next(t, k)"),
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


@pytest.mark.parametrize("vm", ["luajit-joff", "luajit-jon", "luajit2-joff", "luajit2-jon"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_nothing_is_lost(luajit2, tmp_path, vm, name):
    setup, operation = OPERATIONS[name]
    script = tmp_path / "x.lua"
    script.write_text(f"{setup}\nio.write('ready\\n')\nio.flush()\nwhile true do\nfor i = 1, 1000 do\n{operation}\nend\nend\n")
    how = vms.VMS[vm]
    with vms.Target([*how.argv, script], how.env).ready() as t:
        done = vms.luabpf("-p", t.pid, "-F", HZ, "-d", SECONDS, "-o", tmp_path / "p.pb.gz")
    profile = pprof.Profile(tmp_path / "p.pb.gz")
    total = done.stats["resolved"] + done.stats["lost"]
    rootless = sum(s.count for s in profile.samples if not any(f.name.endswith("/x.lua:0") for f in s.stack))
    assert total > HZ * SECONDS / 4, done
    assert done.stats["lost"] + rootless <= truth.allowed(total), (rootless, done)


LOOPS = {
    "while": "while j < 5000 do\nj = j + 1\nend",
    "repeat": "repeat\nj = j + 1\nuntil j > 5000",
    "else": "while j < 5000 do\nj = j + 1 if j % 2 == 0 then\nk = k + 1\nelse\nk = k - 1\nend\nend",
    "goto": "::again::\nj = j + 1\nif j < 5000 then goto again end",
    "in": "for n, v in pairs(t) do\nk = v\nend",
}


@pytest.mark.parametrize("vm,name", [(vm, name) for vm in ("luajit-joff", "luajit2-joff", "lua5.1", "lua5.4")
                                     for name in LOOPS if (vm, name) != ("lua5.1", "goto")])  # which 5.1 does not have
def test_line_before_a_loop(luajit2, tmp_path, vm, name):
    """It runs once in 5000 turns, and is not seen each time the VM goes back to the loop's beginning."""
    script, how = tmp_path / "x.lua", vms.VMS[vm]
    script.write_text("io.write('ready\\n') io.flush() local t = {} for i = 1, 5000 do t[i] = i end\n"
                      f"local function f() local j, k\nj, k = 0, 0\n{LOOPS[name]}\nend\nwhile true do f() end\n")
    with vms.Target([*how.argv, script], how.env).ready() as t:
        done = vms.luabpf("-p", t.pid, "-F", 2 * HZ, "-d", 1, "-o", tmp_path / "p.pb.gz")
    lines = collections.Counter()
    for s in pprof.Profile(tmp_path / "p.pb.gz").samples:
        lines.update({f.line: s.count for f in s.stack if f.name == "f"})
    assert lines.total() > HZ / 2, done
    assert lines[3] <= truth.allowed(lines.total()), lines
