# SPDX-License-Identifier: BSD-2-Clause
"""LuaJIT without GC64: Debian's library for luajittex in a host, judged as the other builds are (test_truth.py)."""
import pytest

import pprof
import truth
import vms

HZ, SECONDS = 2000, 1.5


@pytest.fixture(scope="module")
def library(root):
    return vms.fetch_texluajit()


def run(library, jit, workload):
    env = {"LD_LIBRARY_PATH": library, "LUA_PATH": "/usr/share/luajit-2.1.0-beta3/?.lua;;"}
    vm = vms.VM(f"host32-{jit}", [vms.HOSTS / "embed", f"-{jit}"], env)
    result = truth.run(vm, workload, SECONDS, HZ, "-v")
    print(result.summary())
    assert "; GC32; its code has GG_G2DISP " in result.done.err, result.done.err
    assert result.lost <= truth.allowed(result.in_lua), result.summary()
    assert sum(result.wrong.values()) <= truth.allowed(result.in_lua), (result.summary(), result.wrong)
    off = [f"{name}: true {p:.4f}, measured {q:.4f}, allowed {b:.4f}"
           for name, p, q, b in result.shares() if abs(p - q) > b]
    assert not off, result.summary()
    return result


@pytest.mark.parametrize("workload", ["calls", "coros"])
def test_interpreted(library, workload):
    result = run(library, "joff", workload)
    assert sum(result.unknown.values()) <= truth.allowed(result.in_lua, 0.003), result.unknown


@pytest.mark.parametrize("workload", ["compile", "arith"])
def test_compiled(library, workload):
    """Functions and inlined callers; positions come from the trace's snapshots. Loops without a guard but their last."""
    result = run(library, "jon", workload)
    assert result.states["Compiled"], result.states
    assert sum(result.unknown.values()) <= truth.allowed(result.in_lua, 0.003), result.unknown


def test_lines_of_snapshots_are_labelled(library, tmp_path):
    """
    Which lines of compiled code are those of a guard before: here all, but for samples in an exit, whose snapshot is
    exact. Those of a loop are in machine code. In a saved profile and its report, too.
    """
    saved, env = tmp_path / "p.pb.gz", {"LD_LIBRARY_PATH": library, "LUA_PATH": "/usr/share/luajit-2.1.0-beta3/?.lua;;"}
    with vms.Target([vms.HOSTS / "embed", "-jon", vms.LUA / truth.DRIVER, vms.LUA / "arith.lua", 0.2], env) as t:
        t.ready()
        tool = vms.Luabpf("-p", t.pid, "-F", HZ, "-o", saved).wait_banner()
        t.go()
        t.rest()
        assert tool.done().code == 0
    compiled = [s for s in pprof.Profile(saved).samples if s.labels["vmstate"] == "Compiled"]
    loops = [s for s in compiled if s.labels.get("cause") == "loop"]
    assert loops and all(s.labels.get("line") == "snapshot" for s in loops), loops
    report = vms.luabpf("report", saved, "-jp=V", stats=False)
    assert "Compiled, trace " in report.out or "Compiled, loop, trace " in report.out, report
    assert ", snapshot line\n" in report.out, report


def test_the_first_one_loses_no_sample(library):
    """Under --all, whose programs are loaded by then, also that for a kind of VM that has not run yet."""
    with vms.Luabpf("--all", "-F", HZ, "-f", "folded", "-o", "/dev/null") as tool:
        tool.wait_banner().wait_families()
        with vms.Target([vms.HOSTS / "embed", "-joff", vms.LUA / truth.DRIVER, vms.LUA / "calls.lua", 0.2],
                        {"LD_LIBRARY_PATH": library, "LUA_PATH": "/usr/share/luajit-2.1.0-beta3/?.lua;;"}) as t:
            t.ready()
            t.go()
            t.rest()
        tool.signal()
        r = tool.done()
    assert r.stats["resolved"] > r.least(0.1 * HZ) and "vm-family-loading" not in r.stats["lost_by_reason"], r


def test_counting_its_calls_is_refused(library):
    env = {"LD_LIBRARY_PATH": library, "LUA_PATH": "/usr/share/luajit-2.1.0-beta3/?.lua;;"}
    vm = vms.VM("host32-joff", [vms.HOSTS / "embed", "-joff"], env)
    with vms.Target([*vm.argv, vms.LUA / "counted.lua", 1], vm.env) as target:
        target.ready()
        done = vms.Luabpf("count", "-p", target.pid, stats=False).done()
    assert done.code == 1 and "is built without GC64" in done.err and "luabpf count -- COMMAND" in done.err, done
