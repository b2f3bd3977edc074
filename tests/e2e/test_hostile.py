# SPDX-License-Identifier: BSD-2-Clause
"""Processes that look like Lua and are not, that spoil their own VM while they are sampled, that come and go: all at
once under --all, beside two with known splits. Elsewhere are: FUSE (test_fuse), files that cost their reader time
(test_elf_bombs), profiles that exhaust (test_profile_bounds), chunk names of others' files (test_sources).
"""
import collections
import contextlib
import json
import os
import random
import re
import shutil
import struct
from pathlib import Path

import pytest

import pprof
import truth
import vms

HZ = 1000
SECONDS = 0.4  # of CPU time: 400 samples of each good one, held to five standard deviations (truth.bound)
GOOD = [("luajit-joff", "calls"), ("lua5.4", "calls")]

# Prints the addresses of both lua_States; the coroutine's three functions never return.
CHAINS = """
collectgarbage("stop")
local function spin() local x = 0 for i = 1, 2e3 do x = x + i % 7 end return x end
local function loop() while true do spin() end end
local co = coroutine.create(function() local function outer() loop() return 1 end outer() return 1 end)
print(string.format("%p %p", coroutine.running(), co)) io.stdout:flush()
coroutine.resume(co)
"""

# 10,000 processes without Lua, which end at once, 50 at a time.
STORM = [vms.OUT / "tests/bench/spawn", "storm", 10000]

# Interpreters that live for 0 to 30 ms of CPU time: they end before, while and after they are recognised.
SHORT = """i=0; echo ready; while :; do i=$(( (i + 1) % 13 ))
luajit -e "local e = os.clock() + $i / 400 while os.clock() < e do end"; lua5.4 -e "local e = os.clock() + $i / 400 while os.clock() < e do end"
done"""


class Memory:
    def __init__(self, pid):
        self.fd = os.open(f"/proc/{pid}/mem", os.O_RDWR)

    def word(self, at):
        return struct.unpack("<Q", os.pread(self.fd, 8, at))[0]

    def write(self, at, value):
        os.pwrite(self.fd, struct.pack("<Q", value), at)


def close_chains(target):
    """PUC Lua 5.4: the CallInfos of functions that never return are their own callers, in both coroutines."""
    main, co = (int(p, 16) for p in target.line().split())
    memory = Memory(target.pid)

    def chain():  # CallInfo.previous; the last is lua_State.base_ci
        at, found = memory.word(co + 32), []
        while at and len(found) < 8:
            found.append(at)
            at = memory.word(at + 16)
        return found
    vms.wait_until(lambda: target.cpu() > 0.02 and len(chain()) >= 4)
    outer = chain()[-2]
    memory.write(outer + 16, outer)
    resumes = memory.word(main + 32)
    memory.write(resumes + 16, resumes)
    os.close(memory.fd)


def forged(where):
    """Files with names of Lua libraries: noise behind an ELF header, a library with spoilt code, half an interpreter."""
    chance = random.Random(27)
    real = Path("/usr/lib/x86_64-linux-gnu/liblua5.4.so.0").resolve().read_bytes()
    noise = real[:64] + chance.randbytes(200_000)
    spoilt = bytearray(real)
    for _ in range(len(real) // 64):
        spoilt[chance.randrange(0x1000, len(real))] = chance.randrange(256)
    half = Path(shutil.which("luajit")).resolve().read_bytes()
    files = {"liblua5.4.so.0": noise, "liblua5.3.so.0": bytes(spoilt), "libluajit-5.1.so.2": half[:len(half) // 2]}
    for name, content in files.items():
        (where / name).write_bytes(content)
    return [where / name for name in files]


class Machine:
    def __init__(self, where):
        low = ["nice", "-n", "5"]  # the good ones have more of the processors, and end soon
        hostile = [*low, "luajit", "-joff", vms.LUA / "hostile.lua"]
        most = Path("/proc/sys/vm/max_map_count").read_text()
        shutil.copy("/bin/sh", where / "luajit")
        shutil.copy(shutil.which("luajit"), where / "fifo")
        with contextlib.ExitStack() as stack:
            def start(*argv):
                return stack.enter_context(vms.Target(argv))
            self.bad = {mode: start(*hostile, mode, *args).ready() for mode, args in {
                "names": (), "frames": (), "chunks": (), "unloads": ("liblua5.4.so.0",),
                "mappings": (shutil.which("luajit"), most), "files": ("/dev/zero", *forged(where))}.items()}
            self.bad["chains"] = start(*low, "lua5.4", "-e", CHAINS)
            self.bad["fifo"] = start(*low, where / "fifo", vms.LUA / "hostile.lua", "files").ready()
            (where / "fifo").unlink()
            os.mkfifo(where / "fifo")
            self.plain = start(*low, where / "luajit", "-c", "echo ready; while :; do :; done").ready()
            close_chains(self.bad["chains"])
            good = []
            for vm, workload in GOOD:
                t = start(*vms.VMS[vm].argv, vms.LUA / truth.DRIVER, vms.LUA / f"{workload}.lua", SECONDS).ready()
                t.vm, t.workload = vms.VMS[vm], workload
                good.append(t)
            tool = vms.Luabpf("--all", "-v", "-F", HZ, "-o", where / "all.pb.gz").wait_banner()
            began = {name: t.cpu() for name, t in self.bad.items()}
            start("sh", "-c", SHORT).ready()
            forks = start(*STORM).ready()
            for t in good:
                t.go()
            for t in good:
                t.truth = json.loads(t.rest())
            assert forks.line() == "done"
            for t in self.bad.values():
                t.spend(0.05)
            tool.signal()
            self.took = {name: t.cpu() - began[name] for name, t in self.bad.items()}
            alive = [name for name, t in self.bad.items() if t.p.poll() is None]
            self.done = tool.done()
        assert alive == list(self.bad), "a target has harmed itself"
        assert self.done.code == 0, self.done
        self.profile = pprof.Profile(where / "all.pb.gz")
        self.good, self.saved = good, where / "all.pb.gz"
        # Samples of whoever ran while luabpf had no processor for too long.
        self.unread = self.done.stats["lost_by_reason"].get("ring-full", 0)

    def of(self, pid):
        return self.profile.of(pid)


@pytest.fixture(scope="module")
def machine(root, tmp_path_factory):
    return Machine(tmp_path_factory.mktemp("hostile"))


def test_each_sample_is_accounted_for(machine):
    """Those that BPF resolved are in the profile or lost by user space for a named reason."""
    stats, bpf = machine.done.stats, re.search(r"in the kernel: (\d+) resolved", machine.done.err)
    users = ("proto-ambiguous", "proto-collected", "memory-waits", "bad-record")
    named = {k: n for k, n in stats["lost_by_reason"].items() if k in users or k.startswith("layout-")}
    assert int(bpf[1]) == stats["resolved"] + sum(named.values()) and "bad-record" not in named, machine.done
    assert stats["resolved"] == machine.profile.total, machine.done
    assert stats["lost"] == sum(stats["lost_by_reason"].values()), machine.done
    assert stats["samples"] == stats["resolved"] + stats["outside_lua"] + stats["lost"], machine.done


def test_others_are_right(machine):
    """Their time, functions, lines and stacks. Each of the samples that luabpf could not read may be anyone's."""
    for t in machine.good:
        r = truth.Result(t.vm, t.workload, machine.done, machine.of(t.pid), t.truth)
        n = r.profile.total
        assert machine.done.is_all_time(n, t.truth["total"], HZ, machine.unread), (r.summary(), t.truth, machine.unread)
        missing = vms.missed(n + machine.unread, t.truth["total"], HZ)
        off = [row for row in r.shares(missing) if abs(row[1] - row[2]) > row[3] + machine.unread / (n + machine.unread)]
        assert not off, (r.summary(), off)
        assert sum(r.wrong.values()) <= truth.allowed(n), (r.summary(), r.wrong.most_common(8))


def test_what_looks_like_lua_has_no_samples(machine):
    assert not machine.of(machine.plain.pid).samples


@pytest.mark.parametrize("name,function", [("mappings", "spin"), ("files", "spin"), ("fifo", "spin"), ("chunks", "spin"), ("unloads", "")])
def test_what_runs_lua_is_shown(machine, name, function):
    """Among 65,000 mappings, beside forged files and devices, from a file whose name is a FIFO's now, and in a library
    that goes: nearly all of its time, in the function that takes it."""
    samples = machine.of(machine.bad[name].pid).samples
    tops = collections.Counter()
    for s in samples:
        tops[s.stack[-1].name] += s.count
    n = sum(count for top, count in tops.items() if top.startswith(function))
    assert machine.done.is_all_time(n, machine.took[name], HZ, machine.unread), (n, machine.took, tops, machine.done.stats["lost_by_reason"])


def beginnings(text):
    return {0} | {n for n, line in enumerate(text.splitlines(), 1) if "function" in line}


INNER = '[string "local x = 0 for i = 1, 1e5 do x = x + i % 7 end"]'  # the chunk of a library that goes
OWN = {"hostile.lua": beginnings((vms.LUA / "hostile.lua").read_text()), "=(command line)": beginnings(CHAINS), INNER: {0}}


@pytest.mark.parametrize("name,tops", [("frames", {"hostile.lua"}), ("chains", {"=(command line)"}), ("unloads", {"hostile.lua", INNER}),
                                       ("mappings", {"hostile.lua"}), ("files", {"hostile.lua"})])
def test_what_is_spoilt_shows_its_own_functions(machine, name, tops):
    """All of its time is in functions of its own, outside Lua or lost by name; the library may come and go unseen."""
    samples = machine.of(machine.bad[name].pid).samples
    wrong = collections.Counter()
    for s in samples:
        for f in s.stack:
            file = f.base if f.file.endswith("hostile.lua") else f.file
            if f.kind == pprof.LUA and (f.start not in OWN.get(file, ()) or file not in tops):
                wrong[f.name, f.file, f.start] += s.count
    n = sum(s.count for s in samples)
    assert not wrong, (wrong, n)
    assert machine.done.is_all_time(n, machine.took[name], HZ, machine.done.stats["lost"]), (n, machine.took, machine.done)


def test_no_text_is_forged(machine):
    """Names that the targets chose reach no terminal as they are."""
    for options in "f", "G", "l":
        text = vms.luabpf("report", machine.saved, f"-jp={options}m0", "--by=pid", stats=False).out
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text), repr(text)
        assert not re.search(r"^100% +forged", text, re.M), text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", machine.done.err), repr(machine.done.err)
