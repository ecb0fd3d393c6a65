"""The command line: which subcommands there are and what they take. What they do is in a module for each."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import gymnasium

import fastvec
from fastvec import machine, registry


class _Parser(argparse.ArgumentParser):
    """A parser that answers a bad argument with one sentence instead of a page of usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code: 0, 2 for what the user can mend, 130 after Ctrl-C."""
    parser = _Parser(prog="fastvec", description="Batched RL environments at the speed of the machine.")
    parser.add_argument("--version", action="version", version=f"fastvec {fastvec.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    argv = sys.argv[1:] if argv is None else argv
    if list(argv[:1]) == ["train"]:  # its options are in the example, which takes as long to import as PyTorch
        return _train(list(argv[1:]))
    commands.add_parser("train", help="train a policy by PPO (examples/ppo.py); needs torch")
    _add_bench(commands)
    _add_profile(commands)
    _add_doctor(commands)
    _add_envs(commands)
    arguments = parser.parse_args(argv)
    if not hasattr(arguments, "run"):
        parser.print_help(sys.stderr)
        return 2
    if getattr(arguments, "html", None) is not None and arguments.json == arguments.html:
        parser.error(f"--json and --html are both {arguments.json}: give each a file of its own")
    return _carefully(arguments)


def _carefully(arguments: argparse.Namespace) -> int:
    """Runs a command. What the user can mend, and what ends the output, are no tracebacks."""
    try:
        machine.config()
    except ValueError as error:  # an environment variable
        print(f"fastvec: {error}", file=sys.stderr)
        return 2
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # as of `fastvec envs | head -1`; Python would complain again when it closes the output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (MemoryError, OSError) as error:
        print(f"fastvec: {str(error) or 'out of memory'}", file=sys.stderr)
        return 2


def _train(argv: list[str]) -> int:
    try:
        import torch  # noqa: F401
    except ImportError:
        print('fastvec train: needs PyTorch; run: pip install "fastvec[train]"', file=sys.stderr)
        return 2
    from fastvec.examples import ppo

    try:
        code: int = ppo.main(argv)
        return code
    except KeyboardInterrupt:
        return 130


def _add_bench(commands: Any) -> None:
    parser = commands.add_parser(
        "bench",
        help="race fastvec against what else is installed",
        description="Steps an env with fastvec and with what is installed of Gymnasium's, Stable-Baselines3's and "
        "EnvPool's vector envs, in turns, and prints env-steps per second.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--env", type=_env_id, default="CartPole-v1", metavar="ID", help="which env")
    parser.add_argument("--n", type=_counts, default="1,8,64,1024", metavar="N,...", help="numbers of envs")
    parser.add_argument("--seconds", type=_seconds, default=0.5, help="measured time for each contender and n")
    parser.add_argument("--rounds", type=_count, default=10, help="number of turns that time is cut into")
    parser.add_argument(
        "--only",
        type=_contenders,
        default="all",
        metavar="NAME,...",
        help="who takes part: fastvec, float32, threads (all cores), sync, async, numpy (Gymnasium), dummy, subproc, "
        "fastvecenv (Stable-Baselines3), envpool",
    )
    parser.add_argument(
        "--precision",
        choices=("float64", "float32"),
        default="float64",
        help="float32 also races fastvec's float32 mode, which is not bit for bit the same env",
    )
    _add_files(parser)
    parser.set_defaults(run=_run_bench)


def _run_bench(arguments: argparse.Namespace) -> int:
    from fastvec import bench

    only = arguments.only
    if arguments.precision == "float32":
        only = tuple(dict.fromkeys((*only, "float32")))
    settings = bench.Settings(arguments.env, arguments.n, arguments.seconds, arguments.rounds, only)
    return bench.run(settings, arguments.json, arguments.html)


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=_new_file, default=None, metavar="FILE", help="also write everything to a file")
    parser.add_argument("--html", type=_new_file, default=None, metavar="FILE", help="also write a page to look at")


def _add_profile(commands: Any) -> None:
    parser = commands.add_parser(
        "profile",
        help="measure how many envs, on which backend, and recommend",
        description="Measures lanes of an env at several n and on every backend, with a policy's inference, and says "
        "what to use and why.",
    )
    parser.add_argument("source", metavar="ID_OR_MODULE:CLASS", help="an id, or a class or function in a module")
    parser.add_argument(
        "--n", type=_counts, default=None, metavar="N,...", help="numbers of lanes; default 1,2,4,8,..."
    )
    parser.add_argument(
        "--backends",
        type=_names,
        default=None,
        metavar="NAME,...",
        help="native, serial, process; default all that fit",
    )
    parser.add_argument(
        "--workers", type=_counts, default=None, metavar="N,...", help="worker processes; default as many as cores"
    )
    parser.add_argument(
        "--policy", default="mlp:64,64", metavar="mlp:SIZES|none", help="whose inference is measured; default mlp:64,64"
    )
    parser.add_argument("--train", action="store_true", help="train with PPO at every n; native ids, needs torch")
    parser.add_argument("--rounds", type=_count, default=None, metavar="R", help="turns of each, from 6; default 16")
    parser.add_argument(
        "--seed", type=_seed, default=0, metavar="S", help="of lanes, actions and statistics; default 0"
    )
    parser.add_argument("--compare", action="store_true", help="also measure what else is installed")
    parser.add_argument("--quick", action="store_true", help="answer in less than 20 seconds")
    _add_files(parser)
    parser.set_defaults(run=_run_profile)


def _run_profile(arguments: argparse.Namespace) -> int:
    from fastvec.profiling import command

    asked = {name: value for name, value in vars(arguments).items() if name not in ("run", "json", "html", "source")}
    return command.run(arguments.source, arguments.json, arguments.html, **asked)


def _add_doctor(commands: Any) -> None:
    parser = commands.add_parser(
        "doctor",
        help="say what is installed and whether it gives Gymnasium's bits",
        description="Prints versions, compiler and flags, and steps every native env beside Gymnasium's own to see "
        "whether this machine reproduces its bits. The exit code is 1 if it does not.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run_doctor)


def _run_doctor(arguments: argparse.Namespace) -> int:
    from fastvec import doctor

    return doctor.run(arguments.json)


def _add_envs(commands: Any) -> None:
    parser = commands.add_parser(
        "envs",
        help="list the native envs",
        description="Lists the ids that have a native env, with their spaces and limits.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run_envs)


def _run_envs(arguments: argparse.Namespace) -> int:
    from fastvec import listing

    return listing.run(arguments.json)


# The types of arguments: each takes a text and returns the value, or says in one sentence what it takes.


def _env_id(text: str) -> str:
    try:
        return registry.find(text).id
    except gymnasium.error.Error as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _count(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} given, expected a whole number from 1 up")
    return int(text)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(_count(part) for part in text.split(",")))


def _seed(text: str) -> int:
    if not text.strip().isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} given, expected a whole number from 0 up")
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",")))


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} given, expected a number of seconds above 0")
    return value


def _contenders(text: str) -> tuple[str, ...]:
    from fastvec.contenders import CONTENDERS

    if text == "all":
        return tuple(name for name, contender in CONTENDERS.items() if not contender.on_request)
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in CONTENDERS:
            raise argparse.ArgumentTypeError(f"{name!r} given, expected some of {', '.join(CONTENDERS)}")
    return names


def _new_file(text: str) -> Path:
    # Asked before anything is measured: a minute's figures should not be lost to a misspelt directory.
    path = Path(text)
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written; expected a file in a directory that exists")
    return path
