// SPDX-License-Identifier: Apache-2.0
// What     y[r,i] = x[r,i] * w[i] / sqrt(mean over i of x[r,i]^2 + epsilon)
// Who      A work-group owns one row, an item every WG_X-th feature of it.
// Memory   x twice, w and y once.
// Numerics float; the items' sums are added as a tree.
// Assumes  WG_X is a power of two.
// WG_X comes from the configuration, as a -D.
typedef struct {
  uint features, x_offset, w_offset, y_offset;
  float epsilon;
} Args;

__attribute__((reqd_work_group_size(WG_X, 1, 1))) kernel void rms_norm(const global float* x, const global float* w,
                                                                       global float* y, const Args args) {
  local float sums[WG_X];
  const uint item = get_local_id(0);
  const size_t row = get_group_id(0) * (size_t)args.features;
  x += args.x_offset + row;
  y += args.y_offset + row;
  w += args.w_offset;

  float sum = 0.0f;
  for (uint i = item; i < args.features; i += WG_X) sum = fma(x[i], x[i], sum);
  sums[item] = sum;
  for (uint half_size = WG_X / 2; half_size > 0; half_size /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_size) sums[item] += sums[item + half_size];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float scale = 1.0f / sqrt(sums[0] / args.features + args.epsilon);
  for (uint i = item; i < args.features; i += WG_X) y[i] = x[i] * scale * w[i];
}
