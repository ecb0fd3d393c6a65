"""OrdinaryVecEnv: what all backends of ordinary Python envs have in common, behind Gymnasium's vector API.

A backend says where the envs are and runs the loop of _lanes.pyx there, on arrays that are this class's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from fastvec._lanes import FAILED, Ledger, copied, merge_infos
from fastvec.backends.lane_actions import LaneActions
from fastvec.backends.notes import add_note
from fastvec.backends.parts import parts_of, value_of
from fastvec.reset_options import checked_mask, checked_seeds

Infos = list[tuple[int, dict[str, Any]]]
Errors = list[tuple[int, Exception]]
Results = tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]


@dataclass(frozen=True)
class LaneFacts:
    """What is the same in all lanes."""

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    metadata: dict[str, Any]
    render_mode: str | None
    spec: EnvSpec | None

    @classmethod
    def of(cls, env: gymnasium.Env[Any, Any]) -> LaneFacts:
        """Those of one env."""
        return cls(env.observation_space, env.action_space, dict(env.metadata), env.render_mode, env.spec)


class OrdinaryVecEnv(VectorEnv[Any, Any, npt.NDArray[Any]], ABC):
    """N ordinary Python envs that are stepped as one. Made by :func:`fastvec.make`.

    Observations, rewards (float64), terminations and truncations (bool) have a row for each lane, and equal those of
    Gymnasium's ``SyncVectorEnv`` over the same envs for the same seeds and actions bit for bit.

    Attributes:
        backend: where the envs are: ``"serial"``, in this process, one after the other, or ``"process"``, in workers.
        backend_reason: why they are there, as a sentence.
        label: the id, or the name of the class or function, that they were made of.
        num_envs: number of lanes.
        single_observation_space, single_action_space: the spaces of one lane.
        observation_space, action_space: those of all lanes.
        metadata: that of the envs, with ``"autoreset_mode"``.
        spec: the ``EnvSpec`` of the envs where all were made of one, else None.
        lane_infos: the infos of the last reset or step as the envs returned them: (lane, dict) where there is something
            in it, and likewise of last steps of episodes, in SAME_STEP mode.
    """

    backend: str
    backend_reason: str = ""

    def __init__(
        self,
        facts: LaneFacts,
        num_envs: int,
        autoreset_mode: AutoresetMode,
        label: str,
        *,
        copy: bool,
        episode_stats: bool,
        allocate: Callable[[tuple[int, ...], npt.DTypeLike], npt.NDArray[Any]] = np.zeros,
    ) -> None:
        """Makes room for the results of n lanes; ``allocate`` makes an array of zeros."""
        self.num_envs, self.label = num_envs, label
        self.render_mode = facts.render_mode
        self.metadata = {**facts.metadata, "autoreset_mode": autoreset_mode}
        self.spec = facts.spec
        self.single_observation_space = facts.observation_space
        self.single_action_space = facts.action_space
        self.observation_space = batch_space(facts.observation_space, num_envs)
        self.action_space = batch_space(facts.action_space, num_envs)
        self._mode = autoreset_mode
        self._copy = bool(copy)
        self._actions = LaneActions(facts.action_space, num_envs, label)
        parts = parts_of(facts.observation_space)
        self._paths = tuple(part.path for part in parts)
        self._is_one_array = self._paths == ((),) and parts[0].dtype is not None
        self._observations, self._final = (
            [
                [None] * num_envs if part.dtype is None else allocate((num_envs, *part.shape), part.dtype)
                for part in parts
            ]
            for _ in range(2)
        )
        self._ledger = Ledger(
            allocate((num_envs,), np.float64),
            allocate((num_envs,), np.bool_),
            allocate((num_envs,), np.bool_),
            allocate((num_envs,), np.uint8),
            autoreset_mode.value,
            bool(episode_stats),
        )
        self.lane_infos: tuple[Infos, Infos] = [], []
        self._started = False
        self._restarted: npt.NDArray[np.bool_] | None = None  # lanes whose worker was restarted in this step
        self._running: str | None = None  # the call that a thread is in

    # What a backend does

    @abstractmethod
    def _reset_lanes(
        self, seeds: list[int | None], mask: npt.NDArray[np.bool_] | None, options: dict[str, Any] | None
    ) -> tuple[Infos, Errors]:
        """Resets all lanes or those of a mask, as ``Lanes.reset`` does."""

    @abstractmethod
    def _step_lanes(self, actions: list[Any]) -> tuple[Infos, Infos, Errors]:
        """Steps all lanes, as ``Lanes.step`` does; actions are what ``LaneActions.arrays`` returned."""

    @abstractmethod
    def _ask_lanes(self, method: str, *args: Any) -> list[Any]:
        """Calls ``Lanes.call``, ``get_attr`` or ``render``: a value for each lane."""

    @abstractmethod
    def _set_in_lanes(self, name: str, values: list[Any]) -> None:
        """Calls ``Lanes.set_attr``."""

    # The calls

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins a new episode in every lane, or in those of a mask.

        Args:
            seed: an int s seeds lane i with s + i; a sequence has a seed for each lane, where None leaves that lane's
                stream running; None leaves them all running.
            options: passed to every env, without ``"reset_mask"``, a bool array (num_envs,) that resets only those
                lanes; it is read and stays in the dict. They hold for this reset alone, not for autoresets.

        Returns:
            (observation, info), the observation with a row for every lane; those of lanes that were not reset are
            their last.

        Raises:
            gymnasium.error.Error: for a seed that is not an int or is negative.
            TypeError, ValueError: for a sequence of the wrong length, and for a mask that is none. No lane has moved.
            gymnasium.error.ResetNeeded: for a mask before the first reset.
            Exception: what an env raises, with a note that names the lane; the others are reset.
        """
        self._enter("reset")
        try:
            n = self.num_envs
            seeds = checked_seeds(seed, n)
            mask = checked_mask(options, n)
            if mask is not None and not self._started:
                raise ResetNeeded("reset with a reset_mask: reset all lanes first")
            if not isinstance(seeds, list):
                seeds = [None if seeds is None else seeds + lane for lane in range(n)]
            own = None if options is None else {key: value for key, value in options.items() if key != "reset_mask"}
            infos, errors = self._reset_lanes(seeds, mask, own)
            self.lane_infos = infos, []
            self._started = True
            self._ledger.begin(mask)
            results = self._shown(self._observations), merge_infos(n, infos) if infos else {}
            if errors:
                raise self._told(errors, "reset", results)
            return results
        finally:
            self._running = None

    def step(self, actions: Any) -> Results:
        """Steps every lane.

        Args:
            actions: one action a lane: a value of ``action_space``. Other integers, bools, lists and CPU tensors are
                converted to its dtype; for float spaces float64 stays float64.

        Returns:
            (observation, rewards, terminations, truncations, info); rewards are float64.

        Raises:
            ValueError: for a wrong number of actions. No lane has moved.
            TypeError: for a dtype that does not fit. No lane has moved.
            gymnasium.error.ResetNeeded: before the first reset, with a lane that has raised and was not reset since,
                or in DISABLED mode with a lane that has ended. No lane has moved.
            gymnasium.error.ClosedEnvironmentError: after close.
            RuntimeError: while another thread is in a call of this env.
            Exception: what an env raises, with a note that names the lane. The others have moved, and their
                observations are those that the reset of this lane by a mask returns.
        """
        self._enter("step")
        try:
            if not self._started:
                raise ResetNeeded("step: call reset first")
            arrays = self._actions.arrays(actions)
            self._require_ready()
            infos, finals, errors = self._step_lanes(arrays)
            self.lane_infos = infos, finals
            ended, episode = self._settle()
            info = merge_infos(self.num_envs, infos) if infos else {}
            if ended:
                self._tell_of_ends(info, finals, episode)
            results = (self._shown(self._observations), *self._ledger.shown(self._copy), info)
            if errors:
                raise self._told(errors, "step", results)
            return results
        finally:
            self._running = None

    def _settle(self) -> tuple[int, dict[str, npt.NDArray[Any]] | None]:
        """Counts the step that has been made, as ``Ledger.settle`` does."""
        return self._ledger.settle()

    def _tell_of_ends(self, info: dict[str, Any], finals: Infos, episode: dict[str, npt.NDArray[Any]] | None) -> None:
        """Adds to a step's info what there is of the episodes that ended in it."""
        ended = self._ledger.terminations | self._ledger.truncations
        # Of an episode that was cut off by its worker's end nothing true can be told.
        whole = ended if self._restarted is None else ended & ~self._restarted
        if self._mode == AutoresetMode.SAME_STEP:
            info["final_obs"] = self._picture(self._final, ended)
            info["_final_obs"] = whole
            info["final_info"] = merge_infos(self.num_envs, finals)
            info["_final_info"] = whole.copy()
        if episode is not None:
            if "episode" in info:
                raise ValueError(
                    f"the envs of {self.label} have 'episode' in their own infos, where episode_stats=True would put "
                    f"the statistics; make it without one of the two"
                )
            info["episode"] = episode
            info["_episode"] = whole.copy()
        if self._restarted is not None:
            info["worker_restarted"] = self._restarted
            info["_worker_restarted"] = self._restarted.copy()

    def _picture(self, parts: list[Any], mask: npt.NDArray[np.bool_]) -> Any:
        """New arrays with the rows of a mask, and zero or None in the others."""
        values: list[Any] = []
        for part in parts:
            if isinstance(part, list):
                values.append([one if chosen else None for one, chosen in zip(part, mask.tolist(), strict=True)])
            else:
                values.append(np.zeros_like(part))
                values[-1][mask] = part[mask]
        return value_of(self.single_observation_space, iter(values))

    def _shown(self, parts: list[Any]) -> Any:
        """The observation as it is returned."""
        if self._is_one_array:
            return copied(parts[0]) if self._copy else parts[0]
        values = [part.copy() for part in parts] if self._copy else parts
        return value_of(self.single_observation_space, iter(values))

    def _require_ready(self) -> None:
        """Raises if a lane can make no step."""
        self._ledger.require_ready()

    def _told(self, errors: Errors, call: str, results: Any) -> Exception:
        """What is raised for what lanes raised in a call: what the first of them did, with a note of where.

        Args:
            errors: (lane, exception).
            call: the name of the call.
            results: what it would have returned, right in the other lanes; None if it returns nothing.
        """
        lane, error = errors[0]
        also = f", and so did {', '.join(str(other) for other, _ in errors[1:])}" if errors[1:] else ""
        note = (
            f"lane {lane} of {self.label} raised this in {call}{also}; the other lanes have moved. Before the next "
            f"step reset all lanes, or these by options={{'reset_mask': mask}}"
        )
        add_note(error, note)
        return error

    def render(self) -> tuple[Any, ...]:
        """What each lane's env renders: a frame with ``render_mode="rgb_array"``."""
        self._enter("render")
        try:
            return tuple(self._ask_lanes("render"))
        finally:
            self._running = None

    # Attributes of the lanes

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of every lane's env or its wrappers; of an attribute that is none, its values."""
        self._enter("call")
        try:
            return tuple(self._ask_lanes("call", name, args, kwargs))
        finally:
            self._running = None

    def call_lanes(self, lanes: Sequence[int], name: str, *args: Any, **kwargs: Any) -> list[Any]:
        """As :meth:`call`, in these lanes alone: a value for each of them, in their order."""
        self._enter("call")
        try:
            values = self._ask_lanes("call", name, args, kwargs, frozenset(lanes))
            return [values[lane] for lane in lanes]
        finally:
            self._running = None

    def are_wrapped(self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]]) -> list[bool]:
        """Whether each lane's env is in a wrapper of this class."""
        self._enter("are_wrapped")
        try:
            return self._ask_lanes("are_wrapped", wrapper_class)
        finally:
            self._running = None

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of every lane's env or its wrappers; methods are not called.

        Raises:
            AttributeError: for a name that they do not have.
        """
        self._enter("get_attr")
        try:
            return tuple(self._ask_lanes("get_attr", name))
        finally:
            self._running = None

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute in every lane's env or that of its wrappers that has it.

        Args:
            name: its name.
            values: a list or tuple has a value for each lane; anything else is the value for all.

        Raises:
            ValueError: for a list or tuple of the wrong length. Nothing has changed.
        """
        per_lane = isinstance(values, (list, tuple))
        if per_lane and len(values) != self.num_envs:
            raise ValueError(
                f"set_attr({name!r}): {len(values)} values for {self.num_envs} lanes; "
                f"give one value, or a list or tuple with one for each lane"
            )
        self._enter("set_attr")
        try:
            self._set_in_lanes(name, list(values) if per_lane else [values] * self.num_envs)
        finally:
            self._running = None

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The generator of each lane's env."""
        return self.get_attr("np_random")

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:  # type: ignore[override]
        """The seed of each lane's env."""
        return self.get_attr("np_random_seed")

    @property
    def episode_stats(self) -> bool:
        """Whether infos have the statistics of episodes that end."""
        return self._ledger.episode_stats

    @property
    def reuses_arrays(self) -> bool:
        """Whether results are overwritten by the next call."""
        return not self._copy

    @property
    def failed(self) -> npt.NDArray[np.bool_]:
        """The lanes whose env raised and that were not reset since, bool (num_envs,): a ``reset_mask``."""
        failed: npt.NDArray[np.bool_] = self._ledger.status == FAILED
        return failed

    def __del__(self) -> None:
        """Does nothing, where Gymnasium before 1.3 closes: workers end with what holds them, and envs by themselves."""

    def __repr__(self) -> str:
        """The name of the class, what the envs were made of, and their number."""
        return f"{type(self).__name__}({self.label}, num_envs={self.num_envs})"

    def _refuse_while_running(self) -> None:
        """Refuses to close while another thread is in a call."""
        if self._running is not None:
            raise RuntimeError(f"close: a {self._running} of this {self.label} env is running; wait for it first")

    def _enter(self, call: str) -> None:
        """Begins a call, and refuses it after close and while another one runs."""
        if self.closed:
            raise ClosedEnvironmentError(f"{call}: this {self.label} env is closed; make a new one")
        if self._running is not None:
            raise RuntimeError(
                f"{call}: a {self._running} of this {self.label} env is running; wait for it, or give each thread "
                f"its own"
            )
        self._running = call
