// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tessera/record.hpp"

namespace tessera::kernel {

// All elements, row-major; from the first value on again where there are fewer values. Much faster
// than to write as many values as there are elements.
void write_repeated(HostTensor& tensor, std::span<const double> values);

}  // namespace tessera::kernel
