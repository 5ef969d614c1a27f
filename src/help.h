// SPDX-License-Identifier: Apache-2.0
// What is told of a command's options: `--help`, wrapped to the terminal, and groups of options for it and for the man
// page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace tutti::program {

struct OptionGroup {
  std::string title;
  std::vector<const CLI::Option*> options;
};

/// The options that --help shows, without positionals: in groups by what they are about, or in one where they are few.
[[nodiscard]] std::vector<OptionGroup> groups_of(const CLI::App& command);

/// The subcommands that --help shows.
[[nodiscard]] std::vector<const CLI::App*> shown_subcommands(const CLI::App& command);

/// A flag does not.
[[nodiscard]] bool takes_value(const CLI::Option& option);

/// `--sizes LIST=8:64M:x4`.
[[nodiscard]] std::string spelling_of(const CLI::Option& option);

/// `text` in lines of at most `width`, each but the first after `indent` blanks; a longer word has a line of its own.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

/// How every subcommand that is added afterwards prints its help.
void set_help(CLI::App& program);

}  // namespace tutti::program
