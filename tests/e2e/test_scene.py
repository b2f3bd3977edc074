# SPDX-License-Identifier: BSD-2-Clause
"""What `luabpf --all -jp=vf --by=comm` and `luabpf ps` show of a machine that runs nginx with lua, redis, haproxy, Neovim,
LuaJIT and Lua 5.1 to 5.4 at once; redis and Lua 5.3 are in containers, with roots of their own, that start meanwhile.

Other tests' processes are on this machine, too: ours run under names of their own, which --by=comm shows. Each takes SECONDS
of CPU time: 2400 samples, of which a share is held to five standard deviations (truth.bound, a false alarm in 1.7 million)."""
import collections
import contextlib
import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

import pprof
import service
import test_haproxy
import test_neovim
import test_nginx
import test_redis
import truth
import vms
from test_all import contained, last_child

HZ, SECONDS = 4000, 0.6
INTERPRETERS = ["luajit", "lua5.1", "lua5.2", "lua5.4", "lua5.3"]  # the last in a container
WORKLOAD = "calls"
MARK = f"{os.getpid():x}-"  # of this run's processes


class Host:
    """A process that says what its parts took."""

    def __init__(self, target, pids, part_of):
        self.target, self.pids, self.part_of, self.took = target, pids, part_of, {}


class Scene:
    def __init__(self, tmp):
        self.tmp, self.drivers, self.hosts = tmp, {}, {}
        with contextlib.ExitStack() as stack:
            self.enter = stack.enter_context
            self.start_servers()
            for name in INTERPRETERS[:-1]:
                self.start_interpreter(name)
            tool = vms.Luabpf("--all", "-F", HZ, "-o", tmp / "all.pb.gz", f"-jp=vf,{tmp}/text", "--by=comm").wait_banner()
            self.start_interpreter(INTERPRETERS[-1], self.container("lua"))
            self.start_redis(self.container("redis"))
            self.ps = {p["pid"]: p for p in json.loads(vms.luabpf("ps", "--json", stats=False).out)}
            self.work()
            tool.signal()
            self.done = tool.done()
        assert self.done.code == 0, self.done
        self.profile, self.text = pprof.Profile(tmp / "all.pb.gz"), (tmp / "text").read_text(errors="replace")

    def container(self, name):
        return contained(self.tmp / f"{name}-root", self.tmp)

    def start_interpreter(self, name, before=()):
        for file in (truth.DRIVER, f"{WORKLOAD}.lua"):
            shutil.copy(vms.LUA / file, self.tmp / file)
        target = self.enter(vms.Target([*before, vms.link(self.tmp / (MARK + name), name), self.tmp / truth.DRIVER,
                                        self.tmp / f"{WORKLOAD}.lua", SECONDS])).ready()
        if before:
            target.pid = last_child(target.pid)
        target.vm = vms.VMS["luajit-jon" if name == "luajit" else name]
        self.drivers[name] = target

    def start_servers(self):
        for name in "nginx", "haproxy", "nvim":
            (self.tmp / name).mkdir()
        nginx = self.enter(test_nginx.Nginx(self.tmp / "nginx", MARK + "nginx"))
        haproxy = self.enter(test_haproxy.Haproxy(self.tmp / "haproxy", MARK + "haproxy"))
        nvim = self.enter(test_neovim.Neovim(self.tmp / "nvim", SECONDS, MARK + "nvim")).ready()
        for name, target, pids, lines in (("nginx", nginx, nginx.workers, test_nginx.LINES),
                                          ("haproxy", haproxy, [haproxy.pid], test_haproxy.LINES),
                                          ("nvim", nvim, [nvim.pid], test_neovim.PARTS)):
            self.hosts[name] = Host(target, pids, lambda s, lines=lines: service.part_of(s, lines))
        self.haproxy_took, self.nginx_took = haproxy.ask(), {}
        while len(self.nginx_took) < len(nginx.workers):
            test_nginx.Run.ask(nginx, self.nginx_took)

    def start_redis(self, before):
        redis = self.enter(test_redis.Redis(self.tmp, MARK + "redis", before))
        redis.pid = last_child(redis.pid)
        assert redis.command("EVAL", test_redis.SCRIPT, 1, "key", "spin", 1) == "done"
        self.hosts["redis"] = Host(redis, [redis.pid], test_redis.part_of)

    def work(self):
        """All at once."""
        with ThreadPoolExecutor() as pool:
            asked = [pool.submit(f) for f in (self.ask_nginx, self.ask_haproxy, self.ask_redis)]
            self.work_alone()
        for future in asked:
            future.result()

    def work_alone(self):
        for target in [*self.drivers.values(), self.hosts["nvim"].target]:
            target.go()
        for target in self.drivers.values():
            target.truth = json.loads(target.rest())
        self.hosts["nvim"].took = json.loads(self.hosts["nvim"].target.line())

    def ask_nginx(self):
        """Both workers, whoever takes a request."""
        host, before, after = self.hosts["nginx"], self.nginx_took, {}
        while sum(sum(parts.values()) for parts in host.took.values()) < SECONDS or len(host.took) < 2:
            test_nginx.Run.ask(host.target, after)
            host.took = {pid: {part: after[pid][part] - before[pid][part] for part in test_nginx.LINES} for pid in after}

    def ask_haproxy(self):
        host = self.hosts["haproxy"]
        while sum(host.took.values()) < SECONDS:
            answer = host.target.ask()
            host.took = {part: answer[part] - self.haproxy_took[part] for part in test_haproxy.LINES}

    def ask_redis(self):
        host = self.hosts["redis"]
        host.took = collections.Counter()
        while sum(host.took.values()) < SECONDS:
            host.took += host.target.turn()


@pytest.fixture(scope="module")
def scene(root, tmp_path_factory):
    return Scene(tmp_path_factory.mktemp("scene"))


def test_banner(scene):
    """Each build once, though nginx's, Neovim's and the interpreter's LuaJIT are three files of one release."""
    names = re.search(r"sampling all processes \((.*)\) at ", scene.done.err)[1].split(", ")
    assert len(set(names)) == len(names) and {"LuaJIT 2.1.0-beta3", "PUC Lua 5.2.4"} <= set(names), names


def test_interpreters(scene):
    for name, t in scene.drivers.items():
        r = truth.Result(t.vm, WORKLOAD, scene.done, scene.profile.of(t.pid), t.truth)
        assert scene.done.is_all_time(r.profile.total, r.truth["total"], HZ), (name, r.truth["total"], r.summary())
        missing = vms.missed(r.profile.total, r.truth["total"], HZ)
        off = [row for row in r.shares(missing) if abs(row[1] - row[2]) > row[3]]
        assert not off and sum(r.wrong.values()) <= truth.allowed(r.profile.total), (name, off, r.wrong, r.summary())


def test_hosts(scene):
    """Each part's share of the time in all parts, of nginx in each worker."""
    for name, host in scene.hosts.items():
        for pid in host.pids:
            took = host.took[pid] if name == "nginx" else host.took
            counts = collections.Counter()
            for s in scene.profile.of(pid).samples:
                counts[host.part_of(s)] += s.count
            n, seconds = sum(counts[part] for part in took), sum(took.values())
            missing = vms.missed(sum(counts.values()), seconds, HZ)
            assert missing < 0.7, (name, took, counts)
            for part in took:
                p = took[part] / seconds
                assert abs(counts[part] / n - p) < truth.bound(p, n) + 0.03 + missing, (name, part, took, counts)


def states(samples):
    counts = collections.Counter()
    for s in samples:
        counts[s.labels["vmstate"]] += s.count
    return counts


def test_states(scene):
    """Of what only computes, and of the interpreters' most: compiled where there is a JIT compiler."""
    for name, host in scene.hosts.items():
        found = states(s for s in scene.profile.of(*host.pids).samples if host.part_of(s) == "spin")
        assert found["Compiled" if name in ("nginx", "nvim") else "Interpreted"] > 0.9 * found.total(), (name, found)
    for name, t in scene.drivers.items():
        found = states(scene.profile.of(t.pid).samples)
        assert found.most_common(1)[0][0] == ("Compiled" if name == "luajit" else "Interpreted"), (name, found)


def percent(n, total):
    return int(100 * n / total + 0.5)


def test_report(scene):
    """A section for each program that has 3 % of the samples, with its samples, its states and their functions' shares."""
    sections = {m[1]: m for m in re.finditer(r"^==== (\S+): (\d+)%, (\d+) samples ====\n((?:(?!====).*\n)*)", scene.text, re.M)}
    for name in [*scene.hosts, *scene.drivers]:
        samples = [s for s in scene.profile.samples if s.labels["comm"] == MARK + name]
        found = states(samples)
        if percent(found.total(), scene.profile.total) < 3:
            assert MARK + name not in sections
            continue
        section = sections[MARK + name]
        assert int(section[2]) == percent(found.total(), scene.profile.total) and int(section[3]) == found.total()
        rows = [(state, percent(n, found.total())) for state, n in found.items() if percent(n, found.total()) >= 3]
        assert sorted(rows) == sorted((m[2], int(m[1])) for m in re.finditer(r"^ *(\d+)%  (.*)$", section[4], re.M)), section[0]


def test_ps(scene):
    wanted = {pid: "LuaJIT" for pid in [*scene.hosts["nginx"].pids, scene.hosts["nginx"].target.pid, *scene.hosts["nvim"].pids]}
    wanted |= {scene.hosts["haproxy"].target.pid: "PUC Lua 5.3", scene.hosts["redis"].target.pid: "PUC Lua 5.1"}
    wanted |= {t.pid: "LuaJIT" if name == "luajit" else f"PUC Lua {name[3:]}" for name, t in scene.drivers.items()}
    assert all(vm in scene.ps[pid]["vms"][0]["release"] for pid, vm in wanted.items()), (wanted, scene.ps)
