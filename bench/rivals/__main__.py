"""`python bench/rivals`: `fastvec bench`, with its options, and with CartPoles written by hand among the contenders."""

from __future__ import annotations

import sys
from typing import Any

from cartpole_numpy import NumpyCartPole

from fastvec import cli
from fastvec.contenders import CONTENDERS, Contender


class HandWritten(Contender):
    """A CartPole of this directory."""

    def absence(self, env_id: str, n: int) -> str | None:
        return super().absence(env_id, n) if env_id == "CartPole-v1" else f"no {env_id}"


class NumpyFloat32Contender(HandWritten):
    name = "numpy32"
    title = "NumPy float32 by hand"

    def make(self, env_id: str, n: int, **setting: Any) -> Any:
        return NumpyCartPole(n)


class NumbaContender(HandWritten):
    name = "numba"
    title = "numba float64"
    package = "numba"
    module = "numba"
    precision = "float64"

    def make(self, env_id: str, n: int, **setting: Any) -> Any:
        from cartpole_numba import NumbaCartPole

        return NumbaCartPole(n, self.precision)


class NumbaFloat32Contender(NumbaContender):
    name = "numba32"
    title = "numba float32 fastmath"
    precision = "float32"


CONTENDERS.update({each.name: each for each in (NumpyFloat32Contender(), NumbaContender(), NumbaFloat32Contender())})
sys.exit(cli.main(["bench", *sys.argv[1:]]))
