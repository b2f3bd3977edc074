# SPDX-License-Identifier: BSD-2-Clause
"""A command that runs as another user on root's terminal cannot type into it, in no system call's ABI; and where it is the
user's own, nothing is changed. Ctrl-C and job control work."""
import contextlib
import errno
import fcntl
import os
import pty
import signal
import termios

import pytest

import vms

pytestmark = pytest.mark.usefixtures("root")
MAL = 1001

# ioctl(fd, TIOCSTI or TIOCLINUX, "x") by all ways into the kernel; 0x80 is that of 32-bit programs, which any can take.
TYPE = r"""
import ctypes, errno, mmap, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
tty = os.open("/dev/tty", os.O_RDWR)
low = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, 7)  # MAP_32BIT
#           push rbx; mov eax, 54; mov ebx, edi; mov ecx, esi; int 0x80; pop rbx; ret
low.write(bytes.fromhex("53 b836000000 89fb 89f1 cd80 5b c3") + b"x")
at = ctypes.addressof(ctypes.c_char.from_buffer(low))
int80 = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_uint, ctypes.c_uint)(at)
pid = os.fork()
if not pid:
    int80(tty, 0x5412, at + 16)
    os._exit(0)
if os.WIFSIGNALED(os.waitpid(pid, 0)[1]):  # a kernel without the ABI ends who tries it: nobody types by it
    int80 = lambda *_: -errno.EPERM
buf = ctypes.create_string_buffer(b"x")
def call(nr, cmd):
    ctypes.set_errno(0)
    libc.syscall(ctypes.c_long(nr), ctypes.c_long(tty), ctypes.c_long(cmd), buf)
    return ctypes.get_errno()
for cmd in 0x5412, 0x541c, 0x15412:
    cmd = 0x100005412 if cmd == 0x15412 else cmd
    # dx, the third argument, is what the caller left there: the filter does not ask for it
    print(call(16, cmd), call(16 | 1 << 30, cmd), call(514 | 1 << 30, cmd), -int80(tty, cmd & 0xffffffff, at + 16))
print(*sorted(line.split()[1] for line in open("/proc/self/status") if line.startswith(("NoNewPrivs", "Seccomp:"))), os.getuid())
sys.stdout.flush()
"""


@contextlib.contextmanager
def terminal(owner):
    """A controlling terminal for luabpf; its master."""
    master, slave = pty.openpty()
    os.fchown(slave, owner, -1)
    try:
        yield master, slave
    finally:
        os.close(master)
        os.close(slave)


def on(slave, *args, **kw):
    return vms.Luabpf("-q", "-jp=,/dev/null", "--", *args, stats=False, stdin=slave, start_new_session=True,
                      env={"SUDO_UID": str(MAL), "SUDO_GID": str(MAL)},
                      preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **kw)


def waiting(slave):
    return int.from_bytes(fcntl.ioctl(slave, termios.FIONREAD, bytes(4)), "little")


def test_typing_into_roots_terminal():
    """Refused by our filter, whatever dev.tty.legacy_tiocsti is: EPERM, not EIO. It may still gain rights, by sudo."""
    with terminal(0) as (_, slave):
        attr = termios.tcgetattr(slave)
        attr[3] &= ~termios.ICANON
        termios.tcsetattr(slave, termios.TCSANOW, attr)
        r = on(slave, "python3", "-c", TYPE).done()
        assert r.code == 0, r
        *calls, status = r.out.splitlines()
        assert calls == [" ".join([str(errno.EPERM)] * 4)] * 3 and status == f"0 2 {MAL}", r
        assert waiting(slave) == 0


def test_the_users_own_terminal():
    """Nothing is in its way, and nothing slows its system calls down. Nor where there is no terminal."""
    check = "cat /proc/self/status | grep Seccomp: ; exec 0</dev/null; id -u"
    with terminal(MAL) as (_, slave):
        r = on(slave, "sh", "-c", check).done()
        assert (r.code, r.out) == (0, f"Seccomp:\t0\n{MAL}\n"), r
    r = vms.Luabpf("-q", "-jp=,/dev/null", "--", "sh", "-c", check, stats=False, start_new_session=True,
                   env={"SUDO_UID": str(MAL), "SUDO_GID": str(MAL)}).done()
    assert (r.code, r.out) == (0, f"Seccomp:\t0\n{MAL}\n"), r


def test_a_terminal_that_no_stream_shows():
    """/dev/tty is there for the command all the same."""
    with terminal(0) as (_, slave):
        r = on(slave, "sh", "-c", "grep Seccomp: /proc/self/status", pass_fds=[slave]).done()
        assert "\t2\n" in r.out, r
        def lead():
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            os.close(slave)
        r = vms.Luabpf("-q", "-jp=,/dev/null", "--", "sh", "-c", "grep Seccomp: /proc/self/status", stats=False,
                       start_new_session=True, pass_fds=[slave], env={"SUDO_UID": str(MAL), "SUDO_GID": str(MAL)},
                       preexec_fn=lead).done()
        assert "\t2\n" in r.out, r


def test_interrupt_from_roots_terminal():
    """Ctrl-C reaches luabpf and the command."""
    with terminal(0) as (master, slave):
        tool = on(slave, "sh", "-c", "trap 'echo interrupted; exit 9' INT; echo ready; while :; do sleep 0.01; done")
        with vms.no_hang(tool.p):
            assert tool.p.stdout.readline() == "ready\n"
        os.write(master, b"\x03")
        r = tool.done()
        assert (r.code, r.out) == (9, "interrupted\n"), r
