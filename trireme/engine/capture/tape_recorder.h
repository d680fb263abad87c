#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trireme/engine/capture/call_listener.h"
#include "trireme/engine/capture/tape.h"

namespace trireme::capture {

/// What makes the calls that come now.
struct Cause {
  int index = -1;
  bool is_seeded = false;  ///< Whether torch's generator is at the start of a stream of its own.
};

/// Writes down what a forward and its backward call, so that a replay can call it without them.
///
/// Tensors are known by their memory and how they lie in it, not as objects: views cost a replay nothing. What a replay
/// could not repeat is a refusal, never an exception: the run that is listened to goes on.
///
/// Keeps no memory of the run alive. Confined to the thread that runs it.
class TapeRecorder : public CallListener {
 public:
  /// Memory of the model, which stays where it is: may be read and not written.
  void add_fixed(const at::Tensor& tensor);

  /// What the run is given, before the calls of its phase. Each in memory of its own.
  void add_input(const at::Tensor& tensor);

  /// From here on calls are the next phase's.
  void begin_phase();

  /// A gradient leaves at a parameter's use site.
  void add_site(int site, const at::Tensor& gradient);

  /// What the run gives; may be undefined.
  void add_output(const at::Tensor& tensor);

  /// Asked for each call.
  void set_cause(std::function<Cause()> cause) { cause_ = std::move(cause); }

  void before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) override;
  void after(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> results) override;

  void refuse(const std::string& reason);

  /// Why there will be no tape; empty where there will.
  const std::string& refusal() const { return refusal_; }

  Tape take();

 private:
  struct Known {
    int buffer;
    std::ptrdiff_t begin;  ///< Byte of the storage where the buffer begins.
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  ///< So that its address means no other.
  };

  const Known* find(const at::Tensor& tensor) const;
  int add_buffer(const at::Tensor& tensor, TapeBuffer buffer, std::ptrdiff_t begin);
  at::Tensor view_of(const at::Tensor& tensor);
  c10::IValue stand_in(const c10::IValue& value);
  void note_use(const at::Tensor& tensor);
  void note_writes(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);
  void note_results(c10::ArrayRef<c10::IValue> results);
  bool is_written(const at::Tensor& view) const;
  void add_step(TapeStep step);

  Tape tape_;
  std::function<Cause()> cause_;
  std::unordered_map<const c10::StorageImpl*, Known> known_;
  std::vector<std::vector<at::Tensor>> views_;  ///< By buffer.
  TapeStep step_;                               ///< Being called.
  bool writes_ = false;                         ///< To its arguments.
  std::vector<at::Tensor> written_;             ///< Views of those, before the call.
  std::vector<int> used_;                       ///< Buffers that it takes.
  int phase_ = 0;
  std::string refusal_;
};

}  // namespace trireme::capture
