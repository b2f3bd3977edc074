# SPDX-License-Identifier: BSD-2-Clause
"""docs/formats.md names each field that the writers of formats write, and its links lead somewhere."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FORMATS = (ROOT / "docs/formats.md").read_text()
NAMED = set(re.findall(r"`([\w.-]+)`", FORMATS)) | set(re.findall(r"`([\w.-]+)` \(", FORMATS))
JSON = re.compile(r'(?:json_(?:text|number|bool|null|address|item)|add_(?:place|positive|range)|add_text|'
                  r'cJSON_Add\w+)\(&?\w+, "([\w.-]+)"')
LABEL = re.compile(r'fill_label\(w, [^;"]*"(\w+)"')
OWN_FIELD = re.compile(r"(\w+) = (10\d\d)\b")


@pytest.mark.parametrize("source,pattern", [
    ("user/cmds/ps.c", JSON),
    ("user/cmds/traces.c", JSON),
    ("user/traces/json.c", JSON),
    ("user/out/call_table.c", JSON),
    ("user/prof/pprof_write.c", LABEL),
])
def test_each_field_is_described(source, pattern):
    written = set(pattern.findall((ROOT / source).read_text()))
    assert len(written) >= 4, written
    assert written <= NAMED, sorted(written - NAMED)


def test_each_field_of_luabpfs_own_is_described():
    fields = OWN_FIELD.findall((ROOT / "user/prof/profile.proto").read_text())
    assert len(fields) >= 6
    for name, number in fields:
        assert re.search(rf"`{name}`[^\n]* ?\({number}\)", FORMATS), name


def test_the_lua_functions_fields_are_described():
    message = re.search(r"message LuaFunction \{(.*)\n\}", (ROOT / "user/prof/profile.proto").read_text(), re.S).group(1)
    fields = set(re.findall(r"optional \w+ (\w+) = ", message))
    assert len(fields) == 12 and fields <= NAMED, sorted(fields - NAMED)


def anchors(path):
    """As GitHub makes them of a document's headings."""
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-")
            for h in re.findall(r"^#+ (.*)$", path.read_text(), re.M)}


DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)", document.read_text()):
        path = (document.parent / target).resolve() if target else document
        assert path.exists(), target
        assert not anchor or path.suffix != ".md" or anchor in anchors(path), f"{target}#{anchor}"


# Functions of the kernel, of libc and of hosts.
OTHERS_FUNCTIONS = {"bpf_rdonly_cast", "register_action", "pthread_exit"}


@pytest.fixture(scope="module")
def words():
    sources = [p for top in ("agent", "bpf", "include", "lua", "tools", "user", "tests") for p in (ROOT / top).rglob("*")
               if p.suffix in {".c", ".h", ".def", ".py", ".lua", ".map"} and "corpus" not in p.parts]
    return set(re.findall(r"\w+", "\n".join(p.read_text(errors="replace") for p in sources)))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_named_functions_exist(document, words):
    if document.name != "CHANGELOG.md":
        named = set(re.findall(r"`(\w+)\(\)`", document.read_text()))
        assert named <= words | OTHERS_FUNCTIONS, sorted(named - words - OTHERS_FUNCTIONS)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_named_files_exist(document):
    """`user/x/y.c` in a document is a file; a name in capitals stands for one to be made."""
    if document.name == "CHANGELOG.md":
        return
    for path in re.findall(r"`((?:agent|bpf|docs|examples|include|lua|tests|tools|user)/[\w./-]+\.(?:c|h|def|py|md|proto|lua))`",
                           document.read_text()):
        if not re.search(r"NEW|NAME|bc56", path):
            assert (ROOT / path).exists(), path
