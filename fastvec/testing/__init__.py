"""Checks for vector envs, fastvec's and anyone's: of the rules of Gymnasium's vector API, and against single envs."""

from fastvec.testing.checker import check_vector_env
from fastvec.testing.same import check_same
from fastvec.testing.violation import RULES, Violation

__all__ = ["RULES", "Violation", "check_same", "check_vector_env"]
