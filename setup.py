"""Builds the extensions; everything else is in pyproject.toml."""

import sys
from pathlib import Path

import numpy
from setuptools import Extension, setup

if sys.platform == "win32":
    sys.exit("fastvec builds on Linux and macOS only: on Windows, install it under WSL.")

C_SOURCES = sorted(str(path) for path in Path("csrc").glob("**/*.c"))
C_HEADERS = sorted(str(path) for path in Path("csrc").glob("**/*.h"))

# Every operation rounds on its own, and pow(x, 2) stays a call: the bits depend on both. Nothing here names a CPU.
COMPILE_FLAGS = [
    "-std=c11",
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-builtin-pow",
    "-fno-builtin-powf",
    "-fvisibility=hidden",
    "-g0",  # Python's own flags ask for debug information, which is four fifths of the module
]

setup(
    ext_modules=[
        Extension(
            "fastvec._core",
            ["fastvec/_core.pyx", *C_SOURCES],
            include_dirs=["csrc", numpy.get_include()],
            depends=C_HEADERS,
            define_macros=[
                ("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION"),
                ("FV_BUILD_FLAGS", f'"{" ".join(COMPILE_FLAGS)}"'),  # for `fastvec doctor`
            ],
            extra_compile_args=COMPILE_FLAGS,
        ),
        *(
            Extension(
                f"fastvec.{name}",
                [f"fastvec/{name.replace('.', '/')}.pyx"],
                include_dirs=[numpy.get_include()],
                define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION"), ("_GNU_SOURCE", None)],
                extra_compile_args=COMPILE_FLAGS,
            )
            for name in ("_lanes", "backends._bell")
        ),
    ]
)
