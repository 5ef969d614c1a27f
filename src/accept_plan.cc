// SPDX-License-Identifier: Apache-2.0
#include "src/accept_plan.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/accept/baseline.h"
#include "harness/accept/suite_file.h"
#include "harness/cases/lists.h"
#include "harness/cases/sweep.h"
#include "harness/machine/allowed_cores.h"
#include "harness/text/counted.h"
#include "harness/text/number.h"
#include "harness/text/read_file.h"
#include "harness/text/text.h"
#include "impl/types/names.h"
#include "impl/types/number.h"
#include "impl/types/printable.h"
#include "src/accept_inventory.h"

namespace tutti::program {
namespace {

namespace accept = harness::accept;

// Guesses in s, before anything has been played: a round on a quick network, and one on a slow one; the start of the
// hosts, their inventory and their end.
constexpr double kQuickRound = 0.2, kSlowRound = 1.5, kSlowStart = 5;
constexpr double kMostBusy = 16;

/// "5%" or "5" as 0.05.
Result<double> parse_share(std::string_view text, std::string_view flag) {
  constexpr double kLeast = 100 * accept::kLeastMargin, kMost = 100 * accept::kMostMargin;  // percent
  std::string_view digits = text;
  if (digits.ends_with('%')) digits.remove_suffix(1);
  const std::optional<double> percent = harness::text::number_in<double>(digits);
  if (percent && *percent >= kLeast && *percent <= kMost) return *percent / 100;
  const double nearest = percent ? std::clamp(*percent, kLeast, kMost) : 5;
  return error(Code::invalid_argument, "{}: '{}' is no share from {:g}% to {:g}%: did you mean '{:g}%'?", flag,
               shown(text), kLeast, kMost, nearest);
}

Result<std::vector<std::string>> stages_of(const std::string& text) {
  if (text.empty()) return accept::all_stages();
  std::vector<std::string> stages;
  for (const std::string_view name : harness::split(text, ',')) {
    const auto& all = accept::all_stages();
    if (std::ranges::find(all, name) == all.end()) return unknown_name("stage", name, all);
    stages.emplace_back(name);
  }
  return stages;
}

Result<accept::AcceptPlan> suite_of(const std::string& path) {
  if (path.empty()) return accept::AcceptPlan();
  TUTTI_ASSIGN_OR_RETURN(const std::string text, of_flag("--suite", harness::read_file(path, harness::kMostInSuite)));
  auto plan = accept::plan_from_toml(text);
  if (!plan.is_ok()) return error(plan.status().code(), "--suite: '{}': {}", shown(path), plan.status().message());
  if (const Status known = check_differences(plan.value()); !known.is_ok()) {
    return error(known.code(), "--suite: '{}': {}", shown(path), known.message());
  }
  return plan;
}

std::string time_text(double seconds) {
  return seconds < 90 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.1f} min", seconds / 60);
}

/// How many processes want a core of this machine, for each that there is; at least 1. It starts each group, and is
/// mostly one of the nodes, so rounds take longer if it is busy.
double busyness() {
  double load = 0;
  if (::getloadavg(&load, 1) != 1) return 1;
  return std::clamp(load / static_cast<double>(harness::allowed_cores().size()), 1.0, kMostBusy);
}

}  // namespace

Result<accept::AcceptPlan> plan_of(const AcceptRequest& request) {
  TUTTI_ASSIGN_OR_RETURN(accept::AcceptPlan plan, suite_of(request.suite));
  if (!request.stages.empty()) {
    TUTTI_ASSIGN_OR_RETURN(plan.stages, of_flag("--stages", stages_of(request.stages)));
  }
  if (!request.margin.empty()) {
    TUTTI_ASSIGN_OR_RETURN(plan.pairs.limits.margin, parse_share(request.margin, "--margin"));
  }
  if (!request.too_fast.empty()) {
    TUTTI_ASSIGN_OR_RETURN(plan.pairs.limits.too_fast, parse_share(request.too_fast, "--too-fast"));
  }
  if (!request.seed.empty()) {
    TUTTI_ASSIGN_OR_RETURN(plan.pairs.seed, of_flag("--seed", parse_number<std::uint64_t>(request.seed, "a seed", 0,
                                                                                          std::uint64_t{1} << 62)));
  }
  plan.pairs.is_full |= request.is_full;
  if (!request.message_size.empty()) {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<std::int64_t> sizes,
                           of_flag("--message-size", harness::parse_sizes(request.message_size)));
    if (sizes.size() != 1) {
      return error(Code::invalid_argument, "--message-size: '{}' has {} sizes: one is allowed, as '1M'",
                   shown(request.message_size), sizes.size());
    }
    if (const Status fits = accept::check_message_size(sizes.front()); !fits.is_ok()) {
      return error(Code::invalid_argument, "--message-size: {}", fits.message());
    }
    plan.pairs.bytes = static_cast<std::size_t>(sizes.front());
    plan.bytes.clear();  // an option goes before what the suite says
    plan.group_tests.clear();
  }
  if (!request.soak.empty()) {
    TUTTI_ASSIGN_OR_RETURN(const auto soak, of_flag("--soak", harness::parse_duration(request.soak)));
    plan.soak_seconds = std::chrono::duration<double>(soak).count();
  }
  if (!request.baseline.empty()) {
    TUTTI_ASSIGN_OR_RETURN(const std::string text,
                           of_flag("--baseline", harness::read_file(request.baseline, harness::kMostInResult)));
    TUTTI_ASSIGN_OR_RETURN(plan.pairs.baseline, of_flag("--baseline", accept::baseline_from_json(text)));
    const auto own = plan.bytes.find("pairs");
    const std::size_t bytes = own == plan.bytes.end() ? plan.pairs.bytes : own->second;
    const std::size_t of_baseline = plan.pairs.baseline->bytes;
    if (of_baseline != 0 && of_baseline != bytes) {
      const auto shown_bytes = [](std::size_t size) { return harness::format_bytes(static_cast<std::int64_t>(size)); };
      return error(Code::invalid_argument, "--baseline: its messages are of {}, these of {}: --message-size {}",
                   shown_bytes(of_baseline), shown_bytes(bytes), shown_bytes(of_baseline));
    }
  }
  return plan;
}

Status check_baseline(const accept::AcceptPlan& plan, const std::vector<std::string>& rails) {
  if (!plan.pairs.baseline || rails.empty()) {
    if (!plan.pairs.baseline || plan.pairs.baseline->rails.empty()) return {};
    return error(Code::invalid_argument, "--baseline: its speeds are of rails: name them with --rails");
  }
  for (const std::string& rail : rails) {
    if (plan.pairs.baseline->rails.contains(rail)) continue;
    return error(Code::invalid_argument, "--baseline: it has no speed of rail '{}'", rail);
  }
  return {};
}

std::string plan_text(const AcceptRequest& request, const accept::AcceptPlan& plan, const std::string& cluster) {
  std::string text = fmt::format(
      "{} over {}, --ranks-per-node {}, rails {}, stages {}, not blocking: {}, soak {:g} s, margin {:g}, "
      "too fast {:g}, confidence {:g}, seed {}, {} pairs, {} B, {}",
      request.backend, request.transport.empty() ? "usual" : request.transport, request.ranks_per_node,
      request.rails.empty() ? "usual" : request.rails, fmt::join(plan.stages, ","),
      plan.not_blocking.empty() ? "none" : fmt::format("{}", fmt::join(plan.not_blocking, ",")), plan.soak_seconds,
      plan.pairs.limits.margin, plan.pairs.limits.too_fast, plan.pairs.limits.confidence, plan.pairs.seed,
      plan.pairs.is_full ? "all" : "usual", plan.pairs.bytes, cluster);
  if (!request.baseline.empty()) text += ", baseline " + request.baseline;
  for (const auto& [stage, needs] : plan.needs) text += fmt::format(", {} needs {}", stage, fmt::join(needs, "+"));
  for (const auto& [stage, bytes] : plan.bytes) text += fmt::format(", {} of {} B", stage, bytes);
  for (const accept::Test& test : plan.group_tests) {
    text +=
        fmt::format(", {} {} B", test.measure == accept::Measure::all_reduce ? "all_reduce" : "all_to_all", test.bytes);
  }
  const accept::AcceptPlan usual;
  if (plan.alone_sizes != usual.alone_sizes) text += fmt::format(", alone {} B", fmt::join(plan.alone_sizes, "+"));
  if (plan.pairs.latency_bytes != usual.pairs.latency_bytes)
    text += fmt::format(", pingpong {} B", plan.pairs.latency_bytes);
  if (plan.window != usual.window) text += fmt::format(", windows of {}", plan.window);
  if (!plan.differences.empty()) text += fmt::format(", alike in {}", fmt::join(plan.differences, "+"));
  if (plan.deadline_times != usual.deadline_times) text += fmt::format(", deadline {:g}x", plan.deadline_times);
  if (!plan.job.words.empty()) {
    text += fmt::format(", job `{}` in {:g} s", fmt::join(plan.job.words, " "), plan.job.seconds);
  }
  return text;
}

namespace {

std::string job_text(const accept::AcceptPlan& plan) {
  if (plan.job.words.empty()) return "job";
  return fmt::format("job `{}` for up to {}",
                     harness::text::one_line(printable(fmt::format("{}", fmt::join(plan.job.words, " ")))),
                     time_text(plan.job.seconds));
}

}  // namespace

std::string forecast_text(int nodes, const accept::AcceptPlan& plan, bool is_pretended) {
  const accept::Rounds rounds = rounds_of(plan, nodes);
  std::vector<std::string> words;
  if (rounds.alone > 0) words.push_back(fmt::format("alone {} rounds", rounds.alone));
  if (rounds.pairs > 0) {
    const std::string repeats =
        rounds.repeats > 0 ? fmt::format(" and up to {} of repeats, more in noise", rounds.repeats) : "";
    words.push_back(fmt::format("pairs {} rounds{}", rounds.pairs, repeats));
  }
  const auto add = [&words](const char* stage, int count) {
    if (count > 0) words.push_back(fmt::format("{} {}", stage, count));
  };
  add("shifts", rounds.shifts);
  add("rings", rounds.rings);
  add("groups", rounds.groups);
  const auto has = [&](const char* stage) {
    return nodes >= 2 && std::ranges::find(plan.stages, stage) != plan.stages.end() && !plan.left_out.contains(stage);
  };
  const bool has_soak = has("soak"), has_job = has("job");
  if (has_soak) words.push_back(fmt::format("soak {}", time_text(plan.soak_seconds)));
  if (has_job) words.push_back(job_text(plan));
  if (words.empty()) words.emplace_back("nothing to play");
  const double soak = has_soak ? plan.soak_seconds : 0;
  // A round of more tests than usual takes longer by as much.
  const accept::AcceptPlan usual;
  const auto times = [](std::size_t tests, std::size_t of_usual) {
    return std::max(1.0, static_cast<double>(tests) / static_cast<double>(of_usual));
  };
  const double played =
      rounds.alone * times(plan.alone_sizes.size(), usual.alone_sizes.size()) + rounds.pairs + rounds.shifts +
      rounds.rings + rounds.groups * times(plan.group_tests.size(), accept::usual_group_tests(plan.pairs.bytes).size());
  const double busy = is_pretended ? 1 : busyness();
  const bool has_command = has_job && !plan.job.words.empty();
  const double job = has_command ? plan.job.seconds : 0;
  const double most = busy * (kSlowStart + kSlowRound * (played + rounds.repeats)) + soak + job;
  const std::string why = busy > 1 ? fmt::format(" (this machine is busy: {:.1f} processes a core)", busy) : "";
  return fmt::format("# {}: {}, at {:.1f} to {:.1f} s a round{}: {} to {}. ^C or SIGTERM: report of what is done.\n",
                     harness::counted(nodes, "node"), fmt::join(words, ", "), kQuickRound, busy * kSlowRound, why,
                     time_text(kQuickRound * played + soak), time_text(most));
}

}  // namespace tutti::program
