"""Model of the time on several threads: Amdahl's law with two lower bounds.

    T(n) = max(S + P/n, data / bandwidth, blocks * fold)

S is the time that does not shrink with threads, and P the time that threads share. Both are fitted to
measurements. The bounds are limits that S + P/n does not cover: the shared memory, and the fold, which
one thread at a time computes.
"""

import math
import statistics


def fit(runs):
    """Fits S and P to the `runs` at each number of threads, in seconds. Also returns the quartiles of S
    over the turns, because runs of one turn were measured close together."""
    turns = []
    for turn in zip(*runs.values()):
        slope, intercept = statistics.linear_regression([1 / count for count in runs], turn)
        turns.append((intercept, slope))
    serial = [it[0] for it in turns]
    low, middle, high = statistics.quantiles(serial) if len(serial) > 1 else serial * 3
    return {
        "serial": max(middle, 0.0),
        "serial quartiles": [max(low, 0.0), max(high, 0.0)],
        "parallel": max(statistics.median([it[1] for it in turns]), 0.0),
    }


def predict(serial, parallel, threads, memory, fold):
    """Returns the time on this many threads, and the limiting term. `memory` and `fold` are lower bounds
    in seconds."""
    shared = parallel / threads
    terms = {
        "kernels" if shared >= serial else "serial part": serial + shared,
        "memory": memory,
        "fold": fold,
    }
    bound = max(terms, key=terms.get)
    return terms[bound], bound


def binds_from(serial, parallel, ceiling):
    """Returns the fewest threads at which `ceiling` seconds are the limit, or None if they never are."""
    if serial >= ceiling:
        return None
    return max(1, math.ceil(parallel / (ceiling - serial)))
