#include <vector>

#include "packs/speech/kernels/joint.h"
#include "packs/speech/kernels/loss.h"
#include "tests/judges/judge.h"

namespace trireme::judges {
namespace {

/// logits [B, T, U, V], or packed [rows, V]; labels [B, U - 1], num_frames and num_labels [B],
/// loss_gradient [B]; options blank, packed, max_frames -> loss [B], gradient as logits
Tensors transducer_loss(const Tensors& inputs) {
  const auto num_frames = inputs.get<std::int32_t>("num_frames");
  const auto num_labels = inputs.get<std::int32_t>("num_labels");
  const auto& shape = inputs.at("logits").shape;
  std::vector<std::int64_t> offsets;
  if (inputs.number("packed") != 0) offsets = speech::packed_offsets(num_frames, num_labels);
  const speech::Lattices lattices{num_frames, num_labels,
                                  static_cast<std::int64_t>(inputs.number("max_frames")),
                                  inputs.at("labels").shape[1], offsets};
  const speech::TransducerTargets targets{inputs.get<std::int32_t>("labels"), shape.back(),
                                          static_cast<std::int64_t>(inputs.number("blank"))};
  std::vector<std::byte> workspace(speech::transducer_workspace_bytes(lattices));
  Tensors outputs;
  const auto loss = outputs.add<float>("loss", {lattices.num_samples()});
  const auto gradient = outputs.add<float>("gradient", shape);
  speech::transducer_loss_and_gradient(lattices, targets, inputs.get<float>("logits").data(),
                                       workspace, inputs.get<float>("loss_gradient").data(),
                                       loss.data(), gradient.data());
  return outputs;
}

/// f [B, T, H], g [B, U, H], dout [B, T, U, H], num_frames and num_labels [B]
///     -> out as dout, df as f, dg as g
Tensors joint(const Tensors& inputs) {
  const auto& shape = inputs.at("dout").shape;
  const speech::Lattices lattices{inputs.get<std::int32_t>("num_frames"),
                                  inputs.get<std::int32_t>("num_labels"),
                                  shape[1],
                                  shape[2] - 1,
                                  {}};
  const speech::JointSettings options{.width = shape[3]};
  std::vector<std::uint8_t> mask(lattices.num_rows() * speech::joint_mask_bytes(options.width));
  Tensors outputs;
  const auto out = outputs.add<float>("out", shape);
  const auto df = outputs.add<float>("df", inputs.at("f").shape);
  const auto dg = outputs.add<float>("dg", inputs.at("g").shape);
  speech::joint(lattices, options, inputs.get<float>("f").data(), inputs.get<float>("g").data(),
                out.data(), mask.data());
  speech::joint_backward(lattices, options, inputs.get<float>("dout").data(), mask.data(),
                         df.data(), dg.data());
  return outputs;
}

}  // namespace

void add_transducer(Operations& operations) {
  operations["transducer_loss"] = transducer_loss;
  operations["joint"] = joint;
}

}  // namespace trireme::judges
