"""The fixture that has a contender's env made, reset and closed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fastvec.contenders import Contender
from fastvec.measure import Runner, running, sample_actions


@pytest.fixture
def runner(contender: Contender, env_id: str, n: int) -> Iterator[Runner]:
    """The contender at work, in the first of its settings."""
    with running(contender, env_id, n, sample_actions(env_id, n), contender.settings(n)[0]) as made:
        yield made
