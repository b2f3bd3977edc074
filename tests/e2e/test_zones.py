# SPDX-License-Identifier: BSD-2-Clause
"""-jp=z: the innermost zone of jit.zone, and of the module that luabpf ships for PUC Lua, at each sample."""
import collections
import contextlib
import json
import re
import types

import pytest

import pprof
import vms

HZ = 4000
SECONDS = 0.6  # of CPU time of each target
PATH = {"LUA_PATH": f"{vms.ROOT}/lua/?.lua;;"}
TARGETS = [("luajit-jon", "early"), ("luajit-joff", "late"), ("lua5.1", "late"), ("lua5.2", "early"), ("lua5.3", "late"),
           ("lua5.4", "early")]
NONE, UNKNOWN = "(none)", "(unknown)"


@pytest.fixture(scope="module")
def recording(root, tmp_path_factory):
    """One of all interpreters at once."""
    r = types.SimpleNamespace(saved=tmp_path_factory.mktemp("zones") / "x.pb.gz", samples={}, truth={})
    with contextlib.ExitStack() as stack:
        targets = {}
        for name, mode in TARGETS:
            vm = vms.VMS[name]
            argv = [*vm.argv, vms.LUA / "zones.lua", mode, SECONDS]
            targets[name] = stack.enter_context(vms.Target(argv, {**vm.env, **PATH} if vm.puc else vm.env)).ready()
        pids = {str(t.pid): name for name, t in targets.items()}
        tool = vms.Luabpf("-p", ",".join(pids), "-jp=zfm0r", "-o", r.saved, "-F", HZ).wait_banner()
        for t in targets.values():
            t.go()
        for name, t in targets.items():
            r.truth[name] = json.loads(t.rest())
        r.done = tool.done()
    assert r.done.code == 0, r.done
    profile = pprof.Profile(r.saved)
    for name in targets:
        r.samples[name] = [s for s in profile.samples if pids[s.labels["pid"]] == name]
    return r


def counts(samples):
    n = collections.Counter()
    for s in samples:
        n[s.labels["zone"]] += s.count
    return n


@pytest.mark.parametrize("name", dict(TARGETS))
def test_a_function_is_in_its_zone(recording, name):
    """Exactly: a zone is that of the very instant of the sample."""
    seen = collections.Counter()
    for s in recording.samples[name]:
        for frame in s.stack:
            if m := re.fullmatch(r"in_(\w+)", frame.name):
                assert s.labels["zone"] in ({NONE, UNKNOWN} if m[1] == "none" else {m[1], UNKNOWN}), s
                seen[m[1]] += s.count
    assert set(seen) >= {"alpha", "beta", "gamma", "leak", "deep"}, seen


@pytest.mark.parametrize("name", dict(TARGETS))
def test_shares(recording, name):
    """Of the zones that are entered by turns: within five standard deviations (a false alarm in 1.7 million each) and
    1 % for the clock's own time. Samples whose zone is unknown come before all of these."""
    zones = ["alpha", "beta", "gamma", "leak", "deep"]
    got, truth = counts(recording.samples[name]), recording.truth[name]
    total, whole = sum(got[z] for z in zones), sum(truth[z] for z in zones)
    assert total > 0.1 * HZ * SECONDS, got
    for z in zones:
        share = truth[z] / whole
        bound = 5 * (share * (1 - share) / total) ** 0.5 + 0.01
        assert abs(got[z] / total - share) < bound, (z, got[z] / total, share, bound)
    assert set(got) <= {*zones, "deep0", "deep1", NONE, UNKNOWN}

