// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "harness/faults/trial.h"
#include "harness/gate/counters.h"
#include "harness/session/session.h"
#include "harness/soak/soak.h"
#include "impl/bootstrap/control.h"
#include "suites/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

template <class T, Result<T> (*parse)(std::string_view)>
void there_and_back_as_json(std::string_view text) {
  const Result<T> value = parse(text);
  if (!value.is_ok()) return check_message(value.status());
  const std::string again = to_json(value.value());
  const Result<T> same = parse(again);
  TUTTI_ASSERT(same.is_ok() && to_json(same.value()) == again, "it is printed as {}", again);
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
  const auto in_pieces = frames_of(text, 7);
  TUTTI_ASSERT(whole.size() == in_pieces.size(), "{} frames, in pieces {}", whole.size(), in_pieces.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    TUTTI_ASSERT(whole[i].type == in_pieces[i].type && whole[i].text == in_pieces[i].text, "frame {} differs", i);
  }
}

}  // namespace tutti::fuzz
