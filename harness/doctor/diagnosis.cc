// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/diagnosis.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/cases/sweep.h"
#include "harness/text/counted.h"
#include "harness/text/json_writer.h"
#include "harness/text/text.h"

namespace tutti::harness::doctor {
namespace {

nlohmann::ordered_json gpus_json(const GpusSeen& seen) {
  auto list = nlohmann::ordered_json::array();
  for (const GpuSeen& gpu : seen.gpus) {
    list.push_back({{"name", gpu.name},
                    {"clock_mhz", gpu.clock_mhz},
                    {"most_clock_mhz", gpu.most_clock_mhz},
                    {"slowed_down_by", throttling_text(gpu.throttling)},
                    {"ecc_errors", gpu.ecc_errors},
                    {"processes", gpu.processes}});
  }
  return list;
}

using Json = nlohmann::ordered_json;

constexpr std::string_view kUnknown = "unknown";

std::string_view or_unknown(const std::string& text) { return text.empty() ? kUnknown : std::string_view(text); }

/// "0-3,8".
std::string cpu_list(const std::vector<int>& cores) {
  std::string text;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cores[i]);
    if (last > i) text += fmt::format("-{}", cores[last]);
    i = last + 1;
  }
  return text;
}

std::string gib(std::int64_t bytes) { return fmt::format("{:.1f} GiB", std::ldexp(static_cast<double>(bytes), -30)); }

std::string processor_text(const MachineCondition& c) {
  std::string text(or_unknown(c.cpu_model));
  if (c.sockets > 0) text += fmt::format("; {}", counted(c.sockets, "socket"));
  if (c.physical_cores > 0) {
    text += fmt::format(", {}", counted(c.physical_cores, "physical core"));
  }
  if (!c.numa.empty()) text += fmt::format(", {}", counted(c.numa.size(), "NUMA node"));
  return text;
}

std::string caches_text(const MachineCondition& c) {
  std::vector<std::string> texts;
  for (const Cache& cache : c.caches) {
    const bool is_own = cache.shared_cpus.find_first_of(",-") == std::string::npos;
    texts.push_back(fmt::format("L{} {} (core{} {})", cache.level, format_bytes(cache.bytes), is_own ? "" : "s",
                                cache.shared_cpus));
  }
  return texts.empty() ? std::string(kUnknown) : fmt::format("{}", fmt::join(texts, ", "));
}

std::string host_text(const MachineCondition& c) {
  std::string text = c.is_virtual ? "virtual machine" : "no hypervisor seen";
  if (!c.hypervisor.empty()) text += fmt::format(" ({})", c.hypervisor);
  if (c.is_container) text += ", in a container";
  return text + fmt::format("; kernel {}", or_unknown(c.kernel));
}

std::string memory_text(const MachineCondition& c) {
  std::string text = fmt::format("{}, {} available", gib(c.memory_bytes), gib(c.available_bytes));
  if (c.memory_limit) text += fmt::format(", limit of the cgroup {}", gib(*c.memory_limit));
  text += fmt::format("; transparent huge pages {}", or_unknown(c.huge_pages));
  if (c.reserved_huge_pages > 0) text += fmt::format(", {} reserved", c.reserved_huge_pages);
  return c.probes.shm_bytes ? text + fmt::format("; /dev/shm {}", gib(*c.probes.shm_bytes)) : text;
}

std::string speed_text(const MachineCondition& c) {
  const std::string_view turbo = !c.has_turbo ? kUnknown : *c.has_turbo ? "on" : "off";
  return fmt::format("governor {}, turbo {}, clock source {}", or_unknown(c.governor), turbo,
                     or_unknown(c.clock_source));
}

std::string time_text(const MachineCondition& c) {
  return fmt::format("load {:.2f}, {:.1f} % stolen since the start, quota of the cgroup {}", c.load,
                     100 * c.steal_fraction, c.quota_cores ? fmt::format("{:.2f} cores", *c.quota_cores) : "none");
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}
Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json machine_json(const MachineCondition& c) {
  Json caches = Json::array();
  for (const Cache& cache : c.caches) {
    caches.push_back({{"level", cache.level}, {"bytes", cache.bytes}, {"shared_cpus", cache.shared_cpus}});
  }
  return {{"cpu_model", or_null(c.cpu_model)},
          {"sockets", c.sockets},
          {"physical_cores", c.physical_cores},
          {"cores_online", c.online},
          {"cores_allowed", c.allowed},
          {"cores_sharing", c.allowed_shared},
          {"numa_nodes", c.numa},
          {"caches", std::move(caches)},
          {"governor", or_null(c.governor)},
          {"turbo", or_null(c.has_turbo)},
          {"virtual", c.is_virtual},
          {"hypervisor", or_null(c.hypervisor)},
          {"container", c.is_container},
          {"kernel", or_null(c.kernel)},
          {"clock_source", or_null(c.clock_source)},
          {"quota_cores", or_null(c.quota_cores)},
          {"load", c.load},
          {"steal_fraction", c.steal_fraction},
          {"memory_bytes", c.memory_bytes},
          {"available_bytes", c.available_bytes},
          {"memory_limit_bytes", or_null(c.memory_limit)},
          {"transparent_huge_pages", or_null(c.huge_pages)},
          {"reserved_huge_pages", c.reserved_huge_pages},
          {"dev_shm_bytes", or_null(c.probes.shm_bytes)},
          {"ptrace_scope", or_null(c.ptrace_scope)},
          {"mpirun", or_null(c.mpirun)},
          {"backends", c.probes.backends},
          {"torch", or_null(c.probes.torch)},
          {"gpus", c.gpus},
          {"gpus_seen", gpus_json(c.probes.gpus)},
          {"gpus_unseen", or_null(c.probes.gpus.why_not)},
          {"no_cuda", or_null(c.probes.why_no_cuda)}};
}

std::string gpus_text(const MachineCondition& c) {
  const GpusSeen& seen = c.probes.gpus;
  const std::string devices = c.gpus.empty() ? "none seen" : fmt::format("{}", fmt::join(c.gpus, " "));
  if (seen.gpus.empty()) return fmt::format("{}; not asked for their state: {}", devices, seen.why_not);
  std::string text;
  for (const GpuSeen& gpu : seen.gpus) {
    const std::string reasons = throttling_text(gpu.throttling);
    text += fmt::format("{}{} at {} of {} MHz, {}, {} ECC errors, {} processes", text.empty() ? "" : "; ", gpu.name,
                        gpu.clock_mhz, gpu.most_clock_mhz,
                        reasons.empty() ? "not slowed down" : "slowed down by " + reasons, gpu.ecc_errors,
                        gpu.processes.size());
  }
  return text;
}

}  // namespace

std::string findings_text(std::span<const Symptom> findings) {
  std::string text = findings.empty() ? "\nNothing was found that would spoil a measurement.\n"
                                      : "\nWhat would spoil a measurement, or change what it means\n";
  for (const Symptom& finding : findings) {
    const auto part = [&](std::string_view name, const std::string& value) {
      text += fmt::format("            {:<5}{}", name, wrapped(value, 17, kPageWidth - 17));
    };
    text += fmt::format("\n  {:<8}  {}", to_string(finding.severity), wrapped(finding.what, 12, kPageWidth - 12));
    part("why", finding.why);
    part("do", finding.advice);
  }
  return text;
}

Json findings_json(std::span<const Symptom> findings) {
  Json list = Json::array();
  for (const Symptom& finding : findings) {
    list.push_back({{"name", finding.name},
                    {"severity", to_string(finding.severity)},
                    {"what", finding.what},
                    {"why", finding.why},
                    {"advice", finding.advice}});
  }
  return list;
}

std::string diagnosis_text(const MachineCondition& c, std::span<const Symptom> findings) {
  constexpr std::size_t kIndent = 14;
  std::string text = "This machine\n\n";
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<12}{}", name, wrapped(value, kIndent, kPageWidth - kIndent));
  };
  line("processor", processor_text(c));
  line("cores", fmt::format("{} online ({}), {} allowed ({})", c.online.size(), cpu_list(c.online), c.allowed.size(),
                            cpu_list(c.allowed)));
  line("caches", caches_text(c));
  line("speed", speed_text(c));
  line("time", time_text(c));
  line("memory", memory_text(c));
  line("host", host_text(c));
  line("references",
       fmt::format("{}; mpirun {}; single copies between processes {}",
                   c.probes.backends.empty() ? "none" : fmt::format("{}", fmt::join(c.probes.backends, " ")),
                   c.mpirun.empty() ? "none" : c.mpirun,
                   c.ptrace_scope.value_or(0) == 0 || c.may_ptrace ? "allowed" : "not allowed"));
  if (!c.probes.torch.empty()) line("PyTorch", c.probes.torch);
  const std::string& no_cuda = c.probes.why_no_cuda;
  line("GPUs", no_cuda.empty() ? gpus_text(c) : fmt::format("{}; none to run on: {}", gpus_text(c), no_cuda));
  return text + findings_text(findings);
}

std::string diagnosis_json(const MachineCondition& condition, std::span<const Symptom> findings) {
  const Json all{{"machine", machine_json(condition)}, {"findings", findings_json(findings)}};
  return json_text(all, 2) + "\n";
}

}  // namespace tutti::harness::doctor
