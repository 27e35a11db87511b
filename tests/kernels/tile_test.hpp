// SPDX-License-Identifier: Apache-2.0
// The tiles of lib/ alone: small kernels from this folder, on whatever device has what they need,
// against plain loops.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "device/no_store.hpp"
#include "tessera/dtype.hpp"

namespace tessera::device {

constexpr double kFloat = 0x1p-24;  // half a unit in the last place of 1

// A kernel of this folder with all that it includes, from `folders` of the source tree. Every
// include is written out, for an earlier one may stand under an #if that is false.
inline std::string kernel_text(const std::string& file, const std::vector<std::string>& folders) {
  const std::function<std::string(const std::string&)> read = [&](const std::string& path) {
    std::ifstream stream(path);
    if (!stream) ADD_FAILURE() << "cannot read " << path;
    std::string text;
    for (std::string line; std::getline(stream, line);) {
      if (!line.starts_with("#include \"")) {
        text += line + "\n";
        continue;
      }
      const std::string name = line.substr(10, line.find('"', 10) - 10);
      for (const std::string& folder : folders) {
        const std::string inner = std::string(TESSERA_SOURCE_DIR "/") + folder + "/" + name;
        if (std::ifstream(inner)) {
          text += read(inner);
          break;
        }
      }
    }
    return text;
  };
  return read(std::string(TESSERA_SOURCE_DIR "/tests/kernels/") + file);
}

// Rows of normal numbers as a storage type holds them.
struct Matrix {
  std::uint32_t rows = 0, columns = 0;
  std::vector<double> values;

  double at(std::uint32_t row, std::uint32_t column) const {
    return values[std::size_t{row} * columns + column];
  }
};

inline double rounded(double value, DType dtype) {
  return dtype == DType::kF16    ? from_half_bits(to_half_bits(value))
         : dtype == DType::kBF16 ? from_bfloat16_bits(to_bfloat16_bits(value))
                                 : static_cast<float>(value);
}

inline Matrix random_matrix(std::uint32_t rows, std::uint32_t columns, std::uint32_t seed,
                            DType dtype = DType::kF32) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Matrix matrix{rows, columns, std::vector<double>(std::size_t{rows} * columns)};
  for (double& value : matrix.values) value = rounded(normal(random), dtype);
  return matrix;
}

class Tiles : public ::testing::Test {
 protected:
  // The first device that has these features, or the test is skipped with a sentence.
  void open(const PlatformProbe& probe, Feature features = Feature::kNone, bool cpu = false) {
    for (const Found& found : probe.found) {
      if (cpu && !is_cpu(found.profile)) continue;
      device_ = found.open();
      if (has(device_->profile().features, features)) {
        stream_ = device_->create_stream();
        return;
      }
    }
    device_.reset();
    GTEST_SKIP() << "no device here has what this kernel needs: its source was checked only";
  }

  BufferPtr buffer(std::span<const std::byte> bytes) {
    BufferPtr result = device_->create_buffer(bytes.size());
    stream_->upload(*result, 0, bytes);
    return result;
  }
  BufferPtr buffer(const Matrix& matrix, DType dtype) {
    std::vector<float> floats(matrix.values.begin(), matrix.values.end());
    if (dtype == DType::kF32) return buffer(std::as_bytes(std::span(floats)));
    std::vector<std::uint16_t> bits;
    for (const float value : floats)
      bits.push_back(dtype == DType::kF16 ? to_half_bits(value) : to_bfloat16_bits(value));
    return buffer(std::as_bytes(std::span(bits)));
  }
  // NaN wherever nothing is written.
  BufferPtr output(std::size_t elements, DType dtype = DType::kF32) {
    BufferPtr result = device_->create_buffer(elements * (dtype == DType::kF32 ? 4 : 2));
    stream_->fill(*result, 0, result->size(), 0xff);
    return result;
  }
  Matrix read(const BufferPtr& from, std::uint32_t columns, DType dtype = DType::kF32) {
    Matrix matrix{0, columns, {}};
    if (dtype == DType::kF32) {
      std::vector<float> floats(from->size() / 4);
      stream_->download(*from, 0, std::as_writable_bytes(std::span(floats)));
      matrix.values.assign(floats.begin(), floats.end());
    } else {
      std::vector<std::uint16_t> bits(from->size() / 2);
      stream_->download(*from, 0, std::as_writable_bytes(std::span(bits)));
      for (const std::uint16_t word : bits)
        matrix.values.push_back(dtype == DType::kF16 ? from_half_bits(word)
                                                     : from_bfloat16_bits(word));
    }
    matrix.rows = static_cast<std::uint32_t>(matrix.values.size() / columns);
    return matrix;
  }
  ProgramPtr build(const ProgramRequest& request) {
    NoStore none;
    return device_->build(request, none);
  }
  void run(const ProgramPtr& program, Dim3 group, const std::vector<BufferPtr>& buffers,
           std::span<const std::byte> arguments, Dim3 groups) {
    stream_->launch({.program = program.get(),
                     .buffers = buffers,
                     .arguments = arguments,
                     .groups = groups,
                     .group = group});
    stream_->synchronize();
  }
  void run(const ProgramRequest& request, const std::vector<BufferPtr>& buffers,
           std::span<const std::byte> arguments, Dim3 groups) {
    run(build(request), request.group, buffers, arguments, groups);
  }

  DevicePtr device_;
  std::unique_ptr<Stream> stream_;
};

// a b^T for the first `terms` columns, and weights rows for the first `terms` rows, against what a
// kernel computed from `a` and `b`: `unit` times the sum of magnitudes may be lost.
inline void expect_products(const Matrix& got, const Matrix& a, const Matrix& b, double unit) {
  for (std::uint32_t i = 0; i < a.rows; ++i) {
    for (std::uint32_t j = 0; j < b.rows; ++j) {
      double sum = 0, magnitude = 0;
      for (std::uint32_t k = 0; k < a.columns; ++k) {
        sum += a.at(i, k) * b.at(j, k);
        magnitude += std::fabs(a.at(i, k) * b.at(j, k));
      }
      ASSERT_NEAR(got.at(i, j), sum, unit * magnitude) << "row " << i << ", column " << j;
    }
  }
}

// {maximum, sum} of each row of `from`.
inline void expect_rows(const Matrix& got, const Matrix& from, double unit) {
  for (std::uint32_t i = 0; i < from.rows; ++i) {
    double most = from.at(i, 0), sum = 0, magnitude = 0;
    for (std::uint32_t j = 0; j < from.columns; ++j) {
      most = std::max(most, from.at(i, j));
      sum += from.at(i, j);
      magnitude += std::fabs(from.at(i, j));
    }
    EXPECT_EQ(got.at(i, 0), most) << "row " << i;
    EXPECT_NEAR(got.at(i, 1), sum, unit * magnitude) << "row " << i;
  }
}

// sum over k of weights[i][k] rows[k][j], rows where the weight is 0 left out.
inline void expect_sums(const Matrix& got, const Matrix& weights, const Matrix& rows, double unit,
                        double factor = 1) {
  for (std::uint32_t i = 0; i < weights.rows; ++i) {
    for (std::uint32_t j = 0; j < rows.columns; ++j) {
      double sum = 0, magnitude = 0;
      for (std::uint32_t k = 0; k < rows.rows; ++k) {
        if (weights.at(i, k) == 0) continue;
        sum += factor * weights.at(i, k) * rows.at(k, j);
        magnitude += std::fabs(factor * weights.at(i, k) * rows.at(k, j));
      }
      ASSERT_NEAR(got.at(i, j), sum, unit * magnitude) << "row " << i << ", column " << j;
    }
  }
}

}  // namespace tessera::device
