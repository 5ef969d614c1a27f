// SPDX-License-Identifier: Apache-2.0
// The result of one rank's call, as the ranks of a session send it to the launcher: a line of JSON that says whose
// result it is and where the part begins, then the bytes of the part in hexadecimal digits.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::repeat {

/// What one call left in a rank's output.
struct CallResult {
  std::string case_id;
  int launch = 1;  ///< the start of the ranks that it comes from; not part of a message
  int call = 0;    ///< of the case in its launch, from 0
  int rank = 0;
  std::vector<std::byte> bytes;

  bool operator==(const CallResult&) const = default;
};

inline constexpr std::size_t kMostResultBytes = std::size_t{64} << 20U;  ///< of one rank's output

/// Calls `send` with each part of the result, at least one. Errors: those of `send`.
Status send_result(const CallResult& result, const std::function<Status(std::string_view text)>& send);

/// Puts the parts of results together again, which come one result after the other.
class ResultParts {
 public:
  /// The result whose last part this is; empty: more will come. Errors: invalid_argument for a text that is no part,
  /// or not the next one.
  [[nodiscard]] Result<std::optional<CallResult>> add(std::string_view text);

 private:
  CallResult result_;
  std::size_t filled_ = 0;
};

}  // namespace tutti::harness::repeat
