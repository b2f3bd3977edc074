# SPDX-License-Identifier: BSD-2-Clause
"""Servers that run a Lua service: asked over a Unix socket, they answer in JSON how much CPU time each part of the service
has taken so far. The parts' lines end in "-- NAME"."""
import collections
import json
import re
import socket
from pathlib import Path

import pprof


def lines(path):
    """{part: line} of a service."""
    return {m[1]: n for n, text in enumerate(Path(path).read_text().splitlines(), 1) if (m := re.search(r" -- (\w+)$", text))}


def starts(path):
    """{name: line} of its local functions."""
    return {m[1]: n for n, text in enumerate(Path(path).read_text().splitlines(), 1)
            if (m := re.match(r"local function (\w+)", text))}


def ask(path):
    """One request; what the service says, None while nobody listens."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20)
        try:
            s.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return None
        s.sendall(b"GET / HTTP/1.1\r\nHost: busy\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: s.recv(4096), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b" 200 " in head, answer
    # nginx sends it in chunks; its JSON is one line
    return json.loads(next(line for line in body.splitlines() if line.startswith(b"{")))


def part_of(sample, parts):
    """Whose line is on the stack; parts: lines() of the service."""
    shown = [f.line for f in sample.stack if f.kind == pprof.LUA]
    return next((part for part, line in parts.items() if line in shown), None)


def count(samples, parts):
    """{part: samples}."""
    counts = collections.Counter()
    for s in samples:
        counts[part_of(s, parts)] += s.count
    return counts
