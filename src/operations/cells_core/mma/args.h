// SPDX-License-Identifier: Apache-2.0
// Arguments of cells/mma: read by C++ and OpenCL C.
#ifndef TESSERA_OPERATIONS_CELLS_CORE_MMA_ARGS_H
#define TESSERA_OPERATIONS_CELLS_CORE_MMA_ARGS_H
#include "operations/cells_core/args.h"

TESSERA_ABI_BEGIN

// A team has some batch entries of one direction; its parts, a work-group each, share the units.
struct CellTeamArgs {
  STRUCT(CellStepArgs) step;  // of the first; the kernel counts the others
  u32 teams;                  // of a direction
  u32 parts;
  u32 blocks;    // of BLOCK_ROWS batch entries, of a team
  u32 exchange;  // in scratch, as what follows: factors of two steps, [team, 2, blocks, ...]
  u32 flags;     // [team, parts]: steps that are in `exchange`
  u32 census;    // work-groups that have begun, and from CELL_VERDICT on what follows from that
  u32 patience;  // microseconds
  u32 rounded;   // back: where h before each step goes for gradients of weight_hh, [batch, tokens,
                 // directions, hidden] elements of the storage type from scratch on; 0: nowhere
};

TESSERA_ABI_END

// Words apart, so that those who count and those who wait read different lines.
#define CELL_VERDICT 32
#define CELL_CENSUS_WORDS 64
#define CELL_TOGETHER 1
#define CELL_ALONE 2

#endif  // TESSERA_OPERATIONS_CELLS_CORE_MMA_ARGS_H
