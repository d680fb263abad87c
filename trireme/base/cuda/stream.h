#pragma once

#include <memory>
#include <optional>

#include "trireme/base/device.h"
#include "trireme/error.h"

// What CUDA calls a cudaStream_t is a pointer to one of these.
struct CUstream_st;

namespace trireme::cuda {

/// A stream of GPU `index` that does not wait for its default stream. What `trireme::make_stream`
/// gives.
///
/// Errors   kUnavailable, saying why, without GPU, driver or toolkit.
std::unique_ptr<Stream> make_stream(int index);

/// One that somebody else made and keeps, such as torch's current one.
std::unique_ptr<Stream> borrow_stream(int index, CUstream_st* handle);

/// Errors as of make_stream. `is_done` and `wait` throw kIo where work before the mark has failed.
std::unique_ptr<Event> make_event(int index);

/// For CUDA's own functions; null of a stream of a CPU.
CUstream_st* handle_of(Stream& stream);

/// Whether what is given to it is recorded to a CUDA graph and not run.
bool is_capturing(Stream& stream);

/// Why this build or machine cannot drive a GPU; nothing where it can. Starts CUDA: processes that
/// are forked later cannot use it.
std::optional<Error> why_no_gpu();

/// GPUs that this process sees. Errors as of make_stream.
int count_gpus();

/// Makes a device the calling thread's current one, until this ends. Nothing for a CPU.
class CurrentDevice {
 public:
  explicit CurrentDevice(const Device& device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  [[maybe_unused]] int previous_ = -1;  ///< Below 0: nothing to go back to.
};

}  // namespace trireme::cuda
