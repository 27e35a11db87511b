// SPDX-License-Identifier: Apache-2.0
// What grouped products on Hopper keep in local memory behind that of matmul/hopper, and in
// scratch: read by C++ and OpenCL C.
#ifndef TESSERA_OPERATIONS_GROUPED_CORE_HOPPER_GEOMETRY_H
#define TESSERA_OPERATIONS_GROUPED_CORE_HOPPER_GEOMETRY_H
#include "operations/grouped_core/args.h"
#include "operations/matmul_core/core/args.h"

#define GROUPED_MOST_HELD 1024  // groups, whose ends are in local memory
// Two tiles that are handed over, with their barriers; then where the groups begin and end.
#define GROUPED_TILES_START HOPPER_LOCAL_BYTES
#define GROUPED_ENDS_START (GROUPED_TILES_START + 64)
#define GROUPED_LOCAL_BYTES (GROUPED_ENDS_START + 4 * (GROUPED_MOST_HELD + 1))

// Tensor maps in scratch: of a, b and the result; where terms are ragged behind them those of a and
// b of each group, whose terms end where the group does.
#define GROUPED_MAPS 3

TESSERA_ABI_BEGIN

// Where terms are ragged k counts those of all groups; batch2 of a view is the step between groups.
struct GroupedPrepareArgs {
  STRUCT(GroupedListArgs) list;
  STRUCT(MatmulArgs) product;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_GROUPED_CORE_HOPPER_GEOMETRY_H
