// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/loader.h"

#include <algorithm>
#include <dlfcn.h>
#include <filesystem>
#include <map>
#include <system_error>

#include <fmt/ranges.h>

#include "impl/transports/build.h"
#include "impl/types/names.h"

namespace tutti {
namespace {

constexpr std::string_view kPrefix = "libtutti_transport_";
constexpr std::string_view kSuffix = ".so";
constexpr const char* kSymbol = "tutti_transport";

std::string file_of(std::string_view name) { return fmt::format("{}{}{}", kPrefix, name, kSuffix); }

const Transport* find_built_in(std::string_view name) {
  const auto table = built_in_transports();
  const auto found = std::ranges::find_if(table, [&](const Transport* one) { return one->name == name; });
  return found == table.end() ? nullptr : *found;
}

/// Path by name. Opens none of them.
std::map<std::string, std::string> objects_in(std::span<const std::string> folders) {
  std::map<std::string, std::string> paths;
  for (const std::string& folder : folders) {
    std::error_code ignored;  // a folder that is not there has no transports
    for (auto entry = std::filesystem::directory_iterator(folder, ignored);
         entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
      const std::string file = entry->path().filename().string();
      if (!file.starts_with(kPrefix) || !file.ends_with(kSuffix)) continue;
      if (file.size() <= kPrefix.size() + kSuffix.size()) continue;
      paths.emplace(file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size()), entry->path().string());
    }
  }
  return paths;
}

std::string reason_of_loader() {
  const char* const reason = dlerror();
  return reason == nullptr ? "unknown reason" : reason;
}

/// Of its members only the first two are read before they are known to be those of this program.
Status check_row(const Transport* row, const std::string& name, const std::string& path) {
  if (row == nullptr) return error(Code::unavailable, "transport {}: {} has no row", name, path);
  if (row->number != kTransportNumber) {
    return error(Code::unavailable, "transport {} was built for {}, this program is {}: build it again, {}", name,
                 row->built_for == nullptr ? "another program" : shown(row->built_for), kTransportBuild, path);
  }
  const bool is_whole = row->name != nullptr && row->note != nullptr && row->shape != nullptr &&
                        row->shared_bytes != nullptr && row->open != nullptr && row->serves != 0;
  if (!is_whole) return error(Code::unavailable, "transport {}: the row in {} is not filled in", name, path);
  if (row->name != name) {
    return error(Code::unavailable, "{} says that it is transport '{}': name the file {}", path, shown(row->name),
                 file_of(shown(row->name)));
  }
  return {};
}

Result<const Transport*> load(const std::string& name, const std::string& path) {
  if (find_built_in(name) != nullptr) {
    return error(Code::unavailable, "transport {} is in the program already: give {} another name", name, path);
  }
  // A path with a slash is not searched for.
  void* const object = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) return error(Code::unavailable, "transport {} cannot be loaded: {}", name, reason_of_loader());
  const auto entry = reinterpret_cast<const Transport* (*)()>(dlsym(object, kSymbol));
  if (entry == nullptr) return error(Code::unavailable, "{} is not a transport: {}", path, reason_of_loader());
  const Transport* const row = entry();
  TUTTI_RETURN_IF_ERROR(check_row(row, name, path));
  return row;
}

}  // namespace

std::vector<ListedTransport> list_transports(std::span<const std::string> folders) {
  std::vector<ListedTransport> all;
  for (const Transport* const row : built_in_transports()) all.push_back({.name = row->name, .row = row});
  for (const auto& [name, path] : objects_in(folders)) {
    all.push_back({.name = name, .path = path, .row = load(name, path)});
  }
  return all;
}

Result<const Transport*> find_transport(std::string_view name, std::span<const std::string> folders) {
  if (const Transport* const row = find_built_in(name)) return row;
  const auto objects = objects_in(folders);
  if (const auto found = objects.find(std::string(name)); found != objects.end()) {
    return load(found->first, found->second);
  }
  std::vector<std::string> names;
  for (const Transport* const row : built_in_transports()) names.emplace_back(row->name);
  for (const auto& [other, path] : objects) names.push_back(other);
  const Status unknown = unknown_name("transport", name, names);
  if (folders.empty()) return unknown;
  return error(unknown.code(), "{}; no {} in {}", unknown.message(), file_of(shown(name)), fmt::join(folders, ", "));
}

}  // namespace tutti
