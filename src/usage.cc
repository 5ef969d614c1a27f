// SPDX-License-Identifier: Apache-2.0
#include "src/usage.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include <fmt/ranges.h>

#include "impl/reduce/kernels.h"
#include "impl/transports/transport.h"
#include "impl/types/names.h"
#include "src/gone_options.h"
#include "tutti_version.h"

namespace tutti::program {
namespace {

/// The innermost subcommand on the command line, or the program where no subcommand is there.
const CLI::App& chosen(const CLI::App& program) {
  const auto subcommands = program.get_subcommands();
  return subcommands.empty() ? program : chosen(*subcommands.front());
}

/// `tutti check soak`
std::string full_name(const CLI::App& command) {
  return command.get_parent() == nullptr ? "tutti" : full_name(*command.get_parent()) + " " + command.get_name();
}

/// Those that --help shows.
std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
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

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What the same is called where people come from: mpirun, srun and nccl-tests.
struct Foreign {
  std::string_view flag;
  std::string_view own;
};
constexpr std::array kForeign{
    Foreign{"-n", "--ranks"},           Foreign{"-np", "--ranks"},         Foreign{"--np", "--ranks"},
    Foreign{"--ntasks", "--ranks"},     Foreign{"-g", "--ranks"},          Foreign{"--ngpus", "--ranks"},
    Foreign{"-t", "--ranks"},           Foreign{"-b", "--sizes"},          Foreign{"--minbytes", "--sizes"},
    Foreign{"-e", "--sizes"},           Foreign{"--maxbytes", "--sizes"},  Foreign{"-f", "--sizes"},
    Foreign{"-d", "--dtypes"},          Foreign{"--datatype", "--dtypes"}, Foreign{"-o", "--ops"},
    Foreign{"-r", "--roots"},           Foreign{"-c", "--check"},          Foreign{"-T", "--timeout"},
    Foreign{"--iters", "--iterations"},
};

/// `: did you mean '--ranks'?` or nothing.
std::string meant_by(const std::string& flag, const std::vector<std::string>& flags) {
  const auto* const row = std::ranges::find(kForeign, flag, &Foreign::flag);
  const bool is_there = row != kForeign.end() && contains(flags, std::string(row->own));
  return is_there ? fmt::format(": did you mean '{}'?", row->own) : suggestion(flag, flags);
}

/// One that other subcommands take is no slip of the finger, but where it is the singular or the plural of an own one.
Status unknown_flag(const CLI::App& program, const CLI::App& command, const std::string& flag) {
  if (const std::string_view now = in_place_of(flag); !now.empty()) {
    return error(Code::invalid_argument, "{} is no option any more: {}", flag, now);
  }
  std::vector<std::string> takers;
  for (const std::string& name : subcommands_of(program)) {
    if (contains(flags_of(*program.get_subcommand(name)), flag)) takers.push_back(name);
  }
  const std::vector<std::string> flags = flags_of(command);
  const std::string name = full_name(command);
  const bool is_slip =
      contains(flags, flag + "s") || (flag.ends_with('s') && contains(flags, flag.substr(0, flag.size() - 1)));
  if (!takers.empty() && !is_slip) {
    return error(Code::invalid_argument, "`{0}` has no option '{1}', only `tutti {2}` {3}\n`{0} --help` lists its own",
                 name, flag, fmt::join(takers, "` and `tutti "), takers.size() == 1 ? "has" : "have");
  }
  return error(Code::invalid_argument, "unknown option '{}'{}\n`{} --help` lists all", shown(flag),
               meant_by(flag, flags), name);
}

}  // namespace

Status usage_error(const CLI::App& program, const CLI::ParseError& failure, int argc, char** argv) {
  const CLI::App& command = chosen(program);
  // A hidden subcommand is one where it comes first: `host` is a value of options too.
  const bool is_hidden = command.get_parent() == &program && command.get_group().empty();
  const bool has_command = &command != &program && (!is_hidden || std::string_view(argv[1]) == command.get_name());
  const std::string name = full_name(command);
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!has_command) {
    if (words.empty()) {
      return error(Code::invalid_argument, "a subcommand is needed, one of: {}\n`tutti --help` says what they do",
                   fmt::join(subcommands_of(program), " "));
    }
    const auto word = std::find_if(words.begin(), words.end(), [](const std::string& text) { return text[0] != '-'; });
    if (word != words.end()) return unknown_name("subcommand", *word, subcommands_of(program));
  }
  const std::vector<std::string> flags = flags_of(command);
  for (const std::string& word : words) {
    const std::string flag = word.substr(0, word.find('='));
    const bool is_flag = word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0;
    const bool is_known = contains(flags, flag) || command.get_option_no_throw(flag) != nullptr;  // or hidden
    if (is_flag && !is_known) return unknown_flag(program, command, flag);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&failure) != nullptr) {
    for (const std::string& flag : flags) {
      if (std::count(words.begin(), words.end(), flag) > 1) {
        const bool is_list = command.get_option(flag)->get_type_name().starts_with("LIST");
        return error(Code::invalid_argument, "{} is given twice: {}", flag,
                     is_list ? "one list has commas, such as " + flag + " A,B" : "leave one out");
      }
    }
    // "--csv: 1 required FILE missing"
    const std::string text = failure.what();
    const std::string flag = text.substr(0, text.find(':'));
    if (contains(flags, flag)) {
      return error(Code::invalid_argument, "{} needs a value: {} {}\n`{} --help` says more", flag, flag,
                   command.get_option(flag)->get_type_name(), name);
    }
  }
  return error(Code::invalid_argument, "{}\n`{} --help` says more", failure.what(), name);
}

Status unknown_subcommand(const CLI::App& program, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  const auto all = program.get_subcommands([](const CLI::App* /*command*/) { return true; });  // hidden ones, too
  if (std::ranges::any_of(all, [&](const CLI::App* one) { return one->get_name() == argv[1]; })) return {};
  return unknown_name("subcommand", argv[1], subcommands_of(program));
}

std::string build_text() {
  return fmt::format("tutti {} (commit {}), built with GCC {}.{}.{} {}", TUTTI_VERSION, TUTTI_COMMIT, __GNUC__,
                     __GNUC_MINOR__, __GNUC_PATCHLEVEL__, TUTTI_BUILD_TYPE);
}

std::string version_text() {
  std::string transports;
  for (const Transport* const transport : built_in_transports()) transports += fmt::format(" {}", transport->name);
  return fmt::format("{}; kernels {}; transports{}", build_text(), kernel_isa(), transports);
}

}  // namespace tutti::program
