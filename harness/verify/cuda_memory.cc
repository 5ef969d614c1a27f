// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/cuda_memory.h"

#include <algorithm>

#include "harness/verify/check.h"

namespace tutti::harness::verify {
namespace {

Status outcome(const cuda::Runtime& cuda, const char* function, cuda::Error failure) {
  return failure == cuda::kSuccess ? Status() : error(Code::io, "{}", cuda.text_of(function, failure));
}

class CudaGraph final : public Graph {
 public:
  CudaGraph(std::shared_ptr<const cuda::Runtime> cuda, cuda::GraphExec executable, cuda::Stream stream)
      : cuda_(std::move(cuda)), executable_(executable), stream_(stream) {}
  ~CudaGraph() override { cuda_->cudaGraphExecDestroy(executable_); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  Status launch() override { return outcome(*cuda_, "cudaGraphLaunch", cuda_->cudaGraphLaunch(executable_, stream_)); }

 private:
  std::shared_ptr<const cuda::Runtime> cuda_;
  cuda::GraphExec executable_;
  cuda::Stream stream_;
};

class CudaInstants final : public Instants {
 public:
  CudaInstants(std::shared_ptr<const cuda::Runtime> cuda, cuda::Stream stream)
      : cuda_(std::move(cuda)), stream_(stream) {}
  ~CudaInstants() override {
    for (const cuda::Event event : events_) cuda_->cudaEventDestroy(event);
  }
  CudaInstants(const CudaInstants&) = delete;
  CudaInstants& operator=(const CudaInstants&) = delete;

  /// Requires: the stream's device is the current one.
  Status reserve(int most) {
    events_.reserve(static_cast<std::size_t>(most));
    for (int i = 0; i < most; ++i) {
      cuda::Event event = nullptr;
      const cuda::Error failure = cuda_->cudaEventCreateWithFlags(&event, cuda::kEventDefault);
      TUTTI_RETURN_IF_ERROR(outcome(*cuda_, "cudaEventCreateWithFlags", failure));
      events_.push_back(event);
    }
    return {};
  }

  Status mark() override {
    TUTTI_ASSERT(marked_ < events_.size(), "{} instants, and one more", events_.size());
    return outcome(*cuda_, "cudaEventRecord", cuda_->cudaEventRecord(events_[marked_++], stream_));
  }

  [[nodiscard]] Result<std::size_t> passed() override {
    for (; passed_ < marked_; ++passed_) {
      const cuda::Error answer = cuda_->cudaEventQuery(events_[passed_]);
      if (answer == cuda::kNotReady) {
        cuda_->cudaGetLastError();  // it would be told to the next one who asks
        break;
      }
      TUTTI_RETURN_IF_ERROR(outcome(*cuda_, "cudaEventQuery", answer));
    }
    return passed_;
  }

  [[nodiscard]] Result<std::vector<double>> intervals_us() override {
    constexpr double kMicroseconds = 1e3;  // of milliseconds
    std::vector<double> intervals;
    // A call that runs on another stream may be complete before its end is reached on this one.
    if (marked_ > 0) {
      const cuda::Error failure = cuda_->cudaEventSynchronize(events_[marked_ - 1]);
      TUTTI_RETURN_IF_ERROR(outcome(*cuda_, "cudaEventSynchronize", failure));
    }
    for (std::size_t i = 1; i < marked_; ++i) {
      float milliseconds = 0;
      const cuda::Error failure = cuda_->cudaEventElapsedTime(&milliseconds, events_[i - 1], events_[i]);
      TUTTI_RETURN_IF_ERROR(outcome(*cuda_, "cudaEventElapsedTime", failure));
      intervals.push_back(static_cast<double>(milliseconds) * kMicroseconds);
    }
    return intervals;
  }

  void restart() override { marked_ = passed_ = 0; }

 private:
  std::shared_ptr<const cuda::Runtime> cuda_;
  cuda::Stream stream_;
  std::vector<cuda::Event> events_;
  std::size_t marked_ = 0, passed_ = 0;
};

}  // namespace

Result<std::unique_ptr<CudaMemory>> CudaMemory::open(std::shared_ptr<const cuda::Runtime> runtime, int device) {
  if (device < 0 || device >= runtime->devices) {
    return error(Code::unavailable, "GPU {} is out of range: 0 to {}, those that CUDA shows here", device,
                 runtime->devices - 1);
  }
  cuda::Stream stream = nullptr;
  cuda::Error failure = runtime->cudaSetDevice(device);
  if (failure == cuda::kSuccess) failure = runtime->cudaStreamCreateWithFlags(&stream, cuda::kStreamNonBlocking);
  if (failure != cuda::kSuccess) {
    return error(Code::unavailable, "GPU {}: {}", device, runtime->text_of("cudaStreamCreateWithFlags", failure));
  }
  return std::unique_ptr<CudaMemory>(new CudaMemory(std::move(runtime), device, stream));
}

CudaMemory::~CudaMemory() {
  if (other_ != nullptr) cuda_->cudaFree(other_);
  cuda_->cudaStreamDestroy(stream_);
}

void CudaMemory::expect(const char* function, cuda::Error error) const {
  TUTTI_ASSERT(error == cuda::kSuccess, "GPU {}: {}", device_, cuda_->text_of(function, error));
}

Status CudaMemory::begin_capture() {
  // Other threads of the process may call CUDA meanwhile, and a library may have to allocate.
  return outcome(*cuda_, "cudaStreamBeginCapture", cuda_->cudaStreamBeginCapture(stream_, cuda::kCaptureThreadLocal));
}

Result<std::unique_ptr<Graph>> CudaMemory::end_capture() {
  cuda::Graph graph = nullptr;
  TUTTI_RETURN_IF_ERROR(outcome(*cuda_, "cudaStreamEndCapture", cuda_->cudaStreamEndCapture(stream_, &graph)));
  cuda::GraphExec executable = nullptr;
  expect("cudaSetDevice", cuda_->cudaSetDevice(device_));
  const cuda::Error failure = cuda_->cudaGraphInstantiateWithFlags(&executable, graph, 0);
  cuda_->cudaGraphDestroy(graph);
  TUTTI_RETURN_IF_ERROR(outcome(*cuda_, "cudaGraphInstantiateWithFlags", failure));
  return std::unique_ptr<Graph>(new CudaGraph(cuda_, executable, stream_));
}

Status CudaMemory::start_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  return outcome(*cuda_, "cudaMemcpyAsync", cuda_->cudaMemcpyAsync(to, from, bytes, cuda::kDeviceToDevice, stream_));
}

Result<bool> CudaMemory::is_idle() {
  const cuda::Error answer = cuda_->cudaStreamQuery(stream_);
  if (answer == cuda::kNotReady) return false;
  TUTTI_RETURN_IF_ERROR(outcome(*cuda_, "cudaStreamQuery", answer));
  return true;
}

void CudaMemory::flush(std::span<const std::byte> there) const {
  constexpr std::size_t kTimesTheCache = 2;
  if (there.empty()) return;
  expect("cudaSetDevice", cuda_->cudaSetDevice(device_));
  if (other_ == nullptr) {
    int cache = 0;
    expect("cudaDeviceGetAttribute", cuda_->cudaDeviceGetAttribute(&cache, cuda::kL2CacheBytes, device_));
    other_bytes_ = kTimesTheCache * static_cast<std::size_t>(std::max(cache, 1));
    expect("cudaMalloc", cuda_->cudaMalloc(&other_, other_bytes_));
  }
  expect("cudaMemsetAsync", cuda_->cudaMemsetAsync(other_, 0, other_bytes_, stream_));
  expect("cudaStreamSynchronize", cuda_->cudaStreamSynchronize(stream_));
}

Result<std::unique_ptr<Instants>> CudaMemory::instants(int most) {
  expect("cudaSetDevice", cuda_->cudaSetDevice(device_));
  auto made = std::make_unique<CudaInstants>(cuda_, stream_);
  TUTTI_RETURN_IF_ERROR(made->reserve(most));
  return std::unique_ptr<Instants>(std::move(made));
}

Result<void*> CudaMemory::allocate(std::size_t bytes) {
  expect("cudaSetDevice", cuda_->cudaSetDevice(device_));
  void* memory = nullptr;
  const cuda::Error failure = cuda_->cudaMalloc(&memory, bytes);
  if (failure == cuda::kSuccess) return memory;
  std::size_t free = 0, total = 0;
  (void)cuda_->cudaMemGetInfo(&free, &total);
  return error(Code::resource, "no memory for a buffer of {} bytes on GPU {}: {} of {} are free", bytes, device_, free,
               total);
}

void CudaMemory::release(void* pointer) {
  expect("cudaSetDevice", cuda_->cudaSetDevice(device_));
  expect("cudaFree", cuda_->cudaFree(pointer));
}

void CudaMemory::write(std::byte* there, std::span<const std::byte> here) {
  if (here.empty()) return;
  // cudaMemcpy may return before pageable memory has arrived, and streams of calls do not wait for its stream.
  expect("cudaSetDevice", cuda_->cudaSetDevice(device_));
  expect("cudaMemcpyAsync", cuda_->cudaMemcpyAsync(there, here.data(), here.size(), cuda::kHostToDevice, stream_));
  expect("cudaStreamSynchronize", cuda_->cudaStreamSynchronize(stream_));
}

void CudaMemory::read(std::span<std::byte> here, const std::byte* there) const {
  if (!here.empty()) expect("cudaMemcpy", cuda_->cudaMemcpy(here.data(), there, here.size(), cuda::kDeviceToHost));
}

}  // namespace tutti::harness::verify
