"""Losses of trainings on the backend are those on Gloo, to 1e-6: where three ranks or more add in
another order, bits differ."""

import pytest

from ranks import run_ranks
from workloads import WORKLOADS


@pytest.mark.parametrize("name", WORKLOADS)
def test_losses_are_those_of_gloo(name: str) -> None:
    ours = run_ranks(2, WORKLOADS[name])
    theirs = run_ranks(2, WORKLOADS[name], backend="gloo")
    assert any(ours)
    for own, other in zip(ours, theirs, strict=True):
        assert own == pytest.approx(other, rel=1e-6)
