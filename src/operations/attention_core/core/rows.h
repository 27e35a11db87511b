// SPDX-License-Identifier: Apache-2.0
// The entry {first, end, position, segment} of a query row in the table of rows; policy.h says what
// it means. Text for OpenCL C and GLSL. Lengths and offsets that contradict the operands count as
// the nearest ones that do not; offsets of padded sequences have no range, only their differences.
#ifndef TESSERA_OPERATIONS_ATTENTION_ROWS_H
#define TESSERA_OPERATIONS_ATTENTION_ROWS_H

// end - begin, which an int need not hold, in [0, most].
FUNCTION int length_between(int begin, int end, int most) {
  if (end <= begin) return 0;
  const u32 length = TO_U32(end) - TO_U32(begin);
  return length < TO_U32(most) ? TO_INT(length) : most;
}

FUNCTION INT4 table_row(ROWS_PARAMETERS int batch, int row) {
  const u32 features = ARGS(features);
  const int q_len = TO_INT(ARGS(q_len)), kv_len = TO_INT(ARGS(kv_len));
  const INT4 nothing = MAKE_INT4(0, 0, 0, -1);
  int own = row, base = 0, rows = q_len, keys = kv_len;
  if ((features & ROWS_PACKED) != 0u) {  // the last sequence that begins at `row` or before
    int sequence = 0, last = TO_INT(ARGS(sequences));
    while (last - sequence > 1) {
      const int middle = (sequence + last) / 2;
      if (CU_Q_VALUE(middle) <= row) {
        sequence = middle;
      } else {
        last = middle;
      }
    }
    const int q_begin = clamp(CU_Q_VALUE(sequence), 0, q_len);
    base = clamp(CU_K_VALUE(sequence), 0, kv_len);
    rows = clamp(CU_Q_VALUE(sequence + 1), q_begin, q_len) - q_begin;
    keys = clamp(CU_K_VALUE(sequence + 1), base, kv_len) - base;
    own -= q_begin;
  } else if ((features & ROWS_SEQUENCES) != 0u) {
    rows = length_between(CU_Q_VALUE(batch), CU_Q_VALUE(batch + 1), q_len);
    keys = length_between(CU_K_VALUE(batch), CU_K_VALUE(batch + 1), kv_len);
  }
  if ((features & ROWS_Q_LENGTHS) != 0u) rows = clamp(Q_LENGTH_VALUE(batch), 0, rows);
  if ((features & ROWS_KV_LENGTHS) != 0u) keys = clamp(KV_LENGTH_VALUE(batch), 0, keys);
  if (own < 0 || own >= rows) return nothing;

  int position = own + ((features & ROWS_BOTTOM_RIGHT) != 0u ? keys - rows : 0);
  int first = 0, end = keys;
  if ((features & ROWS_POSITIONS) != 0u) {
    position = POSITION_VALUE(batch, row);
  } else {
    if (ARGS(band_low) > INDEX_MIN) first = max(first, position + ARGS(band_low));
    if (ARGS(band_high) < INDEX_MAX) end = min(end, position + ARGS(band_high) + 1);
    const int chunk = TO_INT(ARGS(chunk));
    if (chunk != 0) {
      const int chunk_begin = FLOOR_DIV(position, chunk) * chunk;
      first = max(first, chunk_begin);
      end = min(end, chunk_begin + chunk);
    }
    position += base;
  }
  int segment = 0;
  if ((features & ROWS_SEGMENTS) != 0u) segment = SEGMENT_VALUE(batch, row);
  if (segment < 0 || first >= end) return nothing;
  return MAKE_INT4(base + first, base + end, position, segment);
}

#endif  // TESSERA_OPERATIONS_ATTENTION_ROWS_H
