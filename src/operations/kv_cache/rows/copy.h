// SPDX-License-Identifier: Apache-2.0
// The body of kv_cache/rows/copy.cl and kv_cache/rows/copy.comp. Text for OpenCL C and GLSL.
// FROM, TO and UNITS are those of the work-group's side, LIST(i) is an entry of scratch,
// ROW_AT(rows, n) the address of row (n, a, b), COPY_UNIT(from, to) copies one unit, CLEAR_FROM(at)
// and CLEAR_TO(at) make one zero.

const u32 lane = LOCAL_ID % TO_U32(LANES), line = LOCAL_ID / TO_U32(LANES);
const u32 lines = TO_U32(WG_X) / TO_U32(LANES), units = UNITS;
for (u32 row = GROUP_ID * lines + line; row < ARGS(rows); row += GROUP_COUNT * lines) {
  const u32 b = row % ARGS(axis1), rest = row / ARGS(axis1);
  const u32 a = rest % ARGS(axis0), n = rest / ARGS(axis0);
  const i32 source = ARGS(from_list) == CACHE_NO_LIST ? TO_INT(n) : LIST(ARGS(from_list) + n);
  const i32 target = ARGS(to_list) == CACHE_NO_LIST ? TO_INT(n) : LIST(ARGS(to_list) + n);
  if (source != CACHE_NOWHERE && target != CACHE_NOWHERE) {
    const INDEX from = ROW_AT(FROM, TO_U32(source)), to = ROW_AT(TO, TO_U32(target));
    for (u32 i = lane; i < units; i += TO_U32(LANES)) {
      COPY_UNIT(from + i, to + i);
      if (ARGS(moves) != 0u) CLEAR_FROM(from + i);
    }
  } else if (ARGS(moves) != 0u && target != CACHE_NOWHERE) {
    const INDEX to = ROW_AT(TO, TO_U32(target));
    for (u32 i = lane; i < units; i += TO_U32(LANES)) CLEAR_TO(to + i);
  }
}
