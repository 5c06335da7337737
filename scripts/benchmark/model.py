"""The model of how time goes down with threads: Amdahl's law under two ceilings.

    T(n) = max(S + P/n, data / bandwidth, blocks * fold)

S is what does not get shorter with threads, P what threads share. Both are fitted to what was
measured; the ceilings are what S + P/n does not know: one memory, and one thread that folds at a
time.
"""

import math
import statistics


def fit(runs):
    """S and P of the `runs` at each number of threads, in seconds, with the quartiles of S over the
    turns: what was measured one after the other belongs together."""
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
    """The time on so many threads, and what binds. `memory` and `fold` are seconds at least."""
    shared = parallel / threads
    terms = {
        "kernels" if shared >= serial else "serial part": serial + shared,
        "memory": memory,
        "fold": fold,
    }
    bound = max(terms, key=terms.get)
    return terms[bound], bound


def binds_from(serial, parallel, ceiling):
    """The fewest threads at which `ceiling` seconds are not undercut; None if that never is."""
    if serial >= ceiling:
        return None
    return max(1, math.ceil(parallel / (ceiling - serial)))
