// SPDX-License-Identifier: Apache-2.0
// Small files of the kernel, read below a root folder: "/" on this machine, a folder of a test that stands for another.
// What cannot be read is empty, never an error: kernels and containers differ in what they show.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::machine {

class Tree {
 public:
  explicit Tree(std::filesystem::path root) : root_(std::move(root)) {}

  /// The content of `path` (from the root, without a leading slash), without white space at its ends.
  [[nodiscard]] std::string text(std::string_view path) const;
  /// Its first word as a number.
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view path) const;
  [[nodiscard]] bool exists(std::string_view path) const;
  /// Names in the folder `path` that are `prefix` and a number, by that number: {0, 1, 2} for cpu0, cpu1, cpu2.
  [[nodiscard]] std::vector<int> numbered(std::string_view path, std::string_view prefix) const;
  /// The value behind `key` and a colon in the lines of `path`: "MemTotal" in proc/meminfo.
  [[nodiscard]] std::string field(std::string_view path, std::string_view key) const;

 private:
  std::filesystem::path root_;
};

/// The folders of this process' cgroup below `mount`, from its own to the top; `controller`: of version 1, empty for
/// version 2.
[[nodiscard]] std::vector<std::string> cgroup_folders(const Tree& tree, std::string_view controller,
                                                      std::string_view mount);

/// The kernel's lists: "0-3,8" -> {0, 1, 2, 3, 8}. Empty where the text is no such list.
[[nodiscard]] std::vector<int> parse_cpu_list(std::string_view text);

}  // namespace tutti::harness::machine
