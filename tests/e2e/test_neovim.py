# SPDX-License-Identifier: BSD-2-Clause
"""Neovim: LuaJIT as a library of a stripped host, Lua on top of its own functions and of Vim script's, coroutines, and
callbacks from libuv's event loop, which Lua runs itself (neovim.lua)."""
import collections
import json

import pytest

import pprof
import service
import truth
import vms

pytestmark = pytest.mark.usefixtures("root")
HZ = 10000
SCRIPT = vms.HERE / "neovim.lua"
LINES, FIRST = service.lines(SCRIPT), service.starts(SCRIPT)
PARTS = {part: LINES[part] for part in ("spin", "buffer", "call", "thread", "wave")}


class Neovim(vms.Target):
    def __init__(self, tmp, seconds, name="nvim"):
        nvim, env = vms.fetch_neovim()
        super().__init__([vms.link(tmp / name, nvim), "-u", "NONE", "-i", "NONE", "-n", "--headless", "-c", f"luafile {SCRIPT}"],
                         {**env, "SECONDS": str(seconds), "HOME": str(tmp), "LUA_PATH": f"{vms.HERE}/?.lua;;"})


class Run:
    """What each part took, the profile and what luabpf left."""

    def __init__(self, tmp):
        with Neovim(tmp, 0.8).ready() as editor:
            tool = vms.Luabpf("-p", editor.pid, "-F", HZ, "-o", tmp / "p.pb.gz").wait_banner()
            editor.go()
            self.took = json.loads(editor.line())
            self.done = tool.done()
        assert self.done.code == 0, self.done
        self.profile = pprof.Profile(tmp / "p.pb.gz")


@pytest.fixture(scope="module")
def run(root, tmp_path_factory):
    return Run(tmp_path_factory.mktemp("neovim"))


def test_losses(run):
    service.check_losses(run.done, run.profile, 0.4 * HZ)


def test_shares(run):
    counts = service.count(run.profile.samples, PARTS)
    for part in PARTS:
        assert run.done.fits(counts[part], run.took[part], ends=0.02), (part, run.took, counts, run.done)


def test_stacks(run):
    """Each from the script's main chunk down to its part; a callback's runs above the loop that Lua runs."""
    wrong, total = collections.Counter(), 0
    main = (SCRIPT.name, 0)
    for s in run.profile.samples:
        part = service.part_of(s, PARTS)
        if not part:
            continue
        total += s.count
        own = [f for f in s.stack if f.kind == pprof.LUA and f.base in (SCRIPT.name, service.COMMON.name)]
        want = [main, FIRST["busy"], *([FIRST["tick"]] if part == "wave" else []), FIRST["measure"], FIRST[part]]
        busy = [service.at(f) for f in own if service.start(f) == FIRST["busy"]]
        if [service.start(f) for f in own] != want or (part == "wave") != (busy == [LINES["loop"]]):
            wrong[service.shown(s)] += s.count
    assert sum(wrong.values()) <= truth.allowed(total), (wrong.most_common(8), run.done)
