// SPDX-License-Identifier: Apache-2.0
// From what the tuner reports to what the caches keep.
#pragma once

#include <string>

#include "selection/selector.hpp"

namespace tessera::selection {

Entry entry_of(const Problem& problem, Backend backend,
               const TuneReport& report);  // of report.best, which is there

// Why the report has no best, with every candidate's failure.
std::string failures_of(const TuneReport& report);

// Whether two entries say the same, whenever they were written.
bool same_result(const Entry& a, const Entry& b);

}  // namespace tessera::selection
