# SPDX-License-Identifier: BSD-2-Clause
"""Programs that measure their parts by their own clock, and samples that are compared with it.

Loops of the same text need not take the same time for each turn: of four in one program, one took 1.75 times as long as the
others in one run of some forty, of which the profile and the program's own clock agreed.
"""
import collections
import math
import re

# lap(NAME, N) ends a part of N units of work, which began at the last lap(); lap() alone only begins one. laps() writes what
# the units of each part took: their number times the median, as a turn that the machine interrupted takes any time, of which
# the timer sees nothing. On one line, so that a program keeps its line numbers.
LUA = ("local lap, laps do local clock, times, units, last = os.clock, {}, {}, 0 "
       "function lap(name, n) if name then local t = times[name] or {} times[name], t[#t + 1] = t, (clock() - last) / n "
       "units[name] = (units[name] or 0) + n end last = clock() end "
       "function laps() for name, t in pairs(times) do table.sort(t) "
       "io.stderr:write(('lap %s %.6f\\n'):format(name, t[math.ceil(#t / 2)] * units[name])) end end end ")


def spent(text):
    """{NAME: seconds} of what a program wrote."""
    return collections.Counter({name: float(s) for name, s in re.findall(r"^lap (\S+) ([\d.]+)$", text, re.M)})


def check(counts, seconds, what):
    """Samples and seconds of the same parts: each part's share is the same within 5.5 standard deviations (a false alarm in
    26 million) and 2 % of the samples, for the time between the parts and the clock."""
    n, whole = sum(counts), sum(seconds)
    assert n >= 100 and len(counts) == len(seconds), (counts, seconds, what)
    for count, s in zip(counts, seconds):
        share = s / whole
        assert abs(count - share * n) <= 5.5 * math.sqrt(n * share * (1 - share)) + 0.02 * n, (counts, seconds, what)
