# SPDX-License-Identifier: BSD-2-Clause
"""Names and lines read from outside a live PUC Lua process against what Lua itself says (sym.lua).

PUCSYM_LUA names one interpreter more, of a release that Debian does not have.
"""
import os
import re
import subprocess
from collections import defaultdict

import pytest

import sym
import vms

LUAS = ["lua5.1", "lua5.2", "lua5.3", "lua5.4", *filter(None, [os.environ.get("PUCSYM_LUA")])]


def release(exe):
    r = subprocess.run([exe, "-v"], capture_output=True, text=True, timeout=vms.HANG)
    return re.match(r"Lua (\d\.\d\.\d)", r.stdout + r.stderr)[1]


def start(exe, *args):
    t = sym.Target(exe, {}, args, "pucsym_probe", release(exe))
    t.minor = int(release(exe).split(".")[1])
    return t


@pytest.fixture(scope="module", params=LUAS)
def target(request):
    t = start(request.param)
    yield t
    t.close()


@pytest.fixture(scope="module", params=LUAS)
def sandbox(request):
    t = start(request.param, "sandbox")
    yield t
    t.close()


def test_call_names(target):
    assert not sym.wrong_call_names(target)


def test_no_missing_kind(target):
    later = {"metamethod", "for_iterator"} if target.minor >= 2 else set()
    assert sym.kinds_of_names(target) == {"local", "global", "method", "field", "upvalue", "none"} | later


def test_lines(target):
    """The lines that have code, as the interpreter lists them: all, and no other."""
    wrong = []
    for func, *lines in target.said["lines"]:
        ours = [int(line) for _, line, *_ in target.ask("names", target.proto(func))]
        # 5.4 does not list the line of a vararg function's first instruction
        if set(map(int, lines)) not in (set(ours), set(ours[1:])):
            wrong.append((func, set(ours) ^ set(map(int, lines))))
    assert not wrong


def test_about(target):
    for func, first, last, stripped, *source in target.said["about"]:
        ours = [" ".join(a) for a in target.ask("about", target.proto(func))]
        assert ours == [" ".join(source), first, last, "1", stripped]


def test_definitions(target):
    assert not sym.wrong_definitions(target)


def c_function(target, func):
    return " ".join(target.ask("cfunc", target.said["thread"][0][0], func)[0])


def c_functions(target):
    theirs = defaultdict(set)
    for func, name in target.said["cfunc"]:
        theirs[func].add(name)
    assert len(theirs) > 100
    for names in theirs.values():
        if target.minor == 1 and "io.method.close" in names:
            names.add("io.close")  # 5.1 has one C function for both
    return [(names, c_function(target, func)) for func, names in theirs.items()
            if c_function(target, func) not in names]


def test_c_functions(target):
    assert not c_functions(target)


def test_c_functions_moved_about(sandbox):
    """Renamed, aliased and removed by the program: the libraries' names win where they are left."""
    gone = {"string.dump", "table.pack"}
    wrong = [(names, got) for names, got in c_functions(sandbox)
             if not names & gone and not any(n.startswith("os.") for n in names)]
    assert wrong == [({"print"}, "mymod.again")]
