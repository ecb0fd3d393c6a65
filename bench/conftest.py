"""The contenders of fastvec/contenders.py as parameters and fixtures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from fastvec.contenders import CONTENDERS, Contender
from fastvec.measure import Runner, running, sample_actions


@pytest.fixture(params=tuple(CONTENDERS))
def contender(request: pytest.FixtureRequest) -> Contender:
    """Each contender in turn."""
    return CONTENDERS[request.param]


@pytest.fixture
def require(contender: Contender) -> Callable[[str, int], None]:
    """A function of env id and n that skips, with the reason, what the contender cannot do."""

    def check(env_id: str, n: int) -> None:
        reason = contender.absence(env_id, n)
        if reason is not None:
            pytest.skip(f"{contender.title}: {reason}")

    return check


@pytest.fixture
def run(contender: Contender, require: Callable[[str, int], None]) -> Iterator[Callable[[str, int], Runner]]:
    """A function from env id and n to the contender at work, in the first of its settings."""
    with ExitStack() as stack:

        def begin(env_id: str, n: int) -> Runner:
            require(env_id, n)
            setting = contender.settings(n)[0]
            return stack.enter_context(running(contender, env_id, n, sample_actions(env_id, n), setting))

        yield begin
