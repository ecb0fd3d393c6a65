"""Fails if a pytest run skipped a test that may not be skipped, or ran none.

Usage: check_skips.py STAGE JUNIT_XML ["stage: test: why" ...], where `test` begins a skipped test's junit name
(`tests.contract.test_modes.test_name`) and allows it to be skipped in that stage."""

import sys
from xml.etree import ElementTree


def main(stage: str, report: str, *allowances: str) -> None:
    """Prints what was skipped with leave; exits with the list of what was skipped without."""
    allowed = [test for where, test, _why in (line.split(": ", 2) for line in allowances) if where == stage]
    cases = list(ElementTree.parse(report).iter("testcase"))
    skipped = {}
    for case in cases:
        for skip in case.iter("skipped"):  # an expected failure is one too
            name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
            skipped[name] = skip.text or skip.get("message")
    if len(cases) == len(skipped):
        sys.exit(f"{stage}: no test ran")
    refused = {name: why for name, why in skipped.items() if not name.startswith(tuple(allowed))}
    for name, why in skipped.items():
        print(f"{'SKIPPED WITHOUT LEAVE' if name in refused else 'skipped'} {name}: {why}")
    if refused:
        sys.exit(f"{stage}: {len(refused)} of {len(cases)} tests skipped; .ci/run lists those that may be")
    print(f"{stage}: {len(cases) - len(skipped)} tests ran, {len(skipped)} skipped with leave")


main(*sys.argv[1:])
