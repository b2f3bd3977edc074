#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The cost of luabpf: in the kernel, on its target, in user space, on other processes.

usage: bench.py [--list] [--against LUABPF] [--build DIR] [--rounds N] [NAME ...]

Measures all rows, or those that are named (shell patterns): each alone gives the same figures.

Every figure is a ratio, or a difference, of things measured in this one run, and is printed beside
the limit that the project has set itself, as "ok" or "OVER". Nothing here is a test: the exit code
is 0 whatever the figures, and 1 only when something could not be measured.

Medians are printed, and the spread of the middle half of the rounds, so that a difference within
the noise can be seen for what it is.
"""
import argparse
import fnmatch
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Callable, NamedTuple

HERE = Path(__file__).resolve().parent
HZ = 1000
JIT, NO_JIT = ["luajit"], ["luajit", "-joff"]
PUC = ["lua5.1", "lua5.2", "lua5.3", "lua5.4"]


class Unmeasured(Exception):
    """Something could not be measured."""


# ---- statistics ---------------------------------------------------------------------------------

def median(values):
    return statistics.median(values)


def quartiles(values):
    if len(values) < 3:
        return min(values), max(values)
    q = statistics.quantiles(values, n=4, method="inclusive")
    return q[0], q[2]


def spread(values, form="{:.2f}"):
    low, high = quartiles(values)
    return f"{form.format(low)}..{form.format(high)}"


# ---- processes ----------------------------------------------------------------------------------

def end(child, sig=signal.SIGTERM):
    if child.poll() is None:
        child.send_signal(sig)
    try:
        child.wait(10)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


@contextmanager
def running(argv, ready=None, sig=signal.SIGTERM, **options):
    """A process for the length of a with block. `ready` is the line that says it has begun."""
    child = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE if ready else subprocess.DEVNULL,
                             text=True, **options)
    try:
        if ready and child.stdout.readline().strip() != ready:
            raise Unmeasured(f"{argv[0]} did not start")
        yield child
    finally:
        end(child, sig)
        if child.stdout:
            child.stdout.close()


class Bench:
    def __init__(self, build, rounds=None, against=()):
        self.build, self.rounds = build, rounds
        self.tmp = tempfile.TemporaryDirectory(prefix="luabpf-bench-")
        self.dir = Path(self.tmp.name)
        self.luabpf = build / "luabpf"
        self.against = against
        self.count = build / "tests/bench/count"
        self.object = build / "tests/bench/count.bpf.o"

    def everywhere(self, *options, hz=HZ, output="/dev/null"):
        return [self.luabpf, "-q", "--all", "-F", hz, "-f", "folded", "-o", output, *options]

    def profiler(self, pid, *options, output="/dev/null", luabpf=None):
        return [luabpf or self.luabpf, "-q", "-p", pid, "-F", HZ, "-f", "folded", "-o", output,
                *options]

    def counter(self, pid, *options, hz=HZ):
        return [self.count, self.object, pid, 10**9 // hz, *options]


def spare_cpu():
    """The CPU that targets are bound to when there is another one for the rest."""
    cpus = sorted(os.sched_getaffinity(0))
    return cpus[-1] if len(cpus) > 1 else None


def bound(argv):
    """On the spare CPU: what luabpf and this script do meanwhile is not to move the target."""
    cpu = spare_cpu()
    return argv if cpu is None else ["taskset", "-c", cpu, *argv]


def target(script, *args, jit=True):
    return bound([*(JIT if jit else NO_JIT), HERE / script, *args])


# ---- time in BPF --------------------------------------------------------------------------------

WINDOW, WARM_UP, MIN_RUNS = 0.1, 0.5, 30  # s, s, runs in a window


def program_cost(pid):
    """(ns, runs) of the perf_event program that a process holds and that runs most; or None."""
    best = None
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            text = Path(f"/proc/{pid}/fdinfo/{fd}").read_text()
        except OSError:
            continue
        info = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        if info.get("prog_type", "").strip() != "7":  # BPF_PROG_TYPE_PERF_EVENT
            continue
        cost = int(info["run_time_ns"]), int(info["run_cnt"])
        if best is None or cost[1] > best[1]:
            best = cost
    return best


def wait_for_samples(child, runs):
    deadline = time.monotonic() + 10
    while True:
        cost = program_cost(child.pid) if child.poll() is None else None
        if cost and cost[1] >= runs:
            return
        if child.poll() is not None or time.monotonic() > deadline:
            raise Unmeasured(f"{child.args[0]}: takes no samples")
        time.sleep(0.001)


def windows(children, n, window=WINDOW):
    """[ns per sample of each child] of n windows in which every one took its samples."""
    costs, last = [], [program_cost(c.pid) for c in children]
    for _ in range(10 * n):
        time.sleep(window)
        now = [program_cost(c.pid) for c in children]
        if min(b[1] - a[1] for a, b in zip(last, now)) >= MIN_RUNS:
            costs.append([(b[0] - a[0]) / (b[1] - a[1]) for a, b in zip(last, now)])
            last = now
        if len(costs) == n:
            return costs
    raise Unmeasured("too few samples: is the target's CPU busy with others?")


def over_count(bench, argv, builds, options=()):
    """
    [times of the counting program, of each build], ns per sample in each window. options[i] are further ones of the i-th
    build. All programs are attached to one target
    at once: load, a hypervisor and the CPU's clock disturb them alike, and the ratio within a window of 0.1 s is steady
    where the times are not. The builds' statistics are in stats-N.json, then.
    """
    with ExitStack() as stack:
        lua = stack.enter_context(running(bound(argv), ready="ready"))
        children = [stack.enter_context(running(bench.counter(lua.pid, "stats"), ready="attached"))]
        for i, luabpf in enumerate(builds):
            stats = "--stats", bench.dir / f"stats-{i}.json"
            children.append(stack.enter_context(
                running(bench.profiler(lua.pid, *stats, *(options[i] if options else ()), luabpf=luabpf))))
        for child in children:
            wait_for_samples(child, MIN_RUNS)
        time.sleep(WARM_UP)
        return list(zip(*windows(children, bench.rounds or 20)))


def bpf_row(bench, report, row):
    """Time in BPF per sample, relative to a program that only counts."""
    depth, shape, interpreter = row.args
    if not shutil.which(interpreter[0]):
        report.note(f"{row.name}: not measured, as {interpreter[0]} is not installed")
        return
    count, *others = over_count(bench, [*interpreter, HERE / "frames.lua", depth, shape],
                                (bench.luabpf, *bench.against))
    for i, ours in enumerate(others):
        ratios = [a / b for a, b in zip(ours, count)]
        ratio = median(ratios)
        report.row([row.name if i == 0 else f"  against {i}", row.label if i == 0 else "",
                    f"{median(count):.0f} ns", f"{median(ours):.0f} ns", f"{ratio:.1f}",
                    spread(ratios, "{:.1f}"), f"<= {row.limit}"], ratio <= row.limit)


def new_vm_row(bench, report, row):
    """Time in BPF per sample of a program that makes a VM for each request, relative to one of 8 frames that stays; lost."""
    host, interpreter = row.args
    host = bench.build / host
    if not shutil.which(interpreter[0]) or not host.exists():
        report.note(f"{row.name}: not measured, as {interpreter[0]} or {host} is not there")
        return
    costs = []
    for argv in ([*interpreter, HERE / "frames.lua", 8, "chain"], [host]):
        count, ours = over_count(bench, argv, (bench.luabpf,))
        costs.append([a / b for a, b in zip(ours, count)])
    stats = json.loads((bench.dir / "stats-0.json").read_text())
    plain, new = costs
    ratio, lost = median(new) / median(plain), 100 * stats["lost"] / stats["samples"]
    report.row([row.name, row.label, f"{median(plain):.1f}", f"{median(new):.1f}", f"{ratio:.1f}",
                spread([r / median(plain) for r in new], "{:.1f}"), f"<= {row.limit}"], ratio <= row.limit)
    report.row([row.name, "  lost", "", f"{lost:.2f} %", "", "", "<= 0.1 %"], lost <= 0.1)


def zone_row(bench, report, row):
    """What reading the zone adds to a sample: recordings with and without zones, of one target at once."""
    depth, interpreter = row.args
    if not shutil.which(interpreter[0]):
        report.note(f"{row.name}: not measured, as {interpreter[0]} is not installed")
        return
    builds = (bench.luabpf, *bench.against)
    _, *ours = over_count(bench, [*interpreter, HERE / "zones.lua", depth], [b for b in builds for _ in range(2)],
                          [(), ("--by=zone",)] * len(builds))
    for i in range(len(builds)):
        without, zones = ours[2 * i], ours[2 * i + 1]
        more = [b - a for a, b in zip(without, zones)]
        report.row([row.name if i == 0 else f"  against {i}", row.label if i == 0 else "", f"{median(without):.0f} ns",
                    f"{median(zones):.0f} ns", f"{median(more):+.0f} ns", spread(more, "{:+.0f}"), f"<= {row.limit} ns"],
                   median(more) <= row.limit)


# ---- slowdown of the target ---------------------------------------------------------------------

CPU, WALL = 0, 1  # of a turn


class Worker:
    """work.lua: does units of work and answers with their CPU and wall-clock time."""

    def __init__(self, jit):
        argv = target("work.lua", jit=jit)
        self.child = subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, bufsize=1)
        self.pid = self.child.pid
        if self.child.stdout.readline().strip() != "ready":
            raise Unmeasured("work.lua did not start")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.child.stdin.close()
        end(self.child)
        self.child.stdout.close()

    def ask(self, command):
        self.child.stdin.write(command + "\n")
        answer = self.child.stdout.readline()
        if not answer:
            raise Unmeasured("work.lua ended")
        return answer.split()

    def turn(self, units=12):
        """
        The least (cpu, wall) of some units, after two that get caches and traces warm. Samples come
        evenly, so that even the least disturbed unit has its full share of them.
        """
        took = [[float(x) for x in self.ask("unit")] for _ in range(units + 2)][2:]
        return min(t[CPU] for t in took), min(t[WALL] for t in took)


@contextmanager
def under_nothing(bench, worker):
    yield


@contextmanager
def under_count(bench, worker):
    with running(bench.counter(worker.pid), ready="attached"):
        yield


@contextmanager
def under_luabpf(bench, worker):
    out = bench.dir / "slowdown.folded"
    with running(bench.profiler(worker.pid, output=out)):
        time.sleep(0.2)
        yield
    if not out.exists() or not out.read_text():
        raise Unmeasured("luabpf took no samples of work.lua")


@contextmanager
def under_jp(bench, worker):
    worker.ask("jp")
    yield
    worker.ask("nojp")


@contextmanager
def under_perf(bench, worker):
    argv = ["perf", "record", "-q", "-g", "-F", HZ, "-e", "cpu-clock", "-p", worker.pid, "-o",
            bench.dir / "perf.data"]
    with running(argv, sig=signal.SIGINT, stderr=subprocess.DEVNULL):
        time.sleep(0.3)
        yield


def measure_turns(bench, worker, states, rounds):
    """state -> [(cpu, wall) of each round], in turns: forwards, then backwards, and so on."""
    turns = {name: [] for name in states}
    for i in range(rounds):
        order = list(states.items())
        for name, state in order if i % 2 == 0 else reversed(order):
            with state(bench, worker):
                turns[name].append(worker.turn())
    return turns


def slowdowns(turns, state, base, clock):
    """Per cent by which each turn of `state` took longer than its round's turn of `base`."""
    return [100 * (a[clock] / b[clock] - 1) for a, b in zip(turns[state], turns[base])]


def slowdown_row(report, turns, row, label, state, base, limit=None):
    cpu, wall = (slowdowns(turns, state, base, clock) for clock in (CPU, WALL))
    report.row([row.name, label, f"{median(cpu):+.2f} %", spread(cpu, "{:+.2f}"),
                f"{median(wall):+.2f} %", "", f"<= {limit} %" if limit else ""],
               median(cpu) <= limit if limit else None)


def jp_rate():
    """Samples per second that luajit -jp=i1 takes: its timer goes by the kernel's tick."""
    script = """local p, n, start = require("jit.profile"), 0, os.clock()
p.start("i1", function(_, samples) n = n + samples end)
while os.clock() - start < 0.5 do end
p.stop()
print(n / (os.clock() - start))"""
    done = subprocess.run(["luajit", "-joff", "-e", script], capture_output=True, text=True,
                          timeout=20, check=True)
    return float(done.stdout)


def slowdown(bench, report, row):
    """What a CPU-bound target loses at 1000 Hz."""
    states = {"nothing": under_nothing, "count": under_count, "luabpf": under_luabpf}
    if shutil.which("perf"):
        states["perf"] = under_perf
    rounds = bench.rounds or 12
    with Worker(*row.args) as worker:
        turns = measure_turns(bench, worker, states, rounds)
        # Apart, as starting and stopping it flushes all traces: that touches later turns.
        jp = measure_turns(bench, worker, {"nothing": under_nothing, "jp": under_jp}, rounds // 2)
    slowdown_row(report, turns, row, "counting program", "count", "nothing")
    slowdown_row(report, turns, row, "luabpf", "luabpf", "nothing")
    slowdown_row(report, turns, row, "luabpf over counting program", "luabpf", "count", row.limit)
    slowdown_row(report, jp, row, f"-jp=i1, {jp_rate():.0f} samples/s", "jp", "nothing")
    if "perf" in turns:
        slowdown_row(report, turns, row, "perf record -g", "perf", "nothing")
    low, high = quartiles([t[CPU] for t in turns["nothing"]])
    report.note(f"noise: the middle half of the turns under nothing spans "
                f"{100 * (high / low - 1):.2f} %")


def bystander(bench, report, row):
    """What a process loses that is not the target, while luabpf samples another."""
    with running(target("frames.lua", 8, "chain", jit=False), ready="ready") as lua:
        @contextmanager
        def luabpf_on_another(bench, worker):
            with under_luabpf(bench, lua):
                yield

        states = {"nothing": under_nothing, "luabpf": luabpf_on_another}
        with Worker(True) as worker:
            turns = measure_turns(bench, worker, states, bench.rounds or 12)
    cpu, wall = (slowdowns(turns, "luabpf", "nothing", clock) for clock in (CPU, WALL))
    low, high = quartiles(cpu)
    report.row([row.name, row.label, f"{median(cpu):+.2f} %", spread(cpu, "{:+.2f}"),
                f"{median(wall):+.2f} %", "", "in the noise"],
               low <= 0 <= high or median(cpu) < 0)


# ---- user space ---------------------------------------------------------------------------------

def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def status_kib(pid, key):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    raise Unmeasured(f"/proc/{pid}/status has no {key}")


def user(bench, report, row):
    """CPU time and memory of the luabpf process."""
    seconds, stats = 10, bench.dir / "stats.json"
    with running(target("stacks.lua", jit=False), ready="ready") as lua:
        with running(bench.profiler(lua.pid, "--stats", stats)) as child:
            wait_for_samples(child, 1)
            time.sleep(1)
            start, at = cpu_seconds(child.pid), time.monotonic()
            time.sleep(seconds)
            cpu = 100 * (cpu_seconds(child.pid) - start) / (time.monotonic() - at)
            rss = status_kib(child.pid, "VmHWM") / 1024
    counts = json.loads(stats.read_text())
    if counts["samples"] < HZ * seconds / 4:
        raise Unmeasured(f"only {counts['samples']} samples in {seconds} s")
    report.row([row.name, "CPU, once started", f"{cpu:.2f} %", "", "", "", "<= 1 %"], cpu <= 1)
    report.row([row.name, "CPU until started", f"{start:.2f} s", "", "", "", ""])
    report.row([row.name, "peak resident memory", f"{rss:.1f} MiB", "", "", "", "<= 16 MiB"],
               rss <= 16)
    report.note(f"{counts['samples']:.0f} samples, {counts['stacks']:.0f} distinct stacks, "
                f"{counts['lost']:.0f} lost")


def first_sample(bench, pid):
    """(from exec to the first run of the program, from session start by luabpf's count), in ms."""
    stats = bench.dir / "stats.json"
    begin = time.monotonic()
    with running(bench.profiler(pid, "--stats", stats)) as child:
        wait_for_samples(child, 1)
        took = time.monotonic() - begin
        time.sleep(0.1)
    return 1e3 * took, 1e3 * json.loads(stats.read_text())["first_sample_seconds"]


def attach(bench, report, row):
    """From the start of luabpf to its first sample."""
    with running(target("stacks.lua", jit=False), ready="ready") as lua:
        times = [first_sample(bench, lua.pid) for _ in range(bench.rounds or 20)]
    for label, values in zip(("from exec", "from the session's start"), zip(*times)):
        report.row([row.name, label, f"{median(values):.0f} ms", spread(values, "{:.0f}"),
                    f"least {min(values):.0f}", "", f"<= {row.limit} ms"],
                   median(values) <= row.limit)


# ---- counted calls -----------------------------------------------------------------------------

CALLS = 100_000
CALLER = ("local function f(x) return x end print('ready') io.stdout:flush() for line in io.lines() do local t = os.clock() "
          "for i = 1, %d do f(i) end print((os.clock() - t) / %d * 1e9) io.stdout:flush() end" % (CALLS, CALLS))


def counted_call(bench, report, row):
    """CPU time that `luabpf count -p` adds to a call, over that of a uprobe with an empty program."""
    rounds = bench.rounds or 15

    def turns(lua):
        out = []
        for _ in range(rounds):
            lua.stdin.write("go\n")
            lua.stdin.flush()
            out.append(float(lua.stdout.readline()))
        return out

    with subprocess.Popen([*row.args[0], "-e", CALLER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as lua:
        try:
            lua.stdout.readline()
            plain = turns(lua)
            argv = [bench.luabpf, "count", "-p", str(lua.pid), "--max-slowdown", "1000"]
            with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as luabpf:
                try:
                    if "counting calls" not in luabpf.stderr.readline():
                        raise Unmeasured("luabpf count did not start")
                    counted = turns(lua)
                finally:
                    end(luabpf, signal.SIGINT)
        finally:
            end(lua)
    argv = [bench.build / "tests/bench/trap", bench.build / "bpf/count.bpf.o"]
    bare = [float(subprocess.run(argv, capture_output=True, text=True, check=True).stdout) for _ in range(3)]
    ratios = [(took - median(plain)) / median(bare) for took in counted]
    report.row([row.name, row.label, f"{median(bare):.0f} ns", f"{median(counted) - median(plain):.0f} ns",
                f"{median(ratios):.2f}", spread(ratios), f"<= {row.limit}"], median(ratios) <= row.limit)


# ---- system-wide --------------------------------------------------------------------------------

IDLE, BUSY = 1000, 50
LEARNS = 5  # s in which luabpf learns the names of processes without a sample: 16 (LEARNED_MOST) in each round of 50 ms
IDLY = ["setpriv", "--pdeathsig", "KILL", "chrt", "-o", "0", "nice", "-n", "5"]  # whatever the bench's own priority is


def wait_until_loaded(luabpf):
    """Until its children have loaded the programs of all families, and ended."""
    children, deadline = Path(f"/proc/{luabpf.pid}/task/{luabpf.pid}/children"), time.monotonic() + 60
    while children.read_text().split():
        if time.monotonic() > deadline:
            raise Unmeasured("luabpf does not load its programs")
        time.sleep(0.05)


def wait_until_settled(luabpf):
    """Until it has looked at the processes that were there: then it takes no CPU time."""
    last, deadline = -1, time.monotonic() + 20
    while (now := cpu_seconds(luabpf.pid)) > last + 0.01 and time.monotonic() < deadline:
        last = now
        time.sleep(0.3)


@contextmanager
def many_vms():
    """IDLE processes that wait in Lua, and BUSY ones that work in it."""
    read, write = os.pipe()
    wait, work = "io.read()", "local n = 0 while os.clock() < 60 do n = n + #tostring(n) end"
    argv = [["lua5.4", "-e", wait]] * IDLE + [["lua5.4", "-e", work], ["luajit", "-e", work]] * (BUSY // 2)
    children = []
    try:
        for a in argv:
            children.append(subprocess.Popen([*IDLY, *a], stdin=read))
        deadline = time.monotonic() + 30
        while any(Path(f"/proc/{c.pid}/wchan").read_text() == "0" for c in children[:IDLE]):
            if time.monotonic() > deadline:
                raise Unmeasured("the processes do not come to rest")
            time.sleep(0.1)
        yield children
    finally:
        os.close(read)
        os.close(write)
        for child in children:
            child.kill()
        for child in children:
            child.wait()


@contextmanager
def sampling(bench, *options, **how):
    """luabpf --all once it has found all processes and says that it samples. Without --stats its program's runs are not
    counted; whoever asked BPF for what was found would take the processor that it needs."""
    argv = [a for a in bench.everywhere(*options, **how) if a != "-q"]
    with running(argv, stderr=subprocess.PIPE) as child:
        if "sampling" not in child.stderr.readline():
            raise Unmeasured("luabpf does not sample")
        yield child


def check_found(luabpf, pids):
    """That luabpf has a descriptor of each of these processes. (bpftool would be a new process, whose samples can be lost.)"""
    known = set()
    for info in Path(f"/proc/{luabpf.pid}/fdinfo").iterdir():
        with suppress(FileNotFoundError):
            known |= {int(pid) for pid in re.findall(r"^Pid:\s*(\d+)$", info.read_text(), re.M)}
    if not known >= set(pids):
        raise Unmeasured(f"{len(set(pids) - known)} processes were not found")


def all_many(bench, report, row):
    """CPU time, memory and losses beside IDLE idle and BUSY busy Lua processes."""
    (hz,), seconds, stats = row.args, 5, bench.dir / f"{row.name}.json"
    with many_vms() as children:
        since = time.monotonic()
        with sampling(bench, "--stats", stats, hz=hz) as child:
            took, found = time.monotonic() - since, cpu_seconds(child.pid)
            check_found(child, [c.pid for c in children])
            time.sleep(LEARNS)
            start, at = cpu_seconds(child.pid), time.monotonic()
            time.sleep(seconds)
            cpu = 100 * (cpu_seconds(child.pid) - start) / (time.monotonic() - at)
            rss = status_kib(child.pid, "VmHWM") / 1024
    counts = json.loads(stats.read_text())
    reasons = ", ".join(f"{n} {r}" for r, n in counts["lost_by_reason"].items())
    for label, text, limit, within in (
            ("all found after", f"{took:.2f} s", "<= 1 s", took <= 1),
            ("CPU, once started", f"{cpu:.2f} %", "<= 5 %", cpu <= 5),
            ("CPU until started", f"{start:.2f} s", "", None),
            ("peak resident memory", f"{rss:.0f} MiB", "<= 128 MiB", rss <= 128),
            (f"lost of {counts['samples']}", f"{counts['lost']}", "0", not counts["lost"])):
        report.row([row.name, label, text, "", "", "", limit], within)
    report.note(f"lost: {reasons or 'nothing'}; CPU until all were found: {found:.2f} s")


def all_plain(bench, report, row):
    """Time in BPF per sample of a process without Lua, over the counting program's; both on all CPUs."""
    (hz,), stats = row.args, bench.dir / "stats.json"
    with ExitStack() as stack:
        for cpu in os.sched_getaffinity(0):
            stack.enter_context(running(["taskset", "-c", cpu, "sh", "-c", "while :; do :; done"]))
        children = [stack.enter_context(running(argv, ready=ready)) for argv, ready in (
            (bench.counter("all", "stats", hz=hz), "attached"), (bench.everywhere("--stats", stats, hz=hz), None))]
        for child in children:
            wait_for_samples(child, MIN_RUNS)
        wait_until_settled(children[1])
        count, ours = zip(*windows(children, bench.rounds or 10, max(WINDOW, 2 * MIN_RUNS / hz)))
    ratios = [a / b for a, b in zip(ours, count)]
    report.row([row.name, row.label, f"{median(count):.0f} ns", f"{median(ours):.0f} ns", f"{median(ratios):.2f}",
                spread(ratios), f"<= {row.limit}"], median(ratios) <= row.limit)


@contextmanager
def spawning(bench, *how):
    argv = bound([bench.build / "tests/bench/spawn", *how])
    with subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        child.stdout.readline()
        yield child
        child.stdin.close()


@contextmanager
def count_all(bench, hz=HZ):
    with running(bench.counter("all", hz=hz), ready="attached"):
        yield


@contextmanager
def luabpf_all(bench, hz=HZ):
    with sampling(bench, hz=hz) as child:
        wait_until_loaded(child)
        yield


def all_spawn(bench, report, row):
    """What a short process without Lua takes longer than under the counting program. Without either it has no timer interrupts:
    in a virtual machine one took 40 us."""
    def least(child):
        child.stdin.write("measure\n")
        child.stdin.flush()
        return float(child.stdout.readline())

    turns = {nullcontext: [], count_all: [], luabpf_all: []}
    with spawning(bench, *row.args) as child:
        for i in range(bench.rounds or 4):
            for state in list(turns)[::-1 if i % 2 else 1]:
                with state(bench):
                    turns[state].append(least(child))
    without, count, ours = turns.values()
    more = [b - a for a, b in zip(count, ours)]
    report.row([row.name, row.label, f"{median(without):.1f} us", f"{median(count):.1f} us", f"{median(ours):.1f} us",
                f"{median(more):+.1f} us", spread(more, "{:+.1f}"), f"<= {row.limit} us"], median(more) <= row.limit)


def all_storm(bench, report, row):
    """Lua processes that were not seen among thousands of short processes."""
    out, seconds, work = bench.dir / "storm.folded", 3, "local t = os.clock() + 0.2 while os.clock() < t do end"
    with ExitStack() as stack:
        luabpf = stack.enter_context(sampling(bench, "--by=pid", output=out))
        storms = [stack.enter_context(spawning(bench, "clone")) for _ in range(2)]
        begin, pids = time.monotonic(), []
        while time.monotonic() < begin + seconds:
            child = subprocess.Popen(["lua5.4", "-e", work])
            child.wait()
            pids.append(child.pid)
        took = time.monotonic() - begin
        for storm in storms:
            storm.stdin.close()
        made = sum(int(storm.stdout.read()) for storm in storms) / took
        end(luabpf)
    seen = {line.split(";")[0] for line in out.read_text().splitlines()}
    lost = sum(f"pid:{pid}" not in seen for pid in pids)
    report.row([row.name, row.label, f"{made:.0f}/s", f"{len(pids)}", f"{lost}", "", "0"], not lost)


def all_slowdown(bench, report, row):
    """What a CPU-bound Lua process loses at 99 Hz under --all, over the counting program on all CPUs."""
    states = {"nothing": under_nothing, "count": lambda *_: count_all(bench, 99), "all": lambda *_: luabpf_all(bench, 99)}
    with Worker(*row.args) as worker:
        turns = measure_turns(bench, worker, states, bench.rounds or 12)
    slowdown_row(report, turns, row, "counting program", "count", "nothing")
    slowdown_row(report, turns, row, "luabpf over counting program", "all", "count", row.limit)


# ---- large profiles -----------------------------------------------------------------------------

def large_profile(bench, report, row):
    """CPU time to write, read and report a profile of a million samples and 100,000 stacks."""
    program, saved = bench.build / "tests/bench/profile", bench.dir / "large.pb.gz"
    rounds = range(bench.rounds or 3)

    def print_row(label, seconds):
        report.row([row.name, label, f"{min(seconds):.2f} s", spread(seconds), "", "", f"<= {row.limit} s"],
                   min(seconds) <= row.limit)

    for how in "write", "read":
        print_row(how, [float(subprocess.run([program, how, saved], capture_output=True, text=True, check=True).stdout)
                        for _ in rounds])
    for options in ["-jp=f"], ["-jp=vl"], ["-jp=G"], ["-f", "folded", "-o", "/dev/null"]:
        seconds = []
        for _ in rounds:
            before = os.times()
            subprocess.run([bench.luabpf, "report", saved, *options], stdout=subprocess.DEVNULL, check=True)
            after = os.times()
            seconds.append(after.children_user + after.children_system - before.children_user - before.children_system)
        print_row("report " + " ".join(options[:2]), seconds)


# ---- counting calls, tracing lines --------------------------------------------------------------

def hook_cost(bench, report, row):
    """What the hook of `luabpf count` or `trace -- COMMAND` adds to a call or line, beside a hook in Lua that counts the same."""
    verb, name, lua = row.args
    script = HERE / name
    ways = {"alone": [lua, script], "lua": [lua, script, "hook"],
            "ours": [bench.luabpf, verb, "-q", "-o", "/dev/null", "--", lua, script]}
    ns = {way: [] for way in ways}
    for _ in range(bench.rounds or 3):
        for way, argv in ways.items():
            r = subprocess.run(argv, capture_output=True, text=True)
            if r.returncode:
                raise Unmeasured(f"{row.name}: {r.stderr}")
            ns[way].append(float(r.stderr))
    alone = median(ns["alone"])
    hook = [n - alone for n in ns["ours"]]
    in_lua = median(ns["lua"]) - alone
    report.row([row.name, row.label, f"{alone:.1f} ns", f"+{median(hook):.1f} ns", f"+{in_lua:.0f} ns", spread(hook, "{:.1f}"),
                f"<= {row.limit} ns", f"1/{in_lua / median(hook):.0f} of the hook in Lua"], median(hook) <= row.limit)


# ---- the rows -----------------------------------------------------------------------------------

class Row(NamedTuple):
    name: str
    label: str
    measure: Callable
    limit: float
    args: tuple = ()


def bpf_rows():
    yield "lj-8-recursive", "LuaJIT, 8 frames, one recursive function", 6, (8, "rec", NO_JIT)
    yield "lj-8", "LuaJIT, 8 frames, distinct functions", 6, (8, "chain", NO_JIT)
    yield "lj-8-inlined", "LuaJIT, 8 frames, inlined in a trace", 6, (8, "trace", JIT)
    yield "lj-50-recursive", "LuaJIT, 50 frames, one recursive function", 12, (50, "rec", NO_JIT)
    yield "lj-50", "LuaJIT, 50 frames, distinct functions", 12, (50, "chain", NO_JIT)
    for lua in PUC:
        name = "puc-" + lua[3:]
        yield f"{name}-8", f"{lua}, 8 frames, distinct functions", 8, (8, "chain", [lua])
        yield f"{name}-c-on-top", f"{lua}, 8 frames, C function on top", 8, (7, "C", [lua])
        yield f"{name}-coroutine", f"{lua}, 8 frames, in a coroutine", 8, (8, "co", [lua])
        yield f"{name}-50", f"{lua}, 50 frames, distinct functions", 15, (50, "chain", [lua])


PARTS = [  # title, columns, rows
    ("Time in BPF per sample, over that of a program that only counts",
     ["", "", "counting", "luabpf", "ratio", "spread", "limit"],
     [Row(name, label, bpf_row, limit, args) for name, label, limit, args in bpf_rows()]),
    ("Time in BPF per sample of a VM for each request, over that of 8 frames; each over the counting program's",
     ["", "", "8 frames", "new VMs", "ratio", "spread", "limit"],
     [Row("lj-new-vm", "LuaJIT, a VM for each request", new_vm_row, 2, ("tests/hosts/new_vm", NO_JIT)),
      *(Row(f"puc-{lua[3:]}-new-vm", f"{lua}, a VM for each request", new_vm_row, 2,
            (f"tests/hosts/puc/new_vm-{lua[3:]}", [lua])) for lua in PUC)]),
    ("Time in BPF per sample with zones, over that without",
     ["", "", "without", "zones", "more", "spread", "limit"],
     [Row(f"zone-{name}-{depth}", f"{' '.join(argv)}, {depth} zones", zone_row, 300, (depth, argv))
      for name, argv in (("lj", NO_JIT), ("puc", ["lua5.4"])) for depth in (2, 20)]),
    (f"Slowdown of a CPU-bound process at {HZ} Hz",
     ["", "under", "CPU time", "spread", "wall", "", "limit"],
     [Row("slowdown-interpreted", "the target, JIT compiler off", slowdown, 1, (False,)),
      Row("slowdown-compiled", "the target, JIT compiler on", slowdown, 1, (True,)),
      Row("slowdown-bystander", "luabpf -p of another process", bystander, 0)]),
    ("CPU time of a call that luabpf count -p counts, over that of a uprobe with an empty program",
     ["", "", "bare uprobe", "counted call", "ratio", "spread", "limit"],
     [Row(f"count-{name}", f"{' '.join(argv)}, a call of a Lua function", counted_call, 3, (argv,))
      for name, argv in (("puc", ["lua5.4"]), ("lj", NO_JIT))]),
    (f"luabpf's own process at {HZ} Hz, 10 s", ["", "", "measured", "", "", "", "limit"],
     [Row("user", "CPU time and memory of luabpf", user, 1)]),
    ("luabpf --all beside many Lua processes, 5 s", ["", "", "measured", "", "", "", "limit"],
     [Row(f"all-many-{hz}", f"{IDLE} idle, {BUSY} busy, {hz} Hz", all_many, 0, (hz,)) for hz in (99, 1000)]),
    ("luabpf --all: time in BPF per sample of a process without Lua, over the counting program's on all CPUs",
     ["", "", "counting", "luabpf", "ratio", "spread", "limit"],
     [Row(f"all-plain-{hz}", f"{hz} Hz", all_plain, 1.5, (hz,)) for hz in (99, 1000, 4000)]),
    ("luabpf --all: a process without Lua, from fork to exit", ["", "", "without", "counting", "luabpf", "over counting", "spread", "limit"],
     [Row("all-fork", "fork, exit", all_spawn, 5, ("fork",)),
      Row("all-exec", "fork, exec, exit", all_spawn, 5, ("exec",))]),
    ("luabpf --all: Lua processes among short ones", ["", "", "short", "Lua", "not seen", "", "limit"],
     [Row("all-storm", "processes that exit at once", all_storm, 0)]),
    ("Slowdown of a CPU-bound process under --all at 99 Hz",
     ["", "under", "CPU time", "spread", "wall", "", "limit"],
     [Row("all-slowdown", "JIT compiler off", all_slowdown, 0.5, (False,))]),
    ("A profile of 1,000,000 samples and 100,000 stacks: CPU time", ["", "", "least", "spread", "", "", "limit"],
     [Row("large-profile", "write, read, report", large_profile, 1)]),
    ("luabpf count -- COMMAND: CPU time of a call to an empty function",
     ["", "", "alone", "counted", "hook in Lua", "spread", "limit"],
     [Row(f"hook-{lua}", lua, hook_cost, 40, ("count", "calls.lua", lua)) for lua in [*PUC, "luajit"]]),
    ("luabpf trace -- COMMAND: CPU time of a line that adds two numbers",
     ["", "", "alone", "traced", "hook in Lua", "spread", "limit"],
     [Row(f"line-{lua}", lua, hook_cost, 80, ("trace", "lines.lua", lua)) for lua in [*PUC, "luajit"]]),
    ("From start to first sample", ["", "", "median", "spread", "", "", "limit"],
     [Row("attach", "from the start of luabpf to its first sample", attach, 100)]),
]


# ---- the report ---------------------------------------------------------------------------------

class Report:
    """Tables on standard output, a row as soon as it is known."""

    def title(self, text, columns):
        print(f"\n{text}", flush=True)
        self._line(columns)

    def row(self, cells, within=None):
        self._line([*cells, "" if within is None else "ok" if within else "OVER"])

    def note(self, text):
        print(f"  {text}", flush=True)

    @staticmethod
    def _line(cells):
        name, label, *rest = cells
        print(f"  {name:<21}{label:<42}" + "".join(f" {c:>13}" for c in rest[:5]) +
              "".join(f"  {c}" for c in rest[5:]), flush=True)


def compile_counter(bench):
    """The counting program is a yardstick, no part of luabpf: it is built here."""
    bench.object.parent.mkdir(parents=True, exist_ok=True)
    arch = subprocess.run(["cc", "-print-multiarch"], capture_output=True, text=True).stdout.strip()
    include = ["-idirafter", f"/usr/include/{arch}"] if arch else []
    subprocess.run(["clang", "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", *include, "-c",
                    HERE / "bpf/count.bpf.c", "-o", bench.object], check=True)


def chosen(patterns):
    """PARTS with the rows that a pattern matches; all without one. None: a pattern has no row."""
    names = [row.name for _, _, rows in PARTS for row in rows]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            print(f"bench: no row is named {pattern}: see --list", file=sys.stderr)
            return None
    return [(title, columns, [row for row in rows if not patterns or
                              any(fnmatch.fnmatch(row.name, p) for p in patterns)])
            for title, columns, rows in PARTS]


def parse():
    root = HERE.parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows to measure (default: all)")
    parser.add_argument("--list", action="store_true", help="print the rows' names")
    parser.add_argument("--against", type=Path, action="append", default=[], metavar="LUABPF",
                        help="another build, measured at once in the rows of time in BPF")
    parser.add_argument("--build", type=Path, default=Path(os.environ.get("O", root / "build")))
    parser.add_argument("--rounds", type=int, help="windows or turns of each row")
    return parser.parse_args()


def main():
    args = parse()
    parts = chosen(args.names)
    if parts is None:
        return 1
    if args.list:
        for _, _, rows in parts:
            for row in rows:
                print(f"{row.name:<22}{row.label}")
        return 0
    if os.geteuid() != 0:
        print("bench: needs root, as BPF programs are loaded: sudo make bench", file=sys.stderr)
        return 1
    bench = Bench(args.build.resolve(), args.rounds, args.against)
    for path in (bench.luabpf, bench.count, *bench.against):
        if not path.exists():
            print(f"bench: {path} is missing: make all tests-build", file=sys.stderr)
            return 1
    compile_counter(bench)
    report, failed = Report(), 0
    for title, columns, rows in parts:
        if rows:
            report.title(title, columns)
        for row in rows:
            try:
                row.measure(bench, report, row)
            except (Unmeasured, OSError, subprocess.SubprocessError) as problem:
                report.note(f"{row.name}: NOT MEASURED: {problem}")
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
