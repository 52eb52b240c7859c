"""Rows that were held out: weights are numbers of rows."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.evidence.held_out import Scores, entropy_of

WEIGHTS = np.array([2, 1, 0, 3, 1, 4, 1, 2])


def logs(seed):
    return -np.random.default_rng(seed).exponential(size=8)


def written_out(scores):
    return Scores(np.repeat(scores.logs, WEIGHTS), np.ones(WEIGHTS.sum()))


def test_the_mean_is_that_of_rows_written_out():
    scores = Scores(logs(0), WEIGHTS.astype(float))
    assert scores.mean == pytest.approx(np.mean(written_out(scores).logs), rel=1e-14)
    assert scores.mean != pytest.approx(np.mean(scores.logs), rel=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_one_is_above_another_by_standard_errors_of_rows_written_out(seed):
    one = Scores(logs(seed) + 0.5, WEIGHTS.astype(float))
    other = Scores(logs(seed + 100), one.weights)
    gain = written_out(one).logs - written_out(other).logs
    errors = np.mean(gain) / (np.std(gain) / np.sqrt(len(gain)))
    for sure in (errors - 1e-6, errors + 1e-6):
        assert one.is_above(other, sure) == (sure < errors)
        assert written_out(one).is_above(written_out(other), sure) == (sure < errors)
    assert not one.is_above(one, 2.0)


def test_the_entropy_of_labels_is_that_of_rows_written_out():
    labels = np.array(["a", "b", "c", "a", "b", "b", "a", "a"])  # the only "c" weighs nothing
    part = np.unique(np.repeat(labels, WEIGHTS), return_counts=True)[1] / WEIGHTS.sum()
    assert entropy_of(labels, WEIGHTS) == pytest.approx(-part @ np.log(part), rel=1e-14)
    assert entropy_of(labels[:1], np.ones(1)) == 0.0
