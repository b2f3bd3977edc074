# SPDX-License-Identifier: BSD-2-Clause
"""A redis server that runs EVAL: Lua 5.1 within a stripped host, which gives scripts no clock.

The scripts run one at a time on the server's main thread, whose CPU time the kernel counts.
"""
import collections
import hashlib
import re
import socket
from pathlib import Path

import pytest

import pprof
import truth
import vms

pytestmark = pytest.mark.usefixtures("root")
HZ = 10000
SCRIPT = (vms.HERE / "redis.lua").read_text()
LINES = {m[1]: n for n, text in enumerate(SCRIPT.splitlines(), 1) if (m := re.search(r" -- (\w+)$", text))}
SHA = "f_" + hashlib.sha1(SCRIPT.encode()).hexdigest()
PARTS = {"spin": 200000, "text": 12000, "store": 3000, "sort": 4000}  # some 2 ms each
BINARY = "/usr/bin/redis-check-rdb"  # is the server, under another name; redis-tools has it, without a service


class Redis(vms.Target):
    def __init__(self, tmp_path, name="redis-server", before=()):
        self.path = tmp_path / "redis.sock"
        super().__init__([*before, vms.link(tmp_path / name, BINARY), "--port", 0, "--unixsocket", self.path, "--save", "",
                          "--appendonly", "no", "--dir", tmp_path, "--loglevel", "warning"])
        self.socket = socket.socket(socket.AF_UNIX)
        vms.wait_until(lambda: not self.socket.connect_ex(str(self.path)))
        self.file = self.socket.makefile("rb")
        self.evals = 0

    def command(self, *args):
        args = [str(a).encode() for a in args]
        self.socket.sendall(b"*%d\r\n" % len(args) + b"".join(b"$%d\r\n%s\r\n" % (len(a), a) for a in args))
        head = self.file.readline()
        assert head[:1] == b"$", head
        return self.file.read(int(head[1:]) + 2)[:-2].decode()

    def cpu(self):
        """CPU time of the main thread so far."""
        return int(Path(f"/proc/{self.pid}/task/{self.pid}/schedstat").read_text().split()[0]) / 1e9

    def turn(self):
        """Does all parts, another number of times in each turn. Returns their CPU time."""
        took = collections.Counter()
        for part, size in PARTS.items():
            self.evals += 1
            before = self.cpu()
            self.command("EVAL", SCRIPT, 1, "key", part, size + size * self.evals * 7919 % size)
            took[part] = self.cpu() - before
        return took

    def __exit__(self, *exc):
        self.file.close()
        self.socket.close()
        super().__exit__(*exc)


@pytest.fixture(scope="module")
def run(root, tmp_path_factory):
    """(CPU time of each part, profile, what luabpf left) of a server that did all parts by turns."""
    tmp = tmp_path_factory.mktemp("redis")
    took = collections.Counter()
    with Redis(tmp) as server:
        assert server.command("EVAL", SCRIPT, 1, "key", "spin", 1) == "done"
        tool = vms.Luabpf("-p", server.pid, "-F", HZ, "-o", tmp / "p.pb.gz", f"-jp=vl,{tmp}/vl").wait_banner()
        start = server.cpu()
        while server.cpu() - start < 0.8:
            took += server.turn()
        tool.signal()
        done = tool.done()
    assert done.code == 0, done
    return took, pprof.Profile(tmp / "p.pb.gz"), done, (tmp / "vl").read_text()


def part_of(sample):
    """The line of the script's part in a stack, None: it is in none."""
    lines = [f.line for f in sample.stack if f.kind == pprof.LUA]
    for part in PARTS:
        if LINES[part] in lines:
            return part
    return None


def test_losses(run):
    _, profile, done, _ = run
    assert done.stats["lost"] <= truth.allowed(done.stats["resolved"] + done.stats["lost"]), done
    assert profile.total > (0.8 - done.missing) * 0.8 * HZ, done


def test_shares(run):
    """Each part has its CPU time; code around it (the event loop, the protocol, compiling nothing) has little."""
    took, profile, done, _ = run
    counts = collections.Counter()
    for s in profile.samples:
        part = part_of(s)
        counts[part] += s.count
    for part, seconds in took.items():
        assert done.fits(counts[part], seconds, idle=0.05), (part, seconds, counts, done)


def test_stacks(run):
    """Redis calls the script; the script's main line calls the part; the part calls what its line names."""
    _, profile, done, _ = run
    may = {"spin": [], "text": [["string.format"]], "store": [["call"], ["redis.call"]],
           "sort": [["table.sort"], ["table.sort", LINES["less"]]]}
    wrong, setup = collections.Counter(), 0
    for s in profile.samples:
        stack = list(s.stack)
        while stack and stack[0].kind == pprof.C:
            stack.pop(0)
        shown = ";".join(f"{f.name}:{f.line}" for f in stack)
        if not stack:
            continue
        if stack[0].base != "user_script" and stack[0].file != "@user_script":
            wrong["root: " + shown] += s.count
            continue
        if stack[0].name != SHA:
            wrong["name: " + shown] += s.count
        if stack[0].line != LINES["part"]:
            setup += s.count  # defining the parts
            continue
        part = part_of(s)
        if part:
            inner = [f.line if f.kind == pprof.LUA else f.name for f in stack[2:]]
            if inner and inner not in may[part]:
                wrong[f"{part}: {shown}"] += s.count
        if (stack[-1].kind == pprof.C) != (s.labels["vmstate"] == "C code") and s.labels["vmstate"] != "Garbage Collector":
            wrong[f"{s.labels['vmstate']}: {shown}"] += s.count
    assert sum(wrong.values()) <= truth.allowed(profile.total), (wrong.most_common(8), done)
    assert setup < 0.02 * profile.total, (setup, done)


def test_view(run):
    """-jp=vl: lines of the script, by state."""
    *_, vl = run
    assert re.search(r"^ *\d+% +Interpreted$", vl, re.M) and re.search(r"^ *\d+% +C code$", vl, re.M), vl
    assert f"user_script:{LINES['spin']}" in vl, vl


BODY = "local s = 0 for i = 1, {} do s = s + i % 7 end return 'done'"


def test_scripts_of_one_shape(root, tmp_path):
    """Chunk, line, code and size are the same: each has the name by which Redis keeps it, EVALSHA's, too. A function of
    FUNCTION LOAD has that of its chunk, which Redis gives to all libraries."""
    bodies = [BODY.format(n) for n in (300000, 300001, 300002)]
    with Redis(tmp_path) as server:
        sha = server.command("SCRIPT", "LOAD", bodies[2])
        server.command("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('work',\nfunction()\n"
                       "local s = 0 for i = 1, 300000 do s = s + i % 7 end return 'done' end)")
        tool = vms.Luabpf("-p", server.pid, "-F", HZ, f"-jp=G,{tmp_path}/folded").wait_banner()
        for _ in range(8):
            for body in bodies[:2]:
                assert server.command("EVAL", body, 0) == "done"
            assert server.command("EVALSHA", sha, 0) == "done"
            assert server.command("FCALL", "work", 0) == "done"
        tool.signal()
        done = tool.done()
    counts = {}
    for line in (tmp_path / "folded").read_text().splitlines():
        stack, _, n = line.rpartition(" ")
        counts[stack.split(";")[0]] = counts.get(stack.split(";")[0], 0) + int(n)
    want = {"f_" + hashlib.sha1(b.encode()).hexdigest() for b in bodies} | {"user_function:3"}
    assert sha in {name[2:] for name in want}
    assert {name for name in counts if counts[name] > 0.02 * sum(counts.values())} == want, (counts, done)
