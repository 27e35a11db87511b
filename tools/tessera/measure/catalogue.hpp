// SPDX-License-Identifier: Apache-2.0
// What `tessera run --list` prints of every operation, from the records.
#pragma once

#include <string>

namespace tessera::tool {

std::string catalogue_text();
std::string catalogue_json();
std::string catalogue_markdown();  // operations × platforms, for the README

}  // namespace tessera::tool
