# SPDX-License-Identifier: BSD-2-Clause
"""luabpf doctor: each line is a check; what can be tried is tried; exit 1 when something is missing."""
import os
import re
import resource
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

import vms

pytestmark = pytest.mark.usefixtures("root")
LOOP = "local x = 0 while true do for i = 1, 1e5 do x = x + i % 7 end end"


class Chart:
    """What doctor said: lines of (verdict, object, text)."""

    def __init__(self, r):
        self.code, self.text = r.returncode, r.stdout
        assert r.stderr == "", r
        self.lines = []
        for line in r.stdout.splitlines():
            m = re.fullmatch(r"(ok|warn|fail) +([^:]+): (.+)", line)
            assert m, line
            self.lines.append(m.groups())
        assert self.code == (1 if any(v == "fail" for v, _, _ in self.lines) else 0), self.text

    def of(self, thing):
        found = [(v, t) for v, o, t in self.lines if o == thing]
        assert found, f"nothing on {thing}: {self.text}"
        return found[0] if len(found) == 1 else found

    def verdicts(self, *things):
        return [self.of(t)[0] for t in things]


def doctor(*args, before=(), tool=None, **kw):
    argv = [*map(str, before), str(tool or vms.LUABPF), "doctor", *map(str, args)]
    return Chart(subprocess.run(argv, capture_output=True, text=True, timeout=vms.HANG, stdin=subprocess.DEVNULL,
                                env=vms.clean_env(), **kw))


def busy(argv):
    return vms.Target(argv).spend(0.02)


@pytest.fixture
def loop():
    with busy(["luajit", "-joff", "-e", LOOP]) as t:
        yield t


def test_machine():
    c = doctor()
    assert c.code == 0
    assert c.verdicts("kernel", "kernel BTF", "privilege", "pid namespace", "perf events", "BPF") == ["ok"] * 6
    assert os.uname().release in c.of("kernel")[1]
    paranoid = Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip()
    closed = " (not for who has CAP_PERFMON)" if int(paranoid) > 0 else ""
    assert c.of("perf_event_paranoid") == ("ok", paranoid + closed)
    assert not any(v == "warn" for v, o, _ in c.lines if o.startswith("unprivileged"))


def text_mapping(pid, path):
    """[start, end) of the executable mapping of a file."""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        fields = line.split()
        if fields[1][2] == "x" and fields[-1] == str(path):
            return [int(x, 16) for x in fields[0].split("-")]
    raise AssertionError(f"{path} is not mapped")


def check_addresses(text, pid, path):
    lo, hi = text_mapping(pid, path)
    ranges = [[int(x, 16) for x in r] for r in re.findall(r"0x([0-9a-f]+)-0x([0-9a-f]+)", text)]
    assert ranges
    for a, b in ranges:
        assert lo <= a < b <= hi, (text, hex(lo), hex(hi))
    return len(ranges)


def test_luajit(loop):
    c = doctor("-p", loop.pid)
    exe = Path(f"/proc/{loop.pid}/exe").readlink()
    assert c.of("process") == ("ok", f"pid {loop.pid}, 1 thread, " + (f"{exe}" if exe.name == "luajit" else f"luajit ({exe})"))
    verdict, text = c.of("VM")
    assert verdict == "ok" and text.startswith(f"{exe}: LuaJIT 2.1") and "vmstate" in text
    assert check_addresses(text, loop.pid, exe) == 1
    verdict, text = c.of("proof")
    done, tried = map(int, re.search(r"proved on the live target: (\d+) of (\d+) walks came to their end", text).groups())
    assert verdict == "ok" and 0 < done <= tried and tried - done <= 1, text
    assert loop.p.poll() is None


@pytest.mark.parametrize("version", ["5.1", "5.2", "5.3", "5.4"])
def test_puc(version):
    """The row, where interpreter and collector are, and which register holds pc."""
    with busy([f"lua{version}", "-e", LOOP]) as t:
        c = doctor("-p", t.pid)
        exe = Path(f"/proc/{t.pid}/exe").readlink()
        verdict, text = c.of("VM")
        assert verdict == "ok" and text.startswith(f"{exe}: PUC Lua {version}"), c.text
        assert check_addresses(text, t.pid, exe) == 2, text
        in_memory = version in ("5.2", "5.3")  # they save it before each instruction
        assert re.search(r"; pc is saved before each" if in_memory else r"; pc in r[a-z0-9]+;", text), text
        assert c.verdicts("proof") == ["ok"] and c.code == 0, c.text


MAPS = "import mmap, os, sys; m = mmap.mmap(os.open(sys.argv[1], 0), 0, prot=5); print('ready', flush=True); sys.stdin.read()"


def test_unknown_build(tmp_path):
    """A file in which vmstate is elsewhere, but not in all of the code: the message says what does not fit."""
    known = Path(shutil.which("luajit")).resolve().read_bytes()
    vmstate = (184 - 3968).to_bytes(4, "little", signed=True)  # as r14 (DISPATCH) sees it
    assert known.count(vmstate) > 10
    odd = tmp_path / "odd\033[2J.so"
    odd.write_bytes(known.replace(vmstate, (188 - 3968).to_bytes(4, "little", signed=True), known.count(vmstate) // 2))
    with vms.Target(["python3", "-c", MAPS, odd]) as t:
        t.ready()
        c = doctor("-p", t.pid)
        verdict, text = c.of("VM")
        assert c.code == 1 and verdict == "fail", c.text
        assert f"{tmp_path}/odd\\x1b[2J.so (in pid {t.pid}): " in text and "vmstate does not fit" in text, text
        assert not any(o == "proof" for _, o, _ in c.lines)


def test_verbose_names_the_modules(loop):
    r = vms.record(loop, 0.1, "-v", stats=False)
    assert r.code == 0
    line = next(x for x in r.err.splitlines() if x.startswith(f"luabpf: pid {loop.pid}: "))
    assert "LuaJIT 2.1" in line and "vmstate" in line
    assert check_addresses(line, loop.pid, Path(f"/proc/{loop.pid}/exe").readlink()) == 1
    assert re.search(r"^luabpf: in the kernel: \d+ resolved, .*ended by signal$", r.err, re.M), r.err
    assert "interpreter" not in vms.luabpf("-p", loop.pid, "-d", 0.1, stats=False).err


def test_verbose_of_a_command():
    r = vms.luabpf("-v", "--", "luajit", "-e", "for i = 1, 1e7 do end", stats=False)
    assert r.code == 0 and re.search(r"^luabpf: pid \d+: /.*luajit.*: LuaJIT 2.1.*interpreter 0x", r.err, re.M), r.err


def test_verbose_names_what_came_later():
    """Each VM: of a command's children, and after each exec. One that is found while its process is in exec is named
    again when the new program has its first sample."""
    busy = "local t = os.clock() repeat for i = 1, 1e4 do end until os.clock() - t >= 0.6"
    r = vms.luabpf("-v", "-F", 500, "--", "sh", "-c", f"lua5.4 -e '{busy}'; exec luajit -e '{busy}'", stats=False)
    lines = list(dict.fromkeys(re.findall(r"^luabpf: pid (\d+): (/\S+): (.*); interpreter 0x", r.err, re.M)))
    assert r.code == 0 and len(lines) == 2 and len({pid for pid, _, _ in lines}) == 2, r.err
    assert "lua5.4" in lines[0][1] and "PUC Lua 5.4" in lines[0][2], r.err
    assert "luajit" in lines[1][1] and "LuaJIT 2.1" in lines[1][2], r.err


def test_idle():
    """Idle is no failure, but nothing is proved."""
    with vms.Target(["luajit", "-e", "print('ready') io.stdout:flush() io.read()"]) as t:
        t.ready().sleeps()
        c = doctor("-p", t.pid)
        assert c.code == 0 and c.of("VM")[0] == "ok"
        verdict, text = c.of("proof")
        assert verdict == "warn" and "the process is idle; ask again" in text


def test_several(loop):
    """One that is none does not hide the other."""
    with vms.Target(["sleep", "30"]) as none:
        c = doctor("-p", f"{none.pid},{loop.pid},4194303")
        assert [v for v, _ in c.of("process")] == ["ok", "ok", "fail"]
        assert [v for v, _ in c.of("VM")] == ["fail", "ok"]
        assert "no Lua in this process" in c.of("VM")[0][1] and c.of("proof")[0] == "ok"
        assert "4194303: no such process" in c.text


def test_many(loop):
    """All in one window; a summary; of more than eight only what is not as it should be, but for -v."""
    idle = "print('ready') io.stdout:flush() io.read()"
    with ExitStack() as stack:
        targets = [stack.enter_context(vms.Target([vm, "-e", idle])).ready() for vm in ["lua5.4"] * 6 + ["luajit"] * 3]
        none = stack.enter_context(vms.Target(["sleep", "30"]))
        pids = ",".join(str(t.pid) for t in [*targets, loop, none])
        c, verbose = doctor("-p", pids), doctor("-v", "-p", pids)
    for chart in c, verbose:
        assert chart.code == 1
        verdict, text = chart.of("processes")
        assert verdict == "ok" and text.startswith("11: 10 can be profiled, 9 of them not proved as they ran no Lua, 1 cannot; PUC Lua 5.4"), text
        assert re.search(r"; PUC Lua 5\.4[^;]*: 6; LuaJIT 2\.1[^;]*: 4$", text), text
    assert c.of("process") == ("ok", f"pid {none.pid}, 1 thread, {shutil.which('sleep')}"), c.text
    assert c.of("VM")[0] == "fail" and "proof: " not in c.text, c.text
    assert len(verbose.of("process")) == 11 and len(verbose.of("proof")) == 10
    assert [v for v, _ in verbose.of("proof")].count("ok") == 1, verbose.text


def test_unprivileged(loop):
    tool = os.open(vms.LUABPF, os.O_RDONLY)  # nobody may not be able to open the path
    c = doctor("-p", loop.pid, before=["setpriv", "--reuid", "65534", "--clear-groups"], tool=f"/proc/self/fd/{tool}",
               pass_fds=[tool])
    os.close(tool)
    for thing in ("privilege", "perf events", "BPF"):
        verdict, text = c.of(thing)
        assert verdict == "fail" and "CAP_BPF" in text and "run as root" in text
    assert c.of("pid namespace")[0] == "ok"
    paranoid = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    assert c.of("perf_event_paranoid")[0] == ("warn" if paranoid > 0 else "ok")


@pytest.mark.parametrize("cap", ["sys_ptrace", "bpf", "perfmon"])
def test_one_capability_missing(cap):
    """CAP_SYS_ADMIN stands for BPF and PERFMON, not for SYS_PTRACE."""
    c = doctor(before=["setpriv", f"--bounding-set=-{cap}", f"--inh-caps=-{cap}"])
    verdict, text = c.of("privilege")
    if cap == "sys_ptrace":
        assert (verdict, text.split(";")[0]) == ("fail", "user 0 lacks CAP_SYS_PTRACE")
    else:
        assert verdict == "ok" and c.code == 0
    both = doctor(before=["setpriv", f"--bounding-set=-{cap},-sys_admin", f"--inh-caps=-{cap},-sys_admin"])
    assert both.of("privilege") == ("fail", f"user 0 lacks CAP_{cap.upper()}; root lacks them in a container: start it with --privileged, or --cap-add each")


def test_user_namespace():
    c = doctor(before=["unshare", "-U", "-r"])
    for thing in ("privilege", "perf events", "BPF"):
        assert c.of(thing)[0] == "fail" and "run luabpf as root of the host" in c.of(thing)[1]


def test_pid_namespace():
    c = doctor(before=["unshare", "-p", "-f"])
    verdict, text = c.of("pid namespace")
    assert c.code == 1 and verdict == "fail" and "container" in text and "on the host" in text
    assert c.of("BPF")[0] == "ok"


def test_few_open_files():
    c = doctor(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)))
    assert c.of("BPF")[0] == "fail" and "Too many open files; raise the limit of open files: ulimit -n" in c.of("BPF")[1]


def test_terminal_codes_in_a_path(tmp_path):
    """The name of an executable is its owner's choice: no control character, no forged line."""
    exe = tmp_path / "a\033[31mb\nok    proof: forged"
    shutil.copy(Path(shutil.which("luajit")).resolve(), exe)
    with busy([exe, "-joff", "-e", LOOP]) as t:
        c = doctor("-p", t.pid)
        assert c.code == 0 and "a\\x1b[31mb\\x0aok" in c.of("process")[1], c.text
        assert "a\\x1b[31mb\\x0aok" in c.of("VM")[1] or "\\012" in c.of("VM")[1]
        err = vms.luabpf("-v", "-p", t.pid, "-d", 0.1, stats=False).err
    for text in (c.text, err):
        assert not set(text) - {"\n"} & {chr(i) for i in range(32)}, repr(text)


def test_full_disk():
    with open("/dev/full", "w") as full:
        r = subprocess.run([vms.LUABPF, "doctor"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=vms.HANG)
    assert r.returncode == 1 and r.stderr == "luabpf: standard output: No space left on device\n"
