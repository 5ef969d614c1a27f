// SPDX-License-Identifier: Apache-2.0
// The settings that communication libraries take from the environment: they change what a result means, and belong to
// its record. Secrets do not.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "harness/floors.h"

namespace tutti::harness::report {

/// Of a process's environment, "NAME=value" up to a null. It is what Open MPI, MPICH, Intel MPI, UCX, libfabric and
/// NCCL read, but for what a launcher says of its job. A value is redacted where its name says that it is secret; in an
/// address `//user:password@` is, and of an agent all but its program.
[[nodiscard]] std::map<std::string, std::string> library_settings(const char* const* environment);
/// The value of a variable as a record has it.
[[nodiscard]] std::string told_value(std::string_view name, std::string_view value);
/// Of this process.
[[nodiscard]] std::map<std::string, std::string> library_settings();

}  // namespace tutti::harness::report
