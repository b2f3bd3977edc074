# SPDX-License-Identifier: BSD-2-Clause
"""`luabpf trace`: lines, hits, coverage, against a line hook in Lua and against luac's listing."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

import vms

PROGRAM = vms.LUA / "traced.lua"
NAMES = ["lua5.1", "lua5.2", "lua5.3", "lua5.4", "luajit-joff"]
PUCS = NAMES[:4]
PENLIGHT = Path("/usr/share/lua/5.1/pl")
NOBODY = 65534


@pytest.fixture
def open_folder():
    """A folder that all users can enter."""
    with tempfile.TemporaryDirectory(prefix="luabpf-trace-") as path:
        os.chmod(path, 0o755)
        yield Path(path)


def trace(*args, **kw):
    return vms.luabpf("trace", *args, stats=False, **kw)


def argv(name):
    return vms.VMS[name].argv


def script(tmp_path, text):
    path = tmp_path / "x.lua"
    path.write_text(text)
    return path


class Lcov:
    """A tracefile: of each source its lines and hits, its functions and calls."""

    def __init__(self, path):
        self.files, self.functions = {}, {}
        for line in path.read_text().splitlines():
            kind, _, rest = line.partition(":")
            if kind == "SF":
                self.files[rest] = lines = {}
                self.functions[rest] = functions = {}
            elif kind == "DA":
                number, hits = rest.split(",")
                lines[int(number)] = int(hits)
            elif kind == "FNDA":
                calls, name = rest.split(",", 1)
                assert name not in functions
                functions[name] = int(calls)


def lcov_of(tmp_path, *args, code=0, **kw):
    r = trace("-o", tmp_path / "text", "--lcov", tmp_path / "out.info", "--", *args, **kw)
    assert r.code == code, r
    return Lcov(tmp_path / "out.info"), r


@pytest.mark.parametrize("name", NAMES)
def test_hits_are_those_of_a_line_hook(tmp_path, name):
    lcov, r = lcov_of(tmp_path, *argv(name), PROGRAM)
    assert "not followed" not in r.err
    ran = {line: hits for line, hits in lcov.files[str(PROGRAM)].items() if hits}
    hooked = subprocess.run([*argv(name), vms.LUA / "line_hook.lua", PROGRAM], capture_output=True, text=True,
                            timeout=vms.HANG, check=True)
    assert ran == {int(line): int(hits) for line, hits in map(str.split, hooked.stdout.splitlines())}
    functions = lcov.functions[str(PROGRAM)]
    assert [calls for f, calls in functions.items() if f.startswith("fib:")] == [465]
    assert [calls for f, calls in functions.items() if re.fullmatch(r"fail:3|function at 3", f)] == [6]


TEST = {"EQ", "LT", "LE", "TEST", "TESTSET", "EQK", "EQI", "LTI", "LEI", "GTI", "GEI"}


def lines_by_luac(version, path):
    """Lines of instructions that control flow reaches, as luac lists them; a jump after a comparison is a part of it."""
    listing = subprocess.run([f"luac{version}", "-l", "-p", path], capture_output=True, text=True, check=True, timeout=vms.HANG).stdout
    lines = set()
    for function in re.split(r"^(?:main|function) <", listing, flags=re.M)[1:]:
        code = [(int(n), int(line), op, rest) for n, line, op, rest in re.findall(r"^\t(\d+)\t\[(\d+)\]\t(\S+)\s*(.*)$", function, flags=re.M)]
        vararg = version == "5.4" and code[0][2] == "VARARGPREP"
        seen, todo = set(), [1]
        while todo:
            pc = todo.pop()
            if pc in seen or pc > len(code):
                continue
            seen.add(pc)
            _, _, op, rest = code[pc - 1]
            to = re.search(r"; (?:exit )?to (\d+)", rest)
            if op.startswith("RETURN"):
                continue
            if op in TEST or (version == "5.1" and op == "TFORLOOP"):
                todo += [pc + 2, int(re.search(r"; to (\d+)", code[pc][3]).group(1))]
            elif op == "JMP":
                todo.append(int(to.group(1)))
            else:
                todo += [pc + 1] + ([int(to.group(1)) + (op == "FORPREP" and version == "5.4")] if to else [])
        lines |= {code[pc - 1][1] for pc in seen if not (vararg and pc == 1)}
    return lines


@pytest.mark.parametrize("name", PUCS)
def test_lines_that_can_run_are_luacs(tmp_path, name):
    """Also of functions that were never called."""
    paths = [PROGRAM, vms.LUA / "names.lua", *sorted(PENLIGHT.glob("*.lua"))[:12]]
    run = "for i = 1, #arg do pcall(dofile, arg[i]) end"
    lcov, _ = lcov_of(tmp_path, *argv(name), script(tmp_path, run), *paths)
    judged = 0
    for path in paths:
        if str(path) in lcov.files:
            assert set(lcov.files[str(path)]) == lines_by_luac(name[3:], path), path
            judged += 1
    assert judged >= 2


def test_lines_that_can_run_in_luajit(tmp_path):
    lcov, _ = lcov_of(tmp_path, *argv("luajit-joff"), PROGRAM)
    never = {line for line, hits in lcov.files[str(PROGRAM)].items() if not hits and 70 < line < 92}
    assert never == {74, 75, 77, 80, 81, 83, 84, 85, 87, 88}


def test_functions_on_one_line_are_apart(tmp_path):
    lcov, _ = lcov_of(tmp_path, "lua5.1", PROGRAM)
    functions = lcov.functions[str(PROGRAM)]
    calls = [n for name, n in functions.items() if re.match(r"(one:|function at )91", name)]
    assert sorted(calls) == [0, 3]
    text = (tmp_path / "text").read_text()
    assert re.search(r"not called:.* 91 \(function at 91\)", text)


def live_and_saved(tmp_path, name, path):
    """Traces a program, and reports its saved trace, which gives the same coverage. Returns the tracefile, the saved trace
    and the second run."""
    live, raw, saved = tmp_path / "out.info", tmp_path / "raw", tmp_path / "saved.info"
    r = trace("-o", tmp_path / "text", "--raw", raw, "--lcov", live, "--", *argv(name), path)
    assert r.code == 0, r
    r = trace("--from", raw, "--lcov", saved)
    assert r.code == 0 and not r.err, r
    assert saved.read_text() == live.read_text()
    return live, raw, r


@pytest.mark.parametrize("name", NAMES)
def test_equal_functions_on_one_line_are_apart(tmp_path, name):
    """One that was not called, too; in a saved trace as in the live one."""
    path = tmp_path / "twins.lua"
    path.write_text("local f, g, h = function() end, function() end, function() end\n"
                    "local a, b = function() return function() end end, function() return function() end end\n"
                    "for i = 1, 3 do f() end for i = 1, 5 do g() end\n"
                    "for i = 1, 7 do a()() end local x = b() for i = 1, 9 do x() end\n")
    functions = Lcov(live_and_saved(tmp_path, name, path)[0]).functions[str(path)]
    assert sorted(functions.values()) == sorted([1, 3, 5, 0, 7, 7, 1, 9]), functions


@pytest.mark.parametrize("name", NAMES)
def test_functions_of_one_line_that_hold_each_other_are_apart(tmp_path, name):
    """The code of the first two on line 2 is equal but for what they hold; so is that of two pairs below."""
    path = tmp_path / "nested.lua"
    path.write_text("local function r(f) local x = f() return x end\n"
                    "r(function() local a = r(function() local b = r(function() return 1 end) return b end) return a end)\n"
                    "local a, b = function() return function() return 1 end, function() end end, function() end\n"
                    "local x, y = a() for i = 1, 3 do y() end for i = 1, 5 do b() end\n"
                    "local function c()\n"
                    "return function() end end local function d() return function() end end\n"
                    "local v, w = c(), d() for i = 1, 7 do v() end for i = 1, 9 do w() end\n")
    records = live_and_saved(tmp_path, name, path)[0].read_text().splitlines()
    lines = [record[3:].split(",")[0] for record in records if record.startswith("FN:")]
    calls = [record[5:].split(",")[0] for record in records if record.startswith("FNDA:")]
    of_line = {line: sorted(int(n) for at, n in zip(lines, calls) if at == line) for line in "2356"}
    assert of_line == {"2": [1, 1, 1], "3": [0, 1, 3, 5], "5": [1], "6": [1, 7, 9]}


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_trace_gives_the_same(tmp_path, name):
    _, raw, r = live_and_saved(tmp_path, name, PROGRAM)
    assert re.search(r"\b465  fib  ", r.out)
    for line in raw.read_text().splitlines():
        assert re.fullmatch(r"[>T] \S+ \d+ \d+|R \d+|[<YPE]|\d+ \d+(\.\d+)?|#(function|source|code|state) \S+|#end", line), line
        assert line[0] != "#" or not re.search(r"\d \d", line)  # luatrace would take it for a line and its time


def test_a_saved_trace_that_was_cut(tmp_path):
    """At the end of a line or inside one: its figures are not those of the run, and --fail-under would take them for that."""
    raw, cut = tmp_path / "raw", tmp_path / "cut"
    assert trace("-o", tmp_path / "t", "--raw", raw, "--", "lua5.4", PROGRAM).code == 0
    data = raw.read_bytes()
    for end in len(data) - 1, len(data) - 5, data.rindex(b"\n", 0, len(data) // 3) + 1, len(data) // 2:
        cut.write_bytes(data[:end])
        r = trace("--from", cut, "--fail-under", "1")
        assert r.code == (0 if end == len(data) - 1 else 1) and ("it was cut" in r.err) == bool(r.code) and "lines" in r.out, (end, r)


def test_what_is_no_saved_trace(tmp_path):
    for path, why in ("/dev/zero", "not a trace"), (tmp_path, "Is a directory"), ("/dev/null", "not a trace"):
        r = trace("--from", path)
        assert r.code == 1 and why in r.err and not r.out, (path, r)


def test_a_saved_trace_of_odd_chunk_names(tmp_path):
    """A name may be empty, begin as those of other kinds do, or have any bytes."""
    names = r'"@", "@=a", "@[b", "=", "= x\n> y 1 2", "@%41", "", "[c]"'
    path = script(tmp_path, f"for _, name in ipairs {{ {names} }} do (loadstring or load)('local x = 1\\nreturn x', name)() end")
    raw, live, saved = (tmp_path / name for name in ("raw", "live.info", "saved.info"))
    for name in ("lua5.1", "lua5.4", "luajit-joff"):
        r = trace("-o", tmp_path / "t", "--raw", raw, "--lcov", live, "--", *argv(name), path)
        assert r.code == 0, r
        r = trace("--from", raw, "--lcov", saved)
        assert r.code == 0 and "such file exists" in r.err and r.err.count("\n") == 1, r
        assert saved.read_text() == live.read_text()


def test_a_trace_of_luatrace(tmp_path):
    """What luatrace itself writes: whole microseconds, no names."""
    raw = tmp_path / "raw"
    raw.write_text("> a.lua 0 0\n1 10\n> a.lua 2 4\n3 5\nT a.lua 6 8\n7 20\n<\n1 1\nP\n1 1\nR 2\n> a.lua 9 12\n10 4\nE\n1 2\n<\n")
    r = trace("--from", raw)
    assert r.code == 0 and not r.err, r
    assert re.search(r"0\.020 +\d+\.\d+ +0\.020 +1  function at 6  a\.lua:6-8", r.out)
    assert re.search(r"0\.014 +\d+\.\d+ +0\.043 +1  main chunk  a\.lua", r.out)
    raw.write_text("no trace\n")
    r = trace("--from", raw)
    assert r.code == 1 and "not a trace" in r.err


def test_other_programs_read_the_files(tmp_path):
    info, cobertura, chrome = (tmp_path / name for name in ("x.info", "x.xml", "x.json"))
    r = trace("-o", tmp_path / "t", "--lcov", info, "--cobertura", cobertura, "--chrome", chrome, "--", "lua5.4", PROGRAM)
    assert r.code == 0, r
    r = subprocess.run(["genhtml", "-o", tmp_path / "html", info], capture_output=True, text=True, timeout=vms.HANG)
    assert r.returncode == 0, r
    lines = Lcov(info).files[str(PROGRAM)]
    hit = sum(hits > 0 for hits in lines.values())
    assert f"({hit} of {len(lines)} lines)" in r.stdout
    root = xml.parse(cobertura).getroot()
    assert (int(root.get("lines-covered")), int(root.get("lines-valid"))) == (hit, len(lines))
    [of_class] = [c.find("lines") for c in root.iter("class")]
    assert {int(line.get("number")): int(line.get("hits")) for line in of_class} == lines
    events = [e for e in json.loads(chrome.read_text())["traceEvents"] if e["ph"] == "X"]
    assert sum(e["name"].startswith("fib ") for e in events) == 465
    assert all(e["dur"] >= 0 for e in events)


def test_annotated_source(tmp_path):
    path = script(tmp_path, "local function f() return 1 end\nfor i = 1, 3 do f() end\nif nil then\n  f()\nend\n")
    out = tmp_path / "out"
    r = trace("-o", tmp_path / "t", "--annotate", out, "--", "lua5.3", path)
    assert r.code == 0, r
    text = out.read_text()
    assert f"====== {path} ======" in text
    assert re.search(r"^ +not run +\|   f\(\)$", text, flags=re.M)
    assert re.search(r"^ +3 +\d+\.\d+ +\d+\.\d+ \|     \^ f$", text, flags=re.M)


@pytest.mark.parametrize("name", NAMES)
def test_a_lines_total_is_no_more_than_the_programs(tmp_path, name):
    """The functions of line 1 call each other: none is on the stack without the chunk's part of the line."""
    path = script(tmp_path, "pcall(function() local n = 0 for i = 1, 1e4 do n = n + i end pcall(function() return n end) end)\n")
    out, text = tmp_path / "out", tmp_path / "text"
    r = trace("-o", text, "--annotate", out, "--", *argv(name), path)
    assert r.code == 0, r
    total = re.search(r"(\S+) \| pcall", out.read_text())[1]
    [of_chunk] = re.findall(r"(\S+) \|     \^ main chunk", out.read_text())
    assert total == of_chunk, out.read_text()


def test_a_source_that_has_changed_is_not_annotated(tmp_path):
    path = script(tmp_path, "local f = io.open(arg[0], 'a') f:write('\\n-- secret\\n') f:close()\n")
    out = tmp_path / "out"
    r = trace("-o", tmp_path / "t", "--annotate", out, "--", "lua5.3", path)
    assert r.code == 0 and "1 source file has changed since" in r.err, r
    assert "changed since" in out.read_text() and "secret" not in out.read_text()


def test_fail_under(tmp_path):
    path = script(tmp_path, "local x = 1\nif not x then\n  x = 2\nend\nx = 3\n")
    assert trace("-o", "/dev/null", "--fail-under", "75", "--", "lua5.4", path).code == 0
    r = trace("-o", "/dev/null", "--fail-under", "75.1", "--", "lua5.4", path)
    assert r.code == 4 and "75.0000 %" in r.err
    assert trace("--fail-under", "101", "--", "lua5.4", path).code == 2
    # nothing to cover is not covered
    assert trace("-o", "/dev/null", "--fail-under", "1", "--", "lua5.4", "-e", "x = 1").code == 4
    assert trace("-o", "/dev/null", "--fail-under", "1", "--", "true").code == 1


def test_the_commands_exit_status_is_passed_on(tmp_path):
    assert trace("-o", "/dev/null", "--", "lua5.4", script(tmp_path, "os.exit(7)")).code == 7
    r = trace("-o", "/dev/null", "--", "true")
    assert r.code == 1 and "true: no Lua interpreter in it has loaded the hook module" in r.err
    assert trace("-o", "/dev/null", "--", "/no/such/command").code == 1


@pytest.mark.parametrize("name", NAMES)
def test_exit_in_a_coroutine(tmp_path, name):
    path = script(tmp_path, "coroutine.wrap(function()\n  local x = 1\n  os.exit(3)\nend)()\nlocal never\n")
    lcov, _ = lcov_of(tmp_path, *argv(name), path, code=3)
    lines = lcov.files[str(path)]
    assert lines[2] == lines[3] == 1 and lines.get(5, 0) == 0


def test_a_killed_program_keeps_what_was_recorded(tmp_path):
    path = script(tmp_path, "for i = 1, 1000 do\n  local x = i\nend\nos.execute('kill -9 $PPID')\nlocal never\n")
    lcov, _ = lcov_of(tmp_path, "lua5.3", path, code=128 + signal.SIGKILL)
    lines = lcov.files[str(path)]
    assert lines[2] == 1000 and lines[4] == 1 and lines[5] == 0


@pytest.mark.parametrize("name", NAMES)
def test_children_are_traced(tmp_path, name):
    """A program that runs itself: hits add up."""
    path = script(tmp_path, "local n = tonumber(arg[1])\nif n > 0 then\n  os.execute(arg[2] .. ' ' .. arg[0] .. ' ' .. n - 1 .. ' true')\nend\n")
    lcov, _ = lcov_of(tmp_path, *argv(name), path, 1, " ".join(map(str, argv(name))))
    assert lcov.files[str(path)][1] == 2 and lcov.files[str(path)][3] == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_program_with_a_hook_of_its_own(tmp_path, name):
    path = script(tmp_path, "local n = 0\ndebug.sethook(function() n = n + 1 end, 'l')\nlocal x = 1\nx = 2\ndebug.sethook()\n"
                            "assert(n == 3)\nx = 3\n")
    lcov, r = lcov_of(tmp_path, *argv(name), path)
    lines = lcov.files[str(path)]
    assert all(lines[n] == 1 for n in (1, 3, 4, 5, 6, 7)), lines
    assert "debug.sethook was called" in r.err


TAIL_CALLS = """
local function work(n)
  for _ = 1, n do
  end
end
local other
local function one(n)
  if n > 0 then return other(n - 1) end
  return work(3)
end
function other(n)
  if n > 0 then return one(n - 1) end
  return work(3)
end
for i = 1, 20 do one(i) end
"""


@pytest.mark.parametrize("name", NAMES)
def test_lines_after_a_tail_call_are_the_called_functions(tmp_path, name):
    """As the trace has them: a line is one of the function that is on top, and 20 + 1 + 2 + ... + 20 functions were tail-called."""
    raw = tmp_path / "raw"
    r = trace("--raw", raw, "--", *argv(name), script(tmp_path, TAIL_CALLS))
    assert r.code == 0, r
    stack, tail_calls = [], 0
    for line in raw.read_text().splitlines():
        kind, *rest = line.split()
        if kind == "T":
            stack.pop()
            tail_calls += 1
        if kind in ">T":
            stack.append((int(rest[-2]), int(rest[-1])))
        elif kind == "<":
            stack.pop()
        elif kind.isdigit() and stack[-1] != (0, 0):
            assert stack[-1][0] <= int(kind) <= stack[-1][1], (line, stack)
    assert tail_calls == 20 + sum(range(1, 21)), tail_calls


@pytest.mark.parametrize("option", ["--raw", "--lcov", "--chrome"])
def test_a_full_disk(tmp_path, option):
    """The program runs to its end."""
    path = script(tmp_path, f"for i = 1, 1e5 do\n  local x = i\nend\nio.open('{tmp_path}/done', 'w'):close()\n")
    r = trace("-o", "/dev/null", option, "/dev/full", "--", "lua5.4", path)
    assert r.code == 1 and "No space left" in r.err
    assert (tmp_path / "done").exists()


def test_terminated(tmp_path):
    """A signal is passed on to the command; what it ran until then is reported."""
    path = script(tmp_path, f"local f\nwhile true do\n  local x = 1\n  f = f or io.open('{tmp_path}/runs', 'w')\nend\n")
    info = tmp_path / "out.info"
    tool = vms.Luabpf("trace", "-o", "/dev/null", "--lcov", info, "--", "lua5.3", path, stats=False)
    vms.wait_until((tmp_path / "runs").exists)
    tool.signal(signal.SIGTERM)
    r = tool.done()
    assert r.code == 128 + signal.SIGTERM, r
    assert Lcov(info).files[str(path)][3] > 0


def test_penlight(tmp_path):
    code = """
local List = require 'pl.List'
local pretty = require 'pl.pretty'
local lexer = require 'pl.lexer'
assert(List{1, 2, 3}:map('*', 2):join(',') == '2,4,6')
assert(pretty.write({1, {a = 2}}, ''):len() > 3)
for t, v in lexer.lua('local x = 1 -- y') do assert(t and v) end
"""
    lcov, r = lcov_of(tmp_path, "lua5.1", script(tmp_path, code))
    assert "not followed" not in r.err
    files = {Path(path).name: sum(map(bool, lines.values())) / len(lines) for path, lines in lcov.files.items()}
    assert files["x.lua"] == 1 and 0.1 < files["List.lua"] < 0.9 and 0.3 < files["lexer.lua"] < 0.9


@pytest.mark.parametrize("name", NAMES)
def test_the_outermost_function_has_all_time(tmp_path, name):
    """What the interpreter's main function has with its callees is the sum of all: the start of luabpf's module is not in it."""
    r = trace("-q", "--", *argv(name), script(tmp_path, "local function f() return #arg end f()"))
    every = re.search(r"that were called, ([\d.]+) ms in all", r.out)
    outer = re.findall(r"^ *[\d.]+ +[\d.]+ +([\d.]+) +1  \S+\+0x[0-9a-f]+  \[C\]$", r.out, re.M)
    assert r.code == 0 and max(map(float, outer)) == pytest.approx(float(every[1]), abs=0.002), r.out


def test_what_hooks_do_not_see_is_said(tmp_path):
    """Finalizers; what a process does that is left behind."""
    path = script(tmp_path, "setmetatable({}, {__gc = print})\n")
    r = trace("-o", "/dev/null", "--", "lua5.4", path)
    assert r.code == 0 and "functions that finalizers (__gc) call are not seen" in r.err
    path = script(tmp_path, "local f = io.open(arg[1], 'w') f:close() io.read('*l')\n")
    ready = tmp_path / "ready"
    code = f"lua5.4 {path} {ready} <&9 >/dev/null 2>&1 & while ! test -e {ready}; do sleep 0.02; done"
    hold, keep = os.pipe()
    try:
        r = trace("-o", "/dev/null", "--", "sh", "-c", f"exec 9</proc/{os.getpid()}/fd/{hold}; {code}")
    finally:
        os.close(keep)
        os.close(hold)
    assert r.code == 0 and re.search(r"process \d+ runs on, though the command has ended", r.err), r


def test_a_process_that_may_not_make_a_file_of_this_size(tmp_path):
    path = script(tmp_path, "print('ran')\n")
    r = trace("-o", "/dev/null", "--", "sh", "-c", f"ulimit -f 1000; lua5.4 {path}")
    assert r.code == 1 and re.search(r"sh: the hook module cannot make its file in /\S+, of \d+ bytes: File too large\n", r.err)
    r = trace("-o", "/dev/null", "--", "sh", "-c", f"lua5.4 {path}; ulimit -f 1000; lua5.4 {path}")
    assert r.code == 0 and "luabpf: a Lua state could not make its file, and is not traced: File too large\n" in r.err


def test_names_of_calls_in_luajit(tmp_path):
    """A function that a tail call has begun; one that coroutine.wrap() returns, without a name."""
    path = script(tmp_path, "local function leaf(x) return x end\nlocal function wrapper(x)\nreturn leaf(x)\nend\n"
                            "wrapper(1) coroutine.wrap(function() end)()\n")
    r = trace("--", "luajit", path)
    assert r.code == 0, r
    assert sorted(re.findall(r" 1  (.+)  \S*x\.lua:([12])-", r.out)) == [("function at 1", "1"), ("wrapper", "2")], r.out
    assert re.search(r" 1  coroutine\.wrap_aux  \[C\]$", r.out, re.M), r.out


def test_a_file_is_one_by_whichever_path(tmp_path):
    """A relative name is another after chdir(): the file has one record, with the hits of both."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/part.lua").write_text("local function f()\n  return 1\nend\nf()\n")
    path = script(tmp_path, """
local ffi = require('ffi')
ffi.cdef('int chdir(const char *);')
dofile('sub/part.lua')
assert(ffi.C.chdir('sub') == 0)
dofile('part.lua')
dofile('../sub/part.lua')
""")
    lcov, r = lcov_of(tmp_path, *argv("luajit-joff"), path, cwd=tmp_path)
    assert sorted(lcov.files) == sorted([str(tmp_path / "sub/part.lua"), str(path)]), r
    assert (tmp_path / "out.info").read_text().count("SF:") == 2
    assert lcov.files[str(tmp_path / "sub/part.lua")][2] == 3
    assert lcov.functions[str(tmp_path / "sub/part.lua")] == {"main chunk": 3, "f:1": 3}


def test_sources_that_do_not_exist(tmp_path):
    """A chunk may have any name, and a file may be removed: genhtml would end there. They are named, and in the text."""
    path = script(tmp_path, """
loadstring = loadstring or load
loadstring('local x = 1\\nx = x + 1', '@no/such/file.lua')()
loadstring('local x = 1', '@/etc')()
local f = assert(io.open(arg[1], 'w'))
f:write('local x = 1')
f:close()
dofile(arg[1])
os.remove(arg[1])
""")
    gone = tmp_path / "gone.lua"
    r = trace("-o", tmp_path / "text", "--lcov", tmp_path / "out.info", "--cobertura", tmp_path / "c.xml", "--", *argv("lua5.4"), path, gone)
    assert r.code == 0
    assert f"3 sources are not in --lcov and --cobertura, as no such file exists: /etc, {gone}, no/such/file.lua" in r.err, r
    assert re.findall("SF:(.*)", (tmp_path / "out.info").read_text()) == [str(path)]
    assert re.findall('filename="(.*?)"', (tmp_path / "c.xml").read_text()) == [str(path)[1:]]
    assert "no/such/file.lua" in (tmp_path / "text").read_text()
    r = subprocess.run(["genhtml", "-o", tmp_path / "html", tmp_path / "out.info"], capture_output=True, text=True, timeout=vms.HANG)
    assert r.returncode == 0, r


def test_calls_before_a_fork_count_once(tmp_path):
    """The child's trace begins with the functions that run: their calls are in the parent's. A saved trace, too."""
    path = script(tmp_path, """
local ffi = require('ffi')
ffi.cdef('int fork(void); int waitpid(int, int *, int);')
local function after() return 1 end
local function forks()
  local pid = ffi.C.fork()
  after()
  if pid == 0 then os.exit(0) end
  ffi.C.waitpid(pid, nil, 0)
end
forks()
forks()
""")
    raw, text = tmp_path / "raw", tmp_path / "saved.info"
    r = trace("-o", tmp_path / "text", "--raw", raw, "--lcov", tmp_path / "out.info", "--", *argv("luajit-joff"), path)
    assert r.code == 0, r
    lcov = Lcov(tmp_path / "out.info")
    assert lcov.functions[str(path)] == {"main chunk": 1, "forks:5": 2, "after:4": 4}
    assert lcov.files[str(path)][7] >= 4, "lines of both processes"
    assert trace("--from", raw, "--lcov", text).code == 0
    assert text.read_text() == (tmp_path / "out.info").read_text()


@pytest.mark.parametrize("name", ["luajit-joff", "lua5.1"])
@pytest.mark.parametrize("version", ["LuaJIT 2.1.0-beta3", "moonjit 2.2.0"])
def test_the_vm_is_not_known_by_its_name(tmp_path, name, version):
    """Forks of LuaJIT have other names in jit.version, and a program may set it, or have it in Lua 5.1."""
    path = script(tmp_path, f"""jit = jit or {{}} jit.version = '{version}'
package.cpath = '{vms.OUT}/lib/lua/5.1/?.so' require 'luabpf.hook'
local function inner(n) return n + 1 end
local function outer(n)
  return inner(n)
end
local function program()
  for i = 1, 20 do
    outer(i)
    pcall(error, i)
  end
end
program()
""")
    lcov, r = lcov_of(tmp_path, "env", "-u", "LUA_INIT", *argv(name), path)
    assert "not followed" not in r.err
    hits = lcov.files[str(path)]
    assert [hits[n] for n in (3, 5, 9, 10)] == [21, 20, 20, 20]


FORGED = """
local module = package.loadlib(HOOK, "luaopen_luabpf_hook")
module("luabpf.hook")
for _, name in ipairs{"all", "roots"} do
  load(("local a = 1\\n"):rep(60), "@" .. FOLDER .. name)()
end
"""


def test_a_setuid_command_shows_no_files_of_roots(open_folder):
    """Under sudo: the caller writes the files of Lua states, and so says which sources are shown, whatever the command may read."""
    nobody, hook = open_folder / "nobody", open_folder / "hook.so"
    nobody.mkdir()
    os.chown(nobody, NOBODY, NOBODY)
    shutil.copy(vms.OUT / "lib/lua/5.4/luabpf/hook.so", hook)
    for name, mode in ("all", 0o644), ("roots", 0o600):
        (open_folder / name).write_text("".join(f"{name} {n}\n" for n in range(1, 61)))
        (open_folder / name).chmod(mode)
    (open_folder / "x.lua").write_text(f"HOOK, FOLDER = '{hook}', '{open_folder}/'" + FORGED)
    command = shutil.copy(shutil.which("sleep"), open_folder)
    os.chmod(command, 0o4755)
    with vms.Luabpf("trace", "-o", "/dev/null", "--annotate", nobody / "out", "--", command, vms.HANG, stats=False,
                    env={"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}) as tool:
        vms.wait_until(lambda: vms.commands_of(tool.p.pid))
        pid, = vms.commands_of(tool.p.pid)
        vms.wait_until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
        env = dict(v.split("=", 1) for v in Path(f"/proc/{pid}/environ").read_text().split("\0") if v.startswith("LUABPF_HOOK_"))
        subprocess.run(["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "lua5.4", open_folder / "x.lua"],
                       env={**os.environ, **env}, cwd="/", check=True, timeout=vms.HANG)
        os.kill(pid, signal.SIGTERM)
        r = tool.done()
    assert r.code == 128 + signal.SIGTERM, r
    text = (nobody / "out").read_text()
    assert "all 60" in text and "roots 1" not in text, text
