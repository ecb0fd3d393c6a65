"""Which benchmarks there are: every contender with every env and n that it can be made for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from fastvec.contenders import CONTENDERS, NOT_INSTALLED


def entries(env_ids: Iterable[str], counts: Iterable[int], without: tuple[str, ...] = ()) -> list[Any]:
    """Parameters (contender, env_id, n); those of contenders that are not installed are skipped, with that reason.

    Args:
        env_ids: native ids.
        counts: numbers of envs.
        without: names of contenders that are left out.
    """
    found = []
    for env_id in env_ids:
        for n in counts:
            for contender in CONTENDERS.values():
                reason = contender.absence(env_id, n)
                if contender.name in without or reason not in (None, NOT_INSTALLED):
                    continue
                skip = pytest.mark.skipif(reason is not None, reason=f"{contender.package}: {reason}")
                found.append(pytest.param(contender, env_id, n, marks=skip, id=f"{contender.name}-{env_id}-{n}"))
    return found
