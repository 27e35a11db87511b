// SPDX-License-Identifier: Apache-2.0
// What     High and low parts of b's floats (lib/mma/float_products.clh), as tensor copies of matmul/hopper/product want them;
//          elements of 16 bits as floats.
// Who      Work-groups step over tiles of HOPPER_SPLIT_COLUMNS columns by HOPPER_PART_TERMS terms; matrices that batches share
//          are split once.
// Memory   Tiles through local memory, so that reads and writes are of neighbours whichever way b lies; zeros behind the terms.
// Numerics None but the splitting; elements of 16 bits are numbers of tf32.
// Assumes  WG_X 256; operands and scratch below 2^31 elements.
//
// Where floats of a are contiguous along the rows the product reads them one by one, two terms to an item, which lie in different
// banks if they are neighbours; of 16 bits they come in pairs: terms 2 i and 2 i + 1 of eight take the places i and i + 4 that the
// matrix unit gives to an item.
#include "lib/mma/float_products.clh"
#include "lib/typed.clh"
#include "matmul/hopper/factors.clh"
#include "operations/matmul_core/core/args.h"
#include "operations/matmul_core/hopper/geometry.h"

#define TILE_COLUMNS HOPPER_SPLIT_COLUMNS
#define LOADS (TILE_COLUMNS * HOPPER_PART_TERMS / WG_X)
#define CHUNKS (HOPPER_PART_TERMS / 4)  // of four floats of a column
#define TERM_OF_PLACE(place) (A_BY_TERMS && !NARROW_A ? (place) : (place) / 8 * 8 + (place) % 4 * 2 + (place) / 4 % 2)

KERNEL void matmul_split(const global void* restrict b, global float* restrict scratch, const struct MatmulArgs args) {
  local float tile[TILE_COLUMNS][HOPPER_PART_TERMS + 1];
  const uint item = (uint)get_local_id(0), pitch = HOPPER_PARTS_PITCH(args.k);
  const uint steps = pitch / (PARTS * HOPPER_PART_TERMS), tiles = (args.n + TILE_COLUMNS - 1) / TILE_COLUMNS;
  const uint inner = args.b.batch2 != 0 ? args.batches2 : 1, outer = args.b.batch1 != 0 ? args.batches1 : 1;
  const bool by_terms = args.b.row == 1;
  ROLLED for (uint unit = (uint)get_group_id(0); unit < steps * tiles * inner * outer; unit += (uint)get_num_groups(0)) {
    const uint step = unit % steps, column0 = unit / steps % tiles * TILE_COLUMNS, matrix = unit / steps / tiles;
    const uint from = args.b.offset + matrix / inner * args.b.batch1 + matrix % inner * args.b.batch2;
    float x[LOADS];
    uint at[LOADS];
    UNROLL for (uint i = 0; i < LOADS; ++i) {
      const uint place = item + i * WG_X;
      const uint column = by_terms ? place / HOPPER_PART_TERMS : place % TILE_COLUMNS;
      const uint own = by_terms ? place % HOPPER_PART_TERMS : place / TILE_COLUMNS, term = step * HOPPER_PART_TERMS + own;
      at[i] = column * (HOPPER_PART_TERMS + 1) + own;
      x[i] = column0 + column < args.n && term < args.k
                 ? load_typed_steps(b, from + term * args.b.row + (column0 + column) * args.b.column, 1, 1, B_TYPE).s0
                 : 0.0f;
    }
    UNROLL for (uint i = 0; i < LOADS; ++i) (&tile[0][0])[at[i]] = x[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (uint i = 0; i < TILE_COLUMNS * CHUNKS / WG_X; ++i) {
      const uint place = item + i * WG_X, column = place / CHUNKS, chunk = place % CHUNKS;
      if (column0 + column < args.n) {
        uint both[4], high[4], low[4];
        UNROLL for (uint j = 0; j < 4; ++j) both[j] = as_uint(tile[column][TERM_OF_PLACE(4 * chunk + j)]);
        if (PARTS == 2) {
          MMA_SPLIT_FLOATS(high, low, both, 4);
        } else {
          UNROLL for (uint j = 0; j < 4; ++j) high[j] = both[j];
        }
        global uint* to = (global uint*)scratch + args.packed_b + (matrix * args.n + column0 + column) * pitch +
                          step * (PARTS * HOPPER_PART_TERMS) + 4 * chunk;
        *(global uint4*)to = (uint4)(high[0], high[1], high[2], high[3]);
        if (PARTS == 2) *(global uint4*)(to + HOPPER_PART_TERMS) = (uint4)(low[0], low[1], low[2], low[3]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
