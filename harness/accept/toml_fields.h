// SPDX-License-Identifier: Apache-2.0
// Fields of the TOML files of an acceptance. Each error names the line, the value, the allowed range and the nearest
// right value. For sources only, as harness/text/toml.h is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/floors.h"
#include "harness/text/toml.h"
#include "impl/types/status.h"

namespace tutti::harness::accept {

/// From `least` to `most`, both allowed, as fractions of 1.
struct ShareRange {
  double least = 0, most = 1;
  double usual = 0.1;  ///< what an error proposes for a text that is no share
};

[[nodiscard]] Status set_number(const toml::node& node, std::string_view key, std::int64_t least, std::int64_t most,
                                std::int64_t& to);
/// "31%" or 0.31.
[[nodiscard]] Status set_share(const toml::node& node, std::string_view key, const ShareRange& range, double& to);
[[nodiscard]] Result<std::string> text_of(const toml::node& node, std::string_view key);
[[nodiscard]] Result<bool> flag_of(const toml::node& node, std::string_view key);

}  // namespace tutti::harness::accept
