# SPDX-License-Identifier: BSD-2-Clause
"""Large C frames between Lua and what it has called or resumed (hosts/frames.c, lua/frames.lua)."""
import math
import re

import pytest

import pprof
import truth
import vms

HZ, SECONDS = 5000, 0.3
BELOW = {
    "called": ["turns", "call"],
    "resumed": ["turns", "resume"],
    "nested": ["turns", "resume", "outer", "call", "inner", "resume"],
    "plain": ["turns"],
}
# where they begin: of what is on no stack whole, their names are not known
NAMES = {n: m[1] for n, line in enumerate((vms.LUA / "frames.lua").read_text().splitlines(), 1)
         if (m := re.match(r"local function (\w+)", line))}


@pytest.mark.parametrize("size,cut", [(1 << 10, False), (64 << 10, False), (512 << 10, True)])
@pytest.mark.parametrize("jit", ["jon", "joff"])
def test_large_c_frames(tmp_path, size, cut, jit):
    """Of the samples of four functions each has its share of the turns: 6 standard deviations of 1400 samples, and a
    hundredth for what else they do. Each stands on what has called it, down to the main chunk; or,
    where a resumer is further away than is searched, down to the coroutine's bottom, which is marked. None is lost."""
    saved = tmp_path / "p.pb.gz"
    with vms.Target([vms.HOSTS / "frames", vms.LUA / "frames.lua", size, SECONDS, jit]) as t:
        t.ready()
        tool = vms.Luabpf("-p", t.pid, "-F", HZ, "-o", saved).wait_banner()
        t.go()
        turns = dict(zip(BELOW, map(int, t.line().split())))
        r = tool.done()
    assert r.code == 0, r
    counts, wrong = dict.fromkeys(BELOW, 0), 0
    for s in pprof.Profile(saved).samples:
        names = [NAMES.get(f.start, f.name) for f in s.stack if f.kind != pprof.CUT]
        for i, name in enumerate(names):
            if name not in BELOW:
                continue
            counts[name] += s.count
            below = BELOW[name]
            if cut and name in ("resumed", "nested"):
                ok = i == 0 and s.stack[0].kind == pprof.CUT
            else:
                ok = names[i - len(below):i] == below and not any(f.kind == pprof.CUT for f in s.stack)
            wrong += s.count * (not ok)
    total = sum(counts.values())
    for name, count in counts.items():
        share = turns[name] / sum(turns.values())
        assert abs(count / total - share) <= 6 * math.sqrt(share * (1 - share) / total) + 0.01 + r.missing, (name, counts, turns, r)
    assert wrong <= truth.allowed(total), (wrong, counts, r)
    assert r.stats["lost"] <= truth.allowed(r.stats["samples"]), r
