// SPDX-License-Identifier: Apache-2.0
// The messages between the launcher of a job on several hosts and its host processes. First an Invitation goes over the
// host process's stdin, which other users and the network cannot read. It has the job's key, which is in no frame. Then
// the process connects, and both ends prove that they know the key (impl/tcp/greeting.h). Then sealed frames follow
// (frame_stream.h):
//
//   host -> launcher  hello     HostHello
//                     alive     now and then: a silent host is lost
//                     failed    code and message (error_text): it cannot go on
//   launcher -> host  alive     now and then
//                     examine   a question for its examiner (examiner.h): one at most
//   host -> launcher  examined  what the examiner has printed; or
//                     unexamined  code and message: why there is no answer
//   launcher -> host  leave     end all groups and leave
//   host -> launcher  left      nothing is left here
//
// A host process serves groups of ranks, several at once. A job has one, a crew (crew.h) one after the other. These
// frames are of a group, whose number begins their text (in_group):
//
//   launcher -> host  meet      to its first host: it shall listen for the others, at this address if there is one
//   host -> launcher  meets     MeetingPlace
//   launcher -> host  payload   the group's
//                     job       HostJob
//   host -> launcher  awaits    it listens for its ranks
//                     up        rank and pid of a rank that has come
//                     from      rank, type, line break, text: a message of a rank
//                     closed    rank: its connection has ended
//                     garbage   rank, pid and what: it sent something that is no message
//                     exit      rank, pid and wait status
//                     status    a line per rank (see board.h), now and then
//                     standing  rank and RankStanding of a rank that has waited for long
//                     unable    code and message: the group cannot go on here
//   launcher -> host  recall    what did its ranks call last, and where are they?
//   host -> launcher  calls     rank and its last calls (rank_calls.h): one for each rank, before any stack
//                     stack     rank and the stacks of its process, kMostStackBytes at most: as each is read
//                     recalled  that was all
//   launcher -> host  end       kill what is left of the group
//   host -> launcher  ended     nothing of the group is left here
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/board/across.h"
#include "harness/floors.h"
#include "impl/bootstrap/control.h"
#include "impl/tcp/secret.h"
#include "impl/types/status.h"

namespace tutti::harness::hosts {

inline constexpr std::chrono::milliseconds kStatusInterval(250);
inline constexpr std::chrono::milliseconds kAliveInterval(1000);
/// An end that is alive and not stopped receives something within this time.
inline constexpr std::chrono::milliseconds kUsualSilence(1000);
/// A host process whose launcher is silent for this long ends its ranks.
inline constexpr std::chrono::seconds kLauncherSilence(10);
/// An examiner prints no more.
inline constexpr std::size_t kMostExaminedBytes = std::size_t{1} << 20;

/// The group of a job that has hosts of its own.
inline constexpr int kOnlyGroup = 0;

/// A frame of a group: the number stands before the text.
[[nodiscard]] Frame in_group(int group, const Frame& frame);
struct GroupFrame {
  int group = 0;
  Frame frame;
};
/// Whether a host sends frames of this type for a group.
[[nodiscard]] bool is_of_group(std::string_view type);
/// Back again. Errors: io that quotes a text without a number.
[[nodiscard]] Result<GroupFrame> group_frame_from(const Frame& frame);
/// The key of a group's ranks, by that of the hosts: it is in no frame.
[[nodiscard]] tcp::Secret key_of_group(const tcp::Secret& key, int group);

struct Invitation {
  std::string key;        ///< of the hosts, in digits of base 16
  std::string address;    ///< at which the launcher listens
  int host = 0;           ///< the number of this one
  std::string interface;  ///< of this host; empty: the one that the connection to the launcher has
  std::string control;    ///< at which `control_socket` listens
  /// A descriptor of this process that listens for the ranks of its host already; -1: it listens where its job says.
  int control_socket = -1;
  /// TUTTI_BACKENDS and TUTTI_TRANSPORTS for its ranks; empty: those of its own environment.
  std::string backends = {}, transports = {};
  std::vector<std::string> rails = {};  ///< further interfaces of this host, by name or network
};
/// One line.
[[nodiscard]] std::string to_line(const Invitation& invitation);
/// Errors: invalid_argument.
[[nodiscard]] Result<Invitation> invitation_from(std::string_view line);

/// A further interface of a host.
struct HostRail {
  std::string address;  ///< at which ranks of a group over this rail will listen
  std::string problem;  ///< why there is none; empty: there is
};

struct HostHello {
  std::string build;        ///< the version text
  std::string name;         ///< the host's own
  std::string kernel;       ///< the same on hosts that are one
  int cores = 1;            ///< that its ranks may use
  std::string description;  ///< describe_machine() of there, as JSON text
  std::string fingerprint;  ///< of that description
  std::string interface;    ///< at which its ranks will listen
  /// SLURM_TOPOLOGY_ADDR and SLURM_TOPOLOGY_ADDR_PATTERN of its environment; empty: Slurm has not started it.
  std::string topology_address = {}, topology_pattern = {};
  std::vector<HostRail> rails = {};  ///< as many as the invitation has
};
[[nodiscard]] std::string to_json(const HostHello& hello);
[[nodiscard]] Result<HostHello> hello_from_json(std::string_view text);

/// Where rank 0 of a group will listen, on the group's first host.
struct MeetingPlace {
  std::string exchange_address;
  std::string domain_address;
};
[[nodiscard]] std::string to_json(const MeetingPlace& place);
[[nodiscard]] Result<MeetingPlace> meeting_place_from_json(std::string_view text);

struct HostJob {
  int ranks = 1;  ///< of the whole group
  int host = 0;   ///< the number of this one, within the group
  int first = 0;  ///< rank of this host
  int here = 1;
  int started = 1;        ///< the first of those, which this process starts itself; others start the rest
  std::string control;    ///< see control_name_of
  std::string arguments;  ///< that ranks which come by themselves have to have been started with; empty: nothing
  std::size_t domain_bytes = 0;
  std::int64_t timeout_ns = 0;   ///< of an announced operation
  std::int64_t launcher_ns = 0;  ///< its clock, when this is sent
  AcrossPlace place;             ///< without the key
};
[[nodiscard]] std::string to_json(const HostJob& job);
[[nodiscard]] Result<HostJob> job_from_json(std::string_view text);

/// What a host's board shows of one rank, and what the system shows of its process.
struct RankReport {
  std::int64_t waited_ns = 0;   ///< since its announcement; 0: nothing is pending
  std::int64_t granted_ns = 0;  ///< to it, beyond the timeout
  std::uint64_t operation = 0;
  std::uint32_t case_index = 0;
  std::uint32_t activity = 0;
  char state = 'S';  ///< of its process, see ProcessInfo

  bool operator==(const RankReport&) const = default;
};
/// A line for each rank. Clocks of two hosts have nothing in common, so it has ages.
[[nodiscard]] std::string to_lines(std::span<const RankReport> reports);
/// Errors: invalid_argument that quotes the line, or has the number of lines if they are not `ranks`.
[[nodiscard]] Result<std::vector<RankReport>> reports_from_lines(std::string_view lines, int ranks);

/// A message of a group that begins with a rank: up, from, closed, standing, garbage, exit, calls or stack.
struct RankEvent {
  int rank = 0;
  std::vector<int> numbers = {};  ///< that follow it: a pid, and of exit the wait status
  std::string_view rest = {};     ///< of the text that was read
};
/// Errors: io that quotes what cannot be read; no number is below 0.
[[nodiscard]] Result<RankEvent> event_from_text(std::string_view type, std::string_view text);

}  // namespace tutti::harness::hosts
