// SPDX-License-Identifier: Apache-2.0
// Where matrices lie: read by OpenCL C and GLSL, which bring MATMUL_PARAMETERS and ARGS(name).
#ifndef TESSERA_OPERATIONS_MATMUL_CORE_PLACE_H
#define TESSERA_OPERATIONS_MATMUL_CORE_PLACE_H

// Element (0, 0) of a batch.
FUNCTION u32 matmul_base(MATMUL_PARAMETERS STRUCT(MatmulView) view, u32 batch) {
  const u32 inner = batch % ARGS(batches2), rest = batch / ARGS(batches2);
  return view.offset + rest / ARGS(batches1) * view.batch0 + rest % ARGS(batches1) * view.batch1 +
         inner * view.batch2;
}

#endif  // TESSERA_OPERATIONS_MATMUL_CORE_PLACE_H
