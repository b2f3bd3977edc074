# SPDX-License-Identifier: BSD-2-Clause
"""tools/lj-row makes a row of the debug information of a build: here of structs that this test compiles, whose fields lie as
each row of one shape says."""
import importlib.machinery
import importlib.util
import subprocess
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools/lj-row"
loader = importlib.machinery.SourceFileLoader("lj_row", str(TOOL))
lj_row = importlib.util.module_from_spec(importlib.util.spec_from_loader("lj_row", loader))
loader.exec_module(lj_row)

ROWS = {name: (is_gc32, numbers) for is_gc32, name, numbers in lj_row.rows()}
SHAPES = ["LuaJIT 2021-03", "Tarantool 2024-08", "LuaJIT 2017-06", "LuaJIT GC32 2026-07", "LuaJIT 2.0.5"]
G, J, TRACE = 96, 1024, 512  # where GG_State has them, and jit_State has trace


def structs_of(name):
    """({struct: {offset: field}}, {struct: size}) of a build with this row."""
    is_gc32, row = ROWS[name]
    (g2disp, vmstate, hookmask, cur_L, jit_base, g2trace, registrytv, parent, _, _, str_len, _, _, mcofs, total) = row
    known = lj_row.constants()
    structs = {
        "GG_State": {G: "g", G + g2trace - TRACE: "J", G + g2disp: "dispatch"},
        "GCState": {4: "total"},
        "global_State": {total - 4: "gc", vmstate: "vmstate", hookmask: "hookmask", jit_base: "jit_base", registrytv: "registrytv",
                         cur_L: "jit_L" if "2.0" in name else "cur_L"},
        "jit_State": {TRACE: "trace", TRACE + parent: "parent"},
        "GCRef": {0: "gcptr"},
        "SnapShot": {},
        "GCstr": {str_len: "len"},
    }
    sizes = {"GCRef": 4 if is_gc32 else 8}
    anywhere = []
    for groups in lj_row.CONSTANTS, lj_row.MCOFS if mcofs else {}:
        for group, (struct, fields) in groups.items():
            at = structs.setdefault(struct, {})
            for constant, field in fields.items():
                value = known.get(lj_row.constant_name(group, constant, is_gc32))
                if not field:
                    sizes[struct] = value
                elif value is None:
                    anywhere.append((at, field))
                else:
                    at[value] = field
    for at, field in anywhere:  # layout.h has no constant for it
        at[next(o for o in range(1, 64) if o not in at)] = field
    return structs, sizes


def build(tmp_path, name, structs, sizes):
    row = ROWS[name][1]
    lines = [f"enum {{ BC_FUNCF = {row[11]} }} op;", f"enum {{ LJ_VMST_EXIT = {row[12] + 2} }} state;"]
    for struct, fields in structs.items():
        at, members = 0, []
        for offset, field in sorted(fields.items()):
            members += [f"char pad{at}[{offset - at}];"] * (offset > at) + [f"char {field};"]
            at = offset + 1
        size = sizes.get(struct, 0)
        members += [f"char pad{at}[{size - at}];"] * (size > at)
        lines.append(f"typedef struct {struct} {{ {' '.join(members)} }} {struct}; {struct} a_{struct};")
    lines.append(f'asm(".globl lj_vm_asm_begin\\nlj_vm_asm_begin:\\n.cfi_startproc\\n.cfi_def_cfa_offset {row[8]}\\n'
                 'ret\\n.cfi_endproc\\n");')
    (tmp_path / "lj.c").write_text("\n".join(lines) + "\n")
    subprocess.run(["gcc", "-g", "-shared", "-nostdlib", "-o", tmp_path / "lj.so", tmp_path / "lj.c"], check=True)
    return subprocess.run([TOOL, "--name", "a build", tmp_path / "lj.so"], capture_output=True, text=True)


@pytest.mark.parametrize("name", SHAPES)
def test_row(tmp_path, name):
    is_gc32, row = ROWS[name]
    r = build(tmp_path, name, *structs_of(name))
    macro = "LJ_LAYOUT32" if is_gc32 else "LJ_LAYOUT"
    assert r.stdout == f'{macro}("a build", {", ".join(map(str, row))})\n/* as {name} */\n', r
    assert (r.returncode, r.stderr) == (0, "")


def test_a_constant_that_differs(tmp_path):
    """A row alone would not do: layout.h takes this for constant."""
    structs, sizes = structs_of("LuaJIT 2021-03")
    fields = structs["GCproto"]
    fields[120], sizes["GCproto"] = fields.pop(64), 128
    r = build(tmp_path, "LuaJIT 2021-03", structs, sizes)
    assert r.returncode == 1 and r.stderr == ("lj-row: LJ_PROTO_CHUNKNAME is 64; this build has GCproto.chunkname 120\n"
                                              "lj-row: LJ_PROTO_SIZE is 104; this build has GCproto 128\n"), r


def test_what_has_no_row(tmp_path):
    structs, sizes = structs_of("LuaJIT 2021-03")
    del structs["jit_State"]
    r = build(tmp_path, "LuaJIT 2021-03", structs, sizes)
    assert (r.returncode, r.stdout) == (1, "") and "no jit_State in its debug information" in r.stderr, r
    r = subprocess.run([TOOL, "/bin/true"], capture_output=True, text=True)
    assert r.returncode == 1 and r.stderr == "lj-row: /bin/true: no debug information: build it with make CCDEBUG=-g\n", r
