"""What every single result of reset and step must be, whatever came before: types, shapes, masks, rows after an end."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from fastvec.testing.rows import AnyVectorEnv, final_obs_rows, has_dtype, rows_of, same_bits
from fastvec.testing.violation import Report, short


class ResultCheck:
    """Sees the results of an env, one after the other.

    Attributes:
        observation: the last one.
    """

    def __init__(self, env: AnyVectorEnv, mode: AutoresetMode, report: Report) -> None:
        self.env, self.mode, self.report = env, mode, report
        self.n = env.num_envs
        self.observation: Any = None
        self._waiting = np.zeros(self.n, np.bool_)  # lanes whose next row is their reset
        # Step, result, a copy made at once; None when they have been compared.
        self._results: list[tuple[int | None, Any, Any]] | None = []
        self._final: list[tuple[Any, Any]] = []  # final observation, and the one that was returned in its step

    def see_reset(self, result: Any, mask: npt.NDArray[np.bool_] | None) -> bool:
        """Looks at a result of reset, of all lanes or of those of a mask; whether it can be taken apart."""
        self._waiting &= False if mask is None else ~mask
        return self._see(result, ("observations", "infos"), None)

    def see_step(self, result: Any, step: int) -> bool:
        """Looks at a result of step; whether it can be taken apart."""
        names = ("observations", "rewards", "terminations", "truncations", "infos")
        return self._see(result, names, step) and self._see_rewards_and_flags(result, step)

    def finish(self) -> None:
        """Looks at what can be seen only when all results are there; later ones are not looked at so."""
        assert self._results is not None
        for step, result, copied in self._results:
            names = ("observations", "rewards", "terminations", "truncations")[: len(result) - 1]
            for name, one, other in zip((*names, "infos"), result, copied, strict=True):
                if not same_bits(one, other):
                    expected = f"{name} to stay as they were returned, {short(other)}"
                    self.report.add("fresh-data", expected, f"{short(one)} after later calls", step=step)
        observations = [copied[0] for _, _, copied in self._results]
        self._results = None
        changing = not all(same_bits(observation, observations[0]) for observation in observations)
        if changing and len(self._final) >= 3 and all(same_bits(*pair) for pair in self._final):
            expected = "the next episode's first observation from the step that ends one"
            self.report.add("same-step-reset", expected, f"the last, as in final_obs, in all of {len(self._final)}")

    def _refuse(self, rule: str, expected: str, found: str, step: int | None) -> bool:
        self.report.add(rule, expected, found, step=step)
        return False

    def _see(self, result: Any, names: tuple[str, ...], step: int | None) -> bool:
        if not isinstance(result, tuple) or len(result) != len(names):
            return self._refuse("results", f"the tuple ({', '.join(names)})", short(result), step)
        if not isinstance(result[-1], dict):
            return self._refuse("results", "infos to be a dict", short(result[-1]), step)
        self.observation = result[0]
        if self._results is not None:
            self._results.append((step, result, copy.deepcopy(result)))
        return self._see_observation(result[0], step) and self._see_infos(result[-1], step, top=True)

    def _see_observation(self, observation: Any, step: int | None) -> bool:
        space = self.env.observation_space
        if space.contains(observation):
            if not has_dtype(space, observation):
                self.report.add("observation", f"an observation with the dtype of {short(space)}", short(observation))
            return True
        self.report.add("observation", f"an observation in {short(space)}", short(observation), step=step)
        try:
            return len(rows_of(space, observation)) == self.n  # then its lanes can be compared all the same
        except Exception:  # whatever a space raises for what is none of its values
            return False

    def _see_rewards_and_flags(self, result: Any, step: int) -> bool:
        _, rewards, terminations, truncations, infos = result
        if not _is_array(rewards, self.n) or not np.issubdtype(rewards.dtype, np.floating):
            return self._refuse("rewards", f"a float array of shape ({self.n},)", _described(rewards), step)
        for name, flags in (("terminations", terminations), ("truncations", truncations)):
            if not _is_array(flags, self.n) or flags.dtype != np.bool_:
                return self._refuse("flags", f"{name} to be a bool array of shape ({self.n},)", _described(flags), step)
        for lane in np.flatnonzero(self._waiting).tolist():
            row = (rewards[lane], terminations[lane], truncations[lane])
            if row[0] != 0 or row[1] or row[2]:
                expected = "reward 0.0 and flags False and False in the row after the episode's end"
                found = f"reward {row[0]} and flags {bool(row[1])} and {bool(row[2])}"
                self.report.add("next-step", expected, found, lane, step)
        ended = terminations | truncations
        if self.mode == AutoresetMode.SAME_STEP:
            self._see_final_obs(result[0], infos, ended, step)
        elif "final_obs" in infos:
            self.report.add(
                "final-obs", f"no final_obs, as the mode is {self.mode}", short(infos["final_obs"]), step=step
            )
        self._waiting = ended if self.mode == AutoresetMode.NEXT_STEP else np.zeros(self.n, np.bool_)
        return True

    def _see_final_obs(self, observation: Any, infos: dict[str, Any], ended: npt.NDArray[np.bool_], step: int) -> None:
        if "final_obs" not in infos:
            if ended.any():
                lane = int(np.flatnonzero(ended)[0])
                self.report.add("same-step", "infos to have final_obs when an episode ends", short(infos), lane, step)
            return
        for key in ("_final_obs", "_final_info"):
            if key in infos and not np.array_equal(infos[key], ended):
                lane = int(np.flatnonzero(infos[key] != ended)[0])
                self.report.add("same-step", f"{key} to be {short(ended)}", short(infos[key]), lane, step)
        space = self.env.single_observation_space
        shown = rows_of(self.env.observation_space, observation)
        try:
            final = final_obs_rows(self.env, infos)
        except Exception:  # whatever a space raises for what is none of its values
            expected = "final_obs to be an array of objects, or of the form of an observation"
            self.report.add("same-step", expected, short(infos["final_obs"]), step=step)
            return
        for lane, row in final.items():
            if not space.contains(row):
                self.report.add("same-step", f"final_obs of a lane to be in {short(space)}", short(row), lane, step)
            elif ended[lane]:
                self._final.append((copy.deepcopy(row), shown[lane]))

    def _see_infos(self, infos: dict[str, Any], step: int | None, top: bool) -> bool:
        """Whether each info has a row for each lane and, but for those within another, a mask."""
        for key, value in infos.items():
            if not isinstance(key, str):
                return self._refuse("infos", "keys that are texts", short(key), step)
            if key.startswith("_") and key[1:] in infos:
                continue
            mask: Any = infos.get(f"_{key}")
            if (mask is not None or top) and (not _is_array(mask, self.n) or mask.dtype != np.bool_):
                expected = f"infos['_{key}'] to be a bool array of shape ({self.n},)"
                return self._refuse("infos", expected, _described(mask), step)
            if isinstance(value, dict):
                if not self._see_infos(value, step, top=False):
                    return False
                continue
            for part in _parts(value):
                size = len(part) if isinstance(part, list) or (isinstance(part, np.ndarray) and part.ndim) else None
                if size != self.n:
                    expected = f"infos[{key!r}] to have a row for each of {self.n} lanes"
                    return self._refuse("infos", expected, _described(part), step)
        return True


def _parts(value: Any) -> list[Any]:
    """The parts of an info that is a tuple or dict of such, at any depth, as final_obs may be."""
    if isinstance(value, dict):
        value = tuple(value.values())
    return [part for item in value for part in _parts(item)] if isinstance(value, tuple) else [value]


def _is_array(value: Any, n: int) -> bool:
    return isinstance(value, np.ndarray) and value.shape == (n,)


def _described(value: Any) -> str:
    kind = f"{value.dtype} of shape {value.shape}: " if isinstance(value, np.ndarray) else ""
    return kind + short(value)
