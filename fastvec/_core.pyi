"""Types of the compiled module: what _core.pyx shows to Python, and there is documented. stubtest keeps it in step."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

AUTORESET_MODES: Final[Mapping[str, int]]
STATE_FORMAT: Final[int]
STREAM: Final[np.dtype[np.void]]

@final
class Layout:
    def __new__(cls, name: str, shape: tuple[int, ...], typenum: int) -> Self: ...
    @property
    def name(self) -> str: ...

@final
class Batch:
    def __new__(
        cls,
        target: str,
        math: str,
        kernel: str,
        precision: str,
        n: int,
        parameters: tuple[float, ...],
        tables: tuple[npt.NDArray[Any], ...],
        state_ranges: dict[str, tuple[int, int]],
        obs_shapes: tuple[tuple[int, ...], ...],
        action_low: int,
        action_count: int,
        action_shape: tuple[int, ...],
        limit: int | None,
        autoreset_mode: str,
        copy: bool,
        episode_stats: bool,
        num_threads: int,
        label: str,
    ) -> Self: ...
    @property
    def closed(self) -> bool: ...
    @property
    def target(self) -> str: ...
    @property
    def math(self) -> str: ...
    @property
    def precision(self) -> str: ...
    @property
    def autoreset_mode(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def lane_seeds(self) -> tuple[int, ...]: ...
    @property
    def episode_stats(self) -> bool: ...
    @property
    def elapsed(self) -> npt.NDArray[np.int64]: ...
    @property
    def state(self) -> dict[str, npt.NDArray[Any]]: ...
    def require_idle(self, call: str) -> None: ...
    def require_reset(self, call: str) -> None: ...
    def generators(self) -> tuple[np.random.Generator, ...]: ...
    def set_generators(self, generators: Sequence[np.random.Generator]) -> None: ...
    def reset(
        self,
        seeds: int | Sequence[int | None] | None = None,
        mask: npt.NDArray[np.bool_] | None = None,
        options: Sequence[float] | None = None,
    ) -> tuple[Any, dict[str, Any]]: ...
    def step(
        self,
        actions: npt.ArrayLike,
        out: tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]] | None = None,
    ) -> tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]: ...
    def close(self) -> None: ...
    def set_parameter(self, index: int, value: npt.ArrayLike) -> None: ...
    def set_columns(self, values: dict[str, npt.NDArray[np.float64]]) -> None: ...
    def get_state(self) -> dict[str, Any]: ...
    def set_state(self, state: dict[str, Any]) -> None: ...

def targets() -> dict[str, bool]: ...
def math_difference(target: str) -> tuple[str, float, float, float] | None: ...
def precisions(kernel: str) -> tuple[str, ...]: ...
def kernel_info(kernel: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[float, ...]]: ...
def build_info() -> dict[str, str]: ...
def gae(
    target: str,
    rewards: npt.NDArray[Any],
    values: npt.NDArray[Any],
    terminations: npt.NDArray[np.bool_],
    truncations: npt.NDArray[np.bool_],
    last_values: npt.NDArray[Any],
    final_values: npt.NDArray[Any] | None,
    resets: npt.NDArray[np.bool_] | None,
    gamma: float,
    gae_lambda: float,
    advantages: npt.NDArray[Any],
    returns: npt.NDArray[Any],
) -> None: ...
