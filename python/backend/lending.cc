#include "python/backend/lending.h"

#include "trireme/error.h"

namespace trireme::backend {

void refuse_call(const std::string& problem) { throw Error(ErrorKind::kInvalidArgument, problem); }

void check_count(std::size_t given, const RankGroup& group, const char* what) {
  if (given == static_cast<std::size_t>(group.size())) return;
  refuse_call(std::string(what) + ": expected a tensor for each of " +
              std::to_string(group.size()) + " ranks, got " + std::to_string(given));
}

void check_same_dtype(const at::Tensor& a, const at::Tensor& b, const char* operation) {
  check_sendable(a, operation);
  check_sendable(b, operation);
  if (a.scalar_type() == b.scalar_type()) return;
  refuse_call(std::string(operation) + ": tensors of " + at::toString(a.scalar_type()) + " and " +
              at::toString(b.scalar_type()) + "; expected one dtype");
}

void check_numel(std::int64_t given, std::int64_t expected, const char* what) {
  if (given == expected) return;
  refuse_call(std::string(what) + ": " + std::to_string(given) + " elements, expected " +
              std::to_string(expected));
}

}  // namespace trireme::backend
