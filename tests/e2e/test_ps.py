# SPDX-License-Identifier: BSD-2-Clause
"""luabpf ps: the processes that run Lua. Other tests' processes are on this machine, too, so only ours are judged."""
import contextlib
import json
import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import vms

BUSY = "print('ready') io.stdout:flush() while true do end"
IDLE = "print('ready') io.stdout:flush() io.read()"
# Its memory, after what is needed to print it is there. It grows by what io.read() needs.
COUNT = "collectgarbage('stop') for i = 1, 2 do io.write(('%d\\n'):format(collectgarbage('count') * 1024)) io.stdout:flush() end io.read()"
RELEASES = {"luajit": r"LuaJIT 2\.1\S*( of \d{4}-\d\d-\d\d)?", **{f"lua5.{n}": rf"PUC Lua 5\.{n}\.\d+" for n in (1, 2, 3, 4)}}
NOBODY = pwd.getpwnam("nobody").pw_uid
ID = "3f4a5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f90112233445566778aa"
MAPS = "import mmap, os, sys; m = mmap.mmap(os.open(sys.argv[1], 0), 0, prot=5); print('ready', flush=True); sys.stdin.read()"
AS_NOBODY = ["setpriv", "--reuid", NOBODY, "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]


def ps(*args, before=()):
    """nobody may not be able to open the tool's path."""
    tool = os.open(vms.LUABPF, os.O_RDONLY)
    try:
        return subprocess.run([*map(str, before), f"/proc/self/fd/{tool}", "ps", *args], capture_output=True, text=True,
                              timeout=vms.HANG, stdin=subprocess.DEVNULL, env=vms.clean_env(), pass_fds=[tool])
    finally:
        os.close(tool)


def by_pid(r):
    assert r.returncode == 0, r
    got = json.loads(r.stdout)
    assert [p["pid"] for p in got] == sorted({p["pid"] for p in got})
    return {p["pid"]: p for p in got}


HEADS = ["PID", "USER", "VM", "JIT", "VMS", "MEMORY", "THREADS", "CONTAINER", "COMMAND"]


def rows(r):
    """Of the table: {pid: {column: text}}. Two blanks or more are between columns, and in commands, perhaps."""
    assert r.returncode == 0, r
    head, *lines = r.stdout.splitlines()
    assert head.split() == HEADS, head
    found = {}
    for line in lines:
        if line[:head.index("USER")].strip():
            cells = re.split(r" {2,}", line.strip(), maxsplit=len(HEADS) - 1)
            last = found[int(cells[0])] = dict(zip(HEADS, cells, strict=True), problem="")
        else:
            last["problem"] = line.strip()
    return found


HOSTILE = ["a\033[2J\nb", b"\xff", "\u202e", "x" * 20000]


class Machine:
    """Interpreters idle and busy, with two VMs, in namespaces and a container's cgroup, as another user; what luabpf
    prints of them, as root and as that user."""

    def __init__(self, public):
        with contextlib.ExitStack() as stack:
            def start(argv, **kw):
                return stack.enter_context(vms.Target(argv, **kw)).ready()
            idle = {vm: stack.enter_context(vms.Target([vm, "-e", COUNT])) for vm in RELEASES}
            self.counted = {vm: [int(t.line()), int(t.line())][1] for vm, t in idle.items()}
            self.targets = {(vm, "idle"): t.pid for vm, t in idle.items()}
            self.joff = start(["luajit", "-e", f"jit.off() {IDLE}"]).pid
            box = start(["unshare", "-m", "-p", "-f", "--mount-proc", "lua5.4", "-e", IDLE])
            self.boxed = int(Path(f"/proc/{box.pid}/task/{box.pid}/children").read_text())
            self.nest = start([vms.HOSTS / "puc/nest-5.4", 1]).pid
            self.nobodys = start([*AS_NOBODY, "luajit", "-e", IDLE]).pid
            gone = Path(shutil.copy(shutil.which("luajit"), public))
            self.deleted = start([*AS_NOBODY, gone, "-e", IDLE]).pid
            gone.unlink()
            self.contained = start(["luajit", "-e", IDLE]).pid
            two = start([vms.HOSTS / "two", "threads", 1e6, "libluajit-5.1.so.2", "a", "liblua5.4.so.0", "b"])
            two.go()
            vms.wait_until(lambda: len(os.listdir(f"/proc/{two.pid}/task")) == 3)
            self.two = two.pid
            p = stack.enter_context(subprocess.Popen(["luajit", "-e", IDLE, *HOSTILE], stdin=subprocess.PIPE,
                                                     stdout=subprocess.PIPE))
            stack.callback(p.kill)
            assert p.stdout.readline() == b"ready\n"
            self.hostile = p.pid
            self.odd_file = public / "odd\033[2J.so"
            make_odd(self.odd_file)
            self.odd = start(["python3", "-c", MAPS, self.odd_file]).pid
            self.plain = start(["python3", "-c", "print('ready', flush=True); input()"]).pid
            self.targets |= {(vm, "busy"): start([vm, "-e", BUSY]).pid for vm in RELEASES}
            path = public / "cgroup"
            path.write_text(f"0::/system.slice/docker-{ID}.scope/init.scope\n")
            contained = ["unshare", "-m", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh", path,
                         f"/proc/{self.contained}/cgroup"]
            table = ps(before=contained)
            self.text, self.table, self.json = table.stdout, rows(table), by_pid(ps("--json", before=contained))
            self.measured = ps("-v").stdout
            refused = ps("--json", before=AS_NOBODY)
            self.nobody_sees, self.nobody_err = by_pid(refused), refused.stderr
            self.exe = {pid: os.readlink(f"/proc/{pid}/exe") for pid in self.targets.values()}
            self.maps = {pid: Path(f"/proc/{pid}/maps").read_text() for pid in self.targets.values()}


def make_odd(path):
    """A LuaJIT in which vmstate is elsewhere, but not in all of the code."""
    known = Path(shutil.which("luajit")).resolve().read_bytes()
    vmstate = (184 - 3968).to_bytes(4, "little", signed=True)
    assert known.count(vmstate) > 10
    path.write_bytes(known.replace(vmstate, (188 - 3968).to_bytes(4, "little", signed=True), known.count(vmstate) // 2))


@pytest.fixture(scope="module")
def machine(root):
    with vms.public_dir() as public:
        yield Machine(public)


def both(machine, pid):
    return machine.table[pid], machine.json[pid]


def test_interpreters(machine):
    """Idle or busy, each with its release."""
    for (vm, how), pid in machine.targets.items():
        row, one = both(machine, pid)
        script = COUNT if how == "idle" else BUSY
        assert re.fullmatch(RELEASES[vm], row["VM"]), row
        assert (row["USER"], row["THREADS"], row["COMMAND"], row["problem"]) == ("root", "1", f"{vm} -e {script}", "")
        assert (one["user"], one["uid"], one["threads"], one["command"], one["problem"]) == \
            ("root", 0, 1, f"{vm} -e {script}", None)
        assert one["vm"] == row["VM"] == one["vms"][0]["release"] and len(one["vms"]) == 1


def swapped(pid):
    """Pages that are swapped out are not searched."""
    return not re.search(r"^VmSwap:\s+0 kB$", Path(f"/proc/{pid}/status").read_text(), re.M)


def test_states(machine):
    """One VM each, with the memory that the interpreter itself counts, and its JIT compiler's state."""
    for (vm, how), pid in machine.targets.items():
        row, one = both(machine, pid)
        [state] = one["vms"][0]["states"]
        jit = "on" if vm == "luajit" else None
        assert row["JIT"] == (jit or "-") and row["VMS"] == ("1" if one["vm_count_complete"] else "1+"), (row, one)
        assert one["vm_count_complete"] or swapped(pid), one
        assert (one["jit"], one["vms"][0]["jit"], one["vm_count"]) == (jit, jit, 1), one
        assert state.get("jit") == (True if jit else None) and re.fullmatch("0x[0-9a-f]+", state["global_state"])
        assert state["memory"] == one["memory"] and re.fullmatch(r"\d+K|\d\.\dM", row["MEMORY"]), (row, one)
        if how == "idle":
            assert 0 <= one["memory"] - machine.counted[vm] < 10000, (one, machine.counted[vm])


def test_several_states(machine):
    row, one = both(machine, machine.nest)
    assert row["VMS"].rstrip("+") == "2" and one["vm_count"] == 2, row
    assert len(one["vms"][0]["states"]) == 2 and one["memory"] == sum(s["memory"] for s in one["vms"][0]["states"])


def test_jit_off(machine):
    row, one = both(machine, machine.joff)
    assert (row["JIT"], one["jit"], one["vms"][0]["states"][0]["jit"]) == ("off", "off", False)


def test_json_has_layout_and_addresses(machine):
    for (vm, _), pid in machine.targets.items():
        found = machine.json[pid]["vms"][0]
        assert found["file"] == machine.exe[pid] and found["evidence"]
        assert found["family"] == ("LuaJIT" if vm == "luajit" else "PUC Lua")
        assert found["layout"].startswith(f"{found['family']} {'2.1' if vm == 'luajit' else vm[3:]}")
        text = [[int(x, 16) for x in line.split()[0].split("-")] for line in machine.maps[pid].splitlines()
                if line.split()[1][2] == "x" and line.split()[-1] == found["file"]]
        for what in "interpreter", "collector":
            if what == "collector" and vm == "luajit":
                assert found[what] is None
                continue
            lo, hi = [int(x, 16) for x in found[what]]
            assert any(start <= lo < hi <= end for start, end in text), (what, found)


def test_verbose_shows_what_was_measured(machine):
    """Below each process, the text that JSON has as evidence, too."""
    lines = machine.measured.splitlines()
    for (vm, _), pid in machine.targets.items():
        row = next(i for i, line in enumerate(lines) if line.split()[:1] == [str(pid)])
        found = machine.json[pid]["vms"]
        for vm, line in zip(found, lines[row + 1:], strict=False):
            assert line.startswith("   ") and line.strip().startswith(f"{vm['file']}: {vm['layout']}; interpreter {vm['interpreter'][0]}-"), line
            assert line.endswith(f"; {vm['evidence']}"), line


def test_namespaces(machine):
    """By the number that the host has for it."""
    row, one = both(machine, machine.boxed)
    assert re.fullmatch(RELEASES["lua5.4"], row["VM"]) and one["vms"][0]["file"].endswith("/lua5.4")


def test_container(machine):
    """Its cgroup file is another in luabpf's mount namespace: making a cgroup takes rights that root may lack."""
    row, one = both(machine, machine.contained)
    assert row["CONTAINER"] == one["container"] == f"docker:{ID[:12]}"
    assert one["container_id"] == ID and one["pod"] is None


def test_several_vms_and_threads(machine):
    row, one = both(machine, machine.two)
    assert sorted(row["VM"].split(", ")) == sorted(vm["release"] for vm in one["vms"]), row
    assert sorted(vm["family"] for vm in one["vms"]) == ["LuaJIT", "PUC Lua"]
    assert row["THREADS"] == "3" and one["threads"] == 3


def test_without_lua(machine):
    for pid in machine.plain, os.getpid():
        assert pid not in machine.table and pid not in machine.json


def test_unknown_build(machine):
    """It looks like Lua: the reason stands below its row."""
    row, one = both(machine, machine.odd)
    where = f"odd\\x1b[2J.so (in pid {machine.odd}): unknown LuaJIT build: vmstate does not fit"
    assert row["VM"] == "unknown" and where in row["problem"], row
    assert one["vm"] is None and one["vms"] == [] and where in one["problem"], one


def test_hostile_command(machine):
    """Bounded, one line, no control character; JSON is UTF-8."""
    row, one = both(machine, machine.hostile)
    assert "a\\x1b[2J\\x0ab" in row["COMMAND"] and row["COMMAND"].endswith("xxx") and len(row["COMMAND"]) < 5000
    assert "a\\x1b[2J\\x0ab \\xff \\xe2\\x80\\xae xxx" in one["command"], one
    assert not set(machine.text) - {"\n"} & {chr(i) for i in range(32)}


def test_other_users(machine):
    """Without rights the caller's own are shown, and the others counted."""
    assert machine.nobodys in machine.nobody_sees
    assert machine.nobody_sees[machine.nobodys]["user"] == machine.table[machine.nobodys]["USER"] == "nobody"
    assert machine.deleted in machine.nobody_sees and not set(machine.targets.values()) & set(machine.nobody_sees)
    assert all(p["uid"] == NOBODY for p in machine.nobody_sees.values())
    n = re.fullmatch(r"luabpf: (\d+) processes could not be looked into: run as root \(sudo luabpf ps\)\n",
                     machine.nobody_err)
    assert n and int(n.group(1)) > len(machine.targets), machine.nobody_err


@pytest.mark.parametrize("deleted", ["nothing", "program", "library"])
def test_refused_are_counted(root, deleted):
    """In a pid namespace of their own: this Lua, a shell and luabpf. Without rights a deleted library has no path that may be opened."""
    with vms.public_dir() as public:
        public.chmod(0o777)
        exe = shutil.copy(vms.HOSTS / "embed", public)
        library = shutil.copy(f"/usr/{vms.MULTIARCH}/libluajit-5.1.so.2", public)
        tool = os.open(vms.LUABPF, os.O_RDONLY)
        gone = {"nothing": "", "program": f"os.remove([[{exe}]])", "library": f"os.remove([[{library}]])"}[deleted]
        (public / "x.lua").write_text(f"{gone} os.execute('/proc/self/fd/{tool} ps')")
        r = subprocess.run(["unshare", "-m", "-p", "-f", "--mount-proc", *map(str, AS_NOBODY), exe, "-joff", public / "x.lua"],
                           capture_output=True, text=True, timeout=vms.HANG, stdin=subprocess.DEVNULL, pass_fds=[tool],
                           env=vms.clean_env({"LD_LIBRARY_PATH": str(public)}))
        os.close(tool)
    found = rows(r)
    if deleted == "library":
        assert not found and r.stderr == "luabpf: 1 process could not be looked into: run as root (sudo luabpf ps)\n", r
    else:
        assert set(found) == {1} and not r.stderr, r


def test_deleted_file(machine):
    """Root has it by its mapping."""
    row, one = both(machine, machine.deleted)
    assert re.fullmatch(RELEASES["luajit"], row["VM"]) and one["vms"][0]["file"].endswith("luajit (deleted)")


def test_full_disk(root):
    with open("/dev/full", "w") as full:
        for args in [], ["--json"]:
            r = subprocess.run([vms.LUABPF, "ps", *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=vms.HANG)
            assert r.returncode == 1 and r.stderr == "luabpf: standard output: No space left on device\n"
