# SPDX-License-Identifier: BSD-2-Clause
"""Processes: attach, launch, exec, fork, exit, signals, stacks that are too deep."""
import collections
import contextlib
import math
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

import pprof
import truth
import vms

pytestmark = pytest.mark.usefixtures("root")
LOOP = "local x = 0 while true do for i = 1, 1e5 do x = x + i % 7 end end"
SPIN = "local t = os.clock() repeat for i = 1, 1e4 do end until os.clock() - t >= %g"
NOBODY = 65534


def script(tmp_path, text, name="x.lua"):
    path = tmp_path / name
    path.write_text(text)
    tmp_path.chmod(0o755)
    return path


def chunks(profile):
    """Samples by the files of each stack."""
    out = collections.Counter()
    for s in profile.samples:
        out[tuple(f.base for f in s.stack if f.kind == pprof.LUA)] += s.count
    return out


def looping(tmp_path, name="x.lua", text=LOOP, **kw):
    return vms.Target(["luajit", "-joff", script(tmp_path, text, name)], **kw).spend(0.02)


def children_of(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# ---- attach ----

def test_several_pids(tmp_path):
    with looping(tmp_path, "a.lua") as a, looping(tmp_path, "b.lua") as b, looping(tmp_path, "other.lua"):
        r = vms.record([a, b], 0.15, "-F", 1000, "-o", tmp_path / "p.pb.gz")
        assert r.code == 0, r
        by = collections.Counter()
        for s in pprof.Profile(tmp_path / "p.pb.gz").samples:
            by[s.labels["pid"], s.stack[-1].base] += s.count
        assert set(by) == {(str(a.pid), "a.lua"), (str(b.pid), "b.lua")}
        assert min(by.values()) > r.least(150)


def test_one_of_several_ends(tmp_path):
    with looping(tmp_path, "a.lua") as a, looping(tmp_path, "b.lua") as b:
        tool = vms.Luabpf("-p", f"{a.pid},{b.pid}", "-F", 1000, "-o", tmp_path / "p.pb.gz").wait_banner()
        a.spend(0.05)
        os.kill(a.pid, signal.SIGKILL)
        a.p.wait()
        b.spend(0.15)
        assert tool.p.poll() is None
        tool.signal()
        r = tool.done()
        assert r.code == 0 and r.stats["ended_by"] == "signal", r
        by = collections.Counter()
        for s in pprof.Profile(tmp_path / "p.pb.gz").samples:
            by[s.labels["pid"]] += s.count
        assert by[str(a.pid)] > r.least(50) and by[str(b.pid)] > r.least(200), (by, r)


def test_target_is_killed(tmp_path):
    with looping(tmp_path) as t:
        tool = vms.Luabpf("-p", t.pid, "-F", 1000, "-jp=f").wait_banner()
        t.spend(0.15)
        os.kill(t.pid, signal.SIGKILL)
        t.p.wait()
        r = tool.done()
        assert r.code == 0 and r.stats["ended_by"] == "targets-ended", r
        assert r.stats["resolved"] > r.least(150) and "x.lua:0" in r.out, r


def test_target_ends(tmp_path):
    """The usual case for a batch job: what was sampled is reported, with names."""
    with vms.Target(["luajit", "-joff", script(tmp_path, "io.read() local x = 0 "
                                               "for i = 1, 2e7 do x = x + i % 7 end")]) as t:
        tool = vms.Luabpf("-p", t.pid, "-F", 1000, "-jp=f").wait_banner()
        t.go()
        r = tool.done()
        assert t.p.wait() == 0
        assert r.code == 0 and r.stats["ended_by"] == "targets-ended", r
        assert "x.lua:0" in r.out and r.stats["lost"] <= 1, r


def test_target_goes_on_undisturbed(tmp_path):
    """Attached and detached five times; it ends as if nothing had been, with no descriptor or tracer left."""
    text = f"""
print("ready") io.stdout:flush() io.read()
local rounds, wrong = 0, 0
repeat
  local s = 0
  for i = 1, 7e5 do s = s + i % 7 end
  rounds = rounds + 1
  if s ~= 2100000 then wrong = wrong + 1 end
until rounds % 20 == 0 and io.open("{tmp_path}/enough")
print(wrong)"""
    with vms.Target(["luajit", script(tmp_path, text)]) as t:
        t.ready()  # else luajit may have the script open
        before = os.listdir(f"/proc/{t.pid}/fd")
        t.go()
        for _ in range(5):
            r = vms.record(t, 0.03, "-F", 2000)
            assert r.code == 0 and r.stats["samples"] > r.least(60), r
        assert "TracerPid:\t0" in Path(f"/proc/{t.pid}/status").read_text()
        assert os.listdir(f"/proc/{t.pid}/fd") == before
        (tmp_path / "enough").touch()
        assert t.line() == "0"
        assert t.p.wait() == 0


def run_exec(tmp_path, calm):
    """Profiles a script that becomes another one after 0.2 s of CPU time, and that for 0.2 s once it is known. If `calm`, it
    has worked for 0.2 s and waited before, until luabpf's rounds are the longer ones."""
    second = script(tmp_path, f"""
local function second_work() local x = 0 for i = 1, 1e5 do x = x + i % 7 end end
repeat second_work() until io.open("{tmp_path}/known")
local t = os.clock()
while os.clock() - t < 0.2 do second_work() end""", "second.lua")
    first = script(tmp_path, f"""
local ffi = require("ffi")
ffi.cdef "int execvp(const char *, const char *const *);"
local function first_work() local x = 0 for i = 1, 1e5 do x = x + i % 7 end end
for _ = 1, {1 + calm} do
  io.read()
  local t = os.clock()
  while os.clock() - t < 0.2 do first_work() end
  print("worked") io.stdout:flush()
end
ffi.C.execvp("luajit", ffi.new("const char *[4]", {{"luajit", "-joff", "{second}", nil}}))""", "first.lua")
    with vms.Target(["luajit", "-joff", first]) as t:
        tool = vms.Luabpf("-v", "-p", t.pid, "-F", 4000, "-o", tmp_path / "p.pb.gz").wait_banner()
        t.go()
        if calm:
            assert t.line() == "worked"
            tool.wait_calm()
            t.go()
        tool.wait_for(f"pid {t.pid}: .*interpreter 0x")
        (tmp_path / "known").touch()
        r = tool.done()
        assert t.p.wait() == 0
    return r


def test_exec_in_target(tmp_path):
    """The first script becomes another one: each with its own names, and nothing of one in the other. What is lost is
    what comes from exec to recognition, and one sample in a thousand at most that caught the stack in change."""
    r = run_exec(tmp_path, False)
    by = chunks(pprof.Profile(tmp_path / "p.pb.gz"))
    assert all(len(set(stack)) <= 1 for stack in by), by
    assert sum(n for stack, n in by.items() if "first.lua" in stack) > r.least(800), (by, r)
    assert sum(n for stack, n in by.items() if "second.lua" in stack) > r.least(800), (by, r)
    unrecognised(r)


def test_exec_of_what_is_settled(tmp_path):
    """What an image did last, in the longer rounds of what is settled, is its own: only recognition costs samples, and none
    is lost because its function was gone."""
    r = run_exec(tmp_path, True)
    assert sum(n for stack, n in chunks(pprof.Profile(tmp_path / "p.pb.gz")).items() if "first.lua" in stack) > r.least(1600, 0.5), r
    unrecognised(r)


def test_end_of_what_is_settled(tmp_path):
    """Three VMs are closed, code first, in luabpf's longer rounds, and take their time for what else there is: what was
    sampled before stays."""
    path = script(tmp_path, """
local data = {}
for i = 1, 2500000 do data[i] = { i } end
local work = (loadstring or load)("local x = 0 for i = 1, 1e5 do x = x + i % 7 end", "=work")
print("ready") io.stdout:flush()
for _ = 1, 2 do
  io.read()
  local start = os.clock()
  while os.clock() - start < 0.3 do work() end
  print("worked") io.stdout:flush()
end""")
    with contextlib.ExitStack() as stack:
        targets = [stack.enter_context(vms.Target([*argv, path])).ready() for argv in (["luajit", "-joff"], ["lua5.1"], ["lua5.4"])]
        tool = vms.Luabpf("-p", ",".join(str(t.pid) for t in targets), "-F", 1000, "-o", tmp_path / "p.pb.gz").wait_banner()
        for t in targets:
            t.go()
        for t in targets:
            assert t.line() == "worked"
        tool.wait_calm()
        for t in targets:
            t.go()
        r = tool.done()
    assert r.code == 0, r
    for t in targets:
        n = sum(s.count for s in pprof.Profile(tmp_path / "p.pb.gz").samples if s.labels["pid"] == str(t.pid))
        assert n > r.least(600), (n, r)  # and those of the end
    assert r.stats["lost"] <= truth.allowed(r.stats["resolved"]), r


@pytest.mark.parametrize("before, hz", [(0, 4000), (0.1, 4000), (0, 100)])
def test_exec_of_another_family(tmp_path, before, hz):
    """A LuaJIT process becomes a PUC Lua one, whose BPF program is loaded then. What runs once it is loaded is sampled: 0.2 s
    of a function, 800 or 20 samples but for what the timer missed. At 100 Hz the first event comes behind the exec."""
    path = script(tmp_path, f"""
local ffi = require("ffi")
ffi.cdef "int execvp(const char *, const char *const *);"
io.read()
local t = os.clock()
repeat for i = 1, 1e4 do end until os.clock() - t >= {before}
ffi.C.execvp("lua5.4", ffi.new("const char *[4]", {{"lua5.4", "-e",
  "repeat for i = 1, 1e5 do end until io.open('{tmp_path}/known') load('local t = os.clock() repeat for i = 1, 1e4 do end until os.clock() - t >= 0.2', '=after')()", nil}}))""")
    with vms.Target(["luajit", "-joff", path]) as t:
        tool = vms.Luabpf("-v", "-p", t.pid, "-F", hz, "-o", tmp_path / "p.pb.gz").wait_banner()
        t.go()
        tool.wait_for(f"pid {t.pid}: .*interpreter 0x").wait_families(left=1)  # LuaJIT's without GC64
        (tmp_path / "known").touch()
        r = tool.done()
    by = chunks(pprof.Profile(tmp_path / "p.pb.gz"))
    assert r.fits(sum(n for stack, n in by.items() if "=after" in stack), 0.2), (by, r)
    assert r.stats["resolved"] >= r.least(hz * before), r
    lost = {reason: n for reason, n in r.stats["lost_by_reason"].items() if n and reason not in ("unrecognised", "vm-family-loading")}
    assert set(lost) <= {"stack-changing"} and sum(lost.values()) <= truth.allowed(r.stats["samples"]), r


SERVER = """
local ffi = require("ffi")
ffi.cdef "int fork(void); int wait(int *); void _exit(int); int usleep(unsigned);"
local dir = ...
local function exists(name) local f = io.open(dir .. "/" .. name) return f and f:close() end
local function spin(name)
  local chunk, t = loadstring("local x = 0 for i = 1, 1e4 do x = x + i % 7 end", "=" .. name), os.clock()
  repeat chunk() until os.clock() - t >= 0.15
end
local function child(name, work)
  if ffi.C.fork() == 0 then work(name) ffi.C._exit(0) end
end
local function waits(name) while not exists("go") do ffi.C.usleep(1000) end spin(name) end
child("worker", waits)
child("middle", function() child("grandchild", waits) waits("middle") ffi.C.wait(nil) end)
print("ready") io.stdout:flush() io.read()
child("forked", spin)
os.execute("lua5.4 " .. dir .. "/other.lua")
spin("master")
while ffi.C.wait(nil) > 0 do end
"""


def test_children_of_a_process(tmp_path):
    """-p takes what a process starts from now on, --no-follow does not; --children takes those that it has. One runs a Lua of
    another family. Four recordings of one process at once."""
    script(tmp_path, "local t = os.clock() load('repeat for i = 1, 1e4 do end until os.clock() - ... >= 0.15', '=other')(t)",
           "other.lua")
    present, later = {"worker", "middle", "grandchild"}, {"forked", "other"}
    expected = {(): later, ("--no-follow",): set(), ("--children",): present | later,
                ("--children", "--no-follow"): present}
    with vms.Target(["luajit", "-joff", script(tmp_path, SERVER), tmp_path]).ready() as t:
        tools = {args: vms.Luabpf("-p", t.pid, *args, "-F", 2000, "-o", tmp_path / f"{''.join(args)}.pb.gz")
                 for args in expected}
        for tool in tools.values():
            tool.wait_banner()
        (tmp_path / "go").touch()
        t.go()
        done = {args: tool.done() for args, tool in tools.items()}
        assert t.p.wait() == 0
    for args, r in done.items():
        assert r.code == 0 and r.stats["ended_by"] == "targets-ended", r
        by = collections.Counter()
        for s in pprof.Profile(tmp_path / f"{''.join(args)}.pb.gz").samples:
            by.update({name: s.count for name in {f.file.lstrip("=") for f in s.stack} & (present | later | {"master"})})
        assert set(by) <= expected[args] | {"master"}, (args, by, r)
        # 300 each, but for what the timer missed, and for a program whose file and family are new
        for name in expected[args] | {"master"}:
            n, new = by[name], sum(r.stats["lost_by_reason"].get(reason, 0) for reason in ("unrecognised", "vm-family-loading"))
            assert (n or name == "other") and r.least(300, 0.5) < n + (new if name == "other" else 0) < 390, (args, by, r)


def test_deep_stacks_are_cut_and_marked(tmp_path):
    text = """
local function spin() local x = 0 for i = 1, 2000 do x = x + i % 7 end return x end
local function down(n) if n == 0 then return spin() end local r = down(n - 1) return r end
local function levels(n) local r = down(n) return r end
while true do levels(DEPTH) end"""
    # pmain, main chunk, levels, down(n) .. down(1), spin in place of down(0)
    cases = [(300, 127, True), (123, 127, False), (124, 127, True)]  # depth, frames, whether they are cut
    with contextlib.ExitStack() as stack:
        targets = [stack.enter_context(looping(tmp_path, f"{depth}.lua", text.replace("DEPTH", str(depth))))
                   for depth, _, _ in cases]
        r = vms.record(targets, 0.1, "-F", 1000, "-o", tmp_path / "p.pb.gz")
    assert r.code == 0 and r.stats["lost"] <= 1, r
    samples = pprof.Profile(tmp_path / "p.pb.gz").samples
    for t, (depth, frames, cut) in zip(targets, cases):
        deepest = max((s for s in samples if s.labels["pid"] == str(t.pid)), key=lambda s: s.count)
        assert (deepest.stack[0].kind == pprof.CUT) == cut, (depth, deepest.stack[:2])
        assert len(deepest.stack) == frames + cut
        assert deepest.stack[-1].start == 2 and deepest.stack[-2].start == 3


@pytest.mark.parametrize("interpreter", [["luajit", "-joff"], ["lua5.4"]])
def test_stacks_that_differ_far_below(tmp_path, interpreter):
    """Stacks that are the same but for one frame, wherever it lies, are never taken for each other."""
    text = """
local function spin() local x = 0 for i = 1, 20000 do x = x + i % 7 end return x end
local function down(n) local r if n == 0 then r = spin() else r = down(n - 1) end return r end
local function once(n) local r = down(n) return r end
local function thrice(n) local r = down(n) r = down(n) r = down(n) return r end
io.read()
local t = os.clock()
while os.clock() - t < 1.2 do for _, n in ipairs {DEPTHS} do once(n) thrice(n) end end"""
    # the frame that differs is n + 2 below the top
    depths = [0, 14, 15, 16, 32, 122]
    path = script(tmp_path, text.replace("DEPTHS", ", ".join(map(str, depths))))
    with vms.Target([*interpreter, path]) as t:
        tool = vms.Luabpf("-p", t.pid, "-F", 10000, "-o", tmp_path / "p.pb.gz").wait_banner()
        t.go()
        r = tool.done()
        assert r.code == 0, r
    by = collections.Counter()
    for s in pprof.Profile(tmp_path / "p.pb.gz").samples:
        n = len(s.stack) - 5  # pmain, main chunk, once or thrice, down(n) .. down(0), spin
        if s.stack[-1].start == 2 and n in depths:
            by[n, s.stack[-3 - n].start] += s.count
    for n in depths:
        of, once = by[n, 4] + by[n, 5], by[n, 4]
        # a quarter of 2000 that are due, within six standard deviations: for all depths of both interpreters this is wrong in
        # less than one of a million runs
        assert of > r.least(2000) and of >= 100 and abs(once / of - 0.25) < 6 * math.sqrt(0.25 * 0.75 / of), (n, by)


# Maps so many pages with alternating rights, then runs; a C function in each loop, whose address is looked up.
MANY = """local ffi = require "ffi"
ffi.cdef "char *mmap(void *, size_t, int, int, int, long); int mprotect(void *, size_t, int);"
local n = tonumber(arg[1])
local at = ffi.C.mmap(nil, n * 4096, 1, 0x4022, -1, 0)
for i = 0, n - 1, 2 do ffi.C.mprotect(at + i * 4096, 4096, 3) end
print("ready") io.stdout:flush()
while true do for i = 1, 1e4 do os.clock() end end"""


def test_many_mappings(tmp_path):
    """They take long to read: two readers, each not again for 10 us a mapping, and a few reads at the start."""
    with vms.Target(["luajit", "-joff", script(tmp_path, MANY), 60000]) as t:
        t.ready()
        size = len(Path(f"/proc/{t.pid}/maps").read_bytes())
        began = time.monotonic()
        tool = vms.Luabpf("-p", t.pid, "-F", 500, "-jp=fm0").wait_banner()
        t.spend(1)
        read = int(re.search(r"^rchar: (\d+)", Path(f"/proc/{tool.p.pid}/io").read_text(), re.M)[1])
        most = 2 * ((time.monotonic() - began) / 0.6 + 1) + 4
        tool.signal()
        r = tool.done()
    assert r.code == 0 and "clock" in r.out, r
    assert size > 2e6 and read < most * size + 20e6, (read / size, most)


def test_sleeping_target(tmp_path):
    """No CPU time, no samples; and it says so."""
    with vms.Target(["luajit", script(tmp_path, "print('ready') io.stdout:flush() io.read()")]) as t:
        t.ready().sleeps()
        r = vms.luabpf("-p", t.pid, "-F", 1000, "-d", 0.1)
    assert r.code == 0 and r.stats["samples"] == 0, r
    assert "no samples" in r.err, r


# ---- stopping ----

def test_a_thread_that_exits_is_outside_lua():
    """Its samples are no lost ones of Lua."""
    code = "local t = {} for i = 1, 1e5 do t[i] = {} end os.exit(0, false)"
    for _ in range(400):  # not each run has one: measured, one in three to ten
        r = vms.luabpf("-F", 20000, "-v", "--", "lua5.4", "-e", code)
        assert r.code == 0 and "no-regs" not in r.stats["lost_by_reason"], r
        if n := re.search(r"(\d+) no-regs\b", r.err):
            others = re.search(r"(\d+) outside-lua\b", r.err)
            assert r.stats["outside_lua"] == int(n[1]) + (int(others[1]) if others else 0), r
            return
    raise AssertionError("none was met")


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_signal_writes_the_report(tmp_path, sig):
    with looping(tmp_path) as t:
        tool = vms.Luabpf("-p", t.pid, "-F", 1000, "-jp=f").wait_banner()
        t.spend(0.1)
        tool.signal(sig)
        r = tool.done()
        assert r.code == 0 and r.stats["ended_by"] == "signal", r
        assert "100%  x.lua:0" in r.out and r.stats["samples"] > r.least(100), r
        assert t.p.poll() is None


def test_duration(tmp_path):
    with looping(tmp_path) as t:
        r = vms.luabpf("-p", t.pid, "-d", 0.3)
        assert t.p.poll() is None
    assert r.code == 0 and r.stats["ended_by"] == "duration" and r.stats["wall_seconds"] >= 0.3, r


# ---- launch ----

@pytest.mark.parametrize("how,code", [("os.exit(0)", 0), ("os.exit(7)", 7), ("error('no')", 1),
                                      ("require('ffi').cdef'int raise(int);' require('ffi').C.raise(11)", 139),
                                      ("require('ffi').cdef'int raise(int);' require('ffi').C.raise(9)", 137)])
def test_exit_code_is_handed_on(tmp_path, how, code):
    r = vms.luabpf("-q", "-o", tmp_path / "p.pb.gz", "--", "luajit", "-e", how)
    assert r.code == code, r


def test_command_has_its_own_streams(tmp_path):
    path = script(tmp_path, "local s = io.read('*a') io.stdout:write('out:', s) io.stderr:write('err:', s)")
    tool = vms.Luabpf("-q", "-o", tmp_path / "p.pb.gz", "--", "luajit", path, stdin=subprocess.PIPE)
    out, err = tool.p.communicate("hello\n", timeout=vms.HANG)
    assert (out, err, tool.p.returncode) == ("out:hello\n", "err:hello\n", 0)


def unusual_signals():
    for sig in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
        signal.signal(sig, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])


@pytest.mark.parametrize("given", [None, unusual_signals])
def test_command_inherits_what_we_were_given(tmp_path, given):
    """No descriptor of ours; and the signals are ignored and blocked that were when luabpf was started, no other."""
    command = ["sh", "-c", "ls /proc/self/fd; grep -E 'SigBlk|SigIgn' /proc/self/status; exit 7"]
    bare = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, preexec_fn=given)
    r = vms.luabpf("-q", "-o", tmp_path / "p.pb.gz", "--", *command, preexec_fn=given)
    assert r.code == 7, r
    assert r.out == bare.stdout and r.out.startswith("0\n1\n2\n3\n"), (r, bare)  # 3 is that of ls


def test_command_that_is_none(tmp_path):
    r = vms.luabpf("--", tmp_path / "nothing")
    assert r.code == 1 and "No such file" in r.err, r
    (tmp_path / "text").write_text("hello")
    r = vms.luabpf("--", tmp_path / "text")
    assert r.code == 1 and "Permission denied" in r.err, r


def test_command_runs_as_the_caller_of_sudo():
    """And the files that we make belong to them."""
    with vms.public_dir() as public:
        os.chown(public, NOBODY, NOBODY)
        saved = public / "p.pb.gz"
        r = vms.luabpf("-q", "-o", saved, "--", "sh", "-c", "id -u; id -g; id -G; echo \"[$SUDO_UID]\"",
                       env={"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}, stats=False)
        assert r.out.split() == [str(NOBODY)] * 3 + ["[]"], r
        assert (saved.stat().st_uid, saved.stat().st_gid) == (NOBODY, NOBODY)


@pytest.mark.parametrize("uid, gid, which", [("-1", "-1", "SUDO_UID"), ("4294967295", "0", "SUDO_UID"), ("1000", "-1", "SUDO_GID"), ("", "", "SUDO_UID"),
                                             ("x", "1000", "SUDO_UID"), ("1000", None, "SUDO_GID")])
def test_command_of_a_caller_that_cannot_be(tmp_path, uid, gid, which):
    """Where SUDO_UID or SUDO_GID names nobody, the command would keep root: it is not started, and no file is written."""
    ran, saved = tmp_path / "ran", tmp_path / "p.pb.gz"
    env = {"SUDO_UID": uid, **({"SUDO_GID": gid} if gid is not None else {})}
    for output in [], ["-o", saved]:
        r = vms.luabpf("-q", *output, "--", "sh", "-c", 'id -u > "$0"', ran, env=env, stats=False)
        assert r.code == 1 and f"{which}: " in r.err and "unset SUDO_UID and SUDO_GID" in r.err, r
        assert not ran.exists() and not saved.exists(), r


def unrecognised(r):
    """Samples that came before their image was known: how many depends on how soon luabpf gets a CPU."""
    lost = r.stats["lost_by_reason"]
    assert {reason for reason, n in lost.items() if n} <= {"unrecognised", "stack-changing"}, r
    assert lost.get("stack-changing", 0) <= truth.allowed(r.stats["samples"]), r
    return r.stats["lost"]


# A machine whose timer misses more than this of the samples gets the same report as one whose threads are too short.
NO_SAMPLES = 0.1


SHORT_THREADS = """
local ffi = require "ffi"
ffi.cdef "int pthread_create(uint64_t *id, void *attr, void *(*start)(void *), void *arg); int pthread_join(uint64_t id, void **); int getpid(void);"
local id, start = ffi.new "uint64_t[1]", ffi.cast("void *(*)(void *)", ffi.C.getpid)
local function busy() local x = 0 for i = 1, 2e4 do x = x + i % 7 end end
if ... then print(...) io.stdout:flush() io.read() end
local t = os.clock()
while os.clock() - t < 0.03 do busy() end  -- a child is met by its first event
while os.clock() - t < 0.6 do
  busy()
  assert(ffi.C.pthread_create(id, nil, start, nil) == 0 and ffi.C.pthread_join(id[0], nil) == 0)
end
"""


@pytest.mark.parametrize("hz", [200, 1001])
@pytest.mark.parametrize("how", ["command", "shell", "pid"])
def test_a_thread_that_starts_short_ones(tmp_path, how, hz):
    """The kernel swaps a thread's events with those of one that it started: they must not end with that one."""
    path = tmp_path / "x.lua"
    path.write_text(SHORT_THREADS)
    run = ["luajit", "-joff", path]
    if how == "pid":
        with vms.Target([*run, "ready"]).ready() as t:
            tool = vms.Luabpf("-F", hz, "-p", t.pid).wait_banner()
            t.go()
            r = tool.done()
    else:
        r = vms.luabpf("-F", hz, "--", *(run if how == "command" else ["sh", "-c", f"luajit -joff {path}; true"]))
    assert r.code == 0 and r.stats["cpu_seconds"] > 0.3, r
    assert r.missing < 0.85, r  # 0.95 and more where they do; a machine that misses more than half would be a bad one
    assert r.missing > NO_SAMPLES or "has no samples" not in r.err, r


def test_from_the_first_instruction(tmp_path):
    """A script of 200 ms has all its names; and its first function is there, which runs once, at once."""
    text = """
local function at_once() local x = 0 for i = 1, 2e6 do x = x + i % 7 end return x end
at_once()
local function later_a() local x = 0 for i = 1, 1e4 do x = x + i % 7 end return x end
local function later_b() local x = 0 for i = 1, 1e4 do x = x + i % 5 end return x end
local t = os.clock()
while os.clock() - t < 0.15 do later_a() later_b() end
"""
    path = script(tmp_path, text)
    for n in range(12):
        saved = tmp_path / f"{n}.pb.gz"
        r = vms.luabpf("-F", 1000, "-o", saved, "--", "luajit", "-joff", path)
        assert r.code == 0, r
        profile = pprof.Profile(saved)
        names = {f.name for s in profile.samples for f in s.stack if f.kind == pprof.LUA}
        assert names == {f"{path}:0", "at_once", "later_a", "later_b"}, (n, names, r)
        # without a Lua function: the interpreter's start, where -joff calls jit.off, and its end, where the VM closes its files
        builtin = {f.name for s in profile.samples if any(f.kind == pprof.LUA for f in s.stack)
                   for f in s.stack if f.kind == pprof.BUILTIN}
        assert builtin <= {"os.clock"}, (n, builtin)
        assert r.stats["lost"] <= 1, (n, r)
        assert r.stats["outside_lua"] < 0.1 * r.stats["samples"], (n, r)


def test_shell_that_starts_interpreters(tmp_path):
    """The command is a shell; Lua runs in its children, one after the other and two at a time."""
    for name in ("one", "two", "three"):
        script(tmp_path, f"local function work_{name}() local x = 0 for i = 1, 1e5 do x = x + i % 7 end end "
               f"local t = os.clock() while os.clock() - t < 0.2 do work_{name}() end", f"{name}.lua")
    command = f"cd {shlex.quote(str(tmp_path))}; luajit -joff one.lua; luajit one.lua & luajit -joff two.lua; wait; exec luajit three.lua"
    r = vms.luabpf("-F", 4000, "-o", tmp_path / "p.pb.gz", "--", "sh", "-c", command)
    assert r.code == 0, r
    pids, counts = collections.defaultdict(set), collections.Counter()
    for s in pprof.Profile(tmp_path / "p.pb.gz").samples:
        files = {f.base for f in s.stack if f.kind == pprof.LUA}
        assert len(files) <= 1, s
        for f in files:
            pids[f].add(s.labels["pid"])
            counts[f] += s.count
    assert {f: len(p) for f, p in pids.items()} == {"one.lua": 2, "two.lua": 1, "three.lua": 1}, (pids, r)
    # 1600, 800 and 800; some are lost before each is known
    missed = unrecognised(r)
    for name, due in ("one.lua", 1600), ("two.lua", 800), ("three.lua", 800):
        assert counts[name] + missed > r.least(due), (name, counts, r)


FORKS = """
local ffi = require("ffi")
ffi.cdef("int fork(void); int wait(int *); int usleep(unsigned); void _exit(int); int dup2(int, int);")
local function spin(seconds) local t = os.clock() while os.clock() - t < seconds do for i = 1, 1000 do end end end
local function child() spin(0.006) end
local function grandchild() spin(0.006) end
for i = 1, 100 do
  if ffi.C.fork() == 0 then
    if i % 4 == 0 and ffi.C.fork() == 0 then grandchild() ffi.C._exit(0) end
    if i % 4 ~= 0 then child() end
    if i % 4 == 0 then ffi.C.wait(nil) end
    ffi.C._exit(0)
  end
  ffi.C.wait(nil)
end
"""


def test_forked_children_are_known_at_once(tmp_path):
    """What a process has forked has its VM: no sample waits until it was looked at."""
    saved = tmp_path / "p.pb.gz"
    r = vms.luabpf("-F", 1000, "-o", saved, "--", "luajit", script(tmp_path, FORKS))
    assert r.code == 0, r
    pids, total = collections.defaultdict(set), 0
    for s in pprof.Profile(saved).samples:
        total += s.count
        for f in s.stack:
            pids[f.name].add(s.labels["pid"])
    assert total > r.least(600), r
    assert r.stats["lost_by_reason"].get("unrecognised", 0) <= 0.01 * total, r
    assert len(pids["child"]) > r.least(75) and len(pids["grandchild"]) > r.least(25) + 5, (pids, r)


def test_exec_of_forked_children(tmp_path):
    """Who calls exec is not what it was forked from any more."""
    other = script(tmp_path, SPIN % 0.15, "other.lua")
    text = f"""
local ffi = require("ffi")
ffi.cdef("int fork(void); int wait(int *); int execlp(const char *, const char *, ...);")
local function spin(seconds) local t = os.clock() repeat for i = 1, 1e4 do end until os.clock() - t >= seconds end
spin(0.1)
for i = 1, 5 do
  if ffi.C.fork() == 0 then
    spin(0.02)
    ffi.C.execlp("luajit", "luajit", "{other}", nil)
  end
  ffi.C.wait(nil)
end
"""
    saved = tmp_path / "p.pb.gz"
    r = vms.luabpf("-F", 2000, "-o", saved, "--", "luajit", script(tmp_path, text))
    assert r.code == 0, r
    by, pids = collections.Counter(), collections.defaultdict(set)
    for s in pprof.Profile(saved).samples:
        files = {f.base for f in s.stack if f.kind == pprof.LUA}
        assert len(files) <= 1, s
        for f in files:
            by[f] += s.count
            pids[f].add(s.labels["pid"])
    assert len(pids["other.lua"]) == 5 and by["other.lua"] + r.stats["lost"] > r.least(1500), (by, pids, r)
    assert len(pids["x.lua"]) == 6, (by, pids, r)


# execve(argv[1], &argv[1], environ); exit(127)
WRAPPER32 = bytes.fromhex("8b5c2408 8d4c2408 8b0424 8d548408 b80b000000 cd80 bb7f000000 b801000000 cd80")


def test_command_of_32_bits(tmp_path):
    """It starts the program that is sampled."""
    head, at = 52 + 32, 0x10000
    elf = struct.pack("<4s5B7x2H5I6H", b"\x7fELF", 1, 1, 1, 0, 0, 2, 3, 1, at + head, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    load = struct.pack("<8I", 1, 0, at, at, head + len(WRAPPER32), head + len(WRAPPER32), 5, 0x1000)
    wrapper = tmp_path / "wrapper"
    wrapper.write_bytes(elf + load + WRAPPER32)
    wrapper.chmod(0o755)
    try:
        subprocess.run([wrapper, "true"], check=False)
    except OSError:
        pytest.skip("this kernel runs no programs of 32 bits")
    saved = tmp_path / "p.pb.gz"
    r = vms.luabpf("-F", 1000, "-o", saved, "--", wrapper, shutil.which("luajit"), script(tmp_path, SPIN % 0.2))
    assert r.code == 0, r
    assert sum(s.count for s in pprof.Profile(saved).samples) + r.stats["lost"] > r.least(200), r


def test_processes_shorter_than_a_period(tmp_path):
    """200 that run for 6 ms have samples, one in 10 ms, as one that runs for 600."""
    short, long = script(tmp_path, SPIN % 0.006, "short.lua"), script(tmp_path, SPIN % 0.6, "long.lua")
    r = vms.luabpf("-F", 100, "-o", tmp_path / "p.pb.gz", "--", "sh", "-c",
                   f"for i in $(seq 200); do lua5.4 {short}; done; lua5.4 {long}")
    by = chunks(pprof.Profile(tmp_path / "p.pb.gz"))
    # 120 and 60; the shorter ones' first millisecond has no event, what is not known yet is lost, and the timer may miss most
    short = by["short.lua",] + r.stats["lost"]
    assert 15 <= short <= 120 + 5 * math.sqrt(120) and r.fits(by["long.lua",], 0.6), (by, r)
    assert r.missing > NO_SAMPLES or "has no samples" not in r.err, r


SHORT = """
local function busy_{0}() local a = 0 for i = 1, 10000 do a = a + i % 7 end return a end -- a call of clock() takes 10 us on some machines
local t = os.clock() repeat busy_{0}() until os.clock() - t >= 0.006
io.stderr:write("cpu ", os.clock(), "\\n")
"""


@pytest.mark.parametrize("interpreter,hz", [("lua5.4", 1000), ("luajit -joff", 4000), ("env luajit", 1000), ("env lua5.1", 99)])
def test_short_children_of_known_files(tmp_path, interpreter, hz):
    """
    A file that was looked into once is recognised at exec: what starts 100 or 200 children of 6 ms loses at most 2 %.

    The first child is looked at by user space: its samples, 10 ms of them at most where children overlap
    with the look, come on top. The bound is that share, with 5 standard deviations.

    Each event that the kernel delivered is a sample that is counted. So a child that does not appear had all of its samples,
    0.006 * hz less one at least, among those that were lost for a named reason, or the kernel delivered none of them.
    """
    n = 200 if interpreter == "lua5.4" else 100
    paths = [script(tmp_path, SHORT.format(i % 4), f"short{i % 4}.lua") for i in range(n)]
    saved = tmp_path / "p.pb.gz"
    r = vms.luabpf("-F", hz, "-o", saved, "--", "sh", "-c", "; ".join(f"{interpreter} {p}" for p in paths))
    assert r.code == 0, r
    pids, names, total = set(), collections.Counter(), 0
    for s in pprof.Profile(saved).samples:
        files = {f.base for f in s.stack if f.kind == pprof.LUA}
        assert len(files) <= 1, s  # none: the interpreter's own C code, before the chunk runs
        total += s.count
        names.update({f.name: s.count for f in s.stack if f.name.startswith("busy_")})
        pids.add(s.labels["pid"])
    cpu = sum(float(line.split()[1]) for line in r.err.splitlines() if line.startswith("cpu "))
    first = 0.01 * hz
    lost = r.stats["lost"]
    assert lost <= 0.02 * r.stats["samples"] + first + 5 * math.sqrt(0.02 * r.stats["samples"] + first), r
    # os.clock() counts the start of the program, too, which is outside Lua; Lua takes 6 ms of it at least
    want = 0.006 * n * hz * (1 - r.missing)
    assert want - 5 * math.sqrt(want) - lost <= total <= cpu * hz + 5 * math.sqrt(cpu * hz), (total, want, cpu, r)
    assert names.total() >= 0.9 * (want - lost) - 5 * math.sqrt(want), (names, want, r)
    assert len(names) == 4, (names, r)
    if hz >= 1000:  # an event is a sample
        assert r.stats["samples"] == r.stats["resolved"] + r.stats["outside_lua"] + lost == r.stats["bpf_runs"], r
        # what a child's last period is short of, half of one in the mean, has no event; 5 standard deviations
        undelivered = max(0, r.stats["cpu_seconds"] * hz - r.stats["samples"] - n / 2 + 5 * math.sqrt(n / 12))
        assert (n - len(pids)) * (0.006 * hz - 1) <= lost + undelivered, (len(pids), undelivered, r)


IN_STEP = """
local clock = os.clock
local function first(stop) while clock() < stop do end end
local function second(stop) while clock() < stop do end end
local t = clock()
for i = 1, 400 do t = t + 0.01; first(t - 0.003) second(t) end
"""


def test_work_in_step_with_the_samples(tmp_path):
    """A loop that takes just as long as it is from sample to sample: each of its parts is seen as long as it takes."""
    r = vms.luabpf("-F", 100, "-o", tmp_path / "p.pb.gz", "--", "taskset", "-c", min(os.sched_getaffinity(0)),
                   "luajit", "-joff", script(tmp_path, IN_STEP))
    by = collections.Counter()
    for s in pprof.Profile(tmp_path / "p.pb.gz").samples:
        by.update({name: s.count for name in ("first", "second") if any(f.name == name for f in s.stack)})
    # 7 of the 10 milliseconds at which events come, one more or less, and 5 standard deviations of 400 samples that are due
    n = sum(by.values())
    assert n > r.least(400) and abs(by["first"] / n - 0.7) < 0.1 + 5 * math.sqrt(0.7 * 0.3 / n) + r.missing, (by, r)


def test_children_without_lua_are_outside(tmp_path):
    """What a script runs by os.execute() is no Lua: samples of it that came before that was known are not lost."""
    path = script(tmp_path, "for i = 1, 40 do os.execute('i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done') end")
    r = vms.luabpf("-F", 10000, "-o", tmp_path / "p.pb.gz", "--", "lua5.4", path)
    assert r.stats["outside_lua"] > 500, r
    # one child may end before it is looked at
    assert r.stats["lost"] < 0.03 * r.stats["samples"], r


@pytest.mark.parametrize("ignored", [False, True])
def test_hangup(tmp_path, ignored):
    """The report is written when the terminal goes; nohup lets it go on."""
    def disposition():  # not the one that the tests were started with: they may run under nohup
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    with looping(tmp_path) as t:
        tool = vms.Luabpf("-p", t.pid, "-F", 1000, "-jp=f", preexec_fn=disposition).wait_banner()
        t.spend(0.1)
        tool.signal(signal.SIGHUP)
        if ignored:
            t.spend(0.1)
            assert tool.p.poll() is None
            tool.signal(signal.SIGINT)
        r = tool.done()
    assert r.code == 0 and "x.lua:0" in r.out and r.stats["ended_by"] == "signal", r
    assert r.stats["samples"] > r.least(200 if ignored else 100), r


def test_new_processes_are_looked_at_once(tmp_path):
    """Many samples come before a new process is known; none of its later ones is lost because it was looked at again."""
    command = "for i in $(seq 40); do lua5.4 -e 'local t = os.clock() repeat for i = 1, 1e4 do end until os.clock() - t >= 0.01'; done"
    r = vms.luabpf("-F", 10000, "-o", tmp_path / "p.pb.gz", "--", "sh", "-c", command)
    assert r.stats["resolved"] > 500, r
    assert r.stats["lost_by_reason"].get("proto-collected", 0) <= 10, r


def test_duration_holds_while_samples_flood_in(tmp_path):
    """Functions are met for the first time, one after the other, faster than they are learned; -d ends it all the same."""
    functions = "".join(f"F[{i}] = function(k) local s = 0 for j = 1, k do s = s + j % 7 end return s end\n" for i in range(20000))
    path = script(tmp_path, f"local F = {{}}\n{functions}local t = os.clock() while os.clock() - t < 60 do "
                  "for i = 0, #F do F[i](300) end end")
    with vms.Target(["lua5.4", path]) as t:
        t.spend(0.3)
        r = vms.luabpf("-p", t.pid, "-F", 5000, "-d", 1, "-o", tmp_path / "p.pb.gz")
        assert t.p.poll() is None, r
    assert r.code == 0 and r.stats["ended_by"] == "duration", r
    assert r.stats["samples"] == r.stats["resolved"] + r.stats["outside_lua"] + r.stats["lost"], r
    assert r.stats["samples"] > r.least(5000 * r.stats["cpu_seconds"], 0.5), r


def test_child_with_a_vm_that_is_not_known(tmp_path):
    """Its samples are lost by name, and the message says why."""
    of_later = tmp_path / "lua5.6"
    of_later.write_bytes(Path(shutil.which("lua5.4")).read_bytes().replace(b"$LuaVersion: Lua 5.4.", b"$LuaVersion: Lua 5.6."))
    of_later.chmod(0o755)
    text = "local t = os.clock() repeat for i = 1, 1e4 do end until os.clock() - t >= 0.5"
    r = vms.luabpf("-F", 2000, "--", "sh", "-c", f"{of_later} -e '{text}'; lua5.4 -e '{text}'; exit 0")
    assert r.code == 0, r
    lost = r.stats["lost_by_reason"]
    assert r.stats["resolved"] > 0 and r.stats["resolved"] + lost.get("unrecognised", 0) > r.least(1000), r
    assert lost.get("not-sampled", 0) > 0 and lost["not-sampled"] + lost.get("unrecognised", 0) > r.least(1000), r
    assert re.search(rf"{of_later} \(in pid \d+\): PUC Lua 5\.6\.\d+ \(lua_ident\): this release is not known", r.err), r


def test_interrupt_reaches_command_and_report_is_written(tmp_path):
    """Ctrl-C in a terminal goes to both: the command ends as it likes, the report is written."""
    path = script(tmp_path, f"{SPIN % 0.15} io.open('{tmp_path}/worked', 'w'):close() {LOOP}")
    tool = vms.Luabpf("-F", 1000, "-jp=fm0", "--", "luajit", "-joff", path, start_new_session=True).wait_banner()
    vms.wait_until((tmp_path / "worked").exists)
    os.killpg(tool.p.pid, signal.SIGINT)
    r = tool.done()
    assert "x.lua:0" in r.out and r.stats["samples"] > r.least(150), r
    assert r.code in (0, 130, 1), r


def test_duration_leaves_command_running(tmp_path):
    """-d with a command: the report comes while the command runs, which is not killed."""
    path = script(tmp_path, f"repeat for i = 1, 1e5 do end until io.open('{tmp_path}/reported') or os.clock() > {vms.HANG}")
    done, report = tmp_path / "done", tmp_path / "report"
    tool = vms.Luabpf("-F", 1000, "-d", 1, f"-jp=f,{report}", "--", "sh", "-c",
                      f"luajit {shlex.quote(str(path))}; echo $? >{shlex.quote(str(done))}")
    vms.wait_until(lambda: report.exists() and "%" in report.read_text())
    assert not done.exists()
    (tmp_path / "reported").touch()
    r = tool.done()
    assert r.code == 0 and r.stats["ended_by"] == "duration", r
    assert done.read_text() == "0\n"


def test_short_children_side_by_side(tmp_path):
    """Each child of a parallel test runner is there. It works for 95 ms of CPU time: at 100 Hz that is nine whole runs of ten events,
    each with a sample, of which the timer may miss some, and one may be lost as it starts. All share one CPU, so that none begins a run anew on another. The first one takes the time until the
    interpreter is known."""
    def work(name, seconds):
        script(tmp_path, f"local function {name}() local x = 0 for i = 1, 1e4 do x = x + i % 7 end end local t = os.clock() "
               f"while os.clock() - t < {seconds} do {name}() end", f"{name}.lua")
    names = [f"job_{n}" for n in range(32)]
    work("first", 0.3)
    for name in names:
        work(name, 0.095)
    run = tmp_path / "run.sh"
    run.write_text(f"cd {shlex.quote(str(tmp_path))}; lua5.4 first.lua; seq 0 31 | taskset -c 0 xargs -P4 -I@ lua5.4 job_@.lua\n")
    saved = tmp_path / "p.pb.gz"
    r = vms.luabpf("-F", 100, "-o", saved, "--", "sh", run)
    assert r.code == 0, r
    files = {Path(f.file).stem for s in pprof.Profile(saved).samples for f in s.stack if f.kind == pprof.LUA}
    assert files == {"first", *names}, r
