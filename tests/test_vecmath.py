"""csrc/vecmath.h against the C library and NumPy, bit for bit, for every compiler and instruction set found here."""

from __future__ import annotations

import ctypes
import itertools
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "tests" / "c"
FLAGS = [
    *("-std=c11", "-Wall", "-Wextra", "-Werror", "-O3", "-fPIC", "-shared", f"-I{ROOT / 'csrc'}"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-builtin-pow", "-fno-builtin-powf"),
]
ISA_FLAGS = {
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mavx2", "-mfma", "-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx512bw"],
}

HALF_PI = float.fromhex("0x1.921fb54442d18p0")
SMALL_LIMIT = float.fromhex("0x1.b6p-1")
MIDDLE_LIMIT = float.fromhex("0x1.368fdp1")
REDUCED_LIMIT = float.fromhex("0x1.921fbp26")
# The documented limits, and what glibc really compares with: the upper halves of bit patterns.
BOUNDARIES = [
    *(5e-324, 2.0**-1022, 2.0**-512, 2.0**-128, 2.0**-60, 2.0**-27, 2.0**-26, 1 / 256, 1 / 128, 0.126, 0.2095, 0.5),
    *(np.pi / 4, SMALL_LIMIT, 0.855469, 1.0, HALF_PI, 2.0, MIDDLE_LIMIT, 2.426265, 2 * HALF_PI, 3 * HALF_PI),
    *(4 * HALF_PI, 1000 * HALF_PI, REDUCED_LIMIT, 105414350.0, 2.0**60, 2.0**128, 1e300, np.finfo(float).max),
]
RANGES = [
    (0.0, 0.126),
    (0.126, SMALL_LIMIT),
    (SMALL_LIMIT, MIDDLE_LIMIT),
    (MIDDLE_LIMIT, 10.0),
    (10.0, 1e3),
    (1e3, REDUCED_LIMIT),
]
# function -> the C library's function, the scalar type, where |x| must lie
FUNCTIONS = {
    "sin_small": ("sin", np.float64, SMALL_LIMIT),
    "cos_small": ("cos", np.float64, SMALL_LIMIT),
    "sin": ("sin", np.float64, REDUCED_LIMIT),
    "cos": ("cos", np.float64, REDUCED_LIMIT),
    "square": ("pow", np.float64, 2.0**128),
    "squaref": ("powf", np.float32, 2.0**50),
}


def cpu_flags() -> set[str]:
    """Returns the features of this CPU by the names the compilers use; none if it is not an x86-64 under Linux."""
    cpuinfo = Path("/proc/cpuinfo")
    if platform.machine() != "x86_64" or not cpuinfo.exists():
        return set()
    return set(re.search(r"^flags\s*:(.*)$", cpuinfo.read_text(), re.MULTILINE)[1].split())


@dataclass
class Build:
    """A way to compile the header."""

    compiler: str
    isa: str

    def __str__(self) -> str:
        return f"{self.compiler}-{self.isa}"

    def compile(self, source: str, library: Path, *more: str) -> str:
        """Compiles one file of tests/c and returns what the compiler said."""
        command = [self.compiler, *FLAGS, *ISA_FLAGS.get(self.isa, []), *more, SOURCES / source, "-o", library, "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stderr


COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
ISAS = [isa for isa, flags in ISA_FLAGS.items() if {flag.removeprefix("-m") for flag in flags} <= cpu_flags()]
BUILDS = [Build(*pair) for pair in itertools.product(COMPILERS, ISAS)]

pytestmark = pytest.mark.skipif(not BUILDS, reason="needs a C compiler, and a CPU that vecmath.h is compiled for")


class Loops:
    """The loops of one build over arrays."""

    def __init__(self, build: Build, folder: Path):
        build.compile("vecmath_loops.c", folder / "loops.so")
        self.library = ctypes.CDLL(str(folder / "loops.so"))

    def __call__(self, function: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the function of every x, and whether x was outside."""
        out, outside = np.empty_like(x), np.empty(len(x), np.int64)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, out, outside)]
        getattr(self.library, f"loop_{function}")(*pointers, ctypes.c_int64(len(x)))
        return out, outside.astype(bool)


class Libm:
    """The C library's functions over arrays."""

    def __init__(self, folder: Path):
        Build(COMPILERS[0], "default").compile("vecmath_libm.c", folder / "libm.so")
        self.library = ctypes.CDLL(str(folder / "libm.so"))

    def __call__(self, function: str, x: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        exponent = (ctypes.c_float if x.dtype == np.float32 else ctypes.c_double)(2)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, out)]
        getattr(self.library, f"libm_{function}")(*pointers, ctypes.c_int64(len(x)), exponent)
        return out


@pytest.fixture(scope="module", params=BUILDS, ids=str)
def build(request):
    return request.param


@pytest.fixture(scope="module")
def loops(build, tmp_path_factory):
    return Loops(build, tmp_path_factory.mktemp(str(build)))


@pytest.fixture(scope="module")
def libm(tmp_path_factory):
    return Libm(tmp_path_factory.mktemp("libm"))


def bits(x: np.ndarray) -> np.ndarray:
    return x.view(np.uint32 if x.dtype == np.float32 else np.uint64)


def with_neighbours(x, steps: int = 3) -> np.ndarray:
    """Returns each x, the next `steps` floats on both sides of it, and all of them negative."""
    x = np.asarray(x)
    found = [x]
    for towards in (-np.inf, np.inf):
        neighbour = x
        for _ in range(steps):
            neighbour = np.nextafter(neighbour, x.dtype.type(towards))
            found.append(neighbour)
    found = np.concatenate(found)
    return np.concatenate([found, -found])


def random_points(rng: np.random.Generator, low: float, high: float, count: int) -> np.ndarray:
    """Returns points with |x| in [low, high): half of them even in x, half even in the exponent."""
    low_exponent = np.log2(low) if low else -40.0
    magnitudes = np.concatenate(
        [
            rng.uniform(low, high, count // 2),
            np.exp2(rng.uniform(low_exponent, np.log2(high), count - count // 2)),
        ]
    )
    points = np.clip(magnitudes, low, np.nextafter(high, 0)) * rng.choice([-1.0, 1.0], count)
    return np.ascontiguousarray(points)


def assert_equal_where_inside(loops: Loops, libm: Libm, function: str, x: np.ndarray) -> np.ndarray:
    """Asserts equal bits and returns which x were outside."""
    reference, dtype, _ = FUNCTIONS[function]
    x = x.astype(dtype)
    ours, outside = loops(function, x)
    theirs = libm(reference, x)
    differ = (bits(ours) != bits(theirs)) & ~outside
    assert not differ.any(), f"{function}({x[differ][0]!r}) is {ours[differ][0]!r}, libm's {theirs[differ][0]!r}"
    return outside


@pytest.mark.parametrize("function", FUNCTIONS)
def test_boundaries_and_special_values(loops, libm, function):
    _, dtype, limit = FUNCTIONS[function]
    specials = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan]
    with np.errstate(over="ignore"):
        x = np.concatenate([specials, with_neighbours(BOUNDARIES)]).astype(dtype)
    outside = assert_equal_where_inside(loops, libm, function, x)
    assert outside[~(np.abs(x) <= limit)].all()
    if function.startswith(("sin", "cos")):
        assert np.array_equal(outside, ~(np.abs(x) < limit))


@pytest.mark.parametrize("function", ["sin_small", "cos_small", "sin", "cos"])
@pytest.mark.parametrize(("low", "high"), RANGES)
@pytest.mark.parametrize("count", [100_000, pytest.param(10_000_000, marks=pytest.mark.full)])
def test_sine_and_cosine_of_random_points(loops, libm, function, low, high, count):
    x = random_points(np.random.default_rng([int(high), count]), low, high, count)
    outside = assert_equal_where_inside(loops, libm, function, x)
    if high <= FUNCTIONS[function][2]:
        assert outside.mean() < 1e-5
    else:
        assert outside.all()


@pytest.mark.parametrize("function", ["sin_small", "cos_small", "sin", "cos"])
def test_between_two_rows_of_the_table(loops, libm, function):
    """An argument, or pi/2 less it, halfway between multiples of 1/128: there the nearest one is a matter of bits."""
    halfway = (2 * np.arange(109) + 1) / 256
    outside = assert_equal_where_inside(loops, libm, function, with_neighbours(halfway, 8))
    assert not outside[: len(halfway)].any()
    assert_equal_where_inside(loops, libm, function, with_neighbours(HALF_PI - halfway, 8))
    assert_equal_where_inside(loops, libm, function, with_neighbours(HALF_PI + halfway, 8))


@pytest.mark.parametrize("function", ["sin", "cos"])
@pytest.mark.parametrize(("low", "high"), [(0.1259, 0.1261), (SMALL_LIMIT, 0.855469), (MIDDLE_LIMIT, 2.426265)])
def test_close_to_the_limits(loops, libm, function, low, high):
    """Between the limits as they are and as glibc's comments round them, it matters which are used."""
    outside = assert_equal_where_inside(loops, libm, function, np.linspace(low, high, 200_000))
    assert not outside.any()


@pytest.mark.parametrize("function", ["sin", "cos"])
def test_close_to_multiples_of_half_pi(loops, libm, function):
    multiples = np.concatenate([np.arange(1, 2000), np.geomspace(2000, 67_000_000, 2000).astype(int)])
    outside = assert_equal_where_inside(loops, libm, function, with_neighbours(multiples * HALF_PI, 4))
    assert not outside.any()


@pytest.mark.parametrize(("function", "share"), [("square", 0.04), ("squaref", 0.01)])
@pytest.mark.parametrize("count", [200_000, pytest.param(20_000_000, marks=pytest.mark.full)])
def test_squares_of_random_points(loops, libm, function, share, count):
    _, _, limit = FUNCTIONS[function]
    rng = np.random.default_rng(count)
    for low, high in ((0.0, 10.0), (1 / limit, limit)):
        outside = assert_equal_where_inside(loops, libm, function, random_points(rng, low, high, count))
        assert 0.9 * share < outside.mean() < 1.1 * share


@pytest.mark.parametrize("function", ["square", "squaref"])
def test_exact_squares_are_inside(loops, libm, function):
    x = np.concatenate([[0.0, -0.0], np.arange(-1000, 1000) / 8])
    assert not assert_equal_where_inside(loops, libm, function, x).any()


@pytest.mark.full
def test_every_float32_square(loops, libm):
    low, high = (np.float32(2.0**exponent).view(np.uint32) for exponent in (-60, 60))
    for start in range(int(low), int(high), 1 << 24):
        x = np.arange(start, min(start + (1 << 24), int(high)), dtype=np.uint32).view(np.float32)
        assert_equal_where_inside(loops, libm, "squaref", x)


def test_numpy_scalars_give_the_bits_of_libm(libm):
    """What Gymnasium's environments compute with, which is what all of this is for."""
    x = np.concatenate([random_points(np.random.default_rng(3), low, high, 2000) for low, high in RANGES])
    singles = x.astype(np.float32)
    assert np.array_equal(bits(libm("sin", x)), bits(np.array([np.sin(value) for value in x])))
    assert np.array_equal(bits(libm("cos", x)), bits(np.array([np.cos(value) for value in x])))
    assert np.array_equal(bits(libm("pow", x)), bits(np.array([value**2 for value in x])))
    assert np.array_equal(bits(libm("powf", singles)), bits(np.array([value**2 for value in singles])))
    assert np.array_equal(bits(libm("sin", x)), bits(np.sin(x)))
    assert np.array_equal(bits(libm("cos", x)), bits(np.cos(x)))


def test_every_loop_is_vectorised(build, tmp_path):
    report = build.compile(
        "vecmath_loops.c",
        tmp_path / "loops.so",
        *(["-fopt-info-vec-optimized"] if build.compiler == "gcc" else ["-Rpass=loop-vectorize"]),
    )
    vectorised = {
        int(line) for line in re.findall(r"vecmath_loops\.c:(\d+):.*(?:loop vectorized|vectorized loop)", report)
    }
    source = (SOURCES / "vecmath_loops.c").read_text().splitlines()
    loop_lines = {number for number, line in enumerate(source, 1) if line.startswith("LOOP(")}
    assert len(loop_lines) == len(FUNCTIONS)
    assert loop_lines <= vectorised


@pytest.fixture(scope="module")
def check(build, tmp_path_factory):
    """vecmath_check.h, which decides when fastvec is imported whether kernels use vecmath.h, with a libm made wrong."""
    library = tmp_path_factory.mktemp(f"check-{build}") / "check.so"
    build.compile("vecmath_check.c", library)
    library = ctypes.CDLL(str(library))

    def check(wrong_function="", low=0.0, high=np.inf):
        name, numbers = ctypes.create_string_buffer(16), (ctypes.c_double * 3)()
        library.make_wrong(wrong_function.encode(), ctypes.c_double(low), ctypes.c_double(high))
        return bool(library.matches_libm(name, numbers)), name.value.decode(), list(numbers)

    return check


def test_check_agrees_with_this_machine(check):
    assert check()[0]


@pytest.mark.parametrize("function", ["sin", "cos"])
@pytest.mark.parametrize(("low", "high"), RANGES)
def test_check_finds_wrong_sines_and_cosines(check, function, low, high):
    matches, name, (x, vecmath, libm) = check(function, low, high)
    assert not matches
    assert name.startswith(function)
    assert low <= abs(x) < high
    assert libm == np.nextafter(vecmath, np.inf)


@pytest.mark.parametrize(("function", "name"), [("pow", "square"), ("powf", "squaref")])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (1.0, 10.0)])
def test_check_finds_wrong_squares(check, function, name, low, high):
    matches, found, (x, vecmath, libm) = check(function, low, high)
    assert not matches
    assert found == name
    assert low <= abs(x) < high
    assert libm > vecmath
