#include "trireme/plan/graph/bytes.h"

#include "trireme/error.h"

namespace trireme::graph {
namespace {

std::int64_t checked_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw Error(ErrorKind::kInvalidArgument, "the size of a tensor exceeds 64 bits");
  }
  return product;
}

}  // namespace

std::int64_t num_elements_at(const Value& value, std::int64_t batch) {
  std::int64_t elements = 1;
  for (const Size& size : value.shape) {
    std::int64_t dim = 0;
    if (__builtin_add_overflow(checked_product(size.per_sample, batch), size.fixed, &dim) ||
        dim < 0) {
      throw Error(ErrorKind::kInvalidArgument, "a dimension " + std::to_string(size.per_sample) +
                                                   " * batch + " + std::to_string(size.fixed) +
                                                   " is out of range for a batch of " +
                                                   std::to_string(batch));
    }
    elements = checked_product(elements, dim);
  }
  return elements;
}

std::int64_t bytes_at(const Value& value, std::int64_t batch) {
  return checked_product(num_elements_at(value, batch),
                         static_cast<std::int64_t>(size_bytes(value.dtype)));
}

}  // namespace trireme::graph
