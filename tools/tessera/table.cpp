// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <algorithm>

namespace tessera::tool {

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::string> titles;
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    titles.push_back(columns_[i].title);
    widths.push_back(display_width(columns_[i].title));
    for (const auto& row : rows_) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string result;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string space(widths[i] - display_width(cells[i]), ' ');
      text += (i == 0 ? "" : "  ") + (columns_[i].right ? space + cells[i] : cells[i] + space);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    result += text + '\n';
  };
  line(titles);
  for (const auto& row : rows_) line(row);
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
