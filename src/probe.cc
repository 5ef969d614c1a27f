// SPDX-License-Identifier: Apache-2.0
// `tutti probe`: a child that loads one reference. By itself it prints what the library says of itself, without
// starting it; as one of two ranks under mpirun it joins the library's world.
#include "src/probe.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/backends/loader.h"
#include "harness/gate/program_run.h"
#include "harness/launch/interrupts.h"
#include "harness/launch/launch.h"
#include "harness/launch/rank_link.h"
#include "harness/launch/spawn.h"
#include "src/program.h"

namespace tutti::program {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 15s;  // a child answers within 0.1 s, two ranks within 1 s, on a busy machine later
constexpr const char* kSelf = "/proc/self/exe";

/// What a child printed that had only to say something. Errors: unavailable with its last words.
Result<std::string> said_by(const std::vector<std::string>& command, const std::string& who,
                            const harness::Interrupts& interrupts) {
  constexpr int kSignalBase = 128;
  const auto run = harness::run_command(command, kPatience, interrupts);
  if (!run.is_ok()) return error(Code::unavailable, "{}: {}", who, run.status().message());
  const int code = run.value().exit_code;
  if (code == 0) return run.value().output;
  if (code > kSignalBase) {
    return error(Code::unavailable, "{} crashes as soon as it is loaded: signal {} ({})", who, code - kSignalBase,
                 ::strsignal(code - kSignalBase));
  }
  std::string words = run.value().last_words();
  const std::string prefix = "tutti: ";
  if (words.starts_with(prefix)) words.erase(0, prefix.size());
  return Status(Code::unavailable, words);
}

/// "Open MPI 4.1.4", as the library says; empty where it says nothing that can be read.
std::string library_name(const std::string& description) {
  const nlohmann::json said = nlohmann::json::parse(description, nullptr, false);
  if (!said.is_object()) return {};
  const nlohmann::json name = said.value("library", nlohmann::json());
  const nlohmann::json version = said.value("version", nlohmann::json());
  if (!name.is_string() || !version.is_string()) return {};
  return fmt::format("{} {}", name.get<std::string>(), version.get<std::string>());
}

/// Two ranks, which may say nothing but a hello and a bye.
Status start_two(const std::string& name, const std::string& mpirun) {
  struct Nobody final : harness::Listener {
    void on_message(int, std::string_view, std::string_view) override {}
    [[nodiscard]] std::string case_name(std::uint32_t) const override { return "the start of the library"; }
  } nobody;
  harness::Job job{.ranks = 2,
                   .needs_mpirun = true,
                   .arguments = {"probe", name},
                   .timeout = kPatience,
                   .connect_timeout = kPatience};
  const auto outcome = harness::launch_job(job, nobody);
  const Status why = outcome.is_ok() ? outcome.value().failure : outcome.status();
  if (why.is_ok()) return {};
  std::string text = why.message();
  const std::string prefix = fmt::format("backend {}: ", name);  // and before it which of the ranks said it first
  if (const std::size_t at = text.find(prefix); at != std::string::npos) text.erase(0, at + prefix.size());
  return error(Code::unavailable, "backend {} cannot be started by the mpirun in PATH ({}): {}", name, mpirun,
               text.substr(0, text.find('\n')));
}

Status ask(const std::string& name, const harness::Interrupts& interrupts) {
  const std::string self = harness::resolve_program(kSelf);
  TUTTI_ASSIGN_OR_RETURN(const std::string description,
                         said_by({self, "probe", name}, fmt::format("backend {}", name), interrupts));
  TUTTI_ASSIGN_OR_RETURN(std::string mpirun, said_by({"mpirun", "--version"}, "mpirun --version", interrupts));
  mpirun = mpirun.substr(0, mpirun.find('\n'));
  const std::string library = library_name(description);
  const std::size_t space = library.rfind(' ');
  const bool is_its_own =  // "mpirun (Open MPI) 4.1.4"
      space != std::string::npos &&
      mpirun == fmt::format("mpirun ({}) {}", library.substr(0, space), library.substr(space + 1));
  TUTTI_ASSIGN_OR_RETURN(const std::string path, harness::find_backend(name, backend_directories()));
  std::error_code ignored;  // somebody else's is tried, whatever it says of itself
  const bool lies_beside = std::filesystem::equivalent(std::filesystem::path(path).parent_path(),
                                                       std::filesystem::path(self).parent_path(), ignored);
  return is_its_own && lies_beside ? Status() : start_two(name, mpirun);
}

Status join(harness::RankLink& link, const harness::LoadedBackend& library) {
  link.announce(harness::Activity::operation, 0);
  TUTTI_RETURN_IF_ERROR(library.open({.ranks = link.ranks(), .rank = link.rank(), .handle = nullptr}));
  TUTTI_RETURN_IF_ERROR(library.close());
  link.settle();
  return {};
}

int probe(const std::string& name) {
  const auto directories = backend_directories();
  const bool is_rank = std::getenv("TUTTI_CONTROL") != nullptr;
  if (!is_rank) {
    const auto library = harness::LoadedBackend::load(name, directories);
    if (!library.is_ok()) return complain(library.status());
    const auto description = library.value().describe();
    if (!description.is_ok()) return complain(description.status());
    fmt::print("{}\n", description.value());
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

Status try_to_start(const std::string& name) {
  static std::map<std::string, Status> answers;
  if (const auto known = answers.find(name); known != answers.end()) return known->second;
  const harness::Interrupts interrupts;
  const Status answer = ask(name, interrupts);
  if (interrupts.signal() != 0) {
    complain(error(Code::aborted, "{}", harness::interruption_text(interrupts.signal())));
    std::exit(exit_interrupted);
  }
  answers.emplace(name, answer);
  return answer;
}

void add_probe(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("probe", "loads one reference; started by tutti itself");
  command->group("");
  auto name = std::make_shared<std::string>();
  command->add_option("NAME", *name)->required();
  command->callback([&action, name] { action = [name] { return probe(*name); }; });
}

}  // namespace tutti::program
