# SPDX-License-Identifier: BSD-2-Clause
"""Reads pprof files (gzip of profile.proto), with luabpf's own fields; for tests only."""
import gzip
import re
import types
from typing import NamedTuple


class Frame(NamedTuple):
    name: str       # stable name
    callname: str   # at this call; jit.p's for the function where the call gives none
    file: str
    start: int      # line of the definition
    line: int       # current line
    kind: int       # LUA 1, C 2, BUILTIN 3, CUT 4, NONE 5, TAIL 6, OTHER 7, VM 8
    shown: str      # the function's name in jit.p's text
    known: bool     # whether the current line is; else `line` is that of the definition
    call: str       # as callname; "" where the call gives none

    @property
    def base(self):
        """The file's name without folders. Not by Path(), which took a tenth of the time of test_truth.py."""
        return self.file.rpartition("/")[2]


LUA, C, BUILTIN, CUT, NONE, TAIL, OTHER, VM = range(1, 9)
NOT_KNOWN = 1  # -1 as sint32


class Sample(NamedTuple):
    stack: tuple    # of Frame, root first
    count: int
    labels: dict


def _varint(b, i):
    shift = v = 0
    while True:
        v |= (b[i] & 127) << shift
        shift += 7
        i += 1
        if b[i - 1] < 128:
            return v, i


def _fields(b):
    i = 0
    while i < len(b):
        key, i = _varint(b, i)
        if key & 7 == 0:
            v, i = _varint(b, i)
        elif key & 7 == 2:
            n, i = _varint(b, i)
            v, i = b[i:i + n], i + n
        else:
            raise ValueError(f"wire type {key & 7}")
        yield key >> 3, v


def _numbers(v):
    if isinstance(v, int):
        return [v]
    out, i = [], 0
    while i < len(v):
        n, i = _varint(v, i)
        out.append(n)
    return out


def _message(b):
    m = {}
    for field, v in _fields(b):
        m.setdefault(field, []).append(v)
    return m


def _one(m, field, default=0):
    return m[field][-1] if field in m else default


class Profile:
    def __init__(self, path):
        m = _message(gzip.open(path).read())
        self.strings = [s.decode() for s in m[6]]
        functions = {}
        for f in map(_message, m.get(5, [])):
            lua = _message(_one(f, 1000, b""))
            functions[_one(f, 1)] = (self.strings[_one(f, 2)], self.strings[_one(f, 3)],
                                     self.strings[_one(f, 4)], _one(f, 5), _one(lua, 1))
        locations = {}
        for loc in map(_message, m.get(4, [])):
            line = _message(loc[4][0])
            name, callname, file, start, kind = functions[_one(line, 1)]
            known = _one(loc, 1000) != NOT_KNOWN
            shown = callname
            call = _one(loc, 1001, b"").decode(errors="replace")
            locations[_one(loc, 1)] = Frame(name, call or callname, file, start, _one(line, 2), kind, shown, known, call)
        self.samples = []
        for s in map(_message, m.get(2, [])):
            ids = [n for v in s.get(1, []) for n in _numbers(v)]
            labels = {}
            for label in map(_message, s.get(3, [])):
                labels[self.strings[_one(label, 1)]] = (
                    self.strings[_one(label, 2)] if _one(label, 2) else _one(label, 3))
            stack = tuple(locations[i] for i in reversed(ids))
            self.samples.append(Sample(stack, _numbers(s[2][0])[0], labels))
        self.comments = [self.strings[n] for v in m.get(13, []) for n in _numbers(v)]
        self.target_uid = _one(m, 1001, None)
        self.time_ns, self.duration_ns = _one(m, 9), _one(m, 10)
        self.total = sum(s.count for s in self.samples)

    def of(self, *pids):
        """The samples of these processes, as of one profile. Functions of several builds have names that say whose they are:
        "select (lua5.1)"."""
        samples = [s._replace(stack=tuple(f if f.kind == LUA else f._replace(name=re.sub(r" \(\S+\)$", "", f.name))
                                          for f in s.stack))
                   for s in self.samples if int(s.labels["pid"]) in pids]
        return types.SimpleNamespace(samples=samples, total=sum(s.count for s in samples))
