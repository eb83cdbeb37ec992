"""Slow, obvious references for one row of scores, written from the definitions alone.

Every oracle takes a 1-D array of finite scores and python numbers and returns float64
weights. Nothing here is shared with the package. The rational ones (``Fraction``) are
exact; the bisections run in ``longdouble``.
"""

from fractions import Fraction

import numpy as np
from scipy.optimize import isotonic_regression


def exact(value):
    """The number as a person would write it: 0.1 is one tenth, not the double nearest to it.

    Rows such as 0.3 - 0.2 against lam = 0.1 are then exactly on the kink, where fused and
    not fused are the same solution, instead of 1e-17 beside it. The mappings are
    non-expansive, so reading a number half an ulp off moves no weight by more.
    """
    return Fraction(repr(float(value)))


def rational(values, gamma=1.0):
    """The scores divided by gamma, as exact fractions."""
    return [exact(value) / exact(gamma) for value in values]


def project(z):
    """Euclidean projection of exact numbers onto the simplex: try every support size."""
    ordered = sorted(z, reverse=True)
    total = Fraction(0)
    threshold = None
    for size, value in enumerate(ordered, start=1):
        total += value
        candidate = (total - 1) / size
        if value > candidate:
            threshold = candidate
    return [max(value - threshold, Fraction(0)) for value in z]


def as_float(y):
    return np.array([float(value) for value in y])


def softmax(x, gamma=1.0):
    z = np.asarray(x, dtype=np.longdouble) / gamma
    e = np.exp(z - z.max())
    return (e / e.sum()).astype(np.float64)


def sparsemax(x, gamma=1.0):
    return as_float(project(rational(x, gamma)))


def taut_string(x, lam):
    """Total variation prox: slopes of the shortest path through a tube of radius lam.

    The tube surrounds the running sums of x and is pinched at both ends. From each bend
    the string goes straight as long as every later cross-section can still be hit.
    """
    d = len(x)
    lam = exact(lam)
    heights = [Fraction(0)]
    for value in x:
        heights.append(heights[-1] + value)
    lower = [heights[0], *(h - lam for h in heights[1:d]), heights[d]]
    upper = [heights[0], *(h + lam for h in heights[1:d]), heights[d]]
    y, start, level = [], 0, Fraction(0)
    while start < d:
        top = bottom = None  # (slope, where): tightest constraints seen from this bend
        for k in range(start + 1, d + 1):
            rise, fall = (upper[k] - level) / (k - start), (lower[k] - level) / (k - start)
            if top is not None and fall > top[0]:
                slope, bend = top
                break
            if bottom is not None and rise < bottom[0]:
                slope, bend = bottom
                break
            if top is None or rise <= top[0]:
                top = rise, k
            if bottom is None or fall >= bottom[0]:
                bottom = fall, k
        else:
            slope, bend = top  # the pinched end: both constraints meet there
        y += [slope] * (bend - start)
        level += slope * (bend - start)
        start = bend
    return y


def fusedmax(x, gamma=1.0, lam=0.1):
    """Proposition 2: the total variation prox, then the projection."""
    return as_float(project(taut_string(rational(x, gamma), lam)))


def oscarmax(x, gamma=1.0, lam=0.01):
    """Sort, subtract lam * (d - rank), isotonic regression without a clip, projection."""
    z = np.asarray(x, dtype=np.longdouble) / gamma
    z = (z - z.max()).astype(np.float64)  # shift invariant; keeps scipy's float64 accurate
    order = np.argsort(-z, kind="stable")
    target = z[order] - lam * np.arange(len(z) - 1, -1, -1)
    fitted = np.empty(len(z))
    fitted[order] = isotonic_regression(target, increasing=False).x
    return as_float(project(rational(fitted)))


def oscar_prox(z, lam):
    """argmin_y 1/2 ||y - z||^2 + lam * sum_{i<j} max(|y_i|, |y_j|), over all of R^d."""
    order = np.argsort(-np.abs(z), kind="stable")
    target = np.abs(z)[order] - lam * np.arange(len(z) - 1, -1, -1)
    magnitude = np.empty(len(z))
    magnitude[order] = np.maximum(isotonic_regression(target, increasing=False).x, 0)
    return np.sign(z) * magnitude


def oscarmax_prox(x, gamma=1.0, lam=0.01):
    """The published composition: the prox over R^d, then the projection."""
    z = np.asarray(x, dtype=np.float64) / gamma
    return as_float(project(rational(oscar_prox(z, lam))))


def bisect(excess, low, high):
    """Root of a decreasing function, to the last bit of longdouble."""
    for _ in range(130):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return (low + high) / 2


def pnormmax(x, gamma=1.0, p=1.5):
    """y ~ (x - tau)_+^(q-1) where gamma * ||y||_p^(2-p) * y^(p-1) = x - tau on the support.

    In w = (x - tau)_+ the normalised optimality condition reads
    sum(w^(q-1)) / ||w||_q^(q-2) = gamma with q = p / (p - 1), decreasing in tau; at
    tau = max(x) - gamma the left side is at least ||w||_q >= gamma.
    """
    x = np.asarray(x, dtype=np.longdouble)
    z = (x - x.max()) / gamma  # divided by gamma the condition's right side is 1
    q = np.longdouble(p) / (np.longdouble(p) - 1)

    def excess(tau):
        w = np.maximum(z - tau, 0)
        top = w.max()
        if top == 0:
            return -1
        w = w / top  # homogeneous of degree one, so take the scale out of the powers
        return top * (w ** (q - 1)).sum() / ((w**q).sum() ** ((q - 2) / q)) - 1

    w = np.maximum(z - bisect(excess, np.longdouble(-1), np.longdouble(0)), 0)
    y = (w / w.max()) ** (q - 1)
    return (y / y.sum()).astype(np.float64)


def entmax(x, gamma=1.0, alpha=1.5):
    """y = ((alpha - 1) x / gamma - tau)_+^(1/(alpha-1)) with tau such that it sums to 1."""
    x = np.asarray(x, dtype=np.longdouble)
    step = np.longdouble(alpha) - 1
    z = step * (x - x.max()) / gamma

    def weights(tau):
        return np.maximum(z - tau, 0) ** (1 / step)

    tau = bisect(lambda tau: weights(tau).sum() - 1, np.longdouble(-1), np.longdouble(0))
    y = weights(tau)
    return (y / y.sum()).astype(np.float64)


# Omega of the papers, for the value max_y <x, y> - gamma * Omega(y) and the losses.


def omega_softmax(y):
    y = y[y > 0]
    return float((y * np.log(y)).sum())


def omega_sparsemax(y):
    return float(y @ y) / 2


def omega_pnormmax(y, p=1.5):
    return float((y**p).sum() ** (2 / p)) / 2


def omega_fusedmax(y, lam=0.1):
    return float(y @ y) / 2 + lam * float(np.abs(np.diff(y)).sum())


def omega_oscarmax(y, lam=0.01):
    i, j = np.triu_indices(len(y), 1)
    return float(y @ y) / 2 + lam * float(np.maximum(np.abs(y[i]), np.abs(y[j])).sum())


def omega_entmax(y, alpha=1.5):
    return float((y**alpha).sum() - 1) / (alpha * (alpha - 1))
