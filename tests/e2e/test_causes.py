# SPDX-License-Identifier: BSD-2-Clause
"""What a VM state leaves out: the trace and its loop, what the compiler did, what the collector did. One recording of
programs that each do one of these."""
import collections
import contextlib
import types

import pytest

import pprof
import vms

HZ = 4000
SECONDS = 0.03  # of CPU time, one after the other, while all of them run: 1000 samples of each
INTERPRETERS = ["luajit", "lua5.1", "lua5.2", "lua5.3", "lua5.4"]

# 5.4's generational mode prepares a full collection in the state in which it waits for one
INCREMENTAL = "if _VERSION == 'Lua 5.4' then collectgarbage('incremental') end "

PROGRAMS = {
    # one object with much to traverse
    "mark": "local t = {} for i = 1, 1e6 do t[i] = i end READY while true do collectgarbage() end",
    # little is alive; the collector runs only when all of the dead are there (5.1: a collection restarts it)
    "sweep": "READY while true do collectgarbage('stop') for i = 1, 1e5 do last = i .. 'x' end collectgarbage() end",
}
LUAJIT = {
    # a trace that is left after a few turns: by an exit that never gets a side trace
    "leave": """require('jit.opt').start('hotexit=1000000') local function few(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
        few(1000) READY while true do few(3) end""",
    "loop": "READY local x = 0 while true do for i = 1, 1e7 do x = x + i % 7 end end",
    "compile": """READY local id = 0 while true do id = id + 1
        loadstring('local s = 0 for i = 1, 200 do s = (s + i * ' .. id .. ') % 7 end return s')() end""",
    # traces that are gone when luabpf looks at the samples in them: it does so every 50 ms
    "flush": """READY local id = 0 while true do id = id + 1
        loadstring('local s = 0 for i = 1, 1e5 do s = (s + i * ' .. id .. ') % 7 end return s')() jit.flush() end""",
    "allocate": "READY while true do for i = 1, 1e6 do x = {i} end end",
}
KINDS = [(vm, kind) for vm in INTERPRETERS for kind in PROGRAMS] + [("luajit", kind) for kind in LUAJIT]


@pytest.fixture(scope="module")
def machine(root, tmp_path_factory):
    m = types.SimpleNamespace(saved=tmp_path_factory.mktemp("causes") / "x.pb.gz", of={}, targets={})
    with contextlib.ExitStack() as stack:
        for vm, kind in KINDS:
            text = {**PROGRAMS, **LUAJIT}[kind].replace("READY", INCREMENTAL + "print('ready') io.stdout:flush()")
            m.targets[vm, kind] = stack.enter_context(vms.Target([vm, "-e", text])).ready()
        m.done = vms.record(list(m.targets.values()), SECONDS, "-F", HZ, "-o", m.saved)
    assert m.done.code == 0, m.done
    samples = pprof.Profile(m.saved).samples
    for key, t in m.targets.items():
        m.of[key] = [s for s in samples if s.labels["pid"] == str(t.pid)]
    return m


def causes(samples, state, label="cause"):
    n = collections.Counter()
    for s in samples:
        if s.labels.get("vmstate") == state:
            n[s.labels.get(label)] += s.count
    return n


@pytest.mark.parametrize("vm", INTERPRETERS)
def test_collector(machine, vm):
    """The other cause has less than a tenth: where it has a hundredth, 100 samples show more once in 10^7 runs."""
    for kind in PROGRAMS:
        n = causes(machine.of[vm, kind], "Garbage Collector")
        total = sum(n.values())
        assert total >= 100 and n[kind] > 0.9 * total, (kind, n)
        assert n[None] < 0.1 * total, (kind, n)  # a cycle begins


def test_collector_on_a_trace(machine):
    """The collector ends the trace when it ends a phase: the next step is the interpreter's."""
    on, off = (causes(machine.of["luajit", kind], "Garbage Collector", "trace") for kind in ("allocate", "sweep"))
    total = sum(on.values())
    assert total >= 100 and on[None] < 0.5 * total, on
    assert set(off) == {None}, off


def test_loop_of_a_trace(machine):
    samples = machine.of["luajit", "loop"]
    n, traces = (causes(samples, "Compiled", label) for label in ("cause", "trace"))
    total = sum(n.values())
    assert total >= 300 and n["loop"] > 0.99 * total and set(n) <= {"loop", None}, n
    assert None not in traces and len(traces) <= 3, traces
    assert not causes(samples, "Compiled", "line")["snapshot"]  # it is followed


def test_lines_of_snapshots_are_labelled(machine):
    """Which lines of compiled code are those of a guard before: of traces that are gone, a fifth of the samples and
    more. None of 100 would be in one run of 10^9. In reports, too."""
    lines = causes(machine.of["luajit", "flush"], "Compiled", "line")
    assert lines.total() >= 100 and lines["snapshot"], lines
    report = vms.luabpf("report", machine.saved, "-jp=V", stats=False)
    assert ", snapshot line\n" in report.out, report
    of_snapshots = collections.Counter()
    for s in pprof.Profile(machine.saved).samples:
        of_snapshots[s.labels.get("line") == "snapshot"] += s.count
    report = vms.luabpf("report", machine.saved, "-jp=l", stats=False)
    is_said = " % of the samples are compiled code that could not be followed" in report.err
    assert is_said == (of_snapshots[True] >= 0.01 * of_snapshots.total()), (of_snapshots, report)


def test_a_trace_that_is_left(machine):
    """Its number is known. One sample in twenty is in the code of the exit: none of 300 would be in one run of five million."""
    traces = causes(machine.of["luajit", "leave"], "Compiled", "trace")
    assert traces.total() >= 300 and None not in traces, traces


def test_compiler(machine):
    """Where mprotect() is slow, assembling is 97 % of the time, and the others have some 20 samples: none of both in one run of 10^8."""
    n = causes(machine.of["luajit", "compile"], "JIT Compiler")
    assert n[None] == 0 and n["assemble"] >= 20 and n["record"] + n["optimise"] >= 1, n
    assert set(n) <= {"record", "optimise", "assemble", "exit"}, n


def test_report(machine):
    """-jp=V shows them, -jp=v is as jit.p's."""
    long, short = (vms.luabpf("report", machine.saved, f"-jp={mode}m0", stats=False).out for mode in "Vv")
    for words in ("Compiled, loop, trace ", "JIT Compiler, record", "Garbage Collector, sweep", "Garbage Collector, mark"):
        assert f"  {words}" in long and words not in short, (words, long)
