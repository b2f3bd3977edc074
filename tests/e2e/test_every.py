# SPDX-License-Identifier: BSD-2-Clause
"""Recordings that go on for weeks: --every, SIGHUP, --metrics, and outputs that cannot be written for a while."""
import contextlib
import gzip
import itertools
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

import pprof
import soak
import truth
import vms

pytestmark = pytest.mark.usefixtures("root")
LOOP = "local function work(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end while true do work(1000) end"
STAMP = r"\d{8}T\d{6}Z(_\d+)?"
COUNTS = "samples", "resolved", "outside_lua", "lost", "snapshot_line", "other", "stacks"


@contextlib.contextmanager
def busy():
    with vms.Target(["luajit", "-joff", "-e", LOOP]) as a, vms.Target(["lua5.4", "-e", LOOP]) as b:
        yield f"{a.spend(0.01).pid},{b.spend(0.01).pid}"


def metrics(path):
    """The values of a metrics file, by name and labels. Each has a type and a help text before it, once."""
    values, types = {}, {}
    for line in Path(path).read_text().splitlines():
        if m := re.fullmatch(r"# (HELP|TYPE) (luabpf_[a-z_]+) (\S.*)", line):
            assert types.setdefault(m[2], []) == ([] if m[1] == "HELP" else ["HELP"]), line
            types[m[2]].append(m[1])
            assert m[1] == "HELP" or m[3] == ("counter" if m[2].endswith("_total") else "gauge"), line
            continue
        m = re.fullmatch(r'(luabpf_[a-z_]+)((?:\{(?:[a-z]+="(?:[^"\\]|\\.)*",?)+\})?) ([0-9.]+)', line)
        assert m and len(types[m[1]]) == 2 and m[1] + m[2] not in values, line
        values[m[1] + m[2]] = float(m[3])
    return values


def check_sums(stats):
    """Each sample and each loss is in one interval, and there is no time between two."""
    run = stats[-1]["run"]
    for key in COUNTS:
        assert sum(s[key] for s in stats) == run[key], key
    lost = {}
    for s in stats:
        for reason, n in s["lost_by_reason"].items():
            lost[reason] = lost.get(reason, 0) + n
    assert lost == run["lost_by_reason"] and sum(lost.values()) == run["lost"]
    assert sum(s["wall_seconds"] for s in stats) == pytest.approx(run["wall_seconds"], abs=1e-6)
    assert sum(s["cpu_seconds"] for s in stats) == pytest.approx(run["cpu_seconds"], abs=1e-6)


def read_all(where, pattern):
    """By their stamps, in the order of the intervals: _10 is after _9."""
    head, tail = pattern.split("%t")
    stamps = {re.fullmatch(f"{head}({STAMP}){tail}", p.name)[1]: p for p in where.glob(f"{head}*{tail}")}
    return {k: stamps[k] for k in sorted(stamps, key=lambda k: (k.split("_")[0], int((k + "_1").split("_")[1])))}


def test_intervals(tmp_path):
    """At 1000 Hz over two busy processes, with a rotation by SIGHUP, which was inherited as ignored."""
    with busy() as pids:
        tool = vms.Luabpf("-p", pids, "-F", 1000, "--every", "0.3", "-o", tmp_path / "out-%t.pb.gz", f"-jp=rm0,{tmp_path}/r-%t.txt",
                          "--stats", tmp_path / "s-%t.json", "--metrics", tmp_path / "m.prom", stats=False,
                          preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)).wait_banner()

        def written():
            return [json.loads(p.read_text()) for p in read_all(tmp_path, "s-%t.json").values()]
        vms.wait_until(lambda: len(written()) >= 2)
        tool.signal(signal.SIGHUP)
        vms.wait_until(lambda: written()[-1]["ended_by"] == "interval" and any(s["ended_by"] == "hangup" for s in written()))
        tool.signal()
        r = tool.done()
    assert r.code == 0 and "in the stack" not in r.err, r
    stats, saved, texts = (read_all(tmp_path, p) for p in ("s-%t.json", "out-%t.pb.gz", "r-%t.txt"))
    assert list(stats) == list(saved) == list(texts) and len(stats) >= 4
    stats = [json.loads(p.read_text()) for p in stats.values()]
    profiles = [pprof.Profile(p) for p in saved.values()]
    ends = [s["ended_by"] for s in stats]
    assert ends[-1] == "signal" and sorted(ends[:-1]) == ["hangup"] + ["interval"] * (len(ends) - 2), ends
    check_sums(stats)
    total = stats[-1]["run"]
    assert "ring-full" not in total["lost_by_reason"] and total["lost"] <= truth.allowed(total["samples"], 0.001), r
    for s, p, text in zip(stats, profiles, texts.values()):
        assert p.total == s["resolved"] == sum(map(int, re.findall(r"^ *(\d+)  ", text.read_text(), re.M)))
        assert p.duration_ns == pytest.approx(1e9 * s["wall_seconds"]) and p.time_ns == pytest.approx(1e9 * s["start_seconds"])
        assert {f.name.split(" ")[0] for sample in p.samples for f in sample.stack} >= {"work"} or not p.total
    assert all(a.time_ns < b.time_ns for a, b in itertools.pairwise(profiles))
    values = metrics(tmp_path / "m.prom")
    assert values["luabpf_samples_total"] == total["samples"] == values["luabpf_bpf_runs_total"]  # as the kernel counts them
    assert values["luabpf_profiles_total"] == len(stats) and values["luabpf_unwritten_profiles_total"] == 0
    assert f"{len(stats)} intervals: {total['resolved']} samples" in r.err, r


def test_a_command_and_one_file(tmp_path):
    """Without %t the file is replaced, whole each time. The end is the command's."""
    out, enough = tmp_path / "x.folded", tmp_path / "enough"
    tool = vms.Luabpf("--every", "0.1", "-F", 1000, "-o", out, "--stats", tmp_path / "s.json", "--", "luajit", "-joff", "-e",
                      LOOP.replace("true", f"not io.open('{enough}')") + " os.exit(7)", stats=False)
    seen = {}

    def has_two():
        with contextlib.suppress(FileNotFoundError), open(out) as f:
            seen[os.fstat(f.fileno()).st_ino] = f.read()
        return len(seen) >= 2
    vms.wait_until(has_two)
    enough.touch()
    r = tool.done()
    assert r.code == 7, r
    stats = json.loads((tmp_path / "s.json").read_text())
    assert stats["ended_by"] == "targets-ended" and stats["samples"] < stats["run"]["samples"], stats
    for text in (*seen.values(), out.read_text()):
        assert not re.sub(r".* \d+\n", "", text), text
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


@pytest.mark.parametrize("seconds,most", [(0.2, 1), (0.41, 2)])
def test_the_end_of_an_interval(tmp_path, seconds, most):
    """-d ends with an interval, or soon after: there is no short one behind it, which would replace the last file and be one
    too many. There are fewer if luabpf gets no CPU at the end of the first one."""
    with busy() as pids:
        r = vms.Luabpf("-p", pids, "-F", 1000, "--every", "0.2", "-d", seconds, "-o", tmp_path / "x.folded", "--stats",
                       tmp_path / "s.json", stats=False).done()
    stats = json.loads((tmp_path / "s.json").read_text())
    assert r.code == 0 and 1 <= int(re.search(r"luabpf: (\d+) interval", r.err)[1]) <= most, r
    assert stats["ended_by"] == "duration", stats


@contextlib.contextmanager
def small_disk(path):
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def fill(path):
    with open(path, "wb", buffering=0) as f, contextlib.suppress(OSError):
        while True:
            f.write(bytes(4096))


def test_places_that_come_and_go(tmp_path):
    """A full disk, a directory that vanishes, also that of the metrics: what was written stays, the rest is written, and what cannot
    be is reported. When they are back, all is written again."""
    with small_disk(tmp_path / "disk") as disk, busy() as pids:
        there, away, shown = tmp_path / "there", tmp_path / "away", tmp_path / "metrics"
        there.mkdir()
        shown.mkdir()
        tool = vms.Luabpf("-p", pids, "--every", "0.2", "-o", disk / "x.pb.gz", "--stats", there / "s-%t.json",
                          f"-jp=f,{tmp_path}/r-%t.txt", "--metrics", shown / "m.prom", stats=False).wait_for(r"Z\S*: .* samples")
        vms.wait_until((shown / "m.prom").exists)
        old = (disk / "x.pb.gz").read_bytes()
        fill(disk / "full")
        there.rename(away)
        shown.rename(tmp_path / "hidden")
        tool.wait_for(r"s-\S+json: No such file")
        tool.wait_for("not all of it was written")
        tool.wait_for(r"m.prom: No such file")
        assert gzip.decompress((disk / "x.pb.gz").read_bytes())
        (disk / "full").unlink()
        away.rename(there)
        (tmp_path / "hidden").rename(shown)
        tool.wait_for(r"lost \d+$")
        tool.wait_for(r"lost \d+$")
        tool.signal()
        r = tool.done()
        new = (disk / "x.pb.gz").read_bytes()
        values = metrics(shown / "m.prom")
    assert gzip.decompress(new) and new != old
    assert f"{disk}/x.pb.gz: No space left on device" in r.err, r
    failed, all_of = map(int, re.search(r"(\d+) of (\d+) intervals not written", r.err).groups())
    assert r.code == 1 and failed >= 1, r
    assert len(read_all(tmp_path, "r-%t.txt")) == all_of and len(read_all(there, "s-%t.json")) < all_of
    assert values["luabpf_unwritten_profiles_total"] == failed and values["luabpf_profiles_total"] == all_of - failed
    assert values["luabpf_unwritten_metrics_total"] >= 1
    assert not [p for p in (*there.iterdir(), *tmp_path.iterdir()) if p.name.startswith(".luabpf")]


def test_what_is_no_file(tmp_path):
    """A FIFO is refused, as its reader could hold up the recording. A device that takes nothing does not end it; a pipe whose
    reader has gone does, unless there is a file, too."""
    os.mkfifo(tmp_path / "fifo")
    with busy() as pids:
        for args in (["-o", tmp_path / "fifo", "-f", "folded"], [f"-jp=f,{tmp_path}/fifo"], ["--metrics", tmp_path / "fifo"]):
            r = vms.luabpf("-p", pids, "--every", "0.2", *args, stats=False)
            assert r.code == 1 and f"{tmp_path}/fifo: is a FIFO" in r.err and "sampling" not in r.err, r
        r = vms.luabpf("-p", pids, "--every", "0.1", "-d", "0.25", "-f", "pprof", "-o", "/dev/full", stats=False)
        n = r.err.count("/dev/full: No space left on device")
        assert r.code == 1 and n >= 1 and f"{n} of {n} interval" in r.err, r
        for file in [], ["--stats", tmp_path / "s"], ["--metrics", tmp_path / "m"]:
            tool = vms.Luabpf("-p", pids, "--every", "0.1", *file, stats=False).wait_banner()
            tool.p.stdout.close()
            tool.p.stdout = None
            if file:
                tool.wait_for("standard output: Broken pipe").wait_for("standard output: Broken pipe").signal()
            r = tool.done()
            assert r.code == 1 and (r.err.count("standard output: Broken pipe") > 1) == bool(file), r


def test_metrics_of_one_profile(tmp_path):
    """Without --every: at the end, and each 10 s. Its mode stays, so that another user's collector can read it."""
    path = tmp_path / "m.prom"
    path.touch()
    path.chmod(0o644)
    with busy() as pids:
        r = vms.luabpf("-p", pids, "-F", 1000, "-d", "0.3", "--metrics", path)
    values = metrics(path)
    assert r.code == 0 and path.stat().st_mode & 0o777 == 0o644, r
    assert values["luabpf_samples_total"] == r.stats["samples"] and values["luabpf_processes"] == 2
    assert values["luabpf_profiles_total"] == 0
    assert {name for name in values if name.startswith("luabpf_vm_build_info")} == {
        'luabpf_vm_build_info{build="0",name="LuaJIT 2.1.0-beta3"}', 'luabpf_vm_build_info{build="1",name="PUC Lua 5.4.3 to 5.4.8"}'}


def test_soak(tmp_path):
    """Seconds here; LUABPF_SOAK_SECONDS for more. Only what luabpf has is counted, whatever else runs on this machine: in the end it has
    the descriptors of the beginning, none of an ended process, and no map entry of one that was started here."""
    s = soak.Soak(tmp_path, float(os.environ.get("LUABPF_SOAK_SECONDS", 3)))
    assert s.done.code == 0, s.done
    check_sums(s.stats)
    own = [x["sizes"] for x in s.stats]
    assert all(x["open_fds"] <= x["known_processes"] + x["symbol_files"] + len(s.held) + 4 for x in own), (own, s.held)
    assert not any(x["ended_processes"] for x in own), own
    grown = max(s.sizes("resident_memory_bytes")[-3:]) - max(s.sizes("resident_memory_bytes")[:3])
    assert grown <= 32 << 20, grown
    n, lost = s.samples_of_ours(), s.stats[-1]["run"]["lost"]  # of others, too
    assert s.done.is_all_time(n, s.cpu, soak.HZ, lost), (n, lost, s.cpu)
