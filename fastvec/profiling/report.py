"""A profile in words: the tables in the terminal, and the sentences that the page has too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastvec.figures import in_bytes, in_time, in_words, three_digits
from fastvec.profiling.configurations import Configuration
from fastvec.profiling.split import PARTS
from fastvec.terminal import Column, Row, print_table

SPEED_COLUMNS = (
    Column("n", figures=True),
    Column("backend"),
    Column("steps/s", figures=True),
    Column("95 % interval", figures=True),
    Column("CPU %", figures=True),
    Column("memory", figures=True),
    Column("start", figures=True),
)
SPLIT_COLUMNS = (
    Column("n", figures=True),
    Column("backend"),
    Column("step", figures=True),
    *(Column(part, figures=True) for part in PARTS),
)
POLICY_COLUMNS = (
    Column("n", figures=True),
    Column("a batch", figures=True),
    Column("95 % interval", figures=True),
    Column("n t(1) / t(n)", figures=True),
)
TRAINING_COLUMNS = (
    Column("n", figures=True),
    Column("rollout", figures=True),
    Column("seconds", figures=True),
    Column("final return", figures=True),
    Column("variance over seeds", figures=True),
)


def print_profile(profile: dict[str, Any]) -> None:
    """Prints what ``Profile.to_json`` gives."""
    chosen = profile["recommendation"]
    print_table(title_of(profile), SPEED_COLUMNS, _by_n(profile["configurations"], _speed_cells, chosen))
    print_table(
        "where the time of a batch step goes, in us",
        SPLIT_COLUMNS,
        _by_n(profile["configurations"], _split_cells, chosen),
    )
    if profile["policy"]["inference"]:
        rows = [Row(cells) for cells in policy_lines(profile["policy"])]
        print_table(f"inference: {profile['policy']['name']}", POLICY_COLUMNS, [rows])
    if profile["training"]:
        rows = [Row(cells) for cells in training_rows(profile["training"])]
        print_table("training", TRAINING_COLUMNS, [rows])
    answer = sentences(chosen) if chosen is not None else ["nothing"]
    for sentence in [f"Recommended: {answer[0]}", *answer[1:], *profile["notes"]]:
        print("", sentence, sep="\n")


def title_of(profile: dict[str, Any]) -> str:
    """What was measured and where, in one line."""
    machine = profile["machine"]
    cores = f"{machine['cores']} core{'s' if machine['cores'] != 1 else ''}"
    policy = profile["policy"]["name"]
    with_policy = "random actions" if policy == "none" else f"random actions beside {policy}"
    return f"{profile['source']}, {with_policy}, {machine['cpu']} ({cores}), Python {machine['python']}"


def title_of_one(configuration: dict[str, Any]) -> str:
    """Backend and workers of a configuration."""
    return Configuration(configuration["backend"], configuration["n"], configuration["workers"]).title


def short_title_of_one(configuration: dict[str, Any]) -> str:
    """The same where there is little room."""
    return Configuration(configuration["backend"], configuration["n"], configuration["workers"]).short_title


def range_of(spread: dict[str, Any]) -> str:
    """An interval of rates: 42.1 k to 44.9 k, the letter once where it is the same."""
    low, high = in_words(spread["low"]), in_words(spread["high"])
    return f"{low[:-2] if low[-1] == high[-1] else low.strip()} to {high.strip()}"


def sentences(recommendation: dict[str, Any]) -> list[str]:
    """The recommendation: what to give to ``make``, why, the runner-up, and the rule of thumb."""
    said = [in_code(recommendation), f"Why: {recommendation['reason']}."]
    runner_up, ratio = recommendation["runner_up"], recommendation["runner_up_ratio"]
    if runner_up is not None:
        same = ratio["low"] <= 1 <= ratio["high"]
        verdict = "not told apart from it" if same else f"{ratio['median']:.3g} times its speed"
        said.append(
            f"Runner-up: {in_code(runner_up)}, {verdict} (95 % interval {ratio['low']:.3g} to {ratio['high']:.3g})."
        )
    return [*said, recommendation["rule_of_thumb"]]


def in_code(configuration: dict[str, Any]) -> str:
    """A configuration as the arguments of ``make``."""
    workers = f", num_workers={configuration['workers']}" if configuration["workers"] else ""
    return f"n={configuration['n']}, backend={configuration['backend']!r}{workers}"


def policy_lines(policy: dict[str, Any]) -> list[tuple[str, ...]]:
    """Inference at each n."""
    return [
        (
            str(one["n"]),
            in_time(one["us"]["median"] / 1e6),
            f"{in_time(one['us']['low'] / 1e6)} to {in_time(one['us']['high'] / 1e6)}",
            f"{one['gain']['median']:.3g} x",
        )
        for one in policy["inference"]
    ]


def training_rows(training: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Training at each n."""
    return [
        (
            str(one["n"]),
            str(one["rollout"]),
            f"{one['seconds']['median']:.2f}",
            f"{one['final_return']['mean']:.1f}",
            f"{one['final_return']['variance']:.1f}",
        )
        for one in training
    ]


def diversity_sentence(diversity: dict[str, Any]) -> str:
    """How different lanes are."""
    correlation, lengths = diversity["reward_correlation"], diversity["episode_lengths"]
    if not diversity["finite"]:
        rewards = "rewards of which some are no finite numbers"
    elif correlation is None:
        rewards = "rewards that vary too little to correlate"
    else:
        rewards = f"rewards with a mean correlation of {correlation:.2f}"
    if lengths is None:
        ends = f"no episode ended in {diversity['steps']} steps"
    else:
        ends = (
            f"{lengths['episodes']} episodes had from {lengths['least']} to {lengths['most']} steps (quartiles "
            f"{lengths['low']:g}, {lengths['median']:g}, {lengths['high']:g})"
        )
    lanes, ways = diversity["lanes"], diversity["distinct_starts"]
    began = f"{lanes} lanes began in {ways} different ways" if ways > 1 else f"all of {lanes} lanes began alike"
    if lanes == 1:
        began = "one lane was looked at"
    return f"Diversity: {began}, with {rewards}; {ends}."


def _by_n(configurations: Sequence[dict[str, Any]], cells: Any, chosen: dict[str, Any] | None) -> list[list[Row]]:
    """A section for each n; the recommended configuration stands out."""
    sections = []
    for n in sorted({one["n"] for one in configurations}):
        rows: list[Row] = []
        for one in (one for one in configurations if one["n"] == n):
            is_chosen = chosen is not None and all(one[key] == chosen[key] for key in ("backend", "n", "workers"))
            rows.append(Row((str(n) if not rows else "", *cells(one)), "strong" if is_chosen else "normal"))
        sections.append(rows)
    return sections


def _speed_cells(one: dict[str, Any]) -> tuple[str, ...]:
    sps, cpu = one["sps"], one["cpu_percent"]
    return (
        short_title_of_one(one),
        in_words(sps["median"]),
        range_of(sps),
        "-" if cpu is None else f"{cpu:.0f}",
        "-" if one["peak_rss_bytes"] is None else in_bytes(one["peak_rss_bytes"]),
        "-" if one["startup_s"] is None else in_time(one["startup_s"]),
    )


def _split_cells(one: dict[str, Any]) -> tuple[str, ...]:
    split = one["split_us"]
    whole = three_digits(sum(split.values()))
    return (short_title_of_one(one), whole, *(three_digits(split[part]) for part in PARTS))
