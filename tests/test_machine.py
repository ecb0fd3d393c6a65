"""What is used of the machine, and why: ``show_config`` and the environment variables it follows."""

import os

import numpy as np
import pytest

import fastvec
from fastvec import machine
from fastvec._core import targets

HERE = [name for name, runs in targets().items() if runs]


@pytest.fixture(autouse=True)
def no_wishes(monkeypatch):
    for name in ("FASTVEC_ISA", "FASTVEC_MATH", "FASTVEC_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


def test_the_best_instruction_set_is_chosen():
    assert machine.config()["instruction_set"] == HERE[0]
    assert "best" in machine.config()["instruction_set_reason"]


@pytest.mark.parametrize("target", HERE)
def test_an_instruction_set_can_be_asked_for(target, monkeypatch):
    monkeypatch.setenv("FASTVEC_ISA", target)
    assert machine.config()["instruction_set"] == target
    assert "FASTVEC_ISA" in machine.config()["instruction_set_reason"]
    assert fastvec.make("CartPole-v1")._batch.target == target


def test_an_unknown_instruction_set_is_refused(monkeypatch):
    monkeypatch.setenv("FASTVEC_ISA", "mmx")
    with pytest.raises(ValueError, match=r"FASTVEC_ISA is 'mmx'.*baseline"):
        fastvec.make("CartPole-v1")


def test_an_instruction_set_that_the_cpu_lacks_is_refused(monkeypatch):
    monkeypatch.setattr(machine, "targets", lambda: {"avx1024": False, "baseline": True})
    monkeypatch.setenv("FASTVEC_ISA", "avx1024")
    with pytest.raises(ValueError, match=r"avx1024.*this CPU lacks.*baseline"):
        fastvec.make("CartPole-v1")


def test_the_c_library_can_be_asked_for(monkeypatch):
    monkeypatch.setenv("FASTVEC_MATH", "libm")
    assert machine.config()["math"] == "libm"
    assert "FASTVEC_MATH" in machine.config()["math_reason"]


DIFFERENT = machine.Difference("sin", 0.5, 0.47942553860420306, 0.479425538604203)


@pytest.mark.parametrize(("function", "whose"), [("vector_difference", "fastvec's own"), ("numpy_difference", "NumPy")])
def test_the_c_library_is_used_where_the_bits_differ(monkeypatch, function, whose):
    monkeypatch.setattr(machine, "vector_difference", lambda target: None)
    monkeypatch.setattr(machine, function, lambda *target: DIFFERENT)
    monkeypatch.setattr(machine, "chosen_target", lambda: "avx2")
    found = machine.config()
    assert found["math"] == "libm"
    assert found["math_reason"] == (
        f"sin(0.5) is 0.479425538604203 in the C library and 0.47942553860420306 in {whose}"
    )


def test_a_difference_of_numpys_is_found(monkeypatch):
    machine.numpy_difference.cache_clear()
    monkeypatch.setattr(machine.math, "cos", lambda x: float(np.nextafter(np.cos(x), 2.0)))
    try:
        found = machine.numpy_difference()
    finally:
        machine.numpy_difference.cache_clear()
    assert (found.function, found.result) == ("cos", np.cos(found.x))
    assert found.libm > found.result


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", ""])
def test_threads_asked_for_are_a_number(value, monkeypatch):
    monkeypatch.setenv("FASTVEC_NUM_THREADS", value)
    with pytest.raises(ValueError, match="FASTVEC_NUM_THREADS"):
        fastvec.make("CartPole-v1")


def test_no_more_cores_than_the_process_may_use():
    assert machine.usable_cores() == len(os.sched_getaffinity(0))


def test_show_config_prints_all_of_it(capsys):
    fastvec.show_config()
    printed = capsys.readouterr().out
    for name, value in machine.config().items():
        assert f"{name.replace('_', ' ')}: {value}" in printed
