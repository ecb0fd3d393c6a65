"""Envs that end when they are told to and take as long as they are told, by a clock that only they move."""

from __future__ import annotations

import numpy as np

from fastvec.contenders import Contender

SECOND = 2.0**-10  # what a scripted step takes at speed 1; a power of two, so that sums are exact


class FakeClock:
    """Seconds that pass only when a scripted env steps."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class ScriptedEnv:
    """Lane i ends every ``periods[i]`` steps; in the step after that it resets, unless it does so at once."""

    def __init__(self, periods, same_step, on_step):
        self.periods = np.array(periods)
        self.same_step = same_step
        self.on_step = on_step
        self.closed = False
        self.made = 0

    def reset(self, seed):
        self.ages = np.zeros(len(self.periods), int)
        self.resetting = np.zeros(len(self.periods), bool)
        return None, {}

    def step(self, actions):
        assert not self.closed
        assert actions.shape == self.periods.shape
        self.made += 1
        self.on_step()
        self.ages = np.where(self.resetting, 0, self.ages + 1)
        ended = self.ages == self.periods
        if self.same_step:
            self.ages[ended] = 0
        else:
            self.resetting = ended
        # The first lane's episodes are truncated, those of the others terminate.
        first = np.arange(len(ended)) == 0
        return None, np.ones(len(ended)), ended & ~first, ended & first, {}

    def close(self):
        self.closed = True


class ScriptedContender(Contender):
    """Makes scripted envs; keeps them, and a log of whose step it was."""

    def __init__(self, name, clock, *, periods=(4,), seconds=SECOND, same_step=False, log=None, drift=None):
        self.name = self.title = name
        self.same_step = same_step
        self._clock, self._periods, self._seconds = clock, periods, seconds
        self._log = log if log is not None else []
        self._drift = drift or (lambda: 1.0)
        self.envs = []

    def make(self, env_id, n, slower=1.0):
        def on_step():
            self._log.append(self.name)
            self._clock.now += self._seconds * slower * self._drift()

        self.envs.append(ScriptedEnv(self._periods, self.same_step, on_step))
        return self.envs[-1]
