"""What every row function starts and ends with."""

import math

from fairseq_regattn.mappings._jit import jit

LARGE = 1e100  # beyond any support, and safe to add up


@jit
def peak(scores, mask):
    """The largest score that takes part, NaN if one of them is NaN, -inf if there is none."""
    n = scores.size
    bad = False
    a = b = c = d = -math.inf
    stop = 0
    if mask.size < n:  # four chains at once: one would wait for itself
        stop = n - n % 4
        for i in range(0, stop, 4):
            p, q, r, s = scores[i], scores[i + 1], scores[i + 2], scores[i + 3]
            bad |= (p != p) | (q != q) | (r != r) | (s != s)
            a = p if p > a else a
            b = q if q > b else b
            c = r if r > c else c
            d = s if s > d else d
    for i in range(stop, n):
        if mask.size < n or not mask[i]:
            p = scores[i]
            bad |= p != p
            a = p if p > a else a
    return math.nan if bad else max(max(a, b), max(c, d))


@jit
def select(scores, mask, gamma, reach, values, where, ranks):
    """Gather what can get weight: ``(score - top) / gamma`` where that is above ``-reach``.

    A mapping knows, before it is solved, how far below the best score the support can end;
    the rest, most of a sentence, need not be looked at again.

    Args:
        gamma, reach: what is not > 0 and finite, or >= 0, makes the row NaN.
        values, where, ranks: out, length n; `where` are positions, `ranks` the positions
            that are left when masked ones are removed.

    Returns:
        How many were gathered, how many take part, and whether the row can be solved:
        not if it holds NaN or +inf, or a parameter is out of its range.
    """
    top = peak(scores, mask)
    if not (top < math.inf and 0.0 < gamma < math.inf and reach >= 0.0):
        return 0, 0, False
    n = scores.size
    cut = reach * gamma * 1.001  # rounding must not cut into the support
    kept = 0
    rank = 0
    for i in range(n):  # without branches, which would be mispredicted
        score = float(scores[i])
        alive = (score > -math.inf) & (mask.size < n or not mask[i])
        values[kept] = score - top
        where[kept] = i
        ranks[kept] = rank
        kept += alive & (top - score <= cut)
        rank += alive
    for i in range(kept):
        values[i] = max(values[i] / gamma, -LARGE)
    return kept, rank, True


@jit
def threshold(values, n):
    """tau with ``sum(max(values - tau, 0)) == 1``, over the first n values.

    Values far from zero would have no digits left for weights: they lose their maximum first,
    in place. Newton's method from below on a convex piecewise linear function: the active set
    only shrinks, so it ends after finitely many passes (Michelot 1986), few in practice. A set
    that grows back can only be rounding, and ends it too.
    """
    top = values[0]
    for i in range(1, n):
        top = max(top, values[i])
    if abs(top) > 1.0:
        for i in range(n):
            values[i] -= top
        top = 0.0
    tau = top - 1.0
    active = n + 1
    while True:
        count = 0
        total = 0.0
        for i in range(n):
            value = values[i]
            inside = value > tau
            count += inside
            total += value if inside else 0.0
        if count >= active:
            return tau
        active = count
        tau = (total - 1.0) / count


@jit
def refuse(scores, mask, out, label, labels):
    """Write a row that cannot be solved: NaN, labelled `label`, where a score takes part."""
    n = scores.size
    for i in range(n):
        alive = scores[i] != -math.inf and (mask.size < n or not mask[i])
        out[i] = math.nan if alive else 0.0
        if labels.size >= n:
            labels[i] = label if alive else 0
