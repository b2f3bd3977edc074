# SPDX-License-Identifier: BSD-2-Clause
"""Each IR instruction of compiled code has the label of the bytecode that it was recorded for. The VM says which that is:
while it records, how many instructions there are before each bytecode (lua/idioms.lua). luabpf finds out from the finished
trace; its labels are printed by labels.c."""
import collections
import subprocess

import pytest

import vms

IDIOMS = vms.LUA / "idioms.lua"
MOST = 1000  # traces
# No work of their own: guards, and what leads to a table's or function's fields. Conversions belong to the first use.
FREE = {"NOP", "LT", "GE", "LE", "GT", "ULT", "UGE", "ULE", "UGT", "EQ", "NE", "ABC", "FLOAD", "HREFK", "HREF", "AREF", "UREFO",
        "UREFC", "FREF", "CONV", "CARG", "SLOAD", "HIOP", "XBAR", "TBAR", "OBAR", "BUFHDR", "USE", "GCSTEP", "BASE", "RETF"}
# Sums that are computed once more as integers, where these are used (lj_opt_narrow.c): the use is not found.
KNOWN = {("return #sub(S, i % 20 + 1, i % 20 + 9)", "ADD"), ("return ptr == da and 1 or 2", "ADD")}


def idioms():
    """Their texts by number."""
    return dict(enumerate(IDIOMS.read_text().split("[==[\n")[2].split("]==]")[0].splitlines(), 1))


def recorded(target):
    """trace -> its idiom, and (first instruction, linedefined) of each bytecode that was recorded."""
    traces = {}
    while (line := target.line()) != "ready":
        if line.startswith("trace"):
            number, idiom = map(int, line.split()[1:])
            traces[number] = idiom, []
        else:
            traces[number][1].append(tuple(map(int, line.split())))
    return traces


def labelled(pid):
    """trace -> (ref, operation, linedefined) of each instruction; None: it was not followed."""
    out = subprocess.run([vms.OUT / "tests/e2e/labels", str(pid), str(MOST)], capture_output=True, text=True, check=True).stdout
    traces = {}
    for line in out.splitlines():
        words = line.split()
        if words[0] == "failed":
            traces[int(words[1])] = None
        elif words[0] == "trace":
            here = traces[int(words[1])] = []
        else:
            here.append((int(words[0]), words[1], int(words[2])))
    return traces


@pytest.mark.parametrize("name", ["luajit", "luajit2"])
def test_labels(luajit2, name):
    """Which traces there are depends on chance: LuaJIT's penalties are random. Of 20 runs, in which some 2,800 instructions
    count, none had another wrong label, and at most 4 idioms had a trace that was not followed."""
    vm, texts = vms.VMS[f"{name}-jon"], idioms()
    with vms.Target([*vm.argv, IDIOMS], vm.env) as t:
        true = recorded(t)
        found = labelled(t.pid)
        t.go()
    wrong, lost, n = collections.Counter(), set(), 0
    for number, (idiom, events) in true.items():
        if found.get(number) is None:
            lost.add(texts[idiom])
            continue
        events = [e for e in events if e[1] > -2]  # C functions are their callers
        for ref, operation, linedefined in found[number]:
            own = next((e for e in reversed(events) if e[0] < ref or e is events[0]), None)
            if own and operation not in FREE:
                n += 1
                wrong[texts[idiom], operation] += linedefined != own[1]
    wrong = {what: count for what, count in wrong.items() if count and what not in KNOWN}
    assert n > 2000 and sum(wrong.values()) <= 2 and len(lost) <= 10, (n, wrong, lost)
