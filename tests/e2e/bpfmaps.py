# SPDX-License-Identifier: BSD-2-Clause
"""What a luabpf that runs holds in its BPF maps, by bpftool. For tests and the bench."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

BPFTOOL = shutil.which("bpftool", path="/usr/sbin:/sbin:" + os.environ.get("PATH", ""))


def bpftool(*args):
    return json.loads(subprocess.run([BPFTOOL, "-j", *args], capture_output=True, text=True, check=True).stdout)


def map_of(pid, name):
    """The id of the map of that name that a process holds; None: it has none yet."""
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            number = re.search(r"^map_id:\s*(\d+)$", info.read_text(), re.M)
        except OSError:
            continue
        if number and bpftool("map", "show", "id", number[1])["name"] == name:
            return number[1]
    return None


def pids_in(number):
    """The keys of a map of processes."""
    return {int.from_bytes(bytes(int(byte, 16) for byte in e["key"]), "little") for e in bpftool("map", "dump", "id", number) if "key" in e}
