/* SPDX-License-Identifier: Apache-2.0 */
/* Attention from C: on the best device, or on the one that the first argument selects. */
#include <stdio.h>
#include <stdlib.h>
#include <tessera/tessera_operations.h>

enum { kTokens = 5, kHeads = 2, kDim = 8, kElements = kTokens * kHeads * kDim };

static void check(tessera_status status, const char* call) {
  if (status == TESSERA_SUCCESS) return;
  fprintf(stderr, "%s: %s: %s\n", call, tessera_status_name(status), tessera_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  tessera_context_options options = {sizeof(tessera_context_options), 0, 0, 0};
  if (argc > 1) options.device = argv[1];
  tessera_context* context = NULL;
  check(tessera_open(&options, &context), "tessera_open");
  printf("tessera %s on %s\n", tessera_version(), tessera_device_summary(context));

  float values[kElements];
  for (int i = 0; i < kElements; ++i) values[i] = 0.1F * (float)(i % 7);
  const int64_t shape[4] = {1, kTokens, kHeads, kDim};
  const tessera_spec spec = {sizeof(tessera_spec), TESSERA_F32, 4, shape, NULL, 0};
  tessera_tensor* q = NULL;
  check(tessera_upload(context, &spec, values, sizeof values, &q), "tessera_upload");

  tessera_tensor* output = NULL;
  tessera_tensor* sums = NULL;
  tessera_flash_attention_call call = {0};
  call.query = q;
  call.key = q;
  call.value = q;
  call.causal = tessera_bool(1);
  call.output = &output;
  call.log_sum_exp = &sums;
  check(tessera_flash_attention(context, NULL, &call), "tessera_flash_attention");
  const char* ran = NULL;
  check(tessera_last_execution(context, &ran), "tessera_last_execution");

  float result[kElements];
  check(tessera_download(context, output, result, sizeof result), "tessera_download");
  printf("%s: %g\n", ran, (double)result[kElements - 1]);
  /* The first row sees only itself. */
  int wrong = 0;
  for (int i = 0; i < kHeads * kDim; ++i) {
    const double error = (double)result[i] - (double)values[i];
    wrong |= error > 1e-6 || error < -1e-6;
  }

  tessera_tensor_destroy(q);
  tessera_tensor_destroy(output);
  tessera_tensor_destroy(sums);
  tessera_context_destroy(context);
  if (wrong) fprintf(stderr, "that is wrong\n");
  return wrong;
}
