"""Shows every row of docs/differences.md: what SyncVectorEnv does, and what fastvec does instead.

tests/test_docs.py checks that the page names all of these tests and no others."""

import contextlib
import copy
import functools
import threading
import time
import warnings
import weakref

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

import fastvec

# From seed 3 with these actions, lane 1 of two falls at step 8, and lane 0 at step 10.
SEED, ACTIONS, LANE_1_FALLS = 3, np.array([1, 0]), 8
NEXT_STEP, SAME_STEP, DISABLED = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED


def make_sync(n=2, mode=NEXT_STEP, copy=True, **kwargs):
    kwargs = {"disable_env_checker": True, **kwargs}
    return SyncVectorEnv([lambda: gymnasium.make("CartPole-v1", **kwargs)] * n, copy=copy, autoreset_mode=mode)


def make_native(n=2, mode=NEXT_STEP, **kwargs):
    return fastvec.make("CartPole-v1", n, autoreset_mode=mode, **kwargs)


def make_pair_of(id, n=2, mode=NEXT_STEP, **kwargs):
    """(SyncVectorEnv, fastvec's env) of any id, as they are made."""
    make_one = functools.partial(gymnasium.make, id, disable_env_checker=True, **kwargs)
    return SyncVectorEnv([make_one] * n, autoreset_mode=mode), fastvec.make(id, n, autoreset_mode=mode, **kwargs)


def make_both(n=2, mode=NEXT_STEP, seed=SEED):
    """(SyncVectorEnv, fastvec's env), both reset with the same seed."""
    sync, native = make_sync(n, mode), make_native(n, mode)
    assert np.array_equal(sync.reset(seed=seed)[0], native.reset(seed=seed)[0])
    return sync, native


def until_lane_1_falls(*envs):
    """Steps until lane 1 ends; returns each env's last step."""
    for _ in range(LANE_1_FALLS):
        results = [env.step(ACTIONS) for env in envs]
    for result in results:
        assert result[2].tolist() == [False, True]
    return results


def states(env):
    return np.array(env.get_attr("state"))


def moved(env, call, error):
    """Makes a call that must raise; returns which lanes have another state afterwards."""
    before = states(env)
    with pytest.raises(error):
        call(env)
    return (states(env) != before).any(axis=1).tolist()


def test_final_obs_is_one_array():
    theirs, ours = (result[4] for result in until_lane_1_falls(*make_both(mode=SAME_STEP)))
    assert theirs.keys() == ours.keys()
    assert theirs["final_obs"].dtype == object
    assert theirs["final_obs"][0] is None
    assert ours["final_obs"].dtype == np.float32
    assert ours["final_obs"].shape == (2, 4)
    assert not ours["final_obs"][0].any()
    assert np.array_equal(ours["final_obs"][1], theirs["final_obs"][1])
    assert ours["_final_obs"].tolist() == theirs["_final_obs"].tolist() == [False, True]


def test_final_obs_of_blackjack_is_a_tuple():
    sync, native = make_pair_of("Blackjack-v1", mode=SAME_STEP)
    for env in (sync, native):
        env.reset(seed=SEED)
    theirs, ours = (env.step(np.array([1, 0]))[4] for env in (sync, native))
    assert theirs["_final_obs"].tolist() == ours["_final_obs"].tolist() == [False, True]
    assert theirs["final_obs"][0] is None
    assert [part.dtype for part in ours["final_obs"]] == [np.int64] * 3
    assert [part[0] for part in ours["final_obs"]] == [0, 0, 0]
    assert tuple(part[1] for part in ours["final_obs"]) == theirs["final_obs"][1]
    for env, error in ((sync, None), (native, AssertionError)):
        env = DictInfoToList(env)
        env.reset(seed=SEED)
        with pytest.raises(error) if error else contextlib.nullcontext():
            env.step(np.array([1, 0]))


def test_all_actions_are_checked_before_any_lane_moves():
    sync, native = make_both()
    assert moved(sync, lambda env: env.step(np.array([1, 2])), AssertionError) == [True, False]
    assert moved(native, lambda env: env.step(np.array([1, 2])), ValueError) == [False, False]


def test_actions_of_lanes_that_await_their_reset_are_checked_too():
    sync, native = make_both()
    until_lane_1_falls(sync, native)
    assert sync.step(np.array([1, 99]))[1].tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"actions\[1\] = 99"):
        native.step(np.array([1, 99]))


@pytest.mark.parametrize(
    ("actions", "theirs", "ours"),
    [
        (np.array([0, 2]), AssertionError, ValueError),
        (np.array([0, -1]), AssertionError, ValueError),
        (np.array([[0], [1]]), AssertionError, ValueError),
        (0, TypeError, ValueError),
        (np.array([0.0, 1.0]), AssertionError, TypeError),
        (["0", "1"], AssertionError, TypeError),
    ],
)
def test_bad_actions_are_value_or_type_errors(actions, theirs, ours):
    sync, native = make_both()
    with pytest.raises(theirs):
        sync.step(actions)
    with pytest.raises(ours):
        native.step(actions)


def test_whole_floats_are_no_discrete_actions():
    sync, native = make_pair_of("FrozenLake-v1")
    for env in (sync, native):
        env.reset(seed=SEED)
    actions = np.array([1.0, 2.0])
    sync.step(actions)
    with pytest.raises(TypeError, match=r"float64.*astype\(np.int64\)"):
        native.step(actions)


@pytest.mark.parametrize("dtype", [np.bool_, np.uint64])
def test_bool_and_uint64_actions_are_taken(dtype):
    sync, native = make_both()
    with pytest.raises(AssertionError):
        sync.step(ACTIONS.astype(dtype))
    sync, native = make_both()
    assert np.array_equal(native.step(ACTIONS.astype(dtype))[0], sync.step(ACTIONS)[0])


@pytest.mark.parametrize(
    ("form", "error"),
    [(lambda: ACTIONS.astype(object), TypeError), (lambda: (action for action in (1, 0)), ValueError)],
    ids=["object", "generator"],
)
def test_object_arrays_and_generators_are_no_actions(form, error):
    sync, native = make_both()
    sync.step(form())
    with pytest.raises(error):
        native.step(form())


def test_a_refused_reset_changes_nothing():
    bad_seed = {"seed": [7, -1]}
    bad_option = {"seed": 7, "options": {"low": 1, "high": 0}}
    for bad, error in ((bad_seed, gymnasium.error.Error), (bad_option, ValueError)):
        sync, native = make_both()
        for env, kept in ((sync, False), (native, True)):
            with pytest.raises(error):
                env.reset(**bad)
            assert (env.np_random_seed == (SEED, SEED + 1)) is kept


def test_seeds_of_lanes_outside_of_the_mask_are_checked_too():
    sync, native = make_both()
    call = {"seed": [7, -1], "options": {"reset_mask": np.array([True, False])}}
    sync.reset(**copy.deepcopy(call))
    with pytest.raises(gymnasium.error.Error, match=r"seed\[1\]"):
        native.reset(**call)


@pytest.mark.parametrize("bad", [{"seed": {7, 8}}, {"options": []}, {"options": "x"}], ids=str)
def test_seeds_are_a_sequence_and_options_a_dict(bad):
    sync, native = make_both()
    sync.reset(**bad)
    with pytest.raises(TypeError, match=next(iter(bad))):
        native.reset(**bad)


BAD_OPTIONS = {
    "nan": {"low": np.nan},
    "infinite": {"high": np.inf},
    "beyond float64": {"high": 10**400},
    "too far apart": {"low": -1e308, "high": 1e308},
}


@pytest.mark.parametrize("options", BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_reset_options_are_finite(options):
    sync, native = make_both()
    with pytest.raises(OverflowError):
        sync.reset(options=options)
    with pytest.raises(ValueError, match="finite"):
        native.reset(options=options)


def test_the_mask_stays_in_the_callers_dict():
    for env, left in zip(make_both(), ([], ["reset_mask"]), strict=True):
        options = {"reset_mask": np.array([True, False])}
        env.reset(options=options)
        assert list(options) == left


def test_a_masked_reset_leaves_the_statistics_of_other_lanes():
    """Gymnasium's wrapper looks for the mask after SyncVectorEnv has taken it away, and so forgets all lanes."""
    lengths = []
    for env in (make_sync(mode=DISABLED), make_native(mode=DISABLED)):
        env = RecordEpisodeStatistics(env)
        env.reset(seed=SEED)
        until_lane_1_falls(env)
        env.reset(options={"reset_mask": np.array([False, True])})
        for _ in range(2):
            *_, info = env.step(ACTIONS)
        lengths.append(info["episode"]["l"][0])
    assert lengths == [2, 10]


def test_the_first_reset_is_of_all_lanes():
    mask = {"reset_mask": np.array([True, True])}
    make_sync().reset(seed=SEED, options=dict(mask))
    with pytest.raises(ResetNeeded, match="reset_mask"):
        make_native().reset(seed=SEED, options=mask)


def test_a_masked_reset_shows_the_other_lanes_as_they_are():
    sync, native = make_both()
    shown = []
    for env in (sync, native):
        env.set_attr("state", [np.full(4, 0.5), np.full(4, 0.25)])
        shown.append(env.reset(options={"reset_mask": np.array([True, False])})[0])
    assert np.array_equal(shown[0][0], shown[1][0])
    assert shown[0][1, 0] != 0.25
    assert shown[1][1, 0] == 0.25


CALLS = {
    "step": lambda env: env.step(ACTIONS),
    "reset": lambda env: env.reset(),
    "render": lambda env: env.render(),
    "set_attr": lambda env: env.set_attr("gravity", 1.0),
}


@pytest.mark.filterwarnings("ignore:.*render")
@pytest.mark.parametrize("name", CALLS)
def test_calls_after_close_are_refused(name):
    sync, native = make_both()
    for env in (sync, native):
        env.close()
    CALLS[name](sync)
    with pytest.raises(ClosedEnvironmentError, match=name):
        CALLS[name](native)


def test_disabled_mode_refuses_ended_lanes_before_any_lane_moves():
    sync, native = make_both(mode=DISABLED)
    until_lane_1_falls(sync, native)
    assert moved(sync, lambda env: env.step(ACTIONS), AssertionError) == [True, False]
    assert moved(native, lambda env: env.step(ACTIONS), ResetNeeded) == [False, False]


def test_a_second_thread_is_refused():
    n = 200_000
    env, actions = make_native(n), np.ones(n, np.int64)
    env.reset(seed=SEED)
    refusals, deadline = [], time.monotonic() + 60

    def step_on():
        while not refusals and time.monotonic() < deadline:
            try:
                env.step(actions)
            except RuntimeError as error:
                refusals.append(str(error))

    threads = [threading.Thread(target=step_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refusals
    assert "another thread" in refusals[0]


def test_copy_false_reuses_every_array():
    for env, reused in ((make_sync(copy=False), [True, False, False, False]), (make_native(copy=False), [True] * 4)):
        env.reset(seed=SEED)
        first, second = env.step(ACTIONS), env.step(ACTIONS)
        assert [one is other for one, other in zip(first[:4], second[:4], strict=True)] == reused


def test_drawing_from_np_random_leaves_the_lanes_as_they_are():
    for env, undisturbed in zip(make_both(), (False, True), strict=True):
        twin = make_native()
        twin.reset(seed=SEED)
        for generator in env.np_random:
            generator.random()
        assert np.array_equal(env.reset()[0], twin.reset()[0]) is undisturbed


def test_set_attr_np_random_copies_the_generators_state():
    sync, native = make_both()
    for env in (sync, native):
        env.set_attr("np_random", np.random.default_rng(5))
    theirs, ours = sync.reset()[0], native.reset()[0]
    assert np.array_equal(theirs[0], ours[0])
    assert not np.array_equal(theirs[0], theirs[1])
    assert np.array_equal(ours[0], ours[1])


def test_generators_are_pcg64():
    sync, native = make_both()
    for value in (np.random.Generator(np.random.MT19937(0)), None):
        sync.set_attr("np_random", value)
        with pytest.raises(TypeError, match="PCG64"):
            native.set_attr("np_random", value)


def test_get_attr_copies_the_state():
    sync, native = make_both()
    for env in (sync, native):
        env.get_attr("state")[0][:] = 0.5
    assert states(sync)[0].tolist() == [0.5] * 4
    assert states(native)[0].tolist() != [0.5] * 4


def test_get_attr_gives_the_state_as_the_env_makes_it():
    sync, native = make_both()
    for env in (sync, native):
        env.set_attr("state", [[0, 0, 0, 0]] * 2)
    assert type(sync.get_attr("state")[0]) is list
    assert native.get_attr("state")[0].dtype == np.float64


def test_state_is_zero_before_the_first_reset():
    assert make_sync().get_attr("state") == (None, None)
    assert states(make_native()).tolist() == [[0.0] * 4] * 2


UNKNOWN = ("steps_beyond_terminated", "screen", "clock")


def test_attributes_are_those_of_the_env_alone():
    """All that Gymnasium's CartPole has gives the same here, but for UNKNOWN; what its wrappers have is not there."""
    sync, native = make_both()
    for name in (*vars(sync.envs[0].unwrapped), "metadata", "np_random_seed", "render_mode", "spec"):
        if name in UNKNOWN or name.startswith("_np_random"):
            with pytest.raises(AttributeError, match=name):
                native.get_attr(name)
        elif name == "state":
            assert np.array_equal(states(native), states(sync))
        else:
            assert native.get_attr(name) == sync.get_attr(name), name
    for name in ("_elapsed_steps", "env", "unwrapped"):
        sync.get_attr(name)
        with pytest.raises(AttributeError, match=name):
            native.get_attr(name)


def test_call_has_no_methods_but_render():
    sync, native = make_both()
    sync.call("close")
    with pytest.raises(AttributeError, match="close"):
        native.call("close")
    assert sync.call("gravity", 1) == (9.8, 9.8)
    with pytest.raises(TypeError, match="gravity"):
        native.call("gravity", 1)


@pytest.mark.parametrize(("name", "value"), [("new_name", 1), ("action_space", None), ("metadata", {})])
def test_set_attr_sets_parameters_and_state_alone(name, value):
    sync, native = make_both()
    sync.set_attr(name, value)
    with pytest.raises(AttributeError, match=name):
        native.set_attr(name, value)


def test_set_attr_takes_numbers_and_refuses_all_or_none():
    sync, native = make_both()
    sync.set_attr("gravity", [1.0, "x"])
    with pytest.raises(TypeError, match="gravity"):
        native.set_attr("gravity", [1.0, "x"])
    assert sync.get_attr("gravity") == (1.0, "x")
    assert native.get_attr("gravity") == (9.8, 9.8)


@pytest.mark.parametrize("name", ["envs", "env_fns", "copy", "observation_mode", "autoreset_mode"])
def test_there_are_no_env_objects(name):
    sync, native = make_both()
    getattr(sync, name)
    assert not hasattr(native, name)


def test_render_modes_give_something_to_the_caller():
    assert make_sync(render_mode="human").render_mode == "human"
    with pytest.raises(ValueError, match="render_mode"):
        make_native(render_mode="human")
    assert make_sync(n=65, render_mode="rgb_array").render_mode == "rgb_array"
    with pytest.raises(ValueError, match="render_lanes"):
        make_native(n=65, render_mode="rgb_array")
    assert make_sync(render_mode="rgb_array").metadata["render_modes"] == ["human", "rgb_array"]
    assert make_native(render_mode="rgb_array").metadata["render_modes"] == ["rgb_array"]


def test_there_are_no_warnings_of_the_env_checker():
    outside = {"low": -9.0, "high": -8.0}
    with pytest.warns(UserWarning, match="not within the observation space"):
        make_sync(disable_env_checker=False).reset(seed=SEED, options=dict(outside))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_native().reset(seed=SEED, options=outside)


def test_episode_stats_are_those_of_the_wrapper():
    theirs, ours = RecordEpisodeStatistics(make_sync()), make_native(episode_stats=True)
    for env in (theirs, ours):
        env.reset(seed=SEED)
    ends = 0
    for _ in range(60):
        their_info, our_info = theirs.step(ACTIONS)[4], ours.step(ACTIONS)[4]
        assert our_info.keys() == their_info.keys()
        if "episode" in our_info:
            ends += 1
            assert our_info["_episode"].tolist() == their_info["_episode"].tolist()
            for name in ("r", "l", "t"):
                assert our_info["episode"][name].dtype == their_info["episode"][name].dtype
            for name in ("r", "l"):
                assert np.array_equal(our_info["episode"][name], their_info["episode"][name])
            assert (our_info["episode"]["t"] >= 0).all()
    assert ends > 2
    assert theirs.episode_count > 2
    assert not hasattr(ours, "episode_count")


def test_prob_is_never_cut_off():
    """Lane 0 reaches its limit, and so is reset in a step in which lane 1, reset in between, takes its last."""
    sync, native = make_pair_of("FrozenLake-v1", max_episode_steps=2)
    for env in (sync, native):
        env.reset(seed=SEED)
        env.step(np.array([0, 0]))
        env.reset(options={"reset_mask": np.array([False, True])})
        env.step(np.array([0, 0]))
    theirs, ours = (env.step(np.array([0, 0]))[4]["prob"] for env in (sync, native))
    assert theirs.dtype == np.int64
    assert theirs.tolist() == [1, 0]
    assert ours.dtype == np.float64
    assert ours[0] == 1.0
    assert ours[1] in (1 / 3, (1 - 1 / 3) / 2)  # ahead, or to a side


def maps_of(env, lanes):
    """For each lane the states that are reached by going right and down from the start of an empty first row."""
    paths = []
    for lane in range(lanes):
        env.reset(seed=[SEED] * lanes)
        path = []
        for action in [2, 1] * 7:
            obs, _, terminations, _, _ = env.step(np.full(lanes, action))
            path.append((int(obs[lane]), bool(terminations[lane])))
            if terminations[lane]:
                break
        paths.append(tuple(path))
    return paths


def test_a_random_map_is_one_for_all_lanes():
    lanes = 40
    sync, native = make_pair_of("FrozenLake-v1", lanes, desc=None, map_name=None, is_slippery=False)
    assert len(set(maps_of(sync, lanes))) > 1
    assert len(set(maps_of(native, lanes))) == 1
    others = [fastvec.make("FrozenLake-v1", 1, desc=None, map_name=None, is_slippery=False) for _ in range(lanes)]
    assert len({path for other in others for path in maps_of(other, 1)}) > 1


@pytest.mark.parametrize(
    ("id", "names"),
    [
        ("FrozenLake-v1", ["P", "desc", "initial_state_distrib", "lastaction"]),
        ("Blackjack-v1", ["player", "dealer", "dealer_top_card_suit"]),
    ],
)
def test_tables_and_hands_are_no_attributes(id, names):
    sync, native = make_pair_of(id)
    for env in (sync, native):
        env.reset(seed=SEED)
    if id == "Blackjack-v1":
        for name in ("player", "dealer"):
            assert [sum(hand) for hand in sync.get_attr(name)] == native.state[f"{name}_sum"].tolist()
    for name in names:
        values = list(sync.get_attr(name))
        sync.set_attr(name, values)
        with pytest.raises(AttributeError, match=name):
            native.get_attr(name)
        with pytest.raises(AttributeError, match=name):
            native.set_attr(name, values)


def test_a_state_that_is_none_cannot_be_set():
    sync, native = make_pair_of("FrozenLake-v1")
    for env in (sync, native):
        env.reset(seed=SEED)
    sync.set_attr("s", [3, 16])
    with pytest.raises(KeyError):
        sync.step(np.array([0, 0]))
    with pytest.raises(ValueError, match=r"s of lane 1 is 16; .* from 0 to 15"):
        native.set_attr("s", [3, 16])
    assert native.get_attr("s") == (0, 0)
    with pytest.raises(ValueError, match="read-only"):
        native.state["s"][1] = 3
    native.set_attr("s", [3, 15])
    assert native.get_attr("s") == (3, 15)


def test_taxi_orientation_stays_as_it_was_set():
    taxi = next(id for id in ("Taxi-v4", "Taxi-v3") if id in gymnasium.registry)
    sync, native = make_pair_of(taxi)
    for env in (sync, native):
        env.reset(seed=SEED)
        assert env.get_attr("taxi_orientation") == (0, 0)
        env.set_attr("taxi_orientation", [1, 2])
        assert env.get_attr("taxi_orientation") == (1, 2)
        env.reset()
    assert sync.get_attr("taxi_orientation") == (0, 0)
    assert native.get_attr("taxi_orientation") == (1, 2)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_unsigned_actions_do_not_wrap_round(dtype):
    left = np.zeros(2, np.int64)
    sync, native = make_pair_of("MountainCar-v0")
    signed, unsigned = [], []
    for env in (sync, native):
        for actions, results in ((left, signed), (left.astype(dtype), unsigned)):
            env.reset(seed=SEED)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of the overflow
                results.append(env.step(actions)[0])
    assert np.array_equal(signed[0], signed[1])
    assert (unsigned[0][:, 1] == np.float32(0.07)).all()
    assert np.array_equal(unsigned[1], signed[1])


def test_negative_actions_are_none():
    sync, native = make_pair_of("Acrobot-v1")
    for env in (sync, native):
        env.reset(seed=SEED)
    sync.step(np.array([-1, -3]))
    with pytest.raises(ValueError, match=r"actions\[0\] = -1"):
        native.step(np.array([-1, -3]))


@pytest.mark.parametrize("id", ["Pendulum-v1", "MountainCarContinuous-v0"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_actions_are_refused(id, dtype):
    sync, native = make_pair_of(id)
    for env in (sync, native):
        env.reset(seed=SEED)
    actions = np.array([[0.5], [np.nan]], dtype)
    before = states(native)
    with pytest.raises(ValueError, match=r"actions\[1, 0\] = nan"):
        native.step(actions)
    assert np.array_equal(states(native), before)
    rewards = sync.step(actions)[1]
    assert np.isnan(rewards).tolist() == [False, True]


def test_box_actions_have_one_of_two_precisions():
    sync, native = make_pair_of("Pendulum-v1")
    for env in (sync, native):
        env.reset(seed=SEED)
    for actions in (np.full((2, 1), 0.5, np.float16), np.full((2, 1), 0.5, np.longdouble)):
        sync.step(actions)
        with pytest.raises(TypeError, match=str(actions.dtype)):
            native.step(actions)
    sync.step([[10**30], [-(10**30)]])
    with pytest.raises(TypeError, match="object"):
        native.step([[10**30], [-(10**30)]])
    mixed = [np.full(1, 1 / 3, np.float32), np.full(1, 1 / 3)]
    rewards = {}
    for name, env in (("sync", sync), ("native", native)):
        env.reset(seed=SEED)
        rewards[name] = env.step(mixed)[1]
        env.reset(seed=SEED)
        rewards[f"{name}, float64"] = env.step(np.array(mixed))[1]
    assert rewards["sync"][0] != rewards["sync, float64"][0]
    assert np.array_equal(rewards["native"], rewards["native, float64"])


def test_what_python_cannot_compute_stays_in_its_lane():
    actions = np.array([[0.5], [1e200]])
    sync, native = make_pair_of("MountainCarContinuous-v0")
    _, undisturbed = make_pair_of("MountainCarContinuous-v0")
    for env in (sync, native, undisturbed):
        env.reset(seed=SEED)
    with pytest.raises(OverflowError):
        sync.step(actions)
    ours, expected = native.step(actions), undisturbed.step(np.array([[0.5], [1.0]]))
    assert np.array_equal(ours[0], expected[0])
    assert ours[1].tolist() == [expected[1][0], -np.inf]

    sync, native = make_pair_of("Pendulum-v1")
    for env in (sync, native):
        env.reset(seed=SEED)
        env.set_attr("m", [1.0, 0.0])
    with pytest.raises(ZeroDivisionError):
        sync.step(np.zeros((2, 1)))
    assert np.isfinite(native.step(np.zeros((2, 1)))[0][0]).all()

    sync, native = make_pair_of("MountainCar-v0")
    far = [np.array([-0.5, 0.0]), np.array([np.inf, 0.0])]
    for env in (sync, native):
        env.reset(seed=SEED)
        env.set_attr("state", far)
    with pytest.raises(ValueError, match=r"math domain error|finite"):
        sync.step(np.array([1, 1]))
    assert np.isfinite(native.step(np.array([1, 1]))[0]).all(axis=1).tolist() == [True, False]
    assert np.isfinite(native.reset()[0]).all()


def test_what_is_set_counts_as_what_the_env_itself_makes():
    for id, state in (("Pendulum-v1", np.array([1 / 3, 0.1])), ("MountainCarContinuous-v0", np.array([-1 / 3, 0.01]))):
        after = {}
        for form, kind in (("float64", np.float64), ("float32", np.float32), ("list", list)):
            given = kind(state) if kind is list else state.astype(kind)
            for name, env in zip(("sync", "native"), make_pair_of(id, 1), strict=True):
                env.reset(seed=SEED)
                env.set_attr("state", [given])
                after[name, form] = env.step(np.array([[1 / 3]], np.float32))[0]
        assert np.array_equal(after["sync", "float64"], after["native", "float64"])
        assert np.array_equal(after["native", "list"], after["native", "float64"])
        if id == "MountainCarContinuous-v0":
            assert np.array_equal(after["sync", "float32"], after["native", "float32"])
    played = {}
    for name, env in zip(("sync", "native"), make_pair_of("MountainCarContinuous-v0", 1), strict=True):
        for power in (0.0013, np.float64(0.0013)):
            env.reset(seed=SEED)
            env.set_attr("power", power)
            played[name, type(power)] = [env.step(np.array([[1 / 3]], np.float32))[0].tolist() for _ in range(40)]
    assert played["sync", float] == played["native", float] == played["native", np.float64]
    assert played["sync", np.float64] != played["sync", float]
    made = {}
    for name, env in zip(("sync", "native"), make_pair_of("Pendulum-v1", 1, g=np.float32(9.81)), strict=True):
        env.reset(seed=SEED)
        made[name] = [env.step(np.array([[1 / 3]], np.float32))[0].tolist() for _ in range(40)]
    assert made["sync"] != made["native"]


def test_a_state_is_an_array_and_a_torque_a_number():
    sync, native = make_pair_of("MountainCar-v0")
    for env in (sync, native):
        env.reset(seed=SEED)
        env.step(np.array([0, 2]))
    assert [type(state) for state in sync.get_attr("state")] == [tuple] * 2
    assert [type(state) for state in native.get_attr("state")] == [np.ndarray] * 2
    assert np.array_equal(states(native), states(sync))
    sync, native = make_pair_of("Pendulum-v1")
    for env in (sync, native):
        env.reset(seed=SEED)
        env.step(np.array([[0.5], [-0.5]], np.float32))
    assert [type(torque) for torque in sync.get_attr("last_u")] == [np.float32] * 2
    assert [type(torque) for torque in native.get_attr("last_u")] == [float] * 2


def test_a_huge_angle_ends_no_step_never():
    """A turn does not change it, so that Gymnasium's loop would not end: it is not run here."""
    huge = 1e18
    assert huge - 2 * np.pi == huge
    _, native = make_pair_of("Acrobot-v1")
    native.reset(seed=SEED)
    native.set_attr("state", [np.zeros(4), np.array([huge, 0.0, 0.0, 0.0])])
    native.step(np.array([1, 1]))
    assert abs(states(native)[0, 0]) < 0.1
    assert states(native)[1, 0] == huge


def test_a_bound_of_zero_has_a_sign():
    sync, native = make_pair_of("MountainCar-v0")
    for env in (sync, native):
        env.reset(seed=SEED)
        env.set_attr("max_speed", 0.0)
    numpys = np.clip(np.float64(-1.0), -0.0, 0.0)
    left = np.zeros(2, np.int64)
    assert np.signbit(sync.step(left)[0][:, 1]).tolist() == [np.signbit(numpys)] * 2
    assert np.signbit(native.step(left)[0][:, 1]).tolist() == [True] * 2


def test_an_array_may_outlive_its_last_reference():
    alive = []
    for env in make_both():
        obs = env.step(ACTIONS)[0]
        reference, content = weakref.ref(obs), obs.copy()
        del obs
        for _ in range(5):
            env.step(ACTIONS)
        alive.append(reference() is not None)
        assert reference() is None or np.array_equal(reference(), content)
    assert alive == [False, True]
    sync, native = make_both()
    theirs, ours = (env.step(ACTIONS)[0] for env in (sync, native))
    theirs.resize((1, 4))
    with pytest.raises(ValueError, match="resize"):
        ours.resize((1, 4))
