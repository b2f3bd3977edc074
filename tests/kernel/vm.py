# SPDX-License-Identifier: BSD-2-Clause
"""Runs a shell script on a kernel: the running one, or one that is booted for it in qemu.

    result = vm.run("6.1", "luabpf doctor", files=[LUABPF])
    result.status, result.output, result.seconds

or, by hand: python3 tests/kernel/vm.py 6.1 "$PWD/build/luabpf doctor" $PWD/build/luabpf

A guest consists of the kernel's image and an initramfs: busybox, the files named, under the same
absolute paths as here, and the libraries that their programs need. So one script with one set of
paths serves every kernel. There is no disk and no network, and nothing survives the run.

Guests are emulated (tcg), not virtualised: /dev/kvm cannot be relied on where tests run. Expect a
few seconds for the boot and code to run many times slower than here.
"""
import functools
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
O = Path(os.environ.get("O", HERE.parent.parent / "build")).resolve()
KERNELS = O / "kernels"
FAILURES = O / "test-logs"  # consoles of guests that failed

RUNNING = "running"
GUESTS = ["6.1", "6.12"]
ALL = [RUNNING, *GUESTS]

NEEDED = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "cpio": "cpio",
          "ldd": "libc-bin"}

# The guest's first process. The console (ttyS0) is the kernel's, ttyS1 is the script's alone, so
# that no kernel message gets in between. ttyS1 is closed, and with that drained, before the end.
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /root /run /sbin /usr/bin /usr/sbin
/bin/busybox mount -t devtmpfs dev /dev
exec >/dev/console 2>&1 </dev/null
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t bpf bpf /sys/fs/bpf
/bin/busybox mount -t debugfs debug /sys/kernel/debug
/bin/busybox mount -t tracefs trace /sys/kernel/tracing
/bin/busybox --install -s
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
stty -F /dev/ttyS1 raw -echo
mkdir /run/script && cd /run/script
(sh /script; printf '\\n@exit %d\\n' $?) >/dev/ttyS1 2>&1
poweroff -f
"""
# An oops ends the guest, and with -no-reboot qemu, rather than pass unseen.
CMDLINE = "console=ttyS0 quiet panic=-1 oops=panic"
END = re.compile(r"\n@exit (\d+)\n\Z")


class Error(Exception):
    """The script could not be run to its end: what happened, and what to do or where to look."""


class Result:
    def __init__(self, status, output, seconds, console=""):
        self.status, self.output, self.seconds, self.console = status, output, seconds, console


def run(kernel, script, files=(), timeout=400):
    """Runs `script` (sh) as root in an empty directory; stdout and stderr together are its output.

    files: programs, data and whole folders (absolute paths) that it uses; put into a guest.
    timeout: seconds, a guest's boot included; then it is ended and Error raised.
    """
    if os.geteuid() != 0:
        raise Error("the kernel tests need root, as BPF does: sudo make kernel")
    for path in files:
        if not Path(path).exists():
            raise Error(f"{path} is not there: make tests-build")
    if kernel == RUNNING:
        return run_here(script, timeout)
    return run_guest(kernel, script, files, timeout)


def run_here(script, timeout):
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as cwd:
        # timeout(1) ends what the script started, too.
        p = subprocess.run(["timeout", "-k", "2", str(timeout), "sh", "-c", script], cwd=cwd,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, env={**os.environ, "LC_ALL": "C"},
                           check=False)
    output = p.stdout.decode(errors="replace")
    if p.returncode == 124:
        raise Error(f"running kernel: not done after {timeout} s; output so far:\n{output}")
    return Result(p.returncode, output, time.monotonic() - start)


def run_guest(kernel, script, files, timeout):
    image = kernel_image(kernel)
    missing = [pkg for cmd, pkg in NEEDED.items() if not shutil.which(cmd)]
    if missing:
        raise Error(f"guests need packages that `make deps` installs: {' '.join(missing)}")
    with tempfile.TemporaryDirectory(prefix="luabpf-vm.") as tmp:
        tmp = Path(tmp)
        initrd = build_initramfs(tmp, script, files)
        start = time.monotonic()
        why = boot(image, initrd, tmp, timeout)
        seconds = time.monotonic() - start
        output, console = (read(tmp / name) for name in ("output", "console"))
        end = END.search(output)
        if not why and end:
            return Result(int(end[1]), output[:end.start()], seconds, console)
        kept = keep_console(kernel, console)
        raise Error(f"{kernel} guest: {why or 'ended before its script did'}; "
                    f"output so far:\n{output[-4000:]}\n"
                    f"end of the console ({kept}):\n{console[-4000:]}")


def kernel_image(kernel):
    image = KERNELS / f"vmlinuz-{kernel}"
    if not image.exists():
        p = subprocess.run([HERE / "fetch-kernels", KERNELS], stdin=subprocess.DEVNULL, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if p.returncode:
            raise Error(p.stdout)
    return image


def boot(image, initrd, tmp, timeout):
    """One thread emulates both processors: with one each, a kernel that patches its own code while it boots
    sometimes runs an instruction that is half patched.

    Returns None if the guest powered off, else why not. Serial ports go to files in tmp."""
    qemu = subprocess.Popen(
        ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-machine", "q35", "-smp", "2",
         "-m", "512M", "-nodefaults", "-no-user-config", "-display", "none", "-nic", "none",
         "-no-reboot", "-kernel", image, "-initrd", initrd, "-append", CMDLINE,
         "-serial", f"file:{tmp}/console", "-serial", f"file:{tmp}/output"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        said, _ = qemu.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        return f"not done after {timeout} s"
    finally:  # whatever ends this test, a KeyboardInterrupt too, ends its guest
        if qemu.poll() is None:
            qemu.kill()
            qemu.wait()
    if qemu.returncode:
        return f"qemu: exit code {qemu.returncode}: {said.decode(errors='replace')}"
    return None


def read(path):
    return path.read_text(errors="replace") if path.exists() else ""


def keep_console(kernel, console):
    FAILURES.mkdir(parents=True, exist_ok=True)
    fd, path = tempfile.mkstemp(prefix=f"console-{kernel}-", suffix=".log", dir=FAILURES)
    with open(fd, "w", encoding="utf-8") as f:
        f.write(console)
    return path


def build_initramfs(tmp, script, files):
    root = tmp / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    (root / "bin/sh").symlink_to("busybox")
    (root / "script").write_text(script)
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    for path in closure(files):
        place(root, path)
    names = b"".join(bytes(p.relative_to(root)) + b"\0" for p in sorted(root.rglob("*")))
    initrd = tmp / "initrd"
    with open(initrd, "wb") as out:  # not compressed: unpacking that is what takes long in a guest
        subprocess.run(["cpio", "--create", "--null", "--format=newc", "--owner=0:0", "--quiet"],
                       cwd=root, input=names, stdout=out, check=True)
    shutil.rmtree(root)
    return initrd


def closure(files):
    """The files, those in folders, and the libraries that the ELF files among them need."""
    plain = set()
    for path in map(Path, files):
        plain |= {p for p in path.rglob("*") if p.is_file()} if path.is_dir() else {path}
    return plain | {lib for path in plain for lib in libraries(path)}


@functools.lru_cache(maxsize=None)
def libraries(path):
    with open(path, "rb") as f:
        if f.read(4) != b"\x7fELF":
            return ()
    # It exits with 1 for a static program, which needs none.
    p = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                       text=True, check=False)
    if "not found" in p.stdout:
        raise Error(f"ldd {path}:\n{p.stdout}")
    return tuple(Path(m) for m in re.findall(r"^\t(?:\S+ => )?(/\S+) \(0x", p.stdout, re.M))


def place(root, path):
    """Copies contents to the same absolute path below root: symbolic links become files."""
    to = root / path.absolute().relative_to("/")
    to.parent.mkdir(parents=True, exist_ok=True)
    if not to.exists():
        shutil.copyfile(path, to)
        to.chmod(stat.S_IMODE(path.stat().st_mode))


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ALL:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(ALL)} SCRIPT [FILE...]")
    try:
        r = run(sys.argv[1], sys.argv[2], [Path(f).absolute() for f in sys.argv[3:]])
    except Error as e:
        sys.exit(str(e))
    sys.stdout.write(r.output)
    sys.exit(r.status)


if __name__ == "__main__":
    main()
