"""Fails if a pytest run skipped a test that may not be skipped, or ran none.

Usage: check_skips.py STAGE JUNIT_XML [STAGES REASON WHY]..., where each three allow skips in the stages that match the
regular expression STAGES, if the regular expression REASON is found in the test's name or in what pytest says of it."""

import re
import sys
from xml.etree import ElementTree


def main(stage: str, report: str, *allowances: str) -> None:
    """Prints every skipped test; exits with an error if one of them has no leave."""
    triples = zip(allowances[::3], allowances[1::3], allowances[2::3], strict=True)
    allowed = [reason for stages, reason, _ in triples if re.fullmatch(stages, stage)]
    cases = list(ElementTree.parse(report).iter("testcase"))
    skipped = []
    for case in cases:
        for skip in case.iter("skipped"):  # an expected failure is one too
            name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
            skipped.append(f"{name}: {skip.text or skip.get('message')}")
    refused = [line for line in skipped if not any(re.search(reason, line) for reason in allowed)]
    for line in refused:
        print(f"SKIPPED WITHOUT LEAVE {line}")
    if refused:
        sys.exit(f"{stage}: {len(refused)} of {len(cases)} tests skipped; .ci/run lists those that may be")
    if len(cases) == len(skipped):
        sys.exit(f"{stage}: no test ran")
    print(f"{stage}: {len(cases) - len(skipped)} tests ran, {len(skipped)} skipped with leave")


main(*sys.argv[1:])
