// SPDX-License-Identifier: Apache-2.0
// Finds a library that only some machines have, and loads it: the one that a variable names, then the loader's own,
// then those that Python's packages brought along. It has no Status, so that a backend's shared object can compile it
// in.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tutti::cuda {

/// How the environment is asked: std::getenv, or what a test has in its place.
using Environment = char* (*)(const char* name);

/// The value of a variable; empty where it is not set.
[[nodiscard]] std::string value_of(Environment environment, const char* name);

/// What is looked for.
struct Wanted {
  const char* variable = nullptr;          ///< names the file; where it is set, nothing else is tried
  std::span<const char* const> files;      ///< names, the preferred one first
  const char* folder_of_wheels = nullptr;  ///< below a folder of Python's packages; may have a *
};

/// A loaded library stays loaded until the process ends.
struct LoadedLibrary {
  void* handle = nullptr;  ///< null: there is none
  std::string path;        ///< as the loader has it
  std::string why_not;     ///< where there is none: where it was looked for, and what was wrong there
};

[[nodiscard]] LoadedLibrary load_library(const Wanted& wanted, Environment environment);

/// The folders of Python's packages, the environment's own before the system's. Each is there, and there once.
[[nodiscard]] std::vector<std::string> folders_of_packages(Environment environment);

}  // namespace tutti::cuda
