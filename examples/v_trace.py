"""Actor-critic on batches of who is ready first, corrected by V-trace (Espeholt et al., 2018), in one file of NumPy.

    python examples/v_trace.py --steps 20000

The env waits for a random time in each step, so that lanes drift apart, and their actions are of policies that are
older than the one that learns from them. V-trace weighs each step by how much likelier the newer policy makes its
action.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete

import fastvec

LANES, BATCH, SEGMENT = 8, 4, 12
DISCOUNT, POLICY_RATE, VALUE_RATE = 0.95, 0.1, 0.2

Floats = npt.NDArray[np.float64]


class Corridor(gymnasium.Env[int, int]):
    """Seven places in a row, begun in the middle: 1 for coming to the right end, and nothing at the left."""

    observation_space = Discrete(7)
    action_space = Discrete(2)

    def __init__(self, longest_wait: float = 0.0005) -> None:
        self.longest_wait = longest_wait

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Begins in the middle."""
        super().reset(seed=seed)
        self.place = 3
        return self.place, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Waits, and goes left (0) or right (1)."""
        time.sleep(self.longest_wait * self.np_random.random())
        self.place += 1 if action == 1 else -1
        return self.place, float(self.place == 6), self.place in (0, 6), False, {}


@dataclass
class Steps:
    """What a lane has done since its last update: a list for each thing, with an entry a step."""

    states: list[int] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    log_chances: list[float] = field(default_factory=list)  # of the actions, under the policy that chose them
    rewards: list[float] = field(default_factory=list)
    discounts: list[float] = field(default_factory=list)  # 0 where the step terminated
    next_states: list[int] = field(default_factory=list)


def v_trace(
    rewards: Floats, discounts: Floats, values: Floats, next_values: Floats, ratios: Floats
) -> tuple[Floats, Floats]:
    """Targets for the value of each state, and advantages of each action, under the newer policy.

    Args:
        rewards, discounts: of each step, (T,); the discount is 0 where an episode terminated.
        values, next_values: of the states before and after each step, (T,).
        ratios: how much likelier the newer policy makes each action than the one that chose it, (T,); cut at 1.

    Returns:
        (targets, advantages), both (T,).
    """
    weights = np.minimum(ratios, 1.0)
    errors = weights * (rewards + discounts * next_values - values)
    targets, correction = np.empty_like(values), 0.0
    for t in reversed(range(len(values))):
        correction = errors[t] + discounts[t] * weights[t] * correction
        targets[t] = values[t] + correction
    next_targets = np.append(targets[1:], next_values[-1])
    return targets, weights * (rewards + discounts * next_targets - values)


def log_policy(logits: Floats, states: npt.NDArray[np.int64]) -> Floats:
    """Logarithms of the chances of both actions in these states, (len(states), 2)."""
    rows = logits[states] - logits[states].max(axis=1, keepdims=True)
    return np.asarray(rows - np.log(np.exp(rows).sum(axis=1, keepdims=True)))


def update(logits: Floats, values: Floats, steps: Steps) -> None:
    """Learns from the steps of a lane, in place."""
    states, actions = np.array(steps.states), np.array(steps.actions)
    log_chances = log_policy(logits, states)
    ratios = np.exp(log_chances[np.arange(len(states)), actions] - np.array(steps.log_chances))
    targets, advantages = v_trace(
        np.array(steps.rewards), np.array(steps.discounts), values[states], values[steps.next_states], ratios
    )
    slopes = np.eye(2)[actions] - np.exp(log_chances)
    np.add.at(logits, states, POLICY_RATE * advantages[:, np.newaxis] * slopes)
    np.add.at(values, states, VALUE_RATE * (targets - values[states]))


def train(steps: int, seed: int) -> tuple[list[float], fastvec.backends.first_ready.Staleness]:
    """Learns for so many steps of lanes; returns of episodes in the order of their ends, and how old policies were."""
    rng = np.random.default_rng(seed)
    logits, values = np.zeros((7, 2)), np.zeros(7)
    lanes = [Steps() for _ in range(LANES)]
    last_state = np.zeros(LANES, np.int64)
    last_action = np.zeros(LANES, np.int64)
    last_log_chance = np.zeros(LANES)
    returns: list[float] = []
    version = 0
    env: Any = fastvec.make(Corridor, LANES, backend="process", num_workers=4, batch_size=BATCH)
    env.async_reset(seed=seed)
    for _ in range(steps // BATCH):
        obs, rewards, terminations, _, info = env.recv()
        for row, lane in enumerate(info["env_id"].tolist()):
            if info["began"][row]:
                continue
            own = lanes[lane]
            own.states.append(int(last_state[lane]))
            own.actions.append(int(last_action[lane]))
            own.log_chances.append(float(last_log_chance[lane]))
            own.rewards.append(float(rewards[row]))
            own.discounts.append(0.0 if terminations[row] else DISCOUNT)
            own.next_states.append(int(obs[row]))
            if terminations[row]:
                returns.append(float(rewards[row]))
            if len(own.states) == SEGMENT:
                update(logits, values, own)
                lanes[lane] = Steps()
                version += 1
        log_chances = log_policy(logits, obs)
        actions = (rng.random(BATCH) < np.exp(log_chances[:, 1])).astype(np.int64)
        ids = info["env_id"]
        last_state[ids], last_action[ids] = obs, actions
        last_log_chance[ids] = log_chances[np.arange(BATCH), actions]
        env.send(actions, ids, policy_version=version)
    staleness = env.staleness
    env.close()
    return returns, staleness


def main() -> None:
    """Trains, and says how it went."""
    parser = argparse.ArgumentParser(description="Actor-critic with V-trace on batches of who is ready first.")
    parser.add_argument("--steps", type=int, default=20_000, help="steps of lanes (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    returns, staleness = train(arguments.steps, arguments.seed)
    print(
        f"mean return of the first 50 episodes {np.mean(returns[:50]):.2f}, of the last 50 {np.mean(returns[-50:]):.2f}"
    )
    print(f"policies lagged behind by {staleness.mean:.1f} versions on average, and {staleness.largest} at most")


if __name__ == "__main__":
    main()
