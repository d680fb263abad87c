#include "trireme/engine/metrics/outputs.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ranges>

#include "trireme/error.h"

namespace trireme::metrics {

std::string shape_text(const at::Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.sizes().begin(), tensor.sizes().end(), ", "));
}

const at::Tensor& output_of(const Batch& outputs, const std::string& name) {
  const auto found = outputs.tensors().find(name);
  if (found != outputs.tensors().end()) return found->second;
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("metrics: there is no output '{}', only '{}'; return output(.., \"{}\") "
                          "beside the loss, or name "
                          "another one in the metric's options",
                          name, fmt::join(std::views::keys(outputs.tensors()), "', '"), name));
}

at::Tensor labels_of(const Batch& outputs, const std::string& name) {
  const at::Tensor& given = output_of(outputs, name);
  at::Tensor labels = given.to(at::kLong);
  if (given.is_floating_point() && !labels.eq(given).all().item<bool>()) {
    throw Error(ErrorKind::kInvalidArgument,
                "metrics: output '" + name + "' has labels that are not whole; give integers");
  }
  return labels;
}

void check_labels(const at::Tensor& labels, std::int64_t num_classes, const std::string& name) {
  const at::Tensor bad = labels.masked_select(labels.lt(0).logical_or(labels.ge(num_classes)));
  if (bad.numel() == 0) return;
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("metrics: output '{}' has label {}; there are classes 0 to {}", name,
                          bad[0].item<std::int64_t>(), num_classes - 1));
}

void refuse_shapes(const Batch& outputs, const std::string& first, const std::string& second,
                   const std::string& wanted) {
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("metrics: output '{}' has shape {} and '{}' {}; {}", first,
                          shape_text(output_of(outputs, first)), second,
                          shape_text(output_of(outputs, second)), wanted));
}

}  // namespace trireme::metrics
