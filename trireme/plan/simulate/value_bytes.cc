#include "trireme/plan/simulate/value_bytes.h"

#include "trireme/plan/graph/bytes.h"

namespace trireme::simulate {

std::int64_t span_bytes(const graph::Value& value, std::int64_t batch) {
  const std::int64_t dense = graph::bytes_at(value, batch);
  if (dense == 0 || value.strides.size() != value.shape.size()) return dense;
  std::int64_t last = 0;
  for (std::size_t d = 0; d < value.shape.size(); ++d) {
    std::int64_t step = 0;
    if (__builtin_mul_overflow(value.shape[d].at(batch) - 1, value.strides[d].at(batch), &step) ||
        step < 0 || __builtin_add_overflow(last, step, &last)) {
      return dense;
    }
  }
  std::int64_t bytes = 0;
  const auto size = static_cast<std::int64_t>(size_bytes(value.dtype));
  return __builtin_mul_overflow(last + 1, size, &bytes) ? dense : bytes;
}

}  // namespace trireme::simulate
