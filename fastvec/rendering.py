"""Frames of native lanes, drawn by Gymnasium's own renderer: one ordinary env is put in each lane's state in turn.

So the pixels are those of the Gymnasium that is installed, and nothing has to be drawn twice."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import DependencyNotInstalled
from gymnasium.vector import AutoresetMode

from fastvec import registry
from fastvec._core import Batch
from fastvec.render_state import DrawnLane
from fastvec.vec_env import RENDER_MODES, VecEnv

# A CartPole frame is 0.7 MB; beyond this many, which lanes are to be drawn has to be said.
MAX_FRAMES = 64


class RenderedVecEnv(VecEnv):
    """A VecEnv that draws its lanes. Made by :func:`fastvec.make` with a ``render_mode``."""

    def __init__(
        self,
        batch: Batch,
        native: registry.NativeEnv,
        env: gymnasium.Env[Any, Any],
        num_envs: int,
        autoreset_mode: AutoresetMode,
        render_lanes: tuple[int, ...],
    ) -> None:
        """As VecEnv; ``render_lanes`` are the lanes to draw, in this order."""
        super().__init__(batch, native, env, num_envs, autoreset_mode)
        self.render_lanes = render_lanes
        self._drawn = [DrawnLane() for _ in render_lanes]
        self._remembers = native.render_state is not None
        # Never draws itself, since what has drawn cannot be copied. FrozenLake's random map is in no spec, but in it.
        self._ordinary_env = env.unwrapped
        self._drawer: gymnasium.Env[Any, Any] | None = None

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """As :meth:`VecEnv.reset`."""
        result = super().reset(seed=seed, options=options)
        if self._remembers:
            self._forget_lanes_that_began()
        return result

    def step(
        self,
        actions: npt.ArrayLike,
        *,
        out: tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]] | None = None,
    ) -> tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """As :meth:`VecEnv.step`."""
        result = super().step(actions, out=out)
        if self._remembers:
            taken = np.asarray(actions)
            for lane, drawn in zip(self.render_lanes, self._drawn, strict=True):
                drawn.action = taken[lane].copy()  # the caller may write the next step's into the same array
            self._forget_lanes_that_began()
        return result

    def set_state(self, state: dict[str, Any]) -> None:
        """As :meth:`VecEnv.set_state`. Last actions are no part of it, and are drawn from the next step on."""
        super().set_state(state)
        self._drawn = [DrawnLane() for _ in self.render_lanes]

    def render(self) -> tuple[Any, ...]:
        """Draws each lane of ``render_lanes`` (all, if make was not given any) as its single env would be drawn.

        Returns:
            A tuple with a frame for each lane: uint8 arrays (height, width, 3), which are the caller's own; with
            ``render_mode="ansi"`` texts.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset.
            gymnasium.error.ClosedEnvironmentError: after close.
        """
        self._batch.require_reset("render")
        if self._drawer is None:
            self._drawer = copy.deepcopy(self._ordinary_env)
            self._drawer.reset(seed=0)  # some attributes come to be only here
        return tuple(
            self._frame(self._drawer, lane, drawn) for lane, drawn in zip(self.render_lanes, self._drawn, strict=True)
        )

    def close_extras(self, **kwargs: Any) -> None:
        """As :meth:`VecEnv.close_extras`; the renderer goes too."""
        super().close_extras(**kwargs)
        if self._drawer is not None:
            self._drawer.close()
            self._drawer = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the renderer: surfaces cannot be copied, and it is made anew when it is needed."""
        return {**self.__dict__, "_drawer": None}

    def _frame(self, env: gymnasium.Env[Any, Any], lane: int, drawn: DrawnLane) -> Any:
        for name, value in self._attributes.items():
            setattr(env, name, value[lane] if isinstance(value, tuple) else value)
        state = self._batch.state
        for name, (columns, kind) in self._state_attributes().items():
            values = [state[column][lane] for column in columns]
            setattr(env, name, kind(np.array(values) if len(values) > 1 else values[0].item()))
        render_state = registry.of_vec_env(self._id).render_state
        if render_state is not None:
            drawn.state = {name: column[lane].item() for name, column in state.items()}
            render_state(env, drawn)
        frame = env.render()
        return frame.copy() if isinstance(frame, np.ndarray) else frame  # it may be the env's own, drawn over next

    def _forget_lanes_that_began(self) -> None:
        elapsed = self._batch.elapsed
        for lane, drawn in zip(self.render_lanes, self._drawn, strict=True):
            if elapsed[lane] == 0:
                drawn.action, drawn.memory = None, {}


def checked_render_lanes(
    native: registry.NativeEnv, spec: EnvSpec, render_mode: str | None, render_lanes: Any, n: int
) -> tuple[int, ...] | None:
    """The lanes to draw; None without a render mode.

    Args:
        native: the env that is being made.
        spec: that of the ordinary env.
        render_mode: what make was given.
        render_lanes: what make was given.
        n: number of lanes.

    Raises:
        ValueError: for a render mode that the env has not or that shows nothing to a caller, for lanes that there are
            not, and for more than MAX_FRAMES lanes where none were chosen.
        TypeError: for lanes that are not ints.
        gymnasium.error.DependencyNotInstalled: without pygame; the message has the command that installs it.
    """
    if render_mode is None:
        if render_lanes is not None:
            raise ValueError(f'render_lanes is {render_lanes!r}, without a render_mode; add render_mode="rgb_array"')
        return None
    _check_mode(native, spec, render_mode)
    if render_lanes is None:
        if n > MAX_FRAMES:
            raise ValueError(
                f"render_mode is {render_mode!r} for {n} lanes: above {MAX_FRAMES}, say which are to be drawn, for "
                f"example make(..., render_lanes=[0, 1, 2, 3]); every frame of an image may be a megabyte"
            )
        return tuple(range(n))
    if isinstance(render_lanes, (str, bytes)) or not isinstance(render_lanes, (Sequence, np.ndarray)):
        raise TypeError(f"render_lanes is {render_lanes!r}, {type(render_lanes).__name__}: expected a list of lanes")
    for lane in render_lanes:
        if isinstance(lane, (bool, np.bool_)) or not isinstance(lane, (int, np.integer)):
            raise TypeError(f"render_lanes has {lane!r}, {type(lane).__name__}: expected ints from 0 to {n - 1}")
        if not 0 <= lane < n:
            raise ValueError(f"render_lanes has {lane}: expected ints from 0 to {n - 1}, as there are {n} lanes")
    lanes = tuple(int(lane) for lane in render_lanes)
    if not lanes or len(set(lanes)) < len(lanes):
        raise ValueError(f"render_lanes is {list(lanes)}: expected at least one lane, and none twice")
    return lanes


def offered_modes(native: registry.NativeEnv) -> list[str]:
    """The render modes that fastvec.make takes for this env, whether or not pygame is there."""
    metadata = getattr(registry.ordinary_class(native), "metadata", {})
    return [mode for mode in metadata.get("render_modes", ()) if mode in RENDER_MODES]


def has_pygame() -> bool:
    """Whether Gymnasium can draw."""
    return importlib.util.find_spec("pygame") is not None


def _check_mode(native: registry.NativeEnv, spec: EnvSpec, render_mode: str) -> None:
    offered = offered_modes(native)
    if render_mode not in offered:
        has = f"it has {' and '.join(map(repr, offered))}" if offered else "it has no render modes"
        watch = (
            "; to watch a window, put gymnasium.wrappers.vector.HumanRendering around an env that has 'rgb_array'"
            if render_mode == "human" and "rgb_array" in offered
            else ""
        )
        raise ValueError(f"render_mode is {render_mode!r}: {native.id} does not render that way; {has}{watch}")
    if render_mode == "rgb_array" and not has_pygame():
        extra = "toy-text" if "toy_text" in str(spec.entry_point) else "classic-control"
        raise DependencyNotInstalled(
            f'render_mode is "rgb_array": Gymnasium draws {native.id} with pygame, which is not installed; '
            f'run: pip install "gymnasium[{extra}]"'
        )
