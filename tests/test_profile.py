"""`fastvec profile` and fastvec.profile as a user meets them: figures, exports, errors, an interrupt."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time

import gymnasium
import numpy as np
import pytest
from ordinary_envs import LaneEnv, WordsEnv
from threadpoolctl import threadpool_info

import fastvec
from fastvec.cli import main
from fastvec.contenders import CONTENDERS
from fastvec.profiling.command import source_of
from fastvec.profiling.configurations import BackendContender, Configuration, Participant
from fastvec.profiling.notes import noise_sentence
from fastvec.profiling.planning import checked_request, plan_of
from fastvec.profiling.policy import Policy, make_policy, one_thread
from fastvec.profiling.profile import measured
from fastvec.profiling.race import Measured
from fastvec.profiling.recommendation import recommend
from fastvec.profiling.split import PARTS
from fastvec.profiling.startup import Start, start_of
from fastvec.profiling.statistics import estimate

MS = 1e-3


class Sleeping(gymnasium.Env):
    """Sleeps 2 ms in every step, and never ends."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.random(1, np.float32), {}

    def step(self, action):
        time.sleep(2 * MS)
        return np.zeros(1, np.float32), 1.0, False, False, {}


class Failing(LaneEnv):
    """Cannot be stepped."""

    def step(self, action):
        raise OSError("no simulator")


class FailingLate(Sleeping):
    """Can be stepped some times."""

    steps = 0

    def step(self, action):
        self.steps += 1
        if self.steps > 60:
            raise OSError("the simulator has gone")
        return super().step(action)


if "test/Sleeping-v0" not in gymnasium.registry:  # of this module as others import it
    gymnasium.register("test/Sleeping-v0", Sleeping)


def a_millisecond(observations):
    time.sleep(1 * MS)


@pytest.fixture(autouse=True, scope="module")
def _in_a_hurry():
    """Measures for half a second where a user's machine does for six."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastvec.profiling.planning.QUICK_BUDGET", 0.5)
        yield


@pytest.fixture(scope="module")
def sleeping():
    """A profile of sleeping envs under a sleeping policy."""
    return fastvec.profile(Sleeping, n=[1, 2], workers=[2], policy=a_millisecond, rounds=6, quick=True)


def of(profile, backend, n):
    [found] = [
        one for one in profile.configurations if (one.configuration.backend, one.configuration.n) == (backend, n)
    ]
    return found


def test_known_costs_come_out(sleeping):
    """Sleeping takes at least as long as asked, and how much longer the machine alone decides."""
    for backend, n, in_envs in (("serial", 1, 2), ("serial", 2, 4), ("process", 2, 2)):
        one = of(sleeping, backend, n)
        assert one.split_us["env"] >= in_envs * 1000
        assert one.split_us["policy"] >= 1000
        assert one.sps.low <= one.sps.median <= one.sps.high <= n / ((in_envs + 1) * MS)
        assert len(one.sps.samples) == 6
    for n in (1, 2):
        serial = of(sleeping, "serial", n)
        assert (serial.split_us["ipc"], serial.split_us["wait"]) == (0.0, 0.0)
        # What sleeps uses no core.
        assert serial.cpu_percent < 90
    process = of(sleeping, "process", 2)
    assert process.split_us["ipc"] > 0
    assert process.configuration.workers == 2
    assert process.start.peak_rss_bytes > of(sleeping, "serial", 2).start.peak_rss_bytes > 10**7


def test_inference_for_many_is_one_inference(sleeping):
    one, two = sleeping.inference
    assert (one.n, one.gain.median) == (1, 1.0)
    assert two.us.median >= 1000
    assert two.gain.samples == tuple(2 * a / b for a, b in zip(one.us.samples, two.us.samples, strict=True))


def test_it_recommends_by_what_it_measured(sleeping):
    speeds = [(one.configuration, one.sps) for one in sleeping.configurations]
    assert sleeping.recommendation == recommend(speeds, sleeping.machine["cores"])
    assert sleeping.diversity.distinct_starts == 2
    assert not sleeping.interrupted


def test_exports_have_all_figures(sleeping):
    told = json.loads(json.dumps(sleeping.to_json()))
    for one, entry in zip(sleeping.configurations, told["configurations"], strict=True):
        assert list(entry) == [
            "backend",
            "n",
            "workers",
            "sps",
            "split_us",
            "cpu_percent",
            "peak_rss_bytes",
            "startup_s",
        ]
        assert list(entry["sps"]) == ["median", "low", "high", "samples"]
        assert list(entry["split_us"]) == ["env", "ipc", "wait", "policy", "python"] == list(PARTS)
        configuration = Configuration(entry["backend"], entry["n"], entry["workers"])
        assert configuration == one.configuration
        assert estimate(entry["sps"]["samples"]) == one.sps
        assert one.sps.seconds is None
        assert entry["startup_s"] == one.start.seconds
        assert entry["peak_rss_bytes"] == one.start.peak_rss_bytes
    page = sleeping.to_html()
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(data) == told


def test_the_tables_have_what_the_export_has(sleeping, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich", None)
    sleeping.print()
    printed = capsys.readouterr().out
    for text in ("Sleeping, random actions beside a_millisecond", "process (2w)", "n t(1) / t(n)", "Recommended: n="):
        assert text in printed
    for note in sleeping.notes:
        assert note in printed


def test_files_of_the_command_are_read_back(tmp_path, capsys):
    files = [tmp_path / "profile.json", tmp_path / "profile.html"]
    arguments = ["--n", "1,4", "--backends", "native,serial", "--policy", "none", "--quick", "--rounds", "6"]
    assert main(["profile", "Counter-v0", *arguments, "--json", str(files[0]), "--html", str(files[1])]) == 0
    told = json.loads(files[0].read_text())
    assert [(one["backend"], one["n"]) for one in told["configurations"]] == [
        ("native", 1),
        ("serial", 1),
        ("native", 4),
        ("serial", 4),
    ]
    assert told["policy"] == {"name": "none", "inference": []}
    assert all(one["split_us"]["policy"] < one["split_us"]["env"] for one in told["configurations"])
    assert "differ by their actions alone" in told["diversity"]["warning"]
    assert told["source"] == "Counter-v0"
    assert "Recommended: n=" in capsys.readouterr().out
    assert json.dumps(told["recommendation"]) in files[1].read_text()


def test_a_race_has_a_page_too(tmp_path, capsys):
    file = tmp_path / "bench.html"
    arguments = ["--n", "1", "--only", "fastvec", "--seconds", "0.01", "--rounds", "1", "--html", str(file)]
    assert main(["bench", *arguments]) == 0
    assert "<svg" in file.read_text()


def test_others_are_compared_where_they_are_installed():
    request = checked_request("CartPole-v1", n=[2], backends=["native"], compare=True, quick=True, rounds=6)
    plan = plan_of(request)
    plan.participants = [one for one in plan.participants if one.configuration.backend in ("native", "sync", "numpy")]
    found = measured(plan)
    assert {one.configuration.backend for one in found.configurations} == {"native", "sync", "numpy"}
    assert found.recommendation.choice.backend == "native"
    assert of(found, "sync", 2).split_us["python"] > 0


class Unsteppable(gymnasium.vector.VectorEnv):
    """Can be reset, but not be stepped."""

    def reset(self, *, seed=None, options=None):
        return np.zeros((1, 4), np.float32), {}

    def step(self, actions):
        raise OSError("no such library")


def unmakeable(source, n):
    raise OSError("no such library")


@pytest.mark.parametrize("make", [unmakeable, lambda source, n: Unsteppable()])
def test_a_rival_that_fails_is_left_out(make, monkeypatch):
    monkeypatch.setattr(CONTENDERS["sync"], "make", make)
    plan = plan_of(checked_request("CartPole-v1", n=[1], backends=["native"], compare=True, quick=True, rounds=6))
    plan.participants = [one for one in plan.participants if one.configuration.backend in ("native", "sync")]
    found = measured(plan)
    assert [one.configuration.backend for one in found.configurations] == ["native"]
    assert any("failed: OSError: no such library" in note for note in found.notes)


class DearResets(Sleeping):
    """Takes 50 ms to reset, and ends after five steps of 2 ms."""

    steps = 0

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        time.sleep(50 * MS)
        return super().reset(seed=seed)

    def step(self, action):
        self.steps += 1
        return *super().step(action)[:2], self.steps == 5, False, {}


def test_resets_that_are_dear_are_not_hidden_by_medians():
    found = fastvec.profile(DearResets, n=[1], backends=["serial"], policy="none", rounds=6, quick=True)
    [one] = found.configurations
    assert one.sps.low <= 5 / (50 * MS + 5 * 2 * MS) <= 1.1 * one.sps.high  # sleeping takes a little longer
    assert one.sps.median < 250  # rounds without a reset make almost 500
    assert found.to_json()["settings"]["statistic"] == "total"
    assert any("A reset takes 5" in note and "all rounds together" in note for note in found.notes)


def test_what_a_module_registers_is_profiled_by_its_name():
    plan = plan_of(checked_request("test_profile:test/Sleeping-v0", n=[1], quick=True))
    assert (plan.label, plan.participants[0].configuration.n) == ("test/Sleeping-v0", 1)


def test_what_cannot_be_trained_with_is_refused_before():
    pytest.importorskip("torch", reason="needs torch, which CI's tests-with-sb3 has")
    with pytest.raises(ValueError, match="of n = 3, 48 none divides a batch of 2048"):
        checked_request("CartPole-v1", n=[3, 48], train=True)


def test_an_env_that_fails_in_the_middle_is_told(capsys):
    arguments = ["--n", "1", "--policy", "none", "--rounds", "6", "--quick"]
    assert main(["profile", "test_profile:FailingLate", *arguments]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert "FailingLate failed while it was measured" in lines[-1]
    assert "OSError: the simulator has gone" in lines[-1]
    assert any(line.strip() == 'raise OSError("the simulator has gone")' for line in lines)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["CartPol-v1"], "'CartPol-v1'.*did you mean CartPole-v1.*MODULE:CLASS"),
        (["no_such_module:Env"], "importing no_such_module failed with ModuleNotFoundError"),
        (["ordinary_envs:NoEnv"], "ordinary_envs has no class or function 'NoEnv'"),
        (["os:getcwd"], "getcwd failed when it was tried: TypeError: it makes a str: expected a gymnasium.Env"),
        (["test_profile:Failing"], "Failing failed when it was tried: OSError: no simulator"),
        (["ordinary_envs:LaneEnv", "--backends", "native"], "'native', which needs an id that has a kernel"),
        (["CartPole-v1", "--backends", "gpu"], "'gpu': expected some of native, serial, process"),
        (["CartPole-v1", "--policy", "mlp:x"], "policy is 'mlp:x': expected 'none', or 'mlp:'"),
        (["ordinary_envs:WordsEnv"], r"observations\['word'\] are Text.*: use 'none'"),
        (["CartPole-v1", "--rounds", "5"], "rounds is 5: a 95 % interval of a median needs at least 6"),
        (["ordinary_envs:LaneEnv", "--train"], "train needs an id that has a kernel"),
        (["CartPole-v1", "--n", "1", "--backends", "native", "--policy", ""], "policy is ''"),
    ],
)
def test_what_cannot_be_is_one_sentence_before_anything_is_measured(arguments, sentence, capsys):
    assert main(["profile", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert re.search(sentence, printed.err)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "ID_OR_MODULE:CLASS"),
        (["CartPole-v1", "--n", "many"], "--n: 'many' given"),
        (["CartPole-v1", "--workers", "0"], "--workers: '0' given"),
        (["CartPole-v1", "--seed", "-1"], "--seed: '-1' given, expected a whole number from 0 up"),
        (["CartPole-v1", "--json", "no/such/file.json"], "'no/such/file.json' cannot be written"),
        (["CartPole-v1", "--html", "."], "'.' cannot be written"),
    ],
)
def test_bad_arguments_are_one_sentence(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["profile", *arguments])
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert printed.err.count("\n") == 1
    assert sentence in printed.err


@pytest.mark.parametrize(
    ("asked", "error", "sentence"),
    [
        ({"source": 3}, TypeError, "source is 3"),
        ({"source": "CartPol-v1"}, gymnasium.error.NameNotFound, "did you mean CartPole-v1"),
        ({"source": "CartPole-v1", "n": []}, ValueError, "n is empty"),
        ({"source": "CartPole-v1", "n": 8}, TypeError, "n is 8: expected a list"),
        ({"source": "CartPole-v1", "seed": -1}, ValueError, "seed is -1"),
        ({"source": "CartPole-v1", "n": [0]}, ValueError, "n is 0"),
        ({"source": "CartPole-v1", "backends": ()}, ValueError, "backends is empty"),
        ({"source": "CartPole-v1", "workers": [1.5]}, TypeError, "workers"),
        ({"source": "CartPole-v1", "policy": 3}, TypeError, "policy is 3"),
    ],
)
def test_wrong_arguments_of_the_function(asked, error, sentence):
    with pytest.raises(error, match=re.escape(sentence)):
        fastvec.profile(**asked)


def test_without_scipy_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "scipy", None)
    assert main(["profile", "CartPole-v1"]) == 2
    assert 'pip install "fastvec[profile]"' in capsys.readouterr().err


def test_a_class_of_the_directory_one_is_in_is_found(tmp_path, monkeypatch):
    (tmp_path / "my_env_of_here.py").write_text("from fastvec import CounterEnv as Mine\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert source_of("my_env_of_here:Mine") is fastvec.CounterEnv
    assert source_of("CartPole-v1") == "CartPole-v1"
    assert source_of("ordinary_envs:LaneEnv") is LaneEnv


def test_an_id_that_a_module_registers_is_known_to_other_processes():
    gymnasium.register("tests/Profiled-v0", entry_point=LaneEnv)
    try:
        source = source_of("ordinary_envs:tests/Profiled-v0")
        assert source == gymnasium.spec("tests/Profiled-v0")
        configuration = Configuration("serial", 2)
        start = start_of(Participant(configuration, BackendContender(configuration)), source, 0)
        assert isinstance(start, Start)
    finally:
        del gymnasium.registry["tests/Profiled-v0"]


class SlowToMake(Sleeping):
    """Takes 20 ms to make."""

    def __init__(self):
        time.sleep(20 * MS)


@pytest.mark.parametrize(
    ("configuration", "in_turn"), [(Configuration("serial", 3), 3), (Configuration("process", 2, 2), 1)]
)
def test_a_start_has_the_making_of_envs_in_it(configuration, in_turn):
    """Sleeping takes at least as long as asked."""
    start = start_of(Participant(configuration, BackendContender(configuration)), SlowToMake, 0)
    assert start.seconds >= in_turn * 20 * MS


def test_a_start_that_fails_says_how():
    configuration = Configuration("serial", 2)
    participant = Participant(configuration, BackendContender(configuration))
    with pytest.raises(RuntimeError, match="OSError: no simulator"):
        start_of(participant, Failing, 0)


def test_networks_of_torch_and_numpy_act_alike(monkeypatch):
    pytest.importorskip("torch", reason="needs torch, which CI's tests-with-sb3 has")
    env = gymnasium.make("CartPole-v1")
    observations = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    by_torch = make_policy("mlp:16,16", env.observation_space, env.action_space, 3)
    monkeypatch.setitem(sys.modules, "torch", None)
    by_numpy = make_policy("mlp:16,16", env.observation_space, env.action_space, 3)
    assert (by_torch.name, by_numpy.name) == ("mlp:16,16 (PyTorch, one thread)", "mlp:16,16 (NumPy)")
    actions = by_numpy.act(observations)
    assert actions.shape == (50,)
    assert set(actions.tolist()) == {0, 1}
    assert actions.tolist() == by_torch.act(observations).tolist()


def test_a_network_takes_all_parts_of_observations(monkeypatch):
    from ordinary_envs import NestedEnv

    monkeypatch.setitem(sys.modules, "torch", None)
    env = fastvec.make(NestedEnv, 3, backend="serial")
    policy = make_policy("mlp:8", env.single_observation_space, env.single_action_space, 0)
    assert len(policy.act(env.reset(seed=0)[0])) == 3
    assert make_policy("none", WordsEnv.observation_space, WordsEnv.action_space, 0).act is None


def a_measurement(sps, samples=(1.0,) * 7):
    configuration = Configuration("serial", 2)
    return Measured(configuration, estimate([sps * sample for sample in samples]), {}, None, None)


def test_noise_is_told():
    calm, busy = {"load_average": 0.1, "cores": 2}, {"load_average": 1.9, "cores": 2}
    steady, noisy = a_measurement(10), a_measurement(10, (1.0, 2.0, 0.5, 1.0, 2.5, 0.4, 1.0))
    assert noise_sentence([steady], calm).startswith("The machine was calm: intervals are +- 0.0% in the median")
    assert noise_sentence([steady], busy).startswith("The machine was noisy")
    said = noise_sentence([steady, noisy, steady], calm)
    assert said.startswith("The machine was noisy: intervals are +- 0.0% in the median")
    assert "(serial, n = 2)" in said


def test_importing_fastvec_imports_no_profile():
    code = "import sys, fastvec; print([name for name in sys.modules if 'profiling' in name or name == 'scipy'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    with pytest.raises(AttributeError, match="no attribute 'profil'"):
        _ = fastvec.profil


def test_a_slice_is_cut_where_there_is_no_time():
    plan = plan_of(checked_request("Counter-v0", n=[1], backends=["native"], policy="none", rounds=6, quick=True))
    plan = dataclasses.replace(plan, ends=time.monotonic())
    began = time.monotonic()
    found = measured(plan)
    assert len(found.configurations[0].sps.samples) == 6
    assert time.monotonic() - began < 60


def test_ctrl_c_prints_what_there_is():
    """A terminal sends SIGINT to the whole process group: to the workers too."""
    code = (
        "import sys; sys.modules['rich'] = None; "
        "from fastvec.profiling import planning; planning.END = 1e4; planning.BUDGET = 1.0; "
        "from fastvec.cli import main; "
        "sys.exit(main(['profile', 'Counter-v0', '--n', '1,2', '--policy', 'none', '--rounds', '2000']))"
    )
    command = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        while "rounds" not in (line := command.stderr.readline()):
            assert line
        time.sleep(1)
        os.killpg(command.pid, signal.SIGINT)
        out, err = command.communicate(timeout=60)
        assert command.returncode == 130
        assert "interrupted" in err
        assert "Traceback" not in err + out
        assert "Recommended: n=" in out
        assert "It was interrupted" in out
    finally:
        command.kill()


def test_numpy_infers_in_one_thread():
    policy = Policy("mlp:8 (NumPy)", lambda observations: None)

    def threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = threads()
    assert before
    with one_thread(policy):
        assert set(threads()) == {1}
    assert threads() == before
