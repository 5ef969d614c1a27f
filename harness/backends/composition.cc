// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/composition.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "harness/cases/compositions.h"
#include "harness/cases/lists.h"
#include "harness/verify/buffers.h"

namespace tutti::harness::backends {
namespace {

/// Where an operand of a call lies: in the buffers of the collective whose work is done, or between two calls.
enum class Where : std::uint8_t {
  input,
  output,
  own_block,         ///< the rank's own block of the output
  aside,             ///< memory between two calls
  input_or_aside,    ///< the root's input; on other ranks memory between two calls
  output_or_aside,   ///< the root's output; on other ranks memory between two calls
  first_of_input,    ///< the first half
  second_of_input,   ///< the second half
  first_of_output,   ///< the first half
  second_of_output,  ///< the second half
};

struct CallRow {
  Collective collective;
  Where input;
  Where output;
  bool is_in_place = false;
};
struct CompositionRow {
  Collective of;
  std::string_view name;
  std::array<CallRow, 2> calls;
  int count = 2;             ///< of the calls
  bool takes_block = false;  ///< at the end, the rank's own block of the last call's output is copied to the output
};

constexpr CallRow kNoCall{Collective::barrier, Where::input, Where::input};
constexpr CallRow kBroadcastOutput{Collective::broadcast, Where::output, Where::output, true};
constexpr CallRow kGatherOwnBlocks{Collective::all_gather, Where::own_block, Where::output, true};

constexpr std::array kRows{
    CompositionRow{Collective::all_reduce,
                   "reduce+broadcast",
                   {{{Collective::reduce, Where::input, Where::output}, kBroadcastOutput}}},
    CompositionRow{Collective::all_reduce,
                   "reduce_scatter+all_gather",
                   {{{Collective::reduce_scatter, Where::input, Where::own_block}, kGatherOwnBlocks}}},
    CompositionRow{Collective::all_reduce,
                   kHalves,
                   {{{Collective::all_reduce, Where::first_of_input, Where::first_of_output},
                     {Collective::all_reduce, Where::second_of_input, Where::second_of_output}}}},
    CompositionRow{Collective::all_gather,
                   "gather+broadcast",
                   {{{Collective::gather, Where::input, Where::output}, kBroadcastOutput}}},
    CompositionRow{Collective::scatter,
                   "broadcast",
                   {{{Collective::broadcast, Where::input_or_aside, Where::input_or_aside, true}, kNoCall}},
                   1,
                   true},
    CompositionRow{Collective::reduce,
                   "all_reduce",
                   {{{Collective::all_reduce, Where::input, Where::output_or_aside}, kNoCall}},
                   1},
    CompositionRow{Collective::reduce,
                   "reduce_scatter+gather",
                   {{{Collective::reduce_scatter, Where::input, Where::aside},
                     {Collective::gather, Where::aside, Where::output}}}},
    CompositionRow{Collective::reduce,
                   kHalves,
                   {{{Collective::reduce, Where::first_of_input, Where::first_of_output},
                     {Collective::reduce, Where::second_of_input, Where::second_of_output}}}},
    CompositionRow{Collective::gather,
                   "all_gather",
                   {{{Collective::all_gather, Where::input, Where::output_or_aside}, kNoCall}},
                   1},
    CompositionRow{Collective::broadcast,
                   "scatter+all_gather",
                   {{{Collective::scatter, Where::output, Where::own_block, true}, kGatherOwnBlocks}}},
    CompositionRow{Collective::broadcast,
                   kHalves,
                   {{{Collective::broadcast, Where::first_of_output, Where::first_of_output, true},
                     {Collective::broadcast, Where::second_of_output, Where::second_of_output, true}}}},
    CompositionRow{
        Collective::reduce_scatter,
        "reduce+scatter",
        {{{Collective::reduce, Where::input, Where::aside}, {Collective::scatter, Where::aside, Where::output}}}},
};

static_assert(std::ranges::equal(kRows, kCompositions, [](const CompositionRow& row, const Composition& one) {
  return row.of == one.of && row.name == one.name;
}));

const CompositionRow* row_of(Collective of, std::string_view name) {
  const auto found =
      std::ranges::find_if(kRows, [&](const CompositionRow& row) { return row.of == of && row.name == name; });
  return found == kRows.end() ? nullptr : &*found;
}

std::span<const CallRow> calls_of_row(const CompositionRow& row) {
  return std::span(row.calls).first(static_cast<std::size_t>(row.count));
}

bool is_half(const CompositionRow& row) { return row.name == kHalves; }

bool lies_aside(Where where, bool is_root) {
  if (where == Where::aside) return true;
  return !is_root && (where == Where::input_or_aside || where == Where::output_or_aside);
}

/// The buffers of one rank, as bytes.
struct RankMemory {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::byte* aside = nullptr;
  std::size_t block_at = 0;  ///< bytes before the rank's own block of a whole buffer
  std::size_t half = 0;      ///< bytes of a half
  bool is_root = false;

  [[nodiscard]] std::byte* at(Where where) const {
    switch (where) {
      case Where::input:
        return input;
      case Where::output:
        return output;
      case Where::own_block:
        return output + block_at;
      case Where::aside:
        return aside;
      case Where::input_or_aside:
        return is_root ? input : aside;
      case Where::output_or_aside:
        return is_root ? output : aside;
      case Where::first_of_input:
        return input;
      case Where::second_of_input:
        return input + half;
      case Where::first_of_output:
        return output;
      case Where::second_of_output:
        return output + half;
    }
    return nullptr;
  }
};

/// What is copied on a rank when its last call is complete.
struct LastCopy {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};

class PreparedComposition final : public Prepared {
 public:
  struct Parts {
    std::vector<std::unique_ptr<Prepared>> calls;
    std::vector<LastCopy> copies;                      ///< by rank of the host; empty: there are none
    std::vector<std::optional<GuardedBuffer>> asides;  ///< by rank of the host
  };
  explicit PreparedComposition(Parts parts) : parts_(std::move(parts)), at_(parts_.asides.size()) {}

  Status post(std::size_t index) override {
    at_[index] = 0;
    return parts_.calls.front()->post(index);
  }
  Result<bool> test(std::size_t index) override {
    std::size_t& at = at_[index];
    while (at < parts_.calls.size()) {
      TUTTI_ASSIGN_OR_RETURN(const bool is_complete, parts_.calls[at]->test(index));
      if (!is_complete) return false;
      if (++at < parts_.calls.size()) {
        TUTTI_RETURN_IF_ERROR(parts_.calls[at]->post(index));
      } else if (!parts_.copies.empty()) {
        const LastCopy& copy = parts_.copies[index];
        if (copy.bytes > 0) std::memcpy(copy.to, copy.from, copy.bytes);
      }
    }
    return true;
  }
  Status settle() override {
    for (const auto& call : parts_.calls) TUTTI_RETURN_IF_ERROR(call->settle());
    return {};
  }
  [[nodiscard]] std::string flaw(std::size_t index) override {
    for (const auto& call : parts_.calls) {
      if (std::string found = call->flaw(index); !found.empty()) return found;
    }
    std::optional<GuardedBuffer>& aside = parts_.asides[index];
    const auto damage = aside ? aside->check_guards() : std::nullopt;
    if (!damage) return {};
    std::string text = "between two calls: " + damage->text(aside->payload().size());
    aside->restore_guards();
    return text;
  }
  [[nodiscard]] std::string position(std::size_t index) const override {
    const std::size_t at = std::min(at_[index], parts_.calls.size() - 1);
    return fmt::format("call {} of {}: {}", at + 1, parts_.calls.size(), parts_.calls[at]->position(index));
  }
  [[nodiscard]] std::string report() const override { return parts_.calls.front()->report(); }

 private:
  Parts parts_;
  std::vector<std::size_t> at_;  ///< by rank of the host: which call it is in
};

}  // namespace

Result<std::vector<Case>> CompositionBackend::calls_of(const Case& one) const {
  const std::string_view name = composition_of(name_);
  const CompositionRow* const row = row_of(one.collective, name);
  if (row == nullptr) {
    return error(Code::unavailable, "{} composes no {}", name_, to_string(one.collective));
  }
  const bool is_broadcast = one.collective == Collective::broadcast;
  if (one.is_in_place != is_broadcast) {
    return error(Code::unavailable, "a composition of {} runs {} place only", to_string(one.collective),
                 is_broadcast ? "in" : "out of");
  }
  if (one.buffers != Buffers::private_) {
    return error(Code::unavailable, "a composition runs on private buffers only, not on {}", to_string(one.buffers));
  }
  const std::int64_t elements = one.bytes / static_cast<std::int64_t>(size_of(one.dtype));
  if (is_half(*row) && elements % 2 != 0) {
    return error(Code::unavailable, "{} elements have no halves", elements);
  }
  std::vector<Case> calls;
  for (const CallRow& call : calls_of_row(*row)) {
    Case part = one;
    part.collective = call.collective;
    part.backend = inner_.name();
    part.op = is_reducing(call.collective) ? one.op : Op::none;
    part.root = is_rooted(call.collective) && is_rooted(one.collective) ? one.root : 0;
    part.is_in_place = call.is_in_place;
    const std::int64_t bytes = is_half(*row) ? one.bytes / 2 : one.bytes;
    set_bytes(part, bytes);
    if (part.bytes != bytes) {
      return error(Code::unavailable, "{} elements cannot be divided among {} ranks, as its {} does", elements,
                   one.ranks, to_string(call.collective));
    }
    part.algorithm = backend_of(part.backend) == kOwnBackend ? kAuto : kNone;
    calls.push_back(std::move(part));
  }
  return calls;
}

Status CompositionBackend::supports(const Case& one) const {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Case> calls, calls_of(one));
  for (const Case& call : calls) {
    const Status status = inner_.supports(call);
    if (!status.is_ok()) return error(status.code(), "its {}: {}", to_string(call.collective), status.message());
  }
  return {};
}

Result<std::unique_ptr<Prepared>> CompositionBackend::prepare(const Case& one, std::span<const RankBuffers> buffers) {
  TUTTI_ASSIGN_OR_RETURN(std::vector<Case> calls, calls_of(one));
  const CompositionRow& row = *row_of(one.collective, composition_of(name_));
  for (const RankBuffers& of_rank : buffers) {
    if (of_rank.memory == MemoryKind::host && of_rank.stream == nullptr) continue;
    return error(Code::unavailable, "a composition runs on buffers in the memory of the host only");
  }
  const auto bytes = static_cast<std::size_t>(one.bytes);
  const std::size_t block_bytes = bytes / static_cast<std::size_t>(one.ranks);
  PreparedComposition::Parts parts;
  std::vector<RankMemory> memory;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const int rank = place_.ranks[i];
    RankMemory mine{.input = static_cast<std::byte*>(const_cast<void*>(buffers[i].input)),
                    .output = static_cast<std::byte*>(buffers[i].output),
                    .block_at = static_cast<std::size_t>(rank) * block_bytes,
                    .half = bytes / 2,
                    .is_root = is_rooted(one.collective) && rank == one.root};
    const bool needs_aside = std::ranges::any_of(calls_of_row(row), [&](const CallRow& call) {
      return lies_aside(call.input, mine.is_root) || lies_aside(call.output, mine.is_root);
    });
    std::optional<GuardedBuffer>& aside = parts.asides.emplace_back();
    if (needs_aside) {
      TUTTI_ASSIGN_OR_RETURN(aside, GuardedBuffer::create({.bytes = bytes, .allocator = place_.memory(one, i)}));
      fill_poison(aside->payload(), 0);  // and its pages are there
      mine.aside = aside->payload().data();
    }
    if (row.takes_block) {
      parts.copies.push_back(
          {.to = mine.output, .from = mine.at(calls_of_row(row).back().output) + mine.block_at, .bytes = block_bytes});
    }
    memory.push_back(mine);
  }
  for (std::size_t call = 0; call < calls.size(); ++call) {
    std::vector<RankBuffers> operands(buffers.begin(), buffers.end());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      operands[i].input = memory[i].at(row.calls.at(call).input);
      operands[i].output = memory[i].at(row.calls.at(call).output);
      operands[i].around_input = operands[i].around_output = {};
    }
    calls[call].algorithm = inner_.algorithm_of(calls[call]);
    TUTTI_ASSIGN_OR_RETURN(auto prepared, inner_.prepare(calls[call], operands));
    if (prepared->is_posted_together()) {
      return error(Code::unavailable, "{} posts the calls of several ranks together, which a composition does not",
                   inner_.name());
    }
    parts.calls.push_back(std::move(prepared));
  }
  return std::unique_ptr<Prepared>(new PreparedComposition(std::move(parts)));
}

}  // namespace tutti::harness::backends
