// SPDX-License-Identifier: Apache-2.0
// lib/mma alone: product = a b^T, then sums = product c, of two warps with 16 rows each. The rows of b
// and c from `end` on must read as zeros.
#define ALIGNED (FEATURES % 8 == 0 && COLUMNS % 8 == 0)
#if DTYPE == DTYPE_F32
#include "lib/mma/float_products.clh"
#else
#include "lib/mma/products.clh"
#endif

#define M 1
#define N 2
#define K ((FEATURES + 15) / 16)
#define STEP (16 * N)
#define PITCH(columns) (128 * MMA_CEIL_DIV((columns) * ELEMENT_BYTES, 128))
#define OUT_STEPS (ELEMENT_BYTES / 2 * MMA_CEIL_DIV(COLUMNS, 8 * ELEMENT_BYTES))
#if DTYPE == DTYPE_F32
MMA_TAKE_FLOAT_PRODUCTS(take_products, M, N, K, PITCH(FEATURES), PITCH(FEATURES))
MMA_ADD_FLOAT_PRODUCTS(add_products, M, OUT_STEPS, N, PITCH(COLUMNS))
MMA_STORE_FLOAT_ROW(store_row, OUT_STEPS, COLUMNS)
#else
MMA_TAKE_PRODUCTS(take_products, M, N, K, PITCH(FEATURES), PITCH(FEATURES))
MMA_ADD_PRODUCTS(add_products, M, OUT_STEPS, N, PITCH(COLUMNS))
MMA_STORE_ROWS(store_rows, M, OUT_STEPS, COLUMNS)
#endif

KERNEL void mma_products(const global scalar* a, const global scalar* b, const global scalar* c,
                         global float* product_out, global scalar* sum_out, const uint end) {
  local uchar memory[(32 + STEP) * PITCH(FEATURES) + STEP * PITCH(COLUMNS)] __attribute__((aligned(1024)));
  const uint at_a = LOCAL_ADDRESS(memory), at_b = at_a + 32 * PITCH(FEATURES);
  const uint at_c = at_b + STEP * PITCH(FEATURES);
  const uint item = get_local_id(0), lane = item % 32, warp = item / 32;
  const Matrix of_a = {a, FEATURES, 0, 32, 0}, of_b = {b, FEATURES, 0, (int)end, 0};
  const Matrix of_c = {c, COLUMNS, 0, (int)end, 0};
  copy_rows(at_a, of_a, 0, 32, FEATURES, PITCH(FEATURES), item);
  copy_rows(at_b, of_b, 0, STEP, FEATURES, PITCH(FEATURES), item);
  copy_rows(at_c, of_c, 0, STEP, COLUMNS, PITCH(COLUMNS), item);
  copy_wait();
  barrier(CLK_LOCAL_MEM_FENCE);

  float product[8 * M * N], sum[8 * M * OUT_STEPS];
  take_products(product, at_a + warp * 16 * PITCH(FEATURES) + place_of_a(lane, PITCH(FEATURES)),
                at_b + place_of_b(lane, PITCH(FEATURES)));
  const uint row = warp * 16 + lane / 4;
  for (uint r = 0; r < 2 * M; ++r)
    for (uint i = 0; i < 4 * N; ++i)
      product_out[(row + 8 * r) * STEP + i / 2 * 8 + lane % 4 * 2 + i % 2] = product[r * 4 * N + i];
  UNROLL for (uint i = 0; i < 8 * M * OUT_STEPS; ++i) sum[i] = 0.0f;
#if DTYPE == DTYPE_F32
  add_products(sum, product, at_c + place_of_float_rows(lane, PITCH(COLUMNS)));
  for (uint r = 0; r < 2 * M; ++r)
    store_row(sum_out + (row + 8 * r) * COLUMNS, sum + r * 4 * OUT_STEPS, 0.5f, lane);
#else
  add_products(sum, product, at_c + place_of_a(lane, PITCH(COLUMNS)));
  store_rows(sum_out, COLUMNS, sum, 0.5f, (int)row, 32, lane);
#endif
}
