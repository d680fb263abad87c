#include "python/backend/torch_options.h"

#include "python/backend/torch_versions.h"

namespace trireme::backend {
namespace {

using kernels::ReduceOp;

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, problem);
}

double factor_of(const c10d::ReduceOp& op) {
  const auto* factor = dynamic_cast<const ScaledSum*>(op.supplement_.get());
  if (factor == nullptr) refuse("PREMUL_SUM has no factor; make it by _make_nccl_premul_sum");
  if (factor->tensor_factor.defined()) return factor->tensor_factor.item().toDouble();
  return factor->double_factor;
}

}  // namespace

Timeout timeout_of(std::chrono::milliseconds timeout) {
  if (timeout == c10d::kUnsetTimeout) return std::nullopt;
  return timeout;
}

collectives::Reduce reduce_of(const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return ReduceOp::kSum;
    case c10d::ReduceOp::AVG:
      return ReduceOp::kAverage;
    case c10d::ReduceOp::PRODUCT:
      return ReduceOp::kProduct;
    case c10d::ReduceOp::MIN:
      return ReduceOp::kMin;
    case c10d::ReduceOp::MAX:
      return ReduceOp::kMax;
    case c10d::ReduceOp::BAND:
      return ReduceOp::kAnd;
    case c10d::ReduceOp::BOR:
      return ReduceOp::kOr;
    case c10d::ReduceOp::BXOR:
      return ReduceOp::kXor;
    case c10d::ReduceOp::PREMUL_SUM:
      return collectives::scaled_sum(factor_of(op));
    default:
      refuse("unknown reduction " + std::to_string(op.op_));
  }
}

void check_pairs(const Tensors& outputs, const Tensors& inputs, const char* what) {
  if (outputs.size() == inputs.size()) return;
  refuse(std::string(what) + ": " + std::to_string(outputs.size()) + " outputs and " +
         std::to_string(inputs.size()) + " inputs; expected as many");
}

}  // namespace trireme::backend
