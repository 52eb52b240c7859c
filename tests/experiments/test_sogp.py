"""The experiments of SOGP: what they measure, against plain sums and solves."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from mercer.experiments import Setting, online_friedman, online_plateau, online_sinc, online_usps
from mercer.experiments.sogp import kernel, latent
from mercer.experiments.usps import CLASSES, FOUR, Digits, error, process, read, signs

QUICK = Setting(quick=True)


@pytest.fixture
def images(tmp_path):
    """Images of the form of USPS: a bright row and column for each digit, and noise."""
    rng = np.random.default_rng(0)

    def some(n):
        y = rng.permutation(np.arange(n) % 10)
        X = rng.normal(-0.5, 0.3, (n, 16, 16))
        X[np.arange(n), y, :] += 1.0
        X[np.arange(n), :, y + 3] += 0.6
        return X.reshape(n, 256).clip(-1, 1).astype(np.float32), y.astype(np.uint8)

    X, y = some(200)
    X_test, y_test = some(120)
    np.savez(tmp_path / "usps.npz", X_train=X, y_train=y, X_test=X_test, y_test=y_test)
    return Setting(quick=True, folder=str(tmp_path))


# --- in common ------------------------------------------------------------------------------------


def test_the_width_has_the_dimension_in_it():
    X = np.random.default_rng(0).normal(size=(2, 7))
    square = sum((a - b) ** 2 for a, b in zip(*X, strict=True))
    assert kernel(0.3, 7)(X)[0, 1] == pytest.approx(math.exp(-square / (2 * 7 * 0.3)), rel=1e-12)


def test_signs():
    y = np.array([4.0, 0.0, 9.0])
    assert signs(y, FOUR).tolist() == [[1], [-1], [-1]]
    assert np.argmax(signs(y, CLASSES), axis=1).tolist() == [4, 0, 9]
    assert signs(y, CLASSES).sum() == 3 * (1 - 9)


def made_up(mean, var):
    now = SimpleNamespace(mean=lambda X: np.array(mean), var=lambda X: np.array(var))
    return SimpleNamespace(posterior=lambda: now)


def test_errors_are_of_the_most_probable_class():
    rows = Digits(None, None, np.zeros((3, 1)), np.array([0.0, 1.0, 1.0]))
    # row 0: class 1 has the larger mean, class 0 the larger probability
    mean = [[1.0, 2.0], [0.5, -1.0], [-2.0, -1.0]]
    var = [[0.25, 4.0], [1.0, 1.0], [1.0, 1.0]]
    assert error(made_up(mean, var), rows, (0, 1)) == pytest.approx(100 / 3)
    one = [[-0.1], [0.2], [0.3]]
    assert error(made_up(one, [[1.0]] * 3), rows, (1,)) == 0.0
    assert error(made_up(one, [[1.0]] * 3), rows, (0,)) == 100.0


def test_a_quick_run_reads_the_first_rows(images):
    few, whole = read(images), read(Setting(folder=images.folder))
    assert len(whole.y) == 200 and len(whole.y_test) == 120
    assert 0 < len(few.y) < 200 and 0 < len(few.y_test) < 120
    np.testing.assert_array_equal(few.X, whole.X[: len(few.y)])
    np.testing.assert_array_equal(few.y_test, whole.y_test[: len(few.y_test)])


# --- regression -----------------------------------------------------------------------------------


def solved(X, y, X_test, noise, width=1.0):
    """The mean of exact regression, with the kernel of (SOGP 4.1)."""
    d = X.shape[1]

    def k(A, B):
        return np.exp(-((A[:, None] - B) ** 2).sum(-1) / (2 * d * width))

    return k(X_test, X) @ np.linalg.solve(k(X, X) + noise * np.eye(len(X)), y)


def test_friedman():
    rows = online_friedman._draw(200, 4000, 1)
    assert rows.X.shape == (200, 10) and len(rows.y_test) == 4000
    X = np.vstack([rows.X, rows.X_test])
    y = np.concatenate([rows.y, rows.y_test])
    f = [
        10 * math.sin(math.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e
        for a, b, c, d, e in X[:, :5]
    ]
    noise = y - f
    assert np.std(noise) == pytest.approx(1.0, abs=0.03)
    assert rows.y.mean() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("noise", [1e-2, 1e-4])
def test_the_curves_of_friedman(noise):
    rows, found = online_friedman._draw(60, 40, 0), {}
    online_friedman._curves(noise, rows, (10, 40), found)
    for size in (10, 40, 60):
        predicted = solved(rows.X[:size], rows.y[:size], rows.X_test, noise)
        (ours,) = found[noise, online_friedman._FULL, size]
        assert ours == pytest.approx(np.mean((predicted - rows.y_test) ** 2), rel=1e-6)
        assert (noise, online_friedman._REMOVED, size) in found
    same = [found[noise, curve, 60][0] for curve in online_friedman._CURVES]
    assert same == pytest.approx([same[0]] * 3, rel=1e-9)
    full = online_friedman._process(noise, 60)
    for part in np.split(np.arange(60), [10, 40]):
        full.learn(rows.X[part], rows.y[part, None])
    for size in (40, 10):
        full.prune(size)
        (ours,) = found[noise, online_friedman._REMOVED, size]
        assert full.n_basis == size and ours == online_friedman._error(full, rows)
        (ours,) = found[noise, online_friedman._SPARSE, size]
        assert ours == online_friedman._one_pass(noise, rows, size)


def test_orders_of_rows():
    rows = online_friedman._draw(60, 40, 0)
    whole = [online_friedman._one_pass(1e-2, rows, 60, order) for order in (None, 0, 1)]
    assert whole == pytest.approx([whole[0]] * 3, rel=1e-6)
    few = [online_friedman._one_pass(1e-2, rows, 15, order) for order in (None, 0, 1)]
    assert len({round(each, 6) for each in few}) == 3


def test_the_claims_of_friedman():
    found = {}
    for size, errors in {20: [5.0, 6.0], 40: [4.0, 4.2], 60: [3.0, 5.0]}.items():
        for curve in (*online_friedman._CURVES, online_friedman._ORDERS):
            found[0.1, curve, size] = errors
    kept, removed, orders = online_friedman._claims(found, 0.1, 60, (20, 40))
    assert not kept.holds and "5.500 beside 4.000 ± 1.41 (+37.5%)" in kept.measured
    assert not removed.holds and not orders.holds
    found[0.1, online_friedman._SPARSE, 20] = [4.0, 6.0]
    kept, _, orders = online_friedman._claims(found, 0.1, 60, (20, 40))
    assert kept.holds and orders.holds


def test_sinc():
    learned = online_sinc._learned(0.1, 15, "kl", 15, 3)
    assert learned.n_basis == 15
    rng = np.random.default_rng(3)
    X = rng.uniform(-4, 4, (15, 1))
    y = np.sin(X) / X + math.sqrt(0.02) * rng.normal(size=(15, 1))
    x = np.linspace(-4, 4, 401)
    mean, std = latent(learned, x[:, None])
    np.testing.assert_allclose(mean, solved(X, y, x[:, None], 0.02, 0.1), atol=1e-7)
    f = np.sin(x[x != 0]) / x[x != 0]
    found = online_sinc._measured(learned, 3)
    off = (mean[:, 0][x != 0] - f, std[:, 0][x != 0])
    assert found.error == pytest.approx(np.sqrt(np.mean(off[0] ** 2)), rel=0.01)
    assert found.function == pytest.approx(np.mean(np.abs(off[0]) < 1.96 * off[1]), abs=0.005)
    assert found.values > 0.85


def test_the_pictures_of_sinc_have_the_basis_in_them():
    outcome = online_sinc._run(QUICK)
    assert [len(f.lines[2].x) for f in outcome.figures] == [10, 10, 15, 15]
    for figure in outcome.figures:
        mean, function, points = figure.lines
        assert mean.spread is not None and np.all(mean.spread > 0)
        assert points.dots and not function.dots
        np.testing.assert_allclose(points.y, np.interp(points.x, mean.x, mean.y), atol=2e-3)
    assert len({figure.name for figure in outcome.figures}) == 4


# --- digits ---------------------------------------------------------------------------------------


def test_sweeps(images):
    digits = read(images)
    found = online_usps._swept(digits, CLASSES, "mean", 20)
    learned = process(256, CLASSES, 20, "mean")
    for row in range(len(digits.y)):  # any split of the rows is the same
        at = slice(row, row + 1)
        learned.learn(digits.X[at], signs(digits.y[at], CLASSES))
    assert found.one == error(learned, digits, CLASSES)
    learned.learn(digits.X, signs(digits.y, CLASSES))
    assert found.repeated == error(learned, digits, CLASSES)
    assert found.one < 90 and found.refined < 90


def test_with_room_for_all_rows_the_sites_found_again_are_those_of_the_batch(images):
    digits = read(images)
    found = online_usps._swept(digits, FOUR, "mean", len(digits.y))
    from mercer import GPClassifier
    from mercer.likelihoods import Probit

    model = GPClassifier(kernel(1.0, 256), Probit(0.0), inference="ep", optimizer=None)
    model.fit(digits.X, digits.y == 4)
    wrong = model.predict(digits.X_test) != (digits.y_test == 4)
    assert found.refined == pytest.approx(100 * np.mean(wrong))


def test_usps_is_beside_what_was_published(images):
    outcome = online_usps._run(images)
    published = next(table for table in outcome.tables if table.name == "published")
    cited = {row[0]: row[2] for row in published.rows if "(cited)" in row[1]}
    assert cited == {"4 against the rest": 1.7, "ten digits": 5.0}
    four, ten = (figure for figure in outcome.figures)
    assert four.mark[0] == 1.7 and ten.mark[0] == 5.0


def test_the_plateau(images):
    outcome = online_plateau._run(images)
    (table,) = outcome.tables
    digits = read(images)
    learned = process(256, CLASSES, 40, "mean")
    learned.learn(digits.X, signs(digits.y, CLASSES))
    assert table.rows[0][:3] == (40, 0.0, error(learned, digits, CLASSES))
    assert table.rows[0][3] == 0.0
    loss = 0.0
    for size, removed, wrong, spent in table.rows[1:]:
        loss += learned.prune(size)
        assert removed == pytest.approx(100 * (40 - size) / 40)
        assert wrong == error(learned, digits, CLASSES)
        assert spent == pytest.approx(loss)


def test_a_plateau_ends_where_so_many_are_removed():
    sizes, errors = np.array([100.0, 75.0, 50.0, 25.0]), np.array([5.0, 5.5, 5.75, 9.0])
    half = online_plateau._claim("half", sizes, errors, 0.5)
    assert half.holds and half.measured.startswith("+0.75 points")
    assert not online_plateau._claim("most", sizes, errors, 0.75).holds
    errors[1] = 6.5  # on the way
    assert not online_plateau._claim("half", sizes, errors, 0.5).holds
