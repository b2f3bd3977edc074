# SPDX-License-Identifier: BSD-2-Clause
"""Names and lines read from outside a live LuaJIT against what LuaJIT itself says (luasym.lua).

Both of Debian's builds: luajit, and OpenResty's luajit2.
"""
import os
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

import vms

HERE = Path(__file__).parent
PROBE = vms.OUT / "tests/e2e/luasym_probe"
BUILDS = {"luajit": ("luajit", {}), "luajit2": (vms.LUAJIT2 / "bin/luajit", vms.L2ENV)}

pytestmark = pytest.mark.usefixtures("luajit2")


class Target:
    def __init__(self, build, *args):
        exe, env = BUILDS[build]
        self.lua = subprocess.Popen([exe, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    text=True, env={**os.environ, **env})
        self.said = defaultdict(list)
        for line in self.lua.stdout:
            if line == "ready\n":
                break
            verb, *rest = line.rstrip("\n").split(" ")
            self.said[verb].append(rest)
        else:
            pytest.fail("the script did not get ready")
        self.probe = subprocess.Popen([PROBE, str(self.lua.pid)], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, errors="replace")

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

    def close(self):
        self.probe.stdin.close()
        self.lua.stdin.close()
        self.lua.wait(10)
        assert self.probe.wait(10) == 0


@pytest.fixture(scope="module", params=list(BUILDS))
def target(luajit2, request):
    t = Target(request.param, str(HERE / "luasym.lua"))
    yield t
    t.close()


@pytest.fixture(scope="module", params=list(BUILDS))
def sandbox(luajit2, request):
    t = Target(request.param, str(HERE / "luasym.lua"), "sandbox")
    yield t
    t.close()


def test_call_names(target):
    """Each name that debug.getinfo told in a callee is the one of a call on that line, and the only one."""
    expected = defaultdict(set)
    for func, line, what, *name in target.said["call"]:
        expected[func, int(line)].add((what, " ".join(name)))
    assert len(expected) > 400
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
    assert kinds == {"local", "global", "method", "field", "upvalue", "metamethod", "none"}


def test_lines(target):
    for func, *lines in target.said["lines"]:
        ours = {int(line) for pos, line, *_ in target.ask("names", target.proto(func)) if pos != "0"}
        assert set(map(int, lines)) <= ours


def test_definitions(target):
    names = {}
    for parent in {d[0] for d in target.said["def"]}:
        names.update({p: n for p, n in target.ask("defs", target.proto(parent))})
    wrong = []
    for _, func, name in target.said["def"]:
        got = names.get(target.proto(func), "-")
        if got != name:
            wrong.append((name, got))
    assert not wrong


def test_fast_functions(target):
    theirs = dict(target.said["ff"])
    ours = dict(target.ask("ff", target.said["thread"][0][0]))
    assert ours == theirs


def test_fast_functions_moved_about(sandbox):
    """Renamed, aliased and removed by the program: still vmdef's names."""
    theirs = dict(sandbox.said["ff"])
    ours = dict(sandbox.ask("ff", sandbox.said["thread"][0][0]))
    assert ours == theirs
