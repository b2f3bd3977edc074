# SPDX-License-Identifier: BSD-2-Clause
"""nginx with Debian's lua module on OpenResty's LuaJIT, stripped: two workers, each request a coroutine that C resumes,
light threads beside it, regular expressions by FFI, the JIT compiler on (nginx.lua, nginx.conf)."""
import collections
import re
import threading
from pathlib import Path
from string import Template

import pytest

import pprof
import service
import truth
import vms

pytestmark = pytest.mark.usefixtures("root")
HZ = 10000
SERVICE = vms.HERE / "nginx.lua"
LINES, FIRST = service.lines(SERVICE), service.starts(SERVICE)
CLIENTS, REQUESTS = 2, 12
LOCK = threading.Lock()
# What nginx calls the chunks of nginx.conf: the phase, and where its block begins.
CONTENT = re.compile(r"content_by_lua\(nginx\.conf:\d+\):0")
PHASES = {"access": re.compile(r"access_by_lua\(nginx\.conf:\d+\):0")}


class Nginx(vms.Target):
    def __init__(self, tmp, name="nginx"):
        usr = vms.fetch_nginx()
        self.path = tmp / "nginx.sock"
        conf = tmp / "nginx.conf"
        conf.write_text(Template((vms.HERE / "nginx.conf").read_text()).substitute(
            DIR=tmp, MODULES=usr / "lib/nginx/modules", LUA=f"{usr}/share/lua/5.1/?.lua;{vms.HERE}/?.lua;;"))
        super().__init__([vms.link(tmp / name, usr / "sbin/nginx"), "-p", tmp, "-c", conf, "-e", "stderr"],
                         {"LD_LIBRARY_PATH": f"{usr}/{vms.MULTIARCH}"})
        vms.wait_until(lambda: service.ask(self.path))
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        vms.wait_until(lambda: len(children.read_text().split()) == 2)  # the first may answer before there is a second
        self.workers = [int(pid) for pid in children.read_text().split()]

    def __exit__(self, *exc):
        self.p.terminate()  # the master ends its workers
        self.p.wait(vms.HANG)
        super().__exit__(*exc)


class Run:
    """What each part took in each worker, the profile, and what luabpf left."""

    def __init__(self, tmp):
        with Nginx(tmp) as server:
            before, after = {}, {}
            while len(before) < 2:  # whoever is there takes a request
                self.ask(server, before)
            tool = vms.Luabpf("-p", ",".join(map(str, server.workers)), "-F", HZ, "-o", tmp / "p.pb.gz",
                              f"-jp=vl,{tmp}/vl").wait_banner()
            threads = [threading.Thread(target=lambda: [self.ask(server, after) for _ in range(REQUESTS)])
                       for _ in range(CLIENTS)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            tool.signal()
            self.done = tool.done()
            self.workers = server.workers
        assert self.done.code == 0, self.done
        assert set(after) == set(before) == set(self.workers), (before, after)
        self.took = {pid: {part: after[pid][part] - before[pid][part] for part in LINES} for pid in after}
        self.profile, self.vl = pprof.Profile(tmp / "p.pb.gz"), (tmp / "vl").read_text()

    @staticmethod
    def ask(server, answers):
        """Keeps each worker's last answer: its sums only grow. Two clients must not keep the older one of two."""
        answer = service.ask(server.path)
        with LOCK:
            known = answers.setdefault(int(answer["pid"]), answer)
            if sum(answer[part] for part in LINES) > sum(known[part] for part in LINES):
                answers[int(answer["pid"])] = answer


def test_master(root, tmp_path):
    """It has the VM, and is idle: a user who names it gets a message with its workers."""
    with Nginx(tmp_path) as server:
        pids = ",".join(map(str, server.workers))
        alone = vms.luabpf("-p", server.pid, "-d", "0.2")
        doctor = vms.luabpf("doctor", "-p", server.pid, stats=False)
        everybody = vms.luabpf("-p", f"{server.pid},{pids}", "-d", "0.2")
        children = vms.luabpf("-p", server.pid, "--children", "-d", "0.2")
    hint = "children that run the same program"
    assert f"process {server.pid} has {hint} and are not sampled ({pids}): add --children\n" in alone.err, alone
    assert f"-p {pids}" in doctor.out, doctor
    for r in everybody, children:
        assert f"sampling processes {server.pid},{pids} " in r.err and hint not in r.err, r


@pytest.fixture(scope="module")
def run(root, tmp_path_factory):
    return Run(tmp_path_factory.mktemp("nginx"))


def test_losses(run):
    service.check_losses(run.done, run.profile, 0.3 * HZ)


def test_shares(run):
    """Of each worker, by the service's own clock."""
    for pid in run.workers:
        counts = service.count([s for s in run.profile.samples if int(s.labels["pid"]) == pid], LINES)
        for part, seconds in run.took[pid].items():
            assert run.done.fits(counts[part], seconds, ends=0.02), (pid, part, run.took, counts, run.done)


def test_stacks(run):
    """Each begins where nginx resumed a coroutine: that of the request's phase, or a light thread's."""
    wrong, total = collections.Counter(), 0
    for s in run.profile.samples:
        part = service.part_of(s, LINES)
        if not part:
            continue
        total += s.count
        above = [service.start(f) for f in s.stack if f.kind == pprof.LUA and service.start(f) in FIRST.values()][-2:]
        if above != [FIRST["measure"], FIRST[part]]:
            wrong[service.shown(s)] += s.count
        root = s.stack[0]
        if service.start(root) != FIRST["light"] if part == "thread" else not PHASES.get(part, CONTENT).fullmatch(root.name):
            wrong["root: " + service.shown(s)] += s.count
    assert sum(wrong.values()) <= truth.allowed(total), (wrong.most_common(8), run.done)


def test_view(run):
    assert "Compiled" in run.vl and "{}:{}".format(*LINES["spin"]) in run.vl, run.vl
