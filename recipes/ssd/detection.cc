#include "recipes/ssd/detection.h"

#include "recipes/ssd/average_precision.h"
#include "trireme/error.h"

namespace trireme::recipes::ssd {
namespace {

void check_categories(const DetectionData& data) {
  if (!data.evaluation) return;
  const auto& training = data.training->images();
  const auto& evaluation = data.evaluation->images();
  if (training.category_ids == evaluation.category_ids) return;
  throw Error(ErrorKind::kInvalidArgument, "'" + evaluation.annotations.string() +
                                               "' has other categories than '" +
                                               training.annotations.string() + "'");
}

Losses losses_of(vision::Ssd& net, const Batch& batch) {
  const vision::SsdOutput output = net(batch["image"]);
  const auto [boxes, classes] =
      vision::ssd_losses(output, net->default_boxes(), batch["boxes"], batch["labels"]);
  return {mean_loss(boxes, "boxes"), mean_loss(classes, "classes")};
}

}  // namespace

Workload make_detection(const vision::SsdConfig& config, const DetectionData& data) {
  check_categories(data);
  vision::Ssd net(config);
  const auto forward = [net](const Batch& batch) mutable { return losses_of(net, batch); };
  Workload workload{.model = make_model(net.ptr(), forward),
                    .training = data.training,
                    .evaluation = data.evaluation};
  if (data.evaluation) {
    workload.examples = [net, source = data.evaluation, results = data.results]() mutable {
      return average_precision(net, *source, results);
    };
  }
  return workload;
}

}  // namespace trireme::recipes::ssd
