// SPDX-License-Identifier: Apache-2.0
#include "harness/report/environment.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <unistd.h>

namespace tutti::harness {
namespace {

constexpr std::array<std::string_view, 9> kPrefixes{"OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_", "MPICH_", "MPIR_CVAR_",
                                                    "I_MPI_",    "UCX_",      "FI_",       "NCCL_"};
/// Open MPI's precondition_transports is a key by which the processes of a job know each other.
constexpr std::array<std::string_view, 7> kSecretWords{"secret", "token",      "password",    "passwd",
                                                       "key",    "credential", "precondition"};

bool is_secret(std::string_view name) {
  std::string small(name);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::any_of(kSecretWords, [&](auto word) { return small.find(word) != std::string::npos; });
}

}  // namespace

std::map<std::string, std::string> library_settings(const char* const* environment) {
  std::map<std::string, std::string> settings;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const std::string_view name = entry.substr(0, entry.find('='));
    if (name.size() == entry.size()) continue;
    if (std::ranges::none_of(kPrefixes, [&](auto prefix) { return name.starts_with(prefix); })) continue;
    settings.emplace(name, is_secret(name) ? kRedacted : entry.substr(name.size() + 1));
  }
  return settings;
}

std::map<std::string, std::string> library_settings() { return library_settings(environ); }

}  // namespace tutti::harness
