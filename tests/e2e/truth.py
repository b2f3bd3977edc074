# SPDX-License-Identifier: BSD-2-Clause
"""Judges a profile of a workload (lua/*.lua under lua/driver.lua) by what is known to be true of it.

usage (to look for what is wrong): truth.py [-F HZ] [-s SECONDS] [-v] VM|all WORKLOAD|all

What is legal stands in the workloads' comments, see lua/driver.lua. A sample is wrong if
  root    its stack does not begin at the interpreter's C function and the driver's main chunk
  edge    a frame stands on a line that cannot have called the frame above it
  line    a frame stands on a line on which its function has no code
and for PUC Lua, which marks tail calls and whose state follows from what runs,
  tail    a function that is only entered by tail calls has no mark below it, or another has one
  state   it is "C code" and no C function is on top, or the other way round
The line of a top frame may be unknown, which is counted apart: in the moments between two functions no register holds a
pc of the one on top.
"""
import collections
import json
import math
import re
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

import pprof
import vms

DRIVER = "driver.lua"
TAIL_CALLS = "(...tail calls...)"
WORKLOADS = ["arith", "calls", "tables", "strings", "errors", "coros", "meta", "ffi", "gc", "compile",
             "exits", "hooks", "states"]
PUC_WORKLOADS = ["arith", "calls", "tables", "strings", "errors", "coros", "meta", "gc", "compile", "hooks",
                 "deep", "nests", "chunks"]


def workloads(vm):
    return PUC_WORKLOADS if vm.puc else WORKLOADS


@lru_cache(None)
def protos(puc):
    """(file, first line) -> lines that have code, as this version's own compiler says."""
    files = [vms.LUA / f"{w}.lua" for w in (PUC_WORKLOADS if puc else WORKLOADS)] + [vms.LUA / DRIVER]
    return puc_protos(puc, files) if puc else luajit_protos(files)


def puc_protos(version, files):
    table = {}
    for file in files:
        out = subprocess.run([f"luac{version}", "-p", "-l", file], capture_output=True, text=True, check=True)
        for row in out.stdout.splitlines():
            if m := re.match(r"(?:main|function) <.*:(\d+),\d+>", row):
                lines = table.setdefault((file.name, int(m[1])), set())
            elif m := re.match(r"\t\d+\t\[(\d+)\]\t", row):
                lines.add(int(m[1]))
    return table


def luajit_protos(files):
    out = subprocess.run(["luajit", vms.LUA / "protos.lua", *files], capture_output=True, text=True,
                         check=True).stdout
    table = {}
    for row in out.splitlines():
        file, start, lines = row.split("\t")
        table[Path(file).name, int(start)] = set(map(int, lines.split()))
    return table


class Rules:
    """The comments of one source file."""

    def __init__(self, path):
        self.calls, self.alias, self.measured, self.anywhere, self.by = {}, {}, {}, set(), {}
        self.tail, self.section = {}, {}
        for number, text in enumerate(path.read_text().splitlines(), 1):
            if m := re.search(r"--> ([^-]*)", text):
                self.calls[number] = {n.strip() for n in m[1].split(",")}
            if m := re.search(r"--: (\S+)", text) or re.search(r"\bfunction ([\w.:]+)\(", text):
                self.alias[number] = re.split("[.:]", m[1])[-1]
            if m := re.search(r"--= (\S+)", text):
                self.measured[m[1]] = number
            if number in self.alias and (m := re.search(r"--~ (\S+)", text)):
                self.tail[self.alias[number]] = m[1]
            if number in self.alias and (m := re.search(r"--@ (\S+)", text)):
                self.section[self.alias[number]] = m[1]
            if m := re.search(r"--\* *(\S*) *> ([^-]*)", text):
                names = {n.strip() for n in m[2].split(",")}
                self.by.setdefault(m[1], set()).update(names)
        self.anywhere = self.by.get("", set())


class Judge:
    def __init__(self, workload, vm):
        self.pmain = not vm.host  # the interpreter runs scripts from a C function
        self.puc = vm.puc
        self.file = f"{workload}.lua"
        self.rules = {self.file: Rules(vms.LUA / self.file), DRIVER: Rules(vms.LUA / DRIVER)}
        self.main = self.rules[self.file]
        self.protos = protos(vm.puc)

    def name(self, f):
        """What the comments call this frame's function: its name in the source."""
        base = f.base
        if base in self.rules and f.kind == pprof.LUA:
            return self.rules[base].alias.get(f.start, f"?{f.start}") if f.start else "main"
        if base == "=chunk":
            return "chunk"  # what load() made
        if self.puc and f.kind == pprof.LUA:
            return "bare" if base in ("=?", "?") else "text"
        nameless = f.kind == pprof.C and re.search(r"\+0x[0-9a-f]+$", f.name)
        if f.callname in ("for iterator", "(for generator)") and (nameless or f.name == f.callname):
            return "iterator"  # a C function that no library holds
        if nameless:  # the same, named by its call; called by C it has no name
            return f.call or "nameless"
        return f.name

    def edge(self, caller, callee):
        name = self.name(callee)
        if name in self.main.anywhere:
            return True
        if name in self.main.by.get(self.name(caller), ()):
            return True
        rules = self.rules.get(caller.base)
        if not rules:
            return False
        may = rules.calls.get(caller.line, ())
        return name in may or "*" in may and callee.base == self.file

    def line(self, f, top):
        if f.kind != pprof.LUA or f.base not in self.rules:
            return True
        if self.puc and top and not f.known:
            return True
        return f.line in self.protos.get((f.base, f.start), ())

    def tail(self, stack):
        """Each function that a tail call entered has the mark below it; what is wrong with it, or None."""
        for below, f in zip(stack, stack[1:]):
            if f.name == TAIL_CALLS:
                continue
            must = self.main.tail.get(self.name(f), "never") if f.kind == pprof.LUA else "never"
            if must == "always" and f is stack[-1] and self.edge(below, f):
                continue  # the caller is still there: it is about to be replaced
            if must != "maybe" and (below.name == TAIL_CALLS) != (must == "always"):
                return f"{self.name(f)} is {must} entered by a tail call"
        return None

    def wrong(self, sample):
        """None, or (kind, what)."""
        def show(f):
            return f"{self.name(f)}:{f.line}" if f.kind == pprof.LUA else f.name
        stack = sample.stack
        if self.puc:
            why = self.tail(stack)
            if why:
                return "tail", why
            state = sample.labels["vmstate"]
            if stack and state != "Garbage Collector" and (state == "C code") != (stack[-1].kind == pprof.C):
                return "state", f"{state} in {show(stack[-1])}"
            stack = tuple(f for f in stack if f.name != TAIL_CALLS)
        cut = stack and stack[0].kind == pprof.CUT
        if cut:
            stack = stack[1:]
        if not cut and stack and stack[0].kind == pprof.C and self.pmain:
            stack = stack[1:]
            if not stack:
                return None  # about to call the chunk, or the chunk has returned
        if not cut and (not stack or stack[0].base != DRIVER or stack[0].start):
            return "root", ";".join(map(show, stack))[:200]
        for a, b in zip(stack, stack[1:]):
            if not self.edge(a, b):
                return "edge", f"{show(a)} -> {show(b)}"
        for f in stack:
            if not self.line(f, f is stack[-1]):
                return "line", show(f)
        return None


class Result:
    """One workload's run: what it says of itself, and what luabpf says."""

    def __init__(self, vm, workload, done, profile, truth):
        self.vm, self.workload, self.done, self.profile, self.truth = vm, workload, done, profile, truth
        self.judge = Judge(workload, vm)
        self.wrong = collections.Counter()
        self.unknown = collections.Counter()  # top frames without a line
        self.examples = {}
        self.states = collections.Counter()
        self.section_states = collections.defaultdict(collections.Counter)
        for s in profile.samples:
            self.states[s.labels["vmstate"]] += s.count
            self.section_states[self.section(s)][s.labels["vmstate"]] += s.count
            top = s.stack[-1] if s.stack else None
            if top and top.kind == pprof.LUA and not top.known and self.judge.name(top) != "bare":
                self.unknown[self.judge.name(top)] += s.count
            why = self.judge.wrong(s)
            if why:
                self.wrong[why] += s.count
                self.examples.setdefault(why, s)

    @property
    def in_lua(self):
        return self.done.stats["resolved"] + self.done.stats["lost"]

    @property
    def lost(self):
        return self.done.stats["lost"]

    def section(self, sample):
        """The function that the driver's run() called; None: it called none. Of a cut stack: by its outermost function."""
        names = [f for f in sample.stack if f.kind == pprof.LUA]
        for a, b in zip(names, names[1:]):
            if a.base == DRIVER and self.judge.name(a) == "run":
                return self.judge.name(b)
        return self.judge.main.section.get(self.judge.name(names[0])) if names else None

    def section_counts(self):
        """Samples by section."""
        return {name: sum(states.values()) for name, states in self.section_states.items()}

    def line_counts(self):
        """Samples by the line, at which the measured function stands."""
        counts = collections.Counter()
        for s in self.profile.samples:
            lines = {f.line for f in s.stack if f.base == self.judge.file}
            for name, number in self.judge.main.measured.items():
                if number in lines:
                    counts[name] += s.count
        return counts

    def shares(self, missing=None):
        """(name, true share, measured share, allowed difference) of each section and line. missing: of a recording of all
        processes, see vms.missed()."""
        n, missing = self.profile.total, self.done.missing if missing is None else missing
        for kind, counts in ("sections", self.section_counts()), ("lines", self.line_counts()):
            for name, seconds in self.truth[kind].items():
                p = seconds / self.truth["total"]
                yield f"{kind}:{name}", p, counts.get(name, 0) / n, bound(p, n) + missing

    def summary(self):
        why = collections.Counter()
        for (kind, _), n in self.wrong.items():
            why[kind] += n
        return (f"{self.vm}/{self.workload}: {self.done.stats['samples']} samples, {self.lost} lost "
                f"{self.done.stats['lost_by_reason']}, outside {self.done.stats['outside_lua']}, "
                f"wrong {dict(why)}, top lines unknown {sum(self.unknown.values())}, states {dict(self.states)}")


def bound(p, n):
    """By how much a share may differ: five standard deviations (a false alarm in 1.7 million), and for what
    the clock calls around a section leave to its neighbour and for the start and the end, outside of all
    sections, 0.7 %."""
    return 5 * math.sqrt(p * (1 - p) / n) + 0.007


def allowed(n, rate=0.001):
    """The most of n samples that may be lost or wrong, if the true rate is at most this: exceeded by chance once in a
    million (Poisson)."""
    mean, k = n * rate, 0
    p = left = math.exp(-mean)
    while 1 - left > 1e-6:
        k += 1
        p *= mean / k
        left += p
    return k


def collector_samples(gc):
    """(in the collector, in all) of each section of the gc workload; but for finalizers, which the collector calls in
    any of them."""
    states = collections.defaultdict(collections.Counter)
    for s in gc.profile.samples:
        if not any(gc.judge.name(f) == "finalizer" for f in s.stack):
            states[gc.section(s)][s.labels["vmstate"]] += s.count
    return {name: (n["Garbage Collector"], sum(n.values())) for name, n in states.items()}


def run(vm, workload, seconds, hz, *more):
    argv = [*vm.argv, vms.LUA / DRIVER, vms.LUA / f"{workload}.lua", seconds]
    with tempfile.TemporaryDirectory() as tmp, vms.Target(argv, vm.env) as target:
        saved = f"{tmp}/x.pb.gz"
        target.ready()
        tool = vms.Luabpf("-p", target.pid, "-F", hz, "-o", saved, *more).wait_banner()
        target.go()
        truth = json.loads(target.rest())
        done = tool.done()
        assert done.code == 0, done
        return Result(vm, workload, done, pprof.Profile(saved), truth)


def main(argv):
    hz, seconds, verbose = 2000, 2.0, False
    while argv[0].startswith("-"):
        opt = argv.pop(0)
        if opt == "-F":
            hz = int(argv.pop(0))
        elif opt == "-s":
            seconds = float(argv.pop(0))
        elif opt == "-v":
            verbose = True
    for vm in vms.VMS.values() if argv[0] == "all" else map(vms.VMS.get, argv[0].split(",")):
        for workload in workloads(vm) if argv[1] == "all" else argv[1].split(","):
            r = run(vm, workload, seconds, hz)
            print(r.summary())
            for (kind, what), n in r.wrong.most_common(12):
                print(f"    {n:5} {kind}: {what}")
                if verbose:
                    s = r.examples[kind, what]
                    print("        ", s.labels, ";".join(f"{f.name}:{f.line}" for f in s.stack))
            for name, p, q, b in r.shares():
                if abs(p - q) > b or verbose:
                    print(f"    share {name}: true {p:.4f} measured {q:.4f} allowed {b:.4f}"
                          f"{' WRONG' if abs(p - q) > b else ''}")


if __name__ == "__main__":
    main(sys.argv[1:])
