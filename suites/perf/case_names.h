// SPDX-License-Identifier: Apache-2.0
// The cases that this process's first rank has come to, for the watch, which sees their numbers on the board. All ranks
// walk the same way and number alike.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace tutti::perf {

class CaseNames {
 public:
  /// Of the next case; the first has number 1.
  void add(std::string name) {
    const std::lock_guard lock(mutex_);
    names_.push_back(std::move(name));
  }
  /// Another process's rank may be at a case that none has come to here.
  [[nodiscard]] std::string of(std::uint32_t number) const {
    if (number == 0) return "the start of the program";
    const std::lock_guard lock(mutex_);
    return number <= names_.size() ? names_[number - 1] : "a later case";
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> names_;
};

}  // namespace tutti::perf
