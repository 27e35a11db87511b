// SPDX-License-Identifier: Apache-2.0
// What a Vulkan driver's compiler says of the pipelines that the library creates. This program is
// linked with --wrap for vkCreateDevice and vkCreateComputePipelines, so that the library's own
// code creates device and pipelines; the wrappers ask for VK_KHR_pipeline_executable_properties.
#pragma once

#include <nlohmann/json.hpp>

namespace tessera::vendors {

// Of the pipeline that was created last, by the names of statistics.cpp; empty where the driver
// tells nothing. Of several executables (Intel's driver compiles for several sub-group sizes) the
// last one, which is what it runs.
nlohmann::ordered_json take_statistics();

}  // namespace tessera::vendors
