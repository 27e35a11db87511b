// SPDX-License-Identifier: Apache-2.0
// Everything. README.md has a ten-line program.
#pragma once

#include "tessera/context.hpp"
#include "tessera/cu_seqlens.hpp"
#include "tessera/device.hpp"
#include "tessera/dtype.hpp"
#include "tessera/error.hpp"
#include "tessera/mask.hpp"
#include "tessera/operations.hpp"
#include "tessera/options.hpp"
#include "tessera/precision.hpp"
#include "tessera/prewarm.hpp"
#include "tessera/record.hpp"
#include "tessera/selection.hpp"
#include "tessera/tensor.hpp"
#include "tessera/version.hpp"
