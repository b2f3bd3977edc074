# SPDX-License-Identifier: BSD-2-Clause
"""Runs shell scripts on a kernel: the running one, or one that is booted in qemu.

    LUABPF = vm.needs(vm.O / "luabpf")             # at the top of a test file
    result = vm.run("6.1", f"{LUABPF} doctor", files=[LUABPF])
    result.status, result.output

or, by hand: python3 tests/kernel/vm.py 6.1 "$PWD/build/luabpf doctor" $PWD/build/luabpf

A guest consists of the kernel's image and an initramfs: busybox, the files named, under the same
absolute paths as here, and the libraries that their programs need. So one script with one set of
paths serves every kernel. There is no disk and no network.

A kernel's guest is booted by the first script for it, with all files that needs() has named, and
runs the next ones, too: each in a new empty directory, and no process of it outlives it. A script
that hangs or ends its guest raises Error, and the next one gets a new guest.

Guests are emulated (tcg), not virtualised: /dev/kvm cannot be relied on where tests run. Expect a
few seconds for the boot and code to run many times slower than here. So nothing is limited by its
time: what says nothing for SILENCE seconds hangs, and is ended.
"""
import atexit
import base64
import functools
import os
import re
import secrets
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
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

SILENCE = 600  # seconds: no script here is silent for as long, on the slowest machine

# The guest's first process. The console (ttyS0) is the kernel's, ttyS1 is for scripts alone, so that
# no kernel message gets in between. After "@ready" a line from there is a mark and a script in
# base64. What the script says comes back between two lines with its mark, the last with its status.
# Other processes, head and printf, read and write there: the shell's own `read` begins anew when SIGCHLD
# interrupts it, and has then lost what it had of the line; its printf loses what it could not write. A
# process that a script left behind may end that late.
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
exec 3<>/dev/ttyS1
stty -F /dev/ttyS1 raw -echo
say() { /bin/busybox printf "$@" >&3; }
say '@ready\\n'
while line=$(head -n 1 <&3) && [ "$line" ]; do
    mark=${line%% *}
    mkdir "/run/$mark" && cd "/run/$mark"
    echo "${line#* }" | base64 -d >/run/script
    say '\\n@begin %s\\n' "$mark"
    sh /run/script >&3 2>&3 3>&-
    status=$?
    kill -9 -1
    say '\\n@exit %s %d\\n' "$mark" $status
    cd / && rm -rf "/run/$mark"
done
poweroff -f
"""
# An oops ends the guest, and with -no-reboot qemu, rather than pass unseen.
CMDLINE = "console=ttyS0 quiet panic=-1 oops=panic"


class Error(Exception):
    """The script could not be run to its end: what happened, and what to do or where to look."""


class Result:
    def __init__(self, status, output):
        self.status, self.output = status, output


wanted = set()  # files that guests hold from the start
guests = {}  # by kernel, those that run


def needs(path):
    """Has each guest hold a file or folder, so that no script has to boot another guest for it."""
    wanted.add(Path(path))
    return path


def run(kernel, script, files=(), silence=SILENCE):
    """Runs `script` (sh) as root in an empty directory; stdout and stderr together are its output.

    files: programs, data and whole folders (absolute paths) that it uses; put into a guest.
    silence: after so many seconds without output it is ended and Error raised.
    """
    if os.geteuid() != 0:
        raise Error("the kernel tests need root, as BPF does: sudo make kernel")
    files = {Path(f) for f in files}
    for path in files:
        if not path.exists():
            raise Error(f"{path} is not there: make tests-build")
    if kernel == RUNNING:
        return run_here(script, silence)
    if kernel in guests and not files <= guests[kernel].files:
        wanted.update(files)
        guests.pop(kernel).end()
    if kernel not in guests:
        guests[kernel] = Guest(kernel, wanted | files)
    try:
        return guests[kernel].run(script, silence)
    except BaseException:
        guests.pop(kernel).end()
        raise


@atexit.register
def end_guests():
    while guests:
        guests.popitem()[1].end()


def once(of_kernel):
    """A function of a kernel, called once for each: what it has found or raised is kept."""
    kept = {}

    @functools.wraps(of_kernel)
    def ask(kernel):
        if kernel not in kept:
            try:
                kept[kernel] = of_kernel(kernel), None
            except (Error, AssertionError) as e:
                kept[kernel] = None, e
        found, error = kept[kernel]
        if error:
            raise error
        return found
    return ask


def read_more(pipe, silence):
    """The next bytes; b"": the other end has closed it; None: nothing came for `silence` seconds."""
    ready, _, _ = select.select([pipe], [], [], silence)
    return os.read(pipe.fileno(), 1 << 16) if ready else None


def run_here(script, silence):
    with tempfile.TemporaryDirectory() as cwd:
        p = subprocess.Popen(["sh", "-c", script], cwd=cwd, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env={**os.environ, "LC_ALL": "C"}, start_new_session=True)
        output = b""
        try:
            while more := read_more(p.stdout, silence):
                output += more
            if more is None:
                raise Error(f"running kernel: no output for {silence} s; output so far:\n"
                            f"{output.decode(errors='replace')}")
            return Result(p.wait(), output.decode(errors="replace"))
        finally:
            try:  # what the script started, too
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()


class Guest:
    def __init__(self, kernel, files):
        image = kernel_image(kernel)
        missing = [pkg for cmd, pkg in NEEDED.items() if not shutil.which(cmd)]
        if missing:
            raise Error(f"guests need packages that `make deps` installs: {' '.join(missing)}")
        self.kernel, self.ready = kernel, False
        self.files = frozenset(f for f in files if f.exists())
        self.tmp = Path(tempfile.mkdtemp(prefix="luabpf-vm."))
        try:
            self.qemu = boot(image, build_initramfs(self.tmp, self.files), self.tmp)
        except BaseException:
            shutil.rmtree(self.tmp)
            raise

    def run(self, script, silence):
        """A guest that has raised Error can only be ended."""
        if not self.ready:
            self.receive(rb"@ready\n", SILENCE)
            self.ready = True
        mark = secrets.token_hex(8)
        try:
            self.qemu.stdin.write(f"{mark} {base64.b64encode(script.encode()).decode()}\n".encode())
            self.qemu.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, finds receive()
        said, status = self.receive(rb"\n@exit %s (\d+)\n" % mark.encode(), silence)
        return Result(int(status[1]), said.partition(f"\n@begin {mark}\n")[2])

    def receive(self, end, silence):
        """What comes before `end`, a pattern, and its match."""
        end, said = re.compile(end + rb"\Z"), b""
        while not (found := end.search(said, max(0, len(said) - 64))):
            more = read_more(self.qemu.stdout, silence)
            if not more:
                why = f"no output for {silence} s" if more is None else "ended before its script did"
                raise Error(f"{self.kernel} guest: {why}; output so far:\n"
                            f"{said[-4000:].decode(errors='replace')}\n{self.console()}")
            said += more
        return said[:found.start()].decode(errors="replace"), found

    def console(self):
        text = read(self.tmp / "console")
        return (f"end of the console ({keep_console(self.kernel, text)}):\n{text[-4000:]}\n"
                f"qemu says: {read(self.tmp / 'qemu')}")

    def end(self):
        self.qemu.kill()
        self.qemu.wait()
        shutil.rmtree(self.tmp)


def kernel_image(kernel):
    image = KERNELS / f"vmlinuz-{kernel}"
    if not image.exists():
        p = subprocess.run([HERE / "fetch-kernels", KERNELS], stdin=subprocess.DEVNULL, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if p.returncode:
            raise Error(p.stdout)
    return image


def boot(image, initrd, tmp):
    """The qemu process: scripts go in and out by its standard streams.

    One thread emulates both processors: with one each, a kernel that patches its own code while it
    boots sometimes runs an instruction that is half patched."""
    with open(tmp / "qemu", "wb") as errors:
        return subprocess.Popen(
            ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-machine", "q35", "-smp", "2",
             "-m", "512M", "-nodefaults", "-no-user-config", "-display", "none", "-nic", "none",
             "-no-reboot", "-kernel", image, "-initrd", initrd, "-append", CMDLINE,
             "-serial", f"file:{tmp}/console", "-chardev", "stdio,id=scripts,signal=off",
             "-serial", "chardev:scripts"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)


def read(path):
    return path.read_text(errors="replace") if path.exists() else ""


def keep_console(kernel, console):
    FAILURES.mkdir(parents=True, exist_ok=True)
    fd, path = tempfile.mkstemp(prefix=f"console-{kernel}-", suffix=".log", dir=FAILURES)
    with open(fd, "w", encoding="utf-8") as f:
        f.write(console)
    return path


def build_initramfs(tmp, files):
    root = tmp / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    (root / "bin/sh").symlink_to("busybox")
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
