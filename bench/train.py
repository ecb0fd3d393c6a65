"""How long training takes: `python bench/train.py` (some twenty minutes; needs the extras cli, rivals and train).

Every run is a process of its own, and the sides take turns. (a) 100,000 env-steps of CartPole-v1, the clock around all
of them; (b) the time until a greedy evaluation of 100 episodes reaches 475, from the start of the process, imports
included. Evaluations are made every 5,120 steps, by the same evaluator for all, with the clock stopped."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fastvec.terminal import Column, Row, print_table

ENV_ID, STEPS, EVALUATE_EVERY, GOAL = "CartPole-v1", 100_000, 5_120, 475.0
EVALUATION_SEED = 10**6
# (a): rollouts of 1,024 rows and Stable-Baselines3's own settings otherwise.
FIXED = {"n_steps": 1024, "batch_size": 64, "n_epochs": 10}
# (b): its settings for CartPole in the RL Zoo; learning rate and clip fall to 0 over the run.
TUNED = {"n_steps": 32 * 8, "batch_size": 256, "n_epochs": 20, "gamma": 0.98, "gae_lambda": 0.8}
SIDES = {  # name -> the class of its vector env, and how many envs
    "SB3, one env": ("DummyVecEnv", 1),
    "SB3 Subproc (8)": ("SubprocVecEnv", 8),
    "SB3 Dummy (8)": ("DummyVecEnv", 8),
    "SB3 FastVecEnv (8)": ("FastVecEnv", 8),
    "SB3 FastVecEnv (64)": ("FastVecEnv", 64),
    "fastvec ppo": (None, 0),
}
RACE_SIDES = ("SB3 Subproc (8)", "SB3 Dummy (8)", "SB3 FastVecEnv (8)", "fastvec ppo")


class Clock:
    """The seconds since a moment, less those in which it was stopped."""

    def __init__(self, began: float) -> None:
        self.began = began

    def now(self) -> float:
        return time.time() - self.began

    def stopped(self, call: Callable[[], float]) -> float:
        """Calls something off the clock."""
        stop = time.time()
        result = call()
        self.began += time.time() - stop
        return result


def evaluated(policy: Callable[[Any], Any]) -> tuple[float, float]:
    """Mean and variance of 100 greedy episodes."""
    import fastvec

    env = fastvec.make(ENV_ID, 100)
    result = fastvec.evaluate(policy, env, episodes=100, seed=EVALUATION_SEED)
    env.close()
    return result.mean, result.std**2


def run_ours(seed: int, race: bool, began: float) -> dict[str, Any]:
    """examples/ppo.py with its own settings."""
    from fastvec.examples import ppo

    run = ppo.Run(ppo.Settings(env_id=ENV_ID, steps=STEPS, seed=seed))
    clock = Clock(began if race else time.time())
    reached, check_at = None, EVALUATE_EVERY
    while not run.is_done and reached is None:
        run.advance()
        if race and run.steps_done >= check_at:
            check_at = (run.steps_done // EVALUATE_EVERY + 1) * EVALUATE_EVERY
            if clock.stopped(lambda: evaluated(run.agent.greedy)[0]) >= GOAL:
                reached = run.steps_done
    seconds = clock.now()
    return {**report(seconds, reached, run.steps_done, run.agent.greedy), "parts": run.clock.seconds}


def run_sb3(side: str, seed: int, race: bool, began: float, threads: int) -> dict[str, Any]:
    """Stable-Baselines3's PPO."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common import vec_env
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    from fastvec.sb3 import FastVecEnv

    torch.set_num_threads(threads)
    name, n = SIDES[side]
    cls = FastVecEnv if name == "FastVecEnv" else getattr(vec_env, str(name))
    vec_env_kwargs = {"start_method": "fork"} if name == "SubprocVecEnv" else {}
    settings: dict[str, Any] = dict(TUNED if race else FIXED)
    settings["n_steps"] //= n
    if race:
        settings |= {"learning_rate": lambda left: 1e-3 * left, "clip_range": lambda left: 0.2 * left}
    env = make_vec_env(ENV_ID, n, seed=seed, vec_env_cls=cls, vec_env_kwargs=vec_env_kwargs)
    model = PPO("MlpPolicy", env, seed=seed, device="cpu", **settings)
    parts = {"env": 0.0, "inference": 0.0, "update": 0.0}

    def timed(function: Callable[..., Any], part: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            result = function(*args, **kwargs)
            parts[part] += time.perf_counter() - start
            return result

        return call

    env.step = timed(env.step, "env")
    model.train = timed(model.train, "update")
    model.policy.forward = timed(model.policy.forward, "inference")
    clock = Clock(began if race else time.time())

    def greedy(obs: Any) -> Any:
        return model.predict(obs, deterministic=True)[0]

    class Check(BaseCallback):
        reached: int | None = None
        check_at = EVALUATE_EVERY

        def _on_step(self) -> bool:
            return self.reached is None

        def _on_rollout_start(self) -> None:  # after an update
            if race and self.num_timesteps >= self.check_at:
                self.check_at = (self.num_timesteps // EVALUATE_EVERY + 1) * EVALUATE_EVERY
                if clock.stopped(lambda: evaluated(greedy)[0]) >= GOAL:
                    self.reached = self.num_timesteps

    check = Check()
    model.learn(STEPS, callback=check)
    seconds = clock.now()
    env.close()
    return {**report(seconds, check.reached, model.num_timesteps, greedy), "parts": parts}


def report(seconds: float, reached: int | None, steps: int, policy: Callable[[Any], Any]) -> dict[str, Any]:
    """What a run says of itself."""
    mean, variance = evaluated(policy)
    return {"seconds": seconds, "reached": reached, "steps": steps, "return": mean, "variance": variance}


def in_process(side: str, seed: int, race: bool, threads: int = 1) -> dict[str, Any]:
    """A run in a new process, which prints its report."""
    job = {"side": side, "seed": seed, "race": race, "threads": threads, "began": time.time()}
    command = [sys.executable, "-W", "ignore", str(Path(__file__).resolve()), "--job", json.dumps(job)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "2"}
    )
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    print(f"{side}, seed {seed}: {result['seconds']:.2f} s, return {result['return']:.0f}", file=sys.stderr)
    return result


def median_with_interval(values: list[float]) -> tuple[float, float, float]:
    """The median and its 95 % bootstrap interval."""
    samples = np.random.default_rng(0).choice(values, (10_000, len(values)))
    low, high = np.percentile(np.median(samples, axis=1), [2.5, 97.5])
    return float(np.median(values)), float(low), float(high)


def print_results(title: str, results: dict[str, list[dict[str, Any]]], race: bool) -> None:
    """One table: seconds, how many times as fast as ours, return, and where the time went."""
    ours = results["fastvec ppo"]
    rows = []
    for side, runs in results.items():
        median, low, high = median_with_interval([run["seconds"] for run in runs])
        ratio = np.median([run["seconds"] / own["seconds"] for run, own in zip(runs, ours, strict=True)])
        total = sum(run["seconds"] for run in runs)
        parts = ", ".join(
            f"{sum(run['parts'][part] for run in runs) / total:.0%}" for part in ("env", "inference", "update")
        )
        reached = f"{sum(run['reached'] is not None for run in runs)} of {len(runs)}" if race else "-"
        returns = (
            f"{np.median([run['return'] for run in runs]):.0f}, {np.median([run['variance'] for run in runs]):.0f}"
        )
        cells = (side, f"{median:.2f}", f"{low:.2f} to {high:.2f}", f"{ratio:.1f} x", reached, returns, parts)
        rows.append(Row(cells, "strong" if side == "fastvec ppo" else "normal"))
    columns = (
        Column("side"),
        Column("seconds", True),
        Column("95 %", True),
        Column("of ours", True),
        Column("475 on", True),
        Column("return, var.", True),
        Column("env, inference, update", True),
    )
    print_table(title, columns, [rows])


def settings_of_all() -> str:
    """What each side was made with, in one line each."""
    from fastvec.examples.ppo import Settings

    return "\n".join(
        (
            f"SB3 in (a): {FIXED}, divided among its envs; its defaults otherwise",
            f"SB3 in (b): {TUNED}, divided among its envs; learning rate 0.001 and clip 0.2 fall linearly",
            f"fastvec ppo in both: {Settings(steps=STEPS)}",
        )
    )


def main() -> None:
    """Runs all, or with ``--job`` one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs of each side in (a)")
    parser.add_argument("--seeds", type=int, default=10, help="runs of each side in (b)")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        job = json.loads(arguments.job)
        if SIDES[job["side"]][0] is None:
            result = run_ours(job["seed"], job["race"], job["began"])
        else:
            result = run_sb3(job["side"], job["seed"], job["race"], job["began"], job["threads"])
        print(json.dumps(result))
        return
    print(settings_of_all())
    fixed: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for seed in range(arguments.rounds):
        for side in SIDES:
            fixed[side].append(in_process(side, seed, race=False))
    print_results(f"(a) {STEPS:,} env-steps of {ENV_ID}", fixed, race=False)
    race: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for seed in range(arguments.seeds):
        for side in RACE_SIDES:
            for threads in (1,) if side == "fastvec ppo" else (1, 2):
                race.setdefault((side, threads), []).append(in_process(side, seed, race=True, threads=threads))
    best = {}
    for side in RACE_SIDES:
        tried = {threads: runs for (name, threads), runs in race.items() if name == side}
        best[side] = min(tried.values(), key=lambda runs: np.median([run["seconds"] for run in runs]))
    print_results(f"(b) until {GOAL:.0f} over 100 episodes, from the start of the process", best, race=True)


if __name__ == "__main__":
    main()
