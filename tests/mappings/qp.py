"""fusedmax and oscarmax as quadratic programs, finished exactly and proved optimal.

An interior point solver stops near 1e-9, too close to the 1e-8 the package promises. Its
answer is used only to read off which weights are equal and which are zero; given that,
the solution is a closed form, computed in fractions. The result is then *proved* optimal
(gap exactly zero), so neither the solver's accuracy nor the closed form is trusted.
"""

import functools
from fractions import Fraction

import cvxpy
import numpy as np

from .oracles import as_float, exact, rational

TOLERANCES = (1e-6, 1e-5, 1e-7, 1e-4, 1e-8, 1e-3, 1e-9)


class OracleError(AssertionError):
    """No reading of the solver's answer could be proved optimal: an oracle has failed."""


@functools.cache
def program(penalty, d):
    """The program over the simplex, compiled once a length."""
    y, z, lam = cvxpy.Variable(d), cvxpy.Parameter(d), cvxpy.Parameter(nonneg=True)
    if d == 1:
        structure = 0
    elif penalty == "total variation":
        structure = cvxpy.norm1(cvxpy.diff(y))
    else:
        i, j = np.triu_indices(d, 1)
        structure = cvxpy.sum(cvxpy.maximum(y[i], y[j]))
    objective = cvxpy.sum_squares(y) / 2 - z @ y + lam * structure
    problem = cvxpy.Problem(cvxpy.Minimize(objective), [y >= 0, cvxpy.sum(y) == 1])
    return problem, y, z, lam


def guess(penalty, z, strength):
    problem, y, parameter, lam = program(penalty, len(z))
    # adding a constant to z moves no solution; the solver likes small numbers
    parameter.value = z - z.max()
    lam.value = strength
    problem.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return y.value


def spread(total, sizes, sums):
    """Values v_k = sums_k / sizes_k - tau with sum(sizes * v) = total."""
    tau = (sum(sums) - total) / sum(sizes)
    return [s / n - tau for s, n in zip(sums, sizes)]


def breaks(y, tolerance):
    # python integers: numpy's would turn exact fractions into overflowing int64
    return [0, *(1 + np.flatnonzero(np.abs(np.diff(y)) > tolerance)).tolist(), len(y)]


def fused_from_structure(z, lam, y, tolerance):
    """The one candidate whose equal neighbours and zeros are those of ``y``."""
    cuts = breaks(y, tolerance)
    segments = [range(a, b) for a, b in zip(cuts, cuts[1:])]
    level = [float(np.mean(y[list(segment)])) for segment in segments]
    kept, sizes, sums = [], [], []
    for k, segment in enumerate(segments):
        if level[k] <= tolerance:
            continue
        neighbours = [level[n] for n in (k - 1, k + 1) if 0 <= n < len(segments)]
        pull = sum(1 if level[k] > other else -1 for other in neighbours)
        kept.append(segment)
        sizes.append(len(segment))
        sums.append(sum(z[i] for i in segment) - lam * pull)
    return fill(len(z), kept, spread(1, sizes, sums))


def oscar_from_structure(z, lam, y, tolerance):
    """The one candidate whose ties and zeros are those of ``y``."""
    order = np.argsort(y, kind="stable")
    cuts = breaks(y[order], tolerance)
    kept, sizes, sums = [], [], []
    for a, b in zip(cuts, cuts[1:]):
        group = order[a:b]
        if float(np.mean(y[group])) <= tolerance:
            continue
        # each pair (inside, lower) costs its inside member, each inside pair is shared
        pull = (b - a) * a + Fraction((b - a) * (b - a - 1), 2)
        kept.append(group)
        sizes.append(b - a)
        sums.append(sum(z[i] for i in group) - lam * pull)
    return fill(len(z), kept, spread(1, sizes, sums))


def fill(d, groups, values):
    y = [Fraction(0)] * d
    for group, value in zip(groups, values):
        for i in group:
            y[i] = value
    return y


def fused_gap(z, lam, y):
    """Optimality gap of fusedmax at y; zero exactly at the solution.

    y is optimal if and only if it maximises <z - y, u> - lam * TV(u) over the simplex,
    and that maximum is attained at a uniform distribution on an interval, because
    non-negative vectors are sums of intervals over which TV is additive.
    """
    d = len(z)
    w = [a - b for a, b in zip(z, y)]
    running = [Fraction(0)]
    for value in w:
        running.append(running[-1] + value)
    best = max(
        (running[b] - running[a] - lam * ((a > 0) + (b < d))) / (b - a)
        for a in range(d)
        for b in range(a + 1, d + 1)
    )
    variation = sum(abs(a - b) for a, b in zip(y, y[1:]))
    return best - (sum(a * b for a, b in zip(w, y)) - lam * variation)


def oscar_gap(z, lam, y):
    """The same for oscarmax, where the extreme points are uniform on any k positions."""
    d = len(z)
    w = [a - b for a, b in zip(z, y)]
    best, total = None, Fraction(0)
    for k, value in enumerate(sorted(w, reverse=True), start=1):
        total += value - lam * (d - k)
        best = total / k if best is None else max(best, total / k)
    ranked = sorted(y, reverse=True)
    penalty = sum((d - k) * value for k, value in enumerate(ranked, start=1))
    return best - (sum(a * b for a, b in zip(w, y)) - lam * penalty)


def solve(penalty, candidate_from, gap, x, gamma, lam):
    z, exact_lam = rational(x, gamma), exact(lam)
    y = guess(penalty, as_float(z), float(lam))
    for tolerance in TOLERANCES:
        candidate = candidate_from(z, exact_lam, y, tolerance)
        feasible = min(candidate) >= 0 and sum(candidate) == 1
        if feasible and gap(z, exact_lam, candidate) == 0:
            return as_float(candidate)
    raise OracleError(f"{penalty}: no proved solution for x={x!r}, {gamma=}, {lam=}")


def fusedmax(x, gamma=1.0, lam=0.1):
    return solve("total variation", fused_from_structure, fused_gap, x, gamma, lam)


def oscarmax(x, gamma=1.0, lam=0.01):
    return solve("pairwise max", oscar_from_structure, oscar_gap, x, gamma, lam)
