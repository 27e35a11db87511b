# SPDX-License-Identifier: Apache-2.0
"""How much slower this processor is, just now, than the one that a limit in seconds was written for."""
import time

RECORDED_SECONDS = 0.55  # of CPU time for work(), on that processor when it was quiet


def work():
    """Branches, small allocations, tables and text: what a compiler does, too."""
    table = {}
    for step in range(400000):
        table[step * 7919 % 100003] = table.get(step * 31 % 100003, 0) + step
    return sorted(str(item) for item in table.items())


def slowness():
    """1 where it is as fast or faster."""
    start = time.process_time()
    work()
    return max(1.0, (time.process_time() - start) / RECORDED_SECONDS)


def timed_beside(run):
    """What `run` returns, and the mean of what is measured before and after it."""
    before = slowness()
    result = run()
    return result, (before + slowness()) / 2
