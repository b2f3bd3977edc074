# SPDX-License-Identifier: BSD-2-Clause
"""haproxy with a service in Lua 5.3: a stripped host with the library, that runs each request in a coroutine of its
own, resumed from C, and yields from it by force (haproxy.lua, haproxy.cfg)."""
import collections
import re
import threading

import pytest

import pprof
import service
import truth
import vms

pytestmark = pytest.mark.usefixtures("root")
HZ = 10000
SERVICE = vms.HERE / "haproxy.lua"
LINES = {part: place for part, place in service.lines(SERVICE).items() if part in ("spin", "text", "headers")}


class Haproxy(vms.Target):
    def __init__(self, tmp_path, name="haproxy"):
        binary, env = vms.fetch_haproxy()
        self.path = tmp_path / "haproxy.sock"
        super().__init__([vms.link(tmp_path / name, binary), "-db", "-f", vms.HERE / "haproxy.cfg"],
                         {**env, "LUA": str(SERVICE), "LUA_PATH": f"{vms.HERE}/?.lua;;", "SOCKET": str(self.path)})
        vms.wait_until(lambda: self.path.exists() and self.ask())

    def ask(self):
        return service.ask(self.path)

    def ask_for(self, requests):
        for _ in range(requests):
            self.ask()


class Run:
    """What each part took, the profile and what luabpf left, with so many clients at a time."""

    def __init__(self, tmp, clients, requests):
        with Haproxy(tmp) as server:
            before = server.ask()
            tool = vms.Luabpf("-p", server.pid, "-F", HZ, "-o", tmp / "p.pb.gz", f"-jp=vl,{tmp}/vl").wait_banner()
            threads = [threading.Thread(target=server.ask_for, args=(requests,)) for _ in range(clients)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            after = server.ask()
            tool.signal()
            self.done = tool.done()
        assert self.done.code == 0, self.done
        self.took = {name: after[name] - before[name] for name in after}
        self.profile, self.vl = pprof.Profile(tmp / "p.pb.gz"), (tmp / "vl").read_text()


@pytest.fixture(scope="module", params=[1, 3], ids=["alone", "together"])
def run(request, root, tmp_path_factory):
    """Clients at the same time: their coroutines alternate."""
    return Run(tmp_path_factory.mktemp("haproxy"), request.param, 10 if request.param == 1 else 6)


def test_losses(run):
    service.check_losses(run.done, run.profile, 0.25 * HZ)


def test_shares(run):
    """By the service's own clock, which does not know that it yields."""
    counts = service.count(run.profile.samples, LINES)
    if run.took["spin"] + run.took["text"] + run.took["headers"] > run.took["all"]:
        assert all(counts.values()), counts  # requests at the same time measure each other
        return
    for part in LINES:
        # the clock goes on while haproxy has the thread after it yielded by force
        assert run.done.fits(counts[part], run.took[part], idle=0.05), (part, run.took, counts, run.done)


def test_stacks(run):
    """Each begins with the service's function, on a line of it, in a coroutine of its own: busy, measure, part, C function."""
    profile, done = run.profile, run.done
    wrong, total = collections.Counter(), 0
    first = service.starts(SERVICE)
    for s in profile.samples:
        total += s.count
        stack = [f for f in s.stack if f.name != truth.TAIL_CALLS]
        lua = [f for f in stack if f.kind == pprof.LUA]
        shown = service.shown(s)
        if not lua or lua[0].base != SERVICE.name:
            wrong["root: " + shown] += s.count
        elif service.start(lua[0]) == first["busy"] and lua[0].name != "busy":
            wrong["name: " + shown] += s.count
        part = service.part_of(s, LINES)
        if part and ([service.start(f) for f in stack[:3]] != [first["busy"], first["measure"], first[part]] or
                     [f.name for f in stack[3:]] not in ([], ["string.format"])):
            wrong["stack: " + shown] += s.count
        if (stack and stack[-1].kind == pprof.C) != (s.labels["vmstate"] == "C code") and \
                s.labels["vmstate"] != "Garbage Collector":
            wrong[f"{s.labels['vmstate']}: {shown}"] += s.count
    assert sum(wrong.values()) <= truth.allowed(total), (wrong.most_common(8), done)


def test_view(run):
    assert re.search(r"^ *\d+% +Interpreted$", run.vl, re.M) and re.search(r"^ *\d+% +C code$", run.vl, re.M), run.vl
    assert "{}:{}".format(*LINES["spin"]) in run.vl, run.vl
