# SPDX-License-Identifier: BSD-2-Clause
"""What luabpf, run as root, opens because a program or a profile names it: by an unprivileged user who wants more."""
import collections
import json
import os
import re
import select
import struct
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import pprof
import vms

pytestmark = pytest.mark.usefixtures("root")
MAL = 1001
AS_MAL = ["setpriv", "--reuid", str(MAL), "--regid", str(MAL), "--clear-groups"]
SECRET = "the secret of root\n"
SUDO = {"SUDO_UID": str(MAL), "SUDO_GID": str(MAL)}
# works under any chunk names; then becomes something else when a file is there
WORK = """local ffi = require "ffi"
ffi.cdef[[int execv(const char *, char *const *); int setuid(unsigned); int setgid(unsigned); int setgroups(long, void *);]]
local function spin() for i = 1, 1e5 do local x = i % 7 end end
local body = "local spin = ... for i = 1, 20 do spin() for k = 1, 1e5 do local x = k % 7 end end"
local function work(path, ready)
  local f = assert(loadstring(body, "@" .. path))
  while not ready() do f(spin) end
end
local function exists(path) return function() local f = io.open(path) if f then f:close() end return f end end
local function cpu(s) local t = os.clock() return function() return os.clock() - t > s end end
"""


@pytest.fixture
def public():
    """Where everyone may search, and setuid programs count."""
    for where in "/tmp", "/var/tmp", "/run", "/":
        if not os.statvfs(where).f_flag & os.ST_NOSUID:
            with vms.public_dir(where) as path:
                yield path
            return
    pytest.fail("no directory is mounted without nosuid")


@pytest.fixture
def secret(public):
    path = public / "secret"
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


def powerful(public, how):
    """A program that has root's rights for whoever starts it, as su has while it waits for a password."""
    path = public / "powerful"
    subprocess.run(["cc", "-x", "c", "-o", path, "-"], input=b"#include <unistd.h>\nint main(void) { char c; return read(0, &c, 1) < 0; }", check=True)
    path.chmod(0o4755 if how == "setuid" else 0o755)
    if how == "capability":  # linux/capability.h: vfs_cap_data, revision 2, effective; CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, 0b110, 0, 0, 0))
    return path


def wait_for_image(pid, program):
    vms.wait_until(lambda: os.readlink(f"/proc/{pid}/exe") == str(program))
    assert effective(pid) & 0b110 == 0b110  # it did become powerful


def effective(pid):
    return int(re.search(r"^CapEff:\t(\w+)", Path(f"/proc/{pid}/status").read_text(), re.M)[1], 16)


def becomes(public, program, chunk):
    """A script that works under the name of a secret, and then is another program's image."""
    path = public / "evil.lua"
    path.write_text(f"""{WORK}
work("{chunk}", exists("{public}/go"))
local argv = ffi.new("char *[2]") argv[0] = ffi.new("char[9]", "powerful")
ffi.C.execv("{program}", argv)
""")
    path.chmod(0o644)
    return path


def is_refused(text, path):
    return text.endswith(f"====== ERROR: {path}: {path}: Permission denied\n") and SECRET not in text


@pytest.mark.parametrize("how", ["setuid", "capability"])
def test_what_a_target_becomes(public, secret, how):
    """Whose image gives way to a setuid program, or to one with capabilities in its file, shows nothing of root's."""
    program = powerful(public, how)
    with vms.Target([*AS_MAL, "luajit", "-joff", becomes(public, program, secret)]) as t:
        vms.wait_until(lambda: t.cpu() > 0.02)
        tool = vms.Luabpf("-p", t.pid, "-F", 1000, "-jp=Am0", stats=False).wait_banner()
        t.spend(0.05)
        (public / "go").touch()
        wait_for_image(t.pid, program)
        tool.signal()
        r = tool.done()
    assert r.code == 0 and is_refused(r.out, secret), r


def test_what_a_command_becomes(public, secret):
    """The same, as a command of mal's, who has sudo for luabpf alone."""
    program, out = powerful(public, "setuid"), public / "mal" / "out.txt"
    out.parent.mkdir()
    os.chown(out.parent, MAL, MAL)
    argv = ["-F", 1000, f"-jp=Am0,{out}", "--", "luajit", "-joff", becomes(public, program, secret)]
    with vms.Luabpf(*argv, env=SUDO, stats=False, stdin=subprocess.PIPE) as tool:
        [command] = vms.commands_of(tool.wait_banner().p.pid)
        vms.wait_until(lambda: time.clock_gettime(~command << 3 | 2) > 0.05)  # its CPU time
        (public / "go").touch()
        wait_for_image(command, program)
        tool.signal()
        vms.wait_until(lambda: out.exists() and out.stat().st_size)
        r = tool.done()
    assert is_refused(out.read_text(), secret), (r, out.read_text())


def test_what_a_target_gave_up(public, secret):
    """A command of root's that becomes an ordinary user, names the secret then, and ends."""
    script = public / "server.lua"
    script.write_text(f"""{WORK}
work("{public}/own.lua", cpu(0.05))
ffi.C.setgroups(0, nil) ffi.C.setgid({MAL}) ffi.C.setuid({MAL})
work("{secret}", cpu(0.05))
""")
    (public / "own.lua").write_text("own\n" * 3)
    (public / "own.lua").chmod(0o644)
    r = vms.luabpf("-F", 1000, "-jp=Am0", "--", "luajit", "-joff", script, stats=False)
    assert r.code == 0 and "own.lua ======" in r.out and is_refused(r.out, secret), r


@pytest.fixture
def named():
    """Saves a profile of one chunk: its name, where to, and as whom."""
    def record(chunk, path, *before):
        code = f"""local f = loadstring([[for i = 1, 1e9 do local x = i % 7 end]], '@{chunk}') while true do f() end"""
        with vms.Target([*before, "luajit", "-joff", "-e", code], cwd="/") as t:
            vms.wait_until(lambda: t.cpu() > 0.02)
            r = vms.record(t, 0.05, "-F", 1000, "-o", path, stats=False)
        assert r.code == 0, r
        path.chmod(0o644)
        return path
    return record


def report(path, *args, cwd=None, **env):
    r = subprocess.run([vms.LUABPF, "report", path, "-jp=Am0", *map(str, args)], capture_output=True, text=True, timeout=vms.HANG,
                       env=vms.clean_env(env), cwd=cwd)
    assert r.returncode == 0, r
    return r.stdout


def test_report_shows_root_what_all_can_read(public, named):
    """Whatever a profile says of its user; unless root asks for a user's files."""
    private = public / "private"
    private.mkdir(mode=0o700)
    os.chown(private, MAL, MAL)
    script = private / "s.lua"
    script.write_text("one line\n")
    saved = named(script, public / "x.pb.gz", *AS_MAL)
    relative = named("s.lua", public / "y.pb.gz", *AS_MAL)
    assert is_refused(report(saved), script)
    assert is_refused(report(relative, cwd=private), "s.lua")
    for user in str(MAL), "root":
        assert ("one line" in report(saved, "--source-user", user)) == (user != "root")
    assert "one line" in report(relative, "--source-user", MAL, cwd=private)
    assert is_refused(report(saved, "--source-user", "daemon"), script)
    assert is_refused(report(saved, "--source-user", MAL, SUDO_UID="1002", SUDO_GID="1002"), script)
    private.chmod(0o755)
    assert "one line" in report(saved) and "one line" in report(relative, cwd=private)
    for args, message in (["report", saved, "--source-user", "no-such-user"], "no such user"), \
                         (["report", saved, "--source-user", "-1"], "needs a value"), \
                         (["-p", "1", "--source-user", "root"], "it is for report"):
        r = vms.luabpf(*args, stats=False)
        assert r.code == 2 and message in r.err, r
    tool = os.open(vms.LUABPF, os.O_RDONLY)
    r = subprocess.run([*AS_MAL, f"/proc/self/fd/{tool}", "report", saved, "-jp=A", "--source-user", "root"], capture_output=True, text=True,
                       pass_fds=[tool])
    os.close(tool)
    assert r.returncode == 1 and "only root" in r.stderr, r


def test_nothing_is_opened_but_a_regular_file(public, named):
    """To open a FIFO lets its writer go on, to open a device may do anything."""
    fifo = public / "fifo"
    os.mkfifo(fifo, 0o644)
    os.chown(fifo, MAL, MAL)
    saved = named(fifo, public / "x.pb.gz")
    writer = subprocess.Popen([*AS_MAL, "sh", "-c", "exec 3>fifo; echo opened"], cwd=public, stdout=subprocess.PIPE)
    vms.wait_until(lambda: stopped_in_open(writer.pid))
    try:
        code = f"""local f = loadstring([[for i = 1, 1e9 do local x = i % 7 end]], '@{fifo}') while true do f() end"""
        with vms.Target(["luajit", "-joff", "-e", code]) as t:  # root's
            vms.wait_until(lambda: t.cpu() > 0.02)
            live = vms.record(t, 0.05, "-F", 1000, "-jp=A", stats=False)
        texts = [live.out, report(saved), report(saved, "--source-user", "root"), report(saved, **SUDO)]
        assert all(text == f"====== ERROR: {fifo}: {fifo}: not a regular file\n" for text in texts), texts
        assert not select.select([writer.stdout], [], [], 0)[0]
        assert stopped_in_open(writer.pid)
    finally:
        writer.kill()
        writer.wait()


def stopped_in_open(pid):
    """Waits in openat(2): number 257, a FIFO's other side is not there."""
    return Path(f"/proc/{pid}/syscall").read_text().startswith("257 ")


STOPPER = """
import os, signal, sys
children = f"/proc/{sys.argv[1]}/task/{sys.argv[1]}/children"
stopped = set()
print("ready", flush=True)
try:
    while True:
        for pid in open(children).read().split():
            try:
                os.kill(int(pid), signal.SIGSTOP)
                print("stopped", pid, flush=True)
            except (PermissionError, ProcessLookupError):
                pass
except OSError:
    pass
"""


def test_the_target_cannot_stop_the_reader(public):
    """The process that reads a file for mal is not one that mal may send signals to."""
    big = public / "big.lua"
    big.write_text(("x" * 65535 + "\n") * 200)
    code = f"""local f = loadstring([[for i = 1, 1e9 do local x = i % 7 end]], '@{big}') while true do f() end"""
    with vms.Target([*AS_MAL, "luajit", "-joff", "-e", code]) as t:
        vms.wait_until(lambda: t.cpu() > 0.02)
        tool = vms.Luabpf("-p", t.pid, "-F", 1000, "-jp=a", stats=False).wait_banner()
        with vms.Target([*AS_MAL, sys.executable, "-c", STOPPER, tool.p.pid]) as stopper:
            assert stopper.line() == "ready"
            t.spend(0.05)
            tool.signal()
            r = tool.done()
            stopped = stopper.rest()
    assert r.code == 0 and f"\n====== {big} ======\n" in r.out and not stopped, (r, stopped)


# a file system that answers the kernel's greeting and nothing else
FUSE = """
import ctypes, os, struct, sys
fd = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other"
if libc.mount(b"silent", sys.argv[1].encode(), b"fuse", 0, options.encode()):
    sys.exit(os.strerror(ctypes.get_errno()))
print("ready", flush=True)
while True:
    op, unique = struct.unpack_from("<IQ", os.read(fd, 1 << 20), 4)
    if op == 26:  # linux/fuse.h: FUSE_INIT
        os.write(fd, struct.pack("<IiQ", 80, 0, unique) + struct.pack("<IIIIHHII", 7, 31, 0, 0, 0, 0, 4096, 1).ljust(64, b"\\0"))
    else:
        print("asked", flush=True)
"""


@contextmanager
def silent_file_system(path):
    with vms.Target([sys.executable, "-c", FUSE, path]) as server:
        assert server.line() == "ready"
        try:
            yield server
        finally:
            subprocess.run(["umount", "--lazy", path], check=True)


@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="no /dev/fuse")
def test_a_file_system_that_never_answers(public):
    """What waits for it cannot be ended, not even by SIGKILL: luabpf goes on without."""
    where = public / "silent"
    where.mkdir()
    code = f"local f = loadstring('for i = 1, 1e9 do local x = i % 7 end', '@{where}/x.lua') while true do f() end"
    with silent_file_system(where) as server, vms.Target([*AS_MAL, "luajit", "-joff", "-e", code]) as t:
        vms.wait_until(lambda: t.cpu() > 0.02)
        r = vms.record(t, 0.05, "-F", 1000, "-jp=a", stats=False)
        assert server.line() == "asked"
    assert r.code == 0 and "Connection timed out" in r.out + r.err, r


def test_text_in_its_own_order(public):
    """Format characters in a chunk's name do not reach the terminal."""
    with vms.Target([*AS_MAL, "luajit", "-joff", "-e", "local f = loadstring('for i = 1, 1e9 do local x = i % 7 end', '@a\\226\\128\\174b.lua') "
                     "while true do f() end"]) as t:
        vms.wait_until(lambda: t.cpu() > 0.02)
        r = vms.record(t, 0.05, "-F", 1000, "-jp=lm0", "-v", stats=False)
    assert r.code == 0 and "a\\xe2\\x80\\xaeb.lua:1" in r.out and "\u202e" not in r.out + r.err, r


# Runs each command as a process of one and the same number: [user, argv...], one after the other.
REUSE = """
import ctypes, json, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
pid = ctypes.c_int(int(sys.argv[1]))
for user, *argv in json.loads(sys.argv[2]):
    # struct clone_args: exit_signal is SIGCHLD, set_tid and its size name the number
    args = struct.pack("<11Q", 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(pid), 1, 0)
    got = libc.syscall(435, args, len(args))
    if got < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    if got == 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        os.execvp(argv[0], argv)
    assert got == pid.value
    os.waitpid(got, 0)
"""


def free_pid():
    """One that nothing has, nor will have soon."""
    with open("/proc/sys/kernel/ns_last_pid") as f:
        last = int(f.read())
    pid_max = int(Path("/proc/sys/kernel/pid_max").read_text())
    return next(p for p in range((last + pid_max // 2) % (pid_max - 1000) + 500, pid_max) if not Path(f"/proc/{p}").exists())


@pytest.mark.parametrize("vm", ["luajit", "lua5.4"])
def test_a_number_that_is_used_again(public, secret, vm):
    """A process of root's ends, and one of mal's gets its number, its addresses, and functions of the same shape and place under
    other names: it shows neither a file that the first could open, nor a name of the first's."""
    text = """local path, name = ...
local chunk = "local function %s() for i = 1, 1e4 do local x = i %% 7 end end local t = os.clock() repeat %s() until os.clock() - t > 0.1"
local f = (loadstring or load)(chunk:format(name, name), "@" .. path) f()"""
    (public / "x.lua").write_text(text)
    (public / "own.lua").write_text("own")
    commands = [[user, "setarch", "-R", vm, str(public / "x.lua"), str(path), name]
                for user, path, name in ((0, public / "own.lua", "first_one"), (MAL, secret, "other_one"), (0, public / "own.lua", "first_one"))]
    pid = free_pid()
    r = vms.luabpf("-F", 1000, "-jp=Am0", "-o", public / "p.pb.gz", "--", sys.executable, "-c", REUSE, pid, json.dumps(commands))
    assert r.code == 0, r
    assert f"====== ERROR: {secret}: {secret}: Permission denied" in r.out and SECRET not in r.out, r
    names = collections.Counter()
    for s in pprof.Profile(public / "p.pb.gz").samples:
        assert s.labels["pid"] == str(pid), s
        for f in s.stack:
            if f.name in ("first_one", "other_one"):
                names[f.name, f.file] += s.count
    assert set(names) == {("first_one", str(public / "own.lua")), ("other_one", str(secret))}, (names, r)
    assert min(names.values()) >= 10, (names, r)  # of 100, on a machine that misses most of them


def test_the_user_of_a_number_that_is_used_again(public):
    """A process of mal's ends, and root's gets its number: those that are sampled are mal's all the time."""
    (public / "x.lua").write_text("while not io.open(arg[1]) do for i = 1, 1e4 do end end")
    pid = free_pid()

    def runs(program):
        try:
            return Path(f"/proc/{pid}/comm").read_text() == program + "\n"
        except (FileNotFoundError, ProcessLookupError):
            return False
    commands = [[MAL, "luajit", str(public / "x.lua"), str(public / "end")], [0, "cat"]]
    with vms.Target([sys.executable, "-c", REUSE, pid, json.dumps(commands)]), \
            vms.Target([*AS_MAL, "luajit", public / "x.lua", public / "no"]) as other:
        vms.wait_until(lambda: runs("luajit"))
        tool = vms.Luabpf("-p", f"{pid},{other.pid}", "-o", public / "p.pb.gz").wait_banner()
        (public / "end").touch()
        vms.wait_until(lambda: runs("cat"))
        other.spend(0.02)
        tool.signal()
        r = tool.done()
    assert r.code == 0 and pprof.Profile(public / "p.pb.gz").target_uid == MAL, r


def test_children_that_have_ended_hold_nothing(public):
    """30 children, of which each has its root and its directory held while it lives: those of one kind share them then."""
    # The kinds: the shell, which lives; root's; MAL's; those of setpriv that were looked at before they became MAL's,
    # too, which have both users; root's in the other directory.
    kinds, kinds_in_public, kinds_in_other = 5, 4, 1
    (public / "x.lua").write_text("local t = os.clock() repeat for i = 1, 1e3 do end until os.clock() - t > 0.02")
    (public / "other").mkdir()
    os.mkfifo(public / "wait")
    script = f"for i in $(seq 10); do luajit x.lua; setpriv --reuid {MAL} luajit x.lua; (cd other; luajit ../x.lua); done; : >done; read x <wait; exit 0"
    tool = vms.Luabpf("-F", 1000, "-jp=Am0", "--", "sh", "-c", script, cwd=public)
    vms.wait_until((public / "done").exists)

    def links():
        out = []
        for fd in Path(f"/proc/{tool.p.pid}/fd").iterdir():
            try:
                link = os.readlink(fd)
                # a root of another file system: FUSE's control files, which are asked who waits for a daemon
                out.append(link if link != "/" or fd.stat().st_dev == os.stat("/").st_dev else "another root")
            except FileNotFoundError:
                pass
        return out
    vms.wait_until(lambda: links().count("anon_inode:[pidfd]") == 1)
    held = links()
    os.close(os.open(public / "wait", os.O_WRONLY))
    r = tool.done()
    assert r.code == 0 and "% | local t = os.clock" in r.out, r
    assert held.count("/") <= kinds, held
    assert held.count(str(public)) <= kinds_in_public, held
    assert held.count(str(public / "other")) <= kinds_in_other, held


CHANGED = "[The file was changed after the program had started: its lines may be others]"


def test_a_source_that_was_changed(tmp_path):
    """While its process runs, and before a saved profile is reported. One that lacks lines with samples says so."""
    script, saved = tmp_path / "x.lua", tmp_path / "p.pb.gz"
    text = "local x = 0\nlocal y\nlocal z\nwhile true do\n  for i = 1, 1e5 do x = x + i % 7 end\nend\n"
    script.write_text(text)
    os.utime(script, (1e9, 1e9))
    with vms.Target(["lua5.4", script]).spend(0.02) as t:
        def annotated(*args):
            return vms.luabpf("-p", t.pid, "-F", "4000", "-d", "0.3", "-jp=A", *args, stats=False).out
        whole = annotated("-o", saved)
        assert CHANGED not in whole and re.search(r"\d% \|   for i = 1", whole), whole
        script.write_text("-- new\n" + text)
        for out in annotated(), vms.luabpf("report", saved, "-jp=A", "--source-user", "root", stats=False).out:
            assert CHANGED in out and re.search(r"\d% \| while true", out), out
        script.write_text("-- new\n")
        assert f"{CHANGED}\n      | -- new\n[1 line with samples is behind the file's end]" in annotated()


@pytest.mark.parametrize("vm", ["lua5.1", "lua5.4", "luajit-joff"])
def test_lines_of_a_source_are_lua_s(tmp_path, vm):
    """A lone carriage return ends a line, and so does one behind a newline."""
    script, vm = tmp_path / "x.lua", vms.VMS[vm]
    script.write_text("-- one\r-- two\r\n-- three\n\r-- four\nlocal x = 0 local stop = os.clock() + 0.2\rwhile os.clock() < stop do\n"
                      "  for i = 1, 1e4 do x = x + i % 7 end\r\rend\n", newline="")
    out = vms.luabpf("-F", 1000, "-jp=A", "--", *vm.argv, script, env=vm.env, stats=False).out
    lines = re.findall(r"(?m)^ *(\d*)%? \| (.*?)\r?$", out)
    assert [text for _, text in lines] == ["-- one", "-- two", "-- three", "-- four", "local x = 0 local stop = os.clock() + 0.2",
                                           "while os.clock() < stop do", "  for i = 1, 1e4 do x = x + i % 7 end", "", "end"], out
    assert int(lines[6][0]) > 50, out
