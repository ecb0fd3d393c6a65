"""Types of the compiled module: what _lanes.pyx shows to Python, and there is documented. stubtest keeps it in step."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, final

import gymnasium
import numpy as np
import numpy.typing as npt

RUNNING: Final[int]
ENDED: Final[int]
FAILED: Final[int]
BEGAN: Final[int]
MODES: Final[tuple[str, ...]]

_Info = tuple[int, dict[str, Any]]
_Error = tuple[int, Exception]

@final
class Part: ...

@final
class Lanes:
    envs: list[gymnasium.Env[Any, Any]]
    first: int
    def __init__(
        self,
        envs: list[gymnasium.Env[Any, Any]],
        first: int,
        paths: tuple[tuple[Any, ...], ...],
        observations: list[Any],
        final: list[Any],
        rewards: npt.NDArray[np.float64],
        terminations: npt.NDArray[np.bool_],
        truncations: npt.NDArray[np.bool_],
        status: npt.NDArray[np.uint8],
        mode: str,
    ) -> None: ...
    def reset(
        self, seeds: list[int | None], mask: npt.NDArray[np.bool_] | None, options: dict[str, Any] | None
    ) -> tuple[list[_Info], list[_Error]]: ...
    def step(self, actions: list[Any] | npt.NDArray[Any]) -> tuple[list[_Info], list[_Info], list[_Error]]: ...
    def step_one(self, i: int, action: Any) -> tuple[list[_Info], list[_Info], list[_Error]]: ...
    def call(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], only: frozenset[int] | None = None
    ) -> list[Any]: ...
    def get_attr(self, name: str) -> list[Any]: ...
    def set_attr(self, name: str, values: Sequence[Any]) -> None: ...
    def are_wrapped(self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]]) -> list[bool]: ...
    def render(self) -> list[Any]: ...
    def close(self) -> list[_Error]: ...

@final
class Ledger:
    rewards: npt.NDArray[np.float64]
    terminations: npt.NDArray[np.bool_]
    truncations: npt.NDArray[np.bool_]
    status: npt.NDArray[np.uint8]
    def __init__(
        self,
        rewards: npt.NDArray[np.float64],
        terminations: npt.NDArray[np.bool_],
        truncations: npt.NDArray[np.bool_],
        status: npt.NDArray[np.uint8],
        mode: str,
        episode_stats: bool,
    ) -> None: ...
    @property
    def episode_stats(self) -> bool: ...
    def require_ready(self) -> None: ...
    def shown(self, copy: bool) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]: ...
    def begin(self, mask: npt.NDArray[np.bool_] | npt.NDArray[np.int64] | None) -> None: ...
    def settle_lanes(self, lanes: npt.NDArray[np.int64]) -> tuple[int, dict[str, npt.NDArray[Any]] | None]: ...
    def settle(self) -> tuple[int, dict[str, npt.NDArray[Any]] | None]: ...

def copied(array: npt.NDArray[Any]) -> npt.NDArray[Any]: ...
def merge_infos(n: int, pairs: Iterable[_Info]) -> dict[str, Any]: ...
