// SPDX-License-Identifier: Apache-2.0
#include "harness/process/agent.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <sys/wait.h>
#include <system_error>

#include "harness/text/redaction.h"
#include "impl/tcp/interface.h"
#include "impl/types/host_name.h"
#include "impl/types/names.h"

namespace tutti::harness::process {

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t from = text.find_first_not_of(' '); from != std::string::npos;) {
    const std::size_t to = std::min(text.find(' ', from), text.size());
    words.push_back(text.substr(from, to - from));
    from = text.find_first_not_of(' ', to);
  }
  return words;
}

Result<std::string> word_for_agent(const std::string& agent, const std::string& program) {
  const auto is_made_of = [&](std::string_view characters) {
    return std::ranges::all_of(program, [&](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || characters.find(c) != std::string_view::npos;
    });
  };
  if (is_made_of("/._+-=@:,")) return program;
  const std::vector<std::string> words = words_of(agent);
  const bool is_ssh = !words.empty() && std::filesystem::path(words.front()).filename() == "ssh";
  // Within single quotes these are themselves to every login shell.
  if (is_ssh && is_made_of("/._+-=@:, ()[]#~%")) return fmt::format("'{}'", program);
  return error(Code::unavailable,
               "the program's path '{}' has characters that a shell on another machine reads otherwise: install it "
               "where the path has none{}",
               shown(program), is_ssh ? "" : "; with ssh as agent, blanks and brackets are allowed");
}

Result<std::vector<std::string>> agent_words(const std::string& agent, const std::string& host) {
  TUTTI_ASSIGN_OR_RETURN(const std::string name, parse_host_name(host));
  std::vector<std::string> words = words_of(agent);
  words.push_back(without_brackets(name));
  return words;
}

std::string agent_text(const std::string& agent, const std::string& host) {
  return fmt::format("`{} {}`", without_arguments(agent), without_brackets(host));
}

std::string end_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? fmt::format("was killed by signal {}", WTERMSIG(wait_status))
                                  : fmt::format("exited with code {}", WEXITSTATUS(wait_status));
}

std::string interface_elsewhere(const std::string& interface) {
  const bool is_name =
      std::ranges::any_of(interface, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }) &&
      interface.find(':') == std::string::npos;
  return is_name ? interface : "";
}

std::string folders_in(const char* variable) {
  const char* const value = std::getenv(variable);
  std::istringstream named(value == nullptr ? "" : value);
  std::string folders;
  for (std::string folder; std::getline(named, folder, ':');) {
    if (folder.empty()) continue;
    std::error_code failure;
    const std::string whole = std::filesystem::absolute(folder, failure).string();
    folders += (folders.empty() ? "" : ":") + (failure ? folder : whole);
  }
  return folders;
}

Result<std::string> address_for(const std::string& interface, const std::string& first_other) {
  if (!interface.empty()) return tcp::address_of_interface(interface);
  if (first_other.empty()) return std::string("127.0.0.1");
  auto found = tcp::address_towards(first_other);
  if (found.is_ok()) return found;
  return error(Code::unavailable, "{}; --interface says at which address this machine is reached",
               found.status().message());
}

}  // namespace tutti::harness::process
