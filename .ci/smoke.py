"""A new installation works: lanes step, versions agree, and what comes with the package is where it says.

Run it outside of the source tree."""

from importlib.metadata import version
from pathlib import Path

import numpy as np

import fastvec

env = fastvec.make("CartPole-v1", n=3)
observation, _ = env.reset(seed=0)
assert observation.shape == (3, 4)
assert observation.dtype == np.float32
rewards = env.step(np.zeros(3, np.int64))[1]
assert rewards.tolist() == [1.0, 1.0, 1.0]
env.close()

assert fastvec.__version__ == version("fastvec")

headers = Path(fastvec.get_include())
for header in ("fastvec.h", "lane.h", "kernel.h", "envs/cartpole.h", "envs/counter.h"):
    assert (headers / header).is_file(), header
for file in ("py.typed", "_core.pyi"):
    assert (Path(fastvec.__file__).parent / file).is_file(), file
print(f"fastvec {fastvec.__version__} steps CartPole; headers in {headers.name}/")
