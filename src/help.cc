// SPDX-License-Identifier: Apache-2.0
#include "src/help.h"

#include <algorithm>
#include <array>
#include <memory>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/cases/conditions.h"
#include "harness/text/streams.h"

namespace tutti::program {
namespace {

constexpr std::size_t kFewOptions = 8;  // need no groups
constexpr std::size_t kUsualWidth = 100;
constexpr std::size_t kLeastWidth = 40;

/// One group of options, whichever subcommand takes them, in the order in which they are shown. An option that no group
/// names is in the last.
struct GroupRow {
  std::string_view title;
  std::string_view names;
};
constexpr std::size_t kOfConditions = 1;  // their group
constexpr std::array kGroups{
    GroupRow{"What to run",
             " --sizes --dtypes --ops --roots --pairs --window --backends --algorithms --table --placement --buffers "
             "--counts"
             " --counts-unit --values --case --trace --gaps --groups --beside --list --against --baseline --suite "
             "--faults --operations --calls "
             "--pretend"
             " --stages --full --margin --too-fast --message-size --resume --fit "},
    GroupRow{
        "How to measure",
        " --cadence --sync --cache --misalign --skew --slow-rank --slow-link --crowd --overlap --budget --iterations "
        "--launches --blocks --cell-time"
        " --no-limit --seed "},
    GroupRow{"How to verify", " --check --accuracy "},
    GroupRow{
        "Where and how ranks run",
        " --ranks --ranks-as --device --lanes --block-threads --gpus --transports --pretend-hosts "
        "--ranks-per-cache --hosts --hostfile --agent --interface --rails --leaves --machine --init --bind --timeout "},
    GroupRow{"Output",
             " --csv --json --lines --samples --flight --html --png --svg --prometheus --format --junit --summary "
             "--exclude --nagios --path --links --out "
             "--require --fail --quiet --over-ranks "},
    GroupRow{"Other options", ""},
};

/// Where an option stands: its group, and its place there.
struct HelpPlace {
  std::size_t group = kGroups.size() - 1;
  std::size_t at = std::string_view::npos;

  auto operator<=>(const HelpPlace&) const = default;
};
/// A condition that no group names is one more way to measure.
HelpPlace place_of(const CLI::Option& option) {
  const std::string name = fmt::format(" {} ", option.get_name());
  for (std::size_t group = 0; group < kGroups.size(); ++group) {
    const std::size_t at = kGroups.at(group).names.find(name);
    if (at != std::string_view::npos) return {group, at};
  }
  HelpPlace place;
  if (harness::condition_of_option(option.get_name()) != nullptr) place.group = kOfConditions;
  return place;
}

std::size_t width_of_terminal() {
  return std::max(harness::columns_of(STDOUT_FILENO).value_or(kUsualWidth), kLeastWidth);
}

/// A command that a shell reads back where it was wrapped.
std::string wrapped_command(std::string_view text, std::size_t width) {
  constexpr std::size_t kIndent = 4;
  std::string lines = wrapped(text, width - kIndent - 2, kIndent);
  for (std::size_t end = lines.find('\n'); end != lines.npos; end = lines.find('\n', end + 3)) lines.insert(end, " \\");
  return lines;
}

class Help final : public CLI::Formatter {
 public:
  Help() { column_width(width_ < 72 ? 18 : 30); }

  std::string make_option(const CLI::Option* option, bool /*is_positional*/) const override {
    return in_columns(spelling_of(*option), option->get_description());
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return in_columns(command->get_name(), command->get_description());
  }

  std::string make_help(const CLI::App* command, std::string name, CLI::AppFormatMode mode) const override {
    std::string text = wrapped(command->get_description(), width_, 0) + "\n" + make_usage(command, std::move(name)) +
                       make_positionals(command);
    for (const OptionGroup& group : groups_of(*command)) text += make_group(group.title, false, group.options);
    return text + make_subcommands(command, mode) + "\n" + make_footer(command);
  }

  std::string make_footer(const CLI::App* command) const override {
    std::string text;
    std::istringstream lines(command->get_footer());
    for (std::string line; std::getline(lines, line);) {
      text += (line.starts_with("Example: ") ? wrapped_command(line, width_) : wrapped(line, width_, 0)) + "\n";
    }
    return text;
  }

 private:
  [[nodiscard]] std::string in_columns(const std::string& name, const std::string& text) const {
    const std::size_t column = get_column_width();
    std::string line = "  " + name;
    const bool is_long = line.size() + 2 > column;
    if (is_long) line += "\n";
    line.append(is_long ? column : column - line.size(), ' ');
    return line + wrapped(text, width_ - column, column) + "\n";
  }

  std::size_t width_ = width_of_terminal();
};

}  // namespace

std::vector<OptionGroup> groups_of(const CLI::App& command) {
  const auto shown = command.get_options(
      [](const CLI::Option* option) { return !option->get_group().empty() && option->nonpositional(); });
  std::vector<OptionGroup> groups;
  if (shown.size() <= kFewOptions) return {{"Options", shown}};
  for (std::size_t index = 0; index < kGroups.size(); ++index) {
    OptionGroup group{std::string(kGroups.at(index).title), {}};
    std::ranges::copy_if(shown, std::back_inserter(group.options),
                         [&](const CLI::Option* option) { return place_of(*option).group == index; });
    std::ranges::stable_sort(group.options, {}, [](const CLI::Option* option) { return place_of(*option).at; });
    if (!group.options.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<const CLI::App*> shown_subcommands(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::string spelling_of(const CLI::Option& option) {
  std::string text = option.get_positional() ? option.get_name(true, false) : option.get_name(false, true);
  if (!takes_value(option)) return text;
  if (!option.get_type_name().empty()) text += " " + option.get_type_name();
  if (!option.get_default_str().empty()) text += "=" + option.get_default_str();
  if (option.get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
  return text;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string lines, line;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines += line + "\n" + std::string(indent, ' ');
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines + line;
}

void set_help(CLI::App& program) {
  program.formatter(std::make_shared<Help>());
  program.set_help_flag("-h,--help", "print this text");
}

}  // namespace tutti::program
