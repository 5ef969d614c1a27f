// SPDX-License-Identifier: Apache-2.0
#include "src/program.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/machine/allowed_cores.h"
#include "harness/process/waits.h"
#include "harness/text/redaction.h"
#include "harness/text/streams.h"
#include "impl/bootstrap/control.h"
#include "impl/bootstrap/rendezvous.h"

namespace tutti::program {
namespace {

constexpr std::chrono::milliseconds kToTell(500);  // by so much are processes that were started together apart
constexpr int kMostProcesses = 1024;               // of a host, which ask whether something is told

std::string& stored_command_line() {
  static std::string line;
  return line;
}

}  // namespace

int exit_code_of(const Status& status) {
  switch (status.code()) {
    case Code::ok:
      return exit_ok;
    case Code::invalid_argument:
      return exit_usage;
    case Code::unavailable:
    case Code::resource:
    case Code::io:
      return exit_environment;
    case Code::timeout:
    case Code::aborted:
      return exit_crash;
    case Code::mismatch:
    case Code::refuted:
      return exit_wrong;
  }
  return exit_crash;
}

int complain(const Status& status) {
  harness::to_stderr(fmt::format("tutti: {}\n", status.message()));
  return exit_code_of(status);
}

int complain_once(const Status& status) {
  const auto world = world_from_environment();
  if (!world.is_ok() || world.value().process == 0) return complain(status);
  let_the_first_speak(world.value());
  return exit_code_of(status);
}

int complain_here(const Status& status) {
  const auto world = world_from_environment();
  if (!world.is_ok() || world.value().processes == 1) return complain(status);
  const std::string meeting = world.value().meeting + std::string(status.message());
  const std::string name = fmt::format("tutti-told-{}-{:016x}", ::getuid(), std::hash<std::string>()(meeting));
  const auto is_told = [&] { return connect_to(name, kToTell).is_ok(); };
  const bool is_first = world.value().local_process == 0;
  if (!is_first && harness::nap_until(kToTell, is_told)) return exit_code_of(status);
  // Who listens has told it. A starter may end all processes as soon as one has ended.
  Result<Descriptor> told = Descriptor();
  if (!is_first) told = listen_at(name, kMostProcesses);
  if (told.status().code() != Code::unavailable) complain(status);  // another user with that name has told nothing
  if (is_first) told = listen_at(name, kMostProcesses);
  if (told.is_ok()) std::this_thread::sleep_for(kToTell);
  return exit_code_of(status);
}

int default_ranks() {
  constexpr int kMost = 8;
  return std::clamp(static_cast<int>(harness::allowed_cores().size()), 1, kMost);
}

const std::string& command_line() { return stored_command_line(); }

std::string shell_word(std::string_view word) {
  const bool is_plain = word.find_first_of(" \t\n\"'\\$`&|;<>()*?[]{}~#!") == std::string_view::npos && !word.empty();
  if (is_plain) return std::string(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

void set_command_line(int argc, char** argv) {
  constexpr std::string_view kAgent = "--agent", kAgentIs = "--agent=";
  std::string& line = stored_command_line();
  for (int i = 0; i < argc; ++i) {
    const std::string_view word(argv[i]);
    if (i > 0) line += ' ';
    if (i > 0 && argv[i - 1] == kAgent) {
      line += shell_word(harness::without_arguments(word));
    } else if (word.starts_with(kAgentIs)) {
      line += std::string(kAgentIs) + shell_word(harness::without_arguments(word.substr(kAgentIs.size())));
    } else {
      line += shell_word(harness::without_logins(word));
    }
  }
}

}  // namespace tutti::program
