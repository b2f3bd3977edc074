# SPDX-License-Identifier: BSD-2-Clause
"""Names and lines read from outside a live LuaJIT against what LuaJIT itself says (sym.lua).

Both of Debian's builds: luajit, and OpenResty's luajit2.
"""
import pytest

import sym
import vms

BUILDS = {"luajit": ("luajit", {}), "luajit2": (vms.LUAJIT2 / "bin/luajit", vms.L2ENV)}

pytestmark = pytest.mark.usefixtures("luajit2")


def start(build, *args):
    exe, env = BUILDS[build]
    return sym.Target(exe, env, args, "luasym_probe")


@pytest.fixture(scope="module", params=list(BUILDS))
def target(luajit2, request):
    t = start(request.param)
    yield t
    t.close()


@pytest.fixture(scope="module", params=list(BUILDS))
def sandbox(luajit2, request):
    t = start(request.param, "sandbox")
    yield t
    t.close()


def test_call_names(target):
    assert not sym.wrong_call_names(target)


def test_no_missing_kind(target):
    assert sym.kinds_of_names(target) == {"local", "global", "method", "field", "upvalue", "metamethod", "none"}


def test_lines(target):
    for func, *lines in target.said["lines"]:
        ours = {int(line) for pos, line, *_ in target.ask("names", target.proto(func)) if pos != "0"}
        assert set(map(int, lines)) <= ours


def test_definitions(target):
    assert not sym.wrong_definitions(target)


def fast_functions(target):
    """By number: vmdef's names, and ours."""
    return dict(target.said["ff"]), dict(target.ask("ff", target.said["thread"][0][0]))


def test_fast_functions(target):
    theirs, ours = fast_functions(target)
    assert ours == theirs


def test_fast_functions_moved_about(sandbox):
    """Renamed, aliased and removed by the program: still vmdef's names."""
    theirs, ours = fast_functions(sandbox)
    assert ours == theirs
