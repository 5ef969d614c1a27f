// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/cell_watch.h"

#include <algorithm>
#include <chrono>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "harness/machine/clock.h"
#include "harness/machine/standstill.h"
#include "harness/process/waits.h"
#include "harness/record/record.h"

namespace tutti::harness::measure {
namespace {

/// A number for each runner; all 0 where the list is empty.
int number_of(const std::vector<int>& numbers, std::size_t runner) { return numbers.empty() ? 0 : numbers[runner]; }

}  // namespace

std::string words_on_hosts(const std::vector<std::string>& words_of_hosts, const std::vector<std::string>& host_names) {
  constexpr std::size_t kMostNamed = 3;
  std::string all;
  for (const std::string& words : words_of_hosts) add_disturbances(all, words);
  std::string text;
  for (const std::string_view word : words_in(all)) {
    std::vector<std::string_view> hosts;
    for (std::size_t host = 0; host < words_of_hosts.size(); ++host) {
      const auto its = words_in(words_of_hosts[host]);
      if (std::ranges::find(its, word) != its.end()) hosts.push_back(host_names[host]);
    }
    const std::size_t named = hosts.size() > kMostNamed + 1 ? kMostNamed : hosts.size();
    for (std::size_t i = 0; i < named; ++i) add_disturbances(text, fmt::format("{} on {}", word, hosts[i]));
    if (named < hosts.size()) add_disturbances(text, fmt::format("{} on {} more hosts", word, hosts.size() - named));
  }
  return text;
}

CellWatch::CellWatch(Runner& runner, const WatchedPlace& place, Tree machine, const std::vector<int>& devices)
    : runner_(runner),
      place_(place),
      machine_(std::move(machine)),
      cores_before_(count_here()),
      thread_before_(count_this_thread()),
      crowd_before_s_(crowd_s()),
      begun_ns_(monotonic_ns()) {
  runner.watch_stood();
  for (const int device : devices) {
    const GpusSeen seen = look_at_gpu(device);
    if (!seen.gpus.empty()) gpus_.push_back({.device = device, .before = seen.gpus.front()});
  }
}

Result<std::string> CellWatch::end() {
  std::string gpu_words;
  for (const WatchedGpu& one : gpus_) {
    const GpusSeen after = look_at_gpu(one.device);
    if (after.gpus.empty()) continue;
    add_disturbances(gpu_words, gpu_disturbances(one.before, after.gpus.front(), static_cast<unsigned>(::getpid())));
  }
  if (is_lookout()) await_watcher();
  TUTTI_RETURN_IF_ERROR(runner_.exchange(char{}).status());  // the ranks of all machines are done
  Seen mine{.thread_before = thread_before_,
            .thread_after = count_this_thread(),
            .crowd_s = crowd_s() - crowd_before_s_,
            .cores_before = cores_before_,
            .cores_after = count_here(),
            .is_lookout = is_lookout(),
            .has_stood = is_lookout() && runner_.take_stood()};
  gpu_words.copy(mine.gpu.data(), mine.gpu.size() - 1);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Seen> all, runner_.exchange(mine));
  if (runner_.index() != 0) return std::string();
  const std::vector<int>& machines = runner_.options().exchange->machines();
  const bool names_hosts = !place_.host_names.empty();
  std::vector<std::string> words(std::max<std::size_t>(place_.host_names.size(), 1));
  for (std::size_t lookout = 0; lookout < all.size(); ++lookout) {
    const auto machine = static_cast<std::size_t>(number_of(machines, lookout));
    std::string& seen = words[names_hosts ? machine : 0];
    if (all[lookout].has_stood) add_disturbances(seen, "stopped");
    if (all[lookout].is_lookout) add_disturbances(seen, disturbances_of(watched_by(lookout, all)));
    add_disturbances(seen, all[lookout].gpu.data());
  }
  return names_hosts ? words_on_hosts(words, place_.host_names) : words.front();
}

Watched CellWatch::watched_by(std::size_t lookout, const std::vector<Seen>& all) const {
  const std::vector<int>& machines = runner_.options().exchange->machines();
  Watched watched{.before = all[lookout].cores_before,
                  .after = all[lookout].cores_after,
                  .ranks_share_cores = runner_.shares_cores()};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_here = number_of(machines, i) == number_of(machines, lookout);
    if (!is_here && number_of(place_.kernels, i) != number_of(place_.kernels, lookout)) continue;
    watched.used_s += all[i].crowd_s;
    if (is_here) {
      add_thread(watched, all[i].thread_before, all[i].thread_after);
    } else {
      watched.used_s += all[i].thread_after.used_s - all[i].thread_before.used_s;
    }
  }
  return watched;
}

void CellWatch::await_watcher() const {
  constexpr std::chrono::milliseconds kMoment(50);
  const auto elapsed = std::chrono::nanoseconds(monotonic_ns() - begun_ns_);
  const auto used = std::chrono::duration<double>(count_this_thread().used_s - thread_before_.used_s);
  if (elapsed - used >= Standstill::kLeast) nap_until(kMoment, [this] { return runner_.has_stood(); });
}

CoresCounted CellWatch::count_here() const {
  return is_lookout() ? count_cores(machine_, place_.cores) : CoresCounted();
}

}  // namespace tutti::harness::measure
