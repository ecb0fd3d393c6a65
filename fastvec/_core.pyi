"""Types of the compiled module: what _core.pyx shows to Python. Kept in step by mypy's stubtest in .ci/run."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

AUTORESET_MODES: Final[Mapping[str, int]]

@final
class Layout:
    def __new__(cls, shape: tuple[int, ...], typenum: int) -> Self: ...

@final
class Batch:
    def __new__(
        cls,
        kernel: str,
        n: int,
        parameters: dict[str, float],
        obs_shapes: tuple[tuple[int, ...], ...],
        action_low: int,
        action_count: int,
        action_shape: tuple[int, ...],
        limit: int | None,
        autoreset_mode: str,
        copy: bool,
        label: str,
    ) -> Self: ...
    @property
    def closed(self) -> bool: ...
    @property
    def label(self) -> str: ...
    @property
    def action_shape(self) -> tuple[int, ...]: ...
    @property
    def nbytes(self) -> int: ...
    def seed(self, seeds: int | Sequence[int | None] | None) -> None: ...
    def reset(
        self, mask: npt.NDArray[np.bool_] | None = None, options: Sequence[float] | None = None
    ) -> tuple[Any, dict[str, Any]]: ...
    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]: ...
    def close(self) -> None: ...

def parameter_names(kernel: str) -> tuple[str, ...]: ...
