# SPDX-License-Identifier: BSD-2-Clause
"""A FUSE file system of one file, without libfuse: `python3 fuse.py FILE-OF-CONTENT|- [overlay]`, as root. It is mounted as fusermount3
mounts one of a user, in a mount namespace of its own: /proc/PID/root/mnt/fs/file. It prints "ready", then "asked OPCODE" for what
it never answers, with "overlay" also whose child asked: with "-" each READ, else each request after a line on standard input, which it confirms by "silent". When it ends nothing waits any more."""
import ctypes
import os
import select
import struct
import sys

LOOKUP, GETATTR, OPEN, READ, INIT, FORGET, INTERRUPT, BATCH_FORGET, STATFS = 1, 3, 14, 15, 26, 2, 36, 42, 17
CLONE_NEWNS, MS_REC, MS_PRIVATE, MS_NODEV, MS_NOSUID = 0x20000, 1 << 14, 1 << 18, 4, 2
USER, ENOSYS, ENOENT = 65534, 38, 2
PAGES = 16 * 4096


def mount():
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fd},rootmode=40000,user_id={USER},group_id={USER},allow_other"
    if libc.unshare(CLONE_NEWNS) or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) or \
       libc.mount(b"tmpfs", b"/mnt", b"tmpfs", 0, None) or os.mkdir("/mnt/fs") or \
       libc.mount(b"none", b"/mnt/fs", b"fuse", MS_NODEV | MS_NOSUID, options.encode()):
        raise OSError(ctypes.get_errno(), "fuse")
    return fd


def attributes(node, size):
    mode, links = (0o40755, 2) if node == 1 else (0o100755, 1)
    return struct.pack("<6Q10I", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, links, USER, USER, 0, 4096, 0)


def answer(opcode, node, body, content):
    """(errno, bytes); None: no answer is expected."""
    if opcode in (FORGET, INTERRUPT, BATCH_FORGET):
        return None
    if opcode == INIT:
        return 0, struct.pack("<4I2H2I2H8I", 7, 31, 65536, 0, 12, 12, 65536, 1, 16, 0, *[0] * 8)
    if opcode == LOOKUP:
        if body.rstrip(b"\0") != b"file":
            return ENOENT, b""
        return 0, struct.pack("<4Q2I", 2, 1, 0, 0, 0, 0) + attributes(2, len(content))
    if opcode == STATFS:
        return 0, struct.pack("<5Q10I", 1, 1, 1, 1, 1, 4096, 255, 4096, *[0] * 7)
    if opcode == GETATTR:
        return 0, struct.pack("<Q2I", 0, 0, 0) + attributes(node, len(content))
    if opcode == OPEN:
        return 0, struct.pack("<Q2I", 1, 0, 0)
    if opcode == READ:
        _, at, size = struct.unpack_from("<QQI", body)
        return 0, content[at:at + size]
    return ENOSYS, b""


def parent(pid):
    return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1]


def serve(fd, content, says_whose):
    silent = {READ} if content is None else set()
    content = content or b"n" * PAGES
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([fd, 0], [], [])
        if 0 in ready:
            if not sys.stdin.readline():
                return
            silent = set(range(100)) - {FORGET, INTERRUPT, BATCH_FORGET}
            print("silent", flush=True)
        if fd not in ready:
            continue
        request = os.read(fd, 1 << 18)
        _, opcode, unique, node, _, _, pid = struct.unpack_from("<IIQQ3I", request)
        if opcode in silent:
            print("asked", opcode, *[parent(pid)] if says_whose else [], flush=True)
            continue
        reply = answer(opcode, node, request[40:], content)
        if reply:
            os.write(fd, struct.pack("<IiQ", 16 + len(reply[1]), -reply[0], unique) + reply[1])


def overlay(fd):
    """At /mnt/overlay. Another process does it, as this one is asked."""
    for name in "overlay", "upper", "work":
        os.mkdir(f"/mnt/{name}")
    if os.fork():
        return
    os.close(fd)
    layers = b"lowerdir=/mnt/fs,upperdir=/mnt/upper,workdir=/mnt/work"
    failed = ctypes.CDLL(None).mount(b"none", b"/mnt/overlay", b"overlay", 0, layers)
    print("failed" if failed else "overlay", flush=True)
    os._exit(0)


if __name__ == "__main__":
    connection = mount()
    if sys.argv[2:]:
        overlay(connection)
    serve(connection, None if sys.argv[1] == "-" else open(sys.argv[1], "rb").read(), len(sys.argv) > 2)
