# SPDX-License-Identifier: BSD-2-Clause
"""--by: labels of a process, of its VM and of the coroutine that ran, in one recording of several processes."""
import collections
import contextlib
import os
import re
import types
from pathlib import Path

import pytest

import pprof
import vms

HZ = 4000
SECONDS = 0.3  # of CPU time: 1200 samples of each
ID = "3f4a5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f90112233445566778aa"
CGROUP = f"/system.slice/docker-{ID}.scope/x\033y"

# Two coroutines and the main thread, with 3, 1 and 1 fifths of the work.
COROUTINES = """local function spin(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
local function work(n) while true do spin(n) coroutine.yield() end end
local a, b = coroutine.create(work), coroutine.create(work)
print(a) print(b) print('ready') io.stdout:flush()
while true do coroutine.resume(a, 30000) coroutine.resume(b, 10000) spin(10000) end"""
WORK = {"a": 3 / 5, "b": 1 / 5, "main": 1 / 5}
INTERPRETERS = ["luajit", "lua5.1", "lua5.4"]

EXEC = """local ffi = require('ffi') ffi.cdef'int execlp(const char *, const char *, ...)'
local t = os.clock() while os.clock() - t < 0.1 do end
ffi.C.execlp('lua5.4', 'lua5.4', '-e', 'local t = os.clock() while os.clock() - t < 0.5 do end', ffi.cast('char *', nil))"""


def counts(samples, label):
    n = collections.Counter()
    for s in samples:
        n[s.labels.get(label)] += s.count
    return dict(n)


@pytest.fixture(scope="module")
def machine(root, tmp_path_factory):
    """luabpf sees the first one in a container: making a cgroup takes rights that root may lack."""
    tmp_path = tmp_path_factory.mktemp("by")
    m = types.SimpleNamespace(saved=tmp_path / "x.pb.gz", threads={}, targets={})
    path = tmp_path / "cgroup"
    path.write_text(f"0::{CGROUP}\n")
    with contextlib.ExitStack() as stack:
        for name in INTERPRETERS:
            t = stack.enter_context(vms.Target([name, "-e", COROUTINES]))
            m.threads[name] = {t.line().split()[1]: "a", t.line().split()[1]: "b"}
            m.targets[name] = t.ready()
        m.exe = {name: os.readlink(f"/proc/{t.pid}/exe") for name, t in m.targets.items()}
        m.cgroups = {name: Path(f"/proc/{t.pid}/cgroup").read_text() for name, t in m.targets.items()}
        first = m.targets[INTERPRETERS[0]].pid
        m.done = vms.record(list(m.targets.values()), SECONDS, "--by=coroutine", "-jp=fm0", "-o", m.saved, "-F", HZ,
                            before=["unshare", "-m", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh",
                                    path, f"/proc/{first}/cgroup"])
        m.ps = vms.luabpf("ps", "--json", stats=False).out
    assert m.done.code == 0, m.done
    profile = pprof.Profile(m.saved)
    m.of = {name: [s for s in profile.samples if s.labels["pid"] == str(t.pid)] for name, t in m.targets.items()}
    m.total = profile.total
    return m


def test_coroutines(machine):
    """Shares within five standard deviations (a false alarm in 1.7 million each) and 2 % for the loop around them."""
    for name in INTERPRETERS:
        got = {machine.threads[name].get(label, label): n for label, n in counts(machine.of[name], "coroutine").items()}
        total = sum(got.values())
        assert total > 0.3 * HZ * SECONDS, (name, got)
        main = [label for label in got if label.startswith("main:0x")]
        assert len(main) == 1 and set(got) == {"a", "b", *main}, (name, got)
        for who, share in WORK.items():
            n = got[main[0] if who == "main" else who]
            bound = 5 * (share * (1 - share) / total) ** 0.5 + 0.02
            assert abs(n / total - share) < bound, (name, who, n / total, bound)


def test_labels_of_a_process(machine):
    for name in INTERPRETERS:
        [vm] = re.findall(rf'"pid":\s*{machine.targets[name].pid},.*?"vm":\s*"([^"]*)"', machine.ps, re.S)
        assert set(counts(machine.of[name], "exe")) == {machine.exe[name]}
        assert set(counts(machine.of[name], "vm")) == {vm}
        [cgroup] = counts(machine.of[name], "cgroup")
        [container] = counts(machine.of[name], "container")
        if name == INTERPRETERS[0]:
            assert cgroup == CGROUP.replace("\033", r"\x1b") and container == f"docker:{ID[:12]}"
        else:
            assert cgroup in [line.split(":", 2)[2] for line in machine.cgroups[name].splitlines()]


def sections(text):
    """{head: samples}"""
    return {head: int(n) for head, n in re.findall(r"^==== (.*): \d+%, (\d+) samples ====$", text, re.M)}


@pytest.mark.parametrize("by", ["exe", "cgroup", "container", "vm"])
def test_sections(machine, by):
    text = vms.luabpf("report", machine.saved, "-jp=fm0", f"--by={by}", stats=False).out
    want = collections.Counter()
    for samples in machine.of.values():
        for label, n in counts(samples, by).items():
            want[label or "(no container)"] += n
    assert sections(text) == want and sum(want.values()) == machine.total


def test_sections_by_coroutine(machine):
    """The recording's own report and the saved profile's are the same."""
    want = {f"coroutine:{machine.targets[name].pid}/{label}": n for name in INTERPRETERS
            for label, n in counts(machine.of[name], "coroutine").items()}
    text = vms.luabpf("report", machine.saved, "-jp=fm0", "--by=coroutine", stats=False).out
    assert sections(text) == want and text == machine.done.out


def test_exec(root, tmp_path):
    """The same pid has other labels then. Coroutines are not recorded unless asked for."""
    saved = tmp_path / "x.pb.gz"
    r = vms.luabpf("-F", HZ, "-o", saved, "--", "luajit", "-e", EXEC)
    assert r.code == 0, r
    samples = pprof.Profile(saved).samples
    assert len(counts(samples, "pid")) == 1
    got = {(os.path.basename(s.labels["exe"]).split("-")[0], s.labels["vm"].split()[0], s.labels["comm"]) for s in samples}
    assert got == {("luajit", "LuaJIT", "luajit"), ("lua5.4", "PUC", "lua5.4")}, got
    assert set(counts(samples, "coroutine")) == {None}
    text = vms.luabpf("report", saved, "--by=coroutine", stats=False).out
    assert list(sections(text)) == ["(coroutine not recorded)"]
