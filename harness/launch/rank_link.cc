// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/rank_link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <pthread.h>
#include <span>
#include <unistd.h>

#include "harness/launch/joined_hosts.h"
#include "harness/launch/start_command.h"
#include "harness/launch/waits.h"
#include "impl/bootstrap/rendezvous.h"

namespace tutti::harness::launch {
namespace {

std::optional<int> number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  int number = -1;
  const char* end = text + std::strlen(text);
  if (*text == '\0' || std::from_chars(text, end, number).ptr != end || number < 0) return std::nullopt;
  return number;
}

std::optional<int> first_number(std::span<const char* const> names) {
  for (const char* name : names) {
    if (const auto number = number_in_environment(name)) return number;
  }
  return std::nullopt;
}

// The launcher sends nothing after the welcome: whatever wakes this thread means that it is gone.
void* die_with_launcher(void* socket) {
  wait_readable(static_cast<int>(reinterpret_cast<std::intptr_t>(socket)), kForever);
  // Who has started this rank ends the others with the first exit code, which is to be the launcher's.
  constexpr int kOfBrokenJob = 5;
  if (!RankLink::has_come_by_itself()) ::_exit(1);
  let_the_first_speak();
  ::_exit(kOfBrokenJob);
}

Result<Descriptor> reach(const std::string& name) {
  if (!RankLink::has_come_by_itself()) return connect_to(name);
  constexpr std::chrono::seconds kPatience(60);
  constexpr std::chrono::milliseconds kBetweenTries(20);
  const int alive = number_in_environment("TUTTI_ALIVE").value_or(-1);
  bool is_gone = false;
  Result<Descriptor> socket = Descriptor();
  const auto is_over = [&] {
    socket = connect_to(name);
    is_gone = !socket.is_ok() && wait_readable(alive, std::chrono::milliseconds(0));
    return socket.is_ok() || is_gone;
  };
  if (nap_until(kPatience, is_over, kBetweenTries) && !is_gone) return socket;
  if (is_gone) return error(Code::aborted, "the first rank of this host is gone");
  return error(Code::timeout, "the first rank of this host has not begun the job within {} s: {}", kPatience.count(),
               socket.status().message());
}

}  // namespace

bool RankLink::has_come_by_itself() { return std::getenv("TUTTI_ARGUMENTS") != nullptr; }

Result<RankLink> RankLink::connect() {
  const char* name = std::getenv("TUTTI_CONTROL");
  if (name == nullptr) {
    return error(Code::unavailable, "TUTTI_CONTROL is not set: this program is started by the launcher, not by hand");
  }
  auto rank = number_in_environment("TUTTI_RANK");
  if (!rank) rank = first_number(kRankVariables);
  if (!rank) return error(Code::unavailable, "no rank in the environment: neither TUTTI_RANK nor what mpirun sets");
  RankLink link;
  link.rank_ = *rank;
  TUTTI_ASSIGN_OR_RETURN(link.socket_, reach(control_name_in(name, *rank)));
  std::string hello = std::to_string(*rank);
  if (has_come_by_itself()) hello += fmt::format("\n{}", std::getenv("TUTTI_ARGUMENTS"));
  TUTTI_RETURN_IF_ERROR(send_frame(link.socket_.get(), {"hello", std::move(hello)}));
  TUTTI_RETURN_IF_ERROR(link.receive_welcome());
  TUTTI_RETURN_IF_ERROR(link.start_watching());
  return link;
}

Status RankLink::receive_welcome() {
  FrameReader reader;
  std::vector<Descriptor> given;
  TUTTI_ASSIGN_OR_RETURN(const Frame welcome, receive_frame(socket_.get(), reader, given));
  // On further lines, what there is to say of other machines: the job's key, and the rest. Rank 0 then gets two
  // listeners.
  const std::size_t line = std::min(welcome.text.find('\n'), welcome.text.size());
  const bool is_across = line < welcome.text.size();
  const std::string words = welcome.text.substr(0, line);
  int processes = 0;
  const bool is_read = welcome.type == "welcome" && std::sscanf(words.c_str(), "%d %d %zu %d %d", &ranks_, &processes,
                                                                &domain_bytes_, &place_.machine, &place_.local) == 5;
  const std::size_t expected = (domain_bytes_ > 0 ? 3U : 2U) + (is_across && rank_ == 0 ? 2U : 0U);
  if (!is_read || given.size() != expected) {
    return error(Code::io, "the launcher answered '{} {}' with {} descriptors", welcome.type, words, given.size());
  }
  if (is_across) {
    const std::size_t end = std::min(welcome.text.find('\n', line + 1), welcome.text.size());
    TUTTI_ASSIGN_OR_RETURN(across_, across_from_json(std::string_view(welcome.text).substr(end)));
    across_->key = welcome.text.substr(line + 1, end - line - 1);
  }
  const auto world = number_in_environment("TUTTI_RANK") ? std::nullopt : first_number(kRanksVariables);
  if (world && *world != processes) {
    return error(Code::mismatch, "mpirun started {} ranks, the launcher expects {}", *world, processes);
  }
  TUTTI_ASSIGN_OR_RETURN(payload_, read_text(given[0].get()));
  TUTTI_ASSIGN_OR_RETURN(board_memory_, Mapping::map(given[1].get(), Board::bytes(ranks_)));
  if (domain_bytes_ > 0) domain_ = std::move(given[2]);
  if (is_across && rank_ == 0) {
    listeners_.domain = std::move(given.back());
    listeners_.exchange = std::move(given[given.size() - 2]);
  }
  return Status();
}

// A thread that sleeps costs nothing while we measure. It never ends but with the process, so its copy of the socket is
// never closed, and its stack is small; signals are for others.
Status RankLink::start_watching() {
  const int copy = ::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return error(Code::io, "cannot copy the control connection: {}", std::strerror(errno));
  constexpr std::size_t kStackBytes = 64 * 1024;
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  void* argument = reinterpret_cast<void*>(static_cast<std::intptr_t>(copy));
  const int failure = ::pthread_create(&thread, &attributes, die_with_launcher, argument);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (failure != 0) return error(Code::resource, "cannot start a thread: {}", std::strerror(failure));
  return Status();
}

Status RankLink::send_any(std::string type, std::string text) {
  const std::lock_guard lock(*sending_);
  return send_frame(socket_.get(), {std::move(type), std::move(text)});
}

Status RankLink::send(std::string_view type, std::string_view text) {
  static constexpr std::array<std::string_view, 4> kReserved = {"hello", "welcome", "bye", "error"};
  if (std::find(kReserved.begin(), kReserved.end(), type) != kReserved.end()) {
    return error(Code::invalid_argument, "message type '{}' is reserved", type);
  }
  return send_any(std::string(type), std::string(text));
}

Status RankLink::finish() { return send_any("bye", ""); }

Status RankLink::fail(const Status& why) {
  TUTTI_RETURN_IF_ERROR(send_any("error", fmt::format("{} {}", static_cast<int>(why.code()), why.message())));
  constexpr std::chrono::milliseconds kPatience(1000);  // usually the launcher ends us within a tenth of that
  wait_readable(socket_.get(), kPatience);
  return Status();
}

void RankLink::announce(Activity activity, std::uint32_t case_index) {
  harness::announce(board().status(rank_), activity, case_index);
}

void RankLink::settle() { harness::settle(board().status(rank_)); }

}  // namespace tutti::harness::launch
