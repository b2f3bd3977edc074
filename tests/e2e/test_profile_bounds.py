# SPDX-License-Identifier: BSD-2-Clause
"""A profile that somebody made to exhaust its reader, and a program that makes functions to exhaust its profiler."""
import gzip
import resource

import pytest

import vms

LIMIT = 1 << 30  # bytes of address space: a failure is an error, not a full machine


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


def report(*args):
    return vms.luabpf("report", *args, stats=False, preexec_fn=limited)


# ---- pprof files of few bytes -----------------------------------------------------------------------

def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, *parts):
    body = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


def profile(functions, stacks, labels=(), lines=1):
    """functions: pairs of name and file. Function and location i are one; each stack is location ids, leaf first."""
    strings = [b"", b"samples", b"count"]
    out = [message(1, number(1, 1), number(2, 2))]
    for i, pair in enumerate(functions, 1):
        for s in pair:
            if s not in strings:
                strings.append(s)
        name, file = map(strings.index, pair)
        out.append(message(5, number(1, i), number(2, name), number(3, name), number(4, file)))
        out.append(message(4, number(1, i), *[message(4, number(1, i), number(2, 1))] * lines))
    for stack, label in zip(stacks, labels or [()] * len(stacks)):
        parts = []
        for key, value in label:
            strings += [s for s in (key, value) if s not in strings]
            parts.append(message(3, number(1, strings.index(key)), number(2, strings.index(value))))
        out.append(message(2, message(1, *map(varint, stack)), message(2, varint(1)), *parts))
    return gzip.compress(b"".join(out + [message(6, s) for s in strings]), 1)


LONG = b"n" * (1 << 20)
BOMBS = {
    "long name, deep stack": lambda: profile([(LONG, b"f.lua")], [[1] * 16384]),
    "long file, deep stack": lambda: profile([(b"f", b"/" + LONG)], [[1] * 16384]),
    "names of bytes that are escaped": lambda: profile([(b"\xc2\x80" * 500000, b"")], [[1] * 16384]),
    "long name of many lines": lambda: profile([(LONG, LONG)], [[1]], lines=16384),
    "many threads of a deep stack": lambda: profile(
        [(b"f", b"f.lua")], [[1] * 10] * 50, [[(b"tid", b"%d" % i), (b"comm", b"%d" % i + LONG[:30000])] for i in range(50)],
        lines=1600),
    "numbers of many digits": lambda: profile([(b"f", b"")], [[1]] * 50, [[(b"pid", b"0" * (1 << 20))] * 900] * 50),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_bomb(tmp_path, bomb):
    path = tmp_path / "x.pb.gz"
    path.write_bytes(BOMBS[bomb]())
    samples = None
    for how in (["-f", "folded"], ["-jp=G"], ["-jp=-99999fm0"], ["-jp=Am0"]):
        r = report(path, *how)
        assert r.code == 0, (how, r)
        assert len(r.out) < 300 << 20, how
        if how[-1] in ("folded", "-jp=G"):
            counts = [int(line.rsplit(" ", 1)[1]) for line in r.out.splitlines()]
            assert samples in (None, sum(counts)), how  # none is lost
            samples = sum(counts)
    again = tmp_path / "again.pb.gz"
    assert report(path, "-o", again).code == 0
    r = report(again, "-f", "folded")
    assert r.code == 0, r
    assert sum(int(line.rsplit(" ", 1)[1]) for line in r.out.splitlines()) == samples


# ---- a program without end of functions --------------------------------------------------------------

# Each chain is new; the last function of it runs for a few samples.
CHAINS = r"""
local n = 0
local function leaf() local t = os.clock() + 0.03 while os.clock() < t do end end
local function chain()
  local f = leaf
  for i = 1, 120 do
    n = n + 1
    f = loadstring("local nxt = ... return function() local r = nxt() return r end", "@" .. n .. ("\195\191"):rep(4050) .. n)(f)
  end
  return f
end
while true do chain()() end
"""


def test_functions_without_end(root, tmp_path):
    saved = tmp_path / "x.pb.gz"
    as_user = ["setpriv", "--reuid", "1001", "--regid", "1001", "--clear-groups"]
    with vms.Target([*as_user, "luajit", "-e", CHAINS], cwd="/") as t:
        r = vms.record(t.spend(0.05), 1, "-F", 100, "-o", saved, preexec_fn=limited)
    assert r.code == 0, r
    assert r.stats["other"] > 0
    assert f"luabpf: {r.stats['other']} samples with (other) in the stack" in r.err
    assert r.stats["samples"] == r.stats["resolved"] + r.stats["outside_lua"] + r.stats["lost"]
    f = report(saved, "-f", "folded")  # all frames of each stack
    assert f.code == 0, f
    counts = [line.rsplit(" ", 1) for line in f.out.splitlines()]
    assert sum(int(n) for _, n in counts) == r.stats["resolved"]
    assert sum(int(n) for stack, n in counts if "(other)" in stack) == r.stats["other"]
    assert f"luabpf: {r.stats['other']} samples with (other) in the stack" in f.err
