"""How long the oracle runs are: Gymnasium's envs are Python, and so the slow part of the suite."""

import pytest
from gymnasium.vector import AutoresetMode
from rollout import BOX_FORMS


@pytest.fixture(params=[20_000, pytest.param(200_000, marks=pytest.mark.full)])
def lane_steps(request):
    """Lane-steps a variant takes in all: ten times as many under ``pytest -m full``."""
    return request.param


@pytest.fixture(params=list(AutoresetMode), ids=lambda mode: mode.value)
def mode(request):
    """Gymnasium's three autoreset modes."""
    return request.param


@pytest.fixture(params=BOX_FORMS.values(), ids=BOX_FORMS)
def form(request):
    """A form in which Box actions are passed."""
    return request.param
