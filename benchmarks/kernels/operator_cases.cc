#include "benchmarks/kernels/operator_cases.h"

#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "benchmarks/kernels/random_values.h"
#include "packs/speech/operators/transducer.h"
#include "packs/text/operators/attention.h"
#include "packs/vision/operators/detection.h"
#include "trireme/engine/operators/batch_norm.h"
#include "trireme/error.h"

namespace trireme::kernels::bench {
namespace {

using Named = std::map<std::string, at::Tensor>;

/// Calls an operator and its backward; results by the names that peers use.
using Call = std::function<Named(const Named& inputs)>;

/// The inputs of a case as tensors that share its memory.
Named tensors_of(const Tensors& inputs) {
  const std::map<Dtype, at::ScalarType> types = {
      {Dtype::kF32, at::kFloat}, {Dtype::kI32, at::kInt}, {Dtype::kI64, at::kLong}};
  Named tensors;
  for (const auto& [name, one] : inputs.all()) {
    const auto type = types.find(one.dtype);
    if (type == types.end()) continue;
    tensors[name] =
        at::from_blob(const_cast<std::byte*>(one.bytes.data()), one.shape, type->second);
  }
  return tensors;
}

class OperatorCase final : public Case {
 public:
  /// inputs   of a case that has them; kept.
  OperatorCase(std::unique_ptr<Case> inputs, int num_threads, Call call)
      : source_(std::move(inputs)),
        inputs_(tensors_of(source_->inputs())),
        num_threads_(num_threads),
        call_(std::move(call)) {}

  const Tensors& inputs() const override { return source_->inputs(); }

  void run() override {
    at::set_num_threads(num_threads_);
    made_ = call_(inputs_);
  }

  void check() override {
    run();
    for (const auto& [name, tensor] : made_) {
      const at::Tensor dense = tensor.detach().contiguous();
      std::copy_n(dense.const_data_ptr<float>(), dense.numel(),
                  checked_.add<float>(name, dense.sizes().vec()).begin());
    }
  }

  Tensors outputs() const override { return checked_; }

 private:
  const std::unique_ptr<Case> source_;
  const Named inputs_;
  const int num_threads_;
  const Call call_;
  Named made_;
  Tensors checked_;
};

/// A leaf that shares the memory of `tensor`.
at::Tensor leaf(const at::Tensor& tensor) { return tensor.detach().requires_grad_(); }

/// [N, spatial, C] as [N, C, spatial], in channels-last memory.
at::Tensor channels_second(const at::Tensor& x) { return x.movedim(-1, 1); }
at::Tensor channels_back(const at::Tensor& x) { return x.movedim(1, -1); }

Named batch_norm_call(const Named& in, bool is_last) {
  const auto as_image = [&](const char* name) {
    return is_last ? channels_second(in.at(name)) : in.at(name);
  };
  const auto back = [&](const at::Tensor& x) { return is_last ? channels_back(x) : x; };
  const at::Tensor x = leaf(as_image("x")), residual = leaf(as_image("residual"));
  const at::Tensor gamma = leaf(in.at("gamma")), beta = leaf(in.at("beta"));
  const at::Tensor y = operators::batch_norm(x, {.weight = gamma, .bias = beta},
                                             {.residual = residual, .has_relu = true});
  const auto made =
      torch::autograd::grad({y}, {x, residual, gamma, beta}, {as_image("gradient_y")});
  return {{"y", back(y)},
          {"gradient_x", back(made[0])},
          {"gradient_residual", back(made[1])},
          {"gradient_gamma", made[2]},
          {"gradient_beta", made[3]}};
}

Named instance_norm_call(const Named& in, bool is_last) {
  const auto as_volume = [&](const char* name) {
    return is_last ? channels_second(in.at(name)) : in.at(name);
  };
  const auto back = [&](const at::Tensor& x) { return is_last ? channels_back(x) : x; };
  const at::Tensor x = leaf(as_volume("x")), gamma = leaf(in.at("gamma"));
  const at::Tensor beta = leaf(in.at("beta"));
  const at::Tensor y = operators::instance_norm(x, gamma, beta, 1e-5, true);
  const auto made = torch::autograd::grad({y}, {x, gamma, beta}, {as_volume("gradient_y")});
  return {{"y", back(y)},
          {"gradient_x", back(made[0])},
          {"gradient_gamma", made[1]},
          {"gradient_beta", made[2]}};
}

Named attention_call(const Named& in) {
  const at::Tensor q = leaf(in.at("q")), k = leaf(in.at("k")), v = leaf(in.at("v"));
  const at::Tensor out = text::attention(q, k, v);
  const auto made = torch::autograd::grad({out}, {q, k, v}, {in.at("gradient_out")});
  return {{"out", out}, {"gradient_q", made[0]}, {"gradient_k", made[1]}, {"gradient_v", made[2]}};
}

speech::TransducerLengths full_lengths(std::int64_t batch, std::int64_t frames,
                                       std::int64_t labels) {
  return {at::full({batch}, frames, at::kInt), at::full({batch}, labels, at::kInt)};
}

Named loss_call(const Named& in) {
  const at::Tensor logits = leaf(in.at("logits"));
  const at::Tensor loss = speech::transducer_loss(
      logits, in.at("labels"),
      full_lengths(logits.size(0), logits.size(1), in.at("labels").size(1)));
  return {{"loss", loss}, {"gradient", torch::autograd::grad({loss.sum()}, {logits})[0]}};
}

Named joint_call(const Named& in) {
  const at::Tensor f = leaf(in.at("f")), g = leaf(in.at("g"));
  const at::Tensor out =
      speech::transducer_joint(f, g, full_lengths(f.size(0), f.size(1), g.size(1) - 1));
  const auto made = torch::autograd::grad({out}, {f, g}, {in.at("dout")});
  return {{"out", out}, {"df", made[0]}, {"dg", made[1]}};
}

Named roi_align_call(const Named& in) {
  const at::Tensor features = leaf(channels_second(in.at("features")));
  const at::Tensor out =
      vision::roi_align(features, in.at("regions"), {.num_samples = 2, .is_aligned = true});
  const at::Tensor gradient = torch::autograd::grad({out}, {features}, {out.detach()})[0];
  return {{"out", channels_back(out)}, {"gradient", channels_back(gradient)}};
}

/// A level of a 3D U-Net; the kernel has no case of its own.
class InstanceNormInputs final : public Case {
 public:
  explicit InstanceNormInputs(bool is_last) {
    const std::vector<std::int64_t> sizes =
        is_last ? std::vector{kBatch, kSide, kSide, kSide, kChannels}
                : std::vector{kBatch, kChannels, kSide, kSide, kSide};
    fill_normal(inputs_.add<float>("x", sizes), 1);
    fill_normal(inputs_.add<float>("gradient_y", sizes), 2);
    fill_normal(inputs_.add<float>("gamma", {kChannels}), 3);
    fill_normal(inputs_.add<float>("beta", {kChannels}), 4);
    inputs_.options.emplace("channels_last", is_last ? "1" : "0");
    spare_kinks(is_last);
  }

  const Tensors& inputs() const override { return inputs_; }
  void run() override {}
  Tensors outputs() const override { return {}; }

 private:
  /// What rounding may put on either side of ReLU's kink gets no gradient, so that libraries agree.
  void spare_kinks(bool is_last) {
    const Named in = tensors_of(inputs_);
    const at::Tensor x = is_last ? channels_second(in.at("x")) : in.at("x");
    at::Tensor gradient = is_last ? channels_second(in.at("gradient_y")) : in.at("gradient_y");
    const at::Tensor t =
        at::instance_norm(x, in.at("gamma"), in.at("beta"), {}, {}, true, 0, 1e-5, false);
    gradient.masked_fill_(t.abs() < 1e-4, 0);
  }

  static constexpr std::int64_t kBatch = 2, kChannels = 32, kSide = 64;

  Tensors inputs_;
};

CaseEntry instance_norm_entry(const std::string& variant, bool is_last) {
  constexpr double kElements = 2.0 * 32 * 64 * 64 * 64;
  return {.name = "instance_norm/" + variant,
          .shape = "operator, 2x32x64^3, ReLU, both ways",
          .bytes = 5 * 4 * kElements,  // x, y; gradient_y, x, gradient_x
          .tolerance = 2e-3,           // torch sums in f32
          .peers = {"torch"},
          .make = [=](const CaseSetting& setting) {
            return std::make_unique<OperatorCase>(
                std::make_unique<InstanceNormInputs>(is_last), setting.num_threads,
                [=](const Named& in) { return instance_norm_call(in, is_last); });
          }};
}

/// The case `name` of a kernel by an operator.
CaseEntry operator_entry(const std::vector<CaseEntry>& kernels, const std::string& name,
                         const Call& call) {
  const auto found = std::ranges::find(kernels, name, &CaseEntry::name);
  if (found == kernels.end()) throw Error(ErrorKind::kInvalidArgument, "no case " + name);
  CaseEntry entry = *found;
  entry.name += "_operator";
  entry.shape = "operator, " + entry.shape;
  entry.make = [make = found->make, call](const CaseSetting& setting) {
    return std::make_unique<OperatorCase>(make(setting), setting.num_threads, call);
  };
  return entry;
}

}  // namespace

std::vector<CaseEntry> operator_cases() {
  const std::vector<CaseEntry> kernels = all_cases();
  const auto of = [&](const std::string& name, const Call& call) {
    return operator_entry(kernels, name, call);
  };
  return {
      of("attention/plain", attention_call),
      of("bn_add_relu/channels_first", [](const Named& in) { return batch_norm_call(in, false); }),
      of("bn_add_relu/channels_last", [](const Named& in) { return batch_norm_call(in, true); }),
      instance_norm_entry("channels_first", false),
      instance_norm_entry("channels_last", true),
      of("roi_align/both", roi_align_call),
      of("transducer_loss/16x150x20x1024", loss_call),
      of("joint/16x150x21x512", joint_call)};
}

}  // namespace trireme::kernels::bench
