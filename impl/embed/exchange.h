// SPDX-License-Identifier: Apache-2.0
// How processes that tutti has not started tell each other a few words before they have met.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "impl/types/status.h"

namespace tutti::embed {

/// Two functions of the caller: those of torch's store, of files, of a broadcast. Keys and values are text. All ranks
/// of a world see the same values, and a world sees none of another world. Whoever can set a key can join.
struct Exchange {
  /// Each key is set once, by one rank.
  std::function<Status(const std::string& key, const std::string& value)> set;
  /// Waits until a rank has set the key. Errors: timeout where none has in that time.
  std::function<Result<std::string>(const std::string& key, std::chrono::nanoseconds timeout)> get;
};

}  // namespace tutti::embed
