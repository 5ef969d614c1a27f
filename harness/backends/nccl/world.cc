// SPDX-License-Identifier: Apache-2.0
// Communicators are NCCL's usual ones, whose calls block until they are on the stream: those of a communicator that
// does not block start a thread for every call. So what may wait for other ranks for ever is called in a thread of its
// own. Where that is not done in time, the thread is left to itself: the process has failed and ends soon.
#include "harness/backends/nccl/world.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <utility>

namespace tutti::backend_nccl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kPatienceVariable = "TUTTI_NCCL_TIMEOUT";
constexpr double kUsualSeconds = 60;
constexpr double kMostSeconds = 86400;

/// What each process tells all others.
struct Card {
  std::int32_t is_written;
  std::int32_t version;     ///< of NCCL
  std::int32_t capability;  ///< the least of its GPUs
  UniqueId id;              ///< of the process of rank 0
};
static_assert(sizeof(Card) <= TUTTI_EXCHANGE_BYTES);

/// What `work` returns; nothing where it was not done in time. What `work` refers to must live for ever.
std::optional<std::string> within(std::chrono::nanoseconds patience, std::function<std::string()> work) {
  const auto promise = std::make_shared<std::promise<std::string>>();
  std::future<std::string> answer = promise->get_future();
  std::thread([promise, work = std::move(work)] { promise->set_value(work()); }).detach();
  if (answer.wait_for(patience) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

std::string seconds_text(std::chrono::nanoseconds time) {
  std::string text = std::to_string(std::chrono::duration<double>(time).count());
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + " s";
}

/// NCCL's name in front.
std::string said(const std::string& text) { return "NCCL says: " + text + " (NCCL_DEBUG=WARN prints more)"; }

std::string place(const Group& group) {
  return "rank " + std::to_string(group.rank) + " of " + std::to_string(group.ranks);
}

std::string patience_of(const char* text, std::chrono::nanoseconds& patience) {
  char* end = nullptr;
  const double seconds = text == nullptr ? kUsualSeconds : std::strtod(text, &end);
  if (text != nullptr && (end == text || *end != '\0' || !(seconds > 0) || seconds > kMostSeconds)) {
    return std::string(kPatienceVariable) + " is '" + text + "': it takes seconds, above 0 and up to 86400";
  }
  patience = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
  return {};
}

}  // namespace

OnDevice::OnDevice(const cuda::Runtime& cuda, int device) : cuda_(cuda) {
  cuda_.cudaGetDevice(&before_);
  cuda_.cudaSetDevice(device);
}

// Joining and leaving

std::string World::open(const TuttiBackendGroup& world, const TuttiBackendJoin& join) {
  const Libraries& all = libraries();
  if (!all.missing.empty()) return all.missing;
  cuda_ = all.cuda;
  nccl_ = all.nccl;
  if (std::string wrong = patience_of(std::getenv(kPatienceVariable), patience_); !wrong.empty()) return wrong;
  if (std::string wrong = take_devices(world, join); !wrong.empty()) return wrong;
  UniqueId id{};
  if (std::string wrong = exchange(world, join, id); !wrong.empty()) return wrong;
  return connect(id);
}

/// Without devices of its own a rank has that of its place on the host.
std::string World::take_devices(const TuttiBackendGroup& world, const TuttiBackendJoin& join) {
  for (int local = 0; local < join.local_ranks; ++local) {
    Group group{.rank = world.rank + local, .ranks = world.ranks, .local = local};
    group.device = join.devices != nullptr ? join.devices[local] : join.rank_on_host + local;
    group.of_this_process = join.local_ranks;
    if (group.device < 0 || group.device >= cuda_->devices) {
      return place(group) + " needs GPU " + std::to_string(group.device) + " of this host, which has " +
             std::to_string(cuda_->devices) + ": NCCL takes a GPU for each rank";
    }
    int major = 0, minor = 0;
    cuda_->cudaDeviceGetAttribute(&major, cuda::kCapabilityMajor, group.device);
    cuda_->cudaDeviceGetAttribute(&minor, cuda::kCapabilityMinor, group.device);
    const int capability = 10 * major + minor;
    capability_ = local == 0 ? capability : std::min(capability_, capability);
    const OnDevice here(*cuda_, group.device);
    cuda::Error error = cuda_->cudaMalloc(&group.spare, kSpareBytes);
    if (error == cuda::kSuccess) error = cuda_->cudaMemset(group.spare, 0, kSpareBytes);
    if (error == cuda::kSuccess) error = cuda_->cudaDeviceSynchronize();
    of_world_.push_back(std::make_shared<Group>(group));
    if (error != cuda::kSuccess) {
      return place(group) + " on GPU " + std::to_string(group.device) + ": " +
             cuda_->text_of("memory for a barrier", error);
    }
  }
  return {};
}

std::string World::exchange(const TuttiBackendGroup& world, const TuttiBackendJoin& join, UniqueId& id) {
  if (join.exchange == nullptr) return "NCCL's ranks are told whom to meet by an exchange, and there is none";
  Card mine{.is_written = 1, .version = nccl_->version, .capability = capability_, .id = {}};
  if (world.rank == 0) {
    if (const Answer answer = nccl_->ncclGetUniqueId(&mine.id); answer != kSuccess) {
      return "ncclGetUniqueId: " + said(nccl_->text_of(answer, nullptr));
    }
  }
  std::vector<Card> all(static_cast<std::size_t>(world.ranks));  // as many as there may be processes
  if (join.exchange(join.context, &mine, all.data(), sizeof(Card)) != 0) {
    return "NCCL's ranks could not tell each other whom to meet";
  }
  for (const Card& card : all) {
    if (card.is_written == 0) continue;
    capability_ = std::min(capability_, card.capability);
    if (card.version == mine.version) continue;
    return "rank " + std::to_string(world.rank) + " has NCCL " + version_text(mine.version) + " (" + nccl_->path +
           ") and another rank " + version_text(card.version) + ": all need the same";
  }
  id = all.front().id;
  return {};
}

std::string World::connect(const UniqueId& id) {
  const auto comms = std::make_shared<std::vector<Comm>>(of_world_.size());
  const auto done = within(patience_, [comms, id, groups = of_world_, cuda = cuda_, nccl = nccl_] {
    const bool are_several = groups.size() > 1;
    Answer answer = are_several ? nccl->ncclGroupStart() : kSuccess;
    for (std::size_t i = 0; i < groups.size() && answer == kSuccess; ++i) {
      cuda->cudaSetDevice(groups[i]->device);
      answer = nccl->ncclCommInitRank(&(*comms)[i], groups[i]->ranks, id, groups[i]->rank);
      if (are_several && answer == kInProgress) answer = kSuccess;
    }
    if (are_several) {
      const Answer ended = nccl->ncclGroupEnd();
      if (answer == kSuccess) answer = ended;
    }
    return answer == kSuccess || answer == kInProgress ? std::string() : said(nccl->text_of(answer, nullptr));
  });
  const std::string who = place(*of_world_.front());
  if (!done) {
    return who + ": NCCL's ranks have not met in " + seconds_text(patience_) +
           ": one has not come, or finds no way to the others (" + kPatienceVariable + " sets the seconds)";
  }
  if (!done->empty()) return who + ": NCCL's ranks do not meet: " + *done;
  for (std::size_t i = 0; i < of_world_.size(); ++i) of_world_[i]->comm = (*comms)[i];
  for (const auto& group : of_world_) {
    const Answer answer = settle(group->comm, kInProgress);
    if (answer == kSuccess) continue;
    std::string wrong = place(*group) + ": NCCL's ranks do not meet: " + said(nccl_->text_of(answer, group->comm));
    for (const auto& each : of_world_) static_cast<void>(abort(each->local));
    return wrong;
  }
  return {};
}

std::string World::destroy(Group& group) {
  const Comm comm = std::exchange(group.comm, nullptr);
  if (comm == nullptr) return {};
  const auto done = within(patience_, [comm, nccl = nccl_] {
    const Answer answer = nccl->ncclCommDestroy(comm);
    return answer == kSuccess || answer == kInProgress ? std::string() : said(nccl->text_of(answer, nullptr));
  });
  if (done) return *done;
  return place(group) + ": leaving NCCL takes more than " + seconds_text(patience_) + ": another rank is lost";
}

std::string World::close() {
  std::string wrong;
  const auto note = [&wrong](const std::string& text) {
    if (wrong.empty()) wrong = text;
  };
  for (const auto& group : of_splits_) note(destroy(*group));
  for (const auto& group : of_world_) note(destroy(*group));
  for (const auto& group : of_world_) {
    const OnDevice here(*cuda_, group->device);
    cuda_->cudaFree(group->spare);
  }
  of_splits_.clear();
  of_world_.clear();
  return wrong;
}

// Groups

const std::shared_ptr<Group>& World::group(void* handle, int local) const {
  static const std::shared_ptr<Group> kNone;
  for (const auto& group : of_splits_) {
    if (group->handle == handle && group->local == local) return group;
  }
  const bool is_one = handle == nullptr && local >= 0 && static_cast<std::size_t>(local) < of_world_.size();
  return is_one ? of_world_[static_cast<std::size_t>(local)] : kNone;
}

std::string World::split(void* parent, int colour, int key, std::shared_ptr<Group>& made) {
  std::vector<std::shared_ptr<Group>> wholes;
  for (const auto& rank : of_world_) wholes.push_back(group(parent, rank->local));
  const auto comms = std::make_shared<std::vector<Comm>>(wholes.size());
  const int wanted = colour < 0 ? kNoColour : colour;
  const auto done = within(patience_, [comms, wholes, wanted, key, cuda = cuda_, nccl = nccl_] {
    const bool are_several = wholes.size() > 1;
    Answer answer = are_several ? nccl->ncclGroupStart() : kSuccess;
    for (std::size_t i = 0; i < wholes.size() && answer == kSuccess; ++i) {
      cuda->cudaSetDevice(wholes[i]->device);
      // Configured as the whole one.
      answer = nccl->ncclCommSplit(wholes[i]->comm, wanted, key, &(*comms)[i], nullptr);
      if (are_several && answer == kInProgress) answer = kSuccess;
    }
    if (are_several) {
      const Answer ended = nccl->ncclGroupEnd();
      if (answer == kSuccess) answer = ended;
    }
    return answer == kSuccess || answer == kInProgress ? std::string()
                                                       : said(nccl->text_of(answer, wholes.front()->comm));
  });
  if (!done) return too_late(*wholes.front(), "splitting a group");
  if (!done->empty()) return "splitting a group of NCCL: " + *done;
  // The new ones are known when all of the whole ones have settled.
  Answer answer = kSuccess;
  for (std::size_t i = 0; i < wholes.size() && answer == kSuccess; ++i) answer = settle(wholes[i]->comm, kInProgress);
  std::vector<std::shared_ptr<Group>> parts;
  for (std::size_t i = 0; i < wholes.size() && answer == kSuccess; ++i) {
    const Comm comm = (*comms)[i];
    if (comm == nullptr) continue;
    const auto part = parts.emplace_back(std::make_shared<Group>(*wholes[i]));
    part->comm = comm;
    part->handle = parts.front().get();
    answer = settle(comm, kInProgress);
    if (answer == kSuccess) answer = nccl_->ncclCommCount(comm, &part->ranks);
    if (answer == kSuccess) answer = nccl_->ncclCommUserRank(comm, &part->rank);
  }
  if (answer != kSuccess) {
    return "splitting a group of NCCL: " + said(nccl_->text_of(answer, wholes.front()->comm));
  }
  made = parts.empty() ? nullptr : parts.front();
  std::ranges::move(parts, std::back_inserter(of_splits_));
  return {};
}

std::string World::free(void* handle) {
  std::string wrong;
  std::vector<std::shared_ptr<Group>> gone;
  std::ranges::copy_if(of_splits_, std::back_inserter(gone), [&](const auto& one) { return one->handle == handle; });
  std::erase_if(of_splits_, [&](const auto& one) { return one->handle == handle; });
  for (const auto& group : gone) {
    if (std::string text = destroy(*group); wrong.empty()) wrong = std::move(text);
  }
  return wrong;
}

std::string World::begin_group() {
  const Answer answer = nccl_->ncclGroupStart();
  if (answer != kSuccess) return "ncclGroupStart: " + said(nccl_->text_of(answer, nullptr));
  is_in_group_ = true;
  return {};
}

std::string World::end_group() {
  is_in_group_ = false;
  const Answer answer = nccl_->ncclGroupEnd();
  if (answer != kSuccess && answer != kInProgress) return "ncclGroupEnd: " + said(nccl_->text_of(answer, nullptr));
  for (const auto* const groups : {&of_world_, &of_splits_}) {
    for (const auto& group : *groups) {
      const Answer settled = answer == kInProgress ? settle(group->comm, answer) : kSuccess;
      if (settled != kSuccess) return place(*group) + ": " + said(nccl_->text_of(settled, group->comm));
    }
  }
  return {};
}

// Waiting

Answer World::settle(Comm comm, Answer answer) const {
  constexpr std::chrono::microseconds kPause{20};
  const auto end = Clock::now() + patience_;
  while (answer == kInProgress) {
    if (const Answer asked = nccl_->ncclCommGetAsyncError(comm, &answer); asked != kSuccess) return asked;
    if (answer != kInProgress || Clock::now() > end) break;
    std::this_thread::sleep_for(kPause);
  }
  return answer;
}

std::string World::error_of(const Group& group) const {
  if (group.comm == nullptr) return {};
  Answer answer = kSuccess;
  if (const Answer asked = nccl_->ncclCommGetAsyncError(group.comm, &answer); asked != kSuccess) answer = asked;
  if (answer == kSuccess || answer == kInProgress) return {};
  return place(group) + ": " + said(nccl_->text_of(answer, group.comm));
}

std::string World::error_of(int local) const {
  for (const auto* const groups : {&of_world_, &of_splits_}) {
    for (const auto& group : *groups) {
      std::string wrong = group->local == local ? error_of(*group) : "";
      if (!wrong.empty()) return wrong;
    }
  }
  return {};
}

std::string World::abort(int local) {
  std::string wrong;
  for (const auto* const groups : {&of_splits_, &of_world_}) {
    for (const auto& group : *groups) {
      const Comm comm = group->local == local ? std::exchange(group->comm, nullptr) : nullptr;
      if (comm == nullptr) continue;
      const auto done = within(patience_, [comm, nccl = nccl_] {
        const Answer answer = nccl->ncclCommAbort(comm);
        return answer == kSuccess ? std::string() : said(nccl->text_of(answer, nullptr));
      });
      if (!done) wrong = place(*group) + ": NCCL does not end what is in flight in " + seconds_text(patience_);
      if (done && !done->empty()) wrong = *done;
    }
  }
  return wrong;
}

std::string World::too_late(const Group& group, const std::string& what) const {
  return place(group) + ": " + what + " is not done after " + seconds_text(patience_) +
         ": a rank has not called it, or with another count, or is lost (" + kPatienceVariable + " sets the seconds)";
}

std::string World::test(const Question& question, const Group& group, const std::string& what, bool& is_done) const {
  const cuda::Error error = question.ask(question.of);
  is_done = error == cuda::kSuccess;
  if (is_done) return {};
  if (error != cuda::kNotReady) return place(group) + ": " + what + ": " + cuda_->text_of("the GPU", error);
  cuda_->cudaGetLastError();  // which is otherwise what the next one to ask is told
  const std::string wrong = error_of(group);
  return wrong.empty() ? "" : what + ": " + wrong;
}

std::string World::wait(const Question& question, const Group& group, const std::string& what) const {
  constexpr int kQuestions = 64;  // between two looks at NCCL and the clock, some 0.1 ms
  const auto since = Clock::now();
  bool is_late = false;
  for (bool is_done = false;;) {
    for (int i = 0; i < kQuestions; ++i) {
      const cuda::Error error = question.ask(question.of);
      if (error == cuda::kSuccess) {
        if (is_late) cuda_->cudaGetLastError();  // not ready: it would be told to the next one who asks
        return {};
      }
      if (error != cuda::kNotReady) break;
      is_late = true;
      std::this_thread::yield();
    }
    std::string wrong = test(question, group, what, is_done);
    if (is_done || !wrong.empty()) return wrong;
    if (Clock::now() - since > patience_) return too_late(group, what);
  }
}

}  // namespace tutti::backend_nccl
