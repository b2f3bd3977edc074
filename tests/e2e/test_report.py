# SPDX-License-Identifier: BSD-2-Clause
"""What is saved: `report` renders the live text from it, and other tools read it."""
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

import pprof
import vms

WORK = vms.LUA / "strings.lua"
OPTIONS = ["", "f", "F", "l", "3si1m1", "-2s", "vf", "fv", "vl", "lv", "fl", "lf", "p", "pl", "r", "rm0", "a", "A", "G", "Gp",
           "10m1", "-10", "vs", "2Fv", "ar", "ap", "v", "lm1", "100m0"]


@pytest.fixture(scope="module")
def live(root, tmp_path_factory):
    """One live run cannot print all reports: each option has one of its own, which also saves."""
    tmp = tmp_path_factory.mktemp("live")

    def run(options):
        saved, text = tmp / "x.pb.gz", tmp / "live.txt"
        interval = [] if "i" in options else ["-F", 1000]
        r = vms.luabpf(*interval, "-o", saved, f"-jp={options},{text}", "--", "luajit", vms.LUA / "driver.lua",
                       WORK, 0.15, "nowait")
        assert r.code == 0, r
        return saved, text.read_text()
    return run


@pytest.mark.parametrize("options", OPTIONS)
def test_report_is_the_live_text(live, options):
    saved, text = live(options)
    r = vms.luabpf("report", saved, f"-jp={options}", stats=False)
    assert r.code == 0, r
    assert r.out == text
    assert text.strip() or options == "vs"  # jit.p shows no row for it either
    again = vms.luabpf("report", saved, f"-jp={options}", stats=False)
    assert again.out == text


SECRET = "local function secret()\n  local x = 0\n  for i = 1, 1e5 do\n    x = x + i % 7\n  end\nend\n"


@pytest.fixture
def public():
    with vms.public_dir() as path:
        yield path


def annotate(path, user=None, *args, **env):
    """Of a saved profile, as root, or as another user."""
    before = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups"] if user else []
    tool = os.open(vms.LUABPF, os.O_RDONLY)  # others may not be able to open the path
    r = subprocess.run([*before, f"/proc/self/fd/{tool}", "report", path, "-jp=A", *args], capture_output=True, text=True, timeout=vms.HANG,
                       env=vms.clean_env(env), pass_fds=[tool])
    os.close(tool)
    assert r.returncode == 0, r
    return r.stdout


def profile_of(chunk, saved, *before):
    """Who names a chunk is its program: that it is a path proves nothing. Returns the live report, too."""
    code = f"""local f = loadstring([[{SECRET} while true do secret() end]], '@{chunk}') f()"""
    with vms.Target([*before, "luajit", "-joff", "-e", code], cwd="/") as t:
        r = vms.record(t.spend(0.02), 0.1, "-F", 1000, "-jp=A", "-o", saved)
        assert r.code == 0, r
    saved.chmod(0o644)
    return r.out


AS_USER = ["setpriv", "--reuid", "4711", "--regid", "4711", "--clear-groups"]


@pytest.mark.parametrize("chunk", ["/etc/shadow", "/proc/self/environ", "/proc/self/status", "/sys/kernel/uevent_seqnum", "/dev/zero"])
def test_a_chunk_that_calls_itself_a_secret(root, public, chunk):
    """Root that reads a saved profile shows no more than the live run did."""
    live = profile_of(chunk, public / "x.pb.gz", *AS_USER)
    assert live.startswith("====== ERROR: " + chunk), live
    for env in {}, {"SUDO_UID": "4711", "SUDO_GID": "4711"}, {"SUDO_UID": "4712", "SUDO_GID": "4712"}, {"SUDO_UID": "0", "SUDO_GID": "0"}:
        text = annotate(public / "x.pb.gz", **env)
        assert text.startswith("====== ERROR: " + chunk) and len(text.splitlines()) == 1, text
    assert annotate(public / "x.pb.gz", SUDO_UID="4711", SUDO_GID="4711") == live


def test_each_process_has_its_own_rights(root, public):
    """Of two that are sampled together, and of a child: whose chunk it is, as that one it is read."""
    busy = "local t = os.clock() while os.clock() - t < SECONDS do secret() end"
    own = public / "own.lua"
    own.write_text(SECRET)
    own.chmod(0o600)

    def code(chunk, seconds=0.2):
        text = busy.replace("SECONDS", f"{seconds}")
        return f"loadstring([[{SECRET} {text}]], '@{chunk}')()"
    one = ["luajit", "-joff", "-e", code(own)]
    forever = ["luajit", "-joff", "-e", code(own, 1e9)]
    with vms.Target(forever) as a, vms.Target([*AS_USER, "luajit", "-joff", "-e", code("/etc/shadow", 1e9)]) as b:
        vms.wait_until(lambda: a.cpu() > 0.02 and b.cpu() > 0.02)
        r = vms.record([a, b], 0.2, "-F", 1000, "-jp=A")
    assert r.code == 0 and r.out.startswith("====== ERROR: /etc/shadow: /etc/shadow: Permission denied"), r
    bad = shlex.join([*AS_USER, "luajit", "-joff", "-e", code("/etc/shadow")])
    r = vms.luabpf("-F", 1000, "-jp=A", "--", "sh", "-c", bad + "; exit 0")
    assert r.code == 0 and r.out.startswith("====== ERROR: /etc/shadow: /etc/shadow: Permission denied"), r
    r = vms.luabpf("-F", 1000, "-jp=A", "--", "sh", "-c", shlex.join(one) + "; exit 0")
    assert r.code == 0 and "x = x + i % 7" in r.out, r


def test_a_profile_that_the_caller_of_sudo_may_not_read(root, public):
    """Nor a FIFO, which would notice that it is opened. Root's own is read from standard input, which root has opened."""
    saved, fifo = public / "x.pb.gz", public / "fifo"
    profile_of("/etc/passwd", saved)
    saved.chmod(0o600)
    os.mkfifo(fifo, 0o600)
    env = {"SUDO_UID": "4711", "SUDO_GID": "4711"}
    for path in saved, fifo:
        r = vms.luabpf("report", path, "-jp=f", env=env, stats=False)
        assert (r.code, r.out) == (1, "") and f"{path}: Permission denied\n  under sudo, it is opened with the rights of user 4711" in r.err, r
    with open(saved) as f:
        assert vms.luabpf("report", "-", "-jp=f", env=env, stdin=f, stats=False).code == 0
    os.chown(saved, 4711, 4711)
    assert vms.luabpf("report", saved, "-jp=f", env=env, stats=False).code == 0


def test_a_profile_gives_no_rights(root, public):
    """Whatever a file says of the user whose process it was: root's own rights are never taken."""
    profile_of("/etc/shadow", public / "x.pb.gz")
    for env in {}, {"SUDO_UID": "4711", "SUDO_GID": "4711"}:
        text = annotate(public / "x.pb.gz", **env)
        assert text == "====== ERROR: /etc/shadow: /etc/shadow: Permission denied\n", (env, text)
    for uid in "x", "-1":
        r = vms.luabpf("report", public / "x.pb.gz", "-jp=A", env={"SUDO_UID": uid, "SUDO_GID": "0"}, stats=False)
        assert (r.code, r.out) == (1, "") and f'SUDO_UID: "{uid}"' in r.err, r


def test_whose_source_files(root, public):
    """As the one who called sudo, or whom root names, and as the process's user; else as nobody; and not root, as whoever it is."""
    script = public / "s.lua"
    script.write_text(SECRET)
    os.chown(script, 4711, 4711)
    script.chmod(0o600)
    saved, roots = public / "x.pb.gz", public / "root.pb.gz"
    live = profile_of(script, saved, *AS_USER)
    assert "x = x + i % 7" in live, live
    assert profile_of(script, roots) == live or "x = x + i % 7" in live
    refused = f"====== ERROR: {script}: {script}: Permission denied\n"
    assert annotate(saved) == refused
    assert annotate(saved, None, "--source-user", "4711") == live
    assert annotate(saved, SUDO_UID="4711", SUDO_GID="4711") == live
    assert annotate(saved, SUDO_UID="4712", SUDO_GID="4712") == refused
    assert annotate(saved, user=4711) == live
    assert annotate(saved, user=4712) == refused
    assert annotate(roots) == refused
    assert "x = x + i % 7" in annotate(roots, SUDO_UID="4711", SUDO_GID="4711")
    script.chmod(0o644)
    assert "x = x + i % 7" in annotate(roots)
    assert annotate(saved, SUDO_UID="4712", SUDO_GID="4712") == live


@pytest.fixture(scope="module")
def saved(root, tmp_path_factory):
    tmp = tmp_path_factory.mktemp("saved")
    r = vms.luabpf("-F", 2000, "-o", tmp / "x.pb.gz", "--", "luajit", "-joff", vms.LUA / "driver.lua", WORK, 0.25, "nowait")
    assert r.code == 0, r
    return tmp / "x.pb.gz", r


def test_saved_numbers(saved):
    path, r = saved
    p = pprof.Profile(path)
    assert p.total == r.stats["resolved"]
    lost = sum(int(m[1]) for c in p.comments if (m := re.match(r"luabpf: lost (\d+) samples: ", c)))
    assert lost == r.stats["lost"], (p.comments, r)
    left_out = [int(m[1]) for c in p.comments if (m := re.match(r"luabpf: left out (\d+) samples: outside-lua", c))]
    assert sum(left_out) == r.stats["outside_lua"], (p.comments, r)
    for s in p.samples:
        assert s.labels["vmstate"] in ("Compiled", "Interpreted", "C code", "Garbage Collector", "JIT Compiler")
        assert s.labels["comm"] == "luajit" and s.labels["pid"] == s.labels["tid"] != 0


def test_folded(saved, tmp_path):
    """Both ways to folded stacks; each line is STACK COUNT and they add up."""
    path, r = saved
    folded = vms.luabpf("report", path, "-f", "folded", stats=False).out
    lines = [line.rsplit(" ", 1) for line in folded.splitlines()]
    assert sum(int(n) for _, n in lines) == r.stats["resolved"]
    assert len({stack for stack, _ in lines}) == len(lines)
    of_lua = [stack.split(";") for stack, _ in lines if ".lua:" in stack]  # others are of the interpreter's start
    assert of_lua and all(any(f.endswith("/driver.lua:0") for f in stack[:2]) for stack in of_lua)
    graph = vms.luabpf("report", path, "-jp=G", stats=False).out
    assert sum(int(line.rsplit(" ", 1)[1]) for line in graph.splitlines()) <= r.stats["resolved"]
    saved_again = vms.luabpf("report", path, "-o", tmp_path / "y.pb.gz", stats=False)
    assert saved_again.code == 0, saved_again
    assert vms.luabpf("report", tmp_path / "y.pb.gz", "-f", "folded", stats=False).out == folded


def go_pprof(*args):
    r = subprocess.run(["go", "tool", "pprof", *map(str, args)], capture_output=True, text=True, timeout=vms.HANG,
                       env={**vms.clean_env(), "GOFLAGS": "-mod=mod", "HOME": "/tmp"})
    assert r.returncode == 0, r
    return r.stdout


def test_go_pprof_reads_it(saved):
    path, r = saved
    raw = go_pprof("-raw", path)
    assert "samples/count cpu/nanoseconds" in raw
    count = sum(int(m[1]) for m in re.finditer(r"^ *(\d+) +\d+: [\d ]+$", raw, re.M))
    assert count == r.stats["resolved"]
    top = go_pprof("-top", "-sample_index=samples", path)
    assert "string.format" in top and "strings.lua:" in go_pprof("-top", "-lines", path)
    for c in pprof.Profile(path).comments:
        assert c in raw
    assert "vmstate" in go_pprof("-tags", path)


def test_go_pprof_shares(saved):
    """The same share by its reckoning and by ours."""
    path, r = saved
    p = pprof.Profile(path)
    ours = sum(s.count for s in p.samples if s.stack[-1].name == "string.format")
    row = next(line for line in go_pprof("-top", "-sample_index=samples", path).splitlines() if line.endswith(" string.format"))
    assert int(row.split()[0]) == ours


@pytest.mark.parametrize("damage", range(0, 40))
def test_damaged_file(saved, tmp_path, damage):
    """Cut or changed: a message, or what is still readable; never a crash."""
    data = bytearray(saved[0].read_bytes())
    if damage % 2:
        data = data[:len(data) * damage // 40]
    else:
        data[len(data) * damage // 40] ^= 1 << damage % 8
    bad = tmp_path / "bad.pb.gz"
    bad.write_bytes(data)
    r = vms.luabpf("report", bad, "-jp=f", stats=False)
    assert r.code in (0, 1), r
    if r.code:
        assert r.err.startswith("luabpf: ") and "bad.pb.gz" in r.err and not r.out, r


def test_stdout_as_file(root, tmp_path):
    """-o - is the file itself, with nothing else in it."""
    path = tmp_path / "x.pb.gz"
    with open(path, "w") as out:
        r = vms.luabpf("-q", "-F", 1000, "-f", "pprof", "-o", "-", "--", "luajit", "-e", "for i = 1, 3e7 do local x = i % 7 end",
                       stdout=out)
    assert r.code == 0, r
    assert pprof.Profile(path).total == r.stats["resolved"]
    r = vms.luabpf("report", "/dev/stdin", "-jp=f", stdin=open(path), stats=False)
    assert r.code == 0 and "%" in r.out, r


def test_profile_file_from_the_environment(root, tmp_path):
    text = tmp_path / "named.txt"
    r = vms.luabpf("-F", 1000, "--", "luajit", "-e", "for i = 1, 1e8 do local x = i % 7 end",
                   env={"LUAJIT_PROFILEFILE": str(text)})
    assert r.code == 0 and not r.out and "%" in Path(text).read_text(), r
