# SPDX-License-Identifier: BSD-2-Clause
"""LuaJIT without GC64: Debian's library for luajittex in a host, judged as the other builds are (test_truth.py)."""
import pytest

import truth
import vms

HZ, SECONDS = 10000, 0.6  # 6000 samples, as in test_truth.py


def run(jit, workload):
    result = truth.run(vms.VMS32[f"host32-{jit}"], workload, SECONDS, HZ, "-v")
    print(result.summary())
    assert "; GC32; its code has GG_G2DISP " in result.done.err, result.done.err
    assert result.lost <= truth.allowed(result.in_lua), result.summary()
    assert sum(result.wrong.values()) <= truth.allowed(result.in_lua), (result.summary(), result.wrong)
    off = [f"{name}: true {p:.4f}, measured {q:.4f}, allowed {b:.4f}"
           for name, p, q, b in result.shares() if abs(p - q) > b]
    assert not off, result.summary()
    return result


@pytest.mark.parametrize("workload", ["calls", "coros"])
def test_interpreted(texluajit, workload):
    result = run("joff", workload)
    assert sum(result.unknown.values()) <= truth.allowed(result.in_lua, 0.003), result.unknown


@pytest.mark.parametrize("workload", ["compile", "arith"])
def test_compiled(texluajit, workload):
    """Functions and inlined callers; test_compiled.py has the lines."""
    result = run("jon", workload)
    assert result.states["Compiled"], result.states
    assert sum(result.unknown.values()) <= truth.allowed(result.in_lua, 0.003), result.unknown


def test_the_first_one_loses_no_sample(texluajit, tmp_path):
    """Of all processes of a name, whose programs are loaded by then, also that for a kind of VM that has not run yet. Under --all
    samples of others are lost while the program of their kind is loaded."""
    program = vms.link(tmp_path / "embed-first", vms.HOSTS / "embed")
    with vms.Luabpf("--comm", program.name, "-F", HZ, "-f", "folded", "-o", "/dev/null") as tool:
        tool.wait_banner().wait_families()
        vm = vms.VMS32["host32-joff"]
        with vms.Target([program, *vm.argv[1:], vms.LUA / truth.DRIVER, vms.LUA / "calls.lua", 0.5], vm.env) as t:
            t.ready()
            t.go()
            t.rest()
        tool.signal()
        r = tool.done()
    assert r.stats["resolved"] > r.least(0.1 * HZ) and "vm-family-loading" not in r.stats["lost_by_reason"], r


def test_counting_its_calls_is_refused(texluajit):
    vm = vms.VMS32["host32-joff"]
    with vms.Target([*vm.argv, vms.LUA / "counted.lua", 1], vm.env) as target:
        target.ready()
        done = vms.Luabpf("count", "-p", target.pid, stats=False).done()
    assert done.code == 1 and "is built without GC64" in done.err and "luabpf count -- COMMAND" in done.err, done
