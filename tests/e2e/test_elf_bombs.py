# SPDX-License-Identifier: BSD-2-Clause
"""Executable files that cost their reader time or memory: mapped by an unprivileged user's process, read by root."""
import os
import resource
import struct

import pytest

import vms

pytestmark = pytest.mark.usefixtures("root")
MAL = 1001
MB = 1 << 20
EHDR, PHDR, SHDR = 64, 56, 64
MAP = """
local ffi = require "ffi"
ffi.cdef[[int open(const char *, int); void *mmap(void *, size_t, int, int, int, long);]]
for i = 1, #arg do
  local fd = ffi.C.open(arg[i], 0)
  assert(fd >= 0 and ffi.C.mmap(nil, 4096, 5, 2, fd, 0) ~= ffi.cast("void *", -1))
end
print("ready") io.stdout:flush()
local x = 0 while true do for i = 1, 1e5 do x = x + i % 7 end end
"""


def elf_header(phnum=0, shoff=0, shnum=0):
    return b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, EHDR, shoff, 0, EHDR, PHDR, phnum,
                                                                 SHDR, shnum, 0)


def segment(kind, flags, at, size):
    return struct.pack("<IIQQQQQQ", kind, flags, at, at, at, size, size, 4096)


def section(kind, at, size, link=0):
    return struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, at, size, link, 0, 8, 24)


def sparse(path, size, parts):
    """A file of holes but for these parts: (where, bytes)."""
    with open(path, "wb") as f:
        f.truncate(size)
        for at, data in parts:
            f.seek(at)
            f.write(data)
    os.chmod(path, 0o755)
    return path


def frames(path, functions, cie, size):
    """Each of so many functions has the one FDE, whose CIE has so many bytes of DW_CFA_nop."""
    at = 0x3000 + 8 * functions
    table = b"\x01\x03\x03\x3b" + struct.pack("<II", at, functions) + struct.pack("<ii", 0x1000, at + 4 + cie - 0x2000) * functions
    fde = struct.pack("<IIQQB", 21, 8 + cie, 0x1000, 0x4000, 0)
    heads = segment(1, 5, 0, size) + segment(0x6474e550, 4, 0x2000, len(table))
    return sparse(path, size, [
        (0, elf_header(phnum=2) + heads), (0x2000, table),
        (at, struct.pack("<II", cie, 0) + b"\x01\0\x01\x78\x10"), (at + 4 + cie, fde)])


def symbols(path, tables, size):
    """So many symbol tables, all of them the same hole."""
    heads = section(0, 0, 0) + section(3, 0, 16) + section(2, 0x80000, size - 0x80000, 1) * tables
    return sparse(path, size, [(0, elf_header(shoff=EHDR, shnum=2 + tables) + heads)])


def sections(path, n):
    return sparse(path, 64 * n + 4096, [(0, elf_header(shoff=EHDR) + section(0, 0, n))])


def jumps(path, functions):
    """A PUC Lua, by its text: so many times the one function, which has the opcode's mask and a jump over and over."""
    code = b"\x83\xe0\x3f\xeb\x00" * (MB // 16 // 5)
    eh_frame, text = 0x3000 + 8 * functions, 0x3000 + 8 * functions + 0x1000
    fde = struct.pack("<IIQQB", 21, 20, text, len(code), 0)
    cie = struct.pack("<II", 12, 0) + b"\x01\0\x01\x78\x10\0\0\0"
    table = b"\x01\x03\x03\x3b" + struct.pack("<II", eh_frame, functions) + struct.pack("<ii", 0x1000, eh_frame + 16 - 0x2000) * functions
    size = text + MB
    heads = segment(1, 5, 0, size) + segment(0x6474e550, 4, 0x2000, len(table))
    return sparse(path, size, [(0, elf_header(phnum=2) + heads), (0x1000, b"$Lua: Lua 5.1.5 Copyright (C)\0"), (0x2000, table),
                               (eh_frame, cie + fde), (text, code)])


@pytest.fixture(scope="module")
def target():
    with vms.public_dir() as d:
        bombs = [frames(d / "frames", 200_000, 8 * MB, 15 * MB), frames(d / "holes", 10, 100 * MB, 200 * MB),
                 symbols(d / "symbols", 4000, 15 * MB), sections(d / "sections", 10_000_000), jumps(d / "jumps", 100)]
        (d / "map.lua").write_text(MAP)
        with vms.Target(["setpriv", f"--reuid={MAL}", f"--regid={MAL}", "--clear-groups", "luajit", d / "map.lua", *bombs]) as t:
            yield t.ready()


def tight():
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))  # of hours or days
    resource.setrlimit(resource.RLIMIT_AS, (1024 * MB, 1024 * MB))


@pytest.mark.parametrize("args", [["-d", 1, "-jp=f", "-v"], ["doctor"]], ids=["record", "doctor"])
def test_bombs_are_bounded(target, args):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    doctor = args[0] == "doctor"
    r = vms.luabpf(*args, "-p", target.pid, stats=not doctor, preexec_fn=tight)
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert r.code == 0 and (doctor or r.stats["samples"]), r
    assert after <= max(before, 200 << 10), f"{after} KiB: {r}"
    assert "whether it holds a Lua is not known" in r.err + r.out, r
