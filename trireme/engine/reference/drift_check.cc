#include "trireme/engine/reference/drift_check.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

#include <string>
#include <utility>
#include <vector>

#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/parameters/sharded_bucket.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::reference {
namespace {

/// A parameter without memory, and how it was recorded.
struct Absent {
  at::Tensor tensor;
  at::Tensor before;  ///< As it is.
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::int64_t bytes = 0;
};

std::vector<std::int64_t> fixed(const std::vector<graph::Size>& sizes) {
  std::vector<std::int64_t> result;
  for (const graph::Size& size : sizes) result.push_back(size.fixed);
  return result;
}

std::vector<Absent> absent_parameters(const record::Recording& recorded) {
  std::vector<Absent> result;
  for (const graph::Parameter& parameter : recorded.graph.parameters) {
    const at::Tensor& tensor = recorded.tensors[parameter.value];
    const graph::Value& value = recorded.graph.values[parameter.value];
    Absent one{tensor, tensor.tensor_data(), fixed(value.shape), fixed(value.strides),
               graph::bytes_at(value, 0)};
    const bool is_here =
        tensor.sizes() == at::IntArrayRef(one.shape) && parameters::has_memory(tensor);
    if (!is_here) result.push_back(std::move(one));
  }
  return result;
}

/// Lends memory to parameters for as long as it lives. Its values are small random numbers: from
/// zeros a batch norm's mean is 0, as its running mean may be, and seems not to be written.
class Loan {
 public:
  explicit Loan(std::vector<Absent> absent) : absent_(std::move(absent)) {
    const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(1);
    for (Absent& one : absent_) {
      const at::Tensor memory = at::empty_strided(one.shape, one.strides, one.tensor.options());
      one.tensor.set_data(memory.normal_(0, 0.02, random));
    }
  }
  ~Loan() {
    for (Absent& one : absent_) one.tensor.set_data(one.before);
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

 private:
  std::vector<Absent> absent_;
};

}  // namespace

void check_drift_of_rank(const record::Recording& recorded, const Model& model,
                         const record::BatchMaker& make_batch, std::int64_t step,
                         const Logger& logger) {
  std::vector<Absent> absent = absent_parameters(recorded);
  std::int64_t bytes = 0;
  for (const Absent& one : absent) bytes += one.bytes;
  if (bytes > memory::available_bytes()) {
    return logger.info("step " + std::to_string(step) +
                       ": the check that the model still does what was recorded is skipped: the "
                       "other stages' weights, " +
                       std::to_string(bytes >> 20) + " MiB, do not fit here");
  }
  const memory::PeakPause pause;
  const Loan loan(std::move(absent));
  record::check_drift(recorded.graph, model, make_batch, step);
}

}  // namespace trireme::reference
