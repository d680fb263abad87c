#include "recipes/resnet50/classification.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "trireme/error.h"
#include "trireme/metrics.h"

namespace trireme::recipes::resnet50 {
namespace {

constexpr std::int64_t kTop = 5;
constexpr std::int64_t kShownImages = 3;

/// The part of the images of whose class fewer than `count` classes come before it.
Loss top(const torch::Tensor& logits_BK, const torch::Tensor& label_B, std::int64_t count) {
  const auto is_right_B = metrics::is_among_first(logits_BK, label_B, count);
  return metric(mean_loss(is_right_B.to(torch::kFloat).mean()), "top" + std::to_string(count));
}

Losses losses_of(vision::ResNet& net, const Batch& batch, double smoothing) {
  const auto logits_BK = net(batch["image"]);
  const auto& label_B = batch["label"];
  const auto options = torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(
      net->is_training() ? smoothing : 0);
  Losses losses = {mean_loss(torch::nn::functional::cross_entropy(logits_BK, label_B, options)),
                   top(logits_BK, label_B, 1)};
  if (logits_BK.size(1) > kTop) losses.push_back(top(logits_BK, label_B, kTop));
  return losses;
}

torch::Tensor image_of(const vision::ImageSource& source, std::int64_t index) {
  const auto image = torch::empty(source.fields()[0].shape);
  std::int64_t label = 0;
  const auto bytes = static_cast<std::size_t>(source.fields()[0].num_bytes());
  const std::span<std::byte> places[] = {{static_cast<std::byte*>(image.mutable_data_ptr()), bytes},
                                         std::as_writable_bytes(std::span(&label, 1))};
  source.read({.index = index}, places);
  return image.unsqueeze(0);
}

std::string percent(double part) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f %%", 100 * part);
  return buffer;
}

/// A few images with what the model takes them for, and how good a guess is that looks at none.
std::string show(vision::ResNet& net, const vision::ImageSource& source) {
  const at::NoGradGuard guard;
  const bool was_training = net->is_training();
  net->eval();
  const auto& [records, fields, labels, classes] = source.images();
  const auto name_of = [&](std::int64_t k) { return classes[static_cast<std::size_t>(k)]; };
  const std::int64_t count = std::min(kShownImages, source.num_samples());
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = i * source.num_samples() / count;
    const auto [parts_1, class_1] = net(image_of(source, index)).softmax(1).max(1);
    text += records->name(index) + " is '" + name_of(labels[static_cast<std::size_t>(index)]) +
            "'; the model: '" + name_of(class_1.item<std::int64_t>()) + "', " +
            percent(parts_1.item<double>()) + "\n";
  }
  net->train(was_training);
  std::vector<std::int64_t> counts(classes.size());
  for (const std::int32_t label : labels) ++counts[static_cast<std::size_t>(label)];
  const auto most = std::ranges::max_element(counts);
  return text + "of " + std::to_string(labels.size()) + " images " +
         percent(static_cast<double>(*most) / static_cast<double>(labels.size())) + " are '" +
         name_of(most - counts.begin()) + "'\n";
}

}  // namespace

Workload make_classification(const vision::ResNetConfig& config, const ClassificationData& data,
                             double smoothing) {
  if (!(smoothing >= 0 && smoothing < 1)) {
    throw Error(ErrorKind::kInvalidArgument,
                "label smoothing is from 0 to below 1, got " + std::to_string(smoothing));
  }
  vision::ResNet net(config);
  const auto forward = [net, smoothing](const Batch& batch) mutable {
    return losses_of(net, batch, smoothing);
  };
  Workload workload{.model = make_model(net.ptr(), forward),
                    .training = data.training,
                    .evaluation = data.evaluation};
  if (data.evaluation) {
    workload.examples = [net, source = data.evaluation]() mutable { return show(net, *source); };
  }
  return workload;
}

}  // namespace trireme::recipes::resnet50
