#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "packs/speech/data/utterance_source.h"
#include "packs/vision/data/image_source.h"
#include "packs/volume/data/volume_source.h"
#include "python/packs/bind.h"
#include "trireme/data.h"

namespace trireme::python {
namespace {

using Paths = std::vector<std::filesystem::path>;
using MadeSource = std::shared_ptr<data::Source>;
using Triple = std::tuple<double, double, double>;

std::array<double, 3> values_of(const Triple& triple) {
  const auto& [a, b, c] = triple;
  return {a, b, c};
}

/// Where images and their classes stand.
struct ImageFields {
  std::vector<std::string> classes;
  std::string image, label, key;
  bool is_i64 = false;
};

/// With the names of the classes.
std::pair<MadeSource, std::vector<std::string>> image_source(const Paths& paths, ImageFields fields,
                                                             const vision::ImageOptions& options,
                                                             std::int64_t keep_bytes) {
  auto images = vision::open_images(
      paths, {.classes = std::move(fields.classes),
              .image_field = std::move(fields.image),
              .label_field = std::move(fields.label),
              .label_key = std::move(fields.key),
              .label_form = fields.is_i64 ? vision::LabelForm::kI64 : vision::LabelForm::kText});
  auto classes = images.classes;
  std::shared_ptr<vision::DecodedImages> kept;
  if (keep_bytes > 0) {
    kept = std::make_shared<vision::DecodedImages>(vision::KeepOptions{.max_bytes = keep_bytes});
  }
  return {std::make_shared<vision::ImageSource>(std::move(images), options, std::move(kept)),
          std::move(classes)};
}

MadeSource utterance_source(const Paths& paths, const std::string& alphabet,
                            const speech::UtteranceOptions& options) {
  return std::make_shared<speech::UtteranceSource>(speech::open_utterances(paths),
                                                   speech::character_encoder(alphabet), options);
}

void bind_images(py::module_& module) {
  module.def(
      "image_source",
      [](const Paths& paths, std::vector<std::string> classes, std::string image_field,
         std::string label_field, std::string label_key, bool has_i64_labels, std::int64_t size,
         std::int64_t shorter, const std::optional<std::vector<double>>& random, const Triple& mean,
         const Triple& deviation, bool has_bytes, std::uint64_t seed, std::int64_t keep_bytes) {
        vision::ImageOptions options{.size = size,
                                     .shorter = shorter,
                                     .mean = values_of(mean),
                                     .deviation = values_of(deviation),
                                     .has_bytes = has_bytes,
                                     .seed = seed};
        if (random) {
          options.random = vision::RandomCropOptions{.min_area = random->at(0),
                                                     .max_area = random->at(1),
                                                     .min_aspect = random->at(2),
                                                     .max_aspect = random->at(3),
                                                     .flip_probability = random->at(4)};
        }
        return image_source(paths,
                            {.classes = std::move(classes),
                             .image = std::move(image_field),
                             .label = std::move(label_field),
                             .key = std::move(label_key),
                             .is_i64 = has_i64_labels},
                            options, keep_bytes);
      },
      py::arg("paths"), py::arg("classes"), py::arg("image_field"), py::arg("label_field"),
      py::arg("label_key"), py::arg("has_i64_labels"), py::arg("size"), py::arg("shorter"),
      py::arg("random"), py::arg("mean"), py::arg("deviation"), py::arg("has_bytes"),
      py::arg("seed"), py::arg("keep_bytes"), Unlocked());
}

void bind_utterances(py::module_& module) {
  module.def(
      "utterance_source",
      [](const Paths& paths, const std::string& alphabet, int sample_rate, std::int64_t n_fft,
         std::int64_t win_length, std::int64_t hop_length, std::int64_t n_mels, bool is_normalized,
         bool has_masks, std::int64_t stack, std::int64_t subsample, double max_seconds,
         int num_lengths, std::uint64_t seed) {
        speech::UtteranceOptions options{.is_normalized = is_normalized,
                                         .max_seconds = max_seconds,
                                         .num_lengths = num_lengths,
                                         .seed = seed};
        options.features.sample_rate = sample_rate;
        options.features.n_fft = n_fft;
        options.features.win_length = win_length;
        options.features.hop_length = hop_length;
        options.features.n_mels = n_mels;
        options.stacking = {.stack = stack, .subsample = subsample};
        if (has_masks) options.masks = speech::SpecAugmentOptions{};
        return utterance_source(paths, alphabet, options);
      },
      py::arg("paths"), py::arg("alphabet"), py::arg("sample_rate"), py::arg("n_fft"),
      py::arg("win_length"), py::arg("hop_length"), py::arg("n_mels"), py::arg("is_normalized"),
      py::arg("has_masks"), py::arg("stack"), py::arg("subsample"), py::arg("max_seconds"),
      py::arg("num_lengths"), py::arg("seed"), Unlocked());
}

void bind_volumes(py::module_& module) {
  module.def(
      "volume_source",
      [](const std::filesystem::path& images, const std::filesystem::path& labels,
         std::tuple<std::int64_t, std::int64_t, std::int64_t> patch,
         std::tuple<float, float, float, float> intensities, const std::optional<Triple>& spacing,
         bool is_random, std::uint64_t seed, std::int64_t keep_bytes) -> MadeSource {
        const auto [depth, height, width] = patch;
        const auto [low, high, mean, deviation] = intensities;
        volume::VolumeOptions options{.patch = {depth, height, width},
                                      .intensities = {low, high, mean, deviation},
                                      .seed = seed,
                                      .keep_bytes = keep_bytes};
        if (spacing) options.spacing = values_of(*spacing);
        if (is_random) options.random = volume::RandomPatchOptions{};
        return std::make_shared<volume::VolumeSource>(volume::find_volumes(images, labels),
                                                      options);
      },
      py::arg("images"), py::arg("labels"), py::arg("patch"), py::arg("intensities"),
      py::arg("spacing"), py::arg("is_random"), py::arg("seed"), py::arg("keep_bytes"), Unlocked());
}

}  // namespace

void bind_sources_of_packs(py::module_& module) {
  py::module_::import("trireme._core");  // knows what a source is
  bind_images(module);
  bind_utterances(module);
  bind_volumes(module);
}

}  // namespace trireme::python
