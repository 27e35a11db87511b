// SPDX-License-Identifier: Apache-2.0
#include "tessera/output/table.hpp"

#include <gtest/gtest.h>

#include "tessera/measure/measure.hpp"
#include "tessera/output/report.hpp"

namespace tessera::tool {
namespace {

TEST(Table, AlignsColumnsByWhatIsSeen) {
  Table table({{"name"}, {"ms", true}, {"note"}});
  table.add({"é", "1.5", "x"});
  table.add({"long name", "100"});
  EXPECT_EQ(table.text(),
            "name        ms  note\n"
            "é          1.5  x\n"
            "long name  100\n");
  EXPECT_EQ(
      table.markdown(),
      "| name | ms | note |\n| --- | ---: | --- |\n| é | 1.5 | x |\n| long name | 100 |  |\n");
}

TEST(Table, RowsCanBePrintedAsTheyCome) {
  Table table({{"name", false, 6}, {"ms", true, 5}, {"note"}});
  EXPECT_EQ(table.title_line(), "name       ms  note\n");
  table.add({"a", "1.5", "x"});
  EXPECT_EQ(table.last_line(), "a         1.5  x\n");
  table.add({"a long name", "100"});
  EXPECT_EQ(table.last_line(), "a long name    100\n");
}

TEST(Table, CellsCannotLeaveTheirPlace) {
  Table table({{"name"}});
  table.add({"a\nb\x1b[2J"});
  EXPECT_EQ(table.text(), "name\na\\nb\\x1b[2J\n");
}

TEST(Report, WritesNumbersWithoutExponents) {
  EXPECT_EQ(significant(0), "0");
  EXPECT_EQ(significant(1234.5), "1234");
  EXPECT_EQ(significant(12.345), "12.3");
  EXPECT_EQ(significant(0.012345), "0.0123");
  EXPECT_EQ(significant(1e-30), "0.000000000");
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(128U << 20U), "128 MiB");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
}

TEST(Measure, TakesTheLimitThatBinds) {
  const conformance::Peaks peaks{100e9, 10e9};
  const Limit arithmetic = percent_of_peak(50e9, 1e9, 1, peaks);
  EXPECT_TRUE(arithmetic.arithmetic);
  EXPECT_DOUBLE_EQ(arithmetic.percent, 50);
  const Limit memory = percent_of_peak(1e9, 8e9, 1, peaks);
  EXPECT_FALSE(memory.arithmetic);
  EXPECT_DOUBLE_EQ(memory.percent, 80);
  EXPECT_EQ(percent_of_peak(1e9, 8e9, 1, {0, 0}).percent, 0);
  EXPECT_EQ(percent_of_peak(1e9, 8e9, 0, peaks).percent, 0);
}

}  // namespace
}  // namespace tessera::tool
