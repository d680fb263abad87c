#include "trireme/engine/record/observer.h"

#include <exception>
#include <utility>

#include "trireme/error.h"

namespace trireme {
namespace record {
namespace {

/// What the callbacks of this thread work on: they are plain function pointers.
struct Watch {
  OperatorListener* listener = nullptr;
  int depth = 0;       ///< Operators (and opaque calls) that have begun and not ended.
  int next_index = 0;  ///< Of the next operator at depth 0.
  std::exception_ptr error;
};

thread_local Watch watch;

template <typename Call>
void guarded(Call&& call) {
  if (watch.error) return;
  try {
    const at::DisableRecordFunctionGuard unobserved;
    call();
  } catch (...) {
    watch.error = std::current_exception();
  }
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& call) {
  if (watch.depth++ == 0 && watch.listener != nullptr) {
    guarded([&] { watch.listener->before(watch.next_index, call); });
  }
  return nullptr;
}

void on_end(const at::RecordFunction& call, at::ObserverContext*) {
  if (--watch.depth == 0 && watch.listener != nullptr) {
    guarded([&] { watch.listener->after(watch.next_index, call); });
    ++watch.next_index;
  }
}

/// Keeps the depth above zero while an opaque function runs, even if it throws.
class OpaqueScope {
 public:
  OpaqueScope() { ++watch.depth; }
  ~OpaqueScope() {
    if (--watch.depth == 0) ++watch.next_index;
  }
  OpaqueScope(const OpaqueScope&) = delete;
  OpaqueScope& operator=(const OpaqueScope&) = delete;
  bool is_outermost() const { return watch.depth == 1 && watch.listener != nullptr; }
};

void refuse_shared_memory(const OpaqueFunction& function, const TensorList& inputs,
                          const TensorList& outputs) {
  for (const at::Tensor& output : outputs) {
    for (const at::Tensor& input : inputs) {
      if (output.defined() && input.defined() && output.is_alias_of(input)) {
        throw Error(ErrorKind::kInvalidArgument, "the opaque function '" + function.name +
                                                     "' returns memory of one of its inputs; "
                                                     "return a clone() instead");
      }
    }
  }
}

}  // namespace

Observation::Observation(OperatorListener& listener) {
  if (watch.listener != nullptr) {
    throw Error(ErrorKind::kInvalidArgument,
                "operators of this thread are being observed already; a model's forward cannot "
                "record a model");
  }
  watch = {.listener = &listener};
  handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(on_start, on_end)
                                           .needsInputs(true)
                                           .needsOutputs(true)
                                           .scopes({at::RecordScope::FUNCTION}));
}

Observation::~Observation() {
  at::removeCallback(handle_);
  watch = {};
}

void Observation::rethrow() const {
  if (watch.error) std::rethrow_exception(watch.error);
}

}  // namespace record

Opaque::Opaque(std::shared_ptr<const OpaqueFunction> function) : function_(std::move(function)) {}

TensorList Opaque::operator()(const TensorList& inputs) const {
  using record::watch;
  const record::OpaqueScope scope;
  TensorList outputs;
  const record::OpaqueCall call{function_, inputs, outputs};
  if (scope.is_outermost()) {
    record::guarded([&] { watch.listener->before_opaque(watch.next_index, call); });
  }
  outputs = function_->call(inputs);
  record::refuse_shared_memory(*function_, inputs, outputs);
  if (scope.is_outermost()) {
    record::guarded([&] { watch.listener->after_opaque(watch.next_index, call); });
  }
  return outputs;
}

Opaque opaque(std::string name, std::function<TensorList(const TensorList&)> function) {
  auto opaque = std::make_shared<OpaqueFunction>();
  opaque->name = std::move(name);
  opaque->call = std::move(function);
  return Opaque(std::move(opaque));
}

}  // namespace trireme
