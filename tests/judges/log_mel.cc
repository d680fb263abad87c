#include "packs/speech/kernels/log_mel.h"

#include <string>
#include <vector>

#include "packs/speech/data/decode.h"
#include "packs/speech/kernels/frames.h"
#include "tests/judges/judge.h"

namespace trireme::judges {
namespace {

std::int64_t whole(const Tensors& inputs, const std::string& option) {
  return static_cast<std::int64_t>(inputs.number(option));
}

/// samples [n]; options as MelOptions calls them, norm and mel_scale in words -> features [frames, n_mels]
Tensors log_mel(const Tensors& inputs) {
  const bool is_slaney = inputs.options.at("norm") == "slaney";
  const bool has_slaney_mels = inputs.options.at("mel_scale") == "slaney";
  const bool is_reflected = inputs.options.at("pad_mode") == "reflect";
  const speech::LogMel features({
      .sample_rate = whole(inputs, "sample_rate"),
      .n_fft = whole(inputs, "n_fft"),
      .win_length = whole(inputs, "win_length"),
      .hop_length = whole(inputs, "hop_length"),
      .f_min = inputs.number("f_min"),
      .f_max = inputs.number("f_max"),
      .n_mels = whole(inputs, "n_mels"),
      .power = inputs.number("power"),
      .center = inputs.number("center") == 1,
      .pad_mode = is_reflected ? speech::PadMode::kReflect : speech::PadMode::kConstant,
      .norm = is_slaney ? speech::MelNorm::kSlaney : speech::MelNorm::kNone,
      .mel_scale = has_slaney_mels ? speech::MelScale::kSlaney : speech::MelScale::kHtk,
      .log_offset = inputs.number("log_offset"),
  });
  const auto samples = inputs.get<float>("samples");
  Tensors outputs;
  features(samples, outputs.add<float>("features", {features.num_frames(std::ssize(samples)),
                                                    features.options().n_mels}));
  return outputs;
}

/// features [frames, n], options stack, subsample -> normalized [frames, n], stacked
Tensors frames(const Tensors& inputs) {
  const auto& shape = inputs.at("features").shape;
  const speech::FrameShape frames{.num_frames = shape[0], .num_features = shape[1]};
  const speech::FrameStacking stacking{.stack = whole(inputs, "stack"),
                                       .subsample = whole(inputs, "subsample")};
  const auto features = inputs.get<float>("features");
  Tensors outputs;
  const auto normalized = outputs.add<float>("normalized", shape);
  std::ranges::copy(features, normalized.begin());
  speech::normalize_per_feature(frames, normalized.data());
  speech::stack_frames(frames, stacking, features.data(),
                       outputs
                           .add<float>("stacked", {speech::stacked_frames(shape[0], stacking),
                                                   stacking.stack * shape[1]})
                           .data());
  return outputs;
}

/// Option file -> samples [channels, frames], rate [1]
Tensors audio(const Tensors& inputs) {
  const speech::Audio decoded =
      speech::decode_audio(std::filesystem::path(inputs.options.at("file")));
  Tensors outputs;
  std::ranges::copy(
      decoded.samples,
      outputs.add<float>("samples", {decoded.num_channels, decoded.num_frames()}).begin());
  outputs.add<std::int64_t>("rate", {1})[0] = decoded.sample_rate;
  return outputs;
}

}  // namespace

void add_log_mel(Operations& operations) {
  operations["audio"] = audio;
  operations["frames"] = frames;
  operations["log_mel"] = log_mel;
}

}  // namespace trireme::judges
