"""Interior points for the quadratic programme in a box of `_box`, where the symbols are told.

With alpha = p - q, and p and q between 0 and c, there are four distances s to a face, each with a
multiplier z. With g = (K + diag(d)) alpha - (y - m) the solution has

    g + e = z_0 - z_1,    e - g = z_2 - z_3,    s z = 0,    s = (p, c - p, q, c - q),  z >= 0.

Newton's method for s z = mu in place of 0 keeps s and z positive. Its linear systems, of n rows
each, are (K + diag(d + 1/omega)) da = v, with 1/omega a positive number a row: they are those of
Gaussian sites, and ask of K no more than that it be positive semidefinite. mu is chosen, and the
system corrected to second order, as Mehrotra (1992) does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference._sites import Sites, factorise, symmetric_product

__all__ = ["Box", "InteriorPoints"]

Floats = NDArray[np.float64]

# The largest precision of a site, in units of 1/(n (K_ii + d_i)): what rounding makes of the
# eigenvalues of K that are 0 must not outweigh the 1 that is added to them. Where it is reached the
# step is a little off, and what it leaves over is seen by the next.
_STIFF = 0.02 / float(np.finfo(float).eps)


class Box(NamedTuple):
    """What the programme has beside K; see `_box`.

    target : (n,) y - m
    bound : (n,) c, at least 0; 0 holds a row at alpha = 0
    zone : e, at least 0
    noise : (n,) d, at least 0
    """

    target: Floats
    bound: Floats
    zone: float
    noise: Floats

    @property
    def unit(self) -> float:
        """What a residual is large or small against."""
        return float(np.mean(np.abs(self.target))) + self.zone + np.finfo(float).tiny

    def best(self, t: Floats) -> Floats:
        """Return the a >= 0 at which l(t) is attained for t or -t, (n,)."""
        over, c, d = np.maximum(np.abs(t) - self.zone, 0.0), self.bound, self.noise
        inner = over / np.where(d > 0, d, 1.0)
        return np.where(over < d * c, inner, np.where(over > 0, c, 0.0))

    def losses(self, t: Floats) -> Floats:
        """Return l(t), (n,)."""
        a = self.best(t)
        return np.asarray(a * (np.abs(t) - self.zone - 0.5 * self.noise * a))

    def gaps(self, alpha: Floats, t: Floats) -> Floats:
        """Return l(t) + e |a| + d a^2/2 - a t, (n,), which is 0 where a attains l(t)."""
        a, d, e = np.abs(alpha), self.noise, self.zone
        ahead = np.where(alpha < 0, -t, t)  # t, if alpha is turned to be positive
        best = self.best(t)
        # of the difference of two values of one function nothing is left that cancels
        same = (best - a) * (ahead - e - 0.5 * d * (best + a))
        other = self.losses(t) + a * (e - ahead + 0.5 * d * a)
        return np.maximum(np.where(ahead > e, same, other), 0.0)


class InteriorPoints:
    """The iterates, from a start in the middle of the box.

    n_iterations : how many steps were taken, of a factorisation each
    jitter : what they have added to the diagonal of K, in place
    gap : the sum of s z, which is P + D but for what the equations for g lack of being 0
    """

    def __init__(self, K: Floats, box: Box, jitter: float | None) -> None:
        self.K, self.box, self._allowed = K, box, jitter
        self.n_iterations, self.jitter, self.gap = 0, 0.0, np.inf
        self._memory: Floats | None = None
        self._floor = 2.0 * len(K) * (np.diagonal(K) + box.noise) / _STIFF
        # s, z : (4, n); both equations for g hold
        self._s = np.stack([0.5 * box.bound] * 4)
        push = self._push(-box.target)
        signs = np.stack([push[0], -push[0], push[1], -push[1]])
        self._z = np.maximum(signs, 0.0) + box.unit
        self._g = -box.target

    def _push(self, g: Floats) -> Floats:
        return np.stack([self.box.zone + g, self.box.zone - g])

    def step(self) -> Floats:
        """Take a step and return alpha, (n,), which is in the box."""
        self.n_iterations += 1
        s, z, box = self._s, self._z, self.box
        ratio = z / s
        theta = np.maximum(ratio[::2] + ratio[1::2], self._floor)
        omega = np.sum(1.0 / theta, axis=0)
        precision = 1.0 / (box.noise + 1.0 / omega)
        sites = factorise(self.K, precision, self._allowed, self._memory)
        self._memory = sites.memory
        self.jitter += sites.jitter
        left = self._push(self._g) - z[::2] + z[1::2]
        product = s * z
        mu = float(np.mean(product))
        ds, dz = self._direction(sites, theta, omega, left, -product)
        length = _longest(s, z, ds, dz)
        after = float(np.mean((s + length * ds) * (z + length * dz)))
        wanted = (after / mu) ** 3 * mu - product - ds * dz
        ds, dz = self._direction(sites, theta, omega, left, wanted)
        length = 0.995 * _longest(s, z, ds, dz)
        s, z = s + length * ds, z + length * dz
        alpha = np.clip(s[0] - s[2], -box.bound, box.bound)
        self._g = symmetric_product(self.K, alpha) + box.noise * alpha - box.target
        self._s, self._z, self.gap = s, z, float(np.sum(s * z))
        return np.asarray(alpha)

    def _direction(
        self, sites: Sites, theta: Floats, omega: Floats, left: Floats, wanted: Floats
    ) -> tuple[Floats, Floats]:
        """Return ds and dz, (4, n), that to first order change s z by `wanted`.

        dz = wanted/s - z/s ds makes of the equations theta_p dp = h_0 - dg, theta_q dq = h_1 + dg,
        so that da = dp - dq = h_0/theta_p - h_1/theta_q - omega dg.
        """
        s, z = self._s, self._z
        push = wanted / s
        h = push[::2] - push[1::2] - left
        da = sites.solve((h[0] / theta[0] - h[1] / theta[1]) / omega)
        dg = symmetric_product(self.K, da) + self.box.noise * da
        dp, dq = (h[0] - dg) / theta[0], (h[1] + dg) / theta[1]
        ds = np.stack([dp, -dp, dq, -dq])
        return ds, push - z / s * ds


def _longest(s: Floats, z: Floats, ds: Floats, dz: Floats) -> float:
    """Return the longest step, at most 1, after which no s and no z is negative."""
    return 1.0 / max(1.0, float(np.max(-ds / s)), float(np.max(-dz / z)))
