// SPDX-License-Identifier: Apache-2.0
#include "operations/matmul/random.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "operations/matmul_core/problem.hpp"
#include "support/draw.hpp"

namespace tessera::testing {
namespace {

using namespace operations::matmul;  // NOLINT(google-build-using-namespace): many names

// Around the tiles of kernels, and primes.
constexpr std::int64_t kLengths[] = {1,  2,  3,  4,  5,  7,  8,  9,  13,  15,  16,  17,  24,
                                     31, 32, 33, 48, 63, 64, 65, 97, 120, 127, 128, 129, 200};
constexpr std::int64_t kMostProducts = 1500000;  // what the oracle pays for
constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
constexpr const char* kTypeNames[] = {"f32", "f16", "bf16"};
constexpr DType kEightBits[] = {DType::kI8, DType::kE4M3FN, DType::kE5M2};

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : draw_(seed) { result_.shape.seed = seed; }

  RandomCall make() {
    backward_ = draw_.chance(0.35);
    linear_ = draw_.chance(0.25);
    result_.operation = std::string(linear_ ? "linear" : "matmul") + (backward_ ? "_backward" : "");
    slots_ = linear_ ? (backward_ ? linear_backward_slots() : linear_slots())
                     : (backward_ ? matmul_backward_slots() : matmul_slots());
    eight_bits_ = !backward_ && draw_.chance(0.25);
    result_.dtype = eight_bits_ ? draw_.of(kEightBits) : draw_.of(kTypes);
    sums_ = result_.dtype == DType::kI8 && draw_.chance(0.3);
    draw_shapes();
    draw_options();
    draw_operands();
    const Operation& operation = find_operation(result_.operation);
    for (std::size_t slot = 0; slot < result_.shape.operands.size(); ++slot) {
      std::optional<TensorSpec>& spec = result_.shape.operands[slot];
      if (!spec || draw_.chance(0.4)) continue;
      vary_strides(draw_, *spec);
      // Axes along which what is read repeats.
      if (operation.operands[slot].role == tessera::Role::kInput && draw_.chance(0.1))
        spec->strides[static_cast<std::size_t>(
            draw_.below(static_cast<std::int64_t>(spec->strides.size())))] = 0;
    }
    result_.shape.name = describe();
    result_.shape.why = "drawn at random";
    result_.shape.data = "normal";
    result_.kernel = draw_.word();
    return std::move(result_);
  }

 private:
  void draw_shapes() {
    const std::int64_t axes = draw_.below(3);
    for (std::int64_t axis = 0; axis < axes; ++axis) {
      const std::int64_t extent = 1 + draw_.below(3);
      batch_.push_back(extent);
      batch_a_.push_back(draw_.chance(0.7) ? extent : 1);
      // One of the two has the axis.
      batch_b_.push_back(batch_a_.back() != extent || draw_.chance(0.7) ? extent : 1);
    }
    if (linear_) {
      batch_a_ = batch_;
      batch_b_.clear();
    } else if (draw_.chance(0.3)) {
      batch_b_.clear();
      batch_a_ = batch_;
    }
    m_ = draw_.of(kLengths);
    n_ = draw_.of(kLengths);
    k_ = draw_.chance(0.05) ? 0 : draw_.of(kLengths);
    if (draw_.chance(0.15)) m_ = 1;
    if (draw_.chance(0.1)) (draw_.chance(0.5) ? n_ : k_) = 1000 + draw_.below(50);
    const auto products = [&] {
      std::int64_t count = m_ * n_ * std::max<std::int64_t>(k_, 1);
      for (const std::int64_t extent : batch_) count *= extent;
      return count;
    };
    while (products() > kMostProducts) m_ = (m_ + 1) / 2, n_ = (n_ + 1) / 2;
  }

  void draw_options() {
    auto& options = result_.shape.options;
    const auto& names = activation_names();
    if (!sums_ && draw_.chance(0.5)) options["activation"] = draw_.of(names);
    const auto activation = options.find("activation");
    paired_ = activation != options.end() &&
              std::get<std::string>(activation->second).find("glu") != std::string::npos;
    if (paired_) n_ += n_ % 2;
    if (linear_) return;
    if ((transpose_a_ = draw_.chance(0.4))) options["transpose_a"] = true;
    if ((transpose_b_ = draw_.chance(0.4))) options["transpose_b"] = true;
    if (sums_) return;
    if (draw_.chance(0.3)) options["alpha"] = draw_.unit() * 2 - 1;
    if (draw_.chance(0.3)) options["beta"] = draw_.chance(0.3) ? 0.0 : draw_.unit() * 2 - 1;
  }

  static Shape with(Shape leading, std::int64_t rows, std::int64_t columns) {
    leading.push_back(rows);
    leading.push_back(columns);
    return leading;
  }

  void set(std::size_t slot, DType dtype, const Shape& shape) {
    if (slot == kNoOperand) return;
    auto& operands = result_.shape.operands;
    operands.resize(std::max(operands.size(), slot + 1));
    operands[slot] = TensorSpec::contiguous(dtype, shape);
  }

  Shape bias_shape() {
    Shape shape = with(batch_, m_, n_);
    for (std::size_t axis = 0; axis + 1 < shape.size(); ++axis)
      if (draw_.chance(0.7)) shape[axis] = 1;
    if (draw_.chance(0.15)) shape.back() = 1;
    while (shape.size() > 1 && shape.front() == 1 && draw_.chance(0.8)) shape.erase(shape.begin());
    return shape;
  }

  // Of an operand as it is stored: one, of each or of blocks along `other`, of all terms or of
  // blocks.
  Shape scale_shape(const Shape& leading, std::int64_t other, bool turned) {
    constexpr std::int64_t kBlock = 128;
    const auto blocks = [](std::int64_t extent) { return (extent + kBlock - 1) / kBlock; };
    if (draw_.chance(0.25)) return {1};
    const std::int64_t along = draw_.chance(0.3) ? 1 : draw_.chance(0.5) ? other : blocks(other);
    const std::int64_t terms = k_ == 0 || draw_.chance(0.5) ? 1 : blocks(k_);
    Shape shape;
    for (const std::int64_t extent : leading) shape.push_back(draw_.chance(0.5) ? extent : 1);
    while (!shape.empty() && shape.front() == 1 && draw_.chance(0.7)) shape.erase(shape.begin());
    return turned ? with(shape, terms, along) : with(shape, along, terms);
  }

  void draw_scales() {
    if (draw_.chance(0.7))
      set(slots_.scale_a, DType::kF32, scale_shape(batch_a_, m_, transpose_a_));
    if (draw_.chance(0.7))
      set(slots_.scale_b, DType::kF32, scale_shape(batch_b_, n_, !transpose_b_ && !linear_));
  }

  DType draw_other() {
    if (result_.dtype == DType::kI8 || draw_.chance(0.8)) return result_.dtype;
    if (!eight_bits_) return draw_.of(kTypes);
    return draw_.chance(0.5) ? DType::kE4M3FN : DType::kE5M2;
  }

  void draw_operands() {
    const DType dtype = result_.dtype, other = draw_other();
    const std::size_t output = static_cast<std::size_t>(draw_.below(3));
    const bool converts = !sums_ && (eight_bits_ || draw_.chance(0.3));
    const DType out = converts ? kTypes[output] : sums_ ? DType::kI32 : dtype;
    const Shape a = transpose_a_ ? with(batch_a_, k_, m_) : with(batch_a_, m_, k_);
    const Shape b = transpose_b_ || linear_ ? with(batch_b_, n_, k_) : with(batch_b_, k_, n_);
    const Shape product = with(batch_, m_, n_), gated = with(batch_, m_, paired_ ? n_ / 2 : n_);
    const bool has_bias = !sums_ && draw_.chance(0.5), has_addend = !sums_ && draw_.chance(0.3);
    const bool has_gate = !sums_ && draw_.chance(0.3);
    const Shape bias = bias_shape();
    set(slots_.a, dtype, a);
    set(slots_.b, other, b);
    if (has_bias) set(slots_.bias, draw_.of(kTypes), bias);
    if (has_addend) set(slots_.addend, draw_.of(kTypes), product);
    if (has_gate) set(slots_.gate, draw_.of(kTypes), gated);
    if (!backward_) {
      if (!sums_ && draw_.chance(0.3)) set(slots_.residual, draw_.of(kTypes), gated);
      if (eight_bits_ && !sums_) draw_scales();
      if (converts) result_.shape.options["output_dtype"] = std::string(kTypeNames[output]);
      if (draw_.chance(0.5)) set(slots_.output, out, gated);
      return;
    }
    set(slots_.grad_output, out, gated);
    const bool all = draw_.chance(0.5);
    const auto want = [&](bool present, std::size_t slot, std::size_t of) {
      if (!present || slot == kNoOperand || !(all || draw_.chance(0.5))) return;
      const TensorSpec like = *result_.shape.operands[of];
      set(slot, like.dtype, like.shape);
    };
    set(slots_.grad_a, dtype, a);  // one is always wanted
    want(true, slots_.grad_b, slots_.b);
    want(has_bias, slots_.grad_bias, slots_.bias);
    want(has_addend, slots_.grad_addend, slots_.addend);
    want(has_gate, slots_.grad_gate, slots_.gate);
  }

  std::string describe() const {
    std::ostringstream text;
    text << m_ << "x" << n_ << "x" << k_ << describe_operands(result_.shape);
    return text.str();
  }

  Draw draw_;
  RandomCall result_;
  MatmulSlots slots_;
  Shape batch_{}, batch_a_{}, batch_b_{};
  std::int64_t m_ = 1, n_ = 1, k_ = 1;
  bool backward_ = false, linear_ = false, paired_ = false;
  bool eight_bits_ = false, sums_ = false;  // sums_: of i8, as they are
  bool transpose_a_ = false, transpose_b_ = false;
};

}  // namespace

RandomCall random_matmul(std::uint64_t seed) { return Maker(seed).make(); }

RandomSummary check_random_matmul(const Context& context, std::uint64_t first, std::uint64_t count,
                                  const std::function<void(const RandomResult&)>& each) {
  return run_seeds(
      first, count, [&](std::uint64_t seed) { return run_call(context, random_matmul(seed)); },
      each);
}

}  // namespace tessera::testing
