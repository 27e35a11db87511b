// SPDX-License-Identifier: Apache-2.0
#include "tessera/output/table.hpp"

#include <algorithm>

#include "base/printable.hpp"

namespace tessera::tool {

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::vector<std::string> Table::titles() const {
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  return titles;
}

std::vector<std::size_t> Table::least_widths() const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_)
    widths.push_back(std::max(column.least, display_width(column.title)));
  return widths;
}

std::string Table::line(const std::vector<std::string>& cells,
                        const std::vector<std::size_t>& widths) const {
  std::string text;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::size_t width = display_width(cells[i]);
    const std::string space(widths[i] > width ? widths[i] - width : 0, ' ');
    text += (i == 0 ? "" : "  ") + (columns_[i].right ? space + cells[i] : cells[i] + space);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + '\n';
}

std::string Table::title_line() const { return line(titles(), least_widths()); }
std::string Table::last_line() const { return line(rows_.back(), least_widths()); }

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(display_width(columns_[i].title));
    for (const auto& row : rows_) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string result = line(titles(), widths);
  for (const auto& row : rows_) result += line(row, widths);
  return result;
}

std::string Table::markdown() const {
  std::string result = "|";
  for (const Column& column : columns_) result += ' ' + column.title + " |";
  result += "\n|";
  for (const Column& column : columns_) result += column.right ? " ---: |" : " --- |";
  result += '\n';
  for (const auto& row : rows_) {
    result += '|';
    for (const std::string& cell : row) result += ' ' + cell + " |";
    result += '\n';
  }
  return result;
}

}  // namespace tessera::tool
