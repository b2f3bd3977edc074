# SPDX-License-Identifier: BSD-2-Clause
"""luabpf --all --every while Lua processes come and go, some of them in namespaces of their own. Reads what luabpf says of
its sizes with each interval."""
import contextlib
import itertools
import json
import os
import re
import subprocess
import time
from pathlib import Path

import bpfmaps
import pprof
import vms

HZ = 1000
WORK = 0.04  # CPU seconds of each process
INTERPRETERS = [["luajit"], ["lua5.1"], ["luajit", "-joff"], ["lua5.3"], ["lua5.4"]]
UNSHARE = ["unshare", "-m", "-p", "-f", "--mount-proc"]


def argv_of(name, n):
    """Each third is in a container; the names of its functions are its own, but for every 50th."""
    prefix = UNSHARE if n % 3 == 2 else []
    return [*prefix, *INTERPRETERS[n % len(INTERPRETERS)], vms.LUA / "churn.lua", name, str(WORK), str(n % 50)]


def descriptors(pid):
    """luabpf's, but for files, whose number depends on what runs, and the sockets of its children, which end when they have no more to do:
    of processes that are no more, and of all but processes."""
    ended, rest = 0, []
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            what = os.readlink(fd)
            if what == "anon_inode:[pidfd]":
                ended += bool(re.search(r"^Pid:\s*-1$", Path(f"/proc/{pid}/fdinfo/{fd.name}").read_text(), re.M))
            elif not what.startswith(("/", "socket:")):
                rest.append(re.sub(r"\d+", "", what))
    return ended, sorted(rest)


class Soak:
    def __init__(self, where, seconds):
        self.where, self.cpu = Path(where), 0.0
        self.pids = set()
        every = 10 if seconds >= 600 else 1
        self.name = f"churn-{os.getpid()}.lua"  # of the chunks: others may soak, too
        self.tool = vms.Luabpf("--all", "--every", every, "-F", HZ, "-o", self.where / "out-%t.pb.gz",
                               "--stats", self.where / "s-%t.json", "--metrics", self.where / "luabpf.prom", stats=False,
                               stdout=subprocess.DEVNULL)
        try:
            self.run(seconds)
            self.tool.signal()
            self.done = self.tool.done()
        finally:
            self.tool.p.kill()
        self.stats = [json.loads(p.read_text()) for p in sorted(self.where.glob("s-*.json"))]

    def run(self, seconds):
        self.tool.wait_for(r"Z: .* samples")
        held = descriptors(self.tool.p.pid)[1]
        end = time.monotonic() + seconds
        with vms.Target(["luajit", "-joff", vms.LUA / "churn.lua", self.name, "1e9", "0", "more"]) as long:
            for n in itertools.count():
                self.two_at_once(n)
                if n >= 3 and self.intervals_written() >= 3 and time.monotonic() > end:
                    break
            self.cpu += long.cpu()
        procs = bpfmaps.map_of(self.tool.p.pid, "procs")
        vms.wait_until(lambda: not self.pids & bpfmaps.pids_in(procs))
        vms.wait_until(lambda: descriptors(self.tool.p.pid) == (0, held))
        self.held = held

    def intervals_written(self):
        return len(list(self.where.glob("s-*.json")))

    def two_at_once(self, n):
        running = [subprocess.Popen(list(map(str, argv_of(self.name, 2 * n + i))), stdout=subprocess.PIPE, env=vms.clean_env())
                   for i in range(2)]
        self.pids |= {p.pid for p in running}
        for p in running:
            self.cpu += float(p.communicate(timeout=vms.HANG)[0])
            assert p.returncode == 0

    def sizes(self, name):
        return [s["sizes"][name] for s in self.stats]

    def samples_of_ours(self):
        return sum(s.count for path in self.where.glob("out-*.pb.gz") for s in pprof.Profile(path).samples
                   if any(f.file == self.name for f in s.stack))
