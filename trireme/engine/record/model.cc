#include "trireme/model.h"

#include <ATen/Functions.h>

#include <numeric>

#include "trireme/engine/record/recording.h"
#include "trireme/error.h"

namespace trireme {

const at::Tensor& Batch::operator[](const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  std::string names;
  for (const auto& [known, tensor] : tensors_) names += (names.empty() ? "" : ", ") + known;
  throw Error(ErrorKind::kInvalidArgument,
              "the batch has no field '" + name + "'; it has: " + names);
}

Loss mean_loss(at::Tensor mean, std::string name) {
  return {.name = std::move(name), .value = std::move(mean), .weight = {}};
}

Loss sum_loss(at::Tensor sum, at::Tensor weight, std::string name) {
  return {.name = std::move(name), .value = std::move(sum), .weight = std::move(weight)};
}

Loss metric(Loss loss, std::string name) {
  loss.name = std::move(name);
  loss.coefficient = 0;
  return loss;
}

Loss output(at::Tensor values, std::string name) {
  return {.name = std::move(name),
          .value = std::move(values),
          .weight = {},
          .coefficient = 0,
          .is_output = true};
}

double StepLosses::total() const {
  return std::accumulate(losses.begin(), losses.end(), 0.0, [](double sum, const LossTotal& loss) {
    return loss.coefficient == 0 ? sum : sum + loss.coefficient * loss.mean();
  });
}

void set_step_scalars(Batch& batch, const Model& model, std::int64_t step) {
  for (const StepScalar& scalar : model.step_scalars) {
    batch.set(scalar.name, at::scalar_tensor(scalar.at(step), at::kFloat));
  }
}

}  // namespace trireme
