#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

namespace trireme::record {

/// Initial values of large tensors, put off until somebody wants them: a model larger than this process's memory can be
/// made, recorded and cut, and each rank fills what it holds.
///
/// While `making`, operators that write a whole tensor without reading another one (`normal_`, `fill_`, `mul_` by a
/// number after them, ...) are noted instead of run; until `fill` the tensor reads as zeros, which take no memory. An
/// operator that would read such a tensor, or write it otherwise, fills it first: right, and only the memory is lost.
///
/// Caller-synchronised.
class DeferredInit {
 public:
  static constexpr std::int64_t kSmallest = 64 << 10;  ///< Bytes; smaller ones are filled at once.

  DeferredInit() = default;
  DeferredInit(const DeferredInit&) = delete;
  DeferredInit& operator=(const DeferredInit&) = delete;

  /// Runs `make`, putting off what this thread initialises in it. Random numbers are those that the generator would have
  /// given at that place. It does not move on by what is put off: the caller seeds it for each draw.
  ///
  /// Errors   kInvalidArgument where memory that waits for its values was read or written by other means than operators (a
  ///          raw pointer, a NumPy array), which cannot be seen; so those of `fill`.
  void making(const std::function<void()>& make);

  /// Puts off `write` to a tensor whose initialisation has been put off, by the one that is `making` on this thread; else
  /// returns false. `write` writes all of that tensor and no other.
  static bool put_off(const at::Tensor& tensor, std::function<void()> write);

  /// Gives the tensor its values, if they were put off. Errors   kInvalidArgument where it was written in the meantime.
  /// Cost: that of the operators.
  void fill(const at::Tensor& tensor);

  /// All but `tensors` and what shares memory with them.
  void fill_all_but(const std::vector<at::Tensor>& tensors);

  /// Memory of tensors that wait.
  std::int64_t bytes() const;

 private:
  struct Waiting {
    c10::Storage storage;
    std::vector<std::function<void()>> writes;
  };

  friend void run_or_put_off(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                             torch::jit::Stack* stack);

  bool puts_off(const c10::OperatorHandle& op, const torch::jit::Stack& arguments);
  void fill_read(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);
  Waiting* find(const at::Tensor& tensor);
  void fill(Waiting waiting);

  std::unordered_map<const c10::StorageImpl*, Waiting> waiting_;
};

/// Gives the memory of a tensor's values back to the system, which are zeros then: for a forward whose values are of no
/// interest. Nothing where it is small or not torch's own memory.
void forget_values(const at::Tensor& tensor);

}  // namespace trireme::record
