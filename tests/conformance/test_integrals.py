"""The plain integrals and comparisons that rules stand on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mercer.testing import ConformanceError
from mercer.testing.compare import close, identical, refused, slope
from mercer.testing.integrals import edges_around, integrate, peak


@pytest.mark.parametrize(
    ("interval", "density"),
    [
        ((-np.inf, np.inf), stats.cauchy(1.0, 0.3)),
        ((-np.inf, np.inf), stats.norm(1.0, 1e-9)),
        ((-np.inf, np.inf), stats.norm(-40.0, 1e6)),
        ((-np.inf, np.inf), stats.uniform(0.3, 0.5)),
        ((-np.inf, np.inf), stats.laplace(1.7, 0.01)),
        ((0.0, np.inf), stats.gamma(2.0)),
        ((0.0, np.inf), stats.gamma(0.5)),
        ((-np.inf, 2.0), stats.gumbel_l(-30.0)),
        ((0.0, 1.0), stats.beta(2.0, 3.5)),
    ],
)
def test_integrals_of_densities(interval, density):
    panels = integrate(density.pdf, edges_around([1.0], *interval))
    assert panels.total == pytest.approx([1.0], abs=1e-9)
    np.testing.assert_allclose(panels.below, density.cdf(panels.edges), rtol=0, atol=1e-9)


def test_several_integrands():
    def powers(z):
        return stats.norm.pdf(z) * np.stack([z**0, z, z**2, z**4])

    total = integrate(powers, edges_around([0.2], -30.0, 30.0)).total
    np.testing.assert_allclose(total, [1.0, 0.0, 1.0, 3.0], atol=1e-12)


def test_what_is_not_finite_is_left_out():
    panels = integrate(lambda x: np.where(x > 0, 1.0, np.nan), np.array([-1.0, 0.1, 2.0]))
    assert panels.total == pytest.approx([2.0], abs=1e-9)


def test_edges():
    edges = edges_around([0.3, np.nan], 0.0, 1.0)
    assert edges[0] == 0.0 and edges[-1] == 1.0 and 0.3 in edges
    assert np.min(np.abs(edges - 0.3)[edges != 0.3]) < 1e-11
    assert edges_around([5.0], -np.inf, np.inf)[[0, -1]] == pytest.approx(
        [-1.1e60, 1.1e60], rel=0.1
    )


@pytest.mark.parametrize("width", [1e-8, 1.0, 1e3])
def test_peaks(width):
    at = peak(lambda x: -np.abs(x - 0.777) / width, np.linspace(-12.0, 12.0, 97))
    assert at == pytest.approx(0.777, abs=1e-12)


def test_comparisons_say_what_was_expected():
    with pytest.raises(ConformanceError, match=r"x: expected shape \(2,\), got shape \(3,\)"):
        close("x", np.zeros(3), np.zeros(2))
    with pytest.raises(ConformanceError, match=r"x: expected 2 at \(1,\), got 2.5 .*1 of 2"):
        close("x", [1.0, 2.5], [1.0, 2.0])
    with pytest.raises(ConformanceError, match=r"x: expected 2 at \(1,\), got nan"):
        close("x", [1.0, np.nan], [1.0, 2.0], atol=1e9)
    close("x", [np.inf, np.nan, 1.0], [np.inf, np.nan, 1.0])
    with pytest.raises(ConformanceError, match="expected exactly"):
        identical("x", [1.0], [1.0 + 1e-15])


def test_refusals():
    def bad():
        raise ValueError("the wrong text")

    refused("it", bad, "WRONG")
    with pytest.raises(
        ConformanceError, match="whose text matches 'right', got the text the wrong"
    ):
        refused("it", bad, "right")
    with pytest.raises(ConformanceError, match="expected a TypeError, got ValueError"):
        refused("it", bad, error=TypeError)
    with pytest.raises(ConformanceError, match="expected a ValueError, got the result 3"):
        refused("it", lambda: 3)


def test_slopes():
    np.testing.assert_allclose(slope(np.sin, 0.3), np.cos(0.3), rtol=1e-9)
    x = np.array([[0.1, 0.2], [0.3, 0.4]])
    np.testing.assert_allclose(slope(lambda a: np.sum(a**3), x), 3 * x**2, rtol=1e-8)
    assert slope(lambda a: a**2, np.zeros(3)).shape == (3, 3)
    assert slope(np.sum, np.empty(0)).shape == (0,)
