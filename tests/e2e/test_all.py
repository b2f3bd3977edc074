# SPDX-License-Identifier: BSD-2-Clause
"""luabpf --all: each process that runs Lua, those that are there and those that come, beside others that run none.

One recording for all; other tests' processes are on this machine, too, so each of ours is judged by its own samples.
"""
import contextlib
import itertools
import json
import os
import re
import shutil
from pathlib import Path

import pytest

import pprof
import truth
import vms

HZ = 5000
SECONDS = 0.6  # of CPU time: 3000 samples of each, held to five standard deviations (truth.bound)
# (interpreter, workload): when luabpf starts, these are there; then come the others, and one in a container
THERE = [("luajit-jon", "calls"), ("lua5.1", "calls"), ("lua5.3", "coros")]
COME = [("luajit-joff", "errors"), ("lua5.2", "calls"), ("lua5.4", "coros")]
CONTAINED = ("lua5.4", "calls")
LATE = (("lua54", "liblua5.4.so.0"), ("luajit", "libluajit-5.1.so.2"))

# A process without Lua, with a file that luabpf has not seen, so that it has been looked at, loads one. On one CPU.
PLUGIN = """import ctypes, sys, time
def spend(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
print('ready', flush=True); sys.stdin.readline()
ctypes.CDLL(sys.argv[1])
spend(0.1)
lua = ctypes.CDLL(sys.argv[2])
lua.luaL_newstate.restype = ctypes.c_void_p
L = ctypes.c_void_p(lua.luaL_newstate())
lua.luaL_openlibs(L)
def run(code, name):
    assert not lua.luaL_loadbufferx(L, code, len(code), name, None) and not lua.lua_pcallk(L, 0, 0, 0, 0, None)
run(b"repeat for i = 1, 1e5 do end until io.open(arg) " .replace(b"arg", b"'" + sys.argv[3].encode() + b"'"), b"=warm")
run(b"local t = os.clock() while os.clock() - t < 0.5 do for i = 1, 1e4 do end end", b"=plugin")
"""

# The same, after it has changed startcode, proc_pid_stat(5): by that luabpf distinguishes the images of a process.
MOVED = PLUGIN.replace("spend(0.1)\n", """spend(0.1)
libc = ctypes.CDLL(None, use_errno=True)
libc.sbrk.restype = ctypes.c_uint64
assert not libc.mount(b'proc', b'/proc', b'proc', 0, None), ctypes.get_errno() # the container's root has none
stat = [0] * 4 + [int(n) for n in open('/proc/self/stat').read().rsplit(') ', 1)[1].split()[1:]]
fields = [stat[n] for n in (26, 27, 45, 46, 47)] + [libc.sbrk(0)] + [stat[n] for n in (28, 48, 49, 50, 51)]
fields[0] += 1
prctl_mm_map = (ctypes.c_uint64 * 13)(*fields, 0, 0xffffffff << 32) # no auxv, exe_fd -1
assert not libc.prctl(35, 14, prctl_mm_map, ctypes.c_ulong(ctypes.sizeof(prctl_mm_map)), 0), ctypes.get_errno() # PR_SET_MM_MAP
""")

# An overlay of this machine's files has inodes of its own: no file in it is one that luabpf has looked into.
CONTAINER = """mount -t tmpfs none "$1" && mkdir "$1"/up "$1"/work "$1"/root &&
mount -t overlay overlay -o lowerdir=/,upperdir="$1"/up,workdir="$1"/work "$1"/root &&
root=$1/root && shift && mkdir -p "$root$1" && mount --bind "$1" "$root$1" && shift && exec chroot "$root" "$@"
"""


def contained(root, directory):
    """The words before those of a program that runs in a container. root: a directory, which is made; directory: is in the
    container, too."""
    root.mkdir()
    return ["unshare", "--kill-child", "-m", "-p", "-f", "--mount-proc", "sh", "-c", CONTAINER, "sh", root, directory]


def driver(vm, workload, prefix=()):
    vm = vms.VMS[vm]
    target = vms.Target([*prefix, *vm.argv, vms.LUA / truth.DRIVER, vms.LUA / f"{workload}.lua", SECONDS], vm.env)
    target.vm, target.workload = vm, workload
    return target


def last_child(pid):
    """The process that this one's child, or grandchild, has become."""
    while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        pid = int(children[0])
    return pid


class Machine:
    """What luabpf shows of all that ran, by process id."""

    def __init__(self, tmp_path):
        saved = tmp_path / "all.pb.gz"
        with contextlib.ExitStack() as stack:
            def start(target):
                return stack.enter_context(target)
            targets = [start(driver(*case)).ready() for case in THERE]
            plain = start(vms.Target(["python3", "-c", "while 1: pass"]))
            tool = vms.Luabpf("--all", "-v", "-F", HZ, "-o", saved).wait_banner()
            targets += [start(driver(*case)).ready() for case in COME]
            box = start(driver(*CONTAINED, contained(tmp_path / "root", vms.LUA))).ready()
            box.pid = last_child(box.pid)
            targets.append(box)
            plugin = self.start_plugin(tmp_path, start)
            plugin.go()
            tool.wait_for(rf"pid {plugin.pid}: {tmp_path}/plugin.so: .*interpreter 0x")
            (tmp_path / "known").touch()
            late = start(vms.Target([vms.HOSTS / "two", "late", SECONDS,
                                     *itertools.chain(*((file, name) for name, file in LATE))])).ready()
            for t in targets:
                t.go()
            for _, file in LATE:
                tool.wait_for(rf"pid {late.pid}: \S*{re.escape(file)}.*interpreter 0x")
                late.go()
            for t in targets:
                t.truth = json.loads(t.rest())
            self.late_said = [line.split() for line in late.rest().splitlines()]
            assert not plugin.rest()
            plain.spend(0.1)
            tool.signal()
            self.done = tool.done()
        assert self.done.code == 0, self.done
        self.profile = pprof.Profile(saved)
        self.targets, self.plain, self.late, self.plugin, self.saved = targets, plain, late, plugin, saved

    @staticmethod
    def start_plugin(tmp_path, start):
        for name, copy in (("libm.so.6", "new.so"), ("liblua5.4.so.0", "plugin.so")):
            shutil.copy(Path("/usr/lib/x86_64-linux-gnu") / name, tmp_path / copy)
        return start(vms.Target(["taskset", "-c", min(os.sched_getaffinity(0)), "python3", "-c", PLUGIN, tmp_path / "new.so",
                                 tmp_path / "plugin.so", tmp_path / "known"])).ready()

    def of(self, pid):
        return self.profile.of(pid)

    def result(self, t):
        return truth.Result(t.vm, t.workload, self.done, self.of(t.pid), t.truth)


@pytest.fixture(scope="module")
def machine(root, tmp_path_factory):
    return Machine(tmp_path_factory.mktemp("all"))


def each(machine):
    assert len(machine.targets) == len(THERE) + len(COME) + 1
    return map(machine.result, machine.targets)


def test_each_process_has_its_time(machine):
    """Samples by function and line, against what each workload's own clock says."""
    for r in each(machine):
        assert machine.done.is_all_time(r.profile.total, r.truth["total"], HZ), (r.truth["total"], r.summary())
        missing = vms.missed(r.profile.total, r.truth["total"], HZ)
        off = [f"{name}: true {p:.4f}, measured {q:.4f}, allowed {b:.4f}"
               for name, p, q, b in r.shares(missing) if abs(p - q) > b]
        assert not off, r.summary()


def test_each_stack_is_one_of_the_process(machine):
    for r in each(machine):
        wrong = sum(r.wrong.values())
        assert wrong <= truth.allowed(r.profile.total), (r.summary(), r.wrong.most_common(8))


def test_a_process_without_lua_has_no_samples(machine):
    assert not machine.of(machine.plain.pid).samples


def test_a_library_that_comes_late(machine):
    """By a process that had no Lua before: from when it is named on, its time is there."""
    names = {f.file.lstrip("=") for s in machine.of(machine.late.pid).samples for f in s.stack}
    assert names >= {name for name, _ in LATE}, names
    for name, _, seconds in machine.late_said:
        n = sum(s.count for s in machine.of(machine.late.pid).samples
                if any(f.file.lstrip("=") == name for f in s.stack))
        assert machine.done.is_all_time(n, float(seconds), HZ), (name, n, seconds)


def test_a_process_without_lua_that_loads_one(machine):
    """It was scanned and had none. It is sampled from the moment its library is recognised, on the same CPU as well."""
    n = sum(s.count for s in machine.of(machine.plugin.pid).samples if any(f.file == "=plugin" for f in s.stack))
    assert machine.done.is_all_time(n, 0.5, HZ), n


def test_a_process_that_changes_its_startcode(root, tmp_path):
    """A process that was first looked at during its exec has another startcode later, too. It has no VM then; it loads one from a
    file that BPF does not know."""
    library = Path("/usr/lib/x86_64-linux-gnu")
    with vms.Target([*contained(tmp_path / "root", tmp_path), "/usr/bin/python3", "-c", MOVED, library / "libm.so.6",
                     library / "liblua5.4.so.0", tmp_path / "known"]) as target:
        pid = last_child(target.ready().pid)
        tool = vms.Luabpf("--all", "-v", "-F", HZ, "-o", tmp_path / "p.pb.gz").wait_banner().wait_families()
        target.go()
        tool.wait_for(rf"pid {pid}: \S*liblua5.4.so\S*: .*interpreter 0x")
        (tmp_path / "known").touch()
        assert not target.rest()
        tool.signal()
        r = tool.done()
    n = sum(s.count for s in pprof.Profile(tmp_path / "p.pb.gz").of(pid).samples if any(f.file == "=plugin" for f in s.stack))
    assert r.code == 0 and r.is_all_time(n, 0.5, HZ), (n, r)


def test_sections(machine):
    """--by=pid: of a saved profile, each process's part of the whole."""
    text = vms.luabpf("report", machine.saved, "-jp=fm0", "--by=pid", stats=False).out
    shown = {who: int(n) for who, n in re.findall(r"^==== (pid:\d+|\d+ others): \d+%, (\d+) samples ====$", text, re.M)}
    assert sum(shown.values()) == machine.profile.total  # other tests' processes, too, which may be many
    for t in machine.targets:
        assert shown[f"pid:{t.pid}"] == machine.of(t.pid).total


@pytest.mark.parametrize("args,says", [
    (["--all", "-p", "1"], "--all and -p"),
    (["--all", "--", "true"], "--all and a command"),
    (["--all", "--by=user"], "--by=user: not pid, comm, exe"),
    (["report", "--all", "x.pb.gz"], "-a does not go with report"),
])
def test_contradictions(args, says):
    r = vms.luabpf(*args, stats=False)
    assert r.code == 2 and says in r.err, r


def nice_value(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[16])


@pytest.mark.parametrize("who", ["process", "command"])
def test_its_priority_is_its_callers(root, who):
    """When it samples: that of luabpf, of its children that load other families' programs, and of a command."""
    with vms.Target(["lua5.4", "-e", "print('ready') io.flush() io.read()"]) as t:
        t.ready()
        args = ["-p", t.pid] if who == "process" else ["--", "sleep", "1000"]
        with vms.Luabpf("-F", 10, *args, before=["nice", "-n", "5"]).wait_banner() as tool:
            pids = [tool.p.pid, *map(int, Path(f"/proc/{tool.p.pid}/task/{tool.p.pid}/children").read_text().split())]
            assert len(pids) > 1 and {nice_value(pid) for pid in pids} == {os.nice(0) + 5}
        t.go()


def test_nothing_that_runs_lua(root, tmp_path):
    """The end by -d; the output is a profile, empty unless another test runs Lua."""
    r = vms.luabpf("--all", "-d", "0.2", "-o", tmp_path / "x.pb.gz")
    assert r.code == 0 and r.stats["ended_by"] == "duration", r
    assert os.path.getsize(tmp_path / "x.pb.gz")


# They come and end one by one: other recordings of all processes run at the same time.
MANY = [vms.OUT / "tests/bench/spawn", "idle", 4300], {"LD_PRELOAD": "liblua5.4.so.0"}
BUSY = "local t = os.clock() repeat for i = 1, 1e4 do end until os.clock() - t >= 0.6"


def test_more_processes_than_bpf_keeps(machine, tmp_path):
    """Idle ones fill its table of 4096; those that come and work take their places."""
    with vms.Target(*MANY) as many:
        many.ready()
        tool = vms.Luabpf("--all", "-F", 1000, "-o", tmp_path / "p.pb.gz").wait_banner().wait_families()
        with contextlib.ExitStack() as stack:
            busy = [stack.enter_context(vms.Target([vm, "-e", BUSY])) for vm in ("lua5.3", "luajit", "lua5.3", "lua5.4")]
            for t in busy:
                t.rest()
        tool.signal()
        r = tool.done()
        many.go()
        many.rest()
    assert r.code == 0 and r.stats["sizes"]["known_processes"] > 4300 > r.stats["sizes"]["map_processes"], r
    profile = pprof.Profile(tmp_path / "p.pb.gz")
    for t in busy:
        assert r.is_all_time(profile.of(t.pid).total, 0.6, 1000), (profile.of(t.pid).total, r)
