// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/nccl/library.h"

#include <cstdlib>
#include <dlfcn.h>
#include <string_view>

namespace tutti::backend_nccl {
namespace {

constexpr const char* kVariable = "TUTTI_NCCL";
constexpr const char* kFiles[] = {"libnccl.so.2"};

/// The name of a function that the library lacks, of those that are needed; null: it has all.
const char* resolve(void* library, Nccl& nccl) {
#define TUTTI_NCCL_RESOLVE(result, name, parameters) \
  nccl.name = reinterpret_cast<decltype(nccl.name)>(::dlsym(library, #name));
  TUTTI_NCCL_FUNCTIONS(TUTTI_NCCL_RESOLVE)
  TUTTI_NCCL_LATER_FUNCTIONS(TUTTI_NCCL_RESOLVE)
#undef TUTTI_NCCL_RESOLVE
#define TUTTI_NCCL_DEMAND(result, name, parameters) \
  if (nccl.name == nullptr) return #name;
  TUTTI_NCCL_FUNCTIONS(TUTTI_NCCL_DEMAND)
#undef TUTTI_NCCL_DEMAND
  return nullptr;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20U ? ' ' : c;
  }
  return result;
}

void add(std::string& json, std::string_view key, std::string_view value) {
  json.append(json.empty() ? "{\"" : ", \"").append(key).append("\": \"").append(escaped(value)).append("\"");
}

Libraries look() {
  Libraries all;
  const cuda::FoundRuntime runtime = cuda::find_runtime(std::getenv);
  all.cuda = runtime.runtime;
  all.missing = runtime.why;
  all.is_without_gpu = runtime.is_without_gpu;
  if (all.cuda == nullptr) return all;
  const FoundNccl nccl = find_nccl(std::getenv);
  all.nccl = nccl.nccl;
  all.missing = nccl.why;
  return all;
}

}  // namespace

std::string version_text(int version) {
  constexpr int kNewNumbers = 10000;  // before 2.9 it was 2708
  const int major = version / (version < kNewNumbers ? 1000 : 10000);
  return std::to_string(major) + "." + std::to_string(version / 100 % (version < kNewNumbers ? 10 : 100)) + "." +
         std::to_string(version % 100);
}

std::string Nccl::text_of(Answer answer, Comm comm) const {
  const std::string last = ncclGetLastError(comm);  // empty where it has said nothing
  return std::string(ncclGetErrorString(answer)) + (last.empty() ? "" : ": " + last);
}

FoundNccl find_nccl(cuda::Environment environment) {
  const cuda::LoadedLibrary library =
      cuda::load_library({.variable = kVariable, .files = kFiles, .folder_of_wheels = "nvidia/nccl/lib"}, environment);
  if (library.handle == nullptr) {
    return {.nccl = nullptr,
            .why = library.why_not +
                   "; install NCCL (pip install nvidia-nccl-cu12), or name its "
                   "libnccl.so.2 in " +
                   kVariable};
  }
  const auto nccl = std::make_shared<Nccl>();
  nccl->path = library.path;
  const char* const missing = resolve(library.handle, *nccl);
  const bool says_version = nccl->ncclGetVersion != nullptr && nccl->ncclGetVersion(&nccl->version) == kSuccess;
  if (says_version && nccl->version < kLeastVersion) {
    return {.nccl = nullptr,
            .why = "NCCL " + version_text(nccl->version) + " is too old (" + nccl->path +
                   "): 2.18 is the first that splits communicators; name a newer one in " + kVariable};
  }
  if (missing != nullptr) {
    return {.nccl = nullptr,
            .why = nccl->path + (says_version ? ", NCCL " + version_text(nccl->version) + "," : "") + " has no " +
                   missing + ": it is not a whole NCCL of version 2.18 or later; name another one in " + kVariable};
  }
  return {.nccl = nccl, .why = ""};
}

const Libraries& libraries() {
  static Libraries all;
  if (all.nccl == nullptr) all = look();
  return all;
}

std::string to_json(const Libraries& all) {
  std::string json;
  add(json, "library", "NCCL");
  add(json, "version", all.nccl == nullptr ? "" : version_text(all.nccl->version));
  add(json, "transport", "");  // NCCL has no question for it; NCCL_DEBUG=INFO prints it
  add(json, "single_copy", "");
  if (all.nccl != nullptr) add(json, "path", all.nccl->path);
  if (all.nccl != nullptr) add(json, "symmetric_windows", all.nccl->ncclCommWindowRegister == nullptr ? "no" : "yes");
  if (all.cuda != nullptr) {
    add(json, "cuda_runtime", cuda::version_text(all.cuda->version));
    add(json, "cuda_driver", cuda::version_text(all.cuda->driver_version));
  }
  if (!all.missing.empty()) add(json, "missing", all.missing);
  if (!all.missing.empty() && all.is_without_gpu) add(json, "without", "GPU");
  return json + "}";
}

}  // namespace tutti::backend_nccl
