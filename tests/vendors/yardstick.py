# SPDX-License-Identifier: Apache-2.0
"""How much slower this processor is, just now, than the one that a limit in seconds was written for. A compiler measures
it: what else runs beside one on the same core slows its large text and tables down far more than a loop."""
import os
import resource
import subprocess

# Of CPU time for TEXT on that processor, an AMD EPYC 9004 (Zen 4) with g++ 12.2: 0.39 to 0.45 in twelve runs beside other work, of which
# the longest counts, since it allows least elsewhere.
RECORDED_SECONDS = 0.45
TEXT = """
#include <functional>
#include <map>
#include <string>
int length(const std::string& word) {
  std::map<std::string, std::function<int()>> lengths;
  lengths[word] = [&] { return static_cast<int>(word.size()); };
  return lengths.at(word)();
}
"""


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def slowness():
    """1 where it is as fast or faster, and where no compiler can be had."""
    start = children_seconds()
    try:
        subprocess.run([os.environ.get('CXX', 'c++'), '-x', 'c++', '-O2', '-c', '-o', os.devnull, '-'], input=TEXT, text=True,
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return 1.0
    return max(1.0, (children_seconds() - start) / RECORDED_SECONDS)


def timed_beside(run):
    """What `run` returns, and the mean of what is measured before and after it."""
    before = slowness()
    result = run()
    return result, (before + slowness()) / 2
