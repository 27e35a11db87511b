// SPDX-License-Identifier: Apache-2.0
// The calls whose programs are built: conformance cases and benchmarks of every operation.
#pragma once

#include <optional>
#include <string>

#include "tessera/record.hpp"
#include "vendors/recorder.hpp"

namespace tessera::vendors {

struct Wanted {
  // 0: what the rules choose for each call. 1: and each variant's own first configuration. 2: and
  // every configuration of its space.
  int level = 0;
  std::string operation{}, variant{}, dtype{}, call{};  // empty = all; the first and last: a part
  std::optional<Config> config{};                       // this one, of `variant`
};

void build_all(Recorder& recorder, const Wanted& wanted);

}  // namespace tessera::vendors
