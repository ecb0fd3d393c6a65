#!/bin/sh
# Compiles the C core with its own test program. The one place with that command.
#
#   tests/c/build.sh OUTPUT [compiler options...]
#
# CC is the compiler, cc by default: CC=aarch64-linux-gnu-gcc tests/c/build.sh core_test -static, or
# tests/c/build.sh core_test -fsanitize=thread. The options about arithmetic are those of setup.py.
set -eu
output=$1
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck disable=SC2046 # the file names have no spaces
exec "${CC:-cc}" -std=c11 -O2 -g1 -Wall -Wextra -Werror \
    -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-builtin-pow -fno-builtin-powf \
    "-I$root/csrc" "$@" "$root/tests/c/core_test.c" $(cd "$root" && find csrc -name '*.c' | sed "s|^|$root/|" | sort) \
    -o "$output" -pthread -lm
