#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "packs/vision/data/decoded_images.h"
#include "trireme/data.h"

namespace trireme::recipes {

/// Where decoded images are kept for later epochs, and how often each is used before it is dropped.
struct KeepDecoded {
  std::optional<std::int64_t> bytes;
  std::filesystem::path folder;
  data::SampleRepeats repeat;

  bool repeats() const { return repeat.times > 1; }

  /// Of training: where images are repeated, 2 GiB at most if nothing else is said.
  vision::KeepOptions training() const {
    constexpr std::int64_t kUsualBytes = std::int64_t{2} << 30;
    return {.max_bytes = bytes.value_or(repeats() ? kUsualBytes : 0),
            .folder = folder,
            .times = repeats() ? repeat.times : 0};
  }

  /// Of evaluation, which repeats none.
  vision::KeepOptions evaluation() const {
    return {.max_bytes = bytes.value_or(0), .folder = folder};
  }
};

/// `--NAME-keep-decoded`, `--NAME-keep-folder`, `--NAME-repeat` and `--NAME-repeat-block`.
inline void add_keep_options(CLI::App& app, const std::string& name, KeepDecoded& keep) {
  auto* bytes =
      app.add_option("--" + name + "-keep-decoded", keep.bytes,
                     "Decoded images that each process keeps for later epochs, `2GiB`; of "
                     "evaluation as much more")
          ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
          ->check(CLI::NonNegativeNumber);
  app.add_option("--" + name + "-keep-folder", keep.folder,
                 "Folder for a scratch file that they are kept in; memory where it is not given")
      ->needs(bytes)
      ->check(CLI::ExistingDirectory);
  constexpr int kMostTimes = 1 << 20;
  auto* times = app.add_option("--" + name + "-repeat", keep.repeat.times,
                               "How often an image is used, with other crops, once it is decoded; "
                               "then it is dropped. An epoch is as many times as long")
                    ->check(CLI::Range(1, kMostTimes))
                    ->capture_default_str();
  app.add_option("--" + name + "-repeat-block", keep.repeat.block_samples,
                 "Images of all ranks that are in use at a time, which are to have room in what is "
                 "kept: 3 bytes a pixel; 2 GiB a process where that is not given")
      ->needs(times)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

}  // namespace trireme::recipes
