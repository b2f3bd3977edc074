# SPDX-License-Identifier: BSD-2-Clause
"""Programs that measure their parts by their own clock, and samples that are compared with it.

Loops of the same text need not take the same time for each turn: of four in one program, one took 1.75 times as long as the
others in one run of some forty, of which the profile and the program's own clock agreed.
"""
import collections
import math
import re

# lap(NAME) ends a part, which began at the last lap(); lap() alone only begins one. laps() writes how long the turns of each part
# took together. On one line, so that a program keeps its line numbers.
LUA = ("local lap, laps do local clock, took, last = os.clock, {} "
       "function lap(name) if name then took[name] = (took[name] or 0) + clock() - last end last = clock() end "
       "function laps() for name, t in pairs(took) do io.stderr:write(('lap %s %.6f\\n'):format(name, t)) end end end ")


def spent(text):
    """{NAME: seconds} of what a program wrote."""
    return collections.Counter({name: float(s) for name, s in re.findall(r"^lap (\S+) ([\d.]+)$", text, re.M)})


def check(counts, seconds, done, what):
    """Samples and seconds of the same parts: each part's share is the same within 5.5 standard deviations (a false alarm in
    26 million), 2 % of the samples, for the time between the parts and the clock, and what the timer missed in the whole program:
    the clock counts the time for which a host stops its virtual machine, and one part may have had all of it."""
    n, whole = sum(counts), sum(seconds)
    missed = done.stats["samples"] * done.missing / (1 - done.missing)
    assert n >= 100 * (1 - done.missing) and len(counts) == len(seconds), (counts, seconds, what)
    for count, s in zip(counts, seconds):
        share = s / whole
        off = 5.5 * math.sqrt(n * share * (1 - share)) + (0.02 + missed / (n + missed)) * n
        assert abs(count - share * n) <= off, (counts, seconds, done.missing, what)
