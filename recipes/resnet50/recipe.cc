#include "recipes/resnet50/recipe.h"

#include <torch/types.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "packs/vision/data/labelled_images.h"
#include "recipes/options/keep_options.h"
#include "recipes/options/recipe_of.h"
#include "recipes/options/skip_options.h"
#include "recipes/resnet50/classification.h"
#include "trireme/error.h"
#include "trireme/model.h"

namespace trireme::recipes::resnet50 {
namespace {

/// What the command line says.
struct Options {
  std::vector<std::filesystem::path> images, evaluation_images;
  std::filesystem::path classes;
  vision::ImageFileOptions files;
  std::int64_t size = 224;
  std::optional<std::int64_t> shorter;
  vision::RandomCropOptions random;
  bool has_no_flips = false;
  KeepDecoded keep;
  SkipDamagedImages skip;

  vision::ResNetConfig model;
  std::string stem = "imagenet";
  bool has_plain_norms = false;
  double smoothing = 0.1;
};

vision::ResNetConfig config_of(const Options& options, std::size_t num_classes) {
  vision::ResNetConfig config = options.model;
  config.num_classes = static_cast<std::int64_t>(num_classes);
  config.has_small_stem = options.stem == "small";
  config.has_fused_norms = !options.has_plain_norms;
  return config;
}

/// What takes time, done once a process: a workload is made several times.
class Data {
 public:
  Workload make(const Options& options) {
    if (options.images.empty()) {
      throw Error(ErrorKind::kInvalidArgument,
                  "name a folder of images, or tar shards, with --resnet50-images");
    }
    if (!training_) {
      vision::ImageFileOptions files = options.files;
      if (!options.classes.empty()) files.classes = vision::read_class_names(options.classes);
      training_ = vision::open_images(options.images, files);
      if (!options.evaluation_images.empty()) {
        files.classes = training_->classes;
        evaluation_ = vision::open_images(options.evaluation_images, files);
      }
      decoded_ = std::make_shared<vision::DecodedImages>(options.keep.training());
      decoded_evaluation_ = std::make_shared<vision::DecodedImages>(options.keep.evaluation());
    }
    // Drawn first, so that the samples are the same for every size of the model.
    const auto seed = torch::randint(std::numeric_limits<std::int64_t>::max(), {1}, torch::kLong);
    vision::ImageOptions view{.size = options.size,
                              .random = options.random,
                              .seed = static_cast<std::uint64_t>(seed.item<std::int64_t>())};
    if (options.has_no_flips) view.random->flip_probability = 0;
    ClassificationData data{.training =
                                std::make_shared<vision::ImageSource>(*training_, view, decoded_)};
    if (evaluation_) {
      view.random.reset();
      view.shorter = options.shorter.value_or((options.size * 256 + 112) / 224);
      data.evaluation =
          std::make_shared<vision::ImageSource>(*evaluation_, view, decoded_evaluation_);
    }
    Workload workload =
        make_classification(config_of(options, training_->classes.size()), data, options.smoothing);
    workload.training = data::repeat(options.skip.around(workload.training), options.keep.repeat);
    return workload;
  }

 private:
  std::optional<vision::LabelledImages> training_, evaluation_;
  std::shared_ptr<vision::DecodedImages> decoded_, decoded_evaluation_;
};

void add_data_options(CLI::App& app, Options& options) {
  auto* images = app.add_option("--resnet50-images", options.images,
                                "Folder with a subfolder for each class, or tar shards of images "
                                "and classes (.jpg or .png, .cls)");
  app.add_option("--resnet50-evaluation-images", options.evaluation_images, "Such for evaluation")
      ->needs(images);
  app.add_option("--resnet50-classes", options.classes,
                 "File with the name of a class in each line, from 0 on; of shards where it is not "
                 "given, the numbers to the largest label")
      ->needs(images);
  app.add_option("--resnet50-label-field", options.files.label_field,
                 "Where a record of shards has its class: the ending of a file")
      ->capture_default_str();
  app.add_option("--resnet50-label-key", options.files.label_key,
                 "Of a field that is a JSON object, which of its values is the class");
  app.add_option("--resnet50-size", options.size, "Sides of a sample, in pixels")
      ->capture_default_str();
  app.add_option("--resnet50-shorter", options.shorter,
                 "In evaluation, to what the shorter side is resized before the middle is cropped; "
                 "8/7 of the size where it is not given");
  app.add_option("--resnet50-least-area", options.random.min_area,
                 "Of a random crop, as a part of the image")
      ->capture_default_str();
  app.add_option_function<double>(
         "--resnet50-most-aspect",
         [&options](double aspect) {
           options.random.max_aspect = aspect;
           options.random.min_aspect = 1 / aspect;
         },
         "Of a random crop, width by height or the reverse")
      ->default_str("1.33333");
  app.add_flag("--resnet50-no-flips", options.has_no_flips,
               "Left and right never change places: as digits want it");
  add_keep_options(app, "resnet50", options.keep);
  add_skip_options(app, "resnet50", options.skip);
}

void add_model_options(CLI::App& app, Options& options) {
  app.add_option("--resnet50-depth", options.model.depth, "Layers: 18, 34 or 50")
      ->check(CLI::IsMember({18, 34, 50}))
      ->capture_default_str();
  app.add_option("--resnet50-width", options.model.width, "Channels of the stem")
      ->capture_default_str();
  app.add_option("--resnet50-stem", options.stem,
                 "imagenet: 7 x 7 and a pooling; small: 3 x 3, for images of some 32 pixels")
      ->check(CLI::IsMember({"imagenet", "small"}))
      ->capture_default_str();
  app.add_flag("--resnet50-plain-norms", options.has_plain_norms,
               "Norm, sum and ReLU by torch's operators, one after the other");
  app.add_option(
         "--resnet50-norm-samples", options.model.norm_samples,
         "Samples of a microbatch whose statistics norms take together; 0: all of it. Never "
         "of several microbatches or ranks")
      ->capture_default_str();
  app.add_flag("--resnet50-channels-last", options.model.is_channels_last,
               "Channels of a pixel next to each other in memory");
  app.add_option("--resnet50-smoothing", options.smoothing, "Label smoothing")
      ->capture_default_str();
}

}  // namespace

Recipe make_recipe() { return recipe_of<Options, Data>({add_data_options, add_model_options}); }

}  // namespace trireme::recipes::resnet50
