// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/diagnosis.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace tutti {
namespace {

constexpr std::size_t kMostLines = 16;
constexpr int kJournalTries = 4;

/// What can be known of a rank's calls. Nothing is allocated: a rank that is late for long may look at another between
/// operations whose allocations are counted.
struct Calls {
  std::array<CallNote, Journal::kNotes> remembered;
  std::size_t noted = 0;
  std::uint64_t started = 0;   ///< operations
  std::uint64_t finished = 0;  ///< that are known to be complete
  Standing standing;
  bool has_left = false;

  /// By first operation.
  [[nodiscard]] std::span<const CallNote> notes() const { return std::span(remembered).first(noted); }
  /// The call that operation `number` belongs to, where it was started and is remembered; else nullptr.
  [[nodiscard]] const CallNote* call(std::uint64_t number) const {
    if (number == 0 || number > started) return nullptr;
    const auto after = std::ranges::upper_bound(notes(), number, {}, &CallNote::first);
    return after == notes().begin() ? nullptr : &*std::prev(after);
  }
  [[nodiscard]] bool waits_in_operation() const { return !has_left && standing.operation > finished; }
  [[nodiscard]] bool waits_for_transfer() const {
    return !has_left && (standing.wait == Wait::receive || standing.wait == Wait::send);
  }
};

/// Whether a rank can have written this: one that runs wild may leave anything in its journal.
bool is_possible(const CallNote& note) {
  if (static_cast<std::size_t>(note.collective) >= every_collective().size()) return false;
  const bool has_count = has_counts(note.collective) || (note.count >= 0 && note.count <= kMostCallCount);
  return has_count && size_of(note.dtype) > 0 && note.algorithm.back() == '\0';
}
bool is_possible(const Standing& standing, int ranks) {
  return size_of(standing.dtype) > 0 && standing.peer >= -1 && standing.peer < ranks;
}

/// False where the rank goes on meanwhile, or a note cannot be; nothing is then remembered.
bool read_notes(const Journal& journal, Calls& calls) {
  const std::uint64_t written = journal.notes.load(std::memory_order_seq_cst);
  std::size_t read = 0;
  for (std::uint64_t i = written > Journal::kNotes ? written - Journal::kNotes : 0; i < written; ++i) {
    const std::optional<CallNote> note = journal.calls[i % Journal::kNotes].read();
    if (!note || !is_possible(*note)) return false;
    calls.remembered[read++] = *note;
  }
  // The next one may be on its way to the place of the oldest.
  const bool holds = journal.notes.load(std::memory_order_acquire) == written &&
                     std::ranges::is_sorted(std::span(calls.remembered).first(read), {}, &CallNote::first);
  if (holds) calls.noted = read;
  return holds;
}

/// Operations leave their number in a flag or in the completion line, whichever their plan needs.
std::uint64_t started_by(const Domain& domain, const Seat& seat, const Calls& calls) {
  std::uint64_t started = std::max(calls.finished, calls.standing.operation);
  for (int i = 0; i < domain.shape().generations; ++i) {
    started = std::max(started, seat.lines[i].flag.load(std::memory_order_acquire) >> 16U);
  }
  return started;
}

bool is_known(const Domain& domain, int rank) { return domain.seat(rank).journal != nullptr; }

Calls calls_of(const Domain& domain, int rank) {
  const Seat seat = domain.seat(rank);
  const Journal& journal = *seat.journal;
  Calls calls;
  calls.has_left = journal.has_left.load(std::memory_order_acquire) != 0;
  calls.standing = journal.standing.read().value_or(Standing());
  if (!is_possible(calls.standing, domain.shape().ranks)) calls.standing = {};
  calls.finished = std::max({journal.finished.load(std::memory_order_acquire),
                             seat.completion->operation.load(std::memory_order_acquire), calls.standing.finished});
  // Before the notes: those of all operations that this counts are then there to be read.
  calls.started = started_by(domain, seat, calls);
  for (int i = 0; i < kJournalTries && !read_notes(journal, calls); ++i) {
  }
  if (calls.noted > 0) calls.started = std::max(calls.started, calls.notes().back().first);
  return calls;
}

/// Bytes of every block, as the rank's v call at `first` has them; empty where they are not known any more.
std::vector<std::int64_t> counts_of(const Domain& domain, int rank, std::uint64_t first) {
  const Journal& journal = *domain.seat(rank).journal;
  std::vector<std::int64_t> bytes;
  if (journal.counted.load(std::memory_order_acquire) != first) return bytes;
  for (int block = 0; block < domain.shape().ranks; ++block) {
    bytes.push_back(journal.counts()[block].load(std::memory_order_acquire));
  }
  if (journal.counted.load(std::memory_order_relaxed) != first) bytes.clear();
  return bytes;
}

std::string_view name_of_algorithm(const CallNote& note) { return note.algorithm.data(); }
std::string_view placement_of(const CallNote& note) { return note.is_in_place ? "in place" : "out of place"; }
std::string_view buffers_of(const CallNote& note) { return note.has_shared_buffers ? "shared" : "private"; }

/// "root 0 and 1, count 8 and 16".
class Differences {
 public:
  template <class Value>
  void add(std::string_view field, const Value& mine, const Value& theirs) {
    if (mine == theirs) return;
    text_ += fmt::format("{}{} {} and {}", text_.empty() ? "" : ", ", field, mine, theirs);
  }
  /// Where something differs in a field whose values are not known any more.
  void add_unknown(std::string_view field) {
    text_ += fmt::format("{}{}, not known any more", text_.empty() ? "" : ", ", field);
  }
  [[nodiscard]] bool is_empty() const { return text_.empty(); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

struct Pair {
  const Domain& domain;
  int rank, other;
  std::string mine, theirs;  ///< their names
};

/// The first block whose length is another.
void add_counts(const Pair& pair, const CallNote& mine, const CallNote& theirs, Differences& differences) {
  const auto all = counts_of(pair.domain, pair.rank, mine.first);
  const auto others = counts_of(pair.domain, pair.other, theirs.first);
  const auto [here, there] = std::ranges::mismatch(all, others);
  if (here == all.end() || there == others.end()) return;
  const auto element = static_cast<std::int64_t>(size_of(mine.dtype));
  differences.add(fmt::format("counts[{}]", here - all.begin()), *here / element, *there / element);
}

Differences differences_of(const Pair& pair, const CallNote& mine, const CallNote& theirs) {
  Differences found;
  const auto both = [&](bool (*has)(Collective)) { return has(mine.collective) && has(theirs.collective); };
  found.add("collective", to_string(mine.collective), to_string(theirs.collective));
  if (both(is_rooted)) found.add("root", mine.root, theirs.root);
  if (both(has_data)) {
    const bool have_counts = both(has_counts);
    if (!has_counts(mine.collective) && !has_counts(theirs.collective)) found.add("count", mine.count, theirs.count);
    found.add("dtype", to_string(mine.dtype), to_string(theirs.dtype));
    if (have_counts && mine.dtype == theirs.dtype) add_counts(pair, mine, theirs, found);
  }
  if (both(is_reducing)) found.add("op", to_string(mine.op), to_string(theirs.op));
  if (mine.has_placement && theirs.has_placement) found.add("placement", placement_of(mine), placement_of(theirs));
  found.add("buffers", buffers_of(mine), buffers_of(theirs));
  if (!found.is_empty()) return found;  // the rest follows from it, where nobody chose it
  found.add("algorithm", name_of_algorithm(mine), name_of_algorithm(theirs));
  found.add("bytes per segment", mine.segment_bytes, theirs.segment_bytes);
  if (found.is_empty() && both(has_counts)) found.add_unknown("counts");  // a rank keeps those of its last call only
  return found;
}

/// What the calls around it say of how it came about; empty where they say nothing.
std::string origin_of(const Pair& pair, const Calls& mine, const Calls& theirs, std::uint64_t number) {
  const auto is = [](const CallNote* a, const CallNote* b) {
    return a != nullptr && b != nullptr && a->hash == b->hash;
  };
  const CallNote* const here = mine.call(number);
  const CallNote* const there = theirs.call(number);
  const bool is_mine_later = is(theirs.call(number + 1), here);
  const bool is_theirs_later = is(mine.call(number + 1), there);
  if (is_mine_later && is_theirs_later) return "; they make these two calls in another order";
  const auto one_ahead = [number](const std::string& ahead, const std::string& behind) {
    return fmt::format(
        "; {}'s operation {} is {}'s operation {}: it has left out a call, or makes them in another order", ahead,
        number, behind, number + 1);
  };
  if (is_theirs_later) return one_ahead(pair.theirs, pair.mine);
  if (is_mine_later) return one_ahead(pair.mine, pair.theirs);
  const auto repeats = [&](const std::string& who) {
    return fmt::format("; {} calls once more what both called as operation {}", who, number - 1);
  };
  if (is(mine.call(number - 1), there)) return repeats(pair.theirs);
  if (is(theirs.call(number - 1), here)) return repeats(pair.mine);
  return "";
}

std::string last_text(const Calls& calls, std::uint64_t number) {
  const CallNote* const note = calls.call(number);
  return note != nullptr ? fmt::format("operation {} ({})", number, call_text(*note, number))
                         : fmt::format("operation {}", number);
}

/// Of a rank that has not told where it waits: what it has completed before the last operation that it has started. A
/// repeated short call tells nothing, but no more operations are in flight than there are generations.
std::string completed_at_least(const Domain& domain, const Calls& calls) {
  const auto generations = static_cast<std::uint64_t>(domain.shape().generations);
  const std::uint64_t least = calls.started > generations ? calls.started - generations : 0;
  const std::uint64_t known = std::max(calls.finished, least);
  if (known == 0) return calls.started == 1 ? "has completed no operation, " : "";
  return fmt::format("has completed {}{}, ", known + 1 == calls.started ? "" : "at least ", last_text(calls, known));
}

/// `newest`: the last operation that any rank has started.
std::string progress_text(const Domain& domain, const Calls& calls, std::uint64_t newest) {
  const std::string completed = calls.finished == 0 ? std::string("has completed no operation")
                                                    : fmt::format("has completed {}", last_text(calls, calls.finished));
  if (calls.waits_for_transfer()) {
    return fmt::format("{}; its {}", completed, standing_text(domain, calls.standing, nullptr));
  }
  if (calls.waits_in_operation()) {
    const std::uint64_t pending = calls.standing.operation;
    return fmt::format("{}, is in {}", completed, standing_text(domain, calls.standing, calls.call(pending)));
  }
  if (calls.started == newest) {
    if (calls.finished == newest) return completed + (calls.has_left ? " and has left" : "");
    return fmt::format("{}{} in {}", completed_at_least(domain, calls), calls.has_left ? "has left" : "is",
                       last_text(calls, newest));
  }
  const std::string last = calls.started == 0 ? std::string("it has made no call")
                                              : fmt::format("its last is {}{}", last_text(calls, calls.started),
                                                            calls.finished == calls.started ? ", complete" : "");
  return fmt::format("{} operation {}: {}", calls.has_left ? "has left without" : "has not called", calls.started + 1,
                     last);
}

std::string transfer_text(const Domain& domain, const Standing& standing) {
  const bool is_send = standing.wait == Wait::send;
  const std::string what =
      fmt::format("{} of {} {} ({} bytes{}) {} {}", is_send ? "send" : "receive",
                  standing.bytes / static_cast<std::int64_t>(size_of(standing.dtype)), to_string(standing.dtype),
                  standing.bytes, standing.tag == 0 ? std::string() : fmt::format(", tag {}", standing.tag),
                  is_send ? "to" : "from", domain.name_of(standing.peer));
  if (standing.before > 0) return fmt::format("{} waits for {} before it", what, standing.before);
  if (!standing.is_begun) return fmt::format("{} has no {}", what, is_send ? "receive" : "send");
  return fmt::format("{} stands still after {} bytes", what, standing.done);
}

}  // namespace

std::string call_text(const CallNote& note, std::uint64_t number) {
  std::string text = fmt::format("{} {}", to_string(note.collective), name_of_algorithm(note));
  if (has_counts(note.collective)) {
    text += fmt::format(" of {}", to_string(note.dtype));
  } else if (has_data(note.collective)) {
    text += fmt::format(" of {} {}", note.count, to_string(note.dtype));
  }
  if (is_reducing(note.collective)) text += fmt::format(", {}", to_string(note.op));
  if (is_rooted(note.collective)) text += fmt::format(", root {}", note.root);
  const auto segments = static_cast<std::uint64_t>(note.segments);
  if (segments > 1) text += fmt::format(", segment {} of {}", (number - note.first) % segments + 1, segments);
  return text;
}

std::string standing_text(const Domain& domain, const Standing& standing, const CallNote* note) {
  if (standing.wait == Wait::send || standing.wait == Wait::receive) return transfer_text(domain, standing);
  std::string text = fmt::format("operation {}", standing.operation);
  if (note != nullptr) text += fmt::format(" ({})", call_text(*note, standing.operation));
  if (standing.steps > 0) text += fmt::format(", step {} of {}", standing.step, standing.steps);
  const auto peer = [&] { return domain.name_of(standing.peer); };
  switch (standing.wait) {
    case Wait::phase:
      return fmt::format("{}: waits for phase {} of {}", text, standing.phase, peer());
    case Wait::data:
      return fmt::format("{}: waits for {} bytes from {}", text, standing.bytes, peer());
    case Wait::room:
      return fmt::format("{}: waits for room for {} bytes at {}", text, standing.bytes, peer());
    case Wait::generation:
      return fmt::format("{}: waits for {} to complete an operation a generation ago", text, peer());
    default:
      return text;
  }
}

std::optional<std::string> disagreement(const Domain& domain, int rank, int other) {
  if (!is_known(domain, rank) || !is_known(domain, other)) return std::nullopt;
  const Calls mine = calls_of(domain, rank), theirs = calls_of(domain, other);
  std::array<std::uint64_t, 2 * Journal::kNotes> boundaries{};
  std::size_t count = 0;
  for (const Calls* const calls : {&mine, &theirs}) {
    for (const CallNote& note : calls->notes()) boundaries[count++] = note.first;
  }
  std::ranges::sort(std::span(boundaries).first(count));
  for (const std::uint64_t number : std::span(boundaries).first(count)) {
    const CallNote* const here = mine.call(number);
    const CallNote* const there = theirs.call(number);
    if (here == nullptr || there == nullptr || here->hash == there->hash) continue;
    const Pair pair{
        .domain = domain, .rank = rank, .other = other, .mine = domain.name_of(rank), .theirs = domain.name_of(other)};
    return fmt::format("{} and {} do not agree on operation {}: {} ({} calls {}, {} calls {}){}", pair.mine,
                       pair.theirs, number, differences_of(pair, *here, *there).text(), pair.mine,
                       call_text(*here, number), pair.theirs, call_text(*there, number),
                       origin_of(pair, mine, theirs, number));
  }
  return std::nullopt;
}

std::vector<Progress> progress_of(const Domain& domain) {
  std::vector<Calls> all;
  std::uint64_t newest = 0;
  for (int rank = 0; rank < domain.shape().ranks; ++rank) {
    all.push_back(is_known(domain, rank) ? calls_of(domain, rank) : Calls());
    newest = std::max(newest, all.back().started);
  }
  std::vector<Progress> progress;
  for (int rank = 0; const Calls& calls : all) {
    if (!is_known(domain, rank)) {
      progress.push_back(
          {.rank = rank++, .started = newest, .text = "is not known here: it shares no memory with this host"});
      continue;
    }
    progress.push_back({.rank = rank++,
                        .started = calls.started,
                        .waits = calls.waits_in_operation() || calls.waits_for_transfer(),
                        .text = progress_text(domain, calls, newest),
                        .standing = calls.standing});
  }
  return progress;
}

std::string report_of(const Domain& domain) {
  std::vector<Progress> progress = progress_of(domain);
  std::ranges::stable_sort(progress, {}, &Progress::started);
  std::string text;
  const std::size_t shown = std::min(progress.size(), kMostLines);
  for (std::size_t i = 0; i < shown; ++i) {
    text += fmt::format("\n  {} {}", domain.name_of(progress[i].rank), progress[i].text);
  }
  if (shown < progress.size()) text += fmt::format("\n  and {} more", progress.size() - shown);
  return text;
}

std::vector<std::vector<StartedCall>> last_calls(const Domain& domain, std::uint64_t most) {
  std::vector<std::vector<StartedCall>> all(static_cast<std::size_t>(domain.shape().ranks));
  const auto generations = static_cast<std::uint64_t>(domain.shape().generations);
  for (int rank = 0; rank < domain.shape().ranks; ++rank) {
    if (!is_known(domain, rank)) continue;
    const Calls calls = calls_of(domain, rank);
    // No more operations are in flight than there are generations.
    const std::uint64_t complete =
        std::max(calls.finished, calls.started > generations ? calls.started - generations : 0);
    for (std::uint64_t back = std::min(most, calls.started); back > 0; --back) {
      const std::uint64_t number = calls.started - back + 1;
      const CallNote* const note = calls.call(number);
      if (note == nullptr) continue;
      all[static_cast<std::size_t>(rank)].push_back(
          {.number = number, .call = *note, .is_complete = number <= complete});
    }
  }
  return all;
}

}  // namespace tutti
