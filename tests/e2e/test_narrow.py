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
import truth
import vms

HZ = 2000
ROUNDS, SECONDS = 6, 0.1
NOBODY = pwd.getpwnam("nobody").pw_uid
AS_NOBODY = ["setpriv", "--reuid", NOBODY, "--clear-groups"]
WORK = """print('ready') io.stdout:flush() io.read()
local chunk = (loadstring or load)('local x = 0 for i = 1, 1e4 do x = x + i % 7 end', '={}')
local start = os.clock()
repeat chunk() until os.clock() - start >= 0.5
print(os.clock() - start)"""


class Machine:
    """A process that matches and one that does not for each reason, and one that does at some times only."""

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
        assert machine.done.is_all_time(machine.shown[name], t, HZ, unknown), (name, t, machine.shown, machine.done)
    assert machine.done.stats["samples"] == sum(
        machine.done.stats[how] for how in ("resolved", "outside_lua", "lost")), machine.done


def test_ps(machine):
    assert machine.ps.returncode == 0, machine.ps
    found = {p["pid"] for p in json.loads(machine.ps.stdout)}
    assert found == {machine.targets[name].pid for name in ("wanted_all", "wanted_2nd_comm")} | {machine.turns.pid}


# Pid and mount namespaces, and a root of its own: an overlay, in which no file is one that luabpf has looked into.
CONTAINER = """set -e
mount -t tmpfs none "$1"
mkdir "$1"/up "$1"/work "$1"/root
mount -t overlay overlay -o lowerdir=/,upperdir="$1"/up,workdir="$1"/work "$1"/root
mount --bind /dev "$1"/root/dev
cd "$1"/root
pivot_root . mnt
cd /
mount -t proc proc /proc
umount -l /mnt
mkdir -p /box
cd /box
script() {  # NAME SECONDS: makes a file, if it has an argument, and works
    echo "if arg[1] then io.open(arg[1], 'w') end
        local c = (loadstring or load)('local x = 0 for i = 1, 1e4 do x = x + i % 7 end', '=$1')
        local t = os.clock() repeat c() until os.clock() - t >= $2" >$1.lua
}
script deleted 0.6
script before 0.4
script replaced 0.4
script short 0.05
cp $(command -v lua5.3) gone
cp $(command -v luajit) program
cp $(command -v lua5.1) new
./gone deleted.lua gone-runs &
until [ -e gone-runs ]; do sleep 0.01; done
rm gone
./program before.lua program-runs &
until [ -e program-runs ]; do sleep 0.01; done
mv new program
./program replaced.lua
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do lua5.4 short.lua; done
wait
"""


IDLE = "print('ready') io.stdout:flush() io.read()"


def test_container(root, tmp_path):
    """One that starts during the recording: programs that are deleted or replaced while they run, and short children.
    The same program outside its cgroup is not shown."""
    due = {"deleted": 0.6, "before": 0.4, "replaced": 0.4, "short": 12 * 0.05}
    with contextlib.ExitStack() as stack:
        box = stack.enter_context(cgroups.cgroup("box"))
        outside = stack.enter_context(vms.Target(["lua5.4", "-e", WORK.format("outside")])).ready()
        for vm in "lua5.4", "luajit":  # so that the programs of both families are loaded
            stack.enter_context(vms.Target([vm, "-e", IDLE], preexec_fn=cgroups.join(box))).ready()
        tool = vms.Luabpf("--cgroup", box, "-F", HZ, "-o", tmp_path / "p.pb.gz").wait_banner()
        outside.go()
        with vms.Target(["unshare", "-m", "-p", "-f", "--kill-child", "sh", "-c", CONTAINER, "sh", tmp_path],
                        preexec_fn=cgroups.join(box)) as t:
            assert not t.rest() and not t.p.wait()
        outside.rest()
        tool.signal()
        r = tool.done()
    assert r.code == 0, r
    shown, pids = collections.Counter(), collections.defaultdict(set)
    for s in pprof.Profile(tmp_path / "p.pb.gz").samples:
        for name in {f.file.lstrip("=") for f in s.stack if f.file.startswith("=")}:
            shown[name] += s.count
            pids[name].add(s.labels["pid"])
    shown.pop("[C]", None)
    assert set(shown) == set(due), (shown, r)
    unknown = r.stats["lost_by_reason"].get("unrecognised", 0)
    for name, seconds in due.items():
        assert r.is_all_time(shown[name], seconds, HZ, unknown), (name, shown, r)
    # a child whose samples are all lost has 0.05 * HZ less one at least
    assert 12 - len(pids["short"]) <= unknown / (0.05 * HZ - 1) and not set.union(*pids.values()) & {str(outside.pid)}


def test_families_that_appear(root, tmp_path):
    """No Lua matches when it begins. The programs for LuaJIT and PUC Lua are loaded in the background then: no sample is lost for
    them. Of the first process of each all is sampled that runs once it was found, 0.5 s of a function, and nothing is outside Lua."""
    work = """repeat for i = 1, 1e5 do end until io.open("{0}")
        local c = (loadstring or load)("local x = 0 for i = 1, 1e4 do x = x + i % 7 end", "={1}")
        local t = os.clock() repeat c() until os.clock() - t >= 0.5"""
    with cgroups.cgroup("box") as box:
        tool = vms.Luabpf("-v", "--cgroup", box, "-F", HZ, "-o", tmp_path / "p.pb.gz").wait_banner().wait_families()
        for vm in (["luajit", "-joff"], ["lua5.4"]):
            known = tmp_path / vm[0]
            with vms.Target([*vm, "-e", work.format(known, vm[0])], preexec_fn=cgroups.join(box)) as t:
                tool.wait_for(f"pid {t.pid}: .*interpreter 0x")
                known.touch()
                t.rest()
        tool.signal()
        r = tool.done()
    shown = collections.Counter()
    for s in pprof.Profile(tmp_path / "p.pb.gz").samples:
        shown.update({f.file: s.count for f in s.stack})
    for name in "=luajit", "=lua5.4":
        assert r.is_all_time(shown[name], 0.5, HZ), (shown, r)
    lost = {reason: n for reason, n in r.stats["lost_by_reason"].items() if n and reason != "unrecognised"}
    assert set(lost) <= {"stack-changing"} and sum(lost.values()) <= truth.allowed(r.stats["samples"]), r
    # a process that ends is outside Lua
    assert r.stats["outside_lua"] <= truth.allowed(r.stats["samples"], 0.02), r


# luabpf in a cgroup namespace whose root is that of the test, and with the file system of it at "$1"
NAMESPACE = """mount -t cgroup2 none "$1" && shift && exec "$@" """


@pytest.mark.parametrize("name,shown", [("/below", {"below"}), ("/", {"below", "root"}), ("below", {"below"})])
def test_cgroup_namespace(root, tmp_path, name, shown):
    """Paths are those of the namespace: of two processes in it and one outside those are shown that the name means."""
    out, mount = tmp_path / "p.folded", tmp_path / "a mount"
    mount.mkdir()
    with cgroups.cgroup("space") as space, contextlib.ExitStack() as stack:
        below = space / "below"
        below.mkdir()
        stack.callback(below.rmdir)
        where = {"root": space, "below": below, "outside": space.parent}
        targets = [stack.enter_context(vms.Target(["luajit", "-joff", "-e", WORK.format(who)], preexec_fn=cgroups.join(at))).ready()
                   for who, at in where.items()]
        tool = vms.Luabpf("--cgroup", name, "-F", HZ, "-f", "folded", "-o", out, preexec_fn=cgroups.join(space),
                          before=["unshare", "-C", "-m", "sh", "-c", NAMESPACE, "sh", mount]).wait_banner()
        for t in targets:
            t.go()
        for t in targets:
            t.rest()
        tool.signal()
        r = tool.done()
    assert r.code == 0, r
    assert {who for who in where if f"={who}" in out.read_text() or f"{who}:" in out.read_text()} == shown, (out.read_text()[:2000], r)


@pytest.mark.parametrize("verb", [["-d", 0.1], ["ps"]])
def test_cgroup_namespace_of_which_no_file_system_is_mounted(root, verb):
    """The one that is mounted has another root: its paths are not those of /proc/PID/cgroup."""
    with cgroups.cgroup("space") as space:
        r = vms.luabpf(*verb, "--cgroup", f"/{space.name}", stats=False, before=["unshare", "-C"], preexec_fn=cgroups.join(space))
    assert r.code == 1 and not r.out, r
    assert "luabpf: --cgroup: no cgroup file system of this cgroup namespace is mounted" in r.err and "mount -t cgroup2" in r.err, r


@pytest.mark.parametrize("verb", [[], ["ps"]])
@pytest.mark.parametrize("args,code,says", [
    (["--cgroup", "/none/of/it"], 1, "--cgroup /none/of/it: no such cgroup\n"),
    (["--cgroup", "/tmp"], 1, "--cgroup /tmp: not a cgroup of version 2\n"),
    (["--user", "nobody-of-this-name"], 2, "--user nobody-of-this-name: no such user\n"),
    (["--exe", ""], 2, "--exe: empty\n"),
])
def test_what_is_not_there(root, verb, args, code, says):
    with cgroups.mounted():
        r = vms.luabpf(*verb, *args, stats=False)
    assert r.code == code and f"luabpf: {says}" in r.err and not r.out, r
