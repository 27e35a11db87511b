// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/record.hpp"

namespace tessera::operations::matmul {

Operation fused_mlp_record();

}  // namespace tessera::operations::matmul
