# SPDX-License-Identifier: BSD-2-Clause
"""C functions with large frames on the C stack, between a coroutine and what resumed it (hosts/puc/buffers.c), or on top
of a coroutine (hosts/puc/sparse.c): no sample is lost, and the stack goes down to the main chunk."""
import math

import pytest

import pprof
import truth
import vms


@pytest.mark.parametrize("v", ["5.1", "5.2", "5.3", "5.4"])
def test_large_frames(tmp_path, v):
    """Of some 600 samples a quarter and more were lost."""
    saved = tmp_path / "p.pb.gz"
    with vms.Target([vms.HOSTS / f"puc/buffers-{v}", 0.3]) as t:
        t.ready()
        tool = vms.Luabpf("-p", t.pid, "-F", 2000, "-o", saved).wait_banner()
        t.go()
        assert t.line() == "done"
        r = tool.done()
    assert r.code == 0, r
    samples = pprof.Profile(saved).samples
    total = sum(s.count for s in samples)
    rooted = sum(s.count for s in samples if any(f.file == "buffers" and f.start == 0 for f in s.stack))
    cut = sum(s.count for s in samples if s.stack[0].kind == pprof.CUT)
    allowed = truth.allowed(total) + 5
    assert total > 100 * (1 - r.missing) and r.stats["lost"] + r.stats["outside_lua"] <= allowed, r
    assert rooted >= total - allowed and cut <= allowed, (rooted, cut, total)


@pytest.mark.parametrize("v", ["5.1", "5.2", "5.3", "5.4"])
def test_sparse_frames(tmp_path, v):
    """A C function that has 32 KiB on the C stack, and has written to little of it, is never shown as what resumed its
    coroutine. That has under 0.5 % of 600 samples itself, and had 4 to 6 %."""
    saved = tmp_path / "p.pb.gz"
    with vms.Target([vms.HOSTS / f"puc/sparse-{v}", 0.3]) as t:
        t.ready()
        tool = vms.Luabpf("-p", t.pid, "-F", 2000, "-o", saved).wait_banner()
        t.go()
        assert len(t.line().split()) == 5
        r = tool.done()
    assert r.code == 0, r
    samples = pprof.Profile(saved).samples
    total = sum(s.count for s in samples)
    far = sum(s.count for s in samples if s.stack[-1].name == "resume_far")
    cut = sum(s.count for s in samples if s.stack[0].kind == pprof.CUT)
    working = [s for s in samples if s.stack[-1].name == "work"]
    chains = {"wrapped": 4, "resumed": 4, "far": 4, "body": 3, "far_body": 3}
    wrong = sum(s.count for s in working if chains.get(s.stack[1].name) != len(s.stack) - 1)
    assert total > 100 * (1 - r.missing) and sum(s.count for s in working) > 0.5 * total, r
    assert r.stats["lost"] + r.stats["outside_lua"] <= truth.allowed(total) + 5, r
    assert far + cut + wrong <= truth.allowed(total, 0.005), (far, cut, wrong, total, r)


DEEP = ["main_large", "main_huge", "co_large", "co_huge", "after_large", "after_huge"]


@pytest.mark.parametrize("host", ["deep", "puc/deep-5.1", "puc/deep-5.2", "puc/deep-5.3", "puc/deep-5.4"])
def test_frames_beyond_the_search(tmp_path, host):
    """C functions with 400 KiB and 4 MiB on the C stack: no sample is lost (32 % were in LuaJIT, 94 % in PUC Lua), and each
    of them has its caller, and the share that it measured itself: 6 standard deviations of 800 samples, and a hundredth for
    what is at its ends. Of Lua that one of them has resumed, the stack is cut."""
    saved = tmp_path / "p.pb.gz"
    with vms.Target([vms.HOSTS / host, 0.4]) as t:
        t.ready()
        tool = vms.Luabpf("-p", t.pid, "-F", 2000, "-o", saved).wait_banner()
        t.go()
        spent = list(map(float, t.line().split()))
        r = tool.done()
    assert r.code == 0, r
    samples = pprof.Profile(saved).samples
    total = sum(s.count for s in samples)
    for way, time in zip(DEEP, spent):
        got = sum(s.count for s in samples if [f.name for f in s.stack[-2:]] == [way, way.split("_")[1]])
        share = time / sum(spent)
        assert abs(got / total - share) <= 6 * math.sqrt(share * (1 - share) / total) + 0.01 + r.missing, (way, got, total, share, r)
    rooted = sum(s.count for s in samples if s.stack[0].kind == pprof.CUT or (s.stack[0].file, s.stack[0].start) == ("deep", 0))
    assert r.stats["lost"] + r.stats["outside_lua"] <= truth.allowed(total) + 5, r
    assert rooted >= total - truth.allowed(total), (rooted, total)
