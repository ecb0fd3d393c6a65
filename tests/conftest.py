"""Settings of the whole suite.

The same run everywhere and every time: hypothesis draws the same examples, and nothing else in the suite is random."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("full", settings.get_profile("repeatable"), derandomize=False, max_examples=1000)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True, scope="session")
def _away_from_the_sources(tmp_path_factory):
    """Works in an empty directory, so that Python processes that tests start import the package that is installed.

    In the source tree they would find the package beside the tests, which is built only in an editable install.
    """
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("elsewhere"))
    yield
    os.chdir(before)
