// SPDX-License-Identifier: Apache-2.0
// A double of CUDA's runtime library, for tests without a GPU. It has the functions of impl/cuda/runtime.h and the
// semantics that callers rely on: late streams, memory that the host cannot touch, events, captured graphs.
//
//   TUTTI_DOUBLE_DEVICES   GPUs there are said to be (8)
//   TUTTI_DOUBLE_DRIVER    CUDA's version that the driver has (13000); 0: there is no driver
//   TUTTI_DOUBLE_ERROR     what it says when it is asked how many GPUs there are (0)
//   TUTTI_DOUBLE_CAPABILITY  of the GPUs, as 90 for 9.0 (90)
//   TUTTI_DOUBLE_MULTIPROCESSORS  of a GPU (1)
//   TUTTI_DOUBLE_LOG       a file that gets a line for each graph, launch, group of calls, registration and split, copy
//                          within a GPU and memory that is set, opened by another process, closed by it and freed then
//   TUTTI_DOUBLE_LAUNCHES  0: launching a graph does nothing
//   TUTTI_DOUBLE_PEERS     0: no GPU addresses the memory of another one (1)
//   TUTTI_DOUBLE_PLACES    GPUs that are told apart by where they are: with 1 all are at the place of the first
//   TUTTI_DOUBLE_OFFERS    0: no memory of another process can be opened (1)
//   TUTTI_DOUBLE_LATE_US   the most that an item on a stream waits before it begins (60)
//
// The file is long, for it has a function for each entry point of the library that is called.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "impl/cuda/runtime.h"
#include "suites/backends/doubles/memory.h"
#include "suites/backends/doubles/settings.h"
#include "suites/backends/doubles/stream.h"

#define TUTTI_EXPORTED extern "C" __attribute__((visibility("default")))

namespace tutti::cuda {

#define TUTTI_DECLARED(result, name, parameters) TUTTI_EXPORTED result name parameters;
TUTTI_CUDA_FUNCTIONS(TUTTI_DECLARED)
#undef TUTTI_DECLARED

namespace {

using doubles::Arena;
using doubles::Capture;
using doubles::is_in_item;
using doubles::Item;
using doubles::Line;
using doubles::Mark;
using doubles::number_of;

constexpr int kVersion = 13000;
constexpr int kL2Bytes = 1 << 20;
constexpr int kThreadsOfMultiprocessor = 39;
constexpr Error kInvalidValue = 1, kNoMemory = 2, kMapFailed = 205, kPeerAccessUnsupported = 217,
                kPeerAccessAlreadyEnabled = 704, kInvalidDevice = 101, kInvalidHandle = 400, kNotPermitted = 800,
                kCaptureUnsupported = 900, kCaptureInvalidated = 901, kCapturedEvent = 907;

thread_local Error last_error = kSuccess;
thread_local int current_device = 0;

Error result(Error error) {
  if (error != kSuccess) last_error = error;
  return error;
}

int devices() { return number_of("TUTTI_DOUBLE_DEVICES", 8); }

/// Pairs of GPUs of which the first addresses the memory of the second.
struct Peers {
  std::mutex mutex;
  std::set<std::pair<int, int>> pairs;

  static Peers& get() {
    static auto& one = *new Peers();
    return one;
  }
};

/// Streams that were made, and a default one of each device.
struct Lines {
  std::mutex mutex;
  std::set<Line*> made;
  std::map<int, Line*> defaults;

  static Lines& get() {
    static auto& one = *new Lines();
    return one;
  }
  Line* find(Stream stream) {
    const std::lock_guard lock(mutex);
    if (stream != nullptr) return made.contains(static_cast<Line*>(stream)) ? static_cast<Line*>(stream) : nullptr;
    Line*& line = defaults[current_device];
    if (line == nullptr) line = new Line(current_device);
    return line;
  }
  std::vector<Line*> all() {
    const std::lock_guard lock(mutex);
    std::vector<Line*> lines(made.begin(), made.end());
    for (const auto& [device, line] : defaults) lines.push_back(line);
    return lines;
  }
};

/// Breaks the captures during which this thread must not call what it calls. Returns whether there is one.
bool breaks_a_capture() {
  bool breaks = false;
  for (Line* const line : Lines::get().all()) {
    const auto capture = line->capture();
    if (capture == nullptr || capture->mode == kCaptureRelaxed) continue;
    if (capture->mode == kCaptureThreadLocal && capture->thread != std::this_thread::get_id()) continue;
    capture->is_broken = breaks = true;
  }
  return breaks;
}

/// What is wrong with a call that takes its time, or memory.
Error check_unsafe() {
  if (is_in_item()) return kNotPermitted;
  return breaks_a_capture() ? kCaptureUnsupported : kSuccess;
}

/// The stream, unless it may not be asked.
Error check_stream(Stream stream, Line*& line) {
  if (const Error error = check_unsafe(); error != kSuccess) return error;
  line = Lines::get().find(stream);
  if (line == nullptr) return kInvalidHandle;
  if (const auto capture = line->capture(); capture != nullptr) {
    capture->is_broken = true;
    return kCaptureUnsupported;
  }
  return kSuccess;
}

struct EventOfUser {
  std::shared_ptr<Mark> mark = std::make_shared<Mark>();
};

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Where both ends of a copy can be touched; null: the caller mistook one for the other.
std::byte* end_of_copy(const void* memory, std::size_t bytes, bool is_of_device) {
  if (is_of_device) return Arena::get().at(memory, bytes);
  return Arena::get().holds(memory) ? nullptr : static_cast<std::byte*>(const_cast<void*>(memory));
}

Error make_copy(void* to, const void* from, std::size_t bytes, int direction, Item& item) {
  std::byte* const target = end_of_copy(to, bytes, direction == kHostToDevice || direction == kDeviceToDevice);
  const std::byte* const source = end_of_copy(from, bytes, direction == kDeviceToHost || direction == kDeviceToDevice);
  if (target == nullptr || source == nullptr) return kInvalidValue;
  item.work = [target, source, bytes] { std::memmove(target, source, bytes); };
  return kSuccess;
}

Error put(Stream stream, Item item) {
  if (is_in_item()) return kNotPermitted;
  Line* const line = Lines::get().find(stream);
  if (line == nullptr) return kInvalidHandle;
  line->put(std::move(item));
  return kSuccess;
}

void wait_for(const Mark& mark, std::uint64_t number) {
  while (mark.reached < number) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

}  // namespace

// Versions and errors

Error cudaDriverGetVersion(int* version) {
  *version = number_of("TUTTI_DOUBLE_DRIVER", kVersion);
  return kSuccess;
}
Error cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return kSuccess;
}
const char* cudaGetErrorName(Error error) {
  switch (error) {
    case kSuccess:
      return "cudaSuccess";
    case kInvalidValue:
      return "cudaErrorInvalidValue";
    case kNoMemory:
      return "cudaErrorMemoryAllocation";
    case kNotReady:
      return "cudaErrorNotReady";
    case kNotPermitted:
      return "cudaErrorNotPermitted";
    case kCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case kCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case kCapturedEvent:
      return "cudaErrorCapturedEvent";
    default:
      return "cudaErrorOfTheDouble";
  }
}
const char* cudaGetErrorString(Error error) { return error == kSuccess ? "no error" : "as the double has it"; }
Error cudaGetLastError() { return std::exchange(last_error, kSuccess); }

// Devices

Error cudaGetDeviceCount(int* count) {
  const int driver = number_of("TUTTI_DOUBLE_DRIVER", kVersion);
  if (driver < kVersion) return result(kInsufficientDriver);  // the count is left alone
  if (const Error error = number_of("TUTTI_DOUBLE_ERROR", 0); error != kSuccess) return result(error);
  *count = devices();
  return result(*count == 0 ? kNoDevice : kSuccess);
}
Error cudaGetDevice(int* device) {
  *device = current_device;
  return kSuccess;
}
Error cudaSetDevice(int device) {
  if (device < 0 || device >= devices()) return result(kInvalidDevice);
  current_device = device;
  return kSuccess;
}
Error cudaGetDeviceProperties(void* properties, int device) {
  std::memset(properties, 0, kPropertiesBytes / 4);
  std::snprintf(static_cast<char*>(properties), kNameBytes, "Double %d", device);
  return kSuccess;
}
Error cudaDeviceGetAttribute(int* value, int attribute, int device) {
  if (device < 0 || device >= devices()) return result(kInvalidDevice);
  if (attribute == kL2CacheBytes) {
    *value = kL2Bytes;
    return kSuccess;
  }
  if (attribute == kMultiprocessors) {
    *value = number_of("TUTTI_DOUBLE_MULTIPROCESSORS", 1);
    return kSuccess;
  }
  if (attribute == kThreadsOfMultiprocessor) {
    *value = 1 << 15;
    return kSuccess;
  }
  const int capability = number_of("TUTTI_DOUBLE_CAPABILITY", 90);
  *value = attribute == kCapabilityMajor ? capability / 10 : attribute == kCapabilityMinor ? capability % 10 : 1;
  return kSuccess;
}
Error cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  const int places = std::max(1, number_of("TUTTI_DOUBLE_PLACES", 256));
  std::snprintf(text, static_cast<std::size_t>(bytes), "0000:%02x:00.0", device % places);
  return kSuccess;
}
TUTTI_EXPORTED Error cudaDeviceGetByPCIBusId(int* device, const char* text) {
  for (int one = 0; one < devices(); ++one) {
    char place[32];
    (void)cudaDeviceGetPCIBusId(place, sizeof place, one);
    if (std::strcmp(place, text) != 0) continue;
    *device = one;
    return kSuccess;
  }
  return result(kInvalidDevice);
}
TUTTI_EXPORTED Error cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (std::max(device, peer) >= devices()) return result(kInvalidDevice);
  *can = device != peer && number_of("TUTTI_DOUBLE_PEERS", 1) != 0 ? 1 : 0;
  return kSuccess;
}
TUTTI_EXPORTED Error cudaDeviceEnablePeerAccess(int peer, unsigned /*flags*/) {
  int can = 0;
  if (const Error error = cudaDeviceCanAccessPeer(&can, current_device, peer); error != kSuccess) return error;
  if (can == 0) return result(kPeerAccessUnsupported);
  const std::lock_guard lock(Peers::get().mutex);
  if (!Peers::get().pairs.emplace(current_device, peer).second) return result(kPeerAccessAlreadyEnabled);
  doubles::tell("peers " + std::to_string(current_device) + " " + std::to_string(peer));
  return kSuccess;
}
Error cudaDeviceSynchronize() {
  if (const Error error = check_unsafe(); error != kSuccess) return result(error);
  for (Line* const line : Lines::get().all()) {
    if (line->device() == current_device) line->wait_until_idle();
  }
  return kSuccess;
}

// Memory

Error cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = Arena::kBytes;
  *free = Arena::get().bytes_left();
  return kSuccess;
}
Error cudaMalloc(void** memory, std::size_t bytes) {
  if (const Error error = check_unsafe(); error != kSuccess) return result(error);
  *memory = Arena::get().allocate(bytes, current_device);
  return result(*memory == nullptr ? kNoMemory : kSuccess);
}
Error cudaFree(void* memory) {
  if (memory == nullptr) return kSuccess;
  if (const Error error = cudaDeviceSynchronize(); error != kSuccess) return error;
  if (Arena::get().is_offered(memory)) doubles::tell("freed " + std::to_string(Arena::get().device_of(memory)));
  return result(Arena::get().release(memory) ? kSuccess : kInvalidValue);
}

// Memory of other processes

TUTTI_EXPORTED Error cudaIpcGetMemHandle(Arena::Handle* handle, void* memory) {
  if (const Error error = check_unsafe(); error != kSuccess) return result(error);
  return result(Arena::get().offer(memory, *handle) ? kSuccess : kInvalidValue);
}
/// The current GPU is a peer of the other one from here on.
TUTTI_EXPORTED Error cudaIpcOpenMemHandle(void** memory, Arena::Handle handle, unsigned /*flags*/) {
  if (const Error error = check_unsafe(); error != kSuccess) return result(error);
  if (number_of("TUTTI_DOUBLE_OFFERS", 1) == 0) return result(kMapFailed);
  *memory = Arena::get().open(handle);
  if (*memory == nullptr) return result(kMapFailed);
  const int owner = Arena::get().device_of(*memory);
  {
    const std::lock_guard lock(Peers::get().mutex);
    Peers::get().pairs.emplace(current_device, owner);
  }
  doubles::tell("opened " + std::to_string(owner) + " on " + std::to_string(current_device));
  return kSuccess;
}
TUTTI_EXPORTED Error cudaIpcCloseMemHandle(void* memory) {
  if (const Error error = cudaDeviceSynchronize(); error != kSuccess) return error;
  const int owner = Arena::get().device_of(memory);
  if (!Arena::get().close(memory)) return result(kInvalidValue);
  doubles::tell("closed " + std::to_string(owner) + " on " + std::to_string(current_device));
  return kSuccess;
}

Error cudaHostAlloc(void** memory, std::size_t bytes, unsigned /*flags*/) {
  if (const Error error = check_unsafe(); error != kSuccess) return result(error);
  *memory = std::aligned_alloc(4096, (std::max<std::size_t>(bytes, 1) + 4095) / 4096 * 4096);
  return result(*memory == nullptr ? kNoMemory : kSuccess);
}
Error cudaFreeHost(void* memory) {
  std::free(memory);
  return kSuccess;
}
/// It waits for no stream, as if all were of the kind that does not block: who forgets to synchronise finds out.
Error cudaMemcpy(void* to, const void* from, std::size_t bytes, int direction) {
  if (const Error error = check_unsafe(); error != kSuccess) return result(error);
  Item item;
  if (const Error error = make_copy(to, from, bytes, direction, item); error != kSuccess) return result(error);
  item.work();
  return kSuccess;
}
Error cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int direction, Stream stream) {
  Item item;
  if (const Error error = make_copy(to, from, bytes, direction, item); error != kSuccess) return result(error);
  if (direction == kDeviceToDevice) doubles::tell("copy of " + std::to_string(bytes));
  return result(put(stream, std::move(item)));
}
Error cudaMemset(void* memory, int value, std::size_t bytes) {
  if (const Error error = check_unsafe(); error != kSuccess) return result(error);
  return cudaMemsetAsync(memory, value, bytes, nullptr);
}
Error cudaMemsetAsync(void* memory, int value, std::size_t bytes, Stream stream) {
  std::byte* const target = Arena::get().at(memory, bytes);
  if (target == nullptr) return result(kInvalidValue);
  doubles::tell("set of " + std::to_string(bytes));
  return result(put(stream, {.work = [target, value, bytes] { std::memset(target, value, bytes); }}));
}

// Streams

Error cudaStreamCreateWithFlags(Stream* stream, unsigned /*flags*/) {
  if (is_in_item()) return result(kNotPermitted);
  auto* const line = new Line(current_device);
  *stream = line;
  const std::lock_guard lock(Lines::get().mutex);
  Lines::get().made.insert(line);
  return kSuccess;
}
Error cudaStreamDestroy(Stream stream) {
  Line* const line = Lines::get().find(stream);
  if (line == nullptr || stream == nullptr) return result(kInvalidHandle);
  {
    const std::lock_guard lock(Lines::get().mutex);
    Lines::get().made.erase(line);
  }
  delete line;
  return kSuccess;
}
Error cudaStreamQuery(Stream stream) {
  Line* line = nullptr;
  if (const Error error = check_stream(stream, line); error != kSuccess) return result(error);
  return result(line->is_idle() ? kSuccess : kNotReady);
}
Error cudaStreamSynchronize(Stream stream) {
  Line* line = nullptr;
  if (const Error error = check_stream(stream, line); error != kSuccess) return result(error);
  line->wait_until_idle();
  return kSuccess;
}
Error cudaStreamWaitEvent(Stream stream, Event event, unsigned /*flags*/) {
  const auto mark = static_cast<EventOfUser*>(event)->mark;
  if (mark->is_captured) return kSuccess;  // of the same capture, whose items are in order anyway
  return result(
      put(stream, {.work = [mark, number = mark->recorded.load()] { wait_for(*mark, number); }, .is_late = false}));
}

// Graphs

Error cudaStreamBeginCapture(Stream stream, int mode) {
  Line* const line = Lines::get().find(stream);
  if (line == nullptr) return result(kInvalidHandle);
  if (is_in_item() || stream == nullptr || line->capture() != nullptr) return result(kCaptureUnsupported);
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  line->begin(std::move(capture));
  return kSuccess;
}
Error cudaStreamEndCapture(Stream stream, Graph* graph) {
  Line* const line = Lines::get().find(stream);
  const auto capture = line == nullptr ? nullptr : line->end();
  *graph = nullptr;
  if (capture == nullptr) return result(kInvalidHandle);
  if (capture->is_broken) return result(kCaptureInvalidated);
  *graph = new std::vector<Item>(capture->items);
  return kSuccess;
}
Error cudaStreamIsCapturing(Stream stream, int* status) {
  Line* const line = Lines::get().find(stream);
  if (line == nullptr) return result(kInvalidHandle);
  const auto capture = line->capture();
  *status = capture == nullptr ? 0 : capture->is_broken ? 2 : 1;
  return kSuccess;
}
Error cudaGraphInstantiateWithFlags(GraphExec* executable, Graph graph, unsigned long long /*flags*/) {
  *executable = new std::vector<Item>(*static_cast<std::vector<Item>*>(graph));
  doubles::tell("graph of " + std::to_string(static_cast<std::vector<Item>*>(graph)->size()));
  return kSuccess;
}
Error cudaGraphLaunch(GraphExec executable, Stream stream) {
  doubles::tell("launch");
  if (number_of("TUTTI_DOUBLE_LAUNCHES", 1) == 0) return kSuccess;
  for (const Item& item : *static_cast<std::vector<Item>*>(executable)) {
    if (const Error error = put(stream, item); error != kSuccess) return result(error);
  }
  return kSuccess;
}
Error cudaGraphExecDestroy(GraphExec executable) {
  delete static_cast<std::vector<Item>*>(executable);
  return kSuccess;
}
Error cudaGraphDestroy(Graph graph) {
  delete static_cast<std::vector<Item>*>(graph);
  return kSuccess;
}

// Events

Error cudaEventCreateWithFlags(Event* event, unsigned /*flags*/) {
  *event = new EventOfUser();
  return kSuccess;
}
Error cudaEventDestroy(Event event) {
  delete static_cast<EventOfUser*>(event);
  return kSuccess;
}
Error cudaEventRecord(Event event, Stream stream) {
  const auto mark = static_cast<EventOfUser*>(event)->mark;
  Line* const line = Lines::get().find(stream);
  if (line == nullptr) return result(kInvalidHandle);
  mark->is_captured = line->capture() != nullptr;
  if (mark->is_captured) return kSuccess;
  const std::uint64_t number = ++mark->recorded;
  return result(put(stream, {.work =
                                 [mark, number] {
                                   mark->time_ns = now_ns();
                                   mark->reached = number;
                                 },
                             .is_late = false}));
}
Error cudaEventQuery(Event event) {
  if (const Error error = check_unsafe(); error != kSuccess) return result(error);
  const Mark& mark = *static_cast<EventOfUser*>(event)->mark;
  if (mark.is_captured) return result(kCapturedEvent);
  return result(mark.reached >= mark.recorded ? kSuccess : kNotReady);
}
Error cudaEventSynchronize(Event event) {
  if (const Error error = check_unsafe(); error != kSuccess) return result(error);
  const auto mark = static_cast<EventOfUser*>(event)->mark;
  if (mark->is_captured) return result(kCapturedEvent);
  wait_for(*mark, mark->recorded);
  return kSuccess;
}
Error cudaEventElapsedTime(float* milliseconds, Event first, Event last) {
  const Mark& begin = *static_cast<EventOfUser*>(first)->mark;
  const Mark& end = *static_cast<EventOfUser*>(last)->mark;
  if (begin.reached < begin.recorded || end.reached < end.recorded) return result(kNotReady);
  if (begin.recorded == 0 || end.recorded == 0) return result(kInvalidHandle);
  *milliseconds = static_cast<float>(end.time_ns - begin.time_ns) * 1e-6F;
  return kSuccess;
}

/// The function may not call CUDA: is_in_item sees to that.
Error cudaLaunchHostFunc(Stream stream, HostFunction function, void* argument) {
  return result(put(stream, {.work = [function, argument] { function(argument); }}));
}

}  // namespace tutti::cuda

TUTTI_EXPORTED void* tutti_double_at(const void* memory, std::size_t bytes) {
  return tutti::doubles::Arena::get().at(memory, bytes);
}
TUTTI_EXPORTED int tutti_double_device_of(const void* memory) { return tutti::doubles::Arena::get().device_of(memory); }
TUTTI_EXPORTED void tutti_double_open_to_host() { tutti::doubles::Arena::get().open_to_host(); }
TUTTI_EXPORTED bool tutti_double_reaches(int device, int other) {
  auto& peers = tutti::cuda::Peers::get();
  const std::lock_guard lock(peers.mutex);
  return device == other || peers.pairs.contains({device, other});
}
TUTTI_EXPORTED int tutti_double_device_of_stream(tutti::cuda::Stream stream) {
  auto* const line = tutti::cuda::Lines::get().find(stream);
  return line == nullptr ? -1 : line->device();
}
TUTTI_EXPORTED std::size_t tutti_double_blocks() { return tutti::doubles::Arena::get().blocks(); }
