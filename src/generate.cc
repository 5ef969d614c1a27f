// SPDX-License-Identifier: Apache-2.0
// `tutti generate man|bash|zsh`: the man page and the completions of shells, from the command line that the program
// parses. Hidden: the build calls it and installs what it prints.
#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cases/sweep.h"
#include "harness/faults/fault.h"
#include "harness/text/streams.h"
#include "harness/train/gradients.h"
#include "impl/algorithms/algorithm.h"
#include "impl/transports/transport.h"
#include "impl/types/names.h"
#include "src/help.h"
#include "src/program.h"
#include "src/references.h"
#include "tutti_version.h"

namespace tutti::program {
namespace {

using Words = std::vector<std::string>;

/// A subcommand with its name from the program on: `tutti check soak`.
struct Command {
  std::string name;
  const CLI::App* app;
};

/// The program and all of its subcommands, each before its own.
void append_commands(const CLI::App& app, const std::string& name, std::vector<Command>& commands) {
  commands.push_back({name, &app});
  for (const CLI::App* one : shown_subcommands(app)) append_commands(*one, name + " " + one->get_name(), commands);
}

std::vector<Command> commands_of(const CLI::App& program) {
  std::vector<Command> commands;
  append_commands(program, program.get_name(), commands);
  return commands;
}

std::vector<const CLI::Option*> positionals_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* one) { return one->get_positional(); });
}

// ---- the man page

/// Text for troff: no character of it is a command or a hyphen.
std::string roff(std::string_view text) {
  std::string result = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if (c == '~') {
      result += "\\(ti";
    } else if (c == '^') {
      result += "\\(ha";
    } else if (c == '\'') {
      result += "\\(aq";
    } else if (c == '`') {
      result += "\\(ga";
    } else {
      result += c;
    }
  }
  return result;
}

std::string man_option(const CLI::Option& option) {
  const bool is_positional = option.get_positional();
  const std::string name = is_positional ? option.get_name(true, false) : option.get_name(false, true);
  std::string text = fmt::format(".TP\n\\fB{}\\fR", roff(name));
  const bool has_value = takes_value(option);
  if (has_value && !option.get_type_name().empty()) text += fmt::format(" \\fI{}\\fR", roff(option.get_type_name()));
  if (has_value && !option.get_default_str().empty()) {
    text += fmt::format(" (default: {})", roff(option.get_default_str()));
  }
  return text + "\n" + roff(option.get_description()) + "\n";
}

std::string man_command(const Command& command) {
  std::string text = fmt::format(".SS {}\n{}.\n", roff(command.name), roff(command.app->get_description()));
  for (const CLI::Option* option : positionals_of(*command.app)) text += man_option(*option);
  for (const OptionGroup& group : groups_of(*command.app)) {
    text += fmt::format(".PP\n{}:\n", roff(group.title));
    for (const CLI::Option* option : group.options) text += man_option(*option);
  }
  std::istringstream footer(command.app->get_footer());
  for (std::string line; std::getline(footer, line);) text += fmt::format(".PP\n{}\n", roff(line));
  return text;
}

struct ExitRow {
  Exit code;
  std::string_view when;
};
constexpr std::array kExits{
    ExitRow{exit_ok, "all as asked"},
    ExitRow{exit_wrong, "a result is wrong, a proof refuted, or a fault missed that was put in on purpose"},
    ExitRow{exit_usage, "usage; an output that cannot be written"},
    ExitRow{exit_environment, "this machine or build cannot run it"},
    ExitRow{exit_slower, "slower than the gate allows"},
    ExitRow{exit_crash, "crash, hang or timeout: the rank is named, finished rows are kept"},
    ExitRow{exit_undecided, "undecided: too noisy"},
    ExitRow{exit_interrupted, "interrupted: finished rows are kept"},
};

std::string man_page(const CLI::App& program) {
  const std::vector<Command> commands = commands_of(program);
  const std::string about = program.get_description();
  std::string text = fmt::format(".TH TUTTI 1 \"\" \"tutti {}\" \"User Commands\"\n.SH NAME\ntutti \\- {}\n",
                                 roff(TUTTI_VERSION), roff(about.substr(about.find(": ") + 2)));
  text += ".SH SYNOPSIS\n.nf\n";
  for (const Command& command : commands) {
    text += fmt::format("\\fB{}\\fR {}", roff(command.name),
                        command.app == &program ? "[\\-\\-help | \\-\\-version]" : "[options]");
    for (const CLI::Option* option : positionals_of(*command.app)) {
      const std::string name = roff(option->get_name(true, false));
      text += option->get_required() ? " " + name : fmt::format(" [{}...]", name);
    }
    text += "\n";
  }
  text += ".fi\n.SH COMMANDS\n";
  for (const Command& command : commands) {
    if (command.app != &program) text += man_command(command);
  }
  text += ".SH EXIT STATUS\n";
  for (const ExitRow& row : kExits) text += fmt::format(".TP\n{}\n{}\n", static_cast<int>(row.code), roff(row.when));
  text += ".SH ENVIRONMENT\n.TP\nTUTTI_BACKENDS\n";
  text += roff("Folders, with a colon between them, in which backends are looked for before the program's own.") + "\n";
  text += ".TP\nTUTTI_TRANSPORTS\n";
  text += roff("The same for transports that are shared objects.") + "\n";
  text += ".TP\nCOLUMNS\n" + roff("How wide --help and tables are; without it as wide as the terminal.") + "\n";
  return text + ".SH SEE ALSO\nmpirun(1), " + roff("share/doc/tutti/README.md below the prefix of the installation") +
         "\n";
}

// ---- completions

template <class List>
Words names_in_list(const List& list, Words more = {}) {
  Words words;
  for (const auto& one : list) words.emplace_back(to_string(one));
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words algorithm_names(const Words& more) {
  Words words;
  for (const Algorithm* algorithm : all_algorithms()) {
    if (std::ranges::find(words, algorithm->name) == words.end()) words.emplace_back(algorithm->name);
  }
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words backend_names(Words more) {
  Words words{"tutti"};
  words.insert(words.end(), all_references().begin(), all_references().end());
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words built_in_names() {
  Words words;
  for (const Transport* const transport : built_in_transports()) words.emplace_back(transport->name);
  return words;
}

/// What may stand after an option, of those that take names; the values of others cannot be guessed.
const std::map<std::string, Words>& words_of_options() {
  using namespace harness;
  static const Words backends_to_hold_against = [] {
    Words words = backend_names({});
    words.erase(words.begin());
    return words;
  }();
  static const std::map<std::string, Words> words = [&] {
    std::map<std::string, Words> all{
        {"--dtypes", names_in_list(known_dtypes(), {"all"})},
        {"--dtype", names_in_list(known_dtypes())},
        {"--ops", names_in_list(all_ops(), {"all"})},
        {"--op", names_in_list(all_ops())},
        {"--algorithms", algorithm_names({"auto", "all"})},
        {"--algorithm", algorithm_names({"auto"})},
        {"--backends", backend_names({"all"})},
        {"--against", backends_to_hold_against},
        {"--ranks-as", names_in_list(harness::rank_kinds())},
        {"--transports", built_in_names()},
        {"--placement", names_in_list(std::array{Placement::out, Placement::in})},
        {"--buffers", names_in_list(std::array{Buffers::private_, Buffers::shared})},
        {"--counts", {"equal", "ramp", "one-heavy", "zeros", "random", "zipf", "rotating", "burst", "empty"}},
        {"--counts-unit", {"elements", "bytes"}},
        {"--gaps", {"on", "off"}},
        {"--pairs", {std::string(kNeighbours), "all"}},
        {"--cadence", names_in_list(std::array{Cadence::isolated, Cadence::streaming})},
        {"--gradients",
         names_in_list(std::array{Way::per_parameter, Way::buckets, Way::overlapped, Way::ring}, {"all"})},
        {"--faults", names_in_list(all_faults(), {"all"})},
    };
    for (const harness::Condition& condition : harness::conditions()) {
      if (condition.names != nullptr) all[std::string(condition.option)] = condition.names();
    }
    return all;
  }();
  return words;
}

/// What an option's value is completed with.
struct Completion {
  Words words;
  bool are_many = false;  ///< with commas between them
  bool has_files = false;
};

Completion completion_of(const CLI::Option& option) {
  const std::string name = option.get_name();
  const auto found = words_of_options().find(name);
  Completion completion;
  if (found != words_of_options().end()) completion.words = found->second;
  completion.are_many = option.get_type_name() == "LIST";
  completion.has_files =
      option.get_type_name() == "FILE" || name == "--against" || name == "--counts" || name == "--data";
  return completion;
}

Words long_flags(const CLI::App& app) {
  Words flags;
  for (const OptionGroup& group : groups_of(app)) {
    for (const CLI::Option* option : group.options) {
      for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    }
  }
  return flags;
}

/// What stands where no option does: subcommands and collectives.
Words words_of(const Command& command) {
  Words words;
  for (const CLI::App* one : shown_subcommands(*command.app)) words.push_back(one->get_name());
  const auto positionals = positionals_of(*command.app);
  if (positionals.empty()) return words;
  for (const Collective collective : every_collective()) words.emplace_back(to_string(collective));
  if (!positionals.front()->get_required()) words.emplace_back("all");
  return words;
}

std::vector<const CLI::Option*> options_with_values(const CLI::App& app) {
  std::vector<const CLI::Option*> options;
  for (const OptionGroup& group : groups_of(app)) {
    for (const CLI::Option* option : group.options) {
      if (takes_value(*option)) options.push_back(option);
    }
  }
  return options;
}

constexpr std::string_view kBashHead =
    R"(# bash completion for tutti                                    -*- shell-script -*-
# Generated by `tutti generate bash`.
_tutti() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=tutti i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$command ${COMP_WORDS[i]}" in
)";
constexpr std::string_view kBashMiddle = R"(        command="$command ${COMP_WORDS[i]}" ;;
    esac
  done
  # --option=value is three words to bash.
  if [[ $current == "=" ]]; then
    current=
  elif [[ $before == "=" ]]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
  local flags= words= values= many= files= has_value=
  case $command in
)";
constexpr std::string_view kBashTail = R"(  esac
  COMPREPLY=()
  if [[ -n $has_value ]]; then
    local last=$current
    [[ -n $many ]] && last=${current##*,}
    [[ -n $values ]] && COMPREPLY=($(compgen -P "${current%"$last"}" -W "$values" -- "$last"))
    [[ -n $files ]] && COMPREPLY+=($(compgen -f -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
}
)";

std::string bash_completion(const CLI::App& program) {
  const std::vector<Command> commands = commands_of(program);
  std::string text(kBashHead);
  Words names;
  for (const Command& command : commands) {
    if (command.app != &program) names.push_back(fmt::format("\"{}\"", command.name));
  }
  text += fmt::format("      {})\n", fmt::join(names, " | "));
  text += kBashMiddle;
  for (const Command& command : commands) {
    text += fmt::format("    \"{}\")\n      flags=\"{}\"\n      words=\"{}\"\n      case $before in\n", command.name,
                        fmt::join(long_flags(*command.app), " "), fmt::join(words_of(command), " "));
    for (const CLI::Option* option : options_with_values(*command.app)) {
      const Completion completion = completion_of(*option);
      text += fmt::format("        {}) has_value=1", option->get_name());
      if (!completion.words.empty()) text += fmt::format(" values=\"{}\"", fmt::join(completion.words, " "));
      if (completion.are_many) text += " many=1";
      if (completion.has_files) text += " files=1";
      text += " ;;\n";
    }
    text += "      esac ;;\n";
  }
  return text + std::string(kBashTail) + "complete -o bashdefault -F _tutti tutti\n";
}

/// Text between the brackets of _arguments, in single quotes.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      result += '\\';
      result += c;
    } else {
      result += c;
    }
  }
  return result;
}

std::string zsh_value(const Completion& completion) {
  const std::string words = fmt::format("{}", fmt::join(completion.words, " "));
  if (completion.words.empty()) return completion.has_files ? "_files" : " ";
  const std::string some = completion.are_many ? fmt::format("_sequence compadd - {}", words) : "(" + words + ")";
  if (!completion.has_files) return some;
  // The blank keeps _arguments from adding options of its own, which are compadd's.
  return fmt::format(" _alternative \"words\\:word\\:({})\" \"files\\:file\\:_files\"", words);
}

std::string function_name(const Command& command) {
  std::string name = "_" + command.name;
  std::ranges::replace(name, ' ', '_');
  return name;
}

std::string zsh_function(const Command& command) {
  std::string text = fmt::format(
      "{}() {{\n  local curcontext=$curcontext state line\n  _arguments -C -S \\\n"
      "    '(-h --help)'{{-h,--help}}'[print this text]' \\\n",
      function_name(command));
  for (const OptionGroup& group : groups_of(*command.app)) {
    for (const CLI::Option* option : group.options) {
      const std::string name = option->get_name();
      if (name == "--help") continue;
      const std::string about = zsh_text(option->get_description());
      if (!takes_value(*option)) {
        text += fmt::format("    '{}[{}]' \\\n", name, about);
      } else {
        text += fmt::format("    '{}=[{}]:{}:{}' \\\n", name, about, option->get_type_name(),
                            zsh_value(completion_of(*option)));
      }
    }
  }
  const std::vector<const CLI::App*> subcommands = shown_subcommands(*command.app);
  const Words words = words_of(command);
  if (subcommands.empty()) {
    return text +
           (words.empty() ? "    && return\n}\n" : fmt::format("    '*:COLLECTIVE:({})'\n}}\n", fmt::join(words, " ")));
  }
  text +=
      fmt::format("    '1:what:({})' \\\n    '*::rest:->rest'\n  [[ $state == rest ]] || return\n  case $words[1] in\n",
                  fmt::join(words, " "));
  for (const CLI::App* one : subcommands) {
    text += fmt::format("    {}) {}_{} ;;\n", one->get_name(), function_name(command), one->get_name());
  }
  return text + "  esac\n}\n";
}

std::string zsh_completion(const CLI::App& program) {
  std::string text = "#compdef tutti\n# Generated by `tutti generate zsh`.\n";
  std::vector<Command> commands = commands_of(program);
  for (const Command& command : commands) text += zsh_function(command);
  return text + "_tutti \"$@\"\n";
}

int generate(const CLI::App& program, const std::string& what) {
  struct Kind {
    std::string_view name;
    std::string (*text)(const CLI::App&);
  };
  constexpr std::array kKinds{Kind{"man", man_page}, Kind{"bash", bash_completion}, Kind{"zsh", zsh_completion}};
  const auto* const kind = std::ranges::find(kKinds, what, &Kind::name);
  if (kind == kKinds.end()) return complain(unknown_name("text", what, Words{"man", "bash", "zsh"}));
  harness::print("{}", kind->text(program));
  return exit_ok;
}

}  // namespace

void add_generate(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("generate", "the man page and completions, when tutti is built");
  command->group("");
  auto what = std::make_shared<std::string>();
  command->add_option("WHAT", *what, "man, bash or zsh")->type_name("")->required();
  command->callback([&program, &action, what] { action = [&program, what] { return generate(program, *what); }; });
}

}  // namespace tutti::program
