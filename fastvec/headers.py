"""Where the C headers are that an env outside of this tree is built against."""

from __future__ import annotations

from pathlib import Path


def get_include() -> str:
    """The directory with fastvec.h, for a compiler's ``-I``."""
    package = Path(__file__).parent
    installed = package / "include"
    # In an editable install the headers stay where they are in the source tree.
    return str(installed if installed.is_dir() else package.parent / "csrc")
