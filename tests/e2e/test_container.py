# SPDX-License-Identifier: BSD-2-Clause
"""luabpf inside of a container with the host's pid namespace: in a root of its own, with the files of a privileged one."""
import shutil
import subprocess

import pytest

import vms

pytestmark = pytest.mark.usefixtures("root")
# $1: a directory, $2: the file systems of a container, $3: luabpf
START = """mount -t tmpfs none "$1" && cd "$1" && mkdir up work root &&
mount -t overlay overlay -o lowerdir=/,upperdir=up,workdir=work root && cd root &&
for fs in $2; do case $fs in dev) mount --rbind /dev dev ;; *) mount -t $fs none ${fs%fs} ;; esac || exit 9; done &&
cp "$3" tool && shift 3 && exec chroot . /tool "$@"
"""


def contained(where, file_systems, *args, options=()):
    return subprocess.run(["unshare", "-m", *options, "sh", "-c", START, "sh", where, file_systems, vms.LUABPF, *map(str, args)],
                          capture_output=True, text=True, timeout=vms.HANG, env=vms.clean_env())


@pytest.fixture
def target(tmp_path):
    """On the host: its files are not those of the container."""
    script = tmp_path / "host.lua"
    script.write_text("local x = 0\nwhile true do\n  for i = 1, 1e5 do x = x + i % 7 end\nend\n")
    shutil.copy(shutil.which("luajit"), tmp_path / "host-luajit")
    with vms.Target([tmp_path / "host-luajit", script]) as t:
        vms.wait_until(lambda: t.cpu() > 0.02)
        yield t


def test_privileged(target, tmp_path):
    """All is found as on the host: the process by its number, its program, its source, and by --all, too."""
    where = tmp_path / "container"
    where.mkdir()
    (tmp_path / "host-luajit").unlink()
    r = contained(where, "proc sysfs dev", "-p", target.pid, "-F", 500, "-d", 0.3, "-jp=a")
    assert r.returncode == 0 and f"====== {tmp_path}/host.lua" in r.stdout and "for i = 1, 1e5" in r.stdout, r
    r = contained(where, "proc sysfs dev", "--all", "-F", 500, "-d", 0.3, "-jp=f", "--by=pid")
    assert r.returncode == 0 and f"pid:{target.pid}:" in r.stdout, r


@pytest.mark.parametrize("file_systems,options,says", [
    ("proc dev", (), "/sys/kernel/btf/vmlinux: /sys is not mounted\n"),
    ("sysfs dev", (), "/proc: not mounted"),
    ("proc sysfs dev", ("-p", "-f"), "a pid namespace of its own"),
])
def test_says_what_is_missing(target, tmp_path, file_systems, options, says):
    where = tmp_path / "container"
    where.mkdir()
    r = contained(where, file_systems, "-p", 1 if options else target.pid, "-d", 0.1, options=options)
    assert r.returncode == 1 and says in r.stderr and r.stderr.count("\n") == 2, r


def test_without_its_capabilities(target, tmp_path):
    """Root of a container that was started without --privileged."""
    r = subprocess.run(["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin", "--inh-caps=-bpf,-perfmon,-sys_admin", vms.LUABPF,
                        "-p", str(target.pid), "-d", "0.1"], capture_output=True, text=True, timeout=vms.HANG)
    assert r.returncode == 1 and "lacks CAP_BPF, CAP_PERFMON\n" in r.stderr and "--privileged" in r.stderr, r
