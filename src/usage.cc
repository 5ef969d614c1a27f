// SPDX-License-Identifier: Apache-2.0
#include "src/usage.h"

#include <algorithm>
#include <vector>

#include "impl/reduce/kernels.h"
#include "impl/types/names.h"
#include "tutti_version.h"

namespace tutti::program {
namespace {

/// The subcommand on the command line, or the program where there is none.
const CLI::App& chosen(const CLI::App& program) {
  const auto subcommands = program.get_subcommands();
  return subcommands.empty() ? program : *subcommands.front();
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> subcommands_of(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* subcommand :
       program.get_subcommands([](const CLI::App* app) { return !app->get_group().empty(); })) {
    names.push_back(subcommand->get_name());
  }
  return names;
}

}  // namespace

Status usage_error(const CLI::App& program, const CLI::ParseError& failure, int argc, char** argv) {
  const CLI::App& command = chosen(program);
  const bool has_command = &command != &program;
  if (!has_command) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const auto word = std::find_if(words.begin(), words.end(), [](const std::string& text) { return text[0] != '-'; });
    if (word != words.end()) return unknown_name("subcommand", *word, subcommands_of(program));
  }
  for (int i = 1; i < argc; ++i) {
    const std::string word(argv[i]);
    const std::string name = word.substr(0, word.find('='));
    const std::vector<std::string> flags = flags_of(command);
    if (word.starts_with("--") && std::find(flags.begin(), flags.end(), name) == flags.end()) {
      return error(Code::invalid_argument, "unknown option '{}': did you mean '{}'?\n`{} --help` lists all", name,
                   nearest_name(name, flags), has_command ? "tutti " + command.get_name() : "tutti");
    }
  }
  return error(Code::invalid_argument, "{}\n`{} --help` says more", failure.what(),
               has_command ? "tutti " + command.get_name() : "tutti");
}

std::string version_text() {
  return fmt::format("tutti {} (commit {}), built with GCC {}.{}.{} {}; kernels {}; transports local shm",
                     TUTTI_VERSION, TUTTI_COMMIT, __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__, TUTTI_BUILD_TYPE,
                     kernel_isa());
}

}  // namespace tutti::program
