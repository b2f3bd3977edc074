# SPDX-License-Identifier: BSD-2-Clause
"""Hosts that run a Lua script which returns in JSON the CPU time that each of its parts has taken so far (parts.lua). The
parts' lines end in "-- NAME". A place is (name of the file, line)."""
import collections
import json
import re
import socket
from pathlib import Path

import pprof
import truth
import vms

COMMON = Path(__file__).resolve().parent / "parts.lua"


def places(script, pattern):
    """{name: place} of the lines that match, of the script and what it has in common with others."""
    return {m[1]: (path.name, n) for path in (COMMON, Path(script))
            for n, text in enumerate(path.read_text().splitlines(), 1) if (m := re.search(pattern, text))}


def lines(script):
    """{part: place} of the line that takes its time."""
    return places(script, r" -- (\w+)$")


def starts(script):
    """{name: place} where functions begin."""
    return places(script, r"^(?:local )?function (?:\w+\.)?(\w+)")


def at(frame):
    return frame.base, frame.line


def start(frame):
    return frame.base, frame.start


def shown(sample):
    return ";".join(f"{f.name}:{f.line}" for f in sample.stack)


def ask(path):
    """Sends one request over a Unix socket; returns the script's answer, None while no server listens."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(vms.HANG)
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
    """Whose line is on the stack; parts: lines(), or some of them."""
    on_stack = [at(f) for f in sample.stack if f.kind == pprof.LUA]
    return next((part for part, place in parts.items() if place in on_stack), None)


def count(samples, parts):
    """{part: samples}."""
    counts = collections.Counter()
    for s in samples:
        counts[part_of(s, parts)] += s.count
    return counts


def check_losses(done, profile, least):
    assert done.stats["lost"] <= truth.allowed(done.stats["resolved"] + done.stats["lost"]), done
    assert profile.total > least * (1 - done.missing), done
