"""Fails if a wheel is too large or lacks a file that it should have; run in the source tree it was made from.

Usage: check_wheel.py WHEEL"""

import sys
import zipfile
from pathlib import Path

LARGEST = 2_000_000  # bytes
MODULES = ("**/*.py", "**/*.pyi", "py.typed")
HEADERS = ("*.h", "envs/*.h")  # what an env outside of this package is built against


def main(wheel: str) -> None:
    """Compares the wheel with the package and the headers in the working directory."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    expected = {str(path) for pattern in MODULES for path in Path("fastvec").glob(pattern)}
    headers = [path for pattern in HEADERS for path in Path("csrc").glob(pattern)]
    expected |= {str("fastvec/include" / path.relative_to("csrc")) for path in headers}
    if missing := expected - names:
        sys.exit(f"{wheel} lacks {', '.join(sorted(missing))}: see [tool.setuptools] in pyproject.toml")
    if extra := {name for name in names if name.endswith((".c", ".pyx", ".pyc")) or "tests/" in name}:
        sys.exit(f"{wheel} has {', '.join(sorted(extra))}, which no user needs")
    size = Path(wheel).stat().st_size
    if size > LARGEST:
        sys.exit(f"{wheel} has {size:,} bytes: at most {LARGEST:,} are allowed")
    print(f"{Path(wheel).name}: {size:,} bytes, {len(names)} files")


main(*sys.argv[1:])
