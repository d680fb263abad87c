#include "trireme/base/cuda/stream.h"

#include <cuda_runtime_api.h>

#include <string>

#include "trireme/base/cuda/check.h"

namespace trireme::cuda {
namespace {

ErrorKind kind_of(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return ErrorKind::kResourceExhausted;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorNoKernelImageForDevice:
      return ErrorKind::kUnavailable;
    default:
      return ErrorKind::kIo;
  }
}

std::string advice_for(cudaError_t code) {
  switch (code) {
    case cudaErrorNoDevice:
      return "; is a GPU there, and does CUDA_VISIBLE_DEVICES hide it? Else use device cpu";
    case cudaErrorInvalidDevice:
      return "; this process sees no GPU of that index";
    case cudaErrorInsufficientDriver:
      return "; NVIDIA's driver is missing or older than this program's CUDA: install it, or use "
             "device cpu";
    case cudaErrorInitializationError:
      return "; was this process forked from one that had used CUDA?";
    default:
      return "";
  }
}

class CudaStream final : public Stream {
 public:
  CudaStream(int index, cudaStream_t handle, bool is_owned)
      : index_(index), handle_(handle), is_owned_(is_owned) {}
  ~CudaStream() override {
    if (is_owned_) cudaStreamDestroy(handle_);  // after the work that it has
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  Device device() const override { return {DeviceKind::kCuda, index_}; }
  void run_after(const Event& event) override;
  void wait() override { check(cudaStreamSynchronize(handle_), "cudaStreamSynchronize"); }

  cudaStream_t handle() const { return handle_; }

 private:
  int index_;
  cudaStream_t handle_;
  bool is_owned_;
};

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(int index) : index_(index) {
    const CurrentDevice current(device());
    check(cudaEventCreate(&handle_), "cudaEventCreate");
  }
  ~CudaEvent() override { cudaEventDestroy(handle_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  Device device() const override { return {DeviceKind::kCuda, index_}; }

  void record(Stream& stream) override {
    if (stream.device() != device()) {
      throw Error(ErrorKind::kInvalidArgument, "an event of device " + to_text(device()) +
                                                   " cannot mark a stream of " +
                                                   to_text(stream.device()));
    }
    check(cudaEventRecord(handle_, handle_of(stream)), "cudaEventRecord");
  }

  bool is_done() const override {
    const cudaError_t code = cudaEventQuery(handle_);
    if (code == cudaErrorNotReady) return false;
    check(code, "cudaEventQuery");
    return true;
  }

  void wait() const override { check(cudaEventSynchronize(handle_), "cudaEventSynchronize"); }

  std::chrono::nanoseconds since(const Event& earlier) const override {
    const auto* other = dynamic_cast<const CudaEvent*>(&earlier);
    float milliseconds = 0;
    if (other == nullptr || other->index_ != index_ ||
        cudaEventElapsedTime(&milliseconds, other->handle_, handle_) != cudaSuccess) {
      cudaGetLastError();  // or a later call would report it
      throw Error(ErrorKind::kInvalidArgument,
                  "time between events: both must be recorded and done, and both of device " +
                      to_text(device()));
    }
    return std::chrono::nanoseconds(static_cast<std::int64_t>(double{milliseconds} * 1e6));
  }

  cudaEvent_t handle() const { return handle_; }

 private:
  int index_;
  cudaEvent_t handle_ = nullptr;
};

void CudaStream::run_after(const Event& event) {
  if (const auto* mark = dynamic_cast<const CudaEvent*>(&event)) {
    return check(cudaStreamWaitEvent(handle_, mark->handle(), 0), "cudaStreamWaitEvent");
  }
  event.wait();
}

}  // namespace

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // or a later call would report it
  throw Error(kind_of(code), std::string(call) + ": " + cudaGetErrorString(code) + " (" +
                                 cudaGetErrorName(code) + ")" + advice_for(code));
}

CurrentDevice::CurrentDevice(const Device& device) {
  if (device.kind != DeviceKind::kCuda) return;
  int previous = 0;
  check(cudaGetDevice(&previous), "cudaGetDevice");
  check(cudaSetDevice(device.index), "cudaSetDevice");
  previous_ = previous;
}

CurrentDevice::~CurrentDevice() {
  if (previous_ >= 0) cudaSetDevice(previous_);
}

std::unique_ptr<Stream> make_stream(int index) {
  const CurrentDevice current({DeviceKind::kCuda, index});
  cudaStream_t handle = nullptr;
  check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return std::make_unique<CudaStream>(index, handle, true);
}

std::unique_ptr<Stream> borrow_stream(int index, CUstream_st* handle) {
  return std::make_unique<CudaStream>(index, handle, false);
}

std::unique_ptr<Event> make_event(int index) { return std::make_unique<CudaEvent>(index); }

CUstream_st* handle_of(Stream& stream) {
  const auto* own = dynamic_cast<CudaStream*>(&stream);
  return own == nullptr ? nullptr : own->handle();
}

bool is_capturing(Stream& stream) {
  if (dynamic_cast<CudaStream*>(&stream) == nullptr) return false;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(handle_of(stream), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

int count_gpus() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

std::optional<Error> why_no_gpu() {
  try {
    if (count_gpus() == 0) check(cudaErrorNoDevice, "cudaGetDeviceCount");
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace trireme::cuda
