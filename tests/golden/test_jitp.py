# SPDX-License-Identifier: BSD-2-Clause
"""jit.p text against LuaJIT's own jit/p.lua, over generated samples and option strings.

Needs luajit and the driver render (O names the build directory, default build). Rows of equal
counts may stand in any order, all else is compared byte for byte. Each report is made twice: from the
profile itself, and from the profile that was saved as pprof and loaded again.
"""

import itertools
import os
import pathlib
import random
import re
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = (ROOT / os.environ.get("O", "build")).resolve()
RENDER = BUILD / "tests/golden/render"
REPLAY = HERE / "replay.lua"
SEEDS = range(int(os.environ.get("LUABPF_GOLDEN_SETS", "24")))


def p_lua():
    if not shutil.which("luajit"):
        return None
    path = subprocess.run(["luajit", "-e", "print(package.path)"], capture_output=True, check=True)
    places = [p.replace("?", "jit/p") for p in path.stdout.decode().strip().split(";")]
    places += [str(p) for p in pathlib.Path("/usr/share").glob("luajit-*/jit/p.lua")]
    return next((p for p in places if p.startswith("/") and os.path.exists(p)), None)


P_LUA = p_lua()
needs_luajit = pytest.mark.skipif(P_LUA is None, reason="no luajit with jit/p.lua here")


# ---- samples -------------------------------------------------------------------------------------

def quote(s):
    if s is None:
        return "~"
    raw = s if isinstance(s, bytes) else s.encode()
    return "".join(chr(b) if chr(b).isalnum() and b < 128 or b in b"_.-" else f"%{b:02X}" for b in raw)


# What luabpf shows on purpose as jit/p.lua does not is not in here: a name that is none, or that two functions have, or
# that is not the definition's. tests/unit/test_function.c has these.
NAMES = ["f", "main", "tbl.method", "a:b", "x < y", "x > y < z", "l", "12", "trace 12",
         "sp ace", "se;mi", "new\nline", b"\x1b[31mred", b"lat\xedn", "žluť", b"c1\xc2\x9b", b"\x9braw",
         "[builtin:x]", "foo.lua:3", "%d%s", "back\\slash"]
ODD = [None, "", "?", " ", "a;b 12", "\t7", "x \r", "x < ", " < y 1", "3 .", "9;"]
CHUNKS = ["@a.lua", "@src/b.lua", "@/srv/app/very/long/path/c.lua", "@C:\\lua\\d.lua", "@mixed/e\\f.lua",
          "=stdin", "=[C]", "=(command line)", "=a b < c", "=x > y/z", "return 1", "local x = 'a/b'\nreturn x",
          b"@bad\xff\xfe.lua", b"@\x1b]0;title\x07.lua", "=", "@", "@@", "@=x", "@[x", "=?", "@dir/", "", None,
          "@a.lua:3", "=tab\there"]
BYTECODE = ["table", "string", "=x"]
ZONES = ["(none)", "(none)", "AI", "A*", "x < y", "žluť", "se;mi", "%d%s", "sp ace 12", "", "Compiled"]
STATES = ["N", "I", "I", "C", "G", "J", "X"]


class Names:
    """One name for each function, and none that two have."""

    def __init__(self, rng):
        self.rng, self.left, self.of = rng, rng.sample(NAMES, len(NAMES)), {}

    def __getitem__(self, function):
        if function not in self.of:
            name = self.left.pop() if self.left and self.rng.random() < 0.7 else f"g{len(self.of)}"
            self.of[function] = name if self.rng.random() < 0.8 else None
        return self.of[function]


class OddNames:
    """Any name for any function."""

    def __init__(self, rng):
        self.rng = rng

    def __getitem__(self, function):
        return self.rng.choice(NAMES + ODD)


def bytes_of(s):
    return s if isinstance(s, bytes) else s.encode()


def random_frame(rng, names, sources, only_sources):
    kind = "L" if only_sources else rng.choices("LCB", [8, 2, 2])[0]
    if kind == "C":
        addr = rng.choice([0, 0x1234, 0x123456789, 0x123456789AB, 0x7F1234567890, 0xFFFFFFFFFFFFFFFF])
        module, symbol = rng.choice([None, "luajit", "lib x.so"]), rng.choice([None, None, "lua_f", b"\x07"])
        name = None if symbol else names[kind, module, addr]
        return kind, name, None, module, symbol, hex(addr), 0, -1, None
    if kind == "B":
        number = rng.randint(2, 40)
        symbol = None if number % 5 == 0 else f"lib{number % 3}.f{number}"
        name = [None, f"f{number}", symbol][number % 3] if symbol else names[kind, number]
        return kind, name, None, None, symbol, str(number), 0, -1, None
    line, position = rng.choice([-1, 0] + list(range(1, 30))), None
    if only_sources:
        chunk, first = "@" + rng.choice(sources), 1
    elif rng.random() < 0.1:
        chunk, first = rng.choice(BYTECODE), -1
    else:
        chunk = rng.choice(CHUNKS) if rng.random() < 0.6 else "@" + rng.choice(sources)
        first = rng.randint(0, 9)
        position = rng.choice([None, "1", "3.12"]) if not first else None
    name = names[chunk, first, position]
    defname = rng.choice([None, bytes_of(name) if first % 2 else b"M." + bytes_of(name)]) if name else None
    return kind, name, defname, chunk, None, "0", first, line, position


def samples(seed, sources, names=Names):
    rng = random.Random(seed)
    names = names(rng)
    frames = [random_frame(rng, names, sources, seed % 3 == 1) for _ in range(rng.choice([4, 20, 80]))]
    cut = len(frames)
    lines = [f"M {rng.choice([0, 1000000, 10**7])} {rng.randrange(2**60)} {rng.randrange(2**40)}"]
    for f in frames + [("X", None, None, None, None, "0", 0, 0, None)]:
        lines.append(" ".join(["F", f[0], *map(quote, f[1:5]), f[5], str(f[6]), str(f[7]), quote(f[8])]))
    if seed % 7 == 6:
        return "\n".join(lines) + "\n"  # no sample at all
    for _ in range(rng.choice([1, 5, 40, 200])):
        depth = rng.choices([0, 1, 2, 3, 5, 20, 99, 100, 101, 127], [1, 8, 8, 8, 8, 5, 1, 1, 1, 2])[0]
        stack = [rng.randrange(len(frames)) for _ in range(depth)]
        if depth in (3, 99, 101, 127) and rng.random() < 0.5:
            stack.append(cut)
        count = rng.choice([1, 1, 1, 2, 3, 7, 100, 123456, 12345, 2**40][: seed % 8 + 3] if seed % 2 else [1, 1, 2, 3, 50])
        comm = rng.choice(["luajit", "a b", b"\xff\x01", ""])
        lines.append(" ".join(map(str, ["R", rng.choice(STATES), rng.choice([0, 7, 4294967295]),
                                        rng.randint(0, 9), quote(comm), count,
                                        quote(rng.choice(ZONES)), *stack])))
    lines.append("L ring-full 12")
    return "\n".join(lines) + "\n"


SOURCES = {
    "plain.lua": "".join(f"local line{i} = {i}\n" for i in range(1, 41)),
    "crlf.lua": "".join(f"line {i}\r\n" for i in range(1, 31)),
    "tabs.lua": "".join(f"\tline {i}\n" for i in range(1, 25)) + "no newline at the end",
    "escape.lua": "x = 1\nprint '\x1b[31m \x07'\n" + "y = 2\n" * 20,
    "bytecode.lua": "one\ntwo\n\x1bLJ bytecode\nnever shown\n",
    "empty.lua": "",
    "short.lua": "only\n",
}


# ---- option strings ------------------------------------------------------------------------------

SINGLE = ["f", "F", "l", "v", "z", "s", "p", "r", "a", "A", "G"]


def option_strings():
    known = {"", "3si4m1", "fl", "Fl", "lf", "lF", "vf", "fv", "vl", "lv", "vfl", "vFl", "flv", "fvl", "vs", "vsf",
             "zfl", "zFl", "flz", "fzl", "zs", "zsf", "fzs", "szf", "zm0", "zv", "vz", "zvf", "fzv", "vzlm0", "z2fm0",
             "z-3lm0", "zrm0", "zar", "Gfz", "zGF", "lzm0r",
             "fvs", "svf", "-s", "-1s", "-3s", "0", "0s", "-0", "-0s", "1", "-1", "2", "-2", "5", "-5", "100", "-100",
             "127", "-127", "-128", "-200", "200", "3-5", "-3s5", "m0", "m1", "m50", "m100", "m101", "fm0r",
             "i1", "i", "i0", "-i3-5", "mi45", "m", "m3m0", "5m3-4f", "1i52", "G3", "Gv", "vG", "Gfl", "Gs", "Gsp",
             "Gl", "GF", "Gr", "GpF", "Gpl", "rG", "Gm50", "a", "A", "ar", "Ar", "am0", "Am0", "arm0", "Arm0", "aG",
             "aAm0", "asv", "av2m0", "FlvGs", "plFm0", "pflm0", "lpFm0", "xyq", "f?", "F-", "99999", "-99999",
             "s-", "fl-2", "fl3m0", "fl-3m0r", "vfm0", "vlpm0", "vl-3m0", "m0v", "m0vr", "m00010", "--5s"}
    for n in (1, 2):
        known.update("".join(p) for p in itertools.permutations(SINGLE, n))
    rng = random.Random(1)
    while len(known) < 700:
        parts = rng.sample(SINGLE + ["-", "m0", "m1", "m20", "2", "-2", "4", "-7", "i2", "x"], rng.randint(2, 6))
        known.add("".join(parts))
    return sorted(known)


OPTIONS = option_strings()


# ---- comparison ----------------------------------------------------------------------------------

def reports(data):
    out = []
    while data:
        length, data = data.split(b"\n", 1)
        n = int(length.lstrip(b"!"))
        out.append((length.startswith(b"!"), data[:n]))
        data = data[n:]
    return out


def run(command, options, cwd):
    text = "".join(o + "\n" for o in options).encode()
    done = subprocess.run(command, input=text, capture_output=True, cwd=cwd)
    assert done.returncode == 0, done.stderr.decode()
    got = reports(done.stdout)
    assert len(got) == len(options)
    return got


NESTED = re.compile(rb"  (--|->|<-) [ ]*\d+%?  ")


def normal_form(text):
    """Blocks of a top row and its nested rows; each kept in order of what it says of counts."""
    blocks = []
    for line in text.split(b"\n"):
        if NESTED.match(line) and blocks:
            blocks[-1][1].append(line)
        else:
            blocks.append((line, []))
    return sorted((top, sorted(rows)) for top, rows in blocks)


def amounts(text):
    """The counts in order, with the nested ones left out: equal rows may swap together with what is in them."""
    lines = [line for line in text.split(b"\n") if line and not NESTED.match(line)]
    return [re.match(rb" *\d+%?  | *", line).group() or line.rsplit(b" ", 1)[-1] for line in lines]


def same(options, theirs, ours):
    if re.search("[aA]", options):  # jit.p does not say that lines with samples are not in the file
        return theirs == re.sub(rb"(?m)^\[\d+ lines? with samples \w+ behind the file's end\]\n", b"", ours)
    if "G" in options:
        return sorted(theirs.split(b"\n")) == sorted(ours.split(b"\n"))
    return normal_form(theirs) == normal_form(ours) and amounts(theirs) == amounts(ours)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    where = tmp_path_factory.mktemp("sources")
    for name, text in SOURCES.items():
        (where / name).write_text(text, newline="")
    return where


def write_samples(where, seed, names=Names):
    # Some sets name only files that can be opened: jit.p ends its annotation at the first that cannot.
    path = where / f"samples{seed}.txt"
    text = samples(seed, list(SOURCES) + ([] if seed % 3 else ["missing.lua"]), names)
    path.write_text(text)
    return path


@needs_luajit
@pytest.mark.parametrize("seed", SEEDS)
def test_same_text_as_jit_p(seed, sources):
    path = write_samples(sources, seed)
    theirs = run(["luajit", REPLAY, P_LUA, path], OPTIONS, sources)
    direct = run([RENDER, path, "direct"], OPTIONS, sources)
    loaded = run([RENDER, path, "pprof"], OPTIONS, sources)
    failed = []
    for options, (broke, their), (_, ours), (_, again) in zip(OPTIONS, theirs, direct, loaded):
        assert ours == again, f"-jp={options}: saved and loaded profile differ"
        # The one error of jit/p.lua itself (see out/jitp.h): compare what it had written up to there.
        if broke:
            assert "a" in options and their.endswith(b"@@ 1 @@\n"), options
            if not ours.startswith(their):
                failed.append((options, their, ours))
        elif not same(options, their, ours):
            failed.append((options, their, ours))
    for options, their, ours in failed[:3]:
        print(f"-jp={options}\n--- jit/p.lua\n{their.decode(errors='replace')}\n--- luabpf\n{ours.decode(errors='replace')}")
    assert not failed, f"{len(failed)} of {len(OPTIONS)} differ"


@needs_luajit
def test_the_stub_of_dumpstack_is_true():
    for flags in ([], ["-joff"]):
        done = subprocess.run(["luajit", *flags, REPLAY, "--live"], capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        assert int(done.stdout) >= 20


def test_no_control_character(sources):
    for seed in SEEDS:
        path = write_samples(sources, seed)
        for _, text in run([RENDER, path, "direct"], ["F", "G", "A", "Gp", "l3", "!folded"], sources):
            text = text.replace(b"\r\n", b"\n")
            assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", text)
            assert not re.search(rb"\xc2[\x80-\x9f]", text)


INVALID = re.compile(r"^$|\s[\d.]+$|[\x00-\x1f]")


def test_folded(sources):
    for seed in SEEDS:
        for names in (Names, OddNames):
            path = write_samples(sources, seed, names)
            [(_, text)] = run([RENDER, path, "direct"], ["!folded"], sources)
            [(_, again)] = run([RENDER, path, "pprof"], ["!folded"], sources)
            assert text == again
            assert sum(folded(text)) == counted(path)


def test_raw_stacks_are_folded(sources):
    """-jp=G in any form; what splits rows counts each sample twice at most."""
    for seed in SEEDS:
        path = write_samples(sources, seed, OddNames)
        for options in ("G", "Gp", "GF", "Gl", "G3", "Gs", "Gsl", "vfG", "zfG", "fzG", "Gfl", "GFl"):
            [(_, text)] = run([RENDER, path, "direct"], [options], sources)
            [(_, again)] = run([RENDER, path, "pprof"], [options], sources)
            assert text == again
            assert counted(path) <= sum(folded(text)) <= 2 * counted(path), options


def counted(path):
    return sum(int(line.split(" ")[5]) for line in path.read_text().split("\n") if line.startswith("R "))


def folded(text):
    """The counts of the lines, all of which are valid."""
    for line in text.decode("latin-1").split("\n")[:-1]:
        frames, count = line.rsplit(" ", 1)
        assert count.isdigit(), line
        assert not any(INVALID.search(frame) for frame in frames.split(";")), line
        yield int(count)


@pytest.mark.skipif(not shutil.which("go"), reason="no go here")
@pytest.mark.parametrize("view", ["-top", "-raw", "-tags", "-traces", "-proto"])
def test_go_reads_it(view, sources, tmp_path):
    path = write_samples(sources, 3)
    saved = tmp_path / "x.pb.gz"
    subprocess.run([RENDER, path, "save", saved], check=True)
    command = ["go", "tool", "pprof", view, "-symbolize=none", f"-output={tmp_path / 'out'}", saved]
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PPROF_TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, env=env)
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "out").stat().st_size > 0
