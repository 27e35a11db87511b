// SPDX-License-Identifier: Apache-2.0
// What a Vulkan driver's compiler says of the pipelines that the library creates. The library finds
// this program's vkCreateDevice and vkCreateComputePipelines before the loader's; they ask for
// VK_KHR_pipeline_executable_properties.
#pragma once

#include <nlohmann/json.hpp>

namespace tessera::vendors {

// Of the pipeline that was created last, by the names of pipelines.cpp; empty where the driver
// tells nothing. Of several executables (Intel's driver compiles for several sub-group sizes) the
// last one, which is what it runs.
nlohmann::ordered_json take_statistics();

}  // namespace tessera::vendors
