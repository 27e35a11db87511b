// SPDX-License-Identifier: Apache-2.0
// What the ways of moe_ffn share: what lies in scratch, and the calls that they make.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "operations/moe/ffn.hpp"
#include "operations/moe/ffn/args.h"

namespace tessera::operations::moe {

// What lies in scratch, one behind the other.
struct FfnPlaces {
  Place sizes, rows, gate_up, gated, outputs, grad_outputs, grad_gated;
  std::uint64_t bytes = 0;
};
using PlacesOf = FfnPlaces (*)(const Problem&);

// From byte `start` on, a multiple of 256; gate_up only where it `is_stored`.
FfnPlaces ffn_places(const Problem& problem, std::uint64_t start, bool is_stored);
abi::MoeFfnArgs ffn_arguments(const Problem& problem, const FfnPlaces& places);
Refusal rejects_ffn(const Problem& problem, const DeviceProfile& profile, const FfnPlaces& places);
// The pass "sizes", of the experts' rows.
Pass sizes_pass(const FfnSlots& slots, PlacesOf places_of);

// The calls of a problem: operands by name, those of the caller by slot.
class FfnCalls {
 public:
  FfnCalls(const Problem& problem, FfnPlaces places);

  // `gated`: the steps from rows to gated values.
  std::vector<Step> forward(std::vector<Step> gated);
  std::vector<Step> backward(std::vector<Step> gated);
  // grouped_matmul of rows: to gate_up; of a gate alone, to gated values.
  CallStep gate_up() const;
  CallStep gate() const;

 private:
  using Operands = std::vector<std::pair<std::string, Place>>;

  void inside(std::vector<Step> gated);
  void outputs();
  Place operand(std::size_t slot) const { return {slot, problem_.spec(slot)}; }
  void add(Operands& to, const char* name, std::size_t slot) const;
  Operands choices(Operands more) const;
  Operands product(const Place& lhs, const Place& rhs) const;
  Options transposed() const { return {{"transpose_rhs", call_.transposed}}; }
  void call(std::string operation, Operands operands, Options options);

  const Problem& problem_;
  const FfnProblem& call_;
  const FfnPlaces places_;
  std::vector<Step> steps_{};
};

}  // namespace tessera::operations::moe
