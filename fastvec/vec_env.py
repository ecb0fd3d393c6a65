"""VecEnv: a batch of native lanes behind Gymnasium's vector API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from fastvec import registry
from fastvec._core import Batch, kernel_info
from fastvec.reset_options import checked_mask, checked_options, checked_seeds

# What every lane has beside its parameters and state; these can be read, and only np_random be set.
COMMON_ATTRIBUTES = (
    "action_space",
    "metadata",
    "np_random",
    "np_random_seed",
    "observation_space",
    "render_mode",
    "spec",
)


# The ways of rendering that give the caller something for every lane, rather than open a window.
RENDER_MODES = ("rgb_array", "ansi")


class VecEnv(VectorEnv[Any, Any, npt.NDArray[Any]]):
    """N environments that are stepped as one. Made by :func:`fastvec.make`.

    Observations, rewards (float64), terminations and truncations (bool) have a row for each lane, and equal those of
    Gymnasium's ``SyncVectorEnv`` for the same seeds and actions bit for bit.

    Attributes:
        backend: where lanes are stepped: ``"native"``.
        backend_reason: why they are there, as a sentence.
        num_envs: number of lanes.
        single_observation_space, single_action_space: the spaces of one lane, as Gymnasium's env has them.
        observation_space, action_space: those of all lanes.
        metadata: that of Gymnasium's env, with ``"autoreset_mode"``, and with those of its ``"render_modes"`` that
            :func:`fastvec.make` takes.
        spec: an ``EnvSpec`` from which ``gymnasium.make_vec`` makes this env again.
    """

    backend = "native"
    backend_reason = "it has a kernel"

    def __init__(
        self,
        batch: Batch,
        native: registry.NativeEnv,
        env: gymnasium.Env[Any, Any],
        num_envs: int,
        autoreset_mode: AutoresetMode,
    ) -> None:
        """Wraps a batch; spaces, metadata and attributes are those of ``env``, one ordinary env."""
        self._batch = batch
        self._id = native.id
        self._kernel = native.kernel
        self.num_envs = num_envs
        self.render_mode = env.render_mode
        render_modes = [mode for mode in env.metadata.get("render_modes", ()) if mode in RENDER_MODES]
        self.metadata = {**env.metadata, "render_modes": render_modes, "autoreset_mode": autoreset_mode}
        self.single_observation_space = env.observation_space
        self.single_action_space = env.action_space
        self.observation_space = batch_space(env.observation_space, num_envs)
        self.action_space = batch_space(env.action_space, num_envs)
        # Those of one lane: this env's own tell of all lanes, the autoreset mode and their number.
        self._lane_metadata, self._lane_spec = env.metadata, env.spec
        parameters = self._parameter_attributes()
        of_class = {name: value for base in reversed(type(env.unwrapped).__mro__) for name, value in vars(base).items()}
        # Each attribute as it was set: one value for all lanes, or a tuple of one for each.
        self._attributes: dict[str, Any] = {
            name: value
            for name, value in {**of_class, **vars(env.unwrapped)}.items()
            if (isinstance(value, (int, float, str)) or name in parameters)
            and (not name.startswith("_") or name in parameters)
            and name not in native.state
            and name not in COMMON_ATTRIBUTES
        }

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins a new episode in every lane, or in those of a mask.

        Args:
            seed: an int s seeds lane i with s + i; a sequence has a seed for each lane, where None leaves that lane's
                stream running; None leaves them all running. Lanes without any seed yet get one from the
                operating system. Any size of int is a seed.
            options: ``"reset_mask"``, a bool array (num_envs,), resets only those lanes; it is read and stays in the
                dict. ``"low"`` and ``"high"`` are the env's own options, and hold for this reset alone, not for
                autoresets. Names that the env does not know are ignored, as Gymnasium's envs do.

        Returns:
            (observation, info), the observation with a row for every lane; those of lanes that were not reset show
            them as they stand.

        Raises:
            gymnasium.error.Error: for a seed that is not an int or is negative.
            TypeError, ValueError: for a sequence of the wrong length, and for options out of range. No lane has moved.
            gymnasium.error.ResetNeeded: for a mask before the first reset.
        """
        seeds = checked_seeds(seed, self.num_envs)
        mask = checked_mask(options, self.num_envs)
        values = checked_options(options, kernel_info(self._kernel), self._id)
        if mask is not None:
            self._batch.require_reset("reset with a reset_mask")
            if isinstance(seeds, int):
                seeds = [seeds + lane for lane in range(self.num_envs)]
            if seeds is not None:
                seeds = [seed if chosen else None for seed, chosen in zip(seeds, mask, strict=True)]
        return self._batch.reset(seeds, mask, values)

    def check_options(self, options: Sequence[dict[str, Any]]) -> None:
        """Raises what ``reset`` would raise for the first of these options that it does not take; nothing moves."""
        for each in options:
            checked_options(each, kernel_info(self._kernel), self._id)

    def step(
        self,
        actions: npt.ArrayLike,
        *,
        out: tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]] | None = None,
    ) -> tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Steps every lane.

        Args:
            actions: one action a lane. For Discrete actions int64 of shape (num_envs,) is fastest; other integers,
                bools, lists and CPU tensors are converted.
            out: the arrays (observation, rewards, terminations, truncations) to write to and return instead of new
                ones, for example rows of a rollout buffer: C-contiguous, of the dtypes and shapes that are returned
                otherwise, and without common memory.

        Returns:
            (observation, rewards, terminations, truncations, info); rewards are float64.

        Raises:
            ValueError: for a wrong number of actions or one outside of the space. No lane has moved.
            TypeError: for a dtype that does not fit. No lane has moved.
            gymnasium.error.ResetNeeded: before the first reset, or in DISABLED mode with a lane that has ended.
            gymnasium.error.ClosedEnvironmentError: after close.
            RuntimeError: while another thread is in a call of this env.
        """
        return self._batch.step(actions, out)

    def __repr__(self) -> str:
        """As Gymnasium's vector envs, and with the precision if it is not the exact one."""
        text = super().__repr__()
        return text if self._batch.precision == "float64" else f"{text[:-1]}, precision={self._batch.precision})"

    @property
    def label(self) -> str:
        """The id that it was made of, or ``"from_tables"``."""
        return self._id

    @property
    def reuses_arrays(self) -> bool:
        """Whether every call returns the same arrays, overwritten by the next: ``make(..., copy=False)``."""
        return self._batch.reuses_arrays

    @property
    def episode_stats(self) -> bool:
        """Whether infos have the statistics of episodes that end."""
        return self._batch.episode_stats

    def render(self) -> tuple[Any, ...]:
        """Warns that there is no render mode, as Gymnasium's envs do, and returns None for every lane."""
        self._batch.require_idle("render")
        gymnasium.logger.warn(f"render: this {self._id} env was made without a render_mode, and has nothing to show")
        return (None,) * self.num_envs

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the batch; called by ``close``. Views of the state stay valid."""
        self._batch.close()

    # Attributes of the lanes

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """An attribute of every lane, as ``get_attr``, or :meth:`render`, the one method that native lanes have.

        Raises:
            AttributeError: for a name that lanes do not have; the message lists those that they have.
            TypeError: for arguments, which none takes.
        """
        values = self.render() if name == "render" else self.get_attr(name)
        if args or kwargs:
            raise TypeError(f"call: {name!r} of {self._id} takes no arguments")
        return values

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of every lane: a parameter, a state column, or one of what every env has.

        Returns:
            A tuple of num_envs values.

        Raises:
            AttributeError: for a name that lanes do not have; the message lists those that they have.
        """
        if name in self._attributes:
            value = self._attributes[name]
            return value if isinstance(value, tuple) else (value,) * self.num_envs
        state = self._state_attributes()
        if name in state:
            columns, kind = state[name]
            values = np.stack([self._batch.state[column] for column in columns], axis=-1)
            if len(columns) == 1:
                return tuple(kind(row.item()) for row in values)
            return tuple(kind(row.astype(dtype)) for row, dtype in zip(values, self._state_dtypes(), strict=True))
        if name == "np_random":
            return self._batch.generators()
        if name == "np_random_seed":
            return self._batch.lane_seeds
        if name in ("action_space", "observation_space"):
            return (getattr(self, f"single_{name}"),) * self.num_envs
        if name in ("metadata", "spec"):
            return (getattr(self, f"_lane_{name}"),) * self.num_envs
        if name in COMMON_ATTRIBUTES:
            return (getattr(self, name),) * self.num_envs
        raise self._no_attribute("get_attr", name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute in every lane, as raw as ``SyncVectorEnv``: values derived from it do not follow.

        Args:
            name: a parameter, a state column, or ``np_random``.
            values: a list or tuple has a value for each lane; anything else is the value for all.

        Raises:
            ValueError: for a list or tuple of the wrong length, for a number beyond the range of float64, and for a
                state that is none of the env's, with the lane. Nothing has changed.
            TypeError: for a value that is not a number where one is needed. Nothing has changed.
            AttributeError: for a name that lanes do not have, and for one that cannot be set.
            gymnasium.error.ClosedEnvironmentError: after close.
            RuntimeError: while another thread is in a call of this env.
        """
        self._batch.require_idle("set_attr")
        per_lane = isinstance(values, (list, tuple))
        if per_lane and len(values) != self.num_envs:
            raise ValueError(
                f"set_attr({name!r}): {len(values)} values for {self.num_envs} lanes; "
                f"give one value, or a list or tuple with one for each lane"
            )
        each = list(values) if per_lane else [values] * self.num_envs
        if name in self._attributes:
            self._set_parameter(name, tuple(values) if per_lane else values)
        elif name in self._state_attributes():
            self._set_state_attribute(name, each)
        elif name == "np_random":
            for lane, generator in enumerate(each):
                if not isinstance(getattr(generator, "bit_generator", None), np.random.PCG64):
                    raise TypeError(
                        f"set_attr('np_random'): lane {lane} got {generator!r}; expected a "
                        f"numpy.random.Generator over PCG64"
                    )
            self._batch.set_generators(each)
        elif name in COMMON_ATTRIBUTES:
            raise AttributeError(f"set_attr: {name!r} of {self._id} cannot be set")
        else:
            raise self._no_attribute("set_attr", name)

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """A generator for each lane in the state of its stream; drawing from it leaves the lane as it is."""
        return self._batch.generators()

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seed of each lane's stream; -1 where it was set through ``np_random``."""
        return self._batch.lane_seeds

    def _set_parameter(self, name: str, value: Any) -> None:
        encoded = {}
        try:
            for index, parameter in self._parameter_attributes().get(name, ()):
                encoded[index] = (
                    np.array([parameter.encode(one) for one in value])
                    if isinstance(value, tuple)
                    else parameter.encode(value)
                )
        except (TypeError, ValueError, OverflowError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"set_attr({name!r}) of {self._id}: {error}") from None
        for index, numbers in encoded.items():
            self._batch.set_parameter(index, numbers)
        self._attributes[name] = value

    def _set_state_attribute(self, name: str, each: list[Any]) -> None:
        columns, _ = self._state_attributes()[name]
        try:
            rows = np.asarray(each).reshape(self.num_envs, len(columns))
        except (TypeError, ValueError):
            rows = np.array(None)
        if rows.dtype.kind not in "iufb":
            raise TypeError(
                f"set_attr({name!r}) of {self._id}: expected {len(columns)} number{'s' if len(columns) > 1 else ''} "
                f"({', '.join(columns)}) a lane, got {each[0]!r} in lane 0"
            )
        rows = rows.astype(np.float64)
        changed = {column: rows[:, i] for i, column in enumerate(columns)}
        float32_column = registry.of_vec_env(self._id).float32_column
        if name == "state" and float32_column is not None:
            changed[float32_column] = np.array([getattr(one, "dtype", None) == np.float32 for one in each], np.float64)
        self._batch.set_columns(changed)

    def _parameter_attributes(self) -> dict[str, list[tuple[int, registry.Parameter]]]:
        """Attribute of the ordinary env -> the kernel's parameters that follow it, and their places."""
        native = registry.of_vec_env(self._id)
        found: dict[str, list[tuple[int, registry.Parameter]]] = {}
        for index, name in enumerate(kernel_info(self._kernel)[1]):
            parameter = native.parameter(name)
            found.setdefault(parameter.attribute, []).append((index, parameter))
        return found

    def _state_dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtype of each lane's attribute ``state`` in the ordinary env, or in float32 where lanes are."""
        own = np.dtype(self._batch.precision)
        column = registry.of_vec_env(self._id).float32_column
        if column is None:
            return (own,) * self.num_envs
        return tuple(np.dtype(np.float32) if flag else own for flag in self._batch.state[column])

    def _state_attributes(self) -> dict[str, tuple[tuple[str, ...], Callable[[Any], Any]]]:
        """Attributes of the ordinary env that hold state, and each column: the columns it is made of, and its type."""
        columns: dict[str, Any] = {name: ((name,), lambda value: value) for name in self._batch.state}
        return {**columns, **registry.of_vec_env(self._id).state}

    def _no_attribute(self, call: str, name: str) -> AttributeError:
        known = sorted({*self._attributes, *self._state_attributes(), *COMMON_ATTRIBUTES})
        return AttributeError(f"{call}: a lane of {self._id} has no attribute {name!r}; it has {', '.join(known)}")

    # State as a whole

    @property
    def state(self) -> Mapping[str, npt.NDArray[Any]]:
        """The state columns by name, each a view (num_envs,) of the lanes themselves: writing to one moves them.

        Columns that may only hold certain integers, such as the number of a state, are read-only; ``set_attr`` sets
        them. The views stay valid after ``close``.
        """
        return MappingProxyType(self._batch.state)

    def get_state(self) -> dict[str, Any]:
        """All that the future of the lanes depends on: columns, streams, steps so far, pending resets, parameters.

        Returns:
            A dict of arrays and plain values, a copy, for :meth:`set_state`; it can be pickled.
        """
        attributes = {
            name: list(value) if isinstance(value, list) else value for name, value in self._attributes.items()
        }
        return {**self._batch.get_state(), "attributes": attributes}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continues bit for bit from what :meth:`get_state` returned.

        Args:
            state: from an env of the same id, number of lanes, autoreset mode and version of this format.

        Raises:
            ValueError: for any other; nothing has changed.
        """
        if not isinstance(state, dict) or not isinstance(state.get("attributes"), dict):
            found = "a dict without 'attributes'" if isinstance(state, dict) else type(state).__name__
            raise ValueError(f"set_state takes what get_state() returned, got {found}")
        attributes = {
            name: list(value) if isinstance(value, list) else value for name, value in state["attributes"].items()
        }
        if attributes.keys() != self._attributes.keys() or any(
            isinstance(value, tuple) and len(value) != self.num_envs for value in attributes.values()
        ):
            raise ValueError(f"set_state: attributes are not one value or {self.num_envs} for each of this env's own")
        self._batch.set_state({key: value for key, value in state.items() if key != "attributes"})
        self._attributes = attributes
