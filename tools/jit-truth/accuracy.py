#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""make jit-accuracy: how much of the time luabpf shows at the line, in the function and under the caller that had it.

A program's lines are marked, and truth.lua measures each one's share of the time by leaving it out. What is right of a
profile is the sum of min(true, shown) over the marked lines, of the sum of what is true; of functions and callers
likewise. A function's true share is that of its lines; a caller is the line of a call, with all that is called there.
"""
import argparse
import math
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests/e2e"))
import pprof  # noqa: E402
import vms    # noqa: E402

PROGRAMS = HERE / "programs"
HZ = 10000
COLUMNS = ("line", "function", "caller")


def function_of(text, line):
    """The line on which the function begins that has this line: by the indentation."""
    indent = len(text[line - 1]) - len(text[line - 1].lstrip())
    for at in range(line - 1, 0, -1):
        before = text[at - 1]
        if "function" in before and len(before) - len(before.lstrip()) < indent:
            return at
    return 0


class Truth:
    """What a program measured: shares by line, function and called line, and their standard errors."""

    def __init__(self, text):
        self.text = text
        self.share = {column: Counter() for column in COLUMNS}
        self.error = {column: Counter() for column in COLUMNS}

    def add(self, line, kind, share, error):
        share = max(share, 0.0)
        keys = [("caller", line)] if kind == "^" else [("line", line), ("function", function_of(self.text, line))]
        for column, key in keys:
            self.share[column][key] += share
            self.error[column][key] = math.hypot(self.error[column][key], error)


class Shown:
    """What a profiler shows of it, from stacks of lines, topmost first."""

    def __init__(self, text):
        self.text = text
        self.total = 0
        self.count = {column: Counter() for column in COLUMNS}

    def add(self, lines, count):
        if not lines:
            return
        self.total += count
        self.count["line"][lines[0]] += count
        self.count["function"][function_of(self.text, lines[0])] += count
        for line in set(lines):
            self.count["caller"][line] += count

    def share(self, column, key):
        return self.count[column][key] / self.total if self.total else 0.0

    def right(self, truth, column):
        """What is right, and what chance alone takes from that: the mean of min(0, d) is 0.4 standard deviations."""
        whole = sum(truth.share[column].values())
        if not whole or not self.total:
            return None
        right = chance = 0.0
        for key, true in truth.share[column].items():
            right += min(true, self.share(column, key))
            p = min(true, 1.0)
            chance += 0.4 * math.hypot(truth.error[column][key], math.sqrt(p * (1 - p) / self.total))
        return right / whole, chance / whole


def measure(program, argv, seconds):
    text = program.read_text().splitlines()
    truth, shown, own = Truth(text), Shown(text), Shown(text)
    with tempfile.NamedTemporaryFile(suffix=".pb.gz") as saved, \
            vms.Target([*argv, HERE / "truth.lua", program, seconds]) as target:
        while (line := target.line()) != "ready":
            _, number, kind, share, error = line.split()
            truth.add(int(number), kind, float(share), float(error))
        tool = vms.Luabpf("-p", target.pid, "-F", HZ, "-o", saved.name).wait_banner()
        target.go()
        if target.line() != "done":
            raise RuntimeError(f"{program} failed")
        tool.signal()
        done = tool.done()
        for s in pprof.Profile(saved.name).samples:
            shown.add([f.line for f in s.stack[::-1] if f.kind == pprof.LUA and f.file.endswith(program.name)], s.count)
        target.go()
        for line in target.rest().splitlines():
            _, count, stack = line.split(" ", 2)
            own.add([int(n) for n in re.findall(re.escape(program.name) + r":(\d+);", stack)], int(count))
    return truth, shown, own, done


def percent(value):
    return "-" if value is None else f"{100 * value:.1f}"


def show_lines(truth, shown, own):
    for column in COLUMNS:
        for key, true in sorted(truth.share[column].items()):
            print(f"    {column:8} {key:4} true {percent(true):>5} ± {percent(truth.error[column][key]):4}"
                  f" luabpf {percent(shown.share(column, key)):>5}"
                  f"  jit.profile {percent(own.share(column, key)) if own.total else '-':>5}"
                  f"  {truth.text[key - 1].strip() if key else 'main chunk'}")
        rest = {key: n for key, n in shown.count[column].items() if key not in truth.share[column]}
        for key, n in sorted(rest.items()) if column == "line" else ():
            print(f"    {column:8} {key:4} not marked        luabpf {percent(n / shown.total):>5}"
                  f"  jit.profile {percent(own.share(column, key)) if own.total else '-':>5}"
                  f"  {truth.text[key - 1].strip()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vm", default="luajit", help="the interpreter and its options (default: luajit)")
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU time to sample (default: 1)")
    parser.add_argument("--lines", action="store_true", help="show each line's true share and what is shown")
    parser.add_argument("program", nargs="*", help="names of programs (default: all)")
    args = parser.parse_args()
    argv = args.vm.split()
    jit = "luajit" in argv[0]
    programs = [PROGRAMS / f"{name}.lua" for name in args.program] or sorted(PROGRAMS.glob("*.lua"))
    total = {}
    row = "{:12} {:>7} {:>7} {:>7} {:>7} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7}"
    print(f"{args.vm}: per cent of the marked lines' time that is shown right; 'chance': what a perfect profile of as "
          "many samples\nwould miss; 'known': the marked lines' share of the program's time\n")
    print(row.format("program", "samples", "known", "line", "chance", "function", "caller",
                     *(("jp=l", "jp=f", "caller", "samples") if jit else ("",) * 4)))
    for program in programs:
        if not jit and "LuaJIT only" in program.read_text():
            continue
        truth, shown, own, done = measure(program, argv, args.seconds)
        cells = {("luabpf", c): shown.right(truth, c) for c in COLUMNS}
        cells |= {("own", c): own.right(truth, c) for c in COLUMNS}
        for key, value in cells.items():
            if value:
                total.setdefault(key, []).append(value)
        value = {key: percent(v and v[0]) for key, v in cells.items()}
        chance = cells["luabpf", "line"]
        print(row.format(program.stem, shown.total, percent(sum(truth.share["line"].values())), value["luabpf", "line"],
                         percent(chance and chance[1]), value["luabpf", "function"], value["luabpf", "caller"],
                         *((value["own", "line"], value["own", "function"], value["own", "caller"], own.total)
                           if jit else ("",) * 4)).rstrip(), flush=True)
        if args.lines:
            show_lines(truth, shown, own)
    mean = {key: percent(sum(v for v, _ in got) / len(got)) for key, got in total.items()}
    chances = [chance for _, chance in total.get(("luabpf", "line"), [])]
    print(row.format("mean", "", "", mean.get(("luabpf", "line"), "-"),
                     percent(sum(chances) / len(chances)) if chances else "-",
                     mean.get(("luabpf", "function"), "-"), mean.get(("luabpf", "caller"), "-"),
                     *((mean.get(("own", c), "-") for c in COLUMNS) if jit else ("",) * 3), "").rstrip())


if __name__ == "__main__":
    main()
