"""What users of other vectorised environments were bitten by, each case with its right answer.

Test names begin with the case's id. Numbers are float32 values, compared with ``==``."""

import inspect
import subprocess
import sys
import tracemalloc

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode
from rollout import lanes_of, make_oracle, make_single, play, sample_actions

import fastvec
from fastvec.registry import NATIVE_ENVS

DEADLINE = 120  # seconds; only so that a hang is a failure
# Before 1.4, Gymnasium's own wrappers count SAME_STEP episodes and NEXT_STEP reset rows wrong.
WRAPPERS_COUNT_RIGHT = tuple(int(part) for part in gym.__version__.split(".")[:2]) >= (1, 4)


def steady(obs):
    """Keeps CartPole up past 500 steps."""
    x, x_dot, theta, theta_dot = obs.T
    return (theta + 0.5 * theta_dot + 0.05 * x + 0.1 * x_dot > 0).astype(np.int64)


def float32(*values):
    return np.array(values, np.float32)


def play_steadily(env, steps, obs):
    """Steps with the steady policy; nothing may end."""
    for _ in range(steps):
        obs, rewards, terminations, truncations, _ = env.step(steady(obs))
        assert (rewards == 1.0).all()
        assert not terminations.any()
        assert not truncations.any()
    return obs


@pytest.mark.parametrize("n", [1, 2, 1000])
def test_a1_cartpole_is_truncated_at_step_500(n):
    env, unlimited = fastvec.make("CartPole-v1", n=n), fastvec.make("CartPole-v1", n=n, max_episode_steps=-1)
    obs = play_steadily(env, 499, env.reset(seed=0)[0])
    expected = play_steadily(unlimited, 500, unlimited.reset(seed=0)[0])
    obs, rewards, terminations, truncations, _ = env.step(steady(obs))
    assert truncations.all()
    assert not terminations.any()
    assert (rewards == 1.0).all()
    assert (obs == expected).all(), "the last observation of the episode, not the first of the next"
    obs, rewards, terminations, truncations, _ = env.step(steady(obs))
    assert (rewards == 0.0).all()
    assert not terminations.any()
    assert not truncations.any()
    assert (np.abs(obs) <= 0.05).all()
    _, rewards, _, _, _ = env.step(steady(obs))
    assert (rewards == 1.0).all()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_a2_a_reset_clears_the_step_count(mode):
    env = fastvec.make("CartPole-v1", n=2, autoreset_mode=mode)
    play_steadily(env, 499, env.reset(seed=0)[0])
    obs = play_steadily(env, 499, env.reset(seed=1)[0])
    assert env.step(steady(obs))[3].all()


def test_a2_a_masked_reset_clears_the_count_of_its_lane_alone():
    env = fastvec.make("CartPole-v1", n=2)
    play_steadily(env, 300, env.reset(seed=0)[0])
    obs, _ = env.reset(options={"reset_mask": np.array([False, True])})
    obs = play_steadily(env, 199, obs)
    obs, _, _, truncations, _ = env.step(steady(obs))
    assert truncations.tolist() == [True, False]
    for step in range(201, 501):
        obs, _, terminations, truncations, _ = env.step(steady(obs))
        assert truncations.tolist() == [False, step == 500]
        assert not terminations.any()


def test_a3_the_last_observation_is_shown_and_the_reset_row_follows():
    env = fastvec.make("CartPole-v1", n=1)
    env.reset(seed=3)
    for _ in range(9):
        _, rewards, terminations, truncations, _ = env.step([1])
        assert (rewards[0], terminations[0], truncations[0]) == (1.0, False, False)
    obs, rewards, terminations, truncations, info = env.step([1])
    assert (rewards[0], terminations[0], truncations[0]) == (1.0, True, False)
    assert (obs[0] == float32(0.1288005, 1.9268948, -0.23022948, -3.0236335)).all()
    assert info == {}
    obs, rewards, terminations, truncations, _ = env.step([1])
    assert (rewards[0], terminations[0], truncations[0]) == (0.0, False, False)
    assert (obs[0] == float32(-0.040587135, -0.006687306, -0.0020948702, -0.03402611)).all()


def test_a4_a_step_of_a_lane_that_has_ended_in_each_mode():
    def end(mode):
        env = fastvec.make("CartPole-v1", n=2, autoreset_mode=mode)
        env.reset(seed=[3, 42])
        for step in range(10):
            obs, _, terminations, _, _ = env.step([1, step % 2])
        assert terminations.tolist() == [True, False]
        return env, obs

    for action in (0, 1):
        env, _ = end("NextStep")
        obs, rewards, terminations, truncations, _ = env.step([action, 0])
        assert (rewards[0], terminations[0], truncations[0]) == (0.0, False, False)
        assert (obs[0] == float32(-0.040587135, -0.006687306, -0.0020948702, -0.03402611)).all()

    env, _ = end("SameStep")
    _, rewards, terminations, _, _ = env.step([1, 0])
    assert (rewards[0], terminations[0]) == (1.0, False)

    env, before = end("Disabled")
    with pytest.raises(ResetNeeded, match=r"\b0\b"):
        env.step([1, 0])
    after, _ = env.reset(options={"reset_mask": np.array([True, False])})
    assert (after[1] == before[1]).all(), "no lane has moved"


def test_a5_the_last_observation_in_same_step_mode():
    env = fastvec.make("CartPole-v1", n=2, autoreset_mode="SameStep")
    env.reset(seed=3)
    for _ in range(7):
        assert env.step([1, 0])[4] == {}
    obs, rewards, terminations, truncations, info = env.step([1, 0])
    assert terminations.tolist() == [False, True]
    assert truncations.tolist() == [False, False]
    assert rewards.tolist() == [1.0, 1.0]
    assert (obs[1] == float32(0.0107355835, -0.012351342, 0.030190121, -0.032547217)).all()
    assert set(info) == {"final_obs", "_final_obs", "final_info", "_final_info"}
    assert (info["final_obs"][1] == float32(-0.065207414, -1.5671041, 0.21519959, 2.5054812)).all()
    assert info["_final_obs"].tolist() == [False, True]
    assert info["final_info"] == {}
    assert info["_final_info"].tolist() == [False, True]
    assert env.step([1, 0])[4] == {}


def test_a7_lengths_and_returns_of_fixed_episodes():
    for mode in AutoresetMode:
        env = fastvec.make("CartPole-v1", n=1, autoreset_mode=mode, max_episode_steps=3, episode_stats=True)
        env.reset(seed=0)
        episodes = []
        while len(episodes) < 4:
            _, _, _, truncations, info = env.step([0])
            if "episode" in info:
                episodes.append((int(info["episode"]["l"][0]), float(info["episode"]["r"][0])))
            if truncations[0] and mode == AutoresetMode.DISABLED:
                env.reset()
        assert episodes == [(3, 3.0)] * 4


@pytest.mark.parametrize(
    "mode", [mode for mode in AutoresetMode if mode != AutoresetMode.SAME_STEP or WRAPPERS_COUNT_RIGHT]
)
def test_a7_gymnasiums_statistics_wrapper_counts_right(mode):
    env = fastvec.make("CartPole-v1", n=2, autoreset_mode=mode, max_episode_steps=3)
    wrapped = gym.wrappers.vector.RecordEpisodeStatistics(env)
    wrapped.reset(seed=0)
    for _ in range(16):
        _, _, terminations, truncations, _ = wrapped.step(np.zeros(2, np.int64))
        if mode == AutoresetMode.DISABLED and (terminations | truncations).any():
            wrapped.reset(options={"reset_mask": terminations | truncations})
    assert set(wrapped.length_queue) == {3}
    assert set(wrapped.return_queue) == {3.0}


@pytest.mark.parametrize(("mode", "counted"), [("SameStep", 24), ("NextStep", 20)])
def test_a8_normalize_reward_counts_transitions_alone(mode, counted):
    """Twelve steps of two lanes in episodes of four steps: NEXT_STEP has two reset rows a lane, which are none."""
    env = fastvec.make("CartPole-v1", n=2, autoreset_mode=mode, max_episode_steps=4)
    wrapped = gym.wrappers.vector.NormalizeReward(env)
    oracle = make_oracle("CartPole-v1", 2, AutoresetMode(mode), max_episode_steps=4)
    oracle = gym.wrappers.vector.NormalizeReward(oracle)
    wrapped.reset(seed=0)
    oracle.reset(seed=0)
    for _ in range(12):
        rewards, expected = (each.step(np.zeros(2, np.int64))[1] for each in (wrapped, oracle))
        assert (rewards == expected).all()
    assert wrapped.return_rms.count == oracle.return_rms.count
    assert not WRAPPERS_COUNT_RIGHT or round(wrapped.return_rms.count) == counted


@pytest.mark.parametrize("options", [None, {"reset_mask": np.array([True, False])}])
def test_a10_a_step_after_a_reset_is_a_real_one(options):
    env = fastvec.make("CartPole-v1", n=2)
    env.reset(seed=[3, 42])
    for _ in range(10):
        _, _, terminations, _, _ = env.step([1, 0])
    assert terminations[0]
    env.reset(options=options)
    _, rewards, _, _, _ = env.step([0, 1])
    assert rewards[0] == 1.0


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("env_id", NATIVE_ENVS)
def test_a12_a_lanes_count_is_cleared_where_it_ended_and_nowhere_else(env_id, mode):
    """Over half a million lane-steps, with the counts of steps read through get_state."""
    n, steps, limit = 1000, 500, 60
    env = fastvec.make(env_id, n=n, autoreset_mode=mode, max_episode_steps=limit)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    count, waiting, ends = np.zeros(n, np.int64), np.zeros(n, bool), 0
    for _ in range(steps):
        _, _, terminations, truncations, _ = env.step(sample_actions(env.single_action_space, (n,), rng))
        count = np.where(waiting, 0, count + 1)
        ended = terminations | truncations
        assert (truncations == (count == limit)).all()
        assert not (ended & waiting).any()
        if mode == AutoresetMode.SAME_STEP:
            count[ended] = 0
        elif mode == AutoresetMode.DISABLED and ended.any():
            env.reset(options={"reset_mask": ended})
            count[ended] = 0
        assert (env.get_state()["elapsed"] == count).all()
        waiting = ended & (mode == AutoresetMode.NEXT_STEP)
        ends += int(ended.sum())
    assert ends > n


LIMITS = {
    "CartPole-v1": 500,
    "CartPole-v0": 200,
    "Counter-v0": None,
    "Acrobot-v1": 500,
    "MountainCar-v0": 200,
    "MountainCarContinuous-v0": 999,
    "Pendulum-v1": 200,
    "FrozenLake-v1": 100,
    "FrozenLake8x8-v1": 200,
    "Taxi-v3": 200,
    "Taxi-v4": 200,
    "CliffWalking-v1": None,
    "CliffWalkingSlippery-v1": None,
    "Blackjack-v1": None,
}


@pytest.mark.parametrize("env_id", NATIVE_ENVS)
def test_a13_the_limits_of_the_ids(env_id):
    assert fastvec.make(env_id).spec.max_episode_steps == LIMITS[env_id]


@pytest.mark.parametrize("env_id", NATIVE_ENVS)
def test_a13_a_limit_of_5_truncates_at_step_5(env_id):
    env = fastvec.make(env_id, n=3, max_episode_steps=5)
    env.action_space.seed(0)
    env.reset(seed=0)
    steps, ended = np.zeros(3, int), np.zeros(3, bool)
    for _ in range(200):
        _, _, terminations, truncations, _ = env.step(env.action_space.sample())
        steps = np.where(ended, 0, steps + 1)  # the row after an end is the reset
        assert truncations.tolist() == (steps == 5).tolist()
        ended = terminations | truncations


def test_b1_lane_i_has_seed_42_plus_i():
    obs, _ = fastvec.make("CartPole-v1", n=3).reset(seed=42)
    assert (obs[0] == float32(0.027395604, -0.006112156, 0.035859793, 0.019736802)).all()
    assert (obs[1] == float32(0.015229926, -0.045622468, -0.047997043, 0.033921257)).all()
    for lane in range(3):
        expected, _ = make_single("CartPole-v1").reset(seed=42 + lane)
        assert (obs[lane] == expected).all()


@pytest.mark.parametrize("num_threads", [1, 8])
def test_b2_lane_0_is_the_same_in_any_company(num_threads):
    actions = np.random.default_rng(0).integers(0, 2, (2000, 1))
    expected = None
    for n in (1, 3, 5, 1000):
        env = fastvec.make("CartPole-v1", n=n, num_threads=num_threads)
        lane = lanes_of(play(env, np.repeat(actions, n, axis=1), seed=42), slice(1))
        expected = expected or lane
        assert expected["terminations"].sum() > 50
        for name, array in lane.items():
            assert array.tobytes() == expected[name].tobytes()


def test_b5_two_envs_without_a_seed_differ():
    one, other = (fastvec.make("CartPole-v1", n=2).reset()[0] for _ in range(2))
    assert (one != other).all()
    assert (one[0] != one[1]).all()


def test_b8_the_action_space_samples_alike_after_the_same_seed():
    env = fastvec.make("CartPole-v1", n=8)
    runs = []
    for _ in range(2):
        env.action_space.seed(1)
        runs.append([env.action_space.sample().tolist() for _ in range(20)])
    assert runs[0] == runs[1]
    assert len({tuple(lane) for lane in zip(*runs[0], strict=True)}) > 1


def run_in_child(function):
    """Runs a function's source in a process of its own, so that an abort or a hang is a failure of this test alone."""
    source = f"{inspect.getsource(function)}\n{function.__name__}()"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr


def give_wrong_counts():
    import numpy as np
    import pytest

    import fastvec

    for n, bad, sizes in (
        (4, np.zeros(2, np.int64), ("4", "2")),
        (3, np.zeros(4, np.int64), ("3", "4")),
        (3, np.zeros(0, np.int64), ("3", "0")),
        (3, np.int64(0), ("3",)),
        (3, 0, ("3",)),
        (3, [], ("3", "0")),
    ):
        env = fastvec.make("CartPole-v1", n=n)
        env.reset(seed=0)
        with pytest.raises(ValueError, match="actions") as caught:
            env.step(bad)
        assert all(size in str(caught.value) for size in sizes), caught.value
        assert env.step(np.zeros(n, np.int64))[1].sum() == n, "the env is usable"


def test_c1_wrong_counts_are_errors_with_both_sizes():
    run_in_child(give_wrong_counts)


def test_c2_actions_in_a_column_are_refused_with_both_shapes():
    env = fastvec.make("CartPole-v1", n=3)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"\(3, 1\)") as caught:
        env.step(np.zeros((3, 1), np.int64))
    assert "(3,)" in str(caught.value)


C5_FORMS = {
    "int32": lambda row: row.astype(np.int32),
    "uint8": lambda row: row.astype(np.uint8),
    "bool": lambda row: row.astype(bool),
    "list": lambda row: row.tolist(),
    "tuple": lambda row: tuple(row.tolist()),
    "strided": lambda row: np.repeat(row, 2)[::2],
    "reversed": lambda row: row[::-1].copy()[::-1],
    "big-endian": lambda row: row.astype(">i8"),
    "read-only": lambda row: np.frombuffer(row.tobytes(), np.int64),
}


@pytest.mark.parametrize("form", C5_FORMS.values(), ids=C5_FORMS)
def test_c5_any_form_of_the_same_actions_gives_the_same(form):
    actions = np.random.default_rng(0).integers(0, 2, (100, 3))
    rows = [form(row) for row in actions]
    given, plain = (play(fastvec.make("CartPole-v1", n=3), each, seed=0) for each in (rows, actions))
    for name, array in plain.items():
        assert given[name].tobytes() == array.tobytes()
    assert all((np.asarray(row) == before).all() for row, before in zip(rows, actions, strict=True))


def test_c11_what_was_returned_stays_as_it_was():
    env = fastvec.make("CartPole-v1", n=4, max_episode_steps=4, autoreset_mode="SameStep")
    kept, copies = [env.reset(seed=0)[0]], []
    copies.append(kept[0].copy())
    for _ in range(10):
        obs, rewards, terminations, truncations, info = env.step(np.ones(4, np.int64))
        for array in (obs, rewards, terminations, truncations, *(info[key] for key in info if key != "final_info")):
            kept.append(array)
            copies.append(array.copy())
    env.close()
    assert len(kept) > 41
    for array, before in zip(kept, copies, strict=True):
        assert (array == before).all()


def test_c14_the_cliff_is_no_end():
    env = fastvec.make("CliffWalking-v1", n=1)
    assert env.reset(seed=0)[0].tolist() == [36]
    for action, state, reward in ((1, 36, -100.0), (0, 24, -1.0)):
        obs, rewards, terminations, truncations, info = env.step([action])
        assert (obs[0], rewards[0], terminations[0], truncations[0]) == (state, reward, False, False)
        assert info["prob"].tolist() == [1.0]


def test_c14_a_slippery_step_goes_three_ways_alike():
    """Chi-square with two degrees of freedom; 13.8 is exceeded by chance once in a thousand seeds."""
    lanes = 30_000
    env = fastvec.make("FrozenLake-v1", n=lanes)
    assert not env.reset(seed=0)[0].any()
    obs, *_ = env.step(np.full(lanes, 2))
    states, counts = np.unique(obs, return_counts=True)
    assert states.tolist() == [0, 1, 4]
    assert ((counts - lanes / 3) ** 2 / (lanes / 3)).sum() < 13.8


def test_c14_an_illegal_drop_costs_10_and_changes_nothing():
    taxi = next(env_id for env_id in NATIVE_ENVS if env_id.startswith("Taxi"))
    env = fastvec.make(taxi, n=20)
    before, info = env.reset(seed=0)
    assert info["action_mask"].shape == (20, 6)
    assert info["action_mask"].dtype == np.int8
    assert not info["action_mask"][:, 5].any(), "nobody is in the taxi yet"
    obs, rewards, terminations, _, info = env.step(np.full(20, 5))
    assert obs.tolist() == before.tolist()
    assert rewards.tolist() == [-10.0] * 20
    assert not terminations.any()
    assert not info["action_mask"][:, 5].any()


def test_c15_a_step_before_the_first_reset_is_an_error():
    with pytest.raises(ResetNeeded, match="reset"):
        fastvec.make("CartPole-v1", n=2).step([0, 0])


def test_e6_closing_twice_and_calling_after_close():
    env = fastvec.make("CartPole-v1", n=2)
    env.reset(seed=0)
    env.close()
    env.close()
    for call in (lambda: env.step([0, 0]), env.reset, env.render):
        with pytest.raises(ClosedEnvironmentError, match="closed"):
            call()


def count_resources_over_100_cycles():
    import gc
    import os
    import resource

    import fastvec

    def cycle():
        env = fastvec.make("CartPole-v1", n=5000, episode_stats=True, num_threads=2)
        env.reset(seed=0)
        for _ in range(3):
            env.step([0] * 5000)
        env.close()

    def resources():
        gc.collect()
        threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
        files = len(os.listdir("/dev/fd"))
        return threads, files

    for _ in range(20):
        cycle()
    before, peak = resources(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100):
        cycle()
    assert resources() == before
    # An env of this size takes about a megabyte; a hundred that stay would show.
    unit = 1024 if os.uname().sysname == "Linux" else 1
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) * unit < 20e6


def test_e8_a_hundred_envs_leave_nothing_behind():
    run_in_child(count_resources_over_100_cycles)


@pytest.mark.parametrize("num_envs", [0, -1, 2.5, True, "4", None])
def test_e11_bad_numbers_of_lanes_are_refused(num_envs):
    with pytest.raises((ValueError, TypeError), match=r"num_envs|\bn\b") as caught:
        fastvec.make("CartPole-v1", n=num_envs)
    assert repr(num_envs) in str(caught.value)


@pytest.mark.parametrize("num_envs", [1, 255, 256, 257, 100_000, 1_000_000, np.int64(3)])
def test_e11_other_numbers_of_lanes_run(num_envs):
    env = fastvec.make("CartPole-v1", n=num_envs)
    env.reset(seed=0)
    obs, rewards, *_ = env.step(np.zeros(num_envs, np.int64))
    assert obs.shape == (num_envs, 4)
    assert rewards.sum() == num_envs


def test_e11_memory_grows_linearly():
    sizes = []
    for n in (20_000, 40_000, 80_000):
        tracemalloc.start()
        env = fastvec.make("CartPole-v1", n=n)
        env.reset(seed=0)
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        env.close()
    assert 1.8 < sizes[1] / sizes[0] < 2.2
    assert 1.8 < sizes[2] / sizes[1] < 2.2
