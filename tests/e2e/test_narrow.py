# SPDX-License-Identifier: BSD-2-Clause
"""--exe, --comm, --cgroup, --user: which processes --all and ps are narrowed to. Other tests' processes are on this
machine, too: ours have an executable of their own."""
import collections
import contextlib
import json
import os
import pwd
import shutil
import subprocess

import pytest

import cgroups
import pprof
import vms

HZ = 2000
ROUNDS, SECONDS = 6, 0.04
NOBODY = pwd.getpwnam("nobody").pw_uid
AS_NOBODY = ["setpriv", "--reuid", NOBODY, "--clear-groups"]
WORK = """print('ready') io.stdout:flush() io.read()
local chunk = (loadstring or load)('local x = 0 for i = 1, 1e4 do x = x + i % 7 end', '={}')
local start = os.clock()
repeat chunk() until os.clock() - start >= 0.2
print(os.clock() - start)"""


class Machine:
    """A process that matches and one that does not for each reason, and one that does now and then."""

    def __init__(self, public):
        luajit = shutil.which("luajit")
        self.exe = public / "narrow-jit"
        self.other_exe = public / "narrow-other"
        for copy in (self.exe, self.other_exe):
            shutil.copy(luajit, copy)
        with contextlib.ExitStack() as stack:
            self.cgroup, other = (stack.enter_context(cgroups.cgroup(name)) for name in ("a", "b"))
            below = self.cgroup / "below"
            below.mkdir()
            stack.callback(below.rmdir)

            def start(name, exe=self.exe, comm="narrow-jit", user=AS_NOBODY, cgroup=below):
                link = public / comm
                if exe != self.exe or comm != "narrow-jit":
                    link = public / name / comm
                    link.parent.mkdir()
                    link.symlink_to(exe)
                t = stack.enter_context(vms.Target([*user, link, "-joff", "-e", WORK.format(name)],
                                                   preexec_fn=cgroups.join(cgroup)))
                return t.ready()
            self.targets = {
                "wanted_all": start("wanted_all"),
                "wanted_2nd_comm": start("wanted_2nd_comm", comm="2nd-comm"),
                "unwanted_exe": start("unwanted_exe", exe=self.other_exe),
                "unwanted_comm": start("unwanted_comm", comm="other-comm"),
                "unwanted_cgroup_": start("unwanted_cgroup_", cgroup=other),
                "unwanted_user_": start("unwanted_user_", user=[]),
            }
            self.turns = stack.enter_context(vms.Target([self.exe, "-joff", vms.LUA / "turns.lua", ROUNDS, SECONDS,
                                                         self.cgroup, other, NOBODY, "narrow-jit"])).ready()
            args = ["--exe", self.exe, "--comm", "narrow-jit", "--comm", "2nd-comm",
                    "--cgroup", f"/{self.cgroup.name}", "--user", "nobody"]
            self.ps = subprocess.run([vms.LUABPF, "ps", "--json", *args], capture_output=True, text=True,
                                     timeout=vms.HANG, env=vms.clean_env())
            tool = vms.Luabpf(*args, "-F", HZ, "-o", public / "p.pb.gz").wait_banner()
            for t in (*self.targets.values(), self.turns):
                t.go()
            self.took = {name: float(t.rest()) for name, t in self.targets.items()}
            self.took |= {name: float(t) for name, t in (line.split() for line in self.turns.rest().splitlines())}
            tool.signal()
            self.done = tool.done()
            for t in (*self.targets.values(), self.turns):
                t.p.wait()
        assert self.done.code == 0, self.done
        self.shown, self.pids = collections.Counter(), set()
        for s in pprof.Profile(public / "p.pb.gz").samples:
            self.pids.add(int(s.labels["pid"]))
            for name in {f.file.lstrip("=") for f in s.stack if f.kind == pprof.LUA} & set(self.took):
                self.shown[name] += s.count


@pytest.fixture(scope="module")
def machine(root):
    with vms.public_dir() as public:
        yield Machine(public)


def test_what_does_not_match_is_never_shown(machine):
    wanted = {machine.targets[name].pid for name in ("wanted_all", "wanted_2nd_comm")} | {machine.turns.pid}
    assert machine.pids == wanted, machine.done
    assert not [name for name in machine.shown if name.startswith("unwanted")], machine.shown


def test_what_matches_has_its_time(machine):
    """But for what came before user space had decided: once for each of five identities here."""
    wanted = {name: t for name, t in machine.took.items() if name.startswith("wanted")}
    assert len(wanted) == 5 and set(machine.shown) == set(wanted), (machine.shown, machine.done)
    unknown = machine.done.stats["lost_by_reason"].get("unrecognised", 0)
    for name, t in wanted.items():
        n, want = machine.shown[name], t * HZ
        assert 0.3 * want < n + unknown and n < 1.05 * want + 5 * want ** 0.5, (name, want, machine.shown, machine.done)
    assert machine.done.stats["samples"] == sum(
        machine.done.stats[how] for how in ("resolved", "outside_lua", "lost")), machine.done


def test_ps(machine):
    assert machine.ps.returncode == 0, machine.ps
    found = {p["pid"] for p in json.loads(machine.ps.stdout)}
    assert found == {machine.targets[name].pid for name in ("wanted_all", "wanted_2nd_comm")} | {machine.turns.pid}


@pytest.mark.parametrize("verb", [[], ["ps"]])
@pytest.mark.parametrize("args,code,says", [
    (["--cgroup", "/none/of/it"], 1, "--cgroup /none/of/it: no such cgroup\n"),
    (["--cgroup", "/tmp"], 1, "--cgroup /tmp: not a cgroup of version 2\n"),
    (["--user", "nobody-of-this-name"], 2, "--user nobody-of-this-name: no such user\n"),
    (["--exe", ""], 2, "--exe: empty\n"),
])
def test_what_is_not_there(verb, args, code, says):
    with cgroups.mounted():
        r = vms.luabpf(*verb, *args, stats=False)
    assert r.code == code and f"luabpf: {says}" in r.err and not r.out, r
