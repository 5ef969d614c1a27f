// SPDX-License-Identifier: Apache-2.0
// `tutti probe`: a child that loads one reference. By itself it prints what the library says of itself, without
// starting it; as one of two ranks it joins the library's world. With --trial it starts these two ranks.
#include "src/probe.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/backends/loader.h"
#include "harness/launch/launch.h"
#include "harness/launch/rank_link.h"
#include "harness/process/command_run.h"
#include "harness/process/interrupts.h"
#include "harness/process/spawn.h"
#include "harness/process/start_command.h"
#include "harness/session/meeting.h"
#include "harness/text/streams.h"
#include "src/failed_start.h"
#include "src/program.h"

namespace tutti::program {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 15s;  // a child answers within 0.1 s, two ranks within 1 s, on a busy machine later
constexpr auto kTrialPatience = 3 * kPatience;  // of a child that loads a library, and starts ranks twice at most
constexpr const char* kTrial = "--trial";
constexpr const char* kSelf = "/proc/self/exe";

/// What a child printed that had only to say something. Errors: unavailable with its last words.
Result<std::string> said_by(const std::vector<std::string>& command, const std::string& who,
                            const harness::Interrupts& interrupts, std::chrono::milliseconds patience = kPatience) {
  constexpr int kSignalBase = 128;
  const auto run = harness::run_command(command, patience, interrupts);
  if (!run.is_ok()) return error(Code::unavailable, "{}: {}", who, run.status().message());
  const int code = run.value().exit_code;
  if (code == 0) return run.value().output;
  if (code > kSignalBase && code < kSignalBase + NSIG) {
    return error(Code::unavailable, "{} crashes as soon as it is loaded: signal {} ({})", who, code - kSignalBase,
                 ::strsignal(code - kSignalBase));
  }
  std::string words = run.value().last_words();
  const std::string prefix = "tutti: ";
  if (words.starts_with(prefix)) words.erase(0, prefix.size());
  return Status(Code::unavailable, words);
}

/// Two ranks, which may say nothing but a hello and a bye.
Status start_two(const std::string& name, const Starter& starter) {
  struct Nobody final : harness::Listener {
    void on_message(int, std::string_view, std::string_view) override {}
    [[nodiscard]] std::string case_name(std::uint32_t) const override { return "the start of the library"; }
  } nobody;
  const harness::Job job{.ranks = 2,
                         .start = starter.command,
                         .arguments = {"probe", name},
                         .timeout = kPatience,
                         .connect_timeout = kPatience};
  const auto outcome = harness::launch_job(job, nobody);
  if (outcome.is_ok() && outcome.value().ok) return {};
  std::string text = outcome.is_ok() ? why_not_started(outcome.value()) : outcome.status().message();
  const std::string prefix = fmt::format("backend {}: ", name);  // and before it which of the ranks said it first
  if (const std::size_t at = text.find(prefix); at != std::string::npos) text.erase(0, at + prefix.size());
  return error(Code::unavailable, "two ranks of backend {} cannot be started by {}: {}", name,
               starter.command ? starter.command->words.front() : "tutti", text.substr(0, text.find('\n')));
}

/// What is known of a reference.
struct Answer {
  Result<Starter> starter = Starter();
  bool is_for_other_machines = false;
  std::string library = {};
  SettingForm settings = {};
};

/// What a child printed of its library.
Result<Starter> starter_in(const std::string& name, const nlohmann::json& all) {
  if (all.contains("missing")) return error(Code::unavailable, "backend {}: {}", name, all.value("missing", ""));
  Starter starter;
  if (!all.contains("start")) return starter;
  const auto command = harness::parse_start_command(all["start"].dump());
  if (!command.is_ok()) return error(Code::unavailable, "backend {}: {}", name, command.status().message());
  if (name == harness::kOwnSpawn)
    return error(Code::unavailable, "backend {}: the name is that of tutti's own spawn", name);
  starter.name = name;
  starter.command = command.value();
  return starter;
}

Result<Starter> tried_starter(const std::string& name, const nlohmann::json& said, const std::string& self) {
  TUTTI_ASSIGN_OR_RETURN(Starter starter, starter_in(name, said));
  TUTTI_ASSIGN_OR_RETURN(const std::string path, harness::find_backend(name, backend_directories()));
  std::error_code ignored;  // another one is tried, whatever it says of itself
  const bool is_of_this_build =
      is_built_in(name) && std::filesystem::equivalent(std::filesystem::path(path).parent_path(),
                                                       std::filesystem::path(self).parent_path(), ignored);
  const std::string program = starter.command ? starter.command->words.front() : "";
  if (program.starts_with('/') && ::access(program.c_str(), X_OK) != 0) {
    return error(Code::unavailable, "backend {} is started by {}, which is not there", name, program);
  }
  if (!is_of_this_build) TUTTI_RETURN_IF_ERROR(start_two(name, starter));
  return starter;
}

/// Empty where there is none, or something else.
std::string text_in(const nlohmann::json& all, const char* key) {
  const auto found = all.find(key);
  return found != all.end() && found->is_string() ? found->get<std::string>() : "";
}

Answer ask(const std::string& name, const harness::Interrupts& interrupts) {
  const std::string self = harness::resolve_program(kSelf);
  const auto said = said_by({self, "probe", name}, fmt::format("backend {}", name), interrupts);
  if (!said.is_ok()) return {.starter = said.status()};
  const nlohmann::json all = nlohmann::json::parse(said.value(), nullptr, false);
  if (!all.is_object()) {
    return {.starter = error(Code::unavailable, "backend {} cannot say what it is: '{}'", name, said.value())};
  }
  return {.starter = tried_starter(name, all, self),
          .is_for_other_machines = all.contains("without"),
          .library = fmt::format("{} {}", all.value("library", name), all.value("version", "")),
          .settings = {.prefix = text_in(all, "settings"),
                       .flag = text_in(all, "settings_flag"),
                       .lookup = text_in(all, "settings_names")}};
}

void end_if_interrupted(const harness::Interrupts& interrupts) {
  if (interrupts.signal() == 0) return;
  complain(error(Code::aborted, "{}", harness::interruption_text(interrupts.signal())));
  std::exit(exit_interrupted);
}

const Answer& answer_of(const std::string& name) {
  static std::map<std::string, Answer> answers;
  if (const auto known = answers.find(name); known != answers.end()) return known->second;
  const harness::Interrupts interrupts;
  Answer answer = ask(name, interrupts);
  end_if_interrupted(interrupts);
  return answers.emplace(name, std::move(answer)).first->second;
}

Status join(harness::RankLink& link, const harness::LoadedBackend& library) {
  link.announce(harness::Activity::operation, 0);
  harness::Runner runner(link.board(), {.runner = link.rank(),
                                        .runners = link.ranks(),
                                        .job_ranks = link.ranks(),
                                        .ranks = {link.rank()},
                                        .at = link.place(),
                                        .yields = true,
                                        .timeout = kPatience});
  const std::string one_host;
  harness::Meeting meeting(runner, one_host);
  TUTTI_RETURN_IF_ERROR(library.open({.ranks = link.ranks(), .rank = link.rank(), .handle = nullptr}, meeting.join()));
  TUTTI_RETURN_IF_ERROR(library.close());
  link.settle();
  return {};
}

Result<nlohmann::json> said_of(const harness::LoadedBackend& library) {
  nlohmann::json said = nlohmann::json::object();
  TUTTI_ASSIGN_OR_RETURN(const std::string text, library.describe());
  const nlohmann::json description = nlohmann::json::parse(text, nullptr, false);
  for (const char* const key :
       {"missing", "without", "library", "version", "settings", "settings_flag", "settings_names"}) {
    if (description.is_object() && description.contains(key)) said[key] = description[key];
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string command, library.start_command());
  if (!command.empty()) said["start"] = nlohmann::json::parse(command, nullptr, false);
  return said;
}

/// What a child does of which try_ranks asks.
int try_two(const std::string& name) {
  const auto starter = try_to_start(name);
  if (!starter.is_ok()) return complain(starter.status());
  const Status started = start_two(name, starter.value());
  return started.is_ok() ? exit_ok : complain(started);
}

int probe(const std::string& name, bool is_trial) {
  if (is_trial) return try_two(name);
  const auto directories = backend_directories();
  const bool is_rank = std::getenv("TUTTI_CONTROL") != nullptr;
  if (!is_rank) {
    const auto library = harness::LoadedBackend::load(name, directories);
    if (!library.is_ok()) return complain(library.status());
    const auto said = said_of(library.value());
    if (!said.is_ok()) return complain(said.status());
    harness::print("{}\n", said.value().dump());
    return exit_ok;
  }
  auto link = harness::RankLink::connect();
  if (!link.is_ok()) return complain(link.status());
  const auto library = harness::LoadedBackend::load(name, directories);
  const Status status = library.is_ok() ? join(link.value(), library.value()) : library.status();
  const Status last_word = status.is_ok() ? link.value().finish() : link.value().fail(status);
  if (!status.is_ok()) return complain(status);
  return last_word.is_ok() ? exit_ok : complain(last_word);
}

}  // namespace

Result<Starter> try_to_start(const std::string& name) { return answer_of(name).starter; }

bool is_for_other_machines(const std::string& name) { return answer_of(name).is_for_other_machines; }

SettingForm setting_form_of(const std::string& name) { return answer_of(name).settings; }

std::string library_of(const std::string& name) { return answer_of(name).library; }

std::map<std::string, Status> try_ranks(std::span<const std::string> names) {
  const harness::Interrupts interrupts;
  const std::string self = harness::resolve_program(kSelf);
  std::vector<Status> found(names.size());
  std::vector<std::thread> trials;
  for (std::size_t i = 0; i < names.size(); ++i) {
    trials.emplace_back([&, i] {
      const std::string who = fmt::format("the start of two ranks of backend {}", names[i]);
      found[i] = said_by({self, "probe", names[i], kTrial}, who, interrupts, kTrialPatience).status();
    });
  }
  for (std::thread& trial : trials) trial.join();
  end_if_interrupted(interrupts);
  std::map<std::string, Status> by_name;
  for (std::size_t i = 0; i < names.size(); ++i) by_name[names[i]] = found[i];
  return by_name;
}

void add_probe(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("probe", "loads one reference; started by tutti itself");
  command->group("");
  auto name = std::make_shared<std::string>();
  command->add_option("NAME", *name)->required();
  auto is_trial = std::make_shared<bool>(false);
  command->add_flag(kTrial, *is_trial, "starts two ranks of it");
  command->callback([&action, name, is_trial] { action = [name, is_trial] { return probe(*name, *is_trial); }; });
}

}  // namespace tutti::program
