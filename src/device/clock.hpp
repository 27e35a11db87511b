// SPDX-License-Identifier: Apache-2.0
// The clock of a device's processor, where somebody tells it: a measured time says little without
// it.
#pragma once

#include <functional>
#include <string>

#include "base/system/timing.hpp"
#include "tessera/device.hpp"

namespace tessera::device {

// MHz at this moment; 0 = nobody tells. NVIDIA's management library is looked for at run time;
// processors are read from Linux's files.
std::function<double()> clock_reader(const DeviceProfile& profile);

// What it takes until a device like this runs at its speed.
WarmUp warm_up_of(const DeviceProfile& profile);

// The median of the processors below `system`, a folder like /sys/devices/system/cpu; where they
// tell nothing, of the lines "cpu MHz" in `cpuinfo`.
double cpu_megahertz(const std::string& system, const std::string& cpuinfo);

}  // namespace tessera::device
