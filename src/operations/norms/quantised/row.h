// SPDX-License-Identifier: Apache-2.0
// The body of norms/quantised/forward.cl and norms/quantised/forward.comp. Text for OpenCL C and
// GLSL. SUM_LINE(x) and LARGEST_LINE(x) are of all items of the work-group; LOAD_… give float,
// STORE_CODE takes bits.

// Element i of the row before it is quantised.
#define NORM_S(i) (LOAD_X(x + (i)) + (has_residual ? LOAD_RESIDUAL(residual + (i)) : 0.0f))
#define NORM_Y(i)                                                       \
  ((NORM_S(i) - mean) * factor * (has_weight ? LOAD_WEIGHT(i) : 1.0f) + \
   (has_bias ? LOAD_BIAS(i) : 0.0f))
#define EACH_COLUMN(i) for (u32 i = item; i < dim; i += TO_U32(WG_X))

const u32 features = ARGS(norm.features), dim = ARGS(norm.dim), rows = ARGS(norm.rows);
const bool has_residual = (features & NORM_RESIDUAL) != 0u;
const bool has_weight = (features & NORM_WEIGHT) != 0u, has_bias = (features & NORM_BIAS) != 0u;
const u32 item = LOCAL_ID;
for (u32 row = GROUP_ID; row < rows; row += GROUP_COUNT) {
  const u32 inner = row % ARGS(norm.rows2), rest = row / ARGS(norm.rows2);
  const u32 middle = rest % ARGS(norm.rows1), outer = rest / ARGS(norm.rows1);
  const INDEX x = ROW_OF(ARGS(norm.x)), residual = ROW_OF(ARGS(norm.residual));
  const INDEX y = ROW_OF(ARGS(norm.y));

  if ((features & NORM_SUM) != 0u) {
    const INDEX sum = ROW_OF(ARGS(norm.sum));
    EACH_COLUMN(i) STORE_SUM(NORM_S(i), sum + i);
  }
  float mean = 0.0f;
  if (CENTERED != 0) {
    float part = 0.0f;
    EACH_COLUMN(i) part += NORM_S(i);
    mean = SUM_LINE(part) * ARGS(norm.mean_factor);
  }
  float squares = 0.0f;
  EACH_COLUMN(i) {
    const float value = NORM_S(i) - mean;
    squares += value * value;
  }
  const float factor = RSQRT(SUM_LINE(squares) * ARGS(norm.mean_factor) + ARGS(norm.epsilon));

  float part = 0.0f;
  EACH_COLUMN(i) {
    const float magnitude = ABSOLUTE(NORM_Y(i));
    part = magnitude > part ? magnitude : part;  // NaN is not
  }
  // 2^-100, so that a row of zeros has a scale, too.
  const float scale = max(LARGEST_LINE(part), 7.8886091e-31f) / ARGS(largest);
  if (item == 0u) STORE_SCALE(scale, ROW_OF(ARGS(scale)));
  EACH_COLUMN(i) STORE_CODE(to_storage(ARGS(type), NORM_Y(i) / scale), y + i);
}
