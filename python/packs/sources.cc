#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "packs/speech/data/utterance_source.h"
#include "packs/vision/data/image_source.h"
#include "packs/volume/data/volume_source.h"
#include "python/core/record_forms.h"
#include "python/packs/bind.h"
#include "trireme/data.h"

namespace trireme::python {
namespace {

using Paths = std::vector<std::filesystem::path>;
using MadeSource = std::shared_ptr<data::Source>;
using Triple = std::tuple<double, double, double>;

/// A dataclass of numbers, by the names of C++; none: nothing is drawn.
using Numbers = std::map<std::string, double>;
using MaybeNumbers = std::optional<Numbers>;

std::array<double, 3> values_of(const Triple& triple) {
  const auto& [a, b, c] = triple;
  return {a, b, c};
}

std::int64_t whole_number(const Numbers& numbers, const std::string& name) {
  return static_cast<std::int64_t>(numbers.at(name));
}

vision::RandomCropOptions crop_options(const Numbers& numbers) {
  return {.min_area = numbers.at("min_area"),
          .max_area = numbers.at("max_area"),
          .min_aspect = numbers.at("min_aspect"),
          .max_aspect = numbers.at("max_aspect"),
          .flip_probability = numbers.at("flip_probability")};
}

speech::SpecAugmentOptions mask_options(const Numbers& numbers) {
  return {.n_time_masks = whole_number(numbers, "n_time_masks"),
          .time_mask_param = whole_number(numbers, "time_mask_param"),
          .n_freq_masks = whole_number(numbers, "n_freq_masks"),
          .freq_mask_param = whole_number(numbers, "freq_mask_param"),
          .p = numbers.at("p")};
}

volume::RandomPatchOptions patch_options(const Numbers& numbers) {
  return {.foreground_share = numbers.at("foreground_share"),
          .num_objects = static_cast<int>(whole_number(numbers, "num_objects")),
          .flip_probability = numbers.at("flip_probability"),
          .intensities = {.brightness_probability = numbers.at("brightness_probability"),
                          .brightness_low = numbers.at("brightness_low"),
                          .brightness_high = numbers.at("brightness_high"),
                          .noise_probability = numbers.at("noise_probability"),
                          .noise_deviation = numbers.at("noise_deviation")}};
}

/// With the names of the classes.
std::pair<MadeSource, std::vector<std::string>> image_source(const Paths& paths,
                                                             const vision::ImageFileOptions& files,
                                                             const vision::ImageOptions& options,
                                                             std::int64_t keep_bytes) {
  auto images = vision::open_images(paths, files);
  auto classes = images.classes;
  std::shared_ptr<vision::DecodedImages> kept;
  if (keep_bytes > 0) {
    kept = std::make_shared<vision::DecodedImages>(vision::KeepOptions{.max_bytes = keep_bytes});
  }
  return {std::make_shared<vision::ImageSource>(std::move(images), options, std::move(kept)),
          std::move(classes)};
}

// Arguments are given by their names.

void bind_images(py::module_& module) {
  module.def(
      "image_source",
      [](const Paths& paths, const std::string& form, std::vector<std::string> classes,
         std::string image_field, std::string label_field, std::string label_key,
         bool has_i64_labels, std::int64_t size, std::int64_t shorter, const MaybeNumbers& random,
         const Triple& mean, const Triple& deviation, bool has_bytes, std::uint64_t seed,
         std::int64_t keep_bytes) {
        vision::ImageOptions options{.size = size,
                                     .shorter = shorter,
                                     .mean = values_of(mean),
                                     .deviation = values_of(deviation),
                                     .has_bytes = has_bytes,
                                     .seed = seed};
        if (random) options.random = crop_options(*random);
        return image_source(
            paths,
            {.form = form_of(form),
             .classes = std::move(classes),
             .image_field = std::move(image_field),
             .label_field = std::move(label_field),
             .label_key = std::move(label_key),
             .label_form = has_i64_labels ? vision::LabelForm::kI64 : vision::LabelForm::kText},
            options, keep_bytes);
      },
      py::kw_only(), py::arg("paths"), py::arg("form"), py::arg("classes"), py::arg("image_field"),
      py::arg("label_field"), py::arg("label_key"), py::arg("has_i64_labels"), py::arg("size"),
      py::arg("shorter"), py::arg("random"), py::arg("mean"), py::arg("deviation"),
      py::arg("has_bytes"), py::arg("seed"), py::arg("keep_bytes"), Unlocked());
}

void bind_utterances(py::module_& module) {
  module.def(
      "utterance_source",
      [](const Paths& paths, const std::string& form, std::string audio_field,
         std::string path_field, std::string text_field, std::string text_key, bool is_checked,
         const std::string& alphabet, int sample_rate, std::int64_t n_fft, std::int64_t win_length,
         std::int64_t hop_length, std::int64_t n_mels, bool is_normalized,
         const MaybeNumbers& masks, std::int64_t stack, std::int64_t subsample, double max_seconds,
         int num_lengths, std::uint64_t seed) -> MadeSource {
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
        if (masks) options.masks = mask_options(*masks);
        speech::UtteranceFileOptions files{.audio_field = std::move(audio_field),
                                           .path_field = std::move(path_field),
                                           .text_field = std::move(text_field),
                                           .text_key = std::move(text_key),
                                           .is_checked = is_checked};
        files.files.form = form_of(form);
        return std::make_shared<speech::UtteranceSource>(
            speech::open_utterances(paths, files), speech::character_encoder(alphabet), options);
      },
      py::kw_only(), py::arg("paths"), py::arg("form"), py::arg("audio_field"),
      py::arg("path_field"), py::arg("text_field"), py::arg("text_key"), py::arg("is_checked"),
      py::arg("alphabet"), py::arg("sample_rate"), py::arg("n_fft"), py::arg("win_length"),
      py::arg("hop_length"), py::arg("n_mels"), py::arg("is_normalized"), py::arg("masks"),
      py::arg("stack"), py::arg("subsample"), py::arg("max_seconds"), py::arg("num_lengths"),
      py::arg("seed"), Unlocked());
}

void bind_volumes(py::module_& module) {
  module.def(
      "volume_source",
      [](const std::filesystem::path& images, const std::filesystem::path& labels,
         std::tuple<std::int64_t, std::int64_t, std::int64_t> patch,
         std::tuple<float, float, float, float> intensities, const std::optional<Triple>& spacing,
         const MaybeNumbers& random, std::uint64_t seed, std::int64_t keep_bytes) -> MadeSource {
        const auto [depth, height, width] = patch;
        const auto [low, high, mean, deviation] = intensities;
        volume::VolumeOptions options{.patch = {depth, height, width},
                                      .intensities = {low, high, mean, deviation},
                                      .seed = seed,
                                      .keep_bytes = keep_bytes};
        if (spacing) options.spacing = values_of(*spacing);
        if (random) options.random = patch_options(*random);
        return std::make_shared<volume::VolumeSource>(volume::find_volumes(images, labels),
                                                      options);
      },
      py::kw_only(), py::arg("images"), py::arg("labels"), py::arg("patch"), py::arg("intensities"),
      py::arg("spacing"), py::arg("random"), py::arg("seed"), py::arg("keep_bytes"), Unlocked());
}

}  // namespace

void bind_sources_of_packs(py::module_& module) {
  py::module_::import("trireme._core");  // knows what a source is
  bind_images(module);
  bind_utterances(module);
  bind_volumes(module);
}

}  // namespace trireme::python
