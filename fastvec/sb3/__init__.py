"""Stable-Baselines3 on lanes of fastvec: ``FastVecEnv``, a ``VecEnv`` of its kind, and its ``make_vec_env``.

Needs stable-baselines3: ``pip install "fastvec[sb3]"``. What is returned equals what SB3's ``DummyVecEnv`` returns over
envs in ``Monitor``, for the same seeds and actions, but for what docs/sb3.md lists."""

from fastvec.sb3.make import make_vec_env
from fastvec.sb3.vec_env import FastVecEnv

__all__ = ["FastVecEnv", "make_vec_env"]
