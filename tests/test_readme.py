"""The README's Python examples run as they stand.

Each block is a program of its own, as a reader pastes it."""

import re
from pathlib import Path

import pytest

import fastvec

README = Path(__file__).parents[1] / "README.md"


def python_blocks():
    """(line number of its first line, source) of each ```python block."""
    text = README.read_text(encoding="utf-8")
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, block.start(1)) + 1, block[1]


@pytest.mark.parametrize(("line", "source"), [pytest.param(*block, id=f"line {block[0]}") for block in python_blocks()])
def test_example_runs(line, source):
    code = compile("\n" * (line - 1) + source, str(README), "exec")  # errors then name the README's own lines
    try:
        exec(code, {"__name__": "__main__"})
    finally:
        fastvec.unregister_vector_entry_points()  # an example may end without it; the next test may not find it
