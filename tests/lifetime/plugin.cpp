// SPDX-License-Identifier: Apache-2.0
// A library with a Context of its own, which dies with it.
#include "lifetime/work.hpp"

extern "C" __attribute__((visibility("default"))) bool tessera_run_on_static(const char* device) {
  static const tessera::Context context = tessera::testing::open_plainly(device);
  return tessera::testing::runs_right(context);
}
