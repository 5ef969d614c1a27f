// SPDX-License-Identifier: Apache-2.0
// What a transport that is a shared object has to be built for. Its interface is C++: the layout of the row, of Domain
// and of Status. So the number is a hash of those headers, of the compiler and of the version (impl/CMakeLists.txt).
#pragma once

#include <cstdint>

#include "transport_build.h"

namespace tutti {

inline constexpr std::uint64_t kTransportNumber = TUTTI_TRANSPORT_NUMBER;
inline constexpr const char* kTransportBuild = TUTTI_TRANSPORT_BUILD;

}  // namespace tutti
