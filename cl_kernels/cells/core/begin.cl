// SPDX-License-Identifier: Apache-2.0
// What     Before the steps of recurrent cells: recurrent weights in panels, bias, lengths and states as floats.
// Who      An item takes elements one pace apart.
// Memory   Operands once; scratch once.
// Numerics Copies.
// Assumes  Operands and scratch below 2^31 elements.
#include "lib/errors.clh"
#include "lib/typed.clh"
#include "operations/cells_core/args.h"

#define ARGS(name) (args.name)
#define LOCAL_ID_X ((uint)get_local_id(0))
#define GROUP_ID_X ((uint)get_group_id(0))
#define GROUP_COUNT_X ((uint)get_num_groups(0))
#define CELL_HAS(feature) ((args.features & (feature)) != 0)
#define LOAD(from, at) load_typed_steps(from, at, 0, 1, args.type).x
#define LOAD_WEIGHT(at) LOAD(weight_elements, at)
#define LOAD_BIAS(at) LOAD(bias_elements, at)
#define LOAD_H(at) LOAD(h_elements, at)
#define LOAD_C(at) LOAD(c_elements, at)
#define LOAD_INPUT(at) LOAD(input_elements, at)
#define LOAD_LENGTH(at) given_lengths[at]
#define SCRATCH(at) scratch[at]
#define STORE_CLEAN(x, at) store_typed_steps((float4)(x), scratch, at, 0, 1, args.type)
#define RAISE(error, index) raise_error(errors, args.errors, error, index)

KERNEL void cells_begin(const global void* restrict weight_elements, const global void* restrict bias_elements,
                        const global void* restrict h_elements, const global void* restrict c_elements,
                        const global int* restrict given_lengths, const global void* restrict input_elements,
                        global float* restrict scratch, volatile global uint* restrict errors,
                        const struct CellBeginArgs args) {
#include "operations/cells_core/begin.h"
}
