// SPDX-License-Identifier: Apache-2.0
#include <span>

#include "capi/handles.hpp"
#include "tessera/prewarm.hpp"

namespace tessera::capi {
namespace {

template <class T>
std::span<const T> array(const T* first, std::size_t count, const char* name) {
  if (count > 0) required(first, name);
  return {first, count};
}

std::string name_of(const char* name, const char* of) {
  required(name, of);
  return name;
}

// A call with its names looked up and its values taken over.
class Call {
 public:
  explicit Call(const tessera_call* given)
      : call_(known_part(given, "call")), operation_(name_of(call_.operation, "call.operation")) {}

  const std::string& operation() const { return operation_; }
  std::span<const tessera_operand> operands() const {
    return array(call_.operands, call_.operand_count, "call.operands");
  }
  std::span<const tessera_output> outputs() const {
    return array(call_.outputs, call_.output_count, "call.outputs");
  }
  Options options() const {
    Options options;
    for (const tessera_option& option : array(call_.options, call_.option_count, "call.options")) {
      const std::string name = name_of(option.name, "the name of an option");
      const tessera_value& value = option.value;
      switch (value.type) {
        case TESSERA_UNSET:
          break;
        case TESSERA_BOOL:
          options.insert_or_assign(name, value.as.integer != 0);
          break;
        case TESSERA_INT:
          options.insert_or_assign(name, value.as.integer);
          break;
        case TESSERA_FLOAT:
          options.insert_or_assign(name, value.as.number);
          break;
        case TESSERA_TEXT:
          options.insert_or_assign(name, name_of(value.as.text, "the text of an option"));
          break;
        case TESSERA_INTS: {
          const auto numbers = array(value.as.integers, value.count, "the integers of an option");
          options.insert_or_assign(name, std::vector<std::int64_t>(numbers.begin(), numbers.end()));
          break;
        }
        default:
          throw InvalidArgument("option '" + name + "' has a value of the unknown type " +
                                std::to_string(value.type));
      }
    }
    return options;
  }
  Executor on(const tessera_context* context) const {
    Executor executor(required(context, "context").context);
    if (call_.stream != nullptr) {
      executor = executor.on(call_.stream->stream);
      if (call_.stream->errors) executor = executor.with_errors(*call_.stream->errors);
    }
    return call_.variant == nullptr ? executor : executor.with_variant(call_.variant);
  }
  // As it would be run.
  Problem problem() const {
    Specs specs;
    const auto add = [&](const char* name, const tessera_tensor* tensor, const tessera_spec* spec) {
      if (tensor == nullptr && spec == nullptr) return;
      specs.insert_or_assign(name_of(name, "the name of an operand"),
                             tensor != nullptr ? tensor->tensor.spec() : spec_of(spec));
    };
    for (const tessera_operand& operand : operands())
      add(operand.name, operand.tensor, operand.spec);
    std::vector<std::string> wanted;
    for (const tessera_output& output : outputs()) {
      const tessera_tensor* const tensor = output.tensor != nullptr ? *output.tensor : nullptr;
      add(output.name, tensor, output.spec);
      if (output.tensor != nullptr && tensor == nullptr && output.spec == nullptr)
        wanted.push_back(name_of(output.name, "the name of an output"));
    }
    return problem_of(operation_, specs, options(), wanted);
  }

 private:
  tessera_call call_;
  std::string operation_;
};

void run(const tessera_context* context, const tessera_call* given) {
  const Call call(given);
  Tensors tensors;
  for (const tessera_operand& operand : call.operands()) {
    if (operand.tensor != nullptr)
      tensors.insert_or_assign(name_of(operand.name, "the name of an operand"),
                               operand.tensor->tensor);
  }
  // Made before the launch, so that nothing is lost after it. Here a spec says nothing.
  struct Made {
    std::string name;
    tessera_tensor** place;
    std::unique_ptr<tessera_tensor> tensor;
  };
  std::vector<Made> made;
  std::vector<std::string> wanted;
  for (const tessera_output& output : call.outputs()) {
    if (output.tensor == nullptr) continue;
    std::string name = name_of(output.name, "the name of an output");
    if (*output.tensor == nullptr) {
      wanted.push_back(name);
      made.push_back({std::move(name), output.tensor, std::make_unique<tessera_tensor>()});
    } else {
      tensors.insert_or_assign(std::move(name), (*output.tensor)->tensor);
    }
  }
  const Tensors results = call.on(context).run(call.operation(), tensors, call.options(), wanted);
  for (const Made& each : made) each.tensor->tensor = results.at(each.name);
  for (Made& each : made) *each.place = each.tensor.release();
}

}  // namespace
}  // namespace tessera::capi

using tessera::capi::Call;
using tessera::capi::guarded;
using tessera::capi::required;

extern "C" {

tessera_status tessera_run(const tessera_context* context, const tessera_call* call) {
  return guarded([&] { tessera::capi::run(context, call); });
}

tessera_status tessera_query_support(const tessera_context* context, const tessera_call* call) {
  return guarded([&] {
    const Call checked(call);
    if (const auto no = tessera::query_support(checked.on(context), checked.problem()))
      throw tessera::Unsupported(*no);
  });
}

tessera_status tessera_prewarm(const tessera_context* context, const tessera_call* const* calls,
                               size_t count) {
  return guarded([&] {
    for (const tessera_call* call : tessera::capi::array(calls, count, "calls")) {
      const Call checked(call);
      const tessera::Problem problem = checked.problem();
      tessera::prewarm(checked.on(context), {&problem, 1});
    }
  });
}

tessera_status tessera_scratch_bytes(const tessera_context* context, const tessera_call* call,
                                     uint64_t* bytes) {
  return guarded([&] {
    const Call checked(call);
    required(bytes, "bytes") = tessera::scratch_bytes(checked.on(context), checked.problem());
  });
}

tessera_status tessera_last_execution(const tessera_context* context, const char** name) {
  return guarded([&] {
    thread_local std::string text;
    required(name, "name");
    text = required(context, "context").context.last_execution().name;
    *name = text.c_str();
  });
}

}  // extern "C"
