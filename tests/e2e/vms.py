# SPDX-License-Identifier: BSD-2-Clause
"""The tool, the interpreters it is tried on, and how both are run. For the end-to-end tests."""
import contextlib
import json
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = Path(os.environ.get("O", ROOT / "build")).resolve()
LUABPF = OUT / "luabpf"
LUA = HERE / "lua"
HOSTS = OUT / "tests/hosts"
LUAJIT2 = OUT / "luajit2/usr"
TEXLUAJIT = OUT / "texluajit/usr"
GC32 = OUT / "texluajit/as-luajit"  # fetch_texluajit()
HAPROXY = OUT / "haproxy/usr"
NGINX = OUT / "nginx/usr"
NEOVIM = OUT / "neovim/usr"
MULTIARCH = "lib/x86_64-linux-gnu"
HANG = 300  # s; what takes longer hangs: how fast or busy the machine is must not matter


class VM:
    """An interpreter: how to run a script under it."""

    def __init__(self, name, argv, env=None, puc=None):
        self.name, self.argv, self.env = name, [str(a) for a in argv], env or {}
        self.host = name.startswith("host")
        self.puc = puc  # version of PUC Lua, None: LuaJIT

    def __repr__(self):
        return self.name


L2ENV = {"LUA_PATH": f"{LUAJIT2}/share/luajit-2.1.0-beta3/?.lua;;"}
VMS = {vm.name: vm for vm in [
    VM("luajit-joff", ["luajit", "-joff"]),
    VM("luajit-jon", ["luajit", "-jon"]),
    VM("luajit2-joff", [LUAJIT2 / "bin/luajit", "-joff"], L2ENV),
    VM("luajit2-jon", [LUAJIT2 / "bin/luajit", "-jon"], L2ENV),
    VM("host-joff", [HOSTS / "embed", "-joff"]),
    VM("host-jon", [HOSTS / "embed", "-jon"]),
    VM("host2-joff", [HOSTS / "embed", "-joff"],
       {"LD_LIBRARY_PATH": f"{LUAJIT2}/{MULTIARCH}", **L2ENV}),
    *(VM(f"lua{v}", [f"lua{v}"], puc=v) for v in ("5.1", "5.2", "5.3", "5.4")),
    *(VM(f"host{v}-{how}", [HOSTS / f"puc/embed-{v}", how], puc=v)
      for v in ("5.1", "5.2", "5.3", "5.4") for how in ("call", "resume")),
]}
# Without GC64: fetch_texluajit() fetches the library. Not in test_truth.py: test_gc32.py has its workloads.
VMS32 = {f"host32-{jit}": VM(f"host32-{jit}", [HOSTS / "embed", f"-{jit}"],
                             {"LD_LIBRARY_PATH": GC32, "LUA_PATH": "/usr/share/luajit-2.1.0-beta3/?.lua;;"})
         for jit in ("joff", "jon")}
LUAJITS = [name for name, vm in VMS.items() if not vm.puc]
PUCS = [name for name, vm in VMS.items() if vm.puc]


def clean_env(extra=None):
    drop = ("LUAJIT_PROFILEFILE", "SUDO_UID", "SUDO_GID", "SUDO_USER", "LUA_PATH", "LUA_INIT")
    return {**{k: v for k, v in os.environ.items() if k not in drop}, **(extra or {})}


@contextlib.contextmanager
def public_dir(where=None):
    """A directory that everyone may search; pytest's own are root's."""
    with tempfile.TemporaryDirectory(prefix="luabpf-test-", dir=where) as path:
        os.chmod(path, 0o755)
        yield Path(path)


def link(path, program):
    """A program under another name, which is that of its process then."""
    path.symlink_to(shutil.which(program))
    return path


def fetch(where, *packages):
    """Debian packages that cannot be installed beside others, or that would start a service."""
    r = subprocess.run([HERE / "fetch", where, *packages], capture_output=True, text=True, timeout=2 * HANG)
    if r.returncode:
        raise RuntimeError(r.stderr)


def fetch_luajit2():
    fetch(LUAJIT2.parent, "luajit2", "libluajit2-5.1-2", "libluajit2-5.1-common")


def fetch_texluajit():
    """The library path of a LuaJIT without GC64: Debian's for luajittex, under the name that hosts link."""
    fetch(TEXLUAJIT.parent, "libtexluajit2")
    GC32.mkdir(exist_ok=True)
    link = GC32 / "libluajit-5.1.so.2"
    if not link.exists():
        link.symlink_to(TEXLUAJIT / MULTIARCH / "libtexluajit.so.2")
    return GC32


def fetch_haproxy():
    """haproxy's path and environment."""
    installed = shutil.which("haproxy", path="/usr/sbin:/sbin:" + os.environ.get("PATH", ""))
    if installed:
        return installed, {}
    fetch(HAPROXY.parent, "haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1")
    return HAPROXY / "sbin/haproxy", {"LD_LIBRARY_PATH": f"{HAPROXY}/{MULTIARCH}"}


def fetch_nginx():
    """The directory that has nginx, its lua module and what these need."""
    fetch(NGINX.parent, "nginx", "libnginx-mod-http-lua", "libnginx-mod-http-ndk", "lua-resty-core", "lua-resty-lrucache",
          "libluajit2-5.1-2")
    return NGINX


def fetch_neovim():
    """nvim's path and environment."""
    fetch(NEOVIM.parent, "neovim", "libluajit-5.1-2", "libmsgpackc2", "libtermkey1", "libtree-sitter0",
          "libunibilium4", "libuv1", "libvterm0", "lua-luv")
    return NEOVIM / "bin/nvim", {"LD_LIBRARY_PATH": f"{NEOVIM}/{MULTIARCH}"}


@contextlib.contextmanager
def no_hang(process):
    """Kills a process that says nothing for too long, and its session if it leads one: the reader gets an end of file."""
    def kill():
        if os.getsid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    timer = threading.Timer(HANG, kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Target:
    """A process of ours; killed at the end, by its pid."""

    def __init__(self, argv, env=None, **kw):
        kw.setdefault("stdin", subprocess.PIPE)
        kw.setdefault("stdout", subprocess.PIPE)
        self.p = subprocess.Popen([str(a) for a in argv], text=True, env=clean_env(env), **kw)
        self.pid = self.p.pid

    def line(self):
        with no_hang(self.p):
            return self.p.stdout.readline().rstrip("\n")

    def rest(self):
        """All that it prints until it ends."""
        with no_hang(self.p):
            return self.p.stdout.read()

    def ready(self):
        got = self.line()
        assert got == "ready", got
        return self

    def go(self):
        self.p.stdin.write("go\n")
        self.p.stdin.flush()

    def cpu(self):
        """CPU time in seconds that its threads used so far."""
        return time.clock_gettime(~self.pid << 3 | 2)  # clock_getcpuclockid(3)

    def spend(self, seconds):
        """Returns when it has used so many seconds of CPU time more, or has ended."""
        end = self.cpu() + seconds
        wait_until(lambda: self.p.poll() is not None or self.cpu() >= end)
        return self

    def sleeps(self):
        """Returns when it waits for something."""
        wait_until(lambda: Path(f"/proc/{self.pid}/stat").read_text().rsplit(") ", 1)[1][0] == "S")
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.p.poll() is None:
            self.p.kill()
        self.p.wait()
        for f in (self.p.stdin, self.p.stdout):
            if f:
                try:
                    f.close()
                except BrokenPipeError:
                    pass


class Done:
    """What a run of luabpf left: code, out, err, the parsed --stats; and the seconds of all CPUs that another machine had meanwhile."""

    def __init__(self, code, out, err, stats, stolen):
        self.code, self.out, self.err, self.stats, self.stolen = code, out, err, stats, stolen

    @property
    def missing(self):
        """Share of the samples due whose timer the kernel missed. On a machine of its own it is under 1 %; where
        others take the processor away it is not, and nobody knows which function's samples are those."""
        return max(0.0, 1 - self.stats["achieved_hz"] / self.stats["requested_hz"])

    def fits(self, count, seconds, ends=0.01, idle=0.0):
        """Is this count of samples what so many seconds of CPU time give? But for five standard deviations (a false
        alarm in 1.7 million), a share for the ends, one that the clock counts and the process may not have used,
        and what the timer missed: all of that may have been here, but never most of what is here."""
        want = seconds * self.stats["requested_hz"]
        noise = 5 * math.sqrt(want) + ends * want + 5
        missed = min(self.missing * (self.stats["samples"] + want), 0.95 * want)
        return -noise - idle * want - missed <= count - want <= noise

    def is_all_time(self, count, seconds, hz, lost=0):
        """Under --all: is this count of samples what so many seconds of one's CPU time give, if up to so many lost ones were its
        own? Of seconds * hz samples there are at most five standard deviations (a false alarm in 3.5 million) and 5 % more, for
        what a workload's clock leaves out, and those of stolen time: events are due by the CPU's time, which has it, but no
        process's CPU time does. And there are at least 0.3, as the kernel misses events where another machine has the
        processor, and does not count them by process."""
        want = seconds * hz
        return 0.3 * want < count + lost and count < 1.05 * want + 5 * math.sqrt(want) + self.stolen * hz

    def least(self, due, part=0.8):
        """Of so many samples that are due, how many are here at least: this part, but for five standard deviations and what the
        timer missed, as in fits()."""
        missed = min(self.missing * (self.stats["samples"] + due), 0.9 * due)
        return part * (due - missed) - 5 * math.sqrt(due)

    def __repr__(self):
        return f"exit {self.code}\nstdout: {self.out[:2000]}\nstderr: {self.err[:2000]}\nstats: {self.stats}"


def stolen_seconds():
    """Of all CPUs, since this machine has run (proc(5), /proc/stat: steal)."""
    return int(Path("/proc/stat").read_text().split(maxsplit=9)[8]) / os.sysconf("SC_CLK_TCK")


class Luabpf:
    """One run of the tool in the background. wait_banner() returns once it samples."""

    def __init__(self, *args, env=None, stats=True, before=(), **kw):
        self.stats = tempfile.NamedTemporaryFile(prefix="luabpf-stats-", suffix=".json") if stats else None
        argv = [*map(str, before), str(LUABPF)]
        if stats:
            argv += ["--stats", self.stats.name]
        argv += map(str, args)
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stdin", subprocess.DEVNULL)
        self.stolen = stolen_seconds()
        self.p = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, errors="replace",
                                  env=clean_env(env), **kw)
        self.err = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """A test that fails leaves neither it nor its command behind."""
        if self.p.poll() is None:
            for pid in commands_of(self.p.pid):
                os.kill(pid, signal.SIGKILL)
            self.p.kill()
            self.p.communicate()

    def wait_for(self, pattern):
        """Returns when it has printed a line like this on standard error."""
        line = b""
        with no_hang(self.p):
            # byte by byte: what a buffer reads ahead, communicate() in done() does not see
            while byte := os.read(self.p.stderr.fileno(), 1):
                line += byte
                if byte != b"\n":
                    continue
                text, line = line.decode(errors="replace"), b""
                self.err += text
                if re.search(pattern, text):
                    return self
        self.err += line.decode(errors="replace")
        raise AssertionError(f"luabpf did not print {pattern}: exit {self.p.wait()}: {self.err}")

    def wait_banner(self):
        return self.wait_for("sampling")

    def wait_families(self, left=0):
        """Returns when all of the three families' programs but so many are loaded: the child that loads each has ended."""
        children = Path(f"/proc/{self.p.pid}/task/{self.p.pid}/children")
        wait_until(lambda: len(children.read_text().split()) <= left)
        return self

    def wait_calm(self):
        """Returns when its rounds are the longer ones of 200 ms (CALM_NS in user/record/session.c): nothing was new for a while."""
        def is_calm(info):
            with contextlib.suppress(FileNotFoundError):
                return "it_interval: (0, 200000000)" in info.read_text()
        wait_until(lambda: any(map(is_calm, Path(f"/proc/{self.p.pid}/fdinfo").iterdir())))
        return self

    def wait_rounds(self, n=4):
        """Returns when it has waited for events so many times more: it has had a processor since."""
        def waits():
            status = Path(f"/proc/{self.p.pid}/status").read_text()
            return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.M)[1])
        end = waits() + n
        wait_until(lambda: waits() >= end)
        return self

    def signal(self, sig=signal.SIGINT):
        self.p.send_signal(sig)

    def done(self, timeout=HANG):
        try:
            out, err = self.p.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.p.kill()
            out, err = self.p.communicate()
            raise AssertionError(f"luabpf hangs; it said: {self.err}{err}")
        stats = None
        if self.stats:
            text = Path(self.stats.name).read_text()
            stats = json.loads(text) if text else None
        return Done(self.p.returncode, out or "", self.err + err, stats, stolen_seconds() - self.stolen)


def luabpf(*args, **kw):
    return Luabpf(*args, **kw).done()


def record(targets, seconds, *args, **kw):
    """Samples running targets until each has used so many seconds of CPU time since, or has ended."""
    targets = [targets] if isinstance(targets, Target) else targets
    tool = Luabpf("-p", ",".join(str(t.pid) for t in targets), *args, **kw).wait_banner()
    for t in targets:
        t.spend(seconds)
    tool.signal()
    return tool.done()


def missed(count, seconds, hz):
    """The share of the samples due in so many seconds of one's CPU time that are not here: under --all, for one process, what
    Done.missing is for a recording of threads. Nobody knows which function's samples those are."""
    return max(0.0, 1 - count / (seconds * hz))


def commands_of(luabpf):
    """The commands that it has started, once they run; its other children load its programs."""
    out = []
    for pid in Path(f"/proc/{luabpf}/task/{luabpf}/children").read_text().split():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if not Path(f"/proc/{pid}/comm").read_text().startswith("luabpf"):
                out.append(int(pid))
    return out


def wait_until(test, seconds=HANG):
    end = time.monotonic() + seconds
    while not test():
        if time.monotonic() > end:
            raise AssertionError("waited in vain")
        time.sleep(0.005)
