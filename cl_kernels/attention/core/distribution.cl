// SPDX-License-Identifier: Apache-2.0
// What     Checks the ends of the sequences that decode, are prefilled, and do either.
// Who      An item owns an end, and a sequence.
// Memory   An end and the one before it; two starts.
// Numerics Whole numbers.
// Assumes  Nothing of what the operands hold.
#include "lib/errors.clh"
#include "operations/attention_core/distribution_args.h"

#define END(n) ends[a.offset + (uint)(n) * a.stride]
#define START(n) starts[a.starts_offset + (uint)(n) * a.starts_stride]

KERNEL void attention_distribution(const global int* restrict ends, const global int* restrict starts,
                                   volatile global uint* errors, const struct AttentionDistributionArgs a) {
  const int n = get_global_id(0), most = (int)a.sequences;
  if (n < 3 && (END(n) < (n > 0 ? END(n - 1) : 0) || END(n) > most))
    raise_error(errors, a.errors, DISTRIBUTION_OUT_OF_ORDER, n);
  if (n < min(END(0), most)) {
    const int first = START(n), end = START(n + 1);
    if (end < first || (uint)end - (uint)first != 1) raise_error(errors, a.errors, DISTRIBUTION_NOT_ONE_ROW, n);
  }
}
