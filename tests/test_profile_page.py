"""The pages of `fastvec profile --html` and `fastvec bench --html`: what they show, and that it is read back."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest

from fastvec.figures import in_bytes, in_time
from fastvec.profiling.charts import Bar, Point, Series, in_short, lines, plain, stacked
from fastvec.profiling.configurations import Configuration
from fastvec.profiling.page import bench_page, profile_page
from fastvec.profiling.recommendation import recommend
from fastvec.profiling.statistics import estimate

VOID = {"meta", "br", "link", "img", "input"}


class Reader(HTMLParser):
    """Keeps texts, the JSON, and every tag that is opened and closed; fails where they do not match."""

    def __init__(self, page):
        super().__init__()
        self.open, self.texts, self.data, self.tags = [], [], "", []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.data += data
        elif self.open and self.open[-1] != "style":
            self.texts.append(data)


def configuration(backend, n, workers, sps, memory=10**8):
    return {
        "backend": backend,
        "n": n,
        "workers": workers,
        "sps": estimate([sps * (1 + 0.01 * one) for one in range(7)]).to_json(),
        "split_us": {"env": 5.0, "ipc": 20.0, "wait": 1.0, "policy": 30.0, "python": 0.0},
        "cpu_percent": 100.0,
        "peak_rss_bytes": memory,
        "startup_s": 0.2,
    }


def a_profile(**changes):
    configurations = [
        configuration("native", 1, 0, 1e5),
        configuration("process", 8, 2, 4e5),
        configuration("process", 8, 8, 3e5, memory=None),
        configuration("envpool", 8, 2, 3e5),
        configuration("native", 8, 0, 9e6),
    ]
    speeds = [
        (Configuration(one["backend"], one["n"], one["workers"]), estimate(one["sps"]["samples"]))
        for one in configurations
    ]
    return {
        "source": "a </script><b> & name",
        "machine": {"cores": 2, "cpu": "some", "python": "3.11", "load_average": 0.0},
        "configurations": configurations,
        "policy": {
            "name": "mlp:8",
            "inference": [
                {"n": 1, "us": estimate([20.0]).to_json(), "gain": estimate([1.0]).to_json()},
                {"n": 8, "us": estimate([40.0]).to_json(), "gain": estimate([4.0]).to_json()},
            ],
        },
        "diversity": {"warning": "lanes share < a seed"},
        "training": [
            {
                "n": 8,
                "rollout": 256,
                "steps": 100,
                "seconds": {"median": 1.5, "samples": [1.5]},
                "final_return": {"mean": 99.5, "variance": 2.5, "samples": [99.5]},
            }
        ],
        "recommendation": recommend(speeds, 2).to_json(),
        "notes": ["The machine was calm & quiet."],
        **changes,
    }


def test_its_data_is_read_back():
    profile = a_profile()
    reader = Reader(profile_page(profile))
    assert json.loads(reader.data) == profile
    assert ("script", {"type": "application/json", "id": "data"}) in reader.tags


def test_it_shows_what_was_found():
    profile = a_profile()
    said = " ".join(Reader(profile_page(profile)).texts)
    for text in (
        profile["source"],
        "n=8, backend='native'",
        profile["recommendation"]["reason"],
        "lanes share < a seed",
        "The machine was calm & quiet.",
        "process (8 workers), n = 8",
        "EnvPool (2 threads), n = 8",
        "policy: 30.0 us, 54%",
        "not known",
        "mlp:8",
        "99.5",
    ):
        assert text in said
    assert "tr class=chosen" in profile_page(profile)


def test_it_needs_no_network():
    page = profile_page(a_profile())
    assert "http" not in page
    assert not re.search(r"\b(src|href|@import|url\()", page)


def test_what_was_not_measured_is_not_shown():
    bare = a_profile(recommendation=None, diversity=None, training=[], policy={"name": "none", "inference": []})
    page = profile_page(bare)
    said = " ".join(Reader(page).texts)
    for text in ("Recommended", "Training", "Inference", "may add nothing"):
        assert text not in said
    assert json.loads(Reader(page).data) == bare


def svg(chart):
    """The chart's root element."""
    return ElementTree.fromstring(chart[chart.index("<svg") :])


def test_lines_are_where_their_values_are():
    points = tuple(Point(n, n * 100.0, n * 90.0, n * 110.0, f"at {n}") for n in (1, 10, 100))
    root = svg(lines([Series("one", points)], "n", "speed"))
    circles = list(root.iter("circle"))
    xs, ys = ([float(circle.get(key)) for circle in circles] for key in ("cx", "cy"))
    # Equal factors are equal steps; places are rounded to tenths.
    assert xs[0] < xs[1] < xs[2]
    assert ys[0] > ys[1] > ys[2]
    assert abs(round(10 * (xs[0] + xs[2] - 2 * xs[1]))) <= 1
    assert abs(round(10 * (ys[0] + ys[2] - 2 * ys[1]))) <= 1
    band = [tuple(map(float, pair.split(","))) for pair in root.find(".//polygon").get("points").split()]
    assert len(band) == 6
    assert all(low > y > high for (_, high), y, (_, low) in zip(band[:3], ys, band[:2:-1], strict=True))
    assert [title.text for title in root.iter("title")] == ["at 1", "at 10", "at 100"]


def test_a_line_of_one_point_and_none_at_all():
    one = svg(lines([Series("one", (Point(8, 5.0, 5.0, 5.0, "at 8"),))], "n", "speed"))
    assert len(list(one.iter("circle"))) == 1
    assert lines([], "n", "speed") == ""


def test_bars_are_as_long_as_their_values():
    bars = [Bar("a", "4", (("x", 4.0, "four"),)), Bar("b", "1", (("x", 1.0, "one"),))]
    long, short = (float(rect.get("width")) for rect in svg(plain(bars, "sizes")).iter("rect"))
    assert long == 4 * short


def test_stacked_bars_are_shares():
    bars = [
        Bar("a", "8", (("x", 2.0, "two"), ("y", 6.0, "six"))),
        Bar("b", "0", (("x", 0.0, "none"), ("y", 0.0, "none"))),
    ]
    rects = list(svg(stacked(bars, {"x": "red", "y": "blue"}, "split")).iter("rect"))
    assert [rect.get("style") for rect in rects] == ["fill:red", "fill:blue"]
    first, second = rects
    assert round(3 * float(first.get("width"))) == round(float(second.get("width"))) > 0  # printed in tenths
    assert float(first.get("x")) + float(first.get("width")) == float(second.get("x"))


@pytest.mark.parametrize(("value", "text"), [(0.5, "0.5"), (300.0, "300"), (20_000.0, "20k"), (3e6, "3M"), (1e9, "1G")])
def test_ticks_are_short(value, text):
    assert in_short(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.5e-7, "0.15 us"), (2.5e-5, "25.0 us"), (0.0123, "12.3 ms"), (0.9996, "1.00 s"), (250, "250 s")],
)
def test_times_have_three_digits(seconds, text):
    assert in_time(seconds) == text


def test_sizes():
    assert in_bytes(43.6e6) == "44 MB"
    assert in_bytes(1.234e9) == "1.23 GB"


def test_the_page_of_a_race():
    spread = {"median": 2e6, "low": 1.9e6, "high": 2.1e6, "samples": [2e6]}
    race = {
        "settings": {"env": "CartPole-v1"},
        "results": [
            {"n": 1, "contender": "fastvec", "title": "fastvec", "sps": spread, "ratio": spread},
            {"n": 8, "contender": "fastvec", "title": "fastvec", "sps": spread, "ratio": None},
            {"n": 8, "contender": "async", "title": "Gymnasium Async", "absent": "not installed"},
        ],
    }
    reader = Reader(bench_page(race, "a race"))
    assert json.loads(reader.data) == race
    said = " ".join(reader.texts)
    assert "fastvec, n = 8: 2.00 M (1.90 to 2.10 M)" in said
    assert "not installed" in said
