"""The step loop of every env is still vectorised: losing that changes no result, only a step takes four to eight times
as long. Each env header is compiled alone, and gcc is asked which loops it vectorised."""

import pathlib
import re
import shutil
import subprocess

import pytest

CSRC = pathlib.Path(__file__).parents[1] / "csrc"
FLAGS = ["-std=c11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-builtin-pow"]
# instruction set -> options, bytes of its vectors
TARGETS = {
    "avx2": (["-DFV_VECMATH=1", "-mavx2", "-mfma"], 32),
    "avx512": (
        [
            "-DFV_VECMATH=1",
            "-mavx2",
            "-mfma",
            *(f"-mavx512{part}" for part in ("f", "dq", "vl", "bw")),
            "-mprefer-vector-width=512",
        ],
        64,
    ),
}


def envs_that_vectorise():
    """All but those whose lanes draw while they step, and so are stepped one after another."""
    headers = [path for path in sorted((CSRC / "envs").glob("*.h")) if path.stem != "all"]
    return [path.stem for path in headers if "#define FV_DRAWS_IN_STEP 1" not in path.read_text()]


def float32_envs():
    text = (CSRC / "envs" / "all.h").read_text()
    return re.findall(r"ENV\((\w+)\)", re.search(r"#define FV_FLOAT32_ENVS\(ENV\)(.*)", text)[1])


def step_loop_line():
    """The line of kernel.h that the step loop begins in."""
    lines = (CSRC / "kernel.h").read_text().splitlines()
    function = next(i for i, line in enumerate(lines) if "FV(step_lanes)(" in line and line.startswith("FV_INLINE"))
    return next(i for i, line in enumerate(lines[function:], function + 1) if "for (int64_t i = begin" in line)


def vector_bytes(env, real, options, tmp_path):
    """The sizes of the vectors, in bytes, in which gcc says it made the env's step loops."""
    source = tmp_path / "env.c"
    source.write_text(
        f'#define real {real}\n#define FV_REAL_NAME t\n#include "envs/{env}.h"\n'
        f"const fv_kernel *kernel = &{env}_t_kernel;\n"
    )
    command = ["gcc", *FLAGS, *options, f"-I{CSRC}", "-fopt-info-vec-optimized", "-c", str(source)]
    built = subprocess.run([*command, "-o", str(tmp_path / "env.o")], capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    found = re.findall(rf"kernel\.h:{step_loop_line()}:\d+: optimized: *loop vectorized using (\d+) byte", built.stderr)
    return [int(size) for size in found]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="the report is gcc's")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("env", envs_that_vectorise())
def test_the_step_loop_is_vectorised(env, target, tmp_path):
    options, full = TARGETS[target]
    for real in ["double", *(["float"] if env in float32_envs() else [])]:
        sizes = vector_bytes(env, real, options, tmp_path)
        # One loop for shared parameters and one for parameters in columns; both again for float32 actions.
        loops = 4 if "#define FV_ACTION FV_BOX" in (CSRC / "envs" / f"{env}.h").read_text() else 2
        assert sizes.count(full) >= loops, f"{env}.h, {real}, {target}: vectors of {sizes} bytes, not {loops} of {full}"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="the report is gcc's")
@pytest.mark.parametrize("env", ["cartpole", "counter"])
def test_the_float32_step_loop_is_vectorised_on_any_cpu(env, tmp_path):
    """With the compiler's default instructions, where the exact kernels call the C library."""
    assert 16 in vector_bytes(env, "float", [], tmp_path)
