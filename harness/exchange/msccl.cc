// SPDX-License-Identifier: Apache-2.0
#include "harness/exchange/msccl.h"

#include <algorithm>
#include <expat.h>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "impl/types/names.h"
#include "impl/types/number.h"

namespace tutti::harness::exchange {
namespace {

constexpr std::size_t kPiece = std::size_t{64}
                               << 10;  ///< bytes that Expat gets at a time: an error ends the reading soon

/// Collectives that MSCCL's files can be of.
constexpr std::array kCollectives{Collective::broadcast,      Collective::reduce,     Collective::all_reduce,
                                  Collective::gather,         Collective::all_gather, Collective::scatter,
                                  Collective::reduce_scatter, Collective::all_to_all};

/// What the file says of a step, before the blocks that it may name are all read.
struct RawStep {
  MscclStep step;
  int awaited_id = -1;
  int awaited_number = -1;
  std::optional<bool> is_awaited;  ///< nullopt: the file does not say
};

struct RawBlock {
  ThreadBlock block;
  std::vector<RawStep> steps;
  int line = 0;
};

struct RawGpu {
  Gpu gpu;
  std::vector<RawBlock> blocks;
  bool is_there = false;
};

class Reader {
 public:
  Result<MscclFile> read(std::string_view text);

 private:
  using Attributes = std::map<std::string_view, std::string_view>;

  static void on_start(void* reader, const XML_Char* name, const XML_Char** attributes) {
    static_cast<Reader*>(reader)->start(name, attributes);
  }
  static void on_end(void* reader, const XML_Char* /*name*/) { --static_cast<Reader*>(reader)->depth_; }
  static void on_text(void* reader, const XML_Char* text, int length) {
    static_cast<Reader*>(reader)->text({text, static_cast<std::size_t>(length)});
  }
  static void on_doctype(void* reader, const XML_Char* name, const XML_Char* /*system*/, const XML_Char* /*id*/,
                         int /*has_subset*/) {
    auto& self = *static_cast<Reader*>(reader);
    self.fail(error(Code::invalid_argument, "line {}: a document type '{}': an algorithm file has none, nor entities",
                    self.line(), shown(name)));
  }

  void start(std::string_view name, const XML_Char** list);
  void text(std::string_view text);
  void fail(Status status) {
    if (!status_.is_ok()) return;
    status_ = std::move(status);
    XML_StopParser(parser_.get(), XML_FALSE);
  }
  [[nodiscard]] int line() const { return static_cast<int>(XML_GetCurrentLineNumber(parser_.get())); }

  Status begin_algorithm(const Attributes& attributes);
  Status begin_gpu(const Attributes& attributes);
  Status begin_block(const Attributes& attributes);
  Status begin_step(const Attributes& attributes);
  Result<Chunks> chunks_at(const Attributes& attributes, std::string_view end, int count) const;

  Result<std::string_view> text_of(const Attributes& attributes, std::string_view name) const;
  Result<int> number_of(const Attributes& attributes, std::string_view name, int least, int most) const;
  Result<int> number_or(const Attributes& attributes, std::string_view name, int usual, int least, int most) const;

  Status finish();
  Status finish_gpu(int gpu);
  static Status check_senders(int gpu, const std::vector<RawBlock>& blocks);
  Status resolve(int gpu, RawStep& raw, const RawBlock& block) const;
  [[nodiscard]] bool cuts_steps() const;
  void cut_steps();

  std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser_{XML_ParserCreate(nullptr), &XML_ParserFree};
  Status status_;
  int depth_ = 0;
  MscclFile file_;
  std::vector<RawGpu> gpus_;
  int gpu_ = 0;  ///< that is being read
  int steps_ = 0;
};

std::string step_place(int gpu, const ThreadBlock& block, const MscclStep& step) {
  return fmt::format("line {}: gpu {} tb {} step {} ({})", step.line, gpu, block.id, step.number, step.type->name);
}

Result<MscclFile> Reader::read(std::string_view text) {
  if (parser_ == nullptr) return error(Code::resource, "no memory for a parser of XML");
  XML_SetUserData(parser_.get(), this);
  XML_SetElementHandler(parser_.get(), on_start, on_end);
  XML_SetCharacterDataHandler(parser_.get(), on_text);
  XML_SetStartDoctypeDeclHandler(parser_.get(), on_doctype);
  for (bool is_last = false; !is_last;) {
    const std::string_view piece = text.substr(0, kPiece);
    text.remove_prefix(piece.size());
    is_last = text.empty();
    const auto outcome = XML_Parse(parser_.get(), piece.data(), static_cast<int>(piece.size()), is_last);
    if (!status_.is_ok()) return status_;
    if (outcome == XML_STATUS_OK) continue;
    return error(Code::invalid_argument, "line {}: it is no XML: {}", line(),
                 XML_ErrorString(XML_GetErrorCode(parser_.get())));
  }
  TUTTI_RETURN_IF_ERROR(finish());
  return std::move(file_);
}

void Reader::start(std::string_view name, const XML_Char** list) {
  if (!status_.is_ok()) return;
  constexpr std::array<std::string_view, 4> kNames{"algo", "gpu", "tb", "step"};
  if (static_cast<std::size_t>(depth_) >= kNames.size()) {
    return fail(
        error(Code::invalid_argument, "line {}: <{}> within a <step>, which has no parts", line(), shown(name)));
  }
  const std::string_view wanted = kNames[static_cast<std::size_t>(depth_)];
  if (name != wanted) {
    return fail(
        error(Code::invalid_argument, "line {}: <{}> stands where <{}> is expected", line(), shown(name), wanted));
  }
  Attributes attributes;
  for (; *list != nullptr; list += 2) attributes[list[0]] = list[1];
  const int depth = depth_++;
  Status status = depth == 0   ? begin_algorithm(attributes)
                  : depth == 1 ? begin_gpu(attributes)
                  : depth == 2 ? begin_block(attributes)
                               : begin_step(attributes);
  if (!status.is_ok()) fail(error(status.code(), "line {}: <{}>: {}", line(), name, status.message()));
}

void Reader::text(std::string_view text) {
  const std::size_t at = text.find_first_not_of(" \t\r\n");
  if (at == std::string_view::npos) return;
  fail(error(Code::invalid_argument, "line {}: the text '{}' between tags: an algorithm file has attributes only",
             line(), shown(text.substr(at))));
}

Result<std::string_view> Reader::text_of(const Attributes& attributes, std::string_view name) const {
  const auto found = attributes.find(name);
  if (found != attributes.end()) return found->second;
  return error(Code::invalid_argument, "it lacks the attribute '{}'", name);
}

Result<int> Reader::number_of(const Attributes& attributes, std::string_view name, int least, int most) const {
  TUTTI_ASSIGN_OR_RETURN(const std::string_view text, text_of(attributes, name));
  const auto number = parse_number(text, fmt::format("a right '{}'", name), least, most);
  return number;
}

Result<int> Reader::number_or(const Attributes& attributes, std::string_view name, int usual, int least,
                              int most) const {
  return attributes.contains(name) ? number_of(attributes, name, least, most) : usual;
}

Status Reader::begin_algorithm(const Attributes& attributes) {
  TUTTI_ASSIGN_OR_RETURN(const std::string_view name, text_of(attributes, "name"));
  file_.name = shown(name);
  TUTTI_ASSIGN_OR_RETURN(const std::string_view coll, text_of(attributes, "coll"));
  const auto collective = parse_collective(coll);
  if (!collective.is_ok() || std::ranges::find(kCollectives, collective.value()) == kCollectives.end()) {
    std::vector<std::string> names;
    for (const Collective one : kCollectives) names.emplace_back(tutti::to_string(one));
    return unknown_name("coll", coll, names);
  }
  TUTTI_ASSIGN_OR_RETURN(file_.problem.ranks, number_of(attributes, "ngpus", 2, kMostGpus));
  file_.problem.collective = collective.value();
  if (is_rooted(collective.value())) {
    TUTTI_ASSIGN_OR_RETURN(file_.problem.root, number_or(attributes, "root", 0, 0, file_.problem.ranks - 1));
  }
  TUTTI_ASSIGN_OR_RETURN(const int in_place, number_or(attributes, "inplace", 0, 0, 1));
  file_.is_in_place = in_place == 1;
  const int blocks = is_divided(collective.value()) ? file_.problem.ranks : 1;
  TUTTI_ASSIGN_OR_RETURN(const int chunks, number_of(attributes, "nchunksperloop", blocks, kMostChunks));
  if (chunks % blocks != 0) {
    return error(Code::invalid_argument,
                 "nchunksperloop='{}': the larger buffer of {} has {} blocks, so allowed are multiples of {}: did you "
                 "mean '{}'?",
                 chunks, tutti::to_string(collective.value()), blocks, blocks, chunks / blocks * blocks);
  }
  file_.chunks_per_block = chunks / blocks;
  gpus_.resize(static_cast<std::size_t>(file_.problem.ranks));
  return {};
}

Status Reader::begin_gpu(const Attributes& attributes) {
  TUTTI_ASSIGN_OR_RETURN(gpu_, number_of(attributes, "id", 0, file_.problem.ranks - 1));
  RawGpu& raw = gpus_[static_cast<std::size_t>(gpu_)];
  if (raw.is_there) return error(Code::invalid_argument, "gpu {} is there twice", gpu_);
  raw.is_there = true;
  // Files leave a buffer out that lies in another one. What they state must not be more than the collective has.
  const int larger = file_.chunks_per_block * (is_divided(file_.problem.collective) ? file_.problem.ranks : 1);
  TUTTI_RETURN_IF_ERROR(number_or(attributes, "i_chunks", 0, 0, larger).status());
  TUTTI_RETURN_IF_ERROR(number_or(attributes, "o_chunks", 0, 0, larger).status());
  TUTTI_ASSIGN_OR_RETURN(raw.gpu.scratch, number_or(attributes, "s_chunks", 0, 0, kMostChunks));
  return {};
}

Status Reader::begin_block(const Attributes& attributes) {
  RawGpu& gpu = gpus_[static_cast<std::size_t>(gpu_)];
  RawBlock raw{.block = {}, .steps = {}, .line = line()};
  ThreadBlock& block = raw.block;
  const int last = file_.problem.ranks - 1;
  TUTTI_ASSIGN_OR_RETURN(block.id, number_of(attributes, "id", 0, kMostBlocks - 1));
  TUTTI_ASSIGN_OR_RETURN(block.send, number_of(attributes, "send", -1, last));
  TUTTI_ASSIGN_OR_RETURN(block.receive, number_of(attributes, "recv", -1, last));
  TUTTI_ASSIGN_OR_RETURN(block.channel, number_of(attributes, "chan", 0, kMostChannels - 1));
  for (const RawBlock& other : gpu.blocks) {
    if (other.block.id == block.id) return error(Code::invalid_argument, "gpu {} has tb {} twice", gpu_, block.id);
  }
  for (const int peer : {block.send, block.receive}) {
    if (peer == gpu_) return error(Code::invalid_argument, "gpu {} tb {} has its own gpu as a peer", gpu_, block.id);
  }
  gpu.blocks.push_back(std::move(raw));
  return {};
}

Status Reader::begin_step(const Attributes& attributes) {
  RawBlock& block = gpus_[static_cast<std::size_t>(gpu_)].blocks.back();
  if (++steps_ > kMostSteps) {
    return error(Code::invalid_argument, "step {} of all gpus: at most {} are read", steps_, kMostSteps);
  }
  RawStep raw;
  MscclStep& step = raw.step;
  step.line = line();
  // A number that is not the next one is a step that the file has lost, or has twice.
  const int next = static_cast<int>(block.steps.size());
  TUTTI_ASSIGN_OR_RETURN(step.number, number_of(attributes, "s", 0, kMostSteps));
  if (step.number != next) {
    return error(Code::invalid_argument, "gpu {} tb {} has step {} where step {} is next", gpu_, block.block.id,
                 step.number, next);
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string_view type, text_of(attributes, "type"));
  const auto found = std::ranges::find(kStepTypes, type, &StepType::name);
  if (found == kStepTypes.end()) {
    std::vector<std::string> names;
    for (const StepType& one : kStepTypes) names.emplace_back(one.name);
    const Status unknown = unknown_name("type", type, names);
    return error(unknown.code(), "gpu {} tb {} step {}: {}", gpu_, block.block.id, step.number, unknown.message());
  }
  step.type = &*found;
  const auto status = [&]() -> Status {
    if (step.type->operands() > 0) {
      TUTTI_ASSIGN_OR_RETURN(step.count, number_of(attributes, "cnt", 1, kMostChunks));
      if (step.type->reads_source) {
        TUTTI_ASSIGN_OR_RETURN(step.source, chunks_at(attributes, "src", step.count));
      }
      if (step.type->writes) {
        TUTTI_ASSIGN_OR_RETURN(step.destination, chunks_at(attributes, "dst", step.count));
      }
    }
    TUTTI_ASSIGN_OR_RETURN(raw.awaited_id, number_or(attributes, "depid", -1, -1, kMostBlocks - 1));
    TUTTI_ASSIGN_OR_RETURN(raw.awaited_number, number_or(attributes, "deps", -1, -1, kMostSteps));
    if (attributes.contains("hasdep")) {
      TUTTI_ASSIGN_OR_RETURN(const int has, number_of(attributes, "hasdep", 0, 1));
      raw.is_awaited = has == 1;
    }
    if (step.type->receives && block.block.receive < 0)
      return error(Code::invalid_argument, "it receives, but its tb has recv='-1'");
    if (step.type->sends && block.block.send < 0)
      return error(Code::invalid_argument, "it sends, but its tb has send='-1'");
    return {};
  }();
  if (!status.is_ok()) {
    return error(status.code(), "gpu {} tb {} step {} ({}): {}", gpu_, block.block.id, step.number, type,
                 status.message());
  }
  block.steps.push_back(std::move(raw));
  return {};
}

/// `end`: src or dst.
Result<Chunks> Reader::chunks_at(const Attributes& attributes, std::string_view end, int count) const {
  const std::string buffer_name = fmt::format("{}buf", end), offset_name = fmt::format("{}off", end);
  TUTTI_ASSIGN_OR_RETURN(const std::string_view buffer, text_of(attributes, buffer_name));
  Chunks chunks;
  if (buffer != "i" && buffer != "o" && buffer != "s") {
    return error(Code::invalid_argument, "{}='{}' is no buffer: i, o or s", buffer_name, shown(buffer));
  }
  chunks.buffer = buffer == "i" ? Buffer::input : buffer == "o" ? Buffer::output : Buffer::scratch;
  const Gpu& gpu = gpus_[static_cast<std::size_t>(gpu_)].gpu;
  const int size = chunks.buffer == Buffer::scratch ? gpu.scratch : file_.chunks(gpu_, chunks.buffer);
  if (count > size) {
    return error(Code::invalid_argument, "cnt='{}', but {} of gpu {} has {} chunks", count, to_string(chunks.buffer),
                 gpu_, size);
  }
  TUTTI_ASSIGN_OR_RETURN(chunks.first, number_of(attributes, offset_name, 0, size - count));
  return chunks;
}

Status Reader::finish() {
  for (int gpu = 0; gpu < file_.problem.ranks; ++gpu) {
    if (gpus_[static_cast<std::size_t>(gpu)].is_there) continue;
    return error(Code::invalid_argument, "gpu {} is missing, though ngpus is {}", gpu, file_.problem.ranks);
  }
  for (int gpu = 0; gpu < file_.problem.ranks; ++gpu) TUTTI_RETURN_IF_ERROR(finish_gpu(gpu));
  cut_steps();
  std::size_t steps = 0;
  for (const Gpu& gpu : file_.gpus)
    for (const ThreadBlock& block : gpu.blocks) steps += block.steps.size();
  if (steps <= kMostSteps) return {};
  return error(Code::invalid_argument, "steps of several chunks that use scratch are {} steps of one: at most {} are read",
               steps, kMostSteps);
}

Status Reader::finish_gpu(int gpu) {
  RawGpu& raw = gpus_[static_cast<std::size_t>(gpu)];
  TUTTI_RETURN_IF_ERROR(check_senders(gpu, raw.blocks));
  for (RawBlock& block : raw.blocks) {
    for (RawStep& step : block.steps) TUTTI_RETURN_IF_ERROR(resolve(gpu, step, block));
  }
  for (RawBlock& block : raw.blocks) {
    for (RawStep& step : block.steps) block.block.steps.push_back(step.step);
    raw.gpu.blocks.push_back(std::move(block.block));
  }
  file_.gpus.push_back(std::move(raw.gpu));
  return {};
}

/// A connection is one thread block's at either end: the order of its messages is that block's.
Status Reader::check_senders(int gpu, const std::vector<RawBlock>& blocks) {
  std::map<std::pair<int, int>, int> senders, receivers;
  for (const RawBlock& raw : blocks) {
    const ThreadBlock& block = raw.block;
    for (const bool sends : {true, false}) {
      const int peer = sends ? block.send : block.receive;
      if (peer < 0) continue;
      auto& taken = sends ? senders : receivers;
      const auto [at, is_new] = taken.try_emplace({peer, block.channel}, block.id);
      if (is_new) continue;
      return error(Code::invalid_argument, "line {}: gpu {}: tb {} and tb {} both {} gpu {} on channel {}", raw.line,
                   gpu, at->second, block.id, sends ? "send to" : "receive from", peer, block.channel);
    }
  }
  return {};
}

Status Reader::resolve(int gpu, RawStep& raw, const RawBlock& block) const {
  if (raw.awaited_id < 0) return {};
  const auto& blocks = gpus_[static_cast<std::size_t>(gpu)].blocks;
  const auto awaited =
      std::ranges::find_if(blocks, [&](const RawBlock& one) { return one.block.id == raw.awaited_id; });
  const std::string at = step_place(gpu, block.block, raw.step);
  if (awaited == blocks.end()) {
    return error(Code::invalid_argument, "{}: depid='{}': gpu {} has no such tb", at, raw.awaited_id, gpu);
  }
  const int steps = static_cast<int>(awaited->steps.size());
  if (raw.awaited_number < 0 || raw.awaited_number >= steps) {
    return error(Code::invalid_argument, "{}: deps='{}': tb {} of gpu {} has the steps 0 to {}", at, raw.awaited_number,
                 raw.awaited_id, gpu, steps - 1);
  }
  const RawStep& step = awaited->steps[static_cast<std::size_t>(raw.awaited_number)];
  if (step.is_awaited == false) {
    return error(Code::refuted, "{}: waits for tb {} step {}, which announces nothing: hasdep='0' in line {}", at,
                 raw.awaited_id, raw.awaited_number, step.step.line);
  }
  raw.step.awaited_block = static_cast<int>(awaited - blocks.begin());
  raw.step.awaited_step = raw.awaited_number;
  return {};
}

/// Scratch holds whole chunks, each with room for the longest, so that several of them are no run of bytes.
bool Reader::cuts_steps() const {
  if (file_.chunks_per_block == 1) return false;
  for (const Gpu& gpu : file_.gpus) {
    for (const ThreadBlock& block : gpu.blocks) {
      for (const MscclStep& step : block.steps) {
        const bool has_scratch = (step.type->reads_source && step.source.buffer == Buffer::scratch) ||
                                 (step.type->writes && step.destination.buffer == Buffer::scratch);
        if (has_scratch && step.count > 1) return true;
      }
    }
  }
  return false;
}

void Reader::cut_steps() {
  if (!cuts_steps()) return;
  for (Gpu& gpu : file_.gpus) {
    std::vector<std::vector<int>> last;  ///< [block][step]: the index of its last part
    std::vector<std::vector<MscclStep>> cut;
    for (const ThreadBlock& block : gpu.blocks) {
      std::vector<MscclStep> parts;
      std::vector<int> ends;
      for (const MscclStep& step : block.steps) {
        for (int i = 0; i < std::max(step.count, 1); ++i) {
          MscclStep part = step;
          part.count = std::min(step.count, 1);
          part.source.first += i;
          part.destination.first += i;
          if (parts.size() <= kMostSteps) parts.push_back(part);
        }
        ends.push_back(static_cast<int>(parts.size()) - 1);
      }
      cut.push_back(std::move(parts));
      last.push_back(std::move(ends));
    }
    for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
      for (MscclStep& step : cut[b]) {
        if (step.awaited_block < 0) continue;
        step.awaited_step =
            last[static_cast<std::size_t>(step.awaited_block)][static_cast<std::size_t>(step.awaited_step)];
      }
      gpu.blocks[b].steps = std::move(cut[b]);
    }
  }
}

}  // namespace

std::string_view to_string(Buffer buffer) {
  return buffer == Buffer::input ? "input" : buffer == Buffer::output ? "output" : "scratch";
}

int MscclFile::chunks(int gpu, Buffer buffer) const {
  if (buffer == Buffer::scratch) return gpus[static_cast<std::size_t>(gpu)].scratch;
  const int input = input_blocks(problem, gpu), output = output_blocks(problem, gpu);
  const int own = buffer == Buffer::input ? input : output;
  return chunks_per_block * (own == 0 && is_in_place ? std::max(input, output) : own);
}

Result<MscclFile> parse_msccl(std::string_view text) { return Reader().read(text); }

}  // namespace tutti::harness::exchange
