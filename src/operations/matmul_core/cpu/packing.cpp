// SPDX-License-Identifier: Apache-2.0
#include "operations/matmul_core/cpu/packing.hpp"

#include <algorithm>

namespace tessera::operations::matmul {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

// The matrix of one role: arguments of its packing, and the view of it as it is packed.
struct Packer {
  abi::MatmulPackArgs args{};
  std::uint64_t floats = 0, groups = 0;

  Packer(const Product& from, Role role, std::int64_t rows, std::int64_t columns,
         std::int64_t width, std::uint64_t to) {
    const View& view = from.views[role];
    const auto narrow = [](auto value) { return static_cast<abi::u32>(value); };
    args.rows = narrow(rows);
    args.columns = narrow(columns);
    args.width = narrow(width);
    args.to = narrow(to);
    args.offset = narrow(view.offset);
    args.row = narrow(view.row);
    args.column = narrow(view.column);
    matrix_ = (columns + width - 1) / width * width * rows;
    // Axes along which the matrix repeats are packed once.
    abi::u32* const steps[] = {&args.step4, &args.step3, &args.step2, &args.step1, &args.step0};
    abi::u32* const sizes[] = {&args.size4, &args.size3, &args.size2, &args.size1};
    args.size1 = args.size2 = args.size3 = args.size4 = 1;
    std::int64_t count = 1;
    std::size_t axis = 0;
    for (std::size_t i = from.axes.size(); i-- > 0;) {
      if (from.axes[i].steps[role] == 0) continue;
      if (axis < 4) *sizes[axis] = narrow(from.axes[i].size);
      *steps[axis++] = narrow(from.axes[i].steps[role]);
      count *= from.axes[i].size;
    }
    floats = static_cast<std::uint64_t>(count * matrix_);
    groups = static_cast<std::uint64_t>(count) *
             static_cast<std::uint64_t>((columns + width - 1) / width) *
             static_cast<std::uint64_t>((rows + PACK_ROWS - 1) / PACK_ROWS);
  }

  void rewrite(Product& product, Role role, std::int64_t row, std::int64_t column) const {
    product.views[role] = {.present = true,
                           .offset = static_cast<std::int64_t>(args.to),
                           .row = row,
                           .column = column};
    std::int64_t step = matrix_;
    for (std::size_t i = product.axes.size(); i-- > 0;) {
      OuterAxis& axis = product.axes[i];
      if (axis.steps[role] == 0) continue;
      axis.steps[role] = step;
      step *= axis.size;
    }
  }

 private:
  std::int64_t matrix_ = 0;  // floats of one
};

// Panels as they lie: where packing would cost as much as it saves.
bool serves_in_place(const Product& product, std::int64_t panel) {
  constexpr std::int64_t kFewRows = 32, kSmallMatrix = 65536;
  const View& b = product.views[kB];
  return b.dtype == DType::kF32 && b.column == 1 && product.n % panel == 0 &&
         (product.m <= kFewRows || product.k * product.n <= kSmallMatrix);
}

}  // namespace

Packing packing_of(const Product& product, std::uint32_t width, std::uint64_t scratch) {
  Packing packing{.product = product};
  if (product.terms() == 0 || product.is_empty()) return packing;
  const std::int64_t panel = 2 * std::int64_t{width};
  const View& a = product.views[kA];
  if (a.dtype != DType::kF32 || (a.column != 1 && product.k > 1)) {
    const std::int64_t columns = round_up(product.k, width);
    const Packer packer(product, kA, product.m, product.k, columns, scratch);
    packing.a = true;
    packing.a_args = packer.args;
    packing.a_groups = packer.groups;
    packing.floats = packer.floats;
    packer.rewrite(packing.product, kA, columns, 1);
  }
  if (serves_in_place(product, panel)) {
    packing.product.views[kB].column = panel;
    return packing;
  }
  const Packer packer(product, kB, product.k, product.n, panel, scratch + packing.floats);
  packing.b = true;
  packing.b_args = packer.args;
  packing.b_groups = packer.groups;
  packing.floats += packer.floats;
  packer.rewrite(packing.product, kB, panel, panel * product.k);
  return packing;
}

}  // namespace tessera::operations::matmul
