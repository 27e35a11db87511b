// SPDX-License-Identifier: Apache-2.0
#include "runtime/compare.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace tessera::runtime {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Of oneDNN's benchdnn, which calls such results mistrusted.
constexpr double kMostZeros = 0.9;          // of all values
constexpr double kMostTolerance = 0.1;      // of the largest value
constexpr std::size_t kFewestElements = 8;  // fewer are looked at one by one

std::string place(const TensorSpec& spec, std::size_t flat) {
  std::string text;
  auto rest = static_cast<std::int64_t>(flat);
  for (std::size_t axis = spec.shape.size(); axis-- > 0;) {
    text = std::to_string(rest % spec.shape[axis]) + (text.empty() ? "" : "," + text);
    rest /= spec.shape[axis];
  }
  return "[" + text + "]";
}

// How far an error is beyond its bound; NaN and errors beyond a bound of 0 are infinitely far.
double ratio(double error, double bound) {
  if (error == 0 && bound >= 0) return 0;
  const double result = error / bound;
  return result <= kInfinity && bound > 0 ? result : kInfinity;
}

class Comparison {
 public:
  explicit Comparison(const Problem& problem) : problem_(problem) {}

  void add(const Expectation& expected, std::span<const double> got) {
    const std::string& name = problem_.operation->operands[expected.slot].name;
    for (std::size_t i = 0; i < expected.values.size(); ++i) {
      const std::size_t flat = expected.elements.empty() ? i : expected.elements[i];
      note(error_over_bound(got[flat], expected.values[i], expected.bounds[i]),
           [&](std::ostream& text) {
             text << name << place(problem_.spec(expected.slot), flat) << " is " << got[flat]
                  << " but must be " << expected.values[i] << " within " << expected.bounds[i];
           });
    }
    const double rms = rms_over_bound(got, expected);
    note(rms, [&](std::ostream& text) {
      text << "the errors of " << name << " have a root mean square of " << rms * expected.rms_bound
           << ", and rounding explains " << expected.rms_bound;
    });
  }

  const Verdict& verdict() const { return verdict_; }

 private:
  template <class Describe>
  void note(double error, Describe describe) {
    if (!(error <= 1) && (verdict_.failure.empty() || !(error <= verdict_.worst))) {
      std::ostringstream text;
      text.precision(9);
      describe(text);
      verdict_.failure = text.str();
    }
    if (!(error <= verdict_.worst)) verdict_.worst = error;
  }

  const Problem& problem_;
  Verdict verdict_;
};

}  // namespace

double error_over_bound(double got, double wanted, double bound) {
  if (std::isnan(wanted)) return std::isnan(got) ? 0 : kInfinity;
  if (got == wanted) return 0;
  return std::isfinite(got) ? ratio(std::fabs(got - wanted), bound) : kInfinity;
}

double rms_over_bound(std::span<const double> got, const Expectation& expected) {
  if (expected.rms_bound == kInfinity) return 0;
  double squares = 0, count = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    if (!std::isfinite(expected.values[i])) continue;
    const double error =
        got[expected.elements.empty() ? i : expected.elements[i]] - expected.values[i];
    squares += error * error;
    count += 1;
  }
  return count == 0 ? 0 : ratio(std::sqrt(squares / count), expected.rms_bound);
}

Verdict compare(const Problem& problem, std::span<const HostTensor> tensors,
                std::span<const Expectation> expectations) {
  Comparison comparison(problem);
  for (const Expectation& expected : expectations)
    comparison.add(expected, tensors[expected.slot].read());
  return comparison.verdict();
}

std::string mistrusted(const Expectation& expected) {
  if (expected.values.size() < kFewestElements) return "";
  double zeros = 0, largest = 0, tolerance = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    if (!std::isfinite(expected.values[i])) continue;
    zeros += expected.values[i] == 0 ? 1 : 0;
    largest = std::max(largest, std::fabs(expected.values[i]));
    tolerance = std::max(tolerance, expected.bounds[i]);
  }
  if (zeros > kMostZeros * static_cast<double>(expected.values.size()))
    return "more than 90 % of the values are 0";
  if (!(tolerance <= kMostTolerance * largest))
    return "a bound is more than 10 % of the largest value";
  return "";
}

}  // namespace tessera::runtime
