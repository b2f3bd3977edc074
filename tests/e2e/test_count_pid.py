# SPDX-License-Identifier: BSD-2-Clause
"""luabpf count -p: exact counts of calls by uprobes, against programs that count for themselves; what stops it, and what it
leaves. --max-slowdown is out of the way where it is not what is tested: how much a probe costs is the machine's."""
import json
import re
import signal
import subprocess
import time
from pathlib import Path

import bpfmaps
import pytest
import vms

pytestmark = pytest.mark.usefixtures("root")
COUNTED = vms.LUA / "counted.lua"
SLOW = ("--max-slowdown", "1000")
# what the program calls its counts -> the function's name in the report
OURS = ["leaf", "tail", "vararg", "deep", "few", "fails", "once"]  # body is called by resume
LIBRARY = {"pcall": "pcall", "rep": "string.rep", "yield": "coroutine.yield", "resume": "coroutine.resume",
           "create": "coroutine.create"}
INTERPRETERS = ["lua5.1", "lua5.2", "lua5.3", "lua5.4", "luajit-joff", "host5.1-call", "host5.2-call", "host5.3-resume",
                "host5.4-call", "host-joff"]
SPIN = "local function spin(x) return x end\nwhile true do spin(1) end\n"


def count(*args, **kw):
    return vms.Luabpf("count", *args, stats=False, **kw)


def rows(out):
    """{name: calls} of a report; {place: calls} of Lua functions."""
    head, *lines = out.splitlines()
    assert head.split() == ["calls", "%", "function", "place"]
    table = [re.fullmatch(r" *(\d+) +([\d.]+)  (\S.*?) +(\S+)", line) for line in lines]
    assert all(table), out
    calls = [int(m[1]) for m in table]
    assert calls == sorted(calls, reverse=True)
    assert all(abs(float(m[2]) - 100 * int(m[1]) / sum(calls)) < 0.006 for m in table)
    names = {}
    for m in table:
        names[m[3]] = names.get(m[3], 0) + int(m[1])
    return names, {m[4]: int(m[1]) for m in table}


def programs():
    """BPF programs of count that the kernel has."""
    return [p for p in bpfmaps.bpftool("prog", "show") if p.get("name", "").startswith("luabpf_count")]


def lines_of(script):
    """{name: line of its definition}"""
    return {m[2] or m[1]: i for i, line in enumerate(script.read_text().splitlines(), 1)
            if (m := re.match(r"(?:local )?function (\w+)(?:\.(\w+))?\(", line))}


def expected(target):
    """What the program counted."""
    out = {}
    while (line := target.line()) != "end":
        name, calls = line.split()
        out[name] = int(calls)
    return out


@pytest.mark.parametrize("name", INTERPRETERS)
def test_counts_are_those_of_the_program(name):
    vm = vms.VMS[name]
    with vms.Target([*vm.argv, COUNTED, 200], vm.env) as target:
        target.ready()
        tool = count("-p", target.pid, *SLOW).wait_for("counting calls")
        target.go()
        want = expected(target)
        tool.signal()
        done = tool.done()
    assert done.code == 0, done
    names, places = rows(done.out)
    at = {f"counted.lua:{line}": want[name] for name, line in lines_of(COUNTED).items()}
    assert {place: places.get(place) for place in at} == at, done
    assert {name: names.get(name) for name in OURS} == {name: want[name] for name in OURS}, done
    assert {name: names.get(name) for name in LIBRARY.values()} == {LIBRARY[n]: want[n] for n in LIBRARY}, done
    assert re.search(r"luabpf: \d+ calls of \d+ functions, exact\nluabpf: counted for [\d.]+ s, ", done.err), done


@pytest.mark.parametrize("name", ["lua5.4", "luajit-joff"])
def test_a_process_that_ends_keeps_its_counts(name):
    vm = vms.VMS[name]
    with vms.Target([*vm.argv, COUNTED, 100], vm.env) as target:
        target.ready()
        tool = count("-p", target.pid, *SLOW).wait_for("counting calls")
        target.go()
        want = expected(target)
        target.go()
        target.p.wait()
        done = tool.done()
    assert done.code == 0, done
    names, places = rows(done.out)
    at = {f"counted.lua:{line}": want[name] for name, line in lines_of(COUNTED).items()}
    assert {place: places.get(place) for place in at} == at, done
    # pcall() calls `fails`: its name is that of its definition, which luabpf may not have read in time
    named = [name for name in OURS if name != "fails"]
    assert {name: names.get(name) for name in named} == {name: want[name] for name in named}, done


def test_calls_in_compiled_code_are_said_to_be_missing(tmp_path):
    script = tmp_path / "hot.lua"
    script.write_text("local function f(x) return x + 1 end\nlocal s = 0\n"
                      "while true do for i = 1, 1e6 do s = f(s) % 7 end os.getenv('x') end\n")
    with vms.Target(["luajit", "-jon", script]) as target:
        target.spend(0.1)
        done = count("-p", target.pid, "-d", 0.5, *SLOW).done()
    names, _ = rows(done.out)
    assert done.code == 0 and names["os.getenv"] and "f" not in names, done
    assert "exact" not in done.err and "not all of them" in done.err, done
    share = re.search(r"calls in compiled code are not counted, in which (\d+) % of the time went by", done.err)
    assert share and int(share[1]) >= 50, done


def test_compiled_code_alone_is_not_said_to_be_exact(tmp_path):
    script = tmp_path / "hot.lua"
    script.write_text("local function f(x) return x + 1 end\nlocal s = 0\nwhile true do s = f(s) % 7 end\n")
    with vms.Target(["luajit", "-jon", script]) as target:
        target.spend(0.1)
        done = count("-p", target.pid, "-d", 0.3, *SLOW).done()
    assert done.code == 0 and len(done.out.splitlines()) == 1, done
    assert "exact" not in done.err and "LuaJIT was not seen in the interpreter" in done.err, done


@pytest.mark.parametrize("vm", [["lua5.4"], ["luajit", "-joff"]])
def test_a_process_that_becomes_too_slow_is_left_alone(vm, tmp_path):
    """A loop of nothing but calls: a trap takes ten times what a call does on any machine."""
    script = tmp_path / "spin.lua"
    script.write_text(SPIN)
    with vms.Target([*vm, script]) as target:
        target.spend(0.05)
        done = count("-p", target.pid).done()
        assert target.p.poll() is None
        target.spend(0.05)
    names, _ = rows(done.out)
    assert done.code == 0 and names["spin"] > 1000, done
    assert re.search(r"stopped: process \d+ ran (more than )?[\d.]+ times as long, more than --max-slowdown 2: the counts "
                     r"are those of the [\d.]+ s before", done.err), done


@pytest.mark.parametrize("vm", [["lua5.1"], ["lua5.4"], ["luajit", "-joff"]])
def test_all_probes_begin_and_end_at_one_moment(vm, tmp_path):
    """Calls that come by turns are counted equally often, though each has another probe."""
    script = tmp_path / "turns.lua"
    script.write_text("local object = setmetatable({}, {__call = function(self) end})\nlocal function leaf() end\n"
                      "local abs, getenv = math.abs, os.getenv\nwhile true do leaf() object() abs(1) getenv('x') end\n")
    with vms.Target([*vm, script]) as target:
        target.spend(0.05)
        done = count("-p", target.pid, "-d", 0.3, *SLOW).done()
    names, places = rows(done.out)
    calls = [places["turns.lua:2"], places["turns.lua:1"], names["math.abs"], names["os.getenv"]]
    assert done.code == 0 and min(calls) > 100 and max(calls) - min(calls) <= 1, done


def test_what_a_call_costs_is_said_before(tmp_path):
    script = tmp_path / "spin.lua"
    script.write_text(SPIN)
    with vms.Target(["lua5.4", script]) as target:
        target.spend(0.05)
        done = count("-p", target.pid, "-d", 0.2, *SLOW).done()
    first = done.err.splitlines()[0]
    assert re.fullmatch(rf"luabpf: counting calls of process {target.pid} \(PUC Lua 5\.4\.\d+\): a call costs it about [\d.]+ us "
                        r"here; at \d+ calls a second of its CPU time it runs (more than )?[\d.]+ times as long; stops beyond "
                        r"1000 times, or after 0\.2 s", first), first


def test_nothing_stays_when_it_is_killed(tmp_path):
    script = tmp_path / "spin.lua"
    script.write_text(SPIN)
    with vms.Target(["lua5.4", script]) as target:
        target.spend(0.05)
        tool = count("-p", target.pid, *SLOW).wait_for("counting calls")
        assert programs()
        tool.signal(signal.SIGKILL)
        tool.done()
        vms.wait_until(lambda: not programs())
        target.spend(0.05)


def test_it_stops_at_exec(tmp_path):
    script = tmp_path / "exec.lua"
    script.write_text('local ffi = require("ffi")\nffi.cdef("int execlp(const char *file, const char *arg, ...);")\n'
                      'local function before() return 1 end\n'
                      'io.write("ready\\n") io.flush() io.read("*l")\nbefore() before()\n'
                      'ffi.C.execlp("luajit", "luajit", "-joff", "-e", "while true do tostring(1) end", nil)\n')
    with vms.Target(["luajit", "-joff", script]) as target:
        target.ready()
        tool = count("-p", target.pid, *SLOW).wait_for("counting calls")
        target.go()
        done = tool.done()
    names, _ = rows(done.out)
    assert done.code == 0 and names["before"] == 2 and "tostring" not in names, done
    assert f"stopped: process {target.pid} has called exec" in done.err, done


def test_several_threads_and_vms(tmp_path):
    """Two VMs of different versions in two threads; each runs its function until its time is up."""
    libs = [x for v in ("5.1", "5.4") for x in (f"/usr/{vms.MULTIARCH}/liblua{v}.so.0", f"f{v[-1]}")]
    with vms.Target([vms.HOSTS / "two", "threads", 0.2, *libs]) as target:
        target.ready()
        tool = count("-p", target.pid, *SLOW).wait_for("counting calls")
        target.go()
        target.p.wait()
        done = tool.done()
    names, _ = rows(done.out)
    assert done.code == 0 and {"f1:2", "f4:2"} <= set(names), done


@pytest.mark.parametrize("loads", [True, False])
def test_a_lua_that_is_loaded_later_is_said_to_be_missing(loads):
    """A process that waits for nothing has loaded nothing: its counts are exact."""
    first, second = (f"/usr/{vms.MULTIARCH}/liblua{v}.so.0" for v in ("5.1", "5.4"))
    with vms.Target([vms.HOSTS / "two", "late", 0.05, first, "f1", *([second, "f4"] if loads else [])]) as target:
        target.ready()
        tool = count("-p", target.pid, *SLOW).wait_for("counting calls")
        target.go()
        while loads and not re.search("r-xp.*liblua5.4", Path(f"/proc/{target.pid}/maps").read_text()):
            time.sleep(0.01)
        if loads:
            tool.signal()
        done = tool.done()
    names, _ = rows(done.out)
    assert done.code == 0 and "f1:2" in names, done
    says = "the process has loaded another Lua since: its calls|the process mapped code just before the end: if that was a Lua, its calls"
    assert bool(re.search(says, done.err)) == loads, done  # a signal may have come before it was looked at
    assert ("exact" in done.err) != loads, done


def test_functions_that_come_and_go_are_counted_apart(tmp_path):
    """Chunks of one template take each other's addresses; each is called as often as its name says."""
    script = tmp_path / "churn.lua"
    script.write_text('io.write("ready\\n") io.flush() io.read("*l")\n'
                      'local load = loadstring or load\n'
                      'for i = 1, 40 do\n'
                      '  local f = load("local s = \'" .. i .. "\' return #s + " .. i, "=chunk" .. i)\n'
                      '  for k = 1, i do f() end\n  f = nil\n  collectgarbage()\nend\n'
                      'io.write("end\\n") io.flush() io.read("*l")\n')
    for vm in (["lua5.1"], ["lua5.4"], ["luajit", "-joff"]):
        with vms.Target([*vm, script]) as target:
            target.ready()
            tool = count("-p", target.pid, *SLOW).wait_for("counting calls")
            target.go()
            assert target.line() == "end"
            tool.signal()
            done = tool.done()
        _, places = rows(done.out)
        assert {i: places.get(f"chunk{i}:0", places.get(f"chunk{i}:1")) for i in range(1, 41)} == {i: i for i in range(1, 41)}, done


def test_json_in_a_file(tmp_path):
    out = tmp_path / "calls.json"
    with vms.Target(["lua5.4", COUNTED, 50]) as target:
        target.ready()
        tool = count("-p", target.pid, "--json", "-o", out, *SLOW).wait_for("counting calls")
        target.go()
        want = expected(target)
        tool.signal()
        done = tool.done()
    report = json.loads(out.read_text())
    assert done.code == 0 and not done.out and report["exact"] and not report["not_exact"], (done, report)
    got = {f["function"]: f["calls"] for f in report["functions"]}
    assert report["calls"] == sum(got.values()) and {name: got[name] for name in OURS} == {name: want[name] for name in OURS}, report


def test_usage():
    with vms.Target(["sleep", "100"]) as target:
        done = count("-p", target.pid).done()
        assert done.code == 1 and "no Lua in this process" in done.err, done
        pids = f"{target.pid},1"
        assert (done := count("-p", pids).done()).code == 2 and "one process" in done.err, done
    for args in ((), ("-p", "1", "--max-slowdown", "0.5"), ("-p", "1", "--max-slowdown", "x"), ("-p", "1", "-F", "99")):
        assert count(*args).done().code == 2, args
    assert subprocess.run([vms.LUABPF, "--max-slowdown", "2", "-p", "1"], capture_output=True).returncode == 2


@pytest.mark.parametrize("name", ["luajit-joff", "lua5.1", "lua5.4"])
def test_equal_functions_of_one_line(root, tmp_path, name):
    """They differ by the order in which the VM made them: two calls of the first for each of the second."""
    path = tmp_path / "x.lua"
    path.write_text("local t = {function() return 1 end, function() return 1 end}\n"
                    "print('ready') io.stdout:flush()\nwhile true do t[1]() t[1]() t[2]() end\n")
    with vms.Target([*vms.VMS[name].argv, path]) as target:
        target.ready()
        r = vms.luabpf("count", "-p", target.pid, "-d", 0.3, "--max-slowdown", 1000, stats=False)
    calls = {place: int(n) for n, place in re.findall(r"(?m)^ +(\d+) +[\d.]+ .* (x\.lua:1\S*)$", r.out)}
    assert sorted(calls) == ["x.lua:1", "x.lua:1#2"] and abs(calls["x.lua:1"] - 2 * calls["x.lua:1#2"]) <= 2, r
