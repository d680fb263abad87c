"""torch's own tests, on Trireme under the name of Gloo: what Gloo passes at two ranks, passes."""

from pathlib import Path

from torch_runs import NOT_OF_PLUGINS, run_torch_cases

CASES = Path(__file__).with_name("torch_cases.txt").read_text().split()


def test_what_gloo_passes_at_two_ranks_passes() -> None:
    cases = [case for case in CASES if case not in NOT_OF_PLUGINS]
    outcomes = run_torch_cases(2, "gloo", cases)
    assert len(outcomes) == len(cases) > 80
    assert {case for case in cases if outcomes[case]["outcome"] != "passed"} == set()
