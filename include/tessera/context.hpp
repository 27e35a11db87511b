// SPDX-License-Identifier: Apache-2.0
// A Context is one opened device with its caches; an Executor says where and how calls run on it.
//
// Threads: Context and Executor may be used from many threads. A Stream, and the Executors bound to
// it, belong to one thread at a time. Calls on a Context itself share its default stream and take
// turns on it.
//
// All three are handles. Empty ones, default-constructed or moved from, throw InvalidArgument from
// every call. Streams and Tensors may outlive their Context, and any of them may live in static
// variables.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/device.hpp"
#include "tessera/error.hpp"
#include "tessera/export.hpp"
#include "tessera/precision.hpp"
#include "tessera/record.hpp"
#include "tessera/selection.hpp"
#include "tessera/tensor.hpp"

namespace tessera {

namespace runtime {
class ContextState;
class ErrorWords;
class StreamState;
struct CallOptions;
struct Plan;
}  // namespace runtime

// What one call did.
struct Execution {
  std::string operation, key, device{};
  std::string name{};  // full name: operation.variant/dtype@backend:device{config}
  Precision precision = Precision::kDefault;  // that the call asked for
  Choice choice{};
  double tuned_milliseconds = 0;  // from the cache entry, 0 = unknown
};

struct Explanation {
  Execution execution{};
  std::vector<Refused> refused{};  // every other variant, and why it was not chosen
};

struct ContextOptions {
  std::string device{};  // selector, see select_devices(); empty: TESSERA_DEVICE, then the best
  std::optional<std::string>
      cache_directory{};        // "" = no persistent cache; unset: TESSERA_CACHE_DIR, then XDG
  bool use_environment = true;  // false: no environment variable is looked at
  std::optional<Precision> precision{};  // of calls that do not say; unset: TESSERA_PRECISION
};

// An in-order queue of work on a context's device.
class TESSERA_API Stream {
 public:
  Stream() = default;
  explicit Stream(std::shared_ptr<runtime::StreamState> state) : state_(std::move(state)) {}
  // Waits; throws what went wrong since the last call, a DataError that kernels raised among it.
  void synchronize();

  const std::shared_ptr<runtime::StreamState>& state() const { return state_; }  // null = empty

 private:
  std::shared_ptr<runtime::StreamState> state_;
};

class TESSERA_API Context {
 public:
  Context() = default;
  // For tessera/interop/, which opens contexts on devices of the application.
  explicit Context(std::shared_ptr<runtime::ContextState> state) : state_(std::move(state)) {}
  static Context open();  // the best device; TESSERA_DEVICE decides otherwise
  static Context open(std::string_view device);  // see select_devices()
  static Context open(const ContextOptions& options);

  const DeviceProfile& device() const;
  int device_index() const;  // -1 on a device of the application
  std::string fingerprint()
      const;  // of device, driver, compiler and kernel sources: the cache's key

  Tensor empty(DType dtype, Shape shape) const;  // uninitialised
  Tensor upload_bytes(std::span<const std::byte> bytes, DType dtype, Shape shape) const;
  // Row-major; of packed dtypes each row begins with a byte. Downloads wait for the default stream
  // and throw what its kernels raised, once.
  std::vector<std::byte> download_bytes(const Tensor& tensor) const;
  template <class T>
  Tensor upload(std::span<const T> values, Shape shape) const {
    return upload_bytes(std::as_bytes(values), kDTypeOf<T>, std::move(shape));
  }
  template <class T>
  Tensor upload(const std::vector<T>& values, Shape shape) const {
    return upload<T>(std::span<const T>(values), std::move(shape));
  }
  template <class T>
  std::vector<T> download(const Tensor& tensor) const {
    std::vector<T> values;
    download_to(tensor, kDTypeOf<T>, [&](std::size_t count) {
      values.resize(count);
      return std::as_writable_bytes(std::span<T>(values));
    });
    return values;
  }

  Stream create_stream() const;
  void synchronize() const;  // the default stream
  // Outputs that are let go leave their memory to later ones of their stream and size: at most a
  // 64th of the device's, and 1 GiB. Frees what waits so, and returns the bytes. Not needed where a
  // later allocation fails: it frees them, too.
  std::uint64_t release_memory() const;

  // The calling thread's last call on this context; InvalidArgument where there was none.
  Execution last_execution() const;
  void on_event(EventSink sink) const;  // replaces the sink; called without locks held

  const std::shared_ptr<runtime::ContextState>& state() const { return state_; }  // null = empty

 private:
  // `allocate` is told how many elements there are and gives the bytes for them. Of packed dtypes
  // it is told how many bytes there are.
  void download_to(const Tensor& tensor, DType dtype,
                   const std::function<std::span<std::byte>(std::size_t)>& allocate) const;
  std::shared_ptr<runtime::ContextState> state_;
};

// Words in which kernels raise the errors of calls that the caller waits for by other means than
// synchronize(): calls of Executor::with_errors(). It may be shared by calls of several streams.
class TESSERA_API ErrorLog {
 public:
  // Room for `words` errors; each call takes as many as its operation has kinds of.
  explicit ErrorLog(const Context& context, std::uint32_t words = 4096);
  const Tensor& words() const { return words_; }  // i32; -1: nothing was raised
  // Forgets the calls so far and what they raised. No such call may be under way. A log that is
  // full refuses calls until then.
  void clear() const;

 private:
  friend class Executor;
  friend TESSERA_API void check_errors(const ErrorLog& log, std::span<const std::int32_t> words);
  friend TESSERA_API void check_errors(const ErrorLog& log);
  Context context_;
  Tensor words_;
  std::shared_ptr<runtime::ErrorWords> state_;
};

// After the caller's own wait: throws the first error (DataError) of the log's calls. With `words`
// the caller has read them itself, from the beginning of ErrorLog::words().
TESSERA_API void check_errors(const ErrorLog& log, std::span<const std::int32_t> words);
TESSERA_API void check_errors(const ErrorLog& log);

// Named tensors of one call.
using Tensors = std::map<std::string, Tensor, std::less<>>;

// Where and how to run: a context's stream, the tiers in force, a policy, and perhaps the caller's
// own choice. A small value; every typed function takes one, and a Context converts to it.
class TESSERA_API Executor {
 public:
  Executor(
      const Context& context);  // NOLINT(google-explicit-constructor): a Context is where to run
  Executor on(const Stream& stream) const;
  Executor with_variant(std::string variant) const;  // that variant or an error
  Executor with_config(Config config) const;         // that configuration or an error
  Executor with_policy(Policy policy) const;
  Executor with_precision(Precision precision) const;  // of calls whose options do not say
  Executor with_tiers(std::vector<Tier> tiers) const;  // only these, in the fixed order
  Executor with_errors(const ErrorLog& log) const;     // kernels raise errors there

  // Runs any registered operation. `inputs` may also hold output tensors to write into; other
  // outputs are allocated, optional ones if `wanted` names them. Returns the outputs, and the
  // in-out operands, which are changed in place.
  // A stream has words for the errors of thousands of calls that can raise some. A call that finds
  // them all in use waits for those before it and throws the DataError that one of them raised; it
  // has launched nothing then, and may be made again.
  Tensors run(std::string_view operation, const Tensors& inputs, Options options = {},
              const std::vector<std::string>& wanted = {}) const;
  // What run() would do, without doing it. Never tunes.
  Explanation explain(std::string_view operation, const Tensors& inputs, Options options = {},
                      const std::vector<std::string>& wanted = {}) const;
  Explanation explain(const Problem& problem) const;
  // Measures the candidates for a problem on made-up inputs and stores the best in memory and, by
  // policy, on disk.
  TuneReport tune(const Case& shape, std::string_view operation,
                  const EventSink& progress = {}) const;

  const Context& context() const { return context_; }
  // The checked, chosen and built form of a call; for the library's own tools.
  std::shared_ptr<const runtime::Plan> plan(const Problem& problem) const;

 private:
  runtime::CallOptions call_options() const;
  Context context_;
  std::shared_ptr<runtime::StreamState> stream_;
  std::shared_ptr<runtime::ErrorWords> errors_;  // null: the stream's
  std::string variant_;
  std::optional<Config> config_;
  std::optional<Policy> policy_;
  std::optional<Precision> precision_;
  std::optional<std::vector<Tier>> tiers_;
};

}  // namespace tessera
