// SPDX-License-Identifier: Apache-2.0
// safetensors: 8 bytes of header length, a JSON object {name: {dtype, shape, data_offsets}}, the
// elements (github.com/huggingface/safetensors).
#include <algorithm>
#include <array>
#include <set>

#include "tessera/files/file_io.hpp"
#include "tessera/files/tensor_files.hpp"
#include "tessera/output/json.hpp"

namespace tessera::tool {
namespace {

constexpr std::string_view kMetadata = "__metadata__";

constexpr std::array<std::string_view, 15> kNames{"BOOL", "I8",  "U8",  "I16",     "U16",
                                                  "I32",  "U32", "I64", "U64",     "F16",
                                                  "BF16", "F32", "F64", "F8_E4M3", "F8_E5M2"};

struct Entry {
  std::string name;
  ElementType type;
  Shape shape;
  std::uint64_t begin, end;
};

// Deep nesting and repeated keys are refused while parsing, before they cost memory or shadow each
// other.
Json parse_header(const InputFile& file, const std::string& text) {
  constexpr int kDeepest = 4;
  std::vector<std::set<std::string>> keys;
  const Json::parser_callback_t check = [&](int depth, Json::parse_event_t event, Json& value) {
    switch (event) {
      case Json::parse_event_t::object_start:
        if (depth > kDeepest) file.fail("has a header that is nested too deeply");
        keys.emplace_back();
        break;
      case Json::parse_event_t::object_end:
        keys.pop_back();
        break;
      case Json::parse_event_t::array_start:
        if (depth > kDeepest) file.fail("has a header that is nested too deeply");
        break;
      case Json::parse_event_t::key:
        if (!keys.back().insert(value.get<std::string>()).second) {
          file.fail("names " + quote(value.get<std::string>()) + " twice in its header");
        }
        break;
      default:
        break;
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::exception&) {
    file.fail("has a header that is not valid JSON");
  }
}

Entry parse_entry(const InputFile& file, const std::string& name, const Json& json) {
  const auto fail = [&](const std::string& what) {
    file.fail("describes tensor " + quote(name) + " wrongly: " + what);
  };
  if (!json.is_object()) fail("not an object");
  for (const auto& item : json.items()) {
    if (item.key() != "dtype" && item.key() != "shape" && item.key() != "data_offsets") {
      fail("unexpected key " + quote(item.key()));
    }
  }
  if (json.size() != 3) fail("dtype, shape and data_offsets are needed");

  Entry entry{name, ElementType::kF32, {}, 0, 0};
  const Json& type = json["dtype"];
  if (!type.is_string()) fail("dtype is not a string");
  const auto found = std::find(kNames.begin(), kNames.end(), type.get<std::string>());
  if (found == kNames.end()) {
    fail("dtype " + quote(type.get<std::string>()) +
         " is not one of BOOL, I8 to I64, U8 to U64, F8_E4M3, F8_E5M2, F16, BF16, F32, F64");
  }
  entry.type = static_cast<ElementType>(found - kNames.begin());

  const Json& shape = json["shape"];
  if (!shape.is_array()) fail("shape is not a list");
  if (shape.size() > kMaxRank) fail("more than " + std::to_string(kMaxRank) + " dimensions");
  for (const Json& dimension : shape) {
    if (!dimension.is_number_unsigned() || dimension.get<std::uint64_t>() > INT64_MAX) {
      fail("a dimension is not a 64-bit whole number");
    }
    entry.shape.push_back(dimension.get<std::int64_t>());
  }

  const Json& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    fail("data_offsets is not a pair of whole numbers");
  }
  entry.begin = offsets[0].get<std::uint64_t>();
  entry.end = offsets[1].get<std::uint64_t>();
  const std::optional<std::uint64_t> bytes = checked_bytes(entry.type, entry.shape);
  if (!bytes) fail("its shape overflows 64 bits");
  if (entry.begin > entry.end || entry.end - entry.begin != *bytes) {
    fail("data_offsets do not span the " + std::to_string(*bytes) + " bytes of its shape");
  }
  return entry;
}

}  // namespace

FileTensors read_safetensors(const std::filesystem::path& path) {
  const InputFile file(path);
  std::array<unsigned char, 8> start{};
  if (file.size() < start.size()) file.fail("is too short for a safetensors file");
  file.read(0, std::as_writable_bytes(std::span(start)));
  std::uint64_t length = 0;
  for (std::size_t i = start.size(); i-- > 0;) length = length << 8U | start[i];
  if (length > kMaxHeaderBytes) {
    file.fail("is not a safetensors file, or has a header of more than " +
              std::to_string(kMaxHeaderBytes) + " bytes");
  }
  if (length > file.size() - start.size()) file.fail("ends inside its header");
  const std::uint64_t data = start.size() + length;
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read(start.size(), std::as_writable_bytes(std::span(text)));
  if (!text.starts_with('{')) file.fail("is not a safetensors file: no JSON header");
  const Json header = parse_header(file, text);

  std::vector<Entry> entries;
  for (const auto& item : header.items()) {
    if (item.key() != kMetadata) {
      entries.push_back(parse_entry(file, item.key(), item.value()));
    } else if (!item.value().is_object()) {
      file.fail("has " + std::string(kMetadata) + " that is not an object");
    }
  }
  // In order of place, the tensors must follow each other and fill the file.
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  const std::uint64_t there = file.size() - data;
  std::uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at) {
      file.fail("has a gap or an overlap before tensor " + quote(entry.name));
    }
    if (entry.end > there) file.fail("ends inside tensor " + quote(entry.name));
    at = entry.end;
  }
  if (at != there) {
    file.fail("holds " + std::to_string(there - at) + " bytes after its last tensor");
  }

  FileTensors tensors;
  for (const Entry& entry : entries) {
    FileTensor& tensor = tensors[entry.name];
    tensor.type = entry.type;
    tensor.shape = entry.shape;
    tensor.bytes.resize(static_cast<std::size_t>(entry.end - entry.begin));
    file.read(data + entry.begin, tensor.bytes);
  }
  return tensors;
}

void write_safetensors(const std::filesystem::path& path, const FileTensors& tensors) {
  // Wide elements first: every tensor is then aligned to its element.
  std::vector<FileTensors::const_iterator> order;
  for (auto it = tensors.begin(); it != tensors.end(); ++it) order.push_back(it);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return size_of(a->second.type) > size_of(b->second.type);
  });
  Json header = Json::object();
  std::uint64_t at = 0;
  for (const auto& it : order) {
    const FileTensor& tensor = it->second;
    header[it->first] = {{"dtype", kNames.at(static_cast<std::size_t>(tensor.type))},
                         {"shape", tensor.shape},
                         {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  std::string text = dump(header, -1);
  text.append((8 - text.size() % 8) % 8, ' ');

  OutputFile file(path);
  std::array<char, 8> start{};
  for (std::size_t i = 0; i < start.size(); ++i) {
    start[i] = static_cast<char>(text.size() >> (8 * i) & 0xffU);
  }
  file.write(std::string_view(start.data(), start.size()));
  file.write(text);
  for (const auto& it : order) file.write(it->second.bytes);
  file.commit();
}

}  // namespace tessera::tool
