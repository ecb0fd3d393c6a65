"""Settings of the whole suite.

The same run everywhere and every time: hypothesis draws the same examples, and nothing else in the suite is random."""

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
