// SPDX-License-Identifier: Apache-2.0
// Text tables with aligned columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera::tool {

struct Column {
  std::string title;
  bool right = false;     // numbers
  std::size_t least = 0;  // its width where rows are printed before all of them are known
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells);  // missing cells are empty
  bool empty() const { return rows_.empty(); }
  std::string text() const;  // lines, each with its newline, headed by the titles
  std::string markdown() const;
  // For rows that are printed as they come, in columns of the least widths: the titles, and the
  // last row; each with its newline.
  std::string title_line() const;
  std::string last_line() const;

 private:
  std::vector<std::string> titles() const;
  std::vector<std::size_t> least_widths() const;
  std::string line(const std::vector<std::string>& cells,
                   const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Columns that a UTF-8 text takes on a terminal, near enough: its code points.
std::size_t display_width(std::string_view text);

}  // namespace tessera::tool
