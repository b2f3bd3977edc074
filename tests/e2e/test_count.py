# SPDX-License-Identifier: BSD-2-Clause
"""luabpf count: against programs that count for themselves. Counts are exact, so that nothing is statistical. No root."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import vms

LIB = vms.OUT / "lib/lua"
VMS = [["lua5.1"], ["lua5.2"], ["lua5.3"], ["lua5.4"], ["luajit", "-joff"], ["luajit"]]
NAMES = ["-".join(vm) for vm in VMS]
each_vm = pytest.mark.parametrize("vm", VMS, ids=NAMES)
EXACT = []


def count(*command, env=None, args=()):
    """The counts, and the finished process; its output is the command's."""
    with vms.public_dir() as where:
        out = where / "counts.json"
        r = subprocess.run([vms.LUABPF, "count", "--json", "-o", out, *args, "--", *map(str, command)],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                           timeout=vms.HANG, env=vms.clean_env(env))
        return json.loads(out.read_text()) if out.exists() else None, r


def line_of(row):
    """Of the definition; 0 of a C function or chunk."""
    found = re.search(r":(\d+)", row["place"])
    return int(found[1]) if found else 0


def calls(counts, name, line=None, place=""):
    return sum(f["calls"] for f in counts["functions"]
               if f["function"] == name and line in (None, line_of(f)) and place in f["place"])


def script(tmp_path, text):
    path = tmp_path / "script.lua"
    path.write_text(text)
    return path


@each_vm
def test_counts_are_those_of_the_program(vm):
    """Recursion, tail calls, coroutines, errors, metamethods, C functions; closures and prototypes at addresses that
    the collector gave to others before; two functions on a line; os.exit inside a coroutine. LuaJIT's compiler on, too:
    a call hook aborts the recording of traces that make a call."""
    counts, r = count(*vm, vms.LUA / "count.lua")
    assert r.returncode == 7 and re.fullmatch(r"luabpf: \d+ calls of \d+ functions, exact\n", r.stderr)
    assert counts["exact"] and not counts["not_exact"]
    own = [line.split("\t") for line in r.stdout.splitlines()]
    assert len(own) == 20
    for line, name, n in own:
        rows = [f for f in counts["functions"] if line_of(f) == int(line) and line_of(f)]
        if len(rows) == 1:  # its only function: a metamethod has a name of its own in each version
            found = rows[0]["calls"]
        elif name.startswith("=part"):
            found = calls(counts, f"{name[1:]}:0")
        else:
            found = calls(counts, name, int(line))
        assert found == int(n), (line, name)
    assert counts["calls"] == sum(f["calls"] for f in counts["functions"])


# What a trace begins with behind a C function that is not compiled; it counts its own calls.
STITCHES = """
local m, time, format, type = 0, os.time, string.format, type
local function stamp() m = m + 1 local t = time() return t end
local function mk(i) m = m + 1 return (format("%5s", i)) end
local function two(i) m = m + 1 local s = mk(i) return #s end
local function leaf(i) m = m + 1 return i % 7 end
local function mid(i) m = m + 1 local x = leaf(i) + #stamp(leaf(i)):gsub("x", leaf) return x end
local function wrap(old) m = m + 1 return function(x) m = m + 1 return tostring(old()) end end
stamp = wrap(stamp)
for i = 1, 5000 do two(i) stamp() mid(i) leaf(i) end
print(m)
"""


@each_vm
def test_calls_beside_c_functions_that_are_not_compiled(vm, tmp_path):
    """LuaJIT stitches a trace to what follows such a function, and calls within it would be missing."""
    counts, r = count(*vm, script(tmp_path, STITCHES))
    assert r.returncode == 0 and counts["exact"], r
    own = sum(f["calls"] for f in counts["functions"] if line_of(f))
    assert own == int(r.stdout) == 50001, (own, r.stdout, counts)


TWINS = """
local f, g = function() end, function() end
for i = 1, 3 do f() end for i = 1, 5 do g() end
local a, b = function() return function() end, function() end end, function() return function() end, function() end end
for i = 1, 2 do local x, y = a() x() y() y() end for i = 1, 40 do local x, y = b() x() for j = 1, 9 do y() end end
"""


@each_vm
def test_equal_functions_on_one_line_are_apart(vm, tmp_path):
    """Those of a chunk that is loaded again are the same as before."""
    path = script(tmp_path, TWINS + "if not ... then for i = 1, 2 do collectgarbage() loadfile(arg[0])(1) end end\n")
    counts, r = count(*vm, path)
    assert r.returncode == 0 and counts["exact"], r.stderr
    assert sorted(f["calls"] for f in counts["functions"] if line_of(f) == 2) == [9, 15]
    assert sorted(f["calls"] for f in counts["functions"] if line_of(f) == 4) == [6, 6, 12, 120, 120, 1080]


@each_vm
def test_equal_functions_of_one_line_in_different_ones_are_apart(vm, tmp_path):
    path = script(tmp_path, "local a, b = function() return 1, function() return 2 end, function() end end, function() end\n"
                            "local one, x, y = a() for i = 1, 3 do y() end for i = 1, 5 do b() end\n"
                            "local function c()\n"
                            "return function() end end local function d() return function() end end\n"
                            "local v, w = c(), d() for i = 1, 7 do v() end for i = 1, 9 do w() end\n")
    counts, _ = count(*vm, path)
    calls = {n: sorted(f["calls"] for f in counts["functions"] if line_of(f) == n) for n in (1, 3, 4)}
    assert calls == {1: [1, 3, 5], 3: [1], 4: [1, 7, 9]}


@pytest.mark.parametrize("version", ["5.1", "5.2", "5.3", "5.4"])
def test_equal_functions_of_a_chunk_that_ran_before_the_hook(version, tmp_path):
    path = script(tmp_path, f"package.cpath = '{LIB}/{version}/?.so' require 'luabpf.hook'\n" + TWINS)
    counts, _ = count("env", "-u", "LUA_INIT", "-u", f"LUA_INIT_{version.replace('.', '_')}", f"lua{version}", path)
    assert sorted(f["calls"] for f in counts["functions"] if line_of(f) == 3) == [3, 5]


@each_vm
def test_a_child_counts_too(vm, tmp_path):
    path = script(tmp_path, "local function f() end for i = 1, 10 do f() end\n"
                            "if arg[1] then os.execute(arg[1] .. ' ' .. arg[0]) end")
    counts, r = count(*vm, path, " ".join(vm))
    assert r.returncode == 0 and counts["exact"]
    assert calls(counts, "f", 1) == 20


def test_a_forked_process_counts_apart(tmp_path):
    """The functions that it knew keep their names, calls before the fork count once."""
    path = script(tmp_path, """
local ffi = require "ffi"
ffi.cdef "int fork(void); int waitpid(int, int *, int);"
local function before() end
local function after() end
for i = 1, 100 do before() end
local pid = ffi.C.fork()
for i = 1, 300000 do before() after() end
if pid == 0 then
  if ffi.C.fork() == 0 then for i = 1, 5 do after() end os.exit(0) end
end
while ffi.C.waitpid(-1, nil, 0) > 0 do end
""")
    counts, r = count("luajit", path)
    assert r.returncode == 0 and counts["exact"]
    assert calls(counts, "before") == 600100
    assert calls(counts, "after") == 600005


CALLED = """
local M, Class, Sub, C = {inner = {}}, {}, {}, {}
Class.__index, Sub.__index = Class, Sub
setmetatable(Sub, {__index = Class})
local o = setmetatable({}, Sub)
local by_function = setmetatable({}, {__index = function(_, k) return Class[k] end})
local function leaf(x) return x end                                                         -- none
local function of_local(x) return leaf(x) end
local function of_upvalue(x) return leaf(x) end
function global_one(x) return x end                                                         -- = global_one
function of_global(x) return leaf(x) end
function M.module(x) return x end                                                           -- = module
function M.of_module(x) return leaf(x) end
function M.inner.deep(x) return x end                                                       -- = deep
G = {a = {}}
function G.a.below(x) return x end                                                          -- = below
function Class:method(x) return x end                                                       -- = method
function Class:of_method(x) return self:other(x) end
function Class:other(x) return x end                                                        -- none
function Class:through(x) return x end                                                      -- = through
local mt = {__index = function(_, k) return leaf(k) end}                                    -- = __index
mt.__add = function(a) return a end                                                         -- = __add
mt.__unm = function(a) return leaf(a) end                                                   -- = __unm
mt.__lt = function(a, b) return leaf(a == b) end                                            -- = __lt
local object = setmetatable({}, mt)
local callable = setmetatable({}, {__call = function(_, x)                                  -- = callable
  return x end})
local function upvalue(x) return x end                                                      -- = upvalue
local function iterator(_, i) if i < 2 then return i + 1 end end
local function run()
  local one = function(x) return x end                                                      -- = one
  local self_tail = of_local
  one(1) self_tail(1) of_upvalue(1) upvalue(1) global_one(1) of_global(1) M.module(1) M.of_module(1) M.inner.deep(1)
  G.a.below(1) o:method(1) o:of_method(1) by_function:through() callable(1)
  local _ = object.x, object + 1, -object, object < object
  for _ in iterator, nil, 0 do end
  for _ in ipairs({1, 2}) do end
end
run() run()
local wrapped = coroutine.wrap(function() while true do coroutine.yield() end end)
coroutine.wrap(function() end)() wrapped() wrapped()
"""


ITERATORS = """
local t = {}
for i = 1, 9 do t[i] = i end
for _ = 1, 100 do for _ in pairs(t) do end end
for _ = 1, 200 do for _ in ipairs(t) do end end
for _ = 1, 300 do for _ in ("a b c d"):gmatch("%w") do end end
for _ = 1, 5 do next(t) end
"""


@pytest.mark.parametrize("vm", [["lua5.1"], ["lua5.2"], ["lua5.3"], ["lua5.4"]], ids=NAMES[:4])
def test_iterators_in_c_are_rows_of_their_own(vm, tmp_path):
    """All had one row, "for iterator" or "(for generator)", in 5.1 with next(), whose closure in pairs() is another one."""
    counts, r = count(*vm, script(tmp_path, ITERATORS))
    assert r.returncode == 0 and counts["exact"], r
    assert calls(counts, "next") == 1005, counts
    assert {2000, 1500} <= {f["calls"] for f in counts["functions"] if "+0x" in f["function"]}, counts
    assert not [f for f in counts["functions"] if "for " in f["function"]], counts


ALIASES = """
for i = 1, 20 do package.loaded["aaa" .. i] = {push = table.insert, fmt = string.format, iter = string.gmatch, rest = math.fmod} end
push, fmt, words, rest = table.insert, string.format, string.gmatch, math.fmod
local t = {}
for i = 1, 7 do push(t, fmt("%d", i)) words("a", "a") rest(7, 4) end
package.loaded.big = {mod = io.stdout.seek}
for i = 1, 3 do package.loaded.big.mod(io.stdout) end
"""


@pytest.mark.parametrize("vm", VMS[:5], ids=NAMES[:5])
def test_a_library_function_has_the_librarys_name(vm, tmp_path):
    """Not that of a global or of a module of the program's, nor gfind and mod, second names in 5.1. A module's mod is no such one."""
    counts, r = count(*vm, script(tmp_path, ALIASES))
    assert r.returncode == 0 and counts["exact"], r
    named = {f["function"].split(" ")[0]: f["calls"] for f in counts["functions"]}
    wanted = dict.fromkeys(["table.insert", "string.format", "string.gmatch", "math.fmod"], 7) | {"big.mod": 3}
    assert {name: named.get(name) for name in wanted} == wanted, counts


@pytest.mark.parametrize("vm", [["luajit"], ["luajit", "-joff"]], ids=["luajit", "luajit-joff"])
def test_names_of_calls_in_luajit(vm, tmp_path):
    """A function that a tail call has begun does not have the name by which the caller's function was called. All others
    have theirs. Builtins that no table holds are not named by their call sites."""
    counts, r = count(*vm, script(tmp_path, CALLED))
    assert r.returncode == 0 and counts["exact"], r
    rows = {line_of(f): f["function"] for f in counts["functions"] if f["calls"] and line_of(f)}
    for line, text in enumerate(CALLED.splitlines(), 1):
        marked = re.search(r"-- (= \S+|none)$", text)
        if marked and marked[1] == "none":
            assert rows[line].endswith(f"script.lua:{line}"), (text, rows)
        elif marked:
            assert rows[line].split(" (")[0] == marked[1][2:], (text, rows)
    assert calls(counts, "coroutine.wrap_aux") == 3 and calls(counts, "ipairs_aux") == 6
    assert not [f for f in counts["functions"] if "NULL" in f["function"] or f["function"] == "wrapped"]


@each_vm
def test_what_was_counted_before_a_crash_is_kept(vm, tmp_path):
    path = script(tmp_path, "local function f() end for i = 1, 1234 do f() end os.execute('kill -9 $PPID')")
    counts, r = count(*vm, path)
    assert r.returncode == 128 + signal.SIGKILL
    assert calls(counts, "f") == 1234


FINALIZERS = """
local p = newproxy and newproxy(true)
local mt = p and getmetatable(p) or {}
mt.__gc = function() print("finalized") end
p = p or setmetatable({}, mt)
p = nil
collectgarbage() collectgarbage()
"""


@each_vm
def test_finalizers_are_said_to_be_missing(vm, tmp_path):
    counts, r = count(*vm, script(tmp_path, FINALIZERS))
    assert r.stdout == "finalized\n" and calls(counts, "print") == 0
    assert ["finalizers (__gc)" in s for s in counts["not_exact"]] == [True]


def test_finalizers_of_cdata_are_said_to_be_missing(tmp_path):
    counts, _ = count("luajit", script(tmp_path, "local ffi = require('ffi') ffi.gc(ffi.new('int[1]'), print)"))
    assert ["finalizers (__gc)" in s for s in counts["not_exact"]] == [True]


def test_a_process_that_is_left_behind_is_named(tmp_path):
    """It has counted once when the command ends, and runs until its input is closed."""
    path = script(tmp_path, "local function f() end f() io.open(arg[1], 'w'):close() io.read('*l')")
    ready = tmp_path / "ready"
    hold, keep = os.pipe()
    try:
        counts, r = count("sh", "-c", f"exec 9</proc/{os.getpid()}/fd/{hold}; lua5.4 {path} {ready} <&9 >/dev/null 2>&1 &"
                                      f"while ! test -e {ready}; do sleep 0.02; done")
    finally:
        os.close(keep)
        os.close(hold)
    assert r.returncode == 0 and calls(counts, "f") == 1
    assert [bool(re.match(r"process \d+ runs on, though the command has ended", s)) for s in counts["not_exact"]] == [True]


HOOKS = """
local names = {}
local function f() end
local function on(event, line) names[#names + 1] = event .. (line or "") end
print(debug.gethook())
debug.sethook(on, "cr")
f()
debug.sethook()
local co = coroutine.create(function() f() f() end)
debug.sethook(co, on, "l", 0)
local hook, mask, n = debug.gethook(co)
print(hook == on, mask, n)
coroutine.resume(co)
debug.sethook(co)
debug.sethook(on, "", 1000)
for i = 1, 20000 do end
debug.sethook()
print(debug.gethook())
f()
print(pcall(debug.sethook, 1, 2, 3, 4))
print(table.concat(names, " "))
"""


@each_vm
def test_a_hook_of_the_program_runs_as_if_alone(vm, tmp_path):
    path = script(tmp_path, HOOKS)
    alone = subprocess.run([*vm, path], capture_output=True, text=True, timeout=vms.HANG, env=vms.clean_env())
    counts, r = count(*vm, path)
    assert (r.stdout, r.returncode) == (alone.stdout, 0)
    assert calls(counts, "f") == 4
    assert len(counts["not_exact"]) == 1 and "debug.sethook" in counts["not_exact"][0]


@each_vm
def test_a_debug_library_that_is_replaced(vm, tmp_path):
    path = script(tmp_path, "local function f() end debug = {sethook = print} package.loaded.debug = debug\n"
                            "for i = 1, 50 do f() end debug.sethook('x')")
    counts, r = count(*vm, path)
    assert r.stdout == "x\n" and counts["exact"]
    assert calls(counts, "f", 1) == 50


@each_vm
def test_the_users_own_lua_init(vm, tmp_path):
    """As code and as @file; of 5.2 and later the versioned variable wins. Its calls count, the module's do not."""
    file = tmp_path / "init.lua"
    file.write_text("function f() end f() from = 'file'")
    path = script(tmp_path, "f() print(from)")
    code = "function f() end f() from = 'code'"
    for env, says in [({"LUA_INIT": code}, "code"), ({"LUA_INIT": f"@{file}"}, "file"),
                      ({"LUA_INIT": code, "LUA_INIT_5_2": f"@{file}", "LUA_INIT_5_3": f"@{file}",
                        "LUA_INIT_5_4": f"@{file}"}, "file" if vm[0] > "lua5.1" and vm[0] != "luajit" else "code")]:
        counts, r = count(*vm, path, env=env)
        assert (r.stdout, r.returncode) == (f"{says}\n", 0)
        assert calls(counts, "f") == 2
        assert not [f for f in counts["functions"] if "getenv" in f["function"] or "load" in f["function"]]
    _, r = count(*vm, path, env={"LUA_INIT": "x = = 1"})
    assert r.returncode == 1 and "LUA_INIT:1: unexpected symbol near" in r.stderr


@pytest.mark.parametrize("version", ["5.1", "5.2", "5.3", "5.4"])
def test_a_host_that_requires_the_module(version, tmp_path):
    path = script(tmp_path, f"package.cpath = '{LIB}/{version}/?.so'\n"
                            "local function f() end f() require 'luabpf.hook' f() f() f()")
    counts, r = count(f"lua{version}", path, env={"LUABPF_HOOK_LIB": ""})
    assert r.returncode == 0
    counts, r = count("env", "-u", "LUA_INIT", "-u", f"LUA_INIT_{version.replace('.', '_')}", f"lua{version}", path)
    assert r.returncode == 0 and calls(counts, "f") == 3
    assert ["loaded by code that ran already" in s for s in counts["not_exact"]] == [True]


@each_vm
def test_the_module_without_luabpf_does_nothing(vm, tmp_path):
    version = vm[0][3:] if vm[0] != "luajit" else "5.1"
    path = script(tmp_path, f"package.cpath = '{LIB}/{version}/?.so'\n"
                            "print(require('luabpf.hook').active, debug.gethook())")
    r = subprocess.run([*vm, path], capture_output=True, text=True, timeout=vms.HANG, env=vms.clean_env())
    assert r.returncode == 0 and r.stdout.startswith("false\tnil")


def test_no_interpreter():
    counts, r = count("true")
    assert counts is None and r.returncode == 1
    assert "true: no Lua interpreter in it has loaded the hook module" in r.stderr


def test_a_command_that_does_not_exist():
    counts, r = count("/no/such/command")
    assert counts is None and r.returncode == 1 and "cannot run it" in r.stderr


def test_a_signal_is_passed_on(tmp_path):
    path = script(tmp_path, "local function f() end f() print('begins') io.stdout:flush() while true do end")
    with vms.public_dir() as where:
        p = subprocess.Popen([vms.LUABPF, "count", "-o", where / "out", "--", "lua5.4", path], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env=vms.clean_env())
        with vms.no_hang(p):
            assert p.stdout.readline() == "begins\n"
            p.send_signal(signal.SIGTERM)
            assert p.wait() == 128 + signal.SIGTERM
        assert re.search(r" 1 +[\d.]+  f  +script.lua:1\n", (where / "out").read_text())


def test_the_directory_is_removed(tmp_path):
    path = script(tmp_path, "print(os.getenv('LUABPF_HOOK_DIR'))")
    _, r = count("lua5.4", path)
    where = Path(r.stdout.strip())
    assert where.is_absolute() and not where.exists()


@pytest.mark.parametrize("age, lives", [(3600, False), (3600, True), (0, False)])
def test_a_directory_that_a_killed_one_left(tmp_path, age, lives):
    """The next start removes it, unless its luabpf lives, or it is so young that it may not have its lock yet."""
    path = script(tmp_path, "print(os.getenv('LUABPF_HOOK_DIR')) io.flush() io.read()")
    argv = [vms.LUABPF, "count", "--json", "-o", tmp_path / "c.json", "--", "lua5.4", path]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=vms.clean_env()) as first:
        left = Path(first.stdout.readline().strip())
        if not lives:
            first.kill()
            first.wait()
        made = time.time() - age
        os.utime(left / "alive", (made, made))
        assert count("lua5.4", "-e", "")[1].returncode == 0
        assert left.exists() == (lives or not age)
        first.stdin.close()
    shutil.rmtree(left, ignore_errors=True)


@pytest.mark.parametrize("limit", [0, 1, 1000])
def test_a_process_that_may_not_make_a_file_of_this_size(tmp_path, limit):
    """It runs on, uncounted. The message names the directory and the cause, and how large a limit is needed."""
    path = script(tmp_path, "print('ran')")
    command = f"ulimit -f {limit}; lua5.4 {path}"
    counts, r = count("sh", "-c", command)
    assert counts is None and r.stdout == "ran\n" and r.returncode == 1
    said = re.search(r"sh: the hook module cannot make its file in (/\S+), of (\d+) bytes: File too large\n"
                     r".*ulimit -f (\d+)", r.stderr)
    assert said and 0 <= int(said[3]) * 512 - int(said[2]) < 512 and not Path(said[1]).exists(), r
    counts, r = count("sh", "-c", f"lua5.4 -e 'local function f() end f()'; {command}")
    assert calls(counts, "f") == 1 and r.stdout == "ran\n"
    assert counts["not_exact"] == ["a Lua state could not make its file of counts, and is not counted: File too large"]
    assert count("sh", "-c", f"ulimit -f {said[3]}; lua5.4 {path}")[0]["exact"]


def test_the_files_of_a_hostile_program(tmp_path):
    """It writes what it likes into its directory: luabpf reports or says so, and ends."""
    path = script(tmp_path, """
local dir = os.getenv("LUABPF_HOOK_DIR")
print(dir)
os.execute("cd " .. dir .. "; for f in *-*; do head -c 100000 /dev/urandom | dd of=$f bs=1 seek=8 conv=notrunc status=none count=200; done;"
  .. "mkfifo fifo; ln -s /etc/passwd link; mkdir sub; head -c 5000 /dev/urandom > junk; : > empty")
""")
    counts, r = count("lua5.4", path)
    assert r.returncode == 0 and not counts["exact"] and "not all of them:" in r.stderr
    assert not Path(r.stdout.strip()).exists()
