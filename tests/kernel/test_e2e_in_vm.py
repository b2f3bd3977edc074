# SPDX-License-Identifier: BSD-2-Clause
"""A whole profile of real interpreters on each kernel. Shares of time are wide: guests are emulated."""
import re
from pathlib import Path

import pytest

import vm

LUABPF = vm.needs(vm.O / "luabpf")
HOT = vm.needs(vm.HERE / "hot.lua")
LUAJIT = vm.needs(Path("/usr/bin/luajit"))
PUC = [vm.needs(Path(f"/usr/bin/lua{version}")) for version in ("5.1", "5.2", "5.3", "5.4")]

STATES = "Compiled|Interpreted|C code|Garbage Collector|JIT Compiler"


def shares(report):
    """Per cent of all samples by function, of a report by -jp=vf (states, functions below them)."""
    found, of_state = {}, 0
    for line in report.splitlines():
        if m := re.fullmatch(rf" *(\d+)%  ({STATES})", line):
            of_state = int(m[1])
        elif m := re.fullmatch(r"  -- *(\d+)%  (\S+)", line):
            found[m[2]] = found.get(m[2], 0) + of_state * int(m[1]) / 100
    return found


def test_shares_are_read_right():
    report = ("90%  Compiled\n  --  70%  heavy\n  -- 30%  light\n"
              "10%  Interpreted\n  -- 100%  light\n")
    assert shares(report) == {"heavy": 63, "light": 37}


def check(kernel, argv, state):
    r = vm.run(kernel, f"{LUABPF} -v -d 30 -jp=vfi1 -- {' '.join(map(str, argv))} {HOT} 2",
               [LUABPF, argv[0], HOT])
    assert r.status == 0, r.output
    found = shares(r.output)
    assert 60 <= found.get("heavy", 0) <= 80, r.output
    assert 20 <= found.get("light", 0) <= 40, r.output
    assert re.search(rf"^(100|9\d|8\d)%  {state}$", r.output, re.M), r.output


@pytest.mark.parametrize("mode", ["-jon", "-joff"])
def test_luajit(kernel, mode):
    check(kernel, [LUAJIT, mode], "Interpreted" if mode == "-joff" else "Compiled")


@pytest.mark.parametrize("lua", PUC, ids=lambda path: path.name)
def test_puc_lua(kernel, lua):
    check(kernel, [lua], "Interpreted")
