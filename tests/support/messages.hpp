// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/error.hpp"

namespace tessera::testing {

// What `work` throws of that type says; empty where it throws nothing. Other types pass through.
template <class Thrown = Error, class Work>
std::string message_of(Work work) {
  try {
    work();
  } catch (const Thrown& error) {
    return error.what();
  }
  return "";
}

}  // namespace tessera::testing
