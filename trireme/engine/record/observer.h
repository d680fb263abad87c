#pragma once

#include <ATen/record_function.h>

#include <memory>
#include <string>
#include <vector>

#include "trireme/model.h"

namespace trireme::record {

/// One call of an opaque function, seen by an observer.
struct OpaqueCall {
  const std::shared_ptr<const OpaqueFunction>& function;
  const TensorList& inputs;
  const TensorList& outputs;  ///< Empty before the call.
};

/// Told of each operator that user code on this thread calls: not of those inside operators, nor of
/// those inside opaque calls. Calls come in order; `index` counts operators and opaque calls alike.
/// What a method throws is kept by the observation and thrown at its end.
class OperatorListener {
 public:
  virtual ~OperatorListener() = default;
  virtual void before(int index, const at::RecordFunction& call) = 0;
  virtual void after(int index, const at::RecordFunction& call) = 0;
  virtual void before_opaque(int index, const OpaqueCall& call) = 0;
  virtual void after_opaque(int index, const OpaqueCall& call) = 0;
};

/// While it lives, operators on this thread are told to `listener`. One at a time per thread.
///
/// Cost   50 ns an operator, nested ones included, and the boxing of arguments.
class Observation {
 public:
  explicit Observation(OperatorListener& listener);
  ~Observation();
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

  /// Throws what a listener threw, if any did: exceptions cannot leave an operator's callback.
  void rethrow() const;

 private:
  at::CallbackHandle handle_;
};

}  // namespace trireme::record
