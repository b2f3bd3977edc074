# SPDX-License-Identifier: BSD-2-Clause
"""The unwinder of PUC Lua, called at random instructions by a process that knows the answer: the
running lua_State, its resumer, the function and line, whether the collector runs
(tests/hosts/puc/oracle.c). In liblua5.x as the distribution ships it.

Addresses and the garbage on the C stack are random per process, and constant within one: samples of
one process are not independent. So each version has several processes, and the bounds hold for
their sum. In 38 processes of each version (150,000 samples) at most 0.027 % were not found and
0.16 % had another state; with 33,000 samples, as here, FOUND then fails by chance once in 1e9, the
state's bound never.
"""
import collections
import subprocess

import pytest

from vms import HANG, HOSTS

# What the issue demands. The rest is what was measured, with some room.
FOUND = 0.999
COROUTINE = 0.995
LINE = 0.99
PROCESSES, SAMPLES = 8, 170  # samples of each of two dozen workloads in each process
VERSIONS = ["5.1", "5.2", "5.3", "5.4"]


def ask(version):
    host = HOSTS / f"puc/oracle-{version}"
    rows = collections.defaultdict(collections.Counter)
    for _ in range(PROCESSES):
        r = subprocess.run([host, str(SAMPLES)], capture_output=True, text=True, timeout=HANG)
        assert r.returncode == 0, r.stdout + r.stderr
        for line in r.stdout.splitlines():
            row = dict(field.split("=", 1) for field in line.split())
            rows[row["workload"]].update({k: int(v) for k, v in row.items() if v.isdigit()})
    print("\n".join(f"{k} {dict(v)}" for k, v in rows.items()))
    return rows


@pytest.fixture(scope="module", params=VERSIONS)
def rows(request):
    """{workload: {what: count}}, of all processes."""
    return ask(request.param)


def test_the_walker_is_right(rows):
    r = rows["all"]
    assert r["lua"] > 20000 and r["vm_lines"] > 1000 and r["lines"] > 1000 and r["funcs"] > 1000
    assert r["found"] >= FOUND * r["lua"]
    assert r["walk"] >= COROUTINE * r["lua"]
    assert r["chains_right"] >= 0.99 * r["chains"]
    assert r["vm_lines_right"] >= LINE * r["vm_lines"]
    assert r["lines_right"] >= 0.98 * r["lines"]  # ip in what luaV_execute called
    assert r["funcs_right"] >= 0.99 * r["funcs"]
    assert r["states_right"] >= 0.99 * r["chains"]
    assert r["phantom"] == 0, "an idle VM was charged"
    for name, row in rows.items():  # 1 % wrong at the most: of 500 over 4 % once in 1e7
        if row["chains"] >= 500:
            assert row["states_right"] >= 0.96 * row["chains"], name


def test_the_first_hit_is_no_better_rule(rows):
    """
    With coroutines only, protected as hosts run them; see unwind/puc/find.h. The first hit is often another coroutine's, but
    by the draw of the stack's garbage it may be right in all processes: then both are right. A false alarm: all eight
    processes have such a draw (of thirty draws of 5.2 two or three were), and the walk fails in one.
    """
    names = ["nested", "wrap", "fromc", "errors", "many", "nested-idle"]
    total = {k: sum(rows[name][k] for name in names) for k in ("lua", "walk", "first")}
    assert total["walk"] >= COROUTINE * total["lua"]
    assert total["first"] <= total["walk"]
