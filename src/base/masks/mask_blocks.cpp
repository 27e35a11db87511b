// SPDX-License-Identifier: Apache-2.0
// The block layout of a mask and its picture. A block is decided by formulas where they can; the
// elements that are left are visited.
#include <algorithm>
#include <limits>

#include "base/masks/mask_checks.hpp"
#include "base/masks/mask_view.hpp"
#include "base/system/out_of_memory.hpp"
#include "base/tensors/checked.hpp"
#include "tessera/mask.hpp"

namespace tessera {
namespace {

// What is known of a block. kSome is sure: something is visible and something is not.
enum class Known : std::uint8_t { kNone, kSome, kAll, kOpen };

Known known(BlockVisibility visibility) {
  switch (visibility) {
    case BlockVisibility::kNone:
      return Known::kNone;
    case BlockVisibility::kSome:
      return Known::kSome;
    case BlockVisibility::kAll:
      break;
  }
  return Known::kAll;
}

// Two kSome may or may not overlap.
Known intersection(Known a, Known b) {
  if (a == Known::kNone || b == Known::kNone) return Known::kNone;
  if (a == Known::kAll) return b;
  return b == Known::kAll ? a : Known::kOpen;
}

Known united(Known a, Known b) {
  if (a == Known::kAll || b == Known::kAll) return Known::kAll;
  if (a == Known::kNone) return b;
  return b == Known::kNone ? a : Known::kOpen;
}

// The ids of a block of rows or keys that can match at all.
struct IdRange {
  std::int32_t least = std::numeric_limits<std::int32_t>::max();
  std::int32_t most = std::numeric_limits<std::int32_t>::min();
  bool complete = true;  // every id can match
};

template <class CanMatch>
std::vector<IdRange> id_ranges(std::span<const std::int32_t> ids, std::int64_t block,
                               CanMatch can_match) {
  const auto step = static_cast<std::size_t>(std::min<std::int64_t>(block, std::ssize(ids)));
  std::vector<IdRange> ranges;
  for (std::size_t first = 0; first < ids.size(); first += step) {
    IdRange range;
    for (const std::int32_t id : ids.subspan(first, std::min(step, ids.size() - first))) {
      if (can_match(id)) {
        range.least = std::min(range.least, id);
        range.most = std::max(range.most, id);
      } else {
        range.complete = false;
      }
    }
    ranges.push_back(range);
  }
  return ranges;
}

Known equality(const IdRange& q, const IdRange& kv) {
  if (std::max(q.least, kv.least) > std::min(q.most, kv.most)) return Known::kNone;
  const bool one_id = q.least == q.most && kv.least == kv.most;
  return one_id && q.complete && kv.complete ? Known::kAll : Known::kOpen;
}

struct PairRanges {
  std::vector<IdRange> q;
  std::vector<IdRange> kv;
};

class BlockClassifier {
 public:
  BlockClassifier(const MaskSpec& spec, std::int64_t b, std::int64_t block_q, std::int64_t block_k)
      : spec_(spec), view_(spec, b), block_q_(block_q), block_k_(block_k) {
    if (spec.segments()) {
      segments_ = ranges(*spec.segments(), b, [](std::int32_t id) { return id >= 0; });
    }
    if (spec.token_types()) {
      const bool zero_matches = spec.token_types()->zero_policy == ZeroTypePolicy::kNone;
      types_ = ranges(spec.token_types()->ids, b,
                      [=](std::int32_t type) { return type != 0 || zero_matches; });
    }
  }

  BlockVisibility classify(std::int64_t h, std::int64_t q_block, std::int64_t kv_block) const {
    const std::int64_t i = q_block * block_q_, j = kv_block * block_k_;
    const MaskRectangle block{.q_first = i,
                              .q_last = i + std::min(block_q_, spec_.q_len() - i),
                              .kv_first = j,
                              .kv_last = j + std::min(block_k_, spec_.kv_len() - j)};
    const MaskRectangle inside = view_.clip(block);
    if (inside.empty()) return BlockVisibility::kNone;
    const bool whole = inside.q_last == block.q_last && inside.kv_last == block.kv_last;
    switch (
        pattern(inside, static_cast<std::size_t>(q_block), static_cast<std::size_t>(kv_block))) {
      case Known::kNone:
        return BlockVisibility::kNone;
      case Known::kSome:
        return BlockVisibility::kSome;
      case Known::kAll:
        return whole ? BlockVisibility::kAll : BlockVisibility::kSome;
      case Known::kOpen:
        break;
    }
    return count(h, inside, whole);
  }

 private:
  template <class CanMatch>
  PairRanges ranges(const QueryKeyIds& ids, std::int64_t b, CanMatch can_match) const {
    return {.q = id_ranges(ids_of(ids.q, b, spec_.q_len()), block_q_, can_match),
            .kv = id_ranges(ids_of(ids.kv, b, spec_.kv_len()), block_k_, can_match)};
  }

  Known pattern(const MaskRectangle& inside, std::size_t q_block, std::size_t kv_block) const {
    Known result = known(view_.ordered(inside));
    if (spec_.dense()) result = intersection(result, Known::kOpen);
    if (spec_.token_types()) {
      const Known types = equality(types_.q[q_block], types_.kv[kv_block]);
      switch (spec_.token_types()->combine) {
        case TokenTypeCombine::kUnion:
          result = united(result, types);
          break;
        case TokenTypeCombine::kIntersect:
          result = intersection(result, types);
          break;
        case TokenTypeCombine::kReplace:
          result = types;
          break;
      }
    }
    if (!spec_.segments()) return result;
    return intersection(result, equality(segments_.q[q_block], segments_.kv[kv_block]));
  }

  BlockVisibility count(std::int64_t h, const MaskRectangle& inside, bool whole) const {
    bool any = false, hidden = !whole;
    for (std::int64_t i = inside.q_first; i < inside.q_last; ++i) {
      for (std::int64_t j = inside.kv_first; j < inside.kv_last; ++j) {
        (view_.visible(h, i, j) ? any : hidden) = true;
        if (any && hidden) return BlockVisibility::kSome;
      }
    }
    return any ? BlockVisibility::kAll : BlockVisibility::kNone;
  }

  const MaskSpec& spec_;
  MaskView view_;
  std::int64_t block_q_;
  std::int64_t block_k_;
  PairRanges segments_{};
  PairRanges types_{};
};

std::int64_t blocks_of(std::int64_t length, std::int64_t block, const char* name) {
  if (block > 0) return length / block + (length % block != 0 ? 1 : 0);
  refuse_mask(std::string(name) + " must be greater than 0, not " + std::to_string(block));
}

char symbol(BlockVisibility visibility) {
  constexpr char kSymbols[] = {'.', '+', '#'};
  return kSymbols[static_cast<std::size_t>(visibility)];
}

// The first key of every eighth block, above its column.
std::string key_ticks(std::int64_t blocks, std::int64_t block) {
  std::string line;
  for (std::int64_t n = 0; n < blocks; n += 8) {
    if (std::ssize(line) > n) continue;  // the number before is too long
    line.append(static_cast<std::size_t>(n) - line.size(), ' ');
    line += std::to_string(n * block) + " ";
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

BlockLayout MaskSpec::to_block_layout(std::int64_t block_q, std::int64_t block_k) const try {
  BlockLayout layout{.batch = batch_,
                     .heads = heads_,
                     .q_blocks = blocks_of(q_len_, block_q, "block_q"),
                     .kv_blocks = blocks_of(kv_len_, block_k, "block_k")};
  const auto total =
      checked_product({layout.batch, layout.heads, layout.q_blocks, layout.kv_blocks});
  if (!total) refuse_mask("the block layout has more blocks than 64 bits can count");
  layout.blocks.reserve(static_cast<std::size_t>(*total));
  const std::int64_t per_head = layout.q_blocks * layout.kv_blocks;
  for (std::int64_t b = 0; b<batch_&& * total> 0; ++b) {
    const BlockClassifier classifier(*this, b, block_q, block_k);
    const auto start = std::ssize(layout.blocks);
    for (std::int64_t h = 0; h < heads_; ++h) {
      for (std::int64_t n = 0; n < per_head; ++n) {
        layout.blocks.push_back(
            h > 0 && (!dense_ || dense_->heads == 1)
                ? layout.blocks[static_cast<std::size_t>(start + n)]
                : classifier.classify(h, n / layout.kv_blocks, n % layout.kv_blocks));
      }
    }
  }
  return layout;
} catch (...) {
  rethrow_as_error();
}

std::string MaskSpec::picture(std::int64_t block, std::int64_t b, std::int64_t h) const try {
  const std::int64_t q_blocks = blocks_of(q_len_, block, "block");
  const std::int64_t kv_blocks = blocks_of(kv_len_, block, "block");
  check_index("b", b, batch_);
  if (heads_ > 1) check_index("h", h, heads_);
  const std::size_t margin = std::max<std::size_t>(std::to_string(q_len_).size(), 3) + 1;
  std::string text = "mask " + std::to_string(q_len_) + " x " + std::to_string(kv_len_) +
                     ", batch " + std::to_string(b) + ", head " + std::to_string(h) +
                     ", blocks of " + std::to_string(block) + " x " + std::to_string(block) +
                     ": '.' none, '+' some, '#' all\n";
  text += "q\\kv" + std::string(margin - 3, ' ') + key_ticks(kv_blocks, block) + "\n";
  if (q_blocks == 0 || kv_blocks == 0) return text;
  const BlockClassifier classifier(*this, b, block, block);
  for (std::int64_t q_block = 0; q_block < q_blocks; ++q_block) {
    const std::string row = std::to_string(q_block * block);
    text += std::string(margin - row.size(), ' ') + row + " ";
    for (std::int64_t kv_block = 0; kv_block < kv_blocks; ++kv_block) {
      text += symbol(classifier.classify(h, q_block, kv_block));
    }
    text += "\n";
  }
  return text;
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
