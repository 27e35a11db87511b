// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/core/few.clh.
#ifndef TESSERA_KV_CACHE_CORE_FEW_GLSL
#define TESSERA_KV_CACHE_CORE_FEW_GLSL
#include "lib/prelude.glsl"
#include "lib/errors.glsl"
#include "operations/kv_cache/args.h"
#include "operations/kv_cache/tables_args.h"

shared int highest_of[WG_X], starts_of[CACHE_FEW + 1u], length_of[CACHE_FEW], place_of[CACHE_FEW];
shared uint disorder;

#define DISORDER disorder
#define LOAD_BOUNDARY(i) boundaries_of[FEW(boundaries).offset + (i)*FEW(boundaries).stride]
#define HIGHEST(item) highest_of[item]
#define RESULT(i) starts_of[i]
#define BARRIER() barrier()
#define SLOT(i) slots[FEW(places).slots_offset + (i)]
#define TABLE(sequence, page) \
  tables[FEW(places).tables_offset + uint(sequence) * FEW(places).tables_stride + uint(page)]
#define LOAD_LENGTH(sequence) lengths[FEW(places).lengths_offset + uint(sequence)]
#define LENGTH(sequence) length_of[sequence]
#define START(sequence) starts_of[sequence]
#define COUNT count_of[FEW(places).count_offset]
#define PLACE(n) place_of[n]
#define RAISE(kind, index) RAISE_ERROR(errors, FEW(places).errors, kind, index)

#endif  // TESSERA_KV_CACHE_CORE_FEW_GLSL
