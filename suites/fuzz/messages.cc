// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <sys/socket.h>

#include "harness/board/across.h"
#include "harness/board/rank_calls.h"
#include "harness/board/rank_standing.h"
#include "harness/doctor/host_look.h"
#include "harness/faults/trial.h"
#include "harness/gate/counters.h"
#include "harness/hosts/frame_stream.h"
#include "harness/hosts/host_talk.h"
#include "harness/launch/children.h"
#include "harness/session/session.h"
#include "harness/soak/soak.h"
#include "impl/bootstrap/control.h"
#include "impl/bootstrap/meeting.h"
#include "suites/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

constexpr std::size_t kMostOnTheWire = 65536;  // bytes that a socket takes at once

template <class T, Result<T> (*parse)(std::string_view)>
void there_and_back_as_json(std::string_view text) {
  const Result<T> value = parse(text);
  if (!value.is_ok()) return check_message(value.status());
  const std::string again = to_json(value.value());
  const Result<T> same = parse(again);
  TUTTI_ASSERT(same.is_ok() && to_json(same.value()) == again, "it is printed as {}", again);
}

/// Of what a launcher of several machines and its process on each say to each other.
void invitation(std::string_view text) {
  const auto value = harness::hosts::invitation_from(text);
  if (!value.is_ok()) return check_message(value.status());
  const std::string again = to_line(value.value());
  TUTTI_ASSERT(std::ranges::count(again, '\n') == 1 && again.ends_with('\n'), "it is more than a line: {}", again);
  TUTTI_ASSERT(to_line(harness::hosts::invitation_from(again).value()) == again, "it is printed as {}", again);
}

/// What a host reports of its ranks.
void reports(std::string_view lines) {
  const auto ranks = static_cast<int>(std::ranges::count(lines, '\n'));
  const auto read = harness::hosts::reports_from_lines(lines, ranks);
  if (!read.is_ok()) return check_message(read.status());
  const std::string again = to_lines(read.value());
  TUTTI_ASSERT(harness::hosts::reports_from_lines(again, ranks).value() == read.value(), "as {}", again);
}

/// What a host tells of the last calls of a rank.
void calls(std::string_view lines) {
  const auto read = harness::board::calls_from_lines(lines);
  if (!read.is_ok()) return check_message(read.status());
  const std::string again = harness::board::call_lines(read.value());
  TUTTI_ASSERT(harness::board::call_lines(harness::board::calls_from_lines(again).value()) == again, "as {}", again);
}

/// What a host forwards of a rank.
void event(std::string_view text) {
  for (const char* const type : {"up", "from", "closed", "standing", "garbage", "exit", "calls", "stack"}) {
    const auto read = harness::hosts::event_from_text(type, text);
    if (!read.is_ok()) check_message(read.status());
  }
}

/// The last words of a rank, or of a process of a meeting.
void last_words(std::string_view words) {
  const Status status = error_from(std::string(words));
  TUTTI_ASSERT(!status.is_ok(), "an error that is none");
  TUTTI_ASSERT(error_text(error_from(error_text(status))) == error_text(status), "as {}", error_text(status));
}

/// What mpirun prints as it ends.
void command(std::string_view log) {
  static_cast<void>(harness::launch::parse_command_verdict(std::string(log)));
  const auto ends = harness::launch::parse_command_ends(std::string(log));
  TUTTI_ASSERT(ends.size() <= log.size(), "{} ranks have ended", ends.size());
}

void costs(std::string_view text) {
  static_cast<void>(harness::reasons_from_json(text));
  const harness::CountersByCell counters = harness::counters_from_json(text);
  TUTTI_ASSERT(to_json(harness::counters_from_json(to_json(counters))) == to_json(counters), "{}", to_json(counters));
}

struct Kind {
  std::string_view type;
  void (*read)(std::string_view);
};
constexpr std::array kKinds{
    Kind{"session", there_and_back_as_json<harness::SessionSpec, harness::session_from_json>},
    Kind{"trial", there_and_back_as_json<harness::TrialResult, harness::trial_from_json>},
    Kind{"soak", there_and_back_as_json<harness::SoakResult, harness::soak_from_json>},
    Kind{"costs", costs},
    Kind{"invitation", invitation},
    Kind{"hello", there_and_back_as_json<harness::hosts::HostHello, harness::hosts::hello_from_json>},
    Kind{"meets", there_and_back_as_json<harness::hosts::MeetingPlace, harness::hosts::meeting_place_from_json>},
    Kind{"job", there_and_back_as_json<harness::hosts::HostJob, harness::hosts::job_from_json>},
    Kind{"failed", last_words},
    Kind{"reports", reports},
    Kind{"event", event},
    Kind{"calls", calls},
    Kind{"standing", there_and_back_as_json<harness::board::RankStanding, harness::board::standing_from_json>},
    Kind{"across", there_and_back_as_json<harness::board::AcrossPlace, harness::board::across_from_json>},
    Kind{"progress", there_and_back_as_json<harness::SoakProgress, harness::soak_progress_from_json>},
    Kind{"look", there_and_back_as_json<harness::doctor::HostLook, harness::doctor::look_from_json>},
    Kind{"reaches", there_and_back_as_json<std::vector<harness::doctor::Reach>, harness::doctor::reaches_from_json>},
    Kind{"error", last_words},
    Kind{"command", command},
};

/// However the bytes come, the frames are the same.
std::vector<Frame> frames_of(std::string_view bytes, std::size_t at_once) {
  FrameReader reader;
  std::vector<Frame> frames;
  for (std::size_t at = 0; at < bytes.size(); at += at_once) {
    reader.append(bytes.substr(at, at_once));
    for (;;) {
      const auto next = reader.next();
      if (!next.is_ok()) {
        check_message(next.status());
        return frames;
      }
      if (!next.value()) break;
      frames.push_back(*next.value());
    }
  }
  return frames;
}

struct Wire {
  Descriptor one, other;
};
Wire wire() {
  std::array<int, 2> ends{};
  TUTTI_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0, "no sockets");
  return {.one = Descriptor(ends[0]), .other = Descriptor(ends[1])};
}

/// The same over a connection between machines, which ends with them.
std::vector<Frame> frames_over_a_stream(const std::vector<Frame>& frames) {
  Wire ends = wire();
  harness::hosts::FrameStream from(std::move(ends.one), {}), to(std::move(ends.other), {});
  std::vector<Frame> come;
  for (const Frame& frame : frames) from.send(frame);
  while (to.is_open()) {
    from.go_on();
    if (from.has_sent_all()) from.close();
    to.receive();
    for (;;) {
      const auto next = to.next();
      TUTTI_ASSERT(next.is_ok(), "{}", next.status().message());
      if (!next.value()) break;
      come.push_back(*next.value());
    }
  }
  return come;
}

/// A sealed message is one frame, or an error.
void frame_in_a_message(std::string_view text, const std::vector<Frame>& frames) {
  Wire ends = wire();
  tcp::SealedStream from(std::move(ends.one), {});
  harness::hosts::FrameStream to(std::move(ends.other), {});
  from.send(text);
  to.receive();
  const auto next = to.next();
  if (!next.is_ok()) return check_message(next.status());
  TUTTI_ASSERT(next.value() && frames.size() == 1 && encode(*next.value()) == text, "it is no frame");
}

void check_same(const std::vector<Frame>& some, const std::vector<Frame>& others) {
  TUTTI_ASSERT(some.size() == others.size(), "{} frames, and {}", some.size(), others.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    TUTTI_ASSERT(some[i].type == others[i].type && some[i].text == others[i].text, "frame {} differs", i);
  }
}

}  // namespace

void messages(std::string_view input) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  const std::string_view type = input.substr(0, end);
  const std::string_view text = input.substr(std::min(end + 1, input.size()));
  for (const Kind& kind : kKinds) {
    if (kind.type == type) kind.read(text);
  }
  if (type != "frames") return;
  const auto whole = frames_of(text, std::max<std::size_t>(text.size(), 1));
  check_same(whole, frames_of(text, 7));
  check_same(whole, frames_over_a_stream(whole));
  if (text.size() < kMostOnTheWire) frame_in_a_message(text, whole);
}

}  // namespace tutti::fuzz
