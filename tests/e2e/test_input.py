# SPDX-License-Identifier: BSD-2-Clause
"""Bad input that needs a target or root: each time a clear message and the right exit code."""
import ctypes
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import threading
from pathlib import Path

import pytest

import vms

pytestmark = pytest.mark.usefixtures("root")
LOOP = "local x = 0 while true do for i = 1, 1e5 do x = x + i % 7 end end"


@pytest.fixture
def loop():
    with vms.Target(["luajit", "-e", LOOP]) as t:
        yield t.spend(0.02)


def refused(r, *words, code=1):
    assert r.code == code, r
    assert r.err.startswith("luabpf: ") and r.out == "", r
    for word in words:
        assert word in r.err, (word, r)
    assert len(r.err.splitlines()) <= 3, r


def test_no_such_pid():
    refused(vms.luabpf("-p", 4194303, stats=False), "4194303", "no such process")


def test_thread_instead_of_process():
    stop = threading.Event()
    t = threading.Thread(target=stop.wait)
    t.start()
    try:
        refused(vms.luabpf("-p", t.native_id, stats=False), str(t.native_id), "thread", str(os.getpid()))
    finally:
        stop.set()
        t.join()


def test_not_a_lua_process():
    with vms.Target(["sleep", "30"]) as t:
        refused(vms.luabpf("-p", t.pid, stats=False), str(t.pid), "no Lua in this process\n  name the process that runs it, or wait until this one, or what it starts, does: --wait\n")


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_parent_of_a_lua_process():
    """A shell: its child with Lua is offered, and no other."""
    for command, offered in ("luajit -e 'os.execute(\"sleep 30\")' & sleep 30 & (sleep 30; :) & wait", 1), ("sleep 30 & (sleep 30; :) & wait", 0):
        with vms.Target(["sh", "-c", command], start_new_session=True) as t:
            try:
                vms.wait_until(lambda: len(children(t.pid)) == 2 + offered)
                if offered:
                    lua = children(t.pid)[0]
                    vms.wait_until(lambda: "liblua" in Path(f"/proc/{lua}/maps").read_text() or "luajit" in os.readlink(f"/proc/{lua}/exe"))
                for r in vms.luabpf("-p", t.pid, stats=False).err, vms.luabpf("doctor", "-p", t.pid, stats=False).out:
                    wanted = f"a child of it has: -p {lua}\n" if offered else "nor in its children: name the process that runs it, or wait until this one, or what it starts, does: --wait\n"
                    assert wanted in r, r
            finally:
                os.killpg(t.pid, signal.SIGKILL)


def test_no_proc():
    r = subprocess.run(["unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$@"', "sh", vms.LUABPF, "-p", "1"],
                       capture_output=True, text=True, timeout=vms.HANG)
    assert r.returncode == 1 and r.stderr == "luabpf: /proc: not mounted: luabpf looks into processes there\n  mount -t proc proc /proc\n", r


def test_zombie():
    with vms.Target(["true"]) as t:
        os.waitid(os.P_PID, t.pid, os.WEXITED | os.WNOWAIT)
        refused(vms.luabpf("-p", t.pid, stats=False), str(t.pid))


def test_path_with_terminal_codes(tmp_path):
    """The name of an executable is its owner's choice."""
    exe = tmp_path / "a\033[31mb\nluabpf: c"
    shutil.copy(shutil.which("sleep"), exe)
    with vms.Target([exe, "30"]) as t:
        r = vms.luabpf("-p", t.pid, stats=False)
        refused(r, "\\x1b[31mb\\x0aluabpf: c")
        assert "\033" not in r.err


def test_kernel_thread():
    refused(vms.luabpf("-p", 2, stats=False), "pid 2: a thread of the kernel")


def test_one_bad_pid_among_good(loop):
    refused(vms.luabpf("-p", f"{loop.pid},4194303", stats=False), "4194303")


def test_not_privileged(loop, tmp_path):
    """Says what is missing, and does not start a command."""
    def as_nobody(*args):
        return subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", tool, *map(str, args)],
                              capture_output=True, text=True, timeout=vms.HANG, cwd="/")
    tool = tmp_path / "luabpf"
    shutil.copy(vms.LUABPF, tool)
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(0o755)
    tmp_path.chmod(0o777)
    for args in (["-p", loop.pid], ["--", "touch", tmp_path / "ran"]):
        r = as_nobody(*args)
        assert r.returncode == 1 and "CAP_" in r.stderr, r
        assert r.stderr.startswith("luabpf: ") and len(r.stderr.splitlines()) <= 3, r
    assert not (tmp_path / "ran").exists()


def no_capget():
    """As a seccomp filter does in some containers: capget(2) fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    prog = struct.pack("=" + "HBBI" * 4,
                       0x20, 0, 0, 0,              # load the system call's number
                       0x15, 0, 1, 125,            # capget?
                       0x06, 0, 0, 0x50000 | 1,    # fail with EPERM
                       0x06, 0, 0, 0x7fff0000)     # allow
    code = ctypes.create_string_buffer(prog)
    fprog = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(code)))
    os.setgroups([])
    os.setresuid(65534, 65534, 65534)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, fprog, 0, 0):
        os._exit(99)


def test_capabilities_unknown(loop):
    """Who cannot ask which capabilities there are does not claim that none is missing."""
    tool = os.open(vms.LUABPF, os.O_RDONLY)  # nobody may not be able to open the path
    r = subprocess.run([f"/proc/self/fd/{tool}", "-p", str(loop.pid)], capture_output=True, text=True, timeout=vms.HANG,
                       pass_fds=[tool], preexec_fn=no_capget)
    os.close(tool)
    assert r.returncode == 1 and "not permitted" in r.stderr and "run as root" in r.stderr, r
    assert "no capability is missing" not in r.stderr and "lacks" not in r.stderr, r


def test_root_of_a_user_namespace(loop):
    r = subprocess.run(["unshare", "-U", "-r", vms.LUABPF, "-p", str(loop.pid)], capture_output=True, text=True, timeout=vms.HANG)
    assert r.returncode == 1 and "user namespace" in r.stderr and "root of the host" in r.stderr, r


def test_ptrace_capability_missing(loop):
    """BPF is allowed, but the target has more capabilities than we have."""
    r = subprocess.run(["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace", vms.LUABPF, "-p", str(loop.pid)],
                       capture_output=True, text=True, timeout=vms.HANG)
    assert r.returncode == 1 and "lacks CAP_SYS_PTRACE" in r.stderr, r


def limited(soft, hard, *args):
    return subprocess.run([vms.LUABPF, *map(str, args)], capture_output=True, text=True, timeout=vms.HANG, env=vms.clean_env(),
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)))


def test_init():
    """No Lua, or protected even from root: the message does not advise root to run as root."""
    r = vms.luabpf("-p", 1, stats=False)
    refused(r, "pid 1")
    assert "run as root" not in r.err, r


@pytest.mark.parametrize("n", range(4, 44, 3))
def test_few_open_files(loop, n):
    for args in (["-p", loop.pid, "-d", 0.05], ["-q", "--", "true"]):
        r = limited(n, n, *args)
        if r.returncode:
            assert r.returncode == 1 and "Too many open files" in r.stderr and "ulimit -n" in r.stderr, r
            assert r.stderr.startswith("luabpf: ") and len(r.stderr.splitlines()) <= 3, r


def test_more_threads_than_open_files():
    code = ("local ffi = require 'ffi' ffi.cdef[[int pthread_create(void *, void *, void *, void *); int sleep(int);]] "
            "local id = ffi.new('uint64_t[1]') for i = 1, 60 do "
            "assert(ffi.C.pthread_create(id, nil, ffi.cast('void *', ffi.C.sleep), ffi.cast('void *', 30)) == 0) end print 'ready' io.stdout:flush() " + LOOP)
    with vms.Target(["luajit", "-e", code]) as t:
        t.ready()
        r = limited(100, 100, "-p", t.pid, "-d", 0.05)
        assert r.returncode == 1 and "cannot attach a perf event: Too many open files\n  raise the limit" in r.stderr, r
        assert limited(100, 400, "-p", t.pid, "-d", 0.05).returncode == 0


def test_soft_limit_of_open_files(loop):
    """It is raised to the hard limit, but not that of a command."""
    assert limited(20, 4096, "-p", loop.pid, "-d", 0.05).returncode == 0
    r = limited(100, 4096, "-q", "-jp=f,/dev/null", "--", "sh", "-c", "ulimit -n")
    assert r.stdout == "100\n", r


@pytest.mark.parametrize("args", [["-o", "/nonexistent/x.pb.gz"], ["-jp=f,/nonexistent/x.txt"],
                                  ["--stats", "/nonexistent/s.json"], ["-o", "/proc/x.pb.gz"], ["-o", "/", "-f", "pprof"]])
def test_unwritable_output(loop, args):
    """Reported at once, not after the recording."""
    refused(vms.luabpf("-p", loop.pid, "-d", 2 * vms.HANG, *args, stats=False), args[-1].split(",")[-1] if args[0] != "-o" else args[1])


@pytest.mark.parametrize("args", [["-o", "/dev/full", "-f", "pprof"], ["-jp=f,/dev/full"], ["-o", "/dev/full", "-f", "folded"],
                                  ["--stats", "/dev/full"]])
def test_full_disk(loop, args):
    r = vms.record(loop, 0.05, "-F", 1000, *args, stats=False)
    assert r.code == 1 and "/dev/full: No space left on device" in r.err, r


def test_full_disk_on_stdout(loop):
    with open("/dev/full", "w") as full:
        r = vms.record(loop, 0.05, "-F", 1000, stdout=full, stats=False)
    assert r.code == 1 and "standard output: No space left on device" in r.err, r


def test_file_size_limit(loop, tmp_path):
    """ulimit -f 0: no file can be written, and reports go to a pipe all the same."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    r = vms.record(loop, 0.05, "-F", 1000, "-jp=f", stats=False, preexec_fn=limit)
    assert r.code == 0 and "100%" in r.out, r
    r = vms.record(loop, 0.05, "-F", 1000, "-o", tmp_path / "p.pb.gz", stats=False, preexec_fn=limit)
    assert r.code == 1 and "File too large" in r.err, r


def test_closed_pipe(loop):
    read, write = os.pipe()
    tool = vms.Luabpf("-p", loop.pid, "-F", 1000, stdout=write, stats=False).wait_banner()
    os.close(write)
    os.close(read)
    loop.spend(0.05)
    tool.signal()
    r = tool.done()
    assert r.code == 1 and "Broken pipe" in r.err, r
    assert loop.p.poll() is None


def test_closed_stderr(loop, tmp_path):
    r = subprocess.run(["sh", "-c", f"exec {vms.LUABPF} -p {loop.pid} -d 0.2 -F 1000 -jp=f,{tmp_path}/x.txt 2>&-"], timeout=vms.HANG)
    assert r.returncode == 0
    assert "100%" in (tmp_path / "x.txt").read_text()


def test_too_much_lost(loop):
    r = vms.record(loop, 0.1, "-F", 1000, "--max-lost", 5)
    assert r.code == 0 and r.stats["samples"] > 50 * (1 - r.missing), r


def test_stripped_of_all_sections(tmp_path):
    """No symbols, no section headers: recognised all the same."""
    exe = tmp_path / "anything"
    data = bytearray(Path(shutil.which("luajit")).resolve().read_bytes())
    data[0x28:0x30] = bytes(8)   # e_shoff
    data[0x3c:0x40] = bytes(4)   # e_shnum, e_shstrndx
    exe.write_bytes(data)
    exe.chmod(0o755)
    with vms.Target([exe, "-joff", "-e", LOOP]) as t:
        t.spend(0.02)
        r = vms.record(t, 0.1, "-F", 1000, "-jp=l")
    assert r.code == 0 and "(command line):1" in r.out and r.stats["lost"] <= 1, r


def test_deleted_executable(tmp_path):
    """As after an upgrade of the package while the server runs."""
    exe = tmp_path / "luajit"
    shutil.copy(Path(shutil.which("luajit")).resolve(), exe)
    with vms.Target([exe, "-joff", "-e", LOOP]) as t:
        t.spend(0.02)
        exe.unlink()
        r = vms.record(t, 0.1, "-F", 1000, "-jp=l")
    assert r.code == 0 and "(command line):1" in r.out, r


def test_other_mount_namespace(tmp_path):
    """A container: our paths are not the target's."""
    shutil.copytree("/usr/lib/x86_64-linux-gnu", tmp_path / "usr/lib/x86_64-linux-gnu",
                    ignore=lambda d, names: [n for n in names if not n.startswith(("libm.", "libc.", "libgcc_s", "libdl", "ld-linux"))])
    (tmp_path / "lib64").mkdir()
    shutil.copy("/lib64/ld-linux-x86-64.so.2", tmp_path / "lib64")
    (tmp_path / "lib").symlink_to("usr/lib")
    (tmp_path / "bin").mkdir()
    shutil.copy(Path(shutil.which("luajit")).resolve(), tmp_path / "bin/lua-in-jail")
    (tmp_path / "jail.lua").write_text("local function jailed()\n  local x = 0\n  for i = 1, 1e5 do\n    x = x + i % 7\n  end\nend\n"
                                       "while true do jailed() end\n")
    with vms.Target(["chroot", tmp_path, "/bin/lua-in-jail", "-joff", "/jail.lua"]) as t:
        t.spend(0.02)
        r = vms.record(t, 0.1, "-F", 1000, "-jp=A")
    assert r.code == 0 and "x = x + i % 7" in r.out, r


def test_terminal_codes_in_names(tmp_path):
    """A hostile chunk name: no control character reaches the terminal, no line is forged."""
    code = ("local evil = '=\\27]0;owned\\7\\27[2J\\n99%  forged\\r;x'\n"
            "local f = loadstring('local x = 0 for i = 1, 1e5 do x = x + i % 7 end', evil)\n"
            "while true do f() end")
    with vms.Target(["luajit", "-joff", "-e", code]) as t:
        t.spend(0.02)
        saved = tmp_path / "x.pb.gz"
        r = vms.record(t, 0.1, "-F", 1000, "-jp=l", "-o", saved)
        assert r.code == 0, r
        outs = [r.out, r.err] + [vms.luabpf("report", saved, o, stats=False).out for o in ("-jp=F", "-jp=G", "-jp=a", "-ffolded")]
    for text in outs:
        assert not set(text) - {"\n"} & {chr(i) for i in (*range(32), *range(127, 160))}, repr(text)
        assert not any(line.lstrip().startswith("99%  forged") for line in text.splitlines()), text


def test_launch_in_unreadable_directory(tmp_path):
    r = vms.luabpf("-q", "-F", 1000, "-jp=f", "--", "luajit", "-e", "for i = 1, 3e7 do local x = i % 7 end", cwd=tmp_path)
    assert r.code == 0 and "(command line)" in r.out, r
