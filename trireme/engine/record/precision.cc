#include <ATen/autocast_mode.h>

#include <utility>

#include "trireme/model.h"

namespace trireme {
namespace {

/// torch's autocast on the processor, for this thread; weights that were cast are kept until the end.
class AutocastGuard {
 public:
  explicit AutocastGuard(at::ScalarType dtype)
      : was_enabled_(at::autocast::is_autocast_enabled(at::kCPU)),
        dtype_before_(at::autocast::get_autocast_dtype(at::kCPU)) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, dtype);
    at::autocast::increment_nesting();
  }
  ~AutocastGuard() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, was_enabled_);
    at::autocast::set_autocast_dtype(at::kCPU, dtype_before_);
  }
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  bool was_enabled_;
  at::ScalarType dtype_before_;
};

}  // namespace

Model with_precision(Model model, Precision precision) {
  if (precision == Precision::kF32) return model;
  const at::ScalarType dtype = precision == Precision::kBf16 ? at::kBFloat16 : at::kHalf;
  model.forward = [forward = std::move(model.forward), dtype](const Batch& batch) {
    const AutocastGuard guard(dtype);
    return forward(batch);
  };
  return model;
}

MakeWorkload with_precision(const MakeWorkload& make, Precision precision) {
  if (precision == Precision::kF32) return make;
  return [make, precision] {
    Workload workload = make();
    workload.model = with_precision(std::move(workload.model), precision);
    return workload;
  };
}

}  // namespace trireme
