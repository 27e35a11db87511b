// SPDX-License-Identifier: Apache-2.0
// The typed functions.
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "tessera/error.hpp"
#include "tessera/operations/kv_cache.hpp"

namespace tessera {
namespace {

void add(Tensors& tensors, const char* name, const Tensor& tensor) {
  if (tensor) tensors.emplace(name, tensor);
}

void add(Tensors& tensors, const CacheSlots& slots) {
  add(tensors, "slot_mapping", slots.slot_mapping);
  add(tensors, "block_tables", slots.block_tables);
  add(tensors, "kv_lens", slots.kv_lens);
  add(tensors, "query_start_loc", slots.query_start_loc);
  add(tensors, "num_seqs", slots.num_seqs);
}

}  // namespace

void append_to_cache(const Executor& on, const Tensor& keys, const Tensor& values,
                     const PagedCache& cache, const CacheSlots& slots) try {
  Tensors tensors{{"keys", keys}, {"key_cache", cache.keys}};
  add(tensors, "values", values);
  add(tensors, "value_cache", cache.values);
  add(tensors, "key_scale", cache.key_scale);
  add(tensors, "value_scale", cache.value_scale);
  add(tensors, slots);
  on.run("append_to_cache", std::move(tensors));
} catch (...) {
  rethrow_as_error();
}

CacheGradients append_to_cache_backward(const Executor& on, const PagedCache& grad_cache,
                                        const CacheSlots& slots,
                                        std::optional<std::int64_t> tokens) try {
  if (grad_cache.key_scale || grad_cache.value_scale)
    throw InvalidArgument("append_to_cache_backward: gradients have no scales");
  Tensors tensors{{"grad_key_cache", grad_cache.keys}};
  add(tensors, "grad_value_cache", grad_cache.values);
  add(tensors, slots);
  Options options;
  if (tokens) options["tokens"] = *tokens;
  Tensors results = on.run("append_to_cache_backward", std::move(tensors), std::move(options));
  return {.keys = std::move(results["grad_keys"]), .values = std::move(results["grad_values"])};
} catch (...) {
  rethrow_as_error();
}

void copy_pages(const Executor& on, const Tensor& source_pages, const Tensor& target_pages,
                const Tensor& pool, const Tensor& source) try {
  Tensors tensors{{"source_pages", source_pages}, {"target_pages", target_pages}, {"pool", pool}};
  add(tensors, "source", source);
  on.run("copy_pages", std::move(tensors));
} catch (...) {
  rethrow_as_error();
}

QuantisedCache quantise_cache(const Executor& on, const Tensor& input, DType codes,
                              CacheScale scale_of) try {
  constexpr std::array kNames{"token_head", "page", "head", "tensor"};
  const auto scale = static_cast<std::size_t>(scale_of);
  if (scale >= kNames.size()) throw InvalidArgument("quantise_cache: scale_of is no CacheScale");
  Tensors results =
      on.run("quantise_cache", {{"input", input}},
             {{"dtype", std::string(to_string(codes))}, {"scale_of", std::string(kNames[scale])}});
  return {.codes = std::move(results.at("codes")), .scale = std::move(results.at("scale"))};
} catch (...) {
  rethrow_as_error();
}

Tensor dequantise_cache(const Executor& on, const Tensor& codes, const Tensor& scale,
                        DType output) try {
  return on
      .run("dequantise_cache", {{"codes", codes}, {"scale", scale}},
           {{"dtype", std::string(to_string(output))}})
      .at("output");
} catch (...) {
  rethrow_as_error();
}

namespace vjp {

struct CachePullback::State {
  Executor on;
  CacheSlots slots;
  std::int64_t tokens = 0;
};

struct CacheMaker {
  static CachePullback make(const Executor& on, const CacheSlots& slots, std::int64_t tokens) {
    return CachePullback(std::make_shared<CachePullback::State>(
        CachePullback::State{.on = on, .slots = slots, .tokens = tokens}));
  }
};

CacheGradients CachePullback::operator()(const PagedCache& grad_cache) const try {
  return append_to_cache_backward(state_->on, grad_cache, state_->slots, state_->tokens);
} catch (...) {
  rethrow_as_error();
}

CachePullback append_to_cache(const Executor& on, const Tensor& keys, const Tensor& values,
                              const PagedCache& cache, const CacheSlots& slots) try {
  if (cache.key_scale || cache.value_scale)
    throw InvalidArgument("vjp::append_to_cache: a cache of codes is rounded and has no gradient");
  tessera::append_to_cache(on, keys, values, cache, slots);
  return CacheMaker::make(on, slots, keys.shape().at(0));
} catch (...) {
  rethrow_as_error();
}

}  // namespace vjp
}  // namespace tessera
