"""torch's own tests at two, three and four ranks, under both names, beside Gloo in the same run."""

import pytest

from torch_runs import NOT_OF_PLUGINS, run_torch_cases


@pytest.mark.parametrize("num_ranks", [2, 3, 4])
def test_what_gloo_passes_passes_under_both_names(num_ranks: int) -> None:
    theirs = run_torch_cases(num_ranks, "gloo", is_native=True)
    passed_there = {case for case, result in theirs.items() if result["outcome"] == "passed"}
    assert len(passed_there) > 85
    under_gloo = run_torch_cases(num_ranks, "gloo")
    not_passed = {case for case in passed_there if under_gloo[case]["outcome"] != "passed"}
    assert not_passed <= set(NOT_OF_PLUGINS)
    under_own = run_torch_cases(num_ranks, "trireme")
    failed = {case for case, result in under_own.items() if result["outcome"] == "failed"}
    assert failed <= set(NOT_OF_PLUGINS)
    for case, result in sorted(under_own.items()):
        if result["outcome"] == "skipped":
            print(f"{num_ranks} ranks, trireme: {case} is skipped: {result['why']}")
