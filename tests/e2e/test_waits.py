# SPDX-License-Identifier: BSD-2-Clause
"""What the processor waits for has the time, and not what comes behind it (lua/waits.lua)."""
import re

import pytest

import pprof
import vms

SCRIPT = vms.LUA / "waits.lua"
# What the loop without the line takes is hidden behind the line's own waiting in the whole loop: the line's share is
# larger than the program measures, never less. Of 500 samples 5.6 standard deviations are at most 0.125: a false alarm
# in a hundred million.
SAMPLES = 500
MARGIN = 0.125
COMPILED = ["divide", "last", "only", "inlined", "branch", "chase", "forward"]
INTERPRETED = ["divide", "last", "inlined"]


def lines_of(workload, compiled):
    return {number for number, text in enumerate(SCRIPT.read_text().splitlines(), 1)
            if re.search(rf"--{'!' if compiled else '[!?]'} {workload}$", text)}


@pytest.mark.parametrize("vm,workload", [
    *((vm, workload) for vm in ("luajit-jon", "luajit2-jon") for workload in COMPILED),
    *((vm, workload) for vm in ("luajit-joff", "lua5.1", "lua5.2", "lua5.3", "lua5.4") for workload in INTERPRETED)])
def test_the_line_that_waits(tmp_path, luajit2, vm, workload):
    """Its share of the samples is at least the share that the same loop without it leaves."""
    vm = vms.VMS[vm]
    saved = tmp_path / "p.pb.gz"
    with vms.Target([*vm.argv, SCRIPT, workload, 4 * SAMPLES / 10000], vm.env) as t:
        share = float(t.line())
        t.ready()
        tool = vms.Luabpf("-p", t.pid, "-F", 10000, "-o", saved).wait_banner()
        t.go()
        r = tool.done()
    assert r.code == 0, r
    total, waits, lines = 0, 0, lines_of(workload, "jon" in vm.name)
    for s in pprof.Profile(saved).samples:
        top = next((f for f in s.stack[::-1] if f.kind == pprof.LUA), None)
        if top and top.base == SCRIPT.name:
            total += s.count
            waits += s.count * (top.line in lines)
    assert total >= SAMPLES * (1 - r.missing), r
    assert waits >= (share - MARGIN * max(1, (SAMPLES / total) ** 0.5)) * total, (waits, total, share)
