# SPDX-License-Identifier: BSD-2-Clause
"""luabpf needs CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE, and gives up what it does not use any more."""
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import pprof
import vms

pytestmark = pytest.mark.usefixtures("root")
LOOP = "local x = 0 while true do for i = 1, 1e5 do x = x + i % 7 end end"
NEEDED = ["bpf", "perfmon", "sys_ptrace"]
NOBODY = 65534


@pytest.fixture(scope="module")
def loop():
    with vms.Target(["luajit", "-e", LOOP]) as t:
        vms.wait_until(lambda: t.cpu() > 0.02)
        yield t


def with_capabilities(names, *args, stdout=subprocess.PIPE):
    """Runs luabpf as nobody, with these capabilities and no others: none can be gained by exec."""
    only = "-all," + ",".join("+" + n for n in names)
    tool = os.open(vms.LUABPF, os.O_RDONLY)  # nobody may not be able to open the path
    argv = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs",
            f"--inh-caps={only}", f"--ambient-caps={only}", f"--bounding-set={only}", f"/proc/self/fd/{tool}", *map(str, args)]
    try:
        return subprocess.run(argv, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=vms.HANG, env=vms.clean_env(),
                              pass_fds=[tool])
    finally:
        os.close(tool)


def status(pid="self"):
    return dict(re.findall(r"^(Cap\w+|NoNewPrivs|Seccomp):\t(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.M))


def test_three_are_enough(loop):
    """Another user's process: its memory, its mappings, the files that they show, its threads' events."""
    r = with_capabilities(NEEDED, "-p", loop.pid, "-F", 500, "-d", 1, "-jp=fm0", "-v")
    assert r.returncode == 0 and r.stdout, r
    assert "lost 0" in r.stderr, r
    assert Path(f"/proc/{loop.pid}").stat().st_uid != NOBODY


@pytest.mark.parametrize("missing", NEEDED)
def test_each_is_needed(loop, missing):
    r = with_capabilities([n for n in NEEDED if n != missing], "-p", loop.pid, "-d", 1)
    assert r.returncode == 1 and not r.stdout, r
    assert f"CAP_{missing.upper()}" in r.stderr, r


def test_three_are_enough_for_all_and_for_a_command(loop, tmp_path):
    """Another user's process that --all finds; a command, which has its starter's rights."""
    saved = tmp_path / "all.pb.gz"
    with open(saved, "wb") as out:
        r = with_capabilities(NEEDED, "--all", "-F", 500, "-d", 1, "-f", "pprof", "-o", "-", stdout=out)
    assert r.returncode == 0, r
    assert any(s.labels["pid"] == str(loop.pid) for s in pprof.Profile(saved).samples), r
    r = with_capabilities(NEEDED, "-F", 500, "-jp=fm0", "--", "luajit", "-e", "local x = 0 for i = 1, 5e7 do x = x + i % 7 end")
    assert r.returncode == 0 and "(command line):0" in r.stdout, r


@pytest.fixture
def closed(tmp_path):
    """A library in a directory that only root may search, and a program that has loaded it."""
    os.chmod(tmp_path, 0o700)
    library = tmp_path / "libluajit-5.1.so.2"
    shutil.copy(f"/usr/{vms.MULTIARCH}/{library.name}", library)
    shutil.copy(vms.HOSTS / "embed", tmp_path / "closed-host")
    (tmp_path / "x.lua").write_text(LOOP)
    with vms.Target([tmp_path / "closed-host", "-joff", tmp_path / "x.lua"], env={"LD_LIBRARY_PATH": str(tmp_path)}) as t:
        vms.wait_until(lambda: t.cpu() > 0.02)
        t.file = library
        yield t


def test_files_that_only_another_user_can_read(closed):
    """They want CAP_DAC_READ_SEARCH; and CAP_CHECKPOINT_RESTORE, when they have no path any more."""
    def record(*more, who=("-p", closed.pid)):
        return with_capabilities([*NEEDED, *more], *who, "-F", 500, "-d", 0.2, "-jp=fm0")
    r = record()
    assert r.returncode == 1 and f"cannot open {closed.file}, so Lua in this process may be missed" in r.stderr, r
    assert "CAP_DAC_READ_SEARCH" in r.stderr and "no Lua" not in r.stderr, r
    r = record(who=["--comm", "closed-host"])
    assert r.returncode == 0 and "cannot open" in r.stderr and "no samples: the files of a process could not be" in r.stderr, r
    r = record("dac_read_search")
    assert r.returncode == 0 and r.stdout, r
    closed.file.unlink()
    r = record("dac_read_search")
    assert r.returncode == 1 and "give luabpf CAP_CHECKPOINT_RESTORE, too" in r.stderr, r
    r = record("dac_read_search", "checkpoint_restore")
    assert r.returncode == 0 and r.stdout, r


# $1: an empty directory; a mount namespace of its own, in which alone the program is
OWN = """mount -t tmpfs none "$1" && cp "$(command -v luajit)" "$1/own-luajit" && mkdir "$1/root" && exec "$1/own-luajit" "$2" "$1/root" """
CHROOT = """local ffi = require "ffi" ffi.cdef "int chroot(const char *);" assert(ffi.C.chroot(arg[1]) == 0) print "ready" io.flush() """ + LOOP
# its Lua is a library
CHROOT_PY = """import ctypes, os, sys
lua = ctypes.CDLL("liblua5.4.so.0")
lua.luaL_newstate.restype = ctypes.c_void_p
L = ctypes.c_void_p(lua.luaL_newstate())
os.chroot(sys.argv[1])
print("ready", flush=True)
lua.luaL_loadstring(L, sys.argv[2].encode())
lua.lua_pcallk(L, 0, 0, 0, 0, None)
"""


@pytest.mark.parametrize("how", ["program", "library", "own-namespace", "deleted"])
def test_chroot(how, tmp_path):
    """Its mappings' paths do not lead from its root directory to its files; the executable's link in /proc does."""
    os.chmod(tmp_path, 0o755)
    (tmp_path / "empty").mkdir()
    script = tmp_path / "x.lua"
    script.write_text(CHROOT)
    argv = {
        "program": ["luajit", script, tmp_path / "empty"],
        "library": [sys.executable, "-c", CHROOT_PY, tmp_path / "empty", LOOP],
        "own-namespace": ["unshare", "-m", "sh", "-c", OWN, "sh", tmp_path / "empty", script],
        "deleted": [tmp_path / "gone-luajit", script, tmp_path / "empty"],
    }[how]
    if how == "deleted":
        shutil.copy(shutil.which("luajit"), argv[0])
    with vms.Target(argv) as t:
        t.ready()
        if how == "deleted":
            argv[0].unlink()
        r = with_capabilities(NEEDED, "-p", t.pid, "-F", 500, "-d", 0.2, "-jp=fm0")
    assert r.returncode == 0 and r.stdout and "lost 0" in r.stderr, r


# include/uapi/linux/capability.h
BITS = {"chown": 0, "dac_override": 1, "dac_read_search": 2, "kill": 5, "setgid": 6, "setuid": 7, "sys_chroot": 18, "sys_ptrace": 19,
        "perfmon": 38, "bpf": 39, "checkpoint_restore": 40}
TARGETS = ["sys_ptrace", "dac_read_search", "checkpoint_restore"]
SUDO = {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}


@pytest.mark.parametrize("args,env,kept", [
    (["-jp=f"], {}, [*TARGETS, "perfmon"]),
    (["--all", "-jp=f"], {}, TARGETS),
    (["--metrics", "m.prom", "-jp=f"], {}, [*TARGETS, "perfmon", "dac_override", "chown"]),
    (["-o", "x.pb.gz"], SUDO, [*TARGETS, "perfmon", "dac_override", "chown", "setuid", "setgid"]),
    (["-jp=a"], {}, [*TARGETS, "perfmon", "dac_override", "setuid", "setgid", "sys_chroot"]),
])
def test_rights_that_are_kept(loop, args, env, kept):
    """While it samples; all sets, no_new_privs, and a filter of system calls. Then the outputs are written with them."""
    with vms.public_dir() as cwd:
        cwd.chmod(0o777)
        who = [] if "--all" in args else ["-p", loop.pid]
        tool = vms.Luabpf(*who, *args, env=env, cwd=cwd, stats=False).wait_banner()
        vms.wait_until(lambda: tool.p.poll() is not None or status(tool.p.pid)["Seccomp"] == "2")
        has = status(tool.p.pid)
        tool.signal()
        r = tool.done()
    want = sum(1 << BITS[name] for name in kept) & int(status()["CapPrm"], 16)
    assert r.code == 0, r
    assert {name: int(value, 16) for name, value in has.items()} == {
        "CapInh": 0, "CapPrm": want, "CapEff": want, "CapBnd": 0, "CapAmb": 0, "NoNewPrivs": 1, "Seccomp": 2}


def test_a_command_keeps_all_rights(root):
    """It has those of who starts luabpf, also when it runs on for longer than luabpf needs to give up its own."""
    r = vms.luabpf("-q", "-jp=,/dev/null", "-d", 0.2, "--", "sh", "-c", "sleep 0.4; cat /proc/self/status", stats=False)
    has = dict(re.findall(r"^(Cap\w+|NoNewPrivs|Seccomp):\t(\w+)$", r.out, re.M))
    assert r.code == 0 and has == status(), r


def test_file_capabilities(loop):
    """Of an executable: as setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep gives them."""
    bits = sum(1 << BITS[name] for name in NEEDED)
    caps = struct.pack("<IIIII", 0x02000001, bits & 0xffffffff, 0, bits >> 32, 0)  # struct vfs_cap_data, all effective
    with vms.public_dir() as where:
        tool = shutil.copy(vms.LUABPF, where / "luabpf")
        os.chmod(tool, 0o755)
        os.setxattr(tool, "security.capability", caps)
        r = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", tool, "-p", str(loop.pid),
                            "-F", "500", "-d", "0.3", "-jp=fm0"], capture_output=True, text=True, timeout=vms.HANG, env=vms.clean_env())
    assert r.returncode == 0 and r.stdout and "lost 0" in r.stderr, r


def test_service(closed, tmp_path):
    """The unit as it is installed: systemd takes it, and its capabilities are enough for a closed program."""
    unit = (vms.ROOT / "tools/systemd/luabpf.service").read_text().replace("@BINDIR@/luabpf", str(vms.LUABPF))
    (tmp_path / "luabpf.service").write_text(unit)
    names = {m[0]: m[1].split() for m in re.findall(r"^(AmbientCapabilities|CapabilityBoundingSet)=(.*)$", unit, re.M)}
    assert names["AmbientCapabilities"] == names["CapabilityBoundingSet"]
    r = with_capabilities([n.removeprefix("CAP_").lower() for n in names["AmbientCapabilities"]],
                          "-p", closed.pid, "-F", 500, "-d", 0.2, "-jp=fm0")
    assert r.returncode == 0 and r.stdout, r
    if shutil.which("systemd-analyze"):
        r = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / "luabpf.service"], capture_output=True, text=True)
        assert r.returncode == 0 and "luabpf" not in r.stderr, r
