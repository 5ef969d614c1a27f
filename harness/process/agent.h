// SPDX-License-Identifier: Apache-2.0
// How a program is started on another machine: by an agent such as ssh, as `AGENT HOST PROGRAM...`.
#pragma once

#include <string>
#include <vector>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::process {

/// The words of a command that is split at spaces.
[[nodiscard]] std::vector<std::string> words_of(const std::string& text);

/// `program`, a path, as a word for an agent. An agent hands a command to a shell, as ssh does, or to exec: it gets
/// what both take alike. ssh always takes a shell, so for it a path with blanks or brackets stands in single quotes.
/// Errors: unavailable where the path has something else.
[[nodiscard]] Result<std::string> word_for_agent(const std::string& agent, const std::string& program);

/// The words that begin a command on another machine: those of the agent, then the host, whose brackets it does not
/// get. Errors: invalid_argument if the host is no name of parse_host_name: no agent gets an option in its place.
[[nodiscard]] Result<std::vector<std::string>> agent_words(const std::string& agent, const std::string& host);
/// The same for messages and records: "`ssh node1`", an agent of several words as its program alone.
[[nodiscard]] std::string agent_text(const std::string& agent, const std::string& host);

/// "exited with code 255", "was killed by signal 9".
[[nodiscard]] std::string end_of(int wait_status);

/// The `interface` of --interface, as another machine gets it: an address means this machine only, a
/// name is one on each. Empty: it finds out.
[[nodiscard]] std::string interface_elsewhere(const std::string& interface);

/// The variables that name folders of shared objects. Another machine has another environment, so the launcher sends it
/// their values when it starts something there.
inline constexpr const char* kBackendFolders = "TUTTI_BACKENDS";
inline constexpr const char* kTransportFolders = "TUTTI_TRANSPORTS";
/// The value of one of them, in which every folder has its whole path. Empty if it is not set.
[[nodiscard]] std::string folders_in(const char* variable);

/// At which the other machines reach this one: that of `interface`, or, if that is empty, that of the route to one of
/// them, or without any 127.0.0.1. Errors: unavailable, invalid_argument.
[[nodiscard]] Result<std::string> address_for(const std::string& interface, const std::string& first_other);

}  // namespace tutti::harness::process
