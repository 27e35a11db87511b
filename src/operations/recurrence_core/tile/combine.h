// SPDX-License-Identifier: Apache-2.0
// The body of recurrence/tile/combine.cl and combine.comp. Text for OpenCL C and GLSL. LOAD_MARK(i)
// as in steps.h.

const u32 row = GROUP_ID_Y * GROUP_COUNT_X + GROUP_ID_X, item = LOCAL_ID_X;
const u32 head = row % ARGS(heads), token = row / ARGS(heads) % ARGS(tokens);
const u32 batch = row / ARGS(heads) / ARGS(tokens);
#ifdef LOAD_MARK
// Rows of sequences that are marked, and of none.
if (MARKED != 0u && row < ARGS(rows)) {
  u32 sequence = batch;
  if (RECUR_HAS(RECUR_PACKED)) {
    sequence = 0u;
    u32 above = ARGS(sequences);  // the first that begins behind the token
    while (sequence < above) {
      const u32 middle = (sequence + above) / 2u;
      if (TO_U32(LOAD_BOUNDARY(middle)) <= token) {
        sequence = middle + 1u;
      } else {
        above = middle;
      }
    }
  }
  const bool is_some =
      !RECUR_HAS(RECUR_PACKED) || (sequence > 0u && token < TO_U32(LOAD_BOUNDARY(ARGS(sequences))));
  if (RECUR_HAS(RECUR_PACKED)) sequence -= 1u;
  if (is_some && LOAD_MARK(sequence * ARGS(heads) + head) == 0) return;
}
#endif
const u32 key_fours = row < ARGS(rows) ? (ARGS(key_dim) + 3u) / 4u : 0u;
float sum = 0.0f;
for (u32 k = item; k < key_fours; k += WG_X) {
  const u32 here = min(4u, ARGS(key_dim) - 4u * k);
  FLOAT4 dquery = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f), dkey = dquery, ddecay = dquery;
  for (u32 tile = 0u; tile < ARGS(tiles); ++tile) {
    if (RECUR_HAS(RECUR_GRAD_QUERY)) dquery += SCRATCH(RECUR_SHARE(dquery_shares, token, k));
    if (RECUR_HAS(RECUR_GRAD_KEY)) dkey += SCRATCH(RECUR_SHARE(dkey_shares, token, k));
    if (RECUR_HAS(RECUR_GRAD_DECAY)) ddecay += SCRATCH(RECUR_SHARE(decay_shares, token, k));
  }
  if (RECUR_HAS(RECUR_GRAD_QUERY)) STORE_DQUERY(dquery, RECUR_ROW(dquery, token) + 4u * k, here);
  if (RECUR_HAS(RECUR_GRAD_KEY)) STORE_DKEY(dkey, RECUR_ROW(dkey, token) + 4u * k, here);
  if (RECUR_HAS(RECUR_GRAD_GK)) STORE_DGK(ddecay, RECUR_ROW(dgk, token) + 4u * k, here);
  if (RECUR_HAS(RECUR_GRAD_G) && RECUR_HAS(RECUR_KEY_GATE))
    STORE_DG(ddecay, RECUR_ROW(dg, token) + 4u * k, here);
  sum += (ddecay.x + ddecay.y) + (ddecay.z + ddecay.w);
}
if (item == 0u && key_fours > 0u && RECUR_HAS(RECUR_GRAD_BETA)) {
  float dbeta = 0.0f;
  for (u32 tile = 0u; tile < ARGS(tiles); ++tile) dbeta += SCRATCH_FLOAT(RECUR_BETA_SHARE(token));
  STORE_DBETA(dbeta, RECUR_ROW(dbeta, token));
}
SUMS(item) = sum;
RECUR_BARRIER();
if (item == 0u && key_fours > 0u && RECUR_HAS(RECUR_GRAD_DECAY)) {
  for (u32 other = 1u; other < WG_X; ++other) sum += SUMS(other);
  if (RECUR_HAS(RECUR_GRAD_G) && RECUR_HAS(RECUR_GATE)) STORE_DGATE(sum, RECUR_ROW(dg, token));
  SCRATCH_FLOAT(4u * ARGS(sums) + row) = sum;
}
