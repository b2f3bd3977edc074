# SPDX-License-Identifier: BSD-2-Clause
"""The C library: include/luabpf.h, through ctypes, and its examples as a user compiles them."""
import collections
import ctypes
import errno
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import pprof
import vms
from api import CHILDREN, COMM, COROUTINES, FOLLOW, USER, ZONES, Recording

PATH = {"LUA_PATH": f"{vms.ROOT}/lua/?.lua;;"}
JUMPS = vms.OUT / "tests/e2e/api_jumps"
pytestmark = pytest.mark.usefixtures("root")


def busy(name="luajit-jon", *args):
    vm = vms.VMS[name]
    return vms.Target([*vm.argv, vms.LUA / "busy.lua", *args], {**vm.env, **PATH}).ready()


def until(recording, count, at_least=50):
    """Polls until so many samples were delivered."""
    while sum(count.values()) < at_least and recording.poll(1000) == 1:
        pass


def children():
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


# ---- what a sample shows ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["luajit-jon", "lua5.4"])
def test_samples(name, tmp_path):
    """All that is delivered is what was recorded: by function, as `luabpf report` prints the same samples."""
    seen, states, labels, jitp = collections.Counter(), set(), collections.defaultdict(set), collections.Counter()

    def call(s):
        seen[s.dump("F", 1)] += s.count
        jitp[s.dump("pFZ;", -100)] += s.count
        states.add(s.state)
        assert s.pid == s.tid == target.pid
        for label in ("comm", "vm", "exe", "zone", "coroutine", "cgroup", "nothing"):
            labels[label].add(s.label(label))

    with busy(name) as target, Recording() as r:
        r.attach(target.pid).set(ZONES, 1).set(COROUTINES, 1).start("fi1", call)
        end = target.cpu() + 0.4
        while target.cpu() < end:
            assert r.wait(20) == 1
        assert not seen
        r.stop().stop()
        saved = r.write(tmp_path / "x.pb.gz")
        lost, samples = r.losses(), r.samples()
    assert sum(seen.values()) == samples == sum(s.count for s in pprof.Profile(saved).samples) > 50
    assert sum(n for reason, n in lost.items() if reason != "outside-lua") <= 5, lost
    assert {"busy.lua:sum", "busy.lua:parse"} & {f.replace("M.", "") for f in seen} and states <= set("NICGJ") and "C" not in seen
    assert labels["comm"] == {vms.VMS[name].argv[0]} and labels["nothing"] == {None}
    assert {"parse", "render", "(unknown)", None} >= labels["zone"] >= {"parse", None}
    assert any(c.startswith("main:0x") for c in labels["coroutine"]) and len(labels["coroutine"]) == 2
    assert all(v.startswith("PUC Lua 5.4" if name == "lua5.4" else "LuaJIT 2.1") for v in labels["vm"])
    report = vms.luabpf("report", saved, "-jp=pFG", stats=False)
    assert sorted(report.out.splitlines()) == sorted(f"{stack} {n}" for stack, n in jitp.items())


def test_samples_say_which_vm_of_the_process_ran():
    """Three VMs, two of one library, take turns on one thread: each has a number of its own, and keeps it."""
    lua = f"/usr/{vms.MULTIARCH}/liblua5.4.so.0"
    vm_ids = collections.defaultdict(set)

    def call(s):
        assert s.label("vm_id") == (hex(s.vm_id) if s.vm_id else None)
        vm_ids[s.dump("l", -1).split(":")[0]].add(s.vm_id)

    with vms.Target([vms.HOSTS / "two", "turns", 0.4, lua, "a", lua, "b", f"/usr/{vms.MULTIARCH}/libluajit-5.1.so.2", "c"]) as target:
        target.ready()
        with Recording() as r:
            r.attach(target.pid).start("i1", call)
            target.go()
            while r.poll(100):
                pass
            r.stop()
    assert set(vm_ids) >= {"a", "b", "c"}, vm_ids
    assert all(len(vm_ids[name]) == 1 and 0 not in vm_ids[name] for name in "abc"), vm_ids
    assert len(vm_ids["a"] | vm_ids["b"] | vm_ids["c"]) == 3, vm_ids


def test_formats_of_luajits_documentation():
    """Its two examples, and each letter, on one sample."""
    got = {}

    def call(s):
        if not got and s.dump("f", -1) and len(s.dump("f\n", 10).splitlines()) == 4:
            for fmt, depth in [("l\n", 10), ("lZ;", -100), ("f", 1), ("F", 1), ("l", 1), ("pl", 1), ("fZ < ", 2), ("fZ > ", -2),
                               ("<f|l>", 1), ("f", 0), ("Z", 3), ("", 3), ("%s%n f", 1), ("fZ < ", -1 << 31)]:
                got[fmt, depth] = s.dump(fmt, depth)

    with busy("lua5.4") as target, Recording() as r:
        r.attach(target.pid).start("l", call)
        while not got:
            r.poll(100)
        assert sum(r.losses().values()) < 1000
    lines = got["l\n", 10].split("\n")
    assert len(lines) == 5 and lines[-1] == "" and re.fullmatch(r"busy\.lua:\d+|\[?[\w.+]+\]?", lines[0])
    stack = got["lZ;", -100].split(";")
    assert [line for line in reversed(lines[:-1])] == stack
    assert got["F", 1].endswith(got["f", 1]) and got["l", 1] == lines[0]
    assert got["fZ < ", 2].split(" < ") == got["fZ > ", -2].split(" > ")[::-1]
    assert got["<f|l>", 1] == f"<{got['f', 1]}|{got['l', 1]}>"
    assert got["f", 0] == got["Z", 3] == got["", 3] == ""
    assert got["%s%n f", 1] == f"%s%n {got['f', 1]}"
    assert len(got["fZ < ", -1 << 31].split(" < ")) == 4
    assert got["pl", 1].startswith(str(vms.LUA / "busy.lua") + ":")


# ---- callbacks ------------------------------------------------------------------------------------------


def test_a_callback_that_jumps_out():
    with busy() as target:
        done = subprocess.run([JUMPS, str(target.pid)], capture_output=True, text=True, timeout=vms.HANG)
    assert done.returncode == 0, done.stderr
    calls, jumps, delivered, samples = map(int, done.stdout.split())
    assert 0 < jumps < calls and delivered == samples >= 40


def test_stop_in_the_callback():
    calls = []

    def call(s):
        calls.append(s.count)
        if len(calls) == 2:
            r.stop()
            assert s.dump("F", 1)  # it stays

    with busy() as target, Recording() as r:
        r.attach(target.pid).start("i1", call)
        while r.wait(50) == 1 and r.samples() < 50:
            pass
        assert r.poll(10000) == 0
        assert len(calls) == 2
        assert r.losses()["not-delivered"] == r.samples() - sum(calls) > 0
        assert r.poll(0) == r.wait(0) == 0
        r.stop()
        assert len(calls) == 2


def test_poll_inside_the_callback_is_harmless():
    depth, deepest = 0, 0

    def call(s):
        nonlocal depth, deepest
        depth += 1
        deepest = max(depth, deepest)
        n[s.dump("f", 1)] += s.count
        if depth == 1:
            r.poll(0)
        depth -= 1

    n = collections.Counter()
    with busy() as target, Recording() as r:
        r.attach(target.pid).start("i1", call)
        until(r, n)
        r.stop()
        assert sum(n.values()) == r.samples()


# ---- ends ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["poll", "wait"])
def test_a_target_that_ends(how):
    n = collections.Counter()
    with busy("luajit-jon", 0.5, "wait") as target, Recording() as r:
        r.attach(target.pid).start("i1", lambda s: n.update({s.dump("f", 1): s.count}))
        target.go()
        while getattr(r, how)(10000) == 1:
            pass
        assert target.p.wait() == 0
        assert how == "poll" or not n
        assert r.poll(0) == 0
        r.stop()
        assert sum(n.values()) == r.samples() > 20
        assert sum(v for k, v in r.losses().items() if k != "outside-lua") <= 5


def test_two_recordings_at_once():
    """In one thread, and in another one; of one target, and of another."""
    def record(r, ms, target, n):
        r.attach(target.pid).start(f"i{ms}", lambda s: n.update({s.pid: s.count}))

    with busy() as a, busy("lua5.3") as b, Recording() as one, Recording() as two, Recording() as three:
        n = [collections.Counter() for _ in range(3)]
        record(one, 1, a, n[0])
        record(two, 4, a, n[1])
        thread = threading.Thread(target=lambda: (record(three, 1, b, n[2]), until(three, n[2]), three.stop()))
        thread.start()
        end = a.cpu() + 0.4
        while a.cpu() < end:
            one.poll(10)
            two.poll(10)
        thread.join()
        one.stop()
        n_two = dict(n[1])
        one.free()
        one.at = None
        two.poll(0)
        two.stop()
        assert sum(n[1].values()) >= sum(n_two.values()) > 0
        assert set(n[0]) == set(n[1]) == {a.pid} and set(n[2]) == {b.pid}
        assert sum(n[0].values()) > 2 * sum(n_two.values())
        assert sum(n[2].values()) == three.samples() >= 50


def test_a_fork_of_the_host():
    """The child can do nothing with it, and does it no harm; it may record by itself."""
    n = collections.Counter()
    with busy() as target, Recording() as r:
        r.attach(target.pid).start("i1", lambda s: n.update({s.pid: s.count}))
        until(r, n, 10)
        child = os.fork()
        if not child:
            try:
                for call in (lambda: r.poll(0), lambda: r.wait(0), r.stop, r.losses, lambda: r.attach(1)):
                    with pytest.raises(OSError) as e:
                        call()
                    assert e.value.errno == errno.ECHILD and "forked" in str(e.value)
                r.free()
                mine, m = Recording(), collections.Counter()
                mine.attach(target.pid).start("i1", lambda s: m.update({s.pid: s.count}))
                until(mine, m, 10)
                mine.free()
                os._exit(0 if m else 2)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        before = sum(n.values())
        until(r, n, before + 20)
        assert sum(n.values()) >= before + 20
        r.stop()


def test_nothing_is_left_behind():
    """No descriptor, child, signal handler or right is another than before; nor is any during a recording."""
    def state():
        status = Path("/proc/self/status").read_text()
        fds = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]
        return children(), re.findall("(?:SigBlk|SigIgn|SigCgt|Cap|Seccomp).*", status), len(fds)

    libbpf = ctypes.CDLL("libbpf.so.1")
    libbpf.libbpf_set_print.restype = ctypes.c_void_p
    of_host = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: 0)
    usual = libbpf.libbpf_set_print(of_host)
    with Recording():
        pass
    before = state()
    with busy() as target:
        inside, threads = state(), set(os.listdir("/proc/self/task"))
        for end in ("free", "stop"):
            n = collections.Counter()
            with Recording() as r:
                r.attach(target.pid).start("i1", lambda s: n.update({s.pid: s.count}))
                until(r, n, 10)
                assert state()[:2] == inside[:2]
                assert libbpf.libbpf_set_print(of_host) == ctypes.cast(of_host, ctypes.c_void_p).value
                assert set(os.listdir("/proc/self/task")) <= threads
                if end == "stop":
                    r.stop()
    assert state() == before
    libbpf.libbpf_set_print(ctypes.c_void_p(usual))


def test_a_signal_ends_the_wait():
    """poll() returns early, and the recording goes on."""
    script = """import signal, sys; from api import Recording
signal.signal(signal.SIGALRM, lambda *_: None)
with Recording() as r:
    r.attach(int(sys.argv[1])).start("i1")
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)  # the first one may come before the wait has begun
    for wait in r.poll, r.wait:
        assert wait(10 * 3600 * 1000) == 1
    assert r.poll(1) == 1
signal.setitimer(signal.ITIMER_REAL, 0)  # at its exit Python restores the default action, which ends it
print("ok")"""
    with busy() as target:
        done = subprocess.run([sys.executable, "-c", script, str(target.pid)], cwd=vms.HERE, capture_output=True, text=True,
                              timeout=vms.HANG)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


# ---- targets -------------------------------------------------------------------------------------------


def test_all_processes_that_match():
    n = collections.Counter()
    with busy("luajit-jon") as a, busy("lua5.3") as b, Recording() as r:
        r.attach_all().narrow(COMM, "lua5.3").narrow(USER, str(os.getuid()))
        r.start("i1", lambda s: n.update({s.pid: s.count}))
        while n[b.pid] < 20:
            r.poll(50)
        assert a.pid not in n


@pytest.mark.parametrize("option,value,seen", [(FOLLOW, 1, True), (FOLLOW, 0, False), (CHILDREN, 1, True)])
def test_children(option, value, seen):
    """FOLLOW: what is forked from now on. CHILDREN: what is there. The parent runs for long enough."""
    script = "local a = ... if a then while true do end end {} io.popen('exec luajit ' .. arg[0] .. ' child') " \
             "print'ready' io.stdout:flush() {} while true do end"
    now, later = "io.read()", ""
    if option == CHILDREN:
        now, later = "", "io.read()"
    with vms.public_dir() as where:
        path = where / "x.lua"
        path.write_text(script.replace("{}", now and f"print'ready' io.stdout:flush() {now}", 1).replace("{}", later, 1))
        with vms.Target(["luajit", path]) as target, Recording() as r:
            target.ready()
            n = collections.Counter()
            r.attach(target.pid).set(option, value).start("i1", lambda s: n.update({s.pid: s.count}))
            target.go()
            while n[target.pid] < 200 or (seen and len(n) < 2):
                assert r.poll(100) == 1
            kids = Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text().split()
            for kid in kids:
                os.kill(int(kid), signal.SIGKILL)
    assert len(kids) == 1 and (set(n) == {target.pid, int(kids[0])}) == seen


def refused(code, sentence, call):
    with pytest.raises(OSError) as e:
        call()
    assert e.value.errno == code and sentence in str(e.value), e.value


def test_errors():
    with Recording() as r:
        assert r.error() == ""
        refused(errno.EINVAL, "has not begun", lambda: r.poll(0))
        refused(errno.EINVAL, "has not begun", r.losses)
        refused(errno.EINVAL, "has not begun", lambda: r.write("/dev/null"))
        assert r.lib.luabpf_fd(r.at) == -errno.EINVAL
        r.stop()
        refused(errno.EINVAL, "no process to record", lambda: r.start(""))
        refused(errno.EINVAL, "is not the number of a process", lambda: r.attach(0))
        refused(errno.EINVAL, "nothing to narrow", lambda: r.narrow(COMM, ""))
        refused(errno.EINVAL, "is nothing to narrow processes by", lambda: r.narrow(9, "x"))
        refused(errno.EINVAL, "'-1' is not the number of a user", lambda: r.narrow(USER, "-1"))
        refused(errno.EINVAL, "9 is no option", lambda: r.set(9, 1))
        r.attach(os.getppid(), 4194303)
        refused(errno.EINVAL, "is a target: name it, or all", r.attach_all)
        refused(errno.ENODATA, "no Lua in this process", lambda: r.start(""))
        assert r.samples() == 0 and not r.lib.luabpf_stop(r.at)
    with Recording() as r:
        refused(errno.ESRCH, "pid 4194303: no such process", lambda: r.attach(4194303).start(""))
    with Recording() as r:
        r.attach_all()
        refused(errno.EINVAL, "all processes are targets", lambda: r.attach(1))
    with busy() as target, Recording() as r:
        r.attach(target.pid, target.pid).start("i1")
        refused(errno.EBUSY, "has begun", lambda: r.start(""))
        refused(errno.EBUSY, "has begun", lambda: r.attach(1))
        assert r.lib.luabpf_write(r.at, 9999) == -errno.EBADF and "descriptor 9999" in r.error()
        assert r.poll(20) == 1
        r.stop()


# ---- the library as it is shipped ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    root = tmp_path_factory.mktemp("installed")
    subprocess.run(["make", "install", f"O={vms.OUT}", f"PREFIX={root}", "DESTDIR="], cwd=vms.ROOT, check=True,
                   capture_output=True, env={**os.environ, "MAKEFLAGS": ""})
    return root


def compile_with(installed, *args):
    env = {**os.environ, "PKG_CONFIG_PATH": str(installed / "lib/pkgconfig")}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "luabpf"], env=env, check=True, capture_output=True,
                           text=True).stdout.split()
    subprocess.run([*map(str, args), *flags, f"-Wl,-rpath,{installed}/lib"], check=True)


def test_the_header_is_plain(installed, tmp_path):
    source = tmp_path / "x.c"
    source.write_text("#include <luabpf.h>\nint main(void) { return luabpf_version()[0] != '0'; }\n")
    for compiler, standard, language in [("gcc", "c89", "c"), ("gcc", "c17", "c"), ("g++", "c++98", "c++")]:
        compile_with(installed, compiler, f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror", "-x", language, source,
                     "-x", "none", "-o", tmp_path / "x")
        assert subprocess.run([tmp_path / "x"]).returncode == 0


def test_an_exception_of_cxx_out_of_the_callback(installed, tmp_path):
    source = tmp_path / "x.cc"
    source.write_text("""
        #include <luabpf.h>
        #include <cstdlib>
        static int calls;
        static void callback(void *, luabpf_sample *, int, int) { if (calls++ < 3) throw calls; }
        int main(int, char **argv)
        {
            luabpf *r = luabpf_new();
            int caught = 0, err = luabpf_attach(r, atoi(argv[1]));
            if (!err) err = luabpf_start(r, "i1", callback, 0);
            while (!err && calls < 6)
                try { luabpf_poll(r, 20); } catch (int n) { if (n != ++caught) return 2; }
            if (!err) err = luabpf_stop(r);
            luabpf_free(r);
            return err || caught != 3;
        }""")
    compile_with(installed, "g++", source, "-o", tmp_path / "x")
    with busy() as target:
        assert subprocess.run([tmp_path / "x", str(target.pid)], timeout=vms.HANG).returncode == 0


def test_only_the_declared_functions_are_exported(installed):
    declared = set(re.findall(r"^LUABPF_API.*?(luabpf_\w+)\(", (installed / "include/luabpf.h").read_text(), re.M))
    names = subprocess.run(["nm", "-D", "--defined-only", installed / "lib/libluabpf.so.0"], check=True, capture_output=True,
                           text=True).stdout
    assert {line.split()[-1] for line in names.splitlines() if " A " not in line} == {f"{d}@@LUABPF_0.1" for d in declared}
    pages = {page.stem for page in (installed / "share/man/man3").iterdir()}
    assert declared <= pages


@pytest.mark.parametrize("lua,version", [("luajit", "5.1"), ("lua5.4", "5.4")])
def test_the_lua_modules_are_installed(installed, lua, version):
    """They find the library beside them."""
    env = vms.clean_env({"LUA_PATH": f"{installed}/share/lua/{version}/?.lua", "LUA_CPATH": f"{installed}/lib/lua/{version}/?.so"})
    done = subprocess.run([lua, "-e", "require('luabpf.zone') print(require('luabpf.profile')._VERSION)"], env=env,
                          capture_output=True, text=True)
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", done.stdout), done.stderr


def test_the_rockspec():
    """It names this version, and files that exist."""
    [spec] = vms.ROOT.glob("*.rockspec")
    script = """dofile(arg[1]) print(version)
        for _, m in pairs(build.modules) do for _, f in ipairs(type(m) == "string" and { m } or m.sources) do print(f) end end"""
    done = subprocess.run(["lua5.4", "-", spec], input=script, capture_output=True, text=True, check=True)
    version, *files = done.stdout.split()
    assert f"VERSION := {version.removesuffix('-1')}\n" in (vms.ROOT / "Makefile").read_text()
    assert spec.name == f"luabpf-{version}.rockspec" and len(files) == 3 and all((vms.ROOT / f).exists() for f in files)


@pytest.mark.parametrize("page", sorted(p.name for p in (vms.ROOT / "docs").glob("*.[13]")))
def test_manual_pages(page):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", vms.ROOT / "docs" / page], capture_output=True, text=True)
    assert not done.stdout + done.stderr


def test_example_top(installed, tmp_path):
    compile_with(installed, "cc", "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "top", vms.ROOT / "examples/top.c")
    with busy("luajit-jon", 1, "wait") as target, vms.Target([tmp_path / "top", target.pid]) as top:
        assert top.line() == "0 samples"  # it has begun
        target.go()
        out = top.rest()
        assert top.p.wait() == 0 and re.search(r"^ *\d+\.\d %  +\d+ % compiled  busy\.lua:(M\.)?sum$", out, re.M), out
    done = subprocess.run([tmp_path / "top", "4194303"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "top: pid 4194303: no such process\n")


def test_example_folded(installed, tmp_path):
    compile_with(installed, "cc", "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "folded", vms.ROOT / "examples/folded.c")
    mine = vms.link(tmp_path / "luajit-folded", "luajit")
    with vms.Target([mine, vms.LUA / "busy.lua"]) as target:
        target.ready()
        tool = subprocess.Popen([tmp_path / "folded", mine.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert "sampling" in tool.stderr.readline()
        target.spend(0.4)
        tool.send_signal(signal.SIGINT)
        out, err = tool.communicate(timeout=vms.HANG)
    assert tool.returncode == 0 and not err
    assert re.search(rf"^luajit-folded-{target.pid};.*;parse;.*sum \d+$", out, re.M)
