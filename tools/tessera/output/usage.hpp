// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "tessera/error.hpp"

namespace tessera::tool {

// The command line is wrong, as opposed to: what it asks for failed. Exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

// While names and values from the command line are looked up, a wrong argument is wrong usage.
template <class Work>
auto as_usage(Work work) {
  try {
    return work();
  } catch (const InvalidArgument& error) {
    throw UsageError(error.what());
  }
}

}  // namespace tessera::tool
