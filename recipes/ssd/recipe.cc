#include "recipes/ssd/recipe.h"

#include <fmt/format.h>
#include <torch/types.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "packs/vision/data/boxed_images.h"
#include "recipes/options/keep_options.h"
#include "recipes/options/recipe_of.h"
#include "recipes/options/skip_options.h"
#include "recipes/ssd/batch_planner.h"
#include "recipes/ssd/detection.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"
#include "trireme/error.h"
#include "trireme/model.h"

namespace trireme::recipes::ssd {
namespace {

/// What the command line says.
struct Options {
  std::vector<std::filesystem::path> images, evaluation_images;
  std::filesystem::path annotations, evaluation_annotations, results;
  std::optional<std::int64_t> max_boxes;
  bool has_no_flips = false, has_colors = false;
  KeepDecoded keep;
  SkipDamagedImages skip;

  vision::SsdConfig model;
  bool has_plain_norms = false;
};

/// What takes time, done once a process: a workload is made several times.
class Data {
 public:
  Workload make(const Options& options) {
    open(options);
    // Drawn first, so that the samples are the same for every size of the model.
    const auto seed = torch::randint(std::numeric_limits<std::int64_t>::max(), {1}, torch::kLong);
    vision::BoxedImageOptions view{.size = options.model.size,
                                   .random = vision::BoxedViewOptions{},
                                   .max_boxes = max_boxes(options),
                                   .seed = static_cast<std::uint64_t>(seed.item<std::int64_t>())};
    if (options.has_no_flips) view.random->flip_probability = 0;
    if (options.has_colors) view.random->colors = vision::ColorJitterOptions{};
    DetectionData data{
        .training = std::make_shared<vision::BoxedImageSource>(*training_, view, decoded_),
        .results = options.results};
    if (evaluation_) {
      view.random.reset();
      data.evaluation =
          std::make_shared<vision::BoxedImageSource>(*evaluation_, view, decoded_evaluation_);
    }
    vision::SsdConfig config = options.model;
    config.num_classes = std::ssize(training_->category_ids) + 1;
    config.has_fused_norms = !options.has_plain_norms;
    Workload workload = make_detection(config, data);
    workload.training = data::repeat(options.skip.around(workload.training), options.keep.repeat);
    return workload;
  }

 private:
  void open(const Options& options) {
    if (training_) return;
    if (options.images.empty() || options.annotations.empty()) {
      throw Error(ErrorKind::kInvalidArgument,
                  "name a folder or shards of images with --ssd-images and a COCO file with "
                  "--ssd-annotations");
    }
    training_ = vision::open_boxed_images(options.images, options.annotations);
    decoded_ = std::make_shared<vision::DecodedImages>(options.keep.training());
    decoded_evaluation_ = std::make_shared<vision::DecodedImages>(options.keep.evaluation());
    if (options.evaluation_annotations.empty()) return;
    evaluation_ = vision::open_boxed_images(
        options.evaluation_images.empty() ? options.images : options.evaluation_images,
        options.evaluation_annotations);
  }

  /// Fields of training and evaluation are the same.
  std::int64_t max_boxes(const Options& options) const {
    if (options.max_boxes) return *options.max_boxes;
    const std::int64_t other = evaluation_ ? evaluation_->most_boxes() : 0;
    return std::max({training_->most_boxes(), other, std::int64_t{1}});
  }

  std::optional<vision::BoxedImages> training_, evaluation_;
  std::shared_ptr<vision::DecodedImages> decoded_, decoded_evaluation_;
};

void add_data_options(CLI::App& app, Options& options) {
  app.add_option("--ssd-images", options.images,
                 "Folder of JPEG or PNG images; or tar shards, a folder of MDS or other records "
                 "with the image as jpg or png, and its id as id");
  app.add_option("--ssd-annotations", options.annotations,
                 "COCO instances file (JSON) of these images");
  auto* evaluation = app.add_option("--ssd-evaluation-annotations", options.evaluation_annotations,
                                    "COCO file for evaluation, of the same categories");
  app.add_option("--ssd-evaluation-images", options.evaluation_images,
                 "Images for evaluation, likewise; those of training where it is not given")
      ->needs(evaluation);
  app.add_option("--ssd-results", options.results,
                 "File for what is found on the evaluation's images at the end, as COCO's "
                 "evaluations read it")
      ->needs(evaluation);
  app.add_option("--ssd-max-boxes", options.max_boxes,
                 "Places for boxes in a sample; as many as an image has where it is not given");
  app.add_flag("--ssd-no-flips", options.has_no_flips, "Left and right never change places");
  app.add_flag("--ssd-colors", options.has_colors,
               "Brightness, contrast, saturation and hue move at random");
  add_keep_options(app, "ssd", options.keep);
  add_skip_options(app, "ssd", options.skip);
}

void add_model_options(CLI::App& app, Options& options) {
  app.add_option("--ssd-size", options.model.size, "Sides of a sample, in pixels")
      ->capture_default_str();
  app.add_option("--ssd-depth", options.model.depth, "Layers of the backbone: 18 or 34")
      ->check(CLI::IsMember({18, 34}))
      ->capture_default_str();
  app.add_option("--ssd-width", options.model.width, "Channels of its stem")->capture_default_str();
  app.add_flag("--ssd-plain-norms", options.has_plain_norms,
               "Norm, sum and ReLU by torch's operators, one after the other");
  app.add_flag("--ssd-channels-last", options.model.is_channels_last,
               "Channels of a pixel next to each other in memory");
}

/// Images of the annotations where they are given, else COCO's with boxes.
std::int64_t num_training_images(const Options& options) {
  constexpr std::int64_t kOfCoco = 117'266;
  if (options.annotations.empty()) return kOfCoco;
  const Json file = parse_json(read_file(options.annotations), options.annotations.string());
  if (!file.is_object() || !file.contains("images")) return kOfCoco;
  return std::ssize(file["images"]);
}

/// Prints and ends, as --help does.
void add_planner_option(CLI::App& app, Options& options) {
  app.add_option_function<std::string>(
      "--ssd-compare-batches",
      [&options](const std::string& text) {
        const std::int64_t num_images = num_training_images(options);
        const auto choices = compare_batches(num_images, parse_batch_times(text));
        fmt::print("{}", to_table(num_images, choices));
        throw CLI::Success();
      },
      "Batches with milliseconds of their steps, measured or simulated, 1024=310,2048=560: print "
      "which training to COCO's AP is shortest, and end");
}

}  // namespace

Recipe make_recipe() {
  return recipe_of<Options, Data>({add_data_options, add_model_options, add_planner_option});
}

}  // namespace trireme::recipes::ssd
