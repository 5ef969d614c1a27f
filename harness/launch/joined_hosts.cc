// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/joined_hosts.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sstream>
#include <unistd.h>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/launch/waits.h"
#include "harness/text/json_reader.h"
#include "harness/text/streams.h"
#include "impl/tcp/interface.h"
#include "impl/tcp/meeting.h"
#include "impl/types/names.h"

namespace tutti::harness::launch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostArguments = 400;  // bytes that are shown; a hash stands for all
constexpr char kBeforeFirsts = '@';
constexpr auto kBetweenLooks = std::chrono::milliseconds(50);
constexpr auto kPatienceWithConnection = std::chrono::seconds(1);

/// What a process tells the others of itself.
struct Card {
  std::string host;
  int first = 0;  ///< of its host
  int here = 1;
  int processes = 1;
  std::string build;
  std::string arguments;  ///< their beginning
  std::size_t hash = 0;
  std::string launcher;  ///< of process 0
  std::string id;        ///< of the job: process 0 draws it
};

std::string text_of(const Card& card) {
  return nlohmann::json{{"host", card.host},           {"first", card.first},       {"here", card.here},
                        {"processes", card.processes}, {"build", card.build},       {"arguments", card.arguments},
                        {"hash", card.hash},           {"launcher", card.launcher}, {"id", card.id}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Card> card_from_json(std::string_view text) {
  return read_json(Code::mismatch, "what it says of itself", text, [](const nlohmann::json& all) -> Result<Card> {
    Card card{.host = all.at("host"),
              .build = all.at("build"),
              .arguments = all.at("arguments"),
              .launcher = all.at("launcher"),
              .id = all.at("id")};
    if (!all.at("hash").is_number_unsigned()) return error(Code::mismatch, "'hash' is no whole number");
    all.at("hash").get_to(card.hash);
    TUTTI_RETURN_IF_ERROR(read_number(all, "first", card.first, 0));
    TUTTI_RETURN_IF_ERROR(read_number(all, "here", card.here, 1));
    TUTTI_RETURN_IF_ERROR(read_number(all, "processes", card.processes, 1));
    return card;
  });
}

/// Process 0 tells where it listens.
class MeetingFile {
 public:
  explicit MeetingFile(std::string path) : path_(std::move(path)) {}
  ~MeetingFile() {
    if (is_written_) ::unlink(path_.c_str());
  }
  MeetingFile(const MeetingFile&) = delete;
  MeetingFile& operator=(const MeetingFile&) = delete;

  Status write(const std::string& address) {
    const std::string aside = fmt::format("{}.{}", path_, ::getpid());
    const Descriptor file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    const std::string line = address + "\n";
    const bool is_there =
        file.is_open() && ::write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
    if (!is_there || std::rename(aside.c_str(), path_.c_str()) != 0) {
      return error(Code::io, "--init: cannot write '{}': {}", path_, std::strerror(errno));
    }
    is_written_ = true;
    return {};
  }

 private:
  std::string path_;
  bool is_written_ = false;
};

/// Empty until the file is there, whole.
std::string address_in(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) && !file.eof() ? line : "";
}

/// Of an address with its port.
std::string host_in(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

bool is_named_as_loopback(const std::string& host) { return tcp::is_loopback(host) || host.starts_with("localhost"); }

/// Of process 0's host, by the name that it has. Systems give a machine's own name a loopback address, at which no
/// other host comes: then it is the machine's other address. Errors: unavailable, where it has several too.
Result<std::string> address_by_name(const HostsMeeting& meeting, const std::string& name) {
  TUTTI_ASSIGN_OR_RETURN(std::string address, tcp::address_of_host(name));
  if (!tcp::is_loopback(address) || is_named_as_loopback(name)) return address;
  if (!meeting.interface.empty()) return tcp::address_of_interface(meeting.interface);
  const std::vector<tcp::OwnAddress> others = tcp::addresses_for_others();
  if (others.empty()) return address;
  if (others.size() == 1) return others.front().address;
  std::vector<std::string> names;
  for (const tcp::OwnAddress& one : others) names.push_back(fmt::format("{} ({})", one.interface, one.address));
  return error(Code::unavailable,
               "'{}' is {} here, where no other host comes, and this machine has several addresses: name one by "
               "--interface or TUTTI_INTERFACE; there are: {}",
               name, address, fmt::join(names, ", "));
}

/// At which this process's host is reached; `first`: where process 0 listens, for all others.
Result<std::string> own_interface(const HostsMeeting& meeting, const std::string& first = "") {
  if (!meeting.interface.empty()) return tcp::address_of_interface(meeting.interface);
  if (meeting.world.process > 0) return tcp::address_towards(host_in(first));
  return address_by_name(meeting, meeting.init.file.empty() ? meeting.init.host : tcp::hostname());
}

/// Where process 0 listens. It has to be one of its own addresses.
Result<tcp::Listener> listen_as_first(const HostsMeeting& meeting, const std::string& interface) {
  const auto own = tcp::address_of_interface(interface);
  if (!own.is_ok()) {
    return error(Code::unavailable, "{} says that rank 0 is at '{}': {}", meeting.init.said_by, meeting.init.host,
                 own.status().message());
  }
  auto listener = tcp::listen_on(own.value(), meeting.init.port);
  if (listener.is_ok() || meeting.init.port == 0) return listener;
  return error(Code::unavailable,
               "{}: {}; another job may be there: name another port, by TUTTI_PORT or --init tcp://HOST:PORT",
               meeting.init.said_by, listener.status().message());
}

/// Whether a connection can be made to it: not where the address is of a process that is gone.
bool is_somebody_at(const std::string& address, Clock::time_point end) {
  const auto socket = tcp::connect_to(address);
  if (!socket.is_ok()) return false;
  const auto most = std::min<Clock::duration>(kPatienceWithConnection, end - Clock::now());
  pollfd one{.fd = socket.value().get(), .events = POLLOUT, .revents = 0};
  ::poll(&one, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(most).count()));
  return one.revents != 0 && tcp::error_of(socket.value().get()) == 0;
}

/// What process 0 has written. A file that a former job has left is told at once, and says nothing. Each host's first
/// process tells it itself: process 0, which tells all else, may never come.
Result<std::string> address_in_file(const HostsMeeting& meeting, Clock::time_point end) {
  const std::string& path = meeting.init.file;
  const auto tell = [&](const std::string& what) {
    if (meeting.world.local_process == 0) to_stderr(fmt::format("tutti: rank {}: {}\n", meeting.world.process, what));
  };
  std::string address, left;
  const auto is_there = [&] {
    address = address_in(path);
    if (address.empty()) return false;
    if (is_somebody_at(address, end)) return true;
    if (left.empty()) {
      const char* const why = tcp::is_loopback(host_in(address))
                                  ? " on this host: rank 0 needs an address that other hosts reach, by --interface or "
                                    "TUTTI_INTERFACE, unless a former job has left it"
                                  : ", so a former job has left it";
      left = fmt::format("--init: '{}' says that rank 0 listens at {}, where nobody is{}", path, shown(address), why);
      tell(left + "; waiting for that of this job");
    }
    return false;
  };
  if (nap_until(end - Clock::now(), is_there, kBetweenLooks)) return address;
  const double seconds = std::chrono::duration<double>(meeting.timeout).count();
  const Status late = left.empty()
                          ? error(Code::timeout, "--init: rank 0 has not written '{}' within {:.0f} s", path, seconds)
                          : error(Code::timeout, "{}; rank 0 has written no other within {:.0f} s", left, seconds);
  tell(std::string(late.message()));
  return late;
}

/// Where process 0 listens, once it is known.
Result<std::string> address_of_first(const HostsMeeting& meeting, Clock::time_point end) {
  if (meeting.init.file.empty()) {
    TUTTI_ASSIGN_OR_RETURN(const std::string host, address_by_name(meeting, meeting.init.host));
    return tcp::with_port(host, meeting.init.port);
  }
  return address_in_file(meeting, end);
}

/// The hosts that all cards together say. Errors: mismatch.
Result<std::vector<JoinedHost>> hosts_of(const std::vector<Card>& cards) {
  std::vector<JoinedHost> hosts;
  for (int rank = 0; rank < static_cast<int>(cards.size()); ++rank) {
    const Card& card = cards[static_cast<std::size_t>(rank)];
    const Card& first = cards.front();
    const auto differs = [&](const char* what, const auto& its, const auto& other) {
      return error(Code::mismatch, "rank {} on {} {} '{}', rank 0 on {} '{}'", rank, card.host, what, its, first.host,
                   other);
    };
    if (card.build != first.build) return differs("has the build", card.build, first.build);
    if (card.processes != first.processes) return differs("knows of ranks", card.processes, first.processes);
    if (card.hash != first.hash) return differs("was started with", shown(card.arguments), shown(first.arguments));
    const bool begins = hosts.empty() || rank == hosts.back().first + hosts.back().ranks;
    if (begins) hosts.push_back({.name = card.host, .first = rank, .ranks = card.here});
    if (card.first != hosts.back().first || card.here != hosts.back().ranks) {
      return error(
          Code::mismatch,
          "rank {} on {} says that its host has ranks {} to {}, and rank {} that those are {} to {}: ranks have "
          "to be numbered by hosts (mpirun --map-by slot, srun --distribution=block)",
          rank, card.host, card.first, card.first + card.here - 1, hosts.back().first, hosts.back().first,
          hosts.back().first + hosts.back().ranks - 1);
    }
  }
  // Several hosts of one name are on one machine, or their administrator named them alike.
  std::vector<std::string> names;
  for (JoinedHost& host : hosts) {
    std::string name = host.name;
    for (int i = 1; std::ranges::find(names, name) != names.end(); ++i) name = fmt::format("{}-{}", host.name, i);
    names.push_back(host.name = std::move(name));
  }
  return hosts;
}

}  // namespace

std::string control_name_of(const std::string& job, int first) { return fmt::format("{}-first{}", job, first); }

std::string control_text_of(const std::string& job, std::span<const int> firsts) {
  return fmt::format("{}{}{}", job, kBeforeFirsts, fmt::join(firsts, ","));
}

std::string control_name_in(const std::string& text, int rank) {
  const std::size_t at = text.rfind(kBeforeFirsts);
  if (at == std::string::npos) return text;
  int own = 0;
  std::istringstream firsts(text.substr(at + 1));
  for (std::string first; std::getline(firsts, first, ',');) {
    if (const int number = std::atoi(first.c_str()); number <= rank) own = number;
  }
  return control_name_of(text.substr(0, at), own);
}

Result<JoinedHosts> meet_hosts(const HostsMeeting& meeting) {
  const auto end = Clock::now() + meeting.timeout;
  const World& world = meeting.world;
  JoinedHosts joined;
  tcp::Listener listener;
  MeetingFile file(meeting.init.file);
  std::string address, id;
  if (world.process == 0) {
    TUTTI_ASSIGN_OR_RETURN(const tcp::Nonce drawn, tcp::draw_nonce());
    id = tcp::to_text({.bytes = drawn});
    TUTTI_ASSIGN_OR_RETURN(joined.interface, own_interface(meeting));
    TUTTI_ASSIGN_OR_RETURN(listener, listen_as_first(meeting, joined.interface));
    TUTTI_ASSIGN_OR_RETURN(joined.listener, tcp::listen_on(joined.interface));
    joined.launcher = joined.listener.address;
    address = listener.address;
    if (!meeting.init.file.empty()) TUTTI_RETURN_IF_ERROR(file.write(address));
  } else {
    TUTTI_ASSIGN_OR_RETURN(address, address_of_first(meeting, end));
    TUTTI_ASSIGN_OR_RETURN(joined.interface, own_interface(meeting, address));
  }
  const Card card{.host = tcp::hostname(),
                  .first = world.first_here(),
                  .here = world.local_processes,
                  .processes = world.processes,
                  .build = meeting.build,
                  .arguments = meeting.arguments.substr(0, kMostArguments),
                  .hash = std::hash<std::string>()(meeting.arguments),
                  .launcher = joined.launcher,
                  .id = id};
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                         tcp::meet({.key = meeting.secret,
                                    .role = tcp::Role::meeting_of_hosts,
                                    .job = meeting.start,
                                    .process = world.process,
                                    .processes = world.processes,
                                    .text = text_of(card),
                                    .address = address,
                                    .listener = listener.socket.get(),
                                    .timeout = std::max<std::chrono::nanoseconds>(end - Clock::now(), kBetweenLooks)}));
  std::vector<Card> cards;
  for (std::size_t rank = 0; rank < lines.size(); ++rank) {
    auto one = card_from_json(lines[rank]);
    if (!one.is_ok()) return error(Code::mismatch, "rank {}: {}", rank, one.status().message());
    cards.push_back(std::move(one).value());
  }
  TUTTI_ASSIGN_OR_RETURN(joined.all, hosts_of(cards));
  joined.launcher = cards.front().launcher;
  TUTTI_ASSIGN_OR_RETURN(const tcp::Secret drawn, tcp::secret_from(cards.front().id));
  joined.key = tcp::key_of_job(meeting.secret, drawn.bytes);
  return joined;
}

}  // namespace tutti::harness::launch
