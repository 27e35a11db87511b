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

  // Behind `to`; `matrix` floats for each of them, made by `items`.
  Packer(const Product& from, Role role, std::int64_t rows, std::int64_t columns,
         std::int64_t width, std::uint64_t to, std::int64_t matrix, std::int64_t items)
      : matrix_(matrix) {
    const View& view = from.views[role];
    const auto narrow = [](auto value) { return static_cast<abi::u32>(value); };
    args.rows = narrow(rows);
    args.columns = narrow(columns);
    args.width = narrow(width);
    args.to = narrow(to);
    args.offset = narrow(view.offset);
    args.row = narrow(view.row);
    args.column = narrow(view.column);
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
    groups = static_cast<std::uint64_t>(count * items);
  }

  // Panels of floats.
  Packer(const Product& from, Role role, std::int64_t rows, std::int64_t columns,
         std::int64_t width, std::uint64_t to)
      : Packer(from, role, rows, columns, width, to, round_up(columns, width) * rows,
               (columns + width - 1) / width * ((rows + PACK_ROWS - 1) / PACK_ROWS)) {}

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
  const bool is_panel = product.n == panel && b.row == panel;
  return b.dtype == DType::kF32 && b.column == 1 && product.n % panel == 0 &&
         (is_panel || product.m <= kFewRows || product.k * product.n <= kSmallMatrix);
}

// Words as they lie: `each` neighbouring terms of a row.
bool has_words(const Product& product, std::int64_t each) {
  const View& a = product.views[kA];
  const auto whole = [&](std::int64_t step) { return step % each == 0; };
  return a.column == 1 && whole(product.k) && whole(a.row) && whole(a.offset) &&
         std::ranges::all_of(product.axes, [&](const auto& axis) { return whole(axis.steps[kA]); });
}

Packing packing_of_words(const Product& product, std::uint64_t scratch, std::int64_t each) {
  constexpr std::int64_t kWidth = 16, kPanel = 2 * kWidth;  // of vectors of 512 bits
  Packing packing{.product = product};
  const std::int64_t words = (product.k + each - 1) / each;
  packing.product.k = words;
  if (has_words(product, each)) {
    View& a = packing.product.views[kA];
    a = {.present = true, .offset = a.offset / each, .row = a.row / each, .column = 1};
    for (OuterAxis& axis : packing.product.axes) axis.steps[kA] /= each;
  } else {
    const std::int64_t width = round_up(words, kWidth);
    const Packer packer(product, kA, product.m, product.k, width, scratch, product.m * width,
                        (product.m + kWidth - 1) / kWidth);
    packing.a = true;
    packing.a_args = packer.args;
    packing.a_groups = packer.groups;
    packing.floats = packer.floats;
    packer.rewrite(packing.product, kA, width, 1);
  }
  const std::int64_t panels = (product.n + kPanel - 1) / kPanel, panel = kPanel * words;
  const Packer packer(product, kB, product.k, product.n, kPanel, scratch + packing.floats,
                      panels * panel, panels);
  packing.b = true;
  packing.b_args = packer.args;
  packing.b_args.by_rows = 1;
  packing.b_groups = packer.groups;
  packing.floats += packer.floats;
  packer.rewrite(packing.product, kB, kPanel, panel);
  return packing;
}

Packing packing_of_few_rows(const Product& product, std::uint32_t width, std::uint64_t scratch) {
  Packing packing{.a = true, .few_rows = few_rows(product), .product = product};
  const std::int64_t columns = round_up(product.k, width);
  const Packer packer(product, kA, product.m, product.k, columns, scratch);
  packing.a_args = packer.args;
  packing.a_groups = packer.groups;
  packing.floats = packer.floats;
  packer.rewrite(packing.product, kA, columns, 1);
  return packing;
}

}  // namespace

FewRows few_rows(const Product& product) {
  constexpr std::int64_t kMost = 8;
  const View& b = product.views[kB];
  if (product.sums() != 1 || product.blocks != MATMUL_BLOCKS_NONE) return FewRows::kNo;
  if (product.m <= kMost && b.row == 1) return FewRows::kAlongColumns;
  return product.m <= kMost && b.column == 1 ? FewRows::kAlongRows : FewRows::kNo;
}

Packing packing_of(const Product& product, std::uint32_t width, std::uint64_t scratch, Dots dots) {
  Packing packing{.product = product};
  if (product.terms() == 0 || product.is_empty()) return packing;
  if (few_rows(product) != FewRows::kNo) return packing_of_few_rows(product, width, scratch);
  if (dots != Dots::kNone) return packing_of_words(product, scratch, dots == Dots::kI8 ? 4 : 2);
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
