// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/tree.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

namespace tutti::harness::machine {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::optional<std::int64_t> leading_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string Tree::text(std::string_view path) const {
  std::ifstream file(root_ / path);
  std::ostringstream content;
  content << file.rdbuf();  // where the kernel gives an error, as for the speed of some interfaces, it has nothing
  return std::string(trimmed(content.str()));
}

std::optional<std::int64_t> Tree::number(std::string_view path) const { return leading_number(text(path)); }

bool Tree::exists(std::string_view path) const {
  std::error_code failure;
  return std::filesystem::exists(root_ / path, failure);
}

std::vector<int> Tree::numbered(std::string_view path, std::string_view prefix) const {
  std::vector<int> numbers;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(root_ / path, failure)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = std::string_view(name).substr(prefix.size());
    const auto number = leading_number(rest);
    if (number && std::to_string(*number) == rest) numbers.push_back(static_cast<int>(*number));
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::string Tree::field(std::string_view path, std::string_view key) const {
  std::ifstream file(root_ / path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || trimmed(std::string_view(line).substr(0, colon)) != key) continue;
    return std::string(trimmed(std::string_view(line).substr(colon + 1)));
  }
  return {};
}

std::vector<std::string> cgroup_folders(const Tree& tree, std::string_view controller, std::string_view mount) {
  std::istringstream lines(tree.text("proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const bool is_mine = controller.empty() ? controllers == ",,"
                                            : controllers.find(fmt::format(",{},", controller)) != std::string::npos;
    if (!is_mine) continue;
    std::vector<std::string> folders;
    for (std::string path = line.substr(second + 1); !path.empty(); path = path.substr(0, path.rfind('/'))) {
      if (path != "/") folders.push_back(fmt::format("{}{}", mount, path));
    }
    folders.emplace_back(mount);  // in a container, its own group is mounted here
    return folders;
  }
  return {std::string(mount)};
}

std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> cores;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const std::size_t dash = item.find('-');
    const auto first = leading_number(item);
    const auto last = dash == std::string_view::npos ? first : leading_number(item.substr(dash + 1));
    if (!first || !last) return {};
    for (auto core = *first; core <= *last; ++core) cores.push_back(static_cast<int>(core));
  }
  return cores;
}

}  // namespace tutti::harness::machine
