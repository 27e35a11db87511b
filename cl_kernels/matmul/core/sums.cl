// SPDX-License-Identifier: Apache-2.0
// What     Sums of the rows of b, a product with ones: shares of the terms to scratch.
// Who      An item has four columns of a batch and a share of the terms.
// Memory   b once, by vectors where its columns are aligned.
// Numerics Float, terms in order; the shares are added in order by matmul/core/combine.
// Assumes  Operands below 2^31 elements.
#include "matmul/core/operands.clh"

KERNEL void matmul_sums(const global void* restrict b, global float* restrict scratch, const struct MatmulArgs args) {
  const MatmulOperands call = {.args = &args};
  const MatmulOperands* operands = &call;
  const uint vectors = (args.n + 3) / 4, terms = args.sums * args.k, each = (terms + args.splits - 1) / args.splits;
  const uint unit = (uint)get_global_id(0), vector = unit % vectors, batch = unit / vectors % args.batches;
  const uint split = unit / vectors / args.batches;
  if (split >= args.splits) return;
  const uint column = 4 * vector, count = min(args.n - column, 4u);
  const uint at = matmul_base(operands, args.b, batch) + column * args.b.column;
  const bool whole = (args.features & MATMUL_B_BY_COLUMNS) != 0 && count == 4;
  float4 sum = (float4)(0.0f);
  for (uint term = min(split * each, terms); term < min((split + 1) * each, terms); ++term) {
    const uint summand = term / args.k;
    const uint from = at + term % args.k * args.b.row + summand / args.sums1 * args.b_sum0 +
                      summand % args.sums1 * args.b_sum1;
    sum += whole ? load_typed_vector(b, from, B_TYPE) : load_typed_steps(b, from, args.b.column, count, B_TYPE);
  }
  *((global float4*)(scratch + args.partial) + unit) = sum;
}
