# SPDX-License-Identifier: BSD-2-Clause
"""A program that makes a VM for each request (hosts/new_vm.c): luabpf reads what may be freed already."""
import collections
import math
import re

import pytest

import truth
import vms

HZ, SECONDS = 5000, 0.6  # of CPU time: 3000 samples
HOSTS = ["new_vm", *(f"puc/new_vm-{v}" for v in ("5.1", "5.2", "5.3", "5.4"))]
LINES = [1, *range(3, 9)]  # of the definitions of f8() .. f2()
CHAIN = ["request.lua:0", *(f"f{8 - i} (request.lua:{line})" for i, line in reversed(list(enumerate(LINES))))]
# the functions that the VM calls while it is made and closed; the interpreter has no names of these yet, or no more
C = re.compile(r"luaopen_\w+|io\.method\.(__gc|__close)|lib\S+\+0x[0-9a-f]+")


def record(tmp_path, *argv):
    """({stack: samples}, Done) of a host."""
    folded = tmp_path / "out.txt"
    with vms.Target(argv) as t:
        t.ready()
        r = vms.record(t, SECONDS, "-F", HZ, "-f", "folded", "-o", folded)
    assert r.code == 0, r
    assert r.stats["lost"] <= truth.allowed(r.stats["samples"]), r
    rows = collections.Counter()
    for line in folded.read_text().splitlines():
        stack, n = line.rsplit(" ", 1)
        # one sample may not know by which names a function's parent defines it: then its place alone does not say which it is
        rows[re.sub(r"~[0-9a-f]{8}(?=\))", "", stack)] += int(n)
    return rows


@pytest.mark.parametrize("host", HOSTS)
def test_a_function_is_one_row_in_each_vm(tmp_path, host):
    """Each stack is f2() .. f8() as far as the calls have come, or a C function's. 3 to 10 % of the samples showed a second
    function at the line of the first: the list that luabpf counts functions by led into the next VM's."""
    rows = record(tmp_path, vms.HOSTS / host)
    total = sum(rows.values())
    wrong = {stack: n for stack, n in rows.items()
             if (frames := stack.split(";")) != CHAIN[:len(frames)] and not C.fullmatch(stack)}
    assert sum(wrong.values()) <= truth.allowed(total, 0.0001), (total, wrong)
    assert rows[";".join(CHAIN)] >= total / 4, rows


@pytest.mark.parametrize("host", HOSTS)
def test_two_functions_of_a_line_are_two(tmp_path, host):
    """By their definitions, which were not known where the chunk's main function was that of an earlier VM (5.1), or was not
    sent whole (LuaJIT, 5.1)."""
    rows = record(tmp_path, vms.HOSTS / host, vms.LUA / "one_line.lua")
    a, b = (sum(n for stack, n in rows.items() if re.search(rf";{name} \([^;]*one_line.lua:3[^;]*\)$", stack)) for name in "ab")
    worked = sum(n for stack, n in rows.items() if re.search(r"one_line.lua:\d[^;]*$", stack))
    assert worked - a - b <= truth.allowed(worked, 0.01), rows
    assert abs(a / worked - 2 / 3) <= 6 * math.sqrt(2 / 9 / worked) + 0.02, rows


@pytest.mark.parametrize("host", HOSTS)
def test_c_functions_of_lua_have_names(tmp_path, host):
    """Their file has them. In the VM they can rarely be read before it is closed: pcall() was liblua5.1.so.0.0.0+0x1cfd0
    then."""
    rows = record(tmp_path, vms.HOSTS / host, vms.LUA / "standard.lua")
    total = sum(n for stack, n in rows.items() if "standard.lua" in stack)
    for below in (r";pcall;work ", r";table\.sort;compare ", r";string\.gsub;replace "):
        assert any(re.search(below, stack) for stack in rows), (below, rows)
    nameless = sum(n for stack, n in rows.items() if re.search(r"standard.lua.*lib\S+\+0x", stack))
    assert nameless <= truth.allowed(total), rows
