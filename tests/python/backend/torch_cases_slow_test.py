"""torch's own tests at two, three and four ranks, under both names, beside Gloo in the same run."""

import pytest

from torch_runs import NOT_OF_PLUGINS, NOT_UNDER_OTHER_NAMES, run_torch_cases


@pytest.mark.parametrize("num_ranks", [2, 3, 4])
def test_what_gloo_passes_passes_under_both_names(num_ranks: int) -> None:
    theirs = run_torch_cases(num_ranks, "gloo", is_native=True)
    passed_there = {case for case, result in theirs.items() if result["outcome"] == "passed"}
    assert len(passed_there) > 85
    under_gloo = run_torch_cases(num_ranks, "gloo")
    not_passed = {case for case in passed_there if under_gloo[case]["outcome"] != "passed"}
    assert not_passed <= set(NOT_OF_PLUGINS)
    under_own = run_torch_cases(num_ranks, "trireme", gate="gloo")
    not_passed = {case for case in passed_there if under_own[case]["outcome"] != "passed"}
    assert not_passed <= NOT_UNDER_OTHER_NAMES | set(NOT_OF_PLUGINS)
    for case, result in sorted(under_own.items()):
        if result["outcome"] == "skipped":
            print(f"{num_ranks} ranks, trireme: {case} is skipped: {result['why']}")


def test_groups_and_all_to_all_which_torch_tries_with_mpi_alone() -> None:
    outcomes = run_torch_cases(4, "trireme", ["_group", "all_to_all"], gate="mpi")
    assert not [case for case, result in outcomes.items() if result["outcome"] == "failed"]
    assert sum(result["outcome"] == "passed" for result in outcomes.values()) >= 40


def test_groups_which_torch_tries_on_eight_ranks_alone() -> None:
    cases = [
        "test_all_gather_coalesced_group",
        "test_all_reduce_coalesced_group_max",
        "test_all_reduce_coalesced_group_min",
        "test_all_reduce_coalesced_group_product",
        "test_all_reduce_coalesced_group_sum",
        "test_barrier_timeout_group",
        "test_monitored_barrier_failure_order",
        "test_monitored_barrier_wait_all_ranks",
    ]
    outcomes = run_torch_cases(8, "trireme", cases, gate="gloo")
    assert {outcomes[case]["outcome"] for case in cases} == {"passed"}
