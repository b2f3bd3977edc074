# SPDX-License-Identifier: BSD-2-Clause
"""Each rule of tools/lint/ finds what it is there for: a copy of the tree with one fault in it fails."""
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BSD = "/* SPDX-License-Identifier: BSD-2-Clause */\n"

BY_FILE = {"clang", "cppcheck", "tidy"}  # only the file with the fault, as the whole tree takes a minute

# (rule, file, text that is added to it, what the rule says)
FAULTS = [
    ("includes", "user/out/out.c", '#include "record/session.h"\n', "out must not include record"),
    ("includes", "include/unwind/lj/find.h", "#include <unwind/puc/find.h>\n",
     "unwind/lj must not include unwind/puc"),
    ("includes", "include/unwind/mem.h", '#include "base/text.h"\n', "unwind must not include base"),
    ("includes", "user/sym/native.c", '#include "jit/model.h"\n', "jit/model.h is for jit only"),
    ("includes", "user/bpf/ring.c", '#include "luabpf.skel.h"\n', "only user/bpf/loader"),
    ("includes", "user/prof/prof.c", 'const char *p = "/proc/self";\n', "never see /proc"),
    ("includes", "user/record/session.c", 'void f(void) { printf("x"); }\n', "do not print"),
    ("includes", "user/sym/native.c", "void f(void) { HASH_FIND_INT(all, &pid, p); }\n", "table by pid"),
    ("includes", "include/unwind/unwind.h", "struct pt_regs;\n", "pt_regs"),
    ("includes", "user/detect/puc/vm.c", '#include "arch/x86_64/insn.h"\n', "insn.h is of one processor"),
    ("includes", "user/jit/work.c", "#include <Zydis/Zydis.h>\n", "Zydis.h is of one processor"),
    ("includes", "user/newfolder/x.c", BSD, "not in the list"),
    ("circles", "user/base/sudo.c", "struct text {\n\tint x;\n};\n", "struct text is defined"),
    ("circles", "tests/unit/test_hash.c", "struct text {\n\tint x;\n};\n", "struct text is defined"),
    ("circles", "agent/hook.c", "static const struct text {\n\tint x;\n} x;\n", "struct text is defined"),
    ("includes", "user/record/session.c", '#include "lua/lj/proto.h"\n', "record must not include lua/lj"),
    ("includes", "user/sym/puc.c", '#include "lua/puc/proto.h"\n', "lua/puc/proto.h is for lua/puc only"),
    ("headers", "user/base/text.c", "int text_count(void)\n{\n\treturn 0;\n}\n", "no header: make it static"),
    ("headers", "user/base/text.c", "int words_add(void)\n{\n\treturn 0;\n}\n", "declared in user/base/words.h"),
    ("cppcheck", "user/base/sudo.c", "int f(void)\n{\n\tint x[2] = {1, 2};\n\n\treturn x[2];\n}\n", "arrayIndexOutOfBounds"),
    ("clang", "lua/luabpf/profile.c", "static int unused;\n", "unused variable 'unused'"),
    ("tidy", "tests/unit/test_hash.c", "static int unused;\n", "unused variable 'unused'"),
    ("tidy", "tests/unit/test_hash.c", "int f(int a)\n{\n\treturn a == a;\n}\n", "misc-redundant-expression"),
    ("tidy", "user/base/hash.c", "static int unused;\n", "unused variable 'unused'"),
    ("tidy", "user/base/hash.c", "int f(int a)\n{\n\treturn a == a;\n}\n", "misc-redundant-expression"),
    ("sizes", "user/base/text.c", "static int f(void)\n{\n" + "\tg();\n" * 80 + "}\n", "f() has 83"),
    ("sizes", "user/base/sudo.c", "/* x */\n" * 800, "more than 800"),
    ("words", "user/base/text.c", "/* What it was told. */\n", '"told" is no term'),
    ("words", "docs/stats.md", "ditto\n", '"ditto" is no term'),
    ("words", "docs/stats.md", "mostly\n", '"mostly" is no term'),
    ("words", "bpf/maps.bpf.h", "/* Now and then. */\n", '"Now and then" is no term'),
    ("words", "docs/luabpf_new.3", "ditto\n", '"ditto" is no term'),
    ("words", "lua/zone.lua", "-- ditto\n", '"ditto" is no term'),
    ("words", "tools/demo.sh", "# ditto\n", '"ditto" is no term'),
    ("words", "tests/new/x.py", '"""What it was told."""\n', '"told" is no term'),
    ("spdx", "user/base/fresh.c", "int x;\n", "lack"),
    ("format", "user/base/text.c", "int  x ;\n", "clang-format"),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("tree")
    for name in ("agent", "bpf", "examples", "include", "lua", "user", "docs", "tools", ".ci", "tests/unit"):
        shutil.copytree(ROOT / name, root / name)
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", ".clang-format"):
        shutil.copy(ROOT / name, root / name)
    return root


def run(tree, rule, *files):
    r = subprocess.run([f"tools/lint/{rule}", *files], cwd=tree, capture_output=True, text=True)
    return r.returncode, r.stdout + r.stderr


@pytest.mark.parametrize("rule,path,text,says", FAULTS,
                         ids=lambda v: v if isinstance(v, str) and len(v) < 40 else None)
def test_a_fault_is_found(tree, rule, path, text, says):
    file = tree / path
    before = file.read_text() if file.exists() else None
    file.parent.mkdir(exist_ok=True)
    file.write_text((before or "") + text)
    try:
        code, out = run(tree, rule, *([path] if rule in BY_FILE else []))
    finally:
        if before is None:
            file.unlink()
            if not any(file.parent.iterdir()):
                file.parent.rmdir()
        else:
            file.write_text(before)
    assert code != 0 and says in out, out


@pytest.mark.parametrize("rule,one,other", [
    ("includes", '#include "sudo.h"\n', '#include "text.h"\n'),
    ("circles", "int half(int x)\n{\n\treturn other_half(x);\n}\n",
     "int other_half(int x)\n{\n\treturn half(x);\n}\n")])
def test_a_circle_is_found(tree, rule, one, other):
    files = [tree / "user/base" / name for name in
             (("text.h", "sudo.h") if rule == "includes" else ("text.c", "sudo.c"))]
    before = [f.read_text() for f in files]
    for file, old, text in zip(files, before, (one, other)):
        file.write_text(old + text)
    try:
        code, out = run(tree, rule)
    finally:
        for file, old in zip(files, before):
            file.write_text(old)
    assert code != 0 and "a circle" in out, out
