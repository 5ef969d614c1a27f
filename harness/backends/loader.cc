// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/loader.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <system_error>

#include <fmt/ranges.h>

#include "harness/cases/backend_name.h"

namespace tutti::harness::backends {
namespace {

constexpr std::string_view kPrefix = "libtutti_backend_";
constexpr std::string_view kSuffix = ".so";
constexpr std::string_view kOwn = "tutti";  // always there, and not a shared object

/// Memory for a message of a backend.
class Text {
 public:
  Text() : message_{.text = text_.data(), .size = text_.size()} { text_[0] = '\0'; }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  [[nodiscard]] TuttiBackendMessage* message() { return &message_; }
  [[nodiscard]] std::string text() {
    text_.back() = '\0';  // whatever the backend did
    return text_.data();
  }

 private:
  std::array<char, 16384> text_;
  TuttiBackendMessage message_;
};

/// Calls a function of the backend `name` that fails where the library does.
template <class Function>
Status checked(std::string_view name, Function function) {
  Text text;
  if (function(text.message()) == 0) return {};
  return error(Code::io, "backend {}: {}", name, text.text());
}

std::string file_of(std::string_view name) { return fmt::format("{}{}{}", kPrefix, name, kSuffix); }

Status not_found(std::string_view name, std::span<const std::string> directories) {
  std::vector<std::string> names = list_backends(directories);
  if (names.empty()) {
    return error(Code::invalid_argument, "unknown backend '{}': there is only '{}', and no {} in {}", name, kOwn,
                 file_of(name), fmt::join(directories, ", "));
  }
  names.emplace_back(kOwn);
  return unknown_backend(name, names);
}

std::string system_reason() {
  const char* const reason = dlerror();
  return reason == nullptr ? "unknown reason" : reason;
}

}  // namespace

std::vector<std::string> backend_directories(std::string_view variable, std::string_view program_directory) {
  std::vector<std::string> directories;
  while (!variable.empty()) {
    const std::size_t colon = std::min(variable.find(':'), variable.size());
    if (colon > 0) directories.emplace_back(variable.substr(0, colon));
    variable.remove_prefix(std::min(colon + 1, variable.size()));
  }
  directories.emplace_back(program_directory);
  return directories;
}

std::vector<std::string> directories_named_by(const char* variable) {
  const char* const named = std::getenv(variable);
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  return backend_directories(named == nullptr ? "" : named, program.parent_path().string());
}

std::vector<std::string> list_backends(std::span<const std::string> directories) {
  std::vector<std::string> names;
  for (const std::string& directory : directories) {
    std::error_code ignored;  // a directory that is not there has no backends
    for (auto entry = std::filesystem::directory_iterator(directory, ignored);
         entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
      const std::string file = entry->path().filename().string();
      if (!file.starts_with(kPrefix) || !file.ends_with(kSuffix)) continue;
      if (file.size() <= kPrefix.size() + kSuffix.size()) continue;
      names.push_back(file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size()));
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<std::string> find_backend(std::string_view name, std::span<const std::string> directories) {
  const std::vector<std::string> names = list_backends(directories);
  if (std::find(names.begin(), names.end(), name) == names.end()) return not_found(name, directories);
  std::string path;
  for (const std::string& directory : directories) {
    std::error_code ignored;
    path = (std::filesystem::path(directory) / file_of(name)).string();
    if (std::filesystem::exists(path, ignored)) break;
  }
  return path;
}

Result<LoadedBackend> LoadedBackend::load(std::string_view name, std::span<const std::string> directories) {
  TUTTI_ASSIGN_OR_RETURN(const std::string path, find_backend(name, directories));
  // Global, so that plugins that the library opens later find the library's symbols; a path with a slash is not
  // searched for.
  void* const object = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (object == nullptr) return error(Code::unavailable, "backend {} cannot be loaded: {}", name, system_reason());
  // Not RTLD_DEFAULT: each object has its own function of this name.
  const auto entry = reinterpret_cast<TuttiBackendEntry>(dlsym(object, TUTTI_BACKEND_SYMBOL));
  if (entry == nullptr) return error(Code::unavailable, "{} is not a backend: {}", path, system_reason());
  const TuttiBackend* const api = entry();
  if (api->abi != TUTTI_BACKEND_ABI) {
    return error(Code::unavailable,
                 "backend {} has ABI {}, this program needs {}: build it again (scripts/build-backend), {}", name,
                 api->abi, TUTTI_BACKEND_ABI, path);
  }
  if (api->starter < TUTTI_STARTER_SPAWN || api->starter > TUTTI_STARTER_NONE) {
    return error(Code::unavailable, "backend {} has starter {}; there are {} to {}, {}", name, api->starter,
                 static_cast<int>(TUTTI_STARTER_SPAWN), static_cast<int>(TUTTI_STARTER_NONE), path);
  }
  if (api->name != name) {
    return error(Code::unavailable, "{} says that it is backend '{}': name the file {}", path, api->name,
                 file_of(api->name));
  }
  return LoadedBackend(api, path);
}

LoadedBackend LoadedBackend::of(const TuttiBackend& table) {
  TUTTI_ASSERT(table.abi == TUTTI_BACKEND_ABI, "backend {} has ABI {}", table.name, table.abi);
  return {&table, ""};
}

Result<std::string> LoadedBackend::describe() const {
  Text text;
  if (api_->describe(text.message()) == 0) return text.text();
  return error(Code::unavailable, "backend {} cannot describe itself in {} bytes", name(), text.message()->size);
}

Result<std::string> LoadedBackend::start_command() const {
  if (api_->starter != TUTTI_STARTER_MPIRUN) return std::string();
  Text text;
  if (api_->start_command != nullptr && api_->start_command(text.message()) == 0) return text.text();
  return error(Code::unavailable, "backend {} is started by an mpirun, but does not say which in {} bytes", name(),
               text.message()->size);
}

Status LoadedBackend::open(const TuttiBackendGroup& world, const TuttiBackendJoin& join) const {
  Text text;
  if (api_->open(&world, &join, text.message()) == 0) return {};
  return error(Code::unavailable, "backend {}: {}", name(), text.text());
}

Result<TuttiBackendGroup> LoadedBackend::split(void* parent, int colour, int key) const {
  TuttiBackendGroup group{};
  TUTTI_RETURN_IF_ERROR(
      checked(name(), [&](auto* message) { return api_->split(parent, colour, key, &group, message); }));
  return group;
}

Status LoadedBackend::free_group(const TuttiBackendGroup& group) const {
  return checked(name(), [&](auto* message) { return api_->free_group(group.handle, message); });
}

Status LoadedBackend::supports(const TuttiBackendCall& call) const {
  Text text;
  if (api_->supports(&call, text.message()) == 0) return {};
  return Status(Code::unavailable, text.text());
}

Result<LoadedBackend::Handle> LoadedBackend::prepare(const TuttiBackendCall& call) const {
  Text text;
  Handle handle = nullptr;
  if (api_->prepare(&call, &handle, text.message()) == 0) return handle;
  return error(Code::unavailable, "backend {}: {}", name(), text.text());
}

Status LoadedBackend::run(Handle handle) const {
  return checked(name(), [&](auto* message) { return api_->run(handle, message); });
}

Status LoadedBackend::post(Handle handle) const {
  return checked(name(), [&](auto* message) { return api_->post(handle, message); });
}

Result<bool> LoadedBackend::test(Handle handle) const {
  std::int32_t is_complete = 0;
  TUTTI_RETURN_IF_ERROR(checked(name(), [&](auto* message) { return api_->test(handle, &is_complete, message); }));
  return is_complete != 0;
}

Status LoadedBackend::wait(Handle handle) const {
  return checked(name(), [&](auto* message) { return api_->wait(handle, message); });
}

Status LoadedBackend::close() const {
  return checked(name(), [&](auto* message) { return api_->close(message); });
}

Status LoadedBackend::begin_group() const {
  return api_->begin_group == nullptr ? Status() : checked(name(), api_->begin_group);
}

Status LoadedBackend::end_group() const {
  return api_->end_group == nullptr ? Status() : checked(name(), api_->end_group);
}

Result<LoadedBackend::Handle> LoadedBackend::register_buffer(void* group, int local, std::span<const std::byte> memory,
                                                             Buffers kind) const {
  Handle registered = nullptr;
  if (api_->register_buffer == nullptr) return registered;
  auto* const address = const_cast<std::byte*>(memory.data());
  const std::int32_t number = kind == Buffers::shared ? 1 : 0;
  TUTTI_RETURN_IF_ERROR(checked(name(), [&](auto* message) {
    return api_->register_buffer(group, local, address, memory.size(), number, &registered, message);
  }));
  return registered;
}

Status LoadedBackend::forget_buffer(int local, Handle registered) const {
  if (api_->forget_buffer == nullptr) return {};
  return checked(name(), [&](auto* message) { return api_->forget_buffer(local, registered, message); });
}

Status LoadedBackend::poll_error(int local) const {
  if (api_->poll_error == nullptr) return {};
  return checked(name(), [&](auto* message) { return api_->poll_error(local, message); });
}

Result<void*> LoadedBackend::allocate(int local, std::size_t bytes) const {
  if (api_->allocate == nullptr) return error(Code::unavailable, "backend {} has no memory of its own", name());
  Text text;
  void* memory = nullptr;
  if (api_->allocate(local, bytes, &memory, text.message()) == 0) return memory;
  return error(Code::resource, "backend {}: {}", name(), text.text());
}

Status LoadedBackend::give_back(int local, void* memory) const {
  if (api_->give_back == nullptr) return {};
  return checked(name(), [&](auto* message) { return api_->give_back(local, memory, message); });
}

Status LoadedBackend::abort(int local) const {
  if (api_->abort == nullptr) return {};
  return checked(name(), [&](auto* message) { return api_->abort(local, message); });
}

}  // namespace tutti::harness::backends
