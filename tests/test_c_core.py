"""Compiles the C core with its own test program and runs it under AddressSanitizer and UBSan."""

import os
import pathlib
import shutil
import subprocess

import pytest

TESTS = pathlib.Path(__file__).parent
SANITIZERS = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
COMPILER = os.environ.get("CC", "cc").split()[0]


@pytest.mark.skipif(shutil.which(COMPILER) is None, reason="there is no C compiler")
def test_core(tmp_path):
    program = tmp_path / "core_test"
    built = subprocess.run(
        [str(TESTS / "c" / "build.sh"), str(program), *SANITIZERS], capture_output=True, text=True, timeout=300
    )
    assert built.returncode == 0, built.stderr
    run = subprocess.run(
        [str(program), str(TESTS / "known_answers" / "streams.txt")], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 failures" in run.stdout
