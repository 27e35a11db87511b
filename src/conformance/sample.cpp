// SPDX-License-Identifier: Apache-2.0
#include "conformance/sample.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>

#include "base/hash.hpp"

namespace tessera::conformance {
namespace {

constexpr std::size_t kPinned = 2;

// What stands before so many bars: "norms/rows.cl|norm_rows" before two of them.
std::string before_bars(const std::string& text, int bars) {
  std::size_t end = 0;
  for (int bar = 0; bar < bars && end != std::string::npos; ++bar) end = text.find('|', end + 1);
  return text.substr(0, end);
}

// File and function, and with the first axis, which is the storage type of most kernels.
std::string function_of(const runtime::ProgramName& program) {
  return before_bars(program.kernel, 2);
}
std::string typed_function_of(const runtime::ProgramName& program) {
  return before_bars(program.kernel, 3);
}

// Values that are types: "|A_TYPE=1|B_TYPE=0".
std::string codes_of(const runtime::ProgramName& program) {
  std::string codes;
  for (const auto part : std::views::split(program.values, '|')) {
    const std::string value(part.begin(), part.end());
    if (value.find("TYPE=") != std::string::npos) codes += "|" + value;
  }
  return codes;
}

// That axis: "|STORAGE16=1".
std::string storage_of(const runtime::ProgramName& program) {
  return typed_function_of(program).substr(function_of(program).size());
}

// With those values: "|STORAGE16=1|A_TYPE=1|B_TYPE=0".
std::string types_of(const runtime::ProgramName& program) {
  return storage_of(program) + codes_of(program);
}

bool has_storage_axis(const runtime::ProgramName& program) {
  return program.kernel.find("|DTYPE=") != std::string::npos;
}

// Whether it is built in every storage type: a kernel of processors, in OpenCL C alone.
bool takes_each(const runtime::ProgramName& program) {
  return program.kernel.find("/cpu/") != std::string::npos && has_storage_axis(program);
}

constexpr std::string_view kLarge = "large";

// "HEAD_DIM=multiple of 64" for "HEAD_DIM=128": kernels do the same with all of a class.
std::string class_of(const std::string& value) {
  const std::size_t equals = value.find('=');
  std::uint64_t number = 0;
  const char* const end = value.data() + value.size();
  if (equals == std::string::npos ||
      std::from_chars(value.data() + equals + 1, end, number).ptr != end || number <= 8)
    return value;
  const std::string name = value.substr(0, equals + 1);
  if (number > 256) return name + std::string(kLarge);
  for (const std::uint64_t step : {64, 8})
    if (number % step == 0) return name + "multiple of " + std::to_string(step);
  return name + "other";
}

// Each behind the function that it is for and its storage type.
std::set<std::string> values_of(const runtime::ProgramName& program) {
  const std::string function = typed_function_of(program);
  std::set<std::string> values;
  for (const auto value : std::views::split(program.values, '|')) {
    if (!value.empty())
      values.insert(function + " " + class_of(std::string(value.begin(), value.end())));
  }
  return values;
}

bool dealt_to(const Share& share, const runtime::ProgramName& program) {
  if (takes_each(program)) return true;
  const std::string function = function_of(program);
  const std::string family = function.substr(0, function.find('/'));
  const std::size_t hash = std::stoull(hash128(family).substr(0, 8), nullptr, 16);
  const bool glsl = function.find(".comp|") != std::string::npos;
  return (hash + (glsl ? 1 : 0)) % share.count == share.number;
}

// Whether this storage type takes the function where all could: the same in every run. The last one
// takes what is left.
bool takes(const Share& share, const runtime::ProgramName& program) {
  return share.number + 1 == share.count || dealt_to(share, program);
}

// Two storage types are enough for a function that is not built in each.
bool wants_type(const runtime::ProgramName& program, const Built& built) {
  const auto known = built.types.find(function_of(program));
  if (known == built.types.end()) return false;
  if (!takes_each(program))
    return known->second.size() == 1 && !known->second.contains(types_of(program));
  return std::ranges::none_of(known->second, [&](const std::string& types) {
    return types.starts_with(storage_of(program));
  });
}

class Sampler {
 public:
  Sampler(const std::vector<Programs>& needs, Built& built)
      : needs_(needs), built_(built), kept_(needs.size(), false), order_(needs.size()) {
    for (const Programs& programs : needs) {
      for (const runtime::ProgramName& program : programs) ++users_[program.key()];
    }
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, std::ranges::greater(),
                             [this](std::size_t n) { return popularity(n); });
  }

  std::vector<bool> sample(const Worth& worth) {
    for (const std::size_t n : order_) {
      if (worth.kernels && has_new_kernel(n, worth.share)) keep(n);
    }
    keep_what_is_built();
    const bool has_none = !order_.empty() && std::ranges::find(kept_, true) == kept_.end();
    if (has_none && worth.one_at_least) keep(order_.front());
    std::size_t more = worth.more;
    for (auto next = most_telling(more); next; next = most_telling(more)) {
      more -= new_programs(*next);
      keep(*next);
    }
    keep_what_is_built();
    return kept_;
  }

 private:
  // By how many others need what few need, then by how few of these programs it takes.
  std::pair<std::size_t, std::ptrdiff_t> popularity(std::size_t n) const {
    std::size_t least = std::numeric_limits<std::size_t>::max();
    std::ptrdiff_t rare = 0;
    for (const runtime::ProgramName& program : needs_[n]) {
      const std::size_t users = users_.at(program.key());
      if (users < least) rare = 0;
      least = std::min(least, users);
      if (users == least) ++rare;
    }
    return {least, -rare};
  }

  bool has_new_kernel(std::size_t n, const std::optional<Share>& share) const {
    return std::ranges::any_of(needs_[n], [&](const runtime::ProgramName& program) {
      if (!share) return !built_.kernels.contains(program.kernel);
      if (!built_.types.contains(function_of(program))) return true;
      return wants_type(program, built_) && takes(*share, program);
    });
  }

  std::size_t new_programs(std::size_t n) const {
    std::set<std::string> keys;
    for (const runtime::ProgramName& program : needs_[n]) {
      if (!built_.programs.contains(program.key())) keys.insert(program.key());
    }
    return keys.size();
  }

  // Large ones, for which kernels as a rule do something else, count more than all others.
  std::size_t new_values(std::size_t n) const {
    constexpr std::size_t kMostValues = 1000;  // of a case
    std::set<std::string> values;
    for (const runtime::ProgramName& program : needs_[n]) values.merge(values_of(program));
    std::size_t count = 0;
    for (const std::string& value : values) {
      if (!built_.values.contains(value)) count += value.ends_with(kLarge) ? kMostValues : 1;
    }
    return count;
  }

  // The case with the most new values of those that take no more than so many programs.
  std::optional<std::size_t> most_telling(std::size_t more) const {
    std::optional<std::size_t> best;
    std::size_t most = 0;
    for (const std::size_t n : order_) {
      if (kept_[n] || new_programs(n) > more) continue;
      const std::size_t values = new_values(n);
      if (values > most) {
        best = n;
        most = values;
      }
    }
    return best;
  }

  void keep(std::size_t n) {
    kept_[n] = true;
    for (const runtime::ProgramName& program : needs_[n]) built_.add(program);
  }

  void keep_what_is_built() {
    for (const std::size_t n : order_) {
      if (!kept_[n] && new_programs(n) == 0) keep(n);
    }
  }

  const std::vector<Programs>& needs_;
  Built& built_;
  std::vector<bool> kept_;
  std::vector<std::size_t> order_;  // the most popular first
  std::map<std::string, std::size_t> users_;
};

}  // namespace

void pin_configs(std::vector<Candidate>& candidates, std::vector<Config>& pinned,
                 const std::function<bool(const Candidate&, const Config&)>& accepted) {
  std::vector<std::pair<Config, std::size_t>> wanted;  // and by how many
  for (const Candidate& candidate : candidates) {
    const Config& own = candidate.configs.front();
    const auto known = std::ranges::find(wanted, own, &std::pair<Config, std::size_t>::first);
    if (known == wanted.end()) {
      wanted.emplace_back(own, 1);
    } else {
      ++known->second;
    }
  }
  std::ranges::stable_sort(wanted, std::ranges::greater(), &std::pair<Config, std::size_t>::second);
  for (const auto& [config, count] : wanted) {
    const bool is_new = std::ranges::find(pinned, config) == pinned.end();
    if (is_new && pinned.size() < kPinned) pinned.push_back(config);
  }
  for (Candidate& candidate : candidates) {
    candidate.config = candidate.configs.front();
    if (std::ranges::find(pinned, candidate.config) != pinned.end()) continue;
    const auto other = std::ranges::find_if(
        pinned, [&](const Config& config) { return accepted(candidate, config); });
    if (other != pinned.end()) candidate.config = *other;
  }
}

void leave_out_repetitions(std::vector<StorageTypes>& types) {
  std::set<std::pair<std::string, DType>> seen;
  std::erase_if(types, [&](const StorageTypes& one) {
    bool is_new = one.operands().empty();
    for (const auto& operand : one.operands()) is_new = seen.insert(operand).second || is_new;
    return !is_new;
  });
}

bool is_in_sample(std::size_t number, bool first_types, bool asked) {
  const std::size_t stride = (first_types ? 1 : 5) * (asked ? 1 : 5);
  return number % stride == stride / 2;
}

void Built::add(const runtime::ProgramName& program) {
  programs.insert(program.key());
  kernels.insert(program.kernel);
  types[function_of(program)].insert(types_of(program));
  codes[function_of(program)].insert(codes_of(program));
  values.merge(values_of(program));
}

bool has_types(const Built& built, const Programs& programs) {
  return std::ranges::all_of(programs, [&](const runtime::ProgramName& program) {
    const auto known = built.types.find(function_of(program));
    return known != built.types.end() && known->second.contains(types_of(program));
  });
}

bool has_kernels(const Built& built, const Programs& programs) {
  return std::ranges::all_of(programs, [&](const runtime::ProgramName& program) {
    return built.kernels.contains(program.kernel);
  });
}

bool has_programs(const Built& built, const Programs& programs) {
  return !programs.empty() &&
         std::ranges::all_of(programs, [&](const runtime::ProgramName& program) {
           return built.programs.contains(program.key());
         });
}

bool have_storage_axis(const std::vector<Programs>& needs) {
  return std::ranges::any_of(needs, [](const Programs& programs) {
    return std::ranges::any_of(programs, has_storage_axis);
  });
}

bool brings_codes(const Programs& programs, const Built& built) {
  return std::ranges::any_of(programs, [&](const runtime::ProgramName& program) {
    const auto known = built.codes.find(function_of(program));
    return known == built.codes.end() || !known->second.contains(codes_of(program));
  });
}

bool is_missing(const Programs& programs, const std::optional<Share>& share, const Built& built) {
  return std::ranges::any_of(programs, [&](const runtime::ProgramName& program) {
    if (share) {
      return !storage_of(program).empty() && wants_type(program, built) &&
             dealt_to(*share, program);
    }
    return std::ranges::any_of(values_of(program), [&](const std::string& value) {
      return value.ends_with(kLarge) && !built.values.contains(value);
    });
  });
}

std::vector<bool> sample_of(const std::vector<Programs>& needs, const Worth& worth, Built& built) {
  return Sampler(needs, built).sample(worth);
}

}  // namespace tessera::conformance
