#include "recipes/ssd/detection.h"

#include "recipes/ssd/average_precision.h"
#include "trireme/error.h"
#include "trireme/metrics.h"

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

/// In eval mode with what is found on the images.
Losses results_of(vision::Ssd& net, const FindObjects& find, const Batch& batch) {
  const vision::SsdOutput output = net(batch["image"]);
  const auto [boxes, classes] =
      vision::ssd_losses(output, net->default_boxes(), batch["boxes"], batch["labels"]);
  Losses results = {mean_loss(boxes, "boxes"), mean_loss(classes, "classes")};
  if (!net->is_training()) results.push_back(trireme::output(find(output), "objects"));
  return results;
}

}  // namespace

Workload make_detection(const vision::SsdConfig& config, const DetectionData& data) {
  check_categories(data);
  vision::Ssd net(config);
  const auto forward = [net, find = FindObjects(net->default_boxes())](const Batch& batch) mutable {
    return results_of(net, find, batch);
  };
  Workload workload{.model = make_model(net.ptr(), forward),
                    .training = data.training,
                    .evaluation = data.evaluation};
  if (data.evaluation) {
    workload.metrics = [source = data.evaluation, results = data.results] {
      return metrics::together(average_precision(source, results));
    };
    workload.examples = [net, source = data.evaluation]() mutable {
      return show_first(net, *source);
    };
  }
  return workload;
}

}  // namespace trireme::recipes::ssd
