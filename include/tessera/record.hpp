// SPDX-License-Identifier: Apache-2.0
// The records: what an operation computes, and the variants that compute it. Built-in operations
// and operations that an application registers at run time are described by the same records, and
// get validation, selection, caching, tuning, checking and benchmarking from them. ARCHITECTURE.md
// has the picture, CONTRIBUTING.md the steps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/device.hpp"
#include "tessera/dtype.hpp"
#include "tessera/export.hpp"
#include "tessera/options.hpp"
#include "tessera/precision.hpp"
#include "tessera/storage_types.hpp"
#include "tessera/tensor.hpp"

namespace tessera {

struct Operation;

// In place of an operand's slot. kScratch: the variant's scratch buffer. kNoOperand: this operation
// has no such operand, and a kernel gets a null buffer. kErrors: the words of Operation::errors.
inline constexpr std::size_t kScratch = ~std::size_t{0};
inline constexpr std::size_t kNoOperand = ~std::size_t{1};
inline constexpr std::size_t kErrors = ~std::size_t{2};

// ---- what an operation takes
// -----------------------------------------------------------------------------------------

// kInOut: read and written in place, such as a cache that a call appends to. The caller brings it,
// and it is among the outputs that a call returns.
enum class Role : std::uint8_t { kInput, kOutput, kInOut };
constexpr bool is_read(Role role) { return role != Role::kOutput; }
constexpr bool is_written(Role role) { return role != Role::kInput; }
TESSERA_API std::string_view to_string(Role role);  // "input", "output", "in-out"

struct Operand {
  std::string name{};
  Role role = Role::kInput;
  bool optional = false;
  std::string shape{};          // "[batch, q_len, heads, head_dim]"
  std::vector<DType> dtypes{};  // that this operand may have
  std::string doc{};
  // An optional operand that kernels find in place of this one where a call has that and not this:
  // a state that is changed in place, for those that read one and write another.
  std::string stand_in{};
};

struct OptionInfo {
  std::string name{};
  OptionValue fallback{};  // monostate: not set, and `type` says what it would be
  std::string type{};      // "bool", "int", "float", "int pair", "one of top_left, bottom_right"
  std::string doc{};
};

// Something in the elements of an operand that only the device sees, such as a page outside its
// pool. Each has one 32-bit word among those that passes bind as kErrors: kernels leave the
// smallest index of such an element there by an atomic minimum (raise_error() of lib/errors), so
// that the first one wins whatever the order of work-groups. Who waits for the call throws
// DataError; of several errors of a call it says the first in the record's order, of several calls
// the first.
struct ErrorKind {
  std::string kind{};      // "page_outside_pool"
  std::string operand{};   // whose elements
  std::string sentence{};  // goes after "block_tables[17]": "names a page outside the pool"
};

struct Raised {
  std::size_t error = 0;    // in the order of Operation::errors
  std::uint32_t index = 0;  // of the element, row-major
};

// One call, without its data: the specs of operands by slot (the order of Operation::operands), and
// the options. After Operation::validate it also holds the inferred outputs, the storage type, the
// key and the operation's own parsed form. Immutable from then on.
struct TESSERA_API Problem {
  const Operation* operation = nullptr;
  std::vector<std::optional<TensorSpec>>
      operands{};                 // absent = an optional operand that this call does not have
  std::vector<bool> requested{};  // by slot: this output is wanted
  Options options{};              // complete: defaults are filled in
  Precision precision = Precision::kDefault;  // the least that a variant has to keep
  DType dtype = DType::kF32;                  // storage type: the build axis of the kernels
  // The combination of Operation::types that the call has, where there are some; else of `dtype`.
  StorageTypes types = DType::kF32;
  // Shape bucket and everything that changes the kernel; make_problem() adds the name of `types`
  // where that is not that of `dtype`.
  std::string key{};
  // What validate() parsed: set_details() and as(). Its type is compared as the languages' run-time
  // support does it, by name where a type has been compiled into several libraries.
  std::shared_ptr<const void> details{};
  const std::type_info* details_type = nullptr;

  bool has(std::size_t slot) const { return slot < operands.size() && operands[slot].has_value(); }
  const TensorSpec& spec(std::size_t slot) const { return *operands[slot]; }
  const OptionValue& option(
      std::string_view name) const;  // throws InvalidArgument for an unknown name
  // Throws InvalidArgument where there are no details, or those of another operation.
  template <class T>
  const T& as() const {
    if (!holds(typeid(T))) throw_details_missing();
    return *static_cast<const T*>(details.get());
  }
  template <class T>
  void set_details(T value) {
    details = std::make_shared<const T>(std::move(value));
    details_type = &typeid(T);
  }
  // For validate(): declares the dtype and shape of a requested output. An output tensor that the
  // caller brought is checked against them, otherwise a contiguous one will be allocated.
  void infer_output(std::size_t slot, DType dtype, Shape shape);

 private:
  bool holds(const std::type_info& type) const {
    return details != nullptr && details_type != nullptr &&
           (details_type == &type || *details_type == type);
  }
  [[noreturn]] void throw_details_missing() const;
};

// ---- configurations
// --------------------------------------------------------------------------------------------------

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  friend bool operator==(const Dim3&, const Dim3&) = default;
};

// Tunable values by name, the work-group size among them as WG_X, WG_Y, WG_Z. The text form is
// "BLOCK_K=96,WG_X=1": names sorted, one grammar in logs, caches, tests and on the command line.
class TESSERA_API Config {
 public:
  Config() = default;
  Config(std::initializer_list<std::pair<const std::string, std::uint32_t>> values);
  // Defined once: every file that lists configurations would compile the map's own.
  Config(const Config& other);
  Config(Config&& other) noexcept;
  Config& operator=(const Config& other);
  Config& operator=(Config&& other) noexcept;
  ~Config();
  static Config parse(std::string_view text);  // throws InvalidArgument
  std::string to_string() const;
  std::uint32_t at(std::string_view name) const;  // throws InvalidArgument for an unknown name
  std::uint32_t get(std::string_view name, std::uint32_t fallback) const;
  void set(std::string_view name, std::uint32_t value);
  bool empty() const { return values_.empty(); }
  const std::map<std::string, std::uint32_t, std::less<>>& values() const { return values_; }
  Dim3 group() const { return {get("WG_X", 1), get("WG_Y", 1), get("WG_Z", 1)}; }
  friend bool operator==(const Config&, const Config&) = default;

 private:
  std::map<std::string, std::uint32_t, std::less<>> values_;
};

// A number that a kernel is specialised on: a -D in OpenCL C, a specialization constant in SPIR-V.
// A tunable takes its value from the configuration, a constant from the problem. A tunable that
// only changes the launch, such as a number of work-groups, is no part of the kernel.
struct Tunable {
  std::uint32_t id = 0;  // specialization constant; 0-2 are the work-group size
  std::string name{};
  std::uint32_t fallback = 0;
  bool is_constant = false;
  bool launch_only = false;
};

struct Define {
  std::string name{};
  std::uint32_t value = 0;
};

// ---- variants
// --------------------------------------------------------------------------------------------------------

// A tensor in host memory, as the reference sees it: any dtype, read and written as double.
struct TESSERA_API HostTensor {
  TensorSpec spec{};
  std::byte* data = nullptr;  // of element 0; null = this call does not have the operand

  std::vector<double> read() const;            // all elements, row-major
  void write(std::span<const double> values);  // all elements, row-major, rounded to nearest even
};

using HostKernel = std::function<void(const Problem&, std::span<HostTensor>)>;

// Where a pass gets its kernel from. Built-in kernels name an embedded file; user kernels bring
// text or SPIR-V words. Empty = the pass is not offered on that backend.
struct Source {
  std::string file{};  // "attention/tile/forward.cl"
  std::string text{};  // OpenCL C; for Vulkan: GLSL, if Tessera was built with libshaderc
  std::vector<std::uint32_t> spirv{};  // Vulkan only
  std::string entry{};                 // kernel name; "main" for Vulkan
  // NVIDIA's OpenCL only: the target for which the compiled PTX is assembled in place of the
  // device's own, such as "sm_90a". Inline PTX that only this target has stands behind "//@". Empty
  // = as the driver likes. Variants that set it need the Feature that says so, such as kWgmma.
  std::string ptx_target{};
  bool empty() const { return file.empty() && text.empty() && spirv.empty(); }
};

// One dispatch. Geometry, arguments and scratch are computed here and nowhere else: launcher and
// tuner call the same functions.
struct Pass {
  std::string name{};
  Source opencl{}, vulkan{};
  HostKernel host{};
  std::vector<std::size_t>
      bindings{};  // operand slots or kScratch and the like: OpenCL argument i, GLSL binding i
  // Build-time axes: types and extensions. -D in OpenCL C; in Vulkan they pick one of the compiled
  // modules.
  std::function<std::vector<Define>(const Problem&, const DeviceProfile&)> axes{};
  // Names of Variant::tunables that this kernel is specialised on; unset = all of them.
  std::optional<std::vector<std::string>> specialized_on{};
  // Values of the constants in Variant::tunables.
  std::function<std::vector<Define>(const Problem&, const Config&)> constants{};
  std::function<Dim3(const Problem&, const Config&)>
      groups{};                                     // work-groups; a zero = nothing to launch
  std::function<Dim3(const Config&)> group_size{};  // empty: Config::group()
  std::function<std::vector<std::byte>(const Problem&, const Config&)>
      args{};  // scalars of 4 bytes, see src/abi
  // Byte offset in `args` of the u32 that tells a kernel which binds kErrors where the words of
  // this call begin. Each launch fills it in.
  std::optional<std::size_t> errors_at{};
};

// ---- steps
// ----------------------------------------------------------------------------------------------

// What a variant does, where that depends on the problem: passes several times or not at all, and
// calls of other operations. Steps are values: what runs is known before the first launch, and no
// data is read by the host in between.

// One launch of a pass, with work-groups and arguments of its own in place of the pass's where it
// has them: the number of a round, for instance. Arguments are as long as those of Pass::args.
struct LaunchStep {
  std::string pass{};  // Pass::name
  std::optional<Dim3> groups{};
  std::optional<std::vector<std::byte>> args{};
};

// A tensor of a call within a variant: (part of) an operand, or of the variant's scratch buffer,
// whose specs count their offset from its beginning.
struct Place {
  std::size_t slot = kScratch;
  TensorSpec spec{};
};

// A call of another operation. It has scratch of its own, and is chosen and tuned like any other.
struct CallStep {
  std::string operation{};
  std::vector<std::pair<std::string, Place>> operands{};  // by name, all outputs among them
  Options options{};
  std::string variant{};  // empty = as selection likes
};

using Step = std::variant<LaunchStep, CallStep>;

struct Requirements {
  std::vector<Backend> backends{};  // empty = every backend that the passes have a source for
  std::vector<DeviceKind> kinds{};  // empty = any
  Feature features = Feature::kNone;
  std::uint32_t vendor_id = 0;  // 0 = any
};

using Refusal = std::optional<std::string>;  // a sentence, or nothing

struct Variant {
  std::string name{};  // "tile"
  std::string idea{};  // "K and V tiles in local memory; online softmax in registers"
  Requirements needs{};
  std::vector<DType> dtypes{};       // of Problem::dtype; empty = all
  std::vector<std::string> types{};  // names of the combinations of Operation::types; empty = all
  // Products take intermediate factors, such as the weights of attention, rounded to a 16-bit
  // storage type; Workload::expect allows for it. It keeps Precision::kHigh then, and of float
  // operands still what `precision` says.
  bool rounds_factors = false;
  // What it keeps otherwise, see tessera/precision.hpp: kDefault of one that multiplies floats as
  // single tf32 products.
  Precision precision = Precision::kHighest;
  std::vector<Tunable> tunables{};
  std::vector<Pass> passes{};
  // What is done with them. Empty = each of them once, in order.
  std::function<std::vector<Step>(const Problem&, const Config&)> steps{};
  // What the tuner may try on this device, most promising first; every entry is subject to
  // `rejects`.
  std::function<std::vector<Config>(const Problem&, const DeviceProfile&)> space{};
  // Bytes of work-group memory; checked against the device. Empty = none.
  std::function<std::uint64_t(const Problem&, const Config&)> local_bytes{};
  // Bytes of the scratch buffer that bindings name as kScratch. Empty = none.
  std::function<std::uint64_t(const Problem&, const Config&)> scratch_bytes{};
  // Why this variant can't run this problem with this configuration on this device. Asked for every
  // configuration, whichever tier it came from, before every first launch. Empty = never refuses.
  std::function<Refusal(const Problem&, const Config&, const DeviceProfile&)> rejects{};
};

// Whether the variant is made for operands of these types.
TESSERA_API bool takes(const Variant& variant, const StorageTypes& types);

// The highest precision that the variant keeps on operands of that storage type.
TESSERA_API Precision precision_of(const Variant& variant, DType dtype);

// One row of the heuristic table; the first that applies, and whose variant accepts, wins.
struct Rule {
  std::string why{};
  std::function<bool(const Problem&, const DeviceProfile&)> when{};
  std::string variant{};
  // None: the first configuration of the variant's space that fits.
  std::function<Config(const Problem&, const DeviceProfile&)> config{};
};

// ---- operations
// ------------------------------------------------------------------------------------------------------

// One line of a conformance or benchmark table: a call that can be made up from a seed.
struct Case {
  std::string name{};
  std::string why{};  // the reason that this case exists
  std::vector<std::optional<TensorSpec>>
      operands{};  // by slot; a present optional output = it is wanted
  Options options{};
  std::string data = "normal";  // operation-specific kind of input
  std::uint64_t seed = 1;
  std::vector<std::string> variants{};  // that it was made for; empty = all. Others sample it.
};

// What an output must be: double-precision values and the largest error allowed for each of them.
struct Expectation {
  std::size_t slot = 0;
  std::vector<std::size_t> elements{};  // row-major indices; empty = all elements in order
  std::vector<double> values{};
  std::vector<double> bounds{};
  // Largest root mean square of the errors of all finite values; infinity = not asked. It finds
  // needless roundings that stay below the bound of every element, such as an accumulator of 16
  // bits, so it is a small multiple of what rounding the values to the storage type costs.
  double rms_bound = std::numeric_limits<double>::infinity();
};

// How a result was computed, as far as its bounds depend on it.
struct Arithmetic {
  Backend backend = Backend::kHost;
  bool rounds_factors = false;  // as Variant::rounds_factors, of calls that the variant makes, too
  friend bool operator==(const Arithmetic&, const Arithmetic&) = default;
};

struct Workload {
  // Hand-written conformance cases, each with its reason.
  std::function<std::vector<Case>(const StorageTypes&)> cases{};
  // Cases at the edges of a configuration's own tiles: tile - 1, tile, tile + 1.
  std::function<std::vector<Case>(const StorageTypes&, const Config&)> edge_cases{};
  // Shapes that benchmarks and `tessera tune` use by default.
  std::function<std::vector<Case>(const StorageTypes&)> benchmarks{};
  // Writes what is read: inputs, and in-out operands. Empty = independent normal numbers.
  std::function<void(const Problem&, const Case&, std::span<HostTensor>)> fill{};
  // What the requested outputs, and the written elements of in-out operands, must be, given what is
  // read. May spot-check rows where computing all
  // of them would take more than `max_flops` operations. Empty = Operation::reference, with the
  // rounding of the storage type plus 32 float roundings of the output's largest magnitude as the
  // bound.
  std::function<std::vector<Expectation>(const Problem&, std::span<HostTensor>, const Arithmetic&,
                                         double max_flops)>
      expect{};
  std::function<double(const Problem&)> flops{};  // counted operations, empty = none
  std::function<double(const Problem&)>
      bytes{};  // memory that must move at least, empty = sum of the operands
};

struct Operation {
  std::string name{};     // "flash_attention"
  std::string summary{};  // one line
  std::string formula{};
  std::vector<Operand> operands{};
  std::vector<OptionInfo> options{};
  // The combinations of operand dtypes that there are, if one dtype does not say it. The first that
  // fits a call is its Problem::types; a call that none fits is refused.
  std::vector<StorageTypes> types{};
  // What kernels may find wrong with the elements of operands, in the order in which it is
  // reported.
  std::vector<ErrorKind> errors{};
  // Checks the call, infers outputs, sets dtype, key and details. Throws InvalidArgument or
  // Unsupported.
  std::function<void(Problem&)> validate{};
  // The definition, in double precision. It is also what the host backend runs, as variant
  // "reference".
  HostKernel reference{};
  // The errors that the operands' elements raise, several of one kind too; asked before `reference`
  // runs, once for each call. Needed where there are `errors`: what kernels raise is compared with
  // it.
  std::function<std::vector<Raised>(const Problem&, std::span<HostTensor>)> raises{};
  // Row-major indices of the elements of an in-out operand that the call writes; the others keep
  // their bits. Empty = all of them.
  std::function<std::vector<std::size_t>(const Problem&, std::span<HostTensor>, std::size_t slot)>
      writes{};
  std::vector<Variant> variants{};
  std::vector<Rule> rules{};
  Workload workload{};

  TESSERA_API std::size_t slot(std::string_view operand) const;  // throws InvalidArgument
  TESSERA_API const Variant* find_variant(std::string_view name) const;
};

// ---- registry
// --------------------------------------------------------------------------------------------------------

// Every operation there is, built-in ones first, in a fixed order. References stay valid for the
// life of the process.
TESSERA_API std::vector<const Operation*> all_operations();
TESSERA_API const Operation& find_operation(
    std::string_view name);  // throws InvalidArgument, listing the names
// Thread-safe. Throws InvalidArgument for a name that is taken or a record that is inconsistent,
// saying how. Adds the option "precision", which every operation has.
TESSERA_API const Operation& register_operation(Operation operation);
TESSERA_API void register_variant(std::string_view operation, Variant variant,
                                  std::vector<Rule> rules = {});

// Checks a call and completes it: defaults, unknown options, missing operands, then
// Operation::validate.
TESSERA_API Problem make_problem(const Operation& operation,
                                 std::vector<std::optional<TensorSpec>> operands, Options options,
                                 std::vector<bool> requested = {});

// The bytes of an argument struct of 4-byte scalars.
template <class T>
std::vector<std::byte> argument_bytes(const T& args) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
  std::vector<std::byte> bytes(sizeof(T));
  std::memcpy(bytes.data(), &args, sizeof(T));
  return bytes;
}

// A name that says everything: "flash_attention.tile/f16@vulkan:llvmpipe{BLOCK_Q=32,WG_X=128}".
TESSERA_API std::string full_name(const Operation& operation, const Variant& variant,
                                  const Config& config, const StorageTypes& types,
                                  const DeviceProfile& profile);
struct FullName {
  std::string operation, variant, dtype, backend, device{};
  Config config{};
};
TESSERA_API FullName parse_full_name(std::string_view name);  // throws InvalidArgument

}  // namespace tessera
