// SPDX-License-Identifier: Apache-2.0
// Where a gradient of s goes. Text for OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_NORMS_BACKWARD_STORE_H
#define TESSERA_OPERATIONS_NORMS_BACKWARD_STORE_H

FUNCTION void norm_store_gradient(NORM_PARAMETERS FLOAT4 value, INDEX dsum, INDEX dx,
                                  INDEX dresidual, INDEX floats, u32 left) {
  const u32 features = ARGS(features);
  if ((features & NORM_SUM) != 0u) value += LOAD_DSUM(dsum, left);
  STORE_DX(value, dx, left);
  if ((features & NORM_GRAD_RESIDUAL) != 0u) STORE_DRESIDUAL(value, dresidual, left);
  if ((features & NORM_KEEP_GRADIENT) != 0u) STORE_SCRATCH(value, floats);
}

#endif  // TESSERA_OPERATIONS_NORMS_BACKWARD_STORE_H
