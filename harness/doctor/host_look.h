// SPDX-License-Identifier: Apache-2.0
// What one host of several says of itself, and how it is asked: `tutti doctor --hosts` has a process on each, which an
// agent has started, and talks with it in lines. An answer of the host begins with kWord and ends with its line, for an
// agent may print more (host_answers.h).
//
//   asks   {"interface", "launcher"}   the host answers HostLook
//   asks   {"reach": [address]}        [Reach], of each address
//   asks   clock                       its time of day, in ns
//
// The process ends with its stdin.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/doctor/findings.h"
#include "impl/types/status.h"

namespace tutti::harness::doctor {

inline constexpr std::string_view kWord = "tutti-doctor ";
inline constexpr std::string_view kAsksForClock = "clock";

/// What hosts should have alike, as a word and a text: "kernel", "6.1.0".
struct Fact {
  std::string name;
  std::string value;  ///< empty: not known
};

struct HostLook {
  std::string hostname;
  std::string build;
  std::string machine;  ///< the same on hosts that are one
  std::string address;  ///< at which it is reached: that of its interface
  std::string listens;  ///< where it can be reached now, address and port
  std::vector<Fact> facts;
  std::string condition;  ///< diagnosis_json
  std::vector<Symptom> findings;
  double seconds = 0;  ///< that it took to look
};
[[nodiscard]] std::string to_json(const HostLook& look);
/// Errors: io.
[[nodiscard]] Result<HostLook> look_from_json(std::string_view text);

struct LookRequest {
  std::string interface;  ///< see tcp::address_of_interface; empty: of the route to the launcher
  std::string launcher;   ///< its address
  std::vector<std::string> reach;
};
[[nodiscard]] std::string to_json(const LookRequest& request);

/// How one host gets to another.
struct Reach {
  std::string from;  ///< its own address on the way
  std::string interface;
  int mtu = 0;              ///< of the route, in bytes; 0: not known
  double microseconds = 0;  ///< that a connection took
  std::string failure;      ///< empty: it is reached
};
[[nodiscard]] std::string to_json(const std::vector<Reach>& all);
/// Errors: io.
[[nodiscard]] Result<std::vector<Reach>> reaches_from_json(std::string_view text);

/// The host's side, on stdin and stdout. `look` gives all but what is of the network. Errors: invalid_argument where it
/// is asked something else; those of `look`.
Status answer_as_host(const std::function<Result<HostLook>()>& look);

}  // namespace tutti::harness::doctor
