// SPDX-License-Identifier: Apache-2.0
// `tutti prove`: proves the schedules of every algorithm asked for, for every number of ranks, and prints what was
// derived. On many ranks it proves the schedule in units, and that plans of some ranks refine it. With --import it
// proves an algorithm that a file holds.
#include "impl/prove/prove.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cases/expand.h"
#include "harness/cases/lists.h"
#include "harness/exchange/import.h"
#include "harness/machine/allowed_cores.h"
#include "harness/process/interrupts.h"
#include "harness/text/counted.h"
#include "harness/text/streams.h"
#include "impl/algorithms/algorithm.h"
#include "impl/prove/prove_steps.h"
#include "impl/prove/reasons.h"
#include "impl/types/names.h"
#include "impl/types/number.h"
#include "src/options.h"
#include "src/program.h"
#include "src/progress.h"

namespace tutti::program {
namespace {

constexpr std::size_t kMostFaultsShown = 20;
constexpr int kMostRanksProved = 65536;
constexpr int kMostRanksOfPlans = 128;  // all plans of more take minutes
constexpr int kPerHost = 8;             // of more ranks than that, where the steps depend on hosts
constexpr int kPerCache = 4;            // of no more than that, where they depend on caches; else what they take

/// One schedule to prove.
struct Task {
  const Algorithm* algorithm;
  int ranks;
  int root;
  Pairing pairing;
  int per_host = 0;
  int per_cache = 0;

  [[nodiscard]] bool is_in_units() const { return ranks > kMostRanksOfPlans; }
};

/// What the proofs of one algorithm came to.
struct Summary {
  int schedules = 0;
  int proofs = 0;  ///< sets of plans, and forms in units
  int refuted = 0;
  int most_slots = 0;
  Labels labels;            ///< hold where they hold for every schedule
  bool knows_order = true;  ///< for every schedule; of those in units it is not always derived
  bool knows_bits = true;
};

/// 0, 1, P-1 and one that the seed draws: an error in relative ranks shows at a root that is not 0, one at the end of
/// the ranks at the last.
std::set<int> roots_of(const Algorithm& algorithm, int ranks, std::uint64_t seed) {
  if (!is_rooted(algorithm.collective)) return {0};
  std::seed_seq sequence{seed, seed >> 32U, static_cast<std::uint64_t>(algorithm.collective),
                         static_cast<std::uint64_t>(ranks)};
  std::mt19937 random(sequence);
  const int drawn = static_cast<int>(random() % static_cast<unsigned>(ranks));
  return {0, std::min(1, ranks - 1), ranks - 1, drawn};
}

/// Windows shorter and longer than what is sent ahead; all neighbours, and the first and the last rank alone.
std::vector<Pairing> pairings_of(Collective collective, int ranks) {
  std::vector<Pairing> pairings;
  for (const int window : has_window(collective) ? std::vector{1, 3, 9} : std::vector{1}) {
    pairings.push_back({.window = window});
    if (has_pairs(collective) && ranks > 2) pairings.push_back({.window = window, .first = 0, .second = ranks - 1});
  }
  return pairings;
}

Result<std::vector<Task>> tasks_for(const harness::Sweep& sweep) {
  std::set<std::string> wanted(sweep.algorithms.begin(), sweep.algorithms.end());
  const bool is_all = wanted.erase("all") > 0;
  std::vector<std::string> names;
  std::set<std::string> used;
  std::vector<Task> tasks;
  for (const Collective collective : sweep.collectives) {
    for (const Algorithm* algorithm : algorithms_of(collective)) {
      harness::append_new(names, std::string(algorithm->name));
      const bool is_wanted = wanted.contains(std::string(algorithm->name));
      if (is_wanted) used.emplace(algorithm->name);
      if (!is_all && !is_wanted) continue;
      for (const int ranks : sweep.ranks) {
        const bool has_hosts = algorithm->is_by_hosts && ranks > kMostRanksOfPlans && ranks % kPerHost == 0;
        const bool has_caches = algorithm->is_by_caches && ranks > kPerCache && ranks <= kMostRanksOfPlans;
        for (const int root : roots_of(*algorithm, ranks, sweep.seed)) {
          for (const Pairing& pairing : pairings_of(algorithm->collective, ranks)) {
            Task task{.algorithm = algorithm, .ranks = ranks, .root = root, .pairing = pairing};
            tasks.push_back(task);
            task.per_host = kPerHost;
            if (has_hosts) tasks.push_back(task);
            task.per_host = 0;
            task.per_cache = kPerCache;
            if (has_caches) tasks.push_back(task);
          }
        }
      }
    }
  }
  for (const std::string& name : wanted) {
    if (!used.contains(name)) return unknown_name("algorithm of the collectives that are proved", name, names);
  }
  // The largest first, so that the last thread to finish is not left with the most.
  std::stable_sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) { return a.ranks > b.ranks; });
  return tasks;
}

/// What all proofs came to.
struct Proved {
  std::size_t schedules = 0;  ///< proved or refuted
  std::map<const Algorithm*, Summary> summaries;
  std::map<std::string, int> ways;    ///< in which schedules were proved in units
  RefinedPlans refined;               ///< of those schedules
  std::size_t refuted = 0;            ///< schedules
  std::vector<Refutation> reasons;    ///< all of theirs
  std::vector<std::string> left_out;  ///< for which this machine has no room
};

class Prover {
 public:
  explicit Prover(const std::vector<Task>& tasks) : tasks_(tasks) {}

  /// After an interrupt what was proved by then: where that is not all, threads are left that go on.
  Proved run(const harness::Interrupts& interrupts) {
    std::vector<std::thread> threads;
    const std::size_t count = harness::allowed_cores().size();
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back([this] { work(); });
    Progress progress(0);
    std::unique_lock lock(mutex_);
    while (proved_.schedules < tasks_.size() && interrupts.signal() == 0) {
      if (has_news_.wait_for(lock, kBetweenLooks) == std::cv_status::no_timeout) continue;
      const Task& task = tasks_[std::clamp<std::size_t>(next_, 1, tasks_.size()) - 1];
      progress.show(fmt::format("[{}/{}] {} {} P={}", proved_.schedules + 1, tasks_.size(),
                                to_string(task.algorithm->collective), task.algorithm->name, task.ranks),
                    cost_done_ / cost_);
    }
    Proved proved = proved_;
    lock.unlock();
    progress.clear();
    const bool is_over = proved.schedules == tasks_.size();
    for (std::thread& thread : threads) is_over ? thread.join() : thread.detach();
    return proved;
  }

 private:
  static constexpr std::chrono::milliseconds kBetweenLooks{50};

  void work() {
    for (std::size_t i = next_++; i < tasks_.size(); i = next_++) {
      const Task& task = tasks_[i];
      const Schedule schedule = schedule_of(*task.algorithm, problem_of(task));
      if (!task.is_in_units()) {
        record(task, prove_schedule(schedule));
      } else if (const auto proof = prove_steps(schedule); proof.status().code() == Code::refuted) {
        record(task, with_smaller_fault(task, proof));
      } else {
        record(task, proof);
      }
    }
  }

  static Problem problem_of(const Task& task) {
    return {.collective = task.algorithm->collective,
            .ranks = task.ranks,
            .root = task.root,
            .pairing = task.pairing,
            .ranks_per_host = task.per_host,
            .ranks_per_cache = task.per_cache};
  }

  /// Also on how few ranks the same is wrong, where a person can follow it.
  static Result<StepsProof> with_smaller_fault(const Task& task, const Result<StepsProof>& proof) {
    const auto make = [&task](int ranks) -> std::optional<Schedule> {
      Problem problem = problem_of(task);
      if (problem.ranks_per_host > 0 && ranks % problem.ranks_per_host != 0) return {};
      problem.root = task.root == task.ranks - 1 ? ranks - 1 : std::min(task.root, ranks - 1);
      if (problem.pairing.is_one_pair()) problem.pairing.second = ranks - 1;
      if (problem.pairing.is_one_pair() && ranks < 3) return {};
      problem.ranks = ranks;
      return schedule_of(*task.algorithm, problem);
    };
    std::vector<std::string> reasons = reasons_in(proof.status().message());
    for (std::string& reason : reasons) {
      const auto smaller = find_smaller_fault(reason, task.ranks, make);
      if (!smaller) continue;
      reason += "\n  the smallest with the same fault: ";
      for (const char c : smaller->message) reason += c == '\n' ? "\n  " : std::string(1, c);
    }
    return error(Code::refuted, "{}", fmt::join(reasons, "\n"));
  }

  template <class Proof>
  void record(const Task& task, const Result<Proof>& proof) {
    const std::lock_guard lock(mutex_);
    Summary& summary = proved_.summaries[task.algorithm];
    ++summary.schedules;
    cost_done_ += cost_of(task);
    if (++proved_.schedules == tasks_.size()) has_news_.notify_one();
    if (proof.is_ok()) {
      add(summary, proof.value());
      return;
    }
    const std::string subject = fmt::format("{} {}", to_string(task.algorithm->collective), task.algorithm->name);
    const std::string& said = proof.status().message();
    if (proof.status().code() == Code::unavailable) {
      proved_.left_out.push_back(fmt::format("{} P={} root {}: {}", subject, task.ranks, task.root, said));
      return;
    }
    ++summary.refuted;
    ++proved_.refuted;
    for (std::string& reason : reasons_in(said)) {
      proved_.reasons.push_back({.subject = subject, .ranks = task.ranks, .reason = std::move(reason)});
    }
  }

  void add(Summary& summary, const StepsProof& proof) {
    summary.proofs += proof.forms;
    summary.most_slots = std::max(summary.most_slots, proof.least_slots);
    summary.labels.synchronises &= proof.synchronises;
    summary.labels.keeps_order &= proof.keeps_order.value_or(true);
    summary.labels.same_bits &= proof.same_bits.value_or(true);
    summary.labels.sends_are_stable &= proof.sends_are_stable;
    proved_.refined.plans += proof.refined.plans;
    proved_.refined.ranks += proof.refined.ranks;
    summary.knows_order &= proof.keeps_order.has_value();
    summary.knows_bits &= proof.same_bits.has_value();
    ++proved_.ways[proof.is_matched      ? "every block matched on its way from an input to an output"
                   : proof.group.empty() ? "every rank was executed"
                                         : fmt::format("one rank stands for all, by {}", proof.group)];
  }

  void add(Summary& summary, const ScheduleProof& proof) {
    summary.proofs += proof.proofs;
    summary.most_slots = std::max(summary.most_slots, proof.labels.least_slots);
    summary.labels.keeps_order &= proof.labels.keeps_order;
    summary.labels.same_bits &= proof.labels.same_bits;
    summary.labels.synchronises &= proof.labels.synchronises;
    summary.labels.sends_are_stable &= proof.labels.sends_are_stable;
  }

  /// For the estimate of what is left: schedules have about P x P actions, and the forms of plans do each many times.
  static double cost_of(const Task& task) {
    constexpr double kOfPlans = 20;
    return (task.is_in_units() ? 1 : kOfPlans) * task.ranks * task.ranks;
  }

  const std::vector<Task>& tasks_;
  const double cost_ = std::accumulate(tasks_.begin(), tasks_.end(), 0.0,
                                       [](double sum, const Task& task) { return sum + cost_of(task); });
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable has_news_;
  double cost_done_ = 0;
  Proved proved_;
};

void print_summaries(const std::vector<Task>& tasks, const Proved& proved) {
  harness::print("# {:<14} {:<18} {:>9} {:>7} {:>8} {:>6}  {:<6} {:<10} {:<12} {}\n", "collective", "algorithm",
                 "schedules", "proofs", "refuted", "slots", "order", "same bits", "synchronises", "stable sends");
  std::vector<const Algorithm*> order;
  for (const Task& task : tasks) {
    if (std::find(order.begin(), order.end(), task.algorithm) == order.end()) order.push_back(task.algorithm);
  }
  const auto yes = [](bool is_so, bool is_known) { return !is_so ? "no" : is_known ? "yes" : "-"; };
  for (const Algorithm* algorithm : order) {
    const auto found = proved.summaries.find(algorithm);
    if (found == proved.summaries.end()) continue;  // interrupted before
    const Summary& s = found->second;
    const bool is_proved = s.proofs > 0;
    harness::print(
        "  {:<14} {:<18} {:>9} {:>7} {:>8} {:>6}  {:<6} {:<10} {:<12} {}\n", to_string(algorithm->collective),
        algorithm->name, s.schedules, s.proofs, s.refuted, s.most_slots == 0 ? "-" : std::to_string(s.most_slots),
        yes(s.labels.keeps_order, s.knows_order && is_proved), yes(s.labels.same_bits, s.knows_bits && is_proved),
        yes(s.labels.synchronises, is_proved), yes(s.labels.sends_are_stable, is_proved));
  }
}

/// What a proof on many ranks is, and is not.
void print_ways(const Proved& proved) {
  if (proved.ways.empty()) return;
  const auto some = [](int number, const char* noun) {
    return harness::counted(static_cast<std::size_t>(number), noun);
  };
  harness::print(
      "# on more than {} ranks: the steps in units, shared buffers, a message in one slice; {} of {} refine their "
      "steps\n",
      kMostRanksOfPlans, some(proved.refined.plans, "plan"), some(proved.refined.ranks, "rank"));
  for (const auto& [way, schedules] : proved.ways) {
    harness::print("#   {}: {}\n", harness::counted(static_cast<std::size_t>(schedules), "schedule"), way);
  }
}

/// Each fault of an algorithm once, on the fewest ranks that have it.
void print_refutations(std::vector<Refutation> reasons) {
  const std::vector<CommonFault> faults = common_faults(std::move(reasons));
  for (std::size_t i = 0; i < std::min(faults.size(), kMostFaultsShown); ++i) {
    const CommonFault& fault = faults[i];
    harness::print("refuted: {}\n", fault.smallest.reason);
    if (fault.others == 0) continue;
    harness::print("  and {} more, on up to {}\n", harness::counted(fault.others, "schedule"),
                   harness::counted(fault.most_ranks, "rank"));
  }
  if (faults.size() <= kMostFaultsShown) return;
  harness::print("# {} not shown: --algorithms NAME has those of one algorithm\n",
                 harness::counted(faults.size() - kMostFaultsShown, "more fault"));
}

/// Ends the program at once: a proof cannot be told to stop, and of many ranks one takes minutes.
[[noreturn]] void end_interrupted(int signal) {
  constexpr std::chrono::seconds kLast{2};
  const Status arrived = harness::flush_output(kLast);
  if (!arrived.is_ok()) complain(arrived);
  complain(error(Code::aborted, "{}", harness::interruption_text(signal)));
  std::_Exit(exit_interrupted);
}

int prove(const SweepOptions& options) {
  auto parsed = options.settings({.known_backends = {}, .most_ranks = kMostRanksProved});
  if (!parsed.is_ok()) return complain(parsed.status());
  const auto tasks = tasks_for(parsed.value().sweep);
  if (!tasks.is_ok()) return complain(tasks.status());
  const auto begin = std::chrono::steady_clock::now();
  const harness::Interrupts interrupts;
  Prover prover(tasks.value());
  const Proved proved = prover.run(interrupts);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;

  print_summaries(tasks.value(), proved);
  print_ways(proved);
  print_refutations(proved.reasons);
  for (const std::string& said : proved.left_out) harness::print("not proved: {}\n", said);
  int proofs = 0;
  for (const auto& [algorithm, summary] : proved.summaries) proofs += summary.proofs;
  const bool is_complete = proved.schedules == tasks.value().size();
  const std::string done = is_complete ? "" : fmt::format("{} of ", proved.schedules);
  const std::string left_out = proved.left_out.empty() ? "" : fmt::format(", {} not proved", proved.left_out.size());
  const std::string forms = proved.ways.empty() ? "of plans" : "of plans and forms in units";
  harness::print("# prove: {}{}, {} {} proved, {} refuted{}; {:.1f} s\n", done,
                 harness::counted(tasks.value().size(), "schedule"), harness::counted(proofs, "set"), forms,
                 proved.refuted, left_out, seconds.count());
  if (!is_complete) end_interrupted(interrupts.signal());
  if (tasks.value().empty()) return complain(error(Code::unavailable, "nothing was proved: there is no schedule"));
  if (proved.refuted > 0) return exit_wrong;
  return proved.left_out.empty() ? exit_ok : exit_environment;
}

/// An algorithm of a file.
struct ImportRequest {
  std::string file;
  std::string slots = std::to_string(harness::exchange::kUsualSlots);
};

/// What the file says it is, and that it is so.
void print_imported(const harness::exchange::Imported& imported, const ScheduleProof& proof) {
  const Problem& problem = imported.schedule.problem;
  const auto yes = [](bool is_so) { return is_so ? "yes" : "no"; };
  harness::print(
      "# {} '{}' on {} gpus{}, {} place: {} in {}, {} per block\n", to_string(problem.collective), imported.name,
      problem.ranks, is_rooted(problem.collective) ? fmt::format(", root {}", problem.root) : "",
      imported.is_in_place ? "in" : "out of", harness::counted(static_cast<std::size_t>(imported.steps), "step"),
      harness::counted(static_cast<std::size_t>(imported.blocks), "thread block"),
      harness::counted(static_cast<std::size_t>(imported.schedule.shape.units_per_block), "chunk"));
  harness::print("#   thread blocks: no deadlock with {}, conflicting accesses in order, every output right\n",
                 harness::counted(static_cast<std::size_t>(imported.least_slots), "slot"));
  harness::print("#   as one program for each rank: order {}, same bits {}, synchronises {}, stable sends {}\n",
                 yes(proof.labels.keeps_order), yes(proof.labels.same_bits), yes(proof.labels.synchronises),
                 yes(proof.labels.sends_are_stable));
}

int prove_import(const ImportRequest& request, const CLI::App& command) {
  for (const char* other : {"COLLECTIVE", "--ranks", "--algorithms", "--seed"}) {
    if (command.count(other) == 0) continue;
    return complain(error(Code::invalid_argument, "{0}: a file says it of --import itself; leave {0} out", other));
  }
  const auto slots =
      of_flag("--slots", parse_number(request.slots, "a number of slots", 1, harness::exchange::kMostSlots));
  if (!slots.is_ok()) return complain(slots.status());
  const auto begin = std::chrono::steady_clock::now();
  const auto imported = harness::exchange::import_file(request.file, slots.value());
  const auto refuse = [&](const Status& status) {
    if (status.code() != Code::refuted) return complain(error(status.code(), "--import: {}", status.message()));
    harness::print("refuted: {}\n# prove: 1 file, 0 sets of plans proved, 1 refuted\n", status.message());
    return int{exit_wrong};
  };
  if (!imported.is_ok()) return refuse(imported.status());
  const auto proof = harness::exchange::prove_imported(imported.value());
  if (!proof.is_ok()) {
    return refuse(error(proof.status().code(), "{}: {}", shown(request.file), proof.status().message()));
  }
  print_imported(imported.value(), proof.value());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  harness::print("# prove: 1 file, {} of plans proved, 0 refuted; {:.1f} s\n",
                 harness::counted(static_cast<std::size_t>(proof.value().proofs), "set"), seconds.count());
  return exit_ok;
}

}  // namespace

void add_prove(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("prove", "prove schedules: contributions, races, deadlock, slots, cost");
  command->footer("Example: tutti prove all --ranks 1:128");
  auto options = std::make_shared<SweepOptions>(
      *command,
      std::vector<OptionChoice>{{"--ranks", "1:64", "numbers of ranks, at most 65536; 1:128 is every number between"},
                                {"--algorithms", "all", "algorithms by name, or all"},
                                {"--seed", "1", "of one root beside 0, 1 and the last"}},
      all_but_v_forms());
  auto import = std::make_shared<ImportRequest>();
  command->add_option("--import", import->file, "prove the algorithm in this file of MSCCL XML instead")
      ->type_name("FILE");
  command->add_option("--slots", import->slots, "with --import: messages that may be on their way on a channel")
      ->type_name("N")
      ->default_str(import->slots);
  command->callback([&action, options, import, command] {
    action = [options, import, command] {
      if (command->count("--import") > 0) return prove_import(*import, *command);
      if (command->count("--slots") == 0) return prove(*options);
      return complain(error(Code::invalid_argument, "--slots: has no meaning without --import FILE; leave it out"));
    };
  });
}

}  // namespace tutti::program
