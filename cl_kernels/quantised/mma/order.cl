// SPDX-License-Identifier: Apache-2.0
// What     Input with its terms in the order in which quantised/mma/hopper multiplies them, and the maps by which that copies.
// Who      An item takes eight terms of a row at a time.
// Memory   16 bytes of input to registers, four words to scratch.
// Numerics Nothing is computed.
// Assumes  sm_90a (ptx_promotion.hpp); rows of input and of weights begin at multiples of 16 bytes, terms are a multiple of 8.
#include "operations/quantised_core/mma/hopper.h"
#include "quantised/mma/ordered.clh"
#include "lib/hopper/tensor_map.clh"

KERNEL void quantised_order(const global scalar* restrict input, const global uchar* restrict weight,
                            global uint* restrict scratch, const struct QuantArgs args) {
  local uchar map_array[2 * TENSOR_MAP_BYTES] __attribute__((aligned(128)));
  const uint item = get_local_id(0), k = args.k, row = (k + 31) / 32 * 32, eights = row / 8;
  global uint* ordered = scratch + QUANT_HOPPER_INPUT_START;
  if (get_group_id(0) == 0 && item < 64) {
    const TensorMap of_weights = {.start = weight + args.weight_offset, .element = 1, .columns = NIBBLES ? k / 2 : k,
                                  .heads = 1, .rows = args.n, .batch = 1, .by_row = args.weight_row,
                                  .box_rows = QUANT_HOPPER_COLUMNS};
    const TensorMap of_input = {.start = ordered, .element = 2, .columns = row, .heads = 1, .rows = args.m, .batch = 1,
                                .by_row = row, .box_rows = ROWS};
    const uint number = item / 32;
    const TensorMap map = number == 0 ? of_weights : of_input;
    make_tensor_map_together(&map, LOCAL_ADDRESS(map_array) + number * TENSOR_MAP_BYTES,
                             scratch + number * (TENSOR_MAP_BYTES / 4), item % 32);
    PUBLISH_TENSOR_MAPS();
  }
  for (uint i = get_global_id(0); i < SHARES; i += get_global_size(0)) scratch[QUANT_HOPPER_DONE_START(args.m, k) + i] = 0;
  for (uint i = get_global_id(0); i < args.m * eights; i += get_global_size(0)) {
    const uint own = i / eights, eight = i % eights;
    uint4 x = (uint4)(0);
    if (8 * eight < k) x = *(const global uint4*)(input + (args.input_offset + own * args.input_row + 8 * eight));
    uint words[4];
    ordered_words(x, words);
    UNROLL for (uint w = 0; w < 4; ++w)
      ordered[own * (row / 2) + ordered_place(eight, w) * 4 + ordered_word(eight, w)] = words[w];
  }
}
