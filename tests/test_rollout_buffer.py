"""fastvec.RolloutBuffer: its rows are what the env returns, in every mode; its advantages are those of each episode."""

import copy
import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from bits import assert_same_bits
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import fastvec

MODES = ("SameStep", "NextStep", "Disabled")
N, STEPS = 4, 30

# A space of each kind, with limits low enough that every mode truncates now and then.
ENVS = {
    "CartPole-v1": 15,  # Box, Discrete
    "Pendulum-v1": 7,  # Box, Box
    "FrozenLake-v1": 6,  # Discrete, Discrete
    "Blackjack-v1": 1,  # Tuple, Discrete
}


def parts(observation):
    return observation if isinstance(observation, tuple) else (observation,)


def make(env_id, mode, n=N):
    return fastvec.make(env_id, n=n, autoreset_mode=mode, max_episode_steps=ENVS[env_id])


def make_sync(env_id, mode, n=N):
    def one():
        return gymnasium.make(env_id, max_episode_steps=ENVS[env_id])

    return SyncVectorEnv([one] * n, autoreset_mode=AutoresetMode(mode))


def actions_of(env, seed, count):
    env.action_space.seed(seed)
    return [env.action_space.sample() for _ in range(count)]


def expected_rollout(env, actions, observation):
    """(observations before, results, final observations, last observation) by plain steps, everything copied."""
    before, results, finals = [], [], []
    for action in actions:
        before.append([part.copy() for part in parts(observation)])
        observation, rewards, terminations, truncations, info = env.step(action)
        results.append((rewards.copy(), terminations.copy(), truncations.copy()))
        for lane in np.flatnonzero(truncations & ~terminations):
            if "final_obs" in info:
                final = info["final_obs"]
                finals.append([part[lane] for part in final] if isinstance(final, tuple) else [final[lane]])
            elif env.metadata["autoreset_mode"] is AutoresetMode.DISABLED:
                finals.append([part[lane].copy() for part in parts(observation)])
        ended = terminations | truncations
        if env.metadata["autoreset_mode"] is AutoresetMode.DISABLED and ended.any():
            observation, _ = env.reset(options={"reset_mask": ended})
    return before, results, finals, observation


@pytest.mark.parametrize("maker", [make, make_sync])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", ENVS)
def test_rows_are_what_the_env_returns(env_id, mode, maker):
    plain = make(env_id, mode)
    buffer = fastvec.RolloutBuffer(maker(env_id, mode), STEPS)
    observation, _ = plain.reset(seed=5)
    buffer.reset(seed=5)
    truncated_alone = 0
    for rollout in range(2):
        actions = actions_of(plain, rollout, STEPS)
        before, results, finals, observation = expected_rollout(plain, actions, observation)
        for action in actions:
            buffer.step(action)
        assert buffer.full
        for i, array in enumerate(parts(buffer.observations)):
            assert array.dtype == before[0][i].dtype
            assert array.tolist() == [row[i].tolist() for row in before]
        rewards, terminations, truncations = (np.stack(each) for each in zip(*results, strict=True))
        assert buffer.actions.tolist() == [action.tolist() for action in actions]
        assert buffer.rewards.tolist() == rewards.tolist()
        assert buffer.terminations.tolist() == terminations.tolist()
        assert buffer.truncations.tolist() == truncations.tolist()
        for i, array in enumerate(parts(buffer.final_observations)):
            assert array.dtype == before[0][i].dtype
            assert array.tolist() == [final[i].tolist() for final in finals]
        assert [part.tolist() for part in parts(buffer.observation)] == [part.tolist() for part in parts(observation)]
        truncated_alone += len(finals)
        buffer.restart()
    assert (truncated_alone > 0) == (mode != "NextStep")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", ENVS)
def test_a_native_env_writes_to_the_buffer_itself(env_id, mode):
    buffer = fastvec.RolloutBuffer(make(env_id, mode), 3)
    buffer.reset(seed=0)
    observation, rewards, terminations, truncations, _ = buffer.step(buffer.env.action_space.sample())
    for row, part in zip(parts(observation), parts(buffer.observations), strict=True):
        assert np.shares_memory(row, part[1])
    assert np.shares_memory(rewards, buffer.rewards[0])
    assert np.shares_memory(terminations, buffer.terminations[0])
    assert np.shares_memory(truncations, buffer.truncations[0])
    for part in parts(buffer.observation):
        assert any(np.shares_memory(part, whole) for whole in parts(buffer.observations))


def value_of(observations):
    """A value that tells every observation apart, float32."""
    return observations @ np.float32([1, 0.5, 0.25, 0.125])


def filled(mode, rollouts, seed=3):
    """Yields a finished buffer of CartPole with values, once for each rollout."""
    buffer = fastvec.RolloutBuffer(make("CartPole-v1", mode), STEPS)
    buffer.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(rollouts):
        while not buffer.full:
            buffer.step(rng.integers(2, size=N), values=value_of(buffer.observation))
        buffer.finish(value_of(buffer.observation), value_of(buffer.final_observations), gamma=0.9, gae_lambda=0.8)
        yield buffer
        buffer.restart()


@pytest.mark.parametrize("mode", MODES)
def test_advantages_are_those_of_gae(mode):
    for buffer in filled(mode, 3):
        finals = np.zeros((STEPS, N), np.float32)
        if mode != "NextStep":
            alone = buffer.truncations & ~buffer.terminations
            finals[alone] = value_of(buffer.final_observations)
        pending = {"pending": buffer._pending} if mode == "NextStep" else {"final_values": finals}
        advantages, returns = fastvec.gae(
            buffer.rewards,
            value_of(buffer.observations),
            buffer.terminations,
            buffer.truncations,
            value_of(buffer.observation),
            gamma=0.9,
            gae_lambda=0.8,
            autoreset_mode=mode,
            **pending,
        )
        assert buffer.advantages.tobytes() == advantages.tobytes()
        assert buffer.returns.tobytes() == returns.tobytes()


@pytest.mark.parametrize("steps", [1, 7])
def test_every_mode_has_the_same_transitions_with_the_same_targets(steps):
    """With lambda 0 a return depends on one step alone, so that it does not matter where rollouts are cut."""
    found = {}
    for mode in MODES:
        env = make("CartPole-v1", mode, n=1)
        buffer = fastvec.RolloutBuffer(env, steps)
        buffer.reset(seed=3)
        found[mode] = []
        while len(found[mode]) < 100:
            while not buffer.full:
                buffer.step([1], values=value_of(buffer.observation))
            buffer.finish(value_of(buffer.observation), value_of(buffer.final_observations), gae_lambda=0.0)
            flat = buffer.flat()
            for row in np.flatnonzero(buffer.transitions):
                found[mode].append((flat.observations[row].tolist(), flat.returns[row].item()))
            buffer.restart()
    assert found["NextStep"][:100] == found["SameStep"][:100]
    assert found["Disabled"][:100] == found["SameStep"][:100]


@pytest.mark.parametrize("batch_size", [1, 7, 64, 1000])
@pytest.mark.parametrize("mode", MODES)
def test_minibatches_have_every_transition_once(mode, batch_size):
    reset_rows = 0
    for buffer in filled(mode, 2):
        batches = list(buffer.minibatches(batch_size, np.random.default_rng(0)))
        wanted = np.flatnonzero(buffer.transitions)
        assert sorted(np.concatenate(batches).tolist()) == wanted.tolist()
        sizes = [len(batch) for batch in batches]
        assert max(sizes) <= batch_size
        assert max(sizes) - min(sizes) <= 1
        again = list(buffer.minibatches(batch_size, 0))
        assert [batch.tolist() for batch in again] == [batch.tolist() for batch in batches]
        other = np.concatenate(list(buffer.minibatches(batch_size, 1)))
        assert other.tolist() != np.concatenate(batches).tolist()
        reset_rows += STEPS * N - len(wanted)
    assert (reset_rows > 0) == (mode == "NextStep")


def test_a_buffer_of_reset_rows_alone_has_no_minibatches():
    buffer = fastvec.RolloutBuffer(fastvec.make("CartPole-v1", n=2, max_episode_steps=1), 1)
    buffer.reset(seed=0)
    buffer.step([0, 0])
    assert len(list(buffer.minibatches(2))) == 1
    buffer.restart()
    buffer.step([0, 0])
    assert list(buffer.minibatches(2)) == []


@pytest.mark.parametrize("env_id", ENVS)
def test_flat_rows_are_views(env_id):
    buffer = fastvec.RolloutBuffer(make(env_id, "SameStep"), 5)
    buffer.reset(seed=0)
    for action in actions_of(buffer.env, 0, 5):
        buffer.step(action, values=np.arange(N), log_probs=np.arange(N))
    flat = buffer.flat()
    for name, merged in vars(flat).items():
        for one, array in zip(parts(merged), parts(getattr(buffer, name)), strict=True):
            assert one.shape == (5 * N, *array.shape[2:])
            assert one[2 * N + 3].tolist() == array[2, 3].tolist()
            assert np.shares_memory(one, array)


def test_tensors_share_the_memory():
    torch = pytest.importorskip("torch", reason="needs torch, which CI's tests-with-sb3 has")
    buffers = filled("SameStep", 2)
    buffer = next(buffers)
    tensors = buffer.tensors()
    for name, array in vars(buffer.flat()).items():
        tensor = getattr(tensors, name)
        assert tensor.data_ptr() == array.ctypes.data, name
        assert tensor.numpy().dtype == array.dtype, name
        assert tensor.shape == array.shape, name
    first = tensors.observations.clone()
    next(buffers)  # the next rollout: the same tensors show it
    assert not torch.equal(tensors.observations, first)
    assert tensors.observations.tolist() == buffer.flat().observations.tolist()
    index = next(buffer.minibatches(8, 0))
    assert tensors.returns[index].tolist() == buffer.flat().returns[index].tolist()
    blackjack = fastvec.RolloutBuffer(make("Blackjack-v1", "SameStep"), 2)
    assert [tensor.shape for tensor in blackjack.tensors().observations] == [(2 * N,)] * 3


def test_torch_tensors_are_taken():
    torch = pytest.importorskip("torch", reason="needs torch, which CI's tests-with-sb3 has")
    buffer = fastvec.RolloutBuffer(make("CartPole-v1", "SameStep"), 1)
    buffer.reset(seed=0)
    buffer.step(torch.tensor([0, 1, 0, 1]), values=torch.ones(N), log_probs=torch.full((N,), -0.5))
    buffer.finish(torch.ones(N), torch.ones(0))
    assert buffer.actions.tolist() == [[0, 1, 0, 1]]
    assert buffer.log_probs.tolist() == [[-0.5] * N]
    assert buffer.returns.dtype == np.float32


def test_torch_is_imported_by_tensors_alone():
    code = (
        "import sys, fastvec; b = fastvec.RolloutBuffer(fastvec.make('CartPole-v1', n=2), 1); b.reset(seed=0); "
        "b.step([0, 1]); b.finish([0, 0]); list(b.minibatches(2)); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_float64_buffer():
    buffer = fastvec.RolloutBuffer(make("CartPole-v1", "SameStep"), 1, dtype=np.float64)
    buffer.reset(seed=0)
    buffer.step([0] * N, values=[0.1] * N)
    buffer.finish([0.2] * N)
    assert buffer.returns.tolist() == [[1 + 0.99 * 0.2 - 0.1 + 0.1] * N]


def test_a_full_reset_clears_what_was_pending():
    buffer = fastvec.RolloutBuffer(fastvec.make("CartPole-v1", n=2, max_episode_steps=1), 1)
    buffer.reset(seed=0)
    buffer.step([0, 0])
    buffer.restart()
    buffer.reset(seed=0)
    buffer.step([0, 0])
    assert buffer.transitions.tolist() == [[True, True]]


# Refusals


def test_a_step_that_is_refused_changes_nothing():
    buffer = fastvec.RolloutBuffer(make("CartPole-v1", "SameStep"), 2)
    buffer.reset(seed=0)
    before = buffer.observation.copy()
    for arguments, error, message in (
        (([0, 0, 0, 2],), ValueError, r"actions\[3\] = 2"),
        (([0, 0, 0],), ValueError, r"actions have shape \(3,\); expected \(4,\)"),
        ((np.zeros(N),), TypeError, "actions are float64; expected int64"),
        (([0] * N, [0.0]), ValueError, r"values have shape \(1,\); expected \(4,\)"),
        (([0] * N, [0.0] * N, ["a"] * N), TypeError, "log_probs are <U1"),
    ):
        with pytest.raises(error, match=message):
            buffer.step(*arguments)
        assert buffer.observation.tolist() == before.tolist()
    buffer.step([0] * N)
    buffer.step([0] * N)
    assert buffer.full


def test_calls_out_of_order_are_refused():
    buffer = fastvec.RolloutBuffer(make("CartPole-v1", "SameStep"), 2)
    for call in (
        lambda: buffer.step([0] * N),
        buffer.restart,
        lambda: buffer.observation,
        lambda: buffer.finish([0] * N),
    ):
        with pytest.raises(RuntimeError, match=r"has not begun; call the buffer's reset\(\) first"):
            call()
    buffer.reset(seed=0)
    buffer.step([0] * N)
    for call in (
        buffer.restart,
        lambda: buffer.finish([0] * N),
        lambda: buffer.minibatches(2),
        lambda: buffer.transitions,
    ):
        with pytest.raises(RuntimeError, match="1 of 2 rows are filled"):
            call()
    buffer.step([0] * N)
    with pytest.raises(RuntimeError, match=r"all 2 rows are full; restart\(\)"):
        buffer.step([0] * N)
    with pytest.raises(ValueError, match="batch_size is 0"):
        buffer.minibatches(0)


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
def test_final_observations_without_values_are_refused(mode):
    buffer = fastvec.RolloutBuffer(fastvec.make("Pendulum-v1", n=2, autoreset_mode=mode, max_episode_steps=1), 1)
    buffer.reset(seed=0)
    buffer.step(np.zeros((2, 1), np.float32))
    with pytest.raises(
        ValueError, match=r"there are no final_values; expected \(2,\), the values of final_observations"
    ):
        buffer.finish([0, 0])
    with pytest.raises(ValueError, match=r"final_values have shape \(1,\); expected \(2,\)"):
        buffer.finish([0, 0], [0])
    buffer.finish([0, 0], [1, 2], gamma=1.0)
    assert (buffer.returns[0] - buffer.rewards[0].astype(np.float32)).round(5).tolist() == [1.0, 2.0]


def test_envs_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match="env is str; expected a VectorEnv"):
        fastvec.RolloutBuffer("CartPole-v1", 2)
    env = fastvec.make("CartPole-v1", n=2)
    with pytest.raises(ValueError, match="steps is 0"):
        fastvec.RolloutBuffer(env, 0)
    with pytest.raises(TypeError, match="dtype is float16"):
        fastvec.RolloutBuffer(env, 2, dtype=np.float16)
    env.single_observation_space = gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(2)})
    with pytest.raises(TypeError, match="the space of observations is Dict"):
        fastvec.RolloutBuffer(env, 2)
    env.metadata = {}
    with pytest.raises(ValueError, match=r"metadata\['autoreset_mode'\] is None"):
        fastvec.RolloutBuffer(env, 2)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda buffer: pickle.loads(pickle.dumps(buffer))])
def test_a_copy_goes_on_alike_and_on_its_own(duplicate):
    buffer = fastvec.RolloutBuffer(fastvec.make("CartPole-v1", 2, autoreset_mode="SameStep"), 4)
    buffer.reset(seed=0)
    buffer.step([0, 1])
    other = duplicate(buffer)
    for _ in range(3):
        buffer.step([1, 1])
        other.step([1, 1])
    for name in ("observations", "rewards", "terminations", "truncations", "observation"):
        assert_same_bits(getattr(other, name), getattr(buffer, name), name)
        assert not np.shares_memory(getattr(other, name), getattr(buffer, name))


def test_a_reset_of_some_lanes_leaves_the_pending_reset_of_others():
    env = fastvec.make("CartPole-v1", 2, autoreset_mode="NextStep", max_episode_steps=3)
    buffer = fastvec.RolloutBuffer(env, 3)
    buffer.reset(seed=0)
    for _ in range(3):
        buffer.step([0, 1])
    buffer.restart()
    buffer.reset(options={"reset_mask": np.array([True, False])})
    for _ in range(3):
        buffer.step([0, 1])
    assert buffer.transitions[0].tolist() == [True, False]
