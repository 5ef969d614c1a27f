// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/library.h"

#include <algorithm>
#include <dlfcn.h>
#include <filesystem>
#include <glob.h>
#include <link.h>
#include <string_view>
#include <system_error>
#include <unistd.h>

namespace tutti::cuda {
namespace {

/// Below the folder where a Python is installed.
constexpr const char* kBelowAPrefix[] = {"/lib/python3*/site-packages", "/lib64/python3*/site-packages",
                                         "/lib/python3*/dist-packages", "/lib/python3/dist-packages"};
constexpr const char* kSystemPrefixes[] = {"/usr/local", "/usr"};

/// What is there of that pattern, the last one by name first: of two versions the newer one.
std::vector<std::string> files_like(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  std::ranges::reverse(paths);
  return paths;
}

std::vector<std::string> split_at_colons(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t colon = std::min(text.find(':', first), text.size());
    if (colon > first) parts.push_back(text.substr(first, colon - first));
    first = colon + 1;
  }
  return parts;
}

/// Where the Pythons of PATH are installed: the folder above their own.
std::vector<std::string> prefixes_of_pythons(Environment environment) {
  std::vector<std::string> prefixes;
  for (const std::string& folder : split_at_colons(value_of(environment, "PATH"))) {
    const std::filesystem::path python = std::filesystem::path(folder) / "python3";
    if (::access(python.c_str(), X_OK) != 0) continue;
    prefixes.push_back(python.parent_path().parent_path().string());
    std::error_code ignored;  // a virtual environment's is a link to one that may have packages, too
    prefixes.push_back(std::filesystem::canonical(python, ignored).parent_path().parent_path().string());
  }
  return prefixes;
}

std::string last_error() {
  const char* const text = ::dlerror();
  return text == nullptr ? "unknown reason" : text;
}

/// Its symbols are asked for by handle, and are nobody else's business.
bool open_library(const std::string& name, LoadedLibrary& library) {
  library.handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library.handle == nullptr) return false;
  const link_map* map = nullptr;
  const bool is_known = ::dlinfo(library.handle, RTLD_DI_LINKMAP, &map) == 0 && *map->l_name != '\0';
  library.path = is_known ? map->l_name : name;
  library.why_not.clear();
  return true;
}

std::string joined(std::span<const char* const> names) {
  std::string text;
  for (const char* const name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace

std::string value_of(Environment environment, const char* name) {
  const char* const value = environment(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> folders_of_packages(Environment environment) {
  std::vector<std::string> folders = split_at_colons(value_of(environment, "PYTHONPATH"));
  std::vector<std::string> prefixes;
  for (const char* const variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string prefix = value_of(environment, variable); !prefix.empty()) prefixes.push_back(prefix);
  }
  if (const std::string home = value_of(environment, "HOME"); !home.empty()) prefixes.push_back(home + "/.local");
  std::ranges::move(prefixes_of_pythons(environment), std::back_inserter(prefixes));
  std::ranges::copy(kSystemPrefixes, std::back_inserter(prefixes));
  for (const std::string& prefix : prefixes) {
    for (const char* const below : kBelowAPrefix) {
      std::ranges::move(files_like(prefix + below), std::back_inserter(folders));
    }
  }
  std::vector<std::string> each;
  for (std::string& folder : folders) {
    std::error_code ignored;
    const bool is_there = std::filesystem::is_directory(folder, ignored);
    if (is_there && std::ranges::find(each, folder) == each.end()) each.push_back(std::move(folder));
  }
  return each;
}

LoadedLibrary load_library(const Wanted& wanted, Environment environment) {
  LoadedLibrary library;
  if (const std::string named = value_of(environment, wanted.variable); !named.empty()) {
    if (!open_library(named, library)) {
      library.why_not = std::string(wanted.variable) + " names " + named + ", which cannot be loaded: " + last_error();
    }
    return library;
  }
  std::string damaged;  // one that is there says more than those that are not
  for (const char* const file : wanted.files) {
    if (open_library(file, library)) return library;
    std::string error = last_error();
    if (damaged.empty() && !error.starts_with(std::string(file) + ": cannot open")) damaged = std::move(error);
  }
  for (const std::string& packages : folders_of_packages(environment)) {
    for (const char* const file : wanted.files) {
      for (const std::string& path : files_like(packages + "/" + wanted.folder_of_wheels + "/" + file)) {
        if (open_library(path, library)) return library;
        if (damaged.empty()) damaged = last_error();
      }
    }
  }
  library.why_not = "no " + joined(wanted.files) + " in the loader's path or in " + wanted.folder_of_wheels +
                    " of an installed Python";
  if (!damaged.empty()) library.why_not += "; what is there cannot be loaded: " + damaged;
  return library;
}

}  // namespace tutti::cuda
