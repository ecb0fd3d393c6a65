"""Runs the Python examples of docs/*.md, and holds the pages to what the tests know. README.md's are in test_readme.py.

An example is a fenced block marked ``python``. One with ``>>>`` prompts shows its output, which is compared; any other
just runs, and may assert. The blocks of a page run in order and in one namespace, as a reader would type them."""

import ast
import doctest
import re
from pathlib import Path

import pytest
from lockstep import DIFFERENCES

import fastvec

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^ *```(.*)$")
# Pages whose examples are of an extra: page -> (module, package).
NEEDS = {"sb3.md": ("stable_baselines3", "stable-baselines3")}
LANGUAGES = {"python", "bash", "c", "cython", "text", "toml"}
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")


def examples(page):
    """Yields (line number of its first line, source) of each Python block.

    Raises:
        ValueError: for a block that is not closed, or whose language is not one of LANGUAGES: a misspelt ``python``
            would otherwise never run.
    """
    opened, language, lines = 0, "", []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if fence is None:
            lines.append(line)
        elif opened:
            if language == "python":
                yield opened + 1, "\n".join(lines) + "\n"
            opened = 0
        else:
            opened, language, lines = number, fence[1].strip(), []
            if language not in LANGUAGES:
                raise ValueError(f"{page.name}:{number}: {language!r} is none of {', '.join(sorted(LANGUAGES))}")
    if opened:
        raise ValueError(f"{page.name}:{opened}: the block is never closed")


def run_examples(page):
    """Runs all examples of a page.

    Raises:
        AssertionError: shows the outputs that differ from what the page says.
        Exception: whatever an example without prompts raises.
    """
    namespace = {"__name__": "__main__"}
    for line, source in examples(page):
        if ">>> " in source:
            test = doctest.DocTestParser().get_doctest(source, namespace, page.name, str(page), line - 1)
            failures = []
            doctest.DocTestRunner(verbose=False).run(test, out=failures.append, clear_globs=False)
            namespace = test.globs
            assert not failures, f"{page.name}:{line}\n{''.join(failures)}"
        else:
            # Blank lines in front, so that a traceback has the page's line numbers.
            exec(compile("\n" * (line - 1) + source, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(page):
    if page.name in NEEDS:
        module, package = NEEDS[page.name]
        pytest.importorskip(module, reason=f"needs {package}, which CI's tests-with-sb3 has")
    try:
        run_examples(page)
    finally:
        # An example that fails half-way must not leave Gymnasium's registry changed for other tests.
        fastvec.unregister_vector_entry_points()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_has_examples(page):
    assert list(examples(page))


def anchors(page):
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for path, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        if path.startswith(("http://", "https://", "mailto:")):
            continue
        target = page.parent / path if path else page
        assert target.exists(), f"{page.name} links to {path}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {path}#{anchor}"


RIGHT = """
```python
>>> x = 1
>>> x
1
```

```python
assert x == 1
x += 1
```

```python
>>> x
2
>>> int("one")
Traceback (most recent call last):
ValueError: invalid literal for int() with base 10: 'one'
```
"""


def test_a_right_page_passes(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(RIGHT, encoding="utf-8")
    run_examples(page)
    assert [line for line, _ in examples(page)] == [3, 9, 14]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("\n1\n", "\n1.0\n"),
        ("\n2\n", "\n3\n"),
        ("x == 1", "x == 2"),
        ("x += 1", "x +="),
        (">>> x = 1", ">>> y = 1"),
        ("ValueError: invalid", "TypeError: invalid"),
        ("'one'\n", "'two'\n"),
        ("```python\nassert", "```pyhton\nassert"),
        ("base 10: 'one'\n```\n", "base 10: 'one'\n"),
    ],
)
def test_a_wrong_page_fails(tmp_path, right, wrong):
    assert right in RIGHT
    page = tmp_path / "page.md"
    page.write_text(RIGHT.replace(right, wrong), encoding="utf-8")
    with pytest.raises((AssertionError, SyntaxError, ValueError)):
        run_examples(page)


# docs/differences.md


def rows_of_differences():
    """(id, in lock-step, names of tests) of each row of docs/differences.md."""
    rows = []
    for line in (ROOT / "docs" / "differences.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if re.fullmatch(r"D\d+", cells[0]):
            assert len(cells) == 5, f"{cells[0]} has {len(cells)} cells"
            assert all(cells), f"{cells[0]} has an empty cell"
            rows.append((cells[0], cells[1], re.findall(r"`(test_\w+)`", cells[4])))
    return rows


def test_differences_are_numbered():
    ids = [id for id, _, _ in rows_of_differences()]
    assert ids == [f"D{number}" for number in range(1, len(ids) + 1)]
    assert ids


def test_every_difference_is_shown_by_a_test_and_every_such_test_is_listed():
    source = (ROOT / "tests" / "test_differences.py").read_text(encoding="utf-8")
    defined = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    named = [name for _, _, names in rows_of_differences() for name in names]
    assert all(names for _, _, names in rows_of_differences())
    assert sorted(named) == sorted(name for name in defined if name.startswith("test_"))


def test_the_lockstep_comparer_excepts_what_the_page_lists_and_nothing_else():
    listed = [part for _, part, _ in rows_of_differences() if part != "-"]
    assert sorted(listed) == sorted(f"`info {difference.key}`" for difference in DIFFERENCES)
