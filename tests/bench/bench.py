#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What luabpf costs: in the kernel, on its target, in user space, on everybody else.

usage: bench.py [--only PART[,PART]] [--build DIR] [--rounds N]

Every number is a ratio, or a difference, of things measured in turns within this one run, and is
printed beside the limit that the project has set itself. Nothing here is a test: the exit code is 0
whatever the numbers, and 1 only when something could not be measured.

Other load on the machine disturbs all turns alike; medians are printed, and the spread of the
middle half of the turns, so that a difference within the noise can be told from one that is not.
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
HZ = 1000
CALM = 2.5  # s; until a recording of what does not change is as it will be
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
    def __init__(self, build, rounds):
        self.build, self.rounds = build, rounds
        self.tmp = tempfile.TemporaryDirectory(prefix="luabpf-bench-")
        self.dir = Path(self.tmp.name)
        self.luabpf = build / "luabpf"
        self.count = build / "tests/bench/count"
        self.object = build / "tests/bench/count.bpf.o"

    def profiler(self, pid, *options, output="/dev/null"):
        return [self.luabpf, "-q", "-p", pid, "-F", HZ, "-f", "folded", "-o", output, *options]

    def counter(self, pid, *options):
        return [self.count, self.object, pid, 10**9 // HZ, *options]


def target(script, *args, jit=True):
    return [*(JIT if jit else NO_JIT), HERE / script, *args]


def spare_cpu():
    """The CPU that targets are bound to when there is another one for the rest."""
    cpus = sorted(os.sched_getaffinity(0))
    return cpus[-1] if len(cpus) > 1 else None


# ---- time in BPF --------------------------------------------------------------------------------

def program_cost(pid):
    """(ns, runs) of the perf_event program that a process holds."""
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            text = Path(f"/proc/{pid}/fdinfo/{fd}").read_text()
        except OSError:
            continue
        info = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        if info.get("prog_type", "").strip() == "7":  # BPF_PROG_TYPE_PERF_EVENT
            return int(info["run_time_ns"]), int(info["run_cnt"])
    return None


def steady_cost(child, warm_up, seconds):
    """ns per sample of a running profiler, `warm_up` seconds after its first samples."""
    deadline = time.monotonic() + 5
    while True:
        cost = program_cost(child.pid)
        if cost and cost[1] >= 30:
            break
        if child.poll() is not None or time.monotonic() > deadline:
            raise Unmeasured(f"{child.args[0]}: takes no samples")
        time.sleep(0.01)
    time.sleep(warm_up)
    cost = program_cost(child.pid)
    time.sleep(seconds)
    ns, runs = program_cost(child.pid)
    if runs - cost[1] < 10:
        raise Unmeasured(f"{child.args[0]}: takes no samples")
    return (ns - cost[0]) / (runs - cost[1])


SHAPES = [  # label, depth, shape, interpreter, limit
    ("8 frames, one recursive function", 8, "rec", NO_JIT, 6),
    ("8 frames, distinct functions", 8, "chain", NO_JIT, 6),
    ("8 frames, inlined in a trace", 8, "trace", JIT, 6),
    ("50 frames, one recursive function", 50, "rec", NO_JIT, 15),
    ("50 frames, distinct functions", 50, "chain", NO_JIT, 15),
    *((f"{lua}, 8 frames, distinct functions", 8, "chain", [lua], 10) for lua in PUC),
    *((f"{lua}, 8 frames, C function on top", 7, "C", [lua], 10) for lua in PUC),
    *((f"{lua}, 8 frames, in a coroutine", 8, "co", [lua], 10) for lua in PUC),
    *((f"{lua}, 50 frames, distinct functions", 50, "chain", [lua], None) for lua in PUC),
]


def bpf(bench, report):
    """Time in BPF per sample, relative to a program that only counts."""
    # Interference makes the short program's time grow by more than the long one's: the ratio of the
    # least times is that of an idle machine.
    report.title("Time in BPF per sample, over that of a program that only counts",
                 ["stack", "counting", "luabpf", "ratio", "spread", "of the least", "limit"])
    stats = bench.dir / "stats.json"
    for label, depth, shape, interpreter, limit in SHAPES:
        if not shutil.which(interpreter[0]):
            report.note(f"{label}: not measured, as {interpreter[0]} is not installed")
            continue
        ours, theirs = [], []
        with running([*interpreter, HERE / "frames.lua", depth, shape], ready="ready") as lua:
            for _ in range(bench.rounds):
                with running(bench.profiler(lua.pid, "--stats", stats)) as child:
                    ours.append(steady_cost(child, CALM, 0.5))
                with running(bench.counter(lua.pid, "stats")) as child:
                    theirs.append(steady_cost(child, 0, 0.5))
        ratios = [a / b for a, b in zip(ours, theirs)]
        ratio = median(ratios)
        least = min(ours) / min(theirs)
        report.row([label, f"{median(theirs):.0f} ns", f"{median(ours):.0f} ns", f"{ratio:.1f}",
                    spread(ratios, "{:.1f}"), f"{least:.1f}", f"<= {limit}" if limit else ""],
                   least <= limit if limit else None)


# ---- slowdown of the target ---------------------------------------------------------------------

CPU, WALL = 0, 1  # of a turn


class Worker:
    """work.lua: does units of work and tells their CPU and wall-clock time."""

    def __init__(self, cpu, jit):
        argv = target("work.lua", jit=jit)
        if cpu is not None:
            argv = ["taskset", "-c", str(cpu), *argv]
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

    def tell(self, command):
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
        took = [[float(x) for x in self.tell("unit")] for _ in range(units + 2)][2:]
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
    worker.tell("jp")
    yield
    worker.tell("nojp")


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


def slowdown_row(report, turns, label, state, base, limit=None):
    cpu, wall = (slowdowns(turns, state, base, clock) for clock in (CPU, WALL))
    report.row([label, f"{median(cpu):+.2f} %", spread(cpu, "{:+.2f}"), f"{median(wall):+.2f} %",
                f"<= {limit} %" if limit else ""], median(cpu) <= limit if limit else None)


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


def slowdown(bench, report):
    """What a CPU-bound target loses at 1000 Hz."""
    states = {"nothing": under_nothing, "count": under_count, "luabpf": under_luabpf}
    if shutil.which("perf"):
        states["perf"] = under_perf
    for jit in (False, True):
        report.title(f"Slowdown of a CPU-bound target at {HZ} Hz, JIT compiler "
                     f"{'on' if jit else 'off'}", ["under", "CPU time", "spread", "wall", "limit"])
        with Worker(spare_cpu(), jit) as worker:
            turns = measure_turns(bench, worker, states, 2 * bench.rounds)
            # Apart, as starting and stopping it flushes all traces: that touches later turns.
            jp = measure_turns(bench, worker, {"nothing": under_nothing, "jp": under_jp},
                               bench.rounds)
        slowdown_row(report, turns, "counting program", "count", "nothing")
        slowdown_row(report, turns, "luabpf", "luabpf", "nothing")
        slowdown_row(report, turns, "luabpf over the counting program", "luabpf", "count", limit=1)
        slowdown_row(report, jp, "luajit -jp=i1", "jp", "nothing")
        if "perf" in turns:
            slowdown_row(report, turns, "perf record -g", "perf", "nothing")
        low, high = quartiles([t[CPU] for t in turns["nothing"]])
        report.note(f"noise: the middle half of the turns under nothing spans "
                    f"{100 * (high / low - 1):.2f} %")
    report.note(f"-jp=i1 takes {jp_rate():.0f} samples a second here, the others {HZ}")


def others(bench, report):
    """What a process loses that is not the target, while luabpf samples another."""
    report.title("Slowdown of a busy process that is no target", ["under", "CPU time", "spread",
                                                                  "wall", "limit"])
    with running(target("frames.lua", 8, "chain", jit=False), ready="ready") as lua:
        @contextmanager
        def luabpf_on_another(bench, worker):
            with under_luabpf(bench, lua):
                yield

        states = {"nothing": under_nothing, "luabpf": luabpf_on_another}
        with Worker(spare_cpu(), True) as worker:
            turns = measure_turns(bench, worker, states, 2 * bench.rounds)
    cpu, wall = (slowdowns(turns, "luabpf", "nothing", clock) for clock in (CPU, WALL))
    low, high = quartiles(cpu)
    report.row(["luabpf -p of another process", f"{median(cpu):+.2f} %", spread(cpu, "{:+.2f}"),
                f"{median(wall):+.2f} %", "in the noise"], low <= 0 <= high or median(cpu) < 0)


# ---- user space ---------------------------------------------------------------------------------

def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def status_kib(pid, key):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    raise Unmeasured(f"/proc/{pid}/status has no {key}")


def user(bench, report):
    """CPU time and memory of the luabpf process."""
    seconds, stats = 10, bench.dir / "stats.json"
    report.title(f"luabpf's own process, {seconds} s at {HZ} Hz", ["", "measured", "limit"])
    with running(target("stacks.lua", jit=False), ready="ready") as lua:
        with running(bench.profiler(lua.pid, "--stats", stats)) as child:
            time.sleep(1)
            start, at = cpu_seconds(child.pid), time.monotonic()
            time.sleep(seconds)
            cpu = 100 * (cpu_seconds(child.pid) - start) / (time.monotonic() - at)
            rss = status_kib(child.pid, "VmHWM") / 1024
    told = json.loads(stats.read_text())
    if told["samples"] < HZ * seconds / 4:
        raise Unmeasured(f"only {told['samples']} samples in {seconds} s")
    report.row(["CPU, once started", f"{cpu:.2f} %", "< 2 %"], cpu < 2)
    report.row(["CPU until started", f"{start:.2f} s", ""])
    report.row(["peak resident memory", f"{rss:.1f} MiB", "< 32 MiB"], rss < 32)
    report.note(f"{told['samples']:.0f} samples, {told['stacks']:.0f} distinct stacks, "
                f"{told['lost']:.0f} lost")


def first_sample(bench, pid):
    """(from exec to the first run of the program, from session start as luabpf tells), in ms."""
    stats = bench.dir / "stats.json"
    begin = time.monotonic()
    with running(bench.profiler(pid, "--stats", stats)) as child:
        while True:
            cost = program_cost(child.pid)
            took = time.monotonic() - begin
            if cost and cost[1]:
                break
            if child.poll() is not None or took > 5:
                raise Unmeasured("luabpf took no sample")
            time.sleep(0.001)
        time.sleep(0.1)
    return 1e3 * took, 1e3 * json.loads(stats.read_text())["first_sample_seconds"]


def attach(bench, report):
    """From the start of luabpf to its first sample."""
    report.title("From start to first sample", ["", "median", "spread", "least", "limit"])
    with running(target("stacks.lua", jit=False), ready="ready") as lua:
        times = [first_sample(bench, lua.pid) for _ in range(20)]
    for label, values in zip(("from exec", "from the session's start (--stats)"),
                             zip(*times)):
        report.row([label, f"{median(values):.0f} ms", spread(values, "{:.0f}"),
                    f"{min(values):.0f} ms", "< 100 ms"],
                   median(values) < 100)


# ---- the report ---------------------------------------------------------------------------------

class Report:
    """Tables on standard output, a row as soon as it is known."""

    def title(self, text, columns):
        self.columns = columns
        print(f"\n{text}", flush=True)
        self._line(columns)

    def row(self, cells, within=None):
        mark = "" if within is None else "  ok" if within else "  OVER"
        self._line(cells, mark)

    def note(self, text):
        print(f"  {text}", flush=True)

    @staticmethod
    def _line(cells, mark=""):
        first, *rest = cells
        print("  " + f"{first:<38}" + "".join(f"{c:>13}" for c in rest) + mark, flush=True)


PARTS = {"bpf": bpf, "slowdown": slowdown, "user": user, "attach": attach, "others": others}


def compile_counter(bench):
    """The counting program is a yardstick, no part of luabpf: it is built here."""
    bench.object.parent.mkdir(parents=True, exist_ok=True)
    arch = subprocess.run(["cc", "-print-multiarch"], capture_output=True, text=True).stdout.strip()
    include = ["-idirafter", f"/usr/include/{arch}"] if arch else []
    subprocess.run(["clang", "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", *include, "-c",
                    HERE / "bpf/count.bpf.c", "-o", bench.object], check=True)


def parse():
    root = HERE.parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help=f"parts to measure: {','.join(PARTS)}")
    parser.add_argument("--build", type=Path, default=Path(os.environ.get("O", root / "build")))
    parser.add_argument("--rounds", type=int, default=7, help="turns of each (default: 7)")
    args = parser.parse_args()
    args.parts = args.only.split(",") if args.only else list(PARTS)
    unknown = set(args.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    return args


def main():
    args = parse()
    if os.geteuid() != 0:
        print("bench: needs root, as BPF programs are loaded: sudo make bench", file=sys.stderr)
        return 1
    bench, report = Bench(args.build.resolve(), args.rounds), Report()
    for path in (bench.luabpf, bench.count):
        if not path.exists():
            print(f"bench: {path} is missing: make all tests-build", file=sys.stderr)
            return 1
    compile_counter(bench)
    failed = 0
    for part in args.parts:
        try:
            PARTS[part](bench, report)
        except (Unmeasured, OSError, subprocess.SubprocessError) as problem:
            report.note(f"NOT MEASURED ({part}): {problem}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
