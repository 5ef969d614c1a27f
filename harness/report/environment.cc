// SPDX-License-Identifier: Apache-2.0
#include "harness/report/environment.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>

#include "harness/text/redaction.h"

namespace tutti::harness::report {
namespace {

constexpr std::array<std::string_view, 9> kPrefixes{"OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_", "MPICH_", "MPIR_CVAR_",
                                                    "I_MPI_",    "UCX_",      "FI_",       "NCCL_"};
/// Open MPI's precondition_transports is a key by which the processes of a job know each other.
constexpr std::array<std::string_view, 9> kSecretWords{"secret", "token", "pass",       "pwd",         "key",
                                                       "auth",   "cert",  "credential", "precondition"};
/// Set by mpirun and mpiexec for every job. OMPI_MCA_mpi_oversubscribe is no such one: ranks yield.
constexpr std::array<std::string_view, 8> kOfLaunchers{"OMPI_MCA_orte_",
                                                       "OMPI_MCA_ess",
                                                       "OMPI_MCA_pmix=",
                                                       "OMPI_MCA_initial_wdir=",
                                                       "OMPI_MCA_shmem_RUNTIME_QUERY_hint=",
                                                       "PMIX_MCA_mca_base_component_show_load_errors=",
                                                       "MPICH_INTERFACE_HOSTNAME",
                                                       "MPIR_CVAR_CH3_INTERFACE_HOSTNAME"};

bool is_secret(std::string_view name) {
  std::string small(name);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::any_of(kSecretWords, [&](auto word) { return small.find(word) != std::string::npos; });
}

bool starts_with_any(std::string_view text, std::span<const std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](auto prefix) { return text.starts_with(prefix); });
}

}  // namespace

std::string told_value(std::string_view name, std::string_view value) {
  if (is_secret(name)) return std::string(kRedacted);
  return name.ends_with("agent") ? without_arguments(value) : without_logins(value);
}

std::map<std::string, std::string> library_settings(const char* const* environment) {
  std::map<std::string, std::string> settings;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const std::string_view name = entry.substr(0, entry.find('='));
    if (name.size() == entry.size()) continue;
    if (!starts_with_any(entry, kPrefixes) || starts_with_any(entry, kOfLaunchers)) continue;
    settings.emplace(name, told_value(name, entry.substr(name.size() + 1)));
  }
  return settings;
}

std::map<std::string, std::string> library_settings() { return library_settings(environ); }

}  // namespace tutti::harness::report
