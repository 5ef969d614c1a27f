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
#include <sys/socket.h>
#include <unistd.h>

#include "harness/launch/connections.h"
#include "harness/launch/control_name.h"
#include "harness/process/private_directory.h"
#include "harness/process/processes.h"
#include "harness/process/start_command.h"
#include "harness/process/starter.h"
#include "harness/process/waits.h"
#include "harness/text/counted.h"
#include "harness/text/streams.h"
#include "impl/bootstrap/meeting.h"
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

constexpr std::chrono::milliseconds kToSayMore(100);  // for the rest of a frame

/// What the thread of a rank looks at.
struct Watched {
  int socket = -1;
  pid_t launcher = 0;  ///< 0: whoever started this rank notices if the launcher is stopped
};

std::string first_process(pid_t pid) {
  return pid > 0 ? fmt::format("the first rank's process of this host (pid {})", pid)
                 : "the first rank's process of this host";
}

/// Prints it here, since no process is left to send it to. A launcher that lives has lost what let this rank in, and
/// tells that itself.
void complain_of_loss(pid_t launcher) {
  constexpr std::chrono::seconds kToDie(3);  // its connections end before it does, on a busy host long before
  const auto is_dead = [launcher] {
    const auto info = process_info(launcher);
    return !info || info->state == 'Z' || info->state == 'X';
  };
  if (launcher > 0 && !nap_until(kToDie, is_dead)) return;
  to_stderr(fmt::format("tutti: {} ended without a word: killed, or crashed\n", first_process(launcher)));
}

/// What the launcher said at its end; nothing where it said nothing.
std::optional<std::string> last_word(int socket) {
  FrameReader reader;
  std::array<char, 4096> bytes;
  for (;;) {
    const auto frame = reader.next();
    if (!frame.is_ok()) return std::nullopt;
    if (frame.value()) return frame.value()->type == kEnd ? std::optional(frame.value()->text) : std::nullopt;
    if (!wait_readable(socket, kToSayMore)) return std::nullopt;
    const ssize_t n = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n <= 0) return std::nullopt;
    reader.append(std::string_view(bytes.data(), static_cast<std::size_t>(n)));
  }
}

/// Returns when the launcher ends: it sends nothing else after the welcome. False if it has been stopped for long. Only
/// looks at which this process itself was running count, as a whole job may be stopped and go on.
bool await_end_of(const Watched& watched) {
  constexpr std::chrono::seconds kBetweenStates(2);
  constexpr int kMostLooks = 6;
  if (watched.launcher == 0) return wait_readable(watched.socket, kForever);
  for (int stopped = 0; stopped < kMostLooks;) {
    if (wait_readable(watched.socket, kBetweenStates)) return true;
    const auto info = process_info(watched.launcher);
    stopped = info && (info->state == 'T' || info->state == 't') ? stopped + 1 : 0;
  }
  return false;
}

void* die_with_launcher(void* what) {
  const Watched& watched = *static_cast<const Watched*>(what);
  // Who has started this rank ends the others with the first exit code, which is to be the launcher's.
  constexpr int kOfBrokenJob = 5;
  const bool has_ended = await_end_of(watched);
  // A launcher that crashed leaves the directory of its mpirun, which nothing else removes.
  if (has_ended) PrivateDirectory::remove_abandoned();
  if (!RankLink::has_come_by_itself()) ::_exit(1);
  if (!has_ended) {
    to_stderr(
        fmt::format("tutti: {} has been stopped (state T) for more than 10 s\n", first_process(watched.launcher)));
    // mpiexec of MPICH would wait for it without end. Its number may name another process here.
    const bool has_starter = Starter::of_this_process().pid() != 0;
    if (has_starter && is_of_this_program(watched.launcher)) ::kill(watched.launcher, SIGKILL);
    ::_exit(kOfBrokenJob);
  }
  const auto word = last_word(watched.socket);
  if (!word) complain_of_loss(watched.launcher);
  if (word && !word->empty()) to_stderr(fmt::format("tutti: {}\n", *word));
  let_the_first_speak();
  ::_exit(kOfBrokenJob);
}

constexpr std::chrono::seconds kLauncherPatience(60);  // with the launcher, which listens already

Result<Descriptor> reach(const std::string& name) {
  auto socket = connect_to(name, kLauncherPatience);
  const Status& why = socket.status();
  if (why.code() == Code::mismatch) {
    return error(Code::unavailable, "{}: it holds the control socket '{}'", why.message(), name);
  }
  if (why.code() == Code::unavailable && RankLink::has_come_by_itself()) {
    return error(Code::aborted, "the first rank of this host is gone");
  }
  return socket;
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
  limit_waits(socket_.get(), kLauncherPatience);
  const auto answer = receive_frame(socket_.get(), reader, given);
  limit_waits(socket_.get(), {});
  if (answer.status().code() == Code::timeout) {
    return error(Code::timeout, "{} has not begun the job within {} s",
                 has_come_by_itself() ? "the first rank of this host" : "the launcher", kLauncherPatience.count());
  }
  if (answer.status().code() == Code::aborted && has_come_by_itself()) {
    const auto launcher = check_peer(socket_.get());
    complain_of_loss(launcher.is_ok() ? launcher.value() : 0);
  }
  TUTTI_RETURN_IF_ERROR(answer.status());
  const Frame& welcome = answer.value();
  if (welcome.type == kEnd) return error(Code::aborted, "the first rank's process of this host has ended the job");
  if (welcome.type == "error") return error_from(welcome.text);
  // On further lines, what there is to say of other hosts: the job's key, and the rest. Rank 0 then gets two
  // listeners.
  const std::size_t line = std::min(welcome.text.find('\n'), welcome.text.size());
  const bool is_across = line < welcome.text.size();
  const std::string words = welcome.text.substr(0, line);
  int processes = 0;
  const bool is_read = welcome.type == "welcome" && std::sscanf(words.c_str(), "%d %d %zu %d %d", &ranks_, &processes,
                                                                &domain_bytes_, &place_.host, &place_.local) == 5;
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
    return error(Code::mismatch, "mpirun started {}, the launcher expects {}", counted(*world, "rank"), processes);
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
  static Watched watched;
  watched.socket = ::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0);
  if (const auto launcher = check_peer(socket_.get()); has_come_by_itself() && launcher.is_ok()) {
    watched.launcher = launcher.value();
  }
  if (watched.socket < 0) return error(Code::io, "cannot copy the control connection: {}", std::strerror(errno));
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
  const int failure = ::pthread_create(&thread, &attributes, die_with_launcher, &watched);
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
  TUTTI_RETURN_IF_ERROR(send_any("error", error_text(why)));
  constexpr std::chrono::milliseconds kPatience(1000);  // usually the launcher ends us within a tenth of that
  wait_readable(socket_.get(), kPatience);
  return Status();
}

void RankLink::announce(Activity activity, std::uint32_t case_index) {
  harness::announce(board().status(rank_), activity, case_index);
}

void RankLink::settle() { harness::settle(board().status(rank_)); }

}  // namespace tutti::harness::launch
