"""Whether this machine's native envs give Gymnasium's bits: a short lock-step run beside single envs."""

from __future__ import annotations

import gymnasium

from fastvec import registry
from fastvec.factory import make
from fastvec.testing import check_same


def first_difference(id: str, *, num_envs: int = 3, steps: int = 300, seed: int = 0) -> str | None:
    """Steps a native env and Gymnasium's in lock-step with the same random actions.

    Args:
        id: a native id.
        num_envs: number of lanes.
        steps: steps of each lane, through autoresets.
        seed: of the reset and of the actions.

    Returns:
        None if all that they return is equal bit for bit; otherwise a sentence on the first that is not.
    """
    native = registry.find(id)
    env = make(id, num_envs)
    try:
        check_same(lambda: gymnasium.make(native.gymnasium_id, disable_env_checker=True), env, steps=steps, seed=seed)
    except AssertionError as difference:
        return str(difference)
    finally:
        env.close()
    return None
