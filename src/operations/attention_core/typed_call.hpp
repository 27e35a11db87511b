// SPDX-License-Identifier: Apache-2.0
// What the typed functions of the family share: option structs become named options and operands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/context.hpp"
#include "tessera/options.hpp"

namespace tessera::operations::attention {

inline void add(Tensors& tensors, const char* name, const Tensor& tensor) {
  if (tensor) tensors.emplace(name, tensor);
}

template <class CallOptions>
Options band_options(const CallOptions& from) {
  Options options{{"causal", from.causal}};
  if (from.softmax_scale) options["softmax_scale"] = static_cast<double>(*from.softmax_scale);
  if (from.sliding_window) {
    options["sliding_window"] =
        std::vector<std::int64_t>(from.sliding_window->begin(), from.sliding_window->end());
  }
  if (from.precision) options["precision"] = std::string(to_string(*from.precision));
  return options;
}

// Of packed queries over pages.
template <class CallOptions>
Options paged_options(const CallOptions& from) {
  Options options{{"num_splits", from.num_splits}};
  if (from.softmax_scale) options["softmax_scale"] = static_cast<double>(*from.softmax_scale);
  if (from.logits_soft_cap) options["logits_soft_cap"] = static_cast<double>(*from.logits_soft_cap);
  if (from.sliding_window) options["sliding_window"] = *from.sliding_window;
  if (from.precision) options["precision"] = std::string(to_string(*from.precision));
  return options;
}

// One by one: an initialiser list would copy each tensor twice.
inline Tensors required(const Tensor& query, const Tensor& key, const Tensor& value) {
  Tensors tensors;
  tensors.emplace("query", query);
  tensors.emplace("key", key);
  tensors.emplace("value", value);
  return tensors;
}

}  // namespace tessera::operations::attention
