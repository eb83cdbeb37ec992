"""What densities and their derivatives are by definition, by numerical quadrature.

The score is a parabola and the density ``[(alpha - 1) (f - tau)]_+^power`` with ``power =
1 / (alpha - 1)``, tau such that its mass is 1; power None is the Gaussian. Nothing here is shared
with the package, neither closed forms nor coordinates.
"""

from functools import cache

import numpy as np
from scipy.integrate import fixed_quad, quad_vec
from scipy.optimize import brentq
from scipy.stats import multivariate_normal, norm


class Line:
    """One density over the line.

    Args:
        mu, sigma2: of the score.
        power: of the truncated parabola.
    """

    def __init__(self, mu, sigma2, power):
        self.mu, self.sigma2, self.power = mu, sigma2, power
        if power is None:
            self.reach = 12 * sigma2**0.5
        else:  # tau is where the score is at the end of the support
            self.reach = np.exp(brentq(self._excess, -40, 40, xtol=1e-15))

    def _excess(self, log_reach):
        """Log of the mass if the support reached so far."""
        reach = np.exp(log_reach)
        return np.log(2 * fixed_quad(lambda t: self._height(t, reach), 0, reach, n=8)[0])

    def _height(self, offset, reach):
        return ((reach**2 - offset**2) / (2 * self.sigma2) / self.power) ** self.power

    def pdf(self, t):
        if self.power is None:
            return norm.pdf(t, self.mu, self.sigma2**0.5)
        inside = abs(t - self.mu) < self.reach
        return np.where(inside, self._height(np.where(inside, t - self.mu, 0), self.reach), 0)

    def escort(self, t):
        """``p(t)^(2 - alpha)``; with alpha = 2 the support's indicator."""
        p = self.pdf(t)
        return p if self.power is None else np.where(p > 0, p, 1) ** (1 - 1 / self.power) * (p > 0)

    def integral(self, function, below=np.inf, near=()):
        """Of a vector function over the support, or its part below a point."""
        start, end = self.mu - self.reach, min(self.mu + self.reach, below)
        if end <= start:
            return 0.0
        points = [point for point in near if start < point < end]
        return quad_vec(function, start, end, points=points, epsabs=1e-10, epsrel=1e-10)[0]

    def expectation(self, centres, widths):
        functions = _line_functions(centres, widths)
        return self.integral(lambda t: self.pdf(t) * functions(t), near=_near(centres, widths))

    def jacobian(self, centres, widths):
        """d r / d theta, N x 2: the generalised covariance of (t, t^2) and the functions.

        In offsets from mu, in half-widths, for the sake of its rounding errors.
        """
        functions, scale = _line_functions(centres, widths), self.reach

        def joint(t):
            u = (t - self.mu) / scale
            phi = np.array([1.0, u, u * u])
            return self.escort(t) * np.outer(np.append(functions(t), 1.0), phi)

        table = self.integral(joint, near=_near(centres, widths))  # (N + 1) x 3
        total = table[-1, 0]
        covariance = table[:-1, 1:] - np.outer(table[:-1, 0], table[-1, 1:]) / total
        first, second = covariance.T  # with u and u^2; t = mu + scale u
        return np.stack([scale * first, scale**2 * second + 2 * self.mu * scale * first], 1)


def _line_functions(centres, widths):
    return lambda t: norm.pdf(t, centres, widths)


def _near(centres, widths):
    """Where a quadrature had better look: the functions may be narrow."""
    return sorted({c + k * w for c, w in zip(centres, widths) for k in (-4, 0, 4)})


@cache
def _legendre(nodes):
    return np.polynomial.legendre.leggauss(nodes)


class Plane:
    """One density over the plane, a Gaussian or a truncated paraboloid.

    Integrated in slices, along the axes of the ellipse: a slice's length is the cosine of the
    angle that numbers it, so that the integrand is smooth at both ends.
    """

    def __init__(self, mu, sigma, gaussian):
        self.mu, self.sigma, self.gaussian = np.asarray(mu), np.asarray(sigma), gaussian
        values, vectors = np.linalg.eigh(self.sigma)
        self.axes = vectors * np.sqrt(values)  # t = mu + axes x
        self.radius = 7.0
        if not gaussian:
            stretch = np.sqrt(np.linalg.det(self.sigma))
            self.radius = brentq(lambda r: self._mass(r) * stretch - 1, 1e-9, 1e9, xtol=1e-15)

    @staticmethod
    def _mass(radius):
        """Of ``(radius^2 - |x|^2) / 2``, in rings."""
        return fixed_quad(lambda r: 2 * np.pi * r * (radius**2 - r * r) / 2, 0, radius, n=4)[0]

    def pdf(self, t):
        if self.gaussian:
            return multivariate_normal.pdf(t, self.mu, self.sigma)
        offset = np.linalg.solve(self.axes, (t - self.mu).T)
        return np.maximum(self.radius**2 - (offset**2).sum(0), 0) / 2

    def integral(self, function, nodes=300):
        """Of a function of points ``... x 2`` over the support."""
        x, weights = _legendre(nodes)
        angle, by_angle = np.pi / 2 * x, np.pi / 2 * weights
        first = np.repeat(np.sin(angle), nodes)
        height = np.repeat(np.cos(angle), nodes)
        second = np.tile(x, nodes) * height
        measure = np.repeat(by_angle, nodes) * np.tile(weights, nodes) * height**2
        measure = measure * self.radius**2 * abs(np.linalg.det(self.axes))
        points = self.mu + self.radius * np.stack([first, second], 1) @ self.axes.T
        return np.tensordot(measure, function(points), 1)

    def expectation(self, centres, covariances):
        functions = _plane_functions(centres, covariances)
        return self.integral(lambda t: self.pdf(t)[:, None] * functions(t))

    def jacobian(self, centres, covariances):
        """Derivatives in theta, ``N x 2`` and ``N x 2 x 2``."""
        functions = _plane_functions(centres, covariances)

        def joint(t):
            products = (t[:, :, None] * t[:, None]).reshape(-1, 4)
            phi = np.concatenate([np.ones((len(t), 1)), t, products], 1)
            psi = np.concatenate([functions(t), np.ones((len(t), 1))], 1)
            escort = self.pdf(t) if self.gaussian else np.ones(len(t))
            return escort[:, None, None] * psi[:, :, None] * phi[:, None]

        table = self.integral(joint)
        covariance = table[:-1, 1:] - np.outer(table[:-1, 0], table[-1, 1:]) / table[-1, 0]
        return covariance[:, :2], covariance[:, 2:].reshape(-1, 2, 2)


def _plane_functions(centres, covariances):
    factors = [np.linalg.inv(np.linalg.cholesky(s)) for s in covariances]

    def functions(t):  # scipy's are as good, and slow
        whitened = [(t - centre) @ factor.T for centre, factor in zip(centres, factors)]
        heights = [np.linalg.det(factor) / (2 * np.pi) for factor in factors]
        return np.stack([h * np.exp(-0.5 * (z * z).sum(1)) for h, z in zip(heights, whitened)], 1)

    return functions
