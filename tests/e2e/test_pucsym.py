# SPDX-License-Identifier: BSD-2-Clause
"""Names and lines read from outside a live PUC Lua process against what Lua itself says (pucsym.lua).

PUCSYM_LUA names one interpreter more, of a release that Debian does not have.
"""
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

import vms

HERE = Path(__file__).parent
PROBE = vms.OUT / "tests/e2e/pucsym_probe"
LUAS = ["lua5.1", "lua5.2", "lua5.3", "lua5.4", *filter(None, [os.environ.get("PUCSYM_LUA")])]


def release(exe):
    r = subprocess.run([exe, "-v"], capture_output=True, text=True, timeout=10)
    return re.match(r"Lua (\d\.\d\.\d)", r.stdout + r.stderr)[1]


class Target:
    def __init__(self, exe, *args):
        self.minor = int(release(exe).split(".")[1])
        self.lua = subprocess.Popen([exe, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    text=True, env=vms.clean_env())
        self.said = defaultdict(list)
        for line in self.lua.stdout:
            if line == "ready\n":
                break
            verb, *rest = line.rstrip("\n").split(" ")
            self.said[verb].append(rest)
        else:
            pytest.fail("the script did not get ready")
        self.probe = subprocess.Popen([PROBE, str(self.lua.pid), release(exe)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      errors="replace")

    def ask(self, *question):
        print(*question, file=self.probe.stdin, flush=True)
        answer = []
        for line in self.probe.stdout:
            if line == ".\n":
                return answer
            answer.append(line.rstrip("\n").split(" ", 3 if question[0] == "names" else 1))
        pytest.fail(f"the probe died of {question}")

    def proto(self, func):
        return self.ask("proto", func)[0][0]

    def cfunc(self, func):
        return " ".join(self.ask("cfunc", self.said["thread"][0][0], func)[0])

    def close(self):
        self.probe.stdin.close()
        self.lua.stdin.close()
        self.lua.wait(10)
        assert self.probe.wait(10) == 0


@pytest.fixture(scope="module", params=LUAS)
def target(request):
    t = Target(request.param, str(HERE / "pucsym.lua"))
    yield t
    t.close()


@pytest.fixture(scope="module", params=LUAS)
def sandbox(request):
    t = Target(request.param, str(HERE / "pucsym.lua"), "sandbox")
    yield t
    t.close()


def test_call_names(target):
    """Each name that debug.getinfo told in a callee is the one of a call on that line, and the only one."""
    expected = defaultdict(set)
    for func, line, what, *name in target.said["call"]:
        # without line information Lua says 0 or, from 5.3 on, -1
        expected[func, max(int(line), 0)].add((what, " ".join(name)))
    assert len(expected) > 700
    wrong = []
    for func in {f for f, _ in expected}:
        ours = defaultdict(set)
        for _, line, what, name in target.ask("names", target.proto(func)):
            ours[int(line)].add((what, name))
        for (f, line), names in expected.items():
            if f != func:
                continue
            calls = {n for n in names if n[0] != "metamethod"}
            got_calls = {n for n in ours[line] if n[0] not in ("metamethod", "none")}
            if not names <= ours[line] or (line and calls - {("none", "")} and len(calls) == 1
                                           and len(got_calls) == 1 and got_calls != calls):
                wrong.append((line, names, ours[line]))
    assert not wrong


def test_no_missing_kind(target):
    kinds = {what for _, _, what, *_ in target.said["call"]}
    later = {"metamethod", "for_iterator"} if target.minor >= 2 else set()
    assert kinds == {"local", "global", "method", "field", "upvalue", "none"} | later


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
    names = {}
    for parent in {d[0] for d in target.said["def"]}:
        names.update({p: n for p, n in target.ask("defs", target.proto(parent))})
    wrong = []
    for _, func, *name in target.said["def"]:
        got = names.get(target.proto(func), "-")
        if got != " ".join(name):
            wrong.append((name, got))
    assert not wrong


def c_functions(target):
    theirs = defaultdict(set)
    for func, name in target.said["cfunc"]:
        theirs[func].add(name)
    assert len(theirs) > 100
    for names in theirs.values():
        if target.minor == 1 and "io.method.close" in names:
            names.add("io.close")  # 5.1 has one C function for both
    return [(names, target.cfunc(func)) for func, names in theirs.items()
            if target.cfunc(func) not in names]


def test_c_functions(target):
    assert not c_functions(target)


def test_c_functions_moved_about(sandbox):
    """Renamed, aliased and removed by the program: the libraries' names win where they are left."""
    gone = {"string.dump", "table.pack"}
    wrong = [(names, got) for names, got in c_functions(sandbox)
             if not names & gone and not any(n.startswith("os.") for n in names)]
    assert wrong == [({"print"}, "mymod.again")]
