// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/joined_hosts.h"

#include <algorithm>
#include <cstdlib>
#include <poll.h>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/hosts/meeting_file.h"
#include "harness/process/waits.h"
#include "harness/text/json_reader.h"
#include "harness/text/streams.h"
#include "impl/tcp/interface.h"
#include "impl/tcp/meeting.h"
#include "impl/types/host_name.h"
#include "impl/types/names.h"

namespace tutti::harness::hosts {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostArguments = 400;  // bytes that are shown; a hash stands for all
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
    Card card{.host = plain_host_name(all.at("host").get<std::string>()),
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

/// The host of an address with its port; empty if it is none.
std::string host_in(const std::string& address) {
  const auto place = parse_host_and_port(address);
  return place.is_ok() ? place.value().host : "";
}

bool is_named_as_loopback(const std::string& host) { return tcp::is_loopback(host) || host.starts_with("localhost"); }

/// Whether a name is this machine's own: "node1", or "node1.example.org" where it calls itself "node1".
bool is_own_name(const std::string& name) {
  const std::string own = tcp::hostname();
  return name == own || name.starts_with(own + ".") || own.starts_with(name + ".");
}

/// A file of names that was copied from the first host says of that one's name that it is this machine.
Status name_of_another(const HostsMeeting& meeting, const std::string& name, const std::string& address) {
  return error(
      Code::unavailable,
      "{} says that rank 0 is at '{}', and on this host, '{}', that name is the loopback address {}: this host "
      "would look for rank 0 on itself; name an address at which rank 0's host is reached, or give the name "
      "that address in /etc/hosts here",
      meeting.init.said_by, name, tcp::hostname(), address);
}

/// The address of process 0's host, by the name that it has. Systems give a machine's own name a loopback address, at
/// which no other host comes: then it is the machine's other address. Errors: unavailable, where it has several, and
/// where the name is of another host.
Result<std::string> address_by_name(const HostsMeeting& meeting, const std::string& name) {
  TUTTI_ASSIGN_OR_RETURN(std::string address, tcp::address_of_host(name));
  if (!tcp::is_loopback(address) || is_named_as_loopback(name)) return address;
  const bool is_of_another = meeting.init.file.empty() && meeting.world.first_here() > 0 && !is_own_name(name);
  if (is_of_another) return name_of_another(meeting, name, address);
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
bool has_listener_at(const std::string& address, Clock::time_point end) {
  const auto socket = tcp::connect_to(address);
  if (!socket.is_ok()) return false;
  const auto most = std::min<Clock::duration>(kPatienceWithConnection, end - Clock::now());
  pollfd one{.fd = socket.value().get(), .events = POLLOUT, .revents = 0};
  ::poll(&one, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(most).count()));
  return one.revents != 0 && tcp::error_of(socket.value().get()) == 0;
}

std::chrono::nanoseconds left_until(Clock::time_point end) {
  return std::max<std::chrono::nanoseconds>(end - Clock::now(), kBetweenLooks);
}

/// At once, on the stderr of this process.
void tell(const HostsMeeting& meeting, std::string_view what) {
  to_stderr(fmt::format("tutti: rank {}: {}\n", meeting.world.process, what));
}

/// Where process 0 listens, as it has written into a file. What a former job has left there says nothing.
class Search {
 public:
  Search(const HostsMeeting& meeting, const MeetingFile& file, Clock::time_point end)
      : meeting_(meeting), file_(file), end_(end) {}

  /// An address at which a process listens. Errors: timeout; unavailable where the file is of another user to the end.
  Result<std::string> next() {
    std::string address;
    Status why;
    const auto is_there = [&] {
      auto read = file_.read();
      why = read.status();
      if (!why.is_ok()) return tell(why);
      address = std::move(read).value();
      return !address.empty() && (has_listener_at(address, end_) || tell(no_listener_at(address)));
    };
    if (nap_until(end_ - Clock::now(), is_there, kBetweenLooks)) return address;
    const double seconds = std::chrono::duration<double>(meeting_.timeout).count();
    if (told_.empty())
      return error(Code::timeout, "--init: rank 0 has not written '{}' within {:.0f} s", meeting_.init.file, seconds);
    return Status(why.is_ok() ? Code::timeout : why.code(),
                  fmt::format("{}; rank 0 has written no other within {:.0f} s", told_, seconds));
  }

  /// It was tried in vain.
  void dismiss(const Status& why) {
    if (why.code() == Code::unavailable)
      tell(error(why.code(), "--init: what '{}' says is of another job: {}", meeting_.init.file, why.message()));
    std::this_thread::sleep_for(kBetweenLooks);
  }

 private:
  [[nodiscard]] Status no_listener_at(const std::string& address) const {
    const char* const why = tcp::is_loopback(host_in(address))
                                ? " on this host: rank 0 needs an address that other hosts reach, by --interface or "
                                  "TUTTI_INTERFACE, unless a former job has left it"
                                : ", so a former job has left it";
    return error(Code::timeout, "--init: '{}' says that rank 0 listens at {}, where no process listens{}",
                 meeting_.init.file, shown(address), why);
  }
  /// At once, and once. Each host's first process tells it itself: process 0, which tells all else, may never come.
  bool tell(const Status& what) {
    if (std::exchange(told_, what.message()) == what.message() || meeting_.world.local_process > 0) return false;
    hosts::tell(meeting_, fmt::format("{}; waiting for that of this job", what.message()));
    return false;
  }

  const HostsMeeting& meeting_;
  const MeetingFile& file_;
  Clock::time_point end_;
  std::string told_;
};

/// The meeting, in a process that is not the first; `interface`: at which its host is reached.
Result<std::vector<std::string>> meet_first(const HostsMeeting& meeting, const MeetingFile& file, Clock::time_point end,
                                            tcp::MeetingRequest& request, std::string& interface) {
  if (meeting.init.file.empty()) {
    TUTTI_ASSIGN_OR_RETURN(const std::string host, address_by_name(meeting, meeting.init.host));
    request.address = tcp::with_port(host, meeting.init.port);
    TUTTI_ASSIGN_OR_RETURN(interface, own_interface(meeting, request.address));
    return tcp::meet(request);
  }
  request.knocks_once = true;
  for (Search search(meeting, file, end);;) {
    TUTTI_ASSIGN_OR_RETURN(request.address, search.next());
    TUTTI_ASSIGN_OR_RETURN(interface, own_interface(meeting, request.address));
    request.timeout = left_until(end);
    auto met = tcp::meet(request);
    const bool looks_again = met.status().code() == Code::unavailable || met.status().code() == Code::timeout;
    if (!looks_again || Clock::now() > end) return met;
    search.dismiss(met.status());
  }
}

/// Whether a process was started as the first was. Errors: mismatch.
Status check_like(const Card& card, const Card& first, const std::string& who) {
  const auto differs = [&](const char* what, const auto& its, const auto& other) {
    return error(Code::mismatch, "{} {} '{}', rank 0 on {} '{}'", who, what, its, first.host, other);
  };
  if (card.build != first.build) return differs("has the build", card.build, first.build);
  if (card.processes != first.processes) return differs("knows of ranks", card.processes, first.processes);
  if (card.hash != first.hash) return differs("was started with", shown(card.arguments), shown(first.arguments));
  return {};
}

/// The hosts that all cards together say. Errors: mismatch.
Result<std::vector<JoinedHost>> hosts_of(const std::vector<Card>& cards) {
  std::vector<JoinedHost> hosts;
  for (int rank = 0; rank < static_cast<int>(cards.size()); ++rank) {
    const Card& card = cards[static_cast<std::size_t>(rank)];
    TUTTI_RETURN_IF_ERROR(check_like(card, cards.front(), fmt::format("rank {} on {}", rank, card.host)));
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

std::vector<NamedHost> JoinedHosts::named() const {
  std::vector<NamedHost> hosts;
  for (const JoinedHost& host : all) hosts.push_back({.name = host.name, .slots = host.ranks});
  return hosts;
}

Result<HostsMeeting> by_environment(HostsMeeting meeting) {
  const Environment environment = environment_here();
  if (meeting.interface.empty()) {
    TUTTI_ASSIGN_OR_RETURN(meeting.interface, interface_from(environment));
  }
  TUTTI_ASSIGN_OR_RETURN(meeting.init, init_from("", environment));
  TUTTI_ASSIGN_OR_RETURN(meeting.secret, job_secret_from(environment));
  meeting.start = hash_of_start(meeting.world, environment);
  return meeting;
}

Result<JoinedHosts> meet_hosts(const HostsMeeting& meeting) {
  const auto end = Clock::now() + meeting.timeout;
  const World& world = meeting.world;
  JoinedHosts joined;
  tcp::Listener listener;
  MeetingFile file(meeting.init.file);
  std::string id;
  if (world.process == 0) {
    TUTTI_ASSIGN_OR_RETURN(const tcp::Nonce drawn, tcp::draw_nonce());
    id = tcp::to_text({.bytes = drawn});
    TUTTI_ASSIGN_OR_RETURN(joined.interface, own_interface(meeting));
    TUTTI_ASSIGN_OR_RETURN(listener, listen_as_first(meeting, joined.interface));
    TUTTI_ASSIGN_OR_RETURN(joined.listener, tcp::listen_on(joined.interface));
    joined.launcher = joined.listener.address;
    if (!meeting.init.file.empty()) TUTTI_RETURN_IF_ERROR(file.write(listener.address));
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
  tcp::MeetingRequest request{.key = meeting.secret,
                              .role = tcp::Role::meeting_of_hosts,
                              .job = meeting.start,
                              .process = world.process,
                              .processes = world.processes,
                              .text = text_of(card),
                              .address = listener.address,
                              .listener = listener.socket.get(),
                              .timeout = left_until(end),
                              .on_news = [&](std::string_view what) { tell(meeting, what); }};
  const auto lines =
      world.process == 0 ? tcp::meet(request) : meet_first(meeting, file, end, request, joined.interface);
  if (!lines.is_ok()) return lines.status();
  std::vector<Card> cards;
  for (std::size_t rank = 0; rank < lines.value().size(); ++rank) {
    auto one = card_from_json(lines.value()[rank]);
    if (!one.is_ok()) return error(Code::mismatch, "rank {}: {}", rank, one.status().message());
    cards.push_back(std::move(one).value());
  }
  if (const Status own = check_like(card, cards.front(), "this process"); !own.is_ok())
    return Status(Code::unavailable, own.message());
  TUTTI_ASSIGN_OR_RETURN(joined.all, hosts_of(cards));
  joined.own =
      static_cast<int>(std::ranges::find(joined.all, world.first_here(), &JoinedHost::first) - joined.all.begin());
  joined.launcher = cards.front().launcher;
  TUTTI_ASSIGN_OR_RETURN(const tcp::Secret drawn, tcp::secret_from(cards.front().id));
  joined.key = tcp::key_of_job(meeting.secret, drawn.bytes);
  return joined;
}

}  // namespace tutti::harness::hosts
