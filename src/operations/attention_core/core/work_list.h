// SPDX-License-Identifier: Apache-2.0
// The body of attention/core/work.cl and attention/core/work.comp. Text for OpenCL C and GLSL.
// CU_Q(n) is an offset of the sequences, TABLE(row) and LIST(n) are entries of the table of rows
// and of the list, BEGINS(turn, item), BEHIND and ENDS(turn, item) shared numbers.

const int item = LOCAL_ID, items = TO_INT(WG_X), sequences = TO_INT(ARGS(rows.sequences));
const int q_len = TO_INT(ARGS(rows.q_len)), pack = TO_INT(ARGS(pack)), most = TO_INT(ARGS(tile));
int begun = 0, tiles = 0;  // before this round
for (int first = 0; UNIFORM(first < sequences); first += items) {
  // Where a sequence begins, were the offsets in order; that behind the round's last one, too.
  const int sequence = first + item;
  int offset = sequence < sequences ? min(CU_Q(sequence), q_len) : q_len;
  if (sequence == 0) offset = 0;
  int from = 0;
  BEGINS(0, item) = max(offset, begun);
  for (int step = 1; step < items; step *= 2) {
    BARRIER();
    BEGINS(1 - from, item) = max(BEGINS(from, item), BEGINS(from, max(item - step, 0)));
    from = 1 - from;
  }
  if (item == items - 1)
    BEHIND =
        max(sequence + 1 < sequences ? min(CU_Q(sequence + 1), q_len) : q_len, BEGINS(from, item));
  BARRIER();
  const int next = item + 1 < items ? BEGINS(from, min(item + 1, items - 1)) : BEHIND;
  int to = 0;
  const int own = next - BEGINS(from, item);
  ENDS(0, item) = TO_U32(own) < ARGS(least_rows) || TO_U32(own) > ARGS(most_rows)
                      ? 0
                      : (own * pack + most - 1) / most;
  for (int step = 1; step < items; step *= 2) {
    BARRIER();
    ENDS(1 - to, item) = ENDS(to, item) + (item >= step ? ENDS(to, max(item - step, 0)) : 0);
    to = 1 - to;
  }
  BARRIER();
  const int count = ENDS(to, items - 1);
  for (int tile = item; tile < count; tile += items) {
    int owner = 0, last = items - 1;  // the first sequence whose tiles end behind this one
    while (owner < last) {
      const int middle = (owner + last) / 2;
      if (ENDS(to, middle) > tile) {
        last = middle;
      } else {
        owner = middle + 1;
      }
    }
    const int before = owner > 0 ? ENDS(to, owner - 1) : 0;
    const int begin = BEGINS(from, owner) * pack + (tile - before) * most;
    const int all = owner + 1 < items ? BEGINS(from, min(owner + 1, items - 1)) : BEHIND;
    const int end = min(begin + most, all * pack);
    int first_key = INDEX_MAX, end_key = 0, common_first = 0, common_end = INDEX_MAX;
    for (int row = begin / pack; row <= (end - 1) / pack; ++row) {
      const INT4 entry = TABLE(row);
      common_first = max(common_first, entry.x);
      common_end = min(common_end, entry.y);
      if (entry.x >= entry.y) continue;
      first_key = min(first_key, entry.x);
      end_key = max(end_key, entry.y);
    }
    first_key = min(first_key, end_key);
    LIST(1 + 2 * (tiles + tile)) = MAKE_INT4(first + owner, begin, end - begin, first_key);
    LIST(2 + 2 * (tiles + tile)) = MAKE_INT4(end_key - first_key, common_first, common_end, 0);
  }
  begun = BEHIND;
  tiles += count;
  BARRIER();
}
if (item == 0) LIST(0) = MAKE_INT4(tiles, 0, 0, 0);
