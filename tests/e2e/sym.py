# SPDX-License-Identifier: BSD-2-Clause
"""An interpreter that runs sym.lua, and a probe that reads it from outside. For test_luasym.py and test_pucsym.py."""
import subprocess
from collections import defaultdict

import pytest

import vms


class Target:
    """sym.lua's own answers, by verb, are in `said`; ask() returns user/sym's results for the process."""

    def __init__(self, lua, env, args, probe, *about):
        self.lua = subprocess.Popen([lua, vms.HERE / "sym.lua", *args], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True, env=vms.clean_env(env))
        self.said = defaultdict(list)
        for line in self.lua.stdout:
            if line == "ready\n":
                break
            verb, *rest = line.rstrip("\n").split(" ")
            self.said[verb].append(rest)
        else:
            pytest.fail("the script did not get ready")
        self.probe = subprocess.Popen([vms.OUT / "tests/e2e" / probe, str(self.lua.pid), *about],
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

    def close(self):
        self.probe.stdin.close()
        self.lua.stdin.close()
        self.lua.wait(vms.HANG)
        assert self.probe.wait(vms.HANG) == 0


def wrong_call_names(target):
    """Lines where debug.getinfo's name in a callee is not the name of a call, or not of the only one."""
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
    return wrong


def kinds_of_names(target):
    return {what for _, _, what, *_ in target.said["call"]}


def wrong_definitions(target):
    """(the name under which a closure was defined, ours) where they differ."""
    names = {}
    for parent in {d[0] for d in target.said["def"]}:
        names.update({p: n for p, n in target.ask("defs", target.proto(parent))})
    wrong = []
    for _, func, *name in target.said["def"]:
        got = names.get(target.proto(func), "-")
        if got != " ".join(name):
            wrong.append((name, got))
    return wrong
