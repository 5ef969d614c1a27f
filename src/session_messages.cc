// SPDX-License-Identifier: Apache-2.0
#include "src/session_messages.h"

#include <algorithm>
#include <limits>

#include "impl/types/number.h"

namespace tutti::program {

void SessionMessages::on_message(int /*rank*/, std::string_view type, std::string_view text) {
  const auto row = std::ranges::find(table_, type, &MessageType::name);
  if (row != table_.end()) row->take(text);
}

std::string SessionMessages::case_name(std::uint32_t index) const { return harness::name_of_number(spec_, index); }

std::vector<harness::RankStanding> SessionMessages::standings(int domain_fd) const {
  harness::RanksSeen seen = harness::seen_of(spec_, domain_fd);
  int rank = 0;
  for (auto& calls : seen.calls) last_calls_[rank++] = std::move(calls);
  return std::move(seen.standings);
}

std::optional<std::size_t> SessionMessages::cell_begun(std::string_view text) const {
  const auto number = parse_number(text, "a cell", std::int64_t{0}, std::numeric_limits<std::int64_t>::max());
  if (!number.is_ok()) return {};
  const auto index = static_cast<std::size_t>(number.value());
  return index < spec_.cells.size() ? std::optional(index) : std::nullopt;
}

}  // namespace tutti::program
